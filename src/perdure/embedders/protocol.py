"""What an embedder is: texts in, vectors out, under the name of the model that made them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from perdure.base.text import counted
from perdure.contract import limits
from perdure.errors import InvalidRequest, Unavailable

Vectors = NDArray[np.float32]
QueryTask = Literal["fact", "conversation"]
QUERY_TASKS: tuple[QueryTask, ...] = ("fact", "conversation")
DIMENSION_MAX = limits.DIMENSION_MAX  # of what a memory keeps


class Embedder(Protocol):
    """Turns texts into vectors whose cosine says how alike the texts are.

    Embedders are called from several threads at once. Vectors need not be of unit length. A row of zeros
    means that a text holds nothing to embed; a fact with such a text is found by its words only.
    """

    @property
    def model(self) -> str:
        """The fingerprint of what decides the vectors: name and digest. Equal models give equal spaces."""
        ...

    @property
    def dimension(self) -> int:
        """How many numbers a vector has."""
        ...

    @property
    def query_task(self) -> QueryTask | None:
        """What queries are embedded for where a model was instructed so; None where it makes no difference."""
        ...

    def embed_documents(self, texts: Sequence[str]) -> Vectors:
        """Return one row per text, in the texts' order: float32, shape (len(texts), dimension), finite.

        Raises:
            Unavailable: the model cannot be reached or loaded; nothing of the batch is returned.
        """
        ...

    def embed_query(self, text: str) -> Vectors:
        """Return the vector of a query: float32, shape (dimension,), finite. Raises as above."""
        ...


def checked_vectors(value: Any, *, count: int, dimension: int, model: str) -> Vectors:
    """Return an embedder's answer as float32 of shape (count, dimension), or raise Unavailable.

    The answer may be any rectangle of real numbers. Refused are another shape, values that are no numbers,
    and NaN, infinities and sizes that float32 cannot hold. Rows of zeros pass.
    """
    try:
        found = np.asarray(value)
    except ValueError as error:  # rows of several lengths
        raise Unavailable(
            f"the embedder {model!r} gave rows of different lengths; it must give {counted(dimension, 'number')} for each text",
            field="embedder",
        ) from error
    if found.dtype.kind not in "fiu":
        raise Unavailable(
            f"the embedder {model!r} gave values of type {found.dtype}; it must give real numbers",
            field="embedder",
        )
    if found.shape != (count, dimension) and not (count == 0 and found.size == 0):
        raise Unavailable(
            f"the embedder {model!r} gave an array of shape {found.shape} for {counted(count, 'text')}; it must be "
            f"({count}, {dimension})",
            field="embedder",
        )
    with np.errstate(over="ignore"):
        vectors = np.ascontiguousarray(found, dtype=np.float32).reshape(count, dimension)
    finite = np.isfinite(vectors).all(axis=1)
    if not finite.all():
        raise Unavailable(
            f"the embedder {model!r} gave a vector that is not finite as float32, for text {int(finite.argmin())} "
            "of the batch",
            field="embedder",
        )
    return vectors


def checked_texts(texts: Sequence[str]) -> list[str]:
    """Return texts as a list; a string in place of a list, or an item that is no text, is InvalidRequest."""
    if isinstance(texts, str | bytes):
        raise InvalidRequest("texts must be a list of texts, got one text; put it into a list", field="texts")
    found = list(texts)
    for index, text in enumerate(found):
        if not isinstance(text, str):
            raise InvalidRequest(
                f"texts[{index}] must be a text, got {type(text).__name__}", field=f"texts[{index}]"
            )
    return found
