"""One dispatcher for all surfaces: a caller, an operation and a request in; a reply of plain JSON out."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from typing import Any

from msgspec.structs import replace

from perdure.audit.audited_log import audit_of
from perdure.base.acting import acting
from perdure.contract import requests as a
from perdure.contract import wire
from perdure.contract.decoding import check_limits, decode_request, operation_of
from perdure.contract.limits import EMBEDDED, SurfaceLimits
from perdure.contract.operations import ROLES, Group, Operation, Role, needed_role
from perdure.contract.requests import told
from perdure.contract.wire import JsonObject
from perdure.contract.wire_governed import event_object
from perdure.conversation.calling import answer as answer_of_conversation
from perdure.documents.calling import answer as answer_of_documents
from perdure.errors import Forbidden, InvalidRequest, NotFound
from perdure.memory.calling import answer as answer_of_memory
from perdure.memory.calling import encoded as encoded_of_memory
from perdure.memory.config import MemoryConfig
from perdure.memory.facade import Memory
from perdure.model.conversation_forms import find_beside
from perdure.model.finding import Verified
from perdure.model.namespace import BESIDE, Namespace, checked_namespace
from perdure.repository.calling import answer as answer_of_repository
from perdure.store import Store
from perdure.transfer.sources import Source

BEYOND = "the key does not go as far as this request"  # whatever is there, so that it tells nothing of it


@dataclass(frozen=True, slots=True)
class Bounds:
    """The spaces that a caller may see: all of the store, those of a principal, or one."""

    principal: str | None = None
    scope: str | None = None

    @property
    def are_open(self) -> bool:
        return self.principal is None and self.scope is None

    def beyond(self) -> Forbidden:
        """Return the error for what is without: it tells of the bounds alone."""
        told = [f"one {name}" for name in ("principal", "scope") if getattr(self, name) is not None]
        return Forbidden(f"{BEYOND}: it is for {' and '.join(told) or 'one tenant'} alone")

    def allow(self, name: Namespace) -> bool:
        """Whether the space is within; what is kept beside a scope, its conversations and sessions, is where it is."""
        if self.principal not in (None, name.principal):
            return False
        beside = () if self.scope is None else (self.scope, *(self.scope + suffix for suffix in BESIDE))
        return self.scope is None or name.scope in beside


OPEN = Bounds()
DEFAULT_SPACE = Namespace()
_OF_ALL = (a.Verify, a.Purge, a.StoreEvents)  # of the whole store, others' spaces included


@dataclass(frozen=True)
class Caller:
    """Who asks: a store, the space that is meant (a checked name), and how far the caller may go in it.

    Every operation that names or lists spaces is held against `bounds`, and every operation against `role`.
    Thread-safe.
    """

    store: Store
    namespace: Namespace = DEFAULT_SPACE
    config: MemoryConfig | None = field(default=None, repr=False)  # None: the one that the store keeps
    limits: SurfaceLimits = EMBEDDED
    role: Role = "admin"
    bounds: Bounds = OPEN
    actor: str | None = (
        None  # in whose name the audit has what is written; None: in that of whoever acts already
    )

    def call(self, op: str, request: object, *groups: str) -> JsonObject:
        """Carry out an operation and return its reply.

        Args:
            op: its name on the wire.
            request: a plain object of JSON.
            groups: those that it may belong to; any when none is named.

        Raises:
            NotFound: there is no such operation. Forbidden: the caller may not do that.
            InvalidRequest: the request is malformed. What the operation raises.
        """
        operation = operation_of(op, *groups)
        if operation.streams:
            raise InvalidRequest(f"{op} gives or takes lines, not one object", field="op")
        return self.answer(operation, self.decoded(operation, request))

    def decoded(self, operation: Operation, request: object) -> a.Request:
        """Return the request, once its form, this surface's limits and what the caller may do are checked."""
        self._check_role(operation.role)  # before the request is looked at: who may not, learns nothing of it
        decoded = decode_request(operation, request)
        self._check_role(needed_role(operation, decoded))
        check_limits(decoded, self.limits)
        self._check_spaces(decoded)
        return decoded

    def answer(self, operation: Operation, request: a.Request) -> JsonObject:
        """Return the reply to a request that `decoded` gave."""
        with self._acting():
            return _GROUPS[operation.group](self, request)

    def encoded(self, operation: Operation, request: object) -> bytes:
        """Carry out an operation and return its reply as JSON: `call`'s, byte for byte, made in fewer steps.

        Raises as `call`.
        """
        decoded = self.decoded(operation, request)
        if operation.group != "memory":
            return wire.encode(self.answer(operation, decoded))
        with self._acting():
            return encoded_of_memory(self._memory, decoded)

    @property
    def _memory(self) -> Memory:
        return self.store.memory_of(self.namespace, self.config, None)

    def export_lines(self, request: object) -> Iterator[bytes]:
        """Return an export of the spaces that are asked for, of those that the caller may see when none is.

        Raises as `call`, before the first line.
        """
        asked = told(self.decoded(operation_of("export", "store"), request))
        names = asked.pop("spaces", None)
        spaces = None if names is None else _names(names)
        if spaces is None and not self.bounds.are_open:
            spaces = [name for name in self.store.spaces() if self.bounds.allow(name)]
            if not spaces:
                raise NotFound(
                    "there is nothing to export: what the key reaches holds nothing", field="spaces"
                )
        with self._acting():
            return self.store.export_lines(spaces=spaces, **asked)

    def import_lines(self, source: Source, request: object) -> JsonObject:
        """Store the lines of an export; raises as `call`."""
        asked = told(self.decoded(operation_of("import", "store"), request))
        names, into = asked.pop("spaces", None), asked.pop("into", None)
        if not self.bounds.are_open and into is None:
            raise self.bounds.beyond()
        target = None if into is None else checked_namespace(into["principal"], into["scope"])
        spaces = None if names is None else _names(names)
        with self._acting():
            return wire.imported_object(self.store.import_(source, spaces=spaces, into=target, **asked))

    def _acting(self) -> AbstractContextManager[None]:
        return nullcontext() if self.actor is None else acting(self.actor)

    def _check_role(self, needed: Role) -> None:
        if ROLES.index(needed) > ROLES.index(self.role):
            raise Forbidden(f"this takes a key of the role {needed}")

    def _check_spaces(self, request: a.Request) -> None:
        if self.bounds.are_open:
            return
        for name in self._named(request):
            if not self.bounds.allow(name):
                raise self.bounds.beyond()
        if isinstance(request, _OF_ALL):
            raise self.bounds.beyond()
        if isinstance(request, a.Erase) and self.bounds.scope is not None and request.scope is None:
            raise self.bounds.beyond()

    def _named(self, request: a.Request) -> Iterator[Namespace]:
        yield self.namespace
        if isinstance(request, a.Recall):
            for one in request.spaces or ():
                yield Namespace(self.namespace.principal, one) if isinstance(one, str) else _name(one)
        elif isinstance(request, a.Export):
            yield from map(_name, request.spaces or ())
        elif isinstance(request, a.Import):
            yield from map(_name, [] if request.into is None else [request.into])
        elif isinstance(request, a.Erase):
            # "" is a scope like any other; None means all of them, which `_check_spaces` judges.
            scope = self.bounds.scope if request.scope is None else request.scope
            yield from _with_beside(Namespace(request.principal, scope or ""))
        elif isinstance(request, a.Forget):
            yield from _with_beside(self.namespace)


def _with_beside(name: Namespace) -> Iterator[Namespace]:
    """Yield a space and, of conversations, the one beside it: what quotes their turns there goes with them."""
    yield name
    beside = find_beside(name)
    if beside is not None:
        yield beside


def _name(one: a.SpaceInput) -> Namespace:
    return Namespace(one.principal, one.scope)


def _names(told_names: Iterable[Mapping[str, str]]) -> list[Namespace]:
    return [checked_namespace(one["principal"], one["scope"]) for one in told_names]


def _of_memory(caller: Caller, request: a.Request) -> JsonObject:
    return answer_of_memory(caller._memory, request)


def _of_documents(caller: Caller, request: a.Request) -> JsonObject:
    name = caller.namespace
    documents = caller.store.documents(name.principal, name.scope, config=caller.config)
    return answer_of_documents(documents, request)


def _of_repository(caller: Caller, request: a.Request) -> JsonObject:
    name = caller.namespace
    return answer_of_repository(
        caller.store.repository(name.principal, name.scope, config=caller.config), request
    )


def _of_conversation(caller: Caller, request: a.Request) -> JsonObject:
    name = caller.namespace
    conversations = caller.store.conversation(name.principal, name.scope, config=caller.config)
    return answer_of_conversation(conversations, request)


def _of_store(caller: Caller, request: a.Request) -> JsonObject:
    return _STORE[type(request)](caller, told(request))


_GROUPS: Mapping[Group, Callable[[Caller, a.Request], JsonObject]] = {
    "memory": _of_memory,
    "documents": _of_documents,
    "repository": _of_repository,
    "conversation": _of_conversation,
    "store": _of_store,
}


def _spaces(caller: Caller, asked: dict[str, Any]) -> JsonObject:
    del asked
    return {
        "spaces": [wire.space_object(name) for name in caller.store.spaces() if caller.bounds.allow(name)]
    }


def _stats(caller: Caller, asked: dict[str, Any]) -> JsonObject:
    del asked
    if caller.bounds.are_open:
        return wire.stats_object(caller.store.stats())
    mine = [name for name in caller.store.spaces() if caller.bounds.allow(name)]
    return wire.stats_object(caller.store.stats(spaces=mine))


def with_events(store: Store, found: Verified) -> Verified:
    """Return what a verification found, with what of the store's chain of events does not add up."""
    if audit_of(store.log) is None:
        return found
    more = store.verify_events()
    return replace(found, ok=found.ok and not more, findings=(*found.findings, *more))


def _verify(caller: Caller, asked: dict[str, Any]) -> JsonObject:
    return wire.verified_object(with_events(caller.store, caller.store.verify(**asked)))


_STORE: Mapping[type[a.Request], Callable[[Caller, dict[str, Any]], JsonObject]] = {
    a.Spaces: _spaces,
    a.Stats: _stats,
    a.StoreEvents: lambda caller, asked: wire.page_object(caller.store.events(**asked), event_object),
    a.Verify: _verify,
    a.Purge: lambda caller, asked: wire.purged_object(caller.store.purge(**asked)),
    a.Erase: lambda caller, asked: wire.erased_object(caller.store.erase(**asked)),
}
