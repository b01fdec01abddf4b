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
├── InvalidJson         (over a wire) the body is no JSON
├── InvalidTenant       (over a wire) the tenant's name is malformed
├── Unauthorized        (over a wire) there is no key, or none that is known
├── Forbidden           (over a wire) the key does not go as far as the request
├── TooLarge            (over a wire) the body is longer than is taken
├── TenantLimit         (over a wire) too many tenants are in use at once; safe to retry
├── Internal            (over a wire) a fault of the server's own; its log says which
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
    status: ClassVar[int] = 500  # of HTTP
    in_wire_names: bool = False  # the message and the field name fields as they are on the wire already

    def __init__(self, message: str, *, field: str | None = None, **details: Any) -> None:
        super().__init__(message)
        self.message = message
        self.field = field
        self.details: dict[str, Any] = details


class InvalidRequest(PerdureError, ValueError):
    """The request is malformed or outside a limit; nothing was stored."""

    code = "invalid_request"
    status = 422


class QueryLimit(InvalidRequest):
    """A read or a write would have needed more than its budget; no partial answer is given."""

    code = "query_limit"
    status = 422

    NARROW = "narrow it by subject, entity, tags or filter, or "

    def __init__(self, resource: str, limit: int, *, advice: str = NARROW) -> None:
        super().__init__(
            f"the request needs more than its budget of {limit} {resource}; {advice}raise limits.{resource} in the "
            "configuration",
            field=resource,
            resource=resource,
            limit=limit,
        )
        self.resource, self.limit = resource, limit


class Blocked(PerdureError):
    """The content was forgotten with block=True, so that it is not stored again."""

    code = "blocked"
    status = 422


class NotFound(PerdureError, LookupError):
    """There is no such fact, document or key."""

    code = "not_found"
    status = 404


class Conflict(PerdureError):
    """Something else is stored there. `kind` says what disagrees: id, idempotency, version, several, epoch, head."""

    code = "conflict"
    status = 409

    def __init__(self, message: str, *, kind: str, field: str | None = None, **details: Any) -> None:
        super().__init__(message, field=field, kind=kind, **details)
        self.kind = kind


class Busy(PerdureError):
    """Another process holds the store past the time-out; nothing was changed and a retry is safe."""

    code = "busy"
    status = 503


class Unavailable(PerdureError):
    """The backend failed or was closed; `__cause__` carries the driver's own error."""

    code = "unavailable"
    status = 503


class StorageFull(PerdureError):
    """The disk or quota is full; nothing was changed."""

    code = "storage_full"
    status = 507


class WrongKey(PerdureError):
    """The store is encrypted with another key, or is no store."""

    code = "wrong_key"
    status = 500


class Corrupt(PerdureError):
    """Stored bytes are not what was written. `generation`, `space` and `seq` say where, when known."""

    code = "corrupt"
    status = 500

    def __init__(
        self, message: str, *, generation: int | None = None, space: int | None = None, seq: int | None = None
    ) -> None:
        super().__init__(message, generation=generation, space=space, seq=seq)
        self.generation, self.space, self.seq = generation, space, seq


class InvalidJson(PerdureError):
    """The body is no JSON: it is malformed, or has a number that JSON does not have."""

    code = "invalid_json"
    status = 400


class InvalidTenant(PerdureError):
    """A tenant's name is malformed, or the server keeps one store, of another tenant."""

    code = "invalid_tenant"
    status = 400


class Unauthorized(PerdureError):
    """There is no key, or it is unknown, revoked or past its time; which of these is not told."""

    code = "unauthorized"
    status = 401


class Forbidden(PerdureError):
    """The key does not go as far as the request. Whether what it asks for exists is not told."""

    code = "forbidden"
    status = 403


class TooLarge(PerdureError):
    """The body is longer than is taken."""

    code = "too_large"
    status = 413


class TenantLimit(PerdureError):
    """As many tenants are in use as this server holds at once; a retry is safe."""

    code = "tenant_limit"
    status = 503


class Internal(PerdureError):
    """A fault of the server's own. The reply's text is fixed; the server's log has the cause under the request id."""

    code = "internal"
    status = 500


class ImportFailed(PerdureError):
    """An import did not come to its end.

    `committed` says whether anything of it is stored: "yes", "no", or "unknown" where the write itself was
    interrupted. What may be stored was not tried again; repeating the import stores what is missing.
    """

    code = "import_failed"
    status = 422

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
    status = 503


def _classes(base: type[PerdureError]) -> list[type[PerdureError]]:
    return [base, *(one for derived in base.__subclasses__() for one in _classes(derived))]


BY_CODE: dict[str, type[PerdureError]] = {
    one.code: one for one in _classes(PerdureError) if one not in (PerdureError, Moved)
}
"""The class of each code, as on every surface."""
