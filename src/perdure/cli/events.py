"""The command that shows what the audit knows: events."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from perdure.base.instants import to_iso
from perdure.cli import options as o
from perdure.cli.deciding import show_cursor
from perdure.cli.screen import Screen, print_json
from perdure.cli.session import Session, command

if TYPE_CHECKING:
    from perdure.store import Store

EventType = Annotated[
    str | None, typer.Option("--type", metavar="TYPE", help="Of one type, such as created or key_denied.")
]
EventFact = Annotated[
    str | None, typer.Option("--id", metavar="ID", help="Of the fact or node that has, or had, this id.")
]
Since = Annotated[
    str | None, typer.Option("--since", metavar=o.TIME, help="From that moment on. Default: all.")
]
Until = Annotated[str | None, typer.Option("--until", metavar=o.TIME, help="Before that moment.")]


def add_to(app: typer.Typer) -> None:
    command(app, "events")(events)


def events(  # noqa: PLR0913 - one parameter per option
    session: Session,
    *,
    all_: Annotated[
        bool, typer.Option("--all", help="Of all memories of the store, and of the store itself.")
    ] = False,
    type_: EventType = None,
    id_: EventFact = None,
    since: Since = None,
    until: Until = None,
    limit: o.Limit = None,
    cursor: o.Cursor = None,
) -> None:
    """Show what happened to the memory, oldest first: that and when, by whom, never what anything says.

    Events of what was forgotten stay. verify checks that none was changed, dropped or put elsewhere.

    \b
    Examples:
      perdure events --type forgotten
      perdure events --id paris
      perdure events --all --since 2026-01-01 --json
    """
    asked: dict[str, Any] = {
        "type": type_,
        "id": id_,
        "since": o.instant(since, "since"),
        "until": o.instant(until, "until"),
        "limit": o.whole(limit, "limit"),
        "cursor": cursor,
    }
    with session.store() as store:
        memory = store.memory(session.principal, session.scope)
        reply = _all(store, asked) if all_ else memory.call("events", asked)
    if session.as_json:
        print_json(reply)
        return
    screen = Screen()
    if reply["items"]:
        screen.table(
            ["sequence", "at", "type", "actor", "id", "details"], [_row(one) for one in reply["items"]]
        )
    else:
        screen.line("There are no such events.")
    show_cursor(screen, reply)


def _all(store: Store, asked: dict[str, Any]) -> dict[str, Any]:
    from perdure.contract.wire import page_object  # noqa: PLC0415 - help must not wait for it
    from perdure.contract.wire_governed import event_object  # noqa: PLC0415 - likewise

    return page_object(store.events(**asked), event_object)


def _row(event: dict[str, Any]) -> list[str]:
    id_ = event["nodeId"] or event["factId"] or ""
    digests = {"fact", "node"} if id_ else {"fact"}
    told = ", ".join(f"{name} {value}" for name, value in event["details"].items() if name not in digests)
    return [str(event["sequence"]), to_iso(event["at"]), event["type"], event["actor"] or "", id_, told]
