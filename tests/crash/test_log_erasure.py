"""Erased text is in no file once scrub said so, whoever has the store open and whoever died."""

import threading

import apsw
import pytest

from crash import log_processes
from perdure.log.protocol import Batch, Cached
from perdure.log.sqlite import SqliteLog

NAME = b"n" * 16
MARKER = "MARKER-that-nobody-else-writes"
TEXT = MARKER.encode()


@pytest.fixture
def directory(tmp_path):
    return tmp_path / "store"


def fill(directory, records):
    log = SqliteLog.open(directory)
    space = log.create_space(NAME, b"first")
    log.append(space, log.head(space), Batch(records=records))
    return log


@pytest.mark.parametrize("size", [1, 50, 300])
def test_erased_text_is_in_no_file(directory, size):
    log = fill(directory, [TEXT * size, b"kept"])
    log.put_cache(1, "state", Cached(log.head(1), b"derived from " + TEXT))
    assert log_processes.holders(directory, MARKER) != []
    head = log.append(1, log.head(1), Batch(records=[b"removal"], erase=[2]))
    assert log.scrub()
    assert log_processes.holders(directory, MARKER) == []
    assert log.get(1, [1, 2, 3, 4], head) == [b"first", None, b"kept", b"removal"]
    log.close()


def test_many_erased_among_many_kept_leave_no_copy(directory):
    records = [b"%d " % number + (TEXT if number % 3 else b"kept") * (number % 11) for number in range(600)]
    log = fill(directory, records)
    erase = [seq for seq, data in enumerate(records, 2) if TEXT in data]
    for start in range(0, len(erase), 50):
        log.append(1, log.head(1), Batch(records=[b"removal"], erase=erase[start : start + 50]))
    assert log.scrub()
    assert log_processes.holders(directory, MARKER) == []
    found = [entry.data for entry in log.read(1, 1, 601)]
    assert found == [None if TEXT in data else data for data in records]
    log.close()


def test_erased_text_is_gone_while_another_process_keeps_the_store_open(directory):
    log = fill(directory, [TEXT, b"kept"])
    other = log_processes.start("idle", directory)
    assert other.stdout.readline() == "3\n"
    log.append(1, log.head(1), Batch(records=[b"removal"], erase=[2]))
    assert log.scrub()
    assert log_processes.holders(directory, MARKER) == []
    output, _ = other.communicate("go\n", timeout=60)
    assert (output, other.returncode) == ("3\n", 0)
    assert log.head(1).seq == 5
    log.close()


def test_erased_text_is_gone_while_threads_read_and_write(directory):
    log = fill(directory, [TEXT] * 20)
    done = threading.Event()
    failures = []

    def work(kind):
        try:
            other = log.create_space(bytes([kind]) * 16, b"first")
            while not done.is_set():
                if kind % 2:
                    list(log.read(1, 0, 1000))
                else:
                    log.append(other, log.head(other), Batch(records=[b"more"]))
        except Exception as error:  # noqa: BLE001 - reported below
            failures.append(error)

    threads = [threading.Thread(target=work, args=(kind,)) for kind in range(4)]
    for thread in threads:
        thread.start()
    try:
        for seq in range(2, 22):
            with log.writer():
                log.append(1, log.head(1), Batch(records=[b"removal"], erase=[seq]))
                log.scrub()
    finally:
        done.set()
        for thread in threads:
            thread.join()
    assert failures == []
    assert log.scrub()
    assert log_processes.holders(directory, MARKER) == []
    log.close()


def test_an_erasure_whose_process_was_killed_is_cleaned_by_the_next_operation(directory):
    fill(directory, [TEXT, b"kept"]).close()
    log_processes.await_kill(log_processes.start("erase_and_die", directory, 2))
    assert log_processes.holders(directory, MARKER) != []
    log = SqliteLog.open(directory)
    assert log_processes.holders(directory, MARKER) == []
    assert [entry.data for entry in log.read(1, 0, 9)] == [b"first", None, b"kept", b"removal"]
    log.close()


def test_an_open_log_cleans_what_a_killed_process_left(directory):
    log = fill(directory, [TEXT, b"kept"])
    log_processes.await_kill(log_processes.start("erase_and_die", directory, 2))
    assert log_processes.holders(directory, MARKER) != []
    assert log.head(1).erasures == 1
    assert log_processes.holders(directory, MARKER) == []
    log.close()


def test_a_reader_in_the_way_leaves_the_scrub_pending_and_a_later_operation_finishes_it(directory):
    log = fill(directory, [TEXT, b"kept"])
    with log.writer():
        # Stands for another process in the middle of an operation.
        reader = apsw.Connection(str(directory / "store.lock"))
        log.append(1, log.head(1), Batch(records=[b"removal"], erase=[2]))
        reader.execute("BEGIN")
        reader.execute("SELECT * FROM state").fetchall()
        assert not log.scrub()
        assert log.head(1).erasures == 1
    assert log_processes.holders(directory, MARKER) != []
    reader.close()
    assert log.head(1).erasures == 1
    assert log_processes.holders(directory, MARKER) == []
    assert log.scrub()
    log.close()
