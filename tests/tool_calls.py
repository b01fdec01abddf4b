"""One well-formed call of every tool of the Model Context Protocol, in an order that makes each succeed."""

from __future__ import annotations

from typing import Any


def evidence(number: int, kind: str = "manual", **more: Any) -> dict[str, Any]:
    return {"uri": f"chat/{number}", "digest": "d", "kind": kind, "occurred_at": "2024-05-31", **more}


def draft(id_: str, **more: Any) -> dict[str, Any]:
    return {"id": id_, "kind": "semantic", "content": f"what {id_} says", "evidence": [evidence(0)], **more}


def create(id_: str, **more: Any) -> dict[str, Any]:
    return {"operation": "create", "draft": draft(id_, **more)}


def change(operation: str, node_id: str, expected_revision: int, **more: Any) -> dict[str, Any]:
    """Return an operation on a node, with evidence that decides and that the node does not have yet."""
    return {
        "operation": operation,
        "node_id": node_id,
        "expected_revision": expected_revision,
        "evidence": [evidence(expected_revision)],
        **more,
    }


def applying(key: str, *operations: dict[str, Any]) -> dict[str, Any]:
    return {"idempotency_key": key, "occurred_at": "2024-06-01", "operations": list(operations)}


# Every kind of operation, on one node after another.
RELATION = {"kind": "related_to", "target": "hills"}
OPERATIONS: list[dict[str, Any]] = [
    create("lake", labels={"team": "a"}, subject="water", valid_from="2024-01-01"),
    create("hills"),
    change("activate", "lake", 1, actor="ann", reason="read it"),
    change("corroborate", "lake", 2, evidence=[evidence(2, "user_statement", quote="the lake is deep")]),
    change("revise", "lake", 3, content="the lake is very deep", mode="refinement", confidence=0.9),
    change("relabel", "lake", 4, labels={"team": "b"}, clear=["valid_from"]),
    change("add_relation", "lake", 5, relation=RELATION),
    change("add_relation", "hills", 1, relation={"kind": "related_to", "target": "lake"}),
    change("remove_relation", "lake", 6, relation=RELATION),
    change("remove_relation", "hills", 2, relation={"kind": "related_to", "target": "lake"}),
    change("set_status", "lake", 7, status="conflicted"),
    change("resolve", "lake", 8),
]

ADMITTED = {"node_id": "lake", "node_revision": 9, "occurred_at": "2024-06-02"}
TURN = {"source_id": "1", "role": "user", "text": "the kettle is old", "observation_time": "2024-05-31"}

# The values are what the result must hold.
CALLS: list[tuple[str, dict[str, Any], str]] = [
    (
        "remember",
        {"id": "paris", "text": "Ann lives in Paris", "subject": "city", "valid_from": "2020-01-01"},
        "id",
    ),
    (
        "remember",
        {"facts": [{"id": "tea", "text": "Ann drinks tea"}, {"id": "tee", "text": "Ann trinkt"}]},
        "remembered",
    ),
    (
        "remember",
        {"id": "oslo", "text": "Ann lives in Oslo", "valid_from": "2025-01-01", "supersedes": "paris"},
        "id",
    ),
    ("recall", {"query": "where does Ann live", "as_of": "2021-01-01", "k": "3"}, "results"),
    ("explain", {"query": "Oslo", "id": "oslo"}, "explanation"),
    ("history", {"id": "oslo"}, "history"),
    ("correct", {"id": "tea", "new_text": "Ann drinks coffee"}, "id"),
    ("list_facts", {"limit": 2}, "items"),
    ("memory_status", {}, "capabilities"),
    ("get", {"id": "oslo"}, "fact"),
    ("trace", {"query": "Ann"}, "trace"),
    ("annotate", {"id": "oslo", "pinned": "true"}, "fact"),
    ("record_use", {"ids": ["oslo"]}, "counted"),
    ("changes", {}, "items"),
    ("diff", {"known_at": ["2020-01-01", "2999-01-01"]}, "diff"),
    ("remember", {"id": "cafe", "text": "Ann likes the cafe"}, "id"),
    ("merge", {"keep": "oslo", "ids": ["cafe"], "dry_run": True}, "kept"),
    ("end", {"id": "cafe"}, "fact"),
    ("retract", {"id": "tee", "reason": "not said"}, "fact"),
    ("forget", {"ids": ["cafe"], "soft": True}, "forgotten"),
    ("restore", {"ids": ["cafe"]}, "restored"),
    ("unblock", {"ids": ["nobody"]}, "unblocked"),
    ("forget", {"subject": "city"}, "preview"),
    ("apply_forgetting", {}, "forgotten"),
    ("consolidate", {}, "created"),
    ("put_document", {"id": "notes", "text": "the kettle"}, "version"),
    ("get_document", {"id": "notes"}, "document"),
    ("search_documents", {"query": "kettle"}, "results"),
    ("list_documents", {}, "items"),
    ("delete_document", {"id": "notes"}, "deleted"),
    ("search", {"query": "Oslo"}, "results"),
    ("fetch", {"id": "oslo"}, "text"),
    ("apply_changes", applying("all kinds", *OPERATIONS), "nodes"),
    ("apply_changes", applying("as text", create("waits")), "nodes"),
    ("review_queue", {"limit": 5}, "items"),
    ("get_node", {"id": "lake", "revision": 2}, "node"),
    ("node_revisions", {"id": "lake"}, "items"),
    ("query_nodes", {"text": "lake", "labels": {"team": ["b"]}, "statuses": ["active"]}, "items"),
    ("snapshot", {"statuses": ["active", "candidate"]}, "digest"),
    ("node_changes", {"limit": 10}, "items"),
    ("change_token", {}, "token"),
    ("record_admission", {"id": "a1", **ADMITTED}, "recorded"),
    ("record_node_use", {"id": "u1", **ADMITTED}, "recorded"),
    ("access_events", {"id": "lake"}, "items"),
    ("usage_summary", {"id": "lake"}, "admissions"),
    ("forget_nodes", {"ids": ["waits"]}, "forgotten"),
    ("remember_conversation", {"session_id": "s", "version": "1", "turns": [TURN]}, "outcome"),
    ("recall_conversation", {"query": "kettle", "expand": {"max_rounds": 1}}, "context"),
    ("get_conversation", {"session_id": "s", "version": "1"}, "conversation"),
    ("list_conversations", {"session_id": "s"}, "items"),
    ("forget_conversation", {"session_id": "s"}, "preview"),
    ("events", {"type": "created"}, "items"),
]
