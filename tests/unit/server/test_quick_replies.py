"""Replies that are made of what is kept of facts: the bytes of the plain ones, and nothing of what is forgotten."""

from __future__ import annotations

import gc
from collections.abc import Callable
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from perdure import MemoryConfig, Store
from perdure.contract.operations import OPERATIONS
from perdure.dispatch import Caller
from perdure.errors import PerdureError
from perdure.policies import ExponentialRecency

T0 = 1_700_000_000_000
HOUR = 3_600_000
IDS = ("a", "b", "c", "d")
MARKER = "quicksilverkettle"


class Ticking:
    def __init__(self) -> None:
        self.at = T0

    def now(self) -> int:
        self.at += 1
        return self.at


Step = Callable[[Caller], None]


def stepping(op: str, told: dict[str, Any]) -> Step:
    def step(caller: Caller) -> None:
        caller.call(op, told)

    return step


moments = st.one_of(st.none(), st.integers(T0 - 3 * HOUR, T0 + 3 * HOUR))


@st.composite
def told_facts(draw: st.DrawFn) -> dict[str, Any]:
    valid_from = draw(moments)
    valid_to = draw(moments)
    if valid_from is not None and valid_to is not None and valid_to <= valid_from:
        valid_to = None
    return {
        "id": draw(st.sampled_from((*IDS, None, None))),
        "text": "the kettle " + draw(st.sampled_from(["is blue", 'said "é" \\ \u2028', "x" * 1_500])),
        "subject": draw(st.sampled_from([None, "kitchen"])),
        "tags": draw(st.lists(st.sampled_from(["home", "é"]), max_size=2, unique=True)),
        "metadata": draw(st.sampled_from([None, {}, {"n": 1.5, "b": [True, None, "é"]}])),
        "validFrom": valid_from,
        "validTo": valid_to,
        "source": draw(st.sampled_from([None, {"uri": "note:1", "position": 2}])),
    }


def steps() -> st.SearchStrategy[Step]:
    one = st.sampled_from(IDS)
    return st.one_of(
        told_facts().map(lambda told: stepping("remember", told)),
        told_facts().map(lambda told: stepping("remember", told)),
        st.builds(lambda id_: stepping("annotate", {"id": id_, "tags": ["now"], "pinned": True}), one),
        st.builds(lambda id_: stepping("end", {"id": id_, "at": T0 + HOUR}), one),
        st.builds(lambda id_: stepping("retract", {"id": id_}), one),
        st.builds(lambda id_: stepping("recordUse", {"ids": [id_]}), one),
        st.builds(lambda id_: stepping("forget", {"scope": {"kind": "ids", "ids": [id_]}}), one),
        st.builds(
            lambda id_, soft: stepping("forget", {"scope": {"kind": "ids", "ids": [id_]}, "soft": soft}),
            one,
            st.just(True),
        ),
    )


def questions() -> st.SearchStrategy[dict[str, Any]]:
    return st.fixed_dictionaries(
        {"query": st.sampled_from(["kettle", "blue kettle", "said"])},
        optional={
            "k": st.integers(1, 5),
            "history": st.sampled_from(["current", "all", "historical"]),
            "asOf": st.integers(T0 - 4 * HOUR, T0 + 4 * HOUR),
            "knownAt": st.integers(T0, T0 + 20),
            "explain": st.booleans(),
            "minScore": st.just(0.01),
            "tags": st.just(["home"]),
            "maxBytes": st.integers(2, 2_000),
            "spaces": st.just([""]),
        },
    )


EVER = [
    {"query": "kettle", "history": "all", "asOf": T0 + hours * HOUR} for hours in (-2, 0, 2, -2)
]  # under several statuses
CONFIGURATIONS = [
    MemoryConfig(on_id_conflict="replace"),
    MemoryConfig(recency=ExponentialRecency(half_life_ms=HOUR)),
    MemoryConfig(historical_weight=0.5),
]


@settings(max_examples=60, deadline=None)
@given(
    st.lists(steps(), min_size=1, max_size=12),
    st.lists(questions(), min_size=1, max_size=4),
    st.sampled_from(CONFIGURATIONS),
)
def test_a_reply_as_bytes_is_the_reply_encoded(
    history: list[Step], asked: list[dict[str, Any]], config: MemoryConfig
):
    clock = Ticking()
    with Store.open(":memory:", clock=clock) as store:
        caller = Caller(store, config=config)
        for step in history:
            refused(lambda step=step: step(caller))
            for question in (*asked, *EVER):
                clock.at = at = T0 + 100
                plain = refused(lambda told=question: msgspec.json.encode(caller.call("recall", told)))
                for _ in range(2):  # the second from what the first kept
                    clock.at = at
                    found = refused(lambda told=question: caller.encoded(OPERATIONS["recall"], told))
                    assert found == plain


def refused(work: Callable[..., Any]) -> Any:
    """Return what the work returns, or the words in which it is refused."""
    try:
        return work()
    except PerdureError as error:
        return str(error)


def test_documents_of_several_units_are_told_by_the_unit_that_matched():
    text = "\n\n".join(f"part {n} " + "word " * 300 + f"needle{n}" for n in range(12))
    with Store.open(":memory:") as store:
        caller = Caller(store)
        store.documents().put("d", text)
        store.memory().remember("a needle3 of its own")
        for query in ("needle3", "needle9 part"):
            request = {"query": query}
            plain = msgspec.json.encode(caller.call("recall", request))
            assert caller.encoded(OPERATIONS["recall"], request) == plain


@pytest.mark.parametrize("op", ["get", "history", "list", "capabilities", "stats"])
def test_other_replies_as_bytes_are_theirs_encoded(op: str):
    requests: dict[str, dict[str, Any]] = {"get": {"id": "a"}, "history": {"id": "a"}}
    with Store.open(":memory:") as store:
        caller = Caller(store)
        caller.call("remember", {"id": "a", "text": "the kettle is blue"})
        request = requests.get(op, {})
        assert caller.encoded(OPERATIONS[op], request) == msgspec.json.encode(caller.call(op, request))


def held(root: object, needle: str) -> bool:
    """Whether any text or bytes that can be reached from an object holds the needle."""
    seen: set[int] = set()
    waiting: list[object] = [root]
    while waiting:
        one = waiting.pop()
        if id(one) in seen or isinstance(one, type | type(gc)) or callable(one):
            continue
        seen.add(id(one))
        if (isinstance(one, bytes) and needle.encode() in one) or (isinstance(one, str) and needle in one):
            return True
        waiting += gc.get_referents(one)
    return False


@pytest.mark.parametrize("purge", [False, True])
def test_nothing_that_is_kept_of_a_fact_outlives_its_being_forgotten(tmp_path: Any, purge: bool):
    with Store.open(tmp_path / "s") as store:
        caller = Caller(store)
        caller.call("remember", {"id": "a", "text": f"the {MARKER} is blue"})
        caller.call("remember", {"id": "b", "text": "the kettle is red"})
        for _ in range(2):
            assert MARKER.encode() in caller.encoded(OPERATIONS["recall"], {"query": MARKER})
        assert held(store, MARKER)
        caller.call("forget", {"scope": {"kind": "ids", "ids": ["a"]}, "purge": purge})
        assert not held(store, MARKER)
