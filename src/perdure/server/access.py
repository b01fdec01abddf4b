"""What a key allows: decisions about tenants, spaces and operations, without any input or output.

Headers narrow what the key fixes and never widen it. What the key does not reach is refused in a text that tells of
the key alone, whether or not it exists.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from perdure.base.ids import refuse_control
from perdure.contract.operations import ROLES, Operation, Role
from perdure.dispatch import BEYOND, Bounds
from perdure.errors import Forbidden, InvalidRequest, InvalidTenant
from perdure.model.namespace import NAME_BYTES_MAX, Namespace, checked_namespace
from perdure.server.keys import DEFAULT_TENANT, checked_tenant

TENANT_HEADER = "Perdure-Tenant"
PRINCIPAL_HEADER = "Perdure-Principal"
SCOPE_HEADER = "Perdure-Scope"

# Visible ASCII, but no comma, by which proxies join headers that are sent twice.
_ENCODED = re.compile(rb"(?:[!-$&-+\--~]|%[0-9A-Fa-f]{2})*")
_ESCAPE = re.compile(rb"%([0-9A-Fa-f]{2})")
_READERS = frozenset({"verify", "storeEvents", "export"})  # admins' operations that make no store


@dataclass(frozen=True)
class Access:
    """What a request may do. A tenant, principal or scope of None is chosen by the request.

    Without a key (`key_id` None: the server has none) nothing is fixed.
    """

    tenant: str | None
    principal: str | None = field(repr=False)
    scope: str | None = field(repr=False)
    role: Role
    key_id: str | None

    def sees(self, name: Namespace) -> bool:
        """Whether a space is within reach."""
        return self.bounds.allow(name)

    @property
    def bounds(self) -> Bounds:
        """What the dispatcher holds requests against."""
        return Bounds(self.principal, self.scope)


@dataclass(frozen=True)
class Told:
    """What the headers of a request say, decoded; None where a header is absent."""

    tenant: str | None = None
    principal: str | None = field(default=None, repr=False)
    scope: str | None = field(default=None, repr=False)


@dataclass(frozen=True)
class Allowed:
    """Where an allowed request goes, and how far its key reaches there."""

    tenant: str
    namespace: Namespace = field(repr=False)
    access: Access


def read_headers(headers: Iterable[tuple[bytes, bytes]]) -> Told:
    """Return what the three headers of a request say; others are left alone.

    Raises:
        InvalidRequest, InvalidTenant: one is sent twice, or is no percent-encoded UTF-8, or no name.
    """
    found: dict[str, bytes] = {}
    for raw, value in headers:
        name = _NAMES.get(raw.lower())
        if name is None:
            continue
        if name in found:
            raise _malformed(name, "came twice; send it once")
        found[name] = value
    return Told(
        _find_tenant(found.get(TENANT_HEADER)),
        _find_name(found.get(PRINCIPAL_HEADER), PRINCIPAL_HEADER),
        _find_name(found.get(SCOPE_HEADER), SCOPE_HEADER),
    )


def decoded(value: bytes, header: str) -> str:
    """Return the text that a header's value spells as percent-encoded UTF-8.

    Letters, digits and other visible ASCII stand for themselves, but `%` and the comma; `+` is no space.

    Raises:
        InvalidRequest: (field: the header; InvalidTenant for the tenant's) any other character or escape, or
            bytes that are no UTF-8. The message does not repeat the value.
    """
    if len(value) > 3 * NAME_BYTES_MAX:
        raise _malformed(
            header, f"takes {len(value)} bytes; at most {NAME_BYTES_MAX} percent-encoded ones are allowed"
        )
    if not _ENCODED.fullmatch(value):
        raise _malformed(
            header, "must be percent-encoded UTF-8: encode each space, comma, % and what is no ASCII"
        )
    plain = _ESCAPE.sub(lambda escape: bytes.fromhex(escape[1].decode("ascii")), value)
    try:
        return plain.decode("utf-8")
    except UnicodeDecodeError as error:
        raise _malformed(header, f"is no UTF-8 at byte {error.start + 1} of what it encodes") from None


def place(
    access: Access, told: Told, *, default_principal: str | None = None, needed: bool = True
) -> Allowed:
    """Return where a request goes. What else its fields name is held against the key by the dispatch.

    Args:
        access: what its key allows.
        told: what its headers say.
        default_principal: whose memory it is where neither key nor header says; without a key that is the
            principal of no name.
        needed: whether it must be told; a request about the whole store needs no principal.

    Raises:
        Forbidden: a header names another tenant, principal or scope than the key's.
        InvalidTenant, InvalidRequest: a name is malformed, or nobody told a principal.
    """
    tenant = _narrowed(access.tenant, told.tenant, DEFAULT_TENANT, TENANT_HEADER)
    if access.key_id is None and default_principal is None:
        default_principal = ""
    principal = _narrowed(access.principal, told.principal, default_principal, PRINCIPAL_HEADER)
    if principal is None and needed:
        raise InvalidRequest(
            f"the key fixes no principal: send the header {PRINCIPAL_HEADER} (in Python client.memory(principal=...))",
            field=PRINCIPAL_HEADER,
        )
    scope = _narrowed(access.scope, told.scope, "", SCOPE_HEADER)
    return Allowed(checked_tenant(tenant or DEFAULT_TENANT), checked_namespace(principal, scope), access)


def check_role(access: Access, operation: Operation, request: Mapping[str, Any]) -> None:
    """Raise Forbidden unless the key's role is enough; a purge takes more than the operation without it."""
    purges = request.get("purge") not in (None, False)
    needed: Role = "admin" if purges else operation.role
    if ROLES.index(access.role) < ROLES.index(needed):
        raise Forbidden(f"this takes a key of the role {needed}")


def check_measures(access: Access, *, has_tenants: bool) -> None:
    """Raise Forbidden unless the key may see what is measured of all tenants together.

    That is an admin's, fixed to no principal and no scope; of a root of tenants one of the tenant `default`, whose
    keys are its owner's. Without keys it is whoever has the token.
    """
    bounded = access.role != "admin" or access.principal is not None or access.scope is not None
    if bounded or (has_tenants and access.tenant not in (None, DEFAULT_TENANT)):
        of = f" of the tenant {DEFAULT_TENANT}," if has_tenants else ""
        raise Forbidden(
            f"the metrics are of everybody: they take a key{of} of the role admin that fixes no principal and no scope"
        )


def makes_store(operation: Operation) -> bool:
    """Whether the operation brings a tenant's store into being; what only reads never does."""
    return operation.role != "read" and operation.name not in _READERS


def _narrowed(fixed: str | None, told: str | None, default: str | None, header: str) -> str | None:
    if fixed is None:
        return default if told is None else told
    if told is not None and told != fixed:
        what = header.rpartition("-")[2].lower()
        raise Forbidden(
            f"{BEYOND}: it is for one {what} alone, and the header {header} names another; leave the header out, or use a key "
            f"of that {what}"
        )
    return fixed


def _find_tenant(value: bytes | None) -> str | None:
    return None if value is None else checked_tenant(decoded(value, TENANT_HEADER))


def _find_name(value: bytes | None, header: str) -> str | None:
    if value is None:
        return None
    name = decoded(value, header)
    size = len(name.encode())
    if size > NAME_BYTES_MAX:
        raise _malformed(header, f"encodes {size} bytes; at most {NAME_BYTES_MAX} are allowed")
    refuse_control(name, field=header)
    return name


def _malformed(header: str, what: str) -> InvalidRequest | InvalidTenant:
    kind = InvalidTenant if header == TENANT_HEADER else InvalidRequest
    return kind(f"the header {header} {what}", field=header)


_NAMES = {name.lower().encode(): name for name in (TENANT_HEADER, PRINCIPAL_HEADER, SCOPE_HEADER)}
PLACE_HEADERS = tuple(_NAMES)
"""The names of the headers that say where a request goes, in lower case."""
