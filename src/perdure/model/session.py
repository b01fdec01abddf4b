"""The turns of a session, and what became of them when it was handed over."""

from __future__ import annotations

from datetime import datetime

import msgspec

from perdure.base.text import counted
from perdure.model.conversation import ConversationRemembered
from perdure.model.extraction import Extracted


class SessionTurn(msgspec.Struct, frozen=True):
    """One turn: who said it, what, when, and its place in the session, counted from 0.

    No two turns of a session have the same place. Where all turns of a session that is kept are gone, it counts anew.
    """

    role: str
    content: str
    at: datetime
    position: int

    def __repr__(self) -> str:
        return f"<SessionTurn {self.position}, {counted(len(self.content), 'character')}>"


class HandedOver(msgspec.Struct, frozen=True, kw_only=True):
    """What outlived a session.

    `conversation` and `extracted` are None where none was asked for. `left_out` are the positions of the turns of other
    roles than user and assistant, which are no evidence.
    """

    conversation: ConversationRemembered | None
    extracted: Extracted | None
    left_out: tuple[int, ...]
