"""Erasing a person: every memory of a principal goes, its name with it, and nothing of anybody else."""

from __future__ import annotations

import pytest

from backends import IN_FILES
from perdure import Busy, Conflict, InvalidRequest, MemoryConfig, Namespace, Store
from perdure.log.memory import MemoryLog
from scenarios.stores import EVERY_BACKEND, ids
from unit.memory.refusals import seen
from unit.space.logs import WrappedLog

USERS = [("u1", ""), ("u1", "work"), ("u2", ""), ("u2", "work")]


@pytest.fixture(params=EVERY_BACKEND)
def backend(request):
    return request.param


def shown(store):
    """Everything that a caller can see of the users' memories."""
    return {name: seen(store.memory(*name)) for name in USERS}


def filled(store):
    """Give each user two memories: each with a fact of the user's own, a hidden one, and a document."""
    for principal, scope in USERS:
        memory = store.memory(principal, scope)
        memory.remember(f"a fact of {principal} {scope}", id="a", subject="s")
        memory.remember("a fact that everybody has", id="b", supersedes=["a"])
        memory.forget(ids=["b"], soft=True)
        store.documents(principal, scope).put("d", f"a document of {principal} {scope}")
    return store


@pytest.fixture
def tenants(open_store):
    return {name: filled(open_store(name)) for name in ("A", "B")}


def test_erasing_one_user_of_one_tenant_takes_that_users_memories_and_nothing_else(tenants):
    before = {name: shown(store) for name, store in tenants.items()}
    reply = tenants["A"].erase("u1")
    assert reply.spaces == (Namespace("u1", ""), Namespace("u1", "work"))
    assert (reply.facts, reply.dry_run, reply.purged, reply.pending) == (6, False, True, False)
    assert tenants["A"].spaces() == [Namespace("u2", ""), Namespace("u2", "work")]
    assert shown(tenants["B"]) == before["B"]
    for name, (items, hidden, _, _) in shown(tenants["A"]).items():
        old_items, old_hidden, *_ = before["A"][name]
        assert (items, hidden) == (((), ()) if name[0] == "u1" else (old_items, old_hidden))
    assert tenants["A"].stats().facts == 4


def test_a_dry_run_names_exactly_what_the_real_call_erases_and_changes_nothing(tenants):
    store = tenants["A"]
    for scope in ("work", None, ""):
        before, names = shown(store), store.spaces()
        dry = store.erase("u1", scope, dry_run=True)
        assert (dry.dry_run, dry.purged, dry.pending, dry.certificate) == (True, False, False, None)
        assert (shown(store), store.spaces()) == (before, names)
        real = store.erase("u1", scope)
        assert (real.spaces, real.facts) == (dry.spaces, dry.facts)
        assert set(names) - set(store.spaces()) == set(real.spaces)


def test_a_scope_limits_the_erasure_and_the_empty_scope_is_one_like_any_other(tenants):
    store = tenants["A"]
    assert store.erase("u1", "work").spaces == (Namespace("u1", "work"),)
    assert store.erase("u2", "").spaces == (Namespace("u2", ""),)
    assert store.spaces() == [Namespace("u1", ""), Namespace("u2", "work")]


@pytest.mark.parametrize("name", ["u", "U1", "u1 ", "u1%", "u_", "*", "u1\u0301", "nobody", ""])
def test_names_are_compared_exactly_and_an_unknown_one_erases_nothing(tenants, name):
    store = tenants["A"]
    before, names, epoch = shown(store), store.spaces(), store.log.epoch()
    reply = store.erase(name)
    assert (reply.spaces, reply.facts, reply.purged, reply.certificate) == ((), 0, False, None)
    assert store.log.epoch() == epoch  # no cursor ends for it
    assert store.erase("u1", name or "other").spaces == ()
    assert store.spaces() == names
    assert [(items, hidden) for items, hidden, *_ in shown(store).values()] == [
        (items, hidden) for items, hidden, *_ in before.values()
    ]


def test_the_principal_without_a_name_is_erased_by_an_empty_text_and_never_by_leaving_it_out(store):
    store.memory().remember("a fact of nobody in particular")
    store.memory("ann").remember("a fact of Ann")
    with pytest.raises(InvalidRequest) as caught:
        store.erase(None)
    assert caught.value.field == "principal"
    assert len(store.spaces()) == 2
    assert store.erase("").spaces == (Namespace(),)
    assert store.spaces() == [Namespace("ann")]


@pytest.mark.parametrize(
    ("arguments", "field"),
    [
        (("a" * 257,), "principal"),
        (("a\n",), "principal"),
        ((5,), "principal"),
        (("ann", "\0"), "scope"),
        (("ann", 5), "scope"),
    ],
)
def test_a_name_that_no_memory_can_have_is_refused(store, arguments, field):
    store.memory("ann").remember("a fact of Ann")
    for call in (lambda: store.erase(*arguments), lambda: store.erase(*arguments, dry_run=True)):
        with pytest.raises(InvalidRequest) as caught:
            call()
        assert caught.value.field == field
    with pytest.raises(InvalidRequest):
        store.erase("ann", dry_run="yes")
    assert store.memory("ann").list().total == 1


def test_a_memory_of_an_erased_name_begins_anew_with_no_fact_block_or_receipt(store):
    old = store.memory("ann")
    old.remember("the same words", id="x", subject="s", idempotency_key="key")
    old.remember("blocked words", id="blocked")
    old.forget(ids=["blocked"], block=True)
    old.remember("hidden words", id="hidden")
    old.forget(ids=["hidden"], soft=True)
    store.erase("ann")
    fresh = store.memory("ann", config=MemoryConfig(supersession="latest-by-subject"))
    told = fresh.remember("the same words", id="y", subject="s", idempotency_key="key")
    assert (told.outcome, told.id, told.supersedes) == ("created", "y", ())
    assert fresh.remember("blocked words", id="blocked").outcome == "created"
    assert fresh.unblock(ids=["blocked"], texts=["blocked words"]) == 0
    assert fresh.restore(["hidden"]) == ()
    assert ids(fresh.list(order="id").items) == ["blocked", "y"]
    assert fresh.list(hidden=True).total == 0
    assert [change.kind for change in fresh.changes().items] == ["remembered", "remembered"]


def test_the_settings_of_an_erased_name_bind_nobody_who_asks_for_it_later(store):
    def score(memory):
        return memory.recall("words words")[0].score

    old = store.memory("ann", config=MemoryConfig(k1=1.5))
    old.remember("words of many words", id="x")
    with pytest.raises(InvalidRequest):
        store.memory("ann", config=MemoryConfig(k1=1.2))
    before = score(old)
    store.erase("ann")
    store.memory("ann", config=MemoryConfig(k1=1.2)).remember("words of many words", id="x")
    assert score(old) == score(store.memory("ann")) != before
    store.erase("ann")
    store.memory("ann").remember("words of many words", id="x")
    store.memory("bob").remember("words of many words", id="x")
    assert score(old) == score(store.memory("ann")) == score(store.memory("bob")) != before


def test_the_handles_of_other_memories_go_on_in_their_own_when_one_between_them_is_erased(store):
    names = ["first", "second", "third"]
    memories = {name: store.memory(name) for name in names}
    documents = {name: store.documents(name) for name in names}
    for name, memory in memories.items():
        memory.remember(f"a fact of the {name}", id="x")
    store.erase("second")
    for name in ("first", "third"):
        assert memories[name].get("x").text == f"a fact of the {name}"
    memories["second"].remember("told after the erasure", id="y")
    for name in names:
        memories[name].remember(f"told later to the {name}", id="z")
        documents[name].put("d", f"put later to the {name}")
    store.purge()
    for name in names:
        assert memories[name].get("z").text == f"told later to the {name}"
        assert documents[name].get("d").text == f"put later to the {name}"
        memories[name].correct(f"set right by the {name}", id="z", new_id="w")
    assert ids(memories["second"].list(order="id").items) == ["w", "y", "z"]
    assert ids(memories["third"].list(order="id").items) == ["w", "x", "z"]
    assert store.memory("third").get("w").text == "set right by the third"


def test_an_erasure_that_was_stopped_between_two_memories_is_finished_by_the_same_call():
    log = WrappedLog(MemoryLog())
    with Store.open(log=log) as store:
        filled(store)
        stops = iter([False, True, False, False])

        def stop():
            if next(stops):
                raise Busy("somebody else is writing")

        log.before_append = stop
        with pytest.raises(Busy):
            store.erase("u1")
        assert store.spaces() == [Namespace("u1", "work"), Namespace("u2", ""), Namespace("u2", "work")]
        rest = store.erase("u1")
        assert (rest.spaces, rest.facts, rest.certificate.spaces) == ((Namespace("u1", "work"),), 3, 1)
        assert store.spaces() == [Namespace("u2", ""), Namespace("u2", "work")]
        assert store.check_certificate(rest.certificate) == ()


def test_an_erasure_that_was_stopped_before_its_purge_is_finished_by_the_same_call(tenants, monkeypatch):
    store = tenants["A"]

    def refuse(*_):
        raise Busy("a backup is being made")

    with monkeypatch.context() as patched:
        patched.setattr(store.log, "purge", refuse)
        with pytest.raises(Busy):
            store.erase("u1")
    again = store.erase("u1")
    assert (again.spaces, again.purged, again.certificate.facts) == ((), True, 0)
    last = store.erase("u1")
    assert (last.purged, last.certificate) == (False, None)


def test_a_clock_that_tells_no_time_stops_an_erasure_before_it_begins(store):
    store.memory("ann").remember("a fact of Ann")
    told = store.clock.now()
    store.clock.now = lambda: told + 0.5
    for call in (lambda: store.erase("ann"), store.purge, lambda: store.backup("nowhere")):
        with pytest.raises(InvalidRequest) as caught:
            call()
        assert caught.value.field == "clock"
    store.clock.now = lambda: told
    assert store.memory("ann").list().total == 1
    assert store.verify().ok


def test_nothing_of_an_erased_name_is_in_any_file(open_store, backend, tmp_path):
    if backend not in IN_FILES:
        pytest.skip("no files")
    store = open_store()
    store.memory("XQZ-canary-7731", "XQZ-canary-7731").remember("a fact")
    store.memory("ann").remember("a fact of Ann")
    store.close()
    files = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert any(b"XQZ-canary-7731" in path.read_bytes() for path in files)  # the control
    store = open_store()
    assert store.erase("XQZ-canary-7731").facts == 1
    store.close()
    files = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert not any(b"XQZ-canary-7731" in path.read_bytes() for path in files)


def test_a_cursor_of_an_erased_memory_is_none_of_the_memory_that_takes_its_name(store, monkeypatch):
    ann = store.memory("ann")
    ann.remember("Ann has a kettle")
    cursor = ann.changes().cursor

    def refuse(*_):
        raise Busy("a backup is being made")

    with monkeypatch.context() as patched:
        patched.setattr(store.log, "purge", refuse)
        with pytest.raises(Busy):
            store.erase("ann")
    ann.remember("Another Ann has a teapot")
    with pytest.raises(Conflict) as caught:
        ann.changes(cursor)
    assert caught.value.kind == "epoch"


def test_a_cursor_of_a_memory_that_was_still_empty_goes_on_with_its_first_fact(store):
    ann = store.memory("ann")
    cursor = ann.changes().cursor
    ann.remember("Ann has a kettle")
    assert [change.kind for change in ann.changes(cursor).items] == ["remembered"]


@pytest.mark.parametrize("by", ["purge", "erase"])
def test_a_reader_that_others_overtake_twice_is_not_told_of_damage(tmp_path, by):
    with Store.open(tmp_path / "store") as one, Store.open(tmp_path / "store") as two:
        memory, reader = one.memory("ann"), two.memory("ann")
        for id_ in ("x", "y"):
            memory.remember(f"the words of {id_}", id=id_)
        reader.get("x")
        memory.remember("the words of z", id="z")
        head, calls = two.log.head, []

        def overtaken(space):
            calls.append(space)
            found = head(space)
            if (
                len(calls) == 1
            ):  # where the reader's state is brought up; what a read looks at first is bound already
                memory.forget(ids=["z"])
            elif len(calls) == 2:
                one.purge() if by == "purge" else one.erase("ann")
            return found

        two.log.head = overtaken
        assert (reader.get("x") is None) == (by == "erase")
