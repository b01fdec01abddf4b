"""The keystore in files: what it keeps, what it destroys, and who may look into it."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perdure.errors import Corrupt, InvalidRequest, Unavailable, WrongKey
from perdure.log.postgres import FileKeystore

ADA, BOB = UUID(int=1), UUID(int=2)
SECRET = bytes(range(32))


@pytest.fixture
def keystore(tmp_path):
    found = FileKeystore(tmp_path / "keys")
    found.put_secret(ADA, SECRET)
    return found


def file_of(tmp_path, tenant=ADA):
    return tmp_path / "keys" / f"{tenant}.keys"


def test_a_secret_is_kept_once_and_the_first_one_stays(keystore):
    assert keystore.find_secret(BOB) is None
    assert keystore.put_secret(ADA, bytes(32)) == SECRET
    assert keystore.find_secret(ADA) == SECRET


def test_keys_are_numbered_from_one_and_come_back_in_another_process(keystore, tmp_path):
    first, second = keystore.new_keys(ADA, 3), keystore.new_keys(ADA, 2)
    assert [number for number, _ in first + second] == [1, 2, 3, 4, 5]
    assert len({key for _, key in first + second}) == 5
    assert FileKeystore(tmp_path / "keys").find_keys(ADA, [5, 1, 6, 0, -1]) == {
        5: second[1][1],
        1: first[0][1],
    }


def test_a_destroyed_key_is_found_no_more_and_its_bytes_are_nowhere_in_the_directory(keystore, tmp_path):
    made = dict(keystore.new_keys(ADA, 4))
    assert keystore.destroy(ADA, [2, 3, 99])
    assert keystore.destroy(ADA, [2])
    assert keystore.find_keys(ADA, [1, 2, 3, 4]) == {1: made[1], 4: made[4]}
    content = b"".join(path.read_bytes() for path in (tmp_path / "keys").iterdir())
    assert [number for number, key in made.items() if key in content] == [1, 4]


def test_all_keys_below_a_number_are_destroyed_and_numbers_never_come_again(keystore):
    made = dict(keystore.new_keys(ADA, 10_000))
    assert keystore.destroy_below(ADA, 9_999)
    assert keystore.find_keys(ADA, range(1, 10_001)) == {9_999: made[9_999], 10_000: made[10_000]}
    assert keystore.destroy_below(ADA, 1 << 40)
    assert keystore.find_keys(ADA, range(1, 10_001)) == {}
    assert keystore.new_keys(ADA, 1)[0][0] == 10_001


def test_while_it_is_held_nothing_is_destroyed_and_all_else_goes_on(keystore, tmp_path):
    made, hold = dict(keystore.new_keys(ADA, 3)), tmp_path / "keys" / "keystore.hold"
    other = FileKeystore(tmp_path / "keys")
    hold.touch()
    for held in (keystore, other):
        assert not held.destroy(ADA, [1])
        assert not held.destroy_below(ADA, 3)
        assert not held.drop_tenant(ADA)
        assert held.find_keys(ADA, [1, 2, 3]) == made
    assert keystore.find_secret(ADA) == SECRET
    assert keystore.put_secret(BOB, SECRET) == SECRET
    [(number, key)] = keystore.new_keys(ADA, 1)
    assert other.find_keys(ADA, [number]) == {number: key}
    hold.unlink()
    assert keystore.destroy(ADA, [1])
    assert keystore.destroy_below(ADA, 3)
    assert other.find_keys(ADA, range(1, 5)) == {3: made[3], number: key}
    assert other.drop_tenant(ADA)
    assert keystore.find_secret(ADA) is None


def test_a_tenant_that_was_dropped_stays_so_though_it_is_held_and_of_a_strange_one_nothing_is_confirmed(
    keystore, tmp_path
):
    assert keystore.drop_tenant(ADA)
    (tmp_path / "keys" / "keystore.hold").touch()
    assert keystore.drop_tenant(ADA)
    with pytest.raises(WrongKey):
        keystore.drop_tenant(BOB)


def test_a_tenant_that_is_dropped_leaves_nothing(keystore, tmp_path):
    keystore.put_secret(BOB, bytes(32))
    assert keystore.drop_tenant(ADA)
    assert keystore.find_secret(ADA) is None
    assert [path.name for path in (tmp_path / "keys").glob("*.keys")] == [f"{BOB}.keys"]
    with pytest.raises(WrongKey):
        keystore.new_keys(ADA, 1)
    with pytest.raises(WrongKey):
        keystore.find_keys(ADA, [1])


def test_tenants_share_neither_secrets_nor_keys(keystore):
    keystore.put_secret(BOB, bytes(32))
    ((_, adas),) = keystore.new_keys(ADA, 1)
    ((number, bobs),) = keystore.new_keys(BOB, 1)
    assert number == 1
    assert adas != bobs


def test_a_slot_that_a_crash_left_unfinished_is_passed_over(keystore, tmp_path):
    keystore.new_keys(ADA, 2)
    with file_of(tmp_path).open("ab") as file:
        file.write(b"half a slot")
    ((number, key),) = keystore.new_keys(ADA, 1)
    assert number == 4
    assert keystore.find_keys(ADA, [1, 2, 3, 4]).keys() == {1, 2, 4}
    assert keystore.find_keys(ADA, [4]) == {4: key}


@given(place=st.integers(0, 79), bit=st.integers(0, 7))
def test_a_damaged_head_is_told_and_never_taken_for_a_secret(tmp_path_factory, place, bit):
    directory = tmp_path_factory.mktemp("damaged")
    keystore = FileKeystore(directory / "keys")
    keystore.put_secret(ADA, SECRET)
    path = directory / "keys" / f"{ADA}.keys"
    content = bytearray(path.read_bytes())
    assert len(content) == 80
    content[place] ^= 1 << bit
    path.write_bytes(bytes(content))
    with pytest.raises(Corrupt):
        keystore.find_secret(ADA)


@pytest.mark.parametrize("place", [0, 20, 45])
def test_a_damaged_key_is_told_by_its_number_and_others_are_found(keystore, tmp_path, place):
    made = dict(keystore.new_keys(ADA, 2))
    content = bytearray(file_of(tmp_path).read_bytes())
    content[80 + place] ^= 2
    file_of(tmp_path).write_bytes(bytes(content))
    with pytest.raises(Corrupt, match=r"data key 1 is damaged.*newest copy"):
        keystore.find_keys(ADA, [1, 2])
    assert keystore.find_keys(ADA, [2]) == {2: made[2]}


def test_threads_that_make_keys_at_once_get_different_ones(keystore):
    with ThreadPoolExecutor(8) as pool:
        made = [key for keys in pool.map(lambda _: keystore.new_keys(ADA, 5), range(20)) for key in keys]
    assert sorted(number for number, _ in made) == list(range(1, 101))
    assert keystore.find_keys(ADA, range(1, 101)) == dict(made)


@pytest.mark.skipif(os.name != "posix", reason="modes are those of POSIX")
def test_only_its_owner_may_look_into_it(tmp_path, keystore):
    assert (tmp_path / "keys").stat().st_mode & 0o777 == 0o700
    assert file_of(tmp_path).stat().st_mode & 0o777 == 0o600
    file_of(tmp_path).chmod(0o640)
    with pytest.raises(InvalidRequest, match="0640"):
        keystore.find_secret(ADA)
    (tmp_path / "keys").chmod(0o755)
    with pytest.raises(InvalidRequest, match="0755"):
        FileKeystore(tmp_path / "keys")


def test_a_place_that_is_no_directory_is_refused(tmp_path):
    (tmp_path / "file").write_text("no directory")
    with pytest.raises(InvalidRequest, match="no directory"):
        FileKeystore(tmp_path / "file")
    with pytest.raises(Unavailable, match="cannot be used"):
        FileKeystore(tmp_path / "file" / "below")


@pytest.mark.parametrize("place", ["keys", "deep/er/keys"])
def test_who_opens_or_reads_makes_no_directory_and_the_first_secret_does(tmp_path, place):
    directory = tmp_path / place
    keystore = FileKeystore(directory)
    assert keystore.find_secret(ADA) is None
    assert keystore.newest(ADA) == 0
    with pytest.raises(WrongKey, match="no such directory"):
        keystore.find_keys(ADA, [1])
    with pytest.raises(Unavailable, match="directory is not there"):
        keystore.destroy(ADA, [1])
    assert list(tmp_path.iterdir()) == []
    keystore.put_secret(ADA, SECRET)
    assert directory.stat().st_mode & 0o777 == 0o700
    assert FileKeystore(directory).find_secret(ADA) == SECRET


def unmount(directory):
    """Move the directory aside and leave an empty one, as where a disk was mounted; return where it is."""
    aside = directory.with_name("disk")
    directory.rename(aside)
    directory.mkdir(mode=0o700)
    return aside


ASKED = {
    "find_secret": lambda keystore: keystore.find_secret(ADA),
    "newest": lambda keystore: keystore.newest(ADA),
    "keeps_below": lambda keystore: keystore.keeps_below(ADA, 3),
    "put_secret": lambda keystore: keystore.put_secret(BOB, SECRET),
    "destroy": lambda keystore: keystore.destroy(ADA, [1]),
    "destroy_below": lambda keystore: keystore.destroy_below(ADA, 3),
    "drop_tenant": lambda keystore: keystore.drop_tenant(ADA),
}


@pytest.mark.parametrize("asked", ASKED)
def test_where_its_disk_is_not_mounted_it_confirms_nothing_and_writes_nothing(keystore, tmp_path, asked):
    made = dict(keystore.new_keys(ADA, 2))
    aside = unmount(tmp_path / "keys")
    with pytest.raises(Unavailable, match=r"keystore\.mark.*mounted"):
        ASKED[asked](keystore)
    assert list((tmp_path / "keys").iterdir()) == []
    (tmp_path / "keys").rmdir()
    aside.rename(tmp_path / "keys")
    assert keystore.find_keys(ADA, [1, 2]) == made


@pytest.mark.parametrize("asked", ["destroy", "destroy_below"])
@pytest.mark.parametrize("found", ["put", "found"])
def test_a_file_that_is_missing_of_a_tenant_in_use_confirms_nothing(keystore, tmp_path, asked, found):
    if found == "found":
        keystore = FileKeystore(tmp_path / "keys")
        assert keystore.find_secret(ADA) == SECRET
    file_of(tmp_path).rename(tmp_path / "aside")
    with pytest.raises(Unavailable, match="put it back"):
        ASKED[asked](keystore)
    (tmp_path / "aside").rename(file_of(tmp_path))
    assert ASKED[asked](keystore)


def test_an_older_directory_without_a_mark_gets_one_that_only_its_owner_reads(keystore, tmp_path):
    mark = tmp_path / "keys" / "keystore.mark"
    mark.unlink()
    with pytest.raises(Unavailable):
        keystore.find_secret(BOB)
    assert FileKeystore(tmp_path / "keys").find_secret(BOB) is None
    assert keystore.find_secret(ADA) == SECRET
    if os.name == "posix":
        assert mark.stat().st_mode & 0o777 == 0o600


def test_of_a_tenant_that_was_dropped_an_empty_file_is_left_that_only_its_owner_reads(keystore, tmp_path):
    keystore.new_keys(ADA, 2)
    assert keystore.drop_tenant(ADA)
    left = {path.name: path.stat() for path in (tmp_path / "keys").iterdir()}
    assert {name: found.st_size for name, found in left.items()} == {f"{ADA}.dropped": 0, "keystore.mark": 0}
    if os.name == "posix":
        assert {found.st_mode & 0o777 for found in left.values()} == {0o600}


# A directory that was never marked: one that is new, or the place that a disk was not mounted at


@pytest.fixture
def empty(tmp_path):
    (tmp_path / "empty").mkdir(mode=0o700)
    return tmp_path / "empty"


HOLDS_NOTHING = {
    "find_secret": (ASKED["find_secret"], None),
    "newest": (ASKED["newest"], 0),
    "keeps_below": (ASKED["keeps_below"], False),
}
REFUSED = {
    "new_keys": (lambda keystore: keystore.new_keys(ADA, 1), WrongKey),
    "find_keys": (lambda keystore: keystore.find_keys(ADA, [1]), WrongKey),
    "destroy": (ASKED["destroy"], Unavailable),
    "destroy_below": (ASKED["destroy_below"], Unavailable),
    "drop_tenant": (ASKED["drop_tenant"], WrongKey),
}


@pytest.mark.parametrize("asked", HOLDS_NOTHING)
def test_a_directory_that_was_never_marked_holds_nothing_and_stays_as_it_is(empty, asked):
    ask, told = HOLDS_NOTHING[asked]
    assert ask(FileKeystore(empty)) == told
    assert list(empty.iterdir()) == []


@pytest.mark.parametrize("asked", REFUSED)
def test_a_directory_that_was_never_marked_confirms_nothing_and_makes_no_keys(empty, asked):
    ask, error = REFUSED[asked]
    with pytest.raises(error, match="mounted"):
        ask(FileKeystore(empty))
    assert list(empty.iterdir()) == []


def test_the_first_secret_marks_the_directory_for_whoever_has_it_open(empty):
    other, keystore = FileKeystore(empty), FileKeystore(empty)
    keystore.put_secret(ADA, SECRET)
    assert sorted(path.name for path in empty.iterdir()) == [f"{ADA}.keys", "keystore.mark"]
    assert other.find_secret(ADA) == SECRET
    assert other.destroy(BOB, [1])  # which it confirms only where it is marked
    unmount(empty)
    for one in (other, keystore):
        with pytest.raises(Unavailable, match="mounted"):
            one.find_secret(BOB)


def test_an_older_copy_of_a_tenant_that_was_dropped_is_given_to_nobody_and_goes_when_it_is_dropped_again(
    keystore, tmp_path
):
    keystore.new_keys(ADA, 3)
    [file] = (tmp_path / "keys").glob("*.keys")
    older = file.read_bytes()
    assert keystore.drop_tenant(ADA)
    for other in (keystore, FileKeystore(tmp_path / "keys")):
        file.write_bytes(older)
        file.chmod(0o600)
        assert (other.find_secret(ADA), other.newest(ADA)) == (None, 0)
        assert not other.keeps_below(ADA, 9)
        for ask in (lambda: other.find_keys(ADA, [1]), lambda: other.new_keys(ADA, 1)):  # noqa: B023
            with pytest.raises(WrongKey):
                ask()
        assert other.drop_tenant(ADA)
        assert not file.exists()
