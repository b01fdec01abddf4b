"""What an export and an import answer."""

from __future__ import annotations

from collections.abc import Collection

import msgspec

from perdure.errors import InvalidRequest
from perdure.model.namespace import Namespace, checked_namespace


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


def checked_spaces(spaces: Collection[Namespace] | None) -> frozenset[Namespace] | None:
    """Return the names that were asked for; None means all.

    Raises InvalidRequest for what is no name, or none at all, which would ask for nothing.
    """
    if spaces is None:
        return None
    if isinstance(spaces, Namespace | str | bytes) or not isinstance(spaces, Collection):
        raise InvalidRequest(
            f"spaces must be a list of Namespace, got {type(spaces).__name__}", field="spaces"
        )
    names = frozenset(checked_space(name, field="spaces") for name in spaces)
    if not names:
        raise InvalidRequest("spaces is empty; name one, or leave it out for all", field="spaces")
    return names


def checked_space(name: Namespace, *, field: str) -> Namespace:
    """Return the name; raises InvalidRequest for what is none."""
    if not isinstance(name, Namespace):
        raise InvalidRequest(f"{field} must hold a Namespace, got {type(name).__name__}", field=field)
    return checked_namespace(name.principal, name.scope)
