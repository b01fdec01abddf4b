"""Bringing one log to where another one stands: the same spaces, records and numbers, whatever the two are kept in."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

from pyroaring import BitMap

from perdure.base.ids import keyed_hash
from perdure.errors import Busy, Conflict, Corrupt, InvalidRequest, Moved
from perdure.log.digests import checksum, digest_bytes, digest_sum
from perdure.log.protocol import ANY_ADVICE, EMPTY, KEY_BYTES, Batch, Entry, Head, Log, Read, Rewritten

RECORDS_MAX = 1_000  # of one append: what a copy that is killed writes once more at most
BYTES_MAX = 4 << 20
ERASED_MAX = 50_000  # places that one append erases: a journal is written anew each time
RESTARTS_MAX = 16  # purges of the source that one copying goes along with

Told = Callable[[int], None]
"""Told how many records more are in the target now."""


class _Place(NamedTuple):
    """A space of the target: where it stands, and the numbers of its erased records."""

    head: Head
    erased: BitMap


class LogCopy:
    """What is copied of one log into another of the same secret.

    Records keep their numbers. Where the source has an erased one the target gets an empty record, which is erased then:
    so the heads are equal, and nothing of what was forgotten is copied. Only records, names and erasures are copied;
    not caches, nor keys that lead to single records, of which a store has none.

    One thread at a time. Whoever else writes to the target meanwhile ends the copying with Conflict.
    """

    def __init__(
        self, source: Log, target: Log, name_of: Callable[[int, bytes], bytes], told: Told = lambda _: None
    ) -> None:
        """Copy nothing yet.

        Args:
            name_of: gives the keyed name hash of a space by its number and record 1.
        """
        self._source, self._target, self._name_of, self._told = source, target, name_of, told
        self._places: dict[int, _Place] = {}
        self._epoch = 0
        self._restarts = 0
        self.written = 0  # records, erased ones included, that were appended to the target

    def check(self) -> None:
        """Hold what the target has against the source; writes nothing.

        Raises:
            InvalidRequest: of `target`: it has something that the source has not, so it is no copy of it.
            Busy: the source was purged meanwhile.
            Corrupt, Unavailable.
        """
        source, target = self._source, self._target
        self._epoch, there = target.epoch(), target.spaces()
        epoch, spaces = source.epoch(), source.spaces()
        if self._epoch > epoch or len(there) > len(spaces):
            raise _foreign("has been purged more often, or has more spaces, than the source")
        if there and self._epoch < epoch:
            raise _foreign(
                "is a copy of what the source was before it was purged, and what was purged is not found in it"
            )
        try:
            for number in there:
                self._places[number] = self._checked(number, target.head(number))
                self._told(self._places[number].head.seq)
        except Moved:
            raise _purged() from None
        if source.epoch() != epoch:
            raise _purged()

    def follow(self) -> bool:
        """Write what the target lacks of the source as it is now; return whether that was anything.

        Where it returns False the two were equal when it began: what a log holds only grows, and it looked at all of it.

        Raises:
            Conflict: kind "head": somebody else writes to the target.
            Corrupt: what was read of the source does not add up; it was not copied wholly.
            StorageFull, Busy, Unavailable: what was written before stays; another copying goes on there.
        """
        try:
            moved = self._follow_epoch()
            found = [self._follow(number) for number in self._source.spaces()]
            return any(found) or moved
        except Moved:
            if self._source.epoch() == self._epoch:
                raise Busy(
                    "records are being erased from the source again and again; start once more"
                ) from None
            return True

    # What is there

    def _checked(self, number: int, head: Head) -> _Place:
        """Return the place of a space of the target whose records are the source's."""
        total, erased = 0, BitMap()
        for entry in self._source.read(number, 0, head.seq):
            if entry.data is None:
                erased.add(entry.seq)
            else:
                total += digest_sum(
                    self._source.secret, ((entry.seq, checksum(number, entry.seq, entry.data)),)
                )
        if (len(erased), digest_bytes(total)) == (head.erasures, head.digest):
            return _Place(head, erased)
        return _Place(head, self._compared(number, head))

    def _compared(self, number: int, head: Head) -> BitMap:
        """Return which of a space's records are erased in the target; each other one is the source's, or was erased there.

        The target's own may stand for one that is erased in the source: an empty one whose erasure is to follow.
        """
        erased, count = BitMap(), 0
        pairs = zip(
            self._source.read(number, 0, head.seq), self._target.read(number, 0, head.seq), strict=False
        )
        for ours, theirs in pairs:
            count += 1
            if theirs.data is None:
                erased.add(theirs.seq)
                if ours.data is not None:
                    raise _foreign(f"has erased record {ours.seq} of space {number}, which the source has")
            elif ours.data is not None and ours.data != theirs.data:
                raise _foreign(f"has another record {ours.seq} of space {number} than the source")
        if count < head.seq:
            raise _foreign(f"has more records of space {number} than the source")
        return erased

    # Epochs

    def _follow_epoch(self) -> bool:
        epoch = self._source.epoch()
        if self._epoch == epoch:
            return False
        # A purge is the one thing that moves an epoch, and of an empty log it takes as long as two syncs. What there is
        # of the time before was the source's own: this very copying wrote it, or held it against the source.
        if self._places:
            self._restarts += 1
            if self._restarts > RESTARTS_MAX:
                raise Busy("the source is being purged again and again; copy it when that is over")
            self._places.clear()
        while self._epoch < epoch:
            self._epoch = self._target.purge(_keep_nothing).epoch
        if self._epoch > epoch:
            raise _foreign("was purged by somebody else meanwhile")
        return True

    # Spaces

    def _follow(self, number: int) -> bool:
        head = self._source_head(number)
        before = self._places.get(number)
        if before is not None and before.head == head:
            return False
        place, holes = self._append(number, self._create(number) if before is None else before, head)
        place = self._erase(number, place, holes, head)
        # Between two equal heads nothing was written, so that what was read is what the head is of.
        if place.head != head and self._source.head(number) == head:
            raise Corrupt(
                f"the records of space {number} do not add up to its head: {ANY_ADVICE}", space=number
            )
        return True

    def _source_head(self, number: int) -> Head:
        head = self._source.head(number)
        if head.epoch != self._epoch or not head.seq:
            if self._source.epoch() == self._epoch:  # then it was so when the head was read
                raise Corrupt(
                    f"space {number} is empty, or of another epoch than the store: {ANY_ADVICE}", space=number
                )
            raise Moved("the source was purged meanwhile")
        return head

    def _create(self, number: int) -> _Place:
        entry = next(iter(self._source.read(number, 0, 1)), None)
        if entry is None:
            raise Moved("the source was purged meanwhile")
        if entry.data is None:  # a name that was lost, under which nobody asks
            name = keyed_hash(self._source.secret, b"copied space", number.to_bytes(8, "little"), KEY_BYTES)
        else:
            name = self._name_of(number, entry.data)
        self._source_head(number)  # what was read is of this epoch
        made = self._target.find_space(name)
        if made is not None:
            self._follow(made)  # which has lost the name meanwhile, else it is not given out again
        if self._target.create_space(name, entry.data or b"") != number:
            raise Conflict("something else makes spaces in the target: leave it alone", kind="head")
        self._wrote(1)
        erased = BitMap() if entry.data is not None else BitMap([1])
        return self._keep(number, self._erased(number, self._target.head(number), erased), erased)

    def _append(self, number: int, place: _Place, head: Head) -> tuple[_Place, BitMap]:
        """Append what the source has beyond a place, up to its head; return also which of it is still to be erased."""
        holes = BitMap()
        for chunk in _chunks(self._source.read(number, place.head.seq, head.seq)):
            self._source_head(number)
            there = self._target.append(number, place.head, Batch([entry.data or b"" for entry in chunk]))
            self._wrote(len(chunk))
            place = self._keep(number, there, place.erased)
            # Erased all at once, in the end: a journal is written anew for each erasure.
            holes.update(entry.seq for entry in chunk if entry.data is None)
        return place, holes

    def _erase(self, number: int, place: _Place, holes: BitMap, head: Head) -> _Place:
        """Erase what is erased in the source, up to the last record of a place."""
        wanted = place.erased | holes
        if len(wanted) != head.erasures:  # others were erased since they were copied
            wanted = BitMap(
                entry.seq for entry in self._source.read(number, 0, place.head.seq) if entry.data is None
            )
            self._source_head(number)
        there = self._erased(number, place.head, wanted - place.erased)
        return self._keep(number, there, wanted)

    def _erased(self, number: int, head: Head, seqs: BitMap) -> Head:
        for start in range(0, len(seqs), ERASED_MAX):
            head = self._target.append(number, head, Batch([], list(seqs[start : start + ERASED_MAX])))
        return head

    def _keep(self, number: int, head: Head, erased: BitMap) -> _Place:
        place = self._places[number] = _Place(head, erased)
        return place

    def _wrote(self, count: int) -> None:
        self.written += count
        self._told(count)


def are_equal(source: Log, target: Log) -> bool:
    """Whether two logs have the same spaces, each at the same head."""
    numbers = source.spaces()
    return numbers == target.spaces() and all(
        EMPTY != source.head(number) == target.head(number) for number in numbers
    )


def _keep_nothing(number: int, read: Read) -> Iterator[Rewritten]:
    del number, read
    return iter(())


def _chunks(entries: Iterator[Entry]) -> Iterator[list[Entry]]:
    chunk: list[Entry] = []
    size = 0
    for entry in entries:
        chunk.append(entry)
        size += len(entry.data or b"")
        if len(chunk) >= RECORDS_MAX or size >= BYTES_MAX:
            yield chunk
            chunk, size = [], 0
    if chunk:
        yield chunk


def _purged() -> Busy:
    return Busy("the source was purged as the copy began; start it once more")


def _foreign(what: str) -> InvalidRequest:
    return InvalidRequest(
        f"the target {what}: give one that is empty, or a copy of this source that nobody wrote to",
        field="target",
    )
