"""The command that copies a store while it is in use: backup."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from perdure.cli.addresses import refuse_address
from perdure.cli.failures import Failed
from perdure.cli.progress import progress_bar
from perdure.cli.screen import Screen, print_json
from perdure.cli.session import ABSENT, Session, command


def add_to(app: typer.Typer) -> None:
    command(app, "backup")(backup)


def backup(
    session: Session,
    directory: Annotated[str, typer.Argument(metavar="DIR", help="A folder that is new, or empty.")],
) -> None:
    """Copy the store as it is now, all memories together; others may go on using it.

    The copy is a store of its own, with the same secret and the same key. To go back to it, give it as --store,
    or put it in the store's place while nobody uses that.

    \b
    Examples:
      perdure backup /backups/perdure-monday
      perdure --store /backups/perdure-monday list
    """
    refuse_address(
        session.place,
        "backup",
        "back the database up with its own tools (pg_dump, pg_basebackup) and the keystore apart from it, or perdure copy "
        "the store into files",
    )
    if not session.has_store():
        raise Failed(ABSENT)
    with session.store() as store, progress_bar("copying") as progress:
        store.backup(directory, progress=progress)
    size = sum(path.stat().st_size for path in Path(directory).iterdir())
    if session.as_json:
        print_json({"backup": {"directory": str(Path(directory).absolute()), "sizeBytes": size}})
    else:
        Screen().line(f"The store is copied: {size} bytes.")
