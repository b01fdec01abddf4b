"""Export: what spaces hold at one moment, as lines of JSON, in bounded memory, while writers go on.

A cut is taken at the start: the heads of all spaces at one moment. Each space is read up to its head of the cut,
whatever is written meanwhile. What is forgotten meanwhile can be read no more, and reading on without it would
tear what stood around it, so a space in which anything was erased since is read as of a later moment, whole.
A space is written to a file of its own first, and yielded when it is known that nothing was erased under the
reading; where that happens again and again, writers wait for the last attempt.
"""

from __future__ import annotations

import os
import stat
import tempfile
from collections.abc import Collection, Iterator
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import BinaryIO, NamedTuple

import msgspec

from perdure.base.disk import FULL, overwrite
from perdure.base.text import counted
from perdure.errors import Busy, Corrupt, InvalidRequest, Moved, NotFound, StorageFull, Unavailable
from perdure.filters.grammar import Filter
from perdure.log.places import checked_path, is_store
from perdure.log.protocol import ANY_ADVICE, Entry, Head, Log, Progress, Read
from perdure.log.records import BlockRecord, FactRecord, Record, SpaceRecord, decode
from perdure.model.namespace import CONFIGURATION, Namespace
from perdure.model.stores import Exported
from perdure.planning.checks import checked_flag
from perdure.space.folding import fold
from perdure.space.names import hashed_name
from perdure.space.quotes import all_joined
from perdure.transfer.lines import (
    VERSION,
    Header,
    ReceiptLine,
    Selected,
    SpaceEndLine,
    TotalLine,
    encode_line,
    secret_mark,
)
from perdure.transfer.reading import LINE_BYTES_MAX
from perdure.transfer.reports import checked_spaces
from perdure.transfer.selecting import read_matching
from perdure.transfer.writing import lines_of, moment_of, space_line

ATTEMPTS = 3  # the last one with the writer's turn
MEMORY_BYTES_MAX = 4 * 1024 * 1024  # of a space that is kept in memory before a file is used
STEP_BYTES = 1 << 16


class _Cut(NamedTuple):
    """The spaces of a log at one moment, in its order, and where each stood."""

    names: tuple[Namespace, ...]
    heads: dict[Namespace, tuple[int, Head]]


class _Counted(NamedTuple):
    facts: int
    documents: int
    records: int


@dataclass(frozen=True, slots=True)
class Asked:
    """What to export.

    Args:
        now: what the header says of when it was made, in ms.
        spaces: which to export, in the store's order; all when None.
        blocks: whether to export what was forgotten with a block as keyed digests, with their key.
        filter: export each space as though the facts and documents that do not match had been forgotten in it.
    """

    now: int
    spaces: Collection[Namespace] | None = None
    blocks: bool = False
    filter: Filter | None = None

    def __post_init__(self) -> None:
        checked_flag(self.blocks, "blocks")
        object.__setattr__(self, "spaces", checked_spaces(self.spaces))


def export(log: Log, asked: Asked, progress: Progress | None = None) -> Iterator[bytes]:
    """Return the lines of an export, each with its line feed; the format is in docs/export-format.md.

    The cut is taken by the call, the spaces are read as the lines are asked for. A space is kept in memory up to
    4 MiB, else in a temporary file that nobody else can open and that is overwritten with zeros at the end, until
    it is yielded.

    Args:
        log: the store's.
        progress: told the spaces that are done, of all.

    Raises:
        NotFound: a space that was asked for holds nothing.
        Corrupt, Unavailable: a record cannot be read.
        Busy: the writer's turn could not be had where it was needed.
        StorageFull: there is no room for the temporary file.
    """
    cut = _take_cut(log)
    total = _Total(_chosen(cut, asked.spaces), progress)
    return _lines(log, cut, total, asked)


def _lines(log: Log, cut: _Cut, total: _Total, asked: Asked) -> Iterator[bytes]:
    yield encode_line(_header(log, asked))
    for name in total.chosen:
        with _spool() as spool:
            total.add(_write_space(log, name, cut, spool, asked))
            spool.seek(0)
            yield from spool
    yield total.line()


def export_to(
    log: Log, path: str | Path, asked: Asked, *, force: bool = False, progress: Progress | None = None
) -> Exported:
    """Write an export into a file, whole or not at all; arguments and errors as in `export`.

    The lines are written beside it, under a name of their own and readable by the owner alone, and moved there
    when they are on the disk. Whatever fails, what stood there is as it was.

    Args:
        path: a new file, in no store's directory.
        force: write over a file that is there. A link, a folder or a device is never written to.

    Raises:
        InvalidRequest: the path is none, is taken, or lies within a store.
        StorageFull, Unavailable: it cannot be written.
    """
    target, force = checked_path(path), checked_flag(force, "force")
    _check_target(target, force=force)
    with _outside():
        descriptor, name = tempfile.mkstemp(prefix=".perdure-", suffix=".partial", dir=target.parent)
    partial = Path(name)
    try:
        with _outside(), os.fdopen(descriptor, "w+b") as stream:  # closing it writes too
            done = _write(log, stream, asked, progress)
            stream.flush()
            os.fsync(stream.fileno())
        # What came into being meanwhile is somebody's as well.
        _check_target(target, force=force)
        with _outside():
            partial.replace(target)
    finally:
        with suppress(OSError):  # of a failed export: what made it fail is what is told
            overwrite(partial)
        partial.unlink(missing_ok=True)
    return done


def _write(log: Log, stream: BinaryIO, asked: Asked, progress: Progress | None) -> Exported:
    cut = _take_cut(log)
    total = _Total(_chosen(cut, asked.spaces), progress)
    _put(stream, encode_line(_header(log, asked)))
    for name in total.chosen:
        total.add(_write_space(log, name, cut, stream, asked))
    _put(stream, total.line())
    return Exported(total.spaces, total.facts, total.records, stream.tell())


class _Total:
    """Counts what is written."""

    def __init__(self, chosen: tuple[Namespace, ...], progress: Progress | None) -> None:
        self.chosen, self._done, self._progress = chosen, 0, progress
        self.spaces = self.facts = self.records = 0

    def add(self, counted: _Counted | None) -> None:
        self._done += 1
        if counted is not None:
            self.spaces += 1
            self.facts += counted.facts + counted.documents
            self.records += counted.records
        if self._progress is not None:
            self._progress(self._done, len(self.chosen))

    def line(self) -> bytes:
        return encode_line(TotalLine(self.spaces, self.records))


def _header(log: Log, asked: Asked) -> Header:
    spaces = None
    if asked.spaces is not None:
        spaces = tuple(Selected(*name) for name in sorted((n.principal, n.scope) for n in asked.spaces))
    try:
        generator = f"perdure {version('perdure')}"
    except PackageNotFoundError:  # a source tree that nobody installed
        generator = "perdure"
    return Header(VERSION, asked.now, generator, spaces, asked.blocks, secret_mark(log.secret))


def _take_cut(log: Log) -> _Cut:
    """Return where all spaces stood at one moment."""
    for _ in range(ATTEMPTS):
        epoch, heads = log.epoch(), _heads(log)
        try:
            cut = _named(log, heads)
        except Moved:
            continue
        # Heads only move on: what two looks find alike stood so between them.
        if _heads(log) == heads and log.epoch() == epoch:
            return cut
    with log.writer():
        return _named(log, _heads(log))


def _heads(log: Log) -> dict[int, Head]:
    return {number: log.head(number) for number in log.spaces()}


def _named(log: Log, heads: dict[int, Head]) -> _Cut:
    found = {}
    for number, head in heads.items():
        for entry in log.read(number, 0, 1):
            record = None if entry.data is None else decode(entry.data, space=number, seq=1)
            if isinstance(record, SpaceRecord):
                found[Namespace(record.principal, record.scope)] = (number, head)
    found.pop(CONFIGURATION, None)  # where an export goes to, another one may hold
    return _Cut(tuple(found), found)


def _chosen(cut: _Cut, spaces: Collection[Namespace] | None) -> tuple[Namespace, ...]:
    if spaces is None:
        return cut.names
    if absent := len(set(spaces) - set(cut.names)):
        raise NotFound(
            f"of {counted(len(set(spaces)), 'space')} to be exported {counted(absent, 'holds', 'hold')} nothing; "
            "leave them out, or correct their principal and scope",
            field="spaces",
        )
    return tuple(name for name in cut.names if name in spaces)


def _write_space(log: Log, name: Namespace, cut: _Cut, stream: BinaryIO, asked: Asked) -> _Counted | None:
    """Write the lines of a space at the end of the stream; None when nothing is left of it."""
    start = stream.tell()
    for attempt in range(ATTEMPTS):
        with log.writer() if attempt == ATTEMPTS - 1 else nullcontext():
            place = _place(log, name, cut)
            if place is None:
                return None
            try:
                counted = _write_records(log, place, stream, asked)
            except (Moved, Corrupt):
                # An erasure under the reading leaves a hole that the records read do not explain.
                if _is_still(log, place):
                    raise
            else:
                if _is_still(log, place):
                    return counted
        with _outside():
            stream.seek(start)
            stream.truncate()
    raise Busy("the store is being erased from again and again; export again")


def _place(log: Log, name: Namespace, cut: _Cut) -> tuple[int, Head] | None:
    """Return the space's number, and up to which head it is read: that of the cut unless it was erased from."""
    number: int | None
    for _ in range(ATTEMPTS):
        epoch = log.epoch()
        number, head = cut.heads[name]
        is_purged = epoch != head.epoch
        if is_purged:
            number = log.find_space(hashed_name(log.secret, name))  # spaces have other numbers now
            if number is None:
                return None
        now = log.head(number)
        if log.epoch() == epoch:
            if now.epoch != epoch or not now.seq:
                raise Corrupt(
                    f"space {number} is empty, or of another epoch than the store: {ANY_ADVICE}", space=number
                )
            return number, head if not is_purged and now.erasures == head.erasures else now
    raise Busy("the store is being purged again and again; export again")


def _is_still(log: Log, place: tuple[int, Head]) -> bool:
    number, head = place
    return log.head(number).erasures == head.erasures and log.epoch() == head.epoch


def _reader(log: Log, place: tuple[int, Head], wanted: Filter | None) -> Read:
    number, head = place

    def read() -> Iterator[Entry]:
        return log.read(number, 0, head.seq)

    return read if wanted is None else read_matching(log, number, head, wanted)


def _write_records(log: Log, place: tuple[int, Head], stream: BinaryIO, asked: Asked) -> _Counted | None:
    facts = documents = records = 0
    first: SpaceRecord | None = None
    is_begun = False
    for record in all_joined(fold(place[0], _reader(log, place, asked.filter), log.secret)):
        if isinstance(record, SpaceRecord):
            first = record
            continue
        if isinstance(record, BlockRecord) and not asked.blocks:
            continue
        assert first is not None
        if not is_begun:
            is_begun = True
            _put(stream, encode_line(space_line(_dated(first, record), blocks=asked.blocks)))
        for line in lines_of(record):
            data = encode_line(line)
            if len(data) > LINE_BYTES_MAX and isinstance(line, ReceiptLine):
                continue  # the answer to a request of very many facts, which can be told again without it
            _put(stream, data)
            records += 1
        if isinstance(record, FactRecord):
            facts, documents = facts + (not record.version), documents + (record.version > 0)
    if not is_begun:
        return None
    _put(stream, encode_line(SpaceEndLine(facts, documents, records)))
    return _Counted(facts, documents, records)


def _dated(first: SpaceRecord, record: Record) -> SpaceRecord:
    """Return the space as created with its first record that is exported: one that is not would date it else."""
    moment = moment_of(record)
    return first if moment is None else msgspec.structs.replace(first, created_at=moment)


def _put(stream: BinaryIO, data: bytes) -> None:
    with _outside():
        stream.write(data)


@contextmanager
def _spool() -> Iterator[BinaryIO]:
    """Give a file of our own, which is gone with its content afterwards."""
    with tempfile.SpooledTemporaryFile(MEMORY_BYTES_MAX) as spool:
        try:
            yield spool  # type: ignore[misc]  # all of a binary file that is used here
        finally:
            size = spool.seek(0, os.SEEK_END)
            if size > MEMORY_BYTES_MAX:
                spool.seek(0)
                for done in range(0, size, STEP_BYTES):
                    spool.write(bytes(min(STEP_BYTES, size - done)))
                spool.flush()
                os.fsync(spool.fileno())


def _check_target(path: Path, *, force: bool) -> None:
    with _outside():
        folder = Path(os.path.realpath(path.parent))
        is_within = any(map(is_store, (folder, *folder.parents)))
    if is_within:
        raise InvalidRequest(
            "path lies within a store, where a purge would not find what it must erase: give another",
            field="path",
        )
    try:
        mode = path.lstat().st_mode
    except OSError:
        return  # it is not there, or making it will say what is wrong
    if not stat.S_ISREG(mode):
        raise InvalidRequest("the output is a link, a folder or a device; name a file", field="path")
    if not force:
        raise InvalidRequest("the output file exists; force=True (--force) writes over it", field="path")


@contextmanager
def _outside() -> Iterator[None]:
    try:
        yield
    except OSError as error:
        kind = StorageFull if error.errno in FULL else Unavailable
        raise kind(f"the output cannot be written: {error.strerror}") from error
