"""The shared fixtures through the tools: the same replies, under the names that tools have."""

from __future__ import annotations

import json
from contextlib import nullcontext
from typing import Any

import pytest

from contract.cases import FIXTURES
from contract.stores import caller_of, open_store, shared_store
from contract.test_fixtures import alike, changes_nothing
from perdure.contract.naming import python_names
from perdure.contract.operations import OPERATIONS
from perdure.mcp.arguments import SCOPES, form_for
from perdure.mcp.catalogue import TOOLS
from perdure.mcp.forms import Form, snake_case
from perdure.mcp.service import Service, Settings

WITHHELD = {"purge", "spaces"}  # a tool is for one space of a store, and rewrites none
OWN = {"search", "fetch", "memory_status"}  # shapes of their own
TOOL_OF = {tool.operation: tool for tool in TOOLS if tool.name not in OWN}
KIND_OF = {kind: (name, field) for name, (kind, field) in SCOPES.items()}
ALL = [
    case
    for case in json.loads(FIXTURES.read_text(encoding="utf-8"))
    if case["op"] in TOOL_OF and not WITHHELD & set(case["request"])
]


def renamed(request: Any, form: Form) -> Any:
    """Return a request under the names of arguments, as deep as they are the contract's."""
    if isinstance(request, dict) and form.fields:
        return {
            snake_case(name): renamed(value, form.fields.get(snake_case(name), Form(frozenset())))
            for name, value in request.items()
        }
    if isinstance(request, list) and form.items is not None:
        return [renamed(member, form.items) for member in request]
    return request


def arguments_of(case: dict[str, Any]) -> dict[str, Any] | None:
    """Return the arguments that ask the same; None where tools have no way to ask it."""
    request = dict(case["request"])
    if case["op"] == "forget":
        scope = request.pop("scope", None)
        if not isinstance(scope, dict) or (kind := scope.get("kind")) not in {*KIND_OF, "all"}:
            return None
        fields = {name: value for name, value in scope.items() if name != "kind"}
        name, field = KIND_OF.get(kind, ("all", None))
        if set(fields) != ({field} if field else set()):
            return None
        request[name] = fields[field] if field else True
    return renamed(request, form_for(TOOL_OF[case["op"]], "all"))


def is_spelt(value: Any, form: Form | None) -> bool:
    """Whether a value is a text where the contract takes something else, which tools read and the contract refuses."""
    if isinstance(value, str):
        return form is not None and "string" not in form.kinds
    if isinstance(value, dict) and form is not None and form.fields:
        return any(is_spelt(one, form.fields.get(name)) for name, one in value.items())
    if isinstance(value, list) and form is not None:
        return any(is_spelt(one, form.items) for one in value)
    return False


def named(case: dict[str, Any]) -> str:
    return str(case["name"])


def called(store: Any, name: str, arguments: dict[str, Any]) -> dict[str, Any]:
    result = Service(Settings("all")).call(name, arguments, caller_of(store))
    found = result["structuredContent"]
    assert result["isError"] == ("error" in found)
    assert result["content"][0]["text"]
    return found


def test_every_operation_of_a_space_has_a_tool_or_a_reason_why_it_has_none():
    of_spaces = {one.name for one in OPERATIONS.values() if one.group != "store"}
    by_another = {
        "expandConversation": "recall_conversation goes on by itself with expand",
        "hasDocument": "get_document tells it too",
        "reindex": "it is for who runs the store",
        "embedMissing": "likewise",
    }
    assert of_spaces - {tool.operation for tool in TOOLS} == set(by_another)


ASKED = [case for case in ALL if arguments_of(case) is not None]


def test_most_fixtures_can_be_asked_of_tools():
    assert len(ASKED) > 450
    assert {case["op"] for case in ASKED} == set(TOOL_OF)


@pytest.mark.parametrize("case", ASKED, ids=named)
def test_a_tool_gives_the_reply_of_the_fixture(case):
    tool, arguments, wanted = TOOL_OF[case["op"]], arguments_of(case), case["reply"]
    assert arguments is not None
    form = form_for(tool, "all")
    shared = changes_nothing(case) and not is_spelt(arguments, form)
    with nullcontext(shared_store(case["store"])) if shared else open_store(case["store"]) as store:
        found = called(store, tool.name, arguments)
        if "preview" in found and not arguments.get("dry_run"):
            if "token" not in found["preview"]:  # nothing was there to erase, so nothing was done
                assert wanted["forgotten"] == found["forgotten"] == []
                return
            found = called(store, tool.name, {**arguments, "token": found["preview"]["token"]})
        found.pop("preview", None)
    if is_spelt(arguments, form):
        return  # that a text may spell it is the tools' own, and has tests of its own
    if "error" in wanted and is_judged_here(arguments, form):
        assert found["error"]["code"] == wanted["error"]["code"]
    else:
        assert alike(found, as_told(wanted, arguments))


def as_told(reply: dict[str, Any], arguments: dict[str, Any]) -> dict[str, Any]:
    """Return a reply of the contract with fields named in an error as the tool's arguments are."""
    if "error" not in reply:
        return reply
    named = {f"scope.{field}": name for name, (_, field) in SCOPES.items() if name in arguments}

    def of_the_tool(value: str) -> str:
        for scoped, own in named.items():
            value = value.replace(scoped, own)
        return value

    def told(name: str, value: Any) -> Any:
        if name == "details" and "place" in value:
            return {**value, "place": of_the_tool(value["place"])}
        return python_names(of_the_tool(value)) if name in ("message", "field") else value

    return {"error": {name: told(name, value) for name, value in reply["error"].items()}}


def is_judged_here(arguments: dict[str, Any], form: Form) -> bool:
    """Whether an argument is unknown or missing, which tools say under their own names."""
    missing = any(arguments.get(name) is None for name in form.required)
    return missing or not set(arguments) <= set(form.fields) or has_unknown(arguments, form)


def has_unknown(value: Any, form: Form | None) -> bool:
    if isinstance(value, dict) and form is not None and form.fields:
        missing = any(value.get(name) is None for name in form.required)
        return missing or any(
            name not in form.fields or has_unknown(one, form.fields[name]) for name, one in value.items()
        )
    return isinstance(value, list) and any(has_unknown(one, form and form.items) for one in value)
