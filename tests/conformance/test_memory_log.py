"""The log in memory keeps the contract of all logs."""

import threading

import pytest

from perdure.errors import Busy, InvalidRequest
from perdure.log.memory import MemoryLog
from perdure.testing.log_suite import LogSpec


class TestMemoryLog(LogSpec):
    durable = False

    @pytest.fixture
    def reopen(self):
        return MemoryLog


def test_a_given_secret_is_used():
    assert MemoryLog(b"s" * 32).secret == b"s" * 32


def test_a_secret_of_another_length_is_refused():
    with pytest.raises(InvalidRequest, match="32 bytes, got 5"):
        MemoryLog(b"short")


def test_a_writer_that_waits_too_long_is_told_that_the_store_is_busy():
    log = MemoryLog(timeout_s=0.01)
    failures = []

    def write():
        try:
            with log.writer():
                pass
        except Busy as error:
            failures.append(error)

    with log.writer():
        thread = threading.Thread(target=write)
        thread.start()
        thread.join()
    assert len(failures) == 1


def test_the_turn_is_not_reentrant():
    log = MemoryLog()
    with log.writer(), pytest.raises(RuntimeError, match="not reentrant"), log.writer():
        pass
