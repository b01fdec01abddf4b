"""The SQL of the log can be distributed by tenant: nothing in it reaches beyond one tenant's rows, or orders them all."""

from __future__ import annotations

import re

import pytest

from perdure.log.postgres.migrating import TABLES
from perdure.log.postgres.queries import migrations, query, query_names

FORBIDDEN = {
    "a sequence": r"\b(?:SERIAL|BIGSERIAL|SEQUENCE|IDENTITY|NEXTVAL|GENERATED)\b",
    "a trigger": r"\bTRIGGER\b",
    "a function": r"\b(?:FUNCTION|PROCEDURE|PLPGSQL)\b|\bDO\s+\$",
    "an advisory lock": r"\bPG_\w*ADVISORY\w*\b",
    "a notification": r"\b(?:NOTIFY|LISTEN|PG_NOTIFY)\b",
    "a key to another table": r"\b(?:REFERENCES|FOREIGN\s+KEY)\b",
    "native partitions": r"\bPARTITION\b",
    "a common table expression": r"\bWITH\b(?!\s*\()",
    "the database's own clock": r"\b(?:NOW\s*\(|CURRENT_TIMESTAMP|CLOCK_TIMESTAMP|STATEMENT_TIMESTAMP)",
    "its own chance": r"\b(?:RANDOM|GEN_RANDOM_UUID)\s*\(",
    "a table lock": r"\bLOCK\s+TABLE\b",
}
# They look at the database, not at anybody's rows.
OF_NOBODY = {
    "set_session", "set_tenant", "set_tenant_everywhere", "set_lock_wait", "set_statement_wait", "set_idle_wait", "set_lazy_commit", "writable", "schema_exists", "schema_versions",
    "add_version", "has_citus", "granted_roles", "is_distributed", "distribute", "share_versions", "present_role", "role_state",
    "may_use_schema", "may_use_table", "may_create", "holds_tenants", "server_version",
    "schema_home", "may_note_home", "note_home", "lacking_tables", "open_tables",
    "record_row", "lookup_row", "newer_wins", "note_row", "already_noted", "doomed_row", "is_doomed",
}  # fmt: skip
TEXTS = {f"migration {number}": text for number, text in migrations()} | {
    name: query(name) for name in query_names()
}


def bare(sql: str) -> str:
    """Return the statements without comments and without what stands in quotes."""
    return re.sub(r"'[^']*'", "''", re.sub(r"--[^\n]*", "", sql))


@pytest.mark.parametrize("name", TEXTS)
def test_no_statement_uses_what_a_distributed_database_lacks(name):
    found = [what for what, pattern in FORBIDDEN.items() if re.search(pattern, bare(TEXTS[name]).upper())]
    assert found == []


def test_the_list_of_what_is_forbidden_finds_it():
    for wrong in (
        "CREATE TABLE t (id bigserial)", "SELECT pg_advisory_lock(1)", "WITH d AS (DELETE FROM t) SELECT 1", "NOTIFY x",
        "CREATE TABLE t (a int8 REFERENCES s)", "SELECT now()", "CREATE TABLE t (a int8) PARTITION BY HASH (a)",
    ):  # fmt: skip
        assert any(re.search(pattern, bare(wrong).upper()) for pattern in FORBIDDEN.values()), wrong


def keys_of(text: str) -> list[str]:
    tables = re.findall(r"CREATE TABLE perdure\.(\w+) \((.*?)\n\);", bare(text), re.DOTALL)
    found = []
    for table, columns in tables:
        if table != "schema_version":
            key = re.search(r"PRIMARY KEY \(([^)]*)\)|(\w+) uuid PRIMARY KEY", columns)
            assert key is not None, table
            found.append(f"{table}: {(key[1] or key[2]).split(',')[0].strip()}")
    found += [
        f"index: {columns.split(',')[0].strip()}"
        for columns in re.findall(r"INDEX \w+ ON \S+ \(([^)]*)\)", text)
    ]
    return found


def test_every_key_and_index_begins_with_the_tenant():
    told = [place for _, text in migrations() for place in keys_of(text)]
    assert len(told) >= len(TABLES)
    assert [place for place in told if not place.endswith(": tenant")] == []


def test_row_level_security_holds_on_every_table():
    whole = "\n".join(text for _, text in migrations())
    for before, after in re.findall(r"ALTER TABLE perdure\.(\w+) RENAME TO (\w+)", whole):
        whole = re.sub(rf"\bperdure\.{before}\b", f"perdure.{after}", whole)
    made = set(re.findall(r"CREATE TABLE perdure\.(\w+)", whole)) - {"schema_version"}
    assert made == set(TABLES)
    for table in TABLES:
        assert f"ALTER TABLE perdure.{table} ENABLE ROW LEVEL SECURITY" in whole
        assert f"ALTER TABLE perdure.{table} FORCE ROW LEVEL SECURITY" in whole
        assert re.search(rf"CREATE POLICY \w+ ON perdure\.{table} USING \(tenant = ", whole)


@pytest.mark.parametrize("name", sorted(set(query_names()) - OF_NOBODY))
def test_every_statement_about_rows_names_the_tenant(name):
    sql = bare(query(name))
    if name.startswith("add_"):
        assert re.search(r"INSERT INTO perdure\.\w+ \(tenant\b", sql)
    else:
        assert re.search(r"\btenant = (?:%s|\w\.tenant)", sql) or "(tenant, " in sql, name


def test_the_migrations_are_numbered_without_gaps():
    assert [number for number, _ in migrations()] == list(range(1, len(migrations()) + 1))
