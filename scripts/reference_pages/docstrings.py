"""Reads docstrings: their first sentence, and their sections as Markdown."""

from __future__ import annotations

import re
from collections.abc import Sequence

SECTIONS = ("Args", "Returns", "Raises", "Attributes", "Kinds")
_SECTION = re.compile(rf"^({'|'.join(SECTIONS)}):$")
_NAME = r"[\w.*]+(?: \([^)]*\))?"
_NAMES = re.compile(rf"^({_NAME}(?:, {_NAME})*): (.*)$", re.DOTALL)


def summary(doc: str) -> str:
    """Return the first sentence, on one line."""
    paragraph = " ".join(doc.split("\n\n", maxsplit=1)[0].split())
    match = re.match(r"(.+?[.!?])(?= [A-Z`(]|$)", paragraph)
    return match[1] if match else paragraph


def parts(doc: str) -> list[tuple[str, str]]:
    """Return the docstring's sections in order, each with its text; what belongs to none has an empty title."""
    found: list[tuple[str, list[str]]] = [("", [])]
    for line in doc.splitlines():
        match = _SECTION.match(line)
        if match:
            found.append((match[1], []))
        elif found[-1][0] and line and not line.startswith(" "):
            found.append(("", [line]))
        else:
            found[-1][1].append(line)
    return [(title, text) for title, lines in found if (text := _dedented(lines))]


def items(text: str) -> list[tuple[str, str]]:
    """Return the items of a section: their names ("" for a sentence by itself) and what is said of them."""
    found: list[list[str]] = []
    for line in text.splitlines():
        if line and not line.startswith(" "):
            found.append([line])
        elif found:
            found[-1].append(line.strip())
    return [_item(" ".join(lines).strip()) for lines in found]


def arguments(doc: str) -> dict[str, str]:
    """Return what is said of each parameter, by name; names that share an item share what is said."""
    known = {}
    for title, text in parts(doc):
        if title in ("Args", "Attributes", "Kinds"):
            for names, told in items(text):
                for name in re.sub(r" ?\([^)]*\)", "", names).split(", "):
                    known[name] = told
    return known


def _item(text: str) -> tuple[str, str]:
    match = _NAMES.match(text)
    return (match[1], match[2]) if match else ("", text)


def _dedented(lines: Sequence[str]) -> str:
    told = [line for line in lines if line.strip()]
    indent = min((len(line) - len(line.lstrip()) for line in told), default=0)
    return "\n".join(line[indent:] for line in lines).strip("\n")
