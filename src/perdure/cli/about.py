"""Commands about the store itself: stats, health, spaces, capabilities, config."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from perdure.cli import options as o
from perdure.cli.screen import Screen, print_json, put
from perdure.cli.session import ABSENT, Session, command
from perdure.errors import InvalidRequest

if TYPE_CHECKING:
    from perdure.memory.config import MemoryConfig
    from perdure.model.stores import Health

HEALTH_TIMEOUT_S = 1.0  # whoever asks whether a store can be used does not want to wait until it can
DATABASE = "postgres"  # what a store in a database calls its backend
DEFAULT = "(default)"  # how people see the empty name


def add_to(app: typer.Typer) -> None:
    for name, function in (
        ("stats", stats),
        ("health", health),
        ("spaces", spaces),
        ("capabilities", capabilities),
        ("config", config),
    ):
        command(app, name)(function)


def stats(session: Session) -> None:
    """Show the sizes of the store, all memories together.

    Facts that are hidden count, forgotten ones do not. What can be reclaimed is what a purge would give back, about.

    \b
    Examples:
      perdure stats
      perdure stats --json
    """
    from perdure.contract.wire import stats_object  # noqa: PLC0415 - help must not wait for it

    with session.store(timeout_s=HEALTH_TIMEOUT_S) as store:
        told = stats_object(store.stats())
    if session.is_database:  # also where the tenant is absent, for which an empty store in memory stands
        told["backend"] = DATABASE
    _print(session, told)


def health(session: Session) -> None:
    """Say whether the store can be read and written now.

    The status is ok, or the code of the error that stands in the way of a write, such as busy; where there is no
    store it is absent. Exit code 1 unless it is ok. Waits a second at most, and writes nothing.

    \b
    Examples:
      perdure health
      perdure health --json || echo "look after it"
    """
    found = _health(session)
    told: dict[str, Any] = {
        "status": found.status,
        "writable": found.writable,
        "erasurePending": found.erasure_pending,
        "message": found.message,
    }
    _print(session, told)
    if found.status != "ok":
        raise typer.Exit(1)


def _health(session: Session) -> Health:
    from perdure.errors import PerdureError  # noqa: PLC0415
    from perdure.model.stores import Health as Found  # noqa: PLC0415 - help must not wait for it

    if not session.has_store():
        return Found("absent", writable=False, erasure_pending=False, message=ABSENT)
    try:
        with session.store(timeout_s=HEALTH_TIMEOUT_S, configured=False) as store:
            return store.health()
    except InvalidRequest:  # of the command line
        raise
    except PerdureError as error:  # a store that does not open is not well
        return Found(error.code, writable=False, erasure_pending=False, message=error.message)


def spaces(session: Session) -> None:
    """Show the principals and scopes that have a memory in the store.

    \b
    Examples:
      perdure spaces
      perdure spaces --json
    """
    with session.store() as store:
        names = store.spaces()
    if session.as_json:
        from perdure.contract.wire import space_object  # noqa: PLC0415 - only where it is printed

        print_json({"spaces": [space_object(name) for name in names]})
    else:
        rows = [[name.principal or DEFAULT, name.scope or DEFAULT] for name in names]
        Screen().table(["principal", "scope"], rows)


def capabilities(
    session: Session,
    *,
    contract_version: Annotated[
        str | None,
        typer.Option(
            "--contract-version",
            metavar="N",
            help="Fail unless this version is spoken. Default: 1, the only one.",
        ),
    ] = None,
) -> None:
    """Show what a memory of this build offers: its operations and its features.

    \b
    Examples:
      perdure capabilities
      perdure capabilities --json --contract-version 1
    """
    from perdure.contract.wire import capabilities_object  # noqa: PLC0415 - only where it is printed

    version = o.whole(contract_version, "contract_version")
    with session.memory() as memory:
        told = capabilities_object(memory.capabilities(1 if version is None else version))
    _print(session, told if session.as_json else _flat(told))


def config(
    session: Session,
    *,
    save: Annotated[
        bool,
        typer.Option("--save", help="Keep the configuration of --config, or PERDURE_CONFIG, with the store."),
    ] = False,
    drop: Annotated[bool, typer.Option("--drop", help="Keep none with the store any longer.")] = False,
) -> None:
    """Show the configuration in force, as JSON; with --save keep it with the store.

    A store that keeps one is used with it, by every command and every program; to give a different one is an
    error, until --save replaces it or --drop lets go of it. It is as encrypted as the store. Without, the
    configuration of --config or PERDURE_CONFIG is that of one call, and the usual settings hold where there is none.

    \b
    Examples:
      perdure config
      perdure config --config memory.json --save
      perdure config --drop
    """
    if save and drop:
        raise InvalidRequest("--save and --drop contradict each other; give one", field="save")
    if save:
        _save(session)
    elif drop:
        with session.store(changes=True, configured=False) as store:
            store.save_config(None)
    told = _told(_in_force(session))
    if session.as_json:
        print_json(told)
    else:
        import json  # noqa: PLC0415 - help must not wait for it

        put(json.dumps(told, indent=2) + "\n")


def _save(session: Session) -> None:
    if session.config is None:
        raise InvalidRequest(
            "--save keeps the configuration of --config, or PERDURE_CONFIG: name its file", field="config"
        )
    with session.store(writes=True, configured=False) as store:
        store.save_config(session.config)


def _in_force(session: Session) -> MemoryConfig:
    if not session.has_store():
        from perdure.memory.config import MemoryConfig as Config  # noqa: PLC0415 - help must not wait for it

        return session.config or Config()
    with session.store() as store:
        return store.config


def _told(config: MemoryConfig) -> Any:
    import json  # noqa: PLC0415 - help must not wait for it

    return json.loads(config.to_json())


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
