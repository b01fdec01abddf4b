"""Several processes on one store, and processes that are killed."""

import os
import random
import signal

import pytest

from crash import log_processes
from perdure.errors import Unavailable
from perdure.log.protocol import EMPTY, Batch
from perdure.log.sqlite import SqliteLog

NAME = b"n" * 16


@pytest.fixture
def directory(tmp_path):
    log = SqliteLog.open(tmp_path / "store")
    log.create_space(NAME, b"first")
    log.close()
    return tmp_path / "store"


def test_four_processes_append_250_batches_each_without_error_or_loss(directory):
    writers = [log_processes.start("append", directory, writer, 250) for writer in range(4)]
    told = [line.split() for writer in writers for line in log_processes.finish(writer)]
    log = SqliteLog.open(directory)
    found = [entry.data.decode() for entry in log.read(1, 0, 10_000)]
    assert len(found) == 1 + 4 * 250 * 2
    assert len(told) == 4 * 250
    assert all(found[int(seq) - 1] == f"{batch}/a" and found[int(seq)] == f"{batch}/b" for seq, batch in told)
    log.close()


def test_an_open_log_sees_what_another_process_appended(directory):
    log = SqliteLog.open(directory)
    before = log.head(1)
    log_processes.finish(log_processes.start("append", directory, "other", 3))
    assert log.head(1).seq == before.seq + 6
    assert [entry.data for entry in log.read(1, 1, 3)] == [b"other/0/a", b"other/0/b"]
    log.close()


def test_two_processes_that_create_one_store_agree_on_its_secret(tmp_path):
    creators = [log_processes.start("create", tmp_path / "new") for _ in range(4)]
    secrets = {line for creator in creators for line in log_processes.finish(creator)}
    assert len(secrets) == 1


@pytest.mark.parametrize("seed", range(6))
def test_a_killed_writer_leaves_every_acknowledged_batch_and_no_half_one(directory, seed):
    chance = random.Random(seed)
    writers = [log_processes.start("append", directory, writer, 10_000) for writer in range(2)]
    told = []
    for writer in writers:
        told += [writer.stdout.readline().split() for _ in range(chance.randrange(1, 40))]
        writer.send_signal(signal.SIGKILL)
        told += [line.split() for line in writer.stdout.read().splitlines() if line.count("/") == 1]
        writer.close()
    log = SqliteLog.open(directory)
    found = [entry.data.decode() for entry in log.read(1, 0, 100_000)]
    assert all(found[int(seq) - 1] == f"{batch}/a" and found[int(seq)] == f"{batch}/b" for seq, batch in told)
    assert len(found) % 2 == 1
    assert log.append(1, log.head(1), Batch(records=[b"after"])).seq == len(found) + 1
    log.close()


def test_the_turn_of_a_killed_writer_is_free(directory):
    log_processes.await_kill(log_processes.start("die_in_turn", directory))
    log = SqliteLog.open(directory, timeout_s=5)
    with log.writer():
        assert log.append(1, log.head(1), Batch(records=[b"second"])).seq == 2
    log.close()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this platform has no fork")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_log_is_refused_in_a_forked_process_and_stays_whole_in_its_parent(directory):
    log = SqliteLog.open(directory)
    child = os.fork()
    if child == 0:
        refused = 0
        for call in (lambda: log.head(1), lambda: log.append(1, EMPTY, Batch(records=[])), log.spaces):
            try:
                call()
            except Unavailable:
                refused += 1
            except BaseException:  # noqa: BLE001 - counted by not counting; the child must not raise
                pass
        log.close()
        os._exit(0 if refused == 3 else 1)
    _, status = os.waitpid(child, 0)
    assert os.waitstatus_to_exitcode(status) == 0
    assert log.append(1, log.head(1), Batch(records=[b"second"])).seq == 2
    log.close()
