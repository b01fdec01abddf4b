"""Uniting what is noted of facts that say the same: tags, kind, importance, metadata."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

STRENGTH = {None: 0, "episodic": 1, "working": 2, "procedural": 3, "semantic": 3}
LIST_KEYS = (
    "supersedes",
    "conflicts_with",
    "tools",
    "aliases",
    "entity_aliases",
)  # of metadata: lists, by commas


def united_tags(told: Iterable[Sequence[str]]) -> tuple[str, ...]:
    """Return all tags, sorted."""
    return tuple(sorted({tag for tags in told for tag in tags}))


def united_kind(told: Iterable[str | None]) -> str | None:
    """Return the strongest kind, the first of equally strong ones: semantic and procedural, working, episodic."""
    return max(told, key=STRENGTH.__getitem__, default=None)


def united_importance(told: Iterable[float | None]) -> float | None:
    """Return the highest importance; None where none was told."""
    return max((importance for importance in told if importance is not None), default=None)


def united_metadata(kept: Mapping[str, Any], other: Mapping[str, Any]) -> dict[str, Any]:
    """Return the metadata of a fact united with that of another telling.

    What is kept wins. Of the other, values that are blank (None, "", [], {}) are left out, and those of list keys
    are appended, each once: lists to lists, texts by their commas.
    """
    united = dict(kept)
    for key, value in other.items():
        if _is_blank(value):
            continue
        if _is_blank(united.get(key)):
            united[key] = value
        elif key in LIST_KEYS:
            united[key] = _united_list(united[key], value)
    return united


def _is_blank(value: Any) -> bool:
    return not value.strip() if isinstance(value, str) else value is None or value in ([], {})


def _united_list(kept: Any, other: Any) -> Any:
    """Return the list with the other's members after its own, in the form of the first; no list stays as it is."""
    mine, theirs = _members(kept), _members(other)
    if mine is None or theirs is None:
        return kept
    missing = [
        member for place, member in enumerate(theirs) if member not in mine and member not in theirs[:place]
    ]
    if not missing:
        return kept
    if isinstance(kept, list):
        return [*kept, *missing]
    if not all(isinstance(member, str) for member in missing):
        return kept
    return ",".join([*dict.fromkeys(mine), *missing])


def _members(value: Any) -> list[Any] | None:
    if isinstance(value, list):
        return value
    return [part for told in value.split(",") if (part := told.strip())] if isinstance(value, str) else None
