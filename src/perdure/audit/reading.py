"""Reading events: pages of those that match, the lines of an export, and what does not add up."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from hmac import compare_digest
from typing import NamedTuple

import msgspec

from perdure.audit.audit import Audit, space_digest
from perdure.audit.book import State
from perdure.audit.offline import HEADER, PROFILE, line_of
from perdure.audit.rows import (
    CODES,
    NO_DIGEST,
    START,
    TYPES,
    Body,
    FactDigests,
    Row,
    extend,
    row_bytes,
    rows_of,
)
from perdure.base.ids import keyed_hash
from perdure.base.instants import to_datetime
from perdure.errors import Busy, InvalidRequest, Moved, PerdureError
from perdure.model.event import EVENT_TYPES, AuditEvent, EventsHead
from perdure.model.finding import Finding
from perdure.model.namespace import Namespace
from perdure.model.replies import Page

ATTEMPTS = 3  # a reading that trims overtook so often in a row gives up with Busy
MAC_BYTES = 16
SEAL_BYTES = 32
BY, NODE = "by", "node"

Key = tuple[bytes, bytes]
"""A space's digest and that of an id in it."""


class Named(NamedTuple):
    """Which items of a page may be of the fact, and which of the node, that has a digest: their places, by its key."""

    facts: dict[Key, list[int]]
    nodes: dict[Key, list[int]]


@dataclass(frozen=True)
class Asked:
    """Which events are asked for: all that are not narrowed away."""

    namespace: Namespace | None = None
    among: tuple[Namespace, ...] = ()  # where no space is named: those whose fact or node `id` may be
    type: str | None = None
    id: str | None = None
    since: int | None = None  # ms; the moment itself included
    until: int | None = None  # ms; the moment itself left out
    limit: int = 50
    cursor: str | None = None

    def check(self) -> Asked:
        """Return it if every value is allowed; raises InvalidRequest."""
        if self.type is not None and self.type not in EVENT_TYPES:
            raise InvalidRequest(
                f"type must be one of {', '.join(EVENT_TYPES)}, got {str(self.type)[:64]!r}", field="type"
            )
        if self.cursor is not None and not isinstance(self.cursor, str):
            raise InvalidRequest("cursor must be the text that a page gave", field="cursor")
        return self


class Reader:
    """Reads one audit's book. Whoever asks first has the log followed, so that all that was acknowledged is in it."""

    def __init__(self, audit: Audit, secret: bytes) -> None:
        self._audit, self._secret = audit, secret

    def page(self, asked: Asked) -> tuple[Page[AuditEvent], Named]:
        """Return one page, in order, without ids; and which of its items may have which digest, for whoever has ids.

        Raises:
            InvalidRequest: the cursor is of another listing.
            StorageFull, Busy, Unavailable, Corrupt: of the audit.
        """
        asked.check()
        after = 0 if asked.cursor is None else self._position(asked)
        for _ in range(ATTEMPTS):
            state = self._audit.follow()
            try:
                return self._page(state, asked, after)
            except Moved:
                continue
        raise Busy("the audit is being trimmed again and again; retry")

    def _page(self, state: State, asked: Asked, after: int) -> tuple[Page[AuditEvent], Named]:
        wanted = _Wanted(self._secret, asked)
        items: list[AuditEvent] = []
        named = Named({}, {})
        total, more = 0, False
        for body in self._audit.book.bodies(state, 1):
            if not wanted.may_have(body):
                continue
            beyond = body.first + body.count <= after + 1 or more
            if beyond and wanted.has_all(body):
                total += body.count
                continue
            for sequence, row in enumerate(rows_of(body), body.first):
                if not wanted.has(row):
                    continue
                total += 1
                if sequence <= after:
                    continue
                if len(items) == asked.limit:
                    more = True
                    continue
                if row.fact != NO_DIGEST:
                    named.facts.setdefault((body.space, row.fact), []).append(len(items))
                if row.other != NO_DIGEST and _other(row) == NODE:
                    named.nodes.setdefault((body.space, row.other), []).append(len(items))
                items.append(_event(sequence, body.space, row))
        cursor = self._cursor(asked, items[-1].sequence) if more else None
        return Page(tuple(items), total, more, cursor), named

    def head(self) -> EventsHead:
        """Return where the chain stands, sealed."""
        return sealed_head(self._secret, self._audit.follow())

    def lines(self) -> Iterator[bytes]:
        """Return the lines of an export of all events, of the moment of the call, as `perdure.audit.verify` reads them."""
        state = self._audit.follow()
        return self._lines(state)

    def _lines(self, state: State) -> Iterator[bytes]:
        first, chain = 1, START
        bodies = self._audit.book.bodies(state)
        header = next(bodies, None)
        if header is not None:
            first, chain = header.first, header.chain
        start = {HEADER: PROFILE, "after": first - 1, "chain": chain.hex()}
        yield msgspec.json.encode(start) + b"\n"
        for body in bodies:
            for sequence, row in enumerate(rows_of(body), body.first):
                yield line_of(sequence, body.space, row)
        yield msgspec.json.encode({"head": sealed_head(self._secret, state)}) + b"\n"

    def findings(self) -> Iterator[Finding]:
        """Yield what of the chain does not add up: a record that was changed, dropped or put elsewhere."""
        try:
            state = self._audit.book.state()
            expected: int | None = None
            chain = START
            for body in self._audit.book.bodies(state):
                if expected is not None and body.first != expected:
                    yield Finding(
                        f"event {expected} is missing: the next one there is has sequence {body.first}"
                    )
                if expected is None or body.first != expected:
                    chain = body.chain if not body.count else chain
                rows = rows_of(body)
                after = extend(chain, body.space, body.first, [row_bytes(row) for row in rows])
                if after != body.chain:
                    last = body.first + body.count - 1
                    yield Finding(
                        f"events {body.first} to {last} do not fit the chain: one of them was changed"
                    )
                expected, chain = body.first + body.count, body.chain
        except PerdureError as error:
            if error.details.get("kind") == "gone":
                raise
            yield Finding(error.message)

    def head_findings(self, head: EventsHead) -> Iterator[Finding]:
        """Yield why the chain is not the one that this head is of; nothing where it goes on from there."""
        if not isinstance(head, EventsHead):
            raise InvalidRequest(f"head must be an EventsHead, got {type(head).__name__}", field="head")
        own = EventsHead(_store_digest(self._secret), head.sequence, head.chain, "")
        if not compare_digest(_seal(self._secret, own).encode(), head.seal.encode("utf-8", "replace")):
            yield Finding(
                "the head was changed after it was made, or is of another store: its seal does not fit"
            )
            return
        chain = self.chain_at(head.sequence)
        if chain is None:
            yield Finding(
                f"there is no event {head.sequence} any more, or not yet: the head cannot be held against it"
            )
        elif chain.hex() != head.chain:
            yield Finding(
                f"the events up to {head.sequence} are not those that the head is of: they were rewritten"
            )

    def chain_at(self, sequence: int) -> bytes | None:
        """Return the digest of the chain up to an event, None where it was let go or there is none."""
        if not self._audit.exists:
            return None if sequence else START
        book = self._audit.book
        state = book.state()
        bodies = book.bodies(state)
        header = next(bodies, None)
        chain, at = (START, 0) if header is None else (header.chain, header.first - 1)
        if sequence == at:
            return chain
        for body in bodies:
            if body.first <= sequence < body.first + body.count:
                rows = rows_of(body)[: sequence - body.first + 1]
                return extend(chain, body.space, body.first, [row_bytes(row) for row in rows])
            chain = body.chain
        return None

    def _cursor(self, asked: Asked, sequence: int) -> str:
        body = sequence.to_bytes(8, "big")
        return base64.urlsafe_b64encode(self._mac(asked, body) + body).decode().rstrip("=")

    def _position(self, asked: Asked) -> int:
        assert asked.cursor is not None
        try:
            raw = base64.urlsafe_b64decode(asked.cursor.encode("ascii") + b"=" * (-len(asked.cursor) % 4))
        except (ValueError, binascii.Error) as error:
            raise InvalidRequest("cursor is not a cursor that a page gave", field="cursor") from error
        mac, body = raw[:MAC_BYTES], raw[MAC_BYTES:]
        if not compare_digest(mac, self._mac(asked, body)):
            raise InvalidRequest(
                "cursor is not a cursor of this listing: pass the same arguments as for its page",
                field="cursor",
            )
        return int.from_bytes(body, "big")

    def _mac(self, asked: Asked, body: bytes) -> bytes:
        name = None if asked.namespace is None else asked.namespace.key()
        bound = msgspec.msgpack.encode((name, asked.type, asked.id, asked.since, asked.until))
        return keyed_hash(self._secret, b"events cursor", body + bound, MAC_BYTES)


class _Wanted:
    """Tells which records may hold what is asked for, and which events are."""

    def __init__(self, secret: bytes, asked: Asked) -> None:
        self._asked = asked
        self._space = None if asked.namespace is None else space_digest(secret, asked.namespace)
        self._code = None if asked.type is None else CODES[asked.type]
        self._digests: frozenset[bytes] | None = None
        if asked.id is not None:
            id_, names = asked.id, asked.among if asked.namespace is None else (asked.namespace,)
            self._digests = frozenset(FactDigests(secret, name.key()).of(id_) for name in names)

    def may_have(self, body: Body) -> bool:
        since, until = self._asked.since, self._asked.until
        return (
            body.count > 0
            and (self._space is None or body.space == self._space)
            and (self._code is None or bool(body.types >> self._code & 1))
            and (since is None or body.newest >= since)
            and (until is None or body.oldest < until)
        )

    def has_all(self, body: Body) -> bool:
        """Whether every event of a record that may have some is asked for."""
        since, until = self._asked.since, self._asked.until
        return (
            self._digests is None
            and (self._code is None or body.types == 1 << self._code)
            and (since is None or body.oldest >= since)
            and (until is None or body.newest < until)
        )

    def has(self, row: Row) -> bool:
        since, until = self._asked.since, self._asked.until
        return (
            (self._code is None or row.type == self._code)
            and (since is None or row.at >= since)
            and (until is None or row.at < until)
            and (self._digests is None or row.fact in self._digests or row.other in self._digests)
        )


def with_ids(page: Page[AuditEvent], facts: Mapping[int, str], nodes: Mapping[int, str]) -> Page[AuditEvent]:
    """Return the page with these ids of facts and of nodes, by place."""
    items = tuple(
        msgspec.structs.replace(event, fact_id=facts.get(place), node_id=nodes.get(place))
        if place in facts or place in nodes
        else event
        for place, event in enumerate(page.items)
    )
    return msgspec.structs.replace(page, items=items)


def _event(sequence: int, space: bytes, row: Row) -> AuditEvent:
    details = dict(row.details)
    if row.fact != NO_DIGEST:
        details["fact"] = row.fact.hex()
    if row.other != NO_DIGEST:
        details[_other(row)] = row.other.hex()
    return AuditEvent(
        sequence,
        TYPES[row.type],
        None,
        details,
        to_datetime(row.at),
        row.actor,
        space.hex() or None,
    )


def _other(row: Row) -> str:
    """Return what the second digest of an event is of, as its details name it."""
    return BY if TYPES[row.type] in ("superseded", "corrected") else NODE


def sealed_head(secret: bytes, state: State) -> EventsHead:
    """Return the head of a chain that stands there."""
    head = EventsHead(_store_digest(secret), state.next - 1, state.chain.hex(), "")
    return msgspec.structs.replace(head, seal=_seal(secret, head))


def _store_digest(secret: bytes) -> str:
    return keyed_hash(secret, b"certified store", msgspec.msgpack.encode(())).hex()


def _seal(secret: bytes, head: EventsHead) -> str:
    plain = msgspec.json.encode(msgspec.structs.replace(head, seal=""))
    return keyed_hash(secret, b"audit head", plain, SEAL_BYTES).hex()
