"""Scenarios are played in order on a memory, and what comes back is measured and explained."""

from __future__ import annotations

import json

import pytest

from perdure import ManualClock, MemoryConfig, Store
from perdure.errors import Conflict, InvalidRequest, NotFound
from perdure.evaluation import Trial, compare, comparison_object, read_scenario, run, run_object

LATEST = MemoryConfig(supersession="latest-by-subject")
PARIS = {"id": "paris", "text": "Alice lives in Paris", "subject": "home", "validFrom": "2020-01-01"}
BERLIN = {"id": "berlin", "text": "Alice lives in Berlin", "subject": "home", "validFrom": "2024-01-01"}
MOVE = [{"clock": "2020-02-01", "remember": PARIS}, {"clock": "2024-02-01", "remember": BERLIN}]


def told(*entries):
    return read_scenario(b"\n".join(json.dumps(entry).encode() for entry in entries), "trial.jsonl")


def asked(*entries, config=LATEST, **options):
    return run([told(*entries)], Trial(config, **options))


def test_the_clock_of_an_entry_is_when_it_is_recorded_and_asked():
    case = {"query": "where does Alice live"}
    answers = asked(
        MOVE[0],
        {**case, "clock": "2022-01-01", "expect": ["paris"]},
        MOVE[1],
        {**case, "expect": ["berlin"], "absent": ["paris"]},
        {**case, "options": {"asOf": "2023-01-01"}, "expect": ["paris"]},
        {**case, "options": {"knownAt": "2024-01-15"}, "expect": ["paris"]},
        {**case, "options": {"history": "all"}, "expect": ["paris", "berlin"]},
    )
    assert answers.means()["exact"] == 1
    assert answers.leaks == ()


def test_a_clock_that_is_never_set_stands_at_the_turn_of_the_millennium():
    found = asked(
        {"remember": {"id": "a", "text": "a lamp", "validFrom": "2000-01-01"}},
        {"remember": {"id": "b", "text": "a lamp too", "validFrom": 946_684_800_001}},
        {"query": "lamp", "expect": ["a"]},
    )
    assert found.means()["exact"] == 1


def test_every_operation_does_what_the_method_of_its_name_does():
    case = {"query": "kettle"}
    found = asked(
        {
            "remember": [
                {"id": name, "text": f"The kettle is {name}"} for name in ("blue", "red", "old", "new", "hot")
            ]
        },
        {"correct": {"id": "blue", "newText": "The kettle is navy", "newId": "navy"}},
        {"end": {"id": "old", "at": "2000-01-01"}},
        {"retract": {"id": "red"}},
        {"annotate": {"id": "new", "tags": ["kitchen"], "kind": None}},
        {**case, "expect": ["navy", "new", "hot"]},
        {**case, "options": {"tags": ["kitchen"]}, "expect": ["new"]},
        {"forget": {"ids": ["hot"], "soft": True}},
        {**case, "expect": ["navy", "new"], "absent": ["hot"]},
        {"restore": {"ids": ["hot"]}},
        {**case, "expect": ["navy", "new", "hot"]},
        {"forget": {"ids": ["hot", "new"]}},
        {**case, "expect": ["navy"], "absent": ["hot", "new"]},
    )
    assert found.means()["exact"] == 1


def test_each_scenario_has_a_store_of_its_own():
    first = told({"remember": {"id": "a", "text": "a lamp"}}, {"query": "lamp", "expect": ["a"]})
    second = told({"remember": {"id": "b", "text": "a lamp"}}, {"query": "lamp", "expect": ["b"]})
    assert run([first, second]).means()["exact"] == 1


def test_a_case_that_fails_is_explained_when_asked():
    found = asked(
        *MOVE,
        {"query": "Alice", "expect": ["paris"], "absent": ["berlin"]},
        {"forget": {"ids": ["paris"]}},
        {"query": "Alice", "expect": ["paris"]},
        why=True,
    )
    stale, gone = found.answers
    assert (stale.missed, stale.unwanted) == (("paris",), ("berlin",))
    assert [(why.id, why.expected, why.explanation.reason) for why in stale.reasons] == [
        ("paris", True, "not-current"),
        ("berlin", False, "returned"),
    ]
    assert [(why.id, why.explanation) for why in gone.reasons] == [("paris", None)]
    assert found.leaks == (stale,)


def test_options_of_a_trial_stand_where_a_case_gives_none():
    entries = [
        *MOVE,
        {"query": "Alice", "expect": ["berlin"]},
        {"query": "Alice", "options": {"k": 1}, "expect": ["berlin"]},
    ]
    found = asked(*entries, config=MemoryConfig(), options={"k": 2, "history": "all"})
    assert [len(answer.returned) for answer in found.answers] == [2, 1]


@pytest.mark.parametrize("field", ["expect", "absent"])
def test_an_id_that_no_fact_ever_had_is_a_mistake_of_the_case(field):
    with pytest.raises(
        InvalidRequest, match=rf"^trial\.jsonl, line 3: {field}\[1\] is an id that no fact had"
    ):
        asked(*MOVE, {"query": "Alice", field: ["paris", "pariss"]})


@pytest.mark.parametrize(
    ("entry", "error"),
    [
        ({"retract": {"id": "rome"}}, NotFound),
        ({"remember": {**PARIS, "text": "Alice lives elsewhere"}}, Conflict),
        ({"query": "Alice", "options": {"k": 0}, "expect": []}, InvalidRequest),
    ],
)
def test_what_a_memory_refuses_is_raised_with_the_place_of_the_entry(entry, error):
    with pytest.raises(error, match=r"^trial\.jsonl, line 3: ") as raised:
        asked(*MOVE, entry)
    assert raised.value.details["line"] == 3


def test_a_memory_that_is_given_is_told_and_asked_and_keeps_the_facts():
    clock = ManualClock("2020-01-01")
    with Store.open(":memory:", clock=clock) as store:
        memory = store.memory(config=LATEST)
        memory.remember("Alice plays the oboe", id="oboe")
        scenario = told(*MOVE, {"query": "Alice", "expect": ["oboe", "berlin"]})
        assert run([scenario], memory=memory, clock=clock).means()["exact"] == 1
        assert memory.get("berlin") is not None
        with pytest.raises(InvalidRequest, match="line 1: the entry sets the clock"):
            run([scenario], memory=memory)


def test_the_timer_is_asked_before_and_after_each_recall():
    ticks = iter(range(0, 100, 7))
    found = asked(*MOVE, {"query": "Alice", "expect": ["berlin"]}, timer=lambda: next(ticks))
    assert [answer.nanoseconds for answer in found.answers] == [7]


def test_progress_is_told_after_each_entry():
    seen = []
    run([told(*MOVE)], progress=lambda done, of: seen.append((done, of)))
    assert seen == [(1, 2), (2, 2)]


def test_a_comparison_pairs_the_cases_and_repeats_itself_exactly():
    entries = [*MOVE, *({"query": "Alice", "category": c, "expect": ["berlin"]} for c in ("x", "x", "y"))]
    first, second = asked(*entries), asked(*entries, config=MemoryConfig())
    differences = compare(first, second)
    assert differences == compare(first, second)
    by_name = {(one.category, one.metric): one for one in differences}
    whole = by_name[None, "exact"]
    assert (whole.cases, whole.first, whole.second, whole.difference, whole.low, whole.high) == (
        3,
        1,
        0,
        -1,
        -1,
        -1,
    )
    assert (by_name["x", "exact"].cases, by_name["y", "exact"].cases) == (2, 1)
    assert json.loads(json.dumps(comparison_object(differences)))[0]["category"] is None


def test_the_interval_holds_the_difference_and_is_wider_for_fewer_cases():
    def runs(count):
        cases = [{"query": "lamp" if n % 2 else "kettle", "expect": ["a"]} for n in range(count)]
        scenario = told(
            {"remember": {"id": "a", "text": "a lamp"}}, {"remember": {"id": "b", "text": "a kettle"}}, *cases
        )
        return run([scenario]), run([scenario], Trial(options={"minScore".replace("S", "_s"): 100}))

    widths = []
    for count in (10, 160):
        [recall] = [one for one in compare(*runs(count)) if one.metric == "R@10"]
        assert recall.low <= recall.difference <= recall.high <= 0
        widths.append(recall.high - recall.low)
    assert widths[0] > 2 * widths[1]


def test_runs_of_other_cases_cannot_be_compared():
    first = asked(*MOVE, {"query": "Alice", "expect": ["berlin"]})
    with pytest.raises(InvalidRequest, match="other cases"):
        compare(first, asked(*MOVE, {"query": "Paris", "expect": []}))


def test_the_object_of_a_run_is_json_and_names_what_failed_without_texts_unless_asked():
    found = asked(
        *MOVE, {"query": "Alice", "name": "stale", "expect": ["paris"], "absent": ["berlin"]}, why=True
    )
    plain = json.dumps(run_object(found))
    assert "Alice" not in plain
    [failure] = json.loads(plain)["failures"]
    assert (failure["line"], failure["name"], failure["missed"], failure["unwanted"]) == (
        3,
        "stale",
        ["paris"],
        ["berlin"],
    )
    explained = json.loads(json.dumps(run_object(found, why=True)))
    assert [why["explanation"]["reason"] for why in explained["failures"][0]["why"]] == [
        "not-current",
        "returned",
    ]


def test_facts_and_questions_may_bring_their_vectors():
    found = asked(
        {"remember": {"id": "car", "text": "She purchased an automobile", "embedding": [1, 0, 0.1]}},
        {"remember": {"id": "park", "text": "The car park is shut", "embedding": [0, 1, 0.1]}},
        {"query": "buying a car", "options": {"mode": "lexical", "k": 1}, "expect": ["park"]},
        {
            "query": "buying a car",
            "options": {"mode": "semantic", "embedding": [0.9, 0.1, 0], "k": 1},
            "expect": ["car"],
        },
        {"query": "", "options": {"embedding": [0.1, 0.9, 0]}, "expect": ["park", "car"], "ordered": True},
        {
            "query": "buying a car",
            "options": {"mode": "hybrid", "embedding": [0.9, 0.1, 0], "context": True},
            "expect": ["car", "park"],
        },
        config=MemoryConfig(),
    )
    assert found.means()["exact"] == 1


CASE = {"query": "where does Alice live", "expect": ["paris"]}


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"kk": 1}, "unknown field 'kk' of options"),
        ([("k", 1)], "options must be an object"),
        ({"as_of": "soon"}, r"options\.as_of is not an ISO 8601 time"),
    ],
)
def test_options_that_no_recall_has_are_refused_when_the_trial_is_made(options, said):
    with pytest.raises(InvalidRequest, match=said):
        Trial(options=options)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"k": 0}, "options: k must be 1 to 1000, got 0"),
        ({"mode": "meaning"}, "options: mode must be one of lexical, semantic, hybrid, got 'meaning'"),
        ({"mode": "semantic"}, "options: mode is semantic, which needs a vector"),
        ({"filter": {"$nope": 1}}, "options: filter"),
    ],
)
def test_a_wrong_option_of_the_trial_is_told_as_one_and_not_as_a_line_of_the_file(options, said):
    with pytest.raises(InvalidRequest) as caught:
        asked(MOVE[0], CASE, options=options)
    assert str(caught.value).startswith(said)
    assert caught.value.field == f"options.{next(iter(options))}"
    assert "line" not in caught.value.details


def test_a_wrong_option_of_a_case_is_told_by_its_line_and_as_it_is_written_also_beside_a_right_one_of_the_trial():
    for written, name in (("minScore", "min_score"), ("min_score", "min_score")):
        with pytest.raises(InvalidRequest) as caught:
            asked(MOVE[0], {**CASE, "options": {written: -1}}, options={name: 0.5})
        assert str(caught.value).startswith(f"trial.jsonl, line 2: {written} must be")


def test_a_step_that_is_refused_when_it_is_played_is_told_as_it_is_written():
    with pytest.raises(
        InvalidRequest,
        match=r"trial\.jsonl, line 2: validTo \(1970-01-01T00:00:00\.005Z\) must lie after validFrom",
    ):
        asked(MOVE[0], {"correct": {"id": "paris", "newText": "x", "validFrom": 9, "validTo": 5}}, CASE)


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda: run("team.jsonl"), "scenarios must be a list of scenarios"),
        (lambda: run(["team.jsonl"]), r"scenarios\[0\] must be a Scenario, got str; read_file makes one"),
        (lambda: run(told(CASE)), "scenarios must be a list; put the one into brackets"),
        (lambda: run(5), "scenarios must be a list of scenarios"),
        (
            lambda: run([], LATEST),
            r"trial must be a Trial, got MemoryConfig; put it into one: Trial\(config\)",
        ),
        (lambda: run([], {"k": 5}), "trial must be a Trial, got dict"),
        (lambda: run([], memory="team"), "memory must be a Memory, got str"),
        (lambda: run([], clock=5), "clock must be a ManualClock, got int"),
        (lambda: Trial({"embedder": "static"}), "config must be a MemoryConfig, got dict"),
    ],
)
def test_what_is_of_another_type_is_refused_by_name(call, said):
    with pytest.raises(InvalidRequest, match=said):
        call()
