"""Asking several memories of one store at once, and fitting what they answer into a size."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from msgspec import structs

from perdure.contract.wire import results_size
from perdure.errors import InvalidRequest
from perdure.model.hit import Hit, Part
from perdure.model.namespace import Namespace, checked_namespace
from perdure.planning import checks
from perdure.search.fusion import RRF_K

SPACES_MAX = 64
BYTES_MIN = 2  # of no results: []
BYTES_MAX = 2**31 - 1


def checked_spaces(value: Any, own: Namespace) -> tuple[Namespace, ...]:
    """Return the further memories that are named, each once, in order; never the caller's own.

    A text is a scope of the same principal; an object has `principal` and `scope`, each "" when absent.
    """
    if value is None:
        return ()
    found: dict[Namespace, None] = {}
    for member in checks.members_of(value, "spaces", "names of scopes, or objects with principal and scope"):
        if isinstance(member, Namespace):
            member = {"principal": member.principal, "scope": member.scope}  # noqa: PLW2901 - checked as any other
        if isinstance(member, str):
            name = checked_namespace(own.principal, member)
        elif isinstance(member, Mapping) and not set(member) - {"principal", "scope"}:
            name = checked_namespace(member.get("principal"), member.get("scope"))
        else:
            raise InvalidRequest(
                "spaces must hold names of scopes, or objects with principal and scope and nothing else",
                field="spaces",
            )
        if name != own:
            found[name] = None
    if len(found) > SPACES_MAX:
        raise InvalidRequest(
            f"spaces names {len(found)} memories; at most {SPACES_MAX} are allowed", field="spaces"
        )
    return tuple(found)


def merged(answers: Sequence[tuple[Namespace, Sequence[Hit]]], k: int) -> list[Hit]:
    """Return the k best of several memories' hits by their ranks: 1 / (10 + rank), ties in the order asked.

    Scores of different memories do not compare, since each counts its own words; ranks do.
    """
    found = []
    for space, hits in answers:
        for rank, hit in enumerate(hits, 1):
            score = 1.0 / (RRF_K + rank)
            why = hit.explanation
            if why is not None:
                why = structs.replace(why, final_score=score, parts=(Part("rank", score),))
            found.append(structs.replace(hit, score=score, explanation=why, space=space))
    return sorted(found, key=lambda hit: -hit.score)[:k]


def fitting(hits: Sequence[Hit], max_bytes: int) -> list[Hit]:
    """Return the first hits that take at most so many bytes as a compact JSON array."""
    return [hit for hit, size in zip(hits, results_size(hits), strict=True) if size <= max_bytes]


def checked_bytes(value: Any, field: str = "max_bytes") -> int | None:
    """Return how many bytes are allowed, None for any number."""
    return None if value is None else checks.checked_count(value, field, BYTES_MIN, BYTES_MAX)


def refuse_recall_only(options: Mapping[str, Any], operation: str) -> None:
    """Raise InvalidRequest for the options that only a recall has a use for."""
    for name in ("spaces", "max_bytes"):
        if options.get(name) is not None:
            raise InvalidRequest(
                f"{name} is an option of recall; {operation} looks into one memory", field=name
            )
