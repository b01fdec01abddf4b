"""Import: the lines of an export into a store, whole or not at all, or whatever of them is good.

A strict import reads the file twice: first it judges every line, then it writes. Both are the same walk over the
lines, which differs in what takes the records (`Judged` or `Written`).
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import BinaryIO, Literal

from perdure.base.text import counted
from perdure.errors import Busy, Conflict, ImportFailed, InvalidRequest, PerdureError, StorageFull
from perdure.log.protocol import Log, Progress
from perdure.log.records import ChangeSetRecord, FactRecord, ReceiptRecord
from perdure.model.namespace import Namespace
from perdure.model.stores import Imported, Problem
from perdure.planning.checks import checked_flag
from perdure.space.node_rules import NodeRules
from perdure.transfer.checking import record_of, space_of
from perdure.transfer.governed import Unsettled
from perdure.transfer.lines import Header, RecordLine, SpaceEndLine, SpaceLine, TotalLine, secret_mark
from perdure.transfer.merging import Item
from perdure.transfer.reading import Read, Refused, named_as_in_file, read_header, read_lines
from perdure.transfer.reports import checked_space, checked_spaces
from perdure.transfer.sections import Judged, Place, Spaces, Stopped, Verdict, Written, find_place
from perdure.transfer.sources import Rereadable, Source, opened, size_of

CHUNK_RECORDS = 1_000  # a transaction: more of them save little and keep other writers waiting longer
CHUNK_BYTES = 4 * 1024 * 1024
TOGETHER_MAX = 16  # chunks that lines which hang together may make one of
PROBLEMS_MAX = 10_000  # that are kept; a file with more is no export
SHOWN_MAX = 3  # that the message of an error names
LOST = "; the rest of the space is left out, since the beginning of another may be lost with this line"

Committed = Literal["yes", "no", "unknown"]


@dataclass(frozen=True, slots=True)
class Options:
    """How to import.

    Args:
        dry_run: write nothing, and report every problem.
        strict: when anything is wrong anywhere, write nothing and raise. Else write what is good, and report
            the rest; a line that names a fact that was left out is left out too, and after a line that cannot
            be read at all so is the rest of its space.
        spaces: which of the file's spaces to import; all when None.
        into: the name under which the one chosen space is stored.
    """

    dry_run: bool = False
    strict: bool = True
    spaces: Collection[Namespace] | None = None
    into: Namespace | None = None

    def __post_init__(self) -> None:
        checked_flag(self.dry_run, "dry_run")
        checked_flag(self.strict, "strict")
        object.__setattr__(self, "spaces", checked_spaces(self.spaces))
        if self.into is not None:
            checked_space(self.into, field="into")


def import_lines(
    log: Log,
    spaces_of: Spaces,
    source: Source,
    options: Options,
    progress: Progress | None = None,
) -> Imported:
    """Store what an export holds: facts with their ids and ingest times, and all that was said of them.

    Importing again stores nothing; importing a later export of the same spaces, or one that was imported in part,
    stores what is missing. What was forgotten, restored or changed in the source since is not undone here. Facts
    that a space was told by itself stay, but those of the file must be recorded after them. No policy runs and no
    observer is told. Records are written in file order, in transactions of at most 1,000, each durable before the
    next; a failed one is not tried again. Lines of a node or a turn and of its facts go into one transaction, which
    is larger where it must be.

    Others may write meanwhile. Of a fact that is forgotten then, nothing more is stored: lines that name it are
    refused. After a purge, or an erasure of the memory, the import stops, since facts have other numbers then.

    An import that is not strict leaves out what it cannot read. After a line that is no whole object nothing is
    taken until the next space begins: what was lost with it may be the beginning of one, and no memory is to get
    what belongs to another.

    Args:
        log: the store's.
        spaces_of: gives the process's one Space of a name.
        source: a path, a binary stream, or the pieces of bytes that `export` gives. What cannot be read twice
            is copied to a temporary file for a strict import, which is overwritten with zeros at the end.
        progress: told the bytes that are read, of all (of 0 where that cannot be told).

    Raises:
        InvalidRequest: the file cannot be opened.
        ImportFailed: the file is none of this format or of a newer version, it is wrong and the import strict, or
            reading or writing failed. `committed` says whether anything was stored; `problems` in its details are
            the lines and reasons.
    """
    with opened(source) as stream:
        if not options.strict and not options.dry_run:
            return _walk(log, spaces_of, stream, options, _Reading(progress, 1), writes=True)
        again = Rereadable(stream)
        try:
            reading = _Reading(progress, 1 if options.dry_run else 2)
            judged = _walk(log, spaces_of, again.first, options, reading, writes=False)
            if options.dry_run:
                return judged
            if judged.problems:
                raise _failed(judged.problems, "no")
            return _walk(log, spaces_of, again.again(), options, reading, writes=True)
        finally:
            again.close()


class _Reading:
    """Counts the bytes that were read, over all the times that the file is read."""

    def __init__(self, progress: Progress | None, times: int) -> None:
        self._progress, self._times, self._done, self._of = progress, times, 0, 0

    def begin(self, stream: BinaryIO) -> None:
        if self._progress is not None:
            self._of = self._of or size_of(stream) * self._times

    def add(self, size: int) -> None:
        self._done += size
        if self._progress is not None:
            self._progress(self._done, self._of)


def _walk(
    log: Log, spaces_of: Spaces, stream: BinaryIO, options: Options, reading: _Reading, *, writes: bool
) -> Imported:
    walk = _Walk(log, spaces_of, options, writes=writes)
    reading.begin(stream)
    try:
        walk.begin(read_header(stream))
    except Refused as refused:
        problem = Problem(1, refused.reason)
        if options.dry_run:
            return walk.report((problem,))
        raise _failed((problem,), "no") from refused
    try:
        for read in read_lines(stream):
            walk.take(read)
            reading.add(read.size)
        walk.end()
    except Stopped as stopped:
        raise _failed((Problem(stopped.line, stopped.refused.reason),), walk.committed) from stopped
    except PerdureError as error:
        raise _overtaken(error, walk) from error
    report = walk.report()
    if writes and options.strict and report.problems:  # the file is another one than that which was judged
        raise _failed(report.problems, walk.committed)
    return report


class _Section:
    """The space whose lines are read now. `target` is None where they are passed over or cannot be stored."""

    def __init__(self, name: Namespace | None, target: Judged | Written | None, *, is_chosen: bool) -> None:
        self.name, self.target, self.is_chosen = name, target, is_chosen
        self.facts = self.documents = self.records = self.bad = 0
        self.items: list[Item] = []
        self.size = 0
        self.unsettled = Unsettled()
        self.rules = NodeRules()

    @property
    def is_due(self) -> bool:
        """Whether the lines that are waiting are to be stored: enough of them, and none without what it needs."""
        chunks = max(len(self.items) / CHUNK_RECORDS, self.size / CHUNK_BYTES)
        is_whole = not self.unsettled and self.rules.is_settled
        return chunks >= TOGETHER_MAX or (chunks >= 1 and is_whole)


class _Walk:
    """Goes over the lines of a file once."""

    def __init__(self, log: Log, spaces_of: Spaces, options: Options, *, writes: bool) -> None:
        self._log, self._spaces_of, self._options, self._writes = log, spaces_of, options, writes
        self._section: _Section | None = None
        self._named: set[Namespace] = set()
        self._imported: list[Namespace] = []
        self._problems: list[Problem] = []
        self._spaces = self._records = self._last = 0
        self._is_foreign = self._is_over = False
        self._is_into_taken = (
            False  # a space of the file had its turn to be the one that goes into another name
        )
        self._created = self._existing = self._skipped = self._facts = self._foreign = 0
        self.committed: Committed = "no"
        self.is_writing = False

    def begin(self, header: Header) -> None:
        self._is_foreign = header.secret != secret_mark(self._log.secret)
        self._last = 1

    def report(self, problems: tuple[Problem, ...] = ()) -> Imported:
        return Imported(
            self._created,
            self._existing,
            self._skipped,
            self._facts,
            tuple(self._imported),
            problems or tuple(sorted(self._problems, key=lambda problem: problem.line)),
            self._foreign,
            dry_run=self._options.dry_run,
        )

    def take(self, read: Read) -> None:
        self._last = read.number
        if self._is_over:
            self._note(read.number, "stands after the line that ends the file")
        elif isinstance(read.line, Refused):
            self._unread(read.number, read.line)
        elif isinstance(read.line, SpaceLine):
            self._open(read.number, read.line)
        elif isinstance(read.line, SpaceEndLine):
            self._close(read.number, read.line)
        elif isinstance(read.line, TotalLine):
            self._total(read.number, read.line)
        else:
            self._record(read, read.line)

    def end(self) -> None:
        """The file is at its end."""
        if self._section is not None:
            self._flush(self._section)
        if not self._is_over:
            self._note(self._last, "the file ends after this line, before the line that ends it: it was cut")
        absent = set(self._options.spaces or ()) - self._named
        if absent:
            self._note(
                1,
                f"of the spaces that are to be imported {counted(len(absent), 'is', 'are')} not in the file",
            )

    def _note(self, line: int, reason: str) -> None:
        if len(self._problems) < PROBLEMS_MAX:
            self._problems.append(Problem(line, named_as_in_file(reason)))  # as the file names fields

    def _refuse(self, line: int, reason: str) -> None:
        """Leave out a line that was to be a record."""
        self._note(line, reason)
        self._skipped += 1
        self._records += 1
        if self._section is not None:
            self._section.records += 1
            self._section.bad += 1

    def _unread(self, line: int, refused: Refused) -> None:
        """Leave out a line that could not be decoded."""
        if refused.kind == "space":
            self._open(line, refused)
        elif refused.kind or (self._options.strict and not self._writes):
            self._refuse(line, refused.reason)
        else:
            self._refuse(line, refused.reason + LOST)
            self._lose()

    def _lose(self) -> None:
        """Take nothing more of this space, if it still is this one."""
        self._take_into()
        if self._section is not None:
            self._flush(self._section)
            self._section.target = None

    def _take_into(self) -> None:
        """A space is met whose name is not known: where more than one may be meant, it may be the one."""
        chosen = self._options.spaces
        self._is_into_taken = self._is_into_taken or chosen is None or len(chosen) > 1

    def _open(self, line: int, told: SpaceLine | Refused) -> None:
        if self._section is not None:
            self._note(line, "begins a space before the last one is ended")
            self._flush(self._section)
        self._spaces += 1
        try:
            self._section = self._begun(told)
        except Refused as refused:
            self._note(line, refused.reason)
            self._section = _Section(None, None, is_chosen=True)

    def _begun(self, told: SpaceLine | Refused) -> _Section:
        try:
            if isinstance(told, Refused):
                raise told
            first = space_of(told)
        except (Refused, InvalidRequest) as error:
            self._take_into()
            raise Refused(error.reason if isinstance(error, Refused) else error.message) from error
        name = Namespace(first.principal, first.scope)
        if name in self._named:
            raise Refused("repeats the name of an earlier space")
        self._named.add(name)
        if self._options.spaces is not None and name not in self._options.spaces:
            return _Section(name, None, is_chosen=False)
        if self._options.into is not None and self._is_into_taken:
            raise Refused("is a second space, but into takes one: choose one of the file's spaces (spaces)")
        self._is_into_taken = True
        place = find_place(self._log, self._spaces_of, first, self._options.into or name)
        self._imported.append(name)
        return _Section(name, self._target(place), is_chosen=True)

    def _target(self, place: Place) -> Judged | Written:
        return Written(place, strict=self._options.strict) if self._writes else Judged(place)

    def _close(self, line: int, told: SpaceEndLine) -> None:
        section = self._section
        if section is None:
            self._note(line, "ends a space, but none was begun")
            return
        self._flush(section)
        known = {problem.line for problem in self._problems}
        for what, at in section.rules.ends():
            if at not in known:
                self._note(at, what)
        if told.records != section.records:
            self._note(
                line,
                f"the space was written with {counted(told.records, 'record')}, but {section.records} are there",
            )
        elif not section.bad and (told.facts, told.documents) != (section.facts, section.documents):
            self._note(
                line,
                f"the space was written with {counted(told.facts, 'fact')} and {counted(told.documents, 'document')}, but {section.facts} "
                f"and {section.documents} are there",
            )
        self._section = None

    def _total(self, line: int, told: TotalLine) -> None:
        if self._section is not None:
            self._note(line, "ends the file before the last space is ended")
            self._flush(self._section)
            self._section = None
        self._is_over = True
        if (told.spaces, told.records) != (self._spaces, self._records):
            self._note(
                line,
                f"the file was written with {counted(told.spaces, 'space')} and {counted(told.records, 'record')}, but {self._spaces} and "
                f"{self._records} are there",
            )

    def _record(self, read: Read, line: RecordLine) -> None:
        section = self._section
        if section is None:
            self._refuse(read.number, "stands in no space")
            return
        try:
            record = record_of(line)
        except InvalidRequest as error:
            self._refuse(read.number, error.message)
            return
        if section.is_chosen and (wrong := list(section.rules.see(read.number, record))):
            self._refuse(read.number, wrong[0])
            return
        self._records += 1
        section.records += 1
        if isinstance(record, FactRecord):
            section.facts, section.documents = (
                section.facts + (not record.version),
                section.documents + (record.version > 0),
            )
        if section.target is None:
            self._skipped += section.is_chosen
            return
        section.items.append(Item(read.number, record))
        section.size += read.size
        section.unsettled.see(record)
        if section.is_due:
            self._flush(section)

    def _flush(self, section: _Section) -> None:
        items, section.items, section.size = section.items, [], 0
        section.unsettled.settle()
        if section.target is None or not items:
            return
        self.is_writing = self._writes
        verdicts = section.target.take(items)
        self.is_writing = False
        for item, verdict in zip(items, verdicts, strict=True):
            self._tally(item, verdict, section)

    def _tally(self, item: Item, verdict: Verdict, section: _Section) -> None:
        if isinstance(verdict, Refused):
            self._note(item.line, verdict.reason)
            self._skipped += 1
            section.bad += 1
            return
        if not verdict:
            self._existing += 1
            return
        self._created += 1
        self._facts += isinstance(item.record, FactRecord)
        self._foreign += self._is_foreign and isinstance(item.record, ReceiptRecord | ChangeSetRecord)
        if self._writes:
            self.committed = "yes"


def _overtaken(error: PerdureError, walk: _Walk) -> ImportFailed:
    """Return what to raise when the store, or the stream, failed."""
    committed = walk.committed
    if committed == "no" and walk.is_writing and not isinstance(error, Busy | StorageFull | Conflict):
        committed = "unknown"  # of the others it is not known that they leave nothing
    return ImportFailed(
        f"{error.message}; {_STORED[committed]}",
        committed=committed,
        cause=error.code,
    )


_STORED: dict[Committed, str] = {
    "no": "nothing was stored",
    "yes": "what was stored before stays: import again to store the rest",
    "unknown": "whether anything was stored is not known: import again, which stores what is missing",
}


def _failed(problems: tuple[Problem, ...], committed: Committed) -> ImportFailed:
    shown = "; ".join(f"line {problem.line}: {problem.reason}" for problem in problems[:SHOWN_MAX])
    more = f"; and {len(problems) - SHOWN_MAX} more" if len(problems) > SHOWN_MAX else ""
    return ImportFailed(
        f"{shown}{more}; {_STORED[committed]}",
        committed=committed,
        problems=[{"line": problem.line, "reason": problem.reason} for problem in problems],
    )
