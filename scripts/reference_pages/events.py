"""Writes the kinds of entries of the change feed."""

from __future__ import annotations

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
