"""Texts that are told again are merged where the configuration says so, and facts are merged by hand."""

from __future__ import annotations

import io

import pytest

from perdure import Conflict, InvalidRequest, MemoryConfig, NotFound
from perdure.memory.config import Limits
from scenarios.stores import EVERY_BACKEND

TEXT = "Ana keeps the blue bicycle in the cellar"
AGAIN = "  ana keeps the BLUE bicycle\tin the cellar "
OTHER = "Ana keeps the blue bicycle in the old cellar"


@pytest.fixture(params=EVERY_BACKEND)
def backend(request):
    return str(request.param)


@pytest.fixture
def config():
    return MemoryConfig(dedup="merge-exact")


@pytest.fixture
def merging(store, config):
    return store.memory(config=config)


def seen(memory, id_):
    fact = memory.get(id_)
    return (
        fact.tags,
        fact.importance,
        fact.kind,
        fact.pinned,
        fact.metadata,
        fact.merged and fact.merged.count,
    )


def test_without_the_setting_every_telling_is_a_fact_of_its_own(memory):
    first, second = memory.remember(TEXT), memory.remember(AGAIN)
    assert (first.outcome, second.outcome) == ("created", "created")
    assert memory.list().total == 2


def test_a_text_that_differs_by_case_and_white_space_is_merged_into_the_fact(merging, clock):
    first = merging.remember(
        TEXT, tags=["home"], importance=0.4, metadata={"supersedes": "x, y", "room": "cellar"}
    )
    clock.advance(milliseconds=5)
    second = merging.remember(
        AGAIN,
        tags=["bike"],
        importance=0.7,
        kind="semantic",
        pinned=True,
        metadata={"supersedes": "y,z", "room": "attic", "floor": -1, "note": " "},
    )
    assert (second.outcome, second.created, second.id) == ("merged", False, first.id)
    assert (second.status, second.ingest_time) == ("current", first.ingest_time)
    metadata = {"supersedes": "x,y,z", "room": "cellar", "floor": -1}
    assert seen(merging, first.id) == (("bike", "home"), 0.7, "semantic", True, metadata, 1)
    assert merging.get(first.id).text == TEXT
    assert merging.get(first.id).merged.last_at.microsecond == 5_000
    assert merging.list().total == 1


def test_filters_and_tags_find_what_came_by_a_merge(merging):
    first = merging.remember(TEXT, metadata={"tools": ["saw"], "team": "a"})
    merging.remember(AGAIN, tags=["bike"], metadata={"tools": ["axe"], "shift": 2})
    for found in (
        merging.recall("bicycle", filter={"shift": 2}),
        merging.recall("bicycle", filter={"team": "a"}),
        merging.recall("bicycle", tags=["bike"]),
        merging.list(filter={"tools": ["saw", "axe"]}).items,
    ):
        assert [one.id for one in found] == [first.id]
    assert merging.list(filter={"tools": ["saw"]}).total == 0


def test_a_telling_that_was_merged_before_changes_nothing(merging, clock):
    first = merging.remember(TEXT)
    merging.remember(AGAIN, tags=["bike"])
    merging.annotate(first.id, tags=[])
    before = merging.get(first.id), merging.changes().items
    clock.advance(milliseconds=5)
    assert merging.remember(AGAIN, tags=["bike"]).outcome == "merged"
    assert merging.remember(TEXT).outcome == "existing"
    assert (merging.get(first.id), merging.changes().items) == before


def test_the_same_text_with_other_annotations_merges_and_is_no_conflict(merging):
    first = merging.remember(TEXT, tags=["a"], importance=0.2)
    second = merging.remember(TEXT, tags=["b"], importance=0.1)
    assert (second.outcome, second.id) == ("merged", first.id)
    assert seen(merging, first.id)[:2] == (("a", "b"), 0.2)
    third = merging.remember(TEXT, tags=["c"], importance=0.9, metadata={"aliases": "bike"})
    assert third.outcome == "merged"
    assert seen(merging, first.id) == (("a", "b", "c"), 0.9, None, False, {"aliases": "bike"}, 2)


def test_the_stronger_kind_stays(merging):
    first = merging.remember(TEXT, kind="episodic")
    for kind, expected in (("working", "working"), ("procedural", "procedural"), ("semantic", "procedural")):
        merging.remember(TEXT, kind=kind)
        assert merging.get(first.id).kind == expected


@pytest.mark.parametrize(
    "told",
    [
        {"text": OTHER},
        {"text": TEXT + "."},
        {"text": TEXT, "id": "mine"},
        {"text": TEXT, "subject": "ana/bike"},
        {"text": TEXT, "valid_from": "2020-01-01"},
        {"text": TEXT, "valid_to": "2030-01-01"},
        {"text": TEXT, "event_time": "2025-05-05"},
        {"text": TEXT, "entities": ["Ana"]},
        {"text": TEXT, "supersedes": ["old"]},
        {"text": TEXT, "reassert": True},
    ],
    ids=lambda told: " ".join(name for name in told),
)
def test_what_says_more_or_other_than_the_fact_is_stored_beside_it(merging, told):
    merging.remember("Ana keeps the blue bicycle in the shed", id="old")
    first = merging.remember(TEXT)
    second = merging.remember(**told)
    assert second.outcome == "created"
    assert second.id != first.id
    assert merging.get(first.id).merged is None


def test_short_texts_are_never_merged(merging):
    assert merging.remember("ana likes cold tea a lot").outcome == "created"  # 24 characters
    assert merging.remember("Ana likes cold tea a lot").outcome == "merged"
    assert merging.remember("ana likes cold tea a bit".replace("a bit", "lots")).outcome == "created"
    assert merging.remember("Ana likes cold tea lots").outcome == "created"  # 23


def test_opposite_sentences_stay_apart(merging):
    told = ["Use the blue bicycle on Sundays", "Do not use the blue bicycle on Sundays"]
    assert [merging.remember(text).outcome for text in told] == ["created", "created"]


@pytest.mark.parametrize(
    "how", ["ended", "ends later", "superseded", "superseded later", "hidden", "retracted"]
)
def test_a_fact_that_does_not_hold_from_now_on_takes_nothing_in(merging, clock, how):
    first = merging.remember(TEXT)
    clock.advance(milliseconds=10)
    match how:
        case "ended":
            merging.end(first.id)
        case "ends later":
            merging.end(first.id, at="2027-01-01")
        case "superseded":
            merging.remember("Ana sold it", supersedes=[first.id])
        case "superseded later":
            merging.remember("Ana sells it", supersedes=[first.id], valid_from="2027-01-01")
        case "hidden":
            merging.forget(ids=[first.id], soft=True)
        case _:
            merging.retract(first.id)
    assert merging.remember(AGAIN).outcome == "created"


def test_one_sentence_with_two_intervals_stays_two_facts(merging):
    told = [
        {"text": "Bo works at Acme in the city", "valid_from": "2018-01-01", "valid_to": "2020-01-01"},
        {"text": "Bo works at Initech in the city", "valid_from": "2020-01-01", "valid_to": "2023-01-01"},
        {"text": "Bo works at Acme in the city", "valid_from": "2023-01-01"},
    ]
    outcomes = [merging.remember(**one, subject="bo/job").outcome for one in (*told, told[2])]
    assert outcomes == ["created", "created", "created", "existing"]
    found = [
        [f.text for f in merging.list(as_of=f"{year}-06-01", status="current").items]
        for year in (2019, 2021, 2024)
    ]
    assert found == [[told[0]["text"]], [told[1]["text"]], [told[2]["text"]]]


def test_members_of_a_batch_merge_into_earlier_ones(merging):
    replies = merging.remember_many([TEXT, {"text": AGAIN, "tags": ["bike"]}, OTHER, TEXT])
    assert [reply.outcome for reply in replies] == ["created", "merged", "created", "existing"]
    assert replies[0].id == replies[1].id
    assert merging.get(replies[0].id).tags == ("bike",)


def test_a_key_replays_the_answer_of_a_merge(merging):
    merging.remember(TEXT)
    first = merging.remember(AGAIN, tags=["a"], idempotency_key="key")
    assert merging.remember(AGAIN, tags=["a"], idempotency_key="key") == first
    with pytest.raises(Conflict, match="another request"):
        merging.remember(AGAIN, tags=["b"], idempotency_key="key")


def test_a_text_that_was_blocked_is_refused_before_it_is_merged(merging):
    merging.remember(TEXT, id="one")
    merging.remember(AGAIN, id="two")
    merging.forget(ids=["two"], block=True)
    with pytest.raises(Exception, match="forgotten with block=True"):
        merging.remember(TEXT.upper())


def test_annotating_the_metadata_replaces_what_came_by_merges(merging):
    first = merging.remember(TEXT, metadata={"a": 1})
    merging.remember(AGAIN, metadata={"b": 2})
    merging.annotate(first.id, metadata={"c": 3})
    assert seen(merging, first.id)[4:] == ({"c": 3}, 1)
    merging.remember(AGAIN, metadata={"d": 4})
    assert seen(merging, first.id)[4:] == ({"c": 3, "d": 4}, 2)


def test_tags_that_would_be_too_many_are_refused_by_name(merging):
    first = merging.remember(TEXT, tags=[f"tag {n}" for n in range(200)])
    with pytest.raises(InvalidRequest, match="256") as caught:
        merging.remember(AGAIN, tags=[f"more {n}" for n in range(100)])
    assert caught.value.field == "tags"
    assert merging.get(first.id).merged is None


def test_merges_survive_reopening_a_purge_and_a_move_to_another_store(store, open_store, config, backend):
    memory = store.memory(config=config)
    memory.remember("this goes away with the purge, wholly", id="gone")
    first = memory.remember(TEXT, metadata={"a": 1})
    memory.remember(AGAIN, tags=["bike"], metadata={"b": 2})
    before = memory.get(first.id)
    memory.forget(ids=["gone"])
    exported = b"".join(store.export_lines())
    store.purge()
    assert memory.get(first.id) == before
    assert memory.remember(AGAIN, tags=["bike"], metadata={"b": 2}).outcome == "merged"
    assert memory.get(first.id) == before
    if backend != "memory":
        store.close()
        store = open_store()
        assert store.memory(config=config).get(first.id) == before
        assert store.memory(config=config).remember(TEXT.title()).outcome == "merged"
        store.close()
        assert open_store().memory(config=config).get(first.id).merged.count == 2
    if backend != "journal":
        other = open_store("other")
        other.import_(io.BytesIO(exported))
        assert other.memory(config=config).get(first.id) == before
        assert b"".join(other.export_lines()).splitlines()[1:] == exported.splitlines()[1:]
        assert other.memory(config=config).remember(TEXT.upper()).outcome == "merged"


def test_what_was_merged_is_gone_with_the_fact(merging, store):
    first = merging.remember(TEXT)
    merging.remember(AGAIN, metadata={"marker": "xqz-7731"})
    merging.forget(ids=[first.id])
    assert "xqz-7731" not in repr(b"".join(store.export_lines()))
    assert merging.remember(AGAIN).outcome == "created"


# By hand


@pytest.fixture
def three(memory):
    memory.remember("Ana has a bicycle", id="a", tags=["home"], importance=0.4, metadata={"team": 1})
    memory.remember("Ana owns a bike", id="b", tags=["bike"], importance=0.9, metadata={"team": 2, "x": "y"})
    memory.remember("There is a bike of Ana's", id="c", kind="semantic", pinned=True)
    return memory


def test_the_fact_that_is_kept_unites_what_is_noted_and_supersedes_the_others(three, clock):
    clock.advance(milliseconds=5)
    done = three.merge("a", ["b", "c"])
    assert (done.kept, done.merged, done.dry_run) == ("a", ("b", "c"), False)
    assert seen(three, "a") == (("bike", "home"), 0.9, "semantic", True, {"team": 1, "x": "y"}, 2)
    assert (done.tags, done.importance, done.metadata) == (("bike", "home"), 0.9, {"team": 1, "x": "y"})
    assert [three.get(id_).status for id_ in "abc"] == ["current", "superseded", "superseded"]
    assert three.get("a").supersedes == ("b", "c")
    assert {fact.id for fact in three.history("b")} == {"a", "b", "c"}
    assert three.get("b").text == "Ana owns a bike"


def test_what_was_known_before_a_merge_stays_known(three, clock):
    then = clock.now()
    clock.advance(milliseconds=5)
    three.merge("a", ["b"])
    assert three.get("b", known_at=then).status == "current"


def test_a_preview_of_a_merge_changes_nothing_and_says_what_would_be(three):
    before = three.list(), three.changes()
    preview = three.merge("a", ["c", "b"], dry_run=True)
    assert (three.list(), three.changes()) == before
    done = three.merge("a", ["b", "c"])
    assert (preview.merged, preview.metadata, preview.tags) == (done.merged, done.metadata, done.tags)
    assert preview.dry_run


def test_a_merge_is_one_transaction(three):
    before = three.list(), three.changes()
    with pytest.raises(NotFound):
        three.merge("a", ["b", "nobody"])
    assert (three.list(), three.changes()) == before


def test_a_repeated_merge_changes_nothing(three):
    three.merge("a", ["b", "c"])
    before = three.get("a"), three.changes()
    assert three.merge("a", ["b", "c"]).merged == ()
    assert (three.get("a"), three.changes()) == before


def test_a_key_replays_a_merge(three):
    first = three.merge("a", ["b"], idempotency_key="key")
    assert three.merge("a", ["b"], idempotency_key="key") == first
    with pytest.raises(Conflict):
        three.merge("a", ["c"], idempotency_key="key")


@pytest.mark.parametrize(
    ("keep", "ids", "kind", "field", "words"),
    [
        ("nobody", ["a"], NotFound, "keep", "no fact"),
        ("a", ["nobody"], NotFound, "ids", "no fact"),
        ("a", [], InvalidRequest, "ids", "empty"),
        ("a", ["a"], InvalidRequest, "ids", "keep itself"),
        ("a", "b", InvalidRequest, "ids", "list"),
        ("old", ["a"], InvalidRequest, "keep", "expired"),
        ("a", ["old"], InvalidRequest, "ids", "expired"),
        ("a", ["next"], InvalidRequest, "ids", "not-yet-valid"),
        ("a", ["document"], NotFound, "ids", "no fact"),
        ("a", ["hidden"], NotFound, "ids", "hidden"),
        ("", ["a"], InvalidRequest, "keep", "1 to 256"),
    ],
)
def test_what_cannot_be_merged_is_told_by_name(three, store, keep, ids, kind, field, words):
    three.remember("Ana had a car", id="old", valid_to="2020-01-01")
    three.remember("Ana gets a car", id="next", valid_from="2030-01-01")
    three.remember("Ana had a boat", id="hidden")
    three.forget(ids=["hidden"], soft=True)
    store.documents().put("document", "a longer text")
    with pytest.raises(kind, match=words) as caught:
        three.merge(keep, ids)
    assert caught.value.field == field


@pytest.mark.parametrize("place", [0, 1, 2])
@pytest.mark.parametrize(
    ("wrong", "kind"), [("nobody", NotFound), ("old", InvalidRequest), ("keep", InvalidRequest)]
)
def test_the_one_of_several_ids_that_cannot_be_merged_is_told_by_its_place(store, place, wrong, kind):
    memory = store.memory()
    for id_ in ("keep", "a", "b"):
        memory.remember(f"Ana has {id_}", id=id_)
    memory.remember("Ana had a car", id="old", valid_to="2020-01-01")
    ids = ["a", "b"]
    ids.insert(place, wrong)
    with pytest.raises(kind) as caught:
        memory.merge("keep", ids)
    assert str(caught.value).startswith(f"ids[{place}] ")
    assert (caught.value.field, caught.value.details["place"]) == ("ids", f"ids[{place}]")


def test_a_fact_that_is_to_supersede_the_kept_one_is_not_merged_into_it(three):
    three.remember("Ana sells it", id="later", event_time="2027-01-01", supersedes=["a"])
    with pytest.raises(InvalidRequest, match="is to supersede it"):
        three.merge("a", ["later"])


def test_a_kept_fact_that_takes_effect_later_supersedes_the_others_from_now_on(three, clock):
    three.remember("Ana will have a bike", id="ahead", event_time="2030-01-01")
    three.merge("ahead", ["a"])
    assert three.get("a").status == "superseded"


def test_forgetting_the_kept_fact_brings_the_others_back(three):
    three.merge("a", ["b"])
    three.forget(ids=["a"])
    assert three.get("b").status == "current"


def test_merging_by_hand_keeps_what_was_merged_before(merging):
    first = merging.remember(TEXT)
    merging.remember(AGAIN, tags=["x"])
    merging.remember(OTHER, id="other")
    done = merging.merge("other", [first.id])
    assert merging.get("other").merged.count == 2
    assert done.tags == ("x",)


def test_observers_hear_nothing_of_what_is_merged_and_of_no_preview(store):
    class Notes(list):
        def remembered(self, fact):
            self.append(("remembered", fact.id))

        def forgotten(self, ids):
            self.append(("forgotten", ids))

    notes = Notes()
    memory = store.memory(config=MemoryConfig(dedup="merge-exact", observers=(notes,), limits=Limits()))
    memory.remember(TEXT, id="a")
    memory.remember(OTHER, id="b")
    notes.clear()
    memory.remember(AGAIN)
    memory.merge("a", ["b"], dry_run=True)
    memory.merge("a", ["b"])
    assert notes == []


def test_the_repr_of_a_merge_shows_no_text(three):
    assert "team" not in repr(three.merge("a", ["b"]))
