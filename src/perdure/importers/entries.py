"""What a file gives, piece by piece: a new fact, or the reason why a piece of it is none."""

from __future__ import annotations

from dataclasses import dataclass

from perdure.model.inputs import NewFact


@dataclass(frozen=True, slots=True)
class Place:
    """Where in the imported files something stands.

    `line` counts from 1 and is None in files that are no lists of lines; `entry` names the part of
    such a file, for example `session_3[7]` (counted from 0).
    """

    file: str
    line: int | None = None
    entry: str | None = None

    def __str__(self) -> str:
        if self.line is not None:
            return f"{self.file}, line {self.line}"
        return self.file if self.entry is None else f"{self.file}, {self.entry}"


@dataclass(frozen=True, slots=True)
class Found:
    """A new fact, not yet checked. `conversation` is the principal it belongs to by itself, if any."""

    place: Place
    fact: NewFact
    conversation: str | None = None


@dataclass(frozen=True, slots=True)
class Bad:
    """A piece that cannot be imported, and why. The reason holds none of the file's text."""

    place: Place
    reason: str


Entry = Found | Bad
