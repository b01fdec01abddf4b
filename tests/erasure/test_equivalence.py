"""A store that has forgotten is one that never knew: in every answer at once, in every byte after a purge."""

from __future__ import annotations

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from erasure.pairs import History, Pair, a_history
from properties.strategies import Drawn


@st.composite
def histories(draw: Any) -> History:
    return a_history(Drawn(draw))


@given(histories())
@settings(max_examples=60, deadline=None)
def test_every_answer_is_that_of_a_store_that_never_held_what_was_forgotten(history):
    pair = Pair(":memory:", ":memory:", history)
    assert pair.differences(purged=False) == []
    pair.close()
