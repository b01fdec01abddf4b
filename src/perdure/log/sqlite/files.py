"""The files of a store: their names, their modes, and overwriting what must be gone."""

from __future__ import annotations

import os
import stat
from dataclasses import dataclass
from pathlib import Path
from struct import Struct

from perdure.errors import InvalidRequest

try:
    import fcntl
except ImportError:  # not a POSIX system
    fcntl = None  # type: ignore[assignment]

_ZEROS = bytes(1 << 20)
_BINARY = getattr(os, "O_BINARY", 0)  # else Windows would translate line ends
_HIGH_WATER = Struct("<Q")


@dataclass(frozen=True, slots=True)
class StoreFiles:
    """The names within a store's directory. Generation numbers start at 1."""

    directory: Path

    @property
    def lock(self) -> Path:
        return self.directory / "store.lock"

    @property
    def writer(self) -> Path:
        return self.directory / "writer.lock"

    @property
    def next_writer(self) -> Path:
        return self.directory / "writer.next"

    def generation(self, number: int) -> Path:
        return self.directory / f"gen-{number}.db"

    def write_ahead(self, number: int) -> Path:
        return self.directory / f"gen-{number}.db-wal"

    def high_water(self, number: int) -> Path:
        return self.directory / f"gen-{number}.hw"

    def cache(self, number: int) -> Path:
        return self.directory / f"cache-{number}.db"

    def generations(self) -> list[Path]:
        return sorted(self.directory.glob("gen-*.db"))

    def caches(self) -> list[Path]:
        return sorted(self.directory.glob("cache-*"))

    def size_bytes(self) -> int:
        return sum(_size_bytes(path) for path in self.directory.iterdir())


def make_directory(directory: Path) -> None:
    """Create the directory with mode 0700, or take an empty one and give it that mode."""
    directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    if not any(directory.iterdir()):
        directory.chmod(0o700)


def create_private(path: Path) -> bool:
    """Create an empty file of mode 0600; return False when it exists.

    An existing file is not opened: closing it would drop this process's SQLite locks on it.
    """
    try:
        descriptor = os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR | _BINARY, 0o600)
    except FileExistsError:
        return False
    os.close(descriptor)
    path.chmod(0o600)  # the umask may have taken more away, never less
    return True


def check_private(path: Path) -> None:
    """Raise InvalidRequest when others than the owner may read the file."""
    mode = stat.S_IMODE(path.stat().st_mode)
    if os.name == "posix" and mode & 0o077:
        raise InvalidRequest(
            f"{path.name} has mode {mode:04o}: it holds the store's secret, so nobody but its owner may read "
            "it. Run chmod 600 on it",
            field="path",
        )


def open_private(path: Path) -> int:
    """Open a file that SQLite never opens, creating it with mode 0600; return its descriptor."""
    return os.open(path, os.O_CREAT | os.O_RDWR | _BINARY, 0o600)


def sync(descriptor: int) -> None:
    """Force a file's bytes down to the medium, as far as the platform can."""
    full = getattr(fcntl, "F_FULLFSYNC", None)
    if full is not None:
        fcntl.fcntl(descriptor, full)
    else:
        os.fsync(descriptor)


def sync_directory(directory: Path) -> None:
    """Make creations and removals in the directory durable (a no-op where directories cannot be opened)."""
    if os.name != "posix":
        return
    descriptor = os.open(directory, os.O_RDONLY)
    try:
        sync(descriptor)
    finally:
        os.close(descriptor)


def overwrite(path: Path) -> bool:
    """Write zeros over all of a file's bytes, in place and synced; return False when it has none.

    Never for a database or -shm file that this process has open.
    """
    size = _size_bytes(path)
    if size == 0:
        return False
    descriptor = os.open(path, os.O_RDWR | _BINARY)
    try:
        left = size
        while left > 0:
            left -= os.write(descriptor, _ZEROS[:left] if left < len(_ZEROS) else _ZEROS)
        sync(descriptor)
    finally:
        os.close(descriptor)
    return True


def erase(path: Path) -> None:
    """Overwrite a file, then unlink it; where unlinking is refused, leave it empty."""
    overwrite(path)
    try:
        path.unlink(missing_ok=True)
    except PermissionError:
        os.truncate(path, 0)


class HighWater:
    """The last row id that was acknowledged, in 8 bytes beside the database.

    SQLite takes a damaged write-ahead log for a shorter one, silently; this file is the witness. It is
    written after each commit and not synced: it may lag behind the database, never run ahead of it.
    """

    def __init__(self, path: Path) -> None:
        self._descriptor = open_private(path)

    def read(self) -> int:
        """Return the row id, 0 when none was written."""
        os.lseek(self._descriptor, 0, os.SEEK_SET)
        raw = os.read(self._descriptor, _HIGH_WATER.size)
        return int(_HIGH_WATER.unpack(raw)[0]) if len(raw) == _HIGH_WATER.size else 0

    def write(self, rid: int) -> None:
        """Replace the row id; callers hold the writer's turn."""
        os.lseek(self._descriptor, 0, os.SEEK_SET)
        os.write(self._descriptor, _HIGH_WATER.pack(rid))

    def close(self) -> None:
        os.close(self._descriptor)


def _size_bytes(path: Path) -> int:
    try:
        return path.stat().st_size
    except FileNotFoundError:
        return 0
