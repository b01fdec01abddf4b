"""The values that go into a vector index and come out of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Sized
from typing import Final, Literal, TypeVar

import msgspec

from perdure.base.canonical import canonical_json
from perdure.base.text import counted, shown_choice, shown_kind, shown_number
from perdure.errors import InvalidRequest
from perdure.vectors.partitioned.errors import InvalidChangeToken, InvalidDescriptor, InvalidObservation

Metric = Literal["cosine", "dot_product"]
"""How a query and a record are compared."""
Normalization = Literal["none", "unit"]
"""What becomes of a vector before it is compared: "unit" brings it to length 1."""
Consistency = Literal["partition_atomic", "index_revision_cas"]
"""Which conditions an index keeps: none, or those on the revision of the whole index."""
Labels = Mapping[str, str]
"""The labels of a record: keys that are not blank, values of any text."""
LabelFilter = str | Sequence[str] | None
"""What is asked of a label: this value, any of these, or None for a record without the label."""

DIMENSION_MAX = 1 << 16
REVISION_MAX = (1 << 53) - 1  # what every JSON reader takes for an integer without loss
TOKEN_PROFILE = "perdure.vector-index-change-token.v1"  # noqa: S105 - a name, no secret
DIGEST_PREFIX: Final = "sha256:"
_HEX_DIGITS = frozenset("0123456789abcdef")

Told = TypeVar("Told", bound="VectorChangeToken | VectorObservation")


class VectorDescriptor(msgspec.Struct, frozen=True, kw_only=True):
    """What an index is made for, and how much it may hold.

    Dimension, metric, normalization and model say which index it is. The budgets may be raised when an index is
    opened again, and lowered as long as its content fits.

    With normalization "unit" records and queries are brought to length 1, which cosine needs. One that describes no
    index is refused when it is made: InvalidDescriptor.
    """

    dimension: int  # 1 to DIMENSION_MAX
    metric: Metric = "cosine"
    normalization: Normalization = "unit"
    model: str | None = None  # a fingerprint of what made the vectors, of the caller's choosing
    max_records: int = 100_000
    max_bytes: int = 256 << 20  # of names, ids, labels and 4 bytes a number

    def __post_init__(self) -> None:
        self.verify()

    def verify(self) -> None:
        """Raise InvalidDescriptor unless it describes an index that can hold a vector."""
        for field in ("dimension", "max_records", "max_bytes"):
            value = getattr(self, field)
            if type(value) is not int or not 1 <= value <= REVISION_MAX:
                raise InvalidDescriptor(
                    f"{field} must be a whole number of at least 1, got {_shown(value)}", field=field
                )
        if self.dimension > DIMENSION_MAX:
            raise InvalidDescriptor(
                f"dimension must be at most {DIMENSION_MAX}, got {self.dimension}", field="dimension"
            )
        for field, choices in (("metric", ("cosine", "dot_product")), ("normalization", ("none", "unit"))):
            if getattr(self, field) not in choices:
                raise InvalidDescriptor(
                    f"{field} must be {choices[0]} or {choices[1]}, got {shown_choice(getattr(self, field))}",
                    field=field,
                )
        if self.metric == "cosine" and self.normalization != "unit":
            raise InvalidDescriptor("cosine needs the normalization 'unit'", field="normalization")
        if self.model is not None and (not isinstance(self.model, str) or not _is_text(self.model)):
            raise InvalidDescriptor("model must be a text that is not blank, or None", field="model")
        if 4 * self.dimension > self.max_bytes:
            raise InvalidDescriptor(
                f"max_bytes is {self.max_bytes}, less than the {4 * self.dimension} bytes of one vector",
                field="max_bytes",
            )

    def identity(self) -> bytes:
        """Return bytes that are equal for descriptors of the same index, whatever their budgets."""
        told = {name: getattr(self, name) for name in IDENTITY_FIELDS}
        return canonical_json({name: value for name, value in told.items() if value is not None})


IDENTITY_FIELDS = ("dimension", "metric", "normalization", "model")


def _is_text(value: str) -> bool:
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return bool(value.strip())


class VectorRecord(msgspec.Struct, frozen=True, kw_only=True, repr_omit_defaults=True):
    """A vector under an id that is its own within its partition.

    What is read back holds plain floats, of length 1 where the index normalizes.
    """

    id: str
    embedding: Sequence[float]  # or a NumPy array; taken as float32
    labels: Labels = {}
    node_id: str | None = None  # the node of a repository that the vector was made of
    node_revision: int | None = None
    content_digest: str | None = None  # of the text that was embedded

    def __repr__(self) -> str:
        return f"VectorRecord({counted(_count(self.embedding), 'number')}, {counted(_count(self.labels), 'label')})"


class StoredVector(msgspec.Struct, frozen=True, kw_only=True):
    """A record of an index with the partition that it is in."""

    partition: str
    record: VectorRecord

    def __repr__(self) -> str:
        return f"StoredVector({self.record!r})"


class VectorPage(msgspec.Struct, frozen=True, kw_only=True):
    """A page of a listing, ascending by partition, then id. `cursor` leads to the next one."""

    items: tuple[StoredVector, ...]
    total: int  # of the whole listing, as it was when the page was made
    has_more: bool
    cursor: str | None


class PartitionStatus(msgspec.Struct, frozen=True, kw_only=True):
    """What a partition holds, and the revision of the index that last changed it."""

    name: str
    revision: int
    record_count: int
    byte_count: int

    def __repr__(self) -> str:
        return f"PartitionStatus(revision={self.revision}, record_count={self.record_count})"


class VectorStatus(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What an index holds at a revision. It starts at 0 and grows by 1 with every effective change."""

    revision: int
    partition_count: int
    record_count: int
    byte_count: int


class VectorChangeToken(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Says whether an index changed: equal tokens mean equal content. Holds no name, id or number of a vector."""

    profile: str
    history_id: (
        str  # "sha256:" and 64 hex digits; another one for every index, and for a copy that was told apart
    )
    revision: int
    head_digest: str  # likewise, of all that the index holds

    def verify(self) -> None:
        """Raise InvalidChangeToken unless it is a token as an index makes it."""
        if self.profile != TOKEN_PROFILE:
            raise InvalidChangeToken(f"profile must be {TOKEN_PROFILE!r}")
        for field in ("history_id", "head_digest"):
            if not _is_digest(getattr(self, field)):
                raise InvalidChangeToken(f"{field} must be {DIGEST_PREFIX!r} and 64 lower-case hex digits")
        if type(self.revision) is not int or not 0 <= self.revision <= REVISION_MAX:
            raise InvalidChangeToken(f"revision must be from 0 to {REVISION_MAX}")

    def to_json(self) -> bytes:
        """Return the token as JSON."""
        return msgspec.json.encode(self)

    @classmethod
    def from_json(cls, data: bytes | str) -> VectorChangeToken:
        """Read a token. InvalidChangeToken for what is none, unknown keys included."""
        try:
            token = msgspec.json.decode(data, type=cls)
        except (msgspec.MsgspecError, UnicodeError) as error:
            raise InvalidChangeToken("it is no JSON of a change token") from error
        token.verify()
        return token


class VectorObservation(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Status and token of one moment; no token where the index has none."""

    status: VectorStatus
    token: VectorChangeToken | None = None

    def verify(self) -> None:
        """Raise InvalidObservation, or InvalidChangeToken, unless both belong together."""
        if self.token is None:
            return
        self.token.verify()
        if self.token.revision != self.status.revision:
            raise InvalidObservation(
                f"the token is of revision {self.token.revision}, the status of {self.status.revision}"
            )


class VectorSearchRequest(msgspec.Struct, frozen=True, kw_only=True):
    """What to look for: the nearest records of some partitions (of all, if none is named) with some labels."""

    embedding: Sequence[float]
    limit: int = 10
    partitions: Sequence[str] = ()  # compared as they are; one that is not there holds nothing
    labels: Mapping[str, LabelFilter] = {}  # all must hold
    min_score: float | None = None

    def __repr__(self) -> str:
        return f"VectorSearchRequest({counted(_count(self.embedding), 'number')}, limit={self.limit})"


class VectorHit(msgspec.Struct, frozen=True, kw_only=True):
    """A record that was found, without its numbers."""

    id: str
    partition: str
    score: float  # higher is nearer; a cosine is from -1 to 1
    labels: Labels
    node_id: str | None = None
    node_revision: int | None = None
    content_digest: str | None = None

    def __repr__(self) -> str:
        return f"VectorHit(score={self.score})"


class VectorSearchResult(msgspec.Struct, frozen=True, kw_only=True):
    """Hits, best first, ties by partition, then id; and what was searched."""

    hits: tuple[VectorHit, ...]
    status: VectorStatus  # of the revision that was searched
    searched_records: int  # that were in the partitions and had the labels
    truncated: bool  # whether the limit left out records that would be hits


class ReplacePartition(msgspec.Struct, frozen=True, kw_only=True):
    """Let a partition hold these records and no others; none removes it."""

    name: str
    records: Sequence[VectorRecord]
    expected_partition_revision: int | None = None  # 0: it must not be there

    def __repr__(self) -> str:
        return f"ReplacePartition({counted(_count(self.records), 'record')})"


class RemovePartition(msgspec.Struct, frozen=True, kw_only=True):
    """Remove a partition; nothing where it is not there."""

    name: str
    expected_partition_revision: int | None = None

    def __repr__(self) -> str:
        return "RemovePartition()"


PartitionChange = ReplacePartition | RemovePartition
"""What `apply` takes."""


def _shown(value: object) -> str:
    if isinstance(value, int | float) and not isinstance(value, bool):
        return shown_number(value)
    return shown_kind(value)


def _count(members: object) -> int | str:
    """Return how many there are, for a repr() that must not fail before the value is refused."""
    return len(members) if isinstance(members, Sized) else "?"


def _is_digest(value: object) -> bool:
    if not isinstance(value, str) or not value.startswith(DIGEST_PREFIX):
        return False
    digits = value.removeprefix(DIGEST_PREFIX)
    return len(digits) == 64 and set(digits) <= _HEX_DIGITS


def checked_revision(revision: int, field: str) -> int:
    """Return a revision that a caller expects; InvalidRequest where it is no whole number of at least 0."""
    if type(revision) is not int or not 0 <= revision <= REVISION_MAX:
        raise InvalidRequest(f"{field} must be a whole number from 0 to {REVISION_MAX}", field=field)
    return revision
