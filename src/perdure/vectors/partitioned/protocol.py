"""What every vector index does, of whatever backend; what a backend cannot do fails closed."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence

from perdure.vectors.partitioned.errors import ConditionalMutationUnsupported
from perdure.vectors.partitioned.types import (
    Consistency,
    VectorChangeToken,
    VectorDescriptor,
    VectorObservation,
    VectorRecord,
    VectorSearchRequest,
    VectorSearchResult,
    VectorStatus,
)


class VectorIndex(ABC):
    """Records with vectors, in partitions that are replaced whole; searched exactly or not at all.

    An index of one's own derives from it and gives what is abstract. Unless it overrides the others it promises
    that a partition changes in one step, and refuses conditions.
    """

    @property
    @abstractmethod
    def descriptor(self) -> VectorDescriptor:
        """What the index was made for."""

    @property
    def consistency(self) -> Consistency:
        """Whether conditions on the revision of the whole index are kept: "index_revision_cas"."""
        return "partition_atomic"

    @abstractmethod
    def replace_partition(self, name: str, records: Sequence[VectorRecord]) -> VectorStatus:
        """Let a partition hold these records and no others, in one step; no records remove it."""

    @abstractmethod
    def remove_partition(self, name: str) -> VectorStatus:
        """Remove a partition; nothing where it is not there."""

    @abstractmethod
    def clear(self) -> VectorStatus:
        """Remove every partition; the revision goes on."""

    @abstractmethod
    def search(self, request: VectorSearchRequest) -> VectorSearchResult:
        """Return the nearest records of one revision."""

    @abstractmethod
    def status(self) -> VectorStatus:
        """Return what the index holds, as far as this handle knows; it may be stale."""

    def replace_partition_if_revision(
        self, name: str, expected_revision: int, records: Sequence[VectorRecord]
    ) -> VectorStatus:
        """Replace a partition if the index is at this revision. Refused unless a backend overrides it."""
        raise ConditionalMutationUnsupported

    def remove_partition_if_revision(self, name: str, expected_revision: int) -> VectorStatus:
        """Remove a partition if the index is at this revision. Refused unless a backend overrides it."""
        raise ConditionalMutationUnsupported

    def change_token(self) -> VectorChangeToken | None:
        """Return the token of what this handle knows, which may be stale; None where the index has none."""
        return None

    def observe(self) -> VectorObservation:
        """Return status and token of one moment."""
        return VectorObservation(status=self.status())
