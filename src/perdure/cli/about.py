"""Commands about the store itself: stats, spaces, capabilities, config."""

from __future__ import annotations

from typing import Any

import typer

from perdure.cli.screen import Screen, print_json, put
from perdure.cli.session import ABSENT, Session, command

HEALTH_TIMEOUT_S = 1.0  # whoever asks whether a store can be used does not want to wait until it can
DEFAULT = "(default)"  # how people see the empty name


def add_to(app: typer.Typer) -> None:
    for name, function in (
        ("stats", stats),
        ("spaces", spaces),
        ("capabilities", capabilities),
        ("config", config),
    ):
        command(app, name)(function)


def stats(session: Session) -> None:
    """Show the sizes of the store, all memories together, and whether it can be read and written now.

    Where there is no store, its health is absent and the exit code 1; so it is for a journal that is open elsewhere.
    """
    from perdure.model.stores import Health  # noqa: PLC0415 - help must not wait for it

    there = session.has_store()
    with session.store(timeout_s=HEALTH_TIMEOUT_S) as store:
        health, found = store.health(), store.stats()
    if not there:
        health = Health("absent", writable=False, erasure_pending=False, message=ABSENT)
    told: dict[str, Any] = {
        "backend": found.backend,
        "spaces": found.spaces,
        "facts": found.facts,
        "records": found.records,
        "sizeBytes": found.size_bytes,
        "reclaimableBytes": found.reclaimable_bytes,
    }
    if session.as_json:
        told["health"] = {
            "status": health.status,
            "writable": health.writable,
            "erasurePending": health.erasure_pending,
            "message": health.message,
        }
    else:
        told["health"] = f"{health.status}: {health.message}"
    _print(session, told)
    if not there:
        raise typer.Exit(1)


def spaces(session: Session) -> None:
    """Show the principals and scopes that have a memory in the store."""
    with session.store() as store:
        names = store.spaces()
    if session.as_json:
        print_json({"spaces": [{"principal": name.principal, "scope": name.scope} for name in names]})
    else:
        rows = [[name.principal or DEFAULT, name.scope or DEFAULT] for name in names]
        Screen().table(["principal", "scope"], rows)


def capabilities(session: Session) -> None:
    """Show what this build can do."""
    from perdure.contract.wire import capabilities_object  # noqa: PLC0415 - only where it is printed

    with session.memory() as memory:
        told = capabilities_object(memory.capabilities())
    _print(session, told if session.as_json else _flat(told))


def config(session: Session) -> None:
    """Show the configuration in force, as JSON."""
    import json  # noqa: PLC0415 - help must not wait for it

    told = json.loads(session.config.to_json())
    if session.as_json:
        print_json(told)
    else:
        put(json.dumps(told, indent=2) + "\n")


def _print(session: Session, told: dict[str, Any]) -> None:
    if session.as_json:
        print_json(told)
    else:
        Screen().fields((name, str(value)) for name, value in told.items())


def _flat(told: dict[str, Any]) -> dict[str, Any]:
    flat: dict[str, Any] = {}
    for name, value in told.items():
        if isinstance(value, dict):
            flat.update(value)
        else:
            flat[name] = ", ".join(value) if isinstance(value, list | tuple) else value
    return flat
