"""Every data key is noted before anything is sealed under it: of a write that failed none is left once what it held is forgotten."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from time import monotonic
from uuid import UUID

import psycopg
import pytest

from perdure.errors import Busy, Conflict, Corrupt, NotFound, PerdureError, StorageFull, Unavailable
from perdure.log.postgres import FileKeystore, PostgresLog
from perdure.log.postgres.access import Access
from perdure.log.postgres.connections import Session
from perdure.log.postgres.noting import Claim
from perdure.log.postgres.sealing import RECORDS_MAX, Sealer
from perdure.log.protocol import Batch, Cached, Rewritten
from postgres_proxy import Proxy
from postgres_server import ROLE, fresh_database, shared_server

NAME, OTHER = b"n" * 16, b"o" * 16
MARKER = b"the words that are forgotten"


class Site:
    """A database, its keystore, and what was sealed with the marker in it."""

    def __init__(self, keys: Path) -> None:
        self.database, self.keys = fresh_database(), keys
        self.proxy = Proxy(shared_server().root)
        self.marked: set[int] = set()
        self.sealed: set[int] = set()
        self._opened: list[PostgresLog] = []
        self._owner = psycopg.connect(shared_server().address(self.database), autocommit=True)

    @property
    def proxied(self) -> str:
        return f"postgresql://{ROLE}@/{self.database}?host={self.proxy.root}"

    def open(self, *, proxied: bool = False, timeout_s: float = 5.0) -> PostgresLog:
        address = self.proxied if proxied else shared_server().address(self.database, ROLE)
        log = PostgresLog.open(address, tenant="acme", keystore=FileKeystore(self.keys), timeout_s=timeout_s)
        self._opened.append(log)
        return log

    def close(self) -> None:
        for log in self._opened:
            log.close()
        self._owner.close()
        self.proxy.close()

    def execute(self, statement: str) -> list[tuple[object, ...]]:
        cursor = self._owner.execute(statement.encode())
        return cursor.fetchall() if cursor.description else []

    @property
    def tenant(self) -> UUID:
        [file] = self.keys.glob("*.keys")
        return UUID(file.stem)

    def kept(self) -> set[int]:
        """The numbers of all data keys that the keystore has."""
        keystore = FileKeystore(self.keys)
        return set(keystore.find_keys(self.tenant, range(1, keystore.newest(self.tenant) + 1)))

    def in_use(self) -> set[int]:
        found = self.execute(
            "SELECT key FROM perdure.record WHERE data IS NOT NULL UNION SELECT key FROM perdure.cache"
        )
        return {int(str(row[0])) for row in found}

    def notes(self) -> list[tuple[object, ...]]:
        return self.execute("SELECT key, doomed FROM perdure.key_note ORDER BY key")


@pytest.fixture
def site(tmp_path, monkeypatch) -> Iterator[Site]:
    made = Site(tmp_path / "keys")
    seal, seal_parts = Sealer.seal, Sealer.seal_parts

    def sealing(self, key, space, epoch, seq, data):
        made.sealed.add(key)
        if MARKER in data:
            made.marked.add(key)
        return seal(self, key, space, epoch, seq, data)

    def sealing_parts(self, key, of, parts):
        made.sealed.add(key)
        if any(MARKER in part for part in parts):
            made.marked.add(key)
        return seal_parts(self, key, of, parts)

    monkeypatch.setattr(Sealer, "seal", sealing)
    monkeypatch.setattr(Sealer, "seal_parts", sealing_parts)
    yield made
    made.close()


def filled(log: PostgresLog, records: int = RECORDS_MAX) -> int:
    """Make a space of so many records; with the number that is usual the next one begins a bucket."""
    space = log.create_space(NAME, b"first")
    log.append(space, log.head(space), Batch([b"record"] * (records - 1)))
    return space


def tell(log: PostgresLog, space: int, data: bytes = MARKER) -> int:
    """Append a record, however often others are faster; return its number."""
    while True:
        with suppress(Conflict):
            return log.append(space, log.head(space), Batch([data])).seq


def forget(log: PostgresLog, space: int, seq: int) -> None:
    log.append(space, log.head(space), Batch([], [seq]))


def await_ended(site: Site) -> None:
    """Wait until the server has found out which clients are gone: until then it keeps what they had claimed."""
    asked = f"SELECT 1 FROM pg_stat_activity WHERE datname = '{site.database}' AND state LIKE 'idle in transaction%'"
    deadline = monotonic() + 20
    while site.execute(asked):
        assert monotonic() < deadline, "a transaction of nobody is still there"


def check_all_is_gone(site: Site, log: PostgresLog) -> None:
    """Check that what was marked can be opened by nobody, and that no key is left that sealed something and is not in use."""
    await_ended(site)
    assert log.scrub()
    assert not log.scrub_pending()
    assert site.notes() == []
    kept = site.kept()
    assert kept & site.marked == set()
    assert (kept & site.sealed) - site.in_use() == set()
    assert site.in_use() - kept <= {0}
    assert list(log.verify()) == []


MOMENTS = [
    ("INSERT INTO perdure.key_note", "before"),
    ("END", "before"),
    ("END", "sent"),
    ("DELETE FROM perdure.key_note", "before"),
    ("SELECT epoch, keys_from FROM perdure.tenant", "sent"),
    ("INSERT INTO perdure.record", "before"),
    ("INSERT INTO perdure.record", "sent"),
    ("UPDATE perdure.space SET seq", "before"),
    ("COMMIT", "before"),
    ("COMMIT", "sent"),
]


@pytest.mark.parametrize(("word", "when"), MOMENTS)
def test_no_key_is_left_of_an_append_whose_connection_broke(site, word, when):
    log = site.open(proxied=True)
    space = filled(log)
    site.proxy.cut(word, when)
    seq = tell(log, space)
    assert site.proxy.cuts == 1
    forget(log, space, seq)
    check_all_is_gone(site, log)


@pytest.mark.parametrize(("word", "when"), [*MOMENTS, ("UPDATE perdure.record SET data", "sent")])
def test_no_key_is_left_of_an_erasure_whose_connection_broke(site, word, when):
    log = site.open(proxied=True)
    space = filled(log)
    seq = tell(log, space)
    tell(log, space, b"beside it")
    site.proxy.cut(word, when)
    log.append(space, log.head(space), Batch([b"more"], [seq]))
    assert site.proxy.cuts == 1
    check_all_is_gone(site, log)


@pytest.mark.parametrize(
    ("word", "when"),
    [("END", "sent"), ("INSERT INTO perdure.record", "sent"), ("COMMIT", "before"), ("COMMIT", "sent")],
)
def test_no_key_is_left_of_a_space_whose_connection_broke_as_it_was_made(site, word, when):
    log = site.open(proxied=True)
    site.proxy.cut(word, when)
    space = log.create_space(NAME, MARKER)
    assert site.proxy.cuts == 1
    forget(log, space, 1)
    check_all_is_gone(site, log)


FAILURES = {
    "as the records are written": ("BEFORE INSERT ON perdure.record", ""),
    "as the head is moved": ("BEFORE UPDATE ON perdure.space", ""),
    "as it is committed": ("AFTER INSERT ON perdure.record", "DEFERRABLE INITIALLY DEFERRED"),
    "as its keys are noted": ("BEFORE INSERT ON perdure.key_note", ""),
    "as its keys are claimed": ("BEFORE DELETE ON perdure.key_note", ""),
}


@pytest.fixture
def failing(site) -> Callable[[str], None]:
    """Make the database say that its disk is full, at a moment of every transaction; or no more."""
    site.execute(
        "CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS "
        "$$ BEGIN RAISE EXCEPTION 'no room' USING ERRCODE = 'disk_full'; END $$"
    )

    def fail(when: str) -> None:
        for table in ("record", "space", "key_note"):
            site.execute(f"DROP TRIGGER IF EXISTS refusing ON perdure.{table}")
        if when:
            moment, how = FAILURES[when]
            kind = "CONSTRAINT TRIGGER" if how else "TRIGGER"
            site.execute(f"CREATE {kind} refusing {moment} {how} FOR EACH ROW EXECUTE FUNCTION refuse()")

    return fail


@pytest.mark.parametrize("when", FAILURES)
def test_no_key_is_left_of_an_append_that_failed(site, failing, when):
    log = site.open()
    space = filled(log)
    failing(when)
    with pytest.raises(StorageFull):
        tell(log, space)
    failing("")
    assert log.head(space).seq == RECORDS_MAX
    seq = tell(log, space)
    forget(log, space, seq)
    check_all_is_gone(site, log)


def test_an_append_that_failed_leaves_nothing_to_be_done(site, failing):
    log = site.open()
    space = filled(log)
    failing("as the head is moved")
    with pytest.raises(StorageFull):
        tell(log, space)
    assert site.marked
    assert site.kept() & site.marked == set()
    assert not log.scrub_pending()


def test_an_append_that_came_too_late_leaves_no_note(site):
    log, other = site.open(), site.open()
    space = filled(log)
    head = log.head(space)
    tell(other, space)
    with pytest.raises(Conflict):
        log.append(space, head, Batch([b"late"]))
    with pytest.raises(NotFound):
        log.append(9, head, Batch([b"to nowhere"]))
    assert site.notes() == []


CHILD = """
import sys
from perdure.log.postgres import FileKeystore, PostgresLog
from perdure.log.protocol import Batch, Cached
address, keys, what, marker = sys.argv[1:]
log = PostgresLog.open(address, tenant="acme", keystore=FileKeystore(keys))
head, data = log.head(1), marker.encode()
print("ready", flush=True)
sys.stdin.readline()
if what == "append":
    log.append(1, head, Batch([data]))
elif what == "cache":
    log.put_cache(1, "state", Cached(head, data))
elif what == "purge":
    log.purge(lambda _, read: iter(()))
else:
    log.append(1, head, Batch([], [head.seq]))
"""


def kill_at(site: Site, what: str, word: str, when: str) -> None:
    """Have another process do something, and kill it as it says this to the database."""
    told = [sys.executable, "-c", CHILD, site.proxied, str(site.keys), what, MARKER.decode()]
    with subprocess.Popen(told, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as child:
        assert child.stdin is not None
        assert child.stdout is not None
        assert child.stdout.readline() == "ready\n"
        site.proxy.meanwhile = lambda: os.kill(child.pid, signal.SIGKILL)
        site.proxy.cut(word, when)
        child.stdin.write("go\n")
        child.stdin.flush()
        assert child.wait(30) == -signal.SIGKILL
    site.proxy.meanwhile = lambda: None


needs_kill = pytest.mark.skipif(os.name != "posix", reason="signals are sent")


@needs_kill
@pytest.mark.parametrize(
    ("word", "when"),
    [
        ("END", "sent"),
        ("DELETE FROM perdure.key_note", "sent"),
        ("INSERT INTO perdure.record", "before"),
        ("UPDATE perdure.space SET seq", "before"),
        ("COMMIT", "before"),
    ],
)
def test_no_key_is_left_of_an_append_whose_process_was_killed(site, word, when):
    log = site.open()
    space = filled(log)
    kill_at(site, "append", word, when)
    assert log.head(space).seq == RECORDS_MAX
    noted = {int(str(key)) for key, _ in site.notes()}
    assert noted
    assert log.scrub_pending()
    seq = tell(log, space)
    forget(log, space, seq)
    assert log.scrub()
    assert not log.scrub_pending()
    assert site.kept() & (noted | site.marked) == set()
    assert site.notes() == []
    assert [entry.data for entry in log.read(space, 0, seq)][-1] is None


@needs_kill
@pytest.mark.parametrize("word", ["INSERT INTO perdure.record", "COMMIT"])
def test_no_key_is_left_of_a_purge_whose_process_was_killed(site, word):
    log = site.open()
    filled(log)
    kill_at(site, "purge", word, "before") if word == "COMMIT" else kill_at(
        site, "purge", "UPDATE perdure.tenant", "before"
    )
    noted = {int(str(key)) for key, _ in site.notes()}
    assert noted
    assert log.epoch() == 0
    assert log.scrub()
    assert site.kept() & noted == set()
    assert list(log.verify()) == []


def keep(_space: int, read: Callable[[], Iterator[object]]) -> Iterator[Rewritten]:
    return (Rewritten(entry.data) for entry in read() if entry.data is not None)  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    "when", ["as the records are written", "as its keys are noted", "as its keys are claimed"]
)
def test_a_purge_that_failed_leaves_no_key_and_may_be_repeated_by_another_server(site, failing, when):
    log, other = site.open(), site.open()
    space = filled(log)
    before = site.kept()
    failing(when)
    with pytest.raises(StorageFull):
        log.purge(keep)
    failing("")
    assert log.scrub()
    assert not other.purge(keep).pending
    seq = tell(log, space)
    tell(log, log.create_space(OTHER, b"first"), b"more")
    assert site.kept() & before & site.sealed == set()
    assert site.in_use() - site.kept() == set()
    forget(log, space, seq)
    check_all_is_gone(site, other)


def is_waiting(site: Site) -> bool:
    """Whether somebody waits for a lock in this database."""
    found = site.execute(
        f"SELECT 1 FROM pg_stat_activity WHERE datname = '{site.database}' AND wait_event_type = 'Lock'"
    )
    return bool(found)


def test_nobody_writes_from_the_moment_that_a_purge_begins(site, monkeypatch):
    log, other = site.open(), site.open(timeout_s=20)
    space = filled(log)
    made, wrote = FileKeystore.new_keys, threading.Event()

    def write() -> None:
        tell(other, space)
        other.put_cache(space, "state", Cached(other.head(space), MARKER))
        for number in range(20):
            other.create_space(bytes([number] * 16), b"one more")
        wrote.set()

    writing = threading.Thread(target=write)

    def making(self, tenant, count):
        """Make the keys of the purge; and before they are noted, let another server try to write."""
        keys = made(self, tenant, count)
        monkeypatch.setattr(FileKeystore, "new_keys", made)
        writing.start()
        while not (wrote.is_set() or is_waiting(site)):
            continue
        return keys

    monkeypatch.setattr(FileKeystore, "new_keys", making)
    assert log.purge(keep).records == RECORDS_MAX
    writing.join(20)
    assert wrote.is_set()
    assert [entry.data for entry in log.read(1, 0, 999)][-1] == MARKER
    assert len(log.spaces()) == 21
    forget(log, 1, RECORDS_MAX + 1)
    check_all_is_gone(site, log)


def test_a_scrub_beside_a_purge_that_is_under_way_leaves_no_key_of_a_write_that_came_to_nothing(site):
    log, other = site.open(timeout_s=20), site.open()
    space = filled(log)
    seq = tell(log, space)
    kill_at(site, "append", "INSERT INTO perdure.record", "before")  # what it told as well
    forget(log, space, seq)
    site.execute(
        "CREATE FUNCTION hold() RETURNS trigger LANGUAGE plpgsql AS "
        "$$ BEGIN PERFORM pg_advisory_xact_lock(1); RETURN NEW; END $$"
    )
    site.execute(
        "CREATE TRIGGER holding BEFORE UPDATE ON perdure.tenant FOR EACH ROW EXECUTE FUNCTION hold()"
    )
    with psycopg.connect(shared_server().address(site.database)) as holder:
        holder.execute("SELECT pg_advisory_xact_lock(1)")
        purging = threading.Thread(target=lambda: log.purge(keep))
        purging.start()
        while not is_waiting(site):
            continue
        assert other.scrub()
        assert site.kept() & site.marked == set()
        assert other.epoch() == 0
    purging.join(20)
    assert other.epoch() == 1
    check_all_is_gone(site, other)


# Claims


class Gate:
    """Holds whoever says something to the database, in one thread, until it is opened."""

    def __init__(self, monkeypatch, name: str) -> None:
        self.reached, self.opened = threading.Event(), threading.Event()
        self.thread: threading.Thread | None = None
        send = Session.send

        def sending(session, told, params=()):
            if told == name and threading.current_thread() is self.thread:
                self.reached.set()
                assert self.opened.wait(20)
            return send(session, told, params)

        monkeypatch.setattr(Session, "send", sending)

    def hold(self, work: Callable[[], object]) -> None:
        """Begin the work, and return once it is held."""
        self.thread = threading.Thread(target=work)
        self.thread.start()
        assert self.reached.wait(20)

    def let_go(self) -> None:
        self.opened.set()
        assert self.thread is not None
        self.thread.join(20)


def test_a_scrub_leaves_the_keys_alone_of_transactions_that_are_on_their_way(site, monkeypatch):
    log, other = site.open(), site.open()
    space = filled(log)
    gate = Gate(monkeypatch, "move_head")
    gate.hold(lambda: tell(log, space))
    assert len(site.notes()) == 1
    assert not other.scrub_pending()
    assert other.scrub()
    gate.let_go()
    assert [entry.data for entry in other.read(space, RECORDS_MAX, RECORDS_MAX + 1)] == [MARKER]
    assert site.notes() == []


def test_keys_that_were_doomed_before_they_could_be_claimed_are_not_used(site):
    log, other = site.open(), site.open()
    space = filled(log)
    newest = FileKeystore(site.keys).newest(site.tenant)
    doomed = ", ".join(f"('{site.tenant}', {number})" for number in range(2, newest + 1))
    site.execute(f"INSERT INTO perdure.key_note (tenant, key) VALUES {doomed}")
    tell(log, space)
    assert min(site.marked) > newest
    assert other.scrub()
    assert [entry.data for entry in other.read(space, RECORDS_MAX, RECORDS_MAX + 1)] == [MARKER]
    log.create_space(OTHER, MARKER)
    assert site.marked <= site.kept()


def test_a_write_whose_keys_are_doomed_again_and_again_is_refused_and_changes_nothing(site):
    log = site.open()
    space = filled(log)
    site.execute(
        "CREATE FUNCTION doom() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN NEW.doomed = true; RETURN NEW; END $$"
    )
    site.execute(
        "CREATE TRIGGER dooming BEFORE INSERT ON perdure.key_note FOR EACH ROW EXECUTE FUNCTION doom()"
    )
    with pytest.raises(Busy, match="destroyed by others again and again"):
        tell(log, space)
    with pytest.raises(Busy, match="destroyed by others again and again"):
        log.create_space(OTHER, b"first")
    with pytest.raises(Busy, match="destroyed by others again and again"):
        log.purge(keep)
    assert log.head(space).seq == RECORDS_MAX
    assert site.marked == set()


def test_a_writer_that_lost_its_place_as_its_keys_were_noted_is_not_overtaken_again(site, monkeypatch):
    log, other = site.open(), site.open()
    space = filled(log)
    made = FileKeystore.new_keys

    def making(self, tenant, count):
        monkeypatch.setattr(FileKeystore, "new_keys", made)
        tell(other, space)
        return made(self, tenant, count)

    with log.writer(space=space):
        head = log.head(space)
        monkeypatch.setattr(FileKeystore, "new_keys", making)
        with pytest.raises(Conflict):
            log.append(space, head, Batch([b"mine"] * RECORDS_MAX * 40))  # more keys than were made ahead
        overtaking = threading.Thread(target=lambda: tell(other, space))
        head = log.head(space)
        overtaking.start()
        assert log.append(space, head, Batch([b"mine"] * RECORDS_MAX * 40)).seq == head.seq + RECORDS_MAX * 40
    overtaking.join(20)
    assert list(log.verify()) == []
    assert log.scrub()
    assert site.in_use() - site.kept() == set()


def test_who_keeps_all_writers_out_goes_on_doing_so_while_keys_are_noted(site):
    log, other = site.open(), site.open()
    space = filled(log)
    seq = tell(other, space)
    with log.writer():
        head = log.head(space)
        waiting = threading.Thread(target=lambda: tell(other, space, b"theirs"))
        waiting.start()
        moved = log.append(space, head, Batch([b"mine"] * RECORDS_MAX, [2, seq]))
        assert moved.seq == head.seq + RECORDS_MAX
    waiting.join(20)
    assert log.head(space).seq == moved.seq + 1
    check_all_is_gone(site, log)


def test_what_was_committed_is_told_though_another_process_has_the_turn_of_the_store_since(site, monkeypatch):
    log, other = site.open(timeout_s=0.3), site.open()
    space = filled(log, 3)
    taken, done = threading.Event(), threading.Event()
    lock_again = Access._lock_again

    def take() -> None:
        with other.writer():
            taken.set()
            assert done.wait(20)

    def late(self, whole):  # between a commit and this, whoever waits may be faster
        assert taken.wait(20)
        lock_again(self, whole)

    taking = threading.Thread(target=take)
    with log.writer():
        taking.start()
        monkeypatch.setattr(Access, "_lock_again", late)
        assert log.append(space, log.head(space), Batch([b"mine"])).seq == 4
        with pytest.raises((Busy, Unavailable)):
            log.append(space, log.head(space), Batch([b"more"]))
    done.set()
    taking.join(20)
    assert log.head(space).seq == 4
    assert list(log.verify()) == []


def test_a_slow_keystore_keeps_no_other_writer_waiting(site, monkeypatch):
    log, other = site.open(timeout_s=0.5), site.open(timeout_s=0.5)
    space = filled(log, 10)
    made, asked, go_on = FileKeystore.new_keys, threading.Event(), threading.Event()

    def waiting(self, tenant, count):
        asked.set()
        assert go_on.wait(20)
        return made(self, tenant, count)

    monkeypatch.setattr(FileKeystore, "new_keys", waiting)

    def write() -> None:
        with log.writer(space=space), suppress(Conflict):
            log.append(space, log.head(space), Batch([b"many"] * RECORDS_MAX * 40))

    slow = threading.Thread(target=write)
    slow.start()
    assert asked.wait(20)
    monkeypatch.setattr(FileKeystore, "new_keys", made)
    assert tell(other, space, b"quick") == 11
    go_on.set()
    slow.join(20)


@pytest.mark.parametrize("erased", [[], [2]], ids=["goes on", "erases"])
def test_a_keystore_that_is_slow_to_find_a_key_keeps_no_other_writer_waiting(site, monkeypatch, erased):
    other = site.open(timeout_s=0.5)
    space = filled(other, 10)
    log = site.open(timeout_s=0.5)  # which has no key at hand
    find, asked, go_on = FileKeystore.find_keys, threading.Event(), threading.Event()

    def waiting(self, tenant, numbers):
        if threading.current_thread() is slow:
            asked.set()
            assert go_on.wait(20)
        return find(self, tenant, numbers)

    def write() -> None:
        with log.writer(space=space), suppress(Conflict):
            log.append(space, log.head(space), Batch([b"more"], erased))

    slow = threading.Thread(target=write)
    monkeypatch.setattr(FileKeystore, "find_keys", waiting)
    slow.start()
    assert asked.wait(20)
    assert tell(other, space, b"quick") == 11
    go_on.set()
    slow.join(20)
    assert list(other.verify()) == []


# An older copy of the keystore


def test_an_older_keystore_is_recognised_also_after_a_forget_among_the_first_records(site):
    log, late = site.open(), site.open()
    space = filled(log, RECORDS_MAX * 2 + 1)
    [file] = site.keys.glob("*.keys")
    older = file.read_bytes()
    for number in range(2, 20):  # more than were made ahead
        forget(log, space, number)
        assert log.scrub()
    newer = file.read_bytes()
    assert len(newer) > len(older)
    file.write_bytes(older)
    with pytest.raises(Corrupt, match="older copy"):
        site.open()
    with pytest.raises(Corrupt, match=r"older copy .* Put the newer copy back"):
        late.create_space(OTHER, b"first")
    file.write_bytes(newer)
    late.create_space(OTHER, b"first")
    assert list(late.verify()) == []


# Snapshots


def cached(log: PostgresLog, space: int, blob: bytes = MARKER) -> Cached:
    return Cached(log.head(space), blob)


def test_writers_go_on_while_a_snapshot_is_sent(site, monkeypatch):
    log, other = site.open(), site.open(timeout_s=0.5)
    space = filled(log, 3)
    log.put_cache(space, "state", cached(log, space, b"older"))
    taken = cached(log, space, bytes(3 << 20))
    gate = Gate(monkeypatch, "add_cache_part")
    gate.hold(lambda: log.put_cache(space, "state", taken))
    assert tell(other, space, b"meanwhile") == 4
    kept = other.get_cache(space, "state")
    assert kept is not None
    assert kept.blob == b"older", "the one before is there until the other one is whole"
    assert not other.scrub_pending()
    gate.let_go()
    kept = other.get_cache(space, "state")
    assert kept is not None
    assert (len(kept.blob), kept.head) == (3 << 20, taken.head)
    assert site.execute("SELECT count(DISTINCT made), count(*) FROM perdure.cache_part") == [(1, 3)]
    check_all_is_gone(site, log)


@pytest.mark.parametrize(
    ("how", "at"),
    [(how, at) for how in ("erased", "purged") for at in ("share_tenant", "add_cache_part")],
)
def test_a_snapshot_of_what_is_erased_or_purged_as_it_is_sent_cannot_be_opened(site, monkeypatch, how, at):
    log, other = site.open(), site.open()
    space = filled(log, 3)
    seq = tell(log, space)
    taken = cached(log, space)
    gate = Gate(monkeypatch, at)
    gate.hold(lambda: log.put_cache(space, "state", taken))
    if how == "erased":
        forget(other, space, seq)
        assert other.scrub()
    else:
        other.purge(lambda _, read: (Rewritten(e.data) for e in read() if e.data not in (None, MARKER)))
    assert not other.scrub_pending()
    assert site.kept() & site.marked == set(), "though it is not known yet whether it will be kept"
    gate.let_go()
    assert other.get_cache(space, "state") is None
    assert site.execute("SELECT count(*) FROM perdure.cache_part") == [(0,)]
    check_all_is_gone(site, other)


def test_a_claim_that_is_not_yet_looked_at_hides_no_key_of_a_snapshot_of_what_is_forgotten(site, monkeypatch):
    log, other = site.open(), site.open()
    space = filled(log, 3)
    seq = tell(log, space)
    taken, gate = cached(log, space), Gate(monkeypatch, "share_tenant")
    claimed, go_on, check = threading.Event(), threading.Event(), Claim.check

    def checking(self, *told):
        if threading.current_thread() is gate.thread:
            claimed.set()
            assert go_on.wait(20)
        check(self, *told)

    monkeypatch.setattr(Claim, "check", checking)
    gate.hold(lambda: log.put_cache(space, "state", taken))
    forget(other, space, seq)
    gate.opened.set()
    assert claimed.wait(20)
    assert other.scrub()
    assert not other.scrub_pending()
    assert site.kept() & site.marked == set()
    go_on.set()
    gate.let_go()
    assert other.get_cache(space, "state") is None
    check_all_is_gone(site, other)


def test_a_snapshot_whose_key_is_destroyed_before_it_is_sealed_is_not_kept(site, monkeypatch):
    log, other = site.open(), site.open()
    space = filled(log, 3)
    seq, seal_parts = tell(log, space), Sealer.seal_parts

    def sealing(sealer, *told):
        forget(other, space, seq)
        assert other.scrub()
        sealer.note(space, 0, 99)  # as when it looks where the space stands
        return seal_parts(sealer, *told)

    monkeypatch.setattr(Sealer, "seal_parts", sealing)
    log.put_cache(space, "state", cached(log, space))
    assert other.get_cache(space, "state") is None
    check_all_is_gone(site, other)


def test_nothing_of_a_snapshot_that_comes_after_an_erasure_is_sealed(site, monkeypatch):
    log, other = site.open(), site.open()
    space = filled(log, 3)
    seq = tell(log, space)
    taken = cached(log, space)
    forget(other, space, seq)
    before = set(site.marked)
    log.put_cache(space, "state", taken)
    assert site.marked == before
    check_all_is_gone(site, other)


def test_of_two_snapshots_at_once_one_is_kept_whole(site, monkeypatch):
    log, other = site.open(), site.open()
    space = filled(log, 3)
    gate = Gate(monkeypatch, "share_tenant")
    gate.hold(lambda: log.put_cache(space, "state", cached(log, space, b"one" * 500_000)))
    other.put_cache(space, "state", cached(log, space, b"two" * 500_000))
    kept = other.get_cache(space, "state")
    assert kept is not None
    assert kept.blob == b"two" * 500_000
    gate.let_go()
    kept = other.get_cache(space, "state")
    assert kept is not None
    assert kept.blob == b"one" * 500_000
    assert site.execute("SELECT count(DISTINCT made) FROM perdure.cache_part") == [(1,)]
    check_all_is_gone(site, log)


def test_a_tenant_that_is_deleted_as_a_snapshot_is_sent_stays_deleted(site, monkeypatch):
    log, other = site.open(), site.open()
    space = filled(log, 3)
    gate, failed = Gate(monkeypatch, "add_cache_part"), list[PerdureError]()

    def put() -> None:
        try:
            log.put_cache(space, "state", cached(log, space))
        except Unavailable as error:
            failed.append(error)

    gate.hold(put)
    assert not other.drop().pending
    gate.let_go()
    assert [error.details["kind"] for error in failed] == ["gone"]
    for table in ("record", "space", "cache", "cache_part", "tenant"):
        assert site.execute(f"SELECT count(*) FROM perdure.{table}") == [(0,)]


@pytest.mark.parametrize("when", ["before", "sent"])
@pytest.mark.parametrize(
    "word", ["END", "INSERT INTO perdure.cache_part", "DELETE FROM perdure.key_note", "COMMIT"]
)
def test_a_snapshot_whose_connection_broke_leaves_all_of_it_or_nothing(site, word, when):
    log = site.open(proxied=True)
    space = filled(log, 3)
    seq = tell(log, space)
    taken = cached(log, space)
    site.proxy.cut(word, when)
    with suppress(Unavailable):
        log.put_cache(space, "state", taken)
    assert site.proxy.cuts == 1
    whole = (word, when) == ("COMMIT", "sent")
    assert site.execute("SELECT count(*) FROM perdure.cache_part") == [(int(whole),)]
    assert log.get_cache(space, "state") == (taken if whole else None)
    forget(log, space, seq)
    check_all_is_gone(site, log)


@needs_kill
@pytest.mark.parametrize("word", ["END", "SELECT epoch, keys_from FROM perdure.tenant", "COMMIT"])
def test_no_key_is_left_of_a_snapshot_whose_process_was_killed_once_it_is_forgotten(site, word):
    log = site.open()
    space = filled(log, 3)
    seq = tell(log, space)
    kill_at(site, "cache", word, "sent" if word == "END" else "before")
    noted = {int(str(key)) for key, _ in site.notes()}
    assert len(noted) == 1
    assert log.scrub(), "what it holds is in use still"
    forget(log, space, seq)
    assert log.scrub_pending()
    assert log.scrub()
    assert site.kept() & (noted | site.marked) == set()
    assert site.execute("SELECT count(*) FROM perdure.cache_part") == [(0,)]


@needs_kill
def test_the_key_of_a_snapshot_whose_process_was_killed_stays_while_nothing_of_its_space_is_forgotten_and_goes_with_a_purge(
    site,
):
    log = site.open()
    filled(log, 3)
    other = log.create_space(OTHER, b"first")
    seq = tell(log, other, b"of another space")
    kill_at(site, "cache", "COMMIT", "before")
    noted = {int(str(key)) for key, _ in site.notes()}
    assert len(noted) == 1
    forget(log, other, seq)
    assert log.scrub()
    assert not log.scrub_pending()
    assert noted <= site.kept(), "all that it opens is in use still"
    assert not log.purge(keep).pending
    assert site.kept() & noted == set()
    check_all_is_gone(site, log)


# What failed under a key that goes on being used


def fail_to_tell(site: Site, log: PostgresLog, space: int, failing: Callable[[str], None]) -> None:
    failing("as the head is moved")
    with pytest.raises(StorageFull):
        tell(log, space)
    failing("")


@pytest.mark.parametrize("ends", ["with a forget of another", "with a purge"])
@pytest.mark.parametrize("how", ["failed", pytest.param("was killed", marks=needs_kill)])
def test_what_a_write_that_came_to_nothing_sealed_under_the_key_of_others_goes_with_that_key(
    site, failing, how, ends
):
    log = site.open()
    space = filled(log, 3)
    [key] = site.in_use()
    if how == "failed":
        fail_to_tell(site, log, space, failing)
        assert site.marked == {key}
    else:
        kill_at(site, "append", "COMMIT", "before")
    assert site.in_use() == {key}
    assert log.scrub()
    assert not log.scrub_pending(), "nothing was forgotten, and the key opens what is there"
    assert key in site.kept()
    if ends == "with a purge":
        log.purge(keep)
    else:
        forget(log, space, 2)
    check_all_is_gone(site, log)
    assert key not in site.kept()


def test_what_failed_at_the_end_of_a_bucket_and_was_told_again_in_the_next_is_erased_of_the_former_by_what_erases_there(
    site, failing
):
    log = site.open()
    space = filled(log, RECORDS_MAX - 1)
    fail_to_tell(site, log, space, failing)
    [former] = site.marked
    tell(log, space, b"in its place")
    forget(log, space, tell(log, space))
    assert log.scrub()
    assert not log.scrub_pending()
    assert len(site.marked) == 2
    assert site.kept() & site.marked == {former}, "of 256 records that are there"
    forget(log, space, 7)
    check_all_is_gone(site, log)


# Within the turn of the store


def test_a_scrub_whose_connection_is_lost_within_the_turn_of_the_store_says_that_something_is_left(site):
    log = site.open()
    space = filled(log, 3)
    seq = tell(log, space)
    with log.writer():
        forget(log, space, seq)
        site.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
            f"WHERE datname = '{site.database}' AND pid <> pg_backend_pid()"
        )
        assert not log.scrub()
        assert site.kept() & site.marked
    assert log.scrub_pending()
    check_all_is_gone(site, log)


# Of a database that version 1 wrote


def as_migrated(site: Site) -> None:
    """Leave of the newest keys what is known of a space after the migration to version 2: its last record's."""
    site.execute("UPDATE perdure.space SET newest_key = key")


def test_a_purge_destroys_every_key_of_a_migrated_database_whatever_was_known_of_them(site):
    log = site.open()
    space = filled(log, RECORDS_MAX * 2 + 1)
    forget(log, space, 5)  # of the first bucket, which is under the newest key from then on
    assert log.scrub()
    as_migrated(site)
    before = site.kept()
    again = site.open()
    assert not again.purge(keep).pending
    assert site.kept() & before & site.sealed == set()
    assert max(site.in_use()) > max(before)
    check_all_is_gone(site, again)


def test_an_older_keystore_beside_a_migrated_database_is_told_of_by_the_first_read_at_the_latest(site):
    log = site.open()
    space = filled(log, RECORDS_MAX * 2 + 1)
    [file] = site.keys.glob("*.keys")
    older = file.read_bytes()
    for number in range(2, 20):  # more than were made ahead
        forget(log, space, number)
    assert log.scrub()
    as_migrated(site)
    newer = file.read_bytes()
    file.write_bytes(older)
    late = site.open()  # since the newest keys are those of the first bucket
    with pytest.raises(Corrupt, match="lacks data key"):
        list(late.read(space, 0, 9))
    file.write_bytes(newer)
    log.purge(keep)
    file.write_bytes(older)
    with pytest.raises(Corrupt, match="older copy"):
        site.open()
