"""The command that copies a store into one of another backend: copy."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from perdure.base.text import counted
from perdure.cli.addresses import (
    DEFAULT_TENANT,
    UNSERVABLE,
    checked_place,
    is_address,
    is_servable,
    refuse_any_address,
    shown_place,
)
from perdure.cli.failures import Failed, complain
from perdure.cli.options import one_of
from perdure.cli.progress import progress_bar
from perdure.cli.screen import Screen, print_json, quoted
from perdure.cli.session import BACKENDS, EPHEMERAL, Session, command
from perdure.errors import InvalidRequest, NotFound

if TYPE_CHECKING:
    from perdure.model.stores import Copied

STOPPED = "stopped; what was copied stays, and the same command goes on there"


@dataclass(frozen=True, slots=True)
class Target:
    """What of the copy is otherwise than of the source."""

    to_backend: Annotated[
        str | None,
        typer.Option(
            "--to-backend",
            metavar="NAME",
            help="What a new copy in a folder is kept in: sqlite (the default), or journal.",
            autocompletion=one_of(*BACKENDS),
        ),
    ] = None
    to_key_file: Annotated[
        str | None,
        typer.Option(
            "--to-key-file",
            metavar="FILE",
            help="As --key-file, of a copy in a folder. Default: the key of the source.",
        ),
    ] = None
    to_tenant: Annotated[
        str | None,
        typer.Option(
            "--to-tenant",
            metavar="NAME",
            help="Whose store the copy is in a database. Default: as the source's.",
        ),
    ] = None
    to_keystore: Annotated[
        str | None,
        typer.Option(
            "--to-keystore",
            metavar="DIR",
            help="Where the keys of a copy in a database are kept. Default: as the source's.",
        ),
    ] = None


def add_to(app: typer.Typer) -> None:
    command(app, "copy")(copy)


def copy(
    session: Session,
    to: Annotated[
        str,
        typer.Option("--to", metavar="PLACE", help="A folder or a database: new, or a copy that was begun."),
    ],
    target: Target,
    *,
    from_: Annotated[
        str | None,
        typer.Option(
            "--from", metavar="PLACE", help="The folder or database of the store. Default: --store."
        ),
    ] = None,
    plain: Annotated[
        bool, typer.Option("--plain", help="Let the copy be unencrypted where the source has a key.")
    ] = False,
    verify: Annotated[
        bool, typer.Option("--verify/--no-verify", help="Read the source and the copy whole, and check them.")
    ] = True,
) -> None:
    """Copy a store, with its audit, into a folder or a database, record for record: both answer alike.

    Others may go on with the source; the copy follows until both are equal. Stopped, it goes on when it is given again.
    What was forgotten is not copied. A place that holds anything else is refused.

    \b
    Examples:
      perdure copy --from ./store --to postgresql://db/memory --to-keystore /keys
      perdure copy --from postgresql://db/memory --keystore /keys --to ./store
      perdure copy --to ./readable --to-backend journal
    """
    source = session.place if from_ is None else checked_place(from_, "from")
    to = checked_place(to, "to")
    if target.to_keystore is not None:
        refuse_any_address(target.to_keystore, "to_keystore")
    if source == EPHEMERAL:
        raise InvalidRequest(
            "a store in memory is gone with its process: there is nothing to copy", field="from"
        )
    done = _copied(session, source, to, target, plain=plain, verify=verify)
    if session.as_json:
        print_json({"copied": _object(done)})
        return
    if is_address(to) and not is_servable(target.to_tenant or session.tenant or DEFAULT_TENANT):
        complain(UNSERVABLE)
    what = f"{counted(done.records, 'record')} of {counted(done.spaces, 'space')}"
    how = "; the copy was read whole and holds together" if done.verified else ""
    Screen().line(
        f"The two are equal: {what}, {done.erased} of them erased. {counted(done.written, 'record')} written now, with those "
        f"of the audit{how}."
    )


def _copied(session: Session, source: str, to: str, target: Target, *, plain: bool, verify: bool) -> Copied:
    from perdure.copying import copy as copied  # noqa: PLC0415 - help must not wait for it

    told: Any = target
    # Told once where it is the same on both sides; what the environment tells is for databases alone.
    tenant = session.tenant or os.environ.get("PERDURE_TENANT") or None
    keystore = session.keystore or os.environ.get("PERDURE_KEYSTORE") or None
    of_source = (tenant, keystore) if is_address(source) else (None, None)
    of_target = (target.to_tenant, target.to_keystore)
    if is_address(to):
        of_target = (target.to_tenant or tenant, target.to_keystore or keystore)
    with progress_bar("copying") as progress:
        try:
            return copied(
                source,
                to,
                key=session.key,
                secret=session.secret,
                tenant=of_source[0],
                keystore=of_source[1],
                to_backend=told.to_backend,
                to_key=None if target.to_key_file is None else Path(target.to_key_file),
                to_tenant=of_target[0],
                to_keystore=of_target[1],
                plain=plain,
                verify=verify,
                progress=progress,
            )
        except InvalidRequest as error:
            if error.field in ("source", "target"):  # as they are called here
                _rename(error, error.field, "from" if error.field == "source" else "to")
            raise
        except NotFound as error:
            named = f" (tenant {quoted(tenant or DEFAULT_TENANT)})" if is_address(source) else ""
            error.message = f"{error.message}: {shown_place(source)}{named}"
            error.args = (error.message,)
            raise
        except KeyboardInterrupt:
            raise Failed(STOPPED) from None


def _rename(error: InvalidRequest, old: str, new: str) -> None:
    error.field = new
    if error.message.startswith(f"{old} "):
        error.message = f"{new}{error.message.removeprefix(old)}"
        error.args = (error.message,)


def _object(done: Copied) -> dict[str, object]:
    return {
        "spaces": done.spaces,
        "records": done.records,
        "erased": done.erased,
        "written": done.written,
        "verified": done.verified,
    }
