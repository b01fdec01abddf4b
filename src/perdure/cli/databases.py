"""Commands about a database rather than one memory in it: migrate, delete-tenant."""

from __future__ import annotations

from typing import Annotated

import typer

from perdure.base.text import counted
from perdure.cli import options as o
from perdure.cli.failures import complain
from perdure.cli.previews import ask
from perdure.cli.screen import Screen, print_json, quoted
from perdure.cli.session import Session, command
from perdure.errors import InvalidRequest, NotFound

PENDING = (
    "Not every holder of its keys has confirmed that they are gone: run this again to ask again, unless a warning says which "
    "to destroy elsewhere. What was stored without encryption stays in the database's logs and backups for as long as they "
    "are kept."
)
STAYS = "API keys of a server for it (perdure keys) stay, and the next write under its name makes the tenant anew."
UNFENCED = (
    "the role is a superuser or bypasses row-level security: the database itself does not keep tenants apart for it. Give "
    "stores a role without SUPERUSER and BYPASSRLS"
)
COPIED = (
    "the database is a copy, or was moved: nothing in it opens until this is run with --adopt. Give it a copy of the keystore "
    "of its own before that, unless the original is gone for good"
)


def add_to(app: typer.Typer) -> None:
    for name, function in (("migrate", migrate), ("delete-tenant", delete_tenant)):
        command(app, name)(function)


def migrate(
    session: Session,
    *,
    role: Annotated[
        str | None,
        typer.Option(
            "--role", metavar="NAME", help="Give this role of the database what a store needs, and no more."
        ),
    ] = None,
    adopt: Annotated[
        bool, typer.Option("--adopt", help="Have stores open in a database that is a copy, or was moved.")
    ] = False,
) -> None:
    """Make the tables of a database, or bring them up to the version of this Perdure; prints both versions.

    Needs a role that may create and that owns the tables. Give the one that stores connect as with --role: it owns
    nothing, so the database itself keeps tenants apart.

    A database that is a copy, or was moved, opens for nobody before --adopt. Two databases must never be used with one
    keystore: give the copy a copy of that first. Where the original is gone for good, keep the keystore.

    \b
    Examples:
      perdure migrate --store postgresql://owner@db/memory
      perdure migrate --store postgresql://owner@db/memory --role perdure
      perdure migrate --store postgresql://owner@db/restored --adopt
    """
    _check_database(session)
    from perdure.databases import migrate as bring_up  # noqa: PLC0415 - help must not wait for it

    done = bring_up(session.place, role=role, adopt=adopt)
    if not done.is_fenced:
        complain(UNFENCED)
    if done.is_copy:
        complain(COPIED)
    if done.doubt:
        complain(done.doubt)
    if session.as_json:
        told = {"before": done.before, "version": done.version, "granted": done.granted, "copy": done.is_copy}
        print_json({"migrated": told})
        return
    screen = Screen()
    if done.before == done.version:
        screen.line(f"The tables have version {done.version} already.")
    elif done.before:
        screen.line(f"The tables had version {done.before} and have version {done.version} now.")
    else:
        screen.line(f"The tables are made, of version {done.version}.")
    if adopt:
        screen.line("Stores in them open here.")
    if done.granted is not None:
        screen.line(f"The role {done.granted} has what a store needs.")


def delete_tenant(
    session: Session,
    *,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show what would go, and stop.")] = False,
    yes: o.Yes = False,
) -> None:
    """Delete the tenant of --tenant from its database: all memories, their audit, and every key of them.

    Shows what would go and asks first. It cannot be undone, also not from a backup of the database alone: what is in one
    is sealed under keys that are destroyed. Keys of a server for it (perdure keys) stay: revoke them, or their next write
    makes the tenant anew. Works also where the tenant cannot be opened any more.

    \b
    Examples:
      perdure delete-tenant --tenant acme --dry-run
      perdure delete-tenant --tenant acme --yes
    """
    _check_database(session)
    from perdure.databases import Lookout  # noqa: PLC0415 - help must not wait for it
    from perdure.databases import delete_tenant as delete  # noqa: PLC0415

    name = session.tenant
    if name is None:
        raise InvalidRequest("tenant is missing: name the one to delete", field="tenant")
    with Lookout(session.place) as lookout:
        found = lookout.survey(name)
    if found is None:
        raise NotFound("there is no tenant of that name, so nothing was deleted", field="tenant")
    memories = counted(found.spaces, "memory", "memories")
    told = f"{memories} with {counted(found.records, 'record')}"
    if dry_run:
        if session.as_json:
            shown = {"tenant": name, "spaces": found.spaces, "records": found.records}
            print_json({"deleted": shown, "dryRun": True, "pending": found.is_buried})
        else:
            Screen().line(f"{told} would go. Nothing was changed.")
        return
    if not yes:
        ask(
            f"Delete the tenant {quoted(name)}?",
            lambda screen: screen.line(f"{told} would go, and the keys of all of them. {STAYS}"),
            refused="nothing was deleted",
        )
    done = delete(session.place, name, keystore=session.keystore)
    if session.as_json:
        shown = {"tenant": name, "spaces": done.spaces, "records": done.records}
        print_json({"deleted": shown, "dryRun": False, "pending": done.pending})
        return
    screen = Screen()
    screen.line(f"The tenant is deleted: {told}. {STAYS}")
    if done.pending:
        screen.line(PENDING)


def _check_database(session: Session) -> None:
    if not session.is_database:
        raise InvalidRequest(
            "this is for a store in a database: name one with --store postgresql://…", field="store"
        )
