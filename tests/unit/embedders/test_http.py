"""The http embedder against a local endpoint: what it sends, and what may go wrong."""

from __future__ import annotations

import json
import logging
import socket
import subprocess
import sys
import time
import traceback
from concurrent.futures import ThreadPoolExecutor
from email.utils import formatdate

import numpy as np
import pytest

from perdure.embedders.http import HttpEmbedder
from perdure.errors import InvalidRequest, Unavailable
from unit.embedders import stub_endpoint as stub
from unit.embedders.stub_endpoint import endpoint

KEY = "sk-SECRET-KEY-7731"
TEXT = "what a person told"


def embedder(url, **told):
    return HttpEmbedder(**{"url": url, "model_name": "m", "dimension": 3, "backoff_ms": 1} | told)


def failing(script, *, awaited=0, **told):
    """Return the error, and how many requests it took; where the endpoint may be slower, await so many of them."""
    with endpoint(*script) as server:
        with pytest.raises(Unavailable) as caught:
            embedder(server.url, **told).embed_query(TEXT)
        server.await_requests(awaited)
        shown = "".join(traceback.format_exception(caught.value))
        assert "SECRET" not in shown
        return caught.value, len(server.requests)


def test_texts_come_back_as_rows_in_their_order():
    with endpoint(stub.good) as server:
        found = embedder(server.url).embed_documents(["ab", "xyz"])
    assert found.dtype == np.float32
    assert found.tolist() == [stub.vector("ab"), stub.vector("xyz")]


@pytest.mark.parametrize("answer", [stub.shuffled, stub.without_indices])
def test_rows_are_put_in_order_by_their_index_where_there_is_one(answer):
    texts = ["ab", "xyz", "q"]
    with endpoint(answer) as server:
        found = embedder(server.url).embed_documents(texts)
    assert found.tolist() == [stub.vector(text) for text in texts]


def test_a_request_names_the_model_and_goes_below_the_url():
    with endpoint(stub.good) as server:
        embedder(server.url + "/", model_name="nomic-embed-text").embed_query("ab")
        ((path, headers, request),) = server.requests
    assert path == "/v1/embeddings"
    assert request == {"model": "nomic-embed-text", "input": ["ab"]}
    assert "Authorization" not in headers


def test_queries_and_documents_have_prefixes_of_their_own():
    with endpoint(stub.good) as server:
        asking = embedder(server.url, query_prefix="query: ", document_prefix="passage: ")
        asking.embed_query("ab")
        asking.embed_documents(["cd"])
        sent = [request["input"] for _, _, request in server.requests]
    assert sent == [["query: ab"], ["passage: cd"]]


def test_texts_are_sent_in_batches():
    texts = [f"{n} text" for n in range(7)]
    with endpoint(stub.good) as server:
        found = embedder(server.url, batch_size=3).embed_documents(texts)
        sent = [len(request["input"]) for _, _, request in server.requests]
    assert sent == [3, 3, 1]
    assert found.tolist() == [stub.vector(text) for text in texts]


def test_blank_texts_are_not_sent_and_have_zeros():
    with endpoint(stub.good) as server:
        found = embedder(server.url, document_prefix="p: ").embed_documents(["", "ab", " \n"])
        sent = [request["input"] for _, _, request in server.requests]
    assert sent == [["p: ab"]]
    assert found.any(axis=1).tolist() == [False, True, False]


def test_no_texts_make_no_request():
    with endpoint(stub.good) as server:
        assert embedder(server.url).embed_documents([]).shape == (0, 3)
        assert embedder(server.url).embed_documents(["", " "]).shape == (2, 3)
        assert server.requests == []


@pytest.mark.parametrize("status", [408, 425, 429, 500, 502, 503, 504])
def test_a_passing_failure_is_asked_again(status):
    with endpoint(stub.status(status), stub.status(status), stub.good) as server:
        assert embedder(server.url).embed_query("ab").tolist() == stub.vector("ab")
        assert len(server.requests) == 3


@pytest.mark.parametrize("failure", [stub.reset, stub.cut])
def test_a_broken_connection_is_tried_again(failure):
    with endpoint(failure, stub.good) as server:
        assert embedder(server.url).embed_query("ab").tolist() == stub.vector("ab")


@pytest.mark.parametrize("failure", [stub.reset, stub.cut, stub.status(503)])
def test_retries_come_to_an_end(failure):
    error, requests = failing([failure], retries=2)
    assert requests == 3
    assert "embedding endpoint" in error.message


@pytest.mark.parametrize(
    ("status", "advice"),
    [
        (400, "model_name"),
        (401, "key_env"),
        (403, "key_env"),
        (404, "url"),
        (413, "batch_size"),
        (418, "status 418"),
    ],
)
def test_a_refusal_is_not_asked_again_and_says_what_to_do(status, advice):
    error, requests = failing([stub.status(status)])
    assert requests == 1
    assert advice in error.message
    assert error.details["status"] == status


def test_a_wait_that_the_endpoint_asks_for_takes_the_place_of_the_backoff():
    with endpoint(stub.status(429, Retry_After="0"), stub.good) as server:
        start = time.monotonic()
        embedder(server.url, backoff_ms=60_000, backoff_max_ms=60_000).embed_query("ab")
        assert time.monotonic() - start < 30


def test_a_wait_may_be_asked_for_as_a_date():
    with endpoint(stub.status(503, Retry_After=formatdate(0, usegmt=True)), stub.good) as server:
        assert embedder(server.url, backoff_ms=60_000).embed_query("ab").any()


@pytest.mark.parametrize("told", ["3600", "99999999999999999999999999", "Fri, 31 Dec 9999 23:59:59 GMT"])
def test_an_endpoint_that_wants_a_long_wait_is_unavailable_at_once(told):
    error, requests = failing([stub.status(429, Retry_After=told)])
    assert requests == 1
    assert "backoff_max_ms" in error.message
    assert error.details["status"] == 429


def test_a_wait_that_cannot_be_read_leaves_the_backoff():
    with endpoint(stub.status(429, Retry_After="soon"), stub.good) as server:
        assert embedder(server.url).embed_query("ab").any()


@pytest.mark.parametrize("status", [301, 302, 307, 308])
def test_redirects_are_not_followed(status):
    with endpoint(stub.good) as elsewhere:
        error, requests = failing([stub.status(status, Location=f"{elsewhere.url}/embeddings")])
        assert elsewhere.requests == []
    assert requests == 1
    assert "set url" in error.message


def test_an_endpoint_that_is_not_there_is_unavailable():
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    with pytest.raises(Unavailable, match="check that it runs"):
        embedder(f"http://127.0.0.1:{port}/v1").embed_query(TEXT)


@pytest.mark.parametrize("slow", [stub.silent, stub.trickling])
def test_a_slow_endpoint_is_given_up_in_time(slow):
    start = time.monotonic()
    error, requests = failing([slow], awaited=2, timeout_ms=200, retries=1)
    assert time.monotonic() - start < 5
    assert requests == 2
    assert "200 ms" in error.message


def test_an_answer_without_an_end_is_cut_off():
    error, requests = failing([stub.endless])
    assert requests == 1
    assert "more than" in error.message


@pytest.mark.parametrize(
    "answer",
    [
        b"",
        b"SECRET",
        b"\xff",
        b"[]",
        b"{}",
        b'{"data": 1}',
        b'{"data": [1]}',
        b'{"data": [{"index": 0}]}',
        b"[" * 50_000,
        b'{"data": []}',
        b'{"data": [{"index": 1, "embedding": [1, 2, 3]}]}',
        b'{"data": [{"index": -1, "embedding": [1, 2, 3]}]}',
        b'{"data": [{"index": true, "embedding": [1, 2, 3]}]}',
        b'{"data": [{"index": "0", "embedding": [1, 2, 3]}]}',
        b'{"data": [{"index": [], "embedding": [1, 2, 3]}]}',
        b'{"data": [{"index": 0, "embedding": [1, 2, 3]}, {"index": 0, "embedding": [1, 2, 3]}]}',
        b'{"data": [{"index": 0, "embedding": [1, 2]}]}',
        b'{"data": [{"index": 0, "embedding": [1, 2, 3, 4]}]}',
        b'{"data": [{"index": 0, "embedding": []}]}',
        b'{"data": [{"index": 0, "embedding": [1, 2, NaN]}]}',
        b'{"data": [{"index": 0, "embedding": [1, 2, 1e999]}]}',
        b'{"data": [{"index": 0, "embedding": [1, 2, 1e39]}]}',
        b'{"data": [{"index": 0, "embedding": [1, 2, "SECRET"]}]}',
        b'{"data": [{"index": 0, "embedding": [1, 2, null]}]}',
        b'{"data": [{"index": 0, "embedding": [1, 2, [3]]}]}',
        b'{"data": [{"index": 0, "embedding": "SECRET"}]}',
        b'{"data": [{"index": 0, "embedding": [true, false, true]}]}',
        b'{"data": [{"index": 0, "embedding": [1, 2, ' + b"9" * 400 + b"]}]}",
    ],
    ids=lambda answer: answer[:60].decode("latin-1"),
)
def test_an_answer_that_holds_no_vectors_is_refused(answer):
    error, requests = failing([stub.body(answer)])
    assert requests == 1
    assert error.field == "embedder"


def test_the_count_of_vectors_must_be_that_of_the_texts():
    one = json.dumps({"data": [{"index": 0, "embedding": [1, 2, 3]}]}).encode()
    with endpoint(stub.body(one)) as server, pytest.raises(Unavailable, match=r"1 vector, .*for 2 texts"):
        embedder(server.url).embed_documents(["a", "b"])


def test_a_key_is_read_from_the_environment_at_each_request(monkeypatch):
    with endpoint(stub.good) as server:
        asking = embedder(server.url, key_env="EMBEDDING_KEY")
        for key in (KEY, "another"):
            monkeypatch.setenv("EMBEDDING_KEY", key)
            asking.embed_query("ab")
        sent = [headers["Authorization"] for _, headers, _ in server.requests]
    assert sent == [f"Bearer {KEY}", "Bearer another"]


def test_a_key_is_read_from_a_file(tmp_path):
    path = tmp_path / "key"
    path.write_text(f"{KEY}\n")
    with endpoint(stub.good) as server:
        embedder(server.url, key_file=str(path)).embed_query("ab")
        assert server.requests[0][1]["Authorization"] == f"Bearer {KEY}"


@pytest.mark.parametrize("content", ["", " \n", "two\nlines SECRET", "SECRET\u00e9", "SECRET" * 2_000])
def test_what_is_no_key_is_not_sent_and_not_shown(tmp_path, content):
    path = tmp_path / "key"
    path.write_text(content)
    with endpoint(stub.good) as server:
        with pytest.raises(Unavailable) as caught:
            embedder(server.url, key_file=str(path)).embed_query("ab")
        assert server.requests == []
    assert "SECRET" not in "".join(traceback.format_exception(caught.value))


@pytest.mark.parametrize("told", [{"key_env": "NO_SUCH_VARIABLE_7731"}, {"key_file": "no/such/file"}])
def test_a_key_that_is_not_there_is_named_by_its_place(told):
    ((field, place),) = told.items()
    with pytest.raises(Unavailable, match=place) as caught:
        embedder("http://127.0.0.1:1/v1", **told).embed_query("ab")
    assert caught.value.field == field


@pytest.mark.parametrize(
    "script", [[stub.good], [stub.status(401)], [stub.status(500)], [stub.cut], [stub.body(b"")]]
)
def test_neither_key_nor_text_is_shown_or_logged(monkeypatch, caplog, capfd, script):
    monkeypatch.setenv("EMBEDDING_KEY", KEY)
    caplog.set_level(logging.DEBUG)
    shown = ""
    with endpoint(*script) as server:
        asking = embedder(server.url, key_env="EMBEDDING_KEY", retries=0)
        try:
            asking.embed_query(TEXT)
        except Unavailable as error:
            shown = f"{error!r} {error.details} {''.join(traceback.format_exception(error))}"
        shown += repr(asking)
        assert server.requests[0][1]["Authorization"] == f"Bearer {KEY}"
    shown += caplog.text + "".join(capfd.readouterr())
    assert KEY not in shown
    assert TEXT not in shown
    assert "SECRET" not in shown


@pytest.mark.parametrize(
    "url",
    [
        "",
        "localhost:11434",
        "ftp://host/v1",
        "file:///etc/passwd",
        "http://",
        "http://user:SECRET@host/v1",
        "http://host/v1?key=SECRET",
        "http://host/v1#x",
        "http://host:port/v1",
        "http://host:99999/v1",
        "http://ho st/v1",
        "http://host/v1\r\nX: y",
        "http://höst/v1",
        "http://[::1/v1",
    ],
)
def test_a_url_that_cannot_be_one_is_refused_and_not_shown(url):
    with pytest.raises(InvalidRequest) as caught:
        embedder(url)
    assert caught.value.field == "url"
    assert "SECRET" not in "".join(traceback.format_exception(caught.value))


@pytest.mark.parametrize(
    "told",
    [
        {"dimension": 0},
        {"dimension": 3.0},
        {"model_name": ""},
        {"retries": -1},
        {"timeout_ms": 0},
        {"batch_size": 0},
        {"query_task": "other"},
        {"key_env": ""},
        {"query_prefix": "a\nb"},
        {"key_env": "A", "key_file": "b"},
    ],
)
def test_a_wrong_parameter_is_named(told):
    with pytest.raises(InvalidRequest) as caught:
        embedder("http://host/v1", **told)
    assert caught.value.field in told


def test_the_fingerprint_is_of_what_decides_the_vectors():
    same = embedder("http://host/v1").model
    assert embedder("https://other/v1", retries=0, key_env="K", batch_size=2).model == same
    others = [{"model_name": "n"}, {"dimension": 4}, {"query_prefix": "q"}, {"document_prefix": "q"}]
    assert len({same, *(embedder("http://host/v1", **told).model for told in others)}) == 5


def test_threads_get_their_own_vectors():
    texts = [f"{n} of many" for n in range(24)]
    with endpoint(stub.good) as server, ThreadPoolExecutor(6) as pool:
        found = list(pool.map(embedder(server.url).embed_query, texts))
    assert [row.tolist() for row in found] == [stub.vector(text) for text in texts]


def test_what_speaks_http_is_not_loaded_before_it_is_needed():
    script = (
        "import sys; from perdure.embedders.choices import EMBEDDERS; "
        "EMBEDDERS.from_plain({'kind': 'http', 'url': 'http://host', 'modelName': 'm', 'dimension': 3}, field='e'); "
        "print('http.client' in sys.modules, 'ssl' in sys.modules)"
    )
    told = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert told.stdout.split() == ["False", "False"]
