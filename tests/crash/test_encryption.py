"""An encrypted store: no file shows what it holds, and only its key opens it, whatever happened to the files."""

import random
import shutil
import threading

import apsw
import pytest

from crash import keyed_processes
from perdure import Corrupt, PerdureError, Store, Unavailable, WrongKey
from perdure.base.sqlite.ciphers import NAME
from perdure.log.protocol import Batch, Cached
from perdure.log.sqlite import SqliteLog
from perdure.log.sqlite.state import read_state, write_state

NAME_OF_SPACE = b"n" * 16
OLD, NEW = bytes(range(32)), bytes(range(32, 64))
MARKER = "Marker-that-nobody-else-writes"
RECORDS = (b"kept", MARKER.encode() * 3)
TAIL_BYTES = 32  # of each page: the nonce and the tag of its cipher


@pytest.fixture
def directory(tmp_path):
    return tmp_path / "store"


def fill(directory, key, records=RECORDS, secret=None):
    """Make a store whose database, write-ahead log and cache all hold records; leave it open."""
    log = SqliteLog.open(directory, key=key, secret=secret)
    space = log.create_space(NAME_OF_SPACE, b"first")
    log.append(space, log.head(space), Batch(records=list(records)))
    log.append(space, log.head(space), Batch(records=[MARKER.encode("utf-16-le"), b"x" * 9000]))
    log.put_cache(space, "state", Cached(log.head(space), b"derived from " + MARKER.lower().encode()))
    return log


def told(directory, key, secret=None):
    """All that a store tells, its secret included."""
    log = SqliteLog.open(directory, key=key, secret=secret, timeout_s=1)
    try:
        return log.secret, log.find_space(NAME_OF_SPACE), [entry.data for entry in log.read(1, 0, 10**6)]
    finally:
        log.close()


def test_no_file_of_an_encrypted_store_shows_a_record_and_those_of_a_plain_one_do(tmp_path):
    for key, wanted in ((None, ["cache-1.db", "gen-1.db-wal"]), (OLD, [])):
        place = tmp_path / ("plain" if key is None else "encrypted")
        log = fill(place, key)
        assert keyed_processes.holders(place, MARKER) == wanted
        log.close()
    for key, wanted in ((None, ["gen-1.db"]), (OLD, [])):
        place = tmp_path / ("plain" if key is None else "encrypted")
        log = SqliteLog.open(place, key=key)
        copied_into_database(log)
        assert keyed_processes.holders(place, MARKER) == wanted
        log.close()


def test_no_file_shows_what_was_remembered_in_any_field(tmp_path):
    for key in (None, OLD):
        place = tmp_path / ("plain" if key is None else "encrypted")
        with Store.open(place, key=key) as store:
            memory = store.memory(principal=f"{MARKER} person")
            memory.remember(
                f"{MARKER} is here",
                id=f"{MARKER}-id",
                subject=f"{MARKER}/subject",
                entities=[MARKER],
                tags=[MARKER],
                metadata={"of": MARKER},
            )
            assert memory.recall(MARKER)
            memory.end(f"{MARKER}-id", reason=f"{MARKER} left")
            found = keyed_processes.holders(place, MARKER)
        assert (found != []) == (key is None)
    assert keyed_processes.holders(tmp_path / "plain", MARKER) != []
    assert keyed_processes.holders(tmp_path / "encrypted", MARKER) == []


def test_the_secret_of_an_encrypted_store_is_in_no_file(tmp_path):
    for key in (None, OLD):
        place = tmp_path / str(key is None)
        log = fill(place, key)
        log.close()
        holders = [path.name for path in sorted(place.iterdir()) if log.secret in path.read_bytes()]
        assert holders == (["store.lock"] if key is None else [])


@pytest.mark.parametrize("secret", [None, b"s" * 32], ids=["its own secret", "a secret from outside"])
@pytest.mark.parametrize(
    ("made_with", "opened_with", "said"),
    [
        (OLD, NEW, "another key"),
        (OLD, None, "no key was given"),
        (None, OLD, "is not encrypted"),
        (OLD, "a passphrase", "32 bytes"),
    ],
)
def test_only_its_own_key_opens_a_store_and_another_changes_nothing(
    directory, made_with, opened_with, said, secret
):
    fill(directory, made_with, secret=secret).close()
    before = keyed_processes.contents(directory)
    for _ in range(2):
        with pytest.raises(WrongKey, match=said):
            told(directory, opened_with, secret)
    assert keyed_processes.contents(directory) == before
    assert len(told(directory, made_with, secret)[2]) == 5


def test_a_secret_from_outside_is_needed_beside_the_key(directory):
    fill(directory, OLD, secret=b"s" * 32).close()
    for secret in (None, b"t" * 32):
        with pytest.raises(WrongKey, match="secret"):
            told(directory, OLD, secret)
    assert told(directory, OLD, b"s" * 32)[0] == b"s" * 32


def test_a_store_from_before_there_were_keys_opens_as_ever(directory):
    fill(directory, None).close()
    tables = apsw.Connection(str(directory / "store.lock")).execute("SELECT name FROM sqlite_schema")
    assert [row[0] for row in tables] == ["state"]
    assert len(told(directory, None)[2]) == 5


def test_the_pages_are_written_under_the_authenticated_cipher(directory):
    fill(directory, OLD).close()
    db = apsw.Connection(str(directory / "gen-1.db"), flags=apsw.SQLITE_OPEN_READWRITE)
    db.execute(f"PRAGMA cipher='{NAME}'").fetchall()
    db.execute(f"PRAGMA key='raw:{OLD.hex()}'").fetchall()
    assert db.execute("SELECT count(*) FROM rec").get == 5
    assert db.reserve_bytes("main") == TAIL_BYTES
    db.close()


def test_a_creation_that_ended_early_goes_on_under_its_key_only(directory):
    fill(directory, OLD).close()
    lock = apsw.Connection(str(directory / "store.lock"))
    write_state(lock, read_state(lock)._replace(generation=0))
    lock.close()
    for path in directory.glob("gen-*"):
        path.unlink()
    for key in (NEW, None):
        with pytest.raises(WrongKey):
            told(directory, key)
    assert list(directory.glob("gen-*")) == []
    log = SqliteLog.open(directory, key=OLD)
    assert log.create_space(NAME_OF_SPACE, b"first") == 1
    log.close()


def copied_into_database(log):
    """Move all that the write-ahead log holds into the database, as a scrub does."""
    with log.writer():
        log.append(1, log.head(1), Batch(records=[b"removal"], erase=[2]))
        assert log.scrub()


def flips(size, count):
    """Positions and bits to flip: all over a file, every second one in its first page."""
    chance = random.Random(7)
    return [
        (chance.randrange(min(4096, size) if number % 2 else size), 1 << chance.randrange(8))
        for number in range(count)
    ]


def flipped(directory, name, position, bit):
    path = directory / name
    data = bytearray(path.read_bytes())
    data[position] ^= bit
    path.write_bytes(data)


@pytest.mark.parametrize(
    ("name", "outcomes"),
    [
        ("gen-1.db", {"whole", "corrupt"}),
        ("gen-1.db-wal", {"corrupt"}),
        ("store.lock", {"whole", "corrupt"}),
        ("gen-1.hw", {"whole", "corrupt"}),
        ("cache-1.db", {"whole"}),
    ],
)
def test_a_flipped_bit_is_damage_and_never_a_wrong_key_or_a_wrong_answer(tmp_path, name, outcomes):
    log = fill(tmp_path / "original", OLD, [f"record {number} ".encode() * 30 for number in range(150)])
    if name == "gen-1.db":
        copied_into_database(log)
    log.close()
    original = told(tmp_path / "original", OLD)
    seen = set()
    for position, bit in flips((tmp_path / "original" / name).stat().st_size, 60):
        place = shutil.copytree(tmp_path / "original", tmp_path / "copy")
        flipped(place, name, position, bit)
        try:
            assert told(place, OLD) == original
            log = SqliteLog.open(place, key=OLD)
            cached = log.get_cache(1, "state")
            assert cached is None or cached.blob.endswith(MARKER.lower().encode())
            log.close()
            seen.add("whole")
        except (Corrupt, Unavailable) as error:
            seen.add(error.code)
        shutil.rmtree(place)
    assert seen - {"unavailable"} == outcomes


def test_a_damaged_page_names_its_generation_and_what_to_do(directory):
    log = fill(directory, OLD)
    copied_into_database(log)
    log.close()
    flipped(directory, "gen-1.db", 200, 4)
    with pytest.raises(Corrupt, match=r"generation 1 is damaged.*restore a backup") as caught:
        told(directory, OLD)
    assert caught.value.generation == 1


def test_two_stores_of_equal_content_are_equal_once_decrypted(tmp_path):
    images = []
    for number, records in enumerate(([b"a", b"b", b"c"], [b"a", b"gone", b"b", b"c"])):
        place = tmp_path / str(number)
        log = SqliteLog.open(place, key=OLD, secret=b"s" * 32)
        space = log.create_space(NAME_OF_SPACE, b"first")
        log.append(space, log.head(space), Batch(records=records))
        if b"gone" in records:
            log.append(space, log.head(space), Batch(records=[], erase=[3]))
        log.rekey(keyed_processes.kept, NEW)
        log.close()
        images.append((decrypted(place / "gen-2.db", NEW), (place / "gen-2.db").read_bytes()))
    (first, first_raw), (second, second_raw) = images
    assert first == second
    assert len(first) > 3
    assert first_raw[16:24] == second_raw[16:24]
    assert len(first_raw) == len(second_raw)
    assert first_raw[4096:8192] != second_raw[4096:8192]


def decrypted(path, key):
    """Return the pages of a generation as SQLite sees them, without what the cipher keeps in each."""
    db = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READWRITE)
    db.execute(f"PRAGMA key='raw:{key.hex()}'").fetchall()
    image = db.serialize("main")
    db.close()
    return [image[start : start + 4096 - TAIL_BYTES] for start in range(0, len(image), 4096)]


@pytest.mark.parametrize(
    ("old", "new"), [(OLD, NEW), (None, NEW), (OLD, None), (OLD, OLD)], ids=["other", "on", "off", "same"]
)
@pytest.mark.parametrize("secret", [None, b"s" * 32], ids=["its own secret", "a secret from outside"])
def test_a_change_of_key_keeps_all_records_and_leaves_nothing_under_the_old_key(directory, old, new, secret):
    log = fill(directory, old, secret=secret)
    log.append(1, log.head(1), Batch(records=[b"removal"], erase=[2]))
    kept = [entry.data for entry in log.read(1, 0, 99) if entry.data is not None]
    purged = log.rekey(keyed_processes.kept, new)
    assert (purged.records, purged.dropped, purged.pending) == (len(kept), 1, False)
    assert {path.name.partition(".")[0] for path in directory.glob("*-*")} == {"gen-2"}
    holders = keyed_processes.holders(directory, MARKER)
    assert (holders == []) == (new is not None)
    assert [entry.data for entry in log.read(1, 0, 99)] == kept
    log.append(1, log.head(1), Batch(records=[b"more"]))
    log.put_cache(1, "state", Cached(log.head(1), b"derived"))
    assert log.get_cache(1, "state").blob == b"derived"
    copied_into_database(log)
    log.close()
    assert told(directory, new, secret)[0] == log.secret
    if old != new:
        with pytest.raises(WrongKey):
            told(directory, old, secret)
    in_lock = log.secret in (directory / "store.lock").read_bytes()
    assert in_lock == (new is None and secret is None)


@pytest.mark.parametrize("new", [NEW, None], ids=["another key", "no key"])
def test_whoever_has_the_store_open_is_told_that_the_key_was_changed(directory, new):
    log = fill(directory, OLD)
    near = SqliteLog.open(directory, key=OLD)
    near.put_cache(1, "state", Cached(near.head(1), b"derived"))
    other = keyed_processes.start("wait_and_use", directory, OLD.hex())
    assert other.stdout.readline() == "5\n"
    log.rekey(keyed_processes.kept, new)
    lines = keyed_processes.finish(other, "go\n")
    assert [line.split(" ", 1)[0] for line in lines] == ["wrong_key"] * 3
    assert all("key was changed" in line for line in lines)
    for _ in range(2):
        with pytest.raises(WrongKey, match="key was changed"):
            near.head(1)
    near.put_cache(1, "state", Cached(log.head(1), b"derived"))
    near.close()
    assert log.get_cache(1, "state") is None
    assert len(list(log.read(1, 0, 99))) == 5
    log.close()
    assert len(told(directory, new)[2]) == 5


def test_threads_read_and_write_while_the_key_is_changed(directory):
    log = fill(directory, OLD)
    done, failures = threading.Event(), []

    def work(kind):
        try:
            other = log.create_space(bytes([kind]) * 16, b"first")
            while not done.is_set():
                assert log.get(1, [1], log.head(1)) == [b"first"]
                with log.writer():
                    log.append(other, log.head(other), Batch(records=[b"more"]))
        except PerdureError as error:
            if error.code != "busy":  # a purge came between the head and what was asked at it
                failures.append(error)

    threads = [threading.Thread(target=work, args=(kind,)) for kind in range(3)]
    for thread in threads:
        thread.start()
    for key in (NEW, "a passphrase", None, OLD):
        log.rekey(keyed_processes.kept, key)
    done.set()
    for thread in threads:
        thread.join()
    assert failures == []
    log.close()
    assert told(directory, OLD)[2][0] == b"first"


def test_a_process_that_dies_while_it_changes_the_key_leaves_the_old_one_in_force(directory):
    fill(directory, OLD).close()
    before = told(directory, OLD)
    keyed_processes.await_kill(keyed_processes.start("rekey_and_die", directory, OLD.hex(), "none"))
    with pytest.raises(WrongKey):
        told(directory, None)
    assert told(directory, OLD) == before
    assert keyed_processes.holders(directory, MARKER) == []
    assert list(directory.glob("gen-2*")) == []


def test_a_process_that_dies_after_it_changed_the_key_leaves_nothing_under_the_old_one(directory):
    fill(directory, None).close()
    before = told(directory, None)
    keyed_processes.await_kill(
        keyed_processes.start("rekey_past_the_switch_and_die", directory, "none", NEW.hex())
    )
    with pytest.raises(WrongKey):
        told(directory, None)
    assert told(directory, NEW)[0] == before[0]
    assert keyed_processes.holders(directory, MARKER) == []
    assert list(directory.glob("gen-1*")) == []


def test_a_rewrite_that_fails_leaves_the_old_key_in_force(directory):
    log = fill(directory, OLD)

    def rewrite(space, read):
        yield next(keyed_processes.kept(space, read))
        raise LookupError("of its own")

    with pytest.raises(LookupError):
        log.rekey(rewrite, None)
    assert len(list(log.read(1, 0, 99))) == 5
    log.close()
    assert keyed_processes.holders(directory, MARKER) == []
    assert len(told(directory, OLD)[2]) == 5


def test_a_memory_is_the_same_before_and_after_its_key_is_changed(directory):
    with Store.open(directory, key="first passphrase") as store:
        memory = store.memory()
        memory.remember("Alice lives in Lyon", id="home")
        memory.remember("Alice keeps bees", id="bees")
        memory.forget(ids=["bees"])
        before = memory.recall("where does Alice live")
        done = store.rekey("second passphrase")
        assert not done.pending
        assert memory.recall("where does Alice live") == before
        memory.remember("Alice moved to Nice", id="moved")
    with pytest.raises(WrongKey, match="another key"):
        Store.open(directory, key="first passphrase")
    with Store.open(directory, key="second passphrase") as store:
        assert store.memory().get("moved").text == "Alice moved to Nice"
        store.rekey(None)
    with Store.open(directory) as store:
        assert store.memory().get("home").text == "Alice lives in Lyon"


def test_a_store_that_is_open_elsewhere_tells_of_the_change_and_closes_in_peace(directory):
    with Store.open(directory, key=OLD) as store:
        store.memory().remember_many([f"bee number {number}" for number in range(200)])
        other = Store.open(directory, key=OLD)
        memory = other.memory()
        assert memory.recall("bee")
        store.rekey(NEW)
        for work in (lambda: memory.recall("bee"), lambda: memory.remember("late"), other.stats, other.purge):
            with pytest.raises(WrongKey, match="key was changed"):
                work()
        assert other.health().status == "wrong_key"
        other.close()
        assert store.memory().recall("bee")
    assert keyed_processes.holders(directory, "bee") == []


def test_an_encrypted_store_is_verified_and_backed_up_as_any_other(directory, tmp_path):
    with Store.open(directory, key=OLD) as store:
        store.memory().remember(MARKER, id="it")
        assert store.verify().findings == ()
        store.backup(tmp_path / "copy")
    assert keyed_processes.holders(tmp_path / "copy", MARKER) == []
    with pytest.raises(WrongKey, match="no key was given"):
        Store.open(tmp_path / "copy")
    with Store.open(tmp_path / "copy", key=OLD) as copy:
        assert copy.memory().get("it").text == MARKER
