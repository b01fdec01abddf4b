"""A connection breaks at any moment of a write: nothing acknowledged is lost, nothing is written twice, and work goes on."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Iterator

import pytest

from perdure import ManualClock, Memory, Store
from perdure.errors import Conflict, Unavailable
from perdure.log.postgres import FileKeystore, PostgresLog
from perdure.log.protocol import Batch, Rewritten
from postgres_proxy import Moment, Proxy
from postgres_server import ROLE, fresh_database, shared_server

NAME = b"n" * 16
MOMENTS = [
    ("SELECT epoch, keys_from FROM perdure.tenant", "before"),
    ("SELECT epoch, seq, erasures, digest, key", "sent"),
    ("INSERT INTO perdure.record", "before"),
    ("UPDATE perdure.space SET seq", "before"),
    ("COMMIT", "before"),
    ("COMMIT", "sent"),
    ("COMMIT", "told"),
    ("SELECT epoch, seq, erasures, digest, key", "told"),
    ("INSERT INTO perdure.record", "told"),
]
MOMENTS_OF_WRITERS: list[tuple[str, Moment]] = [("COMMIT", "sent"), ("UPDATE perdure.space", "before")]


@pytest.fixture
def proxy() -> Iterator[Proxy]:
    made = Proxy(shared_server().root)
    yield made
    made.close()


@pytest.fixture
def database() -> str:
    return fresh_database()


@pytest.fixture
def log(proxy, database, tmp_path):
    address = f"postgresql://{ROLE}@/{database}?host={proxy.root}"
    opened = PostgresLog.open(address, tenant="acme", keystore=FileKeystore(tmp_path / "keys"), timeout_s=5)
    opened.create_space(NAME, b"first")
    yield opened
    opened.close()


def data(log):
    return [entry.data for entry in log.read(1, 0, log.head(1).seq)]


@pytest.mark.parametrize(("word", "when"), MOMENTS)
def test_an_append_whose_connection_breaks_is_written_once(log, proxy, word, when):
    proxy.cut(word, when)
    head = log.append(1, log.head(1), Batch([b"one", b"two"]))
    assert proxy.cuts == 1
    assert head == log.head(1)
    assert data(log) == [b"first", b"one", b"two"]
    assert list(log.verify()) == []


@pytest.mark.parametrize(("word", "when"), MOMENTS)
def test_an_erasure_whose_connection_breaks_is_done_once(log, proxy, word, when):
    head = log.append(1, log.head(1), Batch([b"one", b"two"]))
    proxy.cut(word, when)
    moved = log.append(1, head, Batch([b"three"], [2]))
    assert proxy.cuts == 1
    assert (moved.seq, moved.erasures) == (4, 1)
    assert data(log) == [b"first", None, b"two", b"three"]
    assert log.scrub()


@pytest.mark.parametrize(
    ("word", "when"), [("INSERT", "before"), ("COMMIT", "before"), ("COMMIT", "sent"), ("COMMIT", "told")]
)
def test_a_space_whose_connection_breaks_as_it_is_made_is_made_once(log, proxy, word, when):
    proxy.cut(word, when)
    assert log.create_space(b"o" * 16, b"another") == 2
    assert proxy.cuts == 1
    assert log.spaces() == [1, 2]


def test_a_commit_that_is_on_its_way_as_the_connection_breaks_is_waited_for(log, proxy):
    proxy.cut("COMMIT", "late")
    threading.Timer(0.3, proxy.let_go).start()
    head = log.append(1, log.head(1), Batch([b"one"]))
    assert proxy.cuts == 1
    assert head.seq == 2
    assert data(log) == [b"first", b"one"]


def test_a_space_whose_commit_is_on_its_way_is_waited_for_and_made_once(log, proxy):
    proxy.cut("COMMIT", "late")
    threading.Timer(0.3, proxy.let_go).start()
    assert log.create_space(b"o" * 16, b"another") == 2
    assert proxy.cuts == 1
    assert log.spaces() == [1, 2]


def test_a_space_whose_fate_cannot_be_told_in_time_is_said_to_be_unknown(proxy, database, tmp_path):
    address = f"postgresql://{ROLE}@/{database}?host={proxy.root}"
    log = PostgresLog.open(address, tenant="acme", keystore=FileKeystore(tmp_path / "keys"), timeout_s=0.2)
    proxy.cut("COMMIT", "late")
    with pytest.raises(Unavailable, match="unknown"):
        log.create_space(NAME, b"first")
    proxy.let_go()
    log.close()


def test_a_commit_whose_fate_cannot_be_told_in_time_is_said_to_be_unknown(proxy, database, tmp_path):
    address = f"postgresql://{ROLE}@/{database}?host={proxy.root}"
    keystore = FileKeystore(tmp_path / "keys")
    log = PostgresLog.open(address, tenant="acme", keystore=keystore, timeout_s=0.2)
    log.create_space(NAME, b"first")
    proxy.cut("COMMIT", "late")
    with pytest.raises(Unavailable, match="unknown"):
        log.append(1, log.head(1), Batch([b"one"]))
    proxy.let_go()
    log.close()


@pytest.fixture
def other(database, tmp_path):
    """The log as another server has it, which nothing is cut from."""
    address = shared_server().address(database, ROLE)
    opened = PostgresLog.open(address, tenant="acme", keystore=FileKeystore(tmp_path / "keys"))
    yield opened
    opened.close()


@pytest.mark.parametrize("erased", [[], [2]])
def test_what_was_committed_is_known_among_what_others_wrote_behind_it(log, proxy, other, erased):
    proxy.meanwhile = lambda: other.append(1, other.head(1), Batch([b"theirs"], erased))
    proxy.cut("COMMIT", "sent")
    assert log.append(1, log.head(1), Batch([b"one", b"two"])).seq == 3
    assert data(log) == [b"first", None if erased else b"one", b"two", b"theirs"]


def test_what_was_not_committed_is_known_by_what_others_wrote_in_its_place(log, proxy, other):
    proxy.meanwhile = lambda: other.append(1, other.head(1), Batch([b"theirs", b"too"]))
    proxy.cut("COMMIT", "before")
    with pytest.raises(Conflict):
        log.append(1, log.head(1), Batch([b"one"]))
    assert data(log) == [b"first", b"theirs", b"too"]


@pytest.mark.parametrize("when", ["before", "sent"])
def test_whether_a_commit_was_that_is_erased_or_purged_since_is_said_to_be_unknown(log, proxy, other, when):
    proxy.meanwhile = lambda: other.purge(lambda _, read: (Rewritten(entry.data) for entry in read()))
    proxy.cut("COMMIT", when)
    with pytest.raises(Unavailable, match="unknown"):
        log.append(1, log.head(1), Batch([b"one"]))
    assert data(log) == [b"first", b"one"] if when == "sent" else [b"first"]


def keep(_space, read):
    return (Rewritten(entry.data) for entry in read() if entry.data is not None)


def test_a_purge_whose_connection_breaks_before_it_is_committed_is_not_done_and_says_so(log, proxy):
    log.append(1, log.head(1), Batch([b"one", b"two"]))
    proxy.cut("COMMIT", "before")
    with pytest.raises(Unavailable):
        log.purge(keep)
    assert log.epoch() == 0
    assert data(log) == [b"first", b"one", b"two"]
    assert list(log.verify()) == []
    assert log.scrub()


def test_a_purge_whose_connection_breaks_as_it_is_committed_tells_what_it_did(log, proxy, other):
    head = log.append(1, log.head(1), Batch([b"one", b"two"]))
    log.append(1, head, Batch([], [2]))
    proxy.meanwhile = lambda: other.append(1, other.head(1), Batch([b"theirs"]))
    proxy.cut("COMMIT", "sent")
    purged = log.purge(keep)
    assert (proxy.cuts, purged.epoch, purged.records, purged.dropped) == (1, 1, 2, 1)
    assert data(log) == [b"first", b"two", b"theirs"]
    assert list(log.verify()) == []
    assert log.scrub()


def test_a_purge_that_is_on_its_way_as_the_connection_breaks_is_waited_for(log, proxy):
    proxy.cut("COMMIT", "late")
    threading.Timer(0.3, proxy.let_go).start()
    assert log.purge(keep).epoch == 1
    assert proxy.cuts == 1


@pytest.fixture
def unsealed(proxy, database) -> Iterator[list[PostgresLog]]:
    """A log whose purges have no data keys that tell them apart; another server's is the second."""
    through = f"postgresql://{ROLE}@/{database}?host={proxy.root}"
    both = [
        PostgresLog.open(address, tenant="bert", keystore=None, secret=b"s" * 32, timeout_s=5)
        for address in (through, shared_server().address(database, ROLE))
    ]
    both[0].create_space(NAME, b"first")
    yield both
    for opened in both:
        opened.close()


def test_a_purge_of_unsealed_records_whose_connection_breaks_is_told_by_what_it_left(unsealed, proxy):
    proxy.cut("COMMIT", "sent")
    assert unsealed[0].purge(keep).epoch == 1
    assert data(unsealed[0]) == [b"first"]


def test_a_purge_of_unsealed_records_is_never_taken_for_anothers(unsealed, proxy):
    log, other = unsealed
    proxy.meanwhile = lambda: other.purge(lambda _, read: (Rewritten(b"theirs") for _ in read()))
    proxy.cut("COMMIT", "before")
    with pytest.raises(Unavailable, match="unknown"):
        log.purge(keep)
    assert data(log) == [b"theirs"]


def test_nothing_is_sealed_under_keys_of_a_purge_that_failed_while_another_was_faster(log, proxy, other):
    proxy.meanwhile = lambda: (other.purge(keep), other.scrub())
    proxy.cut("COMMIT", "before")
    with pytest.raises(Unavailable):
        log.purge(keep)
    proxy.meanwhile = lambda: None
    for number in range(3):
        log.create_space(bytes([number]) * 16, b"another")
    log.append(1, log.head(1), Batch([b"one", b"two"]))
    assert list(other.verify()) == []
    assert data(other) == [b"first", b"one", b"two"]
    assert [entry.data for space in (2, 3, 4) for entry in other.read(space, 0, 1)] == [b"another"] * 3


def test_what_was_done_before_the_server_ended_the_session_is_done(log, proxy):
    log.append(1, log.append(1, log.head(1), Batch([b"one", b"two"])), Batch([], [2]))
    proxy.cut("COMMIT", "told")
    assert log.scrub()
    assert proxy.cuts == 1
    assert not log.scrub_pending()
    proxy.cut("COMMIT", "told")
    assert log.purge(lambda _, read: (Rewritten(entry.data) for entry in read() if entry.data)).epoch == 1
    proxy.cut("SELECT epoch, seq", "told")
    assert log.head(1).seq == 2
    assert data(log) == [b"first", b"two"]
    assert proxy.cuts == 3


def test_reads_go_on_over_another_connection(log, proxy):
    proxy.cut("SELECT epoch, seq", "before")
    assert log.head(1).seq == 1
    proxy.cut("BEGIN ISOLATION", "before")
    assert data(log) == [b"first"]


def test_all_connections_that_are_cut_at_once_are_replaced(log, proxy):
    with_many = [threading.Thread(target=lambda: data(log)) for _ in range(8)]
    for thread in with_many:
        thread.start()
    for thread in with_many:
        thread.join()
    proxy.cut_all()
    assert log.append(1, log.head(1), Batch([b"one"])).seq == 2
    proxy.cut_all()
    assert log.create_space(b"o" * 16, b"another") == 2
    proxy.cut_all()
    with log.writer():
        assert log.append(1, log.head(1), Batch([b"two"])).seq == 3


def test_a_server_that_ends_its_sessions_is_met_by_new_ones(log, database):
    for number in range(3):
        shared_server().execute(
            f"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '{database}'"
        )
        log.append(1, log.head(1), Batch([str(number).encode()]))
    assert data(log) == [b"first", b"0", b"1", b"2"]


@pytest.fixture
def memory(proxy, database, tmp_path) -> Iterator[Memory]:
    address = f"postgresql://{ROLE}@/{database}?host={proxy.root}"
    with Store.open(address, keystore=tmp_path / "keys", clock=ManualClock(1_000_000)) as store:
        yield store.memory()


@pytest.mark.parametrize(("word", "when"), MOMENTS)
def test_a_fact_that_was_told_as_the_connection_broke_is_there_once(memory, proxy, word, when):
    memory.remember("before")
    proxy.cut(word, when)
    told = memory.remember("The kettle is blue")
    assert proxy.cuts == 1
    assert told.created
    assert [fact.text for fact in memory.list().items] == ["before", "The kettle is blue"]


def test_writers_whose_connections_are_cut_again_and_again_lose_and_repeat_nothing(memory, proxy):
    told, unknown = list[str](), list[str]()

    def tell(name: int) -> None:
        for number in range(15):
            try:
                told.append(memory.remember(f"fact {name} {number}").id)
            except Unavailable:  # cut three times in one write
                unknown.append(f"fact {name} {number}")

    memory.remember("the first")
    threads = [threading.Thread(target=tell, args=(name,)) for name in range(4)]
    for thread in threads:
        thread.start()
    # One cut for every few writes, however fast they are: else a slow machine would cut each of them three times.
    waiting, moments = threading.Event(), itertools.cycle(MOMENTS_OF_WRITERS)
    while any(thread.is_alive() for thread in threads):
        proxy.cut(*next(moments))
        wanted = len(told) + len(unknown) + 3
        while any(thread.is_alive() for thread in threads) and len(told) + len(unknown) < wanted:
            waiting.wait(0.001)
    assert len(told) + len(unknown) == 60
    assert len(told) > 50
    assert proxy.cuts > 1
    facts = {fact.id: fact.text for fact in memory.list(limit=100).items if fact.text != "the first"}
    assert set(told) <= set(facts)
    assert len(set(facts.values())) == len(facts)
    assert {text for id_, text in facts.items() if id_ not in told} <= set(unknown)
