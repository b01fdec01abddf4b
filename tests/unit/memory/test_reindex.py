"""Reindexing changes how the texts of one space are analysed, and nothing else."""

from __future__ import annotations

import threading

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from effort import examples
from perdure import Busy, InvalidRequest, MemoryConfig, NewFact, Store
from perdure.errors import Conflict, Unavailable
from perdure.lexical.languages import PROFILES
from perdure.log.memory import MemoryLog
from perdure.log.protocol import Rewritten
from perdure.log.records import decode, encode
from scenarios.stores import EVERY_BACKEND, NOW, ids, texts

GERMAN = MemoryConfig(profile="snowball:german")
ROWS = [
    "die Häuser am See",
    "ein Haus im Wald",
    "the running dogs",
    "we run home",
    "größte Straße",
    "C++ und C#",
]
QUERIES = ["Haus", "Häuser", "run", "dog", "GRÖSSTE STRASSE", "c++", "the", "Wälder"]


@pytest.fixture(params=EVERY_BACKEND)
def backend(request):
    return request.param


def answers(memory):
    """All that the memory finds, with scores."""
    return {query: [(hit.id, hit.score) for hit in memory.recall(query)] for query in QUERIES}


def test_a_space_finds_by_its_new_profile_at_once(memory):
    memory.remember_many(ROWS)
    assert texts(memory.recall("Haus")) == ["ein Haus im Wald"]
    done = memory.reindex(profile="snowball:german")
    assert (done.profile, done.k1, done.b, done.changed, done.pending) == (
        "snowball:german",
        0.9,
        0.4,
        True,
        False,
    )
    assert sorted(texts(memory.recall("Haus"))) == ["die Häuser am See", "ein Haus im Wald"]
    assert memory.capabilities().features.analysis_profile == "snowball:german"


@given(
    st.lists(st.sampled_from(ROWS), min_size=1, max_size=8),
    st.sampled_from(PROFILES),
    st.sampled_from(PROFILES),
    st.sampled_from([0.9, 1.2]),
    st.sampled_from([0.4, 0.75]),
)
@settings(max_examples=examples(10), deadline=None)
def test_a_reindexed_space_answers_as_one_that_was_made_so(rows, old, new, k1, b):
    with Store.open(":memory:") as one, Store.open(":memory:") as other:
        reindexed = one.memory(config=MemoryConfig(profile=old))
        made = other.memory(config=MemoryConfig(profile=new, k1=k1, b=b))
        for memory in (reindexed, made):
            memory.remember_many([NewFact(text=f"{row} {n}", id=f"{n}") for n, row in enumerate(rows)])
        reindexed.reindex(profile=new, k1=k1, b=b)
        assert answers(reindexed) == answers(made)


def test_everything_but_the_scores_stays_as_it_was(memory, clock):
    memory.remember_many(
        [NewFact(text=row, id=f"{n}", subject="s", tags=["t"]) for n, row in enumerate(ROWS)]
    )
    memory.remember("newer", id="n", supersedes=["0"])
    memory.correct("corrected", id="1", new_id="1b")
    memory.end("2", at="2030-01-01", reason="over")
    memory.forget(ids=["3"], soft=True)
    memory.annotate("4", importance=0.5)
    clock.advance(1000)
    before = memory.list(as_of=NOW).items
    memory.reindex(profile="unicode.v1", b=0.0)
    assert memory.list(as_of=NOW).items == before
    assert memory.restore(["3"])


def test_a_reindexed_space_opens_again_with_what_it_has_now(open_store, backend):
    if backend == "memory":
        return
    with open_store() as store:
        store.memory().remember_many(ROWS)
        store.memory().reindex(profile="snowball:german", k1=1.2)
    with open_store() as store:
        memory = store.memory(config=MemoryConfig(profile="snowball:german", k1=1.2))
        assert len(memory.recall("Haus")) == 2
        assert memory.capabilities().features.analysis_profile == "snowball:german"
        assert store.verify().ok


def test_opening_with_another_profile_is_an_error_that_names_reindex(store):
    store.memory().remember("a fact")
    for config, field in ((GERMAN, "profile"), (MemoryConfig(k1=1.5), "k1"), (MemoryConfig(b=0.1), "b")):
        with pytest.raises(InvalidRequest, match="reindex") as error:
            store.memory(config=config)
        assert error.value.field == field
    store.memory().reindex(profile="snowball:german")
    assert store.memory(config=GERMAN).recall("fact")


def test_only_the_named_space_changes(store):
    one, other, documents = store.memory("ann"), store.memory("bob"), store.documents("bob")
    for memory in (one, other):
        memory.remember_many(ROWS)
    documents.put("d", "viele Häuser")
    before = answers(other)
    one.reindex(profile="snowball:german")
    assert answers(other) == before
    assert (one.capabilities().features.analysis_profile, other.capabilities().features.analysis_profile) == (
        "snowball:german",
        "english.v1",
    )


def test_documents_of_the_space_are_analysed_anew_too(store):
    documents = store.documents()
    documents.put("d", "viele Häuser. " * 400)
    assert not documents.search("Haus")
    store.memory().reindex(profile="snowball:german")
    assert ids(documents.search("Haus")) == ["d"]
    documents.put("e", "noch mehr Häuser")
    assert sorted(ids(documents.search("Haus"))) == ["d", "e"]


def test_what_it_has_already_is_not_written_again(memory, store):
    memory.remember("a fact")
    epoch = store.log.epoch()
    assert not memory.reindex(profile="english.v1", k1=0.9, b=0.4).changed
    assert store.log.epoch() == epoch


def test_a_setting_that_is_not_told_stays(memory):
    memory.remember("a fact")
    memory.reindex(profile="unicode.v1", k1=1.5)
    done = memory.reindex(b=0.2)
    assert (done.profile, done.k1, done.b) == ("unicode.v1", 1.5, 0.2)


def test_a_space_without_facts_is_made_with_the_settings_by_the_first_one(store):
    memory = store.memory()
    done = memory.reindex(profile="snowball:german")
    assert (done.profile, done.changed) == ("snowball:german", False)
    assert store.spaces() == []
    memory.remember("die Häuser")
    assert memory.recall("Haus")


def test_a_space_whose_facts_were_all_forgotten_takes_the_settings_for_the_next_one(memory):
    memory.remember("a fact", id="a")
    memory.forget(ids=["a"])
    memory.reindex(profile="snowball:german")
    memory.remember("die Häuser")
    assert memory.recall("Haus")
    assert memory.capabilities().features.analysis_profile == "snowball:german"


def test_what_was_forgotten_is_gone_for_good_as_after_a_purge(memory, store):
    memory.remember_many([NewFact(text="stays", id="a"), NewFact(text="goes", id="b")])
    memory.forget(ids=["b"])
    memory.reindex(profile="unicode.v1")
    assert store.purge().dropped == 0


def test_wrong_settings_are_refused_by_name_and_change_nothing(memory):
    memory.remember("a fact")
    before = memory.list().items
    for told, field in (
        ({"profile": "klingon.v3"}, "profile"),
        ({"profile": 3}, "profile"),
        ({"k1": -1}, "k1"),
        ({"k1": "1"}, "k1"),
        ({"b": 1.1}, "b"),
        ({"b": True}, "b"),
        ({}, "profile"),
    ):
        with pytest.raises(InvalidRequest) as error:
            memory.reindex(**told)
        assert error.value.field == field
    assert memory.list().items == before


def test_progress_is_told_up_to_the_end(memory):
    memory.remember_many(ROWS)
    told = []
    memory.reindex(profile="unicode.v1", progress=lambda done, total: told.append((done, total)))
    assert told
    assert told[-1][0] == told[-1][1]


def test_a_cursor_from_before_is_refused(memory):
    memory.remember_many(ROWS)
    cursor = memory.list(limit=2).cursor
    memory.reindex(profile="unicode.v1")
    with pytest.raises((Conflict, InvalidRequest)):
        memory.list(limit=2, cursor=cursor)


def test_a_space_of_a_profile_that_this_build_does_not_know_says_so_and_can_be_given_another(store):
    memory = store.memory()
    memory.remember("the dogs")
    store.log.purge(with_profile("klingon.v3"))
    with pytest.raises(Unavailable, match=r"klingon\.v3.*reindex"):
        memory.recall("dog")
    assert memory.reindex(profile="english.v1").changed
    assert texts(memory.recall("dog")) == ["the dogs"]


def with_profile(profile):
    """What a build would write that knows a profile of this name."""

    def rewrite(space, read):
        for entry in read():
            record = decode(entry.data, space=space, seq=entry.seq)
            if entry.seq == 1:
                record = msgspec.structs.replace(record, profile=profile)
            yield Rewritten(encode(record))

    return rewrite


class Meddling:
    """A supersession policy that reindexes the very memory that asks it."""

    def __init__(self):
        self.memory = None

    def decide(self, new, candidates):
        self.memory.reindex(profile="unicode.v1")


def test_a_policy_cannot_reindex_the_memory_that_asks_it(store):
    policy = Meddling()
    memory = policy.memory = store.memory(config=MemoryConfig(supersession=policy))
    with pytest.raises(InvalidRequest, match="policy"):
        memory.remember_many([NewFact(text="a", subject="s"), NewFact(text="b", subject="s")])
    assert memory.capabilities().features.analysis_profile == "english.v1"


class Overtaken(MemoryLog):
    """A log that lets something happen before it gives a writer his turn, once."""

    before_turn = None

    def writer(self, timeout_s=None, *, space=None):
        before, self.before_turn = self.before_turn, None
        if before is not None:
            before()
        return super().writer(timeout_s, space=space)


@pytest.mark.parametrize("write", ["remember", "correct", "put", "remember_many"])
def test_a_text_that_was_analysed_before_a_reindexing_is_stored_by_the_new_profile(write):
    log = Overtaken()
    with Store.open(log=log) as one, Store.open(log=log) as elsewhere:
        memory, documents = one.memory(), one.documents()
        memory.remember("der erste Satz", id="a")
        log.before_turn = lambda: elsewhere.memory().reindex(profile="snowball:german")
        if write == "remember":
            memory.remember("viele Häuser")
        elif write == "correct":
            memory.correct("viele Häuser", id="a")
        elif write == "put":
            documents.put("d", "viele Häuser")
        else:
            memory.remember_many(["viele Häuser", NewFact(text="mehr Häuser", subject="s")])
        assert memory.recall("Haus") or documents.search("Haus")
        assert elsewhere.memory().recall("Haus") or elsewhere.documents().search("Haus")
        assert one.verify().ok


@settings(max_examples=10, deadline=None)
@given(st.lists(st.sampled_from(["english.v1", "snowball:german", "unicode.v1"]), min_size=2, max_size=6))
def test_writers_and_readers_go_on_while_a_space_is_reindexed_again_and_again(profiles):
    with Store.open(":memory:") as store:
        memory = store.memory()
        memory.remember("das erste Haus")
        stop, failures = threading.Event(), []

        def work(who):
            try:
                for n in range(1000):
                    if stop.is_set():
                        return
                    memory.remember(f"die Häuser {who} {n}")
                    assert memory.recall(f"{n}")
            except Busy:  # overtaken by one reindexing after another, which is what this one does
                return
            except BaseException as error:  # noqa: BLE001 - looked at by the test
                failures.append(error)

        threads = [threading.Thread(target=work, args=(who,)) for who in range(2)]
        for thread in threads:
            thread.start()
        for profile in profiles:
            memory.reindex(profile=profile)
        stop.set()
        for thread in threads:
            thread.join()
        assert failures == []
        assert store.verify().ok
        count = memory.list().total
        memory.reindex(profile="snowball:german")
        assert len(memory.recall("Haus", k=1000)) == min(count, 1000)
