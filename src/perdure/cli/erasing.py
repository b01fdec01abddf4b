"""Commands that leave nothing: erase, purge; and the files that certificates are written to."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from perdure.base.text import counted
from perdure.cli import options as o
from perdure.cli.about import DEFAULT
from perdure.cli.failures import Failed, complain
from perdure.cli.previews import ask, count_of
from perdure.cli.progress import progress_bar
from perdure.cli.screen import Screen, print_json
from perdure.cli.session import ABSENT, Session, command
from perdure.errors import InvalidRequest, PerdureError

if TYPE_CHECKING:
    from perdure.model.certificate import Certificate
    from perdure.model.namespace import Namespace
    from perdure.model.stores import StoreStats

CertificateOption = Annotated[
    str | None,
    typer.Option("--certificate", metavar="FILE", help="Keep the certificate in a new file."),
]
PurgeFlag = Annotated[
    bool, typer.Option("--purge", help="Rewrite the store afterwards, so that no place of them is left.")
]


def add_to(app: typer.Typer) -> None:
    for name, function in (("erase", erase), ("purge", purge)):
        command(app, name)(function)


def say_pending(session: Session, screen: Screen) -> None:
    """Say that the last step of an erasure waits, for what, and what takes it."""
    if session.is_database:
        from perdure.databases import why_pending  # noqa: PLC0415 - only of a database

        screen.line(f"The erasure is not finished: {why_pending(session.keystore)}.")
    else:
        screen.line("Another process is reading; the next operation on the store finishes the erasure.")


def erase(
    session: Session,
    *,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show what would go, and stop.")] = False,
    yes: o.Yes = False,
    certificate: CertificateOption = None,
) -> None:
    """Erase all memories of --principal, or the one of --scope, with everything in them and their names.

    Shows what would go and asks first. Ends with a purge of the store, so that it equals one that never held them.

    \b
    Examples:
      perdure erase --principal ann --dry-run
      perdure erase --principal ann --yes --certificate ann.json
    """
    if session.principal is None:
        raise InvalidRequest(
            'principal is missing: name whose memories to erase (--principal "" for the one without a name)',
            field="principal",
        )
    if not dry_run and not session.has_store():
        raise Failed(ABSENT)
    whose: dict[str, Any] = {"principal": session.principal, "scope": session.scope}
    with session.store() as store, certificate_file(certificate, dry_run=dry_run) as keep:
        preview = store.erase(**whose, dry_run=True)
        if dry_run:
            if session.as_json:
                _print_erased(preview)
            else:
                _show(Screen(), preview.spaces, preview.facts)
                Screen().line("Nothing was changed.")
            return
        if not preview.spaces:
            raise Failed(
                "there is no memory of that name, so nothing was erased; perdure spaces shows the names. Where an "
                "erasure was interrupted, perdure purge ends it"
            )
        if not yes:
            ask(
                f"Erase {count_of(preview.facts)}?",
                lambda screen: _show(screen, preview.spaces, preview.facts),
                refused="nothing was erased",
            )
        with progress_bar("rewriting the store") as progress:
            reply = store.erase(**whose, progress=progress)
        keep(reply.certificate)
    if session.as_json:
        _print_erased(reply)
        return
    _show(Screen(), reply.spaces, reply.facts, done=True)
    if reply.pending:
        say_pending(session, Screen())


def purge(session: Session, *, yes: o.Yes = False, certificate: CertificateOption = None) -> None:
    """Rewrite the store so that nothing of what was forgotten is left in it, not even its place.

    Shows what would be rewritten and asks first. Takes room for a second copy of the store meanwhile, and makes
    writers wait. Cursors from before it end with it: whoever keeps one starts over.

    \b
    Examples:
      perdure purge
      perdure purge --yes --certificate purged.json
    """
    if not session.has_store():
        raise Failed(ABSENT)
    with session.store() as store, certificate_file(certificate) as keep:
        if not yes:
            stats = store.stats()
            ask(
                "Rewrite the store?",
                lambda screen: _show_whole(screen, stats),
                refused="nothing was rewritten",
            )
        with progress_bar("rewriting the store") as progress:
            reply = store.purge(progress=progress)
        keep(reply.certificate)
    if session.as_json:
        from perdure.contract.wire import purged_object  # noqa: PLC0415 - only where it is printed

        print_json(purged_object(reply))
        return
    screen = Screen()
    screen.line(
        f"The store was rewritten: {counted(reply.records, 'record')}, {reply.dropped} fewer than before."
    )
    if reply.pending:
        say_pending(session, screen)


@contextmanager
def certificate_file(name: str | None, *, dry_run: bool = False) -> Iterator[Any]:
    """Yield what writes a certificate to the new file of this name; where none was asked for, it does nothing.

    The file is made before anything is erased, so that the certificate is not lost for want of a place. A
    failure takes an empty one away again; the certificate of an erasure whose purge failed is kept. Where what
    was asked for erases nothing, the file goes too, and a line on standard error says so.

    Raises:
        Failed: the certificate could not be written; it is in the error's details, and on standard error.
    """
    if name is None or dry_run:
        yield lambda certificate: None
        return
    from perdure.base.disk import create_private  # noqa: PLC0415
    from perdure.contract.wire import certificate_object  # noqa: PLC0415 - only where it is written

    path = Path(name)
    try:
        if not create_private(path):
            raise InvalidRequest("certificate names a file that exists: give a new one", field="certificate")
    except (OSError, ValueError) as error:
        if isinstance(error, PerdureError):
            raise
        raise InvalidRequest(
            f"the certificate's file cannot be made ({getattr(error, 'strerror', None) or 'no such path'})",
            field="certificate",
        ) from error

    def keep(certificate: Certificate | None) -> None:
        if certificate is None:
            complain("nothing was erased by this call, so there is no certificate")
        else:
            _write(path, certificate_object(certificate))

    try:
        yield keep
    except PerdureError as error:
        if "certificate" in error.details and not isinstance(error, Failed):
            with suppress(Failed):  # the error itself says more, and has the certificate
                _write(path, error.details["certificate"])
        raise
    finally:
        with suppress(OSError):
            if not path.stat().st_size:
                path.unlink()


def _write(path: Path, told: dict[str, Any]) -> None:
    import json  # noqa: PLC0415

    try:
        path.write_text(json.dumps(told, indent=2) + "\n", encoding="utf-8")
    except OSError as error:
        with suppress(OSError):
            path.write_bytes(b"")  # half a certificate is none
        complain(f"the certificate: {json.dumps(told)}")
        raise Failed(
            f"what was to be erased is, but its certificate could not be written ({error.strerror}): keep the one "
            "shown here",
            certificate=told,
        ) from error


def _show(screen: Screen, spaces: tuple[Namespace, ...], facts: int, *, done: bool = False) -> None:
    screen.table(["principal", "scope"], [[n.principal or DEFAULT, n.scope or DEFAULT] for n in spaces])
    memories = counted(len(spaces), "memory", "memories")
    screen.line(f"{memories} with {count_of(facts)} {'erased' if done else 'would go'}.")


def _show_whole(screen: Screen, stats: StoreStats) -> None:
    size, freed = stats.size_bytes or 0, stats.reclaimable_bytes or 0
    memories = counted(stats.spaces, "memory", "memories")
    screen.line(
        f"{memories} with {count_of(stats.facts)}: {size:,} bytes, of which about {freed:,} would go."
    )
    screen.line("Cursors from before it end with it.")


def _print_erased(reply: Any) -> None:
    from perdure.contract.wire import erased_object  # noqa: PLC0415 - only where it is printed

    print_json(erased_object(reply))
