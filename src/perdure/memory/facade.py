"""Memory: what a caller holds. Thread-safe and synchronous; every method is one consistent view or one
atomic write."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from types import TracebackType
from typing import Any, TypeVar, Unpack

import msgspec

from perdure.audit.audited_log import follow_first
from perdure.base.canonical import canonical_json, checked_json, checked_text
from perdure.base.ids import checked_id, checked_known_id
from perdure.base.instants import Instant, find_millis, to_millis
from perdure.base.members import place_in
from perdure.contract import limits
from perdure.contract.capabilities import Capabilities, capabilities
from perdure.contract.decoding import decode_request, operation_of
from perdure.errors import InvalidRequest, NotFound
from perdure.log.protocol import Progress
from perdure.memory.asking import (
    Asking,
    asked_options,
    checked_during,
    checked_interval,
    checked_scope,
    checked_times,
)
from perdure.memory.auditing import Noting, asked_of, page_of
from perdure.memory.calling import answer
from perdure.memory.changing import (
    UNSET,
    Correction,
    checked_annotations,
    checked_target,
    plan_annotate,
    plan_correct,
    plan_end,
    plan_retract,
)
from perdure.memory.citing import forget_with_citing
from perdure.memory.config import MemoryConfig
from perdure.memory.forgetting import (
    ForgetRules,
    Planned,
    forget_rules,
    plan_forget,
    plan_restore,
    plan_unblock,
    receipt_of,
)
from perdure.memory.listing import Listing
from perdure.memory.maintenance import ConsolidateRules, plan_consolidate, policy_scope
from perdure.memory.merging import plan_merge
from perdure.memory.notifying import Notifier
from perdure.memory.prompting import as_prompt
from perdure.memory.reading import Reading
from perdure.memory.reindexing import embed_missing, reindex_space
from perdure.memory.remembering import RememberRules, plan_remember, reply_of
from perdure.memory.scopes import Scope, scope_of
from perdure.memory.spaces import checked_bytes, checked_spaces, fitting, merged, refuse_recall_only
from perdure.memory.telling import Telling, admitted, identity_bytes, telling_of, with_vectors
from perdure.memory.using import plan_use
from perdure.model.conversation_forms import find_beside
from perdure.model.event import AuditEvent
from perdure.model.fact import Fact, Source
from perdure.model.hit import Explanation, Hit
from perdure.model.inputs import NewFact, RecallOptions
from perdure.model.namespace import Namespace
from perdure.model.replies import (
    Changes,
    Consolidated,
    Embedded,
    Forgotten,
    Merged,
    Page,
    Reindexed,
    Remembered,
)
from perdure.model.status import Status
from perdure.model.trace import Diff, Trace
from perdure.planning import checks
from perdure.planning.embedding import Embedding, Vectors
from perdure.planning.governed import refuse_ungoverned
from perdure.planning.receipts import Keyed
from perdure.planning.references import refuse_misspelt
from perdure.policies.supersession import ExplicitOnly
from perdure.space.draft import Draft
from perdure.space.space import Space

T = TypeVar("T")


class Memory:
    """The facts of one space. Use `Memory.open(path)` or `Store.memory(...)` to get one."""

    def __init__(
        self,
        space: Space,
        config: MemoryConfig,
        *,
        on_close: Callable[[], None] | None = None,
        find_space: Callable[[Namespace], Space],
    ) -> None:
        self._space, self.config, self._find_space = space, config, find_space
        self._asking = Asking(config)
        self._embedding = Embedding(config.embedder_object, config.embedding_dimension)
        self._reading = Reading(space, self._asking)
        self._keeps_slots = not isinstance(config.supersession_policy, ExplicitOnly)
        self._rules = RememberRules(
            config.supersession_policy, config.on_id_conflict == "replace", config.dedup == "merge-exact"
        )
        self._notifier = Notifier(config.observers, self.get)
        self._noting = Noting(space)
        self._on_close = on_close

    # Telling

    def remember(
        self,
        text: str,
        *,
        id: str | None = None,
        subject: str | None = None,
        entities: Iterable[str] | None = None,
        metadata: Mapping[str, Any] | None = None,
        event_time: Instant | None = None,
        valid_from: Instant | None = None,
        valid_to: Instant | None = None,
        supersedes: Iterable[str] | None = None,
        tags: Iterable[str] | None = None,
        kind: str | None = None,
        importance: float | None = None,
        pinned: bool | None = False,
        source: Source | Mapping[str, Any] | None = None,
        reassert: bool | None = False,
        embedding: Sequence[float] | None = None,
        idempotency_key: str | None = None,
    ) -> Remembered:
        """Store a fact; it is durable, and seen by every read, when this returns.

        Telling the same again stores nothing and answers `existing` with the first ingest time. What the
        configuration's admission policy does not take in is answered `refused`, what it merges into a fact that
        says the same `merged`. See `NewFact` for the fields.

        Raises:
            InvalidRequest: a field is malformed or outside a limit, or `supersedes` names an unknown id.
            Conflict: the id holds other content, or the idempotency key another request.
            Blocked: the content was forgotten with block=True.
            Busy, StorageFull, Unavailable: nothing was stored.
        """
        fact = NewFact(
            text=text,
            id=id,
            subject=subject,
            entities=entities,
            metadata=metadata,
            event_time=event_time,
            valid_from=valid_from,
            valid_to=valid_to,
            supersedes=supersedes,
            tags=tags,
            kind=kind,
            importance=importance,
            pinned=pinned,
            source=source,
            reassert=reassert,
            embedding=embedding,
        )
        tellings = with_vectors([self._telling(fact)], [self._embedding.told(embedding)], self._embedding)
        return self._remember("remember", tellings, idempotency_key)[0]

    def remember_many(
        self, facts: Iterable[NewFact | Mapping[str, Any] | str], *, idempotency_key: str | None = None
    ) -> list[Remembered]:
        """Store facts in one transaction, all or none, and return one reply each, in order.

        Members share one ingest time; list order is arrival order. `supersedes` may name any member.
        A mapping has the fields of `NewFact`; a text alone is a fact without other fields. A member that is
        refused is reported in its place, the others are stored.

        Raises as `remember`; the message names the index of the offending member.
        """
        tellings: list[Telling] = []
        vectors: list[Vectors] = []
        for index, told in enumerate(checks.members_of(facts, "facts", "facts")):
            try:
                fact = _new_fact(told)
                tellings.append(self._telling(fact))
                vectors.append(self._embedding.told(fact.embedding))
            except InvalidRequest as error:
                place_in(error, f"facts[{index}]", index=index)
                raise
            if index >= limits.BATCH_MAX:
                raise InvalidRequest(
                    f"facts has more than {limits.BATCH_MAX} members; send several batches", field="facts"
                )
        if not tellings:
            raise InvalidRequest("facts is empty", field="facts")
        tellings = with_vectors(tellings, vectors, self._embedding)
        return self._remember("remember_many", tellings, idempotency_key)

    def _telling(self, fact: NewFact) -> Telling:
        refuse_ungoverned(self.config.governed)
        telling = telling_of(fact, self._space.profile, self.config.extractor)
        source = telling.content.source
        if source is not None and source.uri is not None:
            refuse_misspelt(source.uri, field="source.uri")
        return admitted(telling, self.config.admission_policy)

    def _remember(self, operation: str, tellings: Sequence[Telling], key: str | None) -> list[Remembered]:
        request = b"" if key is None else b"\0".join(identity_bytes(telling) for telling in tellings)
        keyed = self._keyed(operation, key, request)
        replies = self._write(lambda draft: plan_remember(draft, tellings, self._rules, keyed))
        if any(reply.outcome == "replaced" for reply in replies) and not self._space.log.scrub():
            replies = [_pending(reply) for reply in replies]
        self._noting.refused(sum(reply.outcome == "refused" for reply in replies))
        self._notifier.remembered([r.id for r in replies if r.created and r.id is not None])
        return replies

    def correct(
        self,
        new_text: str,
        *,
        id: str | None = None,
        text: str | None = None,
        containing: str | None = None,
        new_id: str | None = None,
        subject: Any = UNSET,
        entities: Any = UNSET,
        metadata: Any = UNSET,
        event_time: Any = UNSET,
        valid_from: Any = UNSET,
        valid_to: Any = UNSET,
        tags: Any = UNSET,
        kind: Any = UNSET,
        importance: Any = UNSET,
        pinned: Any = UNSET,
        source: Any = UNSET,
        embedding: Sequence[float] | None = None,
        idempotency_key: str | None = None,
    ) -> Remembered:
        """Say that a fact was told wrong: store the right one in its place, on both time axes.

        The corrected fact is named by exactly one of `id` (any stored version), `text` or `containing`
        (the one current fact that matches). Everything that is not given is inherited, but the embedding. The mistake
        still shows to a reader with `known_at` before now.

        Raises:
            NotFound: nothing matches. Conflict: several match; details list the ids.
        """
        target = checked_target(id, text, containing)
        pinned = UNSET if pinned is None else pinned
        given = _given(
            subject=subject,
            entities=entities,
            metadata=metadata,
            event_time=event_time,
            valid_from=valid_from,
            valid_to=valid_to,
            tags=tags,
            kind=kind,
            importance=importance,
            pinned=pinned,
            source=source,
        )
        telling = self._telling(NewFact(text=new_text, id=new_id, **given))
        (telling,) = with_vectors([telling], [self._embedding.told(embedding)], self._embedding)
        # What an extractor finds belongs to the words, so it is never inherited.
        checked = {name: getattr(telling.content, name) for name in (*given, "extracted")}
        correction = Correction(target, telling, checked, self._keeps_slots)
        words = (target.id, target.text, target.containing)
        request = msgspec.msgpack.encode(words) + identity_bytes(telling, given)
        keyed = self._keyed("correct", idempotency_key, request)

        def plan(draft: Draft) -> tuple[Remembered, bool]:
            item, created = plan_correct(draft, correction, keyed)
            return reply_of(draft, item), created

        reply, created = self._write(plan)
        if created and reply.id is not None:
            self._notifier.remembered([reply.id])
        return reply

    def end(
        self,
        id: str,
        *,
        at: Instant | None = None,
        reason: str | None = None,
        idempotency_key: str | None = None,
    ) -> Fact:
        """Close a fact's validity at `at` (default now) without a successor; return the fact.

        From `at` on it is `expired`; a reader with `known_at` before now still sees it open.

        Raises:
            NotFound: no such fact. InvalidRequest: `at` is not after valid_from, or after an earlier end.
        """
        named = checked_known_id(id)
        moment, checked = find_millis(at, field="at"), checks.checked_reason(reason)
        keyed = self._keyed("end", idempotency_key, msgspec.msgpack.encode((named, moment, checked)))
        self._write(lambda draft: plan_end(draft, named, moment, checked, keyed))
        return self._existing(named)

    def retract(
        self,
        id: str,
        *,
        reason: str | None = None,
        idempotency_key: str | None = None,
    ) -> Fact:
        """Say that a fact was never true; return it. It is `expired` at every instant from now on known.

        Raises NotFound when there is no such fact. Repeating it changes nothing.
        """
        named = checked_known_id(id)
        checked = checks.checked_reason(reason)
        keyed = self._keyed("retract", idempotency_key, msgspec.msgpack.encode((named, checked)))
        self._write(lambda draft: plan_retract(draft, named, checked, keyed))
        return self._existing(named)

    def annotate(
        self,
        id: str,
        *,
        tags: Any = UNSET,
        kind: Any = UNSET,
        importance: Any = UNSET,
        pinned: Any = UNSET,
        metadata: Any = UNSET,
        idempotency_key: str | None = None,
    ) -> Fact:
        """Change what is noted of a fact (not what it says); return it. None clears kind and importance.

        `metadata` replaces what reads and filters see of the caller's metadata. Raises NotFound when there is no
        such fact.
        """
        named = checked_known_id(id)
        pinned = UNSET if pinned is None else pinned
        changes = checked_annotations(
            tags=tags, kind=kind, importance=importance, pinned=pinned, metadata=metadata
        )
        keyed = self._keyed("annotate", idempotency_key, msgspec.msgpack.encode((named, changes)))
        self._write(lambda draft: plan_annotate(draft, named, changes, keyed))
        return self._existing(named)

    def merge(
        self,
        keep: str,
        ids: Iterable[str],
        *,
        dry_run: bool | None = False,
        idempotency_key: str | None = None,
    ) -> Merged:
        """Say that current facts are all told by another current one, `keep`, which supersedes them.

        What is noted of them is united in the annotations of `keep`: all tags, the highest importance, the
        strongest kind, pinned where one of them is, and the metadata, where that of `keep` wins and list keys
        are appended. The others stay as history. Those merged into `keep` before are passed over.

        Raises:
            NotFound: no such fact. InvalidRequest: a fact is not current, or is to supersede `keep`.
            In each case nothing is changed.
        """
        kept = checked_known_id(keep, field="keep")
        members = enumerate(checks.members_of(ids, "ids", "ids"))
        told = [checked_known_id(value, field=f"ids[{place}]") for place, value in members]
        if not told:
            raise InvalidRequest("ids is empty; name the facts to merge into keep", field="ids")
        dry_run = checks.checked_flag(dry_run, "dry_run")
        request = msgspec.msgpack.encode((kept, sorted(set(told)), dry_run))
        keyed = self._keyed("merge", idempotency_key, request)
        return self._write(
            lambda draft: plan_merge(draft, kept, told, dry_run=dry_run, keyed=keyed), alone=True
        )

    def record_use(
        self, ids: Iterable[str], context_id: str | None = None, *, idempotency_key: str | None = None
    ) -> int:
        """Count that facts were used, as in a prompt; return of how many it was counted. No read counts uses.

        Within one context (a request, a turn) each fact counts once, however often and with whatever others it
        is named. Without a context it counts at each call. Ids of no visible fact are ignored.
        """
        named = _id_list(ids, "ids")
        context = None if context_id is None else checked_id(context_id, field="context_id")
        keyed = self._keyed("record_use", idempotency_key, msgspec.msgpack.encode((named, context)))
        return self._write(lambda draft: plan_use(draft, named, context, keyed), alone=True)

    # Asking

    def recall(
        self, query: str, *, explain: bool | None = False, **options: Unpack[RecallOptions]
    ) -> list[Hit]:
        """Return the k best matching facts, best first; ties in order of arrival.

        Args:
            query: words to find; no syntax, every character is text. It may be blank where `embedding` is given.
            explain: attach an Explanation to each hit.
            options: see `RecallOptions`: k, as_of, known_at, history, subject, entity, tags, kind, pinned, filter,
                min_score, candidate_limit, mode, embedding, fusion, weights, context, valid_during, spaces,
                max_bytes.

        Raises:
            InvalidRequest: a malformed or unknown option, or a blank query. QueryLimit: the budget is too small.
            What the configuration's embedder raises, unless mode is `lexical`.
        """
        question, times = self._asking.question(query, options)
        explain = checks.checked_flag(explain, "explain")
        if options.get("spaces") is None and options.get("max_bytes") is None:
            hits = self._reading.recall(question, times, explain=explain)
            self._noting.recalled(query, len(hits))
            return hits
        others = checked_spaces(options.get("spaces"), self._space.namespace)
        most = checked_bytes(options.get("max_bytes"))
        hits = self._reading.recall(question, times, explain=explain)
        if options.get("spaces") is not None:
            answers = [(self._space.namespace, hits)]
            for name in others:
                reading = Reading(self._find_space(name), self._asking)
                answers.append((name, reading.recall(question, times, explain=explain)))
            hits = merged(answers, question.k)
        hits = hits if most is None else fitting(hits, most)
        self._noting.recalled(query, len(hits))
        return hits

    def _recalled_as_json(
        self, query: str, **options: Unpack[RecallOptions]
    ) -> list[tuple[bytes, float, Status]]:
        """Return the hits of `recall` as their facts on the wire, scores and statuses. Takes neither spaces nor max_bytes."""
        question, times = self._asking.question(query, options)
        hits = self._reading.recall_as_json(question, times)
        self._noting.recalled(query, len(hits))
        return hits

    def explain(self, query: str, id: str, **options: Unpack[RecallOptions]) -> Explanation:
        """Return why the fact comes back from this recall, or why it does not. Options as in `recall`.

        Raises NotFound when there is no such fact (or it was forgotten or hidden).
        """
        refuse_recall_only(options, "explain")
        question, times = self._asking.question(query, options)
        return self._reading.explain(question, times, checked_known_id(id))

    def trace(self, query: str, **options: Unpack[RecallOptions]) -> Trace:
        """Return a recall with what it left out, and why: counts of all, and up to `trace_limit` rejections.

        Options as in `recall`, but `spaces` and `max_bytes`. Looks at every row. Raises as `recall`.
        """
        refuse_recall_only(options, "trace")
        asked = asked_options(options)
        question, times = self._asking.question(query, asked)
        traced = self._reading.trace(question, times, (query, asked, self.config.trace_limit))
        self._noting.recalled(query, len(traced.results), trace=True)
        return traced

    def diff(
        self,
        known_at: tuple[Instant, Instant],
        *,
        as_of: Instant | None = None,
        subject: str | None = None,
        entity: str | None = None,
        tags: Iterable[str] | None = None,
        kind: str | None = None,
        pinned: bool | None = None,
        filter: Mapping[str, Any] | None = None,
    ) -> Diff:
        """Return what came to be known after the first moment and until the second, the second included.

        Facts that were learnt, ended, retracted, superseded and corrected, each with its status at `as_of`
        (default now) as known before and after. What was forgotten since is in none of them.

        Raises:
            InvalidRequest: `known_at` is not two moments in order. QueryLimit: the budget is too small.
        """
        start, end = checked_interval(known_at, "known_at")
        scope = checked_scope(
            subject=subject, entity=entity, tags=tags, kind=kind, pinned=pinned, filter=filter
        )
        return self._reading.diff((start, end), find_millis(as_of, field="as_of"), scope)

    def as_prompt(self, hits: Iterable[Hit | Fact], *, max_bytes: int | None = None) -> str:
        """Return hits as text for a prompt: dated, sourced, and fenced as data. See `perdure.memory.prompting`."""
        return as_prompt(hits, max_bytes=max_bytes)

    def get(
        self,
        id: str,
        *,
        as_of: Instant | None = None,
        known_at: Instant | None = None,
    ) -> Fact | None:
        """Return the fact of that id with its status at `as_of` (default now), or None."""
        return self._reading.get(checked_known_id(id), checked_times(as_of, known_at))

    def history(
        self,
        id: str,
        *,
        as_of: Instant | None = None,
        known_at: Instant | None = None,
    ) -> list[Fact]:
        """Return every fact connected with this one by supersession, in the order they take effect.

        An unknown id gives an empty list.
        """
        return self._reading.history(checked_known_id(id), checked_times(as_of, known_at))

    def list(
        self,
        *,
        filter: Mapping[str, Any] | None = None,
        subject: str | None = None,
        entity: str | None = None,
        tags: Iterable[str] | None = None,
        kind: str | None = None,
        pinned: bool | None = None,
        status: str | None = None,
        as_of: Instant | None = None,
        known_at: Instant | None = None,
        valid_during: tuple[Instant, Instant] | None = None,
        order: str = "ingest",
        hidden: bool | None = False,
        limit: int | None = None,
        cursor: str | None = None,
    ) -> Page[Fact]:
        """Return a page of all visible facts that match; every one unless narrowed.

        Args:
            status: only facts of this status at `as_of`.
            valid_during: (a, b): only facts that were current at some instant from a until before b.
            order: ingest, -ingest, event, -event, importance, -importance, last_used or id; ties by arrival.
            hidden: only the softly forgotten ones.
            limit: 1 to 1,000, 50 when absent.
            cursor: what the page before gave, with the same arguments.
        """
        scope = checked_scope(
            subject=subject, entity=entity, tags=tags, kind=kind, pinned=pinned, filter=filter
        )
        moments = checked_times(as_of, known_at)
        size = limits.LIST_DEFAULT if limit is None else limit
        return self._reading.list(
            Listing(
                scope,
                status,
                order,
                checks.checked_flag(hidden, "hidden"),
                size,
                cursor,
                *moments,
                checked_during({"valid_during": valid_during, "status": status}),
            ).check()
        )

    def changes(self, since: str | None = None, *, limit: int | None = None) -> Changes:
        """Return what happened to the space's facts after the cursor `since` (None: from the start).

        In log order; the reply's cursor continues. Raises Conflict(kind="epoch") after a purge.
        """
        size = (
            limits.LIST_DEFAULT if limit is None else checks.checked_count(limit, "limit", 1, limits.LIST_MAX)
        )
        if since is not None and not isinstance(since, str):
            raise InvalidRequest("since must be the cursor that changes gave", field="since")
        return self._reading.changes(since, size)

    def events(
        self,
        *,
        type: str | None = None,
        id: str | None = None,
        since: Instant | None = None,
        until: Instant | None = None,
        limit: int | None = None,
        cursor: str | None = None,
    ) -> Page[AuditEvent]:
        """Return a page of what happened to this space, as its audit tells it, oldest first; events of what was
        forgotten too, never what anything said.

        Args:
            type: one of `EVENT_TYPES`.
            id: only events of the fact, document or node that has, or had, this id.
            since: the first moment; until: the first one after.
            limit: 1 to 1,000, 50 when absent.
            cursor: what the page before gave, with the same arguments.

        Raises:
            InvalidRequest: an argument is wrong, or the store is opened without its audit.
            StorageFull, Busy, Unavailable, Corrupt: of the audit, which keeps what it has not yet before it answers.
        """
        asked = asked_of(self._space.namespace, (type, id), (since, until), (limit, cursor))
        own = self._space.namespace
        return page_of(self._space.log, asked, [own], lambda _: self._space)

    # Forgetting

    def forget(
        self,
        *,
        ids: Iterable[str] | None = None,
        subject: str | None = None,
        entity: str | None = None,
        ingested_before: Instant | None = None,
        event_before: Instant | None = None,
        matching: Mapping[str, Any] | None = None,
        tag: str | None = None,
        text: str | None = None,
        containing: str | None = None,
        kind: str | None = None,
        filter: Mapping[str, Any] | None = None,
        session: str | None = None,
        all: bool | None = False,
        include_chain: bool | None = False,
        include_derived: bool | None = False,
        dry_run: bool | None = False,
        purge: bool | None = False,
        soft: bool | None = False,
        block: bool | None = False,
        idempotency_key: str | None = None,
    ) -> Forgotten:
        """Remove the facts of exactly one scope, with what is quoted of turns, from every read and every file.

        Args:
            ids: as answers name them; of a candidate, the id of the fact that it would be.
            session: all that turns of this session brought: facts with one as their source, and nodes with evidence
                from one; candidates too, named in the answer by the fact that they would be. The turns themselves
                stay: `ConversationMemory.forget` and `SessionMemory.clear` erase them.
            include_chain: also every fact connected with them by supersession.
            include_derived: also what was made from them, and what cites them; else `derived` of the reply names it.
            dry_run: remove nothing; tell what would go.
            purge: rewrite the whole store afterwards, as `Store.purge` does, so that not even the places of what
                was erased are left; also when nothing matched.
            soft: hide instead of erase; `restore` brings them back. Not together with a purge, nor for what a node or
                a turn is.
            block: keep keyed digests, so that the same ids and texts are refused from now on; of nodes those of all
                revisions, served or not. `Repository.forget` blocks nothing.

        Raises:
            InvalidRequest: none or several scopes.
            Conflict: (kind "governed") a soft forget means a node or a turn, a candidate too; nothing is hidden.
            Busy, StorageFull: the purge could not be done. What was to be forgotten is, and the same call,
                repeated, purges.

        Repeating a forget removes nothing more.
        """
        told = {
            "ids": None if ids is None else [*checks.members_of(ids, "ids", "ids")],
            "subject": subject,
            "entity": entity,
            "ingested_before": ingested_before,
            "event_before": event_before,
            "matching": matching,
            "tag": tag,
            "text": text,
            "containing": containing,
            "kind": kind,
            "filter": filter,
            "session": session,
            "all": all,
        }
        scope = scope_of(**told)
        flags = (include_chain, include_derived, dry_run, purge, soft, block)
        rules = forget_rules(flags, self.config.limits.frontier)
        request = b"" if idempotency_key is None else _forget_bytes(told, rules)
        keyed = self._keyed("forget", idempotency_key, request)
        return self._forget_named(scope, rules, keyed)

    def restore(self, ids: Iterable[str], *, idempotency_key: str | None = None) -> tuple[str, ...]:
        """Bring softly forgotten facts back; return the ids that came back, sorted. Others are ignored."""
        named = _id_list(ids, "ids")
        keyed = self._keyed("restore", idempotency_key, msgspec.msgpack.encode(named))
        policy = self.config.supersession_policy
        return self._write(lambda draft: plan_restore(draft, named, policy, keyed), alone=True)

    def unblock(
        self,
        *,
        ids: Iterable[str] | None = None,
        texts: Iterable[str] | None = None,
        idempotency_key: str | None = None,
    ) -> int:
        """Allow ids and texts that were forgotten with block=True; return how many blocks were lifted.

        A forget blocks both the id and the text of a fact: name both to store the same fact again.
        """
        if ids is None and texts is None:
            raise InvalidRequest("unblock takes ids, texts or both", field="ids")
        names, words = _id_list(() if ids is None else ids, "ids"), _text_list(() if texts is None else texts)
        keyed = self._keyed("unblock", idempotency_key, msgspec.msgpack.encode((names, words)))
        return self._write(lambda draft: plan_unblock(draft, names, words, keyed), alone=True)

    # Maintenance

    def apply_forgetting(
        self,
        *,
        include_chain: bool | None = False,
        include_derived: bool | None = False,
        dry_run: bool | None = True,
        purge: bool | None = False,
        idempotency_key: str | None = None,
    ) -> Forgotten:
        """Remove the facts that the configuration's forgetting policy names, as `forget(ids=...)` does.

        The policy sees every visible fact (no document) and is asked in the transaction that removes what it
        names, so other writers wait for it.

        Args:
            include_chain, include_derived: as in `forget`.
            dry_run: remove nothing; tell what would go. The default.
            purge: as in `forget`.

        Raises InvalidRequest when the policy returns no list of ids. What the policy raises passes through.
        Either way nothing is removed.
        """
        include_chain = checks.checked_flag(include_chain, "include_chain")
        # None means the default here as everywhere, and the default removes nothing.
        dry_run = dry_run is None or checks.checked_flag(dry_run, "dry_run")
        frontier, purge = self.config.limits.frontier, checks.checked_flag(purge, "purge")
        derived = checks.checked_flag(include_derived, "include_derived")
        rules = ForgetRules(include_chain, dry_run, False, False, frontier, purge, derived, "expired")
        request = msgspec.msgpack.encode((include_chain, dry_run, *_later(include_derived=derived)))
        keyed = self._keyed("apply_forgetting", idempotency_key, request)
        return self._forget(policy_scope(self.config.forgetting_policy), rules, keyed)

    def consolidate(
        self,
        *,
        dry_run: bool | None = True,
        allow_destructive: bool | None = False,
        idempotency_key: str | None = None,
    ) -> Consolidated:
        """Add the facts that the configuration's consolidation policy plans; each supersedes its sources.

        The policy is asked in the transaction that adds them, so other writers wait for it. The sources stay
        as history. A planned fact that is stored over the same sources already is not added again. No
        supersession policy is asked about the new facts.

        Args:
            dry_run: add and remove nothing; tell what would be. The default.
            allow_destructive: forget the sources where the plan asks for it too.

        Raises:
            InvalidRequest: the plan is malformed; details give the index of the offending member.
            Blocked: a planned content was forgotten with block=True.
            What the policy raises passes through. In each case nothing is changed.
        """
        dry_run = dry_run is None or checks.checked_flag(dry_run, "dry_run")
        allow_destructive = checks.checked_flag(allow_destructive, "allow_destructive")
        config = self.config
        policy, profile = config.consolidation_policy, self._space.profile
        rules = ConsolidateRules(policy, profile, config.extractor, dry_run, allow_destructive)
        request = msgspec.msgpack.encode((dry_run, allow_destructive))
        keyed = self._keyed("consolidate", idempotency_key, request)
        if allow_destructive and not dry_run:
            follow_first(self._space.log, self._space.number)
        reply, is_first = self._write(lambda draft: plan_consolidate(draft, rules, keyed), alone=True)
        if allow_destructive and not dry_run:
            reply = msgspec.structs.replace(reply, pending=not self._space.log.scrub())
        if is_first and not dry_run:
            self._notifier.remembered(reply.created)
            self._notifier.forgotten(reply.forgotten)
        return reply

    # The rest

    def reindex(
        self,
        *,
        profile: str | None = None,
        k1: float | None = None,
        b: float | None = None,
        embeddings: bool | None = False,
        progress: Progress | None = None,
    ) -> Reindexed:
        """Analyse all texts of this space anew, under other settings; None leaves a setting as it is.

        Facts, ids and times stay as they are; scores change. Rewrites the whole store, as a purge does: all or
        nothing, with room for a second copy, while writers wait and reads go on. Cursors end. A space without
        facts takes the settings when the first one is told through this memory.

        Args:
            profile: as in `MemoryConfig`, and so are k1 and b.
            embeddings: drop the vectors that an embedder made, and embed every text with the configuration's. Those
                that callers gave stay. One text is embedded first, and where that fails nothing is changed.
            progress: told the records that were read so far, of all.

        Raises:
            InvalidRequest: a setting is wrong, or none is given, or there is no embedder.
            Busy, StorageFull, Corrupt, Unavailable: nothing was changed. But where the embedder fails (Unavailable)
                on a later text, the old vectors are gone, and `embed_missing` goes on.
        """
        self._notifier.refuse_inside()
        told = {"profile": profile, "k1": k1, "b": b}
        again = checks.checked_flag(embeddings, "embeddings")
        return reindex_space(self._space, told, progress, embedder=self._embedding.embedder, embeddings=again)

    def embed_missing(
        self,
        *,
        limit: int | None = None,
        dry_run: bool | None = False,
        progress: Progress | None = None,
    ) -> Embedded:
        """Embed the facts and documents of this space that have no vector, oldest first, in small transactions.

        Args:
            limit: at most as many texts; all when absent.
            dry_run: only count them; needs no embedder.
            progress: told how many of how many are done.

        Raises:
            InvalidRequest: there is no embedder, or another model made the space's vectors.
            Unavailable: the embedder failed; what was embedded before is stored, and the same call goes on.
        """
        self._notifier.refuse_inside()
        most = None if limit is None else checks.checked_count(limit, "limit", 1, limits.BATCH_MAX)
        if checks.checked_flag(dry_run, "dry_run"):
            return Embedded(0, self._space.read(lambda state, _: state.without_vector), dry_run=True)
        return embed_missing(self._space, self._embedding.embedder, most, progress)

    def capabilities(self, contract_version: int = 1) -> Capabilities:
        """Return what this memory offers. Raises InvalidRequest for a contract version it does not speak."""
        name, dimension = self._space.read(lambda state, _: (state.profile.name, state.dimension))
        embedder, told = self._embedding.embedder, self.config.embedding_dimension
        return capabilities(
            contract_version,
            name,
            dimension=dimension or told or (None if embedder is None else embedder.dimension),
            model=None if embedder is None else embedder.model,
        )

    def call(self, op: str, request: Mapping[str, Any]) -> dict[str, Any]:
        """Carry out an operation of the contract: a request and a reply of plain JSON, as on every surface.

        Args:
            op: the operation's name on the wire, such as "remember" or "applyForgetting".
            request: its fields in camelCase; null is the same as absence.

        Raises:
            NotFound: there is no such operation of memories.
            InvalidRequest: an unknown, missing or malformed field. What the operation's method raises.
        """
        return answer(self, decode_request(operation_of(op, "memory"), request))

    def close(self) -> None:
        """Close the store if this memory opened it. Idempotent."""
        if self._on_close is not None:
            self._on_close()

    def __enter__(self) -> Memory:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _existing(self, id_: str) -> Fact:
        fact = self.get(id_)
        if fact is None:
            raise NotFound("the fact was forgotten by another writer meanwhile", field="id")
        return fact

    def _keyed(self, operation: str, key: str | None, request: bytes) -> Keyed:
        return Keyed(operation, checks.checked_idempotency_key(key), request, self.config.receipt_days)

    def _forget_named(self, scope: Scope, rules: ForgetRules, keyed: Keyed) -> Forgotten:
        """Forget what may be turns of a conversation, with what quotes them."""
        beside = find_beside(self._space.namespace)
        if beside is None or rules.soft:  # of turns a soft forget is refused
            return self._forget(scope, rules, keyed)
        self._notifier.refuse_inside()
        taken = forget_with_citing(self._space, self._find_space(beside), scope, rules, keyed)
        self._note_forgotten(taken.planned, rules)
        return taken.receipt(self._space, rules)

    def _forget(self, scope: Scope, rules: ForgetRules, keyed: Keyed) -> Forgotten:
        if not rules.dry_run and not rules.soft:
            follow_first(self._space.log, self._space.number)
        planned = self._write(lambda draft: plan_forget(draft, scope, rules, keyed), alone=True)
        self._note_forgotten(planned, rules)
        return receipt_of(self._space.log, planned, rules)

    def _note_forgotten(self, planned: Planned, rules: ForgetRules) -> None:
        if not rules.dry_run and planned.is_first:
            self._notifier.forgotten(planned.ids)

    def _write(self, plan: Callable[[Draft], T], *, alone: bool = False) -> T:
        self._notifier.refuse_inside()
        return self._space.write(plan, alone=alone)


def _pending(reply: Remembered) -> Remembered:
    return msgspec.structs.replace(reply, pending=reply.outcome == "replaced")


def _given(**told: Any) -> dict[str, Any]:
    return {name: value for name, value in told.items() if value is not UNSET}


def _new_fact(told: NewFact | Mapping[str, Any] | str) -> NewFact:
    if isinstance(told, NewFact):
        return told
    if isinstance(told, str):
        return NewFact(text=told)
    if not isinstance(told, Mapping):
        raise InvalidRequest(f"a fact must be a NewFact, an object or a text, got {type(told).__name__}")
    unknown = sorted(str(key)[:64] for key in set(told) - set(NewFact.__struct_fields__))
    if unknown:
        raise InvalidRequest(
            f"unknown field {unknown[0]!r}; a fact has {', '.join(NewFact.__struct_fields__)}",
            field=unknown[0],
        )
    if "text" not in told:
        raise InvalidRequest("text is missing", field="text")
    return NewFact(**told)


def _id_list(values: Iterable[str], field: str) -> list[str]:
    told = enumerate(checks.members_of(values, field, "ids"))
    return sorted({checked_known_id(value, field=f"{field}[{place}]") for place, value in told})


def _text_list(values: Iterable[str]) -> list[str]:
    told = enumerate(checks.members_of(values, "texts", "texts"))
    return sorted({checked_text(value, field=f"texts[{place}]") for place, value in told})


def _forget_bytes(told: Mapping[str, Any], rules: ForgetRules) -> bytes:
    """Return what tells one forget request from another."""
    plain = {name: _plain(name, value) for name, value in told.items() if value is not None}
    later = _later(purge=rules.purge, include_derived=rules.include_derived)
    return canonical_json([plain, rules.include_chain, rules.dry_run, rules.soft, rules.block, *later])


def _later(**asked: bool) -> list[str]:
    """Return the names of what is asked for: an option that came later changes no request that goes without it."""
    return [name for name, value in asked.items() if value]


def _plain(name: str, value: Any) -> Any:
    """Return the value in the one form that all its spellings share."""
    if name in ("ingested_before", "event_before"):
        return to_millis(value, field=name)
    if name == "ids":
        return sorted(set(value))
    if isinstance(value, Mapping):
        return checked_json(value, field="scope", bytes_max=limits.METADATA_BYTES_MAX)
    return value
