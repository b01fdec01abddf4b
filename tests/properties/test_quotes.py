"""Quotes of turns go with their turns, and nothing else of a node does: in every state, on every way to it."""

from __future__ import annotations

from random import Random
from typing import Any

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st

from effort import examples
from governed import START, change, corroborate, create_active
from governed_run import NODES, SECRET, Governed, shown
from perdure import Store
from perdure.errors import PerdureError
from perdure.log.records import ChangeSetRecord, FactRecord, NodeRecord, decode, encode
from perdure.model.conversation_forms import turn_uri
from perdure.model.namespace import Namespace
from perdure.model.node import Evidence
from perdure.model.node_change import ChangeSet
from perdure.space import snapshot
from perdure.space.comparing import differences
from perdure.space.folding import fold
from perdure.space.salvaging import mend
from perdure.space.space import Settings, Space

PLAIN, BESIDE = Namespace("alice", "work"), Namespace("alice", "work#conversation")
STEPS = (
    *("quote",) * 4,
    "access",
    "access",
    "tell",
    "forget turn",
    "revise",
    None,
    None,
)  # None: any of them
seeds = st.integers(0, 2**32)


class Quoting:
    """A history in which nodes quote turns, beside states that follow every step. What is quoted may be left out."""

    def __init__(self, *, quotes: bool = True) -> None:
        self.space, self.quotes, self.told = Governed(), quotes, 0
        config = self.space.memory.config
        self._settings = Settings(config.profile, config.k1, config.b)
        self._live = [self._state(name) for name in (PLAIN, BESIDE)]

    def _state(self, name: Namespace) -> Space:
        return Space(self.space.store.log, name, self._settings, self.space.clock)

    def live(self, random: Random, size: int) -> None:
        for _ in range(size):
            kind, seed = random.choice(STEPS), random.randrange(2**32)
            if kind == "quote":
                self.quote(Random(seed))
            else:
                self.space.step(Random(seed), kind)
            for one in self._live:
                one.read(lambda state, _: None)

    def turns(self) -> dict[str, str]:
        """Return the texts of all turns by uri."""
        conversation, found = self.space.conversation, {}
        for entry in conversation.list(limit=100).items:
            for turn in conversation.get(entry.session_id, entry.version).turns:
                found[turn_uri(entry.session_id, entry.version, turn.source_id)] = turn.text
        return found

    def quote(self, random: Random) -> ChangeSet | None:
        """Have a node quote a turn, if there is one; return what was told."""
        turns = self.turns()
        if not turns:
            self.space.step(random, "tell")
            return None
        uri, text = random.choice(sorted(turns.items()))
        self.told += 1
        words = text[: random.randint(1, len(text))].strip()
        quote = words if self.quotes else None
        proof = Evidence(uri, f"digest {self.told}", "manual", START, quote, 0 if quote else None)
        node = random.choice(NODES)
        there = self.space.repository.get(node)
        told = create_active(node, evidence=[proof])
        if there is not None:
            told = corroborate(node, there.revision, proof)
        at = (self.space.clock.now() - START) / 1000
        asked = change(f"quote {self.told}", told, at=at)
        try:
            self.space.repository.apply(asked)
        except PerdureError:
            return None
        return asked

    def compare(self) -> None:
        """Hold the states that went along against those that are built anew, and those against snapshots."""
        for live, name in zip(self._live, (PLAIN, BESIDE), strict=True):
            state = live.read(lambda state, _: state)
            built = self._state(name).read(lambda state, _: state)
            assert differences(state, built) == []
            loaded = snapshot.find_state(snapshot.cached_state(state))
            assert loaded is not None
            assert differences(loaded, built) == []
        assert self.space.store.verify().findings == ()


def quoted(space: Governed) -> set[str]:
    """Return the uris of turns of which some revision, or a fact, holds a quote."""
    found = set()
    for node in NODES:
        if space.repository.get(node) is not None:
            for one in space.repository.revisions(node, limit=100).items:
                found |= {proof.uri for proof in one.evidence if proof.quote is not None}
    found |= {f.source.uri for f in space.memory.list(limit=1_000).items if f.source and f.source.quote}
    return {uri for uri in found if uri.startswith("perdure:")}


def without_quotes(shown_: Any, uris: set[str]) -> Any:
    """Return what was shown of nodes, without the quotes of these turns."""
    return tuple(
        msgspec.structs.replace(
            node,
            evidence=tuple(
                msgspec.structs.replace(one, quote=None, start=None, end=None) if one.uri in uris else one
                for one in node.evidence
            ),
        )
        for node in shown_
    )


@given(seeds)
@settings(max_examples=examples(16), deadline=None)
def test_states_that_went_along_equal_those_built_from_what_was_left(seed):
    random, history = Random(seed), Quoting()
    for _ in range(3):
        history.live(random, 12)
        history.compare()
    assert quoted(history.space) <= history.turns().keys()


@given(seeds)
@settings(max_examples=examples(10), deadline=None)
def test_forgetting_turns_takes_their_quotes_and_leaves_all_else(seed):
    random, history = Random(seed), Quoting()
    history.live(random, 25)
    space = history.space
    nodes = [node for node in NODES if space.repository.get(node) is not None]
    before = {node: space.repository.revisions(node, limit=100).items for node in nodes}
    usage = {node: space.repository.usage(node) for node in nodes}
    facts = [(fact.id, fact.text, fact.status) for fact in space.memory.list(limit=1_000).items]
    token, held = space.repository.change_token(), quoted(space)
    gone = {
        uri
        for session in ("s 1", "s/2")
        for uri in space.conversation.forget(session, source_id="t0").forgotten
    }
    for node in nodes:
        now = space.repository.revisions(node, limit=100).items
        assert now == without_quotes(before[node], gone)
        assert space.repository.usage(node) == usage[node]
    assert [(fact.id, fact.text, fact.status) for fact in space.memory.list(limit=1_000).items] == facts
    assert (space.repository.change_token() != token) == bool(held & gone)
    named = set()
    for change_ in space.repository.changes(token).items:
        assert (change_.kind, change_.forgotten) == ("erased", 0)
        named.update(change_.nodes)
    assert named == {(id_, len(told)) for id_, told in before.items() if without_quotes(told, gone) != told}
    again = Governed(Store.open(log=space.store.log, clock=space.clock))
    assert shown(again, tokens=True) == shown(space, tokens=True)
    history.compare()


@given(seeds)
@settings(max_examples=examples(8), deadline=None)
def test_after_a_purge_a_store_is_as_one_that_never_held_the_quotes(seed):
    stores = []
    for quotes in (True, False):
        history = Quoting(quotes=quotes)
        history.live(Random(seed), 25)
        for session in ("s 1", "s/2"):
            history.space.conversation.forget(session)
        history.space.store.purge()
        history.compare()
        stores.append(history.space)
    assert stores[0].repository.change_token() == stores[1].repository.change_token()
    logs = [[records_of(space, number) for number in space.store.log.spaces()] for space in stores]
    assert logs[0] == logs[1]


def records_of(space: Governed, number: int) -> list[bytes]:
    """Return the records of a space, without what quotes decided: by what change sets are known again, and which
    evidence a fact names as its source, which is one that quotes something where there is such.
    """
    found = []
    for seq, data in space.store.log.read(number, 0, 100_000):
        record = decode(data, space=number, seq=seq)
        if isinstance(record, ChangeSetRecord):
            record = msgspec.structs.replace(record, request=b"")
        elif isinstance(record, FactRecord) and record.id.startswith("perdure:node/"):
            assert record.source is None or record.source.quote is None
            record = msgspec.structs.replace(record, source=None)
        found.append(encode(record))
    return found


@given(seeds)
@settings(max_examples=examples(8), deadline=None)
def test_a_change_set_is_answered_again_without_the_quote(seed):
    random, history = Random(seed), Quoting()
    history.live(random, 8)
    told = [asked for _ in range(6) if (asked := history.quote(random)) is not None]
    answers = [history.space.repository.apply(asked) for asked in told]
    gone = set(history.space.conversation.forget("s 1").forgotten)
    for asked, answer in zip(told, answers, strict=True):
        assert history.space.repository.apply(asked).nodes == without_quotes(answer.nodes, gone)


@given(seeds)
@settings(max_examples=examples(8), deadline=None)
def test_salvage_keeps_revisions_that_were_told_again_in_their_places(seed):
    history = Quoting()
    history.live(Random(seed), 25)
    history.space.conversation.forget("s 1")
    log = history.space.store.log
    for number in log.spaces():
        entries = list(log.read(number, 0, log.head(number).seq))
        mended = mend(number, len(entries), lambda entries=entries: iter(entries))
        assert mended.lost == []
        saved = list(fold(number, lambda m=mended: m.entries(m.first, receipts=True, blocks=True), SECRET))
        assert saved == list(fold(number, lambda entries=entries: iter(entries), SECRET))
        assert not any(record.retold for record in saved if isinstance(record, NodeRecord))
