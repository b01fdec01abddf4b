"""Everything that a store answers, as plain JSON: what two builds must agree on."""

from __future__ import annotations

import json
from hashlib import blake2b
from typing import Any

from perdure import ManualClock, Store
from perdure.contract.wire import changes_object, explanation_object, fact_object, hit_object, page_object
from perdure.model.namespace import Namespace

NOW = 1_720_000_000_000
MOMENTS = (None, 1_600_000_000_000, 1_705_000_000_000)  # as_of; None is the present
KNOWN = (None, 1_700_000_400_000)
QUERIES = ("kettle", "where does Ada live", "blue teapot in the kitchen", "湯沸かし", "ledger")
EXPLAINED = ("ada-1", "ada-2", "kettle", "closed")
LONG = 300  # characters; of longer texts the digest is kept
DIMENSION = 8  # of the vectors in a kept store that has any
WAYS = ({"mode": "semantic"}, {"mode": "hybrid"}, {"fusion": "rrf"})
HISTORIES = ("current", "all", "historical")


def open_at_now(path: Any) -> Store:
    """Open the store with a clock that stands still, so that "the present" is the same for ever."""
    return Store.open(path, clock=ManualClock(NOW))


def answers(store: Store) -> dict[str, Any]:
    """Return what the store answers to every kind of read, floats as hexadecimal text, long texts as digests."""
    stats = store.stats()
    told = {
        "stats": {name: getattr(stats, name) for name in ("backend", "spaces", "facts", "records")},
        "spaces": [_answers_of(store, name) for name in store.spaces()],
    }
    return _exact(told)


def without_the_feed(told: dict[str, Any]) -> dict[str, Any]:
    """Return the answers that survive a purge: the feed starts anew, and records are others."""
    return {
        "stats": {name: value for name, value in told["stats"].items() if name != "records"},
        "spaces": [
            {name: value for name, value in space.items() if name != "changes"} for space in told["spaces"]
        ],
    }


def without_cursor(part: dict[str, Any]) -> dict[str, Any]:
    """Return a part of the feed without its cursor, which is for the build alone that gave it."""
    return {name: value for name, value in part.items() if name != "cursor"}


def _answers_of(store: Store, name: Namespace) -> dict[str, Any]:
    memory, documents = store.memory(name.principal, name.scope), store.documents(name.principal, name.scope)
    pages = [memory.list(as_of=moment, known_at=known, limit=1000) for moment in MOMENTS for known in KNOWN]
    ids = sorted({fact.id for page in pages for fact in page.items})
    hidden = memory.list(hidden=True)
    recalls = [
        memory.recall(query, as_of=moment, known_at=known, history=history, explain=True)
        for query in QUERIES
        for moment in MOMENTS
        for known in KNOWN
        for history in HISTORIES
    ]
    explained = [
        explanation_object(memory.explain(QUERIES[0], id_, as_of=moment, known_at=known))
        for id_ in EXPLAINED
        for moment in MOMENTS
        for known in KNOWN
        if id_ in ids and memory.get(id_, as_of=moment, known_at=known) is not None
    ]
    first = memory.changes(limit=3)
    changes = [first, memory.changes(since=first.cursor, limit=1000)]
    listed = documents.list(limit=1000)
    texts = [documents.get(id_) for id_ in sorted({*ids, *(document.id for document in listed.items)})]
    return {
        "name": [name.principal, name.scope],
        "lists": [page_object(page, fact_object) for page in pages],
        "hidden": page_object(hidden, fact_object),
        "gets": [_fact(memory.get(id_)) for id_ in [*ids, "gone", "nobody"]],
        "histories": [[fact_object(fact) for fact in memory.history(id_)] for id_ in ids],
        "recalls": [[{**hit_object(hit), "fact": hit.id} for hit in hits] for hits in recalls],
        "explained": explained,
        "documents": [
            None if text is None else [text.id, text.text, text.metadata, text.version] for text in texts
        ],
        "units": [[hit.id, hit.unit, hit.text, hit.score] for hit in documents.search("kettle ledger")],
        "meaning": _by_meaning(memory, documents),
        "changes": [without_cursor(changes_object(part)) for part in changes],
    }


def _by_meaning(memory: Any, documents: Any) -> Any:
    index = documents.index.vectors()
    if not index.count:
        return None
    query = [1.0 - place / 4 for place in range(DIMENSION)]
    hits = [memory.recall("kettle map", embedding=query, history="all", **way) for way in WAYS]
    found = documents.search("kettle map", embedding=query)
    units = [(one.id, unit) for one in documents.list(limit=1000).items for unit in range(2)]
    vectors = [documents.index.vector(id_, unit) for id_, unit in units]
    return {
        "index": [index.count, index.missing, index.dimension, index.models],
        "hits": [[[hit.id, hit.score] for hit in some] for some in hits],
        "units": [[hit.id, hit.unit, hit.score] for hit in found],
        "vectors": [None if vector is None else vector.tobytes().hex() for vector in vectors],
    }


def _fact(fact: Any) -> Any:
    return None if fact is None else fact_object(fact)


def _exact(value: Any) -> Any:
    if isinstance(value, str) and len(value) > LONG:
        return f"{len(value)} characters, {blake2b(value.encode(), digest_size=16).hexdigest()}"
    if isinstance(value, float):
        return value.hex()
    if isinstance(value, dict):
        return {name: _exact(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [_exact(item) for item in value]
    return value


def as_json(told, expected):
    """Return the answers as JSON, without the fields that later builds have added to what is expected."""
    return _like(json.loads(json.dumps(told)), expected)


def _like(told, expected):
    if isinstance(told, dict) and isinstance(expected, dict):
        return {name: _like(told[name], expected[name]) for name in expected if name in told}
    if isinstance(told, list) and isinstance(expected, list) and len(told) == len(expected):
        return [_like(one, other) for one, other in zip(told, expected, strict=True)]
    return told
