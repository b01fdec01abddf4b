"""The page storage-format.md names every record, every field and every column there is."""

import hashlib
import re
import sqlite3
import struct
import typing
from contextlib import closing
from hashlib import blake2b

import apsw
import msgspec
import pytest
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from markdown_page import blocks
from perdure.errors import Corrupt, Unavailable
from perdure.keystore import FileKeystore
from perdure.log import records
from perdure.log.postgres.sealing import RECORDS_MAX, CachePlace, Sealer
from perdure.log.postgres.tenants import tenant_id
from perdure.log.protocol import Head
from perdure.log.sqlite.schema import APPLICATION_ID, CACHE, FORMAT_VERSION, GENERATION, LOCK
from perdure.log.sqlite.seals import SEALED_VERSION
from perdure.log.sqlite.seals import TABLE as SEAL
from perdure.vectors import PartitionedVectorIndex, VectorDescriptor
from perdure.vectors import VectorRecord as IndexedVector
from postgres_server import fresh_database, shared_server
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
        if (block.language, block.needs) == ("sql", "")
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


# PostgreSQL


def test_the_tables_of_a_database_are_given_column_by_column_in_order():
    rows = shared_server().execute(
        "SELECT table_name::text, column_name::text FROM information_schema.columns WHERE table_schema = 'perdure' "
        "ORDER BY table_name, ordinal_position",
        fresh_database(),
    )
    made = {}
    for table, column in rows:
        made.setdefault(table, []).append(column)
    [block] = [block for block in blocks(PAGE) if (block.language, block.needs) == ("sql", "postgres")]
    lines = re.findall(r"^(\w+) \((.*)\)$", block.text, re.MULTILINE)
    assert {table: told.split(", ") for table, told in lines} == made


def test_a_sealed_record_has_the_bytes_of_the_page(tmp_path):
    tenant, keystore = tenant_id("acme"), FileKeystore(tmp_path / "keys")
    assert tenant.bytes == blake2b(b"acme", digest_size=16, person=b"perdure tenant").digest()
    keystore.put_secret(tenant, bytes(32))
    sealer = Sealer(tenant, keystore)
    [number] = sealer.new_keys(7, 1)
    sealed = sealer.seal(number, 3, 7, 9, b"the record")
    assert len(sealed) == len(b"the record") + 28
    [key] = keystore.find_keys(tenant, [number]).values()

    def place(letter, seq):
        return tenant.bytes + letter + b"".join(n.to_bytes(8, "little") for n in (3, 7, seq))

    assert len(place(b"r", 9)) == 41
    assert AESGCM(key).decrypt(sealed[:12], sealed[12:], place(b"r", 9)) == b"the record"
    head = Head(epoch=7, seq=9, erasures=4, digest=bytes(range(32)))
    [_, part] = sealer.seal_parts(number, CachePlace(3, "naïve", head, 2), [b"zero", b"one"])
    snapshot = b"".join(n.to_bytes(8, "little") for n in (9, 4, 2)) + head.digest + "naïve".encode()
    assert AESGCM(key).decrypt((1).to_bytes(12, "little"), part, place(b"c", 1) + snapshot) == b"one"
    assert f"`(seq - 1) // {RECORDS_MAX}`" in TEXT


def test_the_file_of_a_keystore_has_the_bytes_of_the_page(tmp_path):
    tenant, keystore, secret = tenant_id("acme"), FileKeystore(tmp_path / "keys"), bytes(range(32))
    keystore.put_secret(tenant, secret)
    made = keystore.new_keys(tenant, 2)
    keystore.destroy(tenant, [1])

    def check(number, kept):
        return blake2b(tenant.bytes + number.to_bytes(8, "little") + kept, digest_size=16).digest()

    head = b"perdure keys 1\0\0" + tenant.bytes + secret + check(0, secret)
    number, key = made[1]
    slot = number.to_bytes(8, "little") + key + check(number, key) + bytes(8)
    assert (tmp_path / "keys" / f"{tenant}.keys").read_bytes() == head + bytes(64) + slot
    for shown, start in (("the number", 0), ("the key", 8)):
        assert f"| {start} | {8 if start == 0 else 32} | {shown}" in section("The keystore's file")


def test_the_mark_of_a_vector_index_is_laid_out_as_the_page_says(tmp_path):
    place = tmp_path / "index"
    with PartitionedVectorIndex.open(place, VectorDescriptor(dimension=3)) as index:
        index.replace_partition("p", [IndexedVector(id="a", embedding=(0.0, 1.0, 0.0))])
        token = index.observe().token
        mark = place.with_name("index.mark").read_bytes()
    rows = re.findall(r"^\| (\d+) \| (\d+) \| (.+) \|$", section("A vector index"), re.MULTILINE)
    told = {what.split(",")[0]: mark[int(at) : int(at) + int(size)] for at, size, what in rows}
    assert sum(int(size) for _, size, _ in rows) == len(mark) == 256
    assert told["`PERDVIX1`"] == b"PERDVIX1"
    assert int.from_bytes(told["its revision"], "little") == token.revision == 1
    assert f"sha256:{told['its head digest'].hex()}" == token.head_digest
    history = hashlib.sha256(
        b"perdure.vector-index-history.v1\0" + told["nonce of the last change that returned"]
    )
    assert f"sha256:{history.hexdigest()}" == token.history_id
    assert blake2b(mark[:240], digest_size=16).digest() == mark[240:]
    assert not any(told["zeros"])
    with closing(sqlite3.connect(place)) as db:
        (data,) = db.execute("SELECT data FROM block").fetchone()
        (part,) = db.execute("SELECT data FROM part").fetchone()
    size = int.from_bytes(part[8:16], "little")
    digest = hashlib.sha256(b"perdure.vector-partition.v1\0" + data[:size]).digest()
    assert (len(data), len(part), part[32:64]) == (4_000, 88, digest)
    assert data[size - 12 : size] == struct.pack("<3f", 0.0, 1.0, 0.0)
