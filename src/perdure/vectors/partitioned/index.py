"""The vector index that comes with the package: exact, in partitions, in memory or in a file."""

from __future__ import annotations

import builtins
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Self

from perdure.errors import InvalidRequest
from perdure.vectors.coding import Coding, new_coding
from perdure.vectors.partitioned.admission import admit, checked_name
from perdure.vectors.partitioned.backend import Backend, MemoryBackend
from perdure.vectors.partitioned.errors import InvalidDescriptor
from perdure.vectors.partitioned.listing import find_record, page
from perdure.vectors.partitioned.protocol import VectorIndex
from perdure.vectors.partitioned.searching import search
from perdure.vectors.partitioned.snapshot import Batch, Change
from perdure.vectors.partitioned.types import (
    Consistency,
    LabelFilter,
    PartitionChange,
    PartitionStatus,
    RemovePartition,
    ReplacePartition,
    VectorChangeToken,
    VectorDescriptor,
    VectorObservation,
    VectorPage,
    VectorRecord,
    VectorSearchRequest,
    VectorSearchResult,
    VectorStatus,
    checked_revision,
)

TIMEOUT_MAX_S = 86_400
KeyForm = bytes | str | Path | Callable[[], bytes | str]
"""32 raw bytes, a passphrase, a file of one of them, or what returns one of the first two."""


class PartitionedVectorIndex(VectorIndex):
    """Records with vectors under names of the caller's choosing. Thread-safe; a context manager.

    A change is made whole, and in one step: a search sees all of it or nothing. Scores are float64 in one order of
    additions, the same bits whatever else is stored. In a file, several processes may use one index at once.
    """

    def __init__(self, backend: Backend, coding: Coding) -> None:
        self._backend, self._coding = backend, coding

    @classmethod
    def in_memory(cls, descriptor: VectorDescriptor) -> Self:
        """Make an empty index that lasts as long as this object and those that share it.

        InvalidDescriptor for a descriptor that describes none.
        """
        coding = _coding_of(descriptor)
        return cls(MemoryBackend(descriptor), coding)

    @classmethod
    def open(
        cls,
        path: str | Path,
        descriptor: VectorDescriptor,
        *,
        key: KeyForm | None = None,
        timeout_s: float = 5.0,
    ) -> Self:
        """Open the index in a file, which is made where there is none; everything stored is read and verified.

        An empty file is made an index too: a crash leaves one where an index was about to be made.

        Beside the file lie its mark, `<name>.mark`, and while it is written a journal. A copy of both files has
        the same token until one of them changes; a copy of the file alone, or an older one put in its place, has
        another from its opening on.

        Args:
            descriptor: what the index is for. Its budgets may differ from those it had, and are then its new ones.
            key: 32 bytes, a passphrase, the Path of a file with one of them, or a function that returns one of the
                first two; with a key, all but the mark is encrypted, and the mark holds nothing of the content.
            timeout_s: how long to wait for other processes.

        Raises:
            DescriptorMismatch: the index there is for other vectors.
            BudgetExceeded: it holds more than the descriptor allows.
            WrongKey: the key is another one, one too many, or missing; or the file is no index, which cannot be told
                from an encrypted one.
            StorageCorrupted: something stored is not as it was written.
            Busy, StorageFull, StorageFailed: the files cannot be used, or the path is a directory. Nothing was
                changed.
        """
        # Imported here: an index in memory needs no driver.
        from perdure.vectors.partitioned.sqlite.backend import SqliteBackend  # noqa: PLC0415

        coding = _coding_of(descriptor)
        backend = SqliteBackend.open(
            _checked_path(path), descriptor, coding, key=key, timeout_s=_checked_timeout(timeout_s)
        )
        return cls(backend, coding)

    def share(self) -> PartitionedVectorIndex:
        """Return another handle to the same index, with the same token; closing one closes both."""
        return PartitionedVectorIndex(self._backend, self._coding)

    @property
    def descriptor(self) -> VectorDescriptor:
        """What the index was made for, with the budgets that it has now."""
        return self._backend.known().descriptor

    @property
    def consistency(self) -> Consistency:
        """Conditions on revisions are kept: "index_revision_cas"."""
        return "index_revision_cas"

    def replace_partition(
        self,
        name: str,
        records: Sequence[VectorRecord],
        *,
        expected_partition_revision: int | None = None,
    ) -> VectorStatus:
        """Let a partition hold these records and no others; no records remove it.

        White space around the name does not count. Records that are equal to those that are there are a change
        like any other; removing what is not there is none.

        Args:
            expected_partition_revision: the revision of the index that last changed the partition, 0 for one that
                must not be there; None for whatever it is.

        Raises:
            InvalidRequest: the name, or the first record that is wrong; each reason has a class of its own.
            PartitionRevisionConflict: the partition was changed.
            BudgetExceeded: the index would hold more than it may.
        """
        change = ReplacePartition(
            name=name, records=records, expected_partition_revision=expected_partition_revision
        )
        return self.apply([change])

    def replace_partition_if_revision(
        self, name: str, expected_revision: int, records: Sequence[VectorRecord]
    ) -> VectorStatus:
        """Replace a partition if the index, with all its partitions, is at this revision.

        Raises as `replace_partition`, and RevisionConflict, which comes after what is wrong with records.
        """
        return self.apply([ReplacePartition(name=name, records=records)], expected_revision=expected_revision)

    def remove_partition(self, name: str, *, expected_partition_revision: int | None = None) -> VectorStatus:
        """Remove a partition; nothing where it is not there.

        Raises:
            InvalidPartition: the name is blank.
            PartitionRevisionConflict: the partition was changed.
        """
        change = ReplacePartition(
            name=name, records=(), expected_partition_revision=expected_partition_revision
        )
        return self.apply([change])

    def remove_partition_if_revision(self, name: str, expected_revision: int) -> VectorStatus:
        """Remove a partition if the index is at this revision; else RevisionConflict, also where it is not there."""
        return self.apply([ReplacePartition(name=name, records=())], expected_revision=expected_revision)

    def apply(
        self, changes: Sequence[PartitionChange], *, expected_revision: int | None = None
    ) -> VectorStatus:
        """Make changes to several partitions in one step and one revision, or none of them.

        Raises as `replace_partition` and `replace_partition_if_revision`, and InvalidRequest where something else
        than changes is given, or two changes are of one partition.
        """
        told = _checked_changes(changes)
        if expected_revision is not None:
            checked_revision(expected_revision, "expected_revision")
        prepared = [self._prepared(change) for change in told]
        _check_named_once(prepared)
        batch = Batch(prepared, expected_revision)
        return self._backend.publish(lambda snapshot: snapshot.after(batch)).status

    def clear(self) -> VectorStatus:
        """Remove every partition; the revision goes on, and an empty index stays as it is."""
        return self._backend.publish(lambda snapshot: snapshot.after(Batch((), clears=True))).status

    def search(self, request: VectorSearchRequest) -> VectorSearchResult:
        """Return the nearest records of one revision, proved and not approximated.

        Descending by score, ties by partition, then id. A change that returned before the call is seen.

        Raises:
            InvalidRequest: the request is wrong; each reason has a class of its own.
        """
        return search(self._backend.current(), request, self._coding)

    def get(self, partition: str, id: str) -> VectorRecord | None:  # noqa: A002 - the name of the field
        """Return a record, its numbers as the index compares them; None where there is none."""
        return find_record(self._backend.current(), partition, id)

    def list(
        self,
        *,
        partitions: Sequence[str] = (),
        labels: Mapping[str, LabelFilter] | None = None,
        limit: int = 100,
        cursor: str | None = None,
    ) -> VectorPage:
        """Return a page of records, ascending by partition, then id.

        A page is of the present: what is replaced between two pages is listed as it is then, none twice.

        Args:
            partitions: which ones, all for none; labels: as in a search.
            limit: from 1 to 1000.
            cursor: of an earlier page of the same listing.

        Raises:
            InvalidRequest: a cursor of another listing or index, or an argument is wrong.
        """
        return page(self._backend.current(), partitions, labels or {}, limit, cursor)

    def partitions(self) -> builtins.list[PartitionStatus]:
        """Return what each partition holds, ascending by name."""
        return builtins.list(self._backend.current().partition_statuses())

    def status(self) -> VectorStatus:
        """Return what the index holds, as far as this handle knows."""
        return self._backend.known().status

    def change_token(self) -> VectorChangeToken:
        """Return the token of what this handle knows."""
        return self._backend.known().token

    def observe(self) -> VectorObservation:
        """Return status and token of what is stored now. What must be right relies on this alone."""
        return self._backend.observed().observation

    def close(self) -> None:
        """Give memory and files back. Idempotent; whatever comes after is Unavailable."""
        self._backend.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _prepared(self, change: PartitionChange) -> Change:
        name = checked_name(change.name)
        expected = change.expected_partition_revision
        if expected is not None:
            checked_revision(expected, "expected_partition_revision")
        records = change.records if isinstance(change, ReplacePartition) else ()
        return Change(name, admit(name, records, self.descriptor, self._coding), expected)


def _checked_changes(changes: Sequence[PartitionChange]) -> builtins.list[PartitionChange]:
    if isinstance(changes, str | bytes | Mapping) or not isinstance(changes, Iterable):
        raise InvalidRequest(
            f"changes must be a list of ReplacePartition and RemovePartition, got {type(changes).__name__}",
            field="changes",
        )
    told = builtins.list(changes)
    for place, change in enumerate(told):
        if not isinstance(change, ReplacePartition | RemovePartition):
            raise InvalidRequest(
                f"changes[{place}] must be a ReplacePartition or a RemovePartition, got {type(change).__name__}",
                field=f"changes[{place}]",
            )
    return told


def _check_named_once(changes: Sequence[Change]) -> None:
    first: dict[str, int] = {}
    for place, change in enumerate(changes):
        if first.setdefault(change.name, place) != place:
            raise InvalidRequest(
                f"changes[{place}] names the partition of changes[{first[change.name]}]: give one change for each",
                field=f"changes[{place}]",
            )


def _checked_path(path: str | Path) -> Path:
    if not isinstance(path, str | Path) or not str(path) or "\0" in str(path):
        raise InvalidRequest("path must be a text or Path that names a file", field="path")
    return Path(path).absolute()


def _checked_timeout(timeout_s: float) -> float:
    number = isinstance(timeout_s, int | float) and not isinstance(timeout_s, bool)
    if not number or not 0 <= timeout_s <= TIMEOUT_MAX_S:
        raise InvalidRequest(f"timeout_s must be 0 to {TIMEOUT_MAX_S} seconds", field="timeout_s")
    return timeout_s


def _coding_of(descriptor: VectorDescriptor) -> Coding:
    if not isinstance(descriptor, VectorDescriptor):
        raise InvalidDescriptor("descriptor must be a VectorDescriptor", field="descriptor")
    descriptor.verify()
    return new_coding(descriptor.dimension)
