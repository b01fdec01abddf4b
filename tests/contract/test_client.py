"""The shared fixtures through both clients and through the twins for asyncio: the replies are those of the engine.

The clients call the real server in this process. Cases that are refused or that read share one server.
"""

from __future__ import annotations

import asyncio
import json
import shutil
from collections.abc import Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import Any

import msgspec
import pytest

from contract.cases import FIXTURES, changes_nothing
from contract.stores import NOW, PRINCIPAL, SCOPE, SECRET, STORY, open_store
from perdure import AsyncStore, ManualClock, Namespace, PerdureError
from perdure.client import Client
from perdure.contract import wire
from perdure.contract import wire_governed as governed
from perdure.contract.limits import HTTP
from perdure.contract.operations import OPERATIONS
from perdure.contract.requests import ApplyChanges, ConversationContextInput
from perdure.contract.requests import told as told_fields
from perdure.contract.wire import error_object
from perdure.conversation.calling import context_of
from perdure.model.conversation import (
    ConversationContextLimits,
    ConversationInput,
    ConversationRecallOptions,
    ConversationTurn,
)
from perdure.model.node import AccessEvent
from perdure.model.node_change import ChangeToken
from perdure.model.node_snapshot import SnapshotRequest
from perdure.repository.calling import change_set_of
from perdure.server.app import create_app
from perdure.server.settings import Opening, Settings
from unit.client.waiting import WaitingClient

ALL = json.loads(FIXTURES.read_text(encoding="utf-8"))
CASES = [case for case in ALL if case["op"] in OPERATIONS]
PLAIN = [case for case in CASES if OPERATIONS[case["op"]].group != "store"]
TOLD = [case for case in CASES if case["name"].startswith("good")]
RIGHT = [case for case in TOLD if "error" not in case["reply"]]
MOMENTS = {"eventTime", "validFrom", "validTo", "asOf", "knownAt", "at"}
NAMES = {
    "putDocument": "put",
    "hasDocument": "has",
    "getDocument": "get",
    "deleteDocument": "delete",
    "searchDocuments": "search",
    "listDocuments": "list",
    "applyForgetting": "apply_forgetting",
    "recordUse": "record_use",
    "applyChanges": "apply",
    "node": "get",
    "queryNodes": "query",
    "nodeChanges": "changes",
    "changeToken": "change_token",
    "recordAdmission": "record_admission",
    "recordNodeUse": "record_use",
    "accessEvents": "access_events",
    "usageSummary": "usage",
    "reviewQueue": "review_queue",
    "storeEvents": "events",
    "forgetNodes": "forget",
    "rememberConversation": "remember",
    "recallConversation": "recall",
    "expandConversation": "expand",
    "conversation": "get",
    "conversations": "list",
    "forgetConversation": "forget",
}


def writes(case: dict[str, Any]) -> bool:
    return OPERATIONS[case["op"]].role != "read" and "error" not in case["reply"]


class Servers:
    """Servers in this process over copies of the two stores; one that was not written to is used again."""

    def __init__(self, folder):
        self._folder, self._shared, self._count = folder, {}, 0
        self._clocks = {}
        for kind in ("empty", "full"):
            with open_store(kind, folder / kind) as store:
                self._clocks[kind] = store.clock.now()

    @contextmanager
    def client(self, case, make: Callable[..., Any]) -> Iterator[Any]:
        if writes(case):
            with self._made(case["store"], make) as client:
                yield client
            return
        if case["store"] not in self._shared:
            made = self._made(case["store"], make)
            self._shared[case["store"]] = made.__enter__(), made
        yield self._shared[case["store"]][0]

    def close(self):
        for _, made in self._shared.values():
            made.__exit__(None, None, None)

    @contextmanager
    def _made(self, kind, make):
        self._count += 1
        place = self._folder / f"{kind}-{self._count}"
        shutil.copytree(self._folder / kind, place)
        settings = Settings(place, auth=False, opening=Opening(secret=SECRET))
        app = create_app(settings, clock=ManualClock(self._clocks[kind]))
        with make(app=app, retries=0) as client:
            yield client
        shutil.rmtree(place)


@pytest.fixture(scope="module")
def servers(tmp_path_factory):
    made = Servers(tmp_path_factory.mktemp("servers"))
    yield made
    made.close()


def answered(call: Callable[[], dict[str, Any]]) -> dict[str, Any]:
    try:
        return call()
    except PerdureError as error:
        return error_object(error)


def without_limits(reply: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in reply.items() if name != "limits"}


def space_of(client: Any, case: dict[str, Any]) -> Any:
    group = OPERATIONS[case["op"]].group
    return client.store if group == "store" else getattr(client, group)(PRINCIPAL, SCOPE)


# Requests as they are


@pytest.mark.parametrize("case", PLAIN, ids=lambda case: case["name"])
def test_a_plain_request_gets_the_reply_of_the_fixture(servers, case):
    with servers.client(case, Client) as client:
        space = space_of(client, case)
        found = answered(lambda: space.call(case["op"], case["request"]))
    assert json.dumps(without_limits(found)) == json.dumps(case["reply"])


@pytest.mark.slow
@pytest.mark.parametrize("store", ["empty", "full"])
def test_the_twins_for_asyncio_give_the_replies_of_the_fixtures(store):
    @asynccontextmanager
    async def opened():
        with open_store(store) as held:
            async with await AsyncStore.open(log=held.log, clock=held.clock) as twin:
                yield twin

    async def is_wrong(case, twin):
        kind = OPERATIONS[case["op"]].group
        space = await getattr(twin, kind)(PRINCIPAL, SCOPE)
        try:
            found = await space.call(case["op"], case["request"])
        except PerdureError as error:
            found = error_object(error)
        return json.dumps(found) != json.dumps(case["reply"])

    async def all_wrong():
        found = []
        async with opened() as read:
            for case in (case for case in PLAIN if case["store"] == store):
                # The fixtures have the limits of HTTP; a memory in this process takes more, and changes by it.
                if changes_nothing(case) and not beyond_http(case):
                    found += [case["name"]] * await is_wrong(case, read)
                    continue
                async with opened() as written:
                    found += [case["name"]] * await is_wrong(case, written)
        return found

    assert set(asyncio.run(all_wrong())) <= {case["name"] for case in PLAIN if beyond_http(case)}


def beyond_http(case: dict[str, Any]) -> bool:
    """Whether a limit of HTTP that is stricter than the engine's refuses the request, or is named by its refusal."""
    request = case["request"]
    inner = request.get("scope")
    lists = [*request.values(), *(inner.values() if isinstance(inner, dict) else ())]
    return (
        any(isinstance(value, list) and len(value) > HTTP.batch_max for value in lists)
        or len(str(request.get("query", ""))) > HTTP.query_bytes_max
        or (type(k := request.get("k")) is int and not 1 <= k <= HTTP.k_max)
    )


# The methods


def snake(name: str) -> str:
    return "".join("_" + c.lower() if c.isupper() else c for c in name)


def arguments(case: dict[str, Any]) -> dict[str, Any]:
    """Return the arguments in Python of a request that is well-formed."""
    request = {name: value for name, value in case["request"].items() if value is not None}
    if (made := as_values(OPERATIONS[case["op"]].name, request)) is not None:
        return made
    scope, clear = request.pop("scope", None), request.pop("clear", ())
    told = {snake(name): value for name, value in request.items()}
    if "facts" in told:
        told["facts"] = [{snake(name): value for name, value in fact.items()} for fact in told["facts"]]
    if isinstance(scope, dict):
        kind = scope["kind"]
        (value,) = [value for name, value in scope.items() if name != "kind"] or [True]
        told[snake(kind)] = value
    return {**told, **{snake(name): None for name in clear}}


def as_values(op: str, request: dict[str, Any]) -> dict[str, Any] | None:
    """Return the arguments of methods that take values of the model; None for all others."""
    match op:
        case "applyChanges":
            return {"change_set": change_set_of(msgspec.convert(request, ApplyChanges))}
        case "recordAdmission" | "recordNodeUse":
            return {"event": AccessEvent(**named_in_python(request))}
        case "snapshot":
            return {"request": SnapshotRequest(**named_in_python(request))}
        case "nodeChanges":
            since = request.pop("since", None)
            token = None if since is None else ChangeToken(**named_in_python(since))
            return {"since": token, **request}
        case "rememberConversation":
            turns = tuple(ConversationTurn(**named_in_python(turn)) for turn in request.pop("turns"))
            return {"conversation": ConversationInput(turns=turns, **named_in_python(request))}
        case "recallConversation":
            query, expand = request.pop("query"), request.pop("expand", None)
            told = named_in_python(request)
            if expand is not None:
                told["expand"] = ConversationContextLimits(**named_in_python(expand))
            return {"query": query, "options": ConversationRecallOptions(**told)}
        case "expandConversation":
            limits = request.get("limits")
            return {
                "context": context_of(
                    told_fields(msgspec.convert(request["context"], ConversationContextInput))
                ),
                "limits": None if limits is None else ConversationContextLimits(**named_in_python(limits)),
            }
    return None


def named_in_python(told: dict[str, Any]) -> dict[str, Any]:
    return {snake(name): value for name, value in told.items()}


def method(case: dict[str, Any]) -> str:
    return "remember_many" if "facts" in case["request"] else NAMES.get(case["op"], case["op"])


def shown(case: dict[str, Any], answer: Any) -> dict[str, Any]:
    """Return an answer as it is on the wire."""
    op = case["op"]
    plain: dict[str, Callable[[Any], Any]] = {
        "remember": wire.remembered_object,
        "recall": lambda hits: {"results": [wire.hit_object(hit) for hit in hits]},
        "trace": lambda trace: {"trace": wire.trace_object(trace)},
        "explain": lambda explanation: {"explanation": wire.explanation_object(explanation)},
        "get": lambda fact: {"fact": None if fact is None else wire.fact_object(fact)},
        "history": lambda facts: {"history": [wire.fact_object(fact) for fact in facts]},
        "list": lambda page: wire.page_object(page, wire.fact_object),
        "correct": wire.remembered_object,
        "changes": wire.changes_object,
        "diff": lambda diff: {"diff": wire.diff_object(diff)},
        "forget": wire.forgotten_object,
        "applyForgetting": wire.forgotten_object,
        "restore": lambda ids: {"restored": list(ids)},
        "unblock": lambda count: {"unblocked": count},
        "consolidate": wire.consolidated_object,
        "recordUse": lambda count: {"counted": count},
        "merge": wire.merged_object,
        "capabilities": wire.capabilities_object,
        "putDocument": wire.put_object,
        "hasDocument": lambda found: {"exists": found},
        "getDocument": lambda found: {"document": None if found is None else wire.document_object(found)},
        "deleteDocument": wire.deleted_object,
        "searchDocuments": lambda hits: {"results": [wire.document_hit_object(hit) for hit in hits]},
        "listDocuments": lambda page: wire.page_object(page, wire.document_object),
        "spaces": lambda names: {"spaces": [wire.space_object(name) for name in names]},
        "erase": wire.erased_object,
        "applyChanges": governed.result_object,
        "node": lambda node: {"node": None if node is None else governed.node_object(node)},
        "snapshot": governed.snapshot_object,
        "nodeChanges": governed.node_changes_object,
        "changeToken": lambda token: {"token": governed.token_object(token)},
        "recordAdmission": lambda nothing: {"recorded": nothing is None},
        "recordNodeUse": lambda nothing: {"recorded": nothing is None},
        "usageSummary": governed.usage_object,
        "forgetNodes": wire.forgotten_object,
        "rememberConversation": governed.conversation_remembered_object,
        "recallConversation": lambda context: {"context": governed.context_object(context)},
        "expandConversation": lambda context: {"context": governed.context_object(context)},
        "conversation": lambda found: {
            "conversation": None if found is None else governed.conversation_object(found)
        },
        "forgetConversation": wire.forgotten_object,
    }
    pages = {
        "revisions": governed.node_object,
        "queryNodes": governed.node_hit_object,
        "reviewQueue": governed.node_object,
        "accessEvents": governed.access_event_object,
        "conversations": governed.conversation_entry_object,
        "events": governed.event_object,
        "storeEvents": governed.event_object,
    }
    if op in pages:
        return wire.page_object(answer, pages[op])
    if op in ("annotate", "end", "retract"):
        return {"fact": wire.fact_object(answer)}
    if "facts" in case["request"]:
        return {"remembered": [wire.remembered_object(reply) for reply in answer]}
    return plain[op](answer)


def asked(case: dict[str, Any], client: Any) -> dict[str, Any]:
    space = space_of(client, case)
    return answered(lambda: shown(case, getattr(space, method(case))(**arguments(case))))


@pytest.mark.parametrize("case", TOLD, ids=lambda case: case["name"])
def test_a_method_gives_the_values_that_the_reply_of_the_fixture_tells(servers, case):
    wanted = dict(case["reply"])
    if case["op"] == "trace" and "trace" in wanted:
        wanted["trace"] = {**wanted["trace"], "options": {"k": 1}}
    with servers.client(case, Client) as client:
        found = asked(case, client)
    assert json.dumps(found) == json.dumps(wanted)


def test_the_client_for_asyncio_gives_the_same_values(tmp_path):
    servers, wrong = Servers(tmp_path), []
    for case in RIGHT[::3]:
        with servers.client(case, WaitingClient) as client:
            if json.dumps(asked(case, client)) != json.dumps(case["reply"]):
                wrong.append(case["name"])
    servers.close()
    assert wrong == []


def test_every_operation_of_the_fixtures_is_asked_by_its_method():
    assert {case["op"] for case in RIGHT} == {case["op"] for case in ALL if "error" not in case["reply"]}


# Whole stores


def test_an_export_of_a_client_is_that_of_the_store(servers, tmp_path):
    case = {"store": "full", "op": "list", "reply": {}}
    with servers.client(case, Client) as client, open_store("full") as store:
        told = client.store.export(tmp_path / "file.jsonl")
        (head, *rest), (own_head, *own) = client.store.export_lines(), store.export_lines()
        assert rest == own
        assert json.loads(head).keys() == json.loads(own_head).keys()
        assert (tmp_path / "file.jsonl").read_bytes() == head + b"".join(rest)
        assert told == store.export(tmp_path / "other.jsonl")


def test_what_was_exported_is_imported_by_a_client(servers, tmp_path):
    written = {"store": "empty", "op": "remember", "reply": {}}
    with open_store("full") as full, servers.client(written, Client) as client:
        wanted = full.export(tmp_path / "file.jsonl")
        preview = client.store.import_(tmp_path / "file.jsonl", dry_run=True)
        assert (preview.dry_run, preview.facts, client.store.spaces()) == (True, wanted.facts, [])
        with (tmp_path / "file.jsonl").open("rb") as stream:
            assert client.store.import_(stream).facts == wanted.facts
        assert client.store.spaces() == full.spaces()
        assert [*client.store.export_lines()][1:] == [*full.export_lines()][1:]
        one = full.export_lines(spaces=[Namespace("bob", SCOPE)])
        assert client.store.import_(one, into=Namespace("carol", "")).created > 0
        assert Namespace("carol", "") in client.store.spaces()


def test_a_client_sees_and_cleans_the_whole_store(servers):
    written = {"store": "full", "op": "remember", "reply": {}}
    with open_store("full") as store, servers.client(written, Client) as client:
        assert client.store.stats().facts == store.stats().facts
        assert client.store.verify().ok
        erased, wanted = client.store.erase("bob"), store.erase("bob")
        assert (erased.spaces, erased.facts, erased.purged) == (wanted.spaces, wanted.facts, wanted.purged)
        assert client.store.purge().records == store.purge().records
        assert Namespace("bob", SCOPE) not in client.store.spaces()


def test_the_story_of_the_full_store_told_by_a_client_makes_the_same_store(servers):
    written = {"store": "empty", "op": "remember", "reply": {}}
    with open_store("full") as store, servers.client(written, Client) as client:
        for op, request in STORY:
            asked({"op": op, "request": request}, client)
        memory, wanted = client.memory(PRINCIPAL, SCOPE), store.memory(PRINCIPAL, SCOPE)
        # Its clock stands still, so of what took effect one after the other only the last says when.
        facts, own = memory.list(as_of=NOW, order="id").items, wanted.list(as_of=NOW, order="id").items
        assert [(fact.id, fact.text) for fact in facts] == [(fact.id, fact.text) for fact in own]
        nodes = [
            client.repository(PRINCIPAL, SCOPE).snapshot(),
            store.repository(PRINCIPAL, SCOPE).snapshot(),
        ]
        assert nodes[0].digest == nodes[1].digest
