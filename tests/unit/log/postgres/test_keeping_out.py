"""Whoever keeps all writers out waits for those that are at work for as long as he was given, however many they are."""

from __future__ import annotations

import threading
from contextlib import contextmanager

import psycopg
import pytest

from perdure.errors import Busy, Unavailable
from perdure.log.postgres import FileKeystore, PostgresLog
from perdure.log.postgres.wire import Wire
from perdure.log.protocol import Batch, Cached
from postgres_server import ROLE, fresh_database, shared_server

WAIT_S = 1.0
WRITERS = 6
EACH_S = 0.4  # so all of them take longer than the wait, and each takes less


@contextmanager
def ending_in_turn(writers):
    """Have writers at work that end one after the other; when the block ends they are gone."""
    over = threading.Event()

    def end_in_turn() -> None:
        for writer in writers:
            over.wait(EACH_S)
            writer.rollback()

    ending = threading.Thread(target=end_in_turn)
    try:
        for writer in writers:
            writer.execute("SELECT tenant FROM perdure.tenant FOR KEY SHARE")
        ending.start()
        yield
        over.set()
        ending.join()
    finally:
        for writer in writers:
            writer.close()


@pytest.mark.parametrize("told", [None, WAIT_S], ids=["of the log", "of the call"])
def test_a_time_out_is_of_all_writers_together_and_not_of_each(tmp_path, told):
    server, database = shared_server(), fresh_database()
    address, keystore = server.address(database, ROLE), FileKeystore(tmp_path / "keys")
    own_s = WAIT_S if told is None else 60.0
    log = PostgresLog.open(address, tenant="ada", keystore=keystore, timeout_s=own_s)
    writers = [psycopg.connect(server.address(database, "postgres")) for _ in range(WRITERS)]
    with ending_in_turn(writers), pytest.raises(Busy), log.writer(told):
        pass
    with log.writer(told):  # nothing stays of the wait that was in vain
        assert log.spaces() == []
    log.close()


def append(log, space):
    log.append(space, log.head(space), Batch([b"more"]))


def keep_snapshot(log, space):
    log.put_cache(space, "state", Cached(log.head(space), b"derived"))


def await_waiting(log, thread, count):
    """Return once a thread waits for a row, and with it so many sessions of the log's database wait for a row."""
    waiting = "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database()"
    with psycopg.connect(log.place().database.address, autocommit=True) as connection:
        while connection.execute(waiting).fetchone() != (count,):
            assert thread.is_alive()


@contextmanager
def three_logs(directory):
    """Open a tenant three times, with two spaces that the first makes; yield the logs and the spaces' numbers."""
    address, keystore = shared_server().address(fresh_database(), ROLE), FileKeystore(directory / "keys")
    logs = [PostgresLog.open(address, tenant="ada", keystore=keystore) for _ in range(3)]
    yield logs, [logs[0].create_space(name * 16, b"first") for name in (b"a", b"b")]
    for log in logs:
        log.close()


def run_while_written(log, space, works):
    """Begin the works one after the other, each once the one before waits for a row, while a thread writes to the space."""
    threads = [threading.Thread(target=work) for work in works]
    with log.writer(space=space):
        log.head(space)  # from here on nobody else writes there, and nobody keeps all out
        for count, thread in enumerate(threads, 1):
            thread.start()
            await_waiting(log, thread, count)
    for thread in threads:
        thread.join()


@pytest.mark.parametrize("write", [append, keep_snapshot])
def test_a_writer_that_comes_later_does_not_pass_whoever_waits_to_keep_all_out(tmp_path, write):
    order: list[str] = []
    with three_logs(tmp_path) as ((first, keeper, later), spaces):

        def keep_out() -> None:
            with keeper.writer():
                order.append("keeper")

        def write_later() -> None:
            write(later, spaces[1])
            order.append("later")

        run_while_written(first, spaces[0], [keep_out, write_later])
    assert order == ["keeper", "later"]


def test_a_writer_that_comes_later_does_not_pass_whoever_waits_to_delete_the_tenant(tmp_path):
    kinds: list[object] = []
    with three_logs(tmp_path) as ((first, keeper, later), spaces):

        def write_later() -> None:
            with pytest.raises(Unavailable) as caught:
                append(later, spaces[1])
            kinds.append(caught.value.details["kind"])

        run_while_written(first, spaces[0], [keeper.drop, write_later])
    assert kinds == ["gone"]


def test_deleting_a_tenant_gives_up_writers_that_come_one_after_the_other(tmp_path):
    server, database = shared_server(), fresh_database()
    keystore = FileKeystore(tmp_path / "keys")
    log = PostgresLog.open(server.address(database, ROLE), tenant="ada", keystore=keystore, timeout_s=WAIT_S)
    writers = [psycopg.connect(server.address(database, "postgres")) for _ in range(WRITERS)]
    with ending_in_turn(writers), pytest.raises(Busy):
        log.drop()
    log.create_space(b"a" * 16, b"first")  # nothing was deleted
    assert log.drop().existed


def make_space(log):
    log.create_space(b"c" * 16, b"first")


def note_backup(log):
    log.note_backup(1)


@pytest.mark.parametrize("work", [make_space, note_backup])
def test_whoever_has_a_space_locked_and_writes_beside_it_waits_for_nobody_who_waits_for_him(tmp_path, work):
    with three_logs(tmp_path) as ((writer, keeper, _), spaces), writer.writer(space=spaces[0]):
        writer.head(spaces[0])
        thread = threading.Thread(target=take_turn, args=(keeper,))
        thread.start()
        await_waiting(writer, thread, 1)
        work(writer)  # else Busy, both of them
        thread.join()


def take_turn(log):
    """Keep all writers out for a moment."""
    with log.writer():
        pass


def test_the_first_erasure_of_a_tenant_that_is_not_encrypted_waits_for_nobody_who_waits_for_it():
    address = shared_server().address(fresh_database(), ROLE)
    writer, keeper = (
        PostgresLog.open(address, tenant="ada", keystore=None, secret=bytes(32), timeout_s=WAIT_S * 10)
        for _ in range(2)
    )
    space = writer.create_space(b"a" * 16, b"first")
    writer.append(space, writer.head(space), Batch([b"more"]))
    thread = threading.Thread(target=take_turn, args=(keeper,))
    with writer.writer(space=space):
        head = writer.head(space)
        thread.start()
        await_waiting(writer, thread, 1)
        assert writer.append(space, head, Batch([], [2])).erasures == 1
    thread.join()
    assert [entry.data for entry in keeper.read(space, 0, 2)] == [b"first", None]
    for log in (writer, keeper):
        log.close()


def test_whoever_hangs_while_he_keeps_all_writers_out_loses_his_place_to_them(tmp_path):
    with three_logs(tmp_path) as ((hung, other, _), spaces), hung.writer():
        hung.place().turns.held.whole.run("SET LOCAL idle_in_transaction_session_timeout = 100", None)
        append(other, spaces[1])  # nothing else is said for long
        with pytest.raises(Unavailable):
            hung.create_space(b"c" * 16, b"first")


def test_whoever_keeps_all_writers_out_has_the_limits_of_any_writer_but_for_what_drops_all_rows(
    tmp_path, monkeypatch
):
    limits: dict[str, set[float | None]] = {}
    ask = Wire.ask

    def asking(self, asked):
        for sql, *_ in asked:
            limits.setdefault(sql.split(" WHERE")[0], set()).add(self.silence_s)
        ask(self, asked)

    with three_logs(tmp_path) as ((log, *_), spaces):
        monkeypatch.setattr(Wire, "ask", asking)
        with log.writer():
            append(log, spaces[0])
        assert None not in set().union(*limits.values())
        log.purge(lambda number, entries: iter([]))
        log.drop()
    unlimited = {sql for sql, waited in limits.items() if None in waited}
    assert {"DELETE FROM perdure.record", "DELETE FROM perdure.space"} <= unlimited
    assert "COMMIT" not in unlimited


def test_what_is_said_in_the_whole_turn_ends_as_what_any_writer_says(tmp_path, monkeypatch):
    with three_logs(tmp_path) as ((log, *_), _):
        asked = "SELECT current_setting('statement_timeout'), current_setting('idle_in_transaction_session_timeout')"
        with log.writer(), log.place().whole() as session:
            assert session.run(asked, None).fetchall() == [("1min", "5min")]


def test_a_later_erasure_of_a_tenant_that_is_not_encrypted_keeps_its_place_before_other_writers():
    address = shared_server().address(fresh_database(), ROLE)
    first, other = (
        PostgresLog.open(address, tenant="ada", keystore=None, secret=bytes(32)) for _ in range(2)
    )
    space = first.create_space(b"a" * 16, b"first")
    first.append(space, first.head(space), Batch([b"one", b"two"]))
    first.append(space, first.head(space), Batch([], [2]))

    def write() -> None:
        with other.writer(space=space):
            other.append(space, other.head(space), Batch([b"of another"]))

    thread = threading.Thread(target=write)
    with first.writer(space=space):
        head = first.head(space)
        thread.start()
        await_waiting(first, thread, 1)
        assert first.append(space, head, Batch([], [3])).erasures == 2  # else Conflict: the other was faster
    thread.join()
    assert [entry.data for entry in first.read(space, 0, 4)] == [b"first", None, None, b"of another"]
    for log in (first, other):
        log.close()
