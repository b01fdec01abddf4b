"""What reaches a terminal: nothing that stored text could steer it with, nothing cut short."""

from __future__ import annotations

import io
import json
import re
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len
from rich.console import Console

from perdure.cli.screen import Screen, print_json, shown
from perdure.cli.streams import width
from unit.cli.command_line import remember

CONTROL = re.compile(
    "[\x00-\x09\x0b-\x1f\x7f-\x9f\xad\u061c\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\U000e0000-\U000e007f]"
)
NASTY = "a\x1b[31mred\x1b]0;title\x07\x9b2J\r\nb\u202egnp.exe\u2066"


def printed(width: int, *, terminal: bool, rows: list[list[str]]) -> str:
    console = Console(
        file=io.StringIO(), width=width, force_terminal=terminal, color_system=None, highlight=False
    )
    Screen(console).table(["score", "status", "text"], rows)
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


@given(st.text())
def test_shown_text_has_no_control_character_and_shown_again_stays_as_it_is(text):
    assert CONTROL.search(shown(text)) is None
    assert "\n" not in shown(text)
    assert shown(shown(text)) == shown(text)


@given(st.lists(st.tuples(st.text(max_size=8), st.text(max_size=60)), min_size=1, max_size=4))
def test_a_table_off_a_terminal_has_one_line_per_row_with_the_text_whole_and_last(rows):
    out = printed(40, terminal=False, rows=[["1.0", status, text] for status, text in rows])
    lines = out.split("\n")[1:-1]
    assert len(lines) == len(rows)
    for line, (_, text) in zip(lines, rows, strict=True):
        assert line.endswith(shown(text).rstrip())


def columns(text):
    """Return the columns that a terminal gives a text of single code points: wide ones two, marks none."""
    return sum(
        0
        if unicodedata.category(one) in ("Mn", "Me") or one in "\u200b\u200c\u200d"
        else 2
        if unicodedata.east_asian_width(one) in "WF"
        else 1
        for one in text
    )


ODD = (
    "plain",
    "東京タワー",
    "ﾊﾝｶｸ",
    "Ｗｉｄｅ",
    "한국어",
    "e\u0301te\u0301",
    "z\u0351\u0363a\u035bl\u0348go",
    "नमस्ते"[:2],
    "a\u200bb",
    "می\u200cخواهم",
    "שלום",
    "مرحبا",
    "🚀🎻",
    "𝔘nicode",
    "ไทย",
    "",
)


@pytest.mark.parametrize("terminal", [False, True])
@given(rows=st.lists(st.tuples(st.sampled_from(ODD), st.sampled_from(ODD)), min_size=1, max_size=5))
def test_columns_stand_one_under_the_other_whatever_is_written_in_them(terminal, rows):
    out = printed(200, terminal=terminal, rows=[[first, second, "|end"] for first, second in rows])
    lines = [line.replace("\u200e", "") for line in out.split("\n")[1:-1]]
    assert len({columns(line.partition("|")[0]) for line in lines}) == 1


@given(st.lists(st.sampled_from(ODD), min_size=2, max_size=2))
def test_pieces_of_a_line_that_run_from_right_to_left_keep_their_order_on_a_terminal(cells):
    (line,) = printed(200, terminal=True, rows=[[*cells, "text"]]).split("\n")[1:-1]
    for cell in cells:
        if cell and unicodedata.bidirectional(cell[0]) in ("R", "AL"):
            after = line[line.index(cell) + len(cell) :]
            assert after.lstrip(" ").startswith("\u200e")
            assert line.startswith("\u200e")
    if not any(unicodedata.bidirectional(one) in ("R", "AL") for one in "".join(cells)):
        assert "\u200e" not in line
    assert "\u200e" not in printed(200, terminal=False, rows=[[*cells, "text"]])


@given(st.text(alphabet="東京タワ abc אבג", min_size=1, max_size=200))
def test_wrapped_lines_fit_the_terminal_and_lose_no_letter(text):
    out = printed(60, terminal=True, rows=[["1.0", "current", text]])
    body = out.split("\n")[1:-1]
    assert all(cell_len(line) <= 60 for line in body)
    kept = re.sub(r"\s", "", "".join(body)).removeprefix("1.0current")
    assert kept == re.sub(r"\s", "", text)


@pytest.mark.parametrize(
    "command", [("recall", "red"), ("list",), ("get", "a"), ("history", "a"), ("explain", "red", "a")]
)
@pytest.mark.parametrize("form", [(), ("--json",)])
def test_stored_control_characters_do_not_reach_a_screen(run, command, form):
    remember(run, "red " + NASTY, "--id", "a", "--metadata", json.dumps({NASTY: NASTY}), "--subject", NASTY)
    out = run(*command, *form).out
    assert "red" in out
    assert CONTROL.search(out) is None


def test_json_on_standard_output_is_one_line_that_gives_the_text_back(capfdbinary):
    print_json({"text": NASTY + '\u2028 東京 \\ "'})
    out = capfdbinary.readouterr().out
    assert out.count(b"\n") == 1
    assert json.loads(out) == {"text": NASTY + '\u2028 東京 \\ "'}


@pytest.mark.parametrize("columns", ["0", "00", "-3", "x", "²", "99999999999999999999"])
def test_a_width_that_is_none_changes_nothing(run, monkeypatch, columns):
    remember(run, "a zebra crossing")
    monkeypatch.delenv("COLUMNS", raising=False)
    usual = run("recall", "zebra").out
    monkeypatch.setenv("COLUMNS", columns)
    assert "a zebra crossing" in usual
    assert run("recall", "zebra").out == usual
    assert width() > 0


def test_the_width_that_is_told_is_the_width(monkeypatch):
    monkeypatch.setenv("COLUMNS", "47")
    assert width() == 47


def test_markup_in_stored_text_is_text(run):
    remember(run, "[bold]not bold[/bold] :smile: [link=x]y[/link]")
    assert "[bold]not bold[/bold] :smile: [link=x]y[/link]" in run("list").out


def test_a_preview_before_a_forget_is_cleaned_as_well(run):
    remember(run, NASTY, "--id", "a")
    assert CONTROL.search(run("forget", "a", stdin="n\n").err) is None
