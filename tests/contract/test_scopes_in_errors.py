"""What is wrong with the scope of a forget is told under the name that it was sent by."""

from __future__ import annotations

import pytest

from perdure import InvalidRequest, Store
from perdure.client import Client
from perdure.contract.wire import error_object
from perdure.mcp.arguments import SCOPES
from perdure.mcp.wording import told_error
from perdure.server.app import create_app
from perdure.server.settings import Settings

BAD = {
    "ids": ["a", ""],
    "subject": "",
    "entity": "",
    "tag": "",
    "text": " ",
    "containing": "",
    "kind": "dream",
    "matching": {},
    "filter": {"valid_from": {"$bad": 1}},
    "session": "",
    "ingested_before": "soon",
    "event_before": "soon",
}


def test_every_scope_that_takes_a_value_is_tried():
    assert BAD.keys() == SCOPES.keys()


@pytest.mark.parametrize("keyword", BAD)
def test_the_field_is_that_of_the_scope_in_a_request_and_of_the_keyword_in_a_call(keyword):
    kind, field = SCOPES[keyword]
    index = "[1]" if keyword == "ids" else ""
    with Store.open(":memory:") as store:
        memory = store.memory()
        with pytest.raises(InvalidRequest) as called:
            memory.forget(**{keyword: BAD[keyword]})
        with pytest.raises(InvalidRequest) as asked:
            memory.call("forget", {"scope": {"kind": kind, field: BAD[keyword]}})
    assert called.value.field == keyword + index
    told = error_object(asked.value)["error"]
    assert told["field"] == f"scope.{field}{index}"
    assert told["message"].startswith(told["field"])
    as_sent = told_error(asked.value, {_camel(keyword): BAD[keyword]})["error"]
    assert as_sent["field"] == keyword + index
    assert as_sent["message"].startswith(keyword + index)
    if keyword == "filter":
        assert told["details"]["place"] == "scope.filter.valid_from.$bad"
        assert as_sent["details"]["place"] == "filter.valid_from.$bad"
        assert "filter.valid_from.$bad" in as_sent["message"]


@pytest.fixture(scope="module")
def client(tmp_path_factory):
    settings = Settings(tmp_path_factory.mktemp("served") / "store", auth=False)
    with Client(app=create_app(settings), retries=0) as made:
        yield made


@pytest.mark.parametrize("keyword", BAD)
@pytest.mark.parametrize("value", [None, {"a": object()}])
def test_a_client_names_the_keyword_that_it_was_called_with(client, keyword, value):
    told = {keyword: BAD[keyword] if value is None else value}
    with Store.open(":memory:") as store, pytest.raises(InvalidRequest) as wanted:
        store.memory().forget(**told)
    with pytest.raises(InvalidRequest) as refused:
        client.memory().forget(**told)
    error = refused.value
    assert (error.field or "").split("[")[0].split(".")[0] == keyword
    assert error.message.startswith(keyword)
    if value is None:
        assert (error.field, error.message) == (wanted.value.field, wanted.value.message)
        assert error.details.get("place") == wanted.value.details.get("place")


def _camel(name: str) -> str:
    first, *rest = name.split("_")
    return first + "".join(word.capitalize() for word in rest)


def test_an_option_of_a_forget_is_no_field_of_its_scope():
    with Store.open(":memory:") as store, pytest.raises(InvalidRequest) as refused:
        store.memory().call("forget", {"scope": {"kind": "tag", "tag": "t"}, "idempotencyKey": ""})
    assert refused.value.field == "idempotency_key"
