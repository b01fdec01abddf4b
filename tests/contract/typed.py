"""Requests of the contract as they are typed at a shell: the words of a command line that ask the same."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from contract.stores import PRINCIPAL, SCOPE

Spelling = Callable[[Any], list[str]]

ASKED_FIRST = "without --apply it is only shown; --apply asks whether what was shown may go"
WITHOUT_OPTION = {
    ("remember", "facts"): "one fact is typed at a time; import takes a file of many",
    ("applyForgetting", "dryRun"): ASKED_FIRST,
    ("consolidate", "dryRun"): ASKED_FIRST,
}
"""The fields of requests that no command has an option for, and why."""
WITHOUT_COMMAND = {
    **dict.fromkeys(("export", "import"), "lines of JSON go in and out, which tests of their own hold"),
    "applyChanges": "propose, activate, reject and resolve make a change set of one decision each",
    "rememberConversation": "the turns are in a file",
    **dict.fromkeys(
        ("node", "queryNodes", "snapshot", "nodeChanges", "changeToken", "expandConversation", "forgetNodes"),
        "it is for programs",
    ),
    **dict.fromkeys(
        ("recordAdmission", "recordNodeUse", "accessEvents", "usageSummary"), "it is for what makes prompts"
    ),
}
"""The operations that no command asks as they are, and why."""
NUMERAL = re.compile(r"[+-]?[\d.]+(e[+-]?\d+)?", re.ASCII)


class CannotBeTyped(Exception):
    """No command line asks this; the argument says why."""


# What becomes of one value


def text(name: str) -> Spelling:
    """Return what joins a text to its option, so that neither an empty one nor a hyphen is misread."""

    def spell(value: Any) -> list[str]:
        if not isinstance(value, str):
            raise CannotBeTyped("whatever is typed is text")
        return [f"{name}={value}"]

    return spell


def number(name: str) -> Spelling:
    def spell(value: Any) -> list[str]:
        numeral = isinstance(value, str) and NUMERAL.fullmatch(value)
        if numeral or isinstance(value, bool | list | dict):
            raise CannotBeTyped("digits that are typed are a number")
        return [f"{name}={value}"]

    return spell


def moment(name: str) -> Spelling:
    return lambda value: [f"{name}={_moment(value)}"]


def interval(name: str) -> Spelling:
    return lambda value: [f"{name}={'/'.join(map(_moment, value))}"]


def _moment(value: Any) -> str:
    if isinstance(value, bool | list | dict):
        raise CannotBeTyped("a moment that is typed is text or digits")
    return str(value)


def flag(name: str, off: str | None = None) -> Spelling:
    """Return what gives a flag or not; what is false and has no `off` is left out."""

    def spell(value: Any) -> list[str]:
        if not isinstance(value, bool):
            raise CannotBeTyped("a flag is given or not, without a value")
        return [name] if value else [off] if off else []

    return spell


def many(name: str) -> Spelling:
    return lambda value: [f"{name}={one}" for one in _texts(value)]


def _texts(value: Any) -> list[str]:
    if not isinstance(value, list) or not all(isinstance(one, str) for one in value):
        raise CannotBeTyped("what is typed once or repeatedly is a list of texts")
    return value


def in_json(name: str) -> Spelling:
    return lambda value: [f"{name}={json.dumps(value)}"]


def cleared(value: Any) -> list[str]:
    return [f"--clear={_kebab(one)[2:]}" for one in _texts(value)]


def weights(value: Any) -> list[str]:
    if not set(value) <= {"lexical", "semantic"}:
        raise CannotBeTyped("there is an option for each of the two weights, and no other")
    return [f"--weight-{name}={weight}" for name, weight in value.items()]


def spaces(value: Any) -> list[str]:
    if not value:
        raise CannotBeTyped("without --space it is the recall of one scope")
    return many("--space")(value)


def counted(value: Any) -> list[str]:
    if isinstance(value, dict):
        raise CannotBeTyped("--context has the usual weights")
    return flag("--context")(value)


def roles(value: Any) -> list[str]:
    if value == []:
        raise CannotBeTyped("without --role both are asked")
    return many("--role")(value)


def expanded(value: Any) -> list[str]:
    if value != {}:
        raise CannotBeTyped("--expand has the usual limits")
    return ["--expand"]


SCOPES: dict[str, tuple[str, Spelling]] = {
    "ids": ("ids", many("--id")),
    "subject": ("subject", text("--subject")),
    "entity": ("entity", text("--entity")),
    "ingestedBefore": ("before", moment("--ingested-before")),
    "eventBefore": ("before", moment("--event-before")),
    "matching": ("metadata", in_json("--matching")),
    "tag": ("tag", text("--tag")),
    "text": ("text", text("--text")),
    "containing": ("containing", text("--containing")),
    "kind": ("factKind", text("--kind")),
    "filter": ("filter", in_json("--filter")),
    "session": ("session", text("--session")),
}


def scope(value: Any) -> list[str]:
    """Return the option of what a forget means; one that is not there at all is no option."""
    if value == {"kind": "all"}:
        return ["--all"]
    kind = value.get("kind") if isinstance(value, dict) else None
    name, spell = SCOPES[kind] if isinstance(kind, str) and kind in SCOPES else ("", text(""))
    if not isinstance(value, dict) or set(value) != {"kind", name}:
        raise CannotBeTyped("each kind of scope is one option with its value")
    return spell(value[name])


def vector(value: Any) -> list[str]:
    """Return the option without its value, the file, which whoever runs the line writes."""
    if not isinstance(value, list):
        raise CannotBeTyped("a file that holds no array is the fault of its own option")
    return []


# What becomes of a request


@dataclass(frozen=True)
class Line:
    """How an operation is typed: its command, the fields that are words, in order, and those that are options."""

    command: str
    words: tuple[str, ...] = ()
    options: Mapping[str, Spelling] = field(default_factory=dict)
    always: tuple[str, ...] = ()


KEY = {"idempotencyKey": text("--idempotency-key")}
VECTOR = {"embedding": vector}
TIMES = {"asOf": moment("--as-of"), "knownAt": moment("--known-at")}
NOTED = {
    "tags": many("--tag"),
    "kind": text("--kind"),
    "importance": number("--importance"),
    "metadata": in_json("--metadata"),
}
TOLD = {
    **NOTED,
    **KEY,
    **VECTOR,
    "subject": text("--subject"),
    "entities": many("--entity"),
    "eventTime": moment("--event-time"),
    "validFrom": moment("--valid-from"),
    "validTo": moment("--valid-to"),
    "source": in_json("--source"),
}
WHICH = {
    "subject": text("--subject"),
    "entity": text("--entity"),
    "tags": many("--tag"),
    "kind": text("--kind"),
    "pinned": flag("--pinned", "--no-pinned"),
    "filter": in_json("--filter"),
}
FOUND = {
    "k": number("--k"),
    "filter": in_json("--filter"),
    "mode": text("--mode"),
    "fusion": text("--fusion"),
    "weights": weights,
    **VECTOR,
}
ASKING = {
    **WHICH,
    **FOUND,
    **TIMES,
    "history": text("--history"),
    "minScore": number("--min-score"),
    "candidateLimit": number("--candidate-limit"),
    "context": counted,
    "validDuring": interval("--valid-during"),
}
PAGE = {"limit": number("--limit"), "cursor": text("--cursor")}
EVENTS = {
    **PAGE,
    "type": text("--type"),
    "id": text("--id"),
    "since": moment("--since"),
    "until": moment("--until"),
}
VERSION = {"ifVersion": number("--if-version")}
PURGE = {"purge": flag("--purge")}
CHAIN = {"includeChain": flag("--include-chain"), "includeDerived": flag("--include-derived")}
SHOWN = {"dryRun": flag("--dry-run")}

LINES: dict[str, Line] = {
    "remember": Line(
        "remember",
        ("text",),
        {
            **TOLD,
            "id": text("--id"),
            "supersedes": many("--supersedes"),
            "pinned": flag("--pinned"),
            "reassert": flag("--reassert"),
        },
    ),
    "recall": Line(
        "recall",
        ("query",),
        {**ASKING, "explain": flag("--explain"), "spaces": spaces, "maxBytes": number("--max-bytes")},
    ),
    "trace": Line("trace", ("query",), ASKING),
    "explain": Line("explain", ("query", "id"), ASKING),
    "get": Line("get", ("id",), TIMES),
    "history": Line("history", ("id",), TIMES),
    "list": Line(
        "list",
        (),
        {
            **WHICH,
            **TIMES,
            **PAGE,
            "status": text("--status"),
            "validDuring": interval("--valid-during"),
            "order": text("--order"),
            "hidden": flag("--hidden"),
        },
    ),
    "correct": Line(
        "correct",
        ("newText",),
        {
            **TOLD,
            "id": text("--id"),
            "text": text("--text"),
            "containing": text("--containing"),
            "newId": text("--new-id"),
            "pinned": flag("--pinned", "--no-pinned"),
            "clear": cleared,
        },
    ),
    "annotate": Line(
        "annotate",
        ("id",),
        {**NOTED, **KEY, "pinned": flag("--pinned", "--no-pinned"), "clear": cleared},
    ),
    "end": Line("end", ("id",), {"at": moment("--at"), "reason": text("--reason"), **KEY}),
    "retract": Line("retract", ("id",), {"reason": text("--reason"), **KEY}),
    "changes": Line("changes", (), {"since": text("--since"), "limit": number("--limit")}),
    "diff": Line("diff", ("knownAt",), {**WHICH, "asOf": moment("--as-of")}),
    "forget": Line(
        "forget",
        (),
        {
            **CHAIN,
            **SHOWN,
            **PURGE,
            **KEY,
            "scope": scope,
            "soft": flag("--soft"),
            "block": flag("--block"),
        },
        ("--yes",),
    ),
    "restore": Line("restore", ("ids",), KEY),
    "unblock": Line("unblock", ("ids",), {"texts": many("--text"), **KEY}),
    "applyForgetting": Line("apply-forgetting", (), {**CHAIN, **PURGE, **KEY}),
    "consolidate": Line("consolidate", (), {"allowDestructive": flag("--allow-destructive"), **KEY}),
    "recordUse": Line("record-use", ("ids",), {"contextId": text("--context"), **KEY}),
    "merge": Line("merge", ("keep", "ids"), {**SHOWN, **KEY}),
    "capabilities": Line("capabilities", (), {"contractVersion": number("--contract-version")}),
    "reindex": Line(
        "reindex",
        (),
        {
            "profile": text("--profile"),
            "k1": number("--k1"),
            "b": number("--b"),
            "embeddings": flag("--embeddings"),
        },
    ),
    "embedMissing": Line("embed-missing", (), {**SHOWN, "limit": number("--limit")}),
    "putDocument": Line(
        "documents put", ("id", "text"), {"metadata": in_json("--metadata"), **VECTOR, **VERSION, **KEY}
    ),
    "hasDocument": Line("documents has", ("id",)),
    "getDocument": Line("documents get", ("id",)),
    "deleteDocument": Line("documents delete", ("id",), {**VERSION, **PURGE, **KEY}, ("--yes",)),
    "searchDocuments": Line("documents search", ("query",), FOUND),
    "listDocuments": Line("documents list", (), {"filter": in_json("--filter"), **PAGE}),
    "revisions": Line("revisions", ("id",), PAGE),
    "reviewQueue": Line("review", (), PAGE),
    "events": Line("events", (), EVENTS),
    "storeEvents": Line("events", (), EVENTS, ("--all",)),
    "recallConversation": Line(
        "conversation recall",
        ("query",),
        {
            "roles": roles,
            "k": number("--k"),
            "candidateLimit": number("--candidate-limit"),
            "maxSources": number("--max-sources"),
            "maxBytes": number("--max-bytes"),
            "subqueries": many("--subquery"),
            "subqueryWeight": number("--subquery-weight"),
            "expand": expanded,
        },
    ),
    "conversation": Line("conversation get", ("sessionId", "version")),
    "conversations": Line("conversation list", (), {"sessionId": text("--session"), **PAGE}),
    "forgetConversation": Line(
        "conversation forget",
        ("sessionId",),
        {
            **SHOWN,
            **PURGE,
            "version": text("--version"),
            "sourceId": text("--turn"),
            "includeDerived": flag("--include-derived"),
        },
        ("--yes",),
    ),
    "spaces": Line("spaces"),
    "stats": Line("stats"),
    "verify": Line("verify", (), {"quick": flag("--quick")}),
    "purge": Line("purge", (), {}, ("--yes",)),
    "erase": Line(
        "erase", (), {**SHOWN, "principal": text("--principal"), "scope": text("--scope")}, ("--yes",)
    ),
}


def line_of(op: str, request: Mapping[str, Any]) -> list[str]:
    """Return the words of the command line, `perdure` left out.

    The vector of a request is left out too: it is in a file that `--embedding-file` names.

    Raises:
        CannotBeTyped: there is none.
    """
    if op not in LINES:
        raise CannotBeTyped("there is no such command")
    line = LINES[op]
    names = [] if op == "erase" else [f"--principal={PRINCIPAL}", f"--scope={SCOPE}"]
    told = {name: value for name, value in request.items() if value is not None}
    words = [word for name in line.words if name in told for word in _words(name, told.pop(name))]
    options = [word for name, value in told.items() for word in _option(op, name, value)]
    return [*line.command.split(), *names, *line.always, *options, "--json", "--", *words]


def _words(name: str, value: Any) -> list[str]:
    if name == "knownAt":
        return ["/".join(map(_moment, value))]
    return _texts(value if name == "ids" else [value])


def _option(op: str, name: str, value: Any) -> list[str]:
    if (op, name) in WITHOUT_OPTION:
        raise CannotBeTyped(WITHOUT_OPTION[op, name])
    options = LINES[op].options
    return (
        options[name](value) if name in options else [f"{_kebab(name)}={value}"]
    )  # no field of the operation


def _kebab(name: str) -> str:
    return "--" + re.sub("[A-Z]", lambda letter: "-" + letter[0].lower(), name)
