"""Exact search over vectors: by row numbers within spaces, and vector indexes of their own for callers.

The names are loaded when they are asked for, so that a store without vectors does not wait for them.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from perdure.vectors.partitioned.errors import (
        BudgetExceeded,
        ConditionalMutationUnsupported,
        DescriptorMismatch,
        DimensionMismatch,
        DuplicateRecordId,
        InvalidChangeToken,
        InvalidDescriptor,
        InvalidLabel,
        InvalidObservation,
        InvalidPartition,
        InvalidRecordId,
        InvalidSearch,
        NonFiniteVector,
        PartitionRevisionConflict,
        RevisionConflict,
        RevisionExhausted,
        StorageCorrupted,
        StorageFailed,
        ZeroVector,
    )
    from perdure.vectors.partitioned.index import PartitionedVectorIndex
    from perdure.vectors.partitioned.protocol import VectorIndex
    from perdure.vectors.partitioned.types import (
        PartitionStatus,
        RemovePartition,
        ReplacePartition,
        StoredVector,
        VectorChangeToken,
        VectorDescriptor,
        VectorHit,
        VectorObservation,
        VectorPage,
        VectorRecord,
        VectorSearchRequest,
        VectorSearchResult,
        VectorStatus,
    )

__all__ = [
    "BudgetExceeded",
    "ConditionalMutationUnsupported",
    "DescriptorMismatch",
    "DimensionMismatch",
    "DuplicateRecordId",
    "InvalidChangeToken",
    "InvalidDescriptor",
    "InvalidLabel",
    "InvalidObservation",
    "InvalidPartition",
    "InvalidRecordId",
    "InvalidSearch",
    "NonFiniteVector",
    "PartitionRevisionConflict",
    "PartitionStatus",
    "PartitionedVectorIndex",
    "RemovePartition",
    "ReplacePartition",
    "RevisionConflict",
    "RevisionExhausted",
    "StorageCorrupted",
    "StorageFailed",
    "StoredVector",
    "VectorChangeToken",
    "VectorDescriptor",
    "VectorHit",
    "VectorIndex",
    "VectorObservation",
    "VectorPage",
    "VectorRecord",
    "VectorSearchRequest",
    "VectorSearchResult",
    "VectorStatus",
    "ZeroVector",
]

_HOMES = ("index", "protocol", "types", "errors")


def __getattr__(name: str) -> Any:
    if name in __all__:
        for home in _HOMES:
            module = import_module(f"perdure.vectors.partitioned.{home}")
            if name in vars(module):
                value = globals()[name] = vars(module)[name]
                return value
    raise AttributeError(f"module 'perdure.vectors' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
