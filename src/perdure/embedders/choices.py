"""The embedders that a configuration may name."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from perdure.embedders.hashing import HashingEmbedder
from perdure.embedders.http import HttpEmbedder
from perdure.embedders.onnx import OnnxEmbedder
from perdure.embedders.protocol import DIMENSION_MAX, QUERY_TASKS, Embedder, QueryTask, Vectors, checked_texts
from perdure.embedders.settings import Text
from perdure.embedders.static import StaticEmbedder
from perdure.policies.choices import Choice
from perdure.policies.parameters import Whole


@dataclass(frozen=True, slots=True)
class NoEmbedder:
    """Embeds nothing: every row is zeros, so facts are found by their words only."""

    @property
    def model(self) -> str:
        return "none"

    @property
    def dimension(self) -> int:
        return 1

    @property
    def query_task(self) -> QueryTask | None:
        return None

    def embed_documents(self, texts: Sequence[str]) -> Vectors:
        return np.zeros((len(checked_texts(texts)), 1), np.float32)

    def embed_query(self, text: str) -> Vectors:
        checked_texts([text])
        return np.zeros(1, np.float32)


BUILT_IN: Mapping[str, type[Any]] = {
    "none": NoEmbedder,
    "static": StaticEmbedder,
    "hashing": HashingEmbedder,
    "onnx": OnnxEmbedder,
    "http": HttpEmbedder,
}


class EmbedderChoice(Choice[Embedder]):
    """A choice whose objects also tell a model and a dimension, and may be absent."""

    def checked(self, value: Any, *, field: str) -> Embedder | str:
        """Return the normal form of a name or an embedder, or raise InvalidRequest naming `field`.

        Built-in embedders are taken as they are: what some of them tell, only their files know.
        """
        normal = super().checked(value, field=field)
        if not isinstance(normal, str) and type(normal) not in BUILT_IN.values():
            Text().checked(getattr(normal, "model", None), field=f"{field}.model")
            Whole(1, DIMENSION_MAX).checked(getattr(normal, "dimension", None), field=f"{field}.dimension")
        return normal

    def found(self, value: Embedder | str) -> Embedder | None:
        """Return the embedder of a normal form; None where it is `none`."""
        return None if value == "none" else self.resolved(value)


EMBEDDERS = EmbedderChoice(
    BUILT_IN,
    methods=("embed_documents", "embed_query"),
    attributes={"query_task": (*QUERY_TASKS, None)},
)
