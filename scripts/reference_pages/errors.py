"""Writes the errors: their codes, statuses and classes, and what each of them says of itself."""

from __future__ import annotations

from . import docstrings, source
from .book import Block, Book, error_names
from .entries import _class
from .markdown import code, described, prose, table

BASE = "PerdureError"


def overview(book: Book, block: Block) -> list[str]:
    """Write a table of all errors by code."""
    link = book.errors(block.page)
    rows = []
    for name in error_names():
        found = source.find("perdure.errors", name)
        told = _told(name)
        if name != BASE:
            shown = f"[`{name}`]({link(name)})"
            rows.append(
                (f"`{told['code']}`", told["status"], shown, prose(docstrings.summary(found.doc), link))
            )
    return table(("code", "HTTP", "class", "when"), rows)


def entries(book: Book, block: Block) -> list[str]:
    """Write an entry for each error."""
    lines: list[str] = []
    for name in error_names():
        found = source.find("perdure.errors", name)
        errors = book.errors(block.page)

        def others(word: str, name: str = name, errors: object = errors) -> str | None:
            return None if word == name else book.errors(block.page)(word)

        link = book.link(block.page, "perdure.errors", own=f"`{name}`")
        lines += ["", f"### `{name}`", "", *described(found.doc, link, others)]
        told = _told(name)
        if name != BASE:
            lines += ["", f"Code `{told['code']}`, HTTP status {told['status']}.{_kinds(found)}"]
        if source.constructor(found) is not None:
            lines += ["", *code("\n".join(_class(found)))]
    return lines[1:]


def _kinds(found: source.Found) -> str:
    """Return what else an error is, besides a PerdureError."""
    others = [name for name in source.base_names(found) if name != BASE]
    return f" It is also {' and '.join(f'a `{name}`' for name in others)}." if others else ""


def _told(name: str) -> dict[str, str]:
    """Return the code and status of an error, of its own or of its base."""
    found = source.find("perdure.errors", name)
    told: dict[str, str] = {}
    for base in source.bases(found):
        told |= _told(base.name)
    return told | source.class_constants(found, ("code", "status"))
