"""From addresses to operations."""

from __future__ import annotations

from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perdure.contract.operations import OPERATIONS
from perdure.errors import PerdureError
from perdure.server.failures import NoRoute, WrongMethod
from perdure.server.routes import route


@pytest.mark.parametrize("operation", OPERATIONS.values(), ids=lambda one: one.name)
def test_every_operation_has_its_address_and_takes_post_there(operation):
    assert route("POST", f"{operation.group}/{operation.name}".encode(), b"", {}).operation is operation


@pytest.mark.parametrize(
    "path",
    [
        b"",
        b"memory",
        b"memory/",
        b"memory/nothing",
        b"store/recall",
        b"memory/recall/",
        b"Memory/recall",
        b"documents/",
        b"documents",
        b"memory/..%2Fstore%2Fpurge",
        b"documents/a/b",
    ],
)
def test_there_is_nothing_at_any_other_address(path):
    with pytest.raises(NoRoute):
        route("POST", path, b"", {})


@pytest.mark.parametrize("method", ["GET", "PUT", "DELETE", "PATCH", "HEAD", "OPTIONS", "TRACE"])
def test_an_operation_takes_no_other_method(method):
    with pytest.raises(WrongMethod):
        route(method, b"memory/recall", b"", {})


@given(st.text(st.characters(exclude_categories=["Cs"]), min_size=1))
def test_every_id_can_be_a_document_s_address(id_):
    path = f"documents/{quote(id_, safe='')}".encode()
    found = route("GET", path, b"", {})
    assert (found.operation.name, found.fields) == ("getDocument", {"id": id_})


def test_a_document_may_be_named_as_an_operation_is():
    assert route("GET", b"documents/putDocument", b"", {}).operation.name == "getDocument"


def test_if_match_tells_the_version():
    assert route("PUT", b"documents/a", b"", {b"if-match": b'"3"'}).fields == {"id": "a", "ifVersion": 3}
    assert route("DELETE", b"documents/a", b"", {b"if-match": b"3"}).fields == {"id": "a", "ifVersion": 3}
    assert route("PUT", b"documents/a", b"", {b"if-none-match": b"*"}).fields == {"id": "a", "ifVersion": 0}


@pytest.mark.parametrize("told", [b"*", b'W/"3"', b'"3", "4"', b"-1", b'"x"', b"", b"9" * 30])
def test_an_if_match_that_is_no_version_is_refused_and_never_left_out(told):
    with pytest.raises(PerdureError) as caught:
        route("PUT", b"documents/a", b"", {b"if-match": told})
    assert caught.value.field == "If-Match"


def test_a_delete_purges_only_where_the_address_says_so():
    assert "purge" not in route("DELETE", b"documents/a", b"", {}).fields
    assert route("DELETE", b"documents/a", b"purge=true", {}).purges
    assert not route("DELETE", b"documents/a", b"purge=false", {}).purges


@pytest.mark.parametrize(
    "query",
    [
        b"purge",
        b"purge=",
        b"purge=1",
        b"purge=True",
        b"purge=true&purge=true",
        b"x=1",
        b"purge=true&x=1",
        b"%ff=1",
        b"&&",
    ],
)
def test_a_parameter_that_is_not_known_or_not_clear_is_refused(query):
    with pytest.raises(PerdureError) as caught:
        route("DELETE", b"documents/a", query, {})
    assert caught.value.status == 422


@given(st.sampled_from(["GET", "PUT", "POST", "DELETE"]), st.binary(max_size=40), st.binary(max_size=30))
def test_any_address_is_a_route_or_a_refusal(method, path, query):
    try:
        route(method, path, query, {})
        status = 200
    except PerdureError as error:
        status = error.status
    assert status < 500
