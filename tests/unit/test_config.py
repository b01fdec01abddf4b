"""MemoryConfig: defaults, checks, and its strict JSON form."""

from __future__ import annotations

import copy
import inspect
import json
import math
import pickle
from dataclasses import FrozenInstanceError, fields

import pytest

from perdure.embedders.hashing import HashingEmbedder
from perdure.embedders.http import HttpEmbedder
from perdure.embedders.onnx import OnnxEmbedder
from perdure.embedders.static import StaticEmbedder
from perdure.errors import InvalidRequest, Unavailable
from perdure.lexical.languages import PROFILES
from perdure.lexical.profile import get_profile
from perdure.memory.config import Limits, MemoryConfig
from perdure.policies import (
    ExpiredFor,
    ExplicitOnly,
    ExponentialRecency,
    KeepAll,
    LatestBySubject,
    MaxFacts,
    NoConsolidation,
    NoRecency,
    Prune,
    Relevance,
    ScoreOrder,
    StandardAdmission,
    SupersededFor,
    SupersessionDecision,
)


class EverythingSupersedes:
    def decide(self, arrival, slot):
        return SupersessionDecision(supersedes=tuple(slot.facts()))


class HalfWeight:
    is_identity = False
    basis = "ingest"

    def factor(self, context):
        return 0.5


class Ones:
    model, query_task = "ones", None

    def __init__(self, dimension=3):
        self.dimension = dimension

    def embed_documents(self, texts):
        return [[1.0] * self.dimension for _ in texts]

    def embed_query(self, text):
        return [1.0] * self.dimension


class Listener:
    def remembered(self, fact):
        pass

    def forgotten(self, ids):
        pass


def refused(data) -> InvalidRequest:
    with pytest.raises(InvalidRequest) as caught:
        MemoryConfig.from_json(data)
    return caught.value


def test_the_defaults_are_those_that_change_nothing():
    config = MemoryConfig()
    assert (config.default_k, config.default_history, config.historical_weight) == (10, "current", 1.0)
    assert config.supersession_policy == ExplicitOnly()
    assert config.recency_policy == NoRecency()
    assert config.forgetting_policy == KeepAll()
    assert config.consolidation_policy == NoConsolidation()
    assert config.ranking_policy == ScoreOrder()
    assert (config.on_id_conflict, config.profile, config.k1, config.b) == ("reject", "english.v1", 0.9, 0.4)
    assert config.limits == Limits(work=10_000_000, frontier=16_384, bytes=67_108_864)
    assert (config.receipt_days, config.extractor, config.observers) == (30, None, ())
    assert (config.embedder, config.embedder_object, config.embedding_dimension) == ("none", None, None)


def test_an_empty_object_is_the_default_configuration():
    assert MemoryConfig.from_json("{}") == MemoryConfig.from_json({}) == MemoryConfig()


def test_null_is_the_same_as_absent():
    told = {
        "k1": None,
        "recency": {"kind": "exponential", "halfLifeMs": 5, "floor": None},
        "limits": {"work": None},
    }
    assert MemoryConfig.from_json(json.dumps(told)) == MemoryConfig(recency=ExponentialRecency(5))


def test_every_json_field_reaches_the_setting_of_its_name():
    told = {
        "defaultK": 3,
        "defaultHistory": "historical",
        "supersession": "latest-by-subject",
        "recency": {"kind": "exponential", "halfLifeMs": 1000, "basis": "ingest", "floor": 0.25},
        "historicalWeight": 0.5,
        "forgetting": {"kind": "expired-for", "graceMs": 7},
        "consolidation": "none",
        "admission": {
            "kind": "standard",
            "allowSensitive": True,
            "rememberPreferences": False,
            "rememberTasks": False,
            "ignoreSmallTalk": False,
            "strictWords": True,
        },
        "dedup": "merge-exact",
        "onIdConflict": "replace",
        "ranking": {"kind": "relevance", "importanceWeight": 1, "recencyWeight": 2, "decayDays": 3.5},
        "profile": "english.v1",
        "k1": 1.2,
        "b": 0.75,
        "limits": {"work": 1, "frontier": 2, "bytes": 3},
        "receiptDays": 9,
        "traceLimit": 8,
        "embedder": {"kind": "hashing", "dimension": 64},
        "embeddingDimension": 64,
        "governed": True,
        "decisionKinds": ["tool_result"],
    }
    expected = MemoryConfig(
        default_k=3,
        default_history="historical",
        supersession=LatestBySubject(),
        recency=ExponentialRecency(1000, basis="ingest", floor=0.25),
        historical_weight=0.5,
        forgetting=ExpiredFor(7),
        admission=StandardAdmission(
            allow_sensitive=True,
            remember_preferences=False,
            remember_tasks=False,
            ignore_small_talk=False,
            strict_words=True,
        ),
        dedup="merge-exact",
        on_id_conflict="replace",
        governed=True,
        decision_kinds=("tool_result",),
        ranking=Relevance(importance_weight=1.0, recency_weight=2.0, decay_days=3.5),
        k1=1.2,
        b=0.75,
        limits=Limits(work=1, frontier=2, bytes=3),
        receipt_days=9,
        trace_limit=8,
        embedder=HashingEmbedder(64),
        embedding_dimension=64,
    )
    assert MemoryConfig.from_json(told) == expected
    assert MemoryConfig.from_json(json.dumps(told).encode()) == expected
    assert json.loads(expected.to_json()) == told
    assert set(told) | {"extractor", "observers"} == {
        name if "_" not in name else name.split("_")[0] + "".join(p.capitalize() for p in name.split("_")[1:])
        for name in (field.name for field in fields(MemoryConfig))
    }


@pytest.mark.parametrize(
    ("plain", "policy"),
    [
        ("keep-all", KeepAll()),
        ({"kind": "keep-all"}, KeepAll()),
        ({"kind": "superseded-for", "ageMs": 0}, SupersededFor(0)),
        ({"kind": "max-facts", "limit": 100}, MaxFacts(100)),
        ("prune", Prune()),
        (
            {"kind": "prune", "maxAgeDays": 5, "minImportance": 1, "maxFacts": 9},
            Prune(max_age_days=5, min_importance=1, max_facts=9),
        ),
    ],
)
def test_a_forgetting_policy_is_selected_by_name(plain, policy):
    assert MemoryConfig.from_json({"forgetting": plain}).forgetting_policy == policy


def test_a_name_alone_selects_a_policy_whose_parameters_all_have_defaults():
    assert MemoryConfig.from_json({"ranking": "relevance"}).ranking_policy == Relevance()
    assert MemoryConfig(ranking="relevance") == MemoryConfig(ranking=Relevance())


def test_a_built_in_given_as_object_equals_the_one_given_by_name():
    by_object = MemoryConfig(supersession=LatestBySubject(), recency=NoRecency(), forgetting=KeepAll())
    assert by_object == MemoryConfig(supersession="latest-by-subject", recency="none", forgetting="keep-all")


def test_the_json_form_is_canonical_whatever_the_spelling():
    told = '{ "k1" : 1.0, "defaultK":10, "ranking":{"kind":"score"} }'
    assert MemoryConfig.from_json(told).to_json() == MemoryConfig(k1=1).to_json()
    begins = b'{"admission":"none","b":0.4,"consolidation":"none","decisionKinds":["verification","manual"],"dedup"'
    assert MemoryConfig().to_json().startswith(begins)


@pytest.mark.parametrize(
    ("data", "path"),
    [
        ({"defaultk": 3}, "defaultk"),
        ({"default_k": 3}, "default_k"),
        ({"extractor": "x"}, "extractor"),
        ({"observers": []}, "observers"),
        ({"admission": {"kind": "none", "strictWords": True}}, "admission.strictWords"),
        ({"admission": {"kind": "standard", "strict": True}}, "admission.strict"),
        ({"embedder": {"kind": "static", "dimension": 64}}, "embedder.dimension"),
        ({"embedder": {"kind": "http", "key": "k-1"}}, "embedder.key"),
        ({"recency": {"kind": "none", "floor": None}}, "recency.floor"),
        ({"traceMax": 100}, "traceMax"),
        ({"recency": {"kind": "exponential", "halfLifeMs": 5, "half_life_ms": 5}}, "recency.half_life_ms"),
        ({"recency": {"kind": "none", "floor": 0.5}}, "recency.floor"),
        ({"forgetting": {"kind": "max-facts", "limit": 5, "graceMs": 1}}, "forgetting.graceMs"),
        ({"limits": {"time": 3}}, "limits.time"),
        ({1: 2}, "int"),
    ],
)
def test_an_unknown_field_is_named_by_its_path(data, path):
    error = refused(data)
    assert error.field == path
    assert "unknown field" in str(error)


@pytest.mark.parametrize(
    ("text", "path"),
    [
        ('{"k1": 1, "k1": 1}', "k1"),
        ('{"recency": {"kind": "exponential", "halfLifeMs": 5, "halfLifeMs": 6}}', "recency.halfLifeMs"),
        ('{"recency": {"kind": "none", "kind": "none"}}', "recency.kind"),
        ('{"limits": {"work": 5, "work": 5}}', "limits.work"),
    ],
)
def test_a_repeated_key_is_named_by_its_path(text, path):
    error = refused(text)
    assert error.field == path
    assert "more than once" in str(error)


@pytest.mark.parametrize(
    ("data", "path"),
    [
        ({"defaultK": True}, "defaultK"),
        ({"defaultK": 0}, "defaultK"),
        ({"defaultK": 1001}, "defaultK"),
        ({"defaultK": "10"}, "defaultK"),
        ({"defaultK": 10.0}, "defaultK"),
        ({"defaultHistory": "past"}, "defaultHistory"),
        ({"defaultHistory": ["current"]}, "defaultHistory"),
        ({"supersession": "latest"}, "supersession"),
        ({"supersession": 1}, "supersession"),
        ({"supersession": {"kind": "Explicit"}}, "supersession.kind"),
        ({"supersession": {}}, "supersession.kind"),
        ({"recency": "exponential"}, "recency.halfLifeMs"),
        ({"recency": {"kind": "exponential"}}, "recency.halfLifeMs"),
        ({"recency": {"kind": "exponential", "halfLifeMs": None}}, "recency.halfLifeMs"),
        ({"recency": {"kind": "exponential", "halfLifeMs": 0}}, "recency.halfLifeMs"),
        ({"recency": {"kind": "exponential", "halfLifeMs": 1, "basis": "known"}}, "recency.basis"),
        ({"recency": {"kind": "exponential", "halfLifeMs": 1, "floor": 2}}, "recency.floor"),
        ({"historicalWeight": -1}, "historicalWeight"),
        ({"historicalWeight": math.inf}, "historicalWeight"),
        ({"forgetting": {"kind": "expired-for", "graceMs": -1}}, "forgetting.graceMs"),
        ({"forgetting": {"kind": "superseded-for", "ageMs": True}}, "forgetting.ageMs"),
        ({"forgetting": {"kind": "max-facts", "limit": 0}}, "forgetting.limit"),
        ({"forgetting": ["keep-all"]}, "forgetting"),
        ({"consolidation": "collapse"}, "consolidation"),
        ({"onIdConflict": "merge"}, "onIdConflict"),
        ({"admission": "strict"}, "admission"),
        ({"admission": {"kind": "standard", "strictWords": 1}}, "admission.strictWords"),
        ({"dedup": "merge"}, "dedup"),
        ({"dedup": True}, "dedup"),
        ({"forgetting": {"kind": "prune", "minImportance": 2}}, "forgetting.minImportance"),
        ({"forgetting": {"kind": "prune", "maxFacts": -1}}, "forgetting.maxFacts"),
        ({"ranking": {"kind": "relevance", "decayDays": 0}}, "ranking.decayDays"),
        ({"ranking": {"kind": "relevance", "importanceWeight": 0, "recencyWeight": 0}}, "ranking"),
        ({"profile": "english.v2"}, "profile"),
        ({"k1": "0.9"}, "k1"),
        ({"k1": -0.1}, "k1"),
        ({"b": 1.01}, "b"),
        ({"b": True}, "b"),
        ({"limits": 5}, "limits"),
        ({"limits": {"work": 0}}, "limits.work"),
        ({"limits": {"frontier": 1.5}}, "limits.frontier"),
        ({"limits": {"bytes": False}}, "limits.bytes"),
        ({"receiptDays": 0}, "receiptDays"),
        ({"embedder": "minilm"}, "embedder"),
        ({"embedder": ["static"]}, "embedder"),
        ({"embedder": {"kind": "onnx"}}, "embedder.folder"),
        ({"embedder": {"kind": "hashing", "dimension": 7}}, "embedder.dimension"),
        ({"embeddingDimension": 0}, "embeddingDimension"),
        ({"embeddingDimension": 4097}, "embeddingDimension"),
        ({"embeddingDimension": True}, "embeddingDimension"),
        ({"embeddingDimension": 3.0}, "embeddingDimension"),
    ],
)
def test_a_wrong_type_or_a_value_out_of_range_is_named_by_its_path(data, path):
    assert refused(data).field == path
    assert refused(json.dumps(data)).field == path


@pytest.mark.parametrize("token", ["NaN", "Infinity", "-Infinity", "1e999"])
def test_a_number_that_is_not_finite_is_refused_under_its_field(token):
    assert refused(f'{{"k1": {token}}}').field == "k1"


@pytest.mark.parametrize(
    "data",
    ["", "{", "[]", "null", "1", b"\xff\xfe\x00", "[" * 100_000, '{"k1": ' + "9" * 5000 + "}", "{'k1': 1}"],
)
def test_what_is_no_json_object_is_refused(data):
    assert "the configuration" in str(refused(data))


def test_a_wrong_name_lists_the_allowed_ones():
    message = str(refused({"supersession": "latest"}))
    assert message == "supersession must be one of 'explicit', 'latest-by-subject', got 'latest'"


def test_a_pasted_text_in_place_of_a_name_is_cut_off():
    assert len(str(refused({"ranking": "x" * 10_000}))) < 250
    assert "x" * 100 not in str(refused({"profile": "x" * 10_000}))
    assert len(str(refused({"x" * 10_000: 1}))) < 400


def test_a_name_that_needs_parameters_says_how_to_give_them():
    assert '{"kind": "expired-for", "graceMs": …}' in str(refused({"forgetting": "expired-for"}))
    with pytest.raises(InvalidRequest, match=r"give ExpiredFor\(grace_ms=…\)"):
        MemoryConfig(forgetting="expired-for")


@pytest.mark.parametrize(
    ("arguments", "field"),
    [
        ({"default_k": 0}, "default_k"),
        ({"default_k": True}, "default_k"),
        ({"default_history": "never"}, "default_history"),
        ({"supersession": "never"}, "supersession"),
        ({"supersession": object()}, "supersession"),
        ({"supersession": LatestBySubject}, "supersession"),
        ({"supersession": None}, "supersession"),
        ({"recency": LatestBySubject()}, "recency"),
        ({"forgetting": {"kind": "keep-all"}}, "forgetting"),
        ({"historical_weight": math.nan}, "historical_weight"),
        ({"limits": {"work": 5}}, "limits"),
        ({"embedder": None}, "embedder"),
        ({"embedder": StaticEmbedder}, "embedder"),
        ({"embedder": Ones(4_097)}, "embedder.dimension"),
        (
            {"embedder": HttpEmbedder(url="http://h/v1", model_name="m" * 300, dimension=8)},
            "embedder.model",
        ),
        ({"embedding_dimension": 0}, "embedding_dimension"),
        ({"embedding_dimension": 384, "embedder": "static"}, "embedding_dimension"),
        ({"embedding_dimension": 2, "embedder": Ones()}, "embedding_dimension"),
        ({"extractor": "nouns"}, "extractor"),
        ({"observers": Listener()}, "observers"),
        ({"observers": (object(),)}, "observers"),
    ],
)
def test_a_wrong_argument_is_refused_by_name(arguments, field):
    with pytest.raises(InvalidRequest, match=rf"^{field}\b") as caught:
        MemoryConfig(**arguments)
    assert caught.value.field == field


def test_a_recency_policy_must_say_whether_it_is_an_identity_and_what_age_counts_from():
    class NoBasis:
        is_identity = False

        def factor(self, context):
            return 1.0

    with pytest.raises(InvalidRequest, match=r"^recency\.basis must be one of 'event', 'ingest'"):
        MemoryConfig(recency=NoBasis())


def test_any_object_of_a_protocol_is_a_policy():
    everything, half, listener = EverythingSupersedes(), HalfWeight(), Listener()
    config = MemoryConfig(supersession=everything, recency=half, extractor=str.split, observers=[listener])
    assert config.supersession_policy is everything
    assert config.recency_policy is half
    assert config.extractor is not None
    assert list(config.extractor("Ada Oslo")) == ["Ada", "Oslo"]
    assert config.observers == (listener,)


@pytest.mark.parametrize(
    ("embedder", "dimension"), [("static", 256), ("hashing", 256), (HashingEmbedder(32), 32), (Ones(), 3)]
)
def test_a_dimension_that_is_the_embedders_own_may_be_told(embedder, dimension):
    config = MemoryConfig(embedder=embedder, embedding_dimension=dimension)
    assert config.embedder_object.dimension == dimension


def test_a_name_and_an_object_give_the_same_embedder():
    assert MemoryConfig(embedder=StaticEmbedder()) == MemoryConfig(embedder="static")
    assert isinstance(MemoryConfig(embedder="static").embedder_object, StaticEmbedder)
    ones = Ones()
    assert MemoryConfig(embedder=ones).embedder_object is ones


def test_the_files_of_an_onnx_model_are_not_needed_to_look_at_a_configuration():
    told = MemoryConfig(embedder=OnnxEmbedder(folder="no/such/folder"))
    assert MemoryConfig.from_json(told.to_json()) == told
    with pytest.raises(Unavailable):
        told.replace(embedding_dimension=384)


def test_a_key_is_written_by_the_name_of_its_place_only(monkeypatch):
    monkeypatch.setenv("EMBEDDING_KEY", "k-secret")
    embedder = HttpEmbedder(url="http://h/v1", model_name="m", dimension=8, key_env="EMBEDDING_KEY")
    data = MemoryConfig(embedder=embedder).to_json()
    assert b"EMBEDDING_KEY" in data
    assert b"k-secret" not in data
    assert MemoryConfig.from_json(data).embedder == embedder


@pytest.mark.parametrize(
    ("arguments", "field"),
    [
        ({"supersession": EverythingSupersedes()}, "supersession"),
        ({"embedder": Ones()}, "embedder"),
        ({"recency": HalfWeight()}, "recency"),
        ({"extractor": str.split}, "extractor"),
        ({"observers": (Listener(),)}, "observers"),
    ],
)
def test_what_only_code_can_give_is_not_written_as_json(arguments, field):
    with pytest.raises(InvalidRequest, match=field) as caught:
        MemoryConfig(**arguments).to_json()
    assert caught.value.field == field


def test_a_copy_differs_in_the_named_settings_only_and_is_checked_too():
    config = MemoryConfig(k1=1.5)
    assert config.replace(b=0.1) == MemoryConfig(k1=1.5, b=0.1)
    assert config == MemoryConfig(k1=1.5)
    with pytest.raises(InvalidRequest, match="default_k"):
        config.replace(default_k=0)
    with pytest.raises(InvalidRequest, match="trace_max is an unknown field"):
        config.replace(trace_max=5)


def test_a_configuration_cannot_be_changed_in_place():
    with pytest.raises(FrozenInstanceError):
        MemoryConfig().k1 = 2.0  # type: ignore[misc]


def test_every_profile_that_may_be_named_exists():
    assert [get_profile(name).name for name in PROFILES] == list(PROFILES)


@pytest.mark.parametrize("kind", [MemoryConfig, Limits])
def test_a_mistyped_name_in_code_is_told_with_the_names_there_are_as_in_json(kind):
    with pytest.raises(InvalidRequest, match="embeder is an unknown field; the fields are ") as caught:
        kind(embeder="static")
    assert caught.value.field == "embeder"
    assert all(field.name in str(caught.value) for field in fields(kind))
    assert list(inspect.signature(kind).parameters) == [field.name for field in fields(kind)]


def test_a_configuration_is_copied_and_pickled_as_an_equal_one():
    config = MemoryConfig(default_k=3, embedder="static", limits=Limits(work=5))
    assert copy.deepcopy(config) == pickle.loads(pickle.dumps(config)) == config
