"""A tenant that is deleted and made again under its name is another one, for whoever still has the old one open."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from itertools import count

import psycopg
import pytest

from perdure import ManualClock, Store
from perdure.databases import delete_tenant
from perdure.errors import PerdureError, Unavailable
from perdure.log.postgres import FileKeystore, PostgresLog
from perdure.log.postgres.connections import Session
from perdure.log.postgres.migrating import TABLES
from perdure.log.protocol import EMPTY, Batch, Cached, Head, Rewritten
from postgres_server import ROLE, identity_of, shared_server

SECRET = bytes(range(32))
NAME, OTHER = b"n" * 16, b"o" * 16
OLD, NEW = b"deleted words", b"words of the new one"


@pytest.fixture
def keys(tmp_path):
    return tmp_path / "keys"


def rows(database):
    """Return every row of every table."""
    with psycopg.connect(shared_server().address(database)) as connection:
        return {
            table: sorted(map(str, connection.execute(f"SELECT * FROM perdure.{table}".encode())))
            for table in TABLES
        }


def bytes_of(keys):
    return {path.name: path.read_bytes() for path in keys.iterdir()}


# The log


def open_log(address, keys):
    return PostgresLog.open(address, tenant="ada", keystore=FileKeystore(keys))


def fill(log, text):
    """Write what has the same numbers, heads and names in every tenant that it is written to."""
    space = log.create_space(NAME, b"first")
    head = log.append(space, log.head(space), Batch([text, b"erased"], keys=[(b"k" * 16, 0)]))
    head = log.append(space, head, Batch([b"more"], erase=[3]))
    log.put_cache(space, "state", Cached(head, text))
    log.note_backup(5)
    return head


@pytest.fixture
def old(address, keys):
    """The log of a tenant that was deleted, and made again by another process, which wrote the like; and its last head."""
    log = open_log(address, keys)
    head = fill(log, OLD)
    beside = log.beside("audit").open(SECRET)
    beside.create_space(NAME, OLD)
    delete_tenant(address, "ada", keystore=keys)
    made = open_log(address, keys)
    new = fill(made, NEW)
    assert (new.epoch, new.seq, new.erasures) == (head.epoch, head.seq, head.erasures)
    again = made.beside("audit").open(SECRET)
    again.create_space(NAME, NEW)
    for one in (again, made):
        one.close()
    yield log, beside, head
    beside.close()
    log.close()


def keep(space, read):
    return (Rewritten(entry.data) for entry in read() if entry.data is not None)


def in_turn(work, space=1):
    def done(log, head):
        with log.writer(space=space):
            return work(log, head)

    return done


OPERATIONS = {
    "epoch": lambda log, head: log.epoch(),
    "spaces": lambda log, head: log.spaces(),
    "find_space": lambda log, head: log.find_space(NAME),
    "find_space of none": lambda log, head: log.find_space(OTHER),
    "create_space": lambda log, head: log.create_space(OTHER, b"first"),
    "create_space of the same": lambda log, head: log.create_space(NAME, b"first"),
    "head": lambda log, head: log.head(1),
    "head of none": lambda log, head: log.head(99),
    "head in a turn": in_turn(lambda log, head: log.head(1)),
    "turn of the store": in_turn(lambda log, head: log.head(1), None),
    "append": lambda log, head: log.append(1, head, Batch([b"more"])),
    "append in a turn": in_turn(lambda log, head: log.append(1, head, Batch([b"more"]))),
    "append of a new epoch's head": lambda log, head: log.append(1, EMPTY, Batch([b"more"])),
    "append of more than is ahead": lambda log, head: log.append(1, head, Batch([b"x"] * 20_000)),
    "erase": lambda log, head: log.append(1, head, Batch([], erase=[2])),
    "read": lambda log, head: list(log.read(1, 0, 99)),
    "read the rest": lambda log, head: list(log.read(1, 2, 99)),
    "read of none": lambda log, head: list(log.read(99, 0, 99)),
    "get": lambda log, head: log.get(1, [2], head),
    "get at no head": lambda log, head: log.get(1, [2], EMPTY),
    "find": lambda log, head: log.find(1, [b"k" * 16]),
    "scrub": lambda log, head: log.scrub(),
    "scrub_pending": lambda log, head: log.scrub_pending(),
    "purge": lambda log, head: log.purge(keep),
    "verify": lambda log, head: list(log.verify()),
    "verify quickly": lambda log, head: list(log.verify(quick=True)),
    "note_backup": lambda log, head: log.note_backup(7),
    "backups": lambda log, head: log.backups(),
    "get_cache": lambda log, head: log.get_cache(1, "state"),
    "cache_head": lambda log, head: log.cache_head(1, "state"),
    "load_bytes": lambda log, head: log.load_bytes(1, "state"),
    "size_bytes": lambda log, head: log.size_bytes(),
    "reclaimable_bytes": lambda log, head: log.reclaimable_bytes(),
    "the log beside it": lambda log, head: log.beside("audit").open(SECRET),
    "whether there is one beside it": lambda log, head: log.beside("audit").exists(),
    "the size of the one beside it": lambda log, head: log.beside("audit").size_bytes(),
    "a new log beside it": lambda log, head: log.beside("else").open(SECRET),
    "drop": lambda log, head: log.drop("audit"),
}


@pytest.mark.parametrize("operation", OPERATIONS)
def test_whatever_is_asked_of_a_tenant_that_was_made_anew_since_it_is_gone(old, database, keys, operation):
    log, beside, head = old
    before, kept = rows(database), bytes_of(keys)
    for one in (log, beside):
        with pytest.raises(Unavailable) as refused:
            OPERATIONS[operation](one, head)
        assert refused.value.details["kind"] == "gone"
    assert rows(database) == before
    assert bytes_of(keys) == kept


@pytest.mark.parametrize("head", [None, Head(0, 0, 0, bytes(32))], ids=["its own", "of nothing"])
def test_a_snapshot_of_a_tenant_that_was_made_anew_since_is_not_kept(old, database, keys, head):
    log, beside, last = old
    before, kept = rows(database), bytes_of(keys)
    for one in (log, beside):
        try:
            one.put_cache(1, "state", Cached(head or last, b"a snapshot of the old one"))
        except Unavailable as error:
            if error.details["kind"] != "gone":
                raise
    assert rows(database) == before
    assert bytes_of(keys) == kept


def test_what_a_deleted_tenant_had_condemned_is_not_destroyed_in_the_new_one(address, database, keys):
    class Away(FileKeystore):
        def destroy(self, tenant, numbers):
            raise Unavailable("the keystore is away")

    log = PostgresLog.open(address, tenant="ada", keystore=Away(keys))
    fill(log, OLD)
    assert log.scrub_pending()
    delete_tenant(address, "ada", keystore=keys)
    made = open_log(address, keys)
    fill(made, NEW)
    before = bytes_of(keys)
    with pytest.raises(Unavailable):
        log.scrub()
    assert bytes_of(keys) == before
    assert [entry.data for entry in made.read(1, 1, 9)] == [NEW, None, b"more"]
    made.close()
    log.close()


def test_a_reader_in_the_midst_of_a_space_does_not_go_on_with_anothers_records(address, keys):
    log = open_log(address, keys)
    space = log.create_space(NAME, b"first")
    log.append(space, log.head(space), Batch([OLD] * 500))
    reading = log.read(space, 0, 501)
    assert next(reading).data == b"first"
    delete_tenant(address, "ada", keystore=keys)
    made = open_log(address, keys)
    made.create_space(NAME, b"first")
    made.append(space, made.head(space), Batch([NEW] * 500))
    seen = []
    with pytest.raises(Unavailable) as refused:
        seen.extend(entry.data for entry in reading)
    assert refused.value.details["kind"] == "gone"
    assert set(seen) <= {OLD}
    made.close()
    log.close()


class Deleted(FileKeystore):
    """A keystore that is asked of a tenant just as another process has deleted it, and destroyed its keys."""

    address = None

    def _before(self):
        if self.address is not None:
            address, self.address = self.address, None
            delete_tenant(address, "ada", keystore=self._keys)

    def __init__(self, keys):
        super().__init__(keys)
        self._keys = keys

    def find_secret(self, tenant):
        self._before()
        return super().find_secret(tenant)

    def find_keys(self, tenant, numbers):
        self._before()
        return super().find_keys(tenant, numbers)

    def new_keys(self, tenant, count):
        self._before()
        return super().new_keys(tenant, count)

    def newest(self, tenant):
        self._before()
        return super().newest(tenant)


@pytest.mark.parametrize(
    "operation", ["read", "get", "get_cache", "append of more than is ahead", "create_space"]
)
def test_a_tenant_that_is_deleted_while_its_keys_are_asked_for_is_gone(address, keys, operation):
    log = open_log(address, keys)
    head = fill(log, OLD)
    log.close()
    keystore = Deleted(keys)
    log = PostgresLog.open(address, tenant="ada", keystore=keystore)
    keystore.address = address
    with pytest.raises(Unavailable) as refused:
        OPERATIONS[operation](log, head)
    assert refused.value.details["kind"] == "gone"
    log.close()


@pytest.mark.parametrize("asked", ["find_secret", "newest"])
def test_a_tenant_that_is_deleted_while_it_is_opened_is_made_anew_or_gone(address, keys, monkeypatch, asked):
    log = open_log(address, keys)
    fill(log, OLD)
    log.close()
    keystore = Deleted(keys)
    if asked == "newest":
        monkeypatch.setattr(keystore, "find_secret", FileKeystore(keys).find_secret)
    keystore.address = address
    try:
        log = PostgresLog.open(address, tenant="ada", keystore=keystore)
    except Unavailable as error:
        if error.details["kind"] != "gone":
            raise
    else:
        assert log.spaces() == []
        log.close()


# Stores


def open_store(address, keys, **how):
    return Store.open(address, tenant="ada", keystore=keys, clock=ManualClock(1_000_000), **how)


USES = {
    "recall": lambda store: store.memory().recall("where does Ada live"),
    "list": lambda store: store.memory().list(),
    "get": lambda store: store.memory().get("home"),
    "history": lambda store: store.memory().history("home"),
    "changes": lambda store: store.memory().changes(),
    "explain": lambda store: store.memory().explain("where does Ada live", "home"),
    "another memory": lambda store: store.memory("ben").recall("coffee"),
    "a memory that was not loaded": lambda store: store.memory("cid").list(),
    "remember": lambda store: store.memory().remember("more"),
    "remember the same": lambda store: store.memory().remember("Ada lives in Turin", id="home"),
    "correct": lambda store: store.memory().correct("Ada lives in Rome", id="home", new_id="rome"),
    "forget": lambda store: store.memory().forget(ids=["home"]),
    "forget and purge": lambda store: store.memory().forget(ids=["home"], purge=True),
    "documents": lambda store: store.documents().put("note", "words"),
    "purge": lambda store: store.purge(),
    "erase": lambda store: store.erase("ben"),
    "spaces": lambda store: store.spaces(),
    "stats": lambda store: store.stats(),
    "verify": lambda store: store.verify(),
    "events": lambda store: store.events(),
    "verify_events": lambda store: store.verify_events(),
    "note_event": lambda store: store.note_event("key_created"),
    "save_config": lambda store: store.save_config(store.config),
    "delete_tenant": lambda store: store.delete_tenant(),
}


OF_AN_AUDIT = {"events", "verify_events", "note_event"}  # without one they ask for nothing


@pytest.fixture(params=["on", "full", "off"])
def stale(request, address, keys):
    """A store whose tenant was deleted and made again, with the same ids in it, while it was open and in use."""

    def made(text):
        store = open_store(address, keys, audit=request.param)
        store.memory().remember(text, id="home", subject="ada.home")
        store.memory("ben").remember(f"{text} with Ben", id="ben")
        assert store.memory().recall("where does Ada live")
        if request.param != "off":
            assert store.events().items
        return store

    stale = made("Ada lives in Turin")
    delete_tenant(address, "ada", keystore=keys)
    made("Ada lives in Genoa").close()
    yield stale
    stale.close()


def test_no_use_of_a_store_that_is_gone_answers_or_changes_the_new_one(stale, address, database, keys):
    before, kept = rows(database), bytes_of(keys)
    for name, use in USES.items():
        if name in OF_AN_AUDIT and isinstance(stale.log, PostgresLog):
            continue
        try:
            answer = use(stale)
        except Unavailable as error:
            if error.details.get("kind") != "gone":
                raise
            continue
        pytest.fail(f"{name} answered {answer!r}")
    assert stale.health().status == "unavailable"
    assert rows(database) == before
    assert bytes_of(keys) == kept
    with open_store(address, keys) as made:
        assert [fact.text for fact in made.memory().list().items] == ["Ada lives in Genoa"]
        assert made.verify().findings == ()


def test_a_snapshot_that_is_folded_in_the_background_does_not_come_to_the_new_one(address, database, keys):
    stale = open_store(address, keys, audit="off")
    stale.memory().remember_many([f"Entry {number} of the ledger" for number in range(1_200)])
    delete_tenant(address, "ada", keystore=keys)
    with open_store(address, keys, audit="off") as made:
        made.memory().remember("Ada lives in Genoa", id="home")
    before = rows(database)
    stale.close()  # which keeps what pays, or has it kept
    assert rows(database) == before
    with open_store(address, keys, audit="off") as made:
        assert [fact.text for fact in made.memory().list().items] == ["Ada lives in Genoa"]


def test_no_read_that_begins_after_a_deletion_is_answered_out_of_what_was_deleted(address, keys):
    floor, ended, wrong, counted = [1], threading.Event(), [], [0, 0, 0]

    def read(reader):
        store = open_store(address, keys, audit="off")
        while not ended.is_set():
            least = floor[0]
            try:
                found = [hit.fact.text for hit in store.memory().recall("generation", k=50)]
                found += [fact.text for fact in store.memory().list().items]
            except PerdureError as error:
                if error.details.get("kind") == "gone":
                    store.close()
                    store = opened()
                elif error.code != "busy":
                    wrong.append(repr(error))
                continue
            counted[reader] += len(found)
            wrong.extend(text for text in found if int(text.split()[1]) < least)
        store.close()

    def opened():
        while True:
            try:
                return open_store(address, keys, audit="off")
            except Unavailable:  # while it is being deleted
                continue

    def go_through_generations():
        for generation in range(1, 9):
            store = opened()
            for number in range(3):
                store.memory().remember(f"generation {generation} number {number}", id=str(number))
            store.close()
            delete_tenant(address, "ada", keystore=keys)
            floor[0] = generation + 1

    with ThreadPoolExecutor(4) as pool:
        reading = [pool.submit(read, reader) for reader in range(3)]
        try:
            pool.submit(go_through_generations).result(timeout=120)
        finally:
            ended.set()
        for one in reading:
            one.result(timeout=30)
    assert wrong == []
    assert sum(counted) > 0


# Making


def test_makers_at_once_open_one_tenant_and_leave_no_secret_but_its_own(address, database, keys):
    barrier = threading.Barrier(6)

    def make(_):
        barrier.wait()
        log = open_log(address, keys)
        try:
            return log.secret
        finally:
            log.close()

    with ThreadPoolExecutor(6) as pool:
        secrets = set(pool.map(make, range(6)))
    own = identity_of(address, "ada")
    assert secrets == {FileKeystore(keys).find_secret(own)}
    assert [path.name for path in keys.glob("*.keys")] == [f"{own}.keys"]
    assert len(rows(database)["tenant"]) == len(rows(database)["naming"]) == 1


def test_an_identity_never_comes_again(address, keys):
    found = set()
    for _ in range(3):
        open_log(address, keys).close()
        found.add(identity_of(address, "ada"))
        delete_tenant(address, "ada", keystore=keys)
    assert len(found) == 3
    assert {path.name for path in keys.iterdir()} == {f"{own}.dropped" for own in found} | {"keystore.mark"}


class Died(BaseException):
    """What a process does not survive."""


class Dying(FileKeystore):
    """A keystore whose process dies once it has kept a secret."""

    def put_secret(self, tenant, secret):
        super().put_secret(tenant, secret)
        raise Died


REFUSED = {
    "naming": "REVOKE INSERT ON perdure.naming FROM {role}",
    "tenant": "REVOKE INSERT ON perdure.tenant FROM {role}",
    "database": "ALTER DATABASE {database} SET default_transaction_read_only = on",
}


@pytest.mark.parametrize("refused", REFUSED)
def test_an_opening_that_is_refused_leaves_no_secret_of_a_tenant_that_was_never_made(
    address, database, keys, refused
):
    open_log(address, keys).close()
    secrets = set(bytes_of(keys).values())
    shared_server().execute(REFUSED[refused].format(role=ROLE, database=database), database)
    for name in ("ben", "eve"):
        with pytest.raises(Unavailable):
            PostgresLog.open(f"{address}&keepalives_count=4", tenant=name, keystore=FileKeystore(keys))
    assert set(bytes_of(keys).values()) - {b""} == secrets - {b""}


def test_a_maker_that_died_leaves_at_most_a_secret_that_is_nobodys(address, database, keys):
    with pytest.raises(Died):
        PostgresLog.open(address, tenant="ada", keystore=Dying(keys))
    assert rows(database)["naming"] == rows(database)["tenant"] == []
    log = open_log(address, keys)
    log.create_space(NAME, b"first")
    log.close()
    assert len(list(keys.glob("*.keys"))) == 2
    assert not delete_tenant(address, "ada", keystore=keys).pending
    assert rows(database)["tenant"] == []


@pytest.mark.parametrize("after", [False, True], ids=["before it", "after it"])
def test_a_maker_that_died_at_any_statement_stands_in_nobodys_way(
    address, database, keys, monkeypatch, after
):
    open_log(address, keys).close()  # so that the pool is there, and what is asked first is known
    delete_tenant(address, "ada", keystore=keys)

    def attempt(step):
        """Open, but die at the n-th statement; whether it died."""
        real, numbers = Session.run, count(1)

        def run(session, statement, params=()):
            number = next(numbers)
            if number == step and not after:
                session.connection.close()
                raise Died
            told = real(session, statement, params)
            if number == step:
                raise Died
            return told

        with monkeypatch.context() as patched:
            patched.setattr(Session, "run", run)
            try:
                log = open_log(address, keys)
            except Died:
                return True
            log.close()
        return False

    for step in count(1):
        if not attempt(step):
            break
        log = open_log(address, keys)
        assert log.create_space(NAME, b"first") == 1
        log.close()
        assert len(rows(database)["tenant"]) == len(rows(database)["naming"]) == 1
        assert not delete_tenant(address, "ada", keystore=keys).pending
        assert rows(database)["tenant"] == rows(database)["naming"] == []
    assert step > 6


def test_makers_and_deleters_at_once_end_in_one_tenant_or_none(address, database, keys):
    ended = threading.Event()
    wrong = []

    def make(number):
        while not ended.is_set():
            try:
                log = open_log(address, keys)
                try:
                    space = log.find_space(NAME) or log.create_space(NAME, b"first")
                    log.append(space, log.head(space), Batch([b"more"]))
                    log.beside("audit").open(SECRET).close()
                finally:
                    log.close()
            except PerdureError as error:
                if error.code not in {"unavailable", "busy", "conflict"}:
                    wrong.append(repr(error))

    def delete(_):
        for _ in range(12):
            try:
                delete_tenant(address, "ada", keystore=keys)
            except PerdureError as error:
                if error.code not in {"not_found", "busy", "unavailable"}:
                    wrong.append(repr(error))
        ended.set()

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda work: work(0), [make, make, make, delete]))
    assert wrong == []
    if rows(database)["naming"]:
        delete_tenant(address, "ada", keystore=keys)
    assert {table: found for table, found in rows(database).items() if found} == {}
    assert list(keys.glob("*.keys")) == []


def test_a_session_that_cannot_see_the_name_makes_nothing_of_another(address, keys):
    open_log(address, keys).close()
    own = identity_of(address, "ada")
    with psycopg.connect(address) as connection:
        connection.execute("SELECT set_config('app.tenant', %s, false)", (str(own),))
        assert connection.execute("SELECT count(*) FROM perdure.naming").fetchone() == (0,)
        assert connection.execute("SELECT count(*) FROM perdure.tenant").fetchone() == (1,)
