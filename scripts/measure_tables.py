"""Tells what a fact takes in a database and in memory: fills a tenant of its own, measures, deletes it again.

    python scripts/measure_tables.py postgresql://perdure@db/memory --facts 100000

What other tenants of the tables write meanwhile is counted with it, so measure in a database that nobody else uses.
"""

from __future__ import annotations

import argparse
import random
import subprocess
import sys
import tempfile
from pathlib import Path

import psycopg

from perdure import NewFact, Store
from perdure.databases import delete_tenant
from perdure.log.postgres.tenants import tenant_id

TENANT = "measured by scripts/measure_tables.py"
BATCH = 1000
WORDS = 20  # of a fact, out of a vocabulary of VOCABULARY
VOCABULARY = 20_000
TABLES = ("record", "cache_part")
SET_TENANT = "SELECT set_config('app.tenant', %s, true)"
SIZES = """
SELECT c.relname, pg_table_size(c.oid), pg_indexes_size(c.oid)
FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace WHERE n.nspname = 'perdure' AND c.relkind = 'r'
"""


def main(arguments: list[str]) -> int:
    """Measure and print; return the exit code."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("address", help="of the database, as a store takes it")
    parser.add_argument("--facts", type=int, default=100_000)
    parser.add_argument(
        "--served-from", metavar="KEYS", help=argparse.SUPPRESS
    )  # a process of its own that reads
    told = parser.parse_args(arguments)
    if told.served_from is not None:
        print(_grown(told.address, Path(told.served_from)))
        return 0
    if told.facts < BATCH or told.facts % BATCH:
        parser.error(f"--facts must be a multiple of {BATCH}")
    with tempfile.TemporaryDirectory() as folder:
        keys = Path(folder) / "keys"
        keys.mkdir(mode=0o700)  # others may have tenants in the database, with a keystore of their own
        try:
            measure(told.address, keys, told.facts)
        finally:
            delete_tenant(told.address, TENANT, keystore=keys)
    return 0


def measure(address: str, keys: Path, facts: int) -> None:
    """Fill the tenant and print what it takes."""
    chance = random.Random(1)
    before = _sizes(address)
    text_bytes = 0
    with Store.open(address, tenant=TENANT, keystore=keys, audit="off") as store:
        memory = store.memory("measured")
        for start in range(0, facts, BATCH):
            batch = [_fact(chance, number) for number in range(start, start + BATCH)]
            text_bytes += sum(len(fact.text.encode()) for fact in batch)
            memory.remember_many(batch)
    command = [sys.executable, __file__, address, "--served-from", str(keys)]
    grown = int(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    after = _sizes(address)
    print(f"{facts} facts of {text_bytes / facts:.0f} bytes of text, under ids and subjects of 12 bytes")
    for table in TABLES:
        rows, indexes = (now - then for now, then in zip(after[table], before[table], strict=True))
        print(f"{table:<11} {rows / facts:7.1f} bytes a fact, its index {indexes / facts:7.1f}")
    print(
        f"of cache_part {_cache_bytes(address) / facts:.1f} are in use; the rest is what autovacuum has yet to free"
    )
    print(f"keystore    {_keys(keys) / facts:7.1f} bytes a fact")
    print(f"memory      {grown / facts:7.1f} bytes a fact, of a process that serves it")


def _grown(address: str, keys: Path) -> int:
    """Return by how much a process grows that reads all facts and answers a question."""
    with Store.open(address, tenant=TENANT, keystore=keys, audit="off") as store:
        before = _resident()
        store.memory("measured").recall("word1 word2")
        return _resident() - before


def _resident() -> int:
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) * 1024
    raise SystemExit("the memory of a process is measured on Linux alone")


def _fact(chance: random.Random, number: int) -> NewFact:
    words = " ".join(f"word{min(VOCABULARY, int(chance.paretovariate(0.5)))}" for _ in range(WORDS))
    return NewFact(text=words, id=f"fact{number:08}", subject=f"subj{number:08}")


def _sizes(address: str) -> dict[str, tuple[int, int]]:
    with psycopg.connect(address) as connection:
        return {name: (rows, indexes) for name, rows, indexes in connection.execute(SIZES)}


def _cache_bytes(address: str) -> int:
    digest = tenant_id(TENANT)
    with psycopg.connect(address) as connection:
        connection.execute(SET_TENANT, (str(digest),))
        named = connection.execute("SELECT own FROM perdure.naming WHERE tenant = %s", (digest,)).fetchone()
        if named is None:
            return 0
        connection.execute(SET_TENANT, (str(named[0]),))
        told = "SELECT coalesce(sum(size), 0)::int8 FROM perdure.cache WHERE tenant = %s"
        row = connection.execute(told, named).fetchone()
        return 0 if row is None else int(row[0])


def _keys(keys: Path) -> int:
    return sum(path.stat().st_size for path in keys.iterdir())


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
