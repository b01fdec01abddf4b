"""Vectors of what is told, made before any lock is taken: given by the caller, or by an embedder."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from perdure.base.text import counted
from perdure.embedders.protocol import Embedder, checked_vectors
from perdure.planning import checks
from perdure.space.state import TOLD

log = logging.getLogger("perdure.embedding")
FAILED = "stored without a vector, since the embedder failed: embed_missing (perdure embed-missing) adds it"


class Vectors(NamedTuple):
    """One vector a unit, as float32 bytes, in order (empty: none), and the model that made them."""

    units: tuple[bytes, ...] = ()
    model: str = TOLD
    reason: str | None = None  # why there is none where there should be one

    @property
    def told(self) -> tuple[bytes, ...]:
        """Those that the caller gave: a part of what was told."""
        return self.units if self.model == TOLD else ()


NO_VECTORS = Vectors()


class Embedding:
    """Where a memory's vectors come from."""

    def __init__(self, embedder: Embedder | None, dimension: int | None) -> None:
        self.embedder, self.dimension = embedder, dimension

    def told(self, value: Any) -> Vectors:
        """Return one vector as the caller gave it; none for None. InvalidRequest names `embedding`."""
        if value is None:
            return NO_VECTORS
        return Vectors((checks.checked_embedding(value, "embedding", self.dimension),))

    def told_units(self, value: Any, units: int) -> Vectors:
        """Return the vectors of a document's units: a list of one a unit, or a single one where it has one unit.

        InvalidRequest names `embedding`.
        """
        if value is None:
            return NO_VECTORS
        members = [*checks.members_of(value, "embedding", "vectors")]
        if members and isinstance(members[0], int | float | np.number):
            members = [members]
        if len(members) != units:
            raise checks.wrong_units(len(members), units)
        return Vectors(
            tuple(checks.checked_embedding(member, "embedding", self.dimension) for member in members)
        )

    def of_units(self, texts: Sequence[str]) -> Vectors:
        """Return the vectors of a document's units from the embedder, as `made` does."""
        made = self.made(texts)
        if self.embedder is None or any(vectors.reason for vectors in made):
            return made[0]
        return Vectors(tuple(data for one in made for data in one.units or (b"",)), made[0].model)

    def made(self, texts: Sequence[str]) -> list[Vectors]:
        """Return a vector a text from the embedder; where it fails, none, with the reason. Logged, never raised."""
        embedder = self.embedder
        if embedder is None or not texts:
            return [NO_VECTORS] * len(texts)
        try:
            found = checked_vectors(
                embedder.embed_documents(list(texts)),
                count=len(texts),
                dimension=embedder.dimension,
                model=embedder.model,
            )
        except Exception as error:  # noqa: BLE001 - an embedder of anybody's: what is told must not be lost with it
            what = "1 text" if len(texts) == 1 else f"{counted(len(texts), 'text')}"
            log.warning("the embedder failed for %s: %s", what, type(error).__name__)
            return [Vectors((), embedder.model, FAILED)] * len(texts)
        return [Vectors((row.astype("<f4").tobytes(),) if row.any() else (), embedder.model) for row in found]
