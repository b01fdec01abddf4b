"""A correction keeps a fact's place among those of its subject, or is refused."""

import pytest

from perdure import InvalidRequest, ManualClock, MemoryConfig, Store

YEARS = (2020, 2022, 2024)


@pytest.fixture
def memory():
    with Store.open(":memory:", clock=ManualClock("2026-01-01")) as store:
        memory = store.memory(config=MemoryConfig(supersession="latest-by-subject"))
        for year in YEARS:
            memory.remember(f"home {year}", id=str(year), subject="home", valid_from=f"{year}-01-01")
        yield memory


def current(memory, at):
    return [fact.text for fact in memory.list(status="current", as_of=at).items]


@pytest.mark.parametrize(
    ("id_", "begins", "expected"),
    [
        ("2024", "2023-01-01", ["home 2020", "home 2022", "right", "right"]),
        ("2022", "2021-01-01", ["home 2020", "right", "right", "home 2024"]),
        ("2020", "2019-01-01", ["right", "home 2022", "home 2022", "home 2024"]),
    ],
)
def test_a_correction_that_begins_earlier_takes_over_from_there(memory, id_, begins, expected):
    memory.correct("right", id=id_, valid_from=begins)
    instants = ("2020-07-01", "2022-07-01", "2023-07-01", "2024-07-01")
    assert [current(memory, at) for at in instants] == [[text] for text in expected]


@pytest.mark.parametrize(
    ("id_", "begins"), [("2024", "2021-01-01"), ("2022", "2025-01-01"), ("2024", "2025-01-01")]
)
def test_a_correction_that_would_pass_a_neighbour_or_leave_a_gap_is_refused(memory, id_, begins):
    before = [current(memory, f"{year}-07-01") for year in range(2019, 2027)]
    with pytest.raises(InvalidRequest, match="valid_from") as caught:
        memory.correct("wrong", id=id_, valid_from=begins)
    assert caught.value.field == "valid_from"
    assert [current(memory, f"{year}-07-01") for year in range(2019, 2027)] == before


def test_a_correction_cannot_move_a_fact_into_a_subject_that_has_facts(memory):
    memory.remember("office 2021", id="office", subject="office", valid_from="2021-01-01")
    with pytest.raises(InvalidRequest, match="subject") as caught:
        memory.correct("office 2021", id="office", subject="home")
    assert caught.value.field == "subject"


def test_a_correction_may_move_a_lone_fact_to_an_empty_subject(memory):
    memory.remember("office 2021", id="office", subject="office", valid_from="2021-01-01")
    memory.correct("office 2021", id="office", subject="desk", valid_from="2023-01-01")
    memory.remember("office 2025", subject="desk", valid_from="2025-01-01")
    assert [fact.text for fact in memory.list(subject="desk", status="current").items] == ["office 2025"]


def test_a_fact_corrected_many_times_keeps_one_link_a_version(memory):
    memory.remember("version 0", id="v0")
    for number in range(1, 300):
        memory.correct(f"version {number}", id=f"v{number - 1}", new_id=f"v{number}")
    assert len(memory.history("v0")) == 300
    assert [fact.text for fact in memory.list(status="current").items if fact.subject is None] == [
        "version 299"
    ]
    memory.forget(ids=[f"v{number}" for number in range(100, 200)])
    assert [fact.text for fact in memory.list(status="current").items if fact.subject is None] == [
        "version 299"
    ]
