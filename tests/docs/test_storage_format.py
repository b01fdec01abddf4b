"""The page storage-format.md names every record, every field and every column there is."""

import re
import typing

import apsw
import msgspec
import pytest

from markdown_page import blocks
from perdure.errors import Corrupt, Unavailable
from perdure.log import records
from perdure.log.sqlite.schema import APPLICATION_ID, CACHE, FORMAT_VERSION, GENERATION, LOCK
from perdure.log.sqlite.seals import SEALED_VERSION
from perdure.log.sqlite.seals import TABLE as SEAL
from source_tree import ROOT

PAGE = ROOT / "docs" / "storage-format.md"
TEXT = PAGE.read_text(encoding="utf-8")
TYPES = typing.get_args(records.Record)
PARTS = (records.SourceFields, records.Merges, records.ReceiptItem)
EXAMPLE = records.LinkRecord(2, 1, False, None, 1_700_000_000_000)


def section(heading):
    """Return the text under a heading, up to the next one."""
    found = re.search(rf"^#+ {re.escape(heading)}$\n(.*?)(?=^#|\Z)", TEXT, re.MULTILINE | re.DOTALL)
    assert found, f"the page has no heading {heading!r}"
    return found[1]


def described(heading):
    """Return the names in the first column of the section's table, in order."""
    return re.findall(r"^\| `(\w+)` \| [^|]+ \| [^|]*\|$", section(heading), re.MULTILINE)


@pytest.mark.parametrize("record", TYPES, ids=lambda record: record.__name__)
def test_every_record_is_described_under_its_number_field_by_field_in_order(record):
    tag = record.__struct_config__.tag
    assert described(f"{tag}: {record.__name__}") == list(record.__struct_fields__)


@pytest.mark.parametrize("part", PARTS, ids=lambda part: part.__name__)
def test_every_part_of_a_record_is_described_field_by_field_in_order(part):
    assert described(part.__name__) == list(part.__struct_fields__)


def test_the_page_describes_no_record_that_there_is_not():
    told = set(re.findall(r"^### (\d+: \w+)$", TEXT, re.MULTILINE))
    assert told == {f"{record.__struct_config__.tag}: {record.__name__}" for record in TYPES}


def test_the_bytes_of_the_example_are_those_of_its_record():
    block = next(block for block in blocks(PAGE) if "a LinkRecord" in block.text)
    told = "".join(re.match(r"(?:[0-9a-f]{2} )+", line)[0] for line in block.text.splitlines())
    assert bytes.fromhex(told) == records.encode(EXAMPLE)
    assert f"one version byte, **1** to **{records.VERSION}**" in TEXT


def test_a_record_that_ends_early_has_defaults_and_items_past_the_last_field_are_passed_over():
    version, *items = bytes([records.VERSION]), *msgspec.msgpack.decode(records.encode(EXAMPLE)[1:])
    assert records.decode(version + msgspec.msgpack.encode(items[:-1])) == EXAMPLE
    assert records.decode(version + msgspec.msgpack.encode([*items, "later"])) == EXAMPLE


def test_a_type_or_a_version_that_is_not_known_is_refused():
    unknown = msgspec.msgpack.encode([max(record.__struct_config__.tag for record in TYPES) + 1, 1])
    with pytest.raises(Corrupt):
        records.decode(bytes([records.VERSION]) + unknown)
    with pytest.raises(Unavailable, match=f"format {records.VERSION + 1}"):
        records.decode(bytes([records.VERSION + 1]) + records.encode(EXAMPLE)[1:])


def columns(statements):
    """Return the columns of each table that the statements create, and the names of their indexes."""
    db = apsw.Connection(":memory:")
    for statement in statements:
        db.execute(statement)
    tables = [row[0] for row in db.execute("SELECT name FROM sqlite_schema WHERE type = 'table'")]
    named = db.execute("SELECT name FROM sqlite_schema WHERE type = 'index' AND sql IS NOT NULL")
    return {table: [row[1] for row in db.execute(f"PRAGMA table_info({table})")] for table in tables}, [
        row[0] for row in named
    ]


def test_the_tables_of_a_store_are_given_column_by_column_in_order():
    tables, indexes = columns([*GENERATION, *LOCK, SEAL])
    told, _ = columns(
        "CREATE TABLE " + statement
        for block in blocks(PAGE)
        if block.language == "sql"
        for statement in re.split(r"\n(?=\w)", block.text.strip())
    )
    assert told == tables
    assert [name for name in indexes if f"`{name}`" not in TEXT] == []


def test_the_tables_of_a_cache_are_named():
    tables, _ = columns(CACHE)
    assert [table for table in tables if f"`{table}`" not in section("Caches")] == []


def test_the_page_names_the_version_and_the_mark_of_a_store():
    assert f"version is **{FORMAT_VERSION}**" in TEXT
    assert f"has version **{SEALED_VERSION}**" in TEXT
    assert f"0x{APPLICATION_ID:08X}" in TEXT
