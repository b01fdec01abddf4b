"""Who acts: the name under which what is written from here on is audited."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from perdure.base.canonical import checked_text
from perdure.base.ids import refuse_control
from perdure.errors import InvalidRequest

ACTOR_BYTES_MAX = 256  # as of every other name

_actor: ContextVar[str | None] = ContextVar("perdure_actor", default=None)


@contextmanager
def acting(actor: str | None) -> Iterator[None]:
    """Have every write of the block, in this thread or task, recorded as that of this actor.

    Blocks nest; None is for nobody in particular. The name is kept as it is, in the records of what was written and
    in the audit, where it outlives what the actor wrote: give the name of a key or of a service, not a person's.

    Raises:
        InvalidRequest: it is no text of 1 to 256 bytes without control characters.
    """
    token = _actor.set(None if actor is None else _checked(actor))
    try:
        yield
    finally:
        _actor.reset(token)


def current_actor() -> str | None:
    """Return who acts here and now, None where nobody was named."""
    return _actor.get()


def _checked(actor: str) -> str:
    text = checked_text(actor, field="actor")
    size = len(text.encode())
    if not 1 <= size <= ACTOR_BYTES_MAX:
        raise InvalidRequest(f"actor must take 1 to {ACTOR_BYTES_MAX} bytes, got {size}", field="actor")
    refuse_control(text, field="actor")
    return text
