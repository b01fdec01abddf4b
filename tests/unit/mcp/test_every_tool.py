"""Every tool is called once with arguments as its schema has them, and answers."""

from __future__ import annotations

import json

import pytest

from perdure import Store
from perdure.contract.limits import HTTP
from perdure.contract.requests import AnyOperation
from perdure.dispatch import Bounds, Caller
from perdure.mcp.catalogue import TOOLS
from perdure.mcp.service import Service, Settings
from perdure.model.namespace import Namespace
from tool_calls import CALLS, OPERATIONS

ADA = Namespace("ada", "")
DO_NOTHING_HERE = {
    "apply_forgetting",
    "consolidate",
    "unblock",
}  # no policy is configured, and nothing is blocked


@pytest.fixture
def call():
    with Store.open(":memory:") as store:
        caller = Caller(store, ADA, None, HTTP, "write", Bounds(ADA.principal, ADA.scope))
        service = Service(Settings("all"))
        yield lambda name, arguments: service.call(name, arguments, caller)


def test_every_tool_has_a_call():
    assert {name for name, _, _ in CALLS} == {tool.name for tool in TOOLS}


def test_every_kind_of_operation_on_nodes_has_a_call():
    kinds = {one.__struct_config__.tag for one in AnyOperation.__args__}
    assert {one["operation"] for one in OPERATIONS} == kinds


@pytest.mark.parametrize("as_text", [False, True], ids=["as it is", "with lists and objects as text"])
def test_every_call_is_answered_with_what_it_asked_for(call, as_text):
    for name, arguments, held in CALLS:
        sent = {
            key: json.dumps(value) if as_text and isinstance(value, list | dict) else value
            for key, value in arguments.items()
        }
        result = call(name, sent)
        assert result["isError"] is False, (name, result["content"])
        found = result["structuredContent"][held]
        assert found not in (None, [], {}) or name in DO_NOTHING_HERE, (name, held)
