"""The law of `derived`: what was made from a fact is known for as long as both are stored, whatever happens between."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from effort import examples
from perdure import ManualClock, Memory, MemoryConfig, Namespace, Store
from perdure.policies import Consolidation, FactSummary
from perdure.space import snapshot
from perdure.space.space import Settings, Space

STEPS = (
    "tell",
    "merge",
    "merge",
    "merge",
    "forget",
    "forget with all",
    "hide",
    "purge",
    "open",
    "load",
    "move",
)


class Chosen:
    """Merges the facts that are chosen."""

    def __init__(self) -> None:
        self.sources: tuple[str, ...] = ()
        self.made = 0

    def plan(self, facts: Sequence[FactSummary], now: int) -> list[Consolidation]:
        return [Consolidation(text=f"merged {self.made}", sources=self.sources)]


class Pair:
    """A memory, and beside it for each of its facts those that it was made from."""

    def __init__(self) -> None:
        self.clock, self.policy = ManualClock(1_000), Chosen()
        self.config = MemoryConfig(consolidation=self.policy)
        self.made_from: dict[str, set[str]] = {}
        self.hidden: set[str] = set()
        self.told = 0
        self.open(Store.open(":memory:", clock=self.clock))

    def open(self, store: Store) -> None:
        self.store = store
        self.memory: Memory = store.memory(config=self.config)

    def tell(self) -> None:
        self.told += 1
        self.memory.remember(f"told {self.told}", id=f"t{self.told}")
        self.made_from[f"t{self.told}"] = set()

    def merge(self, sources: Iterable[str]) -> None:
        self.policy.made += 1
        self.policy.sources = tuple(sources)
        (id_,) = self.memory.consolidate(dry_run=False).created
        behind = [self.made_from[source] for source in self.policy.sources]
        self.made_from[id_] = set(self.policy.sources).union(*behind)

    def made_of(self, named: set[str]) -> set[str]:
        return {id_ for id_, sources in self.made_from.items() if sources & named} - named

    def forget(self, named: set[str], **options: Any) -> None:
        made = self.made_of(named)
        gone = named | (made if options.get("include_derived") else set())
        for preview in (True, False):
            told = self.memory.forget(ids=named, dry_run=preview, **options)
            assert (set(told.forgotten), set(told.derived)) == (gone, made - gone)
        for id_ in gone:
            del self.made_from[id_]
        self.hidden -= gone

    def hide(self, named: set[str]) -> None:
        told = self.memory.forget(ids=named, soft=True)
        assert set(told.derived) == self.made_of(set(told.forgotten)) - self.hidden
        self.hidden |= named

    def load(self) -> None:
        """Go on from a snapshot, however small the space is."""
        log = self.store.log
        for number in log.spaces():
            space = Space(log, Namespace(), Settings("english.v1", 0.9, 0.4), self.clock)
            log.put_cache(number, snapshot.NAME, space.read(lambda state, _: snapshot.cached_state(state)))
        self.open(Store.open(log=log, clock=self.clock))

    def move(self) -> None:
        lines = list(self.store.export_lines())
        self.open(Store.open(":memory:", clock=self.clock))
        self.store.import_(lines)
        assert list(self.store.export_lines())[1:] == lines[1:]

    def step(self, kind: str, draw: Any) -> None:
        if kind == "purge":
            self.store.purge()
        elif kind == "open":
            self.open(Store.open(log=self.store.log, clock=self.clock))
        elif kind == "load":
            self.load()
        elif kind == "move":
            self.move()
        elif kind == "tell" or not (seen := sorted(self.made_from.keys() - self.hidden)):
            self.tell()
        else:
            named = draw(st.sets(st.sampled_from(seen), min_size=1, max_size=3))
            act = {"merge": self.merge, "hide": self.hide, "forget": self.forget}
            act.get(kind, lambda named: self.forget(named, include_derived=True))(named)


@given(st.lists(st.sampled_from(STEPS), max_size=25), st.data())
@settings(max_examples=examples(32), deadline=None)
def test_what_was_made_from_a_fact_is_named_whatever_was_forgotten_purged_or_moved_between(steps, data):
    pair = Pair()
    for _ in range(4):
        pair.tell()
    for kind in steps:
        pair.step(kind, data.draw)
    for id_ in pair.made_from:
        told = pair.memory.forget(ids=[id_], dry_run=True).derived
        assert told == tuple(sorted(pair.made_of({id_})))
    assert pair.store.verify().findings == ()
