"""Commands that tell: remember, correct, end, retract, annotate."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from perdure.cli import options as o
from perdure.cli.session import Session, command
from perdure.errors import InvalidRequest

if TYPE_CHECKING:
    from perdure.model.fact import Fact
    from perdure.model.replies import Remembered

CLEARABLE = (
    "subject",
    "entities",
    "metadata",
    "event_time",
    "valid_from",
    "valid_to",
    "tags",
    "kind",
    "importance",
    "source",
)
Clear = Annotated[
    list[str] | None,
    typer.Option(
        "--clear",
        metavar="FIELD",
        help="Leave this field empty instead of keeping it, like valid-from; repeatable.",
        autocompletion=o.one_of(*(name.replace("_", "-") for name in CLEARABLE)),
    ),
]
Pinned = Annotated[
    bool | None,
    typer.Option(
        "--pinned/--no-pinned", help="Keep it out of the reach of forgetting policies. Default: as it is."
    ),
]


def add_to(app: typer.Typer) -> None:
    for name, function in (
        ("remember", remember),
        ("correct", correct),
        ("end", end),
        ("retract", retract),
        ("annotate", annotate),
    ):
        command(app, name)(function)


def remember(  # noqa: PLR0913 - one parameter per option
    session: Session,
    text: o.TextArgument,
    *,
    id_: Annotated[
        str | None,
        typer.Option(
            "--id", metavar="ID", help="Your own id, 1 to 256 bytes. Default: one is derived from the fact."
        ),
    ] = None,
    subject: o.Subject = None,
    entity: o.Entities = None,
    metadata: o.Metadata = None,
    event_time: o.EventTime = None,
    valid_from: o.ValidFrom = None,
    valid_to: o.ValidTo = None,
    supersedes: o.Supersedes = None,
    tag: o.TagsTold = None,
    kind: o.Kind = None,
    importance: o.Importance = None,
    pinned: Annotated[bool, typer.Option("--pinned", help="Forgetting policies leave it alone.")] = False,
    source: o.SourceJson = None,
    reassert: Annotated[bool, typer.Option("--reassert", help="Store it anew though it was told.")] = False,
    embedding_file: o.TextEmbeddingFile = None,
    idempotency_key: o.IdempotencyKey = None,
) -> None:
    """Tell a fact. Telling the same again stores nothing.

    A text has 1 to 4,096 words and at most 65,536 bytes; documents put takes longer ones. What the configuration's
    admission policy refuses is not stored, and the exit code is 1.

    \b
    Examples:
      perdure remember "Alice lives in Paris" --id paris --valid-from 2020-01-01
      perdure remember "Alice lives in Berlin" --supersedes paris
      echo "The door code is 4711" | perdure remember - --tag house
    """
    told: dict[str, Any] = {
        "id": id_,
        "subject": subject,
        "entities": entity or None,
        "metadata": o.json_object(metadata, "metadata"),
        "event_time": o.instant(event_time, "event_time"),
        "valid_from": o.instant(valid_from, "valid_from"),
        "valid_to": o.instant(valid_to, "valid_to"),
        "supersedes": supersedes or None,
        "tags": tag or None,
        "kind": kind,
        "importance": o.real(importance, "importance"),
        "pinned": pinned,
        "source": o.source_object(source),
        "reassert": reassert,
        "embedding": o.embedding(embedding_file),
        "idempotency_key": idempotency_key,
    }
    words = o.text_of(text)
    session.rehearse(lambda empty: empty.memory(session.principal, session.scope).remember(words, **told))
    with session.memory(writes=True) as memory:
        _answer(session, memory.remember(words, **told))


def correct(  # noqa: PLR0913 - one parameter per option
    session: Session,
    new_text: o.TextArgument,
    *,
    id_: Annotated[
        str | None, typer.Option("--id", metavar="ID", help="The wrong fact: any stored version.")
    ] = None,
    text: Annotated[
        str | None, typer.Option("--text", metavar="TEXT", help="The wrong fact: its exact text.")
    ] = None,
    containing: Annotated[
        str | None, typer.Option("--containing", metavar="TEXT", help="The wrong fact: part of its text.")
    ] = None,
    new_id: Annotated[
        str | None,
        typer.Option(
            "--new-id", metavar="ID", help="An id of your own for the new one. Default: one is derived."
        ),
    ] = None,
    subject: o.Subject = None,
    entity: o.Entities = None,
    metadata: o.Metadata = None,
    event_time: o.EventTime = None,
    valid_from: o.ValidFrom = None,
    valid_to: o.ValidTo = None,
    tag: o.TagsTold = None,
    kind: o.Kind = None,
    importance: o.Importance = None,
    pinned: Pinned = None,
    source: o.SourceJson = None,
    embedding_file: o.TextEmbeddingFile = None,
    clear: Clear = None,
    idempotency_key: o.IdempotencyKey = None,
) -> None:
    """Say that a fact was told wrong, and put TEXT in its place.

    Name the wrong fact by exactly one of --id, --text and --containing. What is not given is kept. The correction
    counts for the whole past; what was believed before stays on record, for --known-at.

    \b
    Examples:
      perdure correct "The door code is 4712" --id door
      perdure correct "Ines plays the cello" --containing viola --clear valid-from
    """
    given = {
        "subject": subject,
        "entities": entity or None,
        "metadata": o.json_object(metadata, "metadata"),
        "event_time": o.instant(event_time, "event_time"),
        "valid_from": o.instant(valid_from, "valid_from"),
        "valid_to": o.instant(valid_to, "valid_to"),
        "tags": tag or None,
        "kind": kind,
        "importance": o.real(importance, "importance"),
        "pinned": pinned,
        "source": o.source_object(source),
    }
    changes = _changes(given, clear or [])
    words, vector = o.text_of(new_text), o.embedding(embedding_file)
    with session.memory(changes=True) as memory:
        reply = memory.correct(
            words,
            id=id_,
            text=text,
            containing=containing,
            new_id=new_id,
            embedding=vector,
            idempotency_key=idempotency_key,
            **changes,
        )
        _answer(session, reply)


def end(
    session: Session,
    id_: o.IdArgument,
    *,
    at: Annotated[
        str | None, typer.Option("--at", metavar=o.TIME, help="From when on. Default: now.")
    ] = None,
    reason: o.Reason = None,
    idempotency_key: o.IdempotencyKey = None,
) -> None:
    """Say that a fact holds no longer, with nothing in its place.

    From --at on it is expired; a read with an earlier --known-at still sees it open.

    \b
    Examples:
      perdure end berlin --at 2025-06-01 --reason "moved out"
      perdure end berlin
    """
    moment = o.instant(at, "at")
    with session.memory(changes=True) as memory:
        fact = memory.end(id_, at=moment, reason=reason, idempotency_key=idempotency_key)
    _show(session, fact)


def retract(
    session: Session, id_: o.IdArgument, *, reason: o.Reason = None, idempotency_key: o.IdempotencyKey = None
) -> None:
    """Say that a fact was never true.

    It is expired at every moment, for whoever knows of it; a read with an earlier --known-at still sees it. To put
    another in its place use correct, to leave no trace forget.

    \b
    Example:
      perdure retract paris --reason "a mix-up"
    """
    with session.memory(changes=True) as memory:
        fact = memory.retract(id_, reason=reason, idempotency_key=idempotency_key)
    _show(session, fact)


def annotate(  # noqa: PLR0913 - one parameter per option
    session: Session,
    id_: o.IdArgument,
    *,
    tag: o.TagsTold = None,
    kind: o.Kind = None,
    importance: o.Importance = None,
    pinned: Pinned = None,
    metadata: o.Metadata = None,
    clear: Clear = None,
    idempotency_key: o.IdempotencyKey = None,
) -> None:
    """Change what is noted of a fact: tags, kind, importance, pinned, metadata.

    Tags and metadata are replaced whole; what is not given is kept.

    \b
    Examples:
      perdure annotate paris --tag home --tag past --importance 0.8
      perdure annotate paris --clear kind --no-pinned
    """
    given = {
        "tags": tag or None,
        "kind": kind,
        "importance": o.real(importance, "importance"),
        "pinned": pinned,
        "metadata": o.json_object(metadata, "metadata"),
    }
    changes = _changes(given, clear or [])
    with session.memory(changes=True) as memory:
        fact = memory.annotate(id_, idempotency_key=idempotency_key, **changes)
    _show(session, fact)


def _changes(given: dict[str, Any], clear: list[str]) -> dict[str, Any]:
    """Return the fields to change; a cleared one is None."""
    changes = {name: value for name, value in given.items() if value is not None}
    for place, told in enumerate(clear):
        name = told.replace("-", "_")
        if name not in CLEARABLE or name not in given:
            allowed = ", ".join(field for field in CLEARABLE if field in given)
            raise InvalidRequest(
                f"--clear takes one of {allowed}, got {told[:32]!r}", field=f"clear[{place}]"
            )
        if name in changes:
            raise InvalidRequest(f"{name} is both given and cleared; do one of the two", field=name)
        changes[name] = None
    return changes


def _answer(session: Session, reply: Remembered) -> None:
    from perdure.cli.facts import show_receipt  # noqa: PLC0415
    from perdure.cli.screen import Screen, print_json  # noqa: PLC0415
    from perdure.contract.wire import remembered_object  # noqa: PLC0415

    if session.as_json:
        print_json(remembered_object(reply))
    else:
        show_receipt(Screen(), reply)
    if reply.outcome == "refused":
        raise typer.Exit(1)


def _show(session: Session, fact: Fact) -> None:
    from perdure.cli.facts import show_fact  # noqa: PLC0415
    from perdure.cli.screen import Screen, print_json  # noqa: PLC0415
    from perdure.contract.wire import fact_object  # noqa: PLC0415

    if session.as_json:
        print_json({"fact": fact_object(fact)})
    else:
        show_fact(Screen(), fact)
