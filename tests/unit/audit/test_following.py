"""Following the log: every record's events once, whatever comes between; erasures and purges take the audit along."""

from __future__ import annotations

import shutil
from collections import Counter
from concurrent.futures import ThreadPoolExecutor

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from backends import IN_FILES
from effort import examples
from perdure import InvalidRequest, NewFact, StorageFull, Store, Unavailable
from perdure.base.acting import acting
from perdure.log.memory import MemoryLog

SECRET = bytes(range(32))


def types(page):
    return [event.type for event in page.items]


def test_a_purge_is_an_event_and_what_comes_after_is_told_once(store):
    memory = store.memory("ada")
    memory.remember_many([NewFact(text=f"fact {n}", id=str(n)) for n in range(5)])
    memory.forget(ids=["0", "3"])
    store.purge()
    memory.remember("after", id="after")
    events = store.events().items
    assert [event.type for event in events] == ["created"] * 5 + ["forgotten"] * 2 + ["purged", "created"]
    assert events[7].details["operation"] == "purge"
    assert [event.fact_id for event in events if event.type == "created"] == [
        None,
        "1",
        "2",
        None,
        "4",
        "after",
    ]
    store.purge()
    assert types(store.events())[8:] == ["created", "purged"]


def test_links_between_facts_of_before_and_after_a_purge_name_both(store):
    memory = store.memory("ada")
    memory.remember_many([NewFact(text=f"fact {n}", id=str(n)) for n in range(5)])
    memory.forget(ids=["0"])
    store.purge()
    memory.remember("anew", id="anew", supersedes=["4"])
    event = memory.events(type="superseded").items[0]
    assert event.fact_id == "4"
    assert event.details["by"] == memory.events(id="anew").items[0].details["fact"]


def test_a_purge_that_fails_leaves_the_events_where_they_were(given_log):
    store = Store.open(log=given_log, audit_log=MemoryLog())
    memory = store.memory("ada")
    memory.remember("one", id="one")
    given_log.fails = True
    with pytest.raises(StorageFull):
        store.purge()
    given_log.fails = False
    memory.remember("two", id="two")
    assert types(store.events()) == ["created", "created"]
    store.purge()
    memory.remember("three", id="three")
    assert types(store.events()) == ["created", "created", "purged", "created"]


def test_many_purges_and_spaces_lose_no_event_and_double_none(store):
    for round_ in range(3):
        for name in ("ada", "ben", "cleo"):
            store.memory(name).remember(f"{name} {round_}", id=str(round_))
        store.memory("ben").forget(ids=[str(round_)])
        store.purge()
    store.erase("ada")
    assert Counter(types(store.events())) == {"created": 9, "forgotten": 3, "purged": 4, "erased": 1}


def test_a_space_that_was_erased_and_is_told_again_is_another_for_the_marks(store):
    store.memory("ada").remember("one", id="one")
    store.erase("ada")
    store.memory("ada").remember("one", id="one")
    assert types(store.events()) == ["created", "erased", "purged", "created"]
    assert types(store.memory("ada").events()) == ["created", "erased", "created"]


def test_a_purge_without_its_audit_is_a_gap_and_events_go_on_behind_it(opened, backend):
    if backend == "memory":
        pytest.skip("an ephemeral store is not opened again")
    store = opened()
    store.memory("ada").remember("one", id="one")
    store.memory("ada").forget(ids=["one"])
    store.close()
    with_none = opened(audit="off")
    with_none.memory("ada").remember("two", id="two")
    with_none.purge()
    with_none.close()
    store = opened()
    store.memory("ada").remember("three", id="three")
    assert types(store.events()) == ["created", "forgotten", "gap"]
    store.memory("ada").remember("four", id="four")
    assert types(store.events()) == ["created", "forgotten", "gap", "created"]
    assert store.verify_events() == ()


def test_what_was_told_without_its_audit_is_told_by_the_next_that_has_it(opened, backend):
    if backend == "memory":
        pytest.skip("an ephemeral store is not opened again")
    store = opened(audit="off")
    with acting("key"):
        store.memory("ada").remember("one", id="one")
    store.close()
    (event,) = opened().events().items
    assert (event.type, event.fact_id, event.actor) == ("created", "one", "key")


def test_an_older_copy_of_the_store_under_a_newer_audit_is_a_gap():
    log, audit = MemoryLog(SECRET), MemoryLog()
    store = Store.open(log=log, audit_log=audit)
    store.memory("ada").remember_many(["one", "two", "three"])
    assert store.events().total == 3
    older = MemoryLog(SECRET)
    Store.open(log=older, audit="off").memory("ada").remember("one")
    assert types(Store.open(log=older, audit_log=audit).events())[3:] == ["gap"]


def test_sixteen_threads_that_write_read_and_forget_leave_each_event_once(store):
    memory = store.memory("ada")

    def work(number):
        for turn in range(5):
            id_ = f"{number}.{turn}"
            with acting(f"writer {number}"):
                memory.remember(f"fact {id_}", id=id_)
            if turn % 2:
                memory.forget(ids=[id_])
            memory.events(limit=1)

    with ThreadPoolExecutor(16) as pool:
        list(pool.map(work, range(16)))
    counted = Counter((event.type, event.actor is not None) for event in memory.events(limit=1_000).items)
    assert counted == {("created", True): 80, ("forgotten", False): 32}
    assert store.verify_events() == ()
    assert store.verify().ok


def test_two_handles_of_a_store_follow_it_side_by_side(opened, backend):
    if backend != "sqlite":
        pytest.skip("of this backend there is one at a time")
    first, second = opened(), opened()
    for turn in range(6):
        store, other = (first, second) if turn % 2 else (second, first)
        store.memory("ada").remember(
            f"fact {turn}", id=str(turn), supersedes=[str(turn - 1)] if turn else None
        )
        other.memory("ada").events()
        if turn == 3:
            other.purge()
        if turn == 4:
            store.memory("ada").forget(ids=["2"])
    assert Counter(types(first.events())) == {
        "created": 6, "superseded": 6, "purged": 1, "forgotten": 1,  # one more link bridges what was forgotten
    }  # fmt: skip
    assert first.events() == second.events()


def test_more_events_than_one_record_holds_are_all_told(store):
    memory = store.memory("ada")
    for part in range(5):
        memory.remember_many([f"fact {part} {n}" for n in range(1_000)])
    memory.events(limit=1)
    page = memory.events(limit=1_000)
    assert (page.total, page.has_more) == (5_000, True)
    seen = [event.sequence for event in page.items]
    while page.cursor:
        page = memory.events(limit=1_000, cursor=page.cursor)
        seen += [event.sequence for event in page.items]
    assert seen == list(range(1, 5_001))
    assert store.verify_events() == ()


def test_a_certificate_names_an_event_and_is_held_against_the_chain(store):
    memory = store.memory("ada")
    memory.remember("one", id="one")
    certificate = memory.forget(ids=["one"], purge=True).certificate
    assert store.events().items[certificate.event.sequence - 1].type == "purged"
    assert store.check_certificate(certificate) == ()
    assert store.purge().certificate.event.sequence == certificate.event.sequence + 1
    assert store.check_certificate(certificate) == ()


def test_a_certificate_does_not_fit_an_audit_that_was_begun_anew():
    log = MemoryLog(SECRET)
    store = Store.open(log=log, audit_log=MemoryLog())
    store.memory("ada").remember("one", id="one")
    certificate = store.memory("ada").forget(ids=["one"]).certificate
    other = Store.open(log=log, audit_log=MemoryLog())
    assert "event 2" in other.check_certificate(certificate)[0].message
    other.memory("ada").remember_many(["two", "three"])
    other.events()
    assert "rewritten" in other.check_certificate(certificate)[0].message
    assert Store.open(log=log, audit="off").check_certificate(certificate) == ()


class Failing(MemoryLog):
    """A log that has no room, while it is told so."""

    fails = False
    fails_purges = False

    def append(self, space, expected, batch):
        if self.fails:
            raise StorageFull("no room")
        return super().append(space, expected, batch)

    def create_space(self, name, first):
        if self.fails:
            raise StorageFull("no room")
        return super().create_space(name, first)

    def purge(self, rewrite, progress=None):
        def failing(space, read):
            yield from rewrite(space, read)
            if self.fails or self.fails_purges:
                raise StorageFull("no room")

        return super().purge(failing, progress)


@pytest.fixture
def given_log():
    return Failing(SECRET)


def gaps(store):
    return [(event.sequence, event.details) for event in store.events(type="gap").items]


def test_an_older_audit_that_is_put_back_tells_how_much_it_cannot_tell_of(opened, backend, tmp_path):
    if backend not in IN_FILES:
        pytest.skip("an ephemeral store keeps no files")
    store = opened()
    store.memory("ada").remember("one", id="one")
    store.events()
    store.close()
    shutil.copytree(tmp_path / "store" / "audit", tmp_path / "older")
    store = opened()
    store.memory("ada").remember("two", id="two")
    store.memory("ada").annotate("two", importance=0.3)
    store.memory("ada").forget(ids=["two"])
    assert types(store.events()) == ["created", "created", "annotated", "forgotten"]
    store.close()
    shutil.rmtree(tmp_path / "store" / "audit")
    shutil.copytree(tmp_path / "older", tmp_path / "store" / "audit")
    store = opened()
    assert types(store.events()) == ["created", "gap", "forgotten"]
    gap = store.events(type="gap").items[0]
    assert (gap.details, gap.space) == ({"records": 2}, store.memory("ada").events().items[0].space)
    assert types(store.events()) == ["created", "gap", "forgotten"], "told once"
    assert store.verify_events() == ()
    assert store.verify().ok, "a gap is no damage"


def test_an_audit_that_was_deleted_begins_with_what_it_cannot_tell_of(opened, backend, tmp_path):
    if backend not in IN_FILES:
        pytest.skip("an ephemeral store keeps no files")
    store = opened()
    store.memory("ada").remember_many([NewFact(text=name, id=name) for name in ("one", "two", "three")])
    store.memory("ada").forget(ids=["one", "three"])
    store.close()
    shutil.rmtree(tmp_path / "store" / "audit")
    store = opened()
    assert types(store.events()) == ["gap", "created", "forgotten", "forgotten"]
    assert gaps(store) == [(1, {"records": 2})]
    store.purge()
    store.purge()
    store.close()
    shutil.rmtree(tmp_path / "store" / "audit")
    store = opened()
    assert types(store.events()) == ["gap", "created"]
    assert gaps(store) == [(1, {"purges": 2})]
    store.memory("ada").remember("four", id="four")
    assert types(store.events()) == ["gap", "created", "created"]


def test_a_space_that_was_erased_unseen_is_a_gap_of_no_space():
    log, audit = Failing(SECRET), MemoryLog()
    unseen = Store.open(log=log, audit="off")
    unseen.memory("ada").remember("one")
    log.fails_purges = True
    with pytest.raises(StorageFull):
        unseen.erase("ada")
    log.fails_purges = False
    store = Store.open(log=log, audit_log=audit)
    store.memory("ben").remember("two", id="two")
    for _ in range(2):
        assert types(store.events()) == ["gap", "erased", "created"]
    assert [event.space is None for event in store.events().items] == [True, True, False]
    store.purge()
    store.memory("ben").remember("three", id="three")
    assert types(store.events()) == ["gap", "erased", "created", "purged", "created"]


@settings(max_examples=examples(24), deadline=None)
@given(steps=st.lists(st.tuples(st.sampled_from("wwaffpo"), st.booleans()), max_size=14))
def test_there_is_a_gap_exactly_where_records_were_erased_that_no_event_tells_of(steps):
    """Steps with the audit and without it: write, annotate, forget, purge (with it only), look at the events."""
    log = MemoryLog(SECRET)
    seen, unseen = Store.open(log=log, audit_log=MemoryLog()), Store.open(log=log, audit="off")
    untold: dict[
        str, bool
    ] = {}  # facts with records that no event tells of; whether these begin with the first
    lost: list[bool] = []
    for number, (step, is_seen) in enumerate(steps):
        memory = (seen if is_seen else unseen).memory("ada")
        last = [fact.id for fact in memory.list().items][-1:]
        if step == "w":
            memory.remember(f"fact {number}", id=str(number))
            untold[str(number)] = True
        elif step == "a" and last:
            memory.annotate(last[0], importance=number / 100)
            untold.setdefault(last[0], False)
        elif step == "f" and last:
            memory.forget(ids=last)
            lost += [untold[last[0]]] if last[0] in untold and not is_seen else []
            untold = {} if is_seen else {key: untold[key] for key in untold if key != last[0]}
        elif step in "po":
            seen.purge() if step == "p" else seen.events()
            untold = {}
    events = seen.events(limit=1_000).items
    missing = sum(int(event.details["records"]) for event in events if event.type == "gap")
    assert (missing > 0) == bool(lost)
    assert missing >= len(lost)
    created = sum(event.type == "created" for event in events)
    assert created + sum(lost) == sum(step == "w" for step, _ in steps)
    assert seen.verify_events() == ()


@pytest.mark.parametrize("begun", [False, True])
def test_where_the_audit_finds_no_room_nothing_is_erased_and_all_else_goes_on(begun):
    audit = Failing()
    store = Store.open(log=MemoryLog(SECRET), audit_log=audit)
    memory = store.memory("ada")
    memory.remember("one", id="one")
    if begun:
        memory.events()
    audit.fails = True
    memory.remember("two", id="two")
    for call in (lambda: memory.forget(ids=["one"]), store.purge, lambda: store.erase("ada")):
        with pytest.raises(StorageFull, match="no room"):
            call()
    with pytest.raises(StorageFull, match="the audit could not be written, so nothing was erased"):
        memory.forget(ids=["one"])
    assert [fact.id for fact in memory.list().items] == ["one", "two"]
    assert memory.recall("one")[0].id == "one"
    memory.forget(ids=["one"], soft=True)
    with pytest.raises(StorageFull):
        memory.events()
    audit.fails = False
    memory.restore(["one"])
    assert memory.forget(ids=["one"]).certificate.event is not None
    assert types(memory.events()) == ["created", "created", "hidden", "restored", "forgotten"]


def test_an_erasure_whose_event_finds_no_room_is_certified_without_it():
    audit = Failing()
    store = Store.open(log=MemoryLog(SECRET), audit_log=audit)
    memory = store.memory("ada")
    memory.remember("one", id="one")
    memory.events()
    audit.fails = True  # nothing is left to follow before the erasure
    certificate = memory.forget(ids=["one"]).certificate
    assert certificate.event is None
    assert store.check_certificate(certificate) == ()
    audit.fails = False
    assert types(memory.events()) == ["created", "forgotten"]


def test_a_copy_takes_its_audit_along(opened, backend, tmp_path):
    if backend not in IN_FILES:
        pytest.skip("an ephemeral store keeps no files")
    store = opened()
    store.memory("ada").remember("one", id="one")
    store.memory("ada").forget(ids=["one"])
    head = store.events_head()
    store.backup(tmp_path / "copy")
    store.close()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["copy", "store"]
    with Store.open(tmp_path / "copy", secret=SECRET) as copy:
        copy.memory("ada").remember("two", id="two")
        assert types(copy.events()) == ["created", "forgotten", "created"]
        assert copy.verify_events(head) == ()
        assert copy.verify().ok


def test_the_audit_of_an_encrypted_store_is_encrypted_and_follows_a_change_of_the_key(tmp_path):
    def is_plain():
        return b"SQLite format 3" in next((tmp_path / "store" / "audit").glob("gen-*.db")).read_bytes()[:16]

    for old, new in ((bytes(32), bytes([1] * 32)), (bytes([1] * 32), None), (None, bytes([2] * 32))):
        with Store.open(tmp_path / "store", secret=SECRET, key=old) as store:
            store.memory("ada").remember(f"fact {old} {new}", id="one")
            store.memory("ada").forget(ids=["one"])
            assert is_plain() == (old is None)
            head = store.events_head()
            store.rekey(new)
            assert is_plain() == (new is None)
            assert store.verify_events(head) == ()
        with Store.open(tmp_path / "store", secret=SECRET, key=new) as store:
            assert store.events(type="purged").items[-1].details["operation"] == "rekey"
            assert store.verify_events(head) == ()
            assert store.verify().ok


def test_a_change_of_the_key_that_fails_leaves_the_audit_to_be_opened(tmp_path, monkeypatch):
    with Store.open(tmp_path / "store", secret=SECRET, key=bytes(32)) as store:
        store.memory("ada").remember("one", id="one")
        store.memory("ada").forget(ids=["one"])

        def stopped(done, total):
            raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            store.rekey(bytes([1] * 32), progress=stopped)
        assert types(store.events()) == ["created", "forgotten"]
    with Store.open(tmp_path / "store", secret=SECRET, key=bytes(32)) as store:
        assert types(store.events()) == ["created", "forgotten"]


def test_the_audit_counts_among_the_files_and_is_checked_with_them(opened, backend, tmp_path):
    if backend != "sqlite":
        pytest.skip("files of this backend")
    store = opened()
    store.memory("ada").remember("one", id="one")
    before = store.stats().size_bytes
    store.memory("ada").events()
    assert store.stats().size_bytes > before
    store.close()
    place = next((tmp_path / "store" / "audit").glob("gen-*.db"))
    place.write_bytes(place.read_bytes()[:4096] + bytes(4096))
    store = opened()
    assert any(finding.message.startswith("the audit: ") for finding in store.verify().findings)


@pytest.mark.parametrize("kind", ["file", "dangling link"])
def test_what_lies_in_the_place_of_the_audit_and_is_none_is_found(opened, backend, tmp_path, kind):
    if backend not in IN_FILES:
        pytest.skip("an ephemeral store keeps no files")
    store = opened()
    store.memory("ada").remember("one", id="one")
    place = tmp_path / "store" / "audit"
    if kind == "file":
        place.write_bytes(b"no directory")
    else:
        place.symlink_to(tmp_path / "nothing")
    (finding,) = store.verify().findings
    assert finding.message.startswith(
        "the audit: what lies at audit in the store's directory is no directory"
    )
    with pytest.raises(Unavailable, match="so nothing was erased: what lies at audit"):
        store.memory("ada").forget(ids=["one"])
    place.unlink()
    assert store.memory("ada").forget(ids=["one"]).forgotten == ("one",)
    assert store.verify().ok


def test_a_closed_store_tells_no_events(store):
    store.close()
    with pytest.raises(Unavailable):
        store.events()


def test_a_store_on_the_log_of_another_store_shares_its_audit():
    with Store.open(log=MemoryLog(SECRET)) as first:
        first.memory("ada").remember("one", id="one")
        second = Store.open(log=first.log)
        second.memory("ada").forget(ids=["one"])
        assert second.purge().dropped > 0
        Store.open(log=first.log, audit="off").memory("ada").remember("two", id="two")
        assert (
            types(first.events()) == types(second.events()) == ["created", "forgotten", "purged", "created"]
        )
        assert second.verify_events(first.events_head()) == ()


@pytest.mark.parametrize(
    ("field", "asked"),
    [
        ("audit", {"audit": "full"}),
        ("audit_queries", {"audit_queries": True}),
        ("audit_log", {"audit_log": MemoryLog(SECRET)}),
    ],
)
def test_no_more_can_be_asked_of_the_audit_of_a_log_that_has_one(field, asked):
    with Store.open(log=MemoryLog(SECRET)) as first, pytest.raises(InvalidRequest) as caught:
        Store.open(log=first.log, **asked)
    assert caught.value.field == field
    with Store.open(log=MemoryLog(SECRET), audit="full", audit_queries=True) as first:
        assert Store.open(log=first.log, audit="full", audit_queries=True).log is first.log


def test_a_store_that_has_read_nothing_yet_has_a_space_followed_before_it_erases_there(tmp_path):
    with Store.open(tmp_path / "store") as store:
        store.memory("ada").remember_many([NewFact(text="one", id="one"), NewFact(text="two", id="two")])
    with Store.open(tmp_path / "store") as store:
        certificate = store.memory("ada").forget(ids=["nobody"]).certificate
        assert certificate.event.sequence == 2
