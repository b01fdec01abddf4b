"""The pages together: which generated block stands where, and where a name's entry is found."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property

from . import source
from .markdown import Link, anchor
from .source import Found

BLOCK = re.compile(r"^<!-- reference: (?P<told>[^\n]+?) -->\n.*?^<!-- end -->$", re.MULTILINE | re.DOTALL)
ENTRIES = ("objects", "class", "twin", "alike")
# Names that lead to the same fragment as another one, since that is in lower case and without dots.
HEADINGS = {
    ("perdure.model.stores", "StoreStats"): "`StoreStats`: sizes",
    ("perdure.model.stores", "StoreCounters"): "`StoreCounters`: what a process did with a store",
    ("perdure.evaluation", "Run"): "`Run`: what a run gave",
}
REST = "*"  # all that no other block of the kind names


@dataclass(frozen=True)
class Block:
    """One generated block of a page: its kind, and the words after it."""

    page: str
    kind: str
    words: tuple[str, ...]


@dataclass
class Book:
    """The pages' texts by file name, and what their blocks place."""

    pages: Mapping[str, str]
    headings: dict[tuple[str, ...], tuple[str, str]] = field(default_factory=dict)

    @cached_property
    def homes(self) -> Mapping[str, set[str]]:
        """The modules of each name that has an entry."""
        found: dict[str, set[str]] = {}
        for block in self.blocks():
            if block.kind in ENTRIES:
                for name in block.words[1:2] if block.kind == "alike" else block.words[1:]:
                    found.setdefault(name, set()).add(block.words[0])
        return found

    def __post_init__(self) -> None:
        for block in self.blocks():
            for key, heading in placed(self, block):
                self.headings.setdefault(key, (block.page, heading))

    def blocks(self, kind: str | None = None) -> Iterator[Block]:
        """Yield the blocks in order, of all kinds or of one."""
        for page, text in self.pages.items():
            for match in BLOCK.finditer(text):
                first, *words = match["told"].split()
                if kind is None or first == kind:
                    yield Block(page, first, tuple(words))

    def filled(self, page: str, render: Callable[[Book, Block], list[str]]) -> str:
        """Return the page's text with every block written anew."""

        def write(match: re.Match[str]) -> str:
            first, *words = match["told"].split()
            lines = render(self, Block(page, first, tuple(words)))
            return "\n".join([f"<!-- reference: {match['told']} -->", "", *lines, "", "<!-- end -->"])

        return BLOCK.sub(write, self.pages[page])

    def rest_of(self, block: Block, known: list[str]) -> list[str]:
        """Return the names of a block in order, `*` being all known ones that no other block of the kind names."""
        first = block.words[:-1] if block.words[-1:] == (REST,) else block.words
        if first == block.words:
            return [name for name in block.words if name in known]
        told = {name for other in self.blocks(block.kind) for name in other.words}
        return [*(name for name in first if name in known), *(name for name in known if name not in told)]

    def link(self, page: str, module: str, *, owner: str | None = None, own: str = "") -> Link:
        """Return what finds the entry of a name that is written in a module; `own` is the entry that asks."""

        def target(name: str) -> str | None:
            keys = [_key(module, name)] + ([_key(module, f"{owner}.{name}")] if owner else [])
            for key in [*keys, _key("perdure", name)]:
                if key in self.headings:
                    home, heading = self.headings[key]
                    if heading == own:
                        return None
                    return f"{'' if home == page else home}#{anchor(heading)}"
            return None

        return target

    def errors(self, page: str) -> Link:
        """Return what finds the entry of an error by its name alone."""

        def target(name: str) -> str | None:
            place = self.headings.get(("perdure.errors", name))
            return place and f"{'' if place[0] == page else place[0]}#{anchor(place[1])}"

        return target


def placed(book: Book, block: Block) -> Iterator[tuple[tuple[str, ...], str]]:
    """Yield what a block has an entry for, by module and name, with the entry's heading."""
    if block.kind in ENTRIES:
        module, *names = block.words
        for name in names[:1] if block.kind == "alike" else names:
            found = source.find(module, name)
            yield from ((key, heading_of(book, module, name)) for key in _keys(found))
    if block.kind == "methods":
        module, name = block.words[:2]
        for method in method_names(book, block):
            for home, *_ in _keys(source.find(module, name)):
                yield (home, name, method), f"`{name}.{method}`"
    if block.kind == "errors":
        for name in error_names():
            yield ("perdure.errors", name), f"`{name}`"


def heading_of(book: Book, module: str, name: str) -> str:
    """Return the heading of an entry; a name that several modules have is told apart by its module."""
    if (module, name) in HEADINGS:
        return HEADINGS[module, name]
    if module != "perdure" and len(book.homes.get(name, ())) > 1:
        return f"`{module.removeprefix('perdure.')}.{name}`"
    return f"`{name}`"


def method_names(book: Book, block: Block) -> list[str]:
    """Return the methods that a block shows, in its order, `*` being those that no other block shows."""
    module, name, *told = block.words
    known = list(source.methods(source.find(module, name)))
    if told[-1:] != [REST]:
        return [method for method in told if method in known]
    others = {
        word
        for other in book.blocks("methods")
        if other.words[:2] == (module, name)
        for word in other.words[2:]
    }
    rest = [method for method in known if method not in others and (name, method) not in INSIDE]
    return [*told[:-1], *rest]


INSIDE = {("Store", "memory_of")}  # what Memory.open asks of its store


def error_names() -> list[str]:
    """Return the errors that a caller may meet, in the order of the source."""
    return [name for name in source.classes("perdure.errors") if name not in BETWEEN_LAYERS]


BETWEEN_LAYERS = {"Moved"}  # never reaches a caller


def _keys(found: Found) -> Iterator[tuple[str, str]]:
    yield found.module, found.name
    if isinstance(found.node, ast.ClassDef):
        for base in source.bases(found):
            if base.name == found.name:
                yield from _keys(base)


def _key(module: str, name: str) -> tuple[str, ...]:
    first, *rest = name.split(".")
    try:
        found = source.find(module, first)
    except LookupError:
        return (module, name)
    return (found.module, found.name, *rest)
