"""Every exception of Perdure.

PerdureError
├── InvalidRequest      the request itself is wrong; nothing was stored
│   └── QueryLimit      a read would exceed its budget; never a partial answer
├── Blocked             the content was forgotten with a block
├── NotFound            the named fact, document or key is not there
├── Conflict            the store holds something else under that id, key, version or head
├── Busy                another process or a reader holds the store; safe to retry
├── Unavailable         the backend or a service behind it cannot be reached
├── StorageFull         the disk is full
├── WrongKey            the store cannot be opened with this key
├── Corrupt             stored bytes are not what was written
├── ImportFailed        an import or a copy did not come to its end; `committed` says what of it is stored
└── Moved               (between log and reader) the head moved on under a point read
"""

from __future__ import annotations

from typing import Any, ClassVar, Literal


class PerdureError(Exception):
    """The base of every error that Perdure raises on purpose.

    `code` is the stable name used on every surface; `field` names the offending
    argument where there is one; `details` holds what a program may act on.
    """

    code: ClassVar[str] = "internal"

    def __init__(self, message: str, *, field: str | None = None, **details: Any) -> None:
        super().__init__(message)
        self.message = message
        self.field = field
        self.details: dict[str, Any] = details


class InvalidRequest(PerdureError, ValueError):
    """The request is malformed or outside a limit; nothing was stored."""

    code = "invalid_request"


class QueryLimit(InvalidRequest):
    """A read or a write would have needed more than its budget; no partial answer is given."""

    code = "query_limit"

    def __init__(self, resource: str, limit: int) -> None:
        super().__init__(
            f"the request needs more than its budget of {limit} {resource}; narrow it by subject, entity, "
            f"tags or filter, or raise limits.{resource} in the configuration",
            field=resource,
            resource=resource,
            limit=limit,
        )
        self.resource, self.limit = resource, limit


class Blocked(PerdureError):
    """The content was forgotten with block=True, so that it is not stored again."""

    code = "blocked"


class NotFound(PerdureError, LookupError):
    """There is no such fact, document or key."""

    code = "not_found"


class Conflict(PerdureError):
    """Something else is stored there. `kind` says what disagrees: id, idempotency, version, several, epoch, head."""

    code = "conflict"

    def __init__(self, message: str, *, kind: str, field: str | None = None, **details: Any) -> None:
        super().__init__(message, field=field, kind=kind, **details)
        self.kind = kind


class Busy(PerdureError):
    """Another process holds the store past the time-out; nothing was changed and a retry is safe."""

    code = "busy"


class Unavailable(PerdureError):
    """The backend failed or was closed; `__cause__` carries the driver's own error."""

    code = "unavailable"


class StorageFull(PerdureError):
    """The disk or quota is full; nothing was changed."""

    code = "storage_full"


class WrongKey(PerdureError):
    """The store is encrypted with another key, or is no store."""

    code = "wrong_key"


class Corrupt(PerdureError):
    """Stored bytes are not what was written. `generation`, `space` and `seq` say where, when known."""

    code = "corrupt"

    def __init__(
        self, message: str, *, generation: int | None = None, space: int | None = None, seq: int | None = None
    ) -> None:
        super().__init__(message, generation=generation, space=space, seq=seq)
        self.generation, self.space, self.seq = generation, space, seq


class ImportFailed(PerdureError):
    """An import did not come to its end.

    `committed` says whether anything of it is stored: "yes", "no", or "unknown" where the write itself was
    interrupted. What may be stored was not tried again; repeating the import stores what is missing.
    """

    code = "import_failed"

    def __init__(
        self,
        message: str,
        *,
        committed: Literal["yes", "no", "unknown"],
        field: str | None = None,
        **details: Any,
    ) -> None:
        super().__init__(message, field=field, committed=committed, **details)
        self.committed = committed


class Moved(PerdureError):
    """The space moved on (an erasure or a purge) between a reader's head and its point read."""

    code = "busy"
