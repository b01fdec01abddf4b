"""Parameters of policies and settings: each range in one place, checked under the name its caller knows."""

from __future__ import annotations

import math
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from perdure.base.canonical import SAFE_INTEGER
from perdure.base.text import counted
from perdure.errors import InvalidRequest

_SHOWN_CHARACTERS_MAX = 64  # a wrong name is shown, a pasted page is not
_SHOWN_BITS_MAX = 128


class Parameter(Protocol):
    """What values a parameter may have."""

    def checked(self, value: Any, *, field: str) -> Any:
        """Return the value in its one normal form, or raise InvalidRequest naming `field`."""
        ...


@dataclass(frozen=True)
class Whole:
    """An integer from `least` to `most`, both included. A bool is none, nor is 1.0."""

    least: int
    most: int = SAFE_INTEGER

    def checked(self, value: Any, *, field: str) -> int:
        if isinstance(value, bool) or not isinstance(value, int):
            raise InvalidRequest(f"{field} must be a whole number, got {type(value).__name__}", field=field)
        if not self.least <= value <= self.most:
            raise InvalidRequest(
                f"{field} must be a whole number from {self.least} to {self.most}, "
                f"got {_shown_number(value)}",
                field=field,
            )
        return int(value)


@dataclass(frozen=True)
class Real:
    """A finite number from `least` to `most`, both included unless `above` excludes `least`.

    Integers are numbers too and become floats; a bool is none.
    """

    least: float = 0.0
    most: float = sys.float_info.max
    above: bool = False

    def checked(self, value: Any, *, field: str) -> float:
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise InvalidRequest(f"{field} must be a number, got {type(value).__name__}", field=field)
        inside = self.least <= value <= self.most and not (self.above and value == self.least)
        if not inside:
            shown = _shown_number(value).removesuffix(".0")  # 7 may have been read as a float in between
            raise InvalidRequest(f"{field} must be a finite number {self._range()}, got {shown}", field=field)
        # Adding 0.0 turns -0.0, which is in range and prints differently, into 0.0.
        return float(value) + 0.0

    def _range(self) -> str:
        start = f"above {self.least:g}" if self.above else f"from {self.least:g}"
        if self.most < sys.float_info.max:
            return f"{start} to {self.most:g}"
        return start if self.above else f"of at least {self.least:g}"


@dataclass(frozen=True)
class Flag:
    """True or false; 1 and 0 are none."""

    def checked(self, value: Any, *, field: str) -> bool:
        if not isinstance(value, bool):
            raise InvalidRequest(f"{field} must be true or false, got {type(value).__name__}", field=field)
        return value


@dataclass(frozen=True)
class OneOf:
    """One of a few names, compared exactly."""

    names: tuple[str, ...]

    def checked(self, value: Any, *, field: str) -> str:
        if not isinstance(value, str):
            raise InvalidRequest(
                f"{field} must be one of {listed(self.names)}, got {type(value).__name__}", field=field
            )
        for name in self.names:
            if name == value:
                return name
        raise InvalidRequest(
            f"{field} must be one of {listed(self.names)}, got {shown_name(value)}", field=field
        )


@dataclass(frozen=True)
class SomeOf:
    """At least one of a few names, compared exactly; kept as a tuple without repetitions, in the order of the names."""

    names: tuple[str, ...]

    def checked(self, value: Any, *, field: str) -> tuple[str, ...]:
        if isinstance(value, str) or not isinstance(value, list | tuple | set | frozenset):
            raise InvalidRequest(f"{field} must be a list of names, got {type(value).__name__}", field=field)
        told = {OneOf(self.names).checked(one, field=field) for one in value}
        if not told:
            raise InvalidRequest(f"{field} is empty; name at least one of {listed(self.names)}", field=field)
        return tuple(name for name in self.names if name in told)


def set_checked(owner: object, parameters: Mapping[str, Parameter]) -> None:
    """Replace the parameters of a frozen value under construction by their checked forms."""
    for name, parameter in parameters.items():
        object.__setattr__(owner, name, parameter.checked(getattr(owner, name), field=name))


def listed(names: tuple[str, ...]) -> str:
    """Return names as a message shows them."""
    return ", ".join(repr(name) for name in names)


def shown_name(name: str) -> str:
    """Return a name as a message shows it: quoted, escaped, its end cut off when it is long."""
    if len(name) <= _SHOWN_CHARACTERS_MAX:
        return ascii(name)
    return (
        f"{name[:_SHOWN_CHARACTERS_MAX]!a} and {counted(len(name) - _SHOWN_CHARACTERS_MAX, 'more character')}"
    )


def _shown_number(value: float) -> str:
    if isinstance(value, int) and value.bit_length() > _SHOWN_BITS_MAX:
        return f"{'-' if value < 0 else ''}2**{value.bit_length() - 1} or more in size"
    return "NaN" if isinstance(value, float) and math.isnan(value) else str(value)
