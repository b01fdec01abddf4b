"""Writes Markdown: tables, lists, code, and docstrings with links to what they name."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence

from . import docstrings

LINE_MAX = 110  # the formatter's, which formats code in pages too
Link = Callable[[str], str | None]
_CODE = re.compile(r"(`[^`\n]+`)")
_PAGE = re.compile(r"^`docs/([\w/-]+\.md)`$")
_ERROR = re.compile(r"\b(?:[A-Z][a-z]+){1,3}\b")


def anchor(heading: str) -> str:
    """Return the fragment's name of a heading, as Markdown hosts make it."""
    return re.sub(r"[^\w\- ]", "", heading.replace("`", "").lower()).strip().replace(" ", "-")


def table(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    """Return a table; line ends within a cell become spaces."""
    lines = [list(columns), ["---"] * len(columns), *map(list, rows)]
    return [f"| {' | '.join(_cell(cell) for cell in line)} |" for line in lines]


def code(text: str, language: str = "python") -> list[str]:
    """Return a block of code."""
    return [f"```{language}", *text.splitlines(), "```"]


def call(head: str, parameters: Sequence[str], tail: str, indent: str = "") -> list[str]:
    """Return a definition as the formatter writes it: on one line where it fits, else one parameter a line."""
    line = f"{indent}{head}({', '.join(parameters)}){tail}"
    if len(line) <= LINE_MAX:
        return [line]
    within = f"{indent}    {', '.join(parameters)}"
    if len(within) <= LINE_MAX:
        return [f"{indent}{head}(", within, f"{indent}){tail}"]
    return [f"{indent}{head}(", *(f"{indent}    {text}," for text in parameters), f"{indent}){tail}"]


def prose(text: str, link: Link, *, errors: Link | None = None) -> str:
    """Return a docstring's words as Markdown: names in backquotes lead to their entries, and so do errors."""
    told = []
    for place, part in enumerate(_CODE.split(text)):
        told.append(_linked(part, link) if place % 2 else _plain(part, errors))
    return "".join(told)


def described(doc: str, link: Link, errors: Link) -> list[str]:
    """Return a docstring as Markdown: its paragraphs, and its sections as lists."""
    lines: list[str] = []
    for title, text in docstrings.parts(doc):
        if lines:
            lines.append("")
        if title in ("", "Returns"):
            told = prose(text, link, errors=errors)
            lines += (f"Returns: {told}" if title else told).splitlines()
        else:
            lines += listed(title, text, link, errors)
    return lines


def listed(title: str, text: str, link: Link, errors: Link) -> list[str]:
    """Return the items of a section as a list; of errors the names are links."""
    lines = ["Raises:", ""] if title == "Raises" else []
    for names, told in docstrings.items(text):
        said = prose(told, link, errors=errors)
        lines.append(
            f"* {_names(names, errors if title == 'Raises' else None)}: {said}" if names else f"* {said}"
        )
    return lines


def _names(names: str, errors: Link | None) -> str:
    def shown(match: re.Match[str]) -> str:
        target = None if errors is None else errors(match[0])
        return f"[`{match[0]}`]({target})" if target else f"`{match[0]}`"

    outside = re.split(r"( \([^)]*\))", names)
    return "".join(
        part if place % 2 else re.sub(r"[\w.]+", shown, part) for place, part in enumerate(outside)
    )


def _linked(part: str, link: Link) -> str:
    page = _PAGE.match(part)
    if page:
        name = page[1].rsplit("/", 1)[-1].removesuffix(".md").replace("-", " ")
        return f"[{name}](../{page[1]})"
    target = link(part.strip("`").removesuffix("()"))
    return f"[{part}]({target})" if target else part


def _plain(part: str, errors: Link | None) -> str:
    part = part.replace("&", "&amp;").replace("<", "&lt;")
    if errors is None:
        return part

    def shown(match: re.Match[str]) -> str:
        target = errors(match[0])
        return f"[`{match[0]}`]({target})" if target else match[0]

    return _ERROR.sub(shown, part)


def _cell(text: str) -> str:
    return re.sub(r"(?<!\\)\|", r"\\|", " ".join(text.split()))
