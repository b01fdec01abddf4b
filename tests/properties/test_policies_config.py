"""Laws of the configuration: its JSON form loses nothing, is canonical, and refuses the rest."""

from __future__ import annotations

import contextlib
import json
import string

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from perdure.embedders.hashing import HashingEmbedder
from perdure.embedders.static import StaticEmbedder
from perdure.errors import InvalidRequest
from perdure.memory.config import Limits, MemoryConfig
from perdure.policies import (
    ExpiredFor,
    ExplicitOnly,
    ExponentialRecency,
    KeepAll,
    LatestBySubject,
    MaxFacts,
    NoRecency,
    Relevance,
    ScoreOrder,
    SupersededFor,
)

whole = st.integers(1, 2**53 - 1)
configs = st.builds(
    MemoryConfig,
    default_k=st.integers(1, 1000),
    default_history=st.sampled_from(["current", "all", "historical"]),
    supersession=st.sampled_from(["explicit", "latest-by-subject", ExplicitOnly(), LatestBySubject()]),
    recency=st.sampled_from(["none", NoRecency()])
    | st.builds(ExponentialRecency, whole, st.sampled_from(["event", "ingest"]), st.floats(0, 1)),
    historical_weight=st.floats(0, 1e300) | st.integers(0, 10),
    forgetting=st.sampled_from(["keep-all", KeepAll()])
    | st.builds(ExpiredFor, whole)
    | st.builds(SupersededFor, whole)
    | st.builds(MaxFacts, whole),
    on_id_conflict=st.sampled_from(["reject", "replace"]),
    ranking=st.sampled_from(["score", ScoreOrder()])
    | st.builds(
        Relevance,
        importance_weight=st.floats(0, 1e6),
        recency_weight=st.floats(1e-9, 1e6),
        decay_days=st.floats(1e-9, 1e9),
    ),
    k1=st.floats(0, 1000),
    b=st.floats(0, 1),
    limits=st.builds(Limits, work=whole, frontier=whole, bytes=whole),
    receipt_days=st.integers(1, 36_500),
    embedder=st.sampled_from(["none", "static", StaticEmbedder()])
    | st.builds(HashingEmbedder, st.integers(8, 4_096)),
)


@given(configs)
def test_a_configuration_survives_its_json_form(config):
    data = config.to_json()
    assert MemoryConfig.from_json(data) == config
    assert MemoryConfig.from_json(data.decode()) == config
    assert MemoryConfig.from_json(json.loads(data)) == config


@given(configs)
def test_the_json_form_is_canonical(config):
    data = config.to_json()
    assert MemoryConfig.from_json(data).to_json() == data
    shuffled = dict(reversed(list(json.loads(data).items())))
    assert MemoryConfig.from_json(json.dumps(shuffled, indent=2)).to_json() == data


@given(configs, st.text(string.ascii_letters, max_size=12), st.none() | st.booleans() | st.integers())
def test_a_field_that_is_none_of_ours_is_always_refused(config, name, value):
    plain = json.loads(config.to_json())
    assume(name not in plain)
    with pytest.raises(InvalidRequest) as caught:
        MemoryConfig.from_json(plain | {name: value})
    assert caught.value.field == name


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)


@given(st.dictionaries(st.sampled_from(sorted(json.loads(MemoryConfig().to_json()))), json_values))
def test_whatever_stands_in_a_field_it_is_taken_or_refused_as_an_invalid_request(told):
    with contextlib.suppress(InvalidRequest):
        assert MemoryConfig.from_json(told) == MemoryConfig.from_json(json.dumps(told))


@given(st.binary(max_size=40) | st.text(max_size=40))
def test_whatever_the_bytes_are_they_are_taken_or_refused_as_an_invalid_request(data):
    with contextlib.suppress(InvalidRequest):
        assert isinstance(MemoryConfig.from_json(data), MemoryConfig)
