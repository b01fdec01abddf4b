"""Planning vectors: one dimension and one model a space, whoever tells them."""

from __future__ import annotations

from collections.abc import Sequence

from perdure.base.text import counted
from perdure.errors import InvalidRequest
from perdure.log.records import VectorRecord
from perdure.space.draft import Draft
from perdure.space.state import TOLD, VECTOR_ITEM


def find_other_model(draft: Draft, model: str) -> str | None:
    """Return a model of the space's vectors that `model` does not go with; what callers told goes with any."""
    if model == TOLD:
        return None
    return next((other for other in sorted(draft.models()) if other not in (TOLD, model)), None)


def add_vectors(draft: Draft, number: int, vectors: Sequence[bytes], model: str) -> None:
    """Plan the vectors of a fact's or document's units, in order; an empty one means none.

    Raises:
        InvalidRequest: the space's vectors have another dimension, or another model made them.
    """
    for unit, data in enumerate(vectors):
        if data:
            add_vector(draft, number, unit, data, model)


def add_vector(draft: Draft, number: int, unit: int, data: bytes, model: str) -> None:
    """Plan the vector of one unit. Raises as `add_vectors`."""
    check_fits(draft, data, model)
    draft.add(VectorRecord(number, unit, data, model, draft.now))


def check_fits(draft: Draft, data: bytes, model: str) -> None:
    """Raise InvalidRequest unless a vector goes with those of the space."""
    dimension = len(data) // VECTOR_ITEM
    if draft.dimension not in (0, dimension):
        raise InvalidRequest(
            f"embedding has {counted(dimension, 'dimension')}, but the vectors of this memory have {draft.dimension}; give one "
            f"of that length, or {_remedy(draft)}",
            field="embedding",
        )
    refuse_other_model(find_other_model(draft, model), model)


def _remedy(draft: Draft) -> str:
    # A reindexing makes anew what embedders made; what callers gave it keeps.
    if TOLD in draft.models():
        return "forget the facts whose embeddings were given"
    return "reindex with embeddings=True (perdure reindex --embeddings) to embed everything anew"


def refuse_other_model(other: str | None, model: str) -> None:
    """Raise InvalidRequest where the space's vectors are another model's."""
    if other is not None:
        raise InvalidRequest(
            f"embedder is {model}, but the vectors of this memory were made by {other}; their scores do not "
            "compare: use that model, or reindex with embeddings=True (perdure reindex --embeddings) to embed "
            "everything anew",
            field="embedder",
        )


def same_embedding(draft: Draft, number: int, told: Sequence[bytes]) -> bool:
    """Whether these are the vectors that the caller gave with the stored fact or document (none are none)."""
    if not told and TOLD not in draft.models():
        return True
    stored = [draft.vector(number, unit) for unit in range(draft.unit_count(number))]
    return list(told) == [record.data for record in stored if record is not None and record.model == TOLD]
