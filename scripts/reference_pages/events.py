"""Writes the kinds of entries of the change feed, and the types of events of the audit."""

from __future__ import annotations

from perdure.model.event import EVENT_TYPES

from . import docstrings, source
from .book import Block, Book
from .markdown import prose, table


def changes(book: Book, block: Block) -> list[str]:
    """Write a table of the kinds of changes."""
    found = source.find("perdure", "Change")
    link, errors = book.link(block.page, found.module), book.errors(block.page)
    rows = [
        (f"`{kind}`", prose(told, link, errors=errors))
        for kind, told in docstrings.arguments(found.doc).items()
    ]
    return table(("kind", "what happened, and what `ids` and `count` are"), rows)


def events(book: Book, block: Block) -> list[str]:
    """Write a table of the types of events."""
    return table(
        ("type", "what happened, and what `details` hold"),
        [(f"`{kind}`", told) for kind, told in EVENT_TYPES.items()],
    )
