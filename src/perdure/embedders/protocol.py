"""Embedder: from texts to vectors whose cosine says how alike the texts are."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from perdure.errors import Unavailable

Floats = NDArray[np.float32]


class Embedder(Protocol):
    """Turns texts into vectors. Called from any number of threads at once."""

    @property
    def model(self) -> str:
        """A fingerprint: equal for embedders whose vectors compare, and for no others."""
        ...

    @property
    def dimension(self) -> int:
        """The length of every vector."""
        ...

    @property
    def query_task(self) -> Literal["fact", "conversation"] | None:
        """What its queries are made for, where that matters."""
        ...

    def embed_documents(self, texts: Sequence[str]) -> Floats:
        """Return one vector a text, shape (len(texts), dimension); a row of zeros where nothing can be said."""
        ...

    def embed_query(self, text: str) -> Floats:
        """Return the vector of a query, shape (dimension,)."""
        ...


def checked_vectors(found: Any, count: int, dimension: int) -> Floats:
    """Return what an embedder gave as float32 of shape (count, dimension).

    Raises:
        Unavailable: it is of another shape, or not finite.
    """
    vectors = np.asarray(found, dtype=np.float32)
    if vectors.shape != (count, dimension):
        raise Unavailable(
            f"the embedder gave vectors of shape {vectors.shape}, not ({count}, {dimension}): it is broken",
            field="embedder",
        )
    if not np.isfinite(vectors).all():
        raise Unavailable("the embedder gave numbers that are not finite: it is broken", field="embedder")
    return vectors
