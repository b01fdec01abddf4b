"""The driver fails at each step in turn: nothing is half written, and the log goes on."""

import apsw
import pytest

from perdure.errors import Busy, Corrupt, PerdureError, StorageFull, Unavailable
from perdure.log.protocol import Batch, Cached
from perdure.log.sqlite import SqliteLog

NAME = b"n" * 16
STEPS = 24  # more than the longest operation takes on one connection


class Faults:
    """Raises an error before the n-th statement from now on, on any connection."""

    def __init__(self):
        self.error = None
        self.left = 0
        self.fired = False

    def arm(self, error, step):
        self.error, self.left, self.fired = error, step, False

    def disarm(self):
        self.error = None

    def watch(self, connection):
        connection.exec_trace = self.before

    def before(self, cursor, sql, bindings):
        if self.error is not None and not sql.startswith("ROLLBACK"):
            if self.left == 0:
                error, self.error, self.fired = self.error, None, True
                raise error("injected")
            self.left -= 1
        return True


@pytest.fixture
def faults():
    faults = Faults()
    apsw.connection_hooks.append(faults.watch)
    yield faults
    apsw.connection_hooks.remove(faults.watch)


@pytest.fixture
def log(tmp_path, faults):
    log = SqliteLog.open(tmp_path / "store", timeout_s=1)
    log.create_space(NAME, b"first")
    log.append(1, log.head(1), Batch(records=[b"second", b"third"]))
    yield log
    faults.disarm()
    log.close()


def outcome(call, *arguments, **options):
    """Return what the call returned and what it raised; one of them is None."""
    try:
        return call(*arguments, **options), None
    except PerdureError as error:
        return None, error


def state(log):
    return log.head(1), list(log.read(1, 0, 100)), log.find(1, [b"k" * 16]), log.spaces()


KINDS = [
    (apsw.FullError, StorageFull),
    (apsw.BusyError, Busy),
    (apsw.IOError, Unavailable),
    (apsw.CorruptError, Corrupt),
]


@pytest.mark.parametrize(("driver", "ours"), KINDS)
def test_an_append_that_fails_at_any_step_is_whole_or_absent(log, faults, driver, ours):
    failed = 0
    for step in range(STEPS):
        before = state(log)
        faults.arm(driver, step)
        batch = Batch(records=[b"a", b"b"], keys=[(b"k" * 16, 1)])
        _, error = outcome(log.append, 1, before[0], batch)
        faults.disarm()
        if error is None:
            assert log.head(1).seq == before[0].seq + 2
            continue
        assert type(error) is ours
        assert isinstance(error.__cause__, driver)
        assert state(log) == before
        failed += 1
    assert failed >= 5


@pytest.mark.parametrize(("driver", "ours"), KINDS)
def test_an_erasure_that_fails_at_any_step_is_whole_or_absent(log, faults, driver, ours):
    log.append(1, log.head(1), Batch(records=[b"x%d" % number for number in range(STEPS)]))
    failed = 0
    for step in range(STEPS):
        before = state(log)
        faults.arm(driver, step)
        _, error = outcome(log.append, 1, before[0], Batch(records=[b"removal"], erase=[4 + step]))
        faults.disarm()
        if error is None:
            assert log.head(1).erasures == before[0].erasures + 1
            continue
        assert type(error) is ours
        assert state(log) == before
        failed += 1
    assert failed >= 5
    assert log.scrub()


@pytest.mark.parametrize(("driver", "ours"), KINDS)
def test_a_space_whose_creation_fails_is_absent(log, faults, driver, ours):
    failed = 0
    for step in range(STEPS):
        name = bytes([step]) * 16
        before = log.spaces()
        faults.arm(driver, step)
        _, error = outcome(log.create_space, name, b"first")
        faults.disarm()
        if error is None:
            assert len(log.spaces()) == len(before) + 1
            continue
        assert type(error) is ours
        assert log.spaces() == before
        assert log.find_space(name) is None
        failed += 1
    assert failed >= 4


@pytest.mark.parametrize(("driver", "ours"), KINDS)
def test_a_scrub_that_fails_is_not_taken_for_done(log, faults, driver, ours):
    for step in range(STEPS):
        faults.disarm()
        with log.writer():
            log.append(1, log.head(1), Batch(records=[b"removal", b"next"], erase=[log.head(1).seq]))
            faults.arm(driver, step)
            done, error = outcome(log.scrub)
            assert error is None or type(error) is ours
            fired = faults.fired
            faults.disarm()
            assert log.scrub()
        assert done or fired


@pytest.mark.parametrize(("driver", "ours"), KINDS)
def test_a_cache_that_cannot_be_written_or_read_is_no_cache(log, faults, driver, ours):
    cached = Cached(log.head(1), b"blob" * 100)
    for step in range(STEPS):
        for call in (
            lambda: log.put_cache(1, "state", cached),
            lambda: log.get_cache(1, "state"),
        ):
            faults.arm(driver, step)
            found, error = outcome(call)
            assert found in (None, cached)
            assert error is None or type(error) is ours
            faults.disarm()
    log.put_cache(1, "state", cached)
    assert log.get_cache(1, "state") == cached


@pytest.mark.parametrize(("driver", "ours"), [KINDS[0], KINDS[2]])
def test_a_store_whose_creation_fails_at_any_step_is_created_by_the_next_opening(
    tmp_path, faults, driver, ours
):
    failed = 0
    for step in range(40):
        directory = tmp_path / str(step)
        faults.arm(driver, step)
        opened, error = outcome(SqliteLog.open, directory, timeout_s=1)
        if opened is not None:
            opened.close()
        assert error is None or isinstance(error, (ours, Corrupt, Unavailable))
        failed += error is not None
        faults.disarm()
        log = SqliteLog.open(directory)
        assert log.spaces() == []
        assert log.create_space(NAME, b"first") == 1
        log.close()
    assert failed > 10
