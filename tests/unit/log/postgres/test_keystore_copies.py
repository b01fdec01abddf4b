"""A keystore that is not the one it was: older copies of it, another directory, one that may only be read or is full."""

from __future__ import annotations

import errno
import os
import shutil

import pytest

from perdure import Corrupt, NotFound, StorageFull, Store, Unavailable, WrongKey, verify
from perdure import copy as copy_store
from perdure.base import disk
from perdure.databases import delete_tenant
from perdure.log.postgres import key_file
from postgres_server import ROLE, fresh_address, fresh_database, identity_of, shared_server


@pytest.fixture
def keys(tmp_path):
    return tmp_path / "keys"


@pytest.fixture
def open_store(keys):
    address, opened = fresh_address(), []

    def open_store(keystore=keys):
        opened.append(Store.open(address, tenant="acme", keystore=keystore, audit="off"))
        return opened[-1]

    yield open_store
    for store in opened:
        store.close()


def filled(store, count=3):
    memory = store.memory("ann")
    memory.remember_many([f"the words of {number}" for number in range(count)])
    return memory


def key_file_of(keys):
    [found] = keys.glob("*.keys")
    return found


def put_back(keys, content):
    """Put an older copy in place as a restore does, so that what is open already sees it too."""
    key_file_of(keys).write_bytes(content)


def test_two_servers_with_different_directories_are_told_apart(open_store, tmp_path):
    filled(open_store())
    (tmp_path / "others").mkdir(mode=0o700)
    with pytest.raises(WrongKey, match="holds nothing of this tenant") as told:
        open_store(tmp_path / "others")
    assert f"the keystore in {tmp_path / 'others'} " in told.value.message
    shutil.rmtree(tmp_path / "others")
    assert len(open_store().memory("ann").list().items) == 3


def test_an_audit_that_was_made_with_a_copy_of_the_keystore_says_which_file_to_bring(keys, tmp_path):
    address, copy = fresh_address(), tmp_path / "copy"
    with Store.open(address, tenant="acme", keystore=keys) as store:
        store.memory().remember("tea")
    shutil.copytree(keys, copy)
    with Store.open(address, tenant="acme", keystore=copy) as store:
        assert len(store.events().items) == 1  # which makes the audit
    own = identity_of(address, "acme", "audit")
    [file] = {path.name for path in copy.glob("*.keys")} - {path.name for path in keys.glob("*.keys")}
    assert file == f"{own}.keys"
    with (
        Store.open(address, tenant="acme", keystore=keys) as store,
        pytest.raises(WrongKey, match=f"this tenant's audit.*bring the file {file} from that copy"),
    ):
        store.purge()
    shutil.copy2(copy / file, keys / file)
    with Store.open(address, tenant="acme", keystore=keys) as store:
        store.purge()
        assert store.verify().ok
    assert not delete_tenant(address, "acme", keystore=keys).pending


def test_a_tenant_is_deleted_whose_audit_only_a_copy_of_the_keystore_opens(keys, tmp_path, caplog):
    address, copy = fresh_address(), tmp_path / "copy"
    with Store.open(address, tenant="acme", keystore=keys) as store:
        store.memory().remember("tea")
    shutil.copytree(keys, copy)
    with Store.open(address, tenant="acme", keystore=copy) as store:
        store.note_event("imported", {})
    own = identity_of(address, "acme", "audit")
    (tmp_path / "wrong").mkdir(mode=0o700)
    for wrong in (tmp_path / "wrong", tmp_path / "of the audit alone"):
        if not wrong.exists():
            wrong.mkdir(mode=0o700)
            shutil.copy2(copy / f"{own}.keys", wrong)
        with pytest.raises(WrongKey, match="nothing was deleted"):
            delete_tenant(address, "acme", keystore=wrong)
    gone = delete_tenant(address, "acme", keystore=keys)
    assert (gone.spaces, gone.pending) == (1, True), "keys of its audit are in the copy still"
    assert f"with which its audit was made: destroy the file {own}.keys there" in caplog.text
    assert list(keys.glob("*.keys")) == []
    with pytest.raises(NotFound):
        delete_tenant(address, "acme", keystore=keys)
    with Store.open(address, tenant="acme", keystore=keys) as anew:
        assert [event.type for event in anew.events().items] == []


@pytest.mark.parametrize("is_begun", [False, True], ids=["none yet", "one that is behind"])
def test_nothing_that_only_looks_makes_keys_of_an_audit(keys, tmp_path, is_begun):
    address, copy = fresh_address(), tmp_path / "copy"
    with Store.open(address, tenant="acme", keystore=keys) as store:
        memory = store.memory()
        memory.remember("tea")
        head = store.events_head() if is_begun else None
        memory.remember("milk")
    shutil.copytree(keys, copy)
    kept = {path.name: path.read_bytes() for path in copy.glob("*.keys")}
    with Store.open(address, tenant="acme", keystore=copy) as store:
        assert store.verify().ok
        assert store.verify_events(head) == ()
        assert store.health().writable
        copy_store(store, tmp_path / "files")
        assert len(list(store.memory().list().items)) == 2
    assert {path.name: path.read_bytes() for path in copy.glob("*.keys")} == kept
    assert verify(address, tenant="acme", keystore=copy).ok
    with Store.open(address, tenant="acme", keystore=keys) as store:
        assert [event.type for event in store.events().items] == ["created", "created"]
        store.purge()
        assert store.verify().ok
        assert store.verify_events(head) == ()
    assert not delete_tenant(address, "acme", keystore=keys).pending


def test_a_directory_that_is_gone_confirms_nothing_and_is_told(open_store, keys, tmp_path):
    store = open_store()
    memory = filled(store)
    gone = memory.list().items[0].id
    keys.rename(tmp_path / "unmounted")
    told = memory.forget(ids=[gone])
    assert (told.forgotten, told.pending) == ((gone,), True)
    assert store.health().erasure_pending
    (tmp_path / "unmounted").rename(keys)
    assert store.check_certificate(told.certificate) == ()
    assert not store.health().erasure_pending


def test_a_keystore_that_is_older_than_what_is_stored_is_refused_at_opening(open_store, keys):
    store = open_store()
    filled(store)
    older = key_file_of(keys).read_bytes()[: key_file.HEADER_BYTES]
    newer = key_file_of(keys).read_bytes()
    store.close()
    put_back(keys, older)
    with pytest.raises(Corrupt, match=r"older copy .* Put the newer copy back"):
        open_store()
    put_back(keys, newer)
    assert len(open_store().memory("ann").list().items) == 3


def test_a_record_whose_key_is_gone_is_told_and_not_waited_for(open_store, keys):
    store = open_store()
    filled(store, 600)  # three data keys, of which the newest stays
    store.close()
    with key_file_of(keys).open("r+b") as file:
        file.seek(key_file.place(1))
        file.write(bytes(key_file.SLOT_BYTES))
    reopened = open_store()
    memory = reopened.memory("ann")
    with pytest.raises(Corrupt, match="lacks data key 1, which records of space 1"):
        memory.list()
    assert any("lacks data key 1" in finding.message for finding in reopened.log.verify())


def test_keys_that_come_back_with_an_older_copy_are_destroyed_again(open_store, keys, caplog):
    store = open_store()
    memory = filled(store)
    older = key_file_of(keys).read_bytes()
    [first, *_] = memory.list().items
    store.purge()
    memory.remember("told after the purge")
    newer = key_file_of(keys).read_bytes()
    store.close()
    put_back(keys, older + newer[len(older) :])
    again = open_store()
    assert again.health().erasure_pending
    assert "destroyed anew" in caplog.text
    assert not again.memory("ann").forget(ids=[first.id]).pending
    assert not again.health().erasure_pending
    kept = key_file_of(keys).read_bytes()
    size, slots = key_file.SLOT_BYTES, len(older) - key_file.HEADER_BYTES
    places = range(key_file.HEADER_BYTES, key_file.HEADER_BYTES + slots, size)
    back = [
        place for place in places if any(older[place : place + size]) and older[place : place + size] in kept
    ]
    assert back == []


def test_a_keystore_that_may_only_be_read_serves_reads(open_store, keys, monkeypatch):
    store = open_store()
    filled(store)
    store.close()
    opens = os.open

    def read_only(path, flags, *mode):
        if str(path).endswith(".keys") and flags & (os.O_RDWR | os.O_WRONLY):
            raise OSError(errno.EROFS, os.strerror(errno.EROFS))
        return opens(path, flags, *mode)

    monkeypatch.setattr(os, "open", read_only)
    reopened = open_store()
    memory = reopened.memory("ann")
    [first, *others] = memory.list().items
    with pytest.raises(Unavailable, match="who may write there"):
        reopened.memory("new").remember("words")
    with pytest.raises(Unavailable, match="who may write there"):
        memory.forget(ids=[first.id])  # what is left would need a fresh key
    assert memory.list().items == (first, *others)


@pytest.mark.skipif(not disk.FULL, reason="this platform has no name for a full disk")
def test_a_keystore_on_a_full_disk_makes_no_key_and_loses_none(open_store, keys, monkeypatch):
    store = open_store()
    filled(store)
    store.close()
    before = key_file_of(keys).read_bytes()
    full = open_store()
    writes = os.write

    def write(file, told):
        if os.fstat(file).st_size >= len(before):
            writes(file, told[: len(told) // 2])
            raise OSError(next(iter(disk.FULL)), "no room")
        return writes(file, told)

    monkeypatch.setattr(os, "write", write)
    with pytest.raises(StorageFull, match="keystore's disk is full"):
        full.memory("new").remember("words")
    monkeypatch.undo()
    assert key_file_of(keys).read_bytes() == before
    assert full.memory("new").remember("words").outcome == "created"
    assert len(full.memory("ann").list().items) == 3


def test_a_store_says_that_its_data_keys_are_changed_by_a_purge(open_store, keys):
    store = open_store()
    filled(store)
    before = key_file_of(keys).read_bytes()
    with pytest.raises(ValueError, match="purge writes everything anew under fresh ones"):
        store.rekey(b"k" * 32)
    store.purge()
    slot = before[key_file.place(1) : key_file.place(2)]
    assert any(slot)
    assert slot not in key_file_of(keys).read_bytes()
    assert len(store.memory("ann").list().items) == 3


def test_a_copy_of_the_database_from_before_a_forget_cannot_be_opened_where_it_was(tmp_path):
    server, name = shared_server(), fresh_database()
    with Store.open(
        server.address(name, ROLE), tenant="acme", keystore=tmp_path / "keys", audit="off"
    ) as store:
        store.memory("ben").remember("another memory")
        store.memory("ann").remember("the words of a", id="a")
        store.memory("ann").remember("what was beside it", id="beside")
    copy = server.new_database(name)
    with Store.open(
        server.address(name, ROLE), tenant="acme", keystore=tmp_path / "keys", audit="off"
    ) as store:
        assert not store.memory("ann").forget(ids=["a"]).pending
    with Store.open(
        server.address(copy, ROLE), tenant="acme", keystore=tmp_path / "keys", audit="off"
    ) as store:
        ann = store.memory("ann")
        with pytest.raises(Corrupt, match="put in its place"):
            ann.list()
        assert [fact.text for fact in store.memory("ben").list().items] == ["another memory"]


def words_of(store):
    return sorted(fact.text for fact in store.memory("ann").list().items)


@pytest.mark.parametrize("erases", ["forgets", "purges"])
def test_a_copy_of_both_that_was_made_while_keys_were_held_is_whole_whatever_was_erased_meanwhile(
    tmp_path, erases
):
    server, name, keys, copied = shared_server(), fresh_database(), tmp_path / "keys", tmp_path / "copied"
    with Store.open(server.address(name, ROLE), tenant="acme", keystore=keys, audit="off") as store:
        memory = store.memory("ann")
        memory.remember_many([{"text": f"the words of {number}", "id": f"{number}"} for number in range(3)])
        before = words_of(store)
    (keys / "keystore.hold").touch()
    copy = server.new_database(name)  # of the moment
    with Store.open(server.address(name, ROLE), tenant="acme", keystore=keys, audit="off") as store:
        gone = store.memory("ann").forget(ids=["1"])
        if erases == "purges":
            assert store.purge().certificate.pending
        assert gone.certificate.pending
        assert store.health().erasure_pending
        shutil.copytree(keys, copied, ignore=shutil.ignore_patterns("keystore.hold"))
        (keys / "keystore.hold").unlink()
        store.memory("ann").forget(ids=["2"])
        assert not store.health().erasure_pending
        assert store.check_certificate(gone.certificate) == ()
    with Store.open(server.address(copy, ROLE), tenant="acme", keystore=copied, audit="off") as store:
        assert words_of(store) == before
        assert not store.memory("ann").forget(ids=["1"]).pending


def test_a_tenant_that_is_deleted_while_keys_are_held_is_pending_until_it_is_deleted_once_more(tmp_path):
    address, keys = fresh_address(), tmp_path / "keys"
    with Store.open(address, tenant="acme", keystore=keys) as store:
        filled(store)
    (keys / "keystore.hold").touch()
    assert delete_tenant(address, "acme", keystore=keys).pending
    with pytest.raises(Unavailable, match="being deleted"):
        Store.open(address, tenant="acme", keystore=keys)
    assert delete_tenant(address, "acme", keystore=keys).pending
    (keys / "keystore.hold").unlink()
    assert not delete_tenant(address, "acme", keystore=keys).pending
    assert not list(keys.glob("*.keys"))
    with Store.open(address, tenant="acme", keystore=keys) as store:
        assert store.stats().facts == 0


def test_a_whole_older_copy_brings_back_keys_of_a_deleted_tenant_that_open_nothing_of_the_database(tmp_path):
    address, keys, older = fresh_address(), tmp_path / "keys", tmp_path / "older"
    with Store.open(address, tenant="acme", keystore=keys, audit="off") as store:
        filled(store)
    of_before = key_file_of(keys).name
    shutil.copytree(keys, older)
    assert not delete_tenant(address, "acme", keystore=keys).pending
    assert not list(keys.glob("*.keys"))
    shutil.rmtree(keys)
    older.rename(keys)
    with Store.open(address, tenant="acme", keystore=keys, audit="off") as store:
        assert store.stats().facts == 0
        filled(store, 1)
        assert not store.purge().pending
    assert not delete_tenant(address, "acme", keystore=keys).pending
    assert [path.name for path in keys.glob("*.keys")] == [of_before], "which nobody has a name for any more"


def test_an_older_file_that_is_put_back_beside_what_tells_that_its_tenant_was_deleted_opens_no_older_copy(
    tmp_path,
):
    server, name, keys = shared_server(), fresh_database(), tmp_path / "keys"
    with Store.open(server.address(name, ROLE), tenant="acme", keystore=keys, audit="off") as store:
        filled(store)
    copy, older = server.new_database(name), key_file_of(keys)
    content = older.read_bytes()
    assert not delete_tenant(server.address(name, ROLE), "acme", keystore=keys).pending
    older.write_bytes(content)
    older.chmod(0o600)
    with pytest.raises(WrongKey, match="holds nothing of this tenant"):
        Store.open(server.address(copy, ROLE), tenant="acme", keystore=keys, audit="off")
