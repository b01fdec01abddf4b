"""The statements of sql/queries.sql by their names, and the migrations beside them."""

from __future__ import annotations

import re
from functools import cache
from importlib.resources import files
from typing import LiteralString
from uuid import UUID

_NAMED = re.compile(r"^-- name: (\w+)\n(?:--.*\n)*", re.MULTILINE)
_MIGRATION = re.compile(r"(\d{4})_\w+\.sql")


@cache
def _queries() -> dict[str, LiteralString]:
    parts = _NAMED.split(_text("queries.sql"))
    return {name: _as_written(sql.strip()) for name, sql in zip(parts[1::2], parts[2::2], strict=True)}


def query(name: str) -> LiteralString:
    """Return the statement of a name."""
    return _queries()[name]


def query_names() -> list[str]:
    """Return all names, in the order of the file."""
    return list(_queries())


@cache
def migrations() -> tuple[tuple[int, LiteralString], ...]:
    """Return the migrations by number, ascending from 1."""
    found = {
        int(matched[1]): _as_written(_text(matched[0]))
        for entry in files(__package__).joinpath("sql").iterdir()
        if (matched := _MIGRATION.fullmatch(entry.name))
    }
    return tuple(sorted(found.items()))


@cache
def multi_row(name: str, row: str, count: int, end: str = "") -> LiteralString:
    """Return an insertion of so many rows: its beginning, the form of a row, and what follows them."""
    rows = ", ".join([query(row)] * count)
    return f"{query(name)} {rows} {query(end) if end else ''}"


def tenant_everywhere(tenant: UUID) -> LiteralString:
    """Return the statement that says whose rows a transaction is about; it takes no parameters."""
    if type(tenant) is not UUID:
        raise TypeError("a tenant is a UUID")  # whatever else may not be written into a statement
    return _as_written(f"{query('set_tenant_everywhere')} '{tenant}'")


def _as_written(sql: str) -> LiteralString:
    # What a file of this package says is as good as written here.
    return sql


def _text(name: str) -> str:
    return files(__package__).joinpath("sql", name).read_text(encoding="utf-8")
