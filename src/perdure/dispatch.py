"""One dispatcher for all surfaces: a caller, an operation and a request in; a reply of plain JSON out."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from perdure.contract import requests as a
from perdure.contract import wire
from perdure.contract.decoding import check_limits, decode_request, operation_of
from perdure.contract.limits import EMBEDDED, SurfaceLimits
from perdure.contract.operations import ROLES, Operation, Role, needed_role
from perdure.contract.requests import told
from perdure.contract.wire import JsonObject
from perdure.documents.calling import answer as answer_of_documents
from perdure.errors import Forbidden, InvalidRequest, NotFound
from perdure.memory.calling import answer as answer_of_memory
from perdure.memory.config import MemoryConfig
from perdure.model.namespace import Namespace, checked_namespace
from perdure.store import Memory, Store
from perdure.transfer.sources import Source

BEYOND = "the key does not go as far as this request"  # one text, so that it tells nothing of what is there


@dataclass(frozen=True, slots=True)
class Bounds:
    """The spaces that a caller may see: all of the store, those of a principal, or one."""

    principal: str | None = None
    scope: str | None = None

    @property
    def are_open(self) -> bool:
        return self.principal is None and self.scope is None

    def allow(self, name: Namespace) -> bool:
        return self.principal in (None, name.principal) and self.scope in (None, name.scope)


OPEN = Bounds()
DEFAULT_SPACE = Namespace()


@dataclass(frozen=True)
class Caller:
    """Who asks: a store, the space that is meant, and how far the caller may go in it.

    Every operation that names or lists spaces is held against `bounds`, and every operation against `role`.
    Thread-safe.
    """

    store: Store
    namespace: Namespace = DEFAULT_SPACE
    config: MemoryConfig | None = field(default=None, repr=False)  # None: the one that the store keeps
    limits: SurfaceLimits = EMBEDDED
    role: Role = "admin"
    bounds: Bounds = OPEN

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
        if operation.group == "memory":
            return answer_of_memory(self._memory(), request)
        if operation.group == "documents":
            documents = self.store.documents(
                self.namespace.principal, self.namespace.scope, config=self.config
            )
            return answer_of_documents(documents, request)
        return _STORE[type(request)](self, told(request))

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
        return self.store.export_lines(spaces=spaces, **asked)

    def import_lines(self, source: Source, request: object) -> JsonObject:
        """Store the lines of an export; raises as `call`."""
        asked = told(self.decoded(operation_of("import", "store"), request))
        names, into = asked.pop("spaces", None), asked.pop("into", None)
        if not self.bounds.are_open and into is None:
            raise Forbidden(BEYOND)
        target = None if into is None else checked_namespace(into["principal"], into["scope"])
        spaces = None if names is None else _names(names)
        return wire.imported_object(self.store.import_(source, spaces=spaces, into=target, **asked))

    def _memory(self) -> Memory:
        return self.store.memory(self.namespace.principal, self.namespace.scope, config=self.config)

    def _check_role(self, needed: Role) -> None:
        if ROLES.index(needed) > ROLES.index(self.role):
            raise Forbidden(f"this takes a key of the role {needed}")

    def _check_spaces(self, request: a.Request) -> None:
        if self.bounds.are_open:
            return
        for name in self._named(request):
            if not self.bounds.allow(name):
                raise Forbidden(BEYOND)
        if isinstance(request, a.Verify | a.Purge):  # of the whole store, others' spaces included
            raise Forbidden(BEYOND)
        if isinstance(request, a.Erase) and self.bounds.scope is not None and request.scope is None:
            raise Forbidden(BEYOND)

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
            yield Namespace(request.principal, scope or "")


def _name(one: a.SpaceInput) -> Namespace:
    return Namespace(one.principal, one.scope)


def _names(told_names: Iterable[Mapping[str, str]]) -> list[Namespace]:
    return [checked_namespace(one["principal"], one["scope"]) for one in told_names]


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


_STORE: Mapping[type[a.Request], Callable[[Caller, dict[str, Any]], JsonObject]] = {
    a.Spaces: _spaces,
    a.Stats: _stats,
    a.Verify: lambda caller, asked: wire.verified_object(caller.store.verify(**asked)),
    a.Purge: lambda caller, asked: wire.purged_object(caller.store.purge(**asked)),
    a.Erase: lambda caller, asked: wire.erased_object(caller.store.erase(**asked)),
}
