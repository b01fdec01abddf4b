"""Commands that remove and bring back: forget, restore, unblock."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

from perdure.cli import options as o
from perdure.cli.erasing import PENDING, CertificateOption, PurgeFlag, certificate_file
from perdure.cli.failures import complain
from perdure.cli.previews import ask, count_of, show_leaving
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
    --containing, --kind, --filter and --all. Shows what would go and asks first; what was shown is what goes. What
    is erased cannot be brought back, unless --soft only hid it.

    \b
    Examples:
      perdure forget paris berlin
      perdure forget --containing "door code" --dry-run
      perdure forget --subject alice/city --yes --purge --certificate erased.json
    """
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
        "all": all_,
    }
    which: dict[str, Any] = {"include_chain": include_chain, "include_derived": include_derived}
    how: dict[str, Any] = {"soft": soft, "block": block, "purge": purge}
    with (
        session.memory(changes=not dry_run) as memory,
        certificate_file(certificate, dry_run=dry_run) as keep,
    ):
        named = scope["ids"] or []
        if not yes or dry_run:
            preview = memory.forget(**scope, **which, **how, dry_run=True)
            if dry_run:
                answer_forgotten(session, memory, preview, named=named)
                return
            ask_to_forget(memory, preview)
            # Only what was shown may go, also if others write meanwhile.
            scope, which = {"ids": list(preview.forgotten)}, {}
        reply = memory.forget(**scope, **which, **how, idempotency_key=idempotency_key)
        keep(reply.certificate)
        answer_forgotten(session, memory, reply, soft=soft, named=named)


def restore(
    session: Session,
    ids: Annotated[list[str], typer.Argument(metavar="ID...", help="The facts' ids.")],
    *,
    idempotency_key: o.IdempotencyKey = None,
) -> None:
    """Bring softly forgotten facts back.

    Those of forget --soft; what was forgotten otherwise is gone.

    \b
    Example:
      perdure restore paris berlin
    """
    with session.memory(changes=True) as memory:
        back = memory.restore(ids, idempotency_key=idempotency_key)
    _count(session, "restored", list(back), f"{len(back)} of {len(set(ids))} facts came back.")


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

    Nothing comes back; they can be told again.

    \b
    Examples:
      perdure unblock paris
      perdure unblock --text "Alice lives in Paris"
    """
    with session.memory(changes=True) as memory:
        lifted = memory.unblock(ids=ids or None, texts=text or None, idempotency_key=idempotency_key)
    _count(session, "unblocked", lifted, f"{lifted} blocks were lifted.")


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
            f"Forget {count_of(len(preview.forgotten))}?",
            lambda screen: _show_both(screen, memory, preview),
            refused="nothing was forgotten",
        )


def answer_forgotten(
    session: Session, memory: Memory, reply: Forgotten, *, soft: bool = False, named: Sequence[str] = ()
) -> None:
    """Print the receipt; say first which of the ids that were named are those of nothing."""
    missing = sorted(set(named) - set(reply.forgotten))
    if missing and (
        reply.dry_run or soft or reply.certificate
    ):  # else it is the replay of a key, which names none
        complain(f"not found: {', '.join(missing)}")
    if session.as_json:
        from perdure.contract.wire import forgotten_object  # noqa: PLC0415 - only where it is printed

        print_json(forgotten_object(reply))
        return
    screen = Screen()
    if reply.dry_run:
        show_leaving(screen, memory, reply.forgotten)
        screen.line(f"{count_of(len(reply.forgotten))} would go. Nothing was changed.")
        _show_derived(screen, memory, reply)
        return
    screen.line(f"{count_of(len(reply.forgotten))} {'hidden; restore brings back' if soft else 'forgotten'}.")
    _show_derived(screen, memory, reply)
    if reply.purged:
        screen.line("The store was rewritten without them.")
    if reply.pending:
        screen.line(PENDING)


def _show_both(screen: Screen, memory: Memory, preview: Forgotten) -> None:
    show_leaving(screen, memory, preview.forgotten)
    _show_derived(screen, memory, preview)


def _show_derived(screen: Screen, memory: Memory, reply: Forgotten) -> None:
    if reply.derived:
        hint = " (--include-derived takes them along)" if reply.dry_run else ""
        screen.line(f"Made from them, and staying{hint}:")
        show_leaving(screen, memory, reply.derived)
