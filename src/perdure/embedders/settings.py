"""Parameters of embedders that those of policies lack: texts, switches, and values that may be absent."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from perdure.base.text import counted
from perdure.errors import InvalidRequest
from perdure.policies.parameters import Parameter


@dataclass(frozen=True)
class Text:
    """A text of `least` to `most` characters, without control characters."""

    least: int = 1
    most: int = 4_096

    def checked(self, value: Any, *, field: str) -> str:
        if not isinstance(value, str):
            raise InvalidRequest(f"{field} must be a text, got {type(value).__name__}", field=field)
        if not self.least <= len(value) <= self.most:
            raise InvalidRequest(
                f"{field} must have {self.least} to {counted(self.most, 'character')}, got {len(value)}",
                field=field,
            )
        if any(ord(character) < 32 or 0xD800 <= ord(character) < 0xE000 for character in value):
            raise InvalidRequest(
                f"{field} holds a control character or half of a surrogate pair; take it out", field=field
            )
        return str(value)


@dataclass(frozen=True)
class Switch:
    """True or false, and nothing that counts as one of them."""

    def checked(self, value: Any, *, field: str) -> bool:
        if not isinstance(value, bool):
            raise InvalidRequest(f"{field} must be true or false, got {type(value).__name__}", field=field)
        return value


@dataclass(frozen=True)
class Absent:
    """None, or what another parameter allows."""

    otherwise: Parameter

    def checked(self, value: Any, *, field: str) -> Any:
        return None if value is None else self.otherwise.checked(value, field=field)
