"""Verify finds nothing in a whole store, names every kind of damage, and changes nothing."""

import os
import shutil
from threading import Thread

import apsw
import pytest

from crash.damage import KEY, PAGE, build, change, copy_of, hashes
from perdure import Corrupt, InvalidRequest, NewFact, NotFound, Store, Verified, WrongKey, salvage, verify
from perdure.base.ids import keyed_hash
from perdure.log.digests import checksum
from perdure.log.journal import open_journal
from perdure.log.protocol import Batch, Cached
from perdure.log.records import (
    AnnotationRecord,
    EndRecord,
    FactRecord,
    LinkRecord,
    ReceiptItem,
    ReceiptRecord,
    RemovalRecord,
    SpaceRecord,
    UseRecord,
    encode,
)
from perdure.log.sqlite import SqliteLog
from perdure.space.snapshot import NAME, cached_state
from perdure.space.state import new_state
from perdure.space.verifying import verify_log
from unit.space.logs import in_a_thread


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    directory = tmp_path_factory.mktemp("verify") / "store"
    build(directory)
    return directory


@pytest.fixture
def store(whole, tmp_path):
    return copy_of(whole, tmp_path / "store")


def messages(found):
    return [finding.message for finding in found.findings]


def one(found):
    """Return the only finding."""
    assert len(found.findings) == 1, messages(found)
    return found.findings[0]


# Whole stores


@pytest.mark.parametrize("quick", [False, True])
def test_a_whole_store_has_no_findings_and_is_left_as_it_was(store, quick):
    before = hashes(store)
    found = verify(store, quick=quick)
    assert found == Verified(True, (), 2, found.records)
    assert found.records > 120
    assert hashes(store) == before


@pytest.mark.parametrize("key", [None, KEY], ids=["plain", "encrypted"])
def test_an_open_store_verifies_before_and_after_a_purge(tmp_path, key):
    build(tmp_path / "store", key=key)
    with Store.open(tmp_path / "store", key=key) as store:
        before = store.verify()
        assert before.ok
        store.purge()
        after = store.verify()
        assert after.ok
        assert after.records < before.records


def test_an_ephemeral_store_verifies_as_well():
    with Store.open(":memory:") as store:
        assert store.verify() == Verified(True, (), 0, 0)
        memory = store.memory()
        memory.remember("The kettle is blue", id="kettle")
        memory.forget(ids=["kettle"])
        assert store.verify().ok


def test_nothing_is_found_while_others_write_and_forget(whole, tmp_path):
    directory = copy_of(whole, tmp_path / "store")
    with Store.open(directory, durability="normal") as store, Store.open(directory) as other:
        memory, done = store.memory(), []

        def write():
            for number in range(60):
                memory.remember(f"passing fact {number}", id=f"passing {number}")
                if number % 3 == 2:
                    memory.forget(ids=[f"passing {number - 1}"])
            done.append(True)

        writer = Thread(target=write)
        writer.start()
        while not done:
            assert messages(other.verify()) == []
        writer.join()


@pytest.fixture(scope="module")
def long(tmp_path_factory):
    """A store of more rows than are looked at in one piece."""
    directory = tmp_path_factory.mktemp("long") / "store"
    with Store.open(directory, durability="normal") as store:
        store.memory().remember_many(
            [{"text": f"fact {number}", "id": str(number)} for number in range(4500)]
        )
    return directory


def test_a_kept_state_that_a_newer_one_replaces_while_it_is_looked_at_is_no_finding(long, tmp_path):
    directory = copy_of(long, tmp_path / "store")
    other, opened = Store.open(directory), []
    other.memory().remember_many([f"one more, {number}" for number in range(1500)])

    def before(cursor, sql, bindings):
        if (
            sql == "PRAGMA journal_mode=MEMORY"
        ):  # a cache is being opened: first for its list, then for its parts
            opened.append(sql)
            if len(opened) == 2:
                in_a_thread(other.close)  # keeps a newer state
        return True

    def watch(db):
        db.exec_trace = before

    with Store.open(directory) as store:
        apsw.connection_hooks.append(watch)
        try:
            assert messages(store.verify()) == []
        finally:
            apsw.connection_hooks.remove(watch)
    assert len(opened) > 2


@pytest.mark.parametrize("quick", [False, True])
@pytest.mark.parametrize("what", ["purge", "forget", "remember"])
def test_what_others_do_between_two_pieces_is_no_finding(long, tmp_path, what, quick):
    directory = copy_of(long, tmp_path / "store")
    with Store.open(directory) as store, Store.open(directory) as other:
        memory = other.memory()
        steps = {
            "purge": other.purge,
            "forget": lambda: memory.forget(ids=["1", "4400"]),
            "remember": lambda: memory.remember("one more"),
        }
        told = []

        def meanwhile(done, of):
            if not told:
                in_a_thread(steps[what])
            told.append(done)

        assert messages(store.verify(quick=quick, progress=meanwhile)) == []
        assert len(told) > 2
        assert memory.list().total == {"purge": 4500, "forget": 4498, "remember": 4501}[what]


def test_progress_goes_up_to_all(store):
    told = []
    verify(store, quick=True, progress=lambda done, of: told.append((done, of)))
    assert told == sorted(told)
    assert told[-1][0] == told[-1][1] > 0


# Damaged files

ROWS = [
    (
        "UPDATE rec SET data = zeroblob(length(data)) || x'01' WHERE space = 1 AND seq = 40",
        "record 40 of space 1 is",
        40,
    ),
    ("UPDATE rec SET ck = zeroblob(16) WHERE space = 1 AND seq = 40", "record 40 of space 1 is damaged", 40),
    ("DELETE FROM rec WHERE space = 1 AND seq = 40", "of record 40 of space 1 nothing is there", 40),
    (
        "DELETE FROM rec WHERE space = 1 AND seq BETWEEN 40 AND 42",
        "of records 40 to 42 of space 1 nothing is",
        40,
    ),
    ("UPDATE rec SET seq = 900 WHERE space = 1 AND seq = 40", "record 900 of space 1 is damaged", 900),
    ("UPDATE rec SET space = 3 WHERE space = 1 AND seq = 40", "of record 40 of space 1 nothing is there", 40),
    ("UPDATE head SET seq = seq + 1 WHERE space = 1", "the head of space 1", None),
    ("DELETE FROM head WHERE space = 1", "the head of space 1 is missing", None),
    ("DELETE FROM head WHERE space = 2", "space 2 has records but no head", None),
    ("DELETE FROM key", "no key leads to the name of space 1", 1),
    ("UPDATE key SET rid = 99999", "a key leads to row 99999, which there is not", None),
    ("UPDATE key SET h = x'00' WHERE rid = 1", "a key has not 16 bytes", None),
    ("INSERT INTO vec VALUES(1, 1, 1, x'00', x'00')", "1 row of vectors", None),
]


@pytest.mark.parametrize(("sql", "message", "seq"), ROWS, ids=[row[1] for row in ROWS])
def test_each_kind_of_damage_to_a_table_is_named_with_its_place_and_what_to_do(store, sql, message, seq):
    change(store, sql)
    before = hashes(store)
    told = [finding for finding in verify(store).findings if message in finding.message]
    assert told, messages(verify(store))
    assert told[0].seq == seq
    assert "generation 1" in told[0].message
    assert "backup" in told[0].message
    assert hashes(store) == before


def zeroed(store, space, seq):
    change(
        store,
        "UPDATE rec SET data = zeroblob(length(data)), ck = zeroblob(16) WHERE space = ? AND seq = ?",
        space,
        seq,
    )


@pytest.mark.parametrize("quick", [False, True])
def test_a_record_zeroed_by_accident_does_not_add_up(store, quick):
    zeroed(store, 1, 40)
    finding = one(verify(store, quick=quick))
    assert "do not add up" in finding.message
    assert finding.space == 1


def test_quick_leaves_the_bytes_of_records_unread(store):
    change(store, "UPDATE rec SET data = zeroblob(length(data)) WHERE space = 1 AND seq = 40")
    assert verify(store, quick=True).ok
    assert one(verify(store)).seq == 40


def test_a_page_that_sqlite_cannot_read_is_a_finding_and_the_rest_is_looked_at(store):
    change(store, "UPDATE rec SET data = zeroblob(length(data)) WHERE space = 2 AND seq = 40")
    pages = apsw.Connection(str(store / "gen-1.db"))
    leaf = pages.execute(
        "SELECT pageno FROM dbstat WHERE name = 'rec' AND pagetype = 'leaf' ORDER BY path LIMIT 1"
    ).get
    pages.close()
    with (store / "gen-1.db").open("r+b") as file:
        file.seek((leaf - 1) * PAGE)
        file.write(bytes(PAGE))
    told = messages(verify(store))
    assert any("rows 1 to" in message and "cannot be read" in message for message in told)
    assert any("record 40 of space 2 is damaged" in message for message in told)
    assert any("SQLite finds a page damaged" in message for message in told)


def test_what_was_acknowledged_and_is_gone_is_found_where_the_store_cannot_be_opened(store):
    (store / "gen-1.db-wal").unlink()
    with pytest.raises(Corrupt):
        Store.open(store)
    assert any("were acknowledged" in message for message in messages(verify(store)))


def test_a_missing_mark_is_found(store):
    (store / "gen-1.hw").unlink()
    assert "gen-1.hw is missing" in one(verify(store)).message


@pytest.mark.parametrize("header", [b"\xff" * 100, b"", None], ids=["damaged", "empty", "gone"])
def test_a_generation_that_cannot_be_read_at_all_is_told_once_and_nothing_advises_to_erase_it(store, header):
    path = store / "gen-1.db"
    rest = path.read_bytes()[100:] if header else b""
    (store / "gen-1.db-wal").unlink()  # which may hold the first page as well
    path.unlink()
    if header is not None:
        path.write_bytes(header + rest)
        path.chmod(0o600)
    told = messages(verify(store))
    assert told
    assert len(set(told)) == len(told)
    for message in told:
        assert "purge" not in message
        assert "generation 0" not in message
        assert "gen-0" not in message
        assert "backup" in message if header is None else "verify --salvage" in message


def test_a_missing_lock_is_told_with_the_way_to_save_what_is_whole(store):
    (store / "store.lock").unlink()
    assert "verify --salvage" in one(verify(store)).message
    with pytest.raises(Corrupt, match="verify --salvage"):
        Store.open(store)


@pytest.mark.parametrize("path", [5, None, b"store", "a\0b", "\udcff", ""])
def test_what_is_no_path_is_refused(path):
    with pytest.raises(InvalidRequest) as caught:
        verify(path)
    assert caught.value.field == "path"


@pytest.mark.parametrize(
    ("backend", "stray"), [("sqlite", "journal.current"), ("journal", "gen-1.db"), ("journal", "store.lock")]
)
def test_a_file_of_another_store_is_named_by_opening_verifying_and_salvaging_alike(tmp_path, backend, stray):
    directory = tmp_path / "store"
    with Store.open(directory, backend=backend) as store:
        store.memory().remember("The kettle is blue")
    (directory / stray).write_bytes(b"")
    left = hashes(directory)
    assert stray in one(verify(directory)).message
    with pytest.raises(Corrupt, match=stray):
        Store.open(directory)
    with pytest.raises(Corrupt, match=stray):
        salvage(directory, tmp_path / "out")
    assert hashes(directory) == left
    with Store.open(directory, backend=backend) as store:  # told which one is meant
        assert store.memory().list().total == 1


@pytest.mark.parametrize("content", [b"", bytes(8192)], ids=["empty", "zeros"])
def test_a_damaged_lock_is_the_finding(store, content):
    (store / "store.lock").write_bytes(content)
    assert "damaged" in one(verify(store)).message


def test_a_file_that_an_interrupted_purge_left_is_found(store):
    shutil.copy(store / "gen-1.db", store / "gen-7.db")
    assert "gen-7.db lies beside generation 1" in one(verify(store)).message


@pytest.mark.skipif(os.name != "posix", reason="modes are a matter of POSIX")
def test_files_that_others_may_read_are_found(store):
    (store / "gen-1.db").chmod(0o644)
    store.chmod(0o755)
    told = messages(verify(store))
    assert "the store's directory has mode 0755" in told[0]
    assert "gen-1.db has mode 0644, so that others than its owner reach it: run chmod 600 on it" in told


def test_a_damaged_cache_is_found_said_to_be_harmless_and_left(tmp_path):
    directory = tmp_path / "store"
    log = SqliteLog.open(directory)
    space = log.create_space(b"n" * 16, b"first")
    log.put_cache(space, "state", Cached(log.head(space), b"derived " * 5000))
    log.close()
    change(directory, "UPDATE part SET blob = zeroblob(length(blob))", file="cache-1.db")
    before = hashes(directory)
    log = SqliteLog.open(directory)
    [finding] = log.verify()
    log.close()
    assert "nothing is lost" in finding.message
    assert finding.space == space
    assert hashes(directory) == before


# Damaged meaning: whole rows that no store would have written


@pytest.fixture
def space():
    """A log with a space of three facts, of which the second was forgotten; and what appends records to it."""
    with Store.open(":memory:") as store:
        memory = store.memory()
        memory.remember_many([{"text": f"fact {number}", "id": str(number)} for number in range(3)])
        memory.forget(ids=["1"])
        yield (
            store.log,
            lambda *records, erase=(): store.log.append(
                1,
                store.log.head(1),
                Batch([r if isinstance(r, bytes) else encode(r) for r in records], erase),
            ),
        )


def fact(number, **fields):
    return FactRecord(number, f"id {number}", "a text", 1, **fields)


WRONG = [
    ((LinkRecord(0, 99, False, None, 1),), "names fact 99, which there never was"),
    ((LinkRecord(2, 2, False, None, 1),), "links a fact to itself"),
    ((UseRecord((-1,), b"", 1),), "names fact -1"),
    ((fact(0),), "repeats the fact number 0"),
    ((fact(3, cuts=(4, 2)),), "is cut into units"),
    ((fact(3, made_from=(1, 3)),), "is made from a fact that did not come before it"),
    ((SpaceRecord("", "", "english.v1", 1.0, 0.5, 1, b""),), "is not what stands at its place"),
    ((RemovalRecord((0,), 3, (2,), 1),), "was to be erased by record"),
    ((EndRecord(1, 5, 1, "why"),), "tells of fact 1, which was forgotten"),
    ((AnnotationRecord(1, ("tag",), None, None, False, None, 1),), "tells of fact 1, which"),
    ((ReceiptRecord("remember", b"k" * 16, b"", (ReceiptItem(1, "created", ""),), 1),), "tells of fact 1"),
    ((EndRecord(2, 5, 1, "why"), RemovalRecord((2,), 3, (), 1)), "tells of fact 2"),
    ((b"\x01\x91\x7f",), "no record of a known type"),
    ((b"\x09later",), "record format 9"),
]


@pytest.mark.parametrize(("records", "message"), WRONG, ids=[row[1] for row in WRONG])
def test_records_that_do_not_hold_together_are_named(space, records, message):
    log, append = space
    assert verify_log(log).ok
    head = append(*records)
    finding = verify_log(log).findings[0]
    assert message in finding.message
    assert finding.space == 1
    assert finding.seq in (head.seq, head.seq - len(records) + 1, 2)


def test_a_record_that_nothing_says_was_erased_is_found(space):
    log, append = space
    append(erase=[4])
    finding = one(verify_log(log))
    assert "zeroed without a removal" in finding.message
    assert finding.seq == 4


def test_a_space_whose_name_leads_elsewhere_is_found(tmp_path):
    log = SqliteLog.open(tmp_path / "store")
    log.create_space(
        keyed_hash(log.secret, b"space", b"another"),
        encode(SpaceRecord("", "", "english.v1", 1.0, 0.5, 1, b"")),
    )
    log.close()
    assert "under which the space is not found" in messages(verify(tmp_path / "store"))[0]


def test_a_kept_state_that_is_not_what_the_records_say_is_found(tmp_path):
    directory = tmp_path / "store"
    with Store.open(directory) as store:
        store.memory().remember("The kettle is blue", id="kettle")
    log = SqliteLog.open(directory)
    state = new_state(SpaceRecord("", "", "english.v1", 1.0, 0.5, 1, b""))
    state.head = log.head(1)
    log.put_cache(1, NAME, cached_state(state))
    log.close()
    finding = one(verify(directory))
    assert "the kept state of space 1 is not what its records say" in finding.message


# Arguments


def test_a_store_that_is_not_there_is_not_found_and_none_is_made(tmp_path):
    with pytest.raises(NotFound):
        verify(tmp_path / "absent")
    assert list(tmp_path.iterdir()) == []


def test_a_journal_is_verified_and_a_damaged_one_is_a_finding(tmp_path):
    log = open_journal(tmp_path / "store")
    with Store.open(log=log) as store:
        store.memory().remember("The kettle is blue", id="kettle")
    assert verify(tmp_path / "store") == Verified(True, (), 1, 2)
    [file] = (tmp_path / "store").glob("journal-*.jsonl")
    file.write_bytes(file.read_bytes().replace(b"kettle is blue", b"kettle is blur"))
    finding = one(verify(tmp_path / "store"))
    assert (finding.space, finding.seq) == (1, 2)


def test_every_damaged_line_of_a_journal_is_a_finding(tmp_path):
    with Store.open(tmp_path / "store", backend="journal") as store:
        for number in range(5):
            store.memory().remember(f"The kettle is number {number}")
    [file] = (tmp_path / "store").glob("journal-*.jsonl")
    whole = file.read_bytes()
    file.write_bytes(whole.replace(b"number 1", b"number 7").replace(b"number 3", b"number 8"))
    assert [finding.seq for finding in verify(tmp_path / "store").findings] == [3, 5]


def test_a_wrong_key_is_no_finding(tmp_path):
    build(tmp_path / "store", key=KEY)
    with pytest.raises(WrongKey):
        verify(tmp_path / "store")
    with pytest.raises(WrongKey):
        verify(tmp_path / "store", key=b"x" * 32)
    with Store.open(tmp_path / "store", key=KEY) as store, pytest.raises(InvalidRequest):
        store.verify(quick="yes")


def test_a_checksum_that_fits_another_place_is_damage(store):
    data = b"\x01\x97\x02\x02\x01\xc2\xc0\x01\xc2"
    change(store, "UPDATE rec SET data = ?, ck = ? WHERE space = 1 AND seq = 40", data, checksum(1, 41, data))
    assert any("record 40 of space 1 is damaged" in message for message in messages(verify(store)))


class ErasedMeanwhile:
    """A log in which somebody erases a space between two looks of a verification: at its record, and at its name."""

    def __init__(self, log, erase):
        self._log, self._erase = log, erase

    def __getattr__(self, name):
        return getattr(self._log, name)

    def find_space(self, name):
        erase, self._erase = self._erase, lambda: None
        erase()
        return self._log.find_space(name)


@pytest.mark.parametrize("backend", ["memory", "sqlite", "journal"])
def test_a_space_that_is_erased_while_its_name_is_looked_at_is_no_finding(tmp_path, backend):
    opened = (
        Store.open(":memory:") if backend == "memory" else Store.open(tmp_path / "store", backend=backend)
    )
    with opened as store:
        store.memory(principal="ann").remember("what goes")
        store.memory(principal="bob").remember("what stays")
        log = ErasedMeanwhile(store.log, lambda: store.erase(principal="ann"))
        assert verify_log(log).findings == ()


class ChangedMeanwhile:
    """A log in which somebody acts once a verification knows how far it will read, before it reads."""

    def __init__(self, log, act):
        self._log, self._act = log, act

    def __getattr__(self, name):
        return getattr(self._log, name)

    def read(self, *args, **named):
        act, self._act = self._act, lambda: None
        act()
        return self._log.read(*args, **named)


def forget_newest(store):
    store.memory("ann").forget(ids=["newest"])


def forget_all_and_write(store):
    memory = store.memory("ann")
    memory.forget(tag="work")
    memory.remember("Ann paints", id="later")


MEANWHILE = {
    "forgets what another fact replaced": forget_newest,
    "forgets and writes": forget_all_and_write,
    "purges": lambda store: store.purge(),
    "forgets and purges": lambda store: store.memory("ann").forget(ids=["newest"], purge=True),
    "erases": lambda store: store.erase("ann"),
}


@pytest.mark.parametrize("act", MEANWHILE.values(), ids=MEANWHILE)
@pytest.mark.parametrize("backend", ["memory", "sqlite", "journal"])
def test_what_is_erased_before_a_verification_reads_it_is_no_finding(tmp_path, backend, act):
    opened = (
        Store.open(":memory:") if backend == "memory" else Store.open(tmp_path / "store", backend=backend)
    )
    with opened as store:
        memory = store.memory("ann")
        memory.remember("Ann works at Initech", id="older", tags=["work"])
        memory.remember_many(
            [NewFact(text="Ann works at Globex", id="newest", tags=["work"], supersedes=["older"])],
            idempotency_key="key",
        )
        memory.record_use(["newest"])
        assert verify_log(ChangedMeanwhile(store.log, lambda: act(store))).findings == ()
