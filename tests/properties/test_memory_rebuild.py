"""The log is the truth: a state rebuilt from it, or from a snapshot, answers as the one that was written."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from effort import examples
from perdure import Forgotten, ManualClock, MemoryConfig, PerdureError, Store
from perdure.model.namespace import Namespace
from perdure.policies import Relevance
from perdure.space import snapshot
from perdure.space.space import Settings
from perdure.space.space import Space as FactSpace
from properties.memory_run import CONFIGS, SECRET, Space, everything, random_script, shown, statuses
from properties.strategies import NOW, Call, scripts

CHOICES = [*CONFIGS, MemoryConfig(supersession="latest-by-subject", ranking=Relevance())]
choices = st.sampled_from(CHOICES)


def answers(space: Space, config: MemoryConfig) -> list[Any]:
    read = everything(space.memory)
    documents = space.store.documents(config=config)
    read.append(documents.list(limit=1_000).items)
    read.append(documents.search("alpha gamma", k=1_000))
    return read


class OnDisk(Space):
    """A store in files, which can be closed and opened again at any time."""

    def __init__(self, folder: str, config: MemoryConfig) -> None:
        self.config, self.path, self.clock = config, Path(folder) / "store", ManualClock(NOW)
        self.open()

    def open(self) -> None:
        self.store = Store.open(self.path, clock=self.clock, durability="normal")
        self.memory = self.store.memory(config=self.config)

    def reopen(self) -> None:
        self.store.close()
        self.open()


class Budgeted(Space):
    """A store that may hold next to no state, so that the spaces of one store push each other out."""

    def __init__(self, config: MemoryConfig) -> None:
        self.clock = ManualClock(NOW)
        self.store = Store.open(":memory:", clock=self.clock, secret=SECRET, memory_bytes=1)
        self.memory = self.store.memory(config=config)


@given(choices, scripts(), st.randoms(use_true_random=False))
@settings(max_examples=examples(16), deadline=None)
def test_a_state_rebuilt_from_the_log_gives_the_same_answers_bit_for_bit(config, script, random):
    compare_rebuilt(config, script, random)


def compare_rebuilt(config: MemoryConfig, script: list[Call], random: Random) -> None:
    space = Space(config)
    for call in script:
        space.run(call)
        if random.choice((True, False, False, False)):
            fresh = Space(config)
            fresh.clock = space.clock
            fresh.store = Store.open(log=space.store.log, clock=fresh.clock)
            fresh.memory = fresh.store.memory(config=config)
            assert answers(fresh, config) == answers(space, config)


def test_states_rebuilt_at_random_points_of_long_histories_give_the_same_answers():
    for seed in range(examples(8)):
        random = Random(seed)
        compare_rebuilt(random.choice(CHOICES), random_script(seed, 40), random)


@given(choices, scripts(max_size=40))
@settings(max_examples=examples(16), deadline=None)
def test_writing_on_a_rebuilt_state_does_what_writing_on_the_first_one_does(config, script):
    kept, rebuilt = Space(config), Space(config)
    for call in script:
        assert plain(rebuilt.run(call)) == plain(kept.run(call))
        clock, log = rebuilt.clock, rebuilt.store.log
        rebuilt.store = Store.open(log=log, clock=clock)
        rebuilt.memory = rebuilt.store.memory(config=config)
    assert answers(rebuilt, config) == answers(kept, config)


def plain(reply: Any) -> Any:
    """The reply without what depends on the store's own secret."""
    if isinstance(reply, Forgotten) and reply.certificate is not None:
        certificate = reply.certificate
        return msgspec.structs.replace(reply, certificate=None), certificate.facts, certificate.records
    return shown(reply) if hasattr(reply, "superseded_by") and hasattr(reply, "text") else reply


def keep_snapshot(space: Space) -> None:
    """Keep a snapshot of the state beside the log, however small the space is."""
    log = space.store.log
    for number in log.spaces():
        config = MemoryConfig()
        settings = Settings(config.profile, config.k1, config.b)
        probe = FactSpace(log, Namespace(), settings, space.clock)
        cached = probe.read(lambda state, _: snapshot.cached_state(state))
        assert snapshot.find_state(cached) is not None
        log.put_cache(number, snapshot.NAME, cached)
        assert log.get_cache(number, snapshot.NAME) is not None


def test_writing_on_a_state_from_a_snapshot_does_what_writing_on_the_first_one_does():
    for seed in range(examples(16)):
        random = Random(seed)
        config = random.choice(CHOICES)
        kept, loaded = Space(config), Space(config)
        for call in random_script(seed, 25):
            assert plain(loaded.run(call)) == plain(kept.run(call))
            if random.choice((True, False)):
                keep_snapshot(loaded)
                loaded.store = Store.open(log=loaded.store.log, clock=loaded.clock)
                loaded.memory = loaded.store.memory(config=config)
                assert statuses(loaded.memory, known_at=101) == statuses(kept.memory, known_at=101)
        assert answers(loaded, config) == answers(kept, config)


@pytest.mark.parametrize("seed", range(examples(5)))
def test_a_store_in_files_answers_after_every_opening_as_the_one_in_memory(seed):
    random = Random(seed)
    config = random.choice(CHOICES)
    with TemporaryDirectory() as folder:
        files, memory = OnDisk(folder, config), Space(config)
        try:
            for call in random_script(seed, 40):
                assert plain(files.run(call)) == plain(memory.run(call))
                if random.choice((True, False, False, False)):
                    held = answers(files, config)
                    files.reopen()
                    assert answers(files, config) == held
            compare_stores(files, memory)
        finally:
            files.store.close()


def compare_stores(files: Space, memory: Space) -> None:
    """Equal but for cursors and feeds, which are bound to a store's own secret."""
    assert everything(files.memory) == everything(memory.memory)


@pytest.mark.soak
def test_hundreds_of_stores_in_files_answer_as_those_in_memory():
    for seed in range(100, 500):
        test_a_store_in_files_answers_after_every_opening_as_the_one_in_memory(seed)


@given(st.integers(0, 2**32), choices)
@settings(max_examples=examples(4), deadline=None)
def test_a_second_handle_on_the_same_files_sees_every_write_of_the_first(seed, config):
    with TemporaryDirectory() as folder:
        first = OnDisk(folder, config)
        second = OnDisk(folder, config)
        try:
            for place, call in enumerate(random_script(seed, 20)):
                (first, second)[place % 2].run(call)
                clocks = max(first.clock.now(), second.clock.now())
                for space in (first, second):
                    space.clock.set(clocks)
                assert everything(first.memory) == everything(second.memory)
        finally:
            first.store.close()
            second.store.close()


# Spaces


@given(scripts(), scripts())
@settings(max_examples=examples(10), deadline=None)
def test_spaces_of_one_store_know_nothing_of_each_other(one, other):
    alone, shared = Space(CONFIGS[3]), Budgeted(CONFIGS[3])
    beside = shared.store.memory("someone", "else", config=CONFIGS[3])
    for place in range(max(len(one), len(other))):
        for call in one[place : place + 1]:
            alone.run(call)
            shared.run(call)
        for name, told in other[place : place + 1]:
            if name != "advance":
                try_call(beside, (name, told))
    assert everything(shared.memory) == everything(alone.memory)


def try_call(memory: Any, call: Call) -> None:
    try:
        getattr(memory, call[0])(**call[1])
    except PerdureError:
        return


# Determinism


@given(choices, scripts())
@settings(max_examples=examples(16), deadline=None)
def test_one_script_one_clock_and_one_secret_give_equal_replies(config, script):
    one, other = Space(config), Space(config)
    assert list(map(plain, one.run_all(script))) == list(map(plain, other.run_all(script)))
    assert answers(one, config) == answers(other, config)
    assert one.memory.list(limit=1).cursor == other.memory.list(limit=1).cursor
    assert one.memory.changes().cursor == other.memory.changes().cursor


PRINT_DIGEST = """
import hashlib, sys
sys.path[:0] = sys.argv[1:3]
from properties.memory_run import CONFIGS, Space, everything, random_script
digest = hashlib.sha256()
for seed in range(6):
    space = Space(CONFIGS[seed % 4])
    replies = space.run_all(random_script(seed, 40))
    # Explanations and facts show no text of themselves, so their fields are written out.
    digest.update(repr(list(map(msgspec.to_builtins, (replies, everything(space.memory))))).encode())
print(digest.hexdigest())
"""


def test_two_processes_that_hash_differently_give_equal_replies():
    folders = [str(Path(__file__).parents[1]), str(Path(__file__).parents[2])]
    digests = {
        subprocess.run(
            [sys.executable, "-c", f"import msgspec{PRINT_DIGEST}", *folders],
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("1", "2")
    }
    assert len(digests) == 1
