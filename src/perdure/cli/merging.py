"""Commands about facts that are there already: merge, record-use."""

from __future__ import annotations

from typing import Annotated

import typer

from perdure.cli import options as o
from perdure.cli.failures import complain
from perdure.cli.previews import count_of
from perdure.cli.screen import Screen, compact, print_json
from perdure.cli.session import Session, command

Ids = Annotated[list[str], typer.Argument(metavar="ID...", help="The facts' ids.")]


def add_to(app: typer.Typer) -> None:
    command(app, "merge")(merge)
    command(app, "record-use")(record_use)


def merge(
    session: Session,
    keep: Annotated[str, typer.Argument(metavar="KEEP", help="The id of the fact that stays.")],
    ids: Ids,
    *,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only show what would be.")] = False,
    idempotency_key: o.IdempotencyKey = None,
) -> None:
    """Say that KEEP tells what the others tell.

    It supersedes them and takes over what is noted of them: all tags, the highest importance, pinned where one is,
    and the metadata, where its own wins. All of them must be current. Does it at once, without asking, for nothing is
    erased: the others stay as its history. Their own words are not found any more, but with --history all.

    \b
    Examples:
      perdure merge bike other-bike --dry-run
      perdure merge bike other-bike third-bike
    """
    with session.memory(changes=not dry_run) as memory:
        reply = memory.merge(keep, ids, dry_run=dry_run, idempotency_key=idempotency_key)
    if session.as_json:
        from perdure.contract.wire import merged_object  # noqa: PLC0415 - only where it is printed

        print_json(merged_object(reply))
        return
    screen = Screen()
    would = " would be" if reply.dry_run else ""
    screen.line(f"{count_of(len(reply.merged))}{would} merged into {reply.kept}.")
    told = {
        "tags": ", ".join(reply.tags),
        "kind": reply.kind,
        "importance": None if reply.importance is None else str(reply.importance),
        "pinned": "yes" if reply.pinned else None,
        "metadata": compact(reply.metadata) if reply.metadata else None,
    }
    screen.fields((name, value) for name, value in told.items() if value)


def record_use(
    session: Session,
    ids: Ids,
    *,
    context: Annotated[
        str | None,
        typer.Option(
            "--context",
            metavar="NAME",
            help="Within one context each fact counts once. Default: each call counts.",
        ),
    ] = None,
    idempotency_key: o.IdempotencyKey = None,
) -> None:
    """Count that facts were used, as in a prompt.

    No other command counts uses. The count is shown by get, and orders list --order last_used. Ids of no fact count
    nothing, which is said on standard error.

    \b
    Example:
      perdure record-use paris berlin --context "turn 7"
    """
    with session.memory(changes=True) as memory:
        counted = memory.record_use(ids, context_id=context, idempotency_key=idempotency_key)
        unknown = sorted({id_ for id_ in ids if memory.get(id_) is None})
    if unknown:
        complain(f"not found: {', '.join(unknown)}")
    if session.as_json:
        print_json({"counted": counted})
    else:
        Screen().line(f"A use of {count_of(counted)} was counted.")
