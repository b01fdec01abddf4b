"""One well-formed request for every operation, and what a reply leaves to compare."""

from __future__ import annotations

from typing import Any

import httpx

from perdure.contract.operations import OPERATIONS


def requests(id_: str = "f", principal: str = "u1") -> dict[str, dict[str, Any]]:
    """Return a request for each operation that names this fact or document, and this principal where it must."""
    given: dict[str, dict[str, Any]] = {
        "remember": {"text": "told now"},
        "recall": {"query": "told"},
        "trace": {"query": "told"},
        "explain": {"query": "told", "id": id_},
        "correct": {"id": id_, "newText": "corrected"},
        "annotate": {"id": id_, "tags": ["t"]},
        "diff": {"knownAt": ["2026-01-01", "2026-02-01"]},
        "forget": {"scope": {"kind": "ids", "ids": [id_]}},
        "restore": {"ids": [id_]},
        "unblock": {"ids": [id_]},
        "recordUse": {"ids": [id_]},
        "merge": {"keep": id_, "ids": ["other"]},
        "putDocument": {"id": id_, "text": "a page"},
        "searchDocuments": {"query": "told"},
        "erase": {"principal": principal},
        "events": {"id": id_},
        "applyChanges": change(id_, id_, operation="corroborate", nodeId=id_, expectedRevision=1),
        "queryNodes": {"text": "told"},
        "recordAdmission": {"id": id_, "nodeId": id_, "nodeRevision": 1, "occurredAt": 0},
        "recordNodeUse": {"id": id_, "nodeId": id_, "nodeRevision": 1, "occurredAt": 0},
        "forgetNodes": {"ids": [id_]},
        "rememberConversation": conversation(f"mine {id_}", "told now"),
        "recallConversation": {"query": "told"},
        "expandConversation": {
            "context": {"query": "how many", "sources": [], "anchors": [], "dropped": []},
        },
        "conversation": {"sessionId": id_, "version": "1"},
        "conversations": {"sessionId": id_},
        "forgetConversation": {"sessionId": id_},
    }
    named = {
        *("get", "history", "end", "retract", "hasDocument", "getDocument", "deleteDocument"),
        *("node", "revisions", "accessEvents", "usageSummary"),
    }
    return {op: given.get(op, {"id": id_} if op in named else {}) for op in OPERATIONS}


def change(key: str, evidence: str, **operation: Any) -> dict[str, Any]:
    """Return a change set of one operation, or of one node that is made where there is a draft."""
    proof = [{"uri": evidence, "digest": "d", "kind": "manual", "occurredAt": 0, "quote": evidence}]
    if "draft" in operation:
        operation["draft"]["evidence"] = proof
    else:
        operation["evidence"] = proof
    return {"idempotencyKey": key, "occurredAt": 0, "operations": [operation]}


def conversation(session: str, text: str) -> dict[str, Any]:
    turn = {"sourceId": "t", "role": "user", "text": text, "observationTime": 0}
    return {"sessionId": session, "version": "1", "turns": [turn]}


def told(reply: httpx.Response) -> tuple[int, frozenset[tuple[str, str]], bytes]:
    """Return all that a reply tells but the id of its request."""
    headers = frozenset((name, value) for name, value in reply.headers.items() if name != "x-request-id")
    return reply.status_code, headers, reply.content


def code(reply: httpx.Response) -> str:
    return str(reply.json()["error"]["code"])
