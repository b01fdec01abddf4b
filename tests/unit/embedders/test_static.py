"""The static embedder: its table, its vectors, and what any text may do to it."""

from __future__ import annotations

import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from perdure.embedders import static
from perdure.embedders.static import StaticEmbedder
from perdure.errors import InvalidRequest

EMBEDDER = StaticEmbedder()
SENTENCES = [
    "The dog chased the ball in the park",
    "Our quarterly revenue grew by twelve percent",
    "She plays the violin in an orchestra",
]


def cosine(left, right):
    return float(EMBEDDER.embed_query(left) @ EMBEDDER.embed_query(right))


def test_the_table_on_disk_is_the_one_that_the_code_names():
    assert static.table_digest() == static.TABLE_DIGEST


def test_the_model_names_the_digest_of_the_table():
    assert static.TABLE_DIGEST[:16] in EMBEDDER.model


def test_the_table_comes_with_its_licence_and_origin():
    assert "Apache License" in (static.TABLE / "LICENSE").read_text(encoding="utf-8")
    assert "all-MiniLM-L6-v2" in (static.TABLE / "NOTICE").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("puppy playing outside with a toy", 0),
        ("company earnings and profits", 1),
        ("musical instruments", 2),
    ],
)
def test_a_text_is_nearest_to_the_sentence_that_means_the_most_alike(text, sentence):
    assert int(np.argmax([cosine(text, other) for other in SENTENCES])) == sentence


@given(st.text(max_size=200))
def test_every_text_has_a_unit_vector_or_zeros(text):
    vector = EMBEDDER.embed_query(text)
    assert vector.shape == (EMBEDDER.dimension,)
    assert vector.dtype == np.float32
    length = float(np.linalg.norm(vector))
    assert length == 0 or abs(length - 1) < 1e-6


@given(st.lists(st.text(max_size=60), max_size=6))
def test_a_text_has_the_same_vector_alone_and_in_a_batch(texts):
    rows = EMBEDDER.embed_documents(texts)
    assert rows.shape == (len(texts), EMBEDDER.dimension)
    for row, text in zip(rows, texts, strict=True):
        assert row.tobytes() == EMBEDDER.embed_query(text).tobytes()


@given(st.permutations(["alice", "moved", "to", "paris", "in", "march", "because", "of", "her", "work"]))
def test_the_order_of_words_changes_no_bit_of_a_vector(words):
    assert (
        EMBEDDER.embed_query(" ".join(words)).tobytes()
        == EMBEDDER.embed_query(" ".join(sorted(words))).tobytes()
    )


def test_the_vector_of_a_text_is_the_same_in_every_release():
    vector = EMBEDDER.embed_query("Caroline went to the café in São Paulo on 7 May 2023.")
    assert [float(x).hex() for x in vector[:3]] == [
        "-0x1.28009c0000000p-3",
        "-0x1.3311320000000p-2",
        "-0x1.61a1840000000p-2",
    ]


def test_a_text_without_known_words_has_zeros():
    for text in ("", " \t\n", "\u200d", "😀😀", "\ud800", "\x00"):
        assert not EMBEDDER.embed_query(text).any()


@pytest.mark.parametrize("part", ["a", "zq", "the ", "é", "漢", "😀", "\u0301", "ﷺ", "zq" * 50 + " "])
def test_a_text_of_64_kib_is_embedded(part):
    text = (part * (65_536 // len(part.encode()) + 1)).encode()[:65_536].decode(errors="ignore")
    assert np.isfinite(EMBEDDER.embed_query(text)).all()


def test_a_long_text_of_one_phrase_means_what_the_phrase_means():
    phrase = "the cat sat on the mat "
    assert cosine(phrase, phrase * 2_500) > 0.9999


def test_threads_get_the_vectors_that_one_thread_gets():
    texts = [f"the {word} number {n}" for n in range(50) for word in ("dog", "house", "naïve")]
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(EMBEDDER.embed_query, texts))
    assert np.array_equal(np.stack(found), EMBEDDER.embed_documents(texts))


@pytest.mark.parametrize("texts", ["one text", [b"bytes"], [None]])
def test_what_is_no_list_of_texts_is_refused(texts):
    with pytest.raises(InvalidRequest):
        EMBEDDER.embed_documents(texts)


def test_an_embedder_is_made_without_reading_its_table(tmp_path):
    script = (
        "import pathlib, sys\n"
        "from perdure.embedders import static\n"
        "static.TABLE = pathlib.Path(sys.argv[1])\n"
        "print(static.StaticEmbedder().dimension, 'onnxruntime' in sys.modules)\n"
    )
    told = subprocess.run(
        [sys.executable, "-c", script, str(tmp_path)], capture_output=True, text=True, check=True
    )
    assert told.stdout.split() == ["256", "False"]


@pytest.mark.parametrize("damage", ["absent", "changed"])
def test_a_damaged_table_is_named_and_not_used(tmp_path, damage):
    for name in ("rows.npy", "multipliers.npy", "pieces.txt"):
        (tmp_path / name).write_bytes((static.TABLE / name).read_bytes())
    if damage == "absent":
        (tmp_path / "rows.npy").unlink()
    else:
        with (tmp_path / "rows.npy").open("r+b") as stream:
            stream.seek(5_000)
            stream.write(b"damage")
    script = (
        "import pathlib, sys\n"
        "from perdure.embedders import static\n"
        "from perdure.errors import Unavailable\n"
        "static.TABLE = pathlib.Path(sys.argv[1])\n"
        "try:\n    static.StaticEmbedder().embed_query('text')\n"
        "except Unavailable as error:\n    print(error)\n"
    )
    told = subprocess.run(
        [sys.executable, "-c", script, str(tmp_path)], capture_output=True, text=True, check=True
    )
    assert "install perdure again" in told.stdout
