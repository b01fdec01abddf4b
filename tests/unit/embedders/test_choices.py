"""Embedders in a configuration: names, JSON, and objects of one's own."""

from __future__ import annotations

import json

import numpy as np
import pytest

from perdure.embedders.choices import EMBEDDERS
from perdure.embedders.hashing import HashingEmbedder
from perdure.embedders.http import HttpEmbedder
from perdure.embedders.onnx import OnnxEmbedder
from perdure.embedders.static import StaticEmbedder
from perdure.errors import InvalidRequest


class Own:
    def __init__(self, **told):
        self.model, self.dimension, self.query_task = "own", 4, None
        vars(self).update(told)

    def embed_documents(self, texts):
        return np.ones((len(texts), 4))

    def embed_query(self, text):
        return np.ones(4)


PLAIN = [
    "none",
    "static",
    {"kind": "hashing", "dimension": 64},
    {"kind": "onnx", "folder": "models/e5", "queryPrefix": "query: ", "normalise": False, "pooling": "cls"},
    {"kind": "http", "url": "http://localhost:11434/v1", "modelName": "m", "dimension": 768, "keyEnv": "KEY"},
]


@pytest.mark.parametrize("plain", PLAIN, ids=str)
def test_what_json_says_is_what_is_written_again(plain):
    value = EMBEDDERS.from_plain(plain, field="embedder")
    written = json.loads(json.dumps(EMBEDDERS.to_plain(value, field="embedder")))
    assert EMBEDDERS.from_plain(written, field="embedder") == value
    assert EMBEDDERS.checked(value, field="embedder") == value
    if isinstance(plain, dict):
        assert plain.items() <= written.items()


@pytest.mark.parametrize(
    ("name", "kind"), [("static", StaticEmbedder), ("hashing", HashingEmbedder), ("none", type(None))]
)
def test_a_name_stands_for_an_embedder(name, kind):
    assert isinstance(EMBEDDERS.found(EMBEDDERS.checked(name, field="embedder")), kind)


def test_a_name_and_its_object_are_equal_settings():
    assert EMBEDDERS.checked(StaticEmbedder(), field="embedder") == "static"
    assert EMBEDDERS.checked("hashing", field="embedder") == HashingEmbedder()


def test_making_a_configuration_neither_reads_files_nor_connects():
    made = [EMBEDDERS.from_plain(plain, field="embedder") for plain in PLAIN[3:]]
    assert [type(EMBEDDERS.checked(value, field="embedder")) for value in made] == [
        OnnxEmbedder,
        HttpEmbedder,
    ]


def test_an_object_of_ones_own_is_taken_but_not_written():
    own = Own()
    assert EMBEDDERS.found(EMBEDDERS.checked(own, field="embedder")) is own
    with pytest.raises(InvalidRequest, match="only code can give"):
        EMBEDDERS.to_plain(own, field="embedder")


@pytest.mark.parametrize(
    ("told", "field"),
    [
        ({"model": ""}, "embedder.model"),
        ({"model": None}, "embedder.model"),
        ({"dimension": 0}, "embedder.dimension"),
        ({"dimension": "4"}, "embedder.dimension"),
        ({"query_task": "other"}, "embedder.query_task"),
        ({"embed_query": None}, "embedder"),
        ({"embed_documents": None}, "embedder"),
    ],
)
def test_an_object_that_is_no_embedder_is_refused_by_what_it_lacks(told, field):
    with pytest.raises(InvalidRequest) as caught:
        EMBEDDERS.checked(Own(**told), field="embedder")
    assert caught.value.field == field


@pytest.mark.parametrize(
    ("plain", "field"),
    [
        ("minilm", "embedder"),
        (3, "embedder"),
        ({}, "embedder.kind"),
        ({"kind": "static", "dimension": 3}, "embedder.dimension"),
        ({"kind": "onnx"}, "embedder.folder"),
        ({"kind": "onnx", "folder": "x", "normalise": 1}, "embedder.normalise"),
        ({"kind": "onnx", "folder": "x", "max_tokens": 9}, "embedder.max_tokens"),
        ({"kind": "http", "url": "http://h", "modelName": "m"}, "embedder.dimension"),
        ({"kind": "http", "url": 1, "modelName": "m", "dimension": 3}, "embedder.url"),
        ({"kind": "http", "url": "h", "modelName": "m", "dimension": 3}, "embedder"),
        ({"kind": "http", "key": "SECRET"}, "embedder.key"),
    ],
    ids=str,
)
def test_json_that_is_wrong_is_refused_by_its_path(plain, field):
    with pytest.raises(InvalidRequest) as caught:
        EMBEDDERS.from_plain(plain, field="embedder")
    assert caught.value.field == field
    assert "SECRET" not in str(caught.value)
