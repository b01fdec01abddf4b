"""Verifying a store at a path, also one that is too damaged to be opened."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from msgspec import structs

from perdure.audit.audited_log import audit_of
from perdure.audit.reading import Reader
from perdure.base.clock import SystemClock
from perdure.base.sqlite.keys import KeyForm
from perdure.errors import Corrupt, InvalidRequest, NotFound
from perdure.log.journal import find_journal_damage, open_journal
from perdure.log.places import checked_path
from perdure.log.protocol import Finding, Log, Progress
from perdure.log.sqlite.log import SqliteLog
from perdure.model.finding import Verified
from perdure.opening import (
    Auditing,
    Backend,
    KeystoreForm,
    Opening,
    audited,
    find_backend,
    has_tenant,
    is_address,
    open_log,
    refuse_tenant,
)
from perdure.space.verifying import verify_log


def verify(  # noqa: PLR0913 - the names of the public interface
    path: str | Path,
    *,
    quick: bool = False,
    key: KeyForm | None = None,
    secret: bytes | None = None,
    tenant: str | None = None,
    keystore: KeystoreForm | None = None,
    progress: Progress | None = None,
) -> Verified:
    """Check all that a store keeps, as `Store.verify` does, with its chain of events, and open it even if it has lost
    records.

    Changes nothing. Where damage keeps the store from being looked at any further, that is the last finding.

    Args:
        path: the directory of the store, or the address of its database.
        quick: leave out what needs every record's text.
        key: the key of the store if it is encrypted.
        secret: the store's secret if it is kept outside.
        tenant, keystore: of a store in a database, as `Store.open` takes them.
        progress: called with how much is done, of how much in all.

    Raises:
        NotFound: there is no store.
        WrongKey, InvalidRequest, Busy, Unavailable: it could not be looked at.
    """
    if is_address(path):
        opening = Opening(None, secret, key, tenant=tenant, keystore=keystore)
        return _of_database(str(path), opening, quick=quick, progress=progress)
    refuse_tenant(tenant=tenant, keystore=keystore)
    place = checked_path(path)
    try:
        backend = find_backend(place)
    except Corrupt as error:
        return _damaged(error)
    if backend is None:
        raise NotFound("there is no store there to verify", field="path")
    try:
        log = _open(place, backend, key, secret)
    except Corrupt as error:
        found = tuple(find_journal_damage(place, secret=secret)) if backend == "journal" else ()
        return Verified(False, found, 0, 0) if found else _damaged(error)
    opening = Opening(backend=backend, secret=secret, key=key)
    whole = audited(log, place, opening, SystemClock(), Auditing())
    try:
        verified = verify_log(whole, quick=quick, progress=progress)
        # Where the audit's files are damaged, that was told already.
        is_told = any(one.message.startswith("the audit") for one in verified.findings)
        more = () if is_told else tuple(_of_chain(whole))
        return structs.replace(verified, ok=verified.ok and not more, findings=(*verified.findings, *more))
    finally:
        whole.close()


def _of_chain(log: Log) -> Iterator[Finding]:
    """Yield what of the events does not add up. The audit follows nothing here, since that would write."""
    audit = audit_of(log)
    if audit is not None and audit.exists:
        for finding in Reader(audit, log.secret).findings():
            yield Finding(f"the audit: {finding.message}")


def _of_database(address: str, opening: Opening, *, quick: bool, progress: Progress | None) -> Verified:
    try:
        if not has_tenant(address, opening):
            raise NotFound("there is no store there to verify", field="path")
        log = open_log(address, opening)
    except Corrupt as error:
        return _damaged(error)
    try:
        return verify_log(log, quick=quick, progress=progress)
    finally:
        log.close()


def _damaged(error: Corrupt) -> Verified:
    return Verified(False, (Finding(error.message, error.space, error.seq),), 0, 0)


def _open(place: Path, backend: Backend, key: KeyForm | None, secret: bytes | None) -> Log:
    if backend == "sqlite":
        return SqliteLog.open(place, secret=secret, key=key, admits_damage=True)
    if key is not None:
        raise InvalidRequest("a journal is not encrypted: leave key out", field="key")
    return open_journal(place, secret)
