"""Saving what is whole of a damaged store into a new one."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Protocol

from msgspec import structs

from perdure.base.disk import erase
from perdure.base.ids import keyed_hash
from perdure.base.sqlite.keys import KeyForm, checked_key
from perdure.base.text import counted
from perdure.errors import Conflict, Corrupt, InvalidRequest, NotFound, Unavailable
from perdure.log.journal import (
    JournalLog,
    create_keeping,
    journal_kept_from_others,
    open_journal_remains,
)
from perdure.log.places import checked_path, checked_target
from perdure.log.protocol import Batch, Entry, Finding, Log, Progress
from perdure.log.records import FactRecord, Record, SpaceRecord, encode
from perdure.log.sqlite.files import StoreFiles
from perdure.log.sqlite.log import SqliteLog
from perdure.log.sqlite.salvaging import keep_secret, kept_from_others, open_remains
from perdure.memory.config import MemoryConfig
from perdure.model.finding import Salvaged
from perdure.model.namespace import CONFIGURATION, Namespace
from perdure.opening import Backend, find_backend
from perdure.space.folding import fold
from perdure.space.names import hashed_name
from perdure.space.salvaging import Mended, mend
from perdure.space.snapshot import find_settings
from perdure.space.verifying import verify_log

CHUNK = 1_000  # records written in one transaction


class Remains(Protocol):
    """What a backend finds whole in one generation of a damaged store."""

    generation: int
    unplaced: int  # how many records are lost without a trace of whose they were

    @property
    def records(self) -> int:
        """How many records are whole and not erased."""
        ...

    def spaces(self) -> list[int]:
        """Return the numbers of the spaces of which anything is left, ascending."""
        ...

    def last(self, space: int) -> int:
        """Return the number of the last record that the space is known to have had."""
        ...

    def read(self, space: int) -> Iterator[Entry]:
        """Yield what is whole of a space in order; data is None where it was erased. What is lost is left out."""
        ...

    def is_named(self, space: int, name: bytes) -> bool:
        """Whether the space is known under the keyed hash of this name."""
        ...

    def kept_states(self, space: int) -> list[bytes]:
        """Return the snapshots of a space that are whole, the newest first."""
        ...


def salvage(
    path: str | Path,
    out: str | Path,
    *,
    key: KeyForm | None = None,
    secret: bytes | None = None,
    progress: Progress | None = None,
) -> Salvaged:
    """Copy what is provably whole of a damaged store into a new one, and tell what is lost.

    The damaged store is left as it is; close it everywhere first. The new one is of the same backend. A record
    counts as whole when its checksum holds, in a journal when the digest of its line does. What was forgotten stays
    forgotten. What depended on a lost record (links, ends and labels of a lost fact) is left out; where a lost
    fact stood between two others, the newer one supersedes the older one still.

    Args:
        path: the directory of the damaged store.
        out: a directory that does not exist yet, or is empty. The new store has the key and the secret of the old
            one; where that secret is lost, a new one.
        key: the key of the store if it is encrypted.
        secret: the store's secret if it is kept outside, or that of a journal whose journal.key is lost.
        progress: told the rows, or the lines, that were looked at, of all.

    Raises:
        NotFound: there is no store.
        InvalidRequest: `out` is in use, or lies in the directory of this store or another one.
        WrongKey: the key, or the secret, is not that of the store.
        Corrupt: nothing at all is whole; or it is a journal, and its secret is lost.
        Busy, StorageFull, Unavailable. Nothing is left in `out` then.
    """
    source, target, backend = _checked(path, out)
    existed = target.exists()
    try:
        if backend == "journal":
            if key is not None:
                raise InvalidRequest("a journal is not encrypted: leave key out", field="key")
            with journal_kept_from_others(source):
                return _salvaged_journal(source, target, secret, progress)
        form = key() if callable(key) and not isinstance(key, Path) else key
        with kept_from_others(StoreFiles(source)):
            return _salvaged(source, target, secret, form, progress)
    except BaseException:  # raised again: half a store must not be taken for what could be saved
        _clear(target, existed=existed)
        raise


def _salvaged(
    source: Path, target: Path, secret: bytes | None, form: KeyForm | None, progress: Progress | None
) -> Salvaged:
    key = checked_key(form)
    remains, secrets, notes = open_remains(StoreFiles(source), secret, key, progress)
    try:
        work = _Salvage(remains, secrets.secret, notes, renewed=secrets.new)
        _write(work, SqliteLog.open(target, secret=secrets.secret, key=form))
        if secrets.kept:
            keep_secret(target, key, secrets.secret)
    finally:
        remains.close()
    return work.answer()


def _salvaged_journal(
    source: Path, target: Path, secret: bytes | None, progress: Progress | None
) -> Salvaged:
    remains = open_journal_remains(source, secret, progress)
    work = _Salvage(remains, remains.secret, remains.notes, renewed=False)
    work.lost += remains.lost
    if remains.kept:
        create_keeping(target, remains.secret)
    _write(work, JournalLog.open(target, secret=remains.secret))
    return work.answer()


def _write(work: _Salvage, log: Log) -> None:
    """Write what is saved into a new log, verify it and close it."""
    try:
        work.write(log)
        _check(log)
    finally:
        log.close()


class _Salvage:
    """What is being written, and what is told of it in the end."""

    def __init__(self, remains: Remains, secret: bytes, notes: list[str], *, renewed: bool) -> None:
        self._remains, self._secret, self._notes, self._renewed = remains, secret, notes, renewed
        self.lost: list[Finding] = []
        self._facts = self._spaces = 0

    def answer(self) -> Salvaged:
        remains = self._remains
        return Salvaged(
            generation=remains.generation,
            spaces=self._spaces,
            records=remains.records,
            facts=self._facts,
            lost=tuple(self.lost),
            notes=tuple(self._notes),
        )

    def write(self, log: Log) -> None:
        """Write every space of which anything is left."""
        if self._remains.unplaced > 0:
            what = f"of the last records that were acknowledged {counted(self._remains.unplaced, 'is', 'are')} lost, of whichever spaces"
            self.lost.append(Finding(what))
        for number in self._remains.spaces():
            mended = mend(number, self._remains.last(number), partial(self._remains.read, number))
            if mended.gone:
                continue
            self.lost += mended.lost
            first, blocks = mended.first, True
            if first is None:
                first, blocks = self._found_settings(number)

            def entries(
                mended: Mended = mended, first: SpaceRecord = first, blocks: bool = blocks
            ) -> Iterator[Entry]:
                return mended.entries(first, receipts=not self._renewed, blocks=blocks)

            self._write_space(log, number, fold(number, entries, log.secret))

    def _write_space(self, log: Log, number: int, records: Iterator[Record]) -> None:
        first = next(records, None)
        if first is None:
            return
        assert isinstance(first, SpaceRecord)
        space, head = self._create(log, number, first), None
        while chunk := list(islice(records, CHUNK)):
            head = head or log.head(space)
            head = log.append(space, head, Batch([encode(record) for record in chunk]))
            self._facts += sum(isinstance(record, FactRecord) for record in chunk)
        self._spaces += Namespace(first.principal, first.scope) != CONFIGURATION

    def _create(self, log: Log, number: int, first: SpaceRecord) -> int:
        try:
            return log.create_space(self._hashed(first), encode(first))
        except Conflict:
            renamed = _named(first, Namespace(f"salvaged {number}"))
            self._notes.append(
                f"space {number} has the name of another one: it is principal 'salvaged {number}' now"
            )
            return log.create_space(self._hashed(renamed), encode(renamed))

    def _hashed(self, first: SpaceRecord) -> bytes:
        return hashed_name(self._secret, Namespace(first.principal, first.scope))

    def _found_settings(self, number: int) -> tuple[SpaceRecord, bool]:
        """Return a record 1 for a space that lost its own, and whether it has the key of the space's blocks."""
        for blob in self._remains.kept_states(number):
            settings = find_settings(blob)
            if settings is not None:
                self._notes.append(f"record 1 of space {number}, its name, was taken from its kept state")
                return settings, True
        unnamed = Namespace()
        if self._remains.is_named(number, hashed_name(self._secret, unnamed)):
            self._notes.append(
                f"record 1 of space {number} is lost: it is the unnamed one, with the usual settings now"
            )
            return self._usual_settings(unnamed), not self._renewed
        self._notes.append(
            f"record 1 of space {number} is lost, its name with it: it is principal 'salvaged {number}' now, with the "
            "usual settings; what was blocked there is not blocked any more"
        )
        return self._usual_settings(Namespace(f"salvaged {number}")), False

    def _usual_settings(self, name: Namespace) -> SpaceRecord:
        usual = MemoryConfig()
        key = keyed_hash(self._secret, b"block key", name.key())
        return SpaceRecord(name.principal, name.scope, usual.profile, usual.k1, usual.b, 0, key)


def _named(first: SpaceRecord, name: Namespace) -> SpaceRecord:
    return structs.replace(first, principal=name.principal, scope=name.scope)


def _check(log: Log) -> None:
    found = verify_log(log).findings
    if found:
        raise Corrupt(f"what could be saved does not hold together: {found[0].message}")


def _checked(path: str | Path, out: str | Path) -> tuple[Path, Path, Backend]:
    source = checked_path(path)
    backend = find_backend(source)
    if backend is None:
        raise NotFound("there is no store there to save anything of", field="path")
    try:
        return source, checked_target(source, out, "out"), backend
    except OSError as error:
        raise Unavailable(
            f"out cannot be used ({error.strerror}): check that this user may write there"
        ) from error


def _clear(target: Path, *, existed: bool) -> None:
    """Remove what was written of the new store."""
    with suppress(OSError):
        for path in list(target.iterdir()):
            erase(path)
        if not existed:
            target.rmdir()
