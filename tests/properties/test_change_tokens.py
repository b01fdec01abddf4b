"""Change tokens are one for all who read a store: who saw a purge or an erasure, and who opened it afterwards."""

from __future__ import annotations

from contextlib import nullcontext
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from effort import examples
from governed import change, create_active, opened
from governed_run import NODES, SECRET, Governed
from perdure import MemoryConfig, Store
from perdure.model.namespace import Namespace
from perdure.model.node_change import ChangeToken, NodeChanges
from perdure.repository.feed import Feed
from perdure.space import snapshot
from perdure.space.space import Settings, Space

FILES = ("sqlite", "journal")
NAME = Namespace("alice", "work")
seeds = st.integers(0, 2**32)
Shown = tuple[ChangeToken, NodeChanges]


def feed_of(space: Space) -> Shown:
    return space.read(lambda state, reader: _shown(Feed(state, reader, space.log.secret)))


def since_of(space: Space, token: ChangeToken) -> NodeChanges:
    return space.read(lambda state, reader: Feed(state, reader, space.log.secret).since(token, 1_000))


def loaded_feed_of(space: Space) -> Shown:
    """What is shown by the state that a snapshot gives back."""

    def shown(state, reader):
        loaded = snapshot.find_state(snapshot.cached_state(state))
        assert loaded is not None
        return _shown(Feed(loaded, reader, space.log.secret))

    return space.read(shown)


def _shown(feed: Feed) -> Shown:
    return feed.token(), feed.since(None, 1_000)


def anew(store: Store) -> Space:
    """The space as one who has just come reads it, from its records alone."""
    usual = MemoryConfig()
    return Space(store.log, NAME, Settings(usual.profile, usual.k1, usual.b), store.clock)


def second(path, backend: str, store: Store):
    """A handle of another process on the store; a journal has one alone."""
    if backend == "sqlite":
        return opened(path, backend, store.clock, secret=SECRET)
    return nullcontext(store)


def told(store: Store) -> Shown:
    repository = store.repository(NAME.principal, NAME.scope)
    return repository.change_token(), repository.changes(limit=1_000)


def live_and_purge(space: Governed, random: Random, size: int) -> None:
    space.live(random, size)
    happening = random.choice(("purge", "forget", "both", "purge of one", "all"))
    if happening in ("purge", "both"):
        space.store.purge()
    if happening in ("forget", "both"):
        space.repository.forget([random.choice(NODES)])
    if happening == "purge of one":
        space.repository.forget([random.choice(NODES)], purge=True)
    if happening == "all":
        space.repository.forget(NODES)


@given(seeds)
@settings(max_examples=examples(16), deadline=None)
def test_whoever_reads_a_store_after_any_history_is_given_the_same_token_and_feed(seed):
    random = Random(seed)
    space = Governed()
    for _ in range(5):
        live_and_purge(space, random, 12)
        seen = told(space.store)
        fresh = anew(space.store)
        assert feed_of(fresh) == loaded_feed_of(fresh) == seen
        space.live(random, 4)
        since = space.repository.changes(seen[0], limit=1_000)
        assert since_of(anew(space.store), seen[0]) == since


@pytest.mark.parametrize("backend", FILES)
@pytest.mark.parametrize("seed", range(4))
def test_a_second_handle_and_a_later_opening_are_given_the_token_of_the_first(backend, seed, tmp_path):
    random = Random(seed)
    for _ in range(3):
        with opened(tmp_path, backend, secret=SECRET) as store:
            space = Governed(store)
            with second(tmp_path, backend, store) as other:
                for _ in range(3):
                    live_and_purge(space, random, 8)
                    assert told(other) == told(store)
            seen = told(store)
        with opened(tmp_path, backend, space.clock, secret=SECRET) as store:
            assert told(store) == seen
            assert store.repository(NAME.principal, NAME.scope).changes(seen[0]) == NodeChanges(
                (), False, seen[0]
            )


@pytest.mark.parametrize("backend", FILES)
def test_a_node_that_a_purge_kept_and_that_is_forgotten_later_leaves_the_history_its_name(backend, tmp_path):
    with opened(tmp_path, backend) as store:
        repository = store.repository(NAME.principal, NAME.scope)
        repository.apply(change("k", create_active("a"), create_active("b")))
        store.purge()
        before = repository.change_token()
        repository.forget(["a"])
        after = repository.change_token()
    with opened(tmp_path, backend) as store:
        repository = store.repository(NAME.principal, NAME.scope)
        assert repository.change_token() == after
        assert [step.forgotten for step in repository.changes(before).items] == [1]
        assert repository.change_token().history_id == before.history_id
