"""From keyword arguments to a resolved question."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, cast

from perdure.base.instants import Instant, find_millis, to_millis
from perdure.contract import limits
from perdure.errors import InvalidRequest
from perdure.memory.config import HISTORIES, MemoryConfig
from perdure.model.context import Context
from perdure.model.inputs import RecallOptions
from perdure.planning import checks
from perdure.planning.questions import checked_filter, checked_query
from perdure.search.modes import Modes, resolved_fusion
from perdure.search.query import OPEN, Budget, History, Question, Scope, Weighing

NOW = (None, None)  # the present, and everything that is known
NAMES = tuple(RecallOptions.__annotations__)
_KNOWN = frozenset(NAMES)
_SCOPE = ("subject", "entity", "tags", "kind", "pinned", "filter")
NEIGHBOURS_MAX = 8  # positions away; what stands further off is another matter
FACTOR_MAX = 1_000.0

Times = tuple[int | None, int | None]  # as_of (None: the present), known_at (None: everything)


class Asking:
    """A configuration's defaults for questions, resolved once."""

    def __init__(self, config: MemoryConfig) -> None:
        self._k, self._history = config.default_k, config.default_history
        self._modes = Modes(config.embedder_object, config.embedding_dimension)
        self.budget = Budget(config.limits.work, config.limits.frontier, config.limits.bytes)
        self.weighing = Weighing(config.recency_policy, config.ranking_policy, config.historical_weight)
        self.searches_alone = {history: self.weighing.is_identity(history) for history in HISTORIES}

    def question(self, query: str, options: Mapping[str, Any]) -> tuple[Question, Times]:
        """Return the question with `as_of` and `known_at` still open (0 and None), and these two.

        Raises:
            InvalidRequest: an option is unknown or malformed, or the query is blank and no embedding is given.
            What the configuration's embedder raises.
        """
        if not options and self._modes.are_of_words:  # most recalls
            most = _candidates(None, self._k)
            return Question(
                checked_query(query), self._k, 0, None, self._history, OPEN, None, most, self.budget
            ), NOW
        told = {name: value for name, value in options.items() if value is not None}
        if not told.keys() <= _KNOWN:
            raise unknown_option(told)
        mode, vector, model, query = self._modes.resolved(query, told)
        k = self._k if "k" not in told else checks.checked_count(told["k"], "k", 1, limits.K_MAX)
        history, during = told.get("history"), checked_during(told)
        if during is not None:
            history = (
                "all"  # the interval decides in its place, and what is not current at as_of may come back
            )
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
            resolved_fusion(told, mode),
            checked_context(told.get("context")),
            during,
        ), checked_times(told.get("as_of"), told.get("known_at"))


def asked_options(options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options that are told, iterators as tuples, so that they can be read twice."""
    told = ((name, value) for name, value in options.items() if value is not None)
    return {name: tuple(value) if isinstance(value, Iterator) else value for name, value in told}


def unknown_option(told: Mapping[str, Any]) -> InvalidRequest:
    """Return the error that names the first option that there is not."""
    name = sorted(set(told) - _KNOWN)[0][: checks.SHOWN_MAX]
    return InvalidRequest(f"there is no option {name!r}; the options are {', '.join(NAMES)}", field=name)


def _candidates(value: Any, k: int) -> int:
    if value is None:
        return max(limits.CANDIDATES_DEFAULT, k)
    return checks.checked_count(value, "candidate_limit", k, limits.CANDIDATES_MAX)


def checked_during(told: Mapping[str, Any]) -> tuple[int, int] | None:
    """Return the interval of `valid_during` in milliseconds; it goes with no `history` and no `status`."""
    value = told.get("valid_during")
    if value is None:
        return None
    for other in ("history", "status"):
        if told.get(other) is not None:
            raise InvalidRequest(
                f"valid_during says which facts are meant, and so does {other}: leave one of the two out",
                field="valid_during",
            )
    return checked_interval(value, "valid_during")


def checked_interval(value: Any, field: str) -> tuple[int, int]:
    """Return two moments in order, in milliseconds."""
    bounds = [*checks.members_of(value, field, "two moments")]
    if len(bounds) != 2:
        raise InvalidRequest(f"{field} must be two moments, got {len(bounds)}", field=field)
    start, end = (to_millis(bound, field=f"{field}[{place}]") for place, bound in enumerate(bounds))
    if end <= start:
        raise InvalidRequest(f"{field} must end after it begins", field=field)
    return start, end


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
    neighbours = tuple(checks.checked_real(weight, "context.neighbours", at_most=1.0) for weight in weights)
    if len(neighbours) > NEIGHBOURS_MAX:
        raise InvalidRequest(
            f"context.neighbours has {len(neighbours)} weights; at most {NEIGHBOURS_MAX} are allowed",
            field="context.neighbours",
        )
    return Context(
        neighbours=neighbours,
        actor=checks.checked_real(value.actor, "context.actor", 1.0, FACTOR_MAX),
        period=checks.checked_real(value.period, "context.period", 1.0, FACTOR_MAX),
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
    return checks.checked_real(value, "min_score")
