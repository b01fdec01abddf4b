"""Any bit of any file may flip: answers stay right or there is an error, and what is salvaged is true."""

from __future__ import annotations

import os
from itertools import islice

import pytest

from crash.damage import FORGOTTEN, KEY, answers, build_kept, copy_of, flips, hashes
from perdure import PerdureError, Unavailable, WrongKey, salvage, verify

# PERDURE_FLIPS=5000 pytest -m soak tests/crash/test_bit_flips.py goes on for longer.
FLIPS = int(os.environ.get("PERDURE_FLIPS", "600"))
SALVAGED_EVERY = 3


@pytest.fixture(scope="module", params=[None, KEY], ids=["plain", "encrypted"])
def store(request, tmp_path_factory):
    directory = tmp_path_factory.mktemp("flips") / "store"
    build_kept(directory, key=request.param)
    return directory, request.param, answers(directory, key=request.param)


def flip_and_read(store, tmp_path, count, seed):
    """Flip one bit at a time; return how many flips were noticed."""
    directory, key, truth = store
    noticed, flipped = 0, set()
    for trial, flip in enumerate(islice(flips(directory, seed), count)):
        damaged = copy_of(directory, tmp_path / "damaged")
        flip.make(damaged)
        flipped.add(flip.file.split("-")[0])
        try:
            told = answers(damaged, key=key)
        except PerdureError:
            told = None
        if told is not None:
            assert told == truth, flip
            continue
        noticed += 1
        flip.make(copy_of(directory, damaged))
        check_damaged(damaged, key, flip)
        if trial % SALVAGED_EVERY == 0:
            check_salvaged(damaged, tmp_path / f"out-{trial}", key, truth, flip)
    assert flipped >= {"gen", "cache", "store.lock"}
    return noticed


def check_damaged(damaged, key, flip):
    before = hashes(damaged)
    try:
        found = verify(damaged, key=key)
    except (WrongKey, Unavailable):  # what would open the store, or its format, is what was damaged
        pass
    else:
        assert found.findings, flip
    assert hashes(damaged) == before, flip


def check_salvaged(damaged, out, key, truth, flip):
    before = hashes(damaged)
    try:
        saved = salvage(damaged, out, key=key)
    except PerdureError:
        assert key is not None, flip  # whose pages show nothing but under SQLite's own header
        assert not out.exists()
        return
    finally:
        assert hashes(damaged) == before, flip
    told = answers(out, key=key)
    for name, space in told.items():
        known = truth.get(name) or next(
            all_ for all_ in truth.values() if set(space["facts"]) <= set(all_["facts"])
        )
        for id_, fact in space["facts"].items():
            assert id_ not in FORGOTTEN
            assert fact.text == known["facts"][id_].text, flip
            if not saved.lost:
                assert fact.status == known["facts"][id_].status, flip
    if not saved.lost and not saved.notes:
        assert {name: space["facts"].keys() for name, space in told.items()} == {
            name: space["facts"].keys() for name, space in truth.items()
        }, flip


def test_no_flipped_bit_changes_an_answer_in_silence(store, tmp_path):
    assert flip_and_read(store, tmp_path, 20, seed=1) > 5


@pytest.mark.soak
def test_no_flipped_bit_of_many_changes_an_answer_in_silence(store, tmp_path):
    noticed = flip_and_read(store, tmp_path, FLIPS, seed=2)
    assert noticed > FLIPS // 10
    print(f"{FLIPS} flips: {noticed} noticed, 0 silently wrong")  # noqa: T201 - the figure that is asked for
