"""Tokens fit what was previewed, and nothing else."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from perdure import Store
from perdure.mcp.tokens import LIFE_MS, Previewed, erasures_of, fits, make_token
from perdure.model.namespace import Namespace

SECRET = bytes(range(32))
NOW = 1_700_000_000_000
SHOWN = Previewed("forget", (("soft", "True"),), Namespace("ada", "work"), ("a", "b"), (0, 3))
TOKEN = make_token(SECRET, SHOWN, NOW)


def test_a_token_fits_what_it_was_made_for_until_ten_minutes_are_over():
    assert LIFE_MS == 600_000
    assert fits(SECRET, SHOWN, NOW, TOKEN)
    assert fits(SECRET, SHOWN, NOW + LIFE_MS, TOKEN)
    assert not fits(SECRET, SHOWN, NOW + LIFE_MS + 1, TOKEN)


def test_a_token_fits_nothing_that_differs_in_one_thing():
    others = [
        replace(SHOWN, operation="consolidate"),
        replace(SHOWN, options=()),
        replace(SHOWN, namespace=Namespace("ada", "")),
        replace(SHOWN, namespace=Namespace("", "work")),
        replace(SHOWN, ids=("a",)),
        replace(SHOWN, ids=("a", "b", "c")),
        replace(SHOWN, ids=("ab",)),
        replace(SHOWN, erasures=(0, 4)),
        replace(SHOWN, erasures=(1, 3)),
    ]
    assert [fits(SECRET, other, NOW, TOKEN) for other in others] == [False] * len(others)
    assert not fits(bytes(32), SHOWN, NOW, TOKEN)


def test_the_order_of_ids_does_not_matter():
    assert fits(SECRET, replace(SHOWN, ids=("b", "a")), NOW, TOKEN)


def test_a_token_cannot_be_made_to_live_longer():
    expiry, _, mac = TOKEN.partition("-")
    assert not fits(SECRET, SHOWN, NOW, f"{int(expiry, 16) + 1:x}-{mac}")


@given(st.text())
def test_any_other_text_is_no_token(text):
    assert not fits(SECRET, SHOWN, NOW, text)


def test_erasures_of_a_space_grow_when_something_is_forgotten():
    with Store.open(":memory:") as store:
        name = Namespace("ada", "")
        assert erasures_of(store.log, name) == (store.log.epoch(), 0)
        memory = store.memory("ada")
        receipt = memory.remember("tea")
        before = erasures_of(store.log, name)
        memory.forget(ids=[receipt.id])
        assert erasures_of(store.log, name) > before
