"""What a vector index refuses, and why: one class for each reason, below the error that a caller acts on.

InvalidRequest
├── InvalidDescriptor, InvalidSearch, InvalidChangeToken, InvalidObservation
├── InvalidPartition, InvalidRecordId, InvalidLabel, DuplicateRecordId
├── DimensionMismatch, NonFiniteVector, ZeroVector
├── ConditionalMutationUnsupported
└── QueryLimit
    └── BudgetExceeded
Conflict
├── RevisionConflict, PartitionRevisionConflict, RevisionExhausted
└── DescriptorMismatch
Corrupt
└── StorageCorrupted
Unavailable
└── StorageFailed

`details["kind"]` is the class's name in snake case. Messages name partitions and records by their place alone.
"""

from __future__ import annotations

from typing import Any

from perdure.base.text import counted
from perdure.errors import Conflict, Corrupt, InvalidRequest, QueryLimit, Unavailable


class InvalidDescriptor(InvalidRequest):
    """A descriptor describes no index."""

    def __init__(self, message: str, *, field: str) -> None:
        super().__init__(message, field=field, kind="invalid_descriptor")


class InvalidSearch(InvalidRequest):
    """A search or a listing asks for what there cannot be."""

    def __init__(self, message: str, *, field: str) -> None:
        super().__init__(message, field=field, kind="invalid_search")


class InvalidChangeToken(InvalidRequest):
    """It is no change token of a vector index."""

    def __init__(self, message: str) -> None:
        super().__init__(message, field="token", kind="invalid_change_token")


class InvalidObservation(InvalidRequest):
    """Status and token of an observation do not belong together."""

    def __init__(self, message: str) -> None:
        super().__init__(message, field="observation", kind="invalid_observation")


class InvalidPartition(InvalidRequest):
    """A partition's name is blank or no valid text."""

    def __init__(self, message: str, *, field: str = "partition") -> None:
        super().__init__(message, field=field, kind="invalid_partition")


class InvalidRecordId(InvalidRequest):
    """A record's id is blank or no valid text. `index` is its place among the records that were given."""

    def __init__(self, message: str, *, index: int | None = None) -> None:
        super().__init__(message, field="id", kind="invalid_record_id", index=index)
        self.index = index


class InvalidLabel(InvalidRequest):
    """A label has a blank key, or is no text."""

    def __init__(self, message: str, *, index: int | None = None) -> None:
        super().__init__(message, field="labels", kind="invalid_label", index=index)
        self.index = index


class DuplicateRecordId(InvalidRequest):
    """Two records of one partition have the same id. `index` is the place of the later one."""

    def __init__(self, index: int) -> None:
        super().__init__(
            f"records[{index}] has the id of an earlier record of its partition: give each an id of its own",
            field="id",
            kind="duplicate_record_id",
            index=index,
        )
        self.index = index


class DimensionMismatch(InvalidRequest):
    """An embedding has another length than the index. `context` is "query" or the record: "records[3]"."""

    def __init__(self, *, context: str, expected: int, actual: int) -> None:
        super().__init__(
            f"the embedding of {context} has {counted(actual, 'number')}, and the index has {counted(expected, 'dimension')}: embed with "
            "the model that the index was made for",
            field="embedding",
            kind="dimension_mismatch",
            context=context,
            expected=expected,
            actual=actual,
        )
        self.context, self.expected, self.actual = context, expected, actual


class NonFiniteVector(InvalidRequest):
    """An embedding holds what is no finite float32 number, first at `element_index`."""

    def __init__(self, *, context: str, element_index: int) -> None:
        super().__init__(
            f"the embedding of {context} holds no finite float32 number at {element_index}",
            field="embedding",
            kind="non_finite_vector",
            context=context,
            element_index=element_index,
        )
        self.context, self.element_index = context, element_index


class ZeroVector(InvalidRequest):
    """An embedding is all zero, and the index compares directions."""

    def __init__(self, *, context: str) -> None:
        super().__init__(
            f"the embedding of {context} is all zero and has no direction: leave it out, or use an index of "
            "normalization 'none'",
            field="embedding",
            kind="zero_vector",
            context=context,
        )
        self.context = context


class BudgetExceeded(QueryLimit):
    """The records would need more than the index may hold: `required` of `resource` ("records" or "bytes")."""

    def __init__(self, resource: str, limit: int, required: int) -> None:
        InvalidRequest.__init__(
            self,
            f"the index would hold {required} {resource}, more than its budget of {limit}: raise max_{resource} in "
            "the descriptor, or remove partitions",
            field=resource,
            kind="budget_exceeded",
            resource=resource,
            limit=limit,
            required=required,
        )
        self.resource, self.limit, self.required = resource, limit, required


class ConditionalMutationUnsupported(InvalidRequest):
    """This index cannot compare revisions and change in one step."""

    def __init__(self) -> None:
        super().__init__(
            "this index does not compare revisions when it changes: use replace_partition and remove_partition "
            "without a condition, or an index whose consistency is 'index_revision_cas'",
            kind="conditional_mutation_unsupported",
        )


class RevisionConflict(Conflict):
    """The index moved on after the caller read it."""

    def __init__(self, *, expected: int, actual: int) -> None:
        super().__init__(
            f"the index is at revision {actual}, not {expected}: another writer was first. Observe it again, redo "
            "your change and retry",
            kind="revision_conflict",
            field="expected_revision",
            expected=expected,
            actual=actual,
        )
        self.expected, self.actual = expected, actual


class PartitionRevisionConflict(Conflict):
    """The partition moved on after the caller read it; 0 stands for one that is not there."""

    def __init__(self, *, expected: int, actual: int) -> None:
        now = f"was changed at revision {actual}" if actual else "is not there"
        super().__init__(
            f"the partition {now}, expected was {expected}: another writer was first. Read it again, redo your "
            "change and retry",
            kind="partition_revision_conflict",
            field="expected_partition_revision",
            expected=expected,
            actual=actual,
        )
        self.expected, self.actual = expected, actual


class RevisionExhausted(Conflict):
    """The index has had as many revisions as it can count."""

    def __init__(self, limit: int) -> None:
        super().__init__(
            f"the index is at revision {limit}, its last one: copy its records into a new index",
            kind="revision_exhausted",
        )


class DescriptorMismatch(Conflict):
    """The index that lies there was made for other vectors. `fields` says in what it differs."""

    def __init__(self, fields: tuple[str, ...]) -> None:
        super().__init__(
            f"the index there was made with another {', '.join(fields)}: open it with the descriptor it was made "
            "with, or give another path",
            kind="descriptor_mismatch",
            field="descriptor",
            fields=list(fields),
        )
        self.fields = fields


class StorageCorrupted(Corrupt):
    """What is stored of an index is not what was written. Nothing was changed, and nothing is served of it."""

    def __init__(self, what: str) -> None:
        super().__init__(f"the vector index is damaged: {what}. Restore it from a copy, or build it anew")
        self.details = {"kind": "storage_corrupted"}


class StorageFailed(Unavailable):
    """The files of an index cannot be used; `__cause__` carries the system's or the driver's own error."""

    def __init__(self, message: str, **details: Any) -> None:
        super().__init__(message, kind="storage_failed", **details)
