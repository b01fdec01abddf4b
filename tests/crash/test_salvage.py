"""Salvage saves what is provably whole, tells what is not, brings nothing forgotten back and leaves the store alone."""

import shutil
from random import Random

import apsw
import pytest

from crash.damage import FORGOTTEN, KEY, NAMES, NOW, PAGE, answers, build, change, copy_of, hashes
from perdure import (
    Blocked,
    Busy,
    Conflict,
    Corrupt,
    InvalidRequest,
    ManualClock,
    Namespace,
    NotFound,
    Store,
    Unavailable,
    WrongKey,
    salvage,
    verify,
)
from perdure.log.digests import checksum
from perdure.log.protocol import Batch
from perdure.log.records import RemovalRecord, encode
from perdure.log.sqlite import SqliteLog

HOUSE, WORK = NAMES


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    directory = tmp_path_factory.mktemp("salvage") / "store"
    build(directory)
    return directory, answers(directory)


@pytest.fixture
def store(whole, tmp_path):
    return copy_of(whole[0], tmp_path / "store")


@pytest.fixture
def truth(whole):
    return whole[1]


@pytest.fixture
def out(tmp_path):
    return tmp_path / "out"


def seq_of(store, id_):
    """Return the space's number and the record of a fact or note."""
    with Store.open(store) as opened:
        for space in opened.log.spaces():
            for entry in opened.log.read(space, 0, 10**6):
                if entry.data is not None and f"\xa2{id_}".encode("latin-1") in entry.data:
                    return space, entry.seq
                if entry.data is not None and f"\xa3{id_}".encode("latin-1") in entry.data:
                    return space, entry.seq
    raise AssertionError(id_)


def spoil(store, *ids):
    """Damage the records of these facts; return their places."""
    places = [seq_of(store, id_) for id_ in ids]
    for space, seq in places:
        change(
            store,
            "UPDATE rec SET data = zeroblob(length(data)) || x'07' WHERE space = ? AND seq = ?",
            space,
            seq,
        )
    return places


def facts(told, name):
    return {id_: (fact.text, fact.status, fact.tags) for id_, fact in told[name]["facts"].items()}


# What is saved


def test_of_a_whole_store_all_is_saved(store, out, truth):
    before = hashes(store)
    saved = salvage(store, out)
    assert (saved.generation, saved.spaces, saved.lost, saved.notes) == (1, 2, (), ())
    assert saved.facts == sum(len(space["documents"]) + len(space["hidden"]) for space in truth.values())
    assert hashes(store) == before
    told = answers(out)
    for name in NAMES:
        for part in ("facts", "got", "hidden", "hits", "histories", "explained", "documents"):
            assert told[name][part] == truth[name][part], part


def test_the_new_store_is_whole_private_and_writable(store, out):
    salvage(store, out)
    assert verify(out).ok
    assert all(path.stat().st_mode & 0o077 == 0 for path in out.iterdir())
    with Store.open(out) as opened:
        opened.memory().remember("one more", id="more")
        opened.purge()
    assert verify(out).ok


def test_it_keeps_the_secret_so_that_idempotency_keys_are_known(store, out):
    salvage(store, out)
    clock = ManualClock(NOW + 10**8)
    with Store.open(store) as old, Store.open(out, clock=clock) as new:
        assert new.log.secret == old.log.secret
        with pytest.raises(Conflict, match="idempotency"):
            new.memory("ada", "work").remember("another note", idempotency_key="key-3")


def test_blocks_hold_in_the_new_store(store, out):
    salvage(store, out)
    with Store.open(out) as opened:
        opened.memory().remember("another text", id="f10")
        with pytest.raises(Blocked):
            opened.memory().remember("another text", id="f5")


def test_a_damaged_fact_is_lost_alone_and_named(store, out, truth):
    [(space, seq)] = spoil(store, "n12")
    saved = salvage(store, out)
    [lost] = saved.lost
    assert (lost.space, lost.seq) == (space, seq)
    assert f"record {seq} of space {space} is lost" in lost.message
    kept = facts(truth, WORK)
    del kept["n12"]
    told = answers(out)
    assert facts(told, WORK) == kept
    assert facts(told, HOUSE) == facts(truth, HOUSE)


def test_where_a_fact_between_two_others_is_lost_the_newer_one_supersedes_the_older_one_still(
    store, out, truth
):
    chain = [fact.id for fact in truth[HOUSE]["histories"]["f7"]]
    assert chain[:2] == ["f0", "f7"]
    assert facts(truth, HOUSE)["f7"][1] == "superseded"
    spoil(store, "f7")
    salvage(store, out)
    told = facts(answers(out), HOUSE)
    assert "f7" not in told
    assert told["f0"][1] == facts(truth, HOUSE)["f0"][1]


def test_a_row_that_sqlite_no_longer_finds_is_found_in_its_page(store, out, truth):
    db = apsw.Connection(str(store / "gen-1.db"))
    root = db.execute("SELECT rootpage FROM sqlite_schema WHERE name = 'rec'").get
    db.close()
    with (store / "gen-1.db").open("r+b") as file:
        file.seek((root - 1) * PAGE)
        file.write(bytes(PAGE))
    with pytest.raises(Corrupt):
        answers(store)
    saved = salvage(store, out)
    assert saved.lost == ()
    assert {name: facts(told, name) for told in [answers(out)] for name in NAMES} == {
        name: facts(truth, name) for name in NAMES
    }


def test_pages_of_which_nothing_is_left_cost_only_what_they_held(store, out, truth):
    pages = (store / "gen-1.db").stat().st_size // PAGE
    with (store / "gen-1.db").open("r+b") as file:
        for page in range(pages // 2, pages // 2 + 3):
            file.seek(page * PAGE)
            file.write(Random(page).randbytes(PAGE))
    saved = salvage(store, out)
    assert saved.lost
    told = answers(out)
    for name in NAMES:
        assert set(told[name]["facts"]) <= set(truth[name]["facts"])
    assert len(told[HOUSE]["facts"]) + len(told[WORK]["facts"]) > 60


def test_a_damaged_first_page_costs_nothing(store, out, truth):
    with (store / "gen-1.db").open("r+b") as file:
        file.write(bytes(PAGE))
    assert salvage(store, out).lost == ()
    assert facts(answers(out), HOUSE) == facts(truth, HOUSE)


def test_acknowledged_records_behind_a_damaged_frame_of_the_write_ahead_log_are_saved(store, out, truth):
    path = store / "gen-1.db-wal"
    data = bytearray(path.read_bytes())
    data[0] ^= 1  # SQLite takes the whole of it for nothing
    path.write_bytes(data)
    with pytest.raises(Corrupt, match="acknowledged"):
        answers(store)
    assert salvage(store, out).lost == ()
    assert facts(answers(out), WORK) == facts(truth, WORK)


def test_acknowledged_records_of_which_nothing_is_left_are_told(store, out, truth):
    (store / "gen-1.db-wal").unlink()
    saved = salvage(store, out)
    assert "acknowledged" in saved.lost[0].message
    lost = set(truth[WORK]["facts"]) - set(answers(out)[WORK]["facts"])
    assert lost == {"l0", "l1", "l2", "l3", "l4"}


# What was forgotten


def test_a_forgotten_fact_whose_zeroing_was_lost_stays_away(tmp_path, out):
    directory = tmp_path / "store"
    with Store.open(directory) as store:
        memory = store.memory()
        memory.remember("The secret is out", id="secret")
        memory.remember("The kettle is blue", id="kettle")
        [data] = store.log.get(1, [2], store.log.head(1))
        memory.forget(ids=["secret"])
    change(directory, "UPDATE rec SET data = ?, ck = ? WHERE seq = 2", data, checksum(1, 2, data))
    assert not verify(directory).ok
    salvage(directory, out)
    assert set(answers(out)[HOUSE]["facts"]) == {"kettle"}
    assert all(b"The secret" not in path.read_bytes() for path in out.iterdir())


def test_a_forget_that_only_the_damaged_write_ahead_log_tells_of_holds_and_is_noted(tmp_path, out):
    directory = tmp_path / "store"
    with Store.open(directory) as store:
        memory = store.memory()
        memory.remember("The secret is out", id="secret")
        memory.remember("The kettle is blue", id="kettle")
        memory.remember("The cup is white", id="cup")
        memory.forget(ids=["cup"])  # which brings all into the database
    log = SqliteLog.open(directory)
    head = log.head(1)
    log.append(1, head, Batch([encode(RemovalRecord((0,), 3, (2,), NOW))], erase=[2]))
    log.close()  # as if it had died before it cleaned the write-ahead log
    damaged = copy_of(directory, tmp_path / "damaged")
    path = damaged / "gen-1.db-wal"
    path.write_bytes(b"\0" + path.read_bytes()[1:])
    saved = salvage(damaged, out)
    assert set(answers(out)[HOUSE]["facts"]) == {"kettle"}
    assert any("forget it again" in note for note in saved.notes)


def test_nothing_forgotten_comes_back_whatever_page_is_lost(whole, tmp_path):
    directory, _ = whole
    for page in range(0, (directory / "gen-1.db").stat().st_size // PAGE, 11):
        damaged = copy_of(directory, tmp_path / "damaged")
        with (damaged / "gen-1.db").open("r+b") as file:
            file.seek(page * PAGE)
            file.write(bytes(PAGE))
        out = tmp_path / f"out-{page}"
        salvage(damaged, out)
        told = answers(out)
        assert not {id_ for space in told.values() for id_ in space["facts"]} & set(FORGOTTEN)


def test_a_space_that_was_erased_stays_away(store, out):
    with Store.open(store) as opened:
        opened.erase(principal="ada")
    salvage(store, out)
    assert list(answers(out)) == [HOUSE]


# Lost names, locks and secrets


@pytest.mark.parametrize("damage", ["missing", "zeros", "row"])
def test_without_store_lock_the_newest_generation_is_read_under_a_new_secret(store, out, truth, damage):
    if damage == "missing":
        (store / "store.lock").unlink()
    elif damage == "zeros":
        (store / "store.lock").write_bytes(bytes(8192))
    else:
        change(store, "UPDATE state SET secret = zeroblob(32)", file="store.lock")
    saved = salvage(store, out)
    assert saved.lost == ()
    assert any("store.lock is damaged or missing" in note for note in saved.notes)
    assert any("a new one" in note for note in saved.notes)
    assert facts(answers(out), WORK) == facts(truth, WORK)


def test_a_secret_that_its_verifier_proves_is_kept_though_the_row_is_damaged(store, out):
    change(store, "UPDATE state SET ck = zeroblob(16)", file="store.lock")
    saved = salvage(store, out)
    assert [("new one" in note) for note in saved.notes] == [False]


def test_the_unnamed_space_is_known_by_its_key(store, out, truth):
    change(store, "UPDATE rec SET ck = zeroblob(16) WHERE space = 1 AND seq = 1")
    saved = salvage(store, out)
    assert saved.lost[0].seq == 1
    assert facts(answers(out), HOUSE) == facts(truth, HOUSE)


def test_a_space_that_lost_its_name_gets_another_one(store, out, truth):
    change(store, "UPDATE rec SET ck = zeroblob(16) WHERE space = 2 AND seq = 1")
    saved = salvage(store, out)
    assert any("salvaged 2" in note for note in saved.notes)
    told = answers(out)
    assert facts(told, Namespace("salvaged 2")) == facts(truth, WORK)


def test_a_name_is_taken_from_the_kept_state_where_there_is_one(tmp_path, out):
    directory = tmp_path / "store"
    with Store.open(directory) as store:
        memory = store.memory("ada")
        memory.remember_many([{"text": f"fact {number}", "id": f"{number}"} for number in range(1100)])
    assert (directory / "cache-1.db").exists()
    change(directory, "UPDATE rec SET ck = zeroblob(16) WHERE space = 1 AND seq = 1")
    saved = salvage(directory, out)
    assert any("taken from its kept state" in note for note in saved.notes)
    assert list(answers(out)) == [Namespace("ada")]


def test_a_secret_from_outside_is_asked_for_and_stays_outside(tmp_path, out):
    directory, secret = tmp_path / "store", b"s" * 32
    with Store.open(directory, secret=secret) as store:
        store.memory().remember("The kettle is blue", id="kettle")
    with pytest.raises(WrongKey):
        salvage(directory, out)
    with pytest.raises(WrongKey):
        salvage(directory, out, secret=b"x" * 32)
    assert not out.exists()
    salvage(directory, out, secret=secret)
    with pytest.raises(WrongKey):
        Store.open(out)
    assert set(answers(out, secret=secret)[HOUSE]["facts"]) == {"kettle"}


@pytest.mark.parametrize("key", [KEY, "a passphrase"], ids=["bytes", "passphrase"])
def test_an_encrypted_store_is_saved_under_its_key(tmp_path, out, key):
    build(tmp_path / "store", key=key)
    truth = answers(tmp_path / "store", key=key)
    with pytest.raises(WrongKey):
        salvage(tmp_path / "store", out)
    assert not out.exists()
    saved = salvage(tmp_path / "store", out, key=key)
    assert saved.lost == ()
    with pytest.raises(WrongKey):
        Store.open(out)
    assert facts(answers(out, key=key), WORK) == facts(truth, WORK)


def test_a_key_that_is_a_function_is_asked_once(tmp_path, out):
    build(tmp_path / "store", key=KEY)
    asked = []

    def key():
        asked.append(True)
        return KEY

    salvage(tmp_path / "store", out, key=key)
    assert len(asked) == 1


# Arguments and failures


def test_while_somebody_writes_it_waits_and_then_is_busy(store, out, monkeypatch):
    monkeypatch.setattr("perdure.log.sqlite.salvaging.WAIT_S", 0.05)
    with Store.open(store) as opened, opened.log.writer(), pytest.raises(Busy):
        salvage(store, out)
    assert not out.exists()


def test_out_must_be_new_or_empty_and_outside_the_store(store, tmp_path):
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "file").write_text("mine")
    (tmp_path / "file").write_text("mine")
    for place in (tmp_path / "full", tmp_path / "file", store, store / "inside"):
        with pytest.raises(InvalidRequest) as caught:
            salvage(store, place)
        assert caught.value.field == "out"
    assert (tmp_path / "full" / "file").read_text() == "mine"
    (tmp_path / "empty").mkdir()
    assert salvage(store, tmp_path / "empty").lost == ()


def test_what_is_no_store_is_not_found(tmp_path, out):
    (tmp_path / "folder").mkdir()
    for place in (tmp_path / "absent", tmp_path / "folder"):
        with pytest.raises(NotFound):
            salvage(place, out)
    assert not out.exists()


def test_where_nothing_is_whole_nothing_is_made(store, out):
    (store / "gen-1.db").write_bytes(bytes(20 * PAGE))
    (store / "gen-1.db-wal").unlink()
    with pytest.raises(Corrupt, match="whole"):
        salvage(store, out)
    assert not out.exists()


def test_an_older_generation_serves_where_the_newest_holds_nothing(store, out, truth):
    (store / "store.lock").unlink()
    shutil.copy(store / "gen-1.db", store / "gen-2.db")
    (store / "gen-2.db").write_bytes(bytes(3 * PAGE))
    assert salvage(store, out).generation == 1
    assert facts(answers(out), HOUSE) == facts(truth, HOUSE)


# What store.lock no longer says


SEAL_DAMAGES = {
    "its checksum": "UPDATE cipher SET ck = zeroblob(16)",
    "its salt": "UPDATE cipher SET salt = x'00'",
    "its nonce": "UPDATE cipher SET nonce = zeroblob(32)",
    "its row": "DELETE FROM cipher",
    "its table": "DROP TABLE cipher",
    "its version": "PRAGMA user_version=1",
    "no version": "PRAGMA user_version=0",
    "the state": "UPDATE state SET ck = zeroblob(16)",
    "the verifier": "UPDATE state SET verifier = zeroblob(32)",
    "the state's row": "DELETE FROM state",
}


@pytest.mark.parametrize("damage", SEAL_DAMAGES.values(), ids=SEAL_DAMAGES)
def test_the_right_key_salvages_whatever_is_damaged_of_the_row_that_recognises_it(tmp_path, out, damage):
    build(tmp_path / "store", key=KEY)
    truth = answers(tmp_path / "store", key=KEY)
    change_lock(tmp_path / "store", damage)
    for wrong in (b"w" * 32, None):
        with pytest.raises((WrongKey, Corrupt)):
            salvage(tmp_path / "store", out, key=wrong)
        assert not out.exists()
    saved = salvage(tmp_path / "store", out, key=KEY)
    assert saved.lost == ()
    assert verify(out, key=KEY).ok
    told = answers(out, key=KEY)
    assert [facts(told, name) for name in NAMES] == [facts(truth, name) for name in NAMES]


def test_a_secret_that_was_lost_with_its_seal_is_noted(tmp_path, out):
    build(tmp_path / "store", key=KEY)
    change_lock(tmp_path / "store", "UPDATE cipher SET ck = zeroblob(16)")
    saved = salvage(tmp_path / "store", out, key=KEY)
    assert ["secret could not be recovered" in note for note in saved.notes] == [True]
    with Store.open(tmp_path / "other") as other:
        secret = other.log.secret
    with pytest.raises(WrongKey, match="another secret"):
        salvage(tmp_path / "store", tmp_path / "again", key=KEY, secret=secret)


def test_a_passphrase_whose_salt_is_lost_is_told_so(tmp_path, out):
    with Store.open(tmp_path / "store", key="a long passphrase of words") as store:
        store.memory().remember("The kettle is blue")
    change_lock(tmp_path / "store", "UPDATE cipher SET ck = zeroblob(16)")
    with pytest.raises(Corrupt, match="derived from the passphrase"):
        salvage(tmp_path / "store", out, key="a long passphrase of words")


@pytest.mark.parametrize("name", ["gen-1.db", "store.lock"])
def test_a_newer_format_is_not_guessed_at(store, out, name):
    change_file(store / name, "PRAGMA user_version=7")
    with pytest.raises(Unavailable, match=f"{name} has format 7.*upgrade"):
        salvage(store, out)
    assert not out.exists()


def test_a_lost_mark_is_noted(store, out, truth):
    (store / "gen-1.hw").unlink()
    saved = salvage(store, out)
    assert ["gen-1.hw" in note for note in saved.notes] == [True]
    assert facts(answers(out), WORK) == facts(truth, WORK)


@pytest.mark.parametrize("path", [5, "a\0b", "\udcff", ""])
def test_what_is_no_path_is_refused_in_either_place(store, out, path):
    for source, target, named in ((path, out, "path"), (store, path, "out")):
        with pytest.raises(InvalidRequest) as caught:
            salvage(source, target)
        assert caught.value.field == named


def test_nothing_is_saved_into_another_store(store, tmp_path):
    Store.open(tmp_path / "other").close()
    with pytest.raises(InvalidRequest, match="within another store"):
        salvage(store, tmp_path / "other" / "out")


def change_lock(store, sql):
    change_file(store / "store.lock", sql)


def change_file(path, sql):
    db = apsw.Connection(str(path))
    db.execute(sql)
    db.close()
