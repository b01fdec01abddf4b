"""What the commands about governed knowledge share: evidence, decisions, and how a node is shown."""

from __future__ import annotations

import getpass
import hashlib
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from perdure.base.instants import to_iso, to_millis
from perdure.cli import options as o
from perdure.cli.screen import Screen, print_json
from perdure.cli.session import Session
from perdure.errors import Blocked, Conflict, InvalidRequest, NotFound, PerdureError

if TYPE_CHECKING:
    from perdure.model.node import Evidence
    from perdure.model.node import Node as KnownNode
    from perdure.repository import Repository
    from perdure.store import Store

OPTIONS = {
    "expected_revision": "--revision",
    "draft.id": "--id",
    "draft.kind": "--knowledge",
    "draft.content": "TEXT",
    "draft.confidence": "--confidence",
    "draft.importance": "--importance",
    "draft.labels": "--label",
    "draft.subject": "--subject",
    "draft.evidence": "--evidence",
    "draft.valid_from": "--valid-from",
    "draft.valid_to": "--valid-to",
    "evidence.uri": "--evidence",
    "evidence.digest": "--digest",
    "evidence.kind": "--kind",
    "evidence.quote": "--quote",
    "evidence.start": "--quote-start",
    "evidence": "--evidence",
    "digest": "--digest",
    "start": "--quote-start",
    "occurred_at": "--at",
    "labels": "--label",
    "labels.key": "the name of --label",
    "labels.value": "the value of --label",
    "idempotency_key": "--idempotency-key",
    "content": "TEXT",
    "confidence": "--confidence",
    "importance": "--importance",
    "mode": "--mode",
    "actor": "--actor",
    "reason": "--reason",
    "valid_from": "--valid-from",
    "valid_to": "--valid-to",
    "limit": "--limit",
    "cursor": "--cursor",
}
"""What was typed, by the field of the contract that it became."""
_PLACE = re.compile(
    r"operations\[\d+\](?:\.draft(?=\.[a-z]+\[|: ))?(?:\.|: )|(?<=[a-z])\[\d+\]"
)  # of an operation or an evidence: one is typed at a time
HERE = "perdure:decision"  # the uri of a decision that was made at the command line
Node = dict[str, Any]
Operation = dict[str, Any]


class Told(NamedTuple):
    """The evidence of a decision as it was typed; no uri for the decision itself."""

    uri: str | None
    kind: str
    digest: str | None
    quote: str | None
    start: str | None = None
    at: str | None = None


EVIDENCE_KINDS = ("user_statement", "tool_result", "artifact", "session_turn", "verification", "manual")
WitnessKind = Annotated[
    str,
    typer.Option(
        "--kind",
        metavar="KIND",
        help=f"What kind of evidence it is: {', '.join(EVIDENCE_KINDS)}.",
        autocompletion=o.one_of(*EVIDENCE_KINDS),
    ),
]
DecisionKind = Annotated[
    str,
    typer.Option(
        "--kind",
        metavar="KIND",
        help="What kind of evidence it is; manual and verification decide.",
        autocompletion=o.one_of("manual", "verification"),
    ),
]
WitnessUri = Annotated[
    str, typer.Option("--evidence", metavar="URI", help="Where it comes from, at most 2,048 bytes.")
]

NodeId = Annotated[str, typer.Argument(metavar="ID", help="The node's id.")]
NodePage = Annotated[
    str | None,
    typer.Option(
        "--limit", metavar="N", help="At most so many a page, and never more than 100. Default: 20."
    ),
]
Digest = Annotated[
    str | None,
    typer.Option(
        "--digest",
        metavar="DIGEST",
        help="Of what was found there, in any form. Default: the SHA-256 of the quote.",
    ),
]
Quote = Annotated[
    str | None, typer.Option("--quote", metavar="TEXT", help="What the evidence says, word for word.")
]
QuoteStart = Annotated[
    str | None,
    typer.Option("--quote-start", metavar="N", help="Where the quote begins, in characters from 0."),
]
EvidenceAt = Annotated[
    str | None, typer.Option("--at", metavar=o.TIME, help="When the evidence came to be. Default: now.")
]
EvidenceUri = Annotated[
    str | None,
    typer.Option(
        "--evidence", metavar="URI", help="What decides. Default: that it was decided here and now."
    ),
]
Revision = Annotated[
    str | None,
    typer.Option(
        "--revision",
        metavar="N",
        help="Only if the node is at this revision, the one that you looked at. Default: in any case.",
    ),
]
Actor = Annotated[
    str | None,
    typer.Option(
        "--actor", metavar="NAME", help="Who wants it; kept with the revision. Default: your login name."
    ),
]
Key = Annotated[
    str | None,
    typer.Option(
        "--idempotency-key",
        metavar="KEY",
        help="Names the change: the very same again under it changes nothing. Default: a random one.",
    ),
]


@dataclass(frozen=True)
class Deciding:
    """The options of a command that decides on a node. The decision is evidence itself; another one may be named."""

    revision: Revision = None
    evidence: EvidenceUri = None
    digest: Digest = None
    kind: DecisionKind = "manual"
    quote: Quote = None
    actor: Actor = None
    reason: o.Reason = None
    idempotency_key: Key = None

    @property
    def told(self) -> Told:
        return Told(self.evidence, self.kind, self.digest, self.quote)


@dataclass(frozen=True)
class Witnessing:
    """The options of a command that changes a node by evidence which it must name, but for that name."""

    revision: Revision = None
    digest: Digest = None
    kind: WitnessKind = "user_statement"
    quote: Quote = None
    quote_start: QuoteStart = None
    at: EvidenceAt = None
    actor: Actor = None
    reason: o.Reason = None
    idempotency_key: Key = None

    def told(self, evidence: str) -> Told:
        return Told(evidence, self.kind, self.digest, self.quote, self.quote_start, self.at)


@contextmanager
def named_as_typed(session: Session, options: Mapping[str, str] = OPTIONS) -> Iterator[None]:
    """Let errors about a field of a request name the option that it was typed as, where people read them.

    For programs they stay those of the contract.
    """
    try:
        yield
    except (InvalidRequest, Conflict, NotFound, Blocked) as error:
        if not session.as_json:
            _name_as_typed(error, options)
        raise


def _name_as_typed(error: PerdureError, options: Mapping[str, str]) -> None:
    own = _PLACE.sub("", error.field or "")
    # Beside the field itself, what is no word of prose: "limit" may be one, "valid_from" is none.
    names = [name for name in options if name == own or "_" in name]
    if not names:
        return
    either = "|".join(map(re.escape, sorted(names, key=len, reverse=True)))
    from perdure.contract.naming import outside_of_values  # noqa: PLC0415 - only where something is wrong

    named = re.compile(rf"(?<![\w.-])(?:{either})(?![\w.])")
    message = outside_of_values(
        error.message, lambda part: named.sub(lambda found: options[found[0]], _PLACE.sub("", part))
    )
    error.message, error.args = message, (message,)


def actor_of(told: str | None) -> str | None:
    """Return who wants a change: who was told, else the user by the name of the login, where there is one."""
    if told is not None:
        return told
    try:
        return getpass.getuser()
    except (OSError, KeyError, ImportError):  # a user without a name; which is raised depends on the system
        return None


def now_of(session: Session) -> int:
    """Return the present, in milliseconds."""
    from perdure.base.clock import SystemClock, checked_now  # noqa: PLC0415 - help must not wait for it

    return checked_now(SystemClock())


def node_id_of(text: str, evidence: Node) -> str:
    """Return the id of a proposal that was given none: the same text from the same evidence has the same one."""
    told = "\0".join((text, evidence["uri"], evidence["digest"]))
    return f"node-{hashlib.sha256(told.encode('utf-8', 'surrogatepass')).hexdigest()[:32]}"


def evidence_object(  # noqa: PLR0913 - one parameter per option
    uri: str,
    kind: str,
    moment: int,
    digest: str | None,
    quote: str | None,
    *,
    start: str | None = None,
    at: str | None = None,
) -> dict[str, Any]:
    """Return evidence as the contract has it.

    Raises InvalidRequest where neither a digest nor a quote is told.
    """
    if digest is None:
        if quote is None:
            raise InvalidRequest(
                "digest is missing: give it, or a quote, of which it is made", field="digest"
            )
        digest = _sha256(quote)
    told = {"uri": uri, "digest": digest, "kind": kind, "quote": quote}
    place = {"start": o.whole(start, "start")} if start is not None else {}
    occurred = o.instant(at, "occurred_at")
    if occurred is None:
        occurred = moment
    elif occurred > moment:
        raise InvalidRequest(
            f"occurred_at ({to_iso(occurred)}) must not lie in the future", field="occurred_at"
        )
    return {**told, "occurredAt": occurred, **place}


def operation(name: str, actor: str | None, reason: str | None, **fields: Any) -> Operation:
    return {"operation": name, "actor": actor, "reason": reason, **fields}


@dataclass
class Decision:
    """One change set of decisions on nodes.

    Told again under the same key it becomes the same request: the first evidence of each node is made of the key, and
    where a node has it already, the moment and the revision that it was decided at are read off it.
    """

    repository: Repository
    moment: int
    told: Told
    who: tuple[str | None, str | None]
    key: str | None
    seen: dict[str, str] = field(default_factory=dict)  # the status of each node when it was decided on

    def on(self, id_: str, revision: str | None = None) -> Callable[..., Operation]:
        """Return what makes the operations on a node, each on the revision that the one before it left.

        Args:
            revision: that the node must be at; as it is when None.

        Raises NodeNotFound; InvalidRequest for evidence that is told in part.
        """
        from perdure.repository_errors import NodeNotFound  # noqa: PLC0415 - help must not wait for it

        node = self.repository.get(id_)
        if node is None:
            raise NodeNotFound(id_)
        told = self.told
        if told.uri is None and (told.digest is not None or told.quote is not None):
            raise InvalidRequest(
                "evidence is missing: digest and quote are of what it names", field="evidence"
            )
        expected = o.whole(revision, "expected_revision")
        at = node.revision if expected is None else expected
        mark = None if self.key is None else _sha256(f"key\0{self.key}\0{id_}")
        made = None if mark is None else _find_mark(node.evidence, mark)
        if made is not None:
            self.moment = to_millis(made.occurred_at, field="occurred_at")
            node = self._before(node, made)
            at = node.revision if expected is None else expected
        self.seen[id_] = node.status

        def step(name: str, **fields: Any) -> Operation:
            nonlocal at, mark
            evidence, mark = self._evidence(id_, at, name, mark), None
            done = operation(name, *self.who, nodeId=id_, expectedRevision=at, evidence=evidence, **fields)
            at += 1
            return done

        return step

    def _evidence(self, id_: str, at: int, name: str, mark: str | None) -> list[dict[str, Any]]:
        told = self.told
        own = mark or _sha256(f"{id_}\0{at}\0{name}\0{self.moment}")
        here = evidence_object(HERE, told.kind, self.moment, own, None)
        if told.uri is None or name == "add_relation":  # a node takes each evidence once
            return [here]
        given = evidence_object(
            told.uri, told.kind, self.moment, told.digest, told.quote, start=told.start, at=told.at
        )
        return [given] if mark is None else [given, here]

    def _before(self, node: KnownNode, made: Evidence) -> KnownNode:
        """Return the last revision of a node that does not have an evidence which its head has."""
        past: KnownNode | None = node
        while past is not None and made in past.evidence:
            node, past = past, self.repository.get(past.id, past.revision - 1) if past.revision > 1 else None
        return node if past is None else past


def _find_mark(evidence: tuple[Evidence, ...], mark: str) -> Evidence | None:
    return next((one for one in evidence if (one.uri, one.digest) == (HERE, mark)), None)


def decide(
    session: Session,
    how: Deciding | Witnessing,
    told: Told,
    operations: Callable[[Decision], list[Operation]],
) -> None:
    """Carry out what is decided on nodes as one change set, and tell what became of them."""
    who, key = (actor_of(how.actor), how.reason), how.idempotency_key

    def act(store: Store) -> Node:
        repository = store.repository(session.principal, session.scope)
        decision = Decision(repository, now_of(session), told, who, key)
        made = operations(decision)
        return change(repository, made, decision.moment, key)

    with named_as_typed(session), session.store(changes=True) as store:
        reply = act(store)
    show_changed(session, reply)


def change(repository: Repository, operations: list[Operation], moment: int, key: str | None) -> Node:
    """Carry operations out as one change set; return the reply of the contract."""
    from perdure.base.ids import random_secret  # noqa: PLC0415 - help must not wait for it

    named = random_secret(16).hex() if key is None else key
    told = {"idempotencyKey": named, "occurredAt": moment, "operations": operations}
    return repository.call("applyChanges", told)


def show_changed(session: Session, reply: Node) -> None:
    """Print what became of the nodes of a change set."""
    if session.as_json:
        print_json(reply)
        return
    screen = Screen()
    for node in reply["nodes"]:
        screen.fields(
            [("id", node["id"]), ("status", node["status"]), ("revision", str(node["revision"]))]
            + ([("fact", node["fact"])] if node["fact"] else [])
        )


def show_node(screen: Screen, node: Node, *, history: bool = False, before: Node | None = None) -> None:
    """Print a node, or one of its revisions, with its evidence; what changed since the one before, where it is told."""
    rows = [("id", node["id"]), ("revision", f"{node['revision']}, {node['revisionKind']}")]
    if history:
        rows.append(("at", _moment(node["updatedAt"])))
    if before is not None:
        new = len(node["evidence"]) - len(before["evidence"])
        told = [*changed_between(before, node), *([f"{new} more evidence"] if new > 0 else [])]
        rows.append(("changed", ", ".join(told) or "nothing"))
    rows += [("status", node["status"]), ("text", node["content"])]
    rows += [(name, node[name]) for name in ("subject", "actor", "reason") if node[name]]
    rows += [(f"label {name}", value) for name, value in node["labels"].items()]
    valid = [_moment(node[name]) for name in ("validFrom", "validTo")]
    if any(valid):
        rows.append(("valid", " to ".join(one or "…" for one in valid)))
    rows += [(one["kind"].replace("_", " "), one["target"] or "(forgotten)") for one in node["relations"]]
    for one in node["evidence"]:
        rows.append(("evidence", f"{one['kind']}, {_moment(one['occurredAt'])}, {one['uri']}"))
        if one["quote"]:
            rows.append(("quote", one["quote"]))
    screen.fields(rows)


def changed_between(before: Node, node: Node) -> list[str]:
    """Return the names of what a revision changed, as `show_node` has them; the evidence that came with it is not meant."""
    names = (
        "status",
        "content",
        "confidence",
        "importance",
        "relations",
        "labels",
        "subject",
        "validFrom",
        "validTo",
    )
    shown = {"content": "text", "validFrom": "valid from", "validTo": "valid to"}
    return [shown.get(name, name) for name in names if before[name] != node[name]]


def show_cursor(screen: Screen, reply: dict[str, Any]) -> None:
    if reply["cursor"] is not None:
        screen.line(f"More with --cursor {reply['cursor']}")


def _moment(millis: int | None) -> str:
    return "" if millis is None else to_iso(millis)


def _sha256(text: str) -> str:
    return f"sha256:{hashlib.sha256(text.encode('utf-8', 'surrogatepass')).hexdigest()}"
