"""A log that nothing is erased from before the audit has followed it."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from perdure.audit.audit import Audit
from perdure.errors import Busy, PerdureError, StorageFull, Unavailable
from perdure.log.protocol import Batch, Finding, Head, Log, Progress, Purged, Rewrite

DIRECTORY = "audit"  # within that of the store
Rekey = Callable[[Rewrite, Any, Progress | None], Purged]


class AuditedLog:
    """The main log of a store as all others have it: erasures, purges and copies take the audit along.

    Everything else is the log's own. Where the audit cannot be written, what erases fails before it changes
    anything, and nothing else does.
    """

    def __init__(self, log: Log, audit: Audit) -> None:
        """Wrap a log."""
        self.inner, self.audit = log, audit
        # As the log's own, so that a read costs no more than without an audit.
        self.secret, self.name = log.secret, log.name
        self.epoch, self.spaces, self.find_space = log.epoch, log.spaces, log.find_space
        self.create_space, self.head, self.writer = log.create_space, log.head, log.writer
        self.read, self.get, self.find = log.read, log.get, log.find
        self.scrub, self.scrub_pending = log.scrub, log.scrub_pending
        self.note_backup, self.backups = log.note_backup, log.backups
        self.put_cache, self.get_cache = log.put_cache, log.get_cache
        self.check_writable, self.reclaimable_bytes = log.check_writable, log.reclaimable_bytes

    def __getattr__(self, name: str) -> Any:
        """Return what only some logs have."""
        return getattr(self.inner, name)

    def append(self, space: int, expected: Head, batch: Batch) -> Head:
        """Append, and erase what the audit has followed."""
        if batch.erase:
            _explained(lambda: self.audit.erasing(space), "erased")
        return self.inner.append(space, expected, batch)

    def purge(self, rewrite: Rewrite, progress: Progress | None = None) -> Purged:
        """Purge what the audit has followed."""
        _explained(self.audit.follow, "purged")
        with self.audit.purging(rewrite, "purge") as planned:
            return self.inner.purge(planned, progress)

    @property
    def rekey(self) -> Rekey:
        """Purge into files under another key, and the audit with them; only where the log can."""
        inner: Rekey = self.inner.rekey  # type: ignore[attr-defined]  # of some logs; else it is missing here too

        def rekey(rewrite: Rewrite, key: Any, progress: Progress | None = None) -> Purged:
            _explained(self.audit.follow, "changed")
            with self.audit.purging(rewrite, "rekey") as planned, self.audit.rekeying():
                return inner(planned, key, progress)

        return rekey

    def verify(self, *, quick: bool = False, progress: Progress | None = None) -> Iterator[Finding]:
        """Check the log, then the files of the audit."""
        yield from self.inner.verify(quick=quick, progress=progress)
        if self.audit.is_begun():
            try:
                for finding in self.audit.book.log.verify(quick=quick):
                    yield Finding(f"the audit: {finding.message}")
            except (Busy, StorageFull):  # it cannot be looked at, which says nothing of its state
                raise
            except PerdureError as error:
                yield Finding(f"the audit: {error.message}")

    def backup(self, directory: Path, progress: Progress | None = None) -> None:
        """Copy the audit, then the log: so that the copy's audit goes on where it was."""
        aside = directory.with_name(f"{directory.name}.{DIRECTORY}")
        if not self.audit.exists or not _may_take(directory) or not _may_take(aside):
            return self.inner.backup(directory, progress)
        self.audit.follow()
        try:
            self.audit.book.log.backup(aside)
            self.inner.backup(directory, progress)
            os.replace(aside, directory / DIRECTORY)
        except OSError as error:
            raise Unavailable(
                f"the copy of the audit could not be put in its place ({error.strerror})"
            ) from error
        finally:
            shutil.rmtree(aside, ignore_errors=True)
        return None

    def size_bytes(self) -> int:
        """Return the bytes of the log and of the audit."""
        return self.inner.size_bytes() + self.audit.size_bytes()

    def close(self) -> None:
        """Close both."""
        try:
            self.audit.close()
        finally:
            self.inner.close()


def audit_of(log: Log) -> Audit | None:
    """Return the audit that a log is followed by, None where it has none."""
    return log.audit if isinstance(log, AuditedLog) else None


def follow_first(log: Log, space: int | None) -> None:
    """Have the audit follow a space outside of any turn: what is left under the turn of an erasure is little then."""
    audit = audit_of(log)
    if audit is not None and space is not None:
        _explained(lambda: audit.follow((space,)), "erased")


def _explained(work: Callable[[], object], done: str) -> None:
    try:
        work()
    except (StorageFull, Unavailable) as error:
        error.message = f"the audit could not be written, so nothing was {done}: {error.message}"
        error.args = (error.message,)
        raise


def _may_take(directory: Path) -> bool:
    try:
        return not directory.exists() or (directory.is_dir() and not any(directory.iterdir()))
    except (OSError, ValueError):  # the log says what is wrong with the path
        return False
