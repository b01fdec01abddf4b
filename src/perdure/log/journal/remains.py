"""What the lines of a damaged journal that still hold say together: rows, erasures and heads, space by space."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from perdure.log.digests import checksum, digest_bytes, digest_sum
from perdure.log.journal.lines import HeadLine, Line, RecordLine, line_digest, read_line
from perdure.log.journal.proving import Proven
from perdure.log.protocol import EMPTY, Entry, Finding, Head

_ADVICE = "take away what is from an older copy of the journal, then salvage again"


@dataclass(slots=True)
class _Space:
    rows: dict[int, bytes] = field(default_factory=dict)  # by seq
    erased: set[int] = field(default_factory=set)
    head: Head = EMPTY  # the last one that was found
    name: bytes | None = None


class JournalRemains:
    """What is whole of a journal. `lost` and `notes` tell of its lines; what a space lacks is not among them."""

    unplaced = 0  # `lost` tells of what is lost without a trace of whose it was

    def __init__(self, generation: int, name: str, secret: bytes, *, kept: bool) -> None:
        """Of the file of this name; `kept`: journal.key keeps the secret."""
        self.generation, self.secret, self.kept = generation, secret, kept
        self.lost: list[Finding] = []
        self.notes: list[str] = []
        self._name = name
        self._spaces: dict[int, _Space] = {}

    @property
    def records(self) -> int:
        """How many records are whole and not erased."""
        return sum(len(space.rows) for space in self._spaces.values())

    def spaces(self) -> list[int]:
        """Return the numbers of the spaces of which anything is left, ascending."""
        return sorted(self._spaces)

    def last(self, space: int) -> int:
        """Return the number of the last record that the space is known to have had."""
        found = self._spaces[space]
        return max([found.head.seq, *found.rows, *found.erased])

    def read(self, space: int) -> Iterator[Entry]:
        """Yield what is whole of a space in order; data is None where it was erased. What is lost is left out."""
        found = self._spaces[space]
        for seq in sorted({*found.rows, *found.erased}):
            yield Entry(seq, found.rows.get(seq))

    def is_named(self, space: int, name: bytes) -> bool:
        """Whether a line says that the space has this name."""
        return self._spaces[space].name == name

    def kept_states(self, space: int) -> list[bytes]:
        """Return nothing: a journal keeps no snapshots."""
        return []

    def take(self, proven: Sequence[Proven], acknowledged: int) -> None:
        """Take the lines of one generation after its first.

        Args:
            proven: in the order of the file.
            acknowledged: how many lines there were at the least, 0 where that is not known. What comes after
                them counts only in whole batches, and as long as they add up.
        """
        digest = line_digest(self.secret)
        chosen = self._chosen(proven)
        lines = {found.number: read_line(found.number, found.raw, digest, self._name) for found in chosen}
        heads = (number for number, line in lines.items() if isinstance(line.said, HeadLine))
        limit = acknowledged or max(heads, default=0)
        for number in self._agreeing(chosen, {n: line for n, line in lines.items() if n <= limit}):
            self._add(lines[number])
        self._add_beyond(lines, limit)
        for space in self._spaces.values():
            for seq in space.erased:  # what was erased stays erased, whatever else is found of it
                space.rows.pop(seq, None)
        self._check_sums()
        self._tell_lost(lines, max(acknowledged, *lines, 1))

    def _chosen(self, proven: Sequence[Proven]) -> list[Proven]:
        """Return one line for each number, ascending; of different ones the one that stands in sequence."""
        standing = {(found.place, found.number) for found in proven}
        by_number: dict[int, dict[bytes, Proven]] = {}
        for found in proven:
            known = by_number.setdefault(found.number, {})
            known[found.raw] = max(known.get(found.raw, found), found, key=lambda one: _fit(one, standing))
        chosen = []
        for number, several in sorted(by_number.items()):
            best = _best(list(several.values()), standing)
            if best is not None:
                chosen.append(best)
            else:
                self.lost.append(
                    Finding(
                        f"{len(several)} different lines {number} of {self._name} hold: none is taken for it"
                    )
                )
        return chosen

    def _agreeing(self, chosen: Sequence[Proven], lines: dict[int, Line]) -> list[int]:
        """Return the numbers of the lines, without records that differ in one place."""
        standing = {(found.place, found.number) for found in chosen}
        by_place: dict[tuple[int, int], list[Proven]] = {}
        for found in chosen:
            line = lines.get(found.number)
            if line is not None and isinstance(line.said, RecordLine):
                by_place.setdefault((line.space, line.seq), []).append(found)
        left_out: set[int] = set()
        for (space, seq), several in by_place.items():
            if len({lines[found.number].said for found in several}) > 1:
                best = _best(several, standing)
                left_out.update(found.number for found in several if found is not best)
                if best is None:
                    told = f"record {seq} of space {space} is there in {len(several)} ways"
                    self.lost.append(Finding(f"{told}, none of which is taken: {_ADVICE}", space, seq))
        return [number for number in lines if number not in left_out]

    def _add(self, line: Line) -> None:
        space = self._spaces.setdefault(line.space, _Space())
        if isinstance(line.said, RecordLine):
            space.rows[line.seq] = line.said.data
        elif isinstance(line.said, HeadLine):
            space.erased.update(line.said.erased)
            space.head = Head(0, line.seq, line.said.erasures, line.said.digest)
            space.name = space.name or line.said.name

    def _add_beyond(self, lines: dict[int, Line], limit: int) -> None:
        """Add the batches after the mark that are whole; after one that does not add up, nothing counts any more."""
        batch: dict[int, Line] = {}
        foreign = False
        before = limit  # the number of the line that ended the batch before
        for number, line in lines.items():
            if number <= limit:
                continue
            batch[number] = line
            if not isinstance(line.said, HeadLine):
                continue
            whole = list(batch) == list(range(before + 1, number + 1))
            adds_up = self._adds_up(list(batch.values()), line, line.said) if whole and not foreign else None
            foreign = foreign or adds_up is False
            if whole and not foreign:
                for each in batch.values():
                    self._add(each)
            if whole and not foreign and adds_up is None:
                self._note_doubt(line.space)
            elif not whole or foreign:
                told = f"the batch in lines {min(batch)} to {number} of {self._name} is not whole"
                self.lost.append(Finding(f"{told}, and nothing says that it was acknowledged", line.space))
            batch, before = {}, number
        if batch:
            self.notes.append(
                f"line {min(batch)} of {self._name} begins a last batch that has no end, and nothing says that it was "
                "acknowledged: it is left out"
            )

    def _adds_up(self, batch: Sequence[Line], head: Line, said: HeadLine) -> bool | None:
        """Whether a batch leads from the space's head so far to its own; None where records between are lost."""
        space = self._spaces.get(head.space, _Space())
        before = space.head
        rows = {seq: data for seq, data in space.rows.items() if seq > before.seq}
        rows |= {line.seq: line.said.data for line in batch if isinstance(line.said, RecordLine)}
        seqs = sorted([*rows, *said.erased])
        if {line.space for line in batch} != {head.space} or not seqs or seqs[0] <= before.seq:
            return False
        if seqs[-1] != head.seq:
            return False
        if len(seqs) != head.seq - before.seq:
            return None
        total = int.from_bytes(before.digest, "little") + _sum(self.secret, head.space, rows)
        return digest_bytes(total) == said.digest

    def _note_doubt(self, space: int) -> None:
        note = (
            f"the records of space {space} could not be added up: a line of an older copy of the journal may be among "
            "them. Look whether something that was forgotten is there, and forget it again"
        )
        if note not in self.notes:
            self.notes.append(note)

    def _check_sums(self) -> None:
        for number, space in self._spaces.items():
            head = space.head
            rows = {seq: data for seq, data in space.rows.items() if seq <= head.seq}
            whole = len(rows) + len(space.erased) == head.seq
            if whole and digest_bytes(_sum(self.secret, number, rows)) != head.digest:
                self._note_doubt(number)

    def _tell_lost(self, lines: dict[int, Line], last: int) -> None:
        """Tell which lines are lost, and how many of them no record is known to be missing for."""
        between = sorted(lines)
        runs = [
            (before + 1, after - 1)
            for before, after in zip([1, *between], [*between, last + 1], strict=True)
            if after > before + 1
        ]
        for first, end in runs:
            one = first == end
            told = (
                f"line {first} of {self._name} is" if one else f"lines {first} to {end} of {self._name} are"
            )
            self.notes.append(f"{told} gone, or not what was written there")
        alone = sum(first == end and self._was_record(lines.get(end + 1)) for first, end in runs)
        many = sum(end - first + 1 for first, end in runs if end > first)
        unplaced = many - max(0, self._holes() - alone)
        if unplaced > 0:
            self.lost.append(
                Finding(
                    f"of the lines of {self._name} that are lost, {unplaced} had no record that is missed: they were "
                    "ends of batches, or the last records of a space"
                )
            )

    def _was_record(self, following: Line | None) -> bool:
        """Whether the line before this one, which is lost alone, was a record's: else it ended a batch."""
        if following is None:  # acknowledged lines end with a batch
            return False
        space = self._spaces[following.space]
        seq = following.seq - isinstance(following.said, RecordLine)
        return seq > 0 and seq not in space.rows and seq not in space.erased

    def _holes(self) -> int:
        return sum(
            self.last(number) - len(space.rows) - len(space.erased) for number, space in self._spaces.items()
        )


def _fit(found: Proven, standing: set[tuple[int, int]]) -> int:
    """Return beside how many of its neighbours, 0 to 2, a line stands."""
    return sum((found.place + step, found.number + step) in standing for step in (-1, 1))


def _best(several: Sequence[Proven], standing: set[tuple[int, int]]) -> Proven | None:
    """Return the one line that stands in a sequence; None where others do as well.

    Lines of an older copy of the journal hold too, and may tell what was erased since: how many of them stand
    together says nothing about which came later.
    """
    placed = [found for found in several if _fit(found, standing)]
    if len(several) == 1:
        return several[0]
    return placed[0] if len(placed) == 1 else None


def _sum(secret: bytes, space: int, rows: dict[int, bytes]) -> int:
    return digest_sum(secret, [(seq, checksum(space, seq, data)) for seq, data in rows.items()])
