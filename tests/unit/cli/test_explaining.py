"""How explanations are drawn: marks, bars and words, without colour, in 40 columns, in any script."""

from __future__ import annotations

import io
import json
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len
from rich.console import Console

from perdure import Memory, MemoryConfig
from perdure.cli.drawing import show_explanation
from perdure.cli.screen import Screen, shown
from perdure.policies import ExponentialRecency, Relevance
from unit.cli.command_line import remember

CONTROL = re.compile("[\x00-\x09\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]")
texts = st.text(st.sampled_from("ab 船東 שלום \u202e\x1b[]"), min_size=1, max_size=120)


def a_screen(width: int = 80, *, terminal: bool = False, encoding: str = "utf-8") -> Screen:
    file = io.TextIOWrapper(io.BytesIO(), encoding=encoding, errors="backslashreplace", write_through=True)
    return Screen(
        Console(file=file, width=width, force_terminal=terminal, color_system=None, highlight=False)
    )


def printed(screen: Screen) -> str:
    file = screen.console.file
    assert isinstance(file, io.TextIOWrapper)
    assert isinstance(file.buffer, io.BytesIO)
    return file.buffer.getvalue().decode(file.encoding)


def drawn(query: str, id_: str, memory: Memory, screen: Screen, **options) -> list[str]:
    show_explanation(screen, memory.explain(query, id_, **options))
    return printed(screen).splitlines()


def bars(lines: list[str]) -> dict[str, int]:
    """The length of the bar of each part."""
    matches = (re.match(r"  (\w+) +[×x]?\d[\d.e-]*  ?([█#]*)$", line) for line in lines)
    return {match[1]: len(match[2]) for match in matches if match}


@given(texts, st.lists(st.integers(0, 120), max_size=8))
def test_marks_stand_in_brackets_off_a_terminal_and_the_text_is_whole(text, places):
    ends = sorted({place for place in places if place <= len(text)})
    marks = list(zip(ends[::2], ends[1::2], strict=False))
    screen = a_screen()
    screen.marked("  ", text, marks)
    expected, last = "", 0
    for start, end in marks:
        expected += f"{shown(text[last:start])}[{shown(text[start:end])}]"
        last = end
    assert printed(screen).rstrip() == f"  {expected}{shown(text[last:])}".rstrip()
    assert printed(screen).count("\n") == 1


@given(texts)
def test_a_marked_text_fits_a_narrow_terminal_and_loses_no_letter(text):
    screen = a_screen(40, terminal=True)
    screen.marked("  ", text, [(0, 1)])
    out = printed(screen)
    assert CONTROL.search(out.replace("\n", "")) is None
    assert all(cell_len(line) <= 40 for line in out.split("\n"))
    kept = re.sub(r"\s", "", out)
    assert kept == re.sub(r"\s", "", f"[{shown(text[:1])}]{shown(text[1:])}")


@pytest.fixture
def memory():
    with Memory.open(":memory:") as opened:
        talk = (("Ann", "Where did you sail?"), ("Bob", "To the north, past 船 and שלום."))
        for position, (actor, text) in enumerate(talk):
            opened.remember(
                text,
                id=f"t{position}",
                event_time="2023-05-03",
                source={"uri": "talk", "position": position, "actor": actor},
            )
        yield opened


def test_every_part_has_a_bar_and_the_longest_part_the_longest(memory):
    lines = drawn("Did Bob sail north in May 2023?", "t1", memory, a_screen(), context=True)
    parts = {
        part.name: part.value
        for part in memory.explain("Did Bob sail north in May 2023?", "t1", context=True).parts
    }
    found = bars(lines)
    assert found.keys() == parts.keys() == {"lexical", "smoothing", "actor", "period"}
    assert max(found.values()) == 30
    assert sorted(found, key=found.__getitem__) == sorted(parts, key=parts.__getitem__)


def test_whom_when_and_whose_words_counted_is_told_in_words(memory):
    text = "\n".join(drawn("Did Bob sail north in May 2023?", "t1", memory, a_screen(), context=True))
    assert "actor       Bob" in text
    assert "period      2023-05" in text
    assert "neighbours  -1 holds Did, sail (t0)" in text or "neighbours  -1 holds sail (t0)" in text
    assert "To the [north], past" in text


@pytest.mark.parametrize("width", [40, 60, 80, 200])
def test_bars_fit_the_terminal(memory, width):
    screen = a_screen(width, terminal=True)
    lines = drawn("Did Bob sail 船 north in May 2023?", "t1", memory, screen, context=True)
    assert all(cell_len(line) <= width for line in lines)
    assert max(bars(lines).values()) == min(30, width - 23)


def test_a_chain_fits_a_narrow_terminal_too():
    with Memory.open(":memory:") as memory:
        memory.remember(
            "Alice lives in a house by the harbour 船 of Jaffa", id="old", valid_from="2020-01-01"
        )
        memory.remember("Alice lives in Rome", id="new", valid_from="2024-01-01", supersedes=["old"])
        narrow = drawn("Alice Jaffa", "old", memory, a_screen(40, terminal=True))
        wide = drawn("Alice Jaffa", "old", memory, a_screen(80, terminal=True))
    assert all(cell_len(line) <= 40 for line in narrow[1:] if "Chain" not in line)
    assert "- superseded-by, current" in narrow
    assert "2024-01-01T00:00:00Z" in "\n".join(narrow)
    for words in ("takes over at", "Alice lives in Rome"):
        assert words in "\n".join(wide)
    assert "Alice lives in Rome" in "\n".join(narrow)


def test_a_fact_that_was_not_ranked_has_no_bars_and_says_what_its_words_would_give():
    with Memory.open(":memory:") as memory:
        memory.remember("a red boat", id="ended", valid_to="2024-01-02")
        memory.remember("a blue boat", id="other", subject="s")
        ended = drawn("boat", "ended", memory, a_screen())
        filtered = drawn("zebra", "ended", memory, a_screen(), subject="s")
    assert bars(ended) == bars(filtered) == {}
    assert any(re.search(r"score +none; its words alone would give 0\.\d+", line) for line in ended)
    assert any(re.fullmatch(r"score +none", line.strip()) for line in filtered)


def test_where_no_block_can_be_printed_a_bar_is_made_of_number_signs(memory):
    lines = drawn("sail", "t0", memory, a_screen(encoding="ascii"))
    assert bars(lines) == {"lexical": 30}
    assert "#" * 30 in lines[-1]


def test_a_factor_has_a_sign_and_a_bar_beside_one():
    config = MemoryConfig(recency=ExponentialRecency(half_life_ms=86_400_000), historical_weight=0.5)
    with Memory.open(":memory:", config=config) as memory:
        memory.remember("a boat", id="a", event_time="2024-01-01", valid_to="2024-01-02")
        lines = drawn("boat", "a", memory, a_screen(), as_of="2024-01-03", history="all")
    assert bars(lines) == {"lexical": 30, "recency": 8, "historical": 15}
    assert any("×0.2500" in line for line in lines)
    assert any("×0.5000" in line for line in lines)


def test_the_freshness_of_relevance_is_an_addend_without_a_sign():
    with Memory.open(":memory:", config=MemoryConfig(ranking=Relevance())) as memory:
        memory.remember("a boat", id="a", importance=1.0)
        lines = drawn("boat", "a", memory, a_screen())
    assert "×" not in "\n".join(lines)
    assert {"importance", "recency"} <= bars(lines).keys()


def test_why_nothing_matched_depends_on_how_was_searched(memory):
    query = {"embedding": [1.0, 0.0]}
    assert "words" in drawn("zebra", "t0", memory, a_screen())[0]
    assert "no vector" in drawn("zebra", "t0", memory, a_screen(), mode="semantic", **query)[0]
    both = drawn("zebra", "t0", memory, a_screen(), **query)[0]
    assert "words" in both
    assert "no vector" in both


def test_recall_takes_the_ways_of_searching_at_the_command_line(run, tmp_path):
    remember(run, "the harbour was empty", "--id", "h")
    remember(run, "boats lay at the pier", "--id", "p", "--scope", "other")
    vector = tmp_path / "vector.json"
    vector.write_text("[1.0, 0.5]")
    told = run("explain", "harbour", "h", "--embedding-file", str(vector), "--weight-semantic", "0", "--json")
    assert told.json["explanation"]["weights"] == {"lexical": 0.7, "semantic": 0.0}
    found = run("recall", "harbour pier", "--space", "other", "--json").json["results"]
    assert [hit["space"]["scope"] for hit in found] == ["", "other"]
    assert "in other" in run("recall", "harbour pier", "--space", "other").out
    size = len(json.dumps(found[:1], ensure_ascii=False, separators=(",", ":")).encode())
    within = run("recall", "harbour pier", "--space", "other", "--max-bytes", str(size), "--json")
    assert within.json["results"] == found[:1]
    prompt = run("recall", "harbour", "--prompt").out
    assert prompt.splitlines()[1] == "<facts>"
    assert json.loads(prompt.splitlines()[2])["id"] == "h"
    assert run("recall", "harbour", "--prompt", "--max-bytes", "130").out.count("\n") == 3


@pytest.mark.parametrize(
    ("arguments", "field"),
    [
        (("--embedding-file", "nowhere.json"), "embeddingFile"),
        (("--weight-lexical", "much"), "weights.lexical"),
        (("--valid-during", "2020-01-01"), "validDuring"),
        (("--valid-during", "2020-01-01/2019-01-01"), "validDuring"),
        (("--mode", "telepathy"), "mode"),
        (("--fusion", "cold"), "fusion"),
    ],
)
def test_a_malformed_way_of_searching_is_refused_by_name(run, arguments, field):
    remember(run, "a boat")
    outcome = run("recall", "boat", *arguments, "--json")
    assert outcome.code == 2
    assert outcome.error["field"] == field


def test_a_file_that_holds_no_array_is_no_vector(run, tmp_path):
    path = tmp_path / "vector.json"
    for data in ('{"a": 1}', "nonsense", '["x"]'):
        path.write_text(data)
        outcome = run("recall", "boat", "--embedding-file", str(path), "--json")
        assert outcome.code == 2
        assert "embedding" in outcome.error["field"]


def test_a_trace_and_a_difference_are_shown_and_sent(run):
    remember(run, "a red boat", "--id", "r", "--valid-to", "2020-01-01")
    remember(run, "a blue boat", "--id", "b")
    told = run("trace", "boat", "--json").json["trace"]
    assert [hit["fact"]["id"] for hit in told["results"]] == ["b"]
    assert told["rejected"] == [{"id": "r", "reason": "not-current", "status": "expired", "filter": []}]
    shown_ = run("trace", "boat").out
    assert "Seen 2, eligible 1, matched 1, ranked 1, returned 1." in shown_
    assert re.search(r"^r +not-current +expired$", shown_, re.MULTILINE)
    run("retract", "b")
    diff = run("diff", "2001-01-01/2099-01-01", "--json").json["diff"]
    assert [one["fact"]["id"] for one in diff["retracted"]] == ["b"]
    assert "retracted: 1" in run("diff", "2001-01-01/2099-01-01").out
    assert run("diff", "2001-01-01", "--json").code == 2


def test_a_list_takes_an_interval(run):
    remember(run, "a red boat", "--id", "r", "--valid-to", "2020-01-01")
    found = run("list", "--valid-during", "2019-01-01/2019-01-02", "--json").json["items"]
    assert [fact["id"] for fact in found] == ["r"]
    assert run("list", "--valid-during", "2021-01-01/2022-01-01", "--json").json["items"] == []


def test_what_matches_and_does_not_fit_is_not_told_as_no_match(run):
    remember(run, "The ferry leaves from the harbour pier")
    told = run("recall", "harbour", "--max-bytes", "20")
    assert (told.code, told.err) == (0, "")
    assert told.out == "What matches does not fit in 20 bytes; give --max-bytes more.\n"
    plain = run("recall", "harbour", "--max-bytes", "20", "--json")
    assert (plain.code, plain.json) == (0, {"results": []})
    assert plain.err == "perdure: what matches does not fit in 20 bytes; give --max-bytes more\n"
    fenced = run("recall", "harbour", "--prompt", "--max-bytes", "130")
    assert fenced.err == "perdure: what matches does not fit in 130 bytes; give --max-bytes more\n"
    for how in ((), ("--json",), ("--prompt",)):
        none = run("recall", "balloon", "--max-bytes", "200", *how)
        assert (none.code, none.err) == (0, "")
    assert run("recall", "balloon", "--max-bytes", "20").out == "Nothing matches.\n"


def test_fewer_bytes_than_no_results_take_are_refused_as_the_help_says(run):
    assert "from 2" in " ".join(run("recall", "--help").out.split())
    assert run("recall", "harbour", "--max-bytes", "2").code == 0
    refused = run("recall", "harbour", "--max-bytes", "1")
    assert refused.code == 2
    assert "must be 2 to" in refused.err
