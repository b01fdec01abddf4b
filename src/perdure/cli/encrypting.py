"""The command that changes what a store is encrypted with: rekey."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from perdure.base.text import counted
from perdure.cli import options as o
from perdure.cli.addresses import refuse_address
from perdure.cli.failures import Failed
from perdure.cli.previews import ask, count_of
from perdure.cli.progress import progress_bar
from perdure.cli.screen import Screen, print_json
from perdure.cli.session import ABSENT, EPHEMERAL, Session, command
from perdure.errors import InvalidRequest

if TYPE_CHECKING:
    from perdure.model.replies import PurgeReceipt
    from perdure.model.stores import StoreStats


def add_to(app: typer.Typer) -> None:
    command(app, "rekey")(rekey)


def rekey(
    session: Session,
    *,
    new_key_file: Annotated[
        str | None,
        typer.Option(
            "--new-key-file",
            metavar="FILE",
            help="A file of yours alone with the new key, or its passphrase.",
        ),
    ] = None,
    plain: Annotated[bool, typer.Option("--plain", help="Encrypt no longer.")] = False,
    yes: o.Yes = False,
) -> None:
    """Write the whole store anew, under another key or none, and overwrite the old files. Asks first.

    Takes room for a second copy of the store meanwhile, and makes writers wait. Whoever else has the store open
    must open it again with the new key.

    \b
    Examples:
      perdure rekey --new-key-file new.key
      perdure rekey --key-file old.key --plain --yes
    """
    if (new_key_file is None) != plain:
        raise InvalidRequest("give --new-key-file FILE, or --plain: one of them", field="new_key_file")
    refuse_address(session.place, "rekey", "perdure purge writes it anew under new keys of its keystore")
    if session.place == EPHEMERAL or not session.has_store():
        raise Failed(ABSENT)
    with session.store() as store:
        if not yes:
            stats = store.stats()
            ask(
                "Decrypt the store?" if plain else "Encrypt the store with the new key?",
                lambda screen: _show(screen, stats, plain=plain),
                refused="nothing was changed",
            )
        with progress_bar("rewriting the store") as progress:
            done = store.rekey(None if new_key_file is None else Path(new_key_file), progress=progress)
    _answer(session, done, plain=plain)


def _show(screen: Screen, stats: StoreStats, *, plain: bool) -> None:
    memories = counted(stats.spaces, "memory", "memories")
    screen.line(f"{stats.size_bytes} bytes, {count_of(stats.facts)} in {memories}, will be written anew.")
    if plain:
        screen.line("From then on whoever can read the files can read every fact.")
    else:
        screen.line("From then on nobody can read them without the new key: keep a copy of it elsewhere.")


def _answer(session: Session, done: PurgeReceipt, *, plain: bool) -> None:
    if session.as_json:
        print_json(
            {
                "rekeyed": {
                    "encrypted": not plain,
                    "records": done.records,
                    "dropped": done.dropped,
                    "pending": done.pending,
                }
            }
        )
        return
    screen = Screen()
    screen.line(
        "The store is not encrypted any more." if plain else "The store is encrypted with the new key."
    )
    if done.pending:
        screen.line("Another process is reading; the next operation on the store overwrites the old files.")
