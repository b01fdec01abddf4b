"""The requests of the shared fixtures. `python tests/contract/cases.py` writes fixtures.json with the replies.

Every case is asked of a store of its own, "empty" or "full" (or both), as `stores.py` makes them.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from contract.stores import caller_of, open_store
from perdure.contract.wire import error_object
from perdure.errors import PerdureError

FIXTURES = Path(__file__).parent / "fixtures.json"
BOTH = ("empty", "full")
Request = dict[str, Any]

WELL_FORMED: list[tuple[str, Request]] = [
    ("remember", {"text": "Cleo plays the cello", "id": "cello"}),
    ("remember", {"text": "Cleo plays the cello", "subject": None, "tags": None, "metadata": None}),
    ("remember", {"text": "[1, 2]", "metadata": {"007": "1e5", "null": None}, "tags": ["a", "b"]}),
    ("remember", {"text": "Zwölf Boxkämpfer 🥊 jagen Eva", "eventTime": -62135596800000}),
    ("remember", {"text": "Ann lives in Paris", "id": "paris", "subject": "ann/city", "validFrom": 1577836800000,
                  "tags": ["home"]}),
    ("remember", {"text": "Something else", "id": "paris"}),
    ("remember", {"text": "Ann said something to forget", "id": "gone"}),
    ("remember", {"text": "A bike of three numbers", "embedding": [0.5, 0, 1], "idempotencyKey": "once"}),
    ("remember", {"text": "A bike of two numbers", "embedding": [1, 0]}),
    ("remember", {"facts": [{"text": "one of two"}, {"text": "two of two", "validTo": "2030-01-01T00:00:00+02:00"}]}),
    ("remember", {"facts": [{"text": "new", "id": "n1", "supersedes": ["n2"]}, {"text": "old", "id": "n2"}]}),
    ("remember", {"text": "x", "supersedes": ["nobody"]}),
    ("recall", {"query": "where does Ann live"}),
    ("recall", {"query": "where does Ann live", "asOf": "2021-06-01", "k": 2}),
    ("recall", {"query": "where does Ann live", "asOf": 1622505600000, "knownAt": "2026-03-01T12:00:00Z"}),
    ("recall", {"query": "where does Ann live", "knownAt": "2026-03-01T12:00:30Z"}),
    ("recall", {"query": "Ann", "history": "all", "k": 100, "explain": True}),
    ("recall", {"query": "Ann", "history": "historical"}),
    ("recall", {"query": "Ann", "subject": "ann/city"}),
    ("recall", {"query": "Ann", "entity": "Berlin", "tags": [], "pinned": None}),
    ("recall", {"query": "Ann", "tags": ["home"], "history": "all"}),
    ("recall", {"query": "tea", "filter": {"nested.list[1]": {"$gt": 2}}, "history": "all"}),
    ("recall", {"query": "tea", "filter": {"team": {"$in": []}}, "history": "all"}),
    ("recall", {"query": "Ann", "validDuring": ["2021-01-01", "2022-01-01"]}),
    ("recall", {"query": "Ann", "context": True, "minScore": 0.1}),
    ("recall", {"query": "Ann", "context": {"neighbours": [0.5], "actor": 2, "period": 1}}),
    ("recall", {"query": "bike", "embedding": [1, 0, 0.5], "mode": "semantic", "history": "all"}),
    ("recall", {"query": "bike", "embedding": [1, 0, 0.5], "fusion": "rrf",
                "weights": {"lexical": 1, "semantic": 2}, "history": "all"}),
    ("recall", {"query": "Paris", "spaces": [{"principal": "bob", "scope": "work"}, "home"], "history": "all"}),
    ("recall", {"query": "Ann", "maxBytes": 700}),
    ("recall", {"query": "咖啡"}),
    ("recall", {"query": "会議"}),
    ("recall", {"query": "nothing of the kind"}),
    ("recall", {"query": "'; DROP TABLE facts; -- C++ foo* NEAR(a b) \" ( {} :*"}),
    ("trace", {"query": "Ann", "k": 1}),
    ("explain", {"query": "Ann", "id": "berlin"}),
    ("explain", {"query": "Ann", "id": "paris", "asOf": "2026-01-01"}),
    ("explain", {"query": "Ann", "id": "nobody"}),
    ("get", {"id": "paris"}),
    ("get", {"id": "paris", "asOf": "2021-01-01", "knownAt": "2026-03-01T12:00:00Z"}),
    ("get", {"id": "secret"}),
    ("get", {"id": "nobody"}),
    ("history", {"id": "berlin"}),
    ("history", {"id": "nobody", "asOf": None}),
    ("list", {}),
    ("list", {"order": "-importance", "limit": 2}),
    ("list", {"hidden": True}),
    ("list", {"status": "superseded", "subject": "ann/city"}),
    ("list", {"filter": {"@kind": "semantic"}, "knownAt": "2026-03-01T12:30:00Z"}),
    ("correct", {"newText": "Ann lives in Bern", "id": "berlin", "clear": ["importance", "entities"]}),
    ("correct", {"newText": "Ann lives in Bern", "containing": "berlin", "newId": "bern"}),
    ("correct", {"newText": "x", "containing": "nothing of the kind"}),
    ("correct", {"newText": "x", "containing": "ann"}),
    ("annotate", {"id": "berlin", "tags": ["city"], "importance": 0.1, "pinned": True}),
    ("annotate", {"id": "tea", "clear": ["kind", "metadata"]}),
    ("annotate", {"id": "nobody", "pinned": True}),
    ("end", {"id": "berlin", "at": "2026-02-01"}),
    ("retract", {"id": "berlin", "reason": "never true"}),
    ("changes", {}),
    ("changes", {"limit": 3}),
    ("diff", {"knownAt": ["2026-03-01T12:00:30Z", "2026-03-01T13:00:00Z"]}),
    ("forget", {"scope": {"kind": "ids", "ids": ["paris", "nobody"]}}),
    ("forget", {"scope": {"kind": "subject", "subject": "ann/city"}, "dryRun": True}),
    ("forget", {"scope": {"kind": "entity", "entity": "Ann"}, "soft": True}),
    ("forget", {"scope": {"kind": "ingestedBefore", "before": "2026-03-01T12:02:00Z"}, "dryRun": True}),
    ("forget", {"scope": {"kind": "eventBefore", "before": 0}}),
    ("forget", {"scope": {"kind": "matching", "metadata": {"team": "a"}}, "dryRun": True}),
    ("forget", {"scope": {"kind": "tag", "tag": "home"}, "dryRun": True, "includeChain": True}),
    ("forget", {"scope": {"kind": "text", "text": "Ann  lives in\nParis"}, "dryRun": True}),
    ("forget", {"scope": {"kind": "containing", "containing": "PARIS"}, "dryRun": True}),
    ("forget", {"scope": {"kind": "kind", "factKind": "semantic"}, "dryRun": True}),
    ("forget", {"scope": {"kind": "filter", "filter": {"cups": {"$gte": 3}}}, "dryRun": True}),
    ("forget", {"scope": {"kind": "all"}, "dryRun": True}),
    ("restore", {"ids": ["secret", "nobody"]}),
    ("unblock", {"ids": ["gone"], "texts": ["Ann said something to forget"]}),
    ("applyForgetting", {}),
    ("consolidate", {}),
    ("recordUse", {"ids": ["berlin", "nobody"], "contextId": "turn-1"}),
    ("recordUse", {"ids": ["berlin"], "contextId": "turn-2"}),
    ("merge", {"keep": "berlin", "ids": ["bike-2"], "dryRun": True}),
    ("merge", {"keep": "berlin", "ids": ["nobody"]}),
    ("capabilities", {}),
    ("capabilities", {"contractVersion": 1}),
    ("putDocument", {"id": "notes", "text": "Notes on cups", "ifVersion": 2}),
    ("putDocument", {"id": "notes", "text": "Notes on cups", "ifVersion": 7}),
    ("putDocument", {"id": "new", "text": "A document", "metadata": {"a": {"b": [1]}}, "ifVersion": 0}),
    ("hasDocument", {"id": "notes"}),
    ("getDocument", {"id": "notes"}),
    ("getDocument", {"id": "nobody"}),
    ("deleteDocument", {"id": "notes", "ifVersion": 2}),
    ("deleteDocument", {"id": "nobody"}),
    ("searchDocuments", {"query": "kettle", "k": 1}),
    ("searchDocuments", {"query": "Ann", "filter": {"team": "a"}}),
    ("listDocuments", {"limit": 2}),
    ("spaces", {}),
    ("erase", {"principal": "bob", "dryRun": True}),
    ("erase", {"principal": "nobody", "dryRun": True}),
]  # fmt: skip

MALFORMED: list[tuple[str, Request]] = [
    ("nothing", {}),
    ("recall", {}),
    ("recall", {"query": None}),
    *(("recall", {"query": query}) for query in ("", "   ", "\n\t", "\u200b")),
    ("recall", {"query": 5}),
    *(("recall", {"query": "Ann", "k": k}) for k in (0, -1, 101, 10**9, 10**30, 2.5, 5.0, True, "5", [])),
    *(("list", {"limit": limit}) for limit in (0, -1, 10**9, 2.5, True, "5")),
    *(("changes", {"limit": limit}) for limit in (0, -1, 10**9, 2.5, True, "5")),
    *(("listDocuments", {"limit": limit}) for limit in (0, 2.5, "5")),
    *((op, {**rest, "asOff": 1}) for op, rest in (
        ("recall", {"query": "Ann"}), ("trace", {"query": "Ann"}), ("explain", {"query": "Ann", "id": "berlin"}),
        ("get", {"id": "berlin"}), ("history", {"id": "berlin"}), ("list", {}), ("remember", {"text": "x"}),
        ("searchDocuments", {"query": "tea"}), ("spaces", {}), ("diff", {"knownAt": [1, 2]}))),
    *((op, {**rest, name: "banana"}) for name in ("asOf", "knownAt") for op, rest in (
        ("recall", {"query": "Ann"}), ("trace", {"query": "Ann"}), ("explain", {"query": "Ann", "id": "berlin"}),
        ("get", {"id": "berlin"}), ("history", {"id": "berlin"}), ("list", {}))),
    *(("get", {"id": "berlin", "asOf": moment}) for moment in (
        True, 2.5, [], {}, "0000-01-01", "10000-01-01", -62135596800001, 253402300800000, 10**30, "")),
    ("remember", {"text": ""}),
    ("remember", {"text": "  \n "}),
    ("remember", {"text": 5}),
    ("remember", {"text": "x" * 65_537}),
    ("remember", {"text": "w " * 4_097}),
    ("remember", {"text": "lone \ud800 surrogate"}),
    *(("remember", {"text": "x", "id": id_}) for id_ in ("", "a\u0000b", "x" * 257, "perdure:mine", 5, ["a"])),
    *(("remember", {"text": "x", name: value}) for name, value in (
        ("subject", ""), ("subject", 5), ("entities", "Ann"), ("entities", [5]), ("entities", [""]),
        ("tags", "home"), ("tags", {"a": 1}), ("kind", "dream"), ("kind", 1), ("importance", 1.5),
        ("importance", -0.1), ("importance", True), ("importance", "high"), ("pinned", "yes"), ("pinned", 1),
        ("reassert", "no"), ("metadata", []), ("metadata", "a"), ("metadata", {"perdure": 1}),
        ("metadata", {"n": 2**53}), ("metadata", {"big": "x" * 65_536}), ("source", "chat"),
        ("source", {"nothing": 1}), ("source", {"position": "4"}), ("embedding", []), ("embedding", [0, 0]),
        ("embedding", ["a"]), ("embedding", [True]), ("embedding", "AAAA"), ("embedding", [1e39]),
        ("supersedes", "paris"), ("supersedes", [None]), ("idempotencyKey", ""), ("idempotencyKey", "k" * 257),
        ("eventTime", "yesterday"), ("validTo", "2020-13-01"))),
    ("remember", {"text": "x", "validFrom": "2020-01-01", "validTo": "2020-01-01"}),
    ("remember", {"text": "x", "id": "self", "supersedes": ["self"]}),
    ("remember", {"facts": []}),
    ("remember", {"facts": "x"}),
    ("remember", {"facts": [5]}),
    ("remember", {"facts": [{"text": "good"}, {"text": ""}]}),
    ("remember", {"facts": [{"text": "good"}, {"text": "x", "bogus": 1}]}),
    ("remember", {"facts": [{"text": "good"}], "text": "also"}),
    ("remember", {"facts": [{"text": "x"}] * 1_001}),
    *(("recall", {"query": "Ann", name: value}) for name, value in (
        ("history", "some"), ("mode", "meaning"), ("fusion", "max"), ("weights", {"lexical": -1, "semantic": 1}),
        ("weights", {"lexical": 0, "semantic": 0}), ("weights", {"words": 1}), ("filter", []),
        ("filter", {"a": {"$foo": 1}}), ("filter", {"a": {"$gt": 1, "b": 2}}), ("filter", {"$eq') OR 1=1 --": 1}),
        ("tags", "home"), ("kind", "dream"), ("pinned", "yes"), ("minScore", -1), ("minScore", "0.5"),
        ("candidateLimit", 0), ("candidateLimit", 5_000), ("embedding", []), ("mode", "semantic"),
        ("context", "yes"), ("context", {"nothing": 1}), ("validDuring", ["2021-01-01"]),
        ("validDuring", ["2022-01-01", "2021-01-01"]), ("spaces", "home"), ("spaces", []), ("spaces", [5]),
        ("maxBytes", 0), ("explain", "yes"), ("subject", ""), ("entity", ""))),
    ("recall", {"query": "x" * 16_385}),
    ("explain", {"query": "Ann"}),
    ("explain", {"query": "Ann", "id": ""}),
    ("explain", {"query": "Ann", "id": "berlin", "spaces": ["home"]}),
    ("get", {}),
    ("get", {"id": 5}),
    ("get", {"id": "a\nb"}),
    ("list", {"order": "size"}),
    ("list", {"status": "gone"}),
    ("list", {"cursor": "!!"}),
    ("list", {"cursor": 5}),
    ("changes", {"since": "!!"}),
    ("correct", {"newText": "x"}),
    ("correct", {"newText": "x", "id": "berlin", "text": "y"}),
    ("correct", {"newText": "x", "id": "berlin", "clear": ["text"]}),
    ("correct", {"newText": "x", "id": "berlin", "clear": ["kind"], "kind": "semantic"}),
    ("annotate", {"id": "berlin"}),
    ("annotate", {"id": "berlin", "clear": "kind"}),
    ("end", {"id": "berlin", "at": "1999-01-01"}),
    ("end", {"id": "nobody"}),
    ("retract", {"id": "nobody"}),
    ("diff", {}),
    ("diff", {"knownAt": ["2026-03-02", "2026-03-01"]}),
    *(("forget", {"scope": scope}) for scope in (
        None, {}, [], "all", {"kind": "everything"}, {"kind": 5}, {"kind": "ids"}, {"kind": "ids", "ids": "paris"},
        {"kind": "ids", "ids": [""]}, {"kind": "subject", "subject": ""}, {"kind": "containing", "containing": " "},
        {"kind": "matching", "metadata": {}}, {"kind": "filter", "filter": {}}, {"kind": "all", "all": True},
        {"kind": "tag", "tag": "home", "subject": "x"}, {"ids": ["paris"]})),
    ("forget", {}),
    ("forget", {"scope": {"kind": "all"}, "dryRun": "false"}),
    ("forget", {"scope": {"kind": "all"}, "soft": True, "purge": True}),
    *((op, {**rest, "ids": ["paris"] * 1_001}) for op, rest in (
        ("restore", {}), ("recordUse", {}), ("unblock", {}), ("merge", {"keep": "berlin"}))),
    ("forget", {"scope": {"kind": "ids", "ids": ["paris"] * 1_001}}),
    ("restore", {"ids": "secret"}),
    ("unblock", {}),
    ("applyForgetting", {"dryRun": "no"}),
    ("recordUse", {"ids": "berlin"}),
    ("merge", {"keep": "berlin", "ids": []}),
    ("merge", {"keep": "berlin", "ids": ["berlin"]}),
    ("capabilities", {"contractVersion": 2}),
    ("capabilities", {"contractVersion": "1"}),
    ("putDocument", {"id": "notes"}),
    ("putDocument", {"id": "notes", "text": " "}),
    ("putDocument", {"id": "notes", "text": "x", "ifVersion": -1}),
    ("putDocument", {"id": "berlin", "text": "a fact has this id"}),
    ("getDocument", {"id": ""}),
    ("deleteDocument", {"id": "notes", "ifVersion": 1}),
    ("searchDocuments", {"query": " "}),
    ("searchDocuments", {"query": "tea", "k": 101}),
    ("listDocuments", {"cursor": "\u0000"}),
    ("erase", {}),
    ("erase", {"principal": 5}),
    ("reindex", {}),
    ("reindex", {"profile": "klingon.v1"}),
    ("embedMissing", {}),
    ("embedMissing", {"limit": 0}),
]  # fmt: skip


def cases() -> Iterator[tuple[str, str, str, Request]]:
    """Yield name, store, operation and request of every case."""
    for kind, group in (("good", WELL_FORMED), ("bad", MALFORMED)):
        for place, (op, request) in enumerate(group):
            for store in BOTH:
                yield f"{kind}-{place:03}-{op}-{store}", store, op, request


def ask(store: str, op: str, request: Request) -> Request:
    """Return the reply, or the error reply, that the embedded engine gives."""
    with open_store(store) as opened:
        try:
            return caller_of(opened).call(op, request)
        except PerdureError as error:
            return error_object(error)


def written() -> list[Request]:
    """Return all fixtures with what the engine answers now."""
    return [
        {"name": name, "store": store, "op": op, "request": request, "reply": ask(store, op, request)}
        for name, store, op, request in cases()
    ]


if __name__ == "__main__":
    content = json.dumps(written(), indent=None, separators=(",", ":")).replace('},{"name"', '},\n{"name"')
    FIXTURES.write_text(content + "\n", encoding="utf-8")
    sys.stdout.write(f"{FIXTURES.name}: {len(list(cases()))} cases\n")
