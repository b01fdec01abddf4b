"""Addresses of databases on the command line: what one is, what it must not hold there, and how it is shown."""

from __future__ import annotations

import re

from perdure.errors import InvalidRequest

ADDRESSES = ("postgresql://", "postgres://")
ADDRESS_MAX = max(map(len, ADDRESSES))
DEFAULT_TENANT = "default"
OFF = "off"  # what --keystore says where nothing is to be encrypted
_SECRETS = ("password", "sslpassword")
_USER = re.compile(r"(?<=://)([^:@/?]*):.*@")
_ESCAPE = re.compile("%([0-9A-Fa-f]{2})")
_TOLD = re.compile(r"(?i)([?&](?:ssl)?password)=[^&]*")
_SERVABLE = re.compile("[A-Za-z0-9_-]{1,64}")
UNSERVABLE = (
    "no server serves a tenant of this name, only the library and the commands do: a server takes 1 to 64 of A-Z, a-z, 0-9, "
    "_ and -"
)


def is_servable(tenant: str) -> bool:
    """Whether a server takes the name of a tenant, which has to go into headers and folders."""
    return _SERVABLE.fullmatch(tenant) is not None


def is_address(place: str) -> bool:
    """Whether a place is the address of a database, and no folder."""
    return place[:ADDRESS_MAX].lower().startswith(ADDRESSES)


def checked_place(told: str, field: str) -> str:
    """Return what an option names as a store's place.

    Raises InvalidRequest for an address with a password, which everybody on the machine could read there, and for what
    looks like an address of something else.
    """
    refuse_other_address(told, field)
    if is_address(told) and _has_password(told):
        variable = "PERDURE_REPLICA" if field == "replica" else "PERDURE_STORE"
        raise InvalidRequest(
            f"--{field} holds a password, which everybody on this machine can read: leave it out, and give it in "
            f"PGPASSWORD, in a file that PGPASSFILE names, or in a service file; {variable} may hold one as well",
            field=field,
        )
    return told


def refuse_other_address(told: str, field: str) -> None:
    """Raise InvalidRequest, of this field, for what looks like an address and is none of a database."""
    if not is_address(told):
        refuse_any_address(told, field)


def refuse_any_address(told: str, field: str) -> None:
    """Raise InvalidRequest, of this field, for what looks like an address where a folder is meant."""
    if ":" in told or "=" in told:
        from perdure.log.places import refuse_address as refuse  # noqa: PLC0415 - help must not wait for it

        refuse(told, field)


def shown_place(place: str) -> str:
    """Return a place as people may see it: an address without its password."""
    return _TOLD.sub(r"\1=…", _USER.sub(r"\1@", place)) if is_address(place) else place


def refuse_address(place: str, what: str, instead: str) -> None:
    """Raise InvalidRequest where the store is in a database, for what only one in files can do."""
    if is_address(place):
        raise InvalidRequest(
            f"{what} is for a store in files, and this one is in a database: {instead}", field="store"
        )


def _has_password(address: str) -> bool:
    place, _, query = address.partition("://")[2].partition("?")
    user, _, _ = place.partition("/")[0].rpartition("@")
    named = {_decoded(told.partition("=")[0]).lower() for told in query.split("&")}
    return bool(user.partition(":")[2]) or not named.isdisjoint(_SECRETS)


def _decoded(text: str) -> str:
    return _ESCAPE.sub(lambda escape: chr(int(escape[1], 16)), text)
