"""Reads Markdown pages: code blocks, links, anchors; and runs a page's Python."""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

_FENCE = re.compile(r"^```(\w*)([^\n]*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_INLINE_CODE = re.compile(r"`[^`\n]*`")
_LINK = re.compile(r"(?<!\\)\[[^\]]*\]\(([^)\s]+)\)")
_HEADING = re.compile(r"^#{1,6} (.+)$", re.MULTILINE)
_EXPECTED = re.compile(r"#\s*->\s*(.+)$")


@dataclass(frozen=True)
class Block:
    """A fenced block: its language, its text, and the page's line at which the text begins (from 1).

    `needs` is what stands behind the language: a word for what must be there before the block can run.
    """

    language: str
    text: str
    line: int
    needs: str = ""


def blocks(page: Path) -> list[Block]:
    text = page.read_text(encoding="utf-8")
    return [
        Block(match[1], match[3], text.count("\n", 0, match.start(3)) + 1, match[2].strip())
        for match in _FENCE.finditer(text)
    ]


def links(page: Path) -> list[str]:
    """Return the targets of the page's links in order; code is not searched."""
    prose = _INLINE_CODE.sub("", _FENCE.sub("", page.read_text(encoding="utf-8")))
    return _LINK.findall(prose)


def anchors(page: Path) -> set[str]:
    """Return the fragment names of the page's headings, as Markdown hosts make them."""
    prose = _FENCE.sub("", page.read_text(encoding="utf-8"))
    return {
        re.sub(r"[^\w\- ]", "", heading.replace("`", "").lower()).strip().replace(" ", "-")
        for heading in _HEADING.findall(prose)
    }


def run_page(page: Path, *, needs: str = "", names: dict[str, str] | None = None) -> int:
    """Run the page's Python blocks in order in one namespace; return how many values were checked.

    Those alone that need what is told, and no others. `names` are replaced in their text first.

    An expression whose last line ends in `# -> VALUE` must be equal to VALUE, itself a Python
    expression. Such a comment behind anything but an expression is an error, so that no promise of
    a page goes unchecked.
    """
    namespace: dict[str, Any] = {"__name__": "__page__"}
    found = [block for block in blocks(page) if (block.language, block.needs) == ("python", needs)]
    for old, new in (names or {}).items():
        found = [replace(block, text=block.text.replace(old, new)) for block in found]
    return sum(_run_block(page, block, namespace) for block in found)


def _run_block(page: Path, block: Block, namespace: dict[str, Any]) -> int:
    lines = block.text.splitlines()
    checked = 0
    for statement in ast.parse(block.text).body:
        expected = _EXPECTED.search(lines[(statement.end_lineno or statement.lineno) - 1])
        ast.increment_lineno(statement, block.line - 1)
        if isinstance(statement, ast.Expr):
            value = eval(compile(ast.Expression(statement.value), str(page), "eval"), namespace)
            if expected:
                wanted = eval(expected[1], namespace)
                assert value == wanted, f"{page.name}:{statement.lineno} gives {value!r}, not {wanted!r}"
                checked += 1
        else:
            assert not expected, f"{page.name}:{statement.lineno} promises a value but is no expression"
            exec(compile(ast.Module([statement], []), str(page), "exec"), namespace)
    promised = sum(bool(_EXPECTED.search(line)) for line in lines)
    assert promised == checked, f"{page.name}:{block.line} promises {promised} values, {checked} were checked"
    return checked
