"""Writes what can be configured: settings, policies and embedders with their parameters, limits of requests."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterator, Mapping
from typing import Any

from perdure.base.canonical import SAFE_INTEGER
from perdure.contract import limits as contract
from perdure.embedders.settings import Absent, Switch, Text
from perdure.memory.config import Limits, MemoryConfig
from perdure.policies.choices import camel_case
from perdure.policies.parameters import Flag, OneOf, Parameter, Real, SomeOf, Whole

from . import docstrings, source
from .book import Block, Book
from .markdown import anchor, code, prose, table

FLOAT_LARGE = 1e300
NAMES_SHOWN_MAX = 6
NETWORK_ONLY = "BODY_BYTES_MAX"
# What each limit is of, and the field of SurfaceLimits that says where it is another one.
LIMITS: Mapping[str, tuple[str, str | None]] = {
    "TEXT_BYTES_MAX": ("bytes of a fact's text", None),
    "TEXT_WORDS_MAX": ("words of a fact's text", None),
    "DOCUMENT_BYTES_MAX": ("bytes of a document's text", None),
    "METADATA_BYTES_MAX": ("bytes of metadata, as canonical JSON", None),
    "NAME_BYTES_MAX": ("bytes of a subject, an entity or a tag", None),
    "ENTITIES_MAX": ("entities of a fact", None),
    "TAGS_MAX": ("tags of a fact", None),
    "SUPERSEDES_MAX": ("ids that a fact supersedes", None),
    "QUERY_BYTES_MAX": ("bytes of a query", "query_bytes_max"),
    "REASON_BYTES_MAX": ("bytes of the reason of an end or a retraction", None),
    "SOURCE_TEXT_BYTES_MAX": ("bytes of a text in a source", None),
    "IDEMPOTENCY_KEY_BYTES_MAX": ("bytes of an idempotency key", None),
    "K_MAX": ("results of a recall", "k_max"),
    "CANDIDATES_MAX": ("candidates that a reordering looks at", None),
    "LIST_MAX": ("items of a page", None),
    "MERGED_IDS_MAX": ("merged tellings that a fact keeps digests of", None),
    "DIMENSION_MAX": ("numbers in a vector", None),
    "MODEL_BYTES_MAX": ("bytes of an embedder's name", None),
    "TRACE_LIMIT_MAX": ("rejections that a trace lists", None),
    "SOURCES_MAX": ("turns of a version of a session, and of an answer out of conversations", None),
    "BATCH_MAX": ("facts in one transaction", "batch_max"),
    "BODY_BYTES_MAX": ("bytes of a request's body", None),
}
ONLY_CODE = {"extractor": "a function of your own", "observers": "a tuple of objects of your own"}


def settings(book: Book, block: Block) -> list[str]:
    """Write the table of the settings of a memory."""
    return table(("setting", "in JSON", "values", "default", "meaning"), _settings(book, block.page))


def limits(book: Book, block: Block) -> list[str]:
    """Write the table of the budgets of a read."""
    told = docstrings.arguments(source.find("perdure.memory.config", "Limits").doc)
    rows = [
        (f"`{name}`", _values(parameter), f"`{getattr(Limits(), name):,}`", told[name])
        for name, parameter in Limits.PARAMETERS.items()
    ]
    return table(("budget", "values", "default", "meaning"), rows)


def choices(book: Book, block: Block) -> list[str]:
    """Write an entry for each built-in value of each setting that takes a name or an object."""
    lines: list[str] = []
    for setting, kinds in built_in().items():
        lines += ["", f"### `{setting}`"]
        for name, kind in kinds.items():
            lines += ["", *_choice(book, block.page, name, kind)]
    return lines[1:]


def default_config(book: Book, block: Block) -> list[str]:
    """Write the configuration that holds every default, as JSON."""
    return code(json.dumps(json.loads(MemoryConfig().to_json()), indent=2), "json")


def profiles(book: Book, block: Block) -> list[str]:
    """Write the names of all profiles."""
    one = MemoryConfig.PARAMETERS["profile"]
    assert isinstance(one, OneOf)
    return [", ".join(f"`{name}`" for name in one.names) + "."]


def request_limits(book: Book, block: Block) -> list[str]:
    """Write the limits of requests: of Python and the command line, and of what comes over a network."""
    rows = []
    for name in limit_names():
        meaning, own = LIMITS[name]
        value = getattr(contract, name)
        over = getattr(contract.HTTP, own) if own else value
        rows.append((meaning, "" if name == NETWORK_ONLY else f"{value:,}", f"{over:,}", f"`{name}`"))
    return table(("limit", "here", "over HTTP and MCP", "name in `perdure.contract.limits`"), rows)


def limit_names() -> list[str]:
    """Return the names of the limits of a request, in the order of the contract."""
    told = [name for name, _, _ in source.constants("perdure.contract.limits")]
    return [name for name in told if name.endswith("_MAX")]


def _settings(book: Book, page: str) -> Iterator[tuple[str, ...]]:
    found = source.find("perdure", "MemoryConfig")
    told = docstrings.arguments(found.doc)
    link, errors = book.link(page, found.module), book.errors(page)
    for field in dataclasses.fields(MemoryConfig):
        name = field.name
        json_name = "only code can give it" if name in ONLY_CODE else f"`{camel_case(name)}`"
        default = "the budgets below" if name == "limits" else _shown(getattr(MemoryConfig(), name))
        yield f"`{name}`", json_name, _values_of(name), default, prose(told[name], link, errors=errors)


def _values_of(name: str) -> str:
    if name in MemoryConfig.PARAMETERS:
        return _values(MemoryConfig.PARAMETERS[name])
    if name in MemoryConfig.CHOICES:
        kinds = ", ".join(f"`{kind}`" for kind in built_in()[name])
        return f"{kinds}, or an object; [more](#{anchor(name)})"
    return ONLY_CODE.get(name, "[budgets](#budgets-of-one-read)")


def _values(parameter: Parameter) -> str:
    """Return what values a parameter may have, in words."""
    if isinstance(parameter, Absent):
        return f"none, or {_values(parameter.otherwise)}"
    if isinstance(parameter, OneOf):
        if len(parameter.names) > NAMES_SHOWN_MAX:
            return "one of the [profiles](#profiles)"
        return ", ".join(f"`{name}`" for name in parameter.names)
    if isinstance(parameter, SomeOf):
        return f"some of {', '.join(f'`{name}`' for name in parameter.names)}"
    if isinstance(parameter, Text):
        return f"{parameter.least:,} to {parameter.most:,} characters"
    if isinstance(parameter, Flag | Switch):
        return "`true`, `false`"
    if isinstance(parameter, Whole):
        most = None if parameter.most >= SAFE_INTEGER else f"{parameter.most:,}"
        return f"a whole number, {parameter.least:,} {f'to {most}' if most else 'or more'}"
    assert isinstance(parameter, Real)
    least = f"above {parameter.least:g}" if parameter.above else f"{parameter.least:g}"
    if parameter.most < FLOAT_LARGE:
        return (
            f"a number, {least} to {parameter.most:,.6g}"
            if parameter.most < 1e5
            else f"a number, {least} to {int(parameter.most):,}"
        )
    return f"a number {least}" if parameter.above else f"a number, {least} or more"


def built_in() -> Mapping[str, Mapping[str, type[Any]]]:
    """Return the built-in values of each setting that takes a name: what JSON may say, by name."""
    return {name: choice._kinds for name, choice in MemoryConfig.CHOICES.items()}


def _choice(book: Book, page: str, name: str, kind: type[Any]) -> list[str]:
    found = source.find(kind.__module__, kind.__name__)
    link = book.link(page, found.module)
    parameters: Mapping[str, Parameter] = getattr(kind, "PARAMETERS", {})
    target = link(kind.__name__)
    made = f"[`{kind.__name__}`]({target})" if target else f"`{kind.__name__}`"
    lines = [f"`{name}` ({made}): {prose(docstrings.summary(found.doc), link)}"]
    if not parameters:
        return lines
    told = docstrings.arguments(found.doc)
    defaults = {field.name: field.default for field in dataclasses.fields(kind)}
    rows = [
        (
            f"`{key}`",
            f"`{camel_case(key)}`",
            _values(parameter),
            "must be given" if defaults[key] is dataclasses.MISSING else _shown(defaults[key]),
            prose(told.get(key, ""), link),
        )
        for key, parameter in parameters.items()
    ]
    return [*lines, "", *table(("parameter", "in JSON", "values", "default", "meaning"), rows)]


def _shown(value: Any) -> str:
    if value is None or value == ():
        return "none"
    if isinstance(value, bool):
        return f"`{str(value).lower()}`"
    if isinstance(value, tuple):
        return ", ".join(_shown(one) for one in value)
    if isinstance(value, str):
        return f"`{value}`" if value else "empty"
    return f"`{value:g}`" if isinstance(value, float) else f"`{value:,}`"
