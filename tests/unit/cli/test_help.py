"""Every page of help: a description, examples that parse, all options explained, exit codes, environment; 80 columns."""

from __future__ import annotations

import re
import shlex

import pytest
from rich.cells import cell_len

from perdure.cli.arguments import arranged
from perdure.cli.help import brief
from perdure.cli.main import command_line
from perdure.cli.options import FUSIONS, HISTORIES, KINDS, MODES, ORDERS, STATUSES
from perdure.contract.requests import Fusion, HistoryFilter, Kind, Mode, Order, StatusFilter

ROOT = command_line()
ENVIRONMENT = ("PERDURE_STORE", "PERDURE_CONFIG", "PERDURE_KEY", "PERDURE_KEY_FILE", "PERDURE_SECRET_FILE")


def walked(command, path=()):
    """Yield each command and group with the words that lead to it."""
    yield path, command
    for name, one in getattr(command, "commands", {}).items():
        yield from walked(one, (*path, name))


ALL = dict(walked(ROOT))
COMMANDS = {path: command for path, command in ALL.items() if not hasattr(command, "commands")}
PAGES = pytest.mark.parametrize("path", ALL, ids=lambda path: " ".join(path) or "perdure")
EACH = pytest.mark.parametrize("path", COMMANDS, ids=" ".join)


def examples(text):
    """Return the command lines of the examples on a page."""
    block = re.search(r"Examples?:\n((?: +.+\n?)+)", text)
    return [] if block is None else [line.strip() for line in block[1].splitlines()]


@PAGES
def test_a_page_has_a_description_an_example_exit_codes_and_the_environment(run, path):
    shown = run(*path, "--help")
    assert shown.code == 0
    assert shown.err == ""
    about = ALL[path].help
    assert brief(about).endswith(".")
    assert len(about.strip().split("\n\n")) >= 2
    assert examples(about)
    assert "Exit codes:" in shown.out
    for code in ("0  ", "1  ", "2  "):
        assert f"\n  {code}" in shown.out
    for name in ENVIRONMENT:
        assert name in shown.out


@PAGES
def test_a_page_fits_eighty_columns(run, monkeypatch, path):
    monkeypatch.setenv("COLUMNS", "80")
    for line in run(*path, "--help").out.splitlines():
        assert cell_len(line) <= 80, line
        assert "\t" not in line


@PAGES
def test_every_option_and_word_is_explained_and_says_what_it_takes(run, path):
    shown = run(*path, "--help").out
    for param in ALL[path].params:
        assert param.help, param.name
        assert param.help.rstrip().endswith("."), param.name
        for name in (*param.opts, *param.secondary_opts):
            assert param.param_type_name == "argument" or name in shown
        if param.param_type_name == "argument" or not param.is_flag:
            assert param.metavar, param.name
            assert param.metavar in shown
    assert "<" not in re.sub(r"[<>]=?(?= )|<.*\.txt", "", shown.split("Options:")[-1])


@EACH
def test_the_examples_of_a_page_are_command_lines_that_its_command_takes(path):
    found = examples(ALL[path].help)
    for line in found:
        words = re.split(r" (?:\||&&|\|\|) ", line)
        (call,) = [part for part in words if part.startswith("perdure ")][:1]
        told = shlex.split(re.sub(r" [<>] \S+$", "", call))[1:]
        options = {name: param for param in ROOT.params for name in param.opts}
        while told[0].startswith("--"):
            told = told[1 if options[told[0]].is_flag else 2 :]
        where = next(one for one in sorted(COMMANDS, key=len, reverse=True) if tuple(told[: len(one)]) == one)
        command, rest = COMMANDS[where], told[len(where) :]
        for one in arranged(rest, command.params):
            if one.startswith("--") and one != "--":
                assert one.partition("=")[0] in {
                    name for param in command.params for name in param.opts + param.secondary_opts
                }
    assert any(f"perdure {' '.join(path)}" in line or path[-1] in line for line in found)


def test_the_main_page_names_every_command_with_its_whole_first_sentence(run, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    shown = run("--help").out
    told = " ".join(shown.split())
    for name, command in ROOT.commands.items():
        assert f"\n  {name} " in shown
        assert f"{name} {brief(command.help)}" in told
    assert "Other commands" not in shown


def test_a_group_without_a_command_shows_its_page_and_is_a_wrong_line(run):
    for name in ("documents", "keys"):
        outcome = run(name)
        assert outcome.code == 2
        assert outcome.out == run(name, "--help").out


def test_choices_are_those_of_the_contract():
    told = {
        Kind: KINDS,
        HistoryFilter: HISTORIES,
        StatusFilter: STATUSES,
        Order: ORDERS,
        Mode: MODES,
        Fusion: FUSIONS,
    }
    for annotation, names in told.items():
        assert annotation.__metadata__[0].extra_json_schema["enum"] == list(names)
