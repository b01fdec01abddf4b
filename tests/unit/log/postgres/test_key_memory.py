"""Data keys that were destroyed leave the memory of every server: of the one that erased at once, of others when they look."""

from __future__ import annotations

import threading
from uuid import UUID

import pytest

from perdure.errors import Corrupt, Moved, Unavailable
from perdure.keystore import FileKeystore
from perdure.log.postgres import PostgresLog
from perdure.log.postgres.sealing import Sealer
from perdure.log.protocol import Batch, Rewritten
from postgres_server import fresh_address, identity_of

ADA = UUID(int=1)


@pytest.fixture
def keystore(tmp_path):
    keystore = FileKeystore(tmp_path / "keys")
    keystore.put_secret(ADA, bytes(32))
    return keystore


@pytest.fixture
def sealed(keystore):
    """What one server sealed, and its data key."""
    sealer = Sealer(ADA, keystore)
    [key] = sealer.new_keys(0, 1)
    return sealer, key, sealer.seal(key, 1, 0, 1, b"words")


def test_the_server_that_erases_lets_go_of_the_key_at_once(keystore, sealed):
    sealer, key, data = sealed
    sealer.forget([key])
    assert sealer.open(key, 1, 0, 1, data) == b"words", "it is still in the keystore"
    sealer.forget([key])
    keystore.destroy(ADA, [key])
    with pytest.raises(Moved):
        sealer.open(key, 1, 0, 1, data)


@pytest.mark.parametrize("moved", [(1, 0, 1), (1, 1, 0)], ids=["an erasure", "a purge"])
def test_another_server_lets_go_of_its_keys_when_it_sees(keystore, sealed, moved):
    _, key, data = sealed
    other = Sealer(ADA, keystore)
    other.note(1, 0, 0)
    assert other.open(key, 1, 0, 1, data) == b"words"
    keystore.destroy(ADA, [key])
    other.note(1, 0, 0)
    other.note(2, 0, 5)  # a space that it sees for the first time
    assert other.open(key, 1, 0, 1, data) == b"words", "it has not looked yet"
    other.note(*moved)
    with pytest.raises(Moved):
        other.open(key, 1, 0, 1, data)


def test_a_purge_lets_go_of_keys_that_were_made_ahead(keystore, sealed):
    sealer, key, _ = sealed
    [fresh] = sealer.new_keys(0, 1)
    sealer.forget_below(fresh + 100)
    keystore.destroy_below(ADA, fresh + 100)
    [later] = sealer.new_keys(0, 1)
    assert later > fresh > key
    assert keystore.find_keys(ADA, [later]).keys() == {later}


def test_numbers_that_a_keystore_gives_out_again_are_refused(keystore, sealed, tmp_path):
    file = tmp_path / "keys" / f"{ADA}.keys"
    older = file.read_bytes()
    sealer = Sealer(ADA, keystore)
    sealer.new_keys(0, 200)
    file.write_bytes(older)
    with pytest.raises(Corrupt, match=r"older copy .* Put the newer copy back"):
        sealer.new_keys(1, 200)


def test_a_purge_after_one_that_failed_destroys_what_others_sealed_in_between(keystore):
    address = fresh_address()
    one, other = (PostgresLog.open(address, tenant="acme", keystore=keystore) for _ in range(2))
    tenant = identity_of(address, "acme")

    def fail(space, read):
        raise Unavailable("the rewriting failed")

    def keep(space, read):
        return (Rewritten(entry.data) for entry in read() if entry.data is not None)

    one.create_space(b"n" * 16, b"first")
    with pytest.raises(Unavailable):
        one.purge(fail)
    other.create_space(b"o" * 16, b"under a key that was made after those of the purge that failed")
    before = keystore.find_keys(tenant, range(1, keystore.newest(tenant) + 1))
    assert not one.purge(keep).pending
    assert keystore.find_keys(tenant, list(before)) == {}
    assert sorted(entry.data[:5] for space in (1, 2) for entry in other.read(space, 0, 9)) == [
        b"first",
        b"under",
    ]
    one.close()
    other.close()


class Waiting:
    """A keystore that answers only once it is let."""

    def __init__(self, keystore):
        self._keystore, self.asked, self.go_on = keystore, threading.Event(), threading.Event()

    def new_keys(self, tenant, count):
        made = self._keystore.new_keys(tenant, count)
        self._wait()
        return made

    def find_keys(self, tenant, numbers):
        found = self._keystore.find_keys(tenant, numbers)
        self._wait()
        return found

    def _wait(self):
        self.asked.set()
        assert self.go_on.wait(10)


def test_what_is_at_hand_is_opened_while_another_thread_waits_for_the_keystore(keystore, sealed):
    _, key, data = sealed
    [lacking] = keystore.new_keys(ADA, 1)
    waiting = Waiting(keystore)
    sealer = Sealer(ADA, waiting)
    waiting.go_on.set()
    sealer.learn([key])
    for work in (lambda: sealer.learn([lacking[0]]), lambda: sealer.new_keys(0, 1)):
        waiting.go_on.clear()
        waiting.asked.clear()
        asking = threading.Thread(target=work)
        asking.start()
        assert waiting.asked.wait(10)
        opening: list[bytes] = []
        other = threading.Thread(
            target=lambda opening=opening: opening.append(sealer.open(key, 1, 0, 1, data))
        )
        sealer.note(1, 0, 0)
        other.start()
        other.join(5)
        waiting.go_on.set()
        asking.join(10)
        assert opening == [b"words"]


def test_threads_that_ask_for_fresh_keys_at_once_are_never_given_the_same(keystore):
    sealer, given = Sealer(ADA, keystore), list[list[int]]()

    def take():
        for count in (1, 3, 40, 1, 2):
            given.append(sealer.new_keys(0, count))

    threads = [threading.Thread(target=take) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    numbers = [number for some in given for number in some]
    assert len(numbers) == len(set(numbers)) == 4 * 47
    assert all(some == sorted(some) for some in given)


def test_keys_that_are_on_their_way_as_a_purge_begins_are_not_given_to_it(keystore):
    waiting = Waiting(keystore)
    sealer, before = Sealer(ADA, waiting), list[int]()
    asking = threading.Thread(target=lambda: before.extend(sealer.new_keys(0, 1)))
    asking.start()
    assert waiting.asked.wait(10)
    sealer.drop_ahead()
    waiting.go_on.set()
    asking.join(10)
    highest = keystore.newest(ADA)
    [fresh] = sealer.new_keys(0, 1)
    assert fresh > highest >= before[0]


def test_a_key_that_is_let_go_of_while_it_is_looked_for_does_not_stay(keystore, sealed):
    _, key, data = sealed
    waiting = Waiting(keystore)
    sealer = Sealer(ADA, waiting)
    asking = threading.Thread(target=lambda: sealer.learn([key]))
    asking.start()
    assert waiting.asked.wait(10)
    sealer.forget([key])
    keystore.destroy(ADA, [key])
    waiting.go_on.set()
    asking.join(10)
    with pytest.raises(Moved):
        sealer.open(key, 1, 0, 1, data)


def test_an_append_to_a_bucket_whose_key_is_gone_says_that_the_keystore_is_older(keystore):
    address = fresh_address()
    log = PostgresLog.open(address, tenant="acme", keystore=keystore)
    tenant = identity_of(address, "acme")
    space = log.create_space(b"n" * 16, b"first")
    head = log.head(space)
    log.close()
    keystore.destroy(tenant, [1])
    log = PostgresLog.open(address, tenant="acme", keystore=keystore)
    with pytest.raises(Corrupt, match="lacks data key 1"):
        log.append(space, head, Batch([b"second"]))
    log.close()
