"""A log whose content can be put back to what it was earlier, while stores have it open."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec

from perdure.errors import Unavailable
from perdure.log.content import Change, Content
from perdure.log.content_log import ContentLog
from perdure.log.protocol import Finding

SECRET = bytes(range(32))


class _Medium:
    """A content in memory that is replaced from outside."""

    name = "memory"

    def __init__(self) -> None:
        self.content = Content(SECRET)

    def load(self) -> Content:
        return self.content

    def commit(self, change: Change) -> None:
        self.content.apply(change)

    def replace(self, content: Content) -> None:
        self.content = content

    def scrub(self) -> bool:
        return True

    def scrub_pending(self) -> bool:
        return False

    def findings(self) -> Iterator[Finding]:
        return iter(())

    def backup(self, directory: Path) -> None:
        raise Unavailable("no files")

    def note_backup(self, at: int) -> None:
        """Keep nothing."""

    def backups(self) -> list[int]:
        return []

    def size_bytes(self) -> int:
        return 0

    def close(self) -> None:
        """Keep the content: others have it open."""


class PutBackLog(ContentLog):
    """Shared by the stores of several processes, as it were: closing it is nothing."""

    def __init__(self, **options: Any) -> None:
        self._kept = _Medium()
        super().__init__(self._kept, **options)

    def copy(self) -> bytes:
        """Return all that it holds now, but its caches."""
        return msgspec.msgpack.encode(self._kept.content)

    def put_back(self, copy: bytes) -> None:
        """Hold what a copy holds. The caches stay, as if they were kept elsewhere."""
        self._kept.content = msgspec.msgpack.decode(copy, type=Content)

    def close(self) -> None:
        """Stay open for the others."""


class SharedPutBackLog(PutBackLog):
    """As if several servers had it open, which keep snapshots in the background."""

    is_shared = True
