"""Pastes a page's Python into a prompt, block by block, as a reader does."""

from __future__ import annotations

import codeop
from pathlib import Path

from markdown_page import blocks


def refused_by_a_prompt(page: Path) -> list[str]:
    """Return the places of the page at which the prompt of Python would not take a pasted line.

    A prompt ends a compound statement at an empty line, and at nothing else: what follows one without it is refused,
    and so is what goes on after it. Nothing is run.
    """
    return [
        f"{page.name}:{block.line + line - 1}: {why}"
        for block in blocks(page)
        if block.language == "python"
        for line, why in _refusals(block.text)
    ]


def _refusals(text: str) -> list[tuple[int, str]]:
    compiler, held, found = codeop.CommandCompiler(), [], []
    for number, line in enumerate([*text.splitlines(), ""], 1):
        held.append(line)
        try:
            code = compiler("\n".join(held), "<prompt>", "single")
        except SyntaxError as error:
            found.append((number, error.msg))
            held = []
            continue
        if code is not None:
            held = []
    if any(held):
        found.append((len(text.splitlines()), "the block ends within a statement"))
    return found
