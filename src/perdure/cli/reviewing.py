"""Commands about governed knowledge: propose, review, activate, reject, resolve, revisions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from perdure.base.instants import to_iso, to_millis
from perdure.cli import options as o
from perdure.cli import revising
from perdure.cli.deciding import (
    Actor,
    Deciding,
    Decision,
    Digest,
    EvidenceAt,
    Key,
    NodeId,
    NodePage,
    Operation,
    Quote,
    QuoteStart,
    WitnessKind,
    WitnessUri,
    actor_of,
    change,
    decide,
    evidence_object,
    named_as_typed,
    node_id_of,
    now_of,
    operation,
    show_changed,
    show_cursor,
    show_node,
)
from perdure.cli.screen import Screen, print_json
from perdure.cli.session import Session, command
from perdure.errors import InvalidRequest

if TYPE_CHECKING:
    from perdure.repository import Repository
    from perdure.store import Store

SORTS = ("semantic", "episodic", "procedural")
_WAITING = {0: "Nothing waits for a decision.", 1: "1 waits for a decision."}


def add_to(app: typer.Typer) -> None:
    for name, function in (
        ("propose", propose),
        ("review", review),
        ("activate", activate),
        ("reject", reject),
        ("resolve", resolve),
        ("revisions", revisions),
    ):
        command(app, name)(function)
    revising.add_to(app)


def propose(  # noqa: PLR0913 - one parameter per option
    session: Session,
    text: o.TextArgument,
    *,
    evidence: WitnessUri,
    id_: Annotated[
        str | None,
        typer.Option(
            "--id",
            metavar="ID",
            help="Your own id. Default: one that is derived from the text and its evidence.",
        ),
    ] = None,
    digest: Digest = None,
    kind: WitnessKind = "user_statement",
    quote: Quote = None,
    quote_start: QuoteStart = None,
    at: EvidenceAt = None,
    knowledge: Annotated[
        str,
        typer.Option(
            "--knowledge", metavar="KIND", help=f"{', '.join(SORTS)}.", autocompletion=o.one_of(*SORTS)
        ),
    ] = "semantic",
    subject: o.Subject = None,
    label: Annotated[
        list[str] | None, typer.Option("--label", metavar="NAME=VALUE", help="A label; repeatable.")
    ] = None,
    valid_from: o.ValidFrom = None,
    valid_to: o.ValidTo = None,
    confidence: Annotated[
        str | None, typer.Option("--confidence", metavar="NUMBER", help="0 to 1. Default: 0.5.")
    ] = None,
    actor: Actor = None,
    reason: o.Reason = None,
    idempotency_key: Key = None,
) -> None:
    """Propose something as knowledge, with its evidence: a candidate, which no recall serves until it is activated.

    Where the evidence is a turn of a conversation that is kept here (perdure:turn/...), a quote must be its very words.

    \b
    Examples:
      perdure propose "It opens at nine" --evidence chat/7 --quote "at nine"
      perdure review
    """
    words = o.text_of(text)
    # One moment for all, which both the rehearsal and the write know.
    moment = now_of(session)
    with named_as_typed(session):
        valid = _interval(valid_from, valid_to)
    who = actor_of(actor), reason

    def act(store: Store) -> dict[str, Any]:
        repository = store.repository(session.principal, session.scope)
        given = evidence_object(evidence, kind, moment, digest, quote, start=quote_start, at=at)
        named = node_id_of(words, given) if id_ is None else id_
        told = _told_before(repository, named) if idempotency_key is not None else None
        then = moment if told is None else told
        if at is None:
            given["occurredAt"] = then
        draft: dict[str, Any] = {
            "id": named,
            "kind": knowledge,
            "content": words,
            "evidence": [given],
            "labels": _labels(label),
            "subject": subject,
            "confidence": o.real(confidence, "confidence"),
            **valid,
        }
        made = operation("create", *who, draft={k: v for k, v in draft.items() if v is not None})
        return change(repository, [made], then, idempotency_key)

    with named_as_typed(session):
        session.rehearse(act)
        with session.store(writes=True) as store:
            reply = act(store)
    show_changed(session, reply)


def review(session: Session, *, limit: NodePage = None, cursor: o.Cursor = None) -> None:
    """Show what waits for a decision, oldest first: candidates, and what is in conflict, with evidence and quotes.

    \b
    Examples:
      perdure review
      perdure review --limit 5 --json
    """
    with named_as_typed(session), session.store() as store:
        asked = {"limit": o.whole(limit, "limit"), "cursor": cursor}
        reply = store.repository(session.principal, session.scope).call("reviewQueue", asked)
    if session.as_json:
        print_json(reply)
        return
    screen = Screen()
    for place, node in enumerate(reply["items"]):
        if place:
            screen.line()
        show_node(screen, node)
    screen.line(_WAITING.get(reply["total"], f"{reply['total']} wait for a decision."))
    show_cursor(screen, reply)


def activate(
    session: Session,
    id_: NodeId,
    *,
    supersedes: Annotated[
        list[str] | None,
        typer.Option("--supersedes", metavar="ID", help="An active node that it replaces; repeatable."),
    ] = None,
    how: Deciding,
) -> None:
    """Accept a candidate: from now on recalls serve it. What it supersedes they serve no longer.

    The decision is evidence itself, of the kind manual; --evidence names something better.

    \b
    Examples:
      perdure activate vault-nine --reason "asked at the desk"
      perdure activate vault-nine --supersedes vault-ten
    """

    def operations(decision: Decision) -> list[Operation]:
        step = decision.on(id_, how.revision)
        made = [step("activate")]
        for old in supersedes or ():
            other = decision.on(old)
            made += [
                step("add_relation", relation={"kind": "supersedes", "target": old}),
                other("add_relation", relation={"kind": "superseded_by", "target": id_}),
                other("set_status", status="superseded"),
            ]
        return made

    decide(session, how, how.told, operations)


def reject(
    session: Session,
    id_: NodeId,
    *,
    how: Deciding,
) -> None:
    """Say no to a node: it is kept with its history, is never served again, and cannot be taken up again.

    To leave nothing of it, forget it.

    \b
    Example:
      perdure reject vault-ten --reason "a slip of the tongue"
    """

    def operations(decision: Decision) -> list[Operation]:
        return [decision.on(id_, how.revision)("set_status", status="tombstoned")]

    decide(session, how, how.told, operations)


def resolve(
    session: Session,
    id_: NodeId,
    *,
    how: Deciding,
) -> None:
    """Decide that a node in conflict holds after all: recalls serve it again.

    \b
    Example:
      perdure resolve vault-key --evidence inventory/3 --digest sha256:ab12
    """

    def operations(decision: Decision) -> list[Operation]:
        return [decision.on(id_, how.revision)("resolve")]

    decide(session, how, how.told, operations)


def revisions(session: Session, id_: NodeId, *, limit: NodePage = None, cursor: o.Cursor = None) -> None:
    """Show all revisions of a node, the first one first: what changed, by whom and why.

    \b
    Example:
      perdure revisions vault-nine
    """
    with named_as_typed(session), session.store() as store:
        asked = {"id": id_, "limit": o.whole(limit, "limit"), "cursor": cursor}
        reply = store.repository(session.principal, session.scope).call("revisions", asked)
    if session.as_json:
        print_json(reply)
        return
    screen = Screen()
    for place, node in enumerate(reply["items"]):
        if place:
            screen.line()
        show_node(screen, node, history=True, before=reply["items"][place - 1] if place else None)
    show_cursor(screen, reply)


def _told_before(repository: Repository, id_: str) -> int | None:
    """Return when a node was proposed, so that the very same proposal again is the same request; None for a new one."""
    node = repository.get(id_)
    return None if node is None else to_millis(node.created_at, field="created_at")


def _interval(valid_from: str | None, valid_to: str | None) -> dict[str, int | None]:
    start, end = o.instant(valid_from, "valid_from"), o.instant(valid_to, "valid_to")
    if start is not None and end is not None and end <= start:
        raise InvalidRequest(
            f"valid_to ({to_iso(end)}) must lie after valid_from ({to_iso(start)}); it is exclusive",
            field="valid_to",
        )
    return {"validFrom": start, "validTo": end}


def _labels(told: list[str] | None) -> dict[str, str] | None:
    labels = {}
    for one in told or ():
        name, equals, value = one.partition("=")
        if not equals:
            raise InvalidRequest("labels must each be a name and a value with = between them", field="labels")
        labels[name] = value
    return labels or None
