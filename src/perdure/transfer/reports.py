"""Which spaces an export and an import are about."""

from __future__ import annotations

from collections.abc import Collection

from perdure.errors import InvalidRequest
from perdure.model.namespace import Namespace, checked_namespace


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
