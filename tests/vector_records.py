"""What tests of vector indexes share: records, small indexes, an oracle in plain float64."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from perdure.vectors import PartitionedVectorIndex, VectorDescriptor, VectorRecord, VectorSearchRequest

PLANE = VectorDescriptor(dimension=2)


def record(id_: str, *embedding: float, **labels: str) -> VectorRecord:
    return VectorRecord(id=id_, embedding=embedding, labels=labels)


def found(index: PartitionedVectorIndex, *embedding: float, limit: int = 10, **asked) -> list[str]:
    """Return the ids that a search finds, best first."""
    request = VectorSearchRequest(embedding=embedding, limit=limit, **asked)
    return [hit.id for hit in index.search(request).hits]


def oracle(
    rows: Sequence[tuple[str, str, Sequence[float]]], query: Sequence[float], metric: str
) -> list[tuple[float, str, str]]:
    """Return (score, partition, id) of all rows, best first, computed one by one with exact sums."""
    scored = []
    for partition, id_, embedding in rows:
        product = math.fsum(float(a) * float(b) for a, b in zip(embedding, query, strict=True))
        if metric == "cosine":
            lengths = (math.sqrt(math.fsum(float(a) ** 2 for a in each)) for each in (embedding, query))
            product /= math.prod(lengths)
        scored.append((product, partition, id_))
    return sorted(scored, key=lambda one: (-one[0], one[1], one[2]))


def float32(values: Sequence[float]) -> list[float]:
    return np.asarray(values, dtype=np.float32).tolist()
