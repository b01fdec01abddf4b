"""What an erasure says of itself: what was removed, which steps are done, what lies outside its reach."""

from __future__ import annotations

from datetime import datetime
from typing import Literal

import msgspec

CERTIFICATE_VERSION = 1
Operation = Literal["forget", "erase", "purge"]
StepName = Literal["zeroed", "scrubbed", "rewritten", "overwritten"]
OUTSIDE_REACH = (
    "answers and exports that were given out",
    "backups and copies of the store's files",
    "blocks that a drive has remapped, snapshots, copy-on-write and data journals of a filesystem",
    "swap, hibernation, core dumps and the memory of running processes",
)


class Step(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One step of an erasure, in the order in which they are taken.

    `zeroed`: the records' bytes, in place. `scrubbed`: the write-ahead log and the caches. `rewritten`: the
    store without what was forgotten. `overwritten`: the files that the rewriting replaced.
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
    pending: bool  # a step is not done yet; the next operation on the store takes it
    backups: tuple[
        datetime, ...
    ]  # every copy that was noted and may hold the facts; () where there were none
    outside: tuple[str, ...] = OUTSIDE_REACH
    seal: str = ""
