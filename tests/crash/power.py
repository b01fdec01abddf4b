"""Simulated power loss: what reaches a store's files is recorded, and any disk that it may leave behind is made.

Recorded are the writes, truncations and syncs of each file and the creations and removals of names, whether SQLite
does them (through a VFS of ours) or Perdure itself (through `os`). When power fails, what was synced is there. Of
what was not, any part may be: all, none, some of it in any order, sectors of a write. A name is sure once its
directory was synced.
"""

from __future__ import annotations

import os
import pickle
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

import apsw

from crash.children import Tell
from crash.kills import marker_of
from perdure.log.protocol import Batch, Entry, Read, Rewritten
from perdure.log.sqlite import SqliteLog

SECTOR_BYTES = 512
VFS = "multipleciphers-unix"
JOURNALS = apsw.SQLITE_OPEN_MAIN_JOURNAL | apsw.SQLITE_OPEN_WAL
NAME = b"n" * 16
MODES = ("kept", "dropped", "any", "torn", "newest")


class Create(NamedTuple):
    name: str
    file: int


class Remove(NamedTuple):
    name: str


class Rename(NamedTuple):
    name: str
    new: str


class Write(NamedTuple):
    file: int
    offset: int
    data: bytes


class Truncate(NamedTuple):
    file: int
    size: int


class Sync(NamedTuple):
    file: int


class SyncDirectory(NamedTuple):
    pass


class Said(NamedTuple):
    """What the workload was about to do ("begin") or what was acknowledged ("done")."""

    when: str
    what: str
    tag: str = ""


Event = Create | Remove | Rename | Write | Truncate | Sync | SyncDirectory | Said
Naming = Create | Remove | Rename
Changing = Write | Truncate


@dataclass
class Recording:
    """Everything that reached a directory, in order, from what was there before."""

    before: dict[str, bytes]
    found: list[str] = field(default_factory=list)  # the batches that were there when it was opened
    events: list[Event] = field(default_factory=list)


class Recorder:
    """Records one directory for the rest of this process's life: its VFS becomes the default one."""

    def __init__(self, root: Path) -> None:
        self.root = str(root)
        self.recording = Recording({path.name: path.read_bytes() for path in root.iterdir()})
        self._files = {name: number for number, name in enumerate(self.recording.before)}
        self._count = len(self._files)
        self._descriptors: dict[int, tuple[int, bool]] = {}  # the file's number, and whether it appends
        self._real = {name: getattr(os, name) for name in ("open", "close", "write", "fsync", "truncate")}
        self._real |= {
            name: getattr(os, name) for name in ("ftruncate", "unlink", "remove", "rename", "replace")
        }
        for name in self._real:
            setattr(os, name, getattr(self, f"_{name}"))
        self._vfs = _Vfs(self)

    def say(self, when: str, what: str, tag: str = "") -> None:
        self.recording.events.append(Said(when, what, tag))

    def add(self, event: Event) -> None:
        self.recording.events.append(event)

    def name_of(self, path: Any) -> str | None:
        """Return the name within the directory; None for any other file, and for shared memory."""
        if isinstance(path, int):
            return None
        folder, name = os.path.split(os.path.abspath(os.fsdecode(path)))
        return name if folder == self.root and not name.endswith("-shm") else None

    def file_of(self, name: str, *, creating: bool) -> int:
        """Return the number of the file of that name, recording its creation where it is new."""
        number = self._files.get(name)
        if number is None:
            assert creating, f"{name} is not recorded"
            number = self._files[name] = self._count
            self._count += 1
            self.add(Create(name, number))
        return number

    def gone(self, name: str) -> None:
        if self._files.pop(name, None) is not None:
            self.add(Remove(name))

    # In place of the functions of `os`

    def _open(self, path: Any, flags: int, *rest: Any, **options: Any) -> int:
        descriptor: int = self._real["open"](path, flags, *rest, **options)
        name = self.name_of(path)
        if name is not None:
            number = self.file_of(name, creating=bool(flags & os.O_CREAT))
            self._descriptors[descriptor] = number, bool(flags & os.O_APPEND)
            if flags & os.O_TRUNC:
                self.add(Truncate(number, 0))
        elif isinstance(path, str | os.PathLike) and os.path.abspath(os.fsdecode(path)) == self.root:
            self._descriptors[descriptor] = -1, False
        return descriptor

    def _close(self, descriptor: int) -> None:
        self._descriptors.pop(descriptor, None)
        self._real["close"](descriptor)

    def _write(self, descriptor: int, data: bytes) -> int:
        file, appends = self._descriptors.get(descriptor, (None, False))
        if file is None:
            return int(self._real["write"](descriptor, data))
        offset = os.lseek(descriptor, 0, os.SEEK_END if appends else os.SEEK_CUR)
        written = int(self._real["write"](descriptor, data))
        self.add(Write(file, offset, bytes(data)[:written]))
        return written

    def _fsync(self, descriptor: int) -> None:
        file, _ = self._descriptors.get(descriptor, (None, False))
        if file == -1:
            self.add(SyncDirectory())
        elif file is not None:
            self.add(Sync(file))
        # The disk itself is not waited for: what it would keep is what is recorded.

    def _ftruncate(self, descriptor: int, size: int) -> None:
        self._real["ftruncate"](descriptor, size)
        if descriptor in self._descriptors:
            self.add(Truncate(self._descriptors[descriptor][0], size))

    def _truncate(self, path: Any, size: int) -> None:
        self._real["truncate"](path, size)
        if (name := self.name_of(path)) is not None:
            self.add(Truncate(self._files[name], size))

    def _unlink(self, path: Any, **options: Any) -> None:
        self._real["unlink"](path, **options)
        if (name := self.name_of(path)) is not None:
            self.gone(name)

    _remove = _unlink

    def _rename(self, old: Any, new: Any, **options: Any) -> None:
        self._real["rename"](old, new, **options)
        before, after = self.name_of(old), self.name_of(new)
        assert (before is None) == (after is None), "files do not move in or out of the directory"
        if before is not None and after is not None:
            self._files[after] = self._files.pop(before)
            self.add(Rename(before, after))

    _replace = _rename


class _Vfs(apsw.VFS):
    def __init__(self, recorder: Recorder) -> None:
        super().__init__("recording", VFS, True)
        self._recorder = recorder

    def xOpen(self, name: Any, flags: list[int]) -> apsw.VFSFile:
        return _VfsFile(self._recorder, name, flags)

    def xDelete(self, name: str, syncdir: bool) -> None:
        super().xDelete(name, syncdir)
        if (own := self._recorder.name_of(name)) is not None:
            self._recorder.gone(own)
            if syncdir:
                self._recorder.add(SyncDirectory())


class _VfsFile(apsw.VFSFile):
    def __init__(self, recorder: Recorder, name: Any, flags: list[int]) -> None:
        super().__init__(VFS, name, flags)
        path = name.filename() if isinstance(name, apsw.URIFilename) else name
        own = None if path is None else recorder.name_of(path)
        creating = bool(flags[0] & apsw.SQLITE_OPEN_CREATE)
        self._recorder = recorder
        self._file = None if own is None else recorder.file_of(own, creating=creating)
        # SQLite's own VFS syncs the directory with the first sync of a journal that it has opened to create.
        self._syncs_directory = creating and bool(flags[0] & JOURNALS)

    def xWrite(self, data: bytes, offset: int) -> None:
        super().xWrite(data, offset)
        if self._file is not None:
            self._recorder.add(Write(self._file, offset, bytes(data)))

    def xTruncate(self, size: int) -> None:
        super().xTruncate(size)
        if self._file is not None:
            self._recorder.add(Truncate(self._file, size))

    def xSync(self, flags: int) -> None:
        if self._file is not None:
            self._recorder.add(Sync(self._file))
            if self._syncs_directory:
                self._syncs_directory = False
                self._recorder.add(SyncDirectory())


# What a disk holds


def disk_at(recording: Recording, moment: int, mode: str, random: Random) -> dict[str, bytes]:
    """Return the files that are left when power fails before the event of that number.

    Args:
        mode: what becomes of what was not synced: all of it kept (as when a process is killed), all dropped, any
            subset kept and some writes torn, a prefix kept and its last write torn, only the newest kept.
    """
    names = {name: number for number, name in enumerate(recording.before)}
    contents = {number: bytearray(recording.before[name]) for name, number in names.items()}
    changes: dict[int, list[Changing]] = {}
    namings: list[Naming] = []
    for event in recording.events[:moment]:
        match event:
            case Create() | Remove() | Rename():
                namings.append(event)
                if isinstance(event, Create):
                    contents[event.file] = bytearray()
            case Write() | Truncate():
                changes.setdefault(event.file, []).append(event)
            case Sync():
                _apply(contents[event.file], changes.pop(event.file, ()))
            case SyncDirectory():
                _name(names, namings)
                namings = []
    for file, pending in changes.items():
        _apply(contents[file], _left(pending, mode, random))
    _name(names, _left_names(namings, mode, random))
    return {name: bytes(contents[file]) for name, file in names.items()}


def _apply(content: bytearray, changes: Iterable[Changing]) -> None:
    for change in changes:
        match change:
            case Truncate(_, size):
                del content[size:]
                content.extend(bytes(size - len(content)))
            case Write(_, offset, data):
                content.extend(bytes(max(0, offset - len(content))))
                content[offset : offset + len(data)] = data


def _name(names: dict[str, int], namings: Iterable[Naming]) -> None:
    for naming in namings:
        match naming:
            case Create(name, file):
                names[name] = file
            case Remove(name):
                names.pop(name, None)
            case Rename(name, new) if name in names:
                names[new] = names.pop(name)


def _left(pending: Sequence[Changing], mode: str, random: Random) -> list[Changing]:
    match mode:
        case "kept":
            return list(pending)
        case "dropped":
            return []
        case "newest":
            return list(pending[random.randrange(len(pending)) :])
        case "torn":
            upto = random.randrange(len(pending))
            return [*pending[:upto], *_torn(pending[upto], random)]
    left: list[Changing] = []
    for change in pending:
        left += random.choice(([change], [], _torn(change, random)))
    return left


def _torn(change: Changing, random: Random) -> list[Changing]:
    """Return a part of a write: some of its sectors."""
    if isinstance(change, Truncate):
        return []
    file, offset, data = change
    first = -offset % SECTOR_BYTES
    cuts = [0, *range(first or SECTOR_BYTES, len(data), SECTOR_BYTES), len(data)]
    parts = [Write(file, offset + a, data[a:b]) for a, b in pairwise(cuts)]
    return [part for part in parts if random.random() < 0.5]


def _left_names(namings: Sequence[Naming], mode: str, random: Random) -> list[Naming]:
    match mode:
        case "kept":
            return list(namings)
        case "dropped":
            return []
    return [naming for naming in namings if random.random() < 0.5]


def moments(recording: Recording, random: Random) -> Iterator[int]:
    """Yield moments without end: each stretch between two words of the workload is as likely as any other."""
    words = [place for place, event in enumerate(recording.events) if isinstance(event, Said)]
    while True:
        first = random.randrange(len(words))
        start, end = words[first], [*words, len(recording.events)][first + 1]
        yield random.randint(start + 1, end)


# What the workload does


def record(tell: Tell, directory: str, out: str, durability: Any, seed: int, again: bool) -> None:
    """Open the store, work on it and keep what was recorded; `again` is the shorter work after a first loss."""
    root = Path(directory)
    recorder = Recorder(root)
    recorder.say("begin", "open")
    log = SqliteLog.open(root, durability=durability)
    work = Work(log, recorder.say, Random(seed))
    recorder.recording.found = work.held
    work.run(again=again)
    everything = disk_at(recorder.recording, len(recorder.recording.events), "kept", Random())
    there = {path.name: path.read_bytes() for path in root.iterdir() if not path.name.endswith("-shm")}
    assert everything == there, "something reached the files and was not recorded"
    log.close()
    with Path(out).open("wb") as file:
        pickle.dump(recorder.recording, file)


class Work:
    """Appends, erasures, scrubs and purges on one space."""

    def __init__(self, log: SqliteLog, say: Callable[..., None], random: Random) -> None:
        self.log, self.say, self.random = log, say, random
        self.held = held(log)
        self._count = 0
        say("done", "open")

    def run(self, *, again: bool) -> None:
        if not self.log.spaces():
            self.log.create_space(NAME, b"first")
        self.log.scrub()
        steps = ["append", "append", "erase", "purge", "append"]
        if not again:
            steps = ["append"] * 4 + [
                "erase",
                "append",
                "large",
                "erase",
                "purge",
                "append",
                "large",
                "large",
            ]
            steps += ["large", "erase", "erase", "append", "purge", "purge", "append"]
        for step in steps:
            getattr(self, f"_{step}")()

    def _append(self, size: int = 3, padding: int = 20) -> None:
        self._count += 1
        tag = f"{self.random.randrange(1 << 30)}-{self._count}"
        self.say("begin", "append", tag)
        text = f"{tag} {marker_of(tag)} ".encode() + self.random.randbytes(padding).hex().encode()
        self.log.append(1, self.log.head(1), Batch(records=[text] * size))
        self.say("done", "append", tag)

    def _large(self) -> None:
        """More than what SQLite lets the write-ahead log grow to, in a few."""
        self._append(size=5, padding=200_000)

    def _erase(self) -> None:
        there = held(self.log)
        if not there:
            return
        tag = self.random.choice(there)
        seqs = [entry.seq for entry in entries(self.log) if entry.data and tag_of(entry.data) == tag]
        self.say("begin", "erase", tag)
        with self.log.writer():
            self.log.append(1, self.log.head(1), Batch(records=[b"removal"], erase=seqs))
            self.say("done", "erase", tag)
            if self.log.scrub():
                self.say("done", "scrub")

    def _purge(self) -> None:
        purge = getattr(self.log, "purge", None)
        if purge is not None:
            self.say("begin", "purge")
            purge(_kept)
            self.say("done", "purge")


def _kept(space: int, read: Read) -> Iterator[Rewritten]:
    return (Rewritten(entry.data) for entry in read() if entry.data not in (None, b"removal"))


def entries(log: SqliteLog) -> list[Entry]:
    return [entry for space in log.spaces() for entry in log.read(space, 0, log.head(space).seq)]


def tag_of(data: bytes) -> str:
    return data.split(b" ", 1)[0].decode()


def held(log: SqliteLog) -> list[str]:
    """Return the batches that are there, in order; one that is there in parts is named with their number."""
    counts: dict[str, int] = {}
    for entry in entries(log):
        if entry.data not in (None, b"first", b"removal"):
            tag = tag_of(entry.data)
            counts[tag] = counts.get(tag, 0) + 1
    return [tag if count in (3, 5) else f"{count} of {tag}" for tag, count in counts.items()]


# What must hold of what is left


class Expected(NamedTuple):
    """What may be there at a moment. `states[n]` is what n of the begun changes make; `sure` of them are durable."""

    states: list[list[str]]
    sure: int
    cleaned: set[str]  # batches whose text must be in no file


def expected_at(recording: Recording, moment: int) -> Expected:
    states, sure, cleaned = [list(recording.found)], 0, set()
    for event in recording.events[:moment]:
        match event:
            case Said("begin", "append", tag):
                states.append([*states[-1], tag])
            case Said("begin", "erase", tag):
                states.append([one for one in states[-1] if one != tag])
            case Said("done", "append" | "erase"):
                sure += 1
            case Said("done", "scrub" | "purge"):
                told = {tag for state in states for tag in state}
                cleaned = told - set(states[-1])
    return Expected(states, sure, cleaned)
