"""From keyword arguments to a resolved question."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from perdure.base.instants import Instant, find_millis
from perdure.base.text import shown_number
from perdure.contract import limits
from perdure.errors import InvalidRequest
from perdure.memory.config import HISTORIES, MemoryConfig
from perdure.model.context import Context
from perdure.model.inputs import RecallOptions
from perdure.planning import checks
from perdure.planning.questions import checked_filter, checked_query
from perdure.search.fusion import WEIGHTS, Fusion
from perdure.search.fusion import Name as FusionName
from perdure.search.query import OPEN, Budget, History, Mode, Question, Scope, Weighing

NOW = (None, None)  # the present, and everything that is known
MODES: tuple[Mode, ...] = ("lexical", "semantic", "hybrid")
FUSIONS: tuple[FusionName, ...] = ("minmax", "rrf")
NAMES = tuple(RecallOptions.__annotations__)
_KNOWN = frozenset(NAMES)
_SCOPE = ("subject", "entity", "tags", "kind", "pinned", "filter")
_TIMES = ("as_of", "known_at")
NEIGHBOURS_MAX = 8  # positions away; what stands further off is another matter
FACTOR_MAX = 1_000.0

Times = tuple[int | None, int | None]  # as_of (None: the present), known_at (None: everything)


class Asking:
    """A configuration's defaults for questions, resolved once."""

    def __init__(self, config: MemoryConfig) -> None:
        self._k, self._history = config.default_k, config.default_history
        self._embedder = config.embedder_object
        self._dimension = config.embedding_dimension
        self.budget = Budget(config.limits.work, config.limits.frontier, config.limits.bytes)
        self.weighing = Weighing(config.recency_policy, config.ranking_policy, config.historical_weight)
        self.searches_alone = {history: self.weighing.is_identity(history) for history in HISTORIES}

    def question(self, query: str, options: Mapping[str, Any]) -> tuple[Question, Times]:
        """Return the question with `as_of` and `known_at` still open (0 and None), and these two.

        Raises:
            InvalidRequest: an option is unknown or malformed, or the query is blank and no embedding is given.
            What the configuration's embedder raises.
        """
        told = {name: value for name, value in options.items() if value is not None}
        if not told.keys() <= _KNOWN:
            raise unknown_option(told)
        mode, vector, model, query = self._mode(query, told)
        k = self._k if "k" not in told else checks.checked_count(told["k"], "k", 1, limits.K_MAX)
        history = told.get("history")
        if told.keys().isdisjoint(_SCOPE):
            scope = OPEN
        else:
            scope = checked_scope(**{name: told[name] for name in _SCOPE if name in told})
        return Question(
            query,
            k,
            0,
            None,
            self._history
            if history is None
            else cast(History, checks.checked_choice(history, "history", HISTORIES)),
            scope,
            _checked_score(told["min_score"]) if "min_score" in told else None,
            _candidates(told.get("candidate_limit"), k),
            self.budget,
            mode,
            vector,
            model,
            _fusion(told, mode),
            checked_context(told.get("context")),
        ), checked_times(told.get("as_of"), told.get("known_at"))

    def _mode(self, query: str, told: Mapping[str, Any]) -> tuple[Mode, NDArray[np.float32] | None, str, str]:
        """Return the mode, the query's vector with the model that made it, and the query."""
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
            return cast(Mode, wanted or ("hybrid" if query.strip() else "semantic")), vector, "", query
        query = checked_query(query)
        if wanted == "lexical" or (wanted is None and self._embedder is None):
            return "lexical", None, "", query
        if self._embedder is None:
            raise InvalidRequest(
                f"mode is {wanted}, which needs a vector: give embedding, or configure an embedder",
                field="mode",
            )
        embedded = self._embedder.embed_query(query)
        return cast(Mode, wanted or "hybrid"), embedded, self._embedder.model, query


def unknown_option(told: Mapping[str, Any]) -> InvalidRequest:
    """Return the error that names the first option that there is not."""
    name = sorted(set(told) - _KNOWN)[0][: checks.SHOWN_MAX]
    return InvalidRequest(f"there is no option {name!r}; the options are {', '.join(NAMES)}", field=name)


def _candidates(value: Any, k: int) -> int:
    if value is None:
        return max(limits.CANDIDATES_DEFAULT, k)
    return checks.checked_count(value, "candidate_limit", k, limits.CANDIDATES_MAX)


def _fusion(told: Mapping[str, Any], mode: Mode) -> Fusion:
    for name in ("fusion", "weights"):
        if name in told and mode != "hybrid":
            raise InvalidRequest(
                f"{name} is for mode 'hybrid', and this is {mode}: leave it out, or give an embedding",
                field=name,
            )
    kind: FusionName = "minmax"
    if "fusion" in told:
        kind = cast(FusionName, checks.checked_choice(told["fusion"], "fusion", FUSIONS))
    usual = WEIGHTS[kind]
    if "weights" not in told:
        return Fusion(kind, *usual)
    weights = told["weights"]
    if not isinstance(weights, Mapping) or not weights or set(weights) - {"lexical", "semantic"}:
        raise InvalidRequest(
            "weights must be an object of lexical and semantic, such as 0.7 and 0.3", field="weights"
        )
    lexical, semantic = (
        checked_real(weights.get(name, default), f"weights.{name}")
        for name, default in zip(("lexical", "semantic"), usual, strict=True)
    )
    if not lexical and not semantic:
        raise InvalidRequest("weights are both 0: one of them must count", field="weights")
    return Fusion(kind, lexical, semantic)


def checked_context(value: Any) -> Context | None:
    """Return how to look around matches: not at all, as usual (True), or as told."""
    if value is None or value is False:
        return None
    if value is True:
        return Context()
    if isinstance(value, Mapping):
        unknown = sorted(str(key)[: checks.SHOWN_MAX] for key in set(value) - set(Context.__struct_fields__))
        if unknown:
            raise InvalidRequest(
                f"context has no field {unknown[0]!r}; it has {', '.join(Context.__struct_fields__)}",
                field="context",
            )
        value = Context(**value)
    if not isinstance(value, Context):
        raise InvalidRequest(
            f"context must be true, false or an object, got {type(value).__name__}", field="context"
        )
    weights = checks.members_of(value.neighbours, "context.neighbours", "numbers")
    neighbours = tuple(checked_real(weight, "context.neighbours", at_most=1.0) for weight in weights)
    if len(neighbours) > NEIGHBOURS_MAX:
        raise InvalidRequest(
            f"context.neighbours has {len(neighbours)} weights; at most {NEIGHBOURS_MAX} are allowed",
            field="context.neighbours",
        )
    return Context(
        neighbours=neighbours,
        actor=checked_real(value.actor, "context.actor", 1.0, FACTOR_MAX),
        period=checked_real(value.period, "context.period", 1.0, FACTOR_MAX),
    )


def checked_scope(
    *,
    subject: str | None = None,
    entity: str | None = None,
    tags: Iterable[str] | None = None,
    kind: str | None = None,
    pinned: bool | None = None,
    filter: Mapping[str, Any] | None = None,  # noqa: A002 - the field's name on every surface
) -> Scope:
    """Return a read's scope, every value checked."""
    if (
        subject is None
        and entity is None
        and tags is None
        and kind is None
        and pinned is None
        and filter is None
    ):
        return OPEN
    return Scope(
        None if subject is None else checks.checked_name(subject, "subject"),
        None if entity is None else checks.checked_name(entity, "entity"),
        checks.checked_names(tags, "tags", limits.TAGS_MAX),
        checks.checked_kind(kind),
        None if filter is None else checked_filter(filter),
        None if pinned is None else checks.checked_flag(pinned, "pinned"),
    )


def checked_times(as_of: Instant | None, known_at: Instant | None) -> Times:
    if as_of is None and known_at is None:
        return NOW
    return find_millis(as_of, field="as_of"), find_millis(known_at, field="known_at")


def _checked_score(value: float) -> float:
    return checked_real(value, "min_score")


def checked_real(value: Any, field: str, at_least: float = 0.0, at_most: float = math.inf) -> float:
    """Return a finite number in a range; booleans are none."""
    number = isinstance(value, int | float) and not isinstance(value, bool)
    value = checks.plain_number(value) if number else value
    # Compared, not converted to a float: an integer may be too large for a float. NaN is in no range.
    if not number or not at_least <= value <= at_most or value == math.inf:
        shown = shown_number(value) if number else type(value).__name__
        limit = "" if at_most == math.inf else f" and at most {at_most:g}"
        raise InvalidRequest(
            f"{field} must be a finite number of at least {at_least:g}{limit}, got {shown}", field=field
        )
    return float(value)
