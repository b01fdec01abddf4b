"""The events of a store or of one memory: read with the ids of what still exists, and noted where no record tells."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import NamedTuple

from perdure.audit.audit import Audit, space_digest
from perdure.audit.audited_log import audit_of
from perdure.audit.reading import Asked, Key, Reader, with_ids
from perdure.audit.rows import FactDigests
from perdure.base.ids import checked_known_id, keyed_hash
from perdure.base.instants import Instant, find_millis, to_millis
from perdure.contract import limits
from perdure.errors import InvalidRequest, PerdureError
from perdure.log.protocol import Log
from perdure.model.event import EVENT_TYPES, AuditEvent, EventsHead
from perdure.model.finding import Finding
from perdure.model.namespace import Namespace
from perdure.model.replies import Page
from perdure.planning.checks import checked_count
from perdure.space.facts import FactReader
from perdure.space.space import Space
from perdure.space.state import SpaceState

log = logging.getLogger("perdure.audit")
FindSpace = Callable[[Namespace], Space]


@contextmanager
def _logged(kind: str) -> Iterator[None]:
    """Only what erases waits for the audit: all else was done or is answered, so a failure to note it is logged."""
    try:
        yield
    except PerdureError as error:
        log.warning("an event of the type %s could not be kept: %s", kind, error.message)


def get_audit(of: Log) -> Audit:
    """Return the audit of a log; raises InvalidRequest where the store is opened without."""
    audit = audit_of(of)
    if audit is None:
        raise InvalidRequest("the store was opened with audit='off': open it with its audit", field="audit")
    return audit


def page_of(of: Log, asked: Asked, spaces: Iterable[Namespace], find_space: FindSpace) -> Page[AuditEvent]:
    """Return a page of events, with the ids of the facts and nodes that exist still.

    Args:
        spaces: whose facts and nodes are named.
    """
    audit = get_audit(of)
    page, named = Reader(audit, of.secret).page(asked)
    facts: dict[int, str] = {}
    nodes: dict[int, str] = {}
    for namespace in spaces if named.facts or named.nodes else ():
        space = space_digest(of.secret, namespace)
        wanted = _Digests(_of_space(named.facts, space), _of_space(named.nodes, space))
        if wanted.facts or wanted.nodes:
            found = _ids(audit, find_space(namespace), wanted)
            facts |= _by_place(named.facts, space, found.facts)
            nodes |= _by_place(named.nodes, space, found.nodes)
    return with_ids(page, facts, nodes)


class _Digests(NamedTuple):
    """Digests of ids in one space, each with the id once that is known."""

    facts: dict[bytes, str]
    nodes: dict[bytes, str]


def _of_space(named: Mapping[Key, object], space: bytes) -> dict[bytes, str]:
    return {digest: "" for owner, digest in named if owner == space}


def _by_place(named: Mapping[Key, list[int]], space: bytes, ids: Mapping[bytes, str]) -> dict[int, str]:
    return {place: id_ for digest, id_ in ids.items() for place in named[space, digest]}


def _ids(audit: Audit, space: Space, wanted: _Digests) -> _Digests:
    """Return those of the digests whose facts and nodes exist, with their ids."""
    space.read(lambda state, reader: None)  # so that it knows its number
    number = space.number
    if number is None:
        return _Digests({}, {})
    facts, nodes = audit.numbers_of(number, wanted.facts, wanted.nodes)
    digests = FactDigests(space.log.secret, space.namespace.key())

    def work(state: SpaceState, reader: FactReader) -> _Digests:
        heads = state.nodes.heads
        # A purge may have given a number to another fact or node meanwhile.
        return _Digests(
            _confirmed(facts, digests, lambda n: reader.get(state, n).id if state.exists(n) else None),
            _confirmed(nodes, digests, lambda n: heads[n].id if n in heads else None),
        )

    return space.read(work)


def _confirmed(
    numbers: Mapping[bytes, list[int]], digests: FactDigests, id_of: Callable[[int], str | None]
) -> dict[bytes, str]:
    ids = ((digest, id_of(number)) for digest, some in numbers.items() for number in some)
    return {digest: id_ for digest, id_ in ids if id_ is not None and digests.of(id_) == digest}


def asked_of(
    namespace: Namespace | None,
    told: tuple[str | None, str | None],
    moments: tuple[Instant | None, Instant | None],
    place: tuple[int | None, str | None],
    among: Iterable[Namespace] = (),
) -> Asked:
    """Return which events are asked for, checked.

    Args:
        told: a type, and the id of a fact or a node.
        moments: since, until.
        place: how many at most, and a cursor.
        among: the spaces in which the id is one, where all are asked.
    """
    id_ = None if told[1] is None else checked_known_id(told[1])
    size = limits.LIST_DEFAULT if place[0] is None else checked_count(place[0], "limit", 1, limits.LIST_MAX)
    since, until = find_millis(moments[0], field="since"), find_millis(moments[1], field="until")
    return Asked(namespace, tuple(among), told[0], id_, since, until, size, place[1]).check()


class StoreEvents:
    """The events of a whole store."""

    def __init__(self, of: Log, names: Callable[[], list[Namespace]], find_space: FindSpace) -> None:
        self._of, self._names, self._find_space = of, names, find_space

    def page(
        self,
        told: tuple[str | None, str | None],
        moments: tuple[Instant | None, Instant | None],
        place: tuple[int | None, str | None],
    ) -> Page[AuditEvent]:
        """Return a page, see `Store.events`; arguments as in `asked_of`."""
        names = self._names()
        asked = asked_of(None, told, moments, place, names)
        return page_of(self._of, asked, names, self._find_space)

    def head(self) -> EventsHead:
        """Return where the chain stands."""
        return self._reader().head()

    def lines(self) -> Iterator[bytes]:
        """Return the lines of an export."""
        return self._reader().lines()

    def findings(self, head: EventsHead | None) -> tuple[Finding, ...]:
        """Return what does not add up, by itself and against a head."""
        audit, reader = get_audit(self._of), self._reader()
        # Nothing is followed: that would write, under keys of whatever copy of a keystore is in use.
        if not audit.is_begun():
            return () if head is None else tuple(reader.head_findings(head))
        found = tuple(reader.findings())
        return found if head is None or found else tuple(reader.head_findings(head))

    def trim(self, before: Instant) -> int:
        """Let go of the first events; see `Store.trim_events`."""
        audit, moment = get_audit(self._of), to_millis(before, field="before")
        audit.follow()
        count = audit.book.trim(moment)
        if count:
            audit.note("trimmed", {"count": count}, spaces=())
        return count

    def note(self, kind: str, details: Mapping[str, int | str | bool]) -> None:
        """Add an event; nothing where there is no audit. Raises what keeps it from being written."""
        audit = audit_of(self._of)
        if kind not in EVENT_TYPES:
            raise InvalidRequest(
                f"type must be one of {', '.join(EVENT_TYPES)}, got {str(kind)[:64]!r}", field="type"
            )
        if audit is not None:
            audit.note(kind, details)

    def done(self, kind: str, details: Mapping[str, int | str | bool]) -> None:
        """Add an event of what was done already. What keeps it from being written is logged."""
        with _logged(kind):
            self.note(kind, details)

    def _reader(self) -> Reader:
        return Reader(get_audit(self._of), self._of.secret)


class Noting:
    """Notes what one memory was asked for, as far as the audit is to keep it."""

    def __init__(self, space: Space) -> None:
        self._space, self._audit = space, audit_of(space.log)

    def refused(self, count: int) -> None:
        """Note that tellings were not taken in. What keeps the audit from being written is logged."""
        if self._audit is None or not count:
            return
        with _logged("refused"):
            self._note(self._audit, "refused", {"count": count})

    def recalled(self, query: str, hits: int, *, trace: bool = False) -> None:
        """Note a recall, where the store is opened with audit="full". What keeps it from being noted is logged."""
        audit = self._audit
        if audit is None or not audit.keeps_recalls:
            return
        told = query if audit.keeps_queries else self._digest(query)
        details: dict[str, int | str | bool] = {"query": told, "hits": hits}
        if trace:
            details["trace"] = True
        with _logged("recalled"):
            self._note(audit, "recalled", details)

    def _note(self, audit: Audit, kind: str, details: dict[str, int | str | bool]) -> None:
        number = self._space.number
        spaces = () if number is None else (number,)
        audit.note(kind, details, namespace=self._space.namespace, spaces=spaces)

    def _digest(self, query: str) -> str:
        name = self._space.namespace.key()
        return keyed_hash(self._space.log.secret, b"audited query", name + query.encode()).hex()
