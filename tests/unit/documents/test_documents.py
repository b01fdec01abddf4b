"""What documents do, on each kind of store."""

from __future__ import annotations

import threading
import tracemalloc

import pytest

from perdure import Blocked, Conflict, InvalidRequest, ManualClock, NotFound, QueryLimit, Store
from perdure.memory.config import Limits, MemoryConfig
from perdure.model.document import Put

LONG = "filler " * 5_000 + "needle " * 2 + "filler " * 5_000 + "needle at the end"


# Putting


def test_a_document_is_read_back_byte_for_byte(documents):
    text, metadata = "  Two\r\nlines, ünïcode \U0001f600 \n", {"n": 1.0, "deep": {"list": [1, None, True]}}
    assert documents.put("a", text, metadata=metadata) == Put("a", "created", 1)
    found = documents.get("a")
    assert (found.id, found.text, found.metadata, found.version) == ("a", text, metadata, 1)
    assert documents.has("a")


def test_a_replacement_raises_the_version_and_leaves_nothing_of_the_old_text(documents):
    documents.put("a", "the old words", metadata={"old": 1})
    assert documents.put("a", "the new words") == Put("a", "replaced", 2)
    assert documents.get("a").metadata == {}
    assert documents.search("old") == []
    assert documents.list(filter={"old": 1}).total == 0
    assert documents.index.document_frequency("old") == 0
    assert [hit.id for hit in documents.search("new")] == ["a"]


def test_the_same_again_is_existing_and_writes_nothing(store, documents):
    documents.put("a", "some words", metadata={"n": 1, "m": [2]})
    records = store.stats().records
    assert documents.put("a", "some words", metadata={"m": [2.0], "n": 1.0}) == Put("a", "existing", 1)
    assert store.stats().records == records


@pytest.mark.parametrize(
    ("text", "metadata"),
    [("some words ", {"n": 1}), ("some words", {"n": 2}), ("some words", None), ("some words", {"n": True})],
)
def test_another_text_or_other_metadata_is_a_replacement(documents, text, metadata):
    documents.put("a", "some words", metadata={"n": 1})
    assert documents.put("a", text, metadata=metadata).outcome == "replaced"


def test_a_put_goes_ahead_only_at_the_version_it_names(documents):
    assert documents.put("a", "one", if_version=0).version == 1
    assert documents.put("a", "two", if_version=1).version == 2
    for wrong in (0, 1, 3):
        with pytest.raises(Conflict) as refused:
            documents.put("a", "three", if_version=wrong)
        assert (refused.value.kind, refused.value.field) == ("version", "if_version")
        assert refused.value.details["current"] == 2
    with pytest.raises(Conflict) as refused:
        documents.put("b", "one", if_version=1)
    assert refused.value.details["current"] == 0
    assert documents.get("a").text == "two"
    assert not documents.has("b")


def test_a_repeated_put_at_an_old_version_is_a_conflict_even_with_the_same_text(documents):
    documents.put("a", "one", if_version=0)
    with pytest.raises(Conflict):
        documents.put("a", "one", if_version=0)


def test_a_forgotten_document_begins_at_version_1_again(documents):
    documents.put("a", "one")
    documents.put("a", "two")
    documents.delete("a")
    assert documents.put("a", "three") == Put("a", "created", 1)


@pytest.mark.parametrize(
    ("arguments", "field"),
    [
        ({"id": "", "text": "x"}, "id"),
        ({"id": "perdure:x", "text": "x"}, "id"),
        ({"id": "a", "text": " \n "}, "text"),
        ({"id": "a", "text": "x" * (1 << 20) + "y"}, "text"),
        ({"id": "a", "text": "\ud800"}, "text"),
        ({"id": "a", "text": b"x"}, "text"),
        ({"id": "a", "text": "x", "metadata": {"perdure": 1}}, "metadata"),
        ({"id": "a", "text": "x", "metadata": [1]}, "metadata"),
        ({"id": "a", "text": "x", "if_version": -1}, "if_version"),
        ({"id": "a", "text": "x", "if_version": True}, "if_version"),
        ({"id": "a", "text": "x", "idempotency_key": ""}, "idempotency_key"),
    ],
)
def test_a_malformed_put_is_refused_by_field_and_stores_nothing(store, documents, arguments, field):
    with pytest.raises(InvalidRequest) as refused:
        documents.put(**arguments)
    assert refused.value.field == field
    assert store.stats().records == 0


def test_a_text_of_exactly_a_mebibyte_is_stored_whole(documents):
    text = ("0123456 " * (1 << 17))[: 1 << 20]
    documents.put("a", text)
    assert documents.get("a").text == text
    assert documents.index.unit_count > 16


def test_a_retry_under_a_key_gives_the_first_answer(store, documents):
    first = documents.put("a", "one", if_version=0, idempotency_key="k")
    records = store.stats().records
    assert documents.put("a", "one", if_version=0, idempotency_key="k") == first
    assert store.stats().records == records
    with pytest.raises(Conflict) as refused:
        documents.put("a", "two", if_version=0, idempotency_key="k")
    assert refused.value.kind == "idempotency"


@pytest.mark.parametrize("change", [{"metadata": {"n": 1}}, {"if_version": None}, {"id": "b"}])
def test_a_key_stands_for_the_whole_request(documents, change):
    request = {"id": "a", "text": "one", "if_version": 0, "idempotency_key": "k"}
    documents.put(**request)
    with pytest.raises(Conflict) as refused:
        documents.put(**{**request, **change})
    assert refused.value.kind == "idempotency"


def test_a_retry_after_the_document_was_replaced_or_deleted_says_so(documents):
    documents.put("a", "one", idempotency_key="k1")
    documents.put("a", "two", idempotency_key="k2")
    documents.put("b", "one", idempotency_key="k3")
    documents.delete("b")
    for id_, key in (("a", "k1"), ("b", "k3")):
        with pytest.raises(NotFound):
            documents.put(id_, "one", idempotency_key=key)
    assert documents.put("a", "two", idempotency_key="k2") == Put("a", "replaced", 2)


def test_keys_expire_after_the_configured_days(store, clock):
    documents = store.documents(config=MemoryConfig(receipt_days=1))
    documents.put("a", "one", idempotency_key="k")
    clock.advance(86_400_001)
    assert documents.put("a", "two", idempotency_key="k").outcome == "replaced"


def test_what_was_forgotten_with_a_block_is_refused_as_a_document_too(documents, memory):
    documents.put("a", "secret words")
    memory.forget(ids=["a"], block=True)
    with pytest.raises(Blocked):
        documents.put("a", "other words")
    with pytest.raises(Blocked):
        documents.put("b", "Secret  Words")
    assert documents.put("b", "other words").outcome == "created"


def test_of_writers_that_all_expect_the_same_version_one_wins(documents):
    documents.put("a", "start")
    outcomes: list[str] = []

    def write(index: int) -> None:
        try:
            documents.put("a", f"text {index}", if_version=1)
            outcomes.append("won")
        except Conflict:
            outcomes.append("lost")

    threads = [threading.Thread(target=write, args=(index,)) for index in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(outcomes) == ["lost"] * 5 + ["won"]
    assert documents.get("a").version == 2


def test_writers_at_once_lose_no_version_and_leave_one_text(documents):
    outcomes: list[str] = []

    def write(writer: int) -> None:
        for turn in range(5):
            outcomes.append(documents.put("shared", f"text {writer} {turn}").outcome)
            documents.put(f"own {writer}", f"own text {turn}", idempotency_key=f"{writer} {turn}")
            outcomes.append("deleted" if turn == 2 and documents.delete(f"own {writer}") else "")

    threads = [threading.Thread(target=write, args=(index,)) for index in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (outcomes.count("created"), outcomes.count("replaced"), outcomes.count("deleted")) == (1, 19, 4)
    assert documents.get("shared").version == 20
    assert [documents.get(f"own {writer}").version for writer in range(4)] == [2] * 4
    assert documents.index.unit_count == 5
    assert documents.list().total == 5


# Facts beside documents


def test_a_fact_is_seen_as_a_document_of_version_1_also_when_it_is_superseded_or_over(documents, memory):
    memory.remember("Alice lives in Paris", id="old", metadata={"n": 1})
    memory.remember("Alice lives in Berlin", id="new", supersedes=["old"])
    memory.remember("Alice lived in Rome", id="past", valid_to=500)
    memory.retract("new")
    assert documents.get("old").version == 1
    assert {hit.id for hit in documents.search("Alice")} == {"old", "new", "past"}
    assert [item.id for item in documents.list().items] == ["new", "old", "past"]
    assert [item.id for item in documents.list(filter={"n": 1}).items] == ["old"]


def test_a_fact_keeps_its_id_unless_facts_may_be_replaced(documents, replacing, memory):
    memory.remember("Alice lives in Paris", id="a")
    with pytest.raises(Conflict) as refused:
        documents.put("a", "Alice lives in Paris")
    assert refused.value.kind == "id"
    assert replacing.put("a", "a text", if_version=1) == Put("a", "replaced", 2)
    assert memory.get("a").text == "a text"
    assert memory.list().total == 0


def test_replacing_or_deleting_a_fact_brings_back_no_older_version(replacing, memory):
    for first, middle, last in (("a1", "a2", "a3"), ("b1", "b2", "b3")):
        memory.remember(f"{first} text", id=first)
        memory.remember(f"{middle} text", id=middle, supersedes=[first])
        memory.remember(f"{last} text", id=last, supersedes=[middle])
    replacing.put("a2", "a plain document")
    replacing.delete("b2")
    assert memory.get("a1").superseded_by == ("a3",)
    assert memory.get("b1").superseded_by == ("b3",)


def test_the_id_of_a_document_is_not_free_for_a_fact(documents, memory):
    documents.put("a", "some words")
    with pytest.raises(Conflict):
        memory.remember("some words", id="a")


def test_a_document_is_no_fact_and_has_no_history(documents, memory):
    documents.put("a", "some words")
    for change in (memory.end, memory.retract):
        with pytest.raises(NotFound):
            change("a")
    with pytest.raises(NotFound):
        memory.annotate("a", kind="semantic")
    with pytest.raises(InvalidRequest):
        memory.remember("other words", supersedes=["a"])


def test_annotated_metadata_is_what_documents_show_and_filter_by(documents, memory):
    memory.remember("Alice lives in Paris", id="a", metadata={"n": 1})
    memory.annotate("a", metadata={"n": 2})
    assert documents.get("a").metadata == {"n": 2}
    assert documents.search("Alice", filter={"n": 1}) == []
    assert documents.search("Alice", filter={"n": 2})[0].metadata == {"n": 2}


def test_a_hidden_document_is_not_seen_but_holds_its_id(documents, memory):
    documents.put("a", LONG)
    memory.forget(ids=["a"], soft=True)
    assert not documents.has("a")
    assert documents.get("a") is None
    assert documents.search("needle") == []
    assert documents.list().total == 0
    assert documents.index.unit_count == 0
    assert documents.index.length("a") is None
    with pytest.raises(Conflict, match="hidden"):
        documents.put("a", LONG, if_version=0)
    memory.restore(["a"])
    assert documents.get("a").text == LONG
    assert documents.search("needle")[0].id == "a"


def test_putting_a_hidden_document_replaces_it_so_that_it_is_there_afterwards(documents, memory):
    documents.put("a", "some words")
    memory.forget(ids=["a"], soft=True)
    assert documents.put("a", "some words") == Put("a", "replaced", 2)
    assert documents.get("a").text == "some words"
    assert memory.restore(["a"]) == ()


# Deleting


def test_delete_erases_once_and_says_whether_there_was_something(documents):
    documents.put("a", LONG)
    assert documents.delete("a").deleted is True
    assert documents.delete("a").deleted is False
    assert not documents.has("a")
    assert documents.search("needle") == []
    assert (documents.index.unit_count, documents.index.total_length, documents.index.terms()) == (0, 0, 0)


def test_delete_goes_ahead_only_at_the_version_it_names(documents, memory):
    documents.put("a", "one")
    memory.remember("a fact", id="f")
    for wrong in (0, 2):
        with pytest.raises(Conflict) as refused:
            documents.delete("a", if_version=wrong)
        assert refused.value.details["current"] == 1
    assert documents.delete("a", if_version=1)
    assert documents.delete("f", if_version=1)
    assert documents.delete("a", if_version=0).deleted is False
    with pytest.raises(Conflict):
        documents.delete("a", if_version=1)


def test_a_retried_delete_gives_the_first_answer_and_erases_nothing_anew(store, documents):
    documents.put("a", "one")
    assert documents.delete("a", idempotency_key="k").deleted is True
    documents.put("a", "two")
    records = store.stats().records
    assert documents.delete("a", idempotency_key="k").deleted is True
    assert store.stats().records == records
    assert documents.get("a").text == "two"
    assert documents.delete("b", idempotency_key="none").deleted is False
    documents.put("b", "one")
    assert documents.delete("b", idempotency_key="none").deleted is False
    assert documents.has("b")
    assert documents.delete("b", idempotency_key="another")


def test_a_key_of_a_delete_stands_for_one_request(documents):
    documents.put("a", "one")
    assert documents.delete("a", if_version=1, idempotency_key="k")
    for id_, version in (("b", 1), ("a", None), ("a", 0)):
        with pytest.raises(Conflict) as refused:
            documents.delete(id_, if_version=version, idempotency_key="k")
        assert (refused.value.kind, refused.value.field) == ("idempotency", "idempotency_key")
    assert documents.put("a", "one", idempotency_key="k").outcome == "created"  # another operation


def test_a_key_of_a_delete_that_was_refused_is_still_unused(documents):
    documents.put("a", "one")
    with pytest.raises(Conflict):
        documents.delete("a", if_version=2, idempotency_key="k")
    assert documents.delete("a", if_version=1, idempotency_key="k")
    for key in ("", "k" * 257, 5):
        with pytest.raises(InvalidRequest) as refused:
            documents.delete("a", idempotency_key=key)
        assert refused.value.field == "idempotency_key"


def test_a_search_that_names_no_number_gives_at_most_ten(documents):
    for n in range(12):
        documents.put(f"{n}", "pine")
    assert documents.search("pine", k=None) == documents.search("pine") == documents.search("pine", k=10)
    assert len(documents.search("pine")) == 10


class Text(str):
    """A text that is not exactly a str."""

    __slots__ = ()


def test_texts_of_derived_types_are_taken_as_plain_ones(documents):
    reply = documents.put(
        Text("a"), Text("some words"), metadata={Text("k"): Text("v")}, idempotency_key=Text("k")
    )
    assert documents.put("a", "some words", metadata={"k": "v"}, idempotency_key="k") == reply
    found = documents.get(Text("a"))
    assert [type(value) for value in (reply.id, found.id, found.text)] == [str, str, str]
    assert documents.search(Text("words"), filter={Text("k"): Text("v")})[0].id == "a"
    assert documents.index.terms_of(Text("a"))
    assert documents.index.document_frequency(Text("word")) == 1
    assert documents.has(Text("a"))
    assert documents.delete(Text("a"), idempotency_key=Text("d"))


def test_a_blocked_text_stays_blocked_with_characters_that_nobody_sees(documents, memory):
    documents.put("a", "the secret word")
    memory.forget(ids=["a"], block=True)
    for hidden in ("\u00ad", "\u200b", "\u200d", "\u2060", "\ufeff", "\u202e", "\x00"):
        with pytest.raises(Blocked):
            documents.put("b", f"the sec{hidden}ret word{hidden}")
        with pytest.raises(Blocked):
            memory.remember(f"{hidden}the s{hidden}ecret word")
        memory.remember(f"another sec{hidden}ret", id="s")
        assert memory.forget(containing="secret").forgotten == ("s",)
        memory.remember("another secret", id="s")
        assert memory.forget(containing=f"sec{hidden}ret").forgotten == ("s",)


def test_delete_erases_a_hidden_document_too(documents, memory):
    documents.put("a", "one")
    memory.forget(ids=["a"], soft=True)
    assert documents.delete("a")
    assert memory.restore(["a"]) == ()


@pytest.mark.parametrize("erase", ["replace", "delete"])
def test_no_file_of_the_store_holds_a_text_that_was_replaced_or_deleted(tmp_path, erase):
    canary = "xqzcanary7731"
    with Store.open(tmp_path / "s", clock=ManualClock(0), durability="normal") as store:
        documents = store.documents()
        documents.put("a", f"{canary} " + LONG, metadata={canary: canary}, idempotency_key="k")
        if erase == "replace":
            documents.put("a", "other words")
        else:
            documents.delete("a")
        held = [
            path for path in tmp_path.rglob("*") if path.is_file() and canary.encode() in path.read_bytes()
        ]
        assert held == []


# Searching


def test_a_document_counts_once_and_shows_its_best_unit(documents):
    documents.put("long", LONG)
    documents.put("short", "a needle in a short text")
    hits = documents.search("needle", k=2)
    assert {hit.id for hit in hits} == {"short", "long"}
    long = next(hit for hit in hits if hit.id == "long")
    assert long.unit == 1
    assert long.text.count("needle") == 2
    assert "".join(documents.get("long").text.partition(long.text)) == LONG
    assert next(hit for hit in hits if hit.id == "short").unit == 0


def test_of_equally_good_units_the_first_is_shown_and_of_equally_good_documents_the_first_put(documents):
    same = "pine " * 4_096 + "pine " * 4_096
    documents.put("z", same)
    documents.put("a", same)
    hits = documents.search("pine")
    assert [(hit.id, hit.unit) for hit in hits] == [("z", 0), ("a", 0)]
    assert hits[0].score == hits[1].score


def test_k_counts_documents_however_many_units_match(documents):
    for index in range(5):
        documents.put(f"d{index}", "pine " * 4_096 * 3)
    assert [hit.id for hit in documents.search("pine", k=4)] == ["d0", "d1", "d2", "d3"]


def test_a_filter_narrows_the_search_and_changes_no_score(documents):
    documents.put("a", "pine oak", metadata={"team": "x", "n": 1})
    documents.put("b", "pine pine", metadata={"team": "y"})
    documents.put("c", LONG + " pine", metadata={"team": "x"})
    scores = {hit.id: hit.score for hit in documents.search("pine")}
    found = {hit.id: hit.score for hit in documents.search("pine", filter={"team": "x"})}
    assert found == {id_: scores[id_] for id_ in ("a", "c")}


@pytest.mark.parametrize(
    ("arguments", "field"),
    [
        ({"query": "  "}, "query"),
        ({"query": "x", "k": 0}, "k"),
        ({"query": "x", "k": 1_001}, "k"),
        ({"query": "x", "filter": {}}, "filter"),
        ({"query": "x", "filter": {"n": {"$near": 1}}}, "filter"),
        ({"query": "x" * 65_537}, "query"),
    ],
)
def test_a_malformed_question_is_refused_by_field(documents, arguments, field):
    with pytest.raises(InvalidRequest) as refused:
        documents.search(**arguments)
    assert refused.value.field == field


def test_a_search_beyond_its_budget_is_refused_and_never_cut_short(store):
    documents = store.documents(config=MemoryConfig(limits=Limits(work=2)))
    for index in range(20):
        documents.put(f"d{index}", f"pine {index}")
    with pytest.raises(QueryLimit):
        documents.search("pine")


# Listing


def test_pages_go_through_all_documents_by_id(documents):
    ids = ["b", "a", "é", "Z", "10", "9", "字"]
    for id_ in ids:
        documents.put(id_, f"text {id_}")
    seen, cursor = [], None
    while True:
        page = documents.list(limit=3, cursor=cursor)
        assert page.total == len(ids)
        seen += [item.id for item in page.items]
        assert page.has_more == (page.cursor is not None)
        if not page.has_more:
            break
        cursor = page.cursor
    assert seen == sorted(ids)


def test_a_listing_goes_on_past_documents_that_are_put_or_replaced_between_its_pages(documents):
    for id_ in "bdf":
        documents.put(id_, "text")
    page = documents.list(limit=2)
    documents.put("d", "another text")
    documents.put("a", "too late")
    documents.put("e", "in time")
    assert [item.id for item in documents.list(limit=5, cursor=page.cursor).items] == ["e", "f"]


def test_a_cursor_whose_document_is_gone_or_that_belongs_elsewhere_is_refused(documents, store):
    for id_ in "abc":
        documents.put(id_, "text", metadata={"n": 1})
    cursor = documents.list(limit=1).cursor
    for arguments in ({"filter": {"n": 1}, "cursor": cursor}, {"cursor": "nonsense"}, {"cursor": 5}):
        with pytest.raises(InvalidRequest):
            documents.list(**arguments)
    with pytest.raises(InvalidRequest):
        store.documents(scope="elsewhere").list(cursor=cursor)
    documents.delete("a")
    with pytest.raises(Conflict, match="start over"):
        documents.list(cursor=cursor)


def test_a_cursor_shows_no_id(documents):
    for id_ in ("canary-one", "canary-two"):
        documents.put(id_, "text")
    assert "canary" not in documents.list(limit=1).cursor


@pytest.mark.parametrize("limit", [0, 1_001, True])
def test_a_listing_has_a_size_within_its_limits(documents, limit):
    with pytest.raises(InvalidRequest) as refused:
        documents.list(limit=limit)
    assert refused.value.field == "limit"


# The index, and what others see


def test_the_index_counts_units_terms_and_lengths(documents, memory):
    documents.put("a", "pines and pine")
    memory.remember("one pine", id="f")
    documents.put("long", LONG)
    index = documents.index
    assert index.unit_count == 2 + 3  # the long one takes three
    assert index.document_frequency("pine") == 2
    assert index.document_frequency("absent") == 0
    assert index.length("a") == 3
    assert index.length("long") == 10_006
    assert index.length("absent") is None
    assert index.terms_of("a") == {"pine": 2, "and": 1}
    assert index.terms_of("absent") == {}
    assert index.total_length == 3 + 2 + 10_006
    assert index.terms() == len({"pine", "and", "one", "filler", "needl", "at", "the", "end"})


def test_documents_outlive_the_process_that_put_them(tmp_path):
    with Store.open(tmp_path / "s", clock=ManualClock(0), durability="normal") as store:
        store.documents().put("long", LONG, metadata={"n": 1})
        store.documents().put("long", LONG + " again", metadata={"n": 2})
        hits = store.documents().search("needle again")
    with Store.open(tmp_path / "s", clock=ManualClock(0), durability="normal") as store:
        documents = store.documents()
        assert documents.search("needle again") == hits
        assert documents.get("long").version == 2
        assert documents.get("long").text == LONG + " again"


def test_writing_and_reading_long_documents_does_not_keep_their_texts_in_memory(tmp_path):
    with Store.open(tmp_path / "s", clock=ManualClock(0), durability="normal") as store:
        documents, memory = store.documents(), store.memory()
        documents.put("warm", "up")
        tracemalloc.start()
        try:
            for index in range(40):
                documents.put(f"d{index}", f"pine{index} " + "x" * 250_000)
                assert documents.get(f"d{index}").text.endswith("x")
                assert memory.get(f"d{index}").text.endswith("x")
                assert documents.search(f"pine{index}")[0].unit == 0
            kept, _ = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
    assert kept < 2_000_000


def test_documents_of_one_space_are_not_seen_in_another(store):
    store.documents("alice").put("a", "pine")
    other = store.documents("bob")
    assert not other.has("a")
    assert other.search("pine") == []
    assert other.index.document_frequency("pine") == 0
