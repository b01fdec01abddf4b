"""A disk that forgets what was not synced: it watches the calls of a process and says what a loss of power leaves.

Writes and cuts of a file count once the file is synced, names once their directory is. What is not synced is there or
not: of the bytes any sectors, of the names the first few changes.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any

SECTOR = 512


@dataclass
class File:
    """One file: what a sync made durable, and the changes since, as (position, bytes) or a new size."""

    durable: bytes = b""
    since: list[tuple[int, bytes] | int] = field(default_factory=list)

    def left(self, random: Random | None) -> bytes:
        """Return what the medium holds: all of it for None, else what chance let through."""
        content = bytearray(self.durable)
        for change in self.since:
            if isinstance(change, int):
                if random is None or random.random() < 0.5:
                    content = content[:change].ljust(change, b"\0")
                continue
            position, data = change
            while data:
                room = SECTOR - position % SECTOR
                if random is None or random.random() < 0.5:
                    content = content.ljust(position + len(data[:room]), b"\0")
                    content[position : position + len(data[:room])] = data[:room]
                position, data = position + room, data[room:]
        return bytes(content)


class Disk:
    """Watches one directory; `watcher` is called after each change that a loss of power may take or leave."""

    def __init__(self, directory: Path, watcher: Callable[[], None]) -> None:
        self._directory = directory
        self._watcher = watcher
        self._names: dict[str, File] = {}  # durable ones
        self._changes: list[tuple[str, File | None]] = []  # since the last sync of the directory
        self._files: list[File] = []
        self._open: dict[int, File | None] = {}  # by descriptor; None is the directory

    def image(self, random: Random) -> dict[str, bytes]:
        """Return the files after a loss of power just now."""
        names = self._after(random.randint(0, len(self._changes)))
        return {name: file.left(random) for name, file in names.items()}

    def blocks(self, random: Random) -> list[bytes]:
        """Return what the medium holds of every file that there ever was, also of those without a name."""
        return [file.left(random) for file in self._files]

    @contextmanager
    def watched(self) -> Iterator[None]:
        notes = {
            "open": self._opened,
            "close": self._closed,
            "write": self._written,
            "ftruncate": self._cut,
            "fsync": self._synced,
            "replace": self._replaced,
            "unlink": self._unlinked,
        }
        real = {name: getattr(os, name) for name in notes}
        for name, note in notes.items():
            setattr(os, name, self._wrapped(real[name], note))
        try:
            yield
        finally:
            for name, call in real.items():
                setattr(os, name, call)

    def _wrapped(self, call: Callable[..., Any], note: Callable[..., None]) -> Callable[..., Any]:
        def wrapped(*arguments: Any, **options: Any) -> Any:
            result = call(*arguments, **options)
            note(result, *arguments)
            self._watcher()
            return result

        return wrapped

    def _after(self, count: int) -> dict[str, File]:
        names = dict(self._names)
        for name, file in self._changes[:count]:
            if file is None:
                names.pop(name, None)
            else:
                names[name] = file
        return names

    def _present(self) -> dict[str, File]:
        return self._after(len(self._changes))

    def _opened(self, descriptor: int, path: Any, *_: Any) -> None:
        if Path(path) == self._directory:
            self._open[descriptor] = None
        elif Path(path).parent == self._directory:
            name = Path(path).name
            file = self._present().get(name)
            if file is None:
                file = File()
                self._files.append(file)
                self._changes.append((name, file))
            self._open[descriptor] = file

    def _closed(self, _: None, descriptor: int) -> None:
        self._open.pop(descriptor, None)

    def _written(self, count: int, descriptor: int, data: Any) -> None:
        file = self._open.get(descriptor)
        if file is not None:
            end = os.lseek(descriptor, 0, os.SEEK_CUR)
            file.since.append((end - count, bytes(data)[:count]))

    def _cut(self, _: None, descriptor: int, size: int) -> None:
        file = self._open.get(descriptor)
        if file is not None:
            file.since.append(size)

    def _synced(self, _: None, descriptor: int) -> None:
        if descriptor not in self._open:
            return
        file = self._open[descriptor]
        if file is None:
            self._names, self._changes = self._present(), []
        else:
            file.durable, file.since = file.left(None), []

    def _replaced(self, _: None, source: Any, target: Any) -> None:
        file = self._present()[Path(source).name]
        # One change: a journaling filesystem makes a renaming whole or not at all.
        self._changes.append((Path(target).name, file))
        self._changes.append((Path(source).name, None))

    def _unlinked(self, _: None, path: Any) -> None:
        if Path(path).parent == self._directory:
            self._changes.append((Path(path).name, None))
