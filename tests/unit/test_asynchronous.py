"""Stores for asyncio do what the synchronous ones do, in threads, and tear nothing when they are cancelled."""

from __future__ import annotations

import asyncio
import contextvars
import inspect
import os
import subprocess
import sys
import threading

import pytest

from perdure import AsyncMemory, AsyncStore, InvalidRequest, ManualClock, MemoryConfig, Store, Unavailable
from perdure.asynchronous import AsyncConversation, AsyncDocumentIndex, AsyncDocuments, AsyncRepository
from perdure.conversation.conversation import ConversationMemory
from perdure.documents.documents import Documents
from perdure.documents.index import DocumentIndex
from perdure.repository.repository import Repository
from perdure.store import Memory
from source_tree import ROOT

TWINS = [
    (AsyncMemory, Memory),
    (AsyncStore, Store),
    (AsyncDocuments, Documents),
    (AsyncDocumentIndex, DocumentIndex),
    (AsyncRepository, Repository),
    (AsyncConversation, ConversationMemory),
]
# What Memory.open asks of its store; and what one process holds of one talk.
INSIDE = {"memory_of", "session"}
TO_TWINS = {  # these answer with twins
    *("open", "memory", "documents", "repository", "conversation", "export_lines", "export_events"),
}
NOT_AWAITED = {"as_prompt"}  # reads nothing


def public(kind):
    return {name for name in dir(kind) if not name.startswith("_")} - INSIDE


def calls():
    return [
        pytest.param(twin, kind, name, id=f"{twin.__name__}.{name}")
        for twin, kind in TWINS
        for name in sorted(public(kind))
        if inspect.isroutine(getattr(kind, name))
    ]


@pytest.fixture
def clock():
    return ManualClock(1_000)


class Observer:
    """Calls a function for each fact that was told."""

    def __init__(self, call):
        self.remembered = call

    def forgotten(self, ids):
        pass


class Gate:
    """Holds the thread that tells a fact, until it may go on."""

    def __init__(self):
        self.entered, self._go_on, self._loop = asyncio.Event(), threading.Event(), asyncio.get_running_loop()
        self.config = MemoryConfig(observers=(Observer(self._hold),))

    def _hold(self, fact):
        self._loop.call_soon_threadsafe(self.entered.set)
        assert self._go_on.wait(30)

    def open(self):
        self._go_on.set()


async def opened(path, clock, **options):
    return await AsyncStore.open(path, clock=clock, durability="normal", **options)


# The same names, arguments and answers


@pytest.mark.parametrize(("twin", "kind"), TWINS)
def test_a_twin_has_the_public_names_of_the_synchronous_one_and_no_others(twin, kind):
    assert public(twin) - {"log", "clock"} == public(kind) | ({"config"} if kind is Memory else set())


@pytest.mark.parametrize(("twin", "kind", "name"), calls())
def test_a_call_takes_the_arguments_of_the_synchronous_one(twin, kind, name):
    told, wanted = inspect.signature(getattr(twin, name)), inspect.signature(getattr(kind, name))
    parameters = dict(told.parameters)
    if name == "open":
        assert parameters.pop("threads").default >= 1
    assert list(parameters.values()) == list(wanted.parameters.values())
    if name not in TO_TWINS:
        assert told.return_annotation == wanted.return_annotation


@pytest.mark.parametrize(("twin", "kind", "name"), calls())
def test_a_call_is_awaited_and_documented(twin, kind, name):
    assert inspect.iscoroutinefunction(getattr(twin, name)) is (name not in NOT_AWAITED)
    assert inspect.getdoc(getattr(twin, name))


@pytest.mark.slow
def test_a_type_checker_knows_the_arguments_and_the_answers(tmp_path):
    program = tmp_path / "program.py"
    program.write_text(
        "from perdure import AsyncStore\n"
        "async def ask() -> None:\n"
        "    async with await AsyncStore.open(':memory:') as store:\n"
        "        memory = await store.memory('alice')\n"
        "        reveal_type(await memory.recall('kettle', k=3))\n"
        "        reveal_type(await (await store.documents('alice')).get('kettle'))\n"
        "        await memory.recall('kettle', sum=3)\n"
    )
    done = subprocess.run(
        # What is imported gives its types alone; `scripts/check` looks into its functions.
        [
            *(sys.executable, "-m", "mypy", "--strict", "--follow-imports=silent"),
            *("--cache-dir", os.devnull, str(program)),
        ],
        capture_output=True,
        text=True,
        cwd=ROOT,
        timeout=300,
        check=False,
    )
    told = done.stdout
    assert "list[perdure.model.hit.Hit]" in told
    assert "perdure.model.document.Document | None" in told
    assert 'Unexpected keyword argument "sum"' in told
    assert "Found 1 error" in told


def test_a_twin_answers_as_the_synchronous_one(tmp_path, clock):
    async def told():
        async with await opened(tmp_path / "one", clock, secret=b"s" * 32) as store:
            memory = await store.memory("alice", config=MemoryConfig(default_k=3))
            documents = await store.documents("alice")
            await memory.remember("The kettle is blue", id="kettle", subject="kettle")
            await documents.put("oven", "Descale the oven")
            hits = await memory.recall("kettle oven", explain=True)
            return (
                memory.config.default_k,
                hits,
                memory.as_prompt(hits),
                (await documents.get("oven")).text,
                await documents.index.unit_count,
                await documents.index.terms_of("oven"),
                [name.principal for name in await store.spaces()],
                [line async for line in await store.export_lines()],
                (await store.config) == MemoryConfig(),
            )

    def wanted():
        with Store.open(tmp_path / "two", clock=clock, secret=b"s" * 32) as store:
            memory = store.memory("alice", config=MemoryConfig(default_k=3))
            documents = store.documents("alice")
            memory.remember("The kettle is blue", id="kettle", subject="kettle")
            documents.put("oven", "Descale the oven")
            hits = memory.recall("kettle oven", explain=True)
            return (
                3,
                hits,
                memory.as_prompt(hits),
                documents.get("oven").text,
                documents.index.unit_count,
                documents.index.terms_of("oven"),
                [name.principal for name in store.spaces()],
                list(store.export_lines()),
                True,
            )

    assert asyncio.run(told()) == wanted()


def test_errors_are_those_of_the_synchronous_one(clock):
    async def told():
        async with await opened(":memory:", clock) as store:
            memory = await store.memory()
            with pytest.raises(InvalidRequest) as refused:
                await memory.recall("  ")
            assert refused.value.field == "query"
            with pytest.raises(InvalidRequest) as refused:
                await store.memory("\0")
            assert refused.value.field == "principal"

    asyncio.run(told())


def test_the_number_of_threads_is_checked_before_anything_is_opened(tmp_path):
    with pytest.raises(InvalidRequest) as refused:
        asyncio.run(AsyncStore.open(tmp_path / "store", threads=0))
    assert refused.value.field == "threads"
    assert list(tmp_path.iterdir()) == []


# Threads


def test_the_event_loop_goes_on_while_a_call_waits(clock):
    async def told():
        gate = Gate()
        async with await opened(":memory:", clock) as store:
            memory = await store.memory(config=gate.config)
            telling = asyncio.create_task(memory.remember("The kettle is blue"))
            await gate.entered.wait()  # the loop runs, and so does another call
            assert len(await memory.recall("kettle")) == 1
            assert not telling.done()
            gate.open()
            assert (await telling).created

    asyncio.run(told())


def test_no_more_calls_run_at_once_than_there_are_threads(clock):
    async def told():
        running, most, together = [], [], threading.Barrier(2)

        def count(fact):
            running.append(fact.id)
            most.append(len(running))
            together.wait(30)  # both threads are busy here, so that a third call would be seen
            running.remove(fact.id)

        async with await opened(":memory:", clock, threads=2) as store:
            memory = await store.memory(config=MemoryConfig(observers=(Observer(count),)))
            await asyncio.gather(*(memory.remember(f"Kettle {n}") for n in range(8)))
        assert len(most) == 8
        assert max(most) <= 2

    asyncio.run(told())


def test_callbacks_see_the_context_variables_of_the_task(clock):
    name = contextvars.ContextVar("name", default="nobody")
    seen = []

    async def told():
        async with await opened(":memory:", clock) as store:
            memory = await store.memory(
                config=MemoryConfig(observers=(Observer(lambda fact: seen.append(name.get())),))
            )
            name.set("alice")
            await memory.remember("The kettle is blue")

    asyncio.run(told())
    assert seen == ["alice"]


def test_a_store_may_be_used_from_one_event_loop_after_another(clock):
    store = asyncio.run(opened(":memory:", clock))

    async def tell():
        return await (await store.memory()).remember("The kettle is blue", id="kettle")

    assert asyncio.run(tell()).outcome == "created"
    assert asyncio.run(tell()).outcome == "existing"
    asyncio.run(store.close())


# Cancelling


def test_a_write_that_had_begun_is_stored_whole_when_its_task_is_cancelled(clock):
    async def told():
        gate = Gate()
        async with await opened(":memory:", clock) as store:
            waiting = await store.memory(config=gate.config)
            telling = asyncio.create_task(waiting.remember("The kettle is blue", id="a", idempotency_key="1"))
            await gate.entered.wait()
            telling.cancel()
            with pytest.raises(asyncio.CancelledError):
                await telling
            gate.open()
            memory = await store.memory()
            assert (await memory.remember("The kettle is blue", id="a", idempotency_key="1")).created
            assert (await memory.list()).total == 1

    asyncio.run(told())


def test_a_call_that_had_not_begun_is_not_made_when_its_task_is_cancelled(clock):
    async def told():
        gate = Gate()
        async with await opened(":memory:", clock, threads=1) as store:
            memory = await store.memory(config=gate.config)
            first = asyncio.create_task(memory.remember("The kettle is blue"))
            await gate.entered.wait()
            second = asyncio.create_task(memory.remember("The oven is black"))
            await asyncio.sleep(0)  # its task begins, and finds the one thread taken
            second.cancel()
            with pytest.raises(asyncio.CancelledError):
                await second
            gate.open()
            await first
            assert [fact.text for fact in (await memory.list()).items] == ["The kettle is blue"]

    asyncio.run(told())


def test_an_opening_that_is_cancelled_leaves_no_store_open(tmp_path, clock):
    entered, go_on = threading.Event(), threading.Event()

    def key():
        entered.set()
        assert go_on.wait(30)
        return b"k" * 32

    async def told():
        opening = asyncio.create_task(opened(tmp_path / "store", clock, backend="sqlite", key=key))
        await asyncio.to_thread(entered.wait, 30)
        opening.cancel()
        with pytest.raises(asyncio.CancelledError):
            await opening
        go_on.set()

    # Other tests of this process may have stores open in fixtures that live longer than a test.
    before = set(threading.enumerate())
    asyncio.run(told())
    ours = [one for one in threading.enumerate() if one not in before]
    for thread in ours:
        thread.join(30)
    assert not [thread for thread in ours if thread.is_alive()]


# Closing


def test_closing_waits_for_the_calls_that_were_made_before(clock):
    async def told():
        store = await opened(":memory:", clock)
        memory = await store.memory()
        tellings = [asyncio.create_task(memory.remember(f"Kettle {n}")) for n in range(20)]
        await asyncio.sleep(0)
        await store.close()
        assert all(reply.created for reply in await asyncio.gather(*tellings))
        with pytest.raises(Unavailable):
            await memory.recall("kettle")
        await store.close()

    asyncio.run(told())


def test_a_memory_that_opened_its_store_closes_it_and_another_does_not(tmp_path, clock):
    async def told():
        async with await AsyncMemory.open(tmp_path / "store", principal="alice", clock=clock) as memory:
            await memory.remember("The kettle is blue")
        with pytest.raises(Unavailable):
            await memory.recall("kettle")
        async with await opened(tmp_path / "store", clock) as store:
            async with await store.memory("alice") as memory:
                assert len(await memory.recall("kettle")) == 1
            assert len(await memory.recall("kettle")) == 1

    asyncio.run(told())


def test_an_export_that_is_left_early_can_be_followed_by_a_purge(tmp_path, clock):
    async def told():
        async with await opened(tmp_path / "store", clock) as store:
            memory = await store.memory()
            await memory.remember_many([f"Kettle {n}" for n in range(500)])
            lines = await store.export_lines()
            async for _ in lines:
                break
            await lines.aclose()
            assert (await store.purge()).records >= 500

    asyncio.run(told())


def test_the_package_does_not_import_asyncio_before_a_twin_is_asked_for():
    program = "import sys, perdure\nassert 'asyncio' not in sys.modules\nperdure.AsyncStore\nassert 'asyncio' in sys.modules"
    subprocess.run([sys.executable, "-c", program], check=True, timeout=60)
