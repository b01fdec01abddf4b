"""What a space keeps beside its log so that opening is fast: when a snapshot pays, and whether one may be believed."""

from __future__ import annotations

from collections.abc import Callable

from perdure.log.digests import digest_bytes, digest_sum
from perdure.log.protocol import Cached, Head, Log
from perdure.space import snapshot
from perdure.space.background import Folder, Folding, keep_snapshot
from perdure.space.heads import content_of, may_follow
from perdure.space.state import SpaceState

SNAPSHOT_RECORDS = 10_000  # a writer keeps a snapshot after as many, and after this share of the space:
GROWTH_SHARE = 4  # each snapshot is whole, so their cost must not grow with every ten thousand records
SNAPSHOT_MIN = 1_000  # records that are analysed again in about 50 ms
SNAPSHOT_SHARE = 50


class Snapshots:
    """What is known of the snapshot of one space."""

    def __init__(self, log: Log) -> None:
        self._log = log
        self.records_since = 0  # that were applied since it was taken, or since there is none
        self.is_trusted = True  # until one turned out to be of other records
        self.folder: Folder | None = None  # keeps them where the callers are not to
        self._content: tuple[int, int] | None = None  # epoch and erasures of the head that it was taken at
        self._offered = False  # whether keeping one was thought of since the state was loaded

    def find(self, number: int, head: Head) -> SpaceState | None:
        """Return the state of the snapshot that is there, None where it is none of a prefix of the space."""
        self._offered = False
        cached = self._log.get_cache(number, snapshot.NAME) if self.is_trusted else None
        if cached is None or not may_follow(cached.head, head):
            return None
        state = snapshot.find_state(cached)
        if state is not None:
            self._content, self.records_since = content_of(cached.head), 0
        return state

    def put(self, number: int, cached: Cached, state: SpaceState) -> None:
        """Keep one of the state, which may have grown since it was taken."""
        self._log.put_cache(number, snapshot.NAME, cached)
        self.is_trusted = True
        self._note(cached.head, state)

    def look(self, number: int, state: SpaceState) -> None:
        """Take notice of one that another process has kept, where the log tells of it, and it is one of a prefix of this."""
        kept: Callable[[int, str], Head | None] | None = getattr(self._log, "cache_head", None)
        head = None if kept is None else kept(number, snapshot.NAME)
        if head is not None and content_of(head) == content_of(state.head) and self._leads_to(head, state):
            self._note(head, state)

    def _leads_to(self, head: Head, state: SpaceState) -> bool:
        """Whether the state's last records continue what was there at a head; nothing was erased between."""
        here = state.head
        checks = state.checks.live(range(head.seq + 1, here.seq + 1))
        total = int.from_bytes(head.digest, "little") + digest_sum(self._log.secret, checks)
        return head.seq <= here.seq and digest_bytes(total) == here.digest

    def pays(self, state: SpaceState) -> bool:
        """Whether the space is large, and the snapshot that is there lacks more than a little."""
        behind = self.records_since
        if self._content != content_of(state.head):  # an erasure took the snapshot with it
            behind = state.head.seq
        return behind >= max(SNAPSHOT_MIN, state.head.seq // SNAPSHOT_SHARE)

    def has_grown(self, state: SpaceState | None) -> bool:
        """Whether so much came to the space that whoever wrote or read it should have a new one kept."""
        least = SNAPSHOT_RECORDS if state is None else max(SNAPSHOT_RECORDS, state.head.seq // GROWTH_SHARE)
        return self.records_since >= least

    def follow_write(self, space: Folding, state: SpaceState | None) -> None:
        """Have one kept where so much came to the space: by a thread of its own, where there is one."""
        if not self.has_grown(state):
            return
        if self.folder is None:
            keep_snapshot(space)
        else:
            self.folder.ask(space)

    def offer(self, space: Folding, state: SpaceState) -> None:
        """Have one kept of what this process has read, where there is a thread for it."""
        if self.folder is None:
            return
        is_loaded, self._offered = not self._offered, True
        if self.has_grown(state) or (is_loaded and self.pays(state)):
            self.folder.ask(space)

    def _note(self, head: Head, state: SpaceState) -> None:
        self.records_since, self._content = max(0, state.head.seq - head.seq), content_of(head)
