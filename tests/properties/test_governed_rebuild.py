"""The log is the truth of nodes and conversations too: what is rebuilt from it, or loaded, is what was written."""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from effort import examples
from governed import BACKENDS, START, change, create_active, evidence, opened, revise
from governed_run import SECRET, Governed, shown
from perdure import ManualClock, MemoryConfig, Store
from perdure.base.acting import acting
from perdure.model.conversation import ConversationInput, ConversationTurn
from perdure.model.namespace import Namespace
from perdure.model.node import AccessEvent
from perdure.space import snapshot
from perdure.space.comparing import differences
from perdure.space.space import Settings, Space
from perdure.space.state import SpaceState

USUAL = MemoryConfig()
SETTINGS = Settings(USUAL.profile, USUAL.k1, USUAL.b)
seeds = st.integers(0, 2**32)


def state_of(store: Store, name: Namespace) -> SpaceState:
    """The state of a space, built from its records alone."""
    return Space(store.log, name, SETTINGS, store.clock).read(lambda state, _: state)


class Watched:
    """A history and states of its spaces that follow every step of it."""

    def __init__(self) -> None:
        self.space = Governed()
        log, clock = self.space.store.log, self.space.clock
        names = (Namespace("alice", "work"), Namespace("alice", "work#conversation"))
        self._spaces = [Space(log, name, SETTINGS, clock) for name in names]

    def live(self, random: Random, size: int) -> None:
        for _ in range(size):
            self.space.step(random)
            self.states()

    def states(self) -> list[tuple[Namespace, SpaceState]]:
        found = [(space.namespace, space.read(lambda state, _: state)) for space in self._spaces]
        return [(name, state) for name, state in found if state.number]  # those that hold anything


@given(seeds)
@settings(max_examples=examples(16), deadline=None)
def test_a_state_built_from_the_log_equals_the_one_that_was_written_on(seed):
    random = Random(seed)
    watched = Watched()
    for _ in range(4):
        with acting(random.choice(("ann", "bob"))):
            watched.live(random, 12)
        for name, live in watched.states():
            assert differences(live, state_of(watched.space.store, name)) == []


@given(seeds)
@settings(max_examples=examples(10), deadline=None)
def test_a_state_from_a_snapshot_equals_the_one_that_it_was_taken_of(seed):
    watched = Watched()
    watched.live(Random(seed), 40)
    for _, live in watched.states():
        loaded = snapshot.find_state(snapshot.cached_state(live))
        assert loaded is not None
        assert differences(loaded, live) == []


@given(seeds)
@settings(max_examples=examples(10), deadline=None)
def test_reads_and_writes_go_on_alike_on_a_state_that_was_built_anew(seed):
    space = Governed().live(Random(seed), 30)
    again = Governed(Store.open(log=space.store.log, clock=space.clock))
    again.told, again.proofs = space.told, space.proofs
    assert shown(again, tokens=True) == shown(space, tokens=True)
    again.live(Random(seed + 1), 15)
    assert shown(again, tokens=True) == shown(space, tokens=True)


@given(seeds)
@settings(max_examples=examples(10), deadline=None)
def test_a_purge_changes_nothing_that_is_shown_and_begins_the_sequence_of_changes_anew(seed):
    space = Governed().live(Random(seed), 40)
    before = shown(space)
    space.store.purge()
    assert shown(space) == before
    assert space.store.verify().findings == ()
    assert space.repository.change_token().sequence == 0
    space.store.purge()
    assert shown(space) == before


@pytest.mark.parametrize("backend", [backend for backend in BACKENDS if backend != "memory"])
@pytest.mark.parametrize("seed", range(3))
def test_a_store_in_files_shows_after_an_opening_what_one_in_memory_does(backend, seed, tmp_path):
    memory = Governed().live(Random(seed), 60)
    with opened(tmp_path, backend, secret=SECRET) as store:
        assert shown(Governed(store).live(Random(seed), 60), tokens=True) == shown(memory, tokens=True)
    with opened(tmp_path, backend, ManualClock(memory.clock.now()), secret=SECRET) as store:
        assert shown(Governed(store), tokens=True) == shown(memory, tokens=True)
        store.purge()
        memory.store.purge()
        assert shown(Governed(store), tokens=True) == shown(memory, tokens=True)


@given(seeds)
@settings(max_examples=examples(8), deadline=None)
def test_a_forgotten_node_or_turn_leaves_the_purged_store_as_one_that_never_held_it(seed):
    random = Random(seed)
    kinds = ("create", "activate", "revise", "relabel", "access", "tell", "advance", "conflict")
    plain = Governed().live(random, 0)
    with_secrets = Governed()
    script = [(random.choice(kinds), random.randrange(2**32)) for _ in range(30)]
    place = random.randrange(30)
    for at, (kind, one) in enumerate(script):
        if at == place:
            hold_secrets(with_secrets)
        for space in (plain, with_secrets):
            space.step(Random(one), kind)
    with_secrets.repository.forget(["secret"])
    with_secrets.conversation.forget("secret")
    for space in (plain, with_secrets):
        space.store.purge()
    assert shown(with_secrets, tokens=True) == shown(plain, tokens=True)
    logs = [
        [list(space.store.log.read(number, 0, 10_000)) for number in space.store.log.spaces()]
        for space in (plain, with_secrets)
    ]
    assert logs[0] == logs[1]


def hold_secrets(space: Governed) -> None:
    at = (space.clock.now() - START) / 1000
    proof = [evidence("secret", at=0)]
    told = create_active("secret", "alpha quokka", labels={"team": "x"}, subject="topic", evidence=proof)
    space.repository.apply(change("secret", told, at=at))
    again = revise("secret", 1, "beta quokka", evidence=[evidence("secret 2", at=0)])
    space.repository.apply(change("secret 2", again, at=at))
    space.repository.record_use(AccessEvent("secret", "secret", 2, space.clock.now()))
    turn = ConversationTurn(source_id="t", role="user", text="gamma quokka", observation_time=1)
    space.conversation.remember(ConversationInput(session_id="secret", version="v", turns=(turn,)))
