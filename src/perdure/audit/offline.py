"""Holding exported events against a head that was kept elsewhere, with no store and no secret."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import msgspec

from perdure.audit.rows import CODES, NO_DIGEST, TYPES, Row, details_of, extend, row_bytes
from perdure.errors import InvalidRequest
from perdure.model.event import EventsHead
from perdure.model.finding import Finding

HEADER = "events"
PROFILE = "perdure.audit-events.v1"


def line_of(sequence: int, space: bytes, row: Row) -> bytes:
    """Return one event as a line of an export."""
    line: dict[str, Any] = {
        "sequence": sequence,
        "type": TYPES[row.type],
        "at": row.at,
        "space": space.hex(),
        "fact": row.fact.hex(),
        "other": row.other.hex(),
        "actor": row.actor,
        "details": dict(row.details),
    }
    return msgspec.json.encode(line) + b"\n"


def verify(source: str | Path | Iterable[bytes], head: EventsHead | None = None) -> tuple[Finding, ...]:
    """Return what of exported events does not add up; nothing where all is as it was when the head was made.

    An export that was edited, cut or put in another order does not lead to the head that it ends with, nor to one
    that was kept elsewhere. Without such a head of one's own, one that was made to fit is not noticed.

    Args:
        source: a file that `Store.export_events` was written to, or its lines.
        head: of the same store, made at any time since the first event of the export; it must be met on the way.

    Raises:
        InvalidRequest: that is no such file.
    """
    if isinstance(source, str | Path):
        try:
            with Path(source).open("rb") as lines:
                return tuple(_findings(lines, head))
        except OSError as error:
            raise InvalidRequest(f"source cannot be read ({error.strerror})", field="source") from error
    return tuple(_findings(source, head))


def _findings(lines: Iterable[bytes], head: EventsHead | None) -> Iterator[Finding]:
    told = _objects(lines)
    start = next(told, {})
    if start.get(HEADER) != PROFILE:
        raise InvalidRequest(
            f"source is no export of events: its first line must say {PROFILE}", field="source"
        )
    try:
        sequence, chain = int(start["after"]), bytes.fromhex(start["chain"])
    except (KeyError, TypeError, ValueError) as error:
        raise InvalidRequest(
            "source is no export of events: its first line is malformed", field="source"
        ) from error
    last: EventsHead | None = None
    is_met = head is not None and head.sequence < sequence
    if is_met:
        yield Finding(
            f"the export begins after event {sequence}: the head, of event {head.sequence if head else 0}, "
            "cannot be held against it"
        )
    while True:
        if head is not None and head.sequence == sequence:
            is_met = True
            if head.chain != chain.hex():
                yield Finding(f"the events up to {sequence} are not those that the head is of")
        line = next(told, None)
        if line is None or "head" in line:
            last = None if line is None else _head(line["head"])
            break
        try:
            number, space, row = _row(line)
        except (KeyError, TypeError, ValueError, AttributeError):
            yield Finding(f"the line after event {sequence} is no event")
            return
        if number != sequence + 1:
            yield Finding(
                f"event {number} follows event {sequence}: one is missing, or they were put in another order"
            )
            return
        sequence, chain = number, extend(chain, space, number, [row_bytes(row)])
    yield from _ends(last, head, sequence, chain, is_met=is_met)


def _ends(
    last: EventsHead | None, head: EventsHead | None, sequence: int, chain: bytes, *, is_met: bool
) -> Iterator[Finding]:
    if last is None:
        yield Finding(f"the export ends after event {sequence} without its head: it was cut short")
    elif (last.sequence, last.chain) != (sequence, chain.hex()):
        yield Finding(
            f"the events do not lead to the head of the export, of event {last.sequence}: one was changed"
        )
    if head is None:
        return
    if last is not None and last.store != head.store:
        yield Finding("the head is of another store")
    if not is_met:
        yield Finding(
            f"the export ends with event {sequence}, before event {head.sequence} that the head is of"
        )


def _objects(lines: Iterable[bytes]) -> Iterator[dict[str, Any]]:
    for line in lines:
        try:
            told = msgspec.json.decode(line)
        except msgspec.MsgspecError:
            told = None
        yield told if isinstance(told, dict) else {}


def _head(told: object) -> EventsHead | None:
    try:
        return msgspec.convert(told, EventsHead)
    except msgspec.MsgspecError:
        return None


def _row(line: dict[str, Any]) -> tuple[int, bytes, Row]:
    row = Row(
        CODES[line["type"]],
        int(line["at"]),
        bytes.fromhex(line["fact"]) or NO_DIGEST,
        bytes.fromhex(line["other"]) or NO_DIGEST,
        line["actor"],
        details_of(line["details"].items()),
    )
    return int(line["sequence"]), bytes.fromhex(line["space"]), row
