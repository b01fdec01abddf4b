"""A log that was put back to an earlier moment together with its audit: events name what is there, by open stores too."""

from __future__ import annotations

from typing import Any

import pytest

from perdure import ManualClock, Store, Unavailable
from perdure.audit.audit import Audit
from perdure.log.protocol import Log
from scenarios.putting_back import PutBackLog
from scenarios.stores import NOW


class Database:
    """A log and its audit, put back together; any number of stores may have it open."""

    def __init__(self) -> None:
        self.log, self.audit = PutBackLog(), PutBackLog()

    def open(self) -> Store:
        return Store.open(log=self.log, audit_log=self.audit, clock=ManualClock(NOW))

    def copy(self) -> tuple[bytes, bytes]:
        return self.log.copy(), self.audit.copy()

    def put_back(self, copy: tuple[bytes, bytes]) -> None:
        self.log.put_back(copy[0])
        self.audit.put_back(copy[1])


def told(store: Store) -> list[tuple[str, str | None]]:
    return [(event.type, event.fact_id) for event in store.memory("ann").events().items]


@pytest.mark.parametrize("since", [1, 2, 3])
def test_numbers_of_lost_facts_are_not_taken_for_those_of_others(since):
    database = Database()
    one, other = database.open(), database.open()
    one.memory("ann").remember("the first", id="first")
    for store in (one, other):
        assert told(store) == [("created", "first")]
    copy = database.copy()
    for number in range(2):
        one.memory("ann").remember(f"lost {number}", id=f"lost {number}")
    for store in (one, other):
        assert [id_ for _, id_ in told(store)] == ["first", "lost 0", "lost 1"]
    database.put_back(copy)
    third = database.open()
    for number in range(since):
        third.memory("ann").remember(f"kept {number}", id=f"kept {number}")
    third.memory("ann").end("kept 0")
    for store in (one, other):
        kinds = [("created", f"kept {number}") for number in range(since)]
        assert told(store) == [("created", "first"), *kinds, ("ended", "kept 0")]
        assert told(store) == told(database.open())
        assert [event.type for event in store.memory("ann").events(id="kept 0").items] == ["created", "ended"]
        assert store.verify().ok


def test_a_space_that_takes_the_number_of_a_lost_one_has_its_own_name():
    database = Database()
    one = database.open()
    one.memory("ann").remember("the first", id="first")
    copy = database.copy()
    one.memory("ben").remember("lost", id="lost")
    assert [event.fact_id for event in one.memory("ben").events().items] == ["lost"]
    database.put_back(copy)
    third = database.open()
    third.memory("cid").remember("kept", id="kept")
    third.memory("cid").remember("another", id="another")
    assert [event.fact_id for event in one.memory("cid").events().items] == ["kept", "another"]
    assert one.memory("ben").events().items == ()


class Beside:
    """Where an audit's log is, that goes with what it was begun in."""

    def __init__(self) -> None:
        self.log = PutBackLog()
        self.is_between = False
        self.opened = 0

    def exists(self) -> bool:
        return self.opened > 0

    def size_bytes(self) -> int:
        return 0

    def open(self) -> Log:
        self.opened += 1
        return GoneLog(self, self.log)

    def rekey(self, *, between: bool) -> None:
        """Keep the key."""


class GoneLog:
    """Passes everything on to a log for as long as that is the one of its place."""

    def __init__(self, place: Beside, log: PutBackLog) -> None:
        self._place, self._log = place, log

    def __getattr__(self, name: str) -> Any:
        if self._place.log is not self._log and name != "close":
            raise Unavailable("the tenant was deleted", kind="gone")
        return getattr(self._log, name)


def test_an_audit_that_was_begun_after_the_moment_is_begun_anew():
    log, place, clock = PutBackLog(), Beside(), ManualClock(NOW)
    Store.open(log=log, audit="off", clock=clock).memory("ann").remember("the first", id="first")
    audit = Audit(log, place, clock)
    assert audit.follow().next == 2
    place.log = PutBackLog()
    assert audit.follow().next == 2
    assert place.opened == 2
    place.log = PutBackLog()
    audit.note("exported", {"facts": 1})
    assert audit.follow().next == 3


def test_a_log_that_is_gone_itself_is_not_taken_for_its_audit():
    log, place, clock = PutBackLog(), Beside(), ManualClock(NOW)
    Store.open(log=log, audit="off", clock=clock).memory("ann").remember("the first", id="first")
    audit = Audit(GoneLog(place, place.log), place, clock)
    place.log = log
    with pytest.raises(Unavailable):
        audit.follow()
