"""Which backend a path means, for every store that is opened; only verifying and salvaging name backends too."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from perdure.base.text import shown_number
from perdure.errors import Corrupt, InvalidRequest
from perdure.log.memory import MemoryLog
from perdure.log.places import traces
from perdure.log.protocol import SECRET_BYTES, Log
from perdure.planning.checks import checked_choice

EPHEMERAL = ":memory:"
TIMEOUT_MAX_S = 86_400
DURABILITIES = ("full", "normal")
BACKENDS = ("sqlite", "journal")
Durability = Literal["full", "normal"]
Backend = Literal["sqlite", "journal"]
KeyForm = bytes | str | Path | Callable[[], bytes | str]
"""32 raw bytes, a passphrase, a file of one of them, or what returns one of the first two."""


@dataclass(frozen=True, repr=False)  # it holds a secret and a key
class Opening:
    """How a store is opened; the arguments of `Store.open`."""

    backend: Backend | None = None
    secret: bytes | None = None
    key: KeyForm | None = None
    durability: Durability = "full"
    timeout_s: float = 30.0


ROOT_MARK = "perdure.tenants"
"""The file that marks the root of many tenants' stores, which is no store itself."""


def open_log(path: object, opening: Opening) -> Log:
    """Open (or create) the log at a path; without a backend told, that of what lies there, else sqlite.

    Raises:
        InvalidRequest: an argument is wrong, or the store there is of another backend than the one that was told.
        Corrupt: files of both backends lie there, and none was told.
        What the backend raises.
    """
    _check(path, opening)
    if str(path) == EPHEMERAL:
        return _open_memory(opening)
    # Imported here: an ephemeral store needs no driver, and a store of one backend not the other's.
    from perdure.log.journal import JournalLog  # noqa: PLC0415

    directory = Path(str(path))
    found = find_backend(directory, opening.backend)
    backend = opening.backend or found or "sqlite"
    if found not in (None, backend):
        raise InvalidRequest(
            f"backend is {backend!r}, but there is a store of the backend {found!r}: leave backend out, or give "
            "another directory",
            field="backend",
        )
    if backend == "journal":
        if opening.key is not None:
            raise InvalidRequest(
                "a journal is not encrypted: leave key out, or use the backend 'sqlite'", field="key"
            )
        return JournalLog.open(
            directory, secret=opening.secret, durability=opening.durability, timeout_s=opening.timeout_s
        )
    from perdure.log.sqlite.log import SqliteLog  # noqa: PLC0415

    return SqliteLog.open(
        directory,
        secret=opening.secret,
        key=opening.key,
        durability=opening.durability,
        timeout_s=opening.timeout_s,
    )


def find_backend(directory: Path, told: Backend | None = None) -> Backend | None:
    """Return the backend of the store that lies there, whole or damaged; None where none is seen.

    Raises:
        Corrupt: files of both lie there, and it was not told which of them is meant.
        InvalidRequest: it is the root of many tenants' stores.
    """
    try:
        found, is_root = traces(directory), (directory / ROOT_MARK).exists()
    except (OSError, ValueError):  # no directory, or none that can be read: the backend says what is wrong
        return None
    if is_root:
        raise InvalidRequest(
            "this folder holds the stores of many tenants and is no store itself: name one of those below it, in "
            "tenants, or serve it",
            field="path",
        )
    if len(found) == 2 and told is None:
        raise Corrupt(
            f"files of two stores lie there: {found['sqlite']} of the backend sqlite, and {found['journal']} of a "
            "journal. Move away those that do not belong there"
        )
    if told in found:
        return told
    if "sqlite" in found:
        return "sqlite"
    return "journal" if found else None


def check_timeout(timeout_s: float) -> None:
    """Raise InvalidRequest for what is no time-out in seconds."""
    number = isinstance(timeout_s, int | float) and not isinstance(timeout_s, bool)
    if not number or not 0 <= timeout_s <= TIMEOUT_MAX_S:
        shown = shown_number(timeout_s) if number else type(timeout_s).__name__
        raise InvalidRequest(
            f"timeout_s must be 0 to {TIMEOUT_MAX_S} seconds, got {shown}", field="timeout_s"
        )


def _check(path: object, opening: Opening) -> None:
    secret = opening.secret
    if path == "":
        raise InvalidRequest(f"path is empty: give a directory, or {EPHEMERAL!r}", field="path")
    if not isinstance(path, str | Path):
        raise InvalidRequest(f"path must be text or a Path, got {type(path).__name__}", field="path")
    if secret is not None and (not isinstance(secret, bytes) or len(secret) != SECRET_BYTES):
        shown = f"{len(secret)} bytes" if isinstance(secret, bytes) else type(secret).__name__
        raise InvalidRequest(f"secret must be {SECRET_BYTES} bytes, got {shown}", field="secret")
    if opening.backend is not None:
        checked_choice(opening.backend, "backend", BACKENDS)
    checked_choice(opening.durability, "durability", DURABILITIES)
    check_timeout(opening.timeout_s)


def _open_memory(opening: Opening) -> Log:
    if opening.key is not None:
        raise InvalidRequest("an ephemeral store writes no file to encrypt: leave key out", field="key")
    if opening.backend is not None:
        raise InvalidRequest(
            "an ephemeral store has a backend of its own: leave backend out", field="backend"
        )
    return MemoryLog(opening.secret, timeout_s=opening.timeout_s)
