"""The command that checks a store, checks certificates of erasure, and saves what is whole of a damaged store."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from perdure.base.text import counted
from perdure.cli.addresses import refuse_address
from perdure.cli.failures import Failed
from perdure.cli.progress import progress_bar
from perdure.cli.screen import Screen, print_json
from perdure.cli.session import ABSENT, EPHEMERAL, Session, command
from perdure.errors import InvalidRequest

if TYPE_CHECKING:
    from perdure.model.certificate import Certificate
    from perdure.model.finding import Finding


def add_to(app: typer.Typer) -> None:
    command(app, "verify")(verify)


def verify(
    session: Session,
    *,
    quick: Annotated[bool, typer.Option("--quick", help="Leave out what needs every record's text.")] = False,
    salvage: Annotated[
        str | None,
        typer.Option("--salvage", metavar="OUT", help="Save what is whole into a store in a new folder."),
    ] = None,
    erased: Annotated[
        str | None,
        typer.Option(
            "--erased", metavar="FILE", help="Check the certificate of an erasure against the store."
        ),
    ] = None,
) -> None:
    """Check that all of the store and of its audit is as it was written, and list what is not; changes nothing.

    Exit code 1 where something was found, or something could not be saved. A damaged store opens here too. To
    save what is whole of it, close it everywhere and name a new folder with --salvage.

    \b
    Examples:
      perdure verify
      perdure verify --erased ann.json
      perdure verify --salvage /stores/rescued
    """
    if sum((quick, salvage is not None, erased is not None)) > 1:
        raise InvalidRequest("give one of --quick, --salvage and --erased", field="quick")
    if salvage is not None:
        refuse_address(
            session.place,
            "--salvage",
            "restore backups of the database and its keystore, or take out each memory that is whole: perdure spaces lists "
            "them, perdure export --principal NAME --scope NAME writes one",
        )
    if session.place == EPHEMERAL or not session.has_store():
        raise Failed(session.absence() if session.is_database else ABSENT)
    if salvage is not None:
        _salvage(session, salvage)
    elif erased is not None:
        _check_certificate(session, erased)
    else:
        _verify(session, quick=quick)


def _verify(session: Session, *, quick: bool) -> None:
    from perdure.verifying import verify  # noqa: PLC0415 - help must not wait for it

    with progress_bar("verifying") as progress:
        told = {name: value for name, value in session.options.items() if name != "backend"}
        found = verify(session.place, quick=quick, progress=progress, **told)
    if found.ok:
        from perdure.dispatch import with_events  # noqa: PLC0415 - only where the store can be opened

        with session.store(configured=False) as store:
            found = with_events(store, found)
    if session.as_json:
        from perdure.contract.wire import verified_object  # noqa: PLC0415 - only where it is printed

        print_json(verified_object(found))
    else:
        screen = Screen()
        _list(screen, found.findings)
        looked = f"{counted(found.records, 'record')} of {counted(found.spaces, 'space')} looked at"
        screen.line(f"{looked}: all is whole." if found.ok else f"{looked}: {_count(found.findings)}.")
    if not found.ok:
        raise typer.Exit(1)


def _check_certificate(session: Session, file: str) -> None:
    certificate = _read_certificate(file)
    with session.store() as store, progress_bar("checking") as progress:
        found = store.check_certificate(certificate, progress=progress)
    if session.as_json:
        print_json({"ok": not found, "findings": _objects(found)})
    else:
        screen = Screen()
        _list(screen, found)
        screen.line(f"The certificate does not hold: {_count(found)}." if found else "The certificate holds.")
    if found:
        raise typer.Exit(1)


def _salvage(session: Session, out: str) -> None:
    from perdure.salvaging import salvage  # noqa: PLC0415 - help must not wait for it

    with progress_bar("salvaging") as progress:
        saved = salvage(session.place, out, key=session.key, secret=session.secret, progress=progress)
    if session.as_json:
        counts = {"spaces": saved.spaces, "records": saved.records, "facts": saved.facts}
        print_json(
            {**counts, "generation": saved.generation, "lost": _objects(saved.lost), "notes": saved.notes}
        )
    else:
        screen = Screen()
        _list(screen, saved.lost)
        for note in saved.notes:
            screen.line(f"Note: {note}.")
        lost = "nothing was lost" if not saved.lost else f"{_count(saved.lost)} above, of what was lost"
        screen.line(
            f"{counted(saved.facts, 'fact')} of {counted(saved.spaces, 'space')} in the new store; {lost}."
        )
    if saved.lost:
        raise typer.Exit(1)


def _read_certificate(file: str) -> Certificate:
    from perdure.contract.reading import read_kept_certificate  # noqa: PLC0415 - help must not wait for it

    try:
        told = json.loads(Path(file).read_bytes())
    except OSError as error:
        raise InvalidRequest(f"the certificate cannot be read: {error.strerror}", field="erased") from error
    except ValueError as error:
        raise InvalidRequest("the certificate is no JSON", field="erased") from error
    return read_kept_certificate(told)


def _list(screen: Screen, findings: Sequence[Finding]) -> None:
    for finding in findings:
        screen.line(finding.message)


def _count(findings: Sequence[Finding]) -> str:
    return counted(len(findings), "finding")


def _objects(findings: Sequence[Finding]) -> list[dict[str, Any]]:
    return [{"message": found.message, "space": found.space, "seq": found.seq} for found in findings]
