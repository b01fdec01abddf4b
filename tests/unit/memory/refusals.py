"""What every refusal owes its caller: the class, the field, no echo of people's text, and no trace in the store."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest

from perdure import InvalidRequest, Memory, PerdureError

MARKER = "XQZ-canary-7731"  # stands for what people write; no message may show it


def seen(memory: Memory) -> tuple[Any, ...]:
    """Everything that a caller can see of the space."""
    changes = memory.changes(limit=1000)
    hidden = memory.list(hidden=True, limit=1000)
    return (memory.list(limit=1000).items, hidden.items, changes.items, changes.cursor)


def _unplaced(field: str | None) -> str | None:
    """Return the field of a fact without its place in a batch and the place of a member in it."""
    return None if field is None else re.sub(r"^facts\[\d+\]\.?|\[\d+\]$", "", field) or None


def refused(
    memory: Memory,
    call: Callable[[], Any],
    field: str | None,
    error: type[PerdureError] = InvalidRequest,
) -> PerdureError:
    """Assert that the call is refused cleanly; return the error."""
    before = seen(memory)
    with pytest.raises(error) as caught:
        call()
    found = caught.value
    assert type(found) is error
    assert found.code == error.code
    assert field in (found.field, _unplaced(found.field))
    assert MARKER not in str(found)
    assert MARKER not in repr(found)
    assert MARKER not in str(found.details)
    assert str(found) == found.message
    assert len(str(found)) < 400
    assert seen(memory) == before
    return found
