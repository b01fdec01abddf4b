"""Which kinds of search answer a question: by words, by meaning, or by both, and how two scores become one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from perdure.base.haste import refuse_to_wait
from perdure.base.text import shown_choice
from perdure.embedders.cached import CachedEmbedder
from perdure.embedders.protocol import Embedder
from perdure.errors import InvalidRequest
from perdure.lexical.profile import is_blank
from perdure.planning import checks
from perdure.planning.questions import checked_query
from perdure.policies.relevance import WEIGHT_MAX
from perdure.search.fusion import WEIGHTS, Fusion
from perdure.search.fusion import Name as FusionName
from perdure.search.query import Mode

MODES: tuple[Mode, ...] = ("lexical", "semantic", "hybrid")
FUSIONS: tuple[FusionName, ...] = ("minmax", "rrf")
PARTS = ("lexical", "semantic")
QUERIES_KEPT = 1_000  # vectors of queries; 4 MB at 1,024 dimensions


class Modes:
    """A configuration's way from a query to its mode and vector."""

    def __init__(self, embedder: Embedder | None, dimension: int | None) -> None:
        # Of queries only: nothing here keeps what was made of a fact that may be forgotten.
        self._embedder = None if embedder is None else CachedEmbedder(embedder, QUERIES_KEPT)
        self._dimension = dimension

    @property
    def are_of_words(self) -> bool:
        """Whether a question that says nothing of it is answered by words alone."""
        return self._embedder is None

    def resolved(
        self, query: str, told: Mapping[str, Any]
    ) -> tuple[Mode, NDArray[np.float32] | None, str, str]:
        """Return the mode, the query's vector with the model that made it, and the query, checked.

        Raises:
            InvalidRequest: an option is malformed, or the query is blank and no embedding is given.
            What the embedder raises.
        """
        wanted = told.get("mode")
        if wanted is not None:
            wanted = checks.checked_choice(wanted, "mode", MODES)
        given = told.get("embedding")
        if given is not None:
            if wanted == "lexical":
                raise InvalidRequest(
                    "mode is lexical, which has no use for an embedding: leave one of the two out",
                    field="embedding",
                )
            vector = np.frombuffer(
                checks.checked_embedding(given, "embedding", self._dimension), dtype=np.float32
            )
            query = checked_query(query, blank=wanted != "lexical")
            # Words that are not there match nothing, so only the vector is left to search with.
            return cast(Mode, wanted or ("semantic" if is_blank(query) else "hybrid")), vector, "", query
        query = checked_query(query)
        if wanted == "lexical" or (wanted is None and self._embedder is None):
            return "lexical", None, "", query
        if self._embedder is None:
            raise InvalidRequest(
                f"mode is {wanted}, which needs a vector: give embedding, or configure an embedder",
                field="mode",
            )
        refuse_to_wait()
        name, found = self._embedder.model, self._embedder.embed_query(query)
        if not found.any():  # nothing of the query means anything to the model: words alone are left
            if wanted == "semantic":
                raise InvalidRequest(
                    f"query holds nothing that the embedder {name} knows: ask with mode lexical",
                    field="query",
                )
            return cast(Mode, wanted or "hybrid"), None, "", query
        return cast(Mode, wanted or "hybrid"), found, name, query


def resolved_fusion(told: Mapping[str, Any], mode: Mode) -> Fusion:
    """Return how two scores become one; a weight that is not told is the usual one of its fusion.

    InvalidRequest where fusion or weights are malformed, or the mode has no two scores.
    """
    kind: FusionName = "minmax"
    if "fusion" in told:
        kind = cast(FusionName, checks.checked_choice(told["fusion"], "fusion", FUSIONS))
    weights = WEIGHTS[kind] if "weights" not in told else _checked_weights(told["weights"], kind)
    for name in ("fusion", "weights"):
        if name in told and mode != "hybrid":
            raise InvalidRequest(
                f"{name} is for mode 'hybrid', and this recall is {mode}: leave {name} out, or ask by words and "
                "meaning, which takes an embedder in the configuration or an embedding with the query",
                field=name,
            )
    return Fusion(kind, *weights)


def _checked_weights(told: Any, kind: FusionName) -> tuple[float, float]:
    usual = dict(zip(PARTS, WEIGHTS[kind], strict=True))
    form = f"{{'lexical': {usual['lexical']}, 'semantic': {usual['semantic']}}}"
    if not isinstance(told, Mapping) or not told:
        got = "an empty one" if isinstance(told, Mapping) else type(told).__name__
        raise InvalidRequest(f"weights must be an object such as {form}, got {got}", field="weights")
    unknown = [key for key in told if key not in PARTS]
    if unknown:
        raise InvalidRequest(
            f"weights has no part {shown_choice(unknown[0])}; there are lexical and semantic, and one that is left "
            f"out keeps its usual weight, as in {form}",
            field="weights",
        )
    lexical, semantic = (
        checks.checked_real(told.get(name, usual[name]), f"weights.{name}", at_most=WEIGHT_MAX)
        for name in PARTS
    )
    if not lexical and not semantic:
        raise InvalidRequest("weights are both 0: one of them must count", field="weights")
    return lexical, semantic
