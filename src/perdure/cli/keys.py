"""Commands about the keys of the server: keys create, keys list, keys revoke."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from perdure.cli import options as o
from perdure.cli.addresses import OFF
from perdure.cli.failures import Failed, complain
from perdure.cli.help import add_group
from perdure.cli.screen import Screen, print_json
from perdure.cli.session import EPHEMERAL, Session, command
from perdure.errors import InvalidRequest, InvalidTenant, PerdureError, Unavailable

if TYPE_CHECKING:
    from perdure.contract.operations import Role
    from perdure.server.keys import Key

ABOUT = """Make, show and end the keys of a server (perdure serve).

A key is for one tenant of the store, and may be for one principal (--principal) and one scope (--scope) alone:
then it reaches nothing else. The store keeps a digest of it, never the key.

\b
Examples:
  perdure keys create --principal alice --read-only
  perdure keys list
"""
OPEN = "(any)"  # how people see what a key leaves to each request
EMPTY = "(default)"  # how people see the empty name
NEVER = "-"

RoleOption = Annotated[
    str | None,
    typer.Option(
        "--role", metavar="ROLE", help="read, write (the default), or admin, who may purge and export too."
    ),
]


def add_to(app: typer.Typer) -> None:
    keys = add_group(app, "keys", ABOUT)
    for name, function in (("create", create), ("list", list_keys), ("revoke", revoke)):
        command(keys, name)(function)


def create(
    session: Session,
    *,
    role: RoleOption = None,
    read_only: Annotated[bool, typer.Option("--read-only", help="As --role read.")] = False,
    expires: Annotated[
        str | None,
        typer.Option("--expires", metavar=o.TIME, help="Valid until then; without it until revoked."),
    ] = None,
) -> None:
    """Make a key and print it, once: nobody can show it again.

    With --tenant it is for that tenant, which its first write makes. Another one than default makes a new folder a root of
    tenants, each with a store of its own. The keys of a database's tenants are kept in the folder of --keystore, where all
    its servers find them.

    \b
    Examples:
      perdure keys create --principal alice --read-only
      perdure keys create --tenant acme --role admin --expires 2027-01-01
    """
    from perdure.base.clock import SystemClock, checked_now  # noqa: PLC0415
    from perdure.base.disk import make_directory  # noqa: PLC0415
    from perdure.server.keys import DEFAULT_TENANT, Grant, Keyring, check_grant  # noqa: PLC0415 - help must not wait
    from perdure.server.roots import admit  # noqa: PLC0415

    directory = _directory(session)
    clock = SystemClock()
    grant = Grant(
        tenant=DEFAULT_TENANT if session.tenant is None else session.tenant,
        principal=session.principal,
        scope=session.scope,
        role=_role(role, read_only=read_only),
        expires_at=o.instant(expires, "expires"),
    )
    try:
        check_grant(grant, checked_now(clock))
    except InvalidTenant as error:  # a wrong value, as any other on a command line
        raise InvalidRequest(error.message, field="tenant") from error
    doubt = _doubt(session, directory)
    if doubt is not None and not directory.exists():
        from perdure.opening import MAKE_DIRECTORY, NO_DIRECTORY  # noqa: PLC0415 - only where it is refused

        raise Unavailable(f"{NO_DIRECTORY}. {MAKE_DIRECTORY}")
    made = [folder for folder in (directory, *directory.parents) if not folder.exists()]
    if session.is_database:
        from perdure.opening import keystore_of  # noqa: PLC0415 - only where there is a database

        keystore_of(directory)  # which refuses one that others look into
        make_directory(directory)
    else:
        admit(directory, grant.tenant)
    with Keyring(directory, clock=clock) as keyring:
        key, told = keyring.create(grant)
    _note(session, directory, key, "key_created")
    if doubt is not None:
        complain(doubt)
    if len(made) > 1:  # as a mistyped path would
        complain(f"made {len(made)} new folders, down to {directory}")
    if session.as_json:
        print_json({"key": told, "created": _object(key)})
        return
    screen = Screen()
    screen.line(told)
    screen.line()
    screen.line("This is the key. Keep it now: it is not shown again.")
    screen.fields(_fields(key).items())


def list_keys(session: Session) -> None:
    """Show the keys, also those that are revoked or past their time; never the keys themselves.

    With --tenant, --principal or --scope only those that are fixed to it.

    \b
    Examples:
      perdure keys list
      perdure keys list --principal alice --json
    """
    from perdure.server.keys import Keyring  # noqa: PLC0415 - help must not wait for it

    directory = _directory(session)
    with Keyring(directory) as keyring:
        keys = keyring.all_keys()
    if not keys and session.is_database:
        missing = None if directory.exists() else f"there is no keystore there yet: {directory}"
        told = _doubt(session, directory) or missing
    else:
        has_place = keys or session.has_store() or directory.exists()
        told = None if has_place else f"there is no store there yet: {directory}"
    if told is not None:
        complain(told)
    for field, wanted in (
        ("tenant", session.tenant),
        ("principal", session.principal),
        ("scope", session.scope),
    ):
        keys = [key for key in keys if wanted is None or getattr(key, field) == wanted]
    if session.as_json:
        print_json({"keys": [_object(key) for key in keys]})
        return
    # The names come last: they may be long, and of any script.
    headers = ["id", "tenant", "role", "created", "expires", "revoked", "scope", "principal"]
    rows = [_fields(key) for key in keys]
    Screen().table(headers, [[row[name] for name in headers] for row in rows])


def revoke(
    session: Session,
    id: Annotated[str, typer.Argument(metavar="ID", help="The key's id, as keys list shows it.")],  # noqa: A002
) -> None:
    """End a key: a server refuses it from the next request on.

    It cannot be undone; make a new one instead.

    \b
    Example:
      perdure keys revoke ID
    """
    from perdure.server.keys import Keyring  # noqa: PLC0415 - help must not wait for it

    directory = _directory(session)
    with Keyring(directory) as keyring:
        key = keyring.revoke(id)
    _note(session, directory, key, "key_revoked")
    if session.as_json:
        print_json({"revoked": _object(key)})
    else:
        Screen().line(f"The key {key.id} is revoked.")


def _doubt(session: Session, directory: Path) -> str | None:
    """Return why the keys of a database's tenants may be kept elsewhere than there."""
    if not session.is_database:
        return None
    from perdure.databases import Lookout  # noqa: PLC0415 - only where there is a database
    from perdure.server.places import doubt_of  # noqa: PLC0415 - likewise

    with Lookout(session.place) as lookout:
        return doubt_of(directory, lookout)


def _note(session: Session, directory: Path, key: Key, kind: str) -> None:
    """Note in the audit of the store, where there is one by now, what became of a key."""
    from perdure.server.keys import key_digest  # noqa: PLC0415 - help must not wait for it
    from perdure.server.roots import find_directory  # noqa: PLC0415

    if session.is_database:
        there: Session | None = replace(session, tenant=key.tenant)
    else:
        place = find_directory(directory, key.tenant)
        there = None if place is None else replace(session, place=str(place), tenant=None)
    try:
        if there is None or not there.has_store():
            return
        with there.store(changes=True, configured=False) as store:
            store.note_event(kind, {"key": key_digest(store.log.secret, key.id), "role": key.role})
    except PerdureError as error:  # the key is what it is all the same
        complain(f"this is not in the audit of the store: {error.message}")


def _directory(session: Session) -> Path:
    if session.is_database and session.keystore in (None, OFF):
        raise InvalidRequest(
            "keystore is missing: the keys of a database's tenants are kept in that folder", field="keystore"
        )
    if session.place == EPHEMERAL:
        raise Failed("an ephemeral store has no keys: perdure serve prints its token when it starts")
    from perdure.log.places import checked_path  # noqa: PLC0415 - help must not wait for it

    if session.is_database:
        from perdure.server.places import refuse_no_directory  # noqa: PLC0415 - only where there is a database

        directory = checked_path(session.keystore, "keystore")
        refuse_no_directory(directory)
        return directory
    if session.keystore is not None:
        from perdure.opening import refuse_tenant  # noqa: PLC0415 - only where something is wrong

        refuse_tenant(keystore=session.keystore)
    return checked_path(session.place, "store")


def _role(told: str | None, *, read_only: bool) -> Role:
    from perdure.contract.operations import ROLES  # noqa: PLC0415 - help must not wait for it

    if read_only and told not in (None, "read"):
        raise InvalidRequest("--read-only is --role read: give one of them", field="role")
    wanted = "read" if read_only else told or "write"
    for role in ROLES:
        if role == wanted:
            return role
    raise InvalidRequest(f"role must be one of {', '.join(ROLES)}", field="role")


def _object(key: Key) -> dict[str, Any]:
    return {
        "id": key.id,
        "tenant": key.tenant,
        "principal": key.principal,
        "scope": key.scope,
        "role": key.role,
        "createdAt": key.created_at,
        "expiresAt": key.expires_at,
        "revokedAt": key.revoked_at,
    }


def _fields(key: Key) -> dict[str, str]:
    return {
        "id": key.id,
        "tenant": key.tenant,
        "role": key.role,
        "created": _moment(key.created_at),
        "expires": _moment(key.expires_at),
        "revoked": _moment(key.revoked_at),
        "scope": _name(key.scope),
        "principal": _name(key.principal),
    }


def _moment(millis: int | None) -> str:
    from perdure.base.instants import to_iso  # noqa: PLC0415 - help must not wait for it

    return NEVER if millis is None else to_iso(millis // 1000 * 1000)


def _name(name: str | None) -> str:
    return OPEN if name is None else name or EMPTY
