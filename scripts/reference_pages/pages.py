"""The pages of the reference, and whether they are current."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

from . import commands, entries, errors, events, http, settings, tools
from .book import Block, Book
from .source import ROOT

FOLDER = ROOT / "docs" / "reference"
RENDERERS: Mapping[str, Callable[[Book, Block], list[str]]] = {
    "names": entries.names,
    "class": entries.whole_class,
    "methods": entries.methods,
    "twin": entries.twin,
    "objects": entries.objects,
    "settings": settings.settings,
    "limits": settings.limits,
    "choices": settings.choices,
    "default-config": settings.default_config,
    "profiles": settings.profiles,
    "request-limits": settings.request_limits,
    "shared-options": commands.shared,
    "root-options": commands.own_of_root,
    "command-table": commands.overview,
    "commands": commands.commands,
    "error-table": errors.overview,
    "errors": errors.entries,
    "changes": events.changes,
    "events": events.events,
    "operation-table": http.overview,
    "operations": http.operations,
    "types": http.types,
    "headers": http.headers,
    "statuses": http.statuses,
    "other-routes": http.other_routes,
    "metrics": http.metrics,
    "tool-table": tools.overview,
    "tools": tools.tools,
    "resources": tools.listed_resources,
    "alike": entries.alike,
}


def read(folder: Path = FOLDER) -> dict[str, str]:
    """Return the texts of the pages by file name."""
    return {path.name: path.read_text(encoding="utf-8") for path in sorted(folder.glob("*.md"))}


def written(pages: Mapping[str, str]) -> dict[str, str]:
    """Return the pages as they should be: with every block between its marks written anew."""
    book = Book(pages)
    return {page: book.filled(page, _render) for page in pages}


def stale(folder: Path = FOLDER) -> list[str]:
    """Return the names of the pages that are not as they should be."""
    pages = read(folder)
    return [page for page, text in written(pages).items() if text != pages[page]]


def _render(book: Book, block: Block) -> list[str]:
    return RENDERERS[block.kind](book, block)
