"""SessionMemory: what was said in a conversation that goes on."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from datetime import timedelta

from perdure.base.canonical import canonical_json, checked_text
from perdure.base.clock import Clock, SystemClock
from perdure.base.ids import checked_id
from perdure.base.instants import Instant, find_millis, to_datetime
from perdure.base.text import counted
from perdure.conversation.conversation import ConversationMemory
from perdure.errors import InvalidRequest
from perdure.extraction.extraction import Extraction
from perdure.model.conversation import ROLES, ConversationInput, ConversationTurn, SourceTurn
from perdure.model.conversation_forms import session_uri, turn_uri
from perdure.model.fact import Fact
from perdure.model.hit import Hit
from perdure.model.session import HandedOver, SessionTurn
from perdure.planning.checks import checked_count, checked_fact_text
from perdure.repository.repository import Repository
from perdure.sessions.keeping import Bounds, InProcess, Told, Turns, unquote

TURNS_MAX = 100_000
ROLE_BYTES_MAX = 64
_VERSION_DIGITS = 12
TTL_MAX = timedelta(days=36_500)


class SessionMemory:
    """The turns of one session. Thread-safe and synchronous.

    Made bare it holds them in this process. `Store.session(...)` gives one whose turns are kept, and seen by every
    process that asks for the session by its id.
    """

    def __init__(
        self,
        session_id: str = "session",
        *,
        ttl: timedelta | None = None,
        max_turns: int | None = None,
        clock: Clock | None = None,
        turns: Turns | None = None,
    ) -> None:
        """Begin a session, or go on with one that is kept.

        Args:
            session_id: names it where it is kept and handed over: 1 to 256 bytes.
            ttl: how long a turn counts; for ever when None.
            max_turns: how many of the last turns count, 1 to 100,000; all when None.
            clock: tells when turns are added; the system's when absent.
            turns: where they are; in this process when absent.

        A turn that does not count any more is in no read. Where turns are kept it is erased by `expire`, and along with
        turns that are added, some at a time.

        Raises InvalidRequest.
        """
        self.session_id = checked_id(session_id, field="session_id")
        self._ttl_ms = _checked_ttl(ttl)
        self._max = None if max_turns is None else checked_count(max_turns, "max_turns", 1, TURNS_MAX)
        own = InProcess(clock or SystemClock(), self.session_id)
        self._turns: Turns = own if turns is None else turns
        self._reached: dict[
            int, Repository
        ] = {}  # to which turns were handed over, by the identity of their space

    def add_turn(self, role: str, content: str, *, at: Instant | None = None) -> SessionTurn:
        """Add a turn after all others and return it; where turns are kept it is durable then.

        Args:
            role: who said it: `user`, `assistant`, or any name of at most 64 bytes without a colon.
            content: 1 to 4,096 words, at most 65,536 bytes; kept byte for byte.
            at: when it was said; now when None.

        Raises:
            InvalidRequest: a field is malformed. Blocked: the content was forgotten with block=True.
            Busy, StorageFull, Unavailable: nothing was added.
        """
        name, text = _checked_role(role), checked_fact_text(content)
        moment = find_millis(at, field="at")
        bounded = self._ttl_ms is not None or self._max is not None
        return _shown(self._turns.add(name, text, moment, self._bounds() if bounded else None))

    def get_turns(self) -> list[SessionTurn]:
        """Return the turns that count, oldest first. Writes nothing."""
        return [_shown(turn) for turn in self._living()]

    def summarize(self, max_turns: int | None = None) -> str:
        """Return the turns that count as lines of `role: content`, oldest first; line ends of a content stay.

        Args:
            max_turns: only the last so many; 0 gives an empty text, None takes all.

        Raises InvalidRequest for a negative number.
        """
        last = TURNS_MAX if max_turns is None else checked_count(max_turns, "max_turns", 0, TURNS_MAX)
        turns = self._living()
        return "\n".join(f"{turn.role}: {turn.content}" for turn in turns[max(0, len(turns) - last) :])

    def expire(self) -> int:
        """Erase the turns that do not count any more, physically where they are kept; return how many went.

        What candidates quote of them stays: that turns go in time is why something is handed over.
        """
        return self._turns.expire(self._bounds())

    def clear(self) -> int:
        """Erase all turns, physically where they are kept; return how many went.

        What nodes and facts quote of any turn of the session is erased too, of those that have expired as well: beside
        the turns where they are kept, else in the repositories to which this object has handed turns over. What a
        handover made a conversation of is a conversation's. A handover that is still under way erases its quotes when
        it ends.
        """
        return self._turns.clear(lambda: tuple(self._reached.values()))

    def handover(
        self,
        conversation: ConversationMemory | None = None,
        *,
        version: str | None = None,
        extraction: Extraction | None = None,
        recalled: Iterable[Hit | Fact | str] = (),
    ) -> HandedOver:
        """Let the turns that count outlive the session: as conversation evidence, as candidates, or as both.

        Turns of other roles than user and assistant are no evidence and are left out. The session stays as it is; the
        same turns handed over again make nothing new. With both, the candidates' evidence cites the conversation.

        Args:
            conversation: where the turns become a version of the session.
            version: its name; made of the positions of the first and the last turn and of a digest when None.
            extraction: asked for candidates.
            recalled: as in `Extraction.run`.

        Raises:
            InvalidRequest: neither is given, or there is no turn of a user or an assistant.
            What `ConversationMemory.remember` and `Extraction.run` raise; the former is done first.
        """
        if conversation is None and extraction is None:
            raise InvalidRequest(
                "handover takes a conversation, an extraction, or both", field="conversation"
            )
        living = self._living()
        turns = [turn for turn in living if turn.role in ROLES]
        if not turns:
            raise InvalidRequest(
                "the session has no turn of a user or an assistant to hand over", field="conversation"
            )
        named = _version_of(turns) if version is None else version
        remembered = None
        if conversation is not None:
            remembered = conversation.remember(
                ConversationInput(
                    session_id=self.session_id, version=named, turns=tuple(map(_conversation_turn, turns))
                )
            )
        extracted = None
        if extraction is not None:
            is_kept = conversation is not None
            sources = [self._source(turn, named, is_kept=is_kept) for turn in turns]
            reached = extraction.repository
            self._reached[id(reached.space)] = reached
            try:
                extracted = extraction.run(sources, recalled=recalled)
            finally:  # what was made before it failed stays
                if not is_kept:
                    self._unquote_cleared(reached, turns)
        left_out = tuple(turn.position for turn in living if turn.role not in ROLES)
        return HandedOver(conversation=remembered, extracted=extracted, left_out=left_out)

    def _unquote_cleared(self, repository: Repository, turns: Sequence[Told]) -> None:
        """Take along what candidates quote of turns that others have cleared while they were handed over."""
        cleared = self._turns.cleared(turns, self._bounds())
        if cleared:
            unquote(repository, cleared)

    def _source(self, turn: Told, version: str, *, is_kept: bool) -> SourceTurn:
        source_id = str(turn.position)
        own = f"{session_uri(self.session_id)}/{source_id}"
        return SourceTurn(
            uri=turn_uri(self.session_id, version, source_id) if is_kept else own,
            session_id=self.session_id,
            version=version,
            position=turn.position,
            source_id=source_id,
            role="user" if turn.role == "user" else "assistant",
            text=turn.content,
            observation_time=to_datetime(turn.at),
        )

    def _living(self) -> list[Told]:
        return self._bounds().living(self._turns.all())

    def _bounds(self) -> Bounds:
        after = None if self._ttl_ms is None else self._turns.now() - self._ttl_ms
        return Bounds(after, self._max)


def _shown(turn: Told) -> SessionTurn:
    return SessionTurn(turn.role, turn.content, to_datetime(turn.at), turn.position)


def _conversation_turn(turn: Told) -> ConversationTurn:
    return ConversationTurn(
        source_id=str(turn.position),
        role="user" if turn.role == "user" else "assistant",
        text=turn.content,
        observation_time=turn.at,
    )


def _version_of(turns: Sequence[Told]) -> str:
    """Return a name that other turns do not have, also where positions began anew."""
    data = canonical_json([[turn.role, turn.content, turn.at, turn.position] for turn in turns])
    return f"{turns[0].position}-{turns[-1].position}-{hashlib.sha256(data).hexdigest()[:_VERSION_DIGITS]}"


def _checked_role(role: str) -> str:
    name = checked_text(role, field="role")
    size = len(name.encode())
    if not name.strip() or size > ROLE_BYTES_MAX or not name.isprintable() or ":" in name:
        raise InvalidRequest(
            f"role must be a name of 1 to {ROLE_BYTES_MAX} bytes without colons and control characters, got {counted(size, 'byte')}",
            field="role",
        )
    return name


def _checked_ttl(ttl: timedelta | None) -> int | None:
    if ttl is None:
        return None
    if not isinstance(ttl, timedelta):
        raise InvalidRequest(f"ttl must be a timedelta, got {type(ttl).__name__}", field="ttl")
    if not timedelta(milliseconds=1) <= ttl <= TTL_MAX:
        raise InvalidRequest(f"ttl must be 1 ms to {TTL_MAX.days} days", field="ttl")
    return ttl // timedelta(milliseconds=1)
