"""What an erasure says of itself: what was removed, which steps are done, what lies outside its reach."""

from __future__ import annotations

from datetime import datetime
from typing import Literal, NamedTuple

import msgspec

from perdure.model.event import EventReference

CERTIFICATE_VERSION = 1
Operation = Literal["forget", "erase", "purge"]
StepName = Literal["zeroed", "scrubbed", "rewritten", "overwritten", "replaced", "resealed", "destroyed"]
OUTSIDE_REACH = (
    "answers and exports that were given out",
    "backups and copies of the store's files",
    "blocks that a drive has remapped, snapshots, copy-on-write and data journals of a filesystem",
    "swap, hibernation, core dumps and the memory of running processes",
)


class Reach(NamedTuple):
    """What erasures do in a log, and what lies outside of it; a log may say its own as its attribute `reach`."""

    erased: tuple[StepName, ...]  # done once an erasure is committed
    scrubbed: StepName  # what `Log.scrub` does
    overwritten: StepName  # what a purge does last
    outside: tuple[str, ...]
    waits: str  # why the last step is not done, and what to do


IN_FILES = Reach(
    ("zeroed",),
    "scrubbed",
    "overwritten",
    OUTSIDE_REACH,
    "a reader keeps its last step; the next operation on the store takes it, once that has ended",
)


class Step(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One step of an erasure, in the order in which they are taken.

    `zeroed`: the records' bytes, in place. `scrubbed`: the write-ahead log and the caches. `rewritten`: the
    store without what was forgotten. `overwritten`: the files that the rewriting replaced.

    In a database: `replaced`: the records' rows, by empty ones. `resealed`: the records that shared data keys with them, under
    fresh ones. `destroyed`: the data keys of before, as every holder of them confirmed. Where nothing is sealed,
    `scrubbed` and `overwritten` are what nobody can confirm, of its rows' old versions, write-ahead log and replicas.
    """

    name: StepName
    done: bool


class Certificate(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The certificate of one forget, erase or purge. It holds no text and no id, only keyed digests of them.

    Digests are hex, sorted and of 16 bytes; whoever has the store's secret can test a guess against them.
    `seal` is a keyed digest of all else: only who has the secret can make one, and any change breaks it.
    """

    version: int
    operation: Operation
    at: datetime
    store: str  # a keyed digest that recognises the store
    epoch: int  # how many purges the store had seen when this was made
    spaces: int  # that were erased whole
    facts: int
    records: int  # that this erased; of a purge by itself: that it left out
    ids: tuple[str, ...]
    texts: tuple[str, ...]
    steps: tuple[Step, ...]
    pending: bool  # a step is not done yet; a later operation takes it
    backups: tuple[
        datetime, ...
    ]  # every copy that was noted and may hold the facts; () where there were none
    outside: tuple[str, ...] = OUTSIDE_REACH
    seal: str = ""
    event: EventReference | None = None  # the last of the audit's that tell of it
