"""ConversationMemory: what was said, kept word for word and recalled with what it rests on. Experimental."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

import msgspec

from perdure.base.canonical import canonical_json
from perdure.base.ids import checked_known_id
from perdure.contract import limits as contract_limits
from perdure.contract.decoding import decode_request, operation_of
from perdure.conversation.admitting import Admitted, Budget, asks_for_many, expand
from perdure.conversation.calling import answer
from perdure.conversation.checks import (
    CheckedConversation,
    checked_conversation,
    checked_limits,
    checked_options,
)
from perdure.conversation.forgetting import Chosen, forget_turns
from perdure.conversation.ranking import QueryPlanner, asked_queries, rank
from perdure.conversation.remembering import Prepared, find_existing, plan_remember
from perdure.conversation.stored import Place, StoredConversations, entry_of
from perdure.errors import InvalidRequest, NotFound
from perdure.memory.config import MemoryConfig
from perdure.memory.facade import Memory
from perdure.memory.forgetting import ForgetRules
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
from perdure.planning.checks import checked_count, checked_flag, checked_names
from perdure.planning.embedding import Embedding
from perdure.search.cursors import CursorCodec
from perdure.space.draft import confirm
from perdure.space.space import Space

T = TypeVar("T")


class ConversationMemory:
    """The conversations beside one space. Use `Store.conversation(...)` to get one. Thread-safe and synchronous.

    Conversations are kept in a space of their own, whose facts are the pieces that are searched; recalls of the space
    itself see nothing of them. What a version of a session says does not change. No read writes anything.
    """

    def __init__(
        self, memory: Memory, space: Space, beside: Space, *, planner: QueryPlanner | None = None
    ) -> None:
        """Take the memory and the space of the conversations, and the space of the facts beside them.

        Args:
            planner: asked for other ways to put a query where a recall gives them a weight and no subqueries.

        Raises InvalidRequest where the configuration's embedder or extractor is instructed for what users say only.
        """
        self._memory, self._space, self._beside = memory, space, beside
        self._planner = _checked_planner(planner)
        self.config = _checked_config(memory.config)
        self._embedding = Embedding(self.config.embedder_object, self.config.embedding_dimension)

    # Telling

    def remember(self, conversation: ConversationInput) -> ConversationRemembered:
        """Store a version of a session: every turn as it is, and the pieces that it is found by.

        All or nothing, durable when this returns. The very same again stores nothing and answers `existing`. Admission
        policies are not asked: evidence is kept whole. A turn's observation time dates no fact.

        Raises:
            InvalidRequest: a field is malformed or outside a limit; nothing was stored.
            Conflict: kind "version": this version is stored with other turns, or some of its turns were forgotten.
            Blocked: a turn was forgotten with block=True.
            Busy, StorageFull, Unavailable: nothing was stored.
        """
        told = checked_conversation(conversation)
        existing = self._read(lambda stored: find_existing(stored, told))
        if existing is not None:  # nothing is embedded for it
            self._space.write(confirm)
            return existing
        prepared = self._prepared(told)
        log = self._space.log
        return self._space.write(lambda draft: plan_remember(draft, log, told, prepared), alone=True)

    def _prepared(self, told: CheckedConversation) -> list[Prepared]:
        chunks, profile, extractor = told.chunks, self._space.profile, self.config.extractor
        entities_max = contract_limits.ENTITIES_MAX
        return [
            Prepared(
                (profile.document_terms(chunk),),
                () if extractor is None else checked_names(extractor(chunk), "entities", entities_max),
                vectors,
            )
            for chunk, vectors in zip(chunks, self._embedding.made(chunks), strict=True)
        ]

    # Asking

    def recall(self, query: str, options: ConversationRecallOptions | None = None) -> ConversationContext:
        """Return the turns that match best, each with the turns that it rests on, whole.

        A turn rests on the first turn of a user in its session; an assistant's also on the last turn of a user before
        it, and on the assistant's turn right before that one. A turn is there with all of these or not at all; what
        is left out is listed in `dropped`. All versions are searched, and each turn names its own.

        Raises InvalidRequest for a blank query or a malformed option; NotFound from an expansion, as `expand`.
        """
        asked = checked_options(options)
        queries = asked_queries(query, asked, self._planner)
        found = rank(self._memory, queries.queries, asked)
        budget = Budget(asked.max_sources, asked.max_bytes)

        def work(stored: StoredConversations) -> ConversationContext:
            admitted = Admitted(stored)
            for turn, score in found:
                place = stored.find_place(*turn)  # None where it was forgotten since
                if place is not None:
                    admitted.admit(place, score, budget)
            if asked.expand is not None and _expands(query, asked.expand):
                expand(admitted, asked.expand)
            return admitted.context(query)

        return msgspec.structs.replace(self._read(work), time_ranges=queries.time_ranges)

    def expand(
        self, context: ConversationContext, limits: ConversationContextLimits | None = None
    ) -> ConversationContext:
        """Return a context with what its anchors rest on at any remove, as far as that fits.

        First come the turns that were dropped for want of room, with what they rest on; then each anchor's premises of
        premises, whole or not at all. Where `aggregation_only` holds and the query does not count or list, the context
        comes back as it was. Texts are those of the store, not of the context.

        Raises:
            InvalidRequest: a limit is malformed.
            NotFound: a turn of the context, or a premise that an anchor needs, was forgotten.
        """
        if not isinstance(context, ConversationContext):
            raise InvalidRequest(
                f"context must be a ConversationContext, got {type(context).__name__}", field="context"
            )
        asked = checked_limits(limits)
        if not _expands(context.query, asked):
            return context

        def work(stored: StoredConversations) -> ConversationContext:
            admitted = _again(stored, context)
            expand(admitted, asked)
            return admitted.context(context.query)

        return msgspec.structs.replace(self._read(work), time_ranges=context.time_ranges)

    def get(self, session_id: str, version: str) -> Conversation | None:
        """Return a version of a session with the turns that are left, or None."""
        session = checked_known_id(session_id, field="session_id")
        named = checked_known_id(version, field="version")
        return self._read(lambda stored: stored.find(session, named))

    def list(
        self, *, session_id: str | None = None, limit: int | None = None, cursor: str | None = None
    ) -> Page[ConversationEntry]:
        """Return a page of versions in order of arrival; of one session where it is named.

        Args:
            limit: 1 to 1,000, 50 when absent.
            cursor: what the page before gave, with the same session.

        Raises InvalidRequest; Conflict (kind "epoch") for a cursor from before a purge.
        """
        session = None if session_id is None else checked_known_id(session_id, field="session_id")
        at_most = contract_limits.LIST_DEFAULT if limit is None else limit
        at_most = checked_count(at_most, "limit", 1, contract_limits.LIST_MAX)

        def work(stored: StoredConversations) -> Page[ConversationEntry]:
            codec = CursorCodec(
                self._space.log.secret,
                self._space.namespace.key(),
                stored.state,
                canonical_json(["conversations", session]),
            )
            heads = [head for head in stored.table.heads.values() if session in (None, head.session)]
            after = -1 if cursor is None else codec.decode(cursor)
            rest = [head for head in heads if head.number > after]
            part, has_more = rest[:at_most], len(rest) > at_most
            following = codec.encode(part[-1].number) if has_more else None
            return Page(tuple(map(entry_of, part)), len(heads), has_more, following)

        return self._read(work)

    # Forgetting

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
        """Erase turns of a session, original and pieces, from every read and every file.

        A version that keeps other turns names the gap; one that keeps none is gone. Unknown names are ignored.
        `forgotten` of the answer are the uris of the turns; `derived` the ids of nodes whose evidence cites them and of
        facts whose source they are, which stay. What nodes quote of the turns is erased from all their revisions, and
        so is the quote in the `source` of a fact.

        Args:
            version: of this version only; of all when absent.
            source_id: this turn only; all turns when absent.
            include_derived: erase what cites them too, before them and in a transaction of its own.
            dry_run: erase nothing; tell what would go.
            purge: rewrite the store afterwards, so that not even its places are left.

        Raises Busy, StorageFull, Unavailable as `Memory.forget`.
        """
        chosen = Chosen(
            checked_known_id(session_id, field="session_id"),
            None if version is None else checked_known_id(version, field="version"),
            None if source_id is None else checked_known_id(source_id, field="source_id"),
        )
        rules = ForgetRules(
            include_chain=False,
            dry_run=checked_flag(dry_run, "dry_run"),
            soft=False,
            block=False,
            frontier_max=self.config.limits.frontier,
            purge=checked_flag(purge, "purge"),
            include_derived=checked_flag(include_derived, "include_derived"),
        )
        return forget_turns(self._space, self._beside, chosen, rules)

    def call(self, op: str, request: Mapping[str, Any]) -> dict[str, Any]:
        """Carry out an operation of the contract: a request and a reply of plain JSON, as on every surface.

        Raises NotFound where there is no such operation of conversations; else as `Memory.call`.
        """
        return answer(self, decode_request(operation_of(op, "conversation"), request))

    def _read(self, work: Callable[[StoredConversations], T]) -> T:
        return self._space.read(lambda state, reader: work(StoredConversations(state, reader)))


def _expands(query: str, limits: ConversationContextLimits) -> bool:
    return not limits.aggregation_only or asks_for_many(query)


def _again(stored: StoredConversations, context: ConversationContext) -> Admitted:
    """Return an answer as it was, with the turns as they are stored now."""
    admitted = Admitted(stored)
    places: dict[str, Place] = {}
    for source in context.sources:
        place = stored.find_place(source.session_id, source.version, source.position)
        if place is None or stored.uri(place) != source.uri:
            raise NotFound(
                f"the turn at {source.position} that the context holds was forgotten; recall again",
                field="context",
                kind="premise_forgotten",
                position=source.position,
            )
        places[source.uri] = place
    admitted.restore(places.values())
    admitted.anchors = {places[one.source]: one.score for one in context.anchors if one.source in places}
    for dropped in context.dropped:
        place = stored.find_by_uri(dropped.source)
        if place is not None:
            admitted.dropped[place] = (dropped.reason, dropped.score)
    return admitted


def _checked_planner(planner: QueryPlanner | None) -> QueryPlanner | None:
    if planner is not None and not callable(getattr(planner, "plan", None)):
        raise InvalidRequest(
            f"planner must have the method plan, got {type(planner).__name__}", field="planner"
        )
    return planner


def _checked_config(config: MemoryConfig) -> MemoryConfig:
    """Return the configuration if it takes what assistants say as it takes what users say."""
    embedder = config.embedder_object
    if embedder is not None and getattr(embedder, "query_task", None) == "fact":
        raise InvalidRequest(
            "the embedder declares query_task 'fact', instructions for statements of users; conversations hold what "
            "assistants say too: give one whose query_task is 'conversation' or None",
            field="embedder",
        )
    if getattr(config.extractor, "user_only", False):
        raise InvalidRequest(
            "the extractor declares user_only; conversations hold what assistants say too: give one that takes both, "
            "or none",
            field="extractor",
        )
    return config
