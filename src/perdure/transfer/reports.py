"""What an export and an import answer."""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from perdure.model.namespace import Namespace

Progress = Callable[[int, int], None]
"""Told how much is done, of how much in all; the unit is the teller's own."""


class Exported(msgspec.Struct, frozen=True):
    """What an export wrote. `facts` counts documents too; `records` every line about a space but its first
    and last."""

    spaces: int
    facts: int
    records: int
    size_bytes: int


class Problem(msgspec.Struct, frozen=True):
    """A line that cannot be imported, counted from 1, and why. The reason holds none of the file's text."""

    line: int
    reason: str


class Imported(msgspec.Struct, frozen=True):
    """What an import did, or, in a dry run, would do.

    `created`, `existing` and `skipped` count lines about a space: stored now, there before, and left out.
    `facts` counts the facts and documents among those created. `foreign_receipts` counts the answers under
    idempotency keys that no key of this store leads to, since another secret made them: they are kept for
    the next export and answer nobody here. `spaces` are named as in the file, in its order.
    """

    created: int
    existing: int
    skipped: int
    facts: int
    spaces: tuple[Namespace, ...]
    problems: tuple[Problem, ...]
    foreign_receipts: int = 0
    dry_run: bool = False
