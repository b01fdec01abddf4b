"""The operations of a memory as requests and replies of the contract: the same for every surface."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from perdure.base.members import place_in
from perdure.contract import requests as a
from perdure.contract import wire
from perdure.contract.requests import told
from perdure.contract.wire import JsonObject
from perdure.contract.wire_governed import event_object
from perdure.errors import InvalidRequest

if TYPE_CHECKING:
    from perdure.memory.facade import Memory
    from perdure.model.fact import Fact

# What stands for nothing, by the field's name on the wire: its name in Python, and the value.
CLEARED: Mapping[str, tuple[str, Any]] = {
    "subject": ("subject", None),
    "entities": ("entities", ()),
    "metadata": ("metadata", {}),
    "eventTime": ("event_time", None),
    "validFrom": ("valid_from", None),
    "validTo": ("valid_to", None),
    "tags": ("tags", ()),
    "kind": ("kind", None),
    "importance": ("importance", None),
    "source": ("source", None),
}
ANNOTATED = ("tags", "kind", "importance", "metadata")


def answer(memory: Memory, request: a.Request) -> JsonObject:
    """Return the reply to a request as an object of JSON; raises as the method of the memory does."""
    return _HANDLERS[type(request)](memory, told(request))


def encoded(memory: Memory, request: a.Request) -> bytes:
    """Return the bytes of `answer`'s reply as JSON, of a plain recall from what is kept of its facts."""
    if isinstance(request, a.Recall) and not request.explain:
        asked = told(request)
        asked.pop("explain", None)
        if asked.keys().isdisjoint(("spaces", "max_bytes")):
            return wire.results_json(memory._recalled_as_json(**asked))
    return wire.encode(answer(memory, request))


def scope_arguments(scope: a.ForgetScope) -> dict[str, Any]:
    """Return a scope of the wire as the keyword of `Memory.forget`."""
    if isinstance(scope, a.AllScope):
        return {"all": True}
    (name,) = scope.__struct_fields__
    return {scope.keyword(): getattr(scope, name)}


def _fact(fact: Fact | None) -> JsonObject:
    return {"fact": None if fact is None else wire.fact_object(fact)}


def _facts(facts: Iterable[Fact]) -> list[JsonObject]:
    return [wire.fact_object(fact) for fact in facts]


def _remember_many(memory: Memory, asked: dict[str, Any]) -> JsonObject:
    return {"remembered": [wire.remembered_object(reply) for reply in memory.remember_many(**asked)]}


def _recall(memory: Memory, asked: dict[str, Any]) -> JsonObject:
    return {"results": [wire.hit_object(hit) for hit in memory.recall(**asked)]}


def _correct(memory: Memory, asked: dict[str, Any]) -> JsonObject:
    return wire.remembered_object(memory.correct(**_cleared(asked, CLEARED)))


def _annotate(memory: Memory, asked: dict[str, Any]) -> JsonObject:
    return _fact(memory.annotate(**_cleared(asked, ANNOTATED)))


def _cleared(asked: dict[str, Any], names: Iterable[str]) -> dict[str, Any]:
    """Return what is asked with the fields in place that `clear` names.

    JSON needs it, because null is the same as absence there.
    """
    given = dict(asked)
    for place, name in enumerate(given.pop("clear", ())):
        if name not in names:
            raise InvalidRequest(f"clear[{place}] must be one of {', '.join(names)}", field=f"clear[{place}]")
        field, nothing = CLEARED[name]
        if field in asked:
            raise InvalidRequest(f"{name} is both given and cleared; do one of the two", field=name)
        given[field] = nothing
    return given


def _forget(memory: Memory, asked: dict[str, Any]) -> JsonObject:
    scope = asked.pop("scope")
    with named_in_scope():
        return wire.forgotten_object(memory.forget(**scope_arguments(scope), **asked))


@contextmanager
def named_in_scope() -> Iterator[None]:
    """Have an error about the keyword that a scope becomes name the field that it has in the request."""
    try:
        yield
    except InvalidRequest as error:
        _name_in_scope(error)
        raise


def _name_in_scope(error: InvalidRequest) -> None:
    field = error.field or ""
    keyword = re.split(r"[.\[]", field, maxsplit=1)[0]
    name = _SCOPE_FIELDS.get(keyword)
    if name is None:
        return
    if error.message.startswith(keyword):
        error.message = name + error.message[len(keyword) :]
    error.field = name + field[len(keyword) :]
    place = error.details.get("place")
    if isinstance(place, str) and place.startswith(keyword):
        error.details["place"] = f"scope.{name}{place[len(keyword) :]}"
    place_in(error, "scope")


_SCOPE_FIELDS = {
    scope.keyword(): scope.__struct_fields__[0]
    for scope in a.ForgetScope.__subclasses__()
    if scope.__struct_fields__
}


_HANDLERS: Mapping[type[a.Request], Callable[[Memory, dict[str, Any]], JsonObject]] = {
    a.Remember: lambda memory, asked: wire.remembered_object(memory.remember(**asked)),
    a.RememberMany: _remember_many,
    a.Recall: _recall,
    a.Trace: lambda memory, asked: {"trace": wire.trace_object(memory.trace(**asked))},
    a.Explain: lambda memory, asked: {"explanation": wire.explanation_object(memory.explain(**asked))},
    a.Get: lambda memory, asked: _fact(memory.get(**asked)),
    a.History: lambda memory, asked: {"history": _facts(memory.history(**asked))},
    a.List: lambda memory, asked: wire.page_object(memory.list(**asked), wire.fact_object),
    a.Correct: _correct,
    a.Annotate: _annotate,
    a.End: lambda memory, asked: _fact(memory.end(**asked)),
    a.Retract: lambda memory, asked: _fact(memory.retract(**asked)),
    a.Changes: lambda memory, asked: wire.changes_object(memory.changes(**asked)),
    a.Diff: lambda memory, asked: {"diff": wire.diff_object(memory.diff(**asked))},
    a.Forget: _forget,
    a.Restore: lambda memory, asked: {"restored": list(memory.restore(**asked))},
    a.Unblock: lambda memory, asked: {"unblocked": memory.unblock(**asked)},
    a.ApplyForgetting: lambda memory, asked: wire.forgotten_object(memory.apply_forgetting(**asked)),
    a.Consolidate: lambda memory, asked: wire.consolidated_object(memory.consolidate(**asked)),
    a.Merge: lambda memory, asked: wire.merged_object(memory.merge(**asked)),
    a.RecordUse: lambda memory, asked: {"counted": memory.record_use(**asked)},
    a.Events: lambda memory, asked: wire.page_object(memory.events(**asked), event_object),
    a.Capabilities: lambda memory, asked: wire.capabilities_object(memory.capabilities(**asked)),
    a.Reindex: lambda memory, asked: wire.reindexed_object(memory.reindex(**asked)),
    a.EmbedMissing: lambda memory, asked: wire.embedded_object(memory.embed_missing(**asked)),
}
