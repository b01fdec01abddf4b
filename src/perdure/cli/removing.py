"""Commands that remove and bring back: forget, restore, unblock."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, Annotated, Any

import typer

from perdure.base.text import counted
from perdure.cli import options as o
from perdure.cli.erasing import CertificateOption, PurgeFlag, certificate_file, say_pending
from perdure.cli.failures import complain
from perdure.cli.previews import ask, count_leaving, count_of, refuse_changed, show_leaving
from perdure.cli.screen import Screen, print_json
from perdure.cli.session import Session, command

if TYPE_CHECKING:
    from perdure.model.replies import Forgotten
    from perdure.store import Memory

Ids = Annotated[list[str] | None, typer.Argument(metavar="[ID]...", help="The facts' ids.")]

ChainFlag = Annotated[bool, typer.Option("--include-chain", help="Every version joined to them as well.")]
DerivedFlag = Annotated[
    bool, typer.Option("--include-derived", help="What a consolidation made from them as well.")
]


def add_to(app: typer.Typer) -> None:
    for name, function in (("forget", forget), ("restore", restore), ("unblock", unblock)):
        command(app, name)(function)


def forget(  # noqa: PLR0913 - one parameter per option
    session: Session,
    ids: Ids = None,
    *,
    id_: Annotated[
        list[str] | None, typer.Option("--id", metavar="ID", help="The same as an ID; repeatable.")
    ] = None,
    subject: o.Subject = None,
    entity: Annotated[
        str | None, typer.Option("--entity", metavar="NAME", help="All that mention this name.")
    ] = None,
    ingested_before: Annotated[
        str | None, typer.Option("--ingested-before", metavar=o.TIME, help="All recorded before.")
    ] = None,
    event_before: Annotated[
        str | None, typer.Option("--event-before", metavar=o.TIME, help="All about what was before.")
    ] = None,
    matching: Annotated[
        str | None, typer.Option("--matching", metavar="JSON", help="All whose metadata has these values.")
    ] = None,
    tag: Annotated[str | None, typer.Option("--tag", metavar="NAME", help="All with this tag.")] = None,
    text: Annotated[
        str | None, typer.Option("--text", metavar="TEXT", help="All of exactly this text.")
    ] = None,
    containing: Annotated[
        str | None, typer.Option("--containing", metavar="TEXT", help="All that contain this.")
    ] = None,
    kind: o.Kind = None,
    filter_: Annotated[
        str | None, typer.Option("--filter", metavar="JSON", help="All that this filter matches.")
    ] = None,
    session_id: Annotated[
        str | None,
        typer.Option("--session", metavar="SESSION", help="All that turns of this session brought."),
    ] = None,
    all_: Annotated[bool, typer.Option("--all", help="All facts of this memory.")] = False,
    include_chain: ChainFlag = False,
    include_derived: DerivedFlag = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show what would go, and stop.")] = False,
    soft: Annotated[bool, typer.Option("--soft", help="Hide instead of erase; restore brings back.")] = False,
    block: Annotated[bool, typer.Option("--block", help="Refuse the same content from now on.")] = False,
    purge: PurgeFlag = False,
    certificate: CertificateOption = None,
    yes: o.Yes = False,
    idempotency_key: o.IdempotencyKey = None,
) -> None:
    """Remove the facts of exactly one scope from every answer and every file.

    A scope is IDs, or one of --subject, --entity, --ingested-before, --event-before, --matching, --tag, --text,
    --containing, --kind, --filter, --session and --all. --session takes the facts whose source is a turn of the session,
    and the nodes with evidence from one; conversation forget erases the turns. Shows what would go and asks first;
    what was shown is what goes. What is erased cannot be brought back, unless --soft only hid it. Where nothing was
    there to forget, the exit code is 1.

    \b
    Examples:
      perdure forget paris berlin
      perdure forget --containing "door code" --dry-run
      perdure forget --subject alice/city --yes --purge --certificate erased.json
    """
    with _named_in_scope(session):
        scope: dict[str, Any] = {
            "ids": [*(ids or []), *(id_ or [])] or None,
            "subject": subject,
            "entity": entity,
            "ingested_before": o.instant(ingested_before, "ingested_before"),
            "event_before": o.instant(event_before, "event_before"),
            "matching": o.json_object(matching, "matching"),
            "tag": tag,
            "text": text,
            "containing": containing,
            "kind": kind,
            "filter": o.json_object(filter_, "filter"),
            "session": session_id,
            "all": all_,
        }
    which: dict[str, Any] = {"include_chain": include_chain, "include_derived": include_derived}
    how: dict[str, Any] = {"soft": soft, "block": block, "purge": purge}
    with (
        _named_in_scope(session),
        session.memory(changes=not dry_run) as memory,
        certificate_file(certificate, dry_run=dry_run) as keep,
    ):
        named = scope["ids"] or []
        if not yes or dry_run:
            preview = memory.forget(**scope, **which, **how, dry_run=True)
            if dry_run:
                answer_forgotten(session, memory, preview, named=named)
                _exit_where_nothing_was(preview, soft=soft, named=named)
                return
            ask_to_forget(memory, preview)
            now = memory.forget(**scope, **which, **how, dry_run=True)
            refuse_changed(preview.forgotten, now.forgotten)
            # Only what was shown may go, also if others write in between.
            scope, which = {"ids": list(preview.forgotten)}, {}
        reply = memory.forget(**scope, **which, **how, idempotency_key=idempotency_key)
        keep(reply.certificate)
        answer_forgotten(session, memory, reply, soft=soft, named=named)
    _exit_where_nothing_was(reply, soft=soft, named=named)


def _named_in_scope(session: Session) -> AbstractContextManager[None]:
    """Have errors name fields as the contract does, for programs."""
    if not session.as_json:
        return nullcontext()
    from perdure.memory.calling import named_in_scope  # noqa: PLC0415 - help must not wait for it

    return named_in_scope()


def _exit_where_nothing_was(reply: Forgotten, *, soft: bool, named: Sequence[str]) -> None:
    """Raise typer.Exit with 1 where nothing was there to forget, unless the call made up for a purge."""
    if reply.forgotten or reply.purged or not _tells_ids(reply, soft=soft):
        return
    if not named:
        complain("nothing was forgotten: nothing is there that was meant")
    raise typer.Exit(1)


def restore(
    session: Session,
    ids: Annotated[list[str], typer.Argument(metavar="ID...", help="The facts' ids.")],
    *,
    idempotency_key: o.IdempotencyKey = None,
) -> None:
    """Bring softly forgotten facts back.

    Those of forget --soft; what was forgotten otherwise is gone. Where none comes back, the exit code is 1.

    \b
    Example:
      perdure restore paris berlin
    """
    with session.memory(changes=True) as memory:
        back = memory.restore(ids, idempotency_key=idempotency_key)
    _count(session, "restored", list(back), f"{len(back)} of {count_of(len(set(ids)))} came back.")
    if not back:
        complain("nothing came back: no fact of these ids was forgotten by --soft")
        raise typer.Exit(1)


def unblock(
    session: Session,
    ids: Ids = None,
    *,
    text: Annotated[
        list[str] | None, typer.Option("--text", metavar="TEXT", help="A text; repeatable.")
    ] = None,
    idempotency_key: o.IdempotencyKey = None,
) -> None:
    """Allow ids and texts again that were forgotten with --block.

    Nothing comes back; they can be told again. Where nothing of it was blocked, the exit code is 1.

    \b
    Examples:
      perdure unblock paris
      perdure unblock --text "Alice lives in Paris"
    """
    with session.memory(changes=True) as memory:
        lifted = memory.unblock(ids=ids or None, texts=text or None, idempotency_key=idempotency_key)
    _count(session, "unblocked", lifted, f"Lifted: {counted(lifted, 'block')}.")
    if not lifted:
        complain("nothing was lifted: nothing of these ids and texts was blocked")
        raise typer.Exit(1)


def _count(session: Session, name: str, value: Any, sentence: str) -> None:
    if session.as_json:
        print_json({name: value})
    else:
        Screen().line(sentence)


def ask_to_forget(memory: Memory, preview: Forgotten) -> None:
    """Show what would go and ask; where nothing would, there is nothing to ask.

    Raises:
        Failed: the answer is not yes.
    """
    if preview.forgotten:
        ask(
            f"Forget {count_leaving(memory, preview)}?",
            lambda screen: _show_both(screen, memory, preview),
            refused="nothing was forgotten",
        )


def answer_forgotten(
    session: Session, memory: Memory, reply: Forgotten, *, soft: bool = False, named: Sequence[str] = ()
) -> None:
    """Print the receipt; say first which of the ids that were named are those of nothing."""
    missing = sorted(set(named) - set(reply.forgotten))
    if missing and _tells_ids(reply, soft=soft):
        complain(f"not found: {', '.join(missing)}")
    if session.as_json:
        from perdure.contract.wire import forgotten_object  # noqa: PLC0415 - only where it is printed

        print_json(forgotten_object(reply))
        return
    screen = Screen()
    if reply.dry_run:
        show_leaving(screen, memory, reply.forgotten)
        screen.line(f"{count_leaving(memory, reply)} would go. Nothing was changed.")
        _show_derived(screen, memory, reply)
        return
    screen.line(f"{count_leaving(memory, reply)} {'hidden; restore brings back' if soft else 'forgotten'}.")
    _show_derived(screen, memory, reply)
    if reply.purged:
        screen.line("The store was rewritten without them.")
    if reply.pending:
        say_pending(session, screen)


def _tells_ids(reply: Forgotten, *, soft: bool) -> bool:
    """Whether the ids of a receipt are all that were forgotten: the replay of a key names none that were erased."""
    return reply.dry_run or soft or reply.certificate is not None


def _show_both(screen: Screen, memory: Memory, preview: Forgotten) -> None:
    show_leaving(screen, memory, preview.forgotten)
    _show_derived(screen, memory, preview)


def _show_derived(screen: Screen, memory: Memory, reply: Forgotten) -> None:
    if reply.derived:
        hint = " (--include-derived takes them along)" if reply.dry_run else ""
        screen.line(f"Made from them, and staying{hint}:")
        show_leaving(screen, memory, reply.derived)
