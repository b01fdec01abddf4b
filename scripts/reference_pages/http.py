"""Writes what the HTTP server offers: its operations, their requests and replies, headers, statuses, metrics."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any

from perdure.contract import schema as contract
from perdure.contract.naming import snake_case
from perdure.contract.operations import OPERATIONS, Operation

from . import docstrings, source, wire
from .book import Block, Book
from .markdown import anchor, prose, table

TELLING = ("remember", "correct", "annotate")
INPUTS: Mapping[str, tuple[str, ...]] = {
    "FactInput": ("NewFact",),
    "ContextInput": ("Context",),
    "SourceInput": ("Source",),
}
OWNERS = (("perdure", "Memory"), ("perdure.documents.documents", "Documents"), ("perdure", "Store"))


def overview(book: Book, block: Block) -> list[str]:
    """Write a table of the operations of a group."""
    (group,) = block.words
    rows = [
        (f"[`{one.name}`](#{anchor(one.name)})", one.role, one.summary)
        for one in OPERATIONS.values()
        if one.group == group
    ]
    return table(("operation", "role", "what it does"), rows)


def operations(book: Book, block: Block) -> list[str]:
    """Write an entry for each operation of a group."""
    (group,) = block.words
    lines: list[str] = []
    for one in OPERATIONS.values():
        if one.group == group:
            lines += ["", f"### `{one.name}`", "", *_operation(one)]
    return lines[1:]


def types(book: Book, block: Block) -> list[str]:
    """Write an entry for each type that requests and replies share or hold."""
    lines: list[str] = []
    for name in shared_types():
        told = components()[name]
        told_fields = _fields(told, INPUTS.get(name, ()), with_null=not name.endswith(("Input", "Scope")))
        lines += [
            "",
            f"### `{name}`",
            "",
            " ".join([*_sentence(told), *_in_python(book, name)]),
            "",
            *told_fields,
        ]
    return lines[1:]


def headers(book: Book, block: Block) -> list[str]:
    """Write a table of the headers that say whose memory is meant."""
    return table(
        ("header", "what it tells"), [(f"`{name}`", text) for name, text in contract.SPACE_HEADERS.items()]
    )


def statuses(book: Book, block: Block) -> list[str]:
    """Write a table of the statuses that a request may be answered with, but for 200."""
    return table(("status", "when"), contract.STATUSES.items())


def other_routes(book: Book, block: Block) -> list[str]:
    """Write a table of the routes that are no operations by name: those of documents, and of health."""
    rows = []
    for path, item in contract.openapi()["paths"].items():
        name = path.rsplit("/", 1)[1]
        if name not in OPERATIONS:
            for method, told in item.items():
                parameters = [
                    one["name"]
                    for one in told.get("parameters", ())
                    if one.get("in") != "path" and "name" in one
                ]
                takes = ", ".join(f"`{parameter}`" for parameter in parameters)
                rows.append((f"`{method.upper()} {path}`", told["summary"], takes))
    return table(("route", "what it does", "headers and parameters"), rows)


def metrics(book: Book, block: Block) -> list[str]:
    """Write a table of what the server counts."""
    return table(("metric", "labels", "meaning"), _metrics())


@cache
def components() -> Mapping[str, Any]:
    """Return the schemas of all types of the contract, by name."""
    found: Mapping[str, Any] = contract.openapi()["components"]["schemas"]
    return found


@cache
def shared_types() -> tuple[str, ...]:
    """Return the names of the types that are not told where an operation is, in order of the alphabet."""
    own = {kind.__name__ for one in OPERATIONS.values() for kind in (one.request, *(one.many or ())[1:2])}
    told = {"ErrorReply", *(name for name in components() if name not in own)}
    return tuple(sorted(told))


def _operation(one: Operation) -> list[str]:
    lines = [f"`POST /api/v1/{one.group}/{one.name}` · role {one.role}", "", one.summary]
    if one.name == "import":
        flags = [(f"`{name}`", text) for name, text in contract.IMPORT_FLAGS.items()]
        lines += [
            "",
            "Request: the lines of an export. In the address:",
            "",
            *table(("parameter", "meaning"), flags),
        ]
    else:
        lines += ["", *_request(one, one.request.__name__)]
        if one.many is not None:
            lines += [
                "",
                f"Or, for several at once, `{one.many[0]}`:",
                "",
                *_request(one, one.many[1].__name__)[2:],
            ]
    return [*lines, "", f"Reply: {_reply(one)}"]


def _request(one: Operation, name: str) -> list[str]:
    told = components()[name]
    if not told.get("properties"):
        return ["Request: an empty object."]
    return ["Request:", "", *_fields(told, homes_of(one), with_null=False)]


def homes_of(one: Operation) -> tuple[str, ...]:
    """Return where in Python the arguments of an operation are told of, the nearest place first."""
    if one.group == "store":
        return (one.name,)
    return (one.name, "NewFact" if one.name in TELLING else "RecallOptions")


def _in_python(book: Book, name: str) -> list[str]:
    """Return where a type's value in Python is told of, which says more than its fields do."""
    value = name.removesuffix("Object").removesuffix("Reply").removesuffix("Input")
    target = book.link("http.md", "perdure")(value)
    return [f"In Python it is [`{value}`]({target})."] if target else []


def _reply(one: Operation) -> str:
    if one.name == "export":
        return "lines of JSON, `application/x-ndjson`; see the [format of an export](../export-format.md)."
    kinds = [one.reply.__name__, *([] if one.many is None else [one.many[2].__name__])]
    return f"{' or '.join(_shown(name) for name in kinds)}."


def _sentence(told: wire.Schema) -> list[str]:
    text = wire.description(told)
    return [text] if text else []


def meaning(name: str, field: wire.Schema, homes: tuple[str, ...]) -> str:
    """Return what a field means: as its schema says, else as the Python that it stands for says of the argument."""
    said = wire.description(field)
    for home in homes:
        said = said or _arguments(home).get(snake_case(name), "")
    return said


@cache
def _arguments(home: str) -> Mapping[str, str]:
    """Return what is said of the arguments of an operation's method, or of the fields of a value."""
    if home not in OPERATIONS:
        return docstrings.arguments(
            source.find("perdure.model.inputs", home).doc
        )  # which has imported the others
    method = snake_case(home).removesuffix("_document").removesuffix("_documents")
    for module, kind in OWNERS:
        told = source.methods(source.find(module, kind)).get(method)
        if told is not None:
            return docstrings.arguments(told.found.doc)
    return {}


def _fields(told: wire.Schema, homes: tuple[str, ...], *, with_null: bool) -> list[str]:
    rows: list[tuple[str, ...]] = []
    for name, field, required in wire.properties(told):
        kind = wire.kind(field, _shown, with_null=with_null)
        said = meaning(name, field, () if with_null else homes)
        if not with_null and required:
            said = f"Required. {said}".rstrip()
        if with_null and not required:
            said = f"{said} Left out where there is none.".lstrip()
        rows.append((f"`{name}`", kind, _sentence_of(said)))
    if not any(row[2] for row in rows):
        return table(("field", "value"), [row[:2] for row in rows]) if rows else ["Without fields."]
    return table(("field", "value", "meaning"), rows)


def _sentence_of(said: str) -> str:
    first = said.split(" ", 1)[0]
    return prose(said[:1].upper() + said[1:] if len(first) > 1 else said, lambda name: None)


def _shown(name: str) -> str:
    return f"[`{name}`](#{anchor(name)})" if name in shared_types() else f"`{name}`"


def _metrics() -> Iterator[tuple[str, str, str]]:
    endings = {"Counter": "_total", "Histogram": ""}
    for node in ast.walk(source.tree("perdure.server.metrics")):
        if not isinstance(node, ast.Call) or not node.args:
            continue
        told = [str(part.value) for part in node.args[:2] if isinstance(part, ast.Constant)]
        if len(told) == 2 and told[0].startswith("perdure_"):
            maker = node.func.id if isinstance(node.func, ast.Name) else ""
            labels = ast.literal_eval(node.args[2])
            yield (
                f"`{told[0]}{endings.get(maker, '')}`",
                ", ".join(f"`{one}`" for one in labels),
                told[1],
            )
