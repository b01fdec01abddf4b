"""A directory that holds the stores of many tenants: its mark, and where each tenant's store is."""

from __future__ import annotations

from pathlib import Path

import msgspec

from perdure.base.disk import make_directory
from perdure.errors import InvalidRequest
from perdure.log.places import traces
from perdure.opening import ROOT_MARK
from perdure.server.keyring_file import locked, replace, system_errors
from perdure.server.keys import DEFAULT_TENANT, KEYS_FILE, LOCK_FILE, checked_tenant

MARK_FILE = ROOT_MARK
TENANTS = "tenants"
VERSION = 1


def is_root(directory: Path) -> bool:
    """Whether the directory is marked as a root of tenants.

    Raises:
        InvalidRequest: by a newer version, or there is a store as well.
        Unavailable: it cannot be looked at.
    """
    with system_errors(MARK_FILE):
        try:
            content = (directory / MARK_FILE).read_bytes()
        except (FileNotFoundError, NotADirectoryError):
            return False
    try:
        version = msgspec.json.decode(content, type=_Mark).version
    except msgspec.DecodeError:
        version = 0
    if version != VERSION:
        raise InvalidRequest(
            f"{MARK_FILE} is not of version {VERSION}, the one that this Perdure knows", field="store"
        )
    if has_store(directory):
        raise InvalidRequest(
            f"store is a root of tenants, but a store lies in it too: move that away, or remove {MARK_FILE}",
            field="store",
        )
    return True


def make_root(directory: Path) -> None:
    """Mark a new or empty directory as a root of tenants; one that is marked stays so.

    Raises:
        InvalidRequest: there is a store, or there are keys of one.
        StorageFull, Unavailable, Busy.
    """
    with system_errors(MARK_FILE):
        make_directory(directory)
        with locked(directory / LOCK_FILE):
            if is_root(directory):
                return
            if has_store(directory) or (directory / KEYS_FILE).exists():
                raise InvalidRequest(
                    f"there is one store, of the tenant {DEFAULT_TENANT!r}: give another directory for several",
                    field="tenant",
                )
            replace(directory / MARK_FILE, msgspec.json.encode(_Mark(VERSION)) + b"\n")


def admit(directory: Path, tenant: str) -> None:
    """Make the place of a tenant: another one than the default makes a new directory a root of tenants.

    Raises as `checked_tenant` and `make_root`.
    """
    checked_tenant(tenant)
    if tenant != DEFAULT_TENANT:
        make_root(directory)
    with system_errors(TENANTS):
        make_directory(directory)
        if is_root(directory):
            make_directory(directory / TENANTS)
            make_directory(_tenant_directory(directory, tenant))


def find_directory(directory: Path, tenant: str) -> Path | None:
    """Return where the tenant's store is or would be; None where one store is all there is, of another tenant."""
    if is_root(directory):
        return _tenant_directory(directory, tenant)
    return directory if tenant == DEFAULT_TENANT else None


def has_store(directory: Path) -> bool:
    """Whether a store lies there, or something else that opening it must judge."""
    try:
        return bool(traces(directory))
    except FileNotFoundError:
        return False
    except (OSError, ValueError):  # a file, or a directory that may not be read
        return True


class _Mark(msgspec.Struct, frozen=True):
    version: int


def _tenant_directory(directory: Path, tenant: str) -> Path:
    # In hex, so that names that differ in case alone are two on every filesystem.
    return directory / TENANTS / checked_tenant(tenant).encode("ascii").hex()
