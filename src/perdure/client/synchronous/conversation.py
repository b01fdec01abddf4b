# Made of perdure/client/asynchronous/conversation.py by scripts/unasync.py: change that file, and run it.
"""The conversations beside a space on a server: the calls of `perdure.conversation`. Experimental."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from perdure.client.sending import request_of
from perdure.client.synchronous.space import ClientSpace
from perdure.client.telling import context_request, conversation_request, options_request
from perdure.contract import reading, replies
from perdure.contract import reading_governed as governed
from perdure.model.conversation import (
    Conversation,
    ConversationContext,
    ConversationContextLimits,
    ConversationEntry,
    ConversationInput,
    ConversationRecallOptions,
    ConversationRemembered,
)
from perdure.model.replies import Forgotten, Page


class ClientConversation(ClientSpace):
    """The conversations beside one space. Arguments, answers and errors are those of `Store.conversation(...)`."""

    def remember(self, conversation: ConversationInput) -> ConversationRemembered:
        """Store a version of a session word for word. As `ConversationMemory.remember`; the same again is harmless."""
        request = conversation_request(conversation)
        reply = self._call("rememberConversation", request, replies.ConversationRemembered)
        return governed.read_conversation_remembered(reply)

    def recall(self, query: str, options: ConversationRecallOptions | None = None) -> ConversationContext:
        """Return the turns that match best, with what they rest on. As `ConversationMemory.recall`."""
        request = {**options_request(options), **request_of(query=query)}
        reply = self._call("recallConversation", request, replies.ContextReply)
        return governed.read_context(reply.context)

    def expand(
        self, context: ConversationContext, limits: ConversationContextLimits | None = None
    ) -> ConversationContext:
        """Go on to what a context's anchors rest on at any remove. As `ConversationMemory.expand`."""
        request = context_request(context, limits)
        reply = self._call("expandConversation", request, replies.ContextReply)
        return governed.read_context(reply.context)

    def get(self, session_id: str, version: str) -> Conversation | None:
        """Return a version of a session with the turns that are left, or None."""
        request = request_of(session_id=session_id, version=version)
        found = (self._call("conversation", request, replies.ConversationReply)).conversation
        return None if found is None else governed.read_conversation(found)

    def list(
        self, *, session_id: str | None = None, limit: int | None = None, cursor: str | None = None
    ) -> Page[ConversationEntry]:
        """Return a page of versions in order of arrival. As `ConversationMemory.list`."""
        request = request_of(session_id=session_id, limit=limit, cursor=cursor)
        return governed.read_conversations(self._call("conversations", request, replies.ConversationPage))

    def forget(
        self,
        session_id: str,
        *,
        version: str | None = None,
        source_id: str | None = None,
        include_derived: bool | None = False,
        dry_run: bool | None = False,
        purge: bool | None = False,
    ) -> Forgotten:
        """Erase turns of a session. As `ConversationMemory.forget`."""
        request = request_of(
            session_id=session_id,
            version=version,
            source_id=source_id,
            include_derived=include_derived,
            dry_run=dry_run,
            purge=purge,
        )
        return reading.read_forgotten(self._call("forgetConversation", request, replies.Forgotten))

    def call(self, op: str, request: Mapping[str, Any]) -> dict[str, Any]:
        """Carry out an operation of the contract: a request and a reply of plain JSON. As `ConversationMemory.call`."""
        return self._call_plain(op, request, "conversation")
