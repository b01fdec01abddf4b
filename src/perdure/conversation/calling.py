"""The operations of conversations as requests and replies of the contract: the same for every surface."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from perdure.base.instants import to_datetime, to_millis
from perdure.contract import requests as a
from perdure.contract import wire, wire_governed
from perdure.contract.requests import told
from perdure.contract.wire import JsonObject
from perdure.errors import InvalidRequest
from perdure.model.conversation import (
    Anchor,
    ConversationContext,
    ConversationContextLimits,
    ConversationInput,
    ConversationRecallOptions,
    ConversationTurn,
    Dropped,
    SourceTurn,
)

if TYPE_CHECKING:
    from perdure.conversation.conversation import ConversationMemory


def answer(conversations: ConversationMemory, request: a.Request) -> JsonObject:
    """Return the reply to a request as an object of JSON; raises as the method of the conversations does."""
    return _HANDLERS[type(request)](conversations, told(request))


def _remember(conversations: ConversationMemory, asked: dict[str, Any]) -> JsonObject:
    turns = tuple(ConversationTurn(**turn) for turn in asked.pop("turns"))
    receipt = conversations.remember(ConversationInput(turns=turns, **asked))
    return wire_governed.conversation_remembered_object(receipt)


def _recall(conversations: ConversationMemory, asked: dict[str, Any]) -> JsonObject:
    query, expand = asked.pop("query"), asked.pop("expand", None)
    lists: dict[str, Any] = {name: tuple(asked[name]) for name in ("roles", "subqueries") if name in asked}
    chosen: dict[str, Any] = {**asked, **lists, "expand": _limits(expand)}
    options = ConversationRecallOptions(**chosen)
    return _context(conversations.recall(query, options))


def _expand(conversations: ConversationMemory, asked: dict[str, Any]) -> JsonObject:
    context = context_of(asked["context"])
    return _context(conversations.expand(context, _limits(asked.get("limits"))))


def context_of(asked: Mapping[str, Any]) -> ConversationContext:
    """Return a context as a caller tells it again, by the names of its fields in Python.

    Raises InvalidRequest where a moment is none.
    """
    sources = tuple(
        SourceTurn(**{**turn, "observation_time": _moment(turn["observation_time"])})
        for turn in asked["sources"]
    )
    return ConversationContext(
        query=asked["query"],
        sources=sources,
        anchors=tuple(Anchor(**one) for one in asked["anchors"]),
        dropped=tuple(Dropped(**one) for one in asked["dropped"]),
        verified=asked.get("verified", False),
        unresolved=tuple(asked.get("unresolved", ())),
        byte_count=asked.get("byte_count", 2),
        time_ranges=tuple(_range(one) for one in asked.get("time_ranges", ())),
    )


def _range(told_range: list[Any]) -> tuple[Any, Any]:
    if len(told_range) != 2:
        raise InvalidRequest(
            "context.time_ranges must hold pairs of a start and an end", field="context.time_ranges"
        )
    start, end = (None if one is None else _moment(one) for one in told_range)
    return start, end


def _moment(value: Any) -> Any:
    return to_datetime(to_millis(value, field="observation_time"))


def _limits(asked: Mapping[str, Any] | None) -> ConversationContextLimits | None:
    return None if asked is None else ConversationContextLimits(**asked)


def _context(context: ConversationContext) -> JsonObject:
    return {"context": wire_governed.context_object(context)}


def _get(conversations: ConversationMemory, asked: dict[str, Any]) -> JsonObject:
    found = conversations.get(**asked)
    return {"conversation": None if found is None else wire_governed.conversation_object(found)}


_HANDLERS: Mapping[type[a.Request], Callable[[ConversationMemory, dict[str, Any]], JsonObject]] = {
    a.RememberConversation: _remember,
    a.RecallConversation: _recall,
    a.ExpandConversation: _expand,
    a.GetConversation: _get,
    a.ListConversations: lambda conversations, asked: wire.page_object(
        conversations.list(**asked), wire_governed.conversation_entry_object
    ),
    a.ForgetConversation: lambda conversations, asked: wire.forgotten_object(conversations.forget(**asked)),
}
