"""A journal that is not what was written is told from one that is: no byte can change unnoticed."""

from __future__ import annotations

import os
import shutil

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from crash import journal_steps as steps
from effort import examples
from perdure.errors import Busy, Conflict, Corrupt, NotFound, PerdureError, Unavailable, WrongKey
from perdure.log.journal import JournalLog, find_journal_damage, is_journal
from perdure.log.protocol import Batch

SECRET = b"s" * 32
FILES = ["journal-2.jsonl", "journal-2.mark", "journal.current", "journal.key"]


@pytest.fixture(scope="module")
def filled(tmp_path_factory):
    place = tmp_path_factory.mktemp("filled") / "store"
    steps.fill(place)
    return place


@pytest.fixture
def place(filled, tmp_path):
    return shutil.copytree(filled, tmp_path / "store")


def content(place):
    log = JournalLog.open(place, timeout_s=0)
    try:
        names = [log.find_space(bytes([number]) * 16) for number in (1, 2)]
        keys = log.find(1, [b"k" * 16, b"s" * 16])
        return names, keys, [list(log.read(space, 0, 99)) for space in log.spaces()], log.epoch()
    finally:
        log.close()


@pytest.mark.parametrize("name", FILES)
def test_a_bit_that_flips_anywhere_in_a_file_is_noticed_or_of_no_consequence(filled, place, name):
    whole, before = (place / name).read_bytes(), content(filled)
    silent = []
    for position in range(len(whole)):
        flipped = bytearray(whole)
        flipped[position] ^= 1 << (position % 8)
        (place / name).write_bytes(flipped)
        try:
            found = content(place)
        except Corrupt:
            continue
        finally:
            (place / name).write_bytes(whole)
        if found != before or name != "journal-2.mark":
            silent.append(position)
    assert silent == []
    assert content(place) == before


@given(data=st.data())
@settings(
    max_examples=examples(50),
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
)
def test_bytes_that_are_changed_added_or_taken_from_the_lines_are_noticed(filled, tmp_path, data):
    place = tmp_path / "store"
    if not place.exists():
        shutil.copytree(filled, place)
    path = place / FILES[0]
    whole, before = (filled / FILES[0]).read_bytes(), content(filled)
    start = data.draw(st.integers(0, len(whole)))
    end = data.draw(st.integers(start, min(len(whole), start + 40)))
    changed = whole[:start] + data.draw(st.binary(max_size=40)) + whole[end:]
    path.write_bytes(changed)
    try:
        assert content(place) == before
    except Corrupt:
        assert changed != whole


@pytest.mark.parametrize(
    "change",
    [
        lambda lines: lines.pop(3),
        lambda lines: lines.pop(),
        lambda lines: lines.insert(3, lines[3]),
        lambda lines: lines.append(lines[-1]),
        lambda lines: lines.__setitem__(slice(2, 4), [lines[3], lines[2]]),
        lambda lines: lines.clear(),
    ],
    ids=["lost", "cut", "repeated", "added", "exchanged", "emptied"],
)
def test_lines_that_are_lost_repeated_or_exchanged_are_noticed(place, change):
    path = place / FILES[0]
    lines = path.read_bytes().splitlines(keepends=True)
    change(lines)
    path.write_bytes(b"".join(lines))
    with pytest.raises(Corrupt, match="backup"):
        content(place)


def test_a_damaged_line_is_named_with_its_record(place):
    path = place / FILES[0]
    path.write_bytes(path.read_bytes().replace(b"the teapot is blue", b"the teapot is grey"))
    with pytest.raises(Corrupt, match=r"line 6 of journal-2.jsonl \(record 2 of space 2\)") as caught:
        content(place)
    assert (caught.value.space, caught.value.seq) == (2, 2)
    assert "teapot" not in caught.value.message


@pytest.mark.parametrize("name", [FILES[0], FILES[2], FILES[3]])
def test_a_file_that_is_missing_is_noticed_and_no_new_store_made(place, name):
    left = {path.name for path in place.iterdir()} - {name}
    (place / name).unlink()
    assert is_journal(place)
    with pytest.raises(Corrupt, match="restore"):
        content(place)
    assert {path.name for path in place.iterdir()} == left


@pytest.mark.parametrize("mark", [None, b"", b"1234567", bytes(8), b"123456789"])
@pytest.mark.parametrize("durability", ["full", "normal"])
def test_without_its_whole_mark_a_journal_is_damaged_and_is_left_as_it_is(place, mark, durability):
    (place / FILES[1]).unlink()
    if mark is not None:
        (place / FILES[1]).write_bytes(mark)
        (place / FILES[1]).chmod(0o600)
    left = {path.name: path.read_bytes() for path in place.iterdir()}
    with pytest.raises(Corrupt, match=r"journal-2\.mark is missing or damaged.*salvage.*backup"):
        JournalLog.open(place, durability=durability)
    assert ["journal-2.mark" in finding.message for finding in find_journal_damage(place)] == [True]
    assert {path.name: path.read_bytes() for path in place.iterdir()} == left


def test_a_journal_that_was_copied_file_by_file_opens_as_the_same(filled, tmp_path):
    (tmp_path / "copy").mkdir(mode=0o700)
    for path in filled.iterdir():
        shutil.copy(path, tmp_path / "copy")
    assert content(tmp_path / "copy") == content(filled)


@pytest.mark.parametrize("name", [*FILES[:3], "journal.lock"])
def test_a_file_that_others_may_read_is_a_finding(place, name):
    (place / name).chmod(0o644)
    assert [f"{name} has mode 0644" in finding.message for finding in find_journal_damage(place)] == [True]
    log = JournalLog.open(place)
    assert [f"{name} has mode 0644" in finding.message for finding in log.verify()] == [True]
    log.close()


def test_a_verification_of_a_journal_that_was_changed_while_it_was_open_names_every_damaged_line(place):
    log = JournalLog.open(place)
    path = place / FILES[0]
    changed = path.read_bytes().replace(b" is blue", b" is grey")
    with path.open("r+b") as file:  # in place: a new file would be another finding
        file.write(changed)
    found = list(log.verify())
    assert [(finding.space, finding.seq) for finding in found] == [(1, 3), (2, 2)]
    assert list(log.verify(quick=True)) == found
    log.close()


@pytest.mark.parametrize("name", FILES)
def test_a_verification_says_that_a_file_is_gone_or_cut(place, name):
    log = JournalLog.open(place)
    os.truncate(place / name, 0)
    assert list(log.verify())
    (place / name).unlink()
    assert list(log.verify())
    log.close()


def test_every_damaged_line_is_named_of_a_journal_that_cannot_be_opened(place):
    assert list(find_journal_damage(place)) == []
    path = place / FILES[0]
    path.write_bytes(path.read_bytes().replace(b" is blue", b" is grey"))
    found = list(find_journal_damage(place))
    assert [(finding.space, finding.seq) for finding in found] == [(1, 3), (2, 2)]
    assert list(find_journal_damage(place)) == found


@pytest.mark.parametrize("name", [FILES[0], FILES[2], FILES[3]])
@pytest.mark.parametrize("change", ["cut", "gone"])
def test_a_file_that_is_cut_or_gone_is_found_without_opening_the_journal(place, name, change):
    if change == "cut":
        os.truncate(place / name, (place / name).stat().st_size - 1)
    else:
        (place / name).unlink()
    left = {path.name: path.read_bytes() for path in place.iterdir()}
    assert [bool(finding.message) for finding in find_journal_damage(place)] == [True]
    assert {path.name: path.read_bytes() for path in place.iterdir()} == left


def test_a_last_batch_that_was_not_written_whole_is_no_damage(place):
    path = place / FILES[0]
    path.write_bytes(path.read_bytes() + b'{"v":1,"seq":3')
    assert list(find_journal_damage(place)) == []


def test_damage_is_looked_for_only_in_a_journal_that_is_there_ours_and_closed(place, tmp_path):
    with pytest.raises(NotFound):
        list(find_journal_damage(tmp_path))
    with pytest.raises(WrongKey):
        list(find_journal_damage(place, secret=SECRET))
    log = JournalLog.open(place)
    with pytest.raises(Busy):
        list(find_journal_damage(place, timeout_s=0))
    log.close()


@pytest.mark.parametrize("change", ["replaced", "cut", "gone"])
def test_a_journal_that_was_changed_while_it_was_open_takes_nothing_more(place, change):
    log = JournalLog.open(place)
    path = place / FILES[0]
    match change:
        case "replaced":
            shutil.copy(path, place / "copy")
            os.replace(place / "copy", path)
        case "cut":
            os.truncate(path, 100)
        case "gone":
            path.unlink()
    for batch in (Batch(records=[b"late"]), Batch(records=[], erase=[1])):
        with pytest.raises((Corrupt, Unavailable)):
            log.append(1, log.head(1), batch)
    assert log.head(1).seq == 3
    log.close()


# What was never acknowledged


@pytest.mark.parametrize("kept", [0, 1, 40, -1])
def test_a_last_batch_that_was_not_written_whole_is_left_out_and_overwritten_by_the_next(place, kept):
    before = content(place)
    path = place / FILES[0]
    log = JournalLog.open(place)
    whole, mark = path.read_bytes(), (place / FILES[1]).read_bytes()
    log.append(2, log.head(2), Batch(records=[steps.text("beaker"), steps.text("goblet")]))
    added = path.read_bytes()[len(whole) :]
    log.close()
    records = b"".join(added.splitlines(keepends=True)[:-1])
    for tail in (added[:kept] if kept < 0 else added[: len(records) + kept], records[: len(records) // 3]):
        path.write_bytes(whole + tail)
        (place / FILES[1]).write_bytes(mark)
        assert content(place) == before
        assert path.read_bytes() == whole + tail
        log = JournalLog.open(place)
        log.append(2, log.head(2), Batch(records=[steps.text("carafe")]))
        log.close()
        assert b"beaker" not in path.read_bytes()
        assert [len(entries) for entries in content(place)[2]] == [3, 3]


def test_bytes_that_never_reached_the_medium_read_as_zeros_and_are_left_out(place):
    before = content(place)
    path = place / FILES[0]
    log = JournalLog.open(place)
    whole, mark = path.read_bytes(), (place / FILES[1]).read_bytes()
    log.append(2, log.head(2), Batch(records=[steps.text("beaker"), steps.text("goblet")]))
    longer = path.read_bytes()
    log.close()
    hole = len(whole) + 60
    path.write_bytes(longer[:hole] + bytes(50) + longer[hole + 50 :])
    with pytest.raises(Corrupt):  # the batch was acknowledged
        content(place)
    (place / FILES[1]).write_bytes(mark)
    assert content(place) == before


def lengthened(place, batches):
    """The lines of a journal to which batches were added, as many records each, with the mark from before."""
    log = JournalLog.open(place)
    mark = (place / FILES[1]).read_bytes()
    first = len((place / FILES[0]).read_bytes().splitlines())
    for number, records in enumerate(batches):
        space = 1 + number % 2
        texts = [steps.text(f"beaker {number}.{record}") for record in range(records)]
        log.append(space, log.head(space), Batch(records=texts))
    log.close()
    (place / FILES[1]).write_bytes(mark)
    return first, (place / FILES[0]).read_bytes().splitlines(keepends=True)


HOLES = {
    "middle": lambda line: line[:60] + b"\0" + line[61:],
    "line feed": lambda line: line[:-1] + b"\0",
    "all": lambda line: bytes(len(line)),
    "line feed too": lambda line: bytes(len(line) - 1) + b"\n",
}


@pytest.mark.parametrize("hole", HOLES.values(), ids=HOLES)
@pytest.mark.parametrize("batches", [[1], [2], [4], [1, 1], [3, 1], [1, 3], [2, 2, 2]])
def test_only_the_last_batch_is_torn_whatever_the_mark_says(place, batches, hole):
    before = content(place)
    first, lines = lengthened(place, batches)
    last = len(lines) - batches[-1] - 1
    for number in range(first, len(lines)):
        damaged = b"".join([*lines[:number], hole(lines[number]), *lines[number + 1 :]])
        (place / FILES[0]).write_bytes(damaged)
        mark = (place / FILES[1]).read_bytes()
        if number < last:
            with pytest.raises(Corrupt, match=f"line {number + 1} "):
                content(place)
            assert list(find_journal_damage(place))
            assert (place / FILES[1]).read_bytes() == mark
        else:
            spaces = content(place)[2]
            assert sum(map(len, spaces)) == sum(map(len, before[2])) + sum(batches[:-1])
        assert (place / FILES[0]).read_bytes() == damaged
        (place / FILES[1]).write_bytes(mark)


def test_several_last_batches_may_be_torn_where_each_was_not_synced(place):
    log = JournalLog.open(place, durability="normal")
    for record in range(3):
        log.append(2, log.head(2), Batch(records=[steps.text(f"beaker {record}")]))
    mark, lines = (place / FILES[1]).read_bytes(), (place / FILES[0]).read_bytes().splitlines(keepends=True)
    log.close()
    lines[-4] = HOLES["middle"](lines[-4])
    torn = b"".join(lines)
    (place / FILES[0]).write_bytes(torn)
    with pytest.raises(Corrupt):  # since it was closed, all of it is acknowledged
        content(place)
    (place / FILES[1]).write_bytes(mark)
    for _ in range(2):  # reading alone leaves it as it is
        assert [len(entries) for entries in content(place)[2]] == [3, 3]
        assert (place / FILES[0]).read_bytes() == torn
    log = JournalLog.open(place)
    log.append(2, log.head(2), Batch(records=[steps.text("goblet")]))
    log.close()
    assert b"beaker 2" not in (place / FILES[0]).read_bytes()
    assert [len(entries) for entries in content(place)[2]] == [3, 4]


def test_a_bad_line_that_is_whole_is_no_torn_one(place):
    path = place / FILES[0]
    path.write_bytes(path.read_bytes() + b'{"v":1}\n')
    with pytest.raises(Corrupt, match="line 8"):
        content(place)


# Whose it is


def test_another_secret_is_refused_and_makes_no_new_store(tmp_path):
    JournalLog.open(tmp_path / "store", secret=SECRET).close()
    names = sorted(path.name for path in (tmp_path / "store").iterdir())
    for secret in (b"t" * 32, None):
        with pytest.raises(WrongKey, match="secret"):
            JournalLog.open(tmp_path / "store", secret=secret)
    assert "journal.key" not in names
    assert sorted(path.name for path in (tmp_path / "store").iterdir()) == names
    JournalLog.open(tmp_path / "store", secret=SECRET).close()


def test_the_key_of_another_journal_is_noticed(place, tmp_path):
    JournalLog.open(tmp_path / "other").close()
    shutil.copy(tmp_path / "other" / "journal.key", place / "journal.key")
    with pytest.raises(Corrupt, match=r"journal\.key"):
        content(place)


@pytest.mark.parametrize(
    ("name", "old", "new"),
    [(FILES[2], b'"v":1', b'"v":2'), (FILES[0], b'"v":1', b'"v":2')],
)
def test_a_newer_format_that_was_not_written_as_such_is_damage(place, name, old, new):
    path = place / name
    path.write_bytes(path.read_bytes().replace(old, new, 1))
    with pytest.raises(Corrupt):
        content(place)


def test_names_and_conflicts_outlive_an_opening(place):
    log = JournalLog.open(place)
    with pytest.raises(Conflict):
        log.create_space(b"\1" * 16, b"again")
    log.close()


@pytest.mark.parametrize("name", [*FILES, "journal.lock"])
@pytest.mark.parametrize("kind", ["directory", "loop"])
def test_what_lies_in_the_place_of_a_file_is_reported_and_left_alone(place, name, kind):
    (place / name).unlink()
    if kind == "directory":
        (place / name).mkdir()
    else:
        (place / name).symlink_to(place / name)
    with pytest.raises(PerdureError):
        content(place)
    assert os.path.lexists(place / name)
