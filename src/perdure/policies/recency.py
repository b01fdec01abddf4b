"""Recency: how much an older fact weighs in recall."""

from __future__ import annotations

import math
import numbers
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from perdure.errors import InvalidRequest
from perdure.model.status import Status
from perdure.policies.parameters import OneOf, Parameter, Real, Whole, set_checked

Basis = Literal["event", "ingest"]
BASES: tuple[Basis, ...] = ("event", "ingest")


@dataclass(frozen=True, kw_only=True)
class RecencyContext:
    """What a recency policy sees of one candidate. Times are milliseconds since 1970.

    `age_ms` is the age at `as_of` by the policy's basis, at least 0; None for a document without
    any time. `status` is the fact's status at `as_of`.
    """

    as_of: int
    age_ms: int | None
    event_time: int | None
    valid_from: int | None
    valid_to: int | None
    ingest_time: int | None
    importance: float | None
    kind: str | None
    status: Status


class RecencyPolicy(Protocol):
    """Multiplies the score of each candidate. Only candidates within the budget are reordered."""

    @property
    def is_identity(self) -> bool:
        """True when every factor is 1: recall then keeps the order of search and multiplies nothing."""
        ...

    @property
    def basis(self) -> Basis:
        """The time that age is counted from (see `age`)."""
        ...

    def factor(self, context: RecencyContext) -> float:
        """Return a finite factor of at least 0; anything else fails the recall (see `checked_factor`)."""
        ...


@dataclass(frozen=True)
class NoRecency:
    """Weigh every fact alike. The default."""

    @property
    def is_identity(self) -> bool:
        return True

    @property
    def basis(self) -> Basis:
        return "event"

    def factor(self, context: RecencyContext) -> float:
        return 1.0


@dataclass(frozen=True)
class ExponentialRecency:
    """Halve a fact's weight with every half-life, down to a floor.

    factor = max(floor, 0.5 ** (age / half_life)): 1 at age 0, 0.5 at one half-life, never growing
    with age; 1 for facts of the future and for documents without any time.

    Args:
        half_life_ms: the age at which a fact weighs half, in milliseconds, at least 1.
        basis: `event` counts from event_time, else valid_from, else ingest_time; `ingest` from
            ingest_time.
        floor: the least weight, 0 to 1. With 1 the policy changes nothing.
    """

    half_life_ms: int
    basis: Basis = "event"
    floor: float = 0.0

    PARAMETERS: ClassVar[Mapping[str, Parameter]] = {
        "half_life_ms": Whole(1),
        "basis": OneOf(BASES),
        "floor": Real(0.0, 1.0),
    }

    def __post_init__(self) -> None:
        set_checked(self, self.PARAMETERS)

    @property
    def is_identity(self) -> bool:
        return self.floor == 1.0

    def factor(self, context: RecencyContext) -> float:
        return 1.0 if context.age_ms is None else self._decayed(context.age_ms)

    def factors(self, ages: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the factors of ages in milliseconds, shape (n,); NaN stands for no time at all.

        Bit for bit what `factor` gives for each.
        """
        exponents = -(np.maximum(ages, 0.0) / self.half_life_ms)
        # NumPy's own exp2 may be a vector routine that differs from libm's in the last bit.
        decayed = np.array([math.exp2(exponent) for exponent in exponents.tolist()], np.float64)
        return np.where(np.isnan(ages), 1.0, np.maximum(decayed, self.floor))

    def _decayed(self, age_ms: float) -> float:
        return max(self.floor, math.exp2(-(max(age_ms, 0) / self.half_life_ms)))


def age(
    basis: Basis, as_of: int, *, event_time: int | None, valid_from: int | None, ingest_time: int | None
) -> int | None:
    """Return the age in milliseconds at `as_of`, at least 0, or None where the basis has no time.

    Basis `event` counts from event_time, else valid_from, else ingest_time; `ingest` from
    ingest_time. (What a fact supersedes takes effect by another order: valid_from comes first there.)
    """
    start = ingest_time
    if basis == "event":
        start = (
            event_time if event_time is not None else valid_from if valid_from is not None else ingest_time
        )
    return None if start is None else max(0, as_of - start)


def checked_factor(value: Any) -> float:
    """Return a policy's factor as a float.

    Raises:
        InvalidRequest: no number, NaN, infinite or negative. It is never clamped in silence.
    """
    if isinstance(value, bool) or not isinstance(value, numbers.Real):
        raise InvalidRequest(
            f"the recency policy must return a number as factor, got {type(value).__name__}", field="recency"
        )
    try:
        factor = float(value) + 0.0  # turns -0.0 into 0.0
    except OverflowError:
        factor = math.inf
    if not 0.0 <= factor < math.inf:
        shown = "NaN" if math.isnan(factor) else factor
        raise InvalidRequest(
            f"the recency policy returned the factor {shown}; it must be finite and at least 0",
            field="recency",
        )
    return factor
