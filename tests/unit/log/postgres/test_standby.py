"""A primary with a synchronous standby: nothing acknowledged is lost when it dies, and open stores find the other one."""

from __future__ import annotations

import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import suppress

import pytest
from bench.postgres_server import Server

from effort import examples
from governed import START, change, create_active
from perdure import Busy, Memory, MemoryConfig, PerdureError, Store, SystemClock, Unavailable, copy
from perdure.databases import delete_tenant
from perdure.log.postgres import connections
from perdure.model.conversation_forms import turn_uri
from perdure.model.node import Evidence
from postgres_server import ROLE, fresh_database, standby_of
from talks import talk

WRITERS = 4
WAIT_S = 60
BEFORE, AFTER = 25, 10  # writes of each writer before the primary dies and after the standby was promoted

pytestmark = pytest.mark.slow


class Pair:
    """A primary, and a standby without which it confirms no commit."""

    def __init__(self) -> None:
        # Processes die here, not machines, so what was handed to the disk is there.
        self.primary = Server({"fsync": "off"})
        self.database = fresh_database(self.primary)
        self.standby = standby_of(self.primary, {"fsync": "off"})
        self.primary.execute("ALTER SYSTEM SET synchronous_standby_names = '*'")
        self.primary.execute("SELECT pg_reload_conf()")
        while self.primary.execute("SELECT sync_state FROM pg_stat_replication") != [("sync",)]:
            time.sleep(0.02)

    def address(self) -> str:
        hosts = f"{self.primary.root},{self.standby.root}"
        return f"postgresql://{ROLE}@/{self.database}?host={hosts}&target_session_attrs=read-write"

    def stop(self) -> None:
        self.standby.stop()
        self.primary.stop()


@pytest.fixture
def pair() -> Iterator[Pair]:
    made = Pair()
    yield made
    made.stop()


class Writer(threading.Thread):
    """Tells facts one after the other, each until it is acknowledged, and goes on until it is to stop."""

    def __init__(self, memory: Memory, name: int) -> None:
        super().__init__(daemon=True)
        self._memory, self._name = memory, name
        self.acknowledged: list[str] = []
        self.troubles = 0
        self.stops = False

    def run(self) -> None:
        number = 0
        while not self.stops:
            id_ = f"{self._name}-{number}"
            with suppress(Busy, Unavailable):
                self._memory.remember(f"the fact {id_}", id=id_, subject=f"s{number % 7}")
                self.acknowledged.append(id_)
                number += 1
                continue
            self.troubles += 1
            time.sleep(0.02)


def await_writes(writers: list[Writer], count: int) -> None:
    deadline = time.monotonic() + WAIT_S
    wanted = {writer: len(writer.acknowledged) + count for writer in writers}
    while any(len(writer.acknowledged) < number for writer, number in wanted.items()):
        assert time.monotonic() < deadline, "the writers do not go on"
        time.sleep(0.01)


def texts_of(memory: Memory) -> Iterator[str]:
    cursor = None
    while True:
        page = memory.list(limit=1_000, cursor=cursor)
        yield from (fact.text for fact in page.items)
        cursor = page.cursor
        if cursor is None:
            return


@pytest.mark.parametrize("number", range(examples(1)))
def test_a_primary_that_is_killed_loses_no_acknowledged_write_and_the_stores_go_on_by_themselves(
    pair, tmp_path, number
):
    how = {"keystore": tmp_path / "keys", "clock": SystemClock()}
    with Store.open(pair.address(), **how) as one, Store.open(pair.address(), timeout_s=29.5, **how) as other:
        one.memory().remember("the first", id="first")
        writers = [Writer((one, other)[name % 2].memory(), name) for name in range(WRITERS)]
        for writer in writers:
            writer.start()
        await_writes(writers, BEFORE)
        pair.primary.kill()
        pair.standby.execute("SELECT pg_promote()")
        await_writes(writers, AFTER)
        for writer in writers:
            writer.stops = True
        for writer in writers:
            writer.join(WAIT_S)
        acknowledged = [id_ for writer in writers for id_ in writer.acknowledged]
        for store in (one, other):
            texts = Counter(texts_of(store.memory()))
            assert [id_ for id_ in acknowledged if texts[f"the fact {id_}"] != 1] == []
            assert max(texts.values()) == 1
            assert store.health().status == "ok"
        assert len(acknowledged) >= WRITERS * (BEFORE + AFTER)
        assert one.verify().ok
        assert other.purge().pending is False
        troubles = sum(writer.troubles for writer in writers)
        sys.stdout.write(
            f"{len(acknowledged)} acknowledged, none lost; {troubles} calls were refused meanwhile\n"
        )


def waiting_for_standby(pair: Pair, *, but: set[int] = frozenset()) -> set[int]:
    """Return the sessions whose commits wait for the standby, once there is another than these."""
    deadline = time.monotonic() + WAIT_S
    while True:
        rows = pair.primary.execute("SELECT pid FROM pg_stat_activity WHERE wait_event = 'SyncRep'")
        found = {pid for (pid,) in rows} - but
        if found:
            return found
        assert time.monotonic() < deadline, "nothing waits for the standby"
        time.sleep(0.01)


ENDED = pytest.mark.parametrize("ended", ["pg_cancel_backend", "pg_terminate_backend"])


@ENDED
@pytest.mark.parametrize("heard", ["notice", "error"])
def test_a_write_that_no_longer_waits_for_the_standby_is_acknowledged_when_it_is_there_and_not_before(
    pair, tmp_path, ended, heard
):
    pair.primary.execute(f"ALTER ROLE {ROLE} SET client_min_messages = '{heard}'")
    with Store.open(pair.address(), keystore=tmp_path / "keys", audit="off") as store:
        memory = store.memory()
        memory.remember("the first", id="first")
        pair.standby.kill()
        told: list[object] = []
        telling = threading.Thread(target=lambda: told.append(memory.remember("the second", id="second")))
        telling.start()
        waiting = waiting_for_standby(pair)
        pair.primary.execute(f"SELECT {ended}(pid) FROM pg_stat_activity WHERE wait_event = 'SyncRep'")
        waiting_for_standby(pair, but=waiting)  # finding out what became of it has that to wait for as well
        assert told == []
        pair.standby.start()
        telling.join(WAIT_S)
        assert len(told) == 1
        pair.primary.kill()
        pair.standby.execute("SELECT pg_promote()")
        assert memory.get("second").text == "the second"


def test_a_call_that_is_repeated_is_answered_when_what_it_finds_is_on_the_standby_and_not_before(
    pair, tmp_path
):
    how = {"keystore": tmp_path / "keys", "audit": "off"}
    with (
        Store.open(pair.address(), **how) as store,
        Store.open(pair.address(), timeout_s=29.5, **how) as other,
    ):
        store.memory().remember("the first", id="first")
        other.memory().get("first")
        pair.standby.kill()
        told: list[object] = []

        def tell(memory: Memory) -> None:
            with suppress(Unavailable):
                told.append(memory.remember("the second", id="second").outcome)

        waiting: set[int] = set()
        threads = [threading.Thread(target=tell, args=(one.memory(),)) for one in (store, other)]
        for thread in threads:
            thread.start()
            waiting |= waiting_for_standby(pair, but=waiting)
            pair.primary.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE wait_event = 'SyncRep'"
            )
            waiting |= waiting_for_standby(pair, but=waiting)
            pair.primary.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE wait_event = 'SyncRep'"
            )
        assert told == []
        pair.standby.start()
        for thread in threads:
            thread.join(WAIT_S)
        pair.primary.kill()
        pair.standby.execute("SELECT pg_promote()")
        assert store.memory().remember("the second", id="second").outcome == "existing"


def records(server: Server, database: str) -> int:
    return int(server.execute("SELECT count(*) FROM perdure.record", database)[0][0])


def on_the_primary_alone(pair: Pair, work: Callable[[], object], is_there: Callable[[], bool]) -> None:
    """Repeat a call until the primary has what it does, ending each wait for the standby; it is never acknowledged."""
    done = threading.Event()

    def end_waits() -> None:
        while not done.wait(0.02):
            pair.primary.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE wait_event = 'SyncRep'"
            )

    ending = threading.Thread(target=end_waits)
    ending.start()
    try:
        while not is_there():
            with pytest.raises(Unavailable):
                work()
    finally:
        done.set()
        ending.join(WAIT_S)


def check_waits(pair: Pair, work: Callable[[], object]) -> None:
    """Ask for what the primary alone has: the answer comes when the standby is there, and not before."""
    told: list[object] = []
    asking = threading.Thread(target=lambda: told.append(work()), daemon=True)
    asking.start()
    deadline = time.monotonic() + WAIT_S
    while not pair.primary.execute("SELECT pid FROM pg_stat_activity WHERE wait_event = 'SyncRep'"):
        assert not told, "it was answered while the primary alone has it"
        assert time.monotonic() < deadline, "nothing waits for the standby"
        time.sleep(0.01)
    pair.standby.start()
    asking.join(WAIT_S)
    assert len(told) == 1


# What was there before, what is done and done again, and how many records there are then.
REPEATED = {
    "a first write": (
        lambda store: store.memory().list(),
        lambda store: store.memory().remember("the first", id="first"),
        2,
    ),
    "a configuration": (lambda store: store.config, lambda store: store.save_config(MemoryConfig(k1=1.7)), 2),
    "an embedding": (
        lambda store: store.memory().remember("the first", id="first"),
        lambda store: store.memory(config=MemoryConfig(embedder="hashing")).embed_missing(),
        3,
    ),
}


@pytest.mark.parametrize("what", REPEATED)
def test_whatever_is_done_again_elsewhere_is_acknowledged_when_the_standby_has_it_and_not_before(
    pair, tmp_path, what
):
    before, work, count = REPEATED[what]
    how = {"keystore": tmp_path / "keys", "audit": "off"}
    with (
        Store.open(pair.address(), **how) as store,
        Store.open(pair.address(), timeout_s=29.5, **how) as other,
    ):
        before(other)
        pair.standby.kill()
        on_the_primary_alone(pair, lambda: work(store), lambda: records(pair.primary, pair.database) == count)
        check_waits(pair, lambda: work(other))
        pair.primary.kill()
        pair.standby.execute("SELECT pg_promote()")
        assert records(pair.standby, pair.database) == count


def remember_version(store: Store) -> object:
    return store.conversation("alice", "work").remember(talk(["then it rained"]))


def quote(store: Store) -> object:
    rained = Evidence(turn_uri("s", "v1", "t0"), "digest", "manual", START, "it rained")
    return store.repository("alice", "work").apply(
        change("k", create_active("n", "a walk", evidence=[rained]))
    )


# Told from what is read, before anything is locked to be written.
READ_FIRST = {
    "a version of a session": remember_version,
    "a change set that quotes": quote,
    "the settings of a memory": lambda store: store.memory("alice", "work").reindex(k1=1.7),
}


@pytest.mark.parametrize("what", READ_FIRST)
def test_what_is_found_done_by_reading_is_told_when_the_standby_has_it_and_not_before(pair, tmp_path, what):
    work = READ_FIRST[what]
    with Store.open(pair.address(), keystore=tmp_path / "keys", audit="off") as store:
        store.memory("alice", "work").remember("the first", id="first")
        remember_version(store)
        work(store)
        pair.standby.kill()  # as above
        check_waits(pair, lambda: work(store))


def test_a_copy_is_told_as_whole_when_the_standby_has_all_of_it_and_not_before(pair, tmp_path):
    with Store.open(":memory:", audit="off") as source:
        source.memory().remember("the first", id="first")

        def work() -> object:
            return copy(source, pair.address(), to_keystore=tmp_path / "keys", verify=False)

        work()
        pair.standby.kill()  # one that is away may lack what was there before, or not: nobody can tell
        check_waits(pair, work)


def test_a_write_whose_standby_is_away_for_good_ends_and_says_that_it_may_be_stored(
    pair, tmp_path, monkeypatch
):
    with Store.open(pair.address(), keystore=tmp_path / "keys", audit="off", timeout_s=0.5) as store:
        store.memory().remember("the first", id="first")
        pair.standby.kill()
        monkeypatch.setattr(connections, "SILENCE_S", 1.0)
        with pytest.raises(
            Unavailable, match=r"a synchronous standby is away\. Whether it was stored is unknown"
        ):
            store.memory().remember("the second", id="second")


def test_a_write_is_not_told_as_undone_however_long_the_store_waits_for_others(pair, tmp_path, monkeypatch):
    monkeypatch.setattr(connections, "STATEMENT_S", 0.5)
    with Store.open(pair.address(), keystore=tmp_path / "keys", audit="off", timeout_s=1.0) as store:
        store.memory().remember("the first", id="first")
        pair.standby.kill()
        monkeypatch.setattr(connections, "SILENCE_S", 1.0)
        with pytest.raises(Unavailable, match="hether it was stored is unknown"):
            store.memory().remember("the second", id="second")


WHOLE = {
    "an erasure": lambda store: store.erase(principal="ada"),
    "a configuration": lambda store: store.save_config(MemoryConfig(k1=1.5)),
    "a purge": lambda store: store.purge(),
    "a deletion": lambda store: store.delete_tenant(),
    "a first write": lambda store: store.memory(principal="bob").remember("the first"),
    "a note of a copy": lambda store: store.log.note_backup(1),
}


@pytest.mark.parametrize("write", WHOLE)
def test_whatever_is_committed_while_the_standby_is_away_for_good_ends(pair, tmp_path, monkeypatch, write):
    with Store.open(pair.address(), keystore=tmp_path / "keys", audit="off", timeout_s=0.5) as store:
        store.memory(principal="ada").remember("the first", id="first")
        pair.standby.kill()
        monkeypatch.setattr(connections, "SILENCE_S", 1.0)
        told: list[PerdureError] = []

        def ask() -> None:
            with pytest.raises(Unavailable) as caught:
                WHOLE[write](store)
            told.append(caught.value)

        asking = threading.Thread(target=ask, daemon=True)
        asking.start()
        asking.join(WAIT_S)
        assert told, "it waits without end"


def test_no_key_is_destroyed_of_what_only_the_primary_knows_to_be_erased(pair, tmp_path):
    how = {"keystore": tmp_path / "keys", "audit": "off"}
    with (
        Store.open(pair.address(), **how) as store,
        Store.open(pair.address(), timeout_s=29.5, **how) as other,
    ):
        memory = store.memory()
        memory.remember("what is kept", id="kept")
        memory.remember("what goes", id="goes")
        other.memory().get("kept")
        pair.standby.kill()

        def forget() -> None:
            with suppress(Busy, Unavailable):
                memory.forget(ids=["goes"])

        forgetting = threading.Thread(target=forget)
        forgetting.start()
        waiting = waiting_for_standby(pair)
        pair.primary.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE wait_event = 'SyncRep'"
        )
        waiting |= waiting_for_standby(pair, but=waiting)
        scrubbing = threading.Thread(target=other.log.scrub)  # which can see what was erased
        scrubbing.start()
        waiting_for_standby(pair, but=waiting)
        pair.primary.kill()
        pair.standby.start()
        pair.standby.execute("SELECT pg_promote()")
        forgetting.join(WAIT_S)
        scrubbing.join(WAIT_S)
    with Store.open(pair.address(), **how) as store:
        assert store.memory().get("kept").text == "what is kept"
        assert store.verify().ok


def test_no_key_is_destroyed_of_a_tenant_that_only_the_primary_knows_to_be_purged_and_deleted(pair, tmp_path):
    how = {"keystore": tmp_path / "keys", "audit": "off"}
    with (
        Store.open(pair.address(), **how) as store,
        Store.open(pair.address(), timeout_s=29.5, **how) as other,
    ):
        store.memory().remember("what is kept", id="kept")
        pair.standby.kill()

        def is_purged() -> bool:
            return pair.primary.execute("SELECT epoch FROM perdure.tenant", pair.database) == [(1,)]

        def is_buried() -> bool:
            return pair.primary.execute("SELECT buried FROM perdure.tenant", pair.database) == [(True,)]

        on_the_primary_alone(pair, store.purge, is_purged)
        on_the_primary_alone(
            pair, lambda: delete_tenant(pair.address(), "default", keystore=tmp_path / "keys"), is_buried
        )
        told: list[object] = []
        scrubbing = threading.Thread(target=lambda: told.append(other.log.scrub()))
        scrubbing.start()
        waiting_for_standby(pair)
        assert told == []
        pair.primary.kill()
        pair.standby.start()
        pair.standby.execute("SELECT pg_promote()")
        scrubbing.join(WAIT_S)
    with Store.open(pair.address(), **how) as store:
        assert store.memory().get("kept").text == "what is kept"
        assert store.verify().ok


def test_a_standby_answers_what_is_read_and_refuses_what_is_written(pair, tmp_path):
    how = {"keystore": tmp_path / "keys"}
    standbys = pair.standby.address(pair.database, ROLE)
    with pytest.raises(Unavailable, match="may only be read"):
        Store.open(f"{standbys}&target_session_attrs=read-write", **how)
    with Store.open(pair.address(), **how) as store:
        store.memory().remember("the kettle is blue", id="kettle")
        while pair.primary.execute(
            "SELECT pg_current_wal_flush_lsn() - replay_lsn FROM pg_stat_replication"
        ) != [(0,)]:
            time.sleep(0.02)
        with Store.open(standbys, **how) as reading:
            assert [hit.id for hit in reading.memory().recall("kettle")] == ["kettle"]
            assert reading.verify().ok
            for write in (
                lambda: reading.memory().remember("no"),
                lambda: reading.memory("somebody").remember("no"),
                lambda: reading.memory().forget(ids=["kettle"]),
                reading.purge,
            ):
                with pytest.raises(Unavailable, match="may only be read"):
                    write()
            health = reading.health()
            assert (health.status, health.writable) == ("unavailable", False)
            assert "may only be read" in health.message
            pair.standby.execute("SELECT pg_promote()")
            assert reading.health().status == "ok"
            assert reading.memory().remember("it is the primary now").created
