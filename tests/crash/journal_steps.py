"""A process that dies at the n-th call to the system in the middle of an operation on a journal."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from crash.children import Tell
from perdure.log.journal import JournalLog
from perdure.log.protocol import Batch, Read, Rewritten
from perdure.log.records import FactRecord, encode

NAME = b"n" * 16
CALLS = ("open", "write", "fsync", "replace", "unlink", "ftruncate", "mkdir", "lseek")


def text(word: str) -> bytes:
    """Return a record that says something of a word, readable in the file."""
    return encode(FactRecord(0, word, f"the {word} is blue", 0))


def fill(directory: Path) -> None:
    """Make a journal of two spaces in which one record was erased before."""
    with_log(directory, _fill)


def _fill(log: JournalLog) -> None:
    for number in (1, 2):
        log.create_space(bytes([number]) * 16, b"first")
    for word, space in (("saucer", 1), ("kettle", 1), ("teapot", 2)):
        log.append(space, log.head(space), Batch(records=[text(word)], keys=[(word[:1].encode() * 16, 0)]))
    log.append(1, log.head(1), Batch(records=[], erase=[2]))
    assert log.scrub()


def with_log(directory: Path, work: Callable[[JournalLog], Any]) -> Any:
    log = JournalLog.open(directory, timeout_s=0)
    try:
        return work(log)
    finally:
        log.close()


def kept(space: int, read: Read) -> Iterator[Rewritten]:
    return (Rewritten(entry.data) for entry in read() if entry.data is not None)


def append(log: JournalLog) -> None:
    log.append(2, log.head(2), Batch(records=[text("beaker"), text("goblet")]))


def create(log: JournalLog) -> None:
    log.create_space(bytes([3]) * 16, text("carafe"))


def forget(log: JournalLog) -> None:
    log.append(2, log.head(2), Batch(records=[b"removal"], erase=[2]))
    assert log.scrub()


def purge(log: JournalLog) -> None:
    assert not log.purge(kept).pending


def note(log: JournalLog) -> None:
    log.note_backup(7)


OPERATIONS = {"append": append, "create": create, "forget": forget, "purge": purge, "note": note}


def run(tell: Tell, directory: str, operation: str, step: int, torn: bool) -> None:
    """Run the operation and die at the step, counted from 1; live through it when there are fewer.

    Args:
        operation: one of OPERATIONS; or "open": open the journal, or make it, and do no more.
        torn: whether a write that is the step is made in part before.
    """
    place = Path(directory)
    if operation == "open":
        with counted(step, torn):
            JournalLog.open(place, timeout_s=0)
    else:
        log = JournalLog.open(place, timeout_s=0)
        with counted(step, torn):
            OPERATIONS[operation](log)
    tell("done")


class counted:  # noqa: N801 - reads as a statement
    """Kills this process before the n-th call to the system."""

    def __init__(self, step: int, torn: bool) -> None:
        self._left, self._torn = step, torn
        self._real = {name: getattr(os, name) for name in CALLS}

    def __enter__(self) -> None:
        for name, call in self._real.items():
            setattr(os, name, self._wrapped(name, call))

    def __exit__(self, *_: object) -> None:
        for name, call in self._real.items():
            setattr(os, name, call)

    def _wrapped(self, name: str, call: Callable[..., Any]) -> Callable[..., Any]:
        def wrapped(*arguments: Any, **options: Any) -> Any:
            self._left -= 1
            if self._left == 0:
                if self._torn and name == "write":
                    descriptor, data = arguments
                    call(descriptor, bytes(data)[: len(data) // 2])
                os.kill(os.getpid(), signal.SIGKILL)
            return call(*arguments, **options)

        return wrapped
