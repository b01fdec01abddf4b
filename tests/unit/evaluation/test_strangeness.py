"""Whatever a scenario says, the answer is a run or an error of Perdure's that names the place."""

from __future__ import annotations

import inspect
import json

from hypothesis import given, settings
from hypothesis import strategies as st

from perdure import Memory
from perdure.errors import InvalidRequest, PerdureError
from perdure.evaluation import read_scenario, run
from perdure.evaluation.reading import CASE_FIELDS, OPERATIONS

names = sorted(
    {name for operation in OPERATIONS for name in inspect.signature(getattr(Memory, operation)).parameters}
)
scalars = (
    st.none()
    | st.booleans()
    | st.integers(-5, 5)
    | st.floats(allow_nan=False)
    | st.sampled_from(["", "a", "2024-01-01"])
)
values = st.recursive(
    scalars,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["a", "id", "$eq", "text"]), inner, max_size=2)
    ),
    max_leaves=5,
)
options = st.dictionaries(
    st.sampled_from(["k", "asOf", "filter", "tags", "history", "minScore", "kind"]), values, max_size=3
)
arguments = st.dictionaries(st.sampled_from(names), values, max_size=3).map(lambda told: {"id": "a", **told})
cases = st.fixed_dictionaries(
    {"query": st.just("lamp") | values},
    optional={
        "options": options | values,
        **dict.fromkeys(CASE_FIELDS[1:3], values),
        "expect": st.just(["a"]) | values,
    },
)
steps = st.sampled_from(OPERATIONS).flatmap(lambda name: (arguments | values).map(lambda told: {name: told}))
entries = cases | steps | values | st.fixed_dictionaries({"clock": values})
LAMP = {"remember": {"id": "a", "text": "a lamp"}}


def lines(*told):
    return b"".join(json.dumps(entry).encode() + b"\n" for entry in told)


def refusal(kind, call, *arguments):
    """Return the message of the error of that kind, or None where the call succeeds."""
    try:
        call(*arguments)
    except kind as error:
        return str(error)
    return None


@given(st.binary(max_size=60))
def test_bytes_that_are_no_scenario_are_refused_and_nothing_else_happens(data):
    said = refusal(InvalidRequest, read_scenario, data, "trial.jsonl")
    assert said is None or said.startswith("trial.jsonl")


@settings(max_examples=300)
@given(st.lists(entries, min_size=1, max_size=3))
def test_entries_of_any_kind_run_or_are_refused_with_their_place(told):
    said = refusal(PerdureError, lambda: run([read_scenario(lines(LAMP, *told), "trial.jsonl")]))
    assert said is None or said.startswith("trial.jsonl, line ")
