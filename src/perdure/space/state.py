"""The state of a space: columns, links, postings and maps, all derived from the log.

`apply.py` alone changes it, under the space's exclusive lock. Everything here is indexed by a
fact's *number*, its arrival order. A document of several units takes as many numbers in a row;
the first names it.
"""

from __future__ import annotations

import threading
from array import array
from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from pyroaring import BitMap

from perdure.errors import Unavailable
from perdure.lexical.index import LexicalIndex, new_index
from perdure.lexical.languages import PROFILES
from perdure.lexical.profile import Profile, get_profile
from perdure.log.protocol import CHECK_BYTES, EMPTY, Head
from perdure.log.records import AnnotationRecord, EndRecord, FactRecord, ReceiptRecord, SpaceRecord
from perdure.space.checks import Checks
from perdure.space.conversations import ConversationTable
from perdure.space.fields import FieldTable
from perdure.space.idmap import IdMap
from perdure.space.nodes import NodeTable
from perdure.temporal.columns import BEGINNING, FOREVER
from perdure.temporal.links import Link, LinkKind

if TYPE_CHECKING:
    from perdure.vectors.exact import ExactIndex

KEPT_MAX = 8
PASSED_MAX = 256  # heads; a look at the log lasts for one append or two of the same process
DEAD, LIVE, HIDDEN = 0, 1, 2
NO_TIME = BEGINNING  # in the event column: none was told
NOWHERE = 0  # in the columns of places and of texts told again: there is none
VECTOR_ITEM = 4  # bytes of a float32
TOLD = ""  # in place of a model: the caller gave the vector


class Receipt(NamedTuple):
    """A kept answer and the seq of its record."""

    record: ReceiptRecord
    seq: int


@dataclass(slots=True)
class LinkTable:
    """All stored links between facts that still exist; a link is dormant while an end is hidden."""

    above: dict[int, list[Link]] = field(default_factory=dict)  # by the older fact
    below: dict[int, list[Link]] = field(default_factory=dict)  # by the newer fact
    told: set[tuple[int, int]] = field(default_factory=set)  # (newer, older) named by the caller
    pairs: dict[tuple[int, int, LinkKind], Link] = field(default_factory=dict)
    against: set[Link] = field(default_factory=set)  # whose newer fact begins before its older one
    count: int = 0

    def add(self, link: Link) -> bool:
        """Add a link; one of the same facts and kind is replaced. Return whether there was one."""
        pair = (link.newer, link.older, link.kind)
        if (known := self.pairs.get(pair)) is not None:
            self._remove(known)
        self.pairs[pair] = link
        self.above.setdefault(link.older, []).append(link)
        self.below.setdefault(link.newer, []).append(link)
        self.count += 1
        return known is not None

    def drop_all_of(self, number: int) -> list[int]:
        """Remove every link of a fact; return the older facts that lost a superseder."""
        downward, upward = self.below.pop(number, []), self.above.pop(number, [])
        for link in upward:
            _without(self.below, link.newer, link)
        for link in downward:
            _without(self.above, link.older, link)
        self.count -= len(downward) + len(upward)
        self.told.difference_update((link.newer, link.older) for link in (*downward, *upward))
        self.against.difference_update((*downward, *upward))
        for link in (*downward, *upward):
            self.pairs.pop((link.newer, link.older, link.kind), None)
        return [link.older for link in downward]

    def _remove(self, link: Link) -> None:
        _without(self.above, link.older, link)
        _without(self.below, link.newer, link)
        self.against.discard(link)
        self.count -= 1


@dataclass(slots=True)
class Labels:
    """An index over the words of tags and kinds, for ranking by relevance.

    Only facts that have any get a row; a change of annotations takes a new row.
    """

    index: LexicalIndex
    numbers: array[int] = field(default_factory=lambda: array("i"))  # of each row
    row_of: dict[int, int] = field(default_factory=dict)

    def put(self, number: int, terms: list[str]) -> None:
        self.drop(number)
        if terms:
            self.row_of[number] = self.index.add(terms)
            self.numbers.append(number)

    def drop(self, number: int) -> None:
        row = self.row_of.pop(number, None)
        if row is not None:
            self.index.erase(row)


def _without(table: dict[int, list[Link]], key: int, link: Link) -> None:
    # By identity: both tables hold the same objects, and comparing fields would make many links slow.
    kept = [other for other in table[key] if other is not link]
    if kept:
        table[key] = kept
    else:
        del table[key]


@dataclass(slots=True)
class SpaceState:
    """See the module's text."""

    settings: SpaceRecord
    profile: Profile
    index: LexicalIndex
    labels: Labels
    head: Head = EMPTY
    number: int = 0  # of the space in the log, in the epoch of the head; 0 while it has none
    from_snapshot: bool = False
    gone: bool = False  # the space was erased whole
    checks: Checks = field(default_factory=Checks)  # of the records up to the head
    passed: deque[Head] = field(default_factory=lambda: deque(maxlen=PASSED_MAX))  # the last heads it was at
    newest_ingest: int = BEGINNING

    seqs: array[int] = field(default_factory=lambda: array("q"))
    ingested: array[int] = field(default_factory=lambda: array("q"))
    event: array[int] = field(default_factory=lambda: array("q"))
    valid_from: array[int] = field(default_factory=lambda: array("q"))
    valid_to: array[int] = field(default_factory=lambda: array("q"))
    superseded_from: array[int] = field(default_factory=lambda: array("q"))
    places: array[int] = field(default_factory=lambda: array("Q"))  # see `place_of`; NOWHERE where untold
    vector_seqs: array[int] = field(default_factory=lambda: array("q"))  # of the vector's record; 0: none
    retold: array[int] = field(default_factory=lambda: array("Q"))  # see `retold_hash`; NOWHERE: never retold
    presence: bytearray = field(default_factory=bytearray)  # DEAD, LIVE or HIDDEN

    ids: IdMap = field(default_factory=IdMap)
    links: LinkTable = field(default_factory=LinkTable)
    timed: BitMap = field(default_factory=BitMap)  # live facts with a window, an end or a superseder
    plain: BitMap = field(default_factory=BitMap)  # documents, not facts
    hidden: BitMap = field(default_factory=BitMap)
    governed: BitMap = field(default_factory=BitMap)  # facts that a node or a turn is seen as
    told_valid_to: dict[int, int] = field(default_factory=dict)  # where an end has moved the column
    effective_from: dict[int, int] = field(default_factory=dict)  # corrections
    ends: dict[int, list[EndRecord]] = field(default_factory=dict)

    subjects: dict[str, array[int]] = field(default_factory=dict)  # live numbers by (eff, number)
    entities: dict[str, BitMap] = field(default_factory=dict)
    tags: dict[str, BitMap] = field(default_factory=dict)
    kinds: dict[str, BitMap] = field(default_factory=dict)
    pinned: BitMap = field(default_factory=BitMap)
    metadata: dict[bytes, BitMap] = field(default_factory=dict)  # digest of (key, value) -> numbers
    fields: FieldTable = field(default_factory=FieldTable)  # metadata by its values, once filters ask
    annotations: dict[int, AnnotationRecord] = field(default_factory=dict)  # only where changed later
    subject_of: dict[int, str] = field(default_factory=dict)
    entities_of: dict[int, tuple[str, ...]] = field(default_factory=dict)
    tags_of: dict[int, tuple[str, ...]] = field(default_factory=dict)
    kind_of: dict[int, str] = field(default_factory=dict)
    importance_of: dict[int, float] = field(default_factory=dict)
    pairs_of: dict[int, tuple[bytes, ...]] = field(default_factory=dict)
    uri_of: dict[int, str] = field(default_factory=dict)  # of the source
    quote_seqs: dict[int, int] = field(default_factory=dict)  # of what a fact quotes of a turn
    actor_of: dict[int, str] = field(default_factory=dict)
    actors: dict[str, BitMap] = field(default_factory=dict)
    vector_models: dict[str, BitMap] = field(default_factory=dict)  # fingerprint, or TOLD -> rows
    dimension: int = 0  # of the vectors; 0 while there is none
    vectors: ExactIndex | None = None  # read from the records when first searched, kept up by apply then
    vectors_lock: threading.Lock = field(default_factory=threading.Lock)  # one reader reads them, others wait
    versions: dict[int, int] = field(default_factory=dict)  # of documents
    unit_counts: dict[int, int] = field(default_factory=dict)  # documents of several units
    unit_owner: dict[int, int] = field(default_factory=dict)  # their later numbers
    uses: dict[int, tuple[int, int]] = field(default_factory=dict)  # how often, and when last
    used_in: IdMap = field(default_factory=IdMap)  # by `use_hash`
    made_from: dict[int, tuple[int, ...]] = field(default_factory=dict)  # ascending; may name forgotten ones
    owned: dict[int, list[int]] = field(default_factory=dict)  # seqs erased with the fact
    receipts: dict[bytes, Receipt] = field(default_factory=dict)
    nodes: NodeTable = field(default_factory=NodeTable)
    conversations: ConversationTable = field(default_factory=ConversationTable)
    blocked: set[bytes] = field(default_factory=set)
    block_keys: set[bytes] = field(default_factory=set)  # of blocks that came from elsewhere, with their key
    kept: dict[Any, Any] = field(default_factory=dict)  # what reads derived, until the next apply
    stale: set[int] = field(default_factory=set)  # facts that look different since the last apply

    @property
    def next_number(self) -> int:
        """The number the next fact takes."""
        return len(self.presence)

    def stand_at(self, head: Head) -> None:
        """Note that the state is what the log holds at this head."""
        self.head = head
        self.passed.append(head)

    def is_live(self, number: int) -> bool:
        """Whether the fact exists and is not hidden."""
        return 0 <= number < len(self.presence) and self.presence[number] == LIVE

    def exists(self, number: int) -> bool:
        """Whether the fact exists, hidden or not."""
        return 0 <= number < len(self.presence) and self.presence[number] != DEAD

    def is_whole(self, number: int) -> bool:
        """Whether the fact exists, and its record is all there is of it."""
        return self.exists(number) and number not in self.quote_seqs

    def eff(self, number: int) -> int:
        """Return when the fact takes effect: effective_from, valid_from, event_time or ingest_time."""
        kept = self.effective_from.get(number)
        if kept is not None:
            return kept
        if (start := self.valid_from[number]) != BEGINNING:
            return start
        if (event := self.event[number]) != NO_TIME:
            return event
        return self.ingested[number]

    def above(self, number: int) -> list[Link]:
        """Return the stored links whose older fact is this one."""
        return self.links.above.get(number, [])

    def below(self, number: int) -> list[Link]:
        """Return the stored links whose newer fact is this one."""
        return self.links.below.get(number, [])

    def ingest(self, number: int) -> int:
        """Return when the store recorded the fact."""
        return self.ingested[number]

    def made_of(self, numbers: Iterable[int]) -> set[int]:
        """Return the stored facts whose content was made from any of these, at any remove; hidden ones too."""
        reached = set(numbers)
        found = set()
        # One pass will do: a fact is made from earlier ones, and the map is in order of arrival.
        for number, sources in self.made_from.items():
            if not reached.isdisjoint(sources):
                reached.add(number)
                found.add(number)
        return found

    @property
    def is_ordered(self) -> bool:
        """Whether no stored link runs against the order of (eff, number): then none along it closes a cycle."""
        return not self.links.against

    def numbers(self, *, hidden: bool = False) -> list[int]:
        """Return the numbers of all live (or all hidden) facts and documents, ascending."""
        if hidden:
            return list(self.hidden)
        owner = self.unit_owner
        return [n for n, p in enumerate(self.presence) if p == LIVE and n not in owner]

    def keep(self, key: Any, value: Any) -> None:
        """Keep what a read derived from this very state; a few values, the oldest go first."""
        if len(self.kept) >= KEPT_MAX:
            # Replaced, not changed: other readers may be looking something up.
            self.kept = dict(list(self.kept.items())[KEPT_MAX // 2 :])
        self.kept[key] = value

    def memory_bytes(self) -> int:
        """Estimate the memory held, in bytes."""
        mapped = (
            len(self.subject_of)
            + len(self.entities_of)
            + len(self.tags_of)
            + len(self.pairs_of)
            + len(self.ends)
            + len(self.made_from)
            + len(self.uri_of)
            + len(self.quote_seqs)
            + len(self.actor_of)
        )
        vectors = 0 if self.vectors is None else self.vectors.memory_bytes()
        columns = 104 * len(self.presence) + CHECK_BYTES * len(self.checks)
        derived = self.index.memory_bytes() + vectors + self.fields.memory_bytes()
        governed = self.nodes.memory_bytes() + self.conversations.memory_bytes()
        return derived + governed + columns + 200 * (mapped + self.links.count)

    @property
    def fact_count(self) -> int:
        """How many facts and documents are live."""
        return self.presence.count(LIVE) - sum(c - 1 for n, c in self.unit_counts.items() if self.is_live(n))

    @property
    def without_vector(self) -> int:
        """How many facts and units of documents have no vector, hidden ones among them."""
        is_there = np.array(self.presence) != DEAD
        return int(np.count_nonzero(is_there & (np.array(self.vector_seqs) == 0)))


def new_state(settings: SpaceRecord) -> SpaceState:
    """Return the state of a space that holds nothing but its settings.

    Raises:
        Unavailable: a newer build gave it a profile that this one does not know.
    """
    if settings.profile not in PROFILES:
        raise Unavailable(
            f"the space was made with profile {settings.profile[:64]!r}, which this build does not know: open it with "
            "a newer one, or give it another with reindex"
        )
    return SpaceState(
        settings=settings,
        profile=get_profile(settings.profile),
        index=new_index(settings.k1, settings.b),
        labels=Labels(new_index(settings.k1, settings.b)),
    )


def seen_metadata(told: FactRecord, seen: AnnotationRecord | None) -> bytes | None:
    """Return the metadata as reads see it: annotated, else as told."""
    return told.metadata if seen is None or seen.metadata is None else seen.metadata


def end_or_forever(value: int | None) -> int:
    return FOREVER if value is None else value
