"""Verifying a journal that nobody has open, also one that is too damaged to be opened."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from perdure.errors import Corrupt, NotFound
from perdure.log.content import Content
from perdure.log.journal.failures import system_errors
from perdure.log.journal.files import JournalFiles, find_acknowledged, get_acknowledged
from perdure.log.journal.lock import lock_directory
from perdure.log.journal.medium import checked_secret, find_pointer
from perdure.log.journal.replay import Place, find_damage, read_first, replay
from perdure.log.places import mode_findings
from perdure.log.protocol import Finding


def find_journal_damage(
    directory: Path, *, secret: bytes | None = None, timeout_s: float = 30.0
) -> Iterator[Finding]:
    """Yield what is wrong with the files of a journal, going on after each finding; nothing when all is whole.

    Changes nothing. A last batch that was not written whole is no damage.

    Raises:
        NotFound: there is no journal.
        Busy: it is open elsewhere.
        WrongKey: another secret.
        InvalidRequest, Unavailable: it cannot be looked at.
    """
    files = JournalFiles(directory)
    if not files.any():
        raise NotFound("there is no journal there to verify", field="path")
    with system_errors():
        lock = lock_directory(files.lock, timeout_s)
        try:
            yield from _findings(files, secret)
        except Corrupt as error:
            yield _finding(error)
        finally:
            lock.close()


def _findings(files: JournalFiles, secret: bytes | None) -> Iterator[Finding]:
    pointer = find_pointer(files)
    if pointer is None or not pointer.generation:
        return
    yield from mode_findings(files.directory, files.present(pointer.generation))
    path = files.generation(pointer.generation)
    if not path.is_file():
        raise Corrupt(f"{path.name} is missing: restore it, or the whole directory, from a backup")
    kept = checked_secret(files, read_first(path), secret)
    acknowledged = find_acknowledged(files, pointer.generation)
    try:
        get_acknowledged(files, pointer.generation)
    except Corrupt as error:
        yield _finding(error)
    try:
        replay(path, Content(kept, epoch=pointer.epoch), acknowledged)
    except Corrupt as error:
        whole = Place(0, path.stat().st_size)
        found = list(find_damage(path, Content(kept, epoch=pointer.epoch), whole))
        yield from found or [_finding(error)]


def _finding(error: Corrupt) -> Finding:
    return Finding(error.message, error.space, error.seq)
