"""The requests of operations on whole spaces and stores."""

from __future__ import annotations

from typing import Annotated

from perdure.contract.requests.fields import Filter, Request, SpaceInput, limited


class Reindex(Request, frozen=True, kw_only=True):
    """Analyse all texts of a space anew, under other settings."""

    profile: str | None = None
    k1: float | None = None
    b: float | None = None
    embeddings: bool | None = None


class EmbedMissing(Request, frozen=True, kw_only=True):
    """Embed what has no vector."""

    limit: Annotated[int, limited("Texts at most.", minimum=1, maximum=100_000)] | None = None
    dry_run: bool | None = None


class Spaces(Request, frozen=True, kw_only=True):
    """The names of all spaces that hold records."""


class Stats(Request, frozen=True, kw_only=True):
    """The store's sizes."""


class Verify(Request, frozen=True, kw_only=True):
    """Check that all of the store is as it was written."""

    quick: bool | None = None


class Purge(Request, frozen=True, kw_only=True):
    """Rewrite the store so that nothing of what was forgotten is left in it."""


class Erase(Request, frozen=True, kw_only=True):
    """Erase every memory of a principal, or that of one scope."""

    principal: str
    scope: str | None = None
    dry_run: bool | None = None


class Export(Request, frozen=True, kw_only=True):
    """Write all that spaces hold as lines of JSON."""

    spaces: list[SpaceInput] | None = None
    filter: Filter | None = None
    blocks: bool | None = None


class Import(Request, frozen=True, kw_only=True):
    """Store what an export holds."""

    dry_run: bool | None = None
    strict: bool | None = None
    spaces: list[SpaceInput] | None = None
    into: SpaceInput | None = None
