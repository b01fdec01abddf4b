"""A store's content as one plain value, and the one way to change it: for logs that have all of it at hand."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import msgspec

from perdure.base.text import counted
from perdure.errors import Conflict, Corrupt, InvalidRequest, Moved, NotFound
from perdure.log.digests import (
    ERASED_CHECK,
    advance,
    check_first,
    check_unchanged,
    check_unerased,
    checksum,
    checksums,
    digest_bytes,
    digest_sum,
    purged_order,
    stored_key,
)
from perdure.log.protocol import EMPTY, Batch, Entry, Finding, Head, Progress, Rewrite, Rewritten


class Row(NamedTuple):
    """A record and its checksum; once erased, None and zeros."""

    data: bytes | None
    check: bytes


ERASED = Row(None, ERASED_CHECK)


class SpaceContent(msgspec.Struct):
    """One space: where it stands, the rows of seq 1, 2, 3 …, and the seqs that its keys lead to."""

    head: Head = EMPTY
    rows: list[Row] = []
    keys: dict[bytes, int] = {}


class Content(msgspec.Struct):
    """A whole store: its spaces 1, 2, 3 … and their numbers by name. msgspec encodes it as it is."""

    secret: bytes
    spaces: list[SpaceContent] = []
    names: dict[bytes, int] = {}
    epoch: int = 0  # of all spaces; one more with each purge

    def space(self, number: int) -> SpaceContent:
        """Return a space, an empty one for a number that there is not."""
        return self.spaces[number - 1] if 1 <= number <= len(self.spaces) else SpaceContent()

    def apply(self, change: Change) -> None:
        """Make a change that was planned for this very content; cannot fail half-way."""
        if change.name is not None:
            self.names[change.name] = change.space
            self.spaces.append(SpaceContent())
        space = self.spaces[change.space - 1]
        for seq in change.erase:
            space.rows[seq - 1] = ERASED
        if change.erase[:1] == (1,):  # nobody finds the space by its name any more
            self.names = {name: number for name, number in self.names.items() if number != change.space}
        space.rows.extend(change.rows)
        space.keys.update(change.keys)
        space.head = change.head


class Change(msgspec.Struct, frozen=True):
    """What one append or one creation does to a content, all or nothing. msgspec encodes it as it is."""

    space: int
    head: Head  # after the change
    rows: tuple[Row, ...]  # they take the next seqs
    erase: tuple[int, ...] = ()  # seqs of live rows, ascending
    keys: tuple[tuple[bytes, int], ...] = ()  # (hash, seq)
    name: bytes | None = None  # of the space that this change creates


def plan_space(content: Content, name: bytes, first: bytes) -> Change:
    """Return the change that creates a space; raises Conflict when the name is taken."""
    if name in content.names:
        raise Conflict(
            f"a space of this name exists already, as number {content.names[name]}; use find_space",
            kind="head",
        )
    number = len(content.spaces) + 1
    checks = checksums(number, 0, [first])
    head = advance(EMPTY._replace(epoch=content.epoch), content.secret, checks)
    return Change(number, head, (Row(first, checks[0]),), name=name)


def plan_append(content: Content, number: int, expected: Head, batch: Batch, erase: Sequence[int]) -> Change:
    """Return the change that an append makes. The batch was checked; `erase` is distinct and ascending.

    Raises:
        NotFound: there is no such space.
        Conflict: its head is not `expected`, or something was erased of what the batch rests on.
    """
    space = content.space(number)
    if space.head == EMPTY:
        raise NotFound(f"there is no space {number}; create_space makes one", field="space")
    if space.head != expected:
        raise Conflict(
            f"space {number} is at record {space.head.seq}, not {expected.seq}, or was erased in; "
            "catch up and try again",
            kind="head",
        )
    for other, known in batch.unerased:
        check_unerased(other, known, content.space(other).head)
    for name, known in batch.unchanged:
        check_unchanged(known, content.space(content.names.get(name, 0)).head)
    checks = checksums(number, expected.seq, batch.records)
    erased = [(seq, space.rows[seq - 1].check) for seq in erase if space.rows[seq - 1].data is not None]
    return Change(
        number,
        advance(expected, content.secret, checks, erased),
        tuple(map(Row, batch.records, checks)),
        tuple(seq for seq, _ in erased),
        tuple((key, expected.seq + 1 + position) for key, position in batch.keys),
    )


def purged_content(content: Content, rewrite: Rewrite, progress: Progress | None = None) -> Content:
    """Return what a purge leaves of a content: dense, of the next epoch, spaces in `purged_order`.

    Raises:
        Corrupt: a row is damaged, or the rows of a space do not add up to its head.
    """
    names = {number: name for name, number in content.names.items()}
    purged = Content(content.secret, epoch=content.epoch + 1)
    total = sum(len(space.rows) for space in content.spaces)
    done = 0
    stored = {number: stored_key(0, name) for number, name in names.items()}
    for number in purged_order(stored, range(1, len(content.spaces) + 1)):
        space = content.space(number)
        check_digest(number, content.secret, space.head, space.rows)
        kept = list(rewrite(number, lambda number=number, rows=space.rows: entries(number, 0, rows)))  # type: ignore[misc]
        if kept:
            _add_space(purged, names.get(number), kept)
        done += len(space.rows)
        if progress is not None:
            progress(done, total)
    return purged


def _add_space(content: Content, name: bytes | None, kept: Sequence[Rewritten]) -> None:
    number = len(content.spaces) + 1
    check_first(kept[0])
    records = [record.data for record in kept]
    checks = checksums(number, 0, records)
    head = advance(EMPTY._replace(epoch=content.epoch), content.secret, checks)
    keys = {key: seq for seq, record in enumerate(kept, 1) for key in record.keys}
    content.spaces.append(SpaceContent(head, list(map(Row, records, checks)), keys))
    if name is not None:
        content.names[name] = number


def entries(number: int, after: int, rows: Sequence[Row]) -> Iterator[Entry]:
    """Yield the entries of consecutive rows, the first at after + 1, each verified when its turn comes."""
    for seq, row in enumerate(rows, after + 1):
        yield Entry(seq, verified(number, seq, row))


def points(number: int, space: SpaceContent, seqs: Sequence[int], head: Head) -> list[bytes | None]:
    """Return the records of these seqs in the order asked, verified; None where erased.

    Raises:
        Moved: the space's epoch or erasures differ from `head`, or it holds fewer records.
        InvalidRequest: a seq is not within 1 to the last one.
        Corrupt: a row is damaged.
    """
    if not same_content(space.head, head) or space.head.seq < head.seq:
        raise Moved(f"space {number} had records erased since the head was read; read it again")
    for seq in seqs:
        if not 1 <= seq <= len(space.rows):
            raise InvalidRequest(
                f"seqs names record {seq}, but space {number} holds 1 to {len(space.rows)}", field="seqs"
            )
    return [verified(number, seq, space.rows[seq - 1]) for seq in seqs]


def verified(number: int, seq: int, row: Row) -> bytes | None:
    """Return the row's data, None for an erased one; raises Corrupt when it is damaged."""
    data, check = row
    if checksum(number, seq, data) != check if data is not None else check != ERASED_CHECK:
        raise Corrupt(f"record {seq} of space {number} is damaged: restore a backup", space=number, seq=seq)
    return data


def damaged_rows(number: int, rows: Sequence[Row]) -> Iterator[Finding]:
    """Yield a finding for each row that is not what its checksum says."""
    for seq, row in enumerate(rows, 1):
        try:
            verified(number, seq, row)
        except Corrupt as error:
            yield Finding(error.message, number, seq)


def check_digest(number: int, secret: bytes, head: Head, rows: Sequence[Row]) -> None:
    """Raise Corrupt unless all rows of a space add up to its head."""
    live = [(seq, check) for seq, (data, check) in enumerate(rows, 1) if data is not None]
    found = (len(rows), len(rows) - len(live), digest_bytes(digest_sum(secret, live)))
    if found != (head.seq, head.erasures, head.digest):
        raise Corrupt(
            f"the {counted(len(rows), 'record')} of space {number} ({len(rows) - len(live)} erased) do not add up to its "
            f"head ({head.seq}, {head.erasures} erased): restore a backup",
            space=number,
        )


def same_content(head: Head, other: Head) -> bool:
    """Return whether nothing was erased between two heads of one space."""
    return (head.epoch, head.erasures) == (other.epoch, other.erasures)
