"""The system fails at each call in turn: nothing is half written, and the journal goes on."""

from __future__ import annotations

import errno
import os
import shutil
from contextlib import contextmanager

import pytest

from crash import journal_steps as steps
from crash.children import find_texts
from perdure.errors import InvalidRequest, PerdureError, StorageFull, Unavailable
from perdure.log.journal import JournalLog, is_journal, open_journal
from perdure.log.protocol import Batch
from perdure.log.sqlite import SqliteLog

CALLS = ("open", "write", "fsync", "replace", "unlink", "ftruncate")
STEPS_MAX = 100


class Faults:
    """Makes the n-th call to the system fail; with `lasting`, every later one that needs room too."""

    def __init__(self, number, step, *, lasting):
        self._number, self._left, self._lasting = number, step, lasting
        self.fired = False

    def before(self, name, arguments):
        self._left -= 1
        again = self._lasting and self._left < 0 and name == "write" and self.fired
        if self._left == 0 or (again and bytes(arguments[1]).strip(b"\0")):
            self.fired = True
            raise OSError(self._number, "injected")


@contextmanager
def failing(number, step, *, lasting=False):
    faults = Faults(number, step, lasting=lasting)
    real = {name: getattr(os, name) for name in CALLS}

    def wrapped(name):
        def call(*arguments, **options):
            faults.before(name, arguments)
            return real[name](*arguments, **options)

        return call

    for name in CALLS:
        setattr(os, name, wrapped(name))
    try:
        yield faults
    finally:
        for name in CALLS:
            setattr(os, name, real[name])


@pytest.fixture(scope="module")
def filled(tmp_path_factory):
    place = tmp_path_factory.mktemp("filled") / "store"
    steps.fill(place)
    return place


def content(log):
    records = {space: list(log.read(space, 0, 99)) for space in log.spaces()}
    heads = [log.head(space)[1:] for space in log.spaces()]
    return log.epoch(), heads, records, log.find(1, [b"k" * 16]), log.backups()


def outcome(log, operation):
    """Run the operation without its scrub; return the error, or None."""
    try:
        match operation:
            case "append":
                steps.append(log)
            case "create":
                steps.create(log)
            case "forget":
                log.append(2, log.head(2), Batch(records=[b"removal"], erase=[2]))
            case "purge":
                log.purge(steps.kept)
            case "note":
                steps.note(log)
    except PerdureError as error:
        return error
    return None


def words(place):
    return set().union(*find_texts(place, "the [a-z]{6} is blue").values())


@pytest.mark.slow
@pytest.mark.parametrize("lasting", [False, True], ids=["once", "from then on"])
@pytest.mark.parametrize(
    ("number", "ours"), [(errno.ENOSPC, StorageFull), (errno.EDQUOT, StorageFull), (errno.EIO, Unavailable)]
)
@pytest.mark.parametrize("operation", ["append", "create", "forget", "purge", "note"])
def test_an_operation_that_fails_at_any_step_is_whole_or_absent_and_the_next_one_succeeds(
    filled, tmp_path, operation, number, ours, lasting
):
    for step in range(1, STEPS_MAX):
        place = shutil.copytree(filled, tmp_path / str(step))
        log = JournalLog.open(place)
        before = content(log)
        with failing(number, step, lasting=lasting) as faults:
            error = outcome(log, operation)
            meanwhile = content(log)
        if error is not None:
            assert type(error) is ours
            assert meanwhile == before
        now = content(log)
        assert now == meanwhile
        log.close()
        log = JournalLog.open(place)
        assert content(log) == now
        if error is not None:
            assert outcome(log, operation) is None
        assert log.scrub()
        assert list(log.verify()) == []
        after = content(log)
        live = {data for records in after[2].values() for _, data in records if data}
        assert words(place) == {f"the {word} is blue" for word in WORDS if steps.text(word) in live}
        log.close()
        shutil.rmtree(place)
        if not faults.fired:
            assert step > 2
            return
    raise AssertionError("more steps than there may be")


WORDS = ("saucer", "kettle", "teapot", "beaker", "goblet", "carafe")


@pytest.mark.slow
@pytest.mark.parametrize("operation", ["append", "forget", "purge", "note"])
def test_the_same_log_goes_on_after_a_failure_at_any_step(filled, tmp_path, operation):
    for step in range(1, STEPS_MAX):
        place = shutil.copytree(filled, tmp_path / str(step))
        log = JournalLog.open(place)
        with failing(errno.EIO, step) as faults:
            outcome(log, operation)
        for number in range(2):
            head = log.append(1, log.head(1), Batch(records=[b"%d" % number]))
        log.append(1, head, Batch(records=[], erase=[head.seq]))
        assert log.scrub()
        log.note_backup(9)
        assert log.purge(steps.kept).pending is False
        now = content(log)
        log.close()
        log = JournalLog.open(place)
        assert content(log) == now
        assert list(log.verify()) == []
        log.close()
        shutil.rmtree(place)
        if not faults.fired:
            return
    raise AssertionError("more steps than there may be")


def test_a_scrub_that_fails_says_so_and_a_later_one_ends_it(filled, tmp_path):
    place = shutil.copytree(filled, tmp_path / "store")
    log = JournalLog.open(place)
    log.append(2, log.head(2), Batch(records=[], erase=[2]))
    for step in (1, 2, 3, 4):
        with failing(errno.EIO, step) as faults:
            done = log.scrub()
        assert done is not faults.fired
    assert log.scrub()
    assert not log.scrub_pending()
    assert "the teapot is blue" not in words(place)
    log.close()


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EACCES, errno.EROFS])
def test_a_creation_that_fails_at_any_step_makes_nothing_that_stands_in_the_way_of_the_next(tmp_path, number):
    for step in range(1, STEPS_MAX):
        place = tmp_path / str(step)
        with failing(number, step) as faults:
            try:
                JournalLog.open(place).close()
            except PerdureError as error:
                full = number == errno.ENOSPC
                assert isinstance(error, StorageFull if full else Unavailable)  # noqa: PT017 - any step may fail
        log = JournalLog.open(place)
        assert log.spaces() == []
        log.close()
        if not faults.fired:
            return
    raise AssertionError("more steps than there may be")


@pytest.mark.parametrize("operation", ["fresh", "in use"])
def test_a_backup_that_fails_at_any_step_leaves_nothing(filled, tmp_path, operation):
    log = JournalLog.open(shutil.copytree(filled, tmp_path / "store"))
    for step in range(1, STEPS_MAX):
        target = tmp_path / str(step)
        if operation == "in use":
            target.mkdir()
        with failing(errno.ENOSPC, step) as faults:
            try:
                log.backup(target)
            except StorageFull:
                assert target.exists() == (operation == "in use")
                assert operation == "fresh" or list(target.iterdir()) == []
        if not faults.fired:
            break
    copy = JournalLog.open(target)
    assert content(copy) == content(log)
    copy.close()
    log.close()


# Places


@pytest.mark.skipif(os.name != "posix", reason="modes are of POSIX systems")
def test_all_files_are_their_owners_alone_whatever_the_umask(tmp_path):
    old = os.umask(0)
    try:
        log = JournalLog.open(tmp_path / "store")
        log.create_space(steps.NAME, b"first")
        log.append(1, log.head(1), Batch(records=[], erase=[1]))
        log.backup(tmp_path / "backup")
        log.close()
    finally:
        os.umask(old)
    for place in (tmp_path / "store", tmp_path / "backup"):
        assert place.stat().st_mode & 0o777 == 0o700
        assert {path.stat().st_mode & 0o777 for path in place.iterdir()} == {0o600}


@pytest.mark.skipif(os.name != "posix", reason="modes are of POSIX systems")
def test_a_key_that_others_may_read_is_refused(filled, tmp_path):
    place = shutil.copytree(filled, tmp_path / "store")
    (place / "journal.key").chmod(0o640)
    with pytest.raises(InvalidRequest, match=r"journal\.key has mode 0640"):
        JournalLog.open(place)


def test_a_directory_that_has_a_store_of_another_backend_is_refused(tmp_path):
    (tmp_path / "store.lock").write_bytes(b"")
    with pytest.raises(InvalidRequest, match="sqlite"):
        JournalLog.open(tmp_path)
    assert not is_journal(tmp_path)


def test_a_directory_is_a_journal_once_it_has_one(tmp_path):
    assert not is_journal(tmp_path / "absent")
    assert not is_journal(tmp_path)
    (tmp_path / "journal-of-mine.txt").write_bytes(b"mine")
    assert not is_journal(tmp_path)
    open_journal(tmp_path).close()
    assert is_journal(tmp_path)
    assert (tmp_path / "journal-of-mine.txt").read_bytes() == b"mine"


@pytest.mark.parametrize("path", ["", "a\0b", "a\ud800b"])
def test_a_path_that_no_file_can_have_is_refused(path):
    with pytest.raises(InvalidRequest, match="path"):
        JournalLog.open(path)


@pytest.mark.parametrize("path", ["x" * 300, "/dev/null/store"])
def test_a_path_that_the_system_refuses_is_unavailable(tmp_path, monkeypatch, path):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(Unavailable, match="directory"):
        JournalLog.open(path)


@pytest.mark.parametrize("secret", [b"short", b"", "s" * 32])
def test_a_secret_of_another_length_is_refused(tmp_path, secret):
    with pytest.raises(InvalidRequest, match="32 bytes"):
        JournalLog.open(tmp_path / "store", secret=secret)
    assert not (tmp_path / "store").exists()


def test_an_unknown_durability_is_refused(tmp_path):
    with pytest.raises(InvalidRequest, match="'full' or 'normal', got 'fast'"):
        JournalLog.open(tmp_path / "store", durability="fast")


def test_a_backup_within_the_journal_is_refused(filled, tmp_path):
    place = shutil.copytree(filled, tmp_path / "store")
    log = JournalLog.open(place)
    for target in (place, place / "inner", tmp_path / "store" / ".." / "store"):
        with pytest.raises(InvalidRequest, match="within"):
            log.backup(target)
    log.close()


@pytest.mark.parametrize("name", ["a\0b", "\udcff"])
def test_a_backup_of_a_name_that_no_file_can_have_is_refused(filled, tmp_path, name):
    log = JournalLog.open(shutil.copytree(filled, tmp_path / "store"))
    with pytest.raises(InvalidRequest, match="directory has a character"):
        log.backup(tmp_path / name)
    log.close()


@pytest.mark.parametrize("kind", [JournalLog, SqliteLog])
def test_a_backup_within_another_store_is_refused(filled, tmp_path, kind):
    kind.open(tmp_path / "other").close()
    log = JournalLog.open(shutil.copytree(filled, tmp_path / "store"))
    with pytest.raises(InvalidRequest, match="within another store"):
        log.backup(tmp_path / "other" / "copy")
    assert not (tmp_path / "other" / "copy").exists()
    log.close()
