"""Reading what is still whole of a damaged journal, without the checks that fail closed; nothing is changed.

A line counts as whole when its keyed digest proves it, whichever line of the file it is now. Only the generation that
is the store is read: an older one may hold what was erased since.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager, nullcontext, suppress
from hmac import compare_digest
from pathlib import Path

from perdure.base.disk import make_directory
from perdure.errors import Corrupt, InvalidRequest, WrongKey
from perdure.log.journal.failures import system_errors
from perdure.log.journal.files import (
    UNFINISHED,
    JournalFiles,
    Pointer,
    find_acknowledged,
    find_key,
    read_pointer,
)
from perdure.log.journal.lines import StoreLine, line_digest, make_verifier, read_store_line
from perdure.log.journal.lock import lock_directory
from perdure.log.journal.medium import create_files
from perdure.log.journal.proving import LINES_MAX, Piece, find_pieces, find_proven
from perdure.log.journal.remains import JournalRemains
from perdure.log.protocol import SECRET_BYTES, Progress

WAIT_S = 5.0


@contextmanager
def journal_kept_from_others(directory: Path) -> Iterator[None]:
    """Have a journal's lock meanwhile, where it is whole enough to have one.

    Raises:
        Busy: it is open elsewhere.
    """
    lock = JournalFiles(directory).lock
    with system_errors():
        held = closing(lock_directory(lock, WAIT_S)) if lock.is_file() else nullcontext()
    with held:
        yield


def open_journal_remains(directory: Path, secret: bytes | None, progress: Progress | None) -> JournalRemains:
    """Return what is whole of a journal.

    Raises:
        WrongKey: the secret is not the journal's, or none was given and none is kept.
        Corrupt: no line holds, or it is not known under which secret, or in which generation, lines would.
        InvalidRequest: the secret is not 32 bytes, or others than the owner may read journal.key.
        Unavailable: a newer build wrote it, or it cannot be read.
    """
    files = JournalFiles(directory)
    with system_errors():
        notes: list[str] = []
        number = _generation(files, notes)
        path = files.generation(number)
        pieces = list(find_pieces(path.read_bytes()))
        store = _store_line(pieces, path.name)
        if store is None:
            notes.append(f"line 1 of {path.name}, which says whose it is, is damaged or missing")
        found, kept = _secret(files, store, secret, path.name)
        acknowledged = find_acknowledged(files, number).lines
    if not 0 < acknowledged <= LINES_MAX:
        notes.append(
            f"{files.mark(number).name} is damaged or missing: lost lines at the end are not noticed"
        )
        acknowledged = 0
    proven = find_proven(pieces, line_digest(found), acknowledged, progress)
    if not proven:
        raise Corrupt(f"no line of {path.name} holds under the secret that there is: restore a backup")
    remains = JournalRemains(number, path.name, found, kept=kept)
    remains.notes += notes
    remains.take(proven, acknowledged)
    if not remains.records:
        raise Corrupt(f"{path.name} holds no whole record: restore a backup")
    return remains


def create_keeping(directory: Path, secret: bytes) -> None:
    """Make an empty journal that keeps a secret itself, as if it had made it."""
    with system_errors():
        make_directory(directory)
        create_files(JournalFiles(directory), secret, kept=True)


def _generation(files: JournalFiles, notes: list[str]) -> int:
    """Return the number of the generation to read: the store's own, and nothing in its place."""
    pointer: Pointer | None = None
    with suppress(FileNotFoundError, Corrupt):
        pointer = read_pointer(files.pointer)
    numbers = files.numbers()
    if pointer is not None:
        if pointer.generation == UNFINISHED:
            raise Corrupt("the journal was never finished: nothing was told to it yet")
        if pointer.generation not in numbers:
            raise Corrupt(
                f"{files.generation(pointer.generation).name}, which is the store, is missing, and an older one may hold "
                "what was erased since: restore it, or the whole directory, from a backup"
            )
        return pointer.generation
    if not numbers:
        raise Corrupt("no generation of the journal is there: restore the directory from a backup")
    if len(numbers) > 1 and not files.mark(numbers[-1]).is_file():
        # The mark is written last, and before the pointer: without it the newest one may be unfinished.
        raise Corrupt(
            f"journal.current is damaged or missing, and so is {files.mark(numbers[-1]).name}: which generation is "
            "the store cannot be told. Restore journal.current from a backup; or keep a copy of the directory and "
            "take away the generation that is not to be read, knowing that the older one may hold what was erased"
        )
    notes.append("journal.current is damaged or missing: the newest generation was read")
    return numbers[-1]


def _store_line(pieces: Sequence[Piece], name: str) -> StoreLine | None:
    for piece in pieces:
        for parts in piece.forms:
            with suppress(Corrupt):
                return read_store_line(parts.raw, name)
    return None


def _secret(
    files: JournalFiles, store: StoreLine | None, given: bytes | None, name: str
) -> tuple[bytes, bool]:
    """Return the journal's secret, and whether journal.key keeps it."""
    if given is not None:
        if len(given) != SECRET_BYTES:
            raise InvalidRequest(f"secret must be {SECRET_BYTES} bytes, got {len(given)}", field="secret")
        if store is not None and not compare_digest(make_verifier(given), store.verifier):
            raise WrongKey(
                "this store was created with another secret: give that one, or none if it keeps its own"
            )
        return bytes(given), files.key.is_file() if store is None else store.kept
    if store is not None and not store.kept:
        raise WrongKey("this store's secret is kept outside it: give it as secret=")
    found = find_key(files)
    if found is None or (store is not None and not compare_digest(make_verifier(found), store.verifier)):
        raise Corrupt(
            "journal.key is missing, damaged or of another journal, and without the secret no line can be proven: "
            "restore journal.key from a backup, or give its 32 bytes as secret=. Where it is lost for good, the "
            f"lines of {name} are text all the same: take what you know to be true from them, and remember it in a "
            "new store"
        )
    return found, True
