"""Conversations kept word for word, found by their parts, and brought back with what they rest on. Experimental."""

from perdure.conversation.conversation import ConversationMemory
from perdure.conversation.ranking import QueryPlanner
from perdure.model.conversation import (
    Conversation,
    ConversationContext,
    ConversationContextLimits,
    ConversationEntry,
    ConversationInput,
    ConversationRecallOptions,
    ConversationRemembered,
    ConversationTurn,
    SourceTurn,
)

__all__ = [
    "Conversation",
    "ConversationContext",
    "ConversationContextLimits",
    "ConversationEntry",
    "ConversationInput",
    "ConversationMemory",
    "ConversationRecallOptions",
    "ConversationRemembered",
    "ConversationTurn",
    "QueryPlanner",
    "SourceTurn",
]
