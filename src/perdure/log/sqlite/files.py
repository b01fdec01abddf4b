"""The files of a store: their names, and the mark of what was acknowledged."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from struct import Struct

from perdure.base.disk import open_private, size_bytes, sync
from perdure.errors import Corrupt
from perdure.log.protocol import ADVICE

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

    @property
    def backup(self) -> Path:
        return self.directory / "backup.lock"

    def generation(self, number: int) -> Path:
        return self.directory / f"gen-{number}.db"

    def write_ahead(self, number: int) -> Path:
        return self.directory / f"gen-{number}.db-wal"

    def high_water(self, number: int) -> Path:
        return self.directory / f"gen-{number}.hw"

    def cache(self, number: int) -> Path:
        return self.directory / f"cache-{number}.db"

    def generations(self) -> list[Path]:
        """Return every file of any generation."""
        return sorted(self.directory.glob("gen-*"))

    def caches(self) -> list[Path]:
        """Return the files of caches. Whatever else lies in their place was not put there by a store."""
        return sorted(path for path in self.directory.glob("cache-*") if path.is_file())

    def strays(self, generation: int) -> list[Path]:
        """Return the files of all generations but this one, their caches included."""
        own = f"gen-{generation}.", f"cache-{generation}.db"
        found = (*self.generations(), *self.caches())
        return [path for path in found if path.is_file() and not path.name.startswith(own)]

    def size_bytes(self) -> int:
        return sum(size_bytes(path) for path in self.directory.iterdir() if path.is_file())


class HighWater:
    """The last row id that was acknowledged, in 8 bytes beside the database.

    SQLite takes a damaged write-ahead log for a shorter one, silently; this file is the witness. It is
    written after each commit and not synced: it may lag behind the database, never run ahead of it. Its
    bytes are made with the generation, so that writing them needs no room.
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

    def sync(self) -> None:
        """Make it durable, as only a new generation's needs to be."""
        sync(self._descriptor)

    def close(self) -> None:
        os.close(self._descriptor)


def check_mark(path: Path) -> None:
    """Raise Corrupt unless the mark has its bytes, which are durable before its generation is the store."""
    if not path.is_file() or size_bytes(path) != _HIGH_WATER.size:
        raise Corrupt(
            f"{path.name} is missing or has not {_HIGH_WATER.size} bytes, so that lost records would not be noticed: "
            f"{ADVICE}"
        )
