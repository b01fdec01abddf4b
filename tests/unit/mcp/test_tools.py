"""What a client is told of the tools. `python tests/unit/mcp/test_tools.py` writes the committed copies anew."""

from __future__ import annotations

import json
from pathlib import Path

import jsonschema
import pytest

from perdure import Store
from perdure.contract.limits import HTTP
from perdure.dispatch import Caller
from perdure.mcp.service import Service, Settings

COPIES = Path(__file__).parents[3] / "src" / "perdure" / "mcp" / "schema"
EIGHT = ["remember", "recall", "explain", "history", "forget", "correct", "list_facts", "memory_status"]
MORE = [
    *(
        "get",
        "trace",
        "annotate",
        "end",
        "retract",
        "restore",
        "unblock",
        "merge",
        "record_use",
        "changes",
        "diff",
    ),
    *(
        "apply_forgetting",
        "consolidate",
        "put_document",
        "get_document",
        "delete_document",
        "search_documents",
    ),
    "list_documents",
    *(
        "apply_changes",
        "review_queue",
        "get_node",
        "node_revisions",
        "query_nodes",
        "snapshot",
        "node_changes",
    ),
    *(
        "change_token",
        "record_admission",
        "record_node_use",
        "access_events",
        "usage_summary",
        "forget_nodes",
    ),
    *("remember_conversation", "recall_conversation", "get_conversation", "list_conversations"),
    *("forget_conversation", "events", "search", "fetch"),
]


def told(profile: str = "default", role: str = "write", **settings) -> list[dict]:
    with Store.open(":memory:") as store:
        return Service(Settings(profile, **settings)).tools(Caller(store, limits=HTTP, role=role))


def names(*args, **settings) -> list[str]:
    return [tool["name"] for tool in told(*args, **settings)]


def copy_of(profile: str) -> str:
    return json.dumps({"tools": told(profile)}, indent=1, ensure_ascii=False) + "\n"


@pytest.mark.parametrize("profile", ["default", "all"])
def test_the_committed_copy_is_what_clients_are_told(profile):
    assert (COPIES / f"{profile}.json").read_text(encoding="utf-8") == copy_of(profile)


def test_eight_tools_are_offered_by_default_and_take_at_most_ten_thousand_characters():
    assert names() == EIGHT
    assert len(json.dumps({"tools": told()}, ensure_ascii=False)) <= 10_000


def test_all_tools_are_offered_where_that_is_asked_for():
    assert names("all") == [*EIGHT, *MORE]


def test_every_tool_says_when_to_use_it_what_it_gives_and_what_it_may_do():
    for tool in told("all"):
        assert set(tool) == {"name", "description", "inputSchema", "outputSchema", "annotations"}
        assert len(tool["description"]) > 20
        assert set(tool["annotations"]) == {
            "readOnlyHint",
            "destructiveHint",
            "idempotentHint",
            "openWorldHint",
        }
        jsonschema.Draft202012Validator.check_schema(tool["inputSchema"])
        jsonschema.Draft202012Validator.check_schema(tool["outputSchema"])
        assert tool["outputSchema"]["type"] == "object"
        assert tool["inputSchema"]["additionalProperties"] is False


def test_what_reads_is_told_to_read_and_what_erases_to_destroy():
    hints = {tool["name"]: tool["annotations"] for tool in told("all")}
    reading = {name for name, hint in hints.items() if hint["readOnlyHint"]}
    erasing = {name for name, hint in hints.items() if hint["destructiveHint"]}
    assert reading == {
        *("recall", "explain", "history", "list_facts", "memory_status", "get", "trace", "changes", "diff"),
        *("get_document", "search_documents", "list_documents", "search", "fetch", "events"),
        *(
            "review_queue",
            "get_node",
            "node_revisions",
            "query_nodes",
            "snapshot",
            "node_changes",
            "change_token",
        ),
        *("access_events", "usage_summary", "recall_conversation", "get_conversation", "list_conversations"),
    }
    assert erasing == {
        *("forget", "apply_forgetting", "consolidate", "put_document", "delete_document", "forget_nodes"),
        "forget_conversation",
    }


def test_a_server_that_only_reads_offers_only_what_reads():
    for tool in told("all", read_only=True):
        assert tool["annotations"]["readOnlyHint"]
    assert names(read_only=True) == ["recall", "explain", "history", "list_facts", "memory_status"]
    assert names("all", role="read") == names("all", read_only=True)


def test_a_server_that_does_not_forget_offers_nothing_that_erases():
    assert "forget" not in names(may_forget=False)
    assert not any(tool["annotations"]["destructiveHint"] for tool in told("all", may_forget=False))


@pytest.mark.parametrize("tool", ["recall", "explain", "history", "list_facts"])
def test_reads_take_both_times(tool):
    properties = next(one for one in told() if one["name"] == tool)["inputSchema"]["properties"]
    assert {"as_of", "known_at"} <= set(properties)


def test_remember_takes_since_when_until_when_and_what_is_replaced():
    properties = told()[0]["inputSchema"]["properties"]
    assert {"valid_from", "valid_to", "supersedes"} <= set(properties)


def test_the_instructions_tell_the_profile_the_limits_and_that_the_space_is_fixed():
    text = Service(Settings()).instructions()
    for words in ("temporal-memory-v1", "tools default", "as_of", "known_at", "fixed by the server", "k 100"):
        assert words in text
    assert "reads only" in Service(Settings(read_only=True)).instructions()


@pytest.mark.parametrize("profile", ["default", "all"])
@pytest.mark.parametrize("how", [{}, {"read_only": True}, {"may_forget": False}])
def test_the_instructions_name_the_tools_that_are_offered(profile, how):
    text = Service(Settings(profile, **how)).instructions()
    assert f"tools {profile}: {', '.join(names(profile, **how))}. This server" in text


def test_the_instructions_say_what_a_server_spares():
    assert "erases nothing" in Service(Settings(may_forget=False)).instructions()


if __name__ == "__main__":
    COPIES.mkdir(exist_ok=True)
    for one in ("default", "all"):
        (COPIES / f"{one}.json").write_text(copy_of(one), encoding="utf-8")
