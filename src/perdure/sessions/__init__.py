"""The turns of a conversation while it goes on: held for a while, then handed over or gone."""

from perdure.model.session import HandedOver, SessionTurn
from perdure.sessions.session import SessionMemory

__all__ = ["HandedOver", "SessionMemory", "SessionTurn"]
