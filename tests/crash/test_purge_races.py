"""A purge by another process comes at any moment of an opening: the opening takes the new generation.

While a write is under way it cannot come, and what a read sees of it is one statement's matter.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import apsw
import pytest

from crash import steps
from crash.children import Nursery
from perdure.log.sqlite import SqliteLog

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not hasattr(os, "fork"), reason="children are forked, and this platform has no fork"),
]


class Moment:
    """Lets another process purge the store just before the n-th statement outside a transaction from now on."""

    def __init__(self, nursery: Nursery, place: Path) -> None:
        self.nursery, self.place = nursery, place
        self.left: int | None = None

    def watch(self, db: apsw.Connection) -> None:
        db.exec_trace = self.before

    def before(self, cursor: apsw.Cursor, sql: str, bindings: Any) -> bool:
        # Within a transaction store.lock may be held, and the purge would wait for it.
        if self.left is not None and not cursor.connection.in_transaction and not sql.startswith("COMMIT"):
            self.left -= 1
            if self.left == 0:
                self.left = None
                self.nursery.await_(self.nursery.start("run", str(self.place), "purge", "lines", 0))
        return True


@pytest.fixture
def moment(tmp_path: Path) -> Iterator[Moment]:
    steps.fill(tmp_path / "store")
    with Nursery("crash.steps") as nursery:
        moment = Moment(nursery, tmp_path / "store")
        apsw.connection_hooks.append(moment.watch)
        yield moment
        apsw.connection_hooks.remove(moment.watch)


def texts(log: SqliteLog) -> set[bytes | None]:
    return {entry.data for space in log.spaces() for entry in log.read(space, 0, log.head(space).seq)}


def test_a_purge_at_any_moment_of_an_opening_is_no_damage(moment):
    expected = {b"first", *(text for tag in (*steps.KEPT, steps.GONE) for text in steps.texts_of(tag))}
    for left in range(1, 200, 3):
        moment.left = left
        log = SqliteLog.open(moment.place)
        came = moment.left is None
        moment.left = None
        assert texts(log) - {None, b"removal"} == expected
        log.close()
        if not came:
            break
    assert 10 < left < 190
