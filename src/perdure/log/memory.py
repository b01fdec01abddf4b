"""A log in memory: for tests and for memories that need not outlive the process."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from perdure.base.ids import random_secret
from perdure.errors import InvalidRequest, Unavailable
from perdure.log.content import Change, Content
from perdure.log.content_log import ContentLog
from perdure.log.protocol import SECRET_BYTES, Finding


class MemoryLog(ContentLog):
    """Everything in Python objects; gone at `close`. Erased bytes leave no reference behind."""

    def __init__(self, secret: bytes | None = None, *, timeout_s: float = 30.0) -> None:
        """Start empty.

        Args:
            secret: SECRET_BYTES bytes; random when None.
            timeout_s: how long `writer` waits for its turn before it raises Busy.
        """
        if secret is not None and len(secret) != SECRET_BYTES:
            raise InvalidRequest(f"secret must be {SECRET_BYTES} bytes, got {len(secret)}", field="secret")
        kept = random_secret(SECRET_BYTES) if secret is None else bytes(secret)
        super().__init__(_Objects(Content(kept)), timeout_s=timeout_s)


class _Objects:
    """The content itself, and nowhere else."""

    name = "memory"

    def __init__(self, content: Content) -> None:
        self._content = content

    def load(self) -> Content:
        return self._content

    def commit(self, change: Change) -> None:
        self._content.apply(change)

    def replace(self, content: Content) -> None:
        self._content = content

    def findings(self) -> Iterator[Finding]:
        return iter(())

    def backup(self, directory: Path) -> None:
        raise Unavailable("an ephemeral store keeps no files to copy: export it instead")

    def note_backup(self, at: int) -> None:
        raise Unavailable("an ephemeral store has no copies")

    def backups(self) -> list[int]:
        return []

    def scrub(self) -> bool:
        return True

    def scrub_pending(self) -> bool:
        return False

    def size_bytes(self) -> int:
        return 0

    def close(self) -> None:
        self._content = Content(b"")
