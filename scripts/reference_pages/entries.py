"""Writes the entries of Python names: classes, methods, functions, values, types in signatures."""

from __future__ import annotations

import ast

from . import docstrings, source
from .book import Block, Book, heading_of, method_names
from .markdown import anchor, call, code, described, prose, table
from .source import Callable, Found

LEVEL = "###"
HIDDEN_BASES = ("msgspec.Struct", "ValueError", "LookupError", "Exception", "_")
# Made by something else, so that how they are constructed is nobody's business.
MADE_ELSEWHERE = {
    "Memory",
    "Store",
    "Documents",
    "DocumentIndex",
    "Repository",
    "ConversationMemory",
    "AsyncMemory",
    "AsyncStore",
    "PartitionedVectorIndex",
}
COMMENT_MAX = 110


def names(book: Book, block: Block) -> list[str]:
    """Write a table of names, each with its first sentence."""
    module, *told = block.words
    wanted = source.exported(module) if told == ["*"] else told
    return table(("name", "what it is"), [_row(book, block.page, module, name) for name in wanted])


def whole_class(book: Book, block: Block) -> list[str]:
    """Write a class that has an entry for each of its methods: what it is, and a table of them."""
    module, name = block.words
    found = source.find(module, name)
    lines = [f"## `{name}`", "", *_doc(book, block.page, found, own=f"`{name}`"), ""]
    start = source.constructor(found)
    if start is not None and name not in MADE_ELSEWHERE:
        lines += [*code("\n".join(_definition(start, name))), ""]
    rows = []
    for method, told in source.methods(found).items():
        place = book.headings.get((found.module, name, method))
        if place is None:
            continue
        link = book.link(block.page, told.found.module, owner=name)
        target = f"{'' if place[0] == block.page else place[0]}#{anchor(place[1])}"
        rows.append((f"[`{method}`]({target})", prose(docstrings.summary(told.found.doc), link)))
    return lines + table(("call", "what it does"), rows)


def methods(book: Book, block: Block) -> list[str]:
    """Write an entry for each of the methods that the block names."""
    module, name = block.words[:2]
    known = source.methods(source.find(module, name))
    lines: list[str] = []
    for method in method_names(book, block):
        lines += ["", f"#### `{name}.{method}`", "", *_method(book, block.page, name, known[method])]
    return lines[1:]


def twin(book: Book, block: Block) -> list[str]:
    """Write a class whose calls are those of another one, but awaited."""
    module, name = block.words
    found = source.find(module, name)
    lines = [f"{LEVEL} `{name}`", "", *_doc(book, block.page, found, own=f"`{name}`"), ""]
    link = book.link(block.page, found.module)
    same = [
        f"[`{call}`]({link(twin)})" if link(twin) else f"`{call}`"
        for call, twin in source.twins(found).items()
    ]
    if same:
        lines += [f"Awaited, and otherwise the same: {', '.join(same)}.", ""]
    own = [part for part in _class(found) if part]
    return [*lines, *code("\n".join(_class(found))), *_methods_of(book, block.page, found)] if own else lines


def alike(book: Book, block: Block) -> list[str]:
    """Write a class whose calls are, as far as they go, those of another one: which they are, and what else there is."""
    module, name, home, other = block.words
    found, twin_of = source.find(module, name), source.find(home, other)
    link = book.link(block.page, home)
    calls = source.methods(found)
    same = [f"[`{call}`]({link(f'{other}.{call}')})" for call in calls if link(f"{other}.{call}")]
    lines = [f"{LEVEL} `{name}`", "", *_doc(book, block.page, found, own=f"`{name}`"), ""]
    lines += [f"As of [`{other}`]({link(twin_of.name)}): {', '.join(same)}.", ""]
    rest = [
        part for call, told in calls.items() if not link(f"{other}.{call}") for part in ("", *_stub(told))
    ]
    return [*lines, *code("\n".join([f"class {name}:", *rest[1:]]))] if rest else lines[:-1]


def _stub(told: Callable) -> list[str]:
    first = {"classmethod": "cls", "staticmethod": None}.get(told.kind, "self")
    return _definition(told, told.found.name, "    ", first=first)


def objects(book: Book, block: Block) -> list[str]:
    """Write an entry for each of the names."""
    module, *told = block.words
    lines: list[str] = []
    for name in told:
        lines += [
            "",
            f"{LEVEL} {heading_of(book, module, name)}",
            "",
            *_object(book, block.page, module, name),
        ]
    return lines[1:]


def _row(book: Book, page: str, module: str, name: str) -> tuple[str, str]:
    found = source.find(module, name)
    place = book.headings.get((found.module, name))
    shown = (
        f"`{name}`"
        if place is None
        else f"[`{name}`]({'' if place[0] == page else place[0]}#{anchor(place[1])})"
    )
    return shown, prose(docstrings.summary(found.doc), book.link(page, found.module))


def _object(book: Book, page: str, module: str, name: str) -> list[str]:
    found = source.find(module, name)
    own = heading_of(book, module, name)
    doc = _doc(book, page, found, own=own)
    if isinstance(found.node, ast.ClassDef):
        return [*doc, "", *code("\n".join(_class(found))), *_methods_of(book, page, found)]
    if isinstance(found.node, source.Function):
        text = "\n".join(_definition(source.callable_of(found), name))
        return [*code(text), "", *doc]
    assert found.node.value is not None
    text = found.text(found.node.value)
    return [*code(f"{name} = {text}"), *(["", *doc] if doc else [])]


def _doc(book: Book, page: str, found: Found, *, own: str, owner: str | None = None) -> list[str]:
    link = book.link(page, found.module, owner=owner, own=own)
    return described(found.doc, link, book.errors(page))


def _method(book: Book, page: str, owner: str, method: Callable) -> list[str]:
    own = f"`{owner}.{method.found.name}`"
    whole = book.link(page, method.found.module, owner=owner, own=own)
    parameters = method.names

    def link(name: str) -> str | None:
        return None if name in parameters else whole(name)

    text = "\n".join(_definition(method, method.found.name))
    return [*code(text), "", *described(method.found.doc, link, book.errors(page))]


def _definition(told: Callable, name: str, indent: str = "", *, first: str | None = None) -> list[str]:
    """Return how something is called; `first` is the parameter that methods have within their class."""
    lines = [f"{indent}@{told.kind}"] if told.kind in ("classmethod", "staticmethod", "property") else []
    head = "async def" if isinstance(told.found.node, ast.AsyncFunctionDef) else "def"
    parameters = [first, *told.parameters] if first else list(told.parameters)
    tail = f" -> {told.returns}: ..." if told.returns else ": ..."
    return lines + call(f"{indent}{head} {name}"[len(indent) :], parameters, tail, indent)


def _class(found: Found) -> list[str]:
    """Return a class as a reader needs it: bases, members, fields with their comments, and calls."""
    assert isinstance(found.node, ast.ClassDef)
    bases = [base for base in source.base_names(found) if not base.startswith(HIDDEN_BASES)]
    bases += [f"{word.arg}={ast.unparse(word.value)}" for word in found.node.keywords if word.arg == "total"]
    lines = [f"class {found.name}({', '.join(bases)}):" if bases else f"class {found.name}:"]
    lines += [f"    {text}" for text in _members(found)]
    for field in source.fields(found):
        lines += _field(field)
    start = source.constructor(found)
    stubs = [] if start is None or found.name in MADE_ELSEWHERE else [(start, "__init__")]
    stubs += [(method, name) for name, method in source.methods(found).items()]
    for method, name in stubs:
        first = {"classmethod": "cls", "staticmethod": None}.get(method.kind, "self")
        blank = [""] if len(lines) > 1 else []
        lines += blank + _definition(method, name, "    ", first=first)
    return lines if len(lines) > 1 else [f"{lines[0]} ..."]


def _members(found: Found) -> list[str]:
    assert isinstance(found.node, ast.ClassDef)
    if not any("Enum" in base for base in source.base_names(found)):
        return []
    return [found.segment(part) for part in found.node.body if isinstance(part, ast.Assign)]


def _field(field: source.Field) -> list[str]:
    line = f"    {field.name}: {field.annotation}"
    line += f" = {field.default}" if field.default is not None else ""
    if field.comment is None:
        return [line]
    beside = f"{line}  # {field.comment}"
    return [beside] if len(beside) <= COMMENT_MAX else [f"    # {field.comment}", line]


def _methods_of(book: Book, page: str, found: Found) -> list[str]:
    """Return what the methods of a class say of themselves; those without a docstring do as their protocol says."""
    lines: list[str] = []
    start = source.constructor(found)
    if start is not None and found.name not in MADE_ELSEWHERE and start.found.doc:
        lines += ["", *_doc(book, page, start.found, own=f"`{found.name}`")]
    for name, method in source.methods(found).items():
        doc = _doc(book, page, method.found, own=f"`{found.name}`", owner=found.name)
        if doc:
            lines += ["", f"**`{name}`**", "", *doc]
    return lines
