"""Reading a journal: its batches, one after the other, give the content that was acknowledged."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from hmac import compare_digest
from pathlib import Path
from typing import NamedTuple

from perdure.base.text import counted
from perdure.errors import Corrupt, Unavailable
from perdure.log.content import ERASED, Content, Row, SpaceContent
from perdure.log.digests import checksum, digest_bytes, digest_sum
from perdure.log.journal.files import Acknowledged
from perdure.log.journal.lines import (
    Digest,
    HeadLine,
    Line,
    RecordLine,
    StoreLine,
    damaged_line,
    find_parts,
    line_digest,
    read_line,
    read_store_line,
)
from perdure.log.protocol import ADVICE, EMPTY, Finding, Head

LEAST_LINE_BYTES = 64  # no line is shorter, so that lost bytes were not more lines than this allows
_START = b'{"v":'  # of a line, and nowhere within one: a quotation mark in a text is escaped


class Place(NamedTuple):
    """How far a journal goes: what lies past it was never acknowledged."""

    lines: int
    bytes: int


def read_first(path: Path) -> StoreLine:
    """Return what line 1 says; Corrupt or Unavailable when it cannot be read."""
    with path.open("rb") as file:
        return read_store_line(file.readline(), path.name)


def replay(path: Path, content: Content, acknowledged: Acknowledged) -> Place:
    """Add all batches of a journal to a content that has no spaces yet; return where the last one ends.

    A last batch of which parts are missing, its head line or bytes of any line, is left out: a process or the
    machine died while it was written.

    Args:
        acknowledged: what the mark says. Where batches behind it were not made durable one by one, several may
            have been lost in part; they are left out from the first such line on.

    Raises:
        Corrupt: any other line is not what was written, or acknowledged ones are missing.
        Unavailable: a newer build wrote it.
    """
    batches = _Batches(content, path.name)
    digest = line_digest(content.secret)
    position = 0
    end = Place(0, 0)
    with path.open("rb") as file:
        for number, raw in enumerate(file, 1):
            position += len(raw)
            if number > 1:
                try:
                    line = read_line(number, raw, digest, path.name)
                except Corrupt:
                    behind = _proven_behind(file, number, raw, digest, path.name)
                    torn = number > acknowledged.lines and _unfinished(raw)
                    if torn and (not acknowledged.synced or batches.is_torn(end.lines, behind)):
                        break
                    raise
                if not batches.take(number, line):
                    continue
            else:
                read_store_line(raw, path.name)
            end = Place(number, position)
    if end.lines < max(acknowledged.lines, 1):
        raise Corrupt(
            f"{path.name} ends after line {end.lines}, but {counted(acknowledged.lines, 'line was', 'lines were')} acknowledged: {ADVICE}"
        )
    return end


def _unfinished(raw: bytes) -> bool:
    # Bytes that never reached the medium are missing or read as zeros, which no line holds.
    return not raw.endswith(b"\n") or b"\0" in raw


def _proven_behind(
    file: Iterable[bytes], number: int, raw: bytes, digest: Digest, name: str
) -> Iterator[tuple[int, Line]]:
    """Yield the lines behind an unreadable one that are what was written, with the numbers that prove them.

    Args:
        file: yields what follows.
        number: of the unreadable line `raw`. It may hold several lines, whose line feeds were lost.
    """
    lost = len(raw)  # bytes since the last line that is known
    for following in file:
        number += 1
        parts = find_parts(following[max(following.rfind(_START), 0) :])
        numbers = range(number, number + lost // LEAST_LINE_BYTES + 1) if parts is not None else ()
        for tried in numbers:
            assert parts is not None
            if compare_digest(digest(tried, parts.before, parts.after), parts.sha):
                yield tried, read_line(tried, parts.raw, digest, name)
                number, lost = tried, 0
                break
        else:
            lost += len(following)


def find_damage(path: Path, content: Content, end: Place) -> Iterator[Finding]:
    """Yield what is wrong with a journal up to the place where its last batch ends, going on after each.

    Args:
        content: without spaces, of the journal's secret.
    """
    digest = line_digest(content.secret)
    batches = _Batches(content, path.name)
    whole = True
    for number, raw in enumerate(_lines(path, end), 1):
        try:
            if number == 1:
                read_store_line(raw, path.name)
            else:
                line = read_line(number, raw, digest, path.name)
                if whole:
                    batches.take(number, line)
        except (Corrupt, Unavailable) as error:
            # What follows a damaged line cannot be added up: from there on each line is checked by itself.
            whole = False
            yield Finding(error.message, error.details.get("space"), error.details.get("seq"))
    size = path.stat().st_size
    if size < end.bytes:
        yield Finding(f"{path.name} has {counted(size, 'byte')}, but {end.bytes} were written: {ADVICE}")


def _lines(path: Path, end: Place) -> Iterator[bytes]:
    with path.open("rb") as file:
        left = end.bytes
        while left > 0 and (raw := file.readline(left)):
            left -= len(raw)
            yield raw


class _Batches:
    """Adds lines to a content, a batch at a time."""

    def __init__(self, content: Content, name: str) -> None:
        self._content = content
        self._name = name
        self._space: int | None = None  # of the batch that is being read
        self._rows: dict[int, Row] = {}
        self._last = 0  # seq of the last row

    def take(self, number: int, line: Line) -> bool:
        """Add one line; return whether it ended its batch. Raises Corrupt when it does not belong here."""
        if self._space not in (None, line.space):
            raise self._misplaced(number, line)
        if self._space is None:
            self._space, self._last = line.space, self._content.space(line.space).head.seq
        match line.said:
            case RecordLine(data):
                if line.seq <= self._last:
                    raise self._misplaced(number, line)
                self._last = line.seq
                self._rows[line.seq] = Row(data, checksum(line.space, line.seq, data))
                return False
            case HeadLine() as said:
                if not self._add(line, said):
                    raise self._misplaced(number, line)
                self._space, self._rows = None, {}
                return True
            case _:
                raise self._misplaced(number, line)

    def is_torn(self, after: int, behind: Iterable[tuple[int, Line]]) -> bool:
        """Whether all lines that are whole behind an unreadable one are of the batch that was being read.

        Args:
            after: the number of the line that ended the batch before it.
            behind: the lines, with their numbers. Those of a later batch stand where no line of this one would.
        """
        ended = False
        for number, line in behind:
            if ended or self._space not in (None, line.space):
                return False
            self._space = line.space
            records = line.seq - self._content.space(line.space).head.seq
            ended = isinstance(line.said, HeadLine)
            if isinstance(line.said, HeadLine):
                records += 1 - len(line.said.erased)
            if number - after != records:
                return False
        return True

    def _add(self, line: Line, said: HeadLine) -> bool:
        """Add the batch that a head line ends; return False when they do not agree."""
        content, number = self._content, line.space
        new = number == len(content.spaces) + 1
        space = SpaceContent(EMPTY._replace(epoch=content.epoch)) if new else content.space(number)
        seqs = range(space.head.seq + 1, line.seq + 1)
        if sorted([*self._rows, *said.erased]) != list(seqs) or not (new or space.rows):
            return False
        rows = [self._rows.get(seq, ERASED) for seq in seqs]
        live = [(seq, row.check) for seq, row in self._rows.items()]
        total = int.from_bytes(space.head.digest, "little") + digest_sum(content.secret, live)
        head = Head(content.epoch, line.seq, space.head.erasures + len(said.erased), digest_bytes(total))
        if (head.erasures, head.digest) != (said.erasures, said.digest) or not self._named(new, rows, said):
            return False
        space.rows.extend(rows)
        space.keys.update(said.keys)
        space.head = head
        if new:
            content.spaces.append(space)
        if said.name is not None:
            content.names[said.name] = number
        return all(1 <= seq <= head.seq for _, seq in said.keys)

    def _named(self, new: bool, rows: list[Row], said: HeadLine) -> bool:
        """Whether the head line has a name only where it begins a space that may have one."""
        return said.name is None if not new else bool(rows) and (said.name is None or rows[0] is not ERASED)

    def _misplaced(self, number: int, line: Line) -> Corrupt:
        return damaged_line(self._name, number, space=line.space, seq=line.seq)
