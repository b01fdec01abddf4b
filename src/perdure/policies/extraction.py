"""Entity extraction: a callable that finds the entities of a text."""

from __future__ import annotations

from collections.abc import Callable, Iterable

EntityExtractor = Callable[[str], Iterable[str]]
"""Takes a fact's text and gives its entities, in any order, repeats allowed.

It runs before the write, adds to the entities that the caller told, and must give the same answer
for the same text. An entity is 1 to 1,024 bytes, compared exactly.
"""
