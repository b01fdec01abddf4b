"""Whoever keeps all writers out waits for those that are at work for as long as he was given, however many they are."""

from __future__ import annotations

import threading

import psycopg
import pytest

from perdure.errors import Busy
from perdure.log.postgres import FileKeystore, PostgresLog
from perdure.log.protocol import Batch
from postgres_server import ROLE, fresh_database, shared_server

WAIT_S = 1.0
WRITERS = 6
EACH_S = 0.4  # so all of them take longer than the wait, and each takes less


@pytest.mark.parametrize("told", [None, WAIT_S], ids=["of the log", "of the call"])
def test_a_time_out_is_of_all_writers_together_and_not_of_each(tmp_path, told):
    server, database = shared_server(), fresh_database()
    address, keystore = server.address(database, ROLE), FileKeystore(tmp_path / "keys")
    own_s = WAIT_S if told is None else 60.0
    log = PostgresLog.open(address, tenant="ada", keystore=keystore, timeout_s=own_s)
    writers = [psycopg.connect(server.address(database, "postgres")) for _ in range(WRITERS)]
    over = threading.Event()

    def end_in_turn() -> None:
        for writer in writers:
            over.wait(EACH_S)
            writer.rollback()

    try:
        for writer in writers:
            writer.execute("SELECT tenant FROM perdure.tenant FOR KEY SHARE")
        ending = threading.Thread(target=end_in_turn)
        ending.start()
        with pytest.raises(Busy), log.writer(told):
            pass
        over.set()
        ending.join()
        with log.writer(told):  # nothing stays of the wait that was in vain
            assert log.spaces() == []
    finally:
        for writer in writers:
            writer.close()
        log.close()


def test_a_writer_that_comes_later_does_not_pass_whoever_waits_to_keep_all_out(tmp_path):
    server, database = shared_server(), fresh_database()
    keystore = FileKeystore(tmp_path / "keys")
    first, keeper, later = (
        PostgresLog.open(server.address(database, ROLE), tenant="ada", keystore=keystore) for _ in range(3)
    )
    spaces = [first.create_space(name * 16, b"first") for name in (b"a", b"b")]
    order: list[str] = []

    def keep_out() -> None:
        with keeper.writer():
            order.append("keeper")

    def write() -> None:
        later.append(spaces[1], later.head(spaces[1]), Batch([b"more"]))
        order.append("later")

    def await_waiting(count: int) -> None:
        told = (
            f"SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = '{database}'"
        )
        while server.execute(told, database) != [(count,)]:
            assert "later" not in order

    threads = [threading.Thread(target=keep_out), threading.Thread(target=write)]
    with first.writer(space=spaces[0]):
        first.head(spaces[0])  # from here on nobody else writes there, and nobody keeps all out
        for count, thread in enumerate(threads, 1):
            thread.start()
            await_waiting(count)
    for thread in threads:
        thread.join()
    assert order == ["keeper", "later"]
    for log in (first, keeper, later):
        log.close()
