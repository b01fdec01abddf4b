"""Whatever is told, ended, annotated and forgotten: verify finds nothing, and salvage loses nothing."""

from __future__ import annotations

from array import array
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyroaring import BitMap

from effort import examples
from perdure import ManualClock, Store, salvage
from perdure.log.memory import MemoryLog
from perdure.log.records import EndRecord, decode
from perdure.space.apply import apply_all
from perdure.space.comparing import differences
from perdure.space.preparing import prepare
from perdure.space.snapshot import cached_state, find_state
from perdure.space.state import SpaceState, new_state
from perdure.space.verifying import verify_log
from properties.memory_run import CONFIGS, SECRET, Space, everything, random_script
from properties.strategies import NOW, scripts

choices = st.sampled_from(CONFIGS)


def built(log: MemoryLog, upto: int | None = None) -> SpaceState:
    """Return the state that the records of space 1 add up to."""
    records = [
        (entry.seq, decode(entry.data))
        for entry in log.read(1, 0, upto or log.head(1).seq)
        if entry.data is not None
    ]
    state = new_state(records[0][1])  # type: ignore[arg-type]
    apply_all(state, [prepare(seq, record, state.profile, SECRET) for seq, record in records[1:]], SECRET)
    state.head = log.head(1)
    return state


@given(choices, scripts(), st.randoms(use_true_random=False))
@settings(max_examples=examples(16), deadline=None)
def test_a_store_that_only_perdure_wrote_has_no_findings_at_any_moment(config, script, random):
    space = Space(config)
    for call in script:
        space.run(call)
        if random.choice((True, False, False)) and space.store.log.spaces():
            state = built(space.store.log)
            if not state.gone:
                space.store.log.put_cache(1, "state", cached_state(state))
            assert verify_log(space.store.log).findings == ()
    space.store.purge()
    assert verify_log(space.store.log).findings == ()


@given(choices, scripts(max_size=10))
@settings(max_examples=10, deadline=None)
def test_a_whole_store_is_salvaged_whole(config, script):
    with TemporaryDirectory() as folder:
        path, out, clock = Path(folder) / "store", Path(folder) / "out", ManualClock(NOW)
        space = Space(config)
        space.clock, space.store = clock, Store.open(path, clock=clock, durability="normal", secret=SECRET)
        space.memory = space.store.memory(config=config)
        space.run_all(script)
        before = everything(space.memory)
        space.store.close()
        saved = salvage(path, out, secret=SECRET)
        assert saved.lost == ()
        with Store.open(out, clock=clock, secret=SECRET) as store:
            # The change feed of forgotten facts goes with them, as at a purge.
            assert everything(store.memory(config=config))[1:] == before[1:]


def _set(name: str, value: Any) -> Callable[[SpaceState], None]:
    return lambda state: setattr(state, name, value)


CHANGES: dict[str, Callable[[SpaceState], Any]] = {
    "valid_from": lambda state: state.valid_from.__setitem__(0, 5),
    "superseded_from": lambda state: state.superseded_from.__setitem__(0, 5),
    "seqs": lambda state: state.seqs.__setitem__(0, 1),
    "presence": lambda state: state.presence.append(1),
    "newest_ingest": _set("newest_ingest", 1),
    "hidden": lambda state: state.hidden.symmetric_difference_update(BitMap([0])),
    "subjects": lambda state: state.subjects.__setitem__("another", array("i", [0])),
    "ends": lambda state: state.ends.__setitem__(0, [EndRecord(0, 1, 1, None)]),
    "uses": lambda state: state.uses.__setitem__(0, (7, 7)),
    "blocked": lambda state: state.blocked.add(b"x" * 16),
    "index": lambda state: state.index.hide(next(n for n, p in enumerate(state.presence) if p == 1)),
    "ids": lambda state: state.ids.add(5, next(n for n, p in enumerate(state.presence) if p)),
    "told links": lambda state: state.links.told.add((1, 0)),
    "labels": lambda state: state.labels.put(0, ["another"]),
}


@pytest.mark.parametrize("name", CHANGES)
def test_a_state_that_differs_in_one_thing_is_told_apart_by_it(name):
    space = Space(CONFIGS[0])
    space.run_all(random_script(3, 30))
    log = space.store.log
    kept = find_state(cached_state(built(log)))
    assert kept is not None
    assert differences(kept, built(log)) == []
    CHANGES[name](kept)
    assert name in differences(kept, built(log))
