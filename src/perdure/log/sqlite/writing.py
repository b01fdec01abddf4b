"""What one append writes inside one write transaction."""

from __future__ import annotations

from collections.abc import Sequence

import apsw

from perdure.base.sqlite.driver import rows_of
from perdure.errors import Conflict
from perdure.log.digests import ERASED_CHECK, advance, checksums, stored_key
from perdure.log.protocol import EMPTY, Head
from perdure.log.sqlite.reading import (
    HEAD_AND_LAST_ROW,
    find_space,
    head_check,
    missing_row,
    parsed_head,
    verified,
)

INSERT = "INSERT INTO log.rec VALUES(?, ?, ?, ?, ?)"
POINT = "INSERT INTO log.key VALUES(?, ?) ON CONFLICT(h) DO UPDATE SET rid = excluded.rid"
PUT_HEAD = "INSERT INTO log.head VALUES(?, ?, ?, ?, ?, ?) ON CONFLICT(space) DO UPDATE SET " + (
    "epoch = excluded.epoch, seq = excluded.seq, erasures = excluded.erasures, digest = excluded.digest, "
    "ck = excluded.ck"
)
ERASED = "SELECT seq, data, ck, rid FROM log.rec WHERE space = ? AND seq = ?"
# Zeros of the same length: a row that never changes its size leaves no copy behind in its page.
ZERO = "UPDATE log.rec SET data = zeroblob(length(data)), ck = zeroblob(16) WHERE rid = ?"


class Writing:
    """One open write transaction on a generation. The caller begins, commits and rolls back."""

    def __init__(self, db: apsw.Connection, generation: int, secret: bytes) -> None:
        self._db = db
        self._generation = generation
        self._secret = secret
        self.last_row = 0

    def head(self, space: int) -> Head:
        """Return the space's head; every write begins with it, since it also tells where rows go on."""
        *head, self.last_row = rows_of(self._db, HEAD_AND_LAST_ROW, (space,))[0][2:]
        return parsed_head(space, self._generation, head)

    def head_of(self, name: bytes) -> Head:
        """Return the head of the space of this name, EMPTY where there is none."""
        found = find_space(self._db, self._generation, name)
        return EMPTY if found is None else self.head(found)

    def create_space(self, name: bytes, first: bytes) -> int:
        """Write record 1 of a new space and return the space's number: one more than the largest."""
        self.head(0)  # of no space, but it tells the last row
        found = find_space(self._db, self._generation, name)
        if found is not None:
            raise Conflict(
                f"a space of this name exists already, as number {found}; use find_space", kind="head"
            )
        space = int(rows_of(self._db, "SELECT coalesce(max(space), 0) + 1 FROM log.head")[0][0])
        self.append(space, EMPTY._replace(epoch=self._generation - 1), [first], [])
        self._db.execute(POINT, (stored_key(0, name), self.last_row))
        return space

    def append(self, space: int, head: Head, records: Sequence[bytes], erase: Sequence[int]) -> Head:
        """Insert and erase; return the new head."""
        checks = checksums(space, head.seq, records)
        rid = self.last_row
        self._db.executemany(
            INSERT,
            (
                (rid + n, space, head.seq + n, data, check)
                for n, (data, check) in enumerate(zip(records, checks, strict=True), 1)
            ),
        )
        self.last_row = rid + len(records)
        moved = advance(head, self._secret, checks, self._erase(space, erase))
        self._put_head(space, moved)
        return moved

    def point(self, space: int, after_row: int, keys: Sequence[tuple[bytes, int]]) -> None:
        """Point keys to the rows after_row + 1 + position."""
        self._db.executemany(
            POINT, [(stored_key(space, key), after_row + 1 + position) for key, position in keys]
        )

    def _erase(self, space: int, erase: Sequence[int]) -> list[tuple[int, bytes]]:
        erased = []
        for seq in erase:
            rows = rows_of(self._db, ERASED, (space, seq))
            if not rows:
                raise missing_row(space, seq, self._generation)
            *row, rid = rows[0]
            if verified(space, row, self._generation) is None and row[2] == ERASED_CHECK:
                continue
            self._db.execute(ZERO, (rid,))
            erased.append((seq, row[2]))
        return erased

    def _put_head(self, space: int, head: Head) -> None:
        kept = head._replace(epoch=head.epoch - (self._generation - 1))
        row = (space, kept.epoch, kept.seq, kept.erasures, kept.digest, head_check(space, kept))
        self._db.execute(PUT_HEAD, row)
