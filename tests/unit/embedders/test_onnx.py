"""The onnx embedder, on tiny models that the tests build: each token's vector is a row of a known table."""

from __future__ import annotations

import json
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from perdure.embedders.onnx import OnnxEmbedder
from perdure.errors import InvalidRequest, Unavailable

NEEDED = "needs the packages of perdure[embed] and onnx to build a model"
onnx = pytest.importorskip("onnx", reason=NEEDED)
pytest.importorskip("onnxruntime", reason=NEEDED)
tokenizers = pytest.importorskip("tokenizers", reason=NEEDED)

WORDS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "red", "green", "blue", "query"]
TABLE = np.array(
    [[0, 0, 9], [1, 1, 1], [2, 0, 0], [0, 2, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1], [5, 0, 5]], np.float32
)


def tokenizer(path):
    made = tokenizers.Tokenizer(
        tokenizers.models.WordLevel({word: n for n, word in enumerate(WORDS)}, unk_token="[UNK]")
    )
    made.pre_tokenizer = tokenizers.pre_tokenizers.Whitespace()
    made.post_processor = tokenizers.processors.TemplateProcessing(
        single="[CLS] $A [SEP]", special_tokens=[("[CLS]", 2), ("[SEP]", 3)]
    )
    # What a file says of padding and length must not matter: the embedder has settings of its own.
    made.enable_padding(length=30)
    made.enable_truncation(3)
    made.save(str(path))


INPUTS = ("input_ids", "attention_mask", "token_type_ids")


def model(path, *, output="last_hidden_state", inputs=INPUTS, sums=False, table=TABLE):
    """Write a model that looks each token up in the table, or with `sums` one that adds up the rows of a text."""
    helper, numpy_helper = onnx.helper, onnx.numpy_helper
    shape = ["texts", table.shape[1]] if sums else ["texts", "tokens", table.shape[1]]
    nodes = [helper.make_node("Gather", ["table", inputs[0]], ["rows" if sums else output])]
    tables = [numpy_helper.from_array(table, "table")]
    if sums:
        tables.append(numpy_helper.from_array(np.array([1], np.int64), "axes"))
        nodes.append(helper.make_node("ReduceSum", ["rows", "axes"], [output], keepdims=0))
    graph = helper.make_graph(
        nodes,
        "tiny",
        [helper.make_tensor_value_info(name, onnx.TensorProto.INT64, ["texts", "tokens"]) for name in inputs],
        [helper.make_tensor_value_info(output, onnx.TensorProto.FLOAT, shape)],
        tables,
    )
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    onnx.save(made, str(path))


@pytest.fixture
def folder(tmp_path):
    model(tmp_path / "model.onnx")
    tokenizer(tmp_path / "tokenizer.json")
    return tmp_path


def embedder(folder, **told):
    return OnnxEmbedder(**{"folder": str(folder), "normalise": False} | told)


def mean(*words):
    return TABLE[[WORDS.index(word) for word in ("[CLS]", *words, "[SEP]")]].mean(0)


def test_a_text_has_the_mean_of_its_tokens(folder):
    found = embedder(folder).embed_query("red green")
    assert found.dtype == np.float32
    np.testing.assert_allclose(found, mean("red", "green"))


def test_texts_of_a_batch_do_not_count_what_fills_up_the_shorter_ones(folder):
    texts = ["red green blue red green", "blue", "green red"]
    found = embedder(folder).embed_documents(texts)
    np.testing.assert_allclose(found, [mean(*text.split()) for text in texts])


@pytest.mark.parametrize("batch_size", [1, 2, 3, 32])
def test_rows_keep_the_order_of_the_texts(folder, batch_size):
    texts = ["blue", "red green blue", "red", "green green", "blue red"]
    found = embedder(folder, batch_size=batch_size).embed_documents(texts)
    np.testing.assert_allclose(found, [mean(*text.split()) for text in texts])


def test_the_first_token_is_taken_where_told(folder):
    np.testing.assert_allclose(embedder(folder, pooling="cls").embed_query("red"), TABLE[2])


def test_vectors_are_of_unit_length_unless_told_otherwise(folder):
    found = OnnxEmbedder(folder=str(folder)).embed_query("red green")
    right = mean("red", "green")
    np.testing.assert_allclose(found, right / np.linalg.norm(right), rtol=1e-6)


def test_tokens_beyond_the_limit_are_left_out(folder):
    found = embedder(folder, max_tokens=4).embed_query("red green blue blue blue")
    np.testing.assert_allclose(found, mean("red", "green"))


def test_queries_and_documents_have_prefixes_of_their_own(folder):
    asking = embedder(folder, query_prefix="query ", document_prefix="green ")
    np.testing.assert_allclose(asking.embed_query("red"), mean("query", "red"))
    np.testing.assert_allclose(asking.embed_documents(["red"])[0], mean("green", "red"))


def test_blank_texts_have_zeros(folder):
    found = embedder(folder, document_prefix="green ").embed_documents(["", "red", " \n"])
    assert found.any(axis=1).tolist() == [False, True, False]


def test_no_texts_have_no_rows(folder):
    assert embedder(folder).embed_documents([]).shape == (0, 3)


def test_a_model_may_take_fewer_inputs(folder):
    model(folder / "model.onnx", inputs=("input_ids",))
    np.testing.assert_allclose(embedder(folder).embed_query("red"), mean("red"))


def test_a_model_that_gives_a_vector_per_text_is_not_pooled(folder):
    model(folder / "model.onnx", output="sentence_embedding", sums=True)
    np.testing.assert_allclose(embedder(folder).embed_query("red"), mean("red") * 3)


def test_the_dimension_is_the_models(folder):
    assert embedder(folder).dimension == 3


def test_the_fingerprint_is_of_what_decides_the_vectors(folder, tmp_path_factory):
    same = embedder(folder).model
    elsewhere = tmp_path_factory.mktemp("moved")
    for name in ("model.onnx", "tokenizer.json"):
        (elsewhere / name).write_bytes((folder / name).read_bytes())
    assert embedder(elsewhere, batch_size=7, threads=2).model == same
    told = [
        {"pooling": "cls"},
        {"normalise": True},
        {"max_tokens": 9},
        {"query_prefix": "q"},
        {"document_prefix": "q"},
    ]
    models = {embedder(folder, **one).model for one in told}
    (elsewhere / "model.onnx_data").write_bytes(b"tensors")
    models.add(embedder(elsewhere).model)
    model(folder / "model.onnx", inputs=("input_ids",))
    models.add(embedder(folder).model)
    assert len(models | {same}) == 8


def test_settings_are_equal_whether_files_were_read_or_not(folder):
    read, fresh = embedder(folder), embedder(folder)
    assert read.dimension == 3
    assert read == fresh
    assert repr(read) == repr(fresh)


@pytest.mark.parametrize("name", ["model.onnx", "tokenizer.json"])
def test_a_missing_file_is_named(folder, name):
    (folder / name).unlink()
    with pytest.raises(Unavailable, match=name):
        embedder(folder).embed_query("red")


@pytest.mark.parametrize("name", ["model.onnx", "tokenizer.json"])
@pytest.mark.parametrize("content", [b"", b"{}", b"\x00\xff" * 100])
def test_a_file_that_is_something_else_is_unavailable(folder, name, content):
    (folder / name).write_bytes(content)
    with pytest.raises(Unavailable) as caught:
        embedder(folder).embed_query("red")
    assert caught.value.field == "folder"


def test_a_model_of_something_else_is_unavailable(folder):
    model(folder / "model.onnx", inputs=("pixels",))
    with pytest.raises(Unavailable, match="no sentence model"):
        embedder(folder).embed_query("red")


def test_a_model_whose_vectors_are_longer_than_a_memory_keeps_is_unavailable(folder):
    model(folder / "model.onnx", table=np.ones((len(WORDS), 4_097), np.float32))
    with pytest.raises(Unavailable, match="4096"):
        embedder(folder).embed_query("red")


def test_a_tokenizer_that_does_not_fit_the_model_is_unavailable(folder):
    told = json.loads((folder / "tokenizer.json").read_text())
    told["model"]["vocab"]["red"] = 99
    (folder / "tokenizer.json").write_text(json.dumps(told))
    with pytest.raises(Unavailable, match="the model failed"):
        embedder(folder).embed_query("red")


def test_a_failure_to_load_does_not_last(folder):
    content = (folder / "model.onnx").read_bytes()
    (folder / "model.onnx").unlink()
    asking = embedder(folder)
    with pytest.raises(Unavailable):
        asking.embed_query("red")
    (folder / "model.onnx").write_bytes(content)
    np.testing.assert_allclose(asking.embed_query("red"), mean("red"))


def test_threads_get_their_own_vectors(folder):
    texts = ["red", "green", "blue", "red green"] * 10
    with ThreadPoolExecutor(6) as pool:
        found = list(pool.map(embedder(folder).embed_query, texts))
    np.testing.assert_allclose(found, [mean(*text.split()) for text in texts])


@pytest.mark.parametrize("package", ["onnxruntime", "tokenizers"])
def test_a_missing_package_is_named_with_the_extra_that_brings_it(folder, package):
    script = (
        f"import sys; sys.modules[{package!r}] = None\n"
        "from perdure.embedders.onnx import OnnxEmbedder\n"
        "from perdure.errors import Unavailable\n"
        "try:\n    OnnxEmbedder(folder=sys.argv[1]).embed_query('red')\n"
        "except Unavailable as error:\n    print(error)\n"
    )
    told = subprocess.run(
        [sys.executable, "-c", script, str(folder)], capture_output=True, text=True, check=True
    )
    assert "perdure[embed]" in told.stdout


@pytest.mark.parametrize(
    "told", [{"folder": ""}, {"pooling": "max"}, {"normalise": 1}, {"max_tokens": 1}, {"threads": 0}]
)
def test_a_wrong_parameter_is_named(told):
    with pytest.raises(InvalidRequest) as caught:
        OnnxEmbedder(**{"folder": "models/e5"} | told)
    assert caught.value.field in told
