"""JournalLog: the Log protocol over one file that people can read."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from perdure.base.disk import make_directory, warn_of_network
from perdure.base.text import counted
from perdure.errors import InvalidRequest
from perdure.log.content_log import ContentLog
from perdure.log.journal.failures import system_errors
from perdure.log.journal.files import JournalFiles
from perdure.log.journal.medium import JournalMedium
from perdure.log.places import checked_path
from perdure.log.protocol import SECRET_BYTES

Durability = Literal["full", "normal"]


class JournalLog(ContentLog):
    """A log in one directory, of one process at a time, kept as JSON Lines and whole in memory.

    Acknowledged appends survive the death of the process and, with durability "full", the loss of power. An
    erasure writes the whole journal anew.
    """

    def __init__(self, medium: JournalMedium, *, timeout_s: float) -> None:
        """Use `open`."""
        super().__init__(medium, timeout_s=timeout_s)
        self._journal = medium

    def check_writable(self) -> None:
        """Look at the directory and its files."""
        super().check_writable()
        self._journal.check_writable()

    @classmethod
    def open(
        cls,
        path: Path,
        *,
        secret: bytes | None = None,
        durability: Durability = "full",
        timeout_s: float = 30.0,
    ) -> JournalLog:
        """Open the journal in a directory, creating both where there is nothing.

        Args:
            path: the directory; on a local disk (the logger `perdure.log` warns of a network one).
            secret: 32 bytes kept outside the store; None lets the store make and keep its own.
            durability: "full" syncs at each append; "normal" may lose the last ones when power fails.
            timeout_s: how long to wait for a process that has the journal open, and for the writer's turn,
                before Busy is raised.

        Raises:
            Busy: the journal is open elsewhere.
            WrongKey: another secret.
            Corrupt: a line is damaged, or acknowledged lines are missing.
            InvalidRequest: an argument is wrong, the directory has a store of another backend, or journal.key
                may be read by others.
            Unavailable: the files have a newer format, or cannot be used.
        """
        if durability not in ("full", "normal"):
            raise InvalidRequest(
                f"durability must be 'full' or 'normal', got {durability!r}", field="durability"
            )
        if secret is not None and (type(secret) is not bytes or len(secret) != SECRET_BYTES):
            told = f"{counted(len(secret), 'byte')}" if isinstance(secret, bytes) else type(secret).__name__
            raise InvalidRequest(f"secret must be {SECRET_BYTES} bytes, got {told}", field="secret")
        with system_errors():
            files = JournalFiles(checked_path(path))
            make_directory(files.directory)
        warn_of_network(files.directory)
        medium = JournalMedium(files, secret, timeout_s, synced=durability == "full")
        return cls(medium, timeout_s=timeout_s)


def open_journal(
    path: Path,
    secret: bytes | None = None,
    timeout_s: float = 30.0,
    durability: Durability = "full",
) -> JournalLog:
    """Open the journal in a directory, as `JournalLog.open` does."""
    return JournalLog.open(path, secret=secret, durability=durability, timeout_s=timeout_s)


def is_journal(directory: Path) -> bool:
    """Return whether the directory has a journal, whole or damaged; only looks."""
    return JournalFiles(directory).any()
