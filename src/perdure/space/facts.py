"""Reading fact records by number, through a bounded cache of decoded ones."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import suppress
from typing import Any

from perdure.errors import Corrupt, Moved
from perdure.log.digests import checksum
from perdure.log.protocol import Head, Log
from perdure.log.records import FactRecord, QuoteRecord, Record, VectorRecord, decode
from perdure.space.idmap import id_digest, id_hash
from perdure.space.quotes import joined
from perdure.space.state import SpaceState

OVERTAKEN_MAX = 10  # erasures in a row that overtake one reading of vectors
CACHE_MAX = 8_192  # per half; about 10 MB a space of short facts
KEPT_CHARACTERS_MAX = 4_096  # longer texts are read each time: a cache full of documents would take gigabytes


class FactReader:
    """Two half-caches: a hit in the older one moves up, and the older one is dropped whole when the
    newer is full. That is nearly as good as exact recency and costs one dict look-up a hit."""

    def __init__(self, log: Log, space: int, cache_max: int = CACHE_MAX) -> None:
        self._log, self._space, self._max = log, space, cache_max
        self._young: dict[int, FactRecord] = {}
        self._old: dict[int, FactRecord] = {}
        self.dressed: dict[int, Any] = {}  # what readers have made of records; theirs to fill, bounded here

    def get(self, state: SpaceState, number: int) -> FactRecord:
        """Return the record of a fact that exists.

        Raises Moved when an erasure overtook the caller's state.
        """
        found = self._young.get(number)
        if found is not None:
            return found
        found = self._old.get(number)
        if found is None:
            return self._load(state, (number,))[0]
        self._keep(number, found)
        return found

    def get_many(self, state: SpaceState, numbers: Sequence[int]) -> list[FactRecord]:
        """Return the records of facts that exist, in the order asked, with one read of the log."""
        young, old = self._young, self._old
        found = [young.get(number) or old.get(number) for number in numbers]
        missing = [number for number, record in zip(numbers, found, strict=True) if record is None]
        if not missing:
            return found  # type: ignore[return-value]  # no None is left
        loaded = dict(zip(missing, self._load(state, missing), strict=True))
        return [record or loaded[number] for number, record in zip(numbers, found, strict=True)]

    def find_number(self, state: SpaceState, id_: str, digest: bytes | None = None) -> int | None:
        """Return the number of the fact or document with this id, hidden ones included."""
        for number in state.ids.find(id_hash(digest or id_digest(self._log.secret, id_))):
            if state.exists(number) and self.get(state, number).id == id_:
                return number
        return None

    def put(self, record: FactRecord) -> None:
        """Keep a record that was just written, since what is told is often asked next."""
        self._keep(record.number, record)

    def drop(self, numbers: Iterable[int]) -> None:
        """Let go of forgotten facts."""
        for number in numbers:
            self._young.pop(number, None)
            self._old.pop(number, None)
            self.dressed.pop(number, None)

    def keep_dressed(self, number: int, value: Any) -> None:
        """Keep what a reader has made of a fact until anything about the fact changes."""
        if len(self.dressed) >= self._max:
            self.dressed = {}  # a reader that has the old one keeps it whole
        self.dressed[number] = value

    def undress(self, numbers: Iterable[int]) -> None:
        """Let go of what was made of facts that look different now."""
        for number in numbers:
            self.dressed.pop(number, None)

    def _load(self, state: SpaceState, numbers: Sequence[int]) -> list[FactRecord]:
        quoting = [number for number in numbers if number in state.quote_seqs]
        seqs = [state.seqs[number] for number in numbers]
        found = self.records(state, seqs + [state.quote_seqs[number] for number in quoting])
        quotes = dict(zip(quoting, found[len(numbers) :], strict=True))
        records = []
        for number, seq, record in zip(numbers, seqs, found[: len(numbers)], strict=True):
            if not isinstance(record, FactRecord) or record.number != number:
                raise Corrupt(f"record {seq} is not fact {number}: run a verify", space=self._space, seq=seq)
            whole = record if number not in quotes else self._joined(state, record, quotes[number])
            self._keep(number, whole)
            records.append(whole)
        return records

    def _joined(self, state: SpaceState, fact: FactRecord, quote: Record) -> FactRecord:
        if not isinstance(quote, QuoteRecord) or quote.number != fact.number:
            seq = state.quote_seqs[fact.number]
            raise Corrupt(
                f"record {seq} is not the quote of fact {fact.number}: run a verify",
                space=self._space,
                seq=seq,
            )
        return joined(fact, quote)

    def records(self, state: SpaceState, seqs: Sequence[int]) -> list[Record]:
        """Return records that live, in the order asked, with one read of the log.

        Raises Moved when an erasure overtook the caller's state.
        """
        records: list[Record] = []
        for seq, data in zip(seqs, self._log.get(self._space, seqs, state.head), strict=True):
            if data is None:
                raise self._erased(state, seq)
            self.check(state, seq, data)
            records.append(decode(data, space=self._space, seq=seq))
        return records

    def _erased(self, state: SpaceState, seq: int) -> Moved | Corrupt:
        """Return the error of a record that lives by a state, and is erased."""
        if self._log.head(self._space) == state.head:
            return Corrupt(
                f"record {seq} was zeroed without a removal that covers it: run a verify",
                space=self._space,
                seq=seq,
            )
        return Moved(f"record {seq} was erased while it was read; read again")

    def check(self, state: SpaceState, seq: int, data: bytes) -> None:
        """Raise Moved where a record is none of those that the state was made of; Corrupt where it cannot be."""
        if state.checks.differ(seq, checksum(self._space, seq, data)):
            if self._log.head(self._space) == state.head:
                raise Corrupt(f"record {seq} is not what it was: run a verify", space=self._space, seq=seq)
            raise Moved(f"record {seq} is another since the log was put back; read again")

    def vectors(self, state: SpaceState, rows: Sequence[int]) -> list[VectorRecord]:
        """Return the records of the vectors of rows that have one, with one read of the log.

        Raises Moved when an erasure overtook the caller's state.
        """
        found = self._vectors(state, rows, state.head)
        for row, record in zip(rows, found, strict=True):
            if record is None:
                raise self._erased(state, state.vector_seqs[row])
        return found  # type: ignore[return-value]  # no None is left

    def is_overtaken(self, state: SpaceState) -> bool:
        """Whether anything was erased from the log since the state was brought up."""
        head = self._log.head(self._space)
        return (head.epoch, head.erasures) != (state.head.epoch, state.head.erasures)

    def find_vectors(self, state: SpaceState, rows: Sequence[int]) -> list[VectorRecord | None]:
        """Return the records of the vectors of rows that had one; None for what was erased since.

        So that many can be read while others forget. Raises Moved when the store was purged, or when erasures come
        faster than the rows can be read.
        """
        for _ in range(OVERTAKEN_MAX):
            head = self._log.head(self._space)
            if head.epoch != state.head.epoch:
                break
            with suppress(Moved):
                return self._vectors(state, rows, head)
        raise Moved("vectors were erased again and again while they were read; read again")

    def _vectors(self, state: SpaceState, rows: Sequence[int], head: Head) -> list[VectorRecord | None]:
        seqs = [state.vector_seqs[row] for row in rows]
        found: list[VectorRecord | None] = []
        for row, seq, data in zip(rows, seqs, self._log.get(self._space, seqs, head), strict=True):
            if data is not None:
                self.check(state, seq, data)
            record = None if data is None else decode(data, space=self._space, seq=seq)
            if record is not None and (
                not isinstance(record, VectorRecord) or record.number + record.unit != row
            ):
                raise Corrupt(
                    f"record {seq} is not the vector of row {row}: run a verify", space=self._space, seq=seq
                )
            found.append(record)
        return found

    def _keep(self, number: int, record: FactRecord) -> None:
        if len(record.text) > KEPT_CHARACTERS_MAX:
            return
        if len(self._young) >= self._max:
            self._old, self._young = self._young, {}
        self._young[number] = record
