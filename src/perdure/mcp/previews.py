"""What removes more than it was shown answers first with a preview and a token. A guard against slips.

It is none against a model that means harm: such a one repeats the call. For that there are servers that only read,
and servers that do not forget.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from perdure.base.clock import checked_now
from perdure.contract.naming import camel_case
from perdure.dispatch import Caller
from perdure.errors import InvalidRequest
from perdure.mcp.arguments import SCOPES, TOKEN
from perdure.mcp.tokens import LIFE_MS, Previewed, erasures_of, fits, make_token
from perdure.model.conversation_forms import names_of
from perdure.model.namespace import BESIDE, Namespace
from perdure.model.node_forms import find_node_id

CONVERSATIONS = BESIDE[0]  # after the name of a scope: the space beside it that holds its conversations
SHOWN_MAX = 20  # facts of a preview whose text is told

JsonObject = dict[str, Any]
Shown = Callable[[Caller, Iterable[str]], JsonObject]


def forget(caller: Caller, told: Mapping[str, Any]) -> JsonObject:
    """Forget the facts of the one scope that is told, by the names of the contract.

    By ids at once. Else the first call removes nothing and gives a preview; with its token the facts that were
    shown are forgotten, these and no others. Where others match by now, there is a new preview.
    """
    rest = dict(told)
    token = rest.pop(TOKEN, None)
    scope = _taken_scope(rest)
    if scope["kind"] == "ids" or not isinstance(rest.get("dryRun", False), bool):
        return caller.call("forget", {"scope": scope, **rest})
    only_looks = rest.pop("dryRun", False)
    found = caller.call("forget", {"scope": scope, **rest, "dryRun": True})
    previewed = _previewed(caller, "forget", rest, found["forgotten"])
    if only_looks or not _is_agreed(caller, previewed, token):
        return _preview(caller, previewed, found, changed=token is not None)
    # By the ids that were shown: whatever matches since is not meant, and what goes along is among them.
    asked = {name: value for name, value in rest.items() if name in ("soft", "block", "idempotencyKey")}
    return _forgotten(caller, previewed.ids, asked)


def apply_forgetting(caller: Caller, told: Mapping[str, Any]) -> JsonObject:
    """Erase what the policy lets go: a dry run unless `dryRun` is false, which gives a preview first."""
    rest = dict(told)
    token = rest.pop(TOKEN, None)
    if rest.get("dryRun") is not False:
        return caller.call("applyForgetting", rest)
    found = caller.call("applyForgetting", {**rest, "dryRun": True})
    previewed = _previewed(caller, "applyForgetting", rest, found["forgotten"])
    if not _is_agreed(caller, previewed, token):
        return _preview(caller, previewed, found, changed=token is not None)
    return _forgotten(caller, previewed.ids, {})


def consolidate(caller: Caller, told: Mapping[str, Any]) -> JsonObject:
    """Add what the policy plans: a dry run unless `dryRun` is false; a preview first where it erases sources."""
    rest = dict(told)
    token = rest.pop(TOKEN, None)
    if rest.get("dryRun") is not False or rest.get("allowDestructive") is not True:
        return caller.call("consolidate", rest)
    found = caller.call("consolidate", {**rest, "dryRun": True})
    previewed = _previewed(caller, "consolidate", rest, found["forgotten"])
    if not found["forgotten"] or _is_agreed(caller, previewed, token):
        return caller.call("consolidate", rest)
    return _preview(caller, previewed, found, changed=token is not None)


def forget_conversation(caller: Caller, told: Mapping[str, Any]) -> JsonObject:
    """Forget turns of a session by the names of the contract.

    One turn, named by session, version and source, at once. What may be more than one gives a preview first; with
    its token it goes, as long as nothing else is meant by it by now.
    """
    rest = dict(told)
    token = rest.pop(TOKEN, None)
    names_one = "version" in rest and "sourceId" in rest and rest.get("includeDerived", False) is False
    if names_one or not isinstance(rest.get("dryRun", False), bool):
        return caller.call("forgetConversation", rest)
    only_looks = rest.pop("dryRun", False)
    found = caller.call("forgetConversation", {**rest, "dryRun": True})
    beside = Namespace(caller.namespace.principal, caller.namespace.scope + CONVERSATIONS)
    previewed = _previewed(caller, "forgetConversation", rest, found["forgotten"], of=beside)
    if only_looks or not _is_agreed(caller, previewed, token):
        return _preview(caller, previewed, found, changed=token is not None, shown=_shown_turns)
    return caller.call("forgetConversation", rest)


def _forgotten(caller: Caller, ids: Iterable[str], asked: Mapping[str, Any]) -> JsonObject:
    scope: JsonObject = {"kind": "ids", "ids": list(ids)}
    return caller.call("forget", {"scope": scope, **asked})


def _taken_scope(rest: dict[str, Any]) -> JsonObject:
    """Take the one scope out of the arguments and return it as the contract has it."""
    wire = ((name, camel_case(name)) for name in SCOPES)
    named: JsonObject = {name: rest.pop(told) for name, told in wire if told in rest}
    if (everything := rest.pop("all", False)) is not False:
        named["all"] = everything
    if len(named) != 1:
        raise InvalidRequest(
            f"forget takes exactly one of {', '.join((*SCOPES, 'all'))}; given: {', '.join(named) or 'none'}",
            field="scope",
        )
    ((name, value),) = named.items()
    if name != "all":
        kind, field = SCOPES[name]
        return {"kind": kind, field: value}
    if value is not True:
        raise InvalidRequest("all must be true or false", field="all")
    return {"kind": "all"}


def _previewed(
    caller: Caller, op: str, options: Mapping[str, Any], ids: Iterable[str], *, of: Namespace | None = None
) -> Previewed:
    """Return what is shown; `of` is the space that it is erased from, the caller's own when absent."""
    told = tuple(sorted((name, str(value)) for name, value in options.items()))
    space = of or caller.namespace
    return Previewed(op, told, space, tuple(ids), erasures_of(caller.store.log, space))


def _is_agreed(caller: Caller, previewed: Previewed, token: object) -> bool:
    if not isinstance(token, str):
        return False
    return fits(caller.store.log.secret, previewed, checked_now(caller.store.clock), token)


def _preview(
    caller: Caller, previewed: Previewed, found: JsonObject, *, changed: bool, shown: Shown | None = None
) -> JsonObject:
    """Return the reply to a dry run with a token to agree by, and the first facts or turns that would go."""
    told = {"facts": _shown(caller, previewed.ids)} if shown is None else shown(caller, previewed.ids)
    preview: JsonObject = {"count": len(previewed.ids), **told}
    if previewed.ids:
        now = checked_now(caller.store.clock)
        preview |= {
            "token": make_token(caller.store.log.secret, previewed, now),
            "expiresAt": now + LIFE_MS,
            "next": "nothing is erased yet: show this to the user, then repeat the call with this token",
        }
    if changed:
        preview["note"] = "the token does not fit what matches now, or has run out; this is a new preview"
    return {**found, "preview": preview}


def _shown(caller: Caller, ids: Iterable[str]) -> list[JsonObject]:
    return [shown for id_ in list(ids)[:SHOWN_MAX] if (shown := _find_shown(caller, id_)) is not None]


def _find_shown(caller: Caller, id_: str) -> JsonObject | None:
    """Return what a fact or a candidate says; None for a fact that is hidden."""
    fact = caller.call("get", {"id": id_})["fact"]
    if fact is not None:
        return {"id": id_, "text": fact["text"], "status": fact["status"]}
    name = find_node_id(id_)
    node = None if name is None else caller.call("node", {"id": name})["node"]
    return None if node is None else {"id": id_, "text": node["content"], "status": node["status"]}


def _shown_turns(caller: Caller, ids: Iterable[str]) -> JsonObject:
    """Return the first turns with what they say, and the ids of what else would go."""
    named = [(id_, names_of(id_)) for id_ in list(ids)[:SHOWN_MAX]]
    versions = {names[:2] for _, names in named if names is not None}
    turns: dict[str, JsonObject] = {}
    for session, version in versions:
        kept = caller.call("conversation", {"sessionId": session, "version": version})["conversation"]
        turns |= {} if kept is None else {turn["uri"]: turn for turn in kept["turns"]}
    said = [
        {"id": id_, "role": turns[id_]["role"], "text": turns[id_]["text"]}
        for id_, _ in named
        if id_ in turns
    ]
    return {"turns": said, "others": [id_ for id_, names in named if names is None]}
