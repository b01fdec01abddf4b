"""Several processes work on one store at once."""

from __future__ import annotations

import pytest

from perdure import Busy, Memory, Store
from processes.running import Child, files_with, servant
from scenarios.stores import ids, texts

MARKER = "XQZ-canary-7731"

pytestmark = pytest.mark.slow  # each process takes most of a second to start

WRITER = """
import sys
from perdure import Memory
with Memory.open(sys.argv[1]) as memory:
    print("ready", flush=True)
    sys.stdin.readline()
    for n in range(int(sys.argv[3])):
        reply = memory.remember(f"fact {n} of writer {sys.argv[2]}")
        assert reply.outcome == "created"
        assert memory.get(reply.id) is not None
"""
READER = """
import sys, threading
from perdure import Memory
with Memory.open(sys.argv[1]) as memory:
    print("ready", flush=True)
    ended = threading.Event()
    threading.Thread(target=lambda: (sys.stdin.read(), ended.set()), daemon=True).start()
    last = reads = 0
    while not ended.is_set():
        total = memory.list(limit=1).total
        hits = memory.recall("fact", k=1000)
        assert last <= total <= len(hits) <= 1000, (last, total, len(hits))
        last, reads = len(hits), reads + 1
    print(reads)
"""


def test_each_process_sees_what_the_other_wrote_at_its_next_call(tmp_path):
    with Memory.open(tmp_path / "s") as memory, servant(tmp_path / "s") as other:
        for n in range(5):
            mine = memory.remember(f"mine {n}")
            assert other.ask(f"memory.get({mine.id!r}).text") == repr(f"mine {n}")
            assert other.ask(f"[hit.text for hit in memory.recall('mine {n}', k=1)]") == repr([f"mine {n}"])
            theirs = other.ask(f"memory.remember('theirs {n}').id")
            assert memory.get(eval(theirs)).text == f"theirs {n}"
            assert f"theirs {n}" in texts(memory.recall(f"theirs {n}"))
            assert memory.list().total == 2 * n + 2
            again = memory.remember(f"theirs {n}")
            assert (again.outcome, again.id) == ("existing", eval(theirs))
        other.finish()


def test_every_kind_of_write_reaches_the_other_process(tmp_path):
    with Memory.open(tmp_path / "s") as memory, servant(tmp_path / "s") as other:
        memory.remember("old", id="old", subject="s")
        memory.remember("new", id="new", supersedes=["old"])
        assert other.ask("memory.get('old').status.value") == "'superseded'"
        memory.annotate("new", tags=["t"], metadata={"k": 1})
        assert other.ask("[f.id for f in memory.list(tags=['t'], filter={'k': 1}).items]") == "['new']"
        assert other.ask("memory.correct('newer', id='new', new_id='newer').superseded_by") == "()"
        assert memory.get("new").status == "superseded"
        assert other.ask("memory.forget(ids=['newer'], soft=True).forgotten") == "('newer',)"
        assert memory.get("newer") is None
        assert memory.restore(["newer"]) == ("newer",)
        assert other.ask("memory.get('newer').text") == "'newer'"
        memory.end("newer", at="2020-01-01")
        assert other.ask("memory.get('newer').status.value") == "'expired'"
        assert other.ask("memory.forget(all=True).forgotten") == "('new', 'newer', 'old')"
        assert memory.list().total == 0
        assert memory.forget(all=True).forgotten == ()
        other.finish()


def test_two_processes_that_open_and_write_first_at_the_same_time_make_one_store(tmp_path):
    for turn in range(3):
        path = tmp_path / str(turn)
        with Child(WRITER, path, 1, 1) as one, Child(WRITER, path, 2, 1) as two:
            for child in (one, two):
                assert child.hear() == "ready"
            for child in (one, two):
                child.tell("go")
            for child in (one, two):
                child.finish()
        with Store.open(path) as store:
            assert len(store.spaces()) == 1
            assert sorted(texts(store.memory().list().items)) == ["fact 0 of writer 1", "fact 0 of writer 2"]


def crowd(path, writers: int, facts: int) -> list[int]:
    """Let writers write and two readers read at once; return how often each reader read."""
    children = [Child(WRITER, path, n, facts) for n in range(writers)]
    readers = [Child(READER, path) for _ in range(2)]
    try:
        for child in (*children, *readers):
            assert child.hear() == "ready"
        for child in children:
            child.tell("go")
        for child in children:
            child.finish()
        return [int(reader.finish()) for reader in readers]
    finally:
        for child in (*children, *readers):
            child.__exit__()


def all_there(path, writers: int, facts: int) -> bool:
    with Memory.open(path) as memory:
        found, cursor = [], None
        while True:
            page = memory.list(limit=1000, cursor=cursor)
            found += texts(page.items)
            cursor = page.cursor
            if cursor is None:
                return sorted(found) == sorted(
                    f"fact {n} of writer {w}" for w in range(writers) for n in range(facts)
                )


def test_four_writers_and_two_readers_lose_nothing_and_never_fail(tmp_path):
    reads = crowd(tmp_path / "s", writers=4, facts=100)
    assert min(reads) > 0
    assert all_there(tmp_path / "s", writers=4, facts=100)


@pytest.mark.soak
def test_a_thousand_writes_by_four_processes_are_all_there(tmp_path):
    crowd(tmp_path / "s", writers=4, facts=250)
    assert all_there(tmp_path / "s", writers=4, facts=250)


KILLED = """
import sys
from perdure import Memory
memory = Memory.open(sys.argv[1])
print("ready", flush=True)
n = 0
while True:
    reply = memory.remember(f"fact {n}", id=f"id {n}", supersedes=[f"id {n - 1}"] if n % 5 else [])
    if n % 7 == 6:
        memory.forget(ids=[f"id {n - 6}"])
    print(n, flush=True)
    n += 1
"""


@pytest.mark.parametrize("acknowledged", [1, 2, 7, 20, 33])
def test_a_writer_that_is_killed_loses_nothing_that_was_acknowledged(tmp_path, acknowledged):
    with Child(KILLED, tmp_path / "s") as child, Memory.open(tmp_path / "s") as beside:
        assert child.hear() == "ready"
        last = -1
        while last < acknowledged:
            last = int(child.hear())
        last = max([last, *map(int, child.kill())])
        check_killed(beside, last)
        # The store is whole for those who were there before and can be written at once.
        beside.remember("after", id="after")
    with Memory.open(tmp_path / "s") as memory:
        check_killed(memory, last)
        assert memory.get("after").text == "after"
        assert memory.forget(all=True).pending is False
    assert files_with(tmp_path / "s", b"fact ") == []


def check_killed(memory: Memory, last: int) -> None:
    """Everything up to `last` was acknowledged; at most one further write, and one forget, may be there."""
    for n in range(last + 1):
        fact = memory.get(f"id {n}")
        forgotten = n % 7 == 0 and n + 6 <= last
        if forgotten:
            assert fact is None
        elif not (n % 7 == 0 and n + 6 == last + 1):
            assert fact is not None
            assert fact.text == f"fact {n}"
            # The link was told with the next fact, so both are there or neither.
            follower = memory.get(f"id {n + 1}")
            if (n + 1) % 5 and follower is not None:
                assert fact.superseded_by == (f"id {n + 1}",)
    assert memory.get(f"id {last + 2}") is None


@pytest.mark.parametrize("soft_first", [False, True])
def test_what_one_process_forgets_is_gone_from_the_other_and_from_every_file(tmp_path, soft_first):
    path = tmp_path / "s"
    with Memory.open(path) as memory, servant(path) as other:
        memory.remember("a fact that stays", id="stays")
        memory.remember(
            f"{MARKER} is said",
            id=f"id {MARKER}",
            subject=MARKER,
            entities=[MARKER],
            tags=[MARKER],
            metadata={MARKER: MARKER},
            source={"quote": MARKER},
            idempotency_key=MARKER,
        )
        memory.annotate(f"id {MARKER}", metadata={"other": MARKER})
        memory.end(f"id {MARKER}", reason=MARKER)
        found = f"[hit.id for hit in memory.recall({MARKER!r}, history='all')]"
        assert other.ask(found) == repr([f"id {MARKER}"])
        assert files_with(path, MARKER.encode()) != []  # the positive control
        if soft_first:
            memory.forget(subject=MARKER, soft=True)
            assert other.ask(found) == "[]"
        gone = memory.forget(subject=MARKER)
        assert gone.forgotten == (f"id {MARKER}",)
        assert other.ask(found) == "[]"
        assert other.ask(f"memory.get('id {MARKER}')") == "None"
        assert ids(memory.list().items) == ["stays"]
        if gone.pending:
            memory.list()  # the next operation finishes what a reader was in the way of
        scan = f"__import__('processes.running').running.files_with(__import__('pathlib').Path({str(path)!r}), {MARKER.encode()!r})"
        assert other.ask(scan) == "[]"
        for spelling in (MARKER.lower().encode(), MARKER[:10].encode(), MARKER.encode("utf-16-le")):
            assert files_with(path, spelling) == []
        other.finish()
    assert files_with(path, MARKER.encode()) == []
    with Memory.open(path) as memory:
        assert memory.recall(MARKER, history="all") == []
        assert ids(memory.recall("a fact that stays")) == ["stays"]
    assert files_with(path, MARKER.encode()) == []


def test_a_reader_in_the_middle_of_the_store_keeps_no_forgotten_bytes_for_long(tmp_path):
    path = tmp_path / "s"
    reading = f"""
import sys, threading
from perdure import Memory
with Memory.open(sys.argv[1]) as memory:
    print("ready", flush=True)
    ended = threading.Event()
    threading.Thread(target=lambda: (sys.stdin.read(), ended.set()), daemon=True).start()
    while not ended.is_set():
        memory.list(limit=1000)
        memory.recall({MARKER!r}, history="all", k=1000)
        memory.changes(limit=1000)
"""
    with Memory.open(path) as memory, Child(reading, path) as reader:
        assert reader.hear() == "ready"
        for turn in range(5):
            memory.remember_many([f"{MARKER} {turn} {n}" for n in range(50)])
            gone = memory.forget(all=True)
            assert len(gone.forgotten) == 50
            if gone.pending:
                memory.list()
            if not memory.forget(all=True).pending:
                assert files_with(path, MARKER.encode()) == []
        reader.finish()
        assert memory.forget(all=True).pending is False
        assert files_with(path, MARKER.encode()) == []


def test_a_busy_store_is_reported_and_never_waited_for_longer_than_was_said(tmp_path):
    holding = """
import sys
from perdure import Store
with Store.open(sys.argv[1]) as store:
    with store.log.writer():
        print("holding", flush=True)
        sys.stdin.readline()
    print("free", flush=True)
"""
    with Memory.open(tmp_path / "s") as memory:
        memory.remember("x", id="x")
    with Child(holding, tmp_path / "s") as child, Memory.open(tmp_path / "s", timeout_s=0.2) as memory:
        assert child.hear() == "holding"
        with pytest.raises(Busy):
            memory.remember("y")
        with pytest.raises(Busy):
            memory.forget(all=True)
        assert texts(memory.recall("x")) == ["x"]  # reads wait for no writer
        assert child.ask("go") == "free"
        assert memory.remember("y").outcome == "created"
        child.finish()
