"""A content kept in a journal: loaded at opening, appended to, written anew where something is erased."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress
from hmac import compare_digest
from pathlib import Path

from perdure.base.disk import check_writable, create_private, erase, make_directory, sync_directory
from perdure.base.ids import random_secret
from perdure.errors import Corrupt, InvalidRequest, PerdureError, Unavailable, WrongKey
from perdure.log.content import Change, Content, SpaceContent
from perdure.log.journal.failures import system_errors, translated
from perdure.log.journal.files import (
    UNFINISHED,
    Acknowledged,
    JournalFiles,
    Pointer,
    damaged_key,
    get_acknowledged,
    missing_pointer,
    put_pointer,
    read_key,
    read_pointer,
    restore_pointer,
    write_key,
)
from perdure.log.journal.generation import Generation, batch_lines, erase_generation, write_generation
from perdure.log.journal.lines import StoreLine, make_verifier
from perdure.log.journal.lock import lock_directory
from perdure.log.journal.replay import find_damage, read_first, replay
from perdure.log.places import checked_target, mode_findings, taken_target
from perdure.log.protocol import SECRET_BYTES, Finding


class JournalMedium:
    """The medium of a ContentLog over the files of a journal. Holds the directory's lock until it is closed."""

    name = "journal"

    def __init__(self, files: JournalFiles, secret: bytes | None, timeout_s: float, *, synced: bool) -> None:
        """Open a journal, creating it where there is none.

        Args:
            secret: SECRET_BYTES bytes, or None to make and keep one.
            synced: whether a change is durable before `commit` returns.
        """
        self._files = files
        self._content = Content(b"")
        self._synced = synced
        self._process = os.getpid()
        self._unsettled = False  # whether the directory may yet forget which generation is the store
        with system_errors():
            self._lock = lock_directory(files.lock, timeout_s)
            try:
                self._open(secret)
            except BaseException:  # raised again: what did not open holds no files
                self._lock.close()
                raise

    def load(self) -> Content:
        if os.getpid() != self._process:
            raise Unavailable(
                f"the log was opened by process {self._process} and does not survive a fork: open it again in "
                "this one",
                kind="forked",
            )
        return self._content

    def commit(self, change: Change) -> None:
        if change.erase:
            content = _changed(self._content, change)
            self._rewrite(content)
        elif change.rows or change.name is not None:
            block, lines = batch_lines(self._content.secret, self._generation.end.lines, change)
            with system_errors():
                self._settle()
                self._generation.append(block, lines, synced=self._synced)
            self._content.apply(change)

    def replace(self, content: Content) -> None:
        self._rewrite(content)

    def scrub(self) -> bool:
        try:
            self._settle()
            leftovers = self._files.others(self._generation.number)
            for leftover in leftovers:
                erase(leftover)
            if leftovers:
                sync_directory(self._files.directory)
        except OSError:  # nothing that was erased comes back; a later scrub tries again
            return False
        return True

    def scrub_pending(self) -> bool:
        with system_errors():
            return self._unsettled or bool(self._files.others(self._generation.number))

    def findings(self) -> Iterator[Finding]:
        files, number = self._files, self._generation.number
        try:
            if read_pointer(files.pointer) != self._pointer:
                yield Finding("journal.current was replaced while the journal was open: restore a backup")
            if self._kept and read_key(files) != self._content.secret:
                raise damaged_key()
        except (Corrupt, InvalidRequest, Unavailable, OSError) as error:
            yield _finding(error)
        try:
            yield from find_damage(files.generation(number), self._empty(), self._generation.end)
            get_acknowledged(files, number)
        except (Corrupt, OSError) as error:
            yield _finding(error)
        with suppress(OSError):  # what is missing was told above
            yield from mode_findings(files.directory, files.present(number))

    def backup(self, directory: Path) -> None:
        with system_errors():
            target = JournalFiles(checked_target(self._files.directory, directory))
            made = not target.directory.exists()
            make_directory(target.directory)
            try:
                # Only one copy gets by here: whatever comes to be there later is its own, to be erased if it fails.
                is_ours = create_private(target.lock)
            except OSError:
                if made:
                    with suppress(OSError):
                        target.directory.rmdir()
                raise
            if not is_ours:
                raise taken_target()
            try:
                self._copy(target)
            except BaseException:  # raised again: the directory is left as it was
                with suppress(OSError):
                    for path in list(target.directory.iterdir()):
                        erase(path)
                    if made:
                        target.directory.rmdir()
                raise

    def note_backup(self, at: int) -> None:
        with system_errors():
            self._settle()
            try:
                self._switch(self._pointer._replace(backups=(*self._pointer.backups, at)))
            except BaseException:  # raised again: what was not noted is not noted later either
                with suppress(OSError, Corrupt, Unavailable):
                    self._settle()
                raise

    def backups(self) -> list[int]:
        return list(self._pointer.backups)

    def check_writable(self) -> None:
        """Look whether the files could be written now; raises StorageFull and Unavailable."""
        files = self._files
        with system_errors():
            self._generation.check_place()
            check_writable(files.directory, [files.pointer, *map(files.generation, files.numbers())])

    def size_bytes(self) -> int:
        with system_errors():
            self._files.directory.stat()
            return self._files.size_bytes()

    def close(self) -> None:
        try:
            if os.getpid() == self._process:
                with system_errors():
                    self._settle()
                    if not self._synced:
                        self._generation.acknowledge()
        finally:
            self._generation.close()
            self._lock.close()
            self._content = Content(b"")

    def _open(self, secret: bytes | None) -> None:
        files = self._files
        pointer = find_pointer(files)
        if pointer is None or pointer.generation == UNFINISHED:
            kept = secret is None
            pointer = create_files(files, secret or random_secret(SECRET_BYTES), kept=kept)
        else:
            sync_directory(files.directory)  # the pointer is durable before anything else is erased
        self._pointer = pointer
        path = files.generation(pointer.generation)
        if not path.is_file():
            raise Corrupt(f"{path.name} is missing: restore it, or the whole directory, from a backup")
        store = read_first(path)
        self._kept = store.kept
        self._content = Content(checked_secret(files, store, secret), epoch=pointer.epoch)
        acknowledged = get_acknowledged(files, pointer.generation)
        end = replay(path, self._content, acknowledged)
        self._generation = Generation(files, pointer.generation, end, acknowledged)
        try:
            self._generation.acknowledge()
            self.scrub()
        except BaseException:  # raised again: no file stays open
            self._generation.close()
            raise

    def _rewrite(self, content: Content) -> None:
        """Write a content into the next generation and make that the store; the other one is for `scrub`."""
        files, old = self._files, self._generation
        number = old.number + 1
        with system_errors():
            self._settle()
            old.check()
            end = write_generation(files, number, content, kept=self._kept)
            new = Generation(files, number, end, Acknowledged(end.lines))
            try:
                self._switch(self._pointer._replace(generation=number, epoch=content.epoch))
            except BaseException:  # raised again: the old generation is the store as before
                new.close()
                with suppress(OSError, Corrupt, Unavailable):
                    self._settle()
                    erase_generation(files, number)
                raise
        self._generation, self._content = new, content
        old.close()

    def _switch(self, pointer: Pointer) -> None:
        """Make another generation the store, durably. After a failure `_settle` must succeed before anything else."""
        self._unsettled = True
        put_pointer(self._files, pointer, self._pointer)
        sync_directory(self._files.directory)
        self._pointer, self._unsettled = pointer, False
        with suppress(OSError):
            self._files.old_pointer.unlink()

    def _settle(self) -> None:
        # While the directory may yet forget or recall another pointer, appending here, or erasing there, could
        # lose the store.
        if not self._unsettled:
            return
        restore_pointer(self._files, self._pointer)
        sync_directory(self._files.directory)
        self._unsettled = False

    def _copy(self, target: JournalFiles) -> None:
        number, content = self._generation.number, self._content
        path = self._files.generation(number)
        for finding in find_damage(path, self._empty(), self._generation.end):
            raise Corrupt(finding.message, space=finding.space, seq=finding.seq)
        if self._kept:
            write_key(target, content.secret)
        write_generation(target, number, content, kept=self._kept)
        # The pointer last: a copy that was not finished is not taken for a store.
        put_pointer(target, self._pointer)
        sync_directory(target.directory)

    def _empty(self) -> Content:
        return Content(self._content.secret, epoch=self._content.epoch)


def find_pointer(files: JournalFiles) -> Pointer | None:
    """Return what journal.current says, None when there is no journal."""
    if os.path.lexists(files.pointer):
        return read_pointer(files.pointer)
    if files.any():
        raise missing_pointer()
    if (files.directory / "store.lock").exists():
        raise InvalidRequest(
            "the directory has a store of the backend sqlite: open it with that one, or give another directory",
            field="path",
        )
    return None


def create_files(files: JournalFiles, secret: bytes, *, kept: bool) -> Pointer:
    """Make the files of an empty journal, durably; return the pointer to them.

    Args:
        kept: whether journal.key keeps the secret.
    """
    # The pointer comes first and says "unfinished" until all else is durable: a crash at any step leaves either
    # nothing that counts, or the whole store.
    put_pointer(files, Pointer(UNFINISHED))
    sync_directory(files.directory)
    sync_directory(files.directory.parent)
    for leftover in (*files.others(UNFINISHED), files.key):
        erase(leftover)
    if kept:
        write_key(files, secret)
        secret = read_key(files)
    write_generation(files, 1, Content(secret), kept=kept)
    pointer = Pointer(1)
    put_pointer(files, pointer)
    sync_directory(files.directory)
    return pointer


def is_unfinished(directory: Path) -> bool:
    """Whether a creation ended early there, so that nothing was told yet; False where that cannot be seen."""
    try:
        pointer = find_pointer(JournalFiles(directory))
    except (PerdureError, OSError):
        return False
    return pointer is None or pointer.generation == UNFINISHED


def checked_secret(files: JournalFiles, store: StoreLine, given: bytes | None) -> bytes:
    """Return the secret of a journal, the given one or that of journal.key.

    Raises:
        WrongKey: the given one is another, or none was given and none is kept.
        Corrupt: journal.key is missing, damaged or of another journal.
    """
    if given is None and not store.kept:
        raise WrongKey("this store's secret is kept outside it: give it as secret=")
    secret = read_key(files) if given is None else bytes(given)
    if compare_digest(make_verifier(secret), store.verifier):
        return secret
    if given is None:
        raise damaged_key()
    raise WrongKey("this store was created with another secret: give that one, or none if it keeps its own")


def _changed(content: Content, change: Change) -> Content:
    """Return the content after a change, leaving the one given as it is."""
    spaces = list(content.spaces)
    space = content.space(change.space)
    spaces[change.space - 1] = SpaceContent(space.head, list(space.rows), dict(space.keys))
    changed = Content(content.secret, spaces, dict(content.names), content.epoch)
    changed.apply(change)
    return changed


def _finding(error: PerdureError | OSError) -> Finding:
    return Finding(translated(error).message if isinstance(error, OSError) else error.message)
