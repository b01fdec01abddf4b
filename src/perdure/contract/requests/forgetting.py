"""The requests of operations that forget, and of what keeps a memory tidy."""

from __future__ import annotations

from perdure.contract.requests.fields import (
    Filter,
    ForgetScope,
    Id,
    IdempotencyKey,
    JsonObject,
    Kind,
    Moment,
    Name,
    Request,
)


class IdsScope(ForgetScope, frozen=True, kw_only=True, tag="ids"):
    """The facts of these ids; a candidate has the id of the fact that it would be."""

    ids: list[str]


class SubjectScope(ForgetScope, frozen=True, kw_only=True, tag="subject"):
    """The facts of a subject."""

    subject: Name


class EntityScope(ForgetScope, frozen=True, kw_only=True, tag="entity"):
    """The facts that mention an entity."""

    entity: Name


class IngestedBeforeScope(ForgetScope, frozen=True, kw_only=True, tag="ingestedBefore"):
    """The facts that were told before a moment."""

    before: Moment


class EventBeforeScope(ForgetScope, frozen=True, kw_only=True, tag="eventBefore"):
    """The facts that describe a moment before this one."""

    before: Moment


class MatchingScope(ForgetScope, frozen=True, kw_only=True, tag="matching"):
    """The facts whose metadata has all of these pairs."""

    metadata: JsonObject


class TagScope(ForgetScope, frozen=True, kw_only=True, tag="tag"):
    """The facts with a tag."""

    tag: Name


class TextScope(ForgetScope, frozen=True, kw_only=True, tag="text"):
    """The facts of exactly this text, after folding white space."""

    text: str


class ContainingScope(ForgetScope, frozen=True, kw_only=True, tag="containing"):
    """The facts whose text holds this, case and white space folded."""

    containing: str


class KindScope(ForgetScope, frozen=True, kw_only=True, tag="kind"):
    """The facts of a kind."""

    fact_kind: Kind


class FilterScope(ForgetScope, frozen=True, kw_only=True, tag="filter"):
    """The facts that a filter matches."""

    filter: Filter


class SessionScope(ForgetScope, frozen=True, kw_only=True, tag="session"):
    """What turns of a session brought: facts with one as their source, and nodes with evidence from one."""

    session: Id


class AllScope(ForgetScope, frozen=True, kw_only=True, tag="all"):
    """All facts of the space."""


AnyScope = (
    IdsScope
    | SubjectScope
    | EntityScope
    | IngestedBeforeScope
    | EventBeforeScope
    | MatchingScope
    | TagScope
    | TextScope
    | ContainingScope
    | KindScope
    | FilterScope
    | SessionScope
    | AllScope
)


class Forget(Request, frozen=True, kw_only=True):
    """Remove the facts of one scope from every read, and erase them from every file."""

    scope: AnyScope
    include_chain: bool | None = None
    include_derived: bool | None = None
    dry_run: bool | None = None
    purge: bool | None = None
    soft: bool | None = None
    block: bool | None = None
    idempotency_key: IdempotencyKey | None = None


class Restore(Request, frozen=True, kw_only=True):
    """Bring softly forgotten facts back."""

    ids: list[str]
    idempotency_key: IdempotencyKey | None = None


class Unblock(Request, frozen=True, kw_only=True):
    """Allow ids and texts again that were forgotten with a block."""

    ids: list[str] | None = None
    texts: list[str] | None = None
    idempotency_key: IdempotencyKey | None = None


class ApplyForgetting(Request, frozen=True, kw_only=True):
    """Remove what the configuration's forgetting policy names; a dry run unless told otherwise."""

    include_chain: bool | None = None
    include_derived: bool | None = None
    dry_run: bool | None = None
    purge: bool | None = None
    idempotency_key: IdempotencyKey | None = None


class Consolidate(Request, frozen=True, kw_only=True):
    """Add what the configuration's consolidation policy plans; a dry run unless told otherwise."""

    dry_run: bool | None = None
    allow_destructive: bool | None = None
    idempotency_key: IdempotencyKey | None = None
