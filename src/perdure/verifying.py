"""Verifying a store at a path, also one that is too damaged to be opened."""

from __future__ import annotations

from pathlib import Path

from perdure.errors import Corrupt, InvalidRequest, NotFound
from perdure.log.journal import find_journal_damage, open_journal
from perdure.log.places import checked_path
from perdure.log.protocol import Finding, Log, Progress
from perdure.log.sqlite.keys import KeyForm
from perdure.log.sqlite.log import SqliteLog
from perdure.model.finding import Verified
from perdure.opening import Backend, find_backend
from perdure.space.verifying import verify_log


def verify(
    path: str | Path,
    *,
    quick: bool = False,
    key: KeyForm | None = None,
    secret: bytes | None = None,
    progress: Progress | None = None,
) -> Verified:
    """Check all that a store keeps, as `Store.verify` does, and open it even if it has lost records.

    Changes nothing. Where damage keeps the store from being looked at any further, that is the last finding.

    Args:
        path: the directory of the store.
        quick: leave out what needs every record's text.
        key: the key of the store if it is encrypted.
        secret: the store's secret if it is kept outside.
        progress: called with how much is done, of how much in all.

    Raises:
        NotFound: there is no store.
        WrongKey, InvalidRequest, Busy, Unavailable: it could not be looked at.
    """
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
