"""What is checked of records before an index takes them, in the order in which it is told."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from perdure.errors import InvalidRequest
from perdure.vectors.coding import Coding
from perdure.vectors.cosine import Floats
from perdure.vectors.partitioned.errors import (
    BudgetExceeded,
    DimensionMismatch,
    DuplicateRecordId,
    InvalidLabel,
    InvalidPartition,
    InvalidRecordId,
    NonFiniteVector,
    ZeroVector,
)
from perdure.vectors.partitioned.partition import (
    NO_REFERENCE,
    Partition,
    Reference,
    Words,
    in_order,
    unit_vectors,
)
from perdure.vectors.partitioned.types import REVISION_MAX, VectorDescriptor, VectorRecord

QUERY = "query"
_NUMBER_KINDS = "fiu"
_BOOLEANS = frozenset({bool, np.bool_})  # which NumPy takes for 0 and 1 among numbers


def checked_name(name: str) -> str:
    """Return a partition's name without white space around it. InvalidPartition where nothing is left."""
    if not is_text(name) or not name.strip():
        raise InvalidPartition("partition must be a text that is not blank")
    return str.__str__(name).strip()


def is_text(value: object) -> bool:
    """Whether it is a text that UTF-8 can hold."""
    if not isinstance(value, str):
        return False
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return True


def checked_vector(embedding: Any, descriptor: VectorDescriptor, context: str) -> npt.NDArray[Any]:
    """Return an embedding as a row of numbers of some type, of the index's dimension."""
    try:
        given = np.asarray(embedding)
    except ValueError as error:  # lists within lists, of different lengths
        raise _no_numbers(context) from error
    is_mixed = isinstance(embedding, list | tuple) and not _BOOLEANS.isdisjoint(map(type, embedding))
    if given.ndim != 1 or is_mixed or (given.size and given.dtype.kind not in _NUMBER_KINDS):
        raise _no_numbers(context)
    if len(given) != descriptor.dimension:
        raise DimensionMismatch(context=context, expected=descriptor.dimension, actual=len(given))
    return given


def checked_query(embedding: Any, descriptor: VectorDescriptor) -> Floats:
    """Return a query as the index compares it: of length 1 where it normalizes."""
    given = checked_vector(embedding, descriptor, QUERY)
    with np.errstate(over="ignore"):  # what is too large for float32 becomes infinite, and is refused
        vector: Floats = given.astype(np.float32)[np.newaxis]
    check_numbers(vector, descriptor, lambda _: QUERY)
    compared: Floats = (unit_vectors(vector) if descriptor.normalization == "unit" else vector)[0]
    return compared


def check_numbers(vectors: Floats, descriptor: VectorDescriptor, context: Any) -> None:
    """Raise NonFiniteVector or ZeroVector for the first vector that is wrong; `context` names the one at a place."""
    finite = np.isfinite(vectors)
    wrong = ~finite.all(axis=1)
    if descriptor.normalization == "unit":
        wrong |= ~vectors.any(axis=1)
    if not wrong.any():
        return
    first = int(np.argmax(wrong))
    if finite[first].all():
        raise ZeroVector(context=context(first))
    raise NonFiniteVector(context=context(first), element_index=int(np.argmin(finite[first])))


def admit(
    name: str, records: Iterable[VectorRecord], descriptor: VectorDescriptor, coding: Coding
) -> Partition | None:
    """Return the partition that these records make, None for no records.

    Raises:
        BudgetExceeded: the records alone are more than the index may hold.
        InvalidRequest: of the first record that is wrong; each reason has a class of its own.
    """
    if isinstance(records, str | bytes | Mapping) or not isinstance(records, Iterable):
        raise InvalidRequest(
            f"records must be a list of VectorRecord, got {type(records).__name__}", field="records"
        )
    told = list(records)
    if len(told) > descriptor.max_records:
        raise BudgetExceeded("records", descriptor.max_records, len(told))
    numbers_bytes = 4 * descriptor.dimension * len(told)
    if numbers_bytes > descriptor.max_bytes:
        raise BudgetExceeded("bytes", descriptor.max_bytes, numbers_bytes)
    if not told:
        return None
    admission = _Admission(name, descriptor, len(told))
    with np.errstate(over="ignore"):  # as in a query
        for index, record in enumerate(told):
            admission.add(index, record)
    words, vectors = in_order(*admission.result())
    return Partition(words, vectors, coding)


class _Admission:
    """Records on their way in. The numbers of vectors are looked at together, and before any later fault."""

    def __init__(self, name: str, descriptor: VectorDescriptor, count: int) -> None:
        self._name, self._descriptor = name, descriptor
        self._vectors: Floats = np.empty((count, descriptor.dimension), dtype=np.float32)
        self._rows = 0
        self._ids: dict[str, None] = {}
        self._labels: list[dict[str, str]] = []
        self._references: list[Reference] = []
        self._bytes = len(name.encode())

    def add(self, index: int, record: VectorRecord) -> None:
        try:
            self._add(index, record)
        except InvalidRequest:
            self._check_numbers()
            raise

    def result(self) -> tuple[Words, Floats]:
        self._check_numbers()
        words = Words(self._name, tuple(self._ids), tuple(self._labels), tuple(self._references))
        vectors = self._vectors
        return words, unit_vectors(vectors) if self._descriptor.normalization == "unit" else vectors

    def _add(self, index: int, record: VectorRecord) -> None:
        if not isinstance(record, VectorRecord):
            raise InvalidRequest(
                f"records[{index}] must be a VectorRecord, got {type(record).__name__}", field="records"
            )
        id_ = _checked_id(index, record.id)
        if id_ in self._ids:
            raise DuplicateRecordId(index)
        labels = _checked_labels(index, record.labels)
        reference = _checked_reference(index, record)
        self._vectors[self._rows] = checked_vector(record.embedding, self._descriptor, f"records[{index}]")
        self._rows += 1
        self._ids[id_] = None
        self._labels.append(labels)
        self._references.append(reference)
        self._bytes += (
            Words("", (id_,), (labels,), (reference,)).size_bytes() + 4 * self._descriptor.dimension
        )
        if self._bytes > self._descriptor.max_bytes:
            raise BudgetExceeded("bytes", self._descriptor.max_bytes, self._bytes)

    def _check_numbers(self) -> None:
        rows = self._vectors[: self._rows]
        check_numbers(rows, self._descriptor, lambda index: f"records[{index}]")


def _checked_id(index: int, id_: object) -> str:
    if not isinstance(id_, str) or not is_text(id_) or not id_.strip():
        raise InvalidRecordId(f"the id of records[{index}] must be a text that is not blank", index=index)
    return str.__str__(id_)


def _checked_labels(index: int, labels: object) -> dict[str, str]:
    if not isinstance(labels, Mapping):
        raise InvalidLabel(f"the labels of records[{index}] must be a mapping of texts", index=index)
    for key, value in labels.items():
        if not is_text(key) or not key.strip():
            raise InvalidLabel(f"records[{index}] has a label whose key is blank or no text", index=index)
        if not is_text(value):
            raise InvalidLabel(f"records[{index}] has a label whose value is no text", index=index)
    return {str.__str__(key): str.__str__(labels[key]) for key in sorted(labels)}


def _checked_reference(index: int, record: VectorRecord) -> Reference:
    if record.node_id is None and record.node_revision is None and record.content_digest is None:
        return NO_REFERENCE
    for field in ("node_id", "content_digest"):
        value = getattr(record, field)
        if value is not None and not is_text(value):
            raise InvalidRequest(f"{field} of records[{index}] must be text or None", field=field)
    revision = record.node_revision
    if revision is not None and (type(revision) is not int or not 0 <= revision <= REVISION_MAX):
        raise InvalidRequest(
            f"node_revision of records[{index}] must be a whole number or None", field="node_revision"
        )
    return Reference(record.node_id, revision, record.content_digest)


def check_admitted(words: Words, vectors: Floats, descriptor: VectorDescriptor) -> None:
    """Raise InvalidRequest or ValueError unless a stored partition is one that was admitted once."""
    if not words.ids or any(one >= other for one, other in zip(words.ids, words.ids[1:], strict=False)):
        raise ValueError("its ids do not ascend")
    if checked_name(words.name) != words.name:
        raise ValueError("its name has white space around it")
    for index, (id_, labels) in enumerate(zip(words.ids, words.labels, strict=True)):
        _checked_id(index, id_)
        if list(_checked_labels(index, labels)) != list(labels):
            raise ValueError("its labels do not ascend")
    check_numbers(vectors, descriptor, lambda index: f"records[{index}]")


def _no_numbers(context: str) -> InvalidRequest:
    return InvalidRequest(f"the embedding of {context} must be a row of numbers", field="embedding")
