"""Shells complete commands, options and choices: the completion engine is asked as each shell asks it."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest

Ask = Callable[[str, str], list[str]]


@pytest.fixture
def ask(run, monkeypatch) -> Ask:
    """Returns what a shell is told for the last word of a line; one that ends in a space begins a new word."""

    def ask_(shell: str, line: str) -> list[str]:
        words = line.split(" ")
        with monkeypatch.context() as patch:
            patch.setenv("_PERDURE_COMPLETE", f"complete_{shell}")
            patch.setenv("COMP_WORDS", "\n".join(words))
            patch.setenv("COMP_CWORD", str(len(words) - 1))
            patch.setenv("_TYPER_COMPLETE_ARGS", line)
            patch.setenv("_TYPER_COMPLETE_FISH_ACTION", "get-args")
            patch.setenv("_TYPER_COMPLETE_WORD_TO_COMPLETE", words[-1])
            outcome = run()
        assert outcome.err == ""
        return outcome.out.splitlines()

    return ask_


def offered(ask: Ask, shell: str, line: str) -> set[str]:
    """Return the words that are offered, without what is told of them."""
    told = ask(shell, line)
    if shell == "zsh":
        return {word for one in told for word in re.findall(r'"([^"]*)":"', one)}
    separator = ":::" if shell == "powershell" else "\t"
    return {one.split(separator)[0].strip() for one in told}


SHELLS = ("bash", "zsh", "fish", "powershell")


@pytest.mark.parametrize("shell", SHELLS)
def test_every_shell_is_offered_the_commands_that_begin_so(ask, shell):
    assert offered(ask, shell, "perdure rec") == {"recall", "record-use"}
    assert offered(ask, shell, "perdure rememb") == {"remember"}


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("perdure documents ", {"put", "get", "has", "delete", "search", "list"}),
        ("perdure documents se", {"search"}),
        ("perdure --store there documents p", {"put"}),
        ("perdure keys r", {"revoke"}),
        ("perdure recall x --kind ", {"episodic", "semantic", "procedural", "working"}),
        ("perdure recall x y z --mode s", {"semantic"}),
        ("perdure recall --history hi", {"historical"}),
        ("perdure list --status not", {"not-yet-valid"}),
        ("perdure list --order last", {"last_used"}),
        ("perdure import a.jsonl --format c", {"conversation"}),
        ("perdure correct x --clear va", {"valid-from", "valid-to"}),
        ("perdure annotate x --clear i", {"importance"}),
        ("perdure stats --backend ", {"sqlite", "journal"}),
        ("perdure --backend j", {"journal"}),
        ("perdure reindex --profile snowball:g", {"snowball:german", "snowball:greek"}),
        ("perdure documents search x --fusion ", {"minmax", "rrf"}),
        ("perdure recall x --weight-", {"--weight-lexical", "--weight-semantic"}),
        ("perdure forget --in", {"--ingested-before", "--include-chain", "--include-derived"}),
        ("perdure documents put a b --if", {"--if-version"}),
    ],
)
def test_sub_commands_options_and_choices_are_offered(ask, line, words):
    assert offered(ask, "bash", line) == words


def test_a_line_that_would_be_refused_is_completed_all_the_same(ask):
    assert offered(ask, "bash", "perdure recall a b c --store x --store y --kind w") == {"working"}


EACH_SHELL = pytest.mark.parametrize(
    ("shell", "mark"),
    [
        ("bash", "complete -o default -F _perdure_completion perdure"),
        ("zsh", "#compdef perdure"),
        ("fish", "complete --command perdure"),
        ("powershell", "Register-ArgumentCompleter -Native -CommandName perdure"),
    ],
)


@EACH_SHELL
def test_the_script_of_each_shell_is_printed(run, monkeypatch, shell, mark):
    monkeypatch.setattr("shellingham.detect_shell", lambda: (shell, shell))
    shown = run("--show-completion")
    assert mark in shown.out
    assert "_PERDURE_COMPLETE" in shown.out


@EACH_SHELL
def test_the_script_of_a_shell_that_is_named_is_printed_whichever_runs_the_command(
    run, monkeypatch, shell, mark
):
    monkeypatch.setattr("shellingham.detect_shell", lambda: ("bash", "bash"))
    unnamed = run("--show-completion").out
    for line in (("--show-completion", shell), (f"--show-completion={shell}",)):
        shown = run(*line)
        assert (shown.code, shown.err) == (0, "")
        assert mark in shown.out
    assert run("--show-completion").out == unnamed


@pytest.mark.parametrize(
    ("line", "field"),
    [
        (("--show-completion", "tcsh"), "show_completion"),
        (("--show-completion=",), "show_completion"),
        (("--install-completion", "fish"), "install_completion"),
    ],
)
def test_a_shell_that_there_is_not_or_that_cannot_be_chosen_is_refused(run, line, field):
    refused = run(*line)
    assert (refused.code, refused.out) == (2, "")
    assert f"--{field.replace('_', '-')}" in refused.err


def test_completion_is_installed_for_a_shell_in_the_users_own_files(run, monkeypatch, tmp_path):
    home = tmp_path / "home"
    home.mkdir()
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setattr("shellingham.detect_shell", lambda: ("bash", "bash"))
    assert "bash completion installed" in run("--install-completion").out
    written = [path.read_text() for path in home.rglob("*") if path.is_file()]
    assert any("_PERDURE_COMPLETE" in text for text in written)
