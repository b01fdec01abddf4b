"""Where a client sends, under which names, and that nobody sees its key."""

from __future__ import annotations

import logging
import traceback

import pytest

from perdure import InvalidRequest, PerdureError, Unavailable
from perdure.client import AsyncClient, Client
from unit.client.stub import BREAK, RECALLED, answer, serving
from unit.client.waiting import WaitingClient

KEY = "pk_abc_notforanybodyselfseyes"
BOTH = pytest.mark.parametrize("make", [Client, WaitingClient])


@BOTH
def test_names_are_sent_percent_encoded_and_those_that_are_none_not_at_all(make):
    with serving(answer(RECALLED)) as stub, make(stub.url, api_key=KEY, tenant="acme") as client:
        client.memory("Zoë, 50%/a b", "家\u2028").recall("kettle")
        client.memory().recall("kettle")
        client.documents("", "").search("kettle")
        (_, named, _), (_, unnamed, _), (_, empty, _) = stub.asked
    assert named["Perdure-Principal"] == "Zo%C3%AB%2C%2050%25%2Fa%20b"
    assert named["Perdure-Scope"] == "%E5%AE%B6%E2%80%A8"
    assert (named["Perdure-Tenant"], named["Authorization"]) == ("acme", f"Bearer {KEY}")
    assert not {"Perdure-Principal", "Perdure-Scope"} & unnamed.keys()
    assert (empty["Perdure-Principal"], empty["Perdure-Scope"]) == ("", "")


@BOTH
def test_nothing_is_sent_that_was_not_told(make, monkeypatch, tmp_path):
    netrc = tmp_path / "netrc"
    netrc.write_text("machine 127.0.0.1 login somebody password else\n")
    netrc.chmod(0o600)
    monkeypatch.setenv("NETRC", str(netrc))
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:1")
    with serving(answer(RECALLED)) as stub, make(stub.url) as client:
        assert client.memory().recall("kettle") == []
        ((_, headers, _),) = stub.asked
    assert "Authorization" not in headers
    assert headers["Accept-Encoding"] == "identity"


@BOTH
def test_a_key_is_in_no_repr_no_error_and_no_log(make, caplog):
    caplog.set_level(logging.DEBUG)
    shown = []
    with serving(BREAK) as stub, make(stub.url, api_key=KEY, retries=0) as client:
        memory = client.memory("alice")
        for call in (lambda: memory.recall("kettle"), client.store.spaces):
            with pytest.raises(Unavailable) as refused:
                call()
            shown += traceback.format_exception(refused.value)
            shown.append(repr(refused.value.details))
        shown += [repr(client), str(client)]
    shown += [record.getMessage() for record in caplog.records]
    assert not [text for text in shown if KEY in text]
    assert repr(Client("http://localhost:8420", api_key=KEY)) == "<Client of http://localhost:8420>"
    assert repr(AsyncClient("http://localhost:8420").memory("alice")) == (
        "<AsyncClientMemory of http://localhost:8420>"
    )


@BOTH
@pytest.mark.parametrize("key", [f"{KEY}\n", f" {KEY}", f"{KEY}\r\n"])
def test_a_key_with_white_space_around_it_is_refused_with_the_word_to_strip_it(make, key):
    with pytest.raises(InvalidRequest, match="strip it") as refused:
        make("http://localhost", api_key=key)
    assert refused.value.field == "api_key"
    assert KEY not in str(refused.value)


@BOTH
@pytest.mark.parametrize("path", ["/api/v1", "/behind/a/proxy/", "//x"])
def test_an_address_with_a_path_is_refused_and_a_slash_at_its_end_is_not(make, path):
    with pytest.raises(InvalidRequest, match="without a path") as refused:
        make(f"http://localhost:8420{path}")
    assert refused.value.field == "url"
    with serving(answer(RECALLED)) as stub, make(f"{stub.url}/") as client:
        client.memory().recall("kettle")
        assert stub.asked[0][0] == "/api/v1/memory/recall"


@pytest.mark.parametrize("key", ["", "two words", "line\r\nbreak", "ключ", b"bytes", "x" * 5_000, 5])
def test_a_key_that_cannot_stand_in_a_header_is_refused_without_being_shown(key):
    with pytest.raises(InvalidRequest) as refused:
        Client("http://localhost", api_key=key)
    assert refused.value.field == "api_key"
    assert not key or str(key) not in str(refused.value)


@pytest.mark.parametrize(
    "url",
    [
        None,
        "",
        "localhost:8420",
        "ftp://localhost",
        "http://",
        "http://ex ample",
        "http://münchen.de",
        "http://localhost:port",
        "http://alice:secret@localhost",
        "http://localhost?key=secret",
        "http://localhost#secret",
        5,
    ],
)
def test_an_address_that_is_none_or_holds_more_is_refused(url):
    with pytest.raises(InvalidRequest) as refused:
        Client(url)
    assert refused.value.field == "url"
    assert "secret" not in str(refused.value)


@pytest.mark.parametrize(("field", "name"), [("principal", "a\nb"), ("scope", "x" * 257), ("principal", 5)])
def test_a_name_is_checked_before_anything_is_sent(field, name):
    with Client("http://localhost") as client:
        for make in (client.memory, client.documents):
            with pytest.raises(InvalidRequest) as refused:
                make(**{field: name})
            assert refused.value.field == field


def test_an_application_and_a_transport_are_not_both_given():
    with pytest.raises(InvalidRequest) as refused:
        Client(app=object(), transport=object())
    assert refused.value.field == "app"


def test_every_error_of_a_client_is_a_perdure_error():
    told = answer({"error": {"code": "new_code", "message": "of a newer server"}}, 418)
    with serving(told) as stub, Client(stub.url) as client, pytest.raises(PerdureError, match="newer"):
        client.memory().recall("kettle")
