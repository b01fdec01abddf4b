"""Deleting a tenant: who may bring it to its end, what is locked meanwhile, and what is left when a keystore is away."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from itertools import count as counted

import psycopg
import pytest

from perdure.errors import Unavailable, WrongKey
from perdure.log.postgres import FileKeystore, PostgresLog
from perdure.log.postgres.connections import Database, acquire, release
from perdure.log.postgres.dropping import drop
from perdure.log.protocol import Batch
from postgres_proxy import Proxy
from postgres_server import ROLE, fresh_database, identity_of, shared_server

SECRET = bytes(range(32))
PARTS = ("audit",)
TIMEOUT_S = 30.0  # as of a log that is told none


class Down(FileKeystore):
    """A keystore that is away when a tenant is to be dropped."""

    def drop_tenant(self, tenant):
        raise Unavailable("the keystore is away")


class Late(FileKeystore):
    """A keystore that takes the order, and does not confirm."""

    def drop_tenant(self, tenant):
        super().drop_tenant(tenant)
        return False


class CutAfter(FileKeystore):
    """Calls something once it was told to drop a tenant."""

    def __init__(self, directory, then):
        super().__init__(directory)
        self.then = then

    def drop_tenant(self, tenant):
        dropped = super().drop_tenant(tenant)
        self.then()
        return dropped


@pytest.fixture
def name():
    return fresh_database()


@pytest.fixture
def address(name):
    """The address of a database; the connections of the logs that are opened there stay."""
    address = shared_server().address(name, ROLE)
    shared = acquire(address, TIMEOUT_S)
    yield address
    release(shared)


def make(address, keystore, text=b"kept"):
    """Make the tenant ada, with a record and another log beside it."""
    log = PostgresLog.open(address, tenant="ada", keystore=keystore)
    beside = log.beside("audit").open(SECRET)
    for one in (log, beside):
        space = one.create_space(b"n" * 16, b"first")
        one.append(space, one.head(space), Batch([text]))
    beside.close()
    log.close()


@pytest.fixture
def place(address, tmp_path):
    """The directory of the keys of the tenant ada."""
    make(address, FileKeystore(tmp_path / "keys"))
    return tmp_path / "keys"


@pytest.fixture
def database(address, place):
    opened = Database(address, timeout_s=5)
    opened.open()
    yield opened
    opened.close()


def count(name, table):
    return counts(name, table)[table]


def counts(name, *tables):
    """Return how many rows these tables hold."""
    with psycopg.connect(shared_server().address(name)) as connection:
        return {
            table: connection.execute(f"SELECT count(*) FROM perdure.{table}").fetchone()[0]
            for table in tables
        }


def check_gone(name, place):
    """Nothing is left of it but what the keystore remembers, and the name is free."""
    assert counts(name, "naming", "tenant", "space", "record", "key_note") == {
        "naming": 0, "tenant": 0, "space": 0, "record": 0, "key_note": 0,
    }  # fmt: skip
    assert list(place.glob("*.keys")) == []
    address = shared_server().address(name, ROLE)
    make(address, FileKeystore(place), b"anew")
    log = PostgresLog.open(address, tenant="ada", keystore=FileKeystore(place))
    assert [entry.data for entry in log.read(1, 1, 9)] == [b"anew"]
    log.close()


def test_a_wrong_keystore_does_not_bring_a_deletion_to_its_end(database, address, name, place, tmp_path):
    own = identity_of(address, "ada")
    assert drop(database, Down(place), "ada", PARTS).pending
    assert (count(name, "record"), count(name, "tenant"), count(name, "naming")) == (0, 2, 2)
    wrong = FileKeystore(tmp_path / "wrong")
    for _ in range(2):
        with pytest.raises(WrongKey):
            drop(database, wrong, "ada", PARTS)
        wrong.put_secret(own, bytes(32))
    with pytest.raises(WrongKey):
        drop(database, None, "ada", PARTS)
    assert len(list(place.glob("*.keys"))) == 2
    assert not drop(database, FileKeystore(place), "ada", PARTS).pending
    check_gone(name, place)


def test_a_keystore_whose_disk_is_not_mounted_confirms_nothing(database, name, place, tmp_path):
    keystore = FileKeystore(place)
    keystore.find_secret(identity_of(database.address, "ada"))
    place.rename(tmp_path / "disk")
    place.mkdir(mode=0o700)
    for unmounted, error in ((keystore, Unavailable), (FileKeystore(place), WrongKey)):
        with pytest.raises(error, match="mounted"):
            drop(database, unmounted, "ada", PARTS)
    assert (count(name, "record"), list(place.iterdir())) == (4, [])
    place.rmdir()
    (tmp_path / "disk").rename(place)
    assert not drop(database, keystore, "ada", PARTS).pending
    check_gone(name, place)


def test_a_keystore_that_took_the_order_is_asked_again_though_it_knows_the_secret_no_more(
    database, address, name, place, tmp_path
):
    own = identity_of(address, "ada")
    assert drop(database, Late(place), "ada", PARTS).pending
    assert FileKeystore(place).find_secret(own) is None
    assert drop(database, Late(place), "ada", PARTS).pending
    with pytest.raises(WrongKey):
        drop(database, FileKeystore(tmp_path / "wrong"), "ada", PARTS)
    assert count(name, "tenant") == 2
    assert not drop(database, FileKeystore(place), "ada", PARTS).pending
    check_gone(name, place)


def test_a_tenant_of_a_restored_database_goes_too_though_its_keys_are_destroyed(
    database, address, name, place
):
    """As from a backup of the database that is older than the deletion, with the keystore of today."""
    keystore = FileKeystore(place)
    for part in ("", "audit"):
        keystore.drop_tenant(identity_of(address, "ada", part))
    with pytest.raises(WrongKey):
        PostgresLog.open(address, tenant="ada", keystore=keystore)
    assert not drop(database, keystore, "ada", PARTS).pending
    check_gone(name, place)


def test_a_keystore_that_lost_a_file_does_not_delete_what_it_cannot_confirm(database, address, name, place):
    (place / f"{identity_of(address, 'ada')}.keys").rename(place / "aside")
    with pytest.raises(WrongKey):
        drop(database, FileKeystore(place), "ada", PARTS)
    assert count(name, "record") == 4
    (place / "aside").rename(place / f"{identity_of(address, 'ada')}.keys")
    assert not drop(database, FileKeystore(place), "ada", PARTS).pending


def test_what_was_deleted_before_keystores_had_to_remember_is_brought_to_its_end(
    database, address, name, place
):
    assert drop(database, Down(place), "ada", PARTS).pending
    # As an earlier build left it that died, or was told no more, once one of two keystore's files was gone.
    (place / f"{identity_of(address, 'ada')}.keys").unlink()
    assert not drop(database, FileKeystore(place), "ada", PARTS).pending
    check_gone(name, place)


def test_a_buried_tenant_and_the_one_beside_it_open_for_nobody(database, address, place):
    log = PostgresLog.open(address, tenant="ada", keystore=FileKeystore(place))
    beside = log.beside("audit").open(SECRET)
    drop(database, Down(place), "ada", PARTS)
    for one in (log, beside):
        with pytest.raises(Unavailable, match="was deleted"):
            one.create_space(b"m" * 16, b"second")
    with pytest.raises(Unavailable, match="was deleted"):
        log.beside("audit").open(SECRET)
    with pytest.raises(Unavailable, match="was deleted"):
        log.beside("else").open(SECRET)
    with pytest.raises(Unavailable, match="being deleted"):
        PostgresLog.open(address, tenant="ada", keystore=FileKeystore(place))
    beside.close()
    log.close()
    assert not drop(database, FileKeystore(place), "ada", PARTS).pending


@pytest.mark.parametrize("part", ["", "audit"], ids=["its own", "the one beside it"])
def test_whoever_writes_to_any_log_of_the_tenant_is_waited_for(database, address, name, place, part):
    locked = identity_of(address, "ada", part)
    with ThreadPoolExecutor(1) as pool, psycopg.connect(address) as writer:
        writer.execute("SELECT set_config('app.tenant', %s, false)", (str(locked),))
        writer.execute("SELECT 1 FROM perdure.tenant WHERE tenant = %s FOR KEY SHARE", (locked,))
        dropping = pool.submit(drop, database, FileKeystore(place), "ada", PARTS)
        with pytest.raises(TimeoutError):
            dropping.result(timeout=0.5)
        assert writer.execute("SELECT count(*) FROM perdure.record").fetchall() == [(2,)]
        assert len(list(place.glob("*.keys"))) == 2
        writer.rollback()
        assert not dropping.result(timeout=20).pending
    check_gone(name, place)


def test_what_is_made_beside_a_tenant_while_that_is_deleted_does_not_stay_behind(address, name, tmp_path):
    place = tmp_path / "keys"
    PostgresLog.open(address, tenant="ada", keystore=FileKeystore(place)).close()
    log = PostgresLog.open(address, tenant="ada", keystore=FileKeystore(place))
    other = Database(address, timeout_s=5)
    other.open()
    own = identity_of(address, "ada")
    with ThreadPoolExecutor(2) as pool, psycopg.connect(address) as reader:
        # Holds up both, so that the deletion is on its way when the maker comes.
        reader.execute("SELECT set_config('app.tenant', %s, false)", (str(own),))
        reader.execute("SELECT 1 FROM perdure.tenant WHERE tenant = %s FOR UPDATE", (own,))
        dropping = pool.submit(drop, other, FileKeystore(place), "ada", PARTS)
        with pytest.raises(TimeoutError):
            dropping.result(timeout=0.3)
        making = pool.submit(log.beside("audit").open, SECRET)
        with pytest.raises(TimeoutError):
            making.result(timeout=0.3)
        reader.rollback()
        assert not dropping.result(timeout=20).pending
        try:
            making.result(timeout=20).close()
        except Unavailable as error:
            if error.details["kind"] != "gone":
                raise
    log.close()
    other.close()
    check_gone(name, place)


# Deletions that die


class Died(BaseException):
    """What a process does not survive."""


class Dying(FileKeystore):
    """A keystore whose process dies before or after its n-th call."""

    def __init__(self, directory, step, *, after):
        super().__init__(directory)
        self.left, self.after = counted(1), after
        self.step = step

    def _call(self, work):
        number = next(self.left)
        if number == self.step and not self.after:
            raise Died
        told = work()
        if number == self.step:
            raise Died
        return told

    def find_secret(self, tenant):
        return self._call(lambda: FileKeystore.find_secret(self, tenant))

    def drop_tenant(self, tenant):
        return self._call(lambda: FileKeystore.drop_tenant(self, tenant))


@pytest.mark.parametrize("after", [False, True], ids=["before it", "after it"])
@pytest.mark.parametrize("step", [1, 2, 3, 4])
def test_a_deletion_that_died_at_a_call_of_the_keystore_is_ended_by_the_next(
    database, name, place, tmp_path, step, after
):
    with pytest.raises(Died):
        drop(database, Dying(place, step, after=after), "ada", PARTS)
    with pytest.raises(WrongKey):
        drop(database, FileKeystore(tmp_path / "wrong"), "ada", PARTS)
    again = drop(database, FileKeystore(place), "ada", PARTS)
    assert (again.existed, again.pending) == (True, False)
    check_gone(name, place)


def test_a_deletion_that_died_at_any_statement_is_ended_by_the_next(name, place, monkeypatch):
    address, opened = shared_server().address(name, ROLE), []

    def attempt(step):
        """Delete, but die before the n-th statement; whether it died."""
        database = Database(address, timeout_s=5)
        database.open()
        opened.append(database)
        from perdure.log.postgres.connections import Session  # noqa: PLC0415 - the one that is to die

        real, numbers = Session.run, counted(1)

        def run(session, statement, params=()):
            if next(numbers) == step:
                session.connection.close()
                raise Died
            return real(session, statement, params)

        with monkeypatch.context() as patched:
            patched.setattr(Session, "run", run)
            try:
                drop(database, FileKeystore(place), "ada", PARTS)
            except Died:
                return True
        return False

    try:
        for step in counted(1):
            if not attempt(step):
                break
            ended = drop(opened[-1], FileKeystore(place), "ada", PARTS)
            assert (ended.existed, ended.pending) in {(True, False), (False, False)}
            check_gone(name, place)
        assert step > 30
    finally:
        for database in opened:
            database.close()


@pytest.mark.parametrize(("which", "when", "known"), [
    (1, "before", "whether its rows are deleted is unknown"),
    (1, "sent", "whether its rows are deleted is unknown"),
    (2, "before", "its rows are deleted, and its name still stands for it"),
    (2, "sent", "its rows are deleted, and its name still stands for it"),
])  # fmt: skip
def test_a_deletion_that_nobody_confirmed_says_what_is_known_and_goes_on(name, place, which, when, known):
    proxy = Proxy(shared_server().root)
    database = Database(f"postgresql://{ROLE}@/{name}?host={proxy.root}", timeout_s=5)
    database.open()
    keystore = FileKeystore(place)
    try:
        if which == 1:
            proxy.cut("COMMIT", when)
        else:
            keystore = CutAfter(place, lambda: proxy.cut("COMMIT", when))
        with pytest.raises(Unavailable, match=known):
            drop(database, keystore, "ada", PARTS)
        assert proxy.cuts == 1
        again = drop(database, FileKeystore(place), "ada", PARTS)
        # Where it was done up to its end there is nothing left to go on with.
        assert (again.existed, again.pending) == ((which, when) != (2, "sent"), False)
        check_gone(name, place)
    finally:
        database.close()
        proxy.close()
