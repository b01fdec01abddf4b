"""The pages about the command line, docs/howto/cli.md and docs/howto/import.md, say what it does."""

from __future__ import annotations

import re
import shlex

import pytest

from markdown_page import blocks, run_page
from source_tree import ROOT

HOWTO = ROOT / "docs" / "howto"
COMMANDS = [block for block in blocks(HOWTO / "cli.md") if block.language == "console"]


def _calls(text: str) -> list[tuple[str, str]]:
    """Return each command of a block with what the page shows under it."""
    parts = re.split(r"^\$ perdure ", text, flags=re.MULTILINE)[1:]
    return [(command, shown.rstrip("\n")) for command, _, shown in (part.partition("\n") for part in parts)]


def test_every_command_of_the_page_gives_what_is_shown(run, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    checked = 0
    for block in COMMANDS:
        for command, shown in _calls(block.text):
            outcome = run(*shlex.split(command))
            assert outcome.code in (0, 1)
            pattern = re.escape(shown).replace("…", r"[\s\S]*")
            assert re.fullmatch(pattern, outcome.out.rstrip("\n")), (
                f"perdure {command}\n{outcome.out}{outcome.err}"
            )
            checked += 1
    assert checked >= 12


def test_the_python_of_the_page_on_imports_runs():
    assert run_page(HOWTO / "import.md") == 3


@pytest.mark.parametrize(
    "name",
    [
        "retract",
        "annotate",
        "restore",
        "stats",
        "spaces",
        "capabilities",
        "config",
        "demo",
        "apply-forgetting",
        "consolidate",
        "merge",
        "record-use",
        "health",
        "embed-missing",
        "erase",
        "purge",
    ],
)
def test_every_command_that_the_page_names_is_there(run, name):
    assert (
        f"`{name}`" in (HOWTO / "cli.md").read_text() or f"`perdure {name}`" in (HOWTO / "cli.md").read_text()
    )
    assert run(name, "--help").code == 0
