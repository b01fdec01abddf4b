"""Runs the commands that a page shows in its blocks of the language `console`, one after the other."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Collection
from pathlib import Path
from typing import Any

import pytest

from markdown_page import blocks


def run_commands(
    page: Path, run: Callable[..., Any], monkeypatch: pytest.MonkeyPatch, *, refused: Collection[str] = ()
) -> int:
    """Run them and return how many gave what is shown under them; `…` stands for anything.

    `export NAME=VALUE` sets a variable for those that follow, and `echo TEXT > FILE` writes a file in the working folder.
    Each is exit code 0, and 1 where its line is among `refused`.
    """
    checked = 0
    for block in blocks(page):
        if block.language != "console":
            continue
        for call in re.split(r"^\$ ", block.text, flags=re.MULTILINE)[1:]:
            line, _, shown = call.partition("\n")
            program, *words = shlex.split(line)
            if program == "export":
                monkeypatch.setenv(*words[0].split("=", 1))
            elif program == "echo":
                content, _, name = words
                Path(name).write_text(content, encoding="utf-8")
            else:
                assert program == "perdure", f"{page.name}:{block.line}: {program} is no command of ours"
                _check(run(*words), line, shown, code=int(line in refused))
                checked += 1
    return checked


def _check(outcome: Any, line: str, shown: str, *, code: int) -> None:
    assert outcome.code == code, f"{line}\n{outcome.err}"
    pattern = re.escape(shown.rstrip("\n")).replace("…", r"[\s\S]*")
    assert re.fullmatch(pattern, outcome.out.rstrip("\n")), f"{line}\n{outcome.out}{outcome.err}"
