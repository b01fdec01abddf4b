"""Checks a cluster of Citus, or another PostgreSQL, with the suite that every log must pass; prints what it found.

    python scripts/check_cluster.py postgresql://owner@coordinator/memory [postgresql://owner@worker1/memory …]

The first address is the coordinator's, for a role that may create: the tables are made there where there are none, and
distributed by tenant where the extension citus is present. Each further one is that of a node, through which the suite is
run once more. Every test works in tenants of its own, which are deleted at the end. The addresses' passwords come from
PGPASSWORD, PGPASSFILE or a service file. Needs the extras `postgres` and `test`.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import psycopg

from perdure.databases import migrate
from perdure.errors import PerdureError
from perdure.log.postgres.migrating import TABLES

SUITE = '''
"""Written by scripts/check_cluster.py."""
import os
from pathlib import Path
from uuid import uuid5, NAMESPACE_OID

import pytest

from perdure.databases import delete_tenant
from perdure.keystore import FileKeystore
from perdure.log.postgres import PostgresLog
from perdure.testing.log_suite import LogSpec

ADDRESS = os.environ["CHECKED_ADDRESS"]


class TestCluster(LogSpec):
    @pytest.fixture
    def reopen(self, tmp_path):
        keys, tenant = FileKeystore(tmp_path / "keys"), f"check {uuid5(NAMESPACE_OID, str(tmp_path))}"
        opened = []

        def open_log():
            opened.append(PostgresLog.open(ADDRESS, tenant=tenant, keystore=keys))
            return opened[-1]

        yield open_log
        for log in opened:
            log.close()
        delete_tenant(ADDRESS, tenant, keystore=keys)
'''
COLUMN = "SELECT column_to_column_name(logicalrelid, partkey) FROM pg_dist_partition WHERE logicalrelid = %s::regclass"
CITUS = "SELECT extversion FROM pg_extension WHERE extname = 'citus'"
NODES = "SELECT nodename, nodeport FROM pg_dist_node WHERE isactive AND shouldhaveshards ORDER BY 1, 2"
GROUPS = (
    "SELECT logicalrelid::text, colocationid FROM pg_dist_partition WHERE logicalrelid = ANY(%s::regclass[])"
)


def main(arguments: list[str]) -> int:
    """Check and print; return 0 where all holds, 1 where something does not."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("coordinator", help="address of the node that the tables are made through")
    parser.add_argument("nodes", nargs="*", help="addresses of further nodes to run the suite through")
    parser.add_argument("--dry", action="store_true", help="only say what would be done")
    parser.add_argument(
        "--select", default="", help="a choice of the suite's tests, as pytest takes it with -k"
    )
    told = parser.parse_args(arguments)
    addresses = [told.coordinator, *told.nodes]
    for number, address in enumerate(addresses, 1):
        if not address.startswith(("postgresql://", "postgres://")):
            parser.error(f"address {number} is none: give postgresql://USER@HOST:PORT/DATABASE")
    if told.dry:
        _explain(len(addresses))
        return 0
    try:
        made = migrate(told.coordinator)
    except PerdureError as error:
        print(f"the tables could not be made: {error.message}")
        return 1
    print(f"tables: version {made.version}" + ("" if made.before else ", made now"))
    placed = _check_placed(told.coordinator)
    passed = [_run_suite(number, address, told.select) for number, address in enumerate(addresses, 1)]
    return 0 if placed and all(passed) else 1


def _explain(count: int) -> None:
    print("would make the tables through node 1, or bring them up to this library's version")
    print("would look whether each is distributed by tenant, and all in one colocation group")
    for number in range(1, count + 1):
        print(f"would run the log suite through node {number}, in tenants of its own that it deletes again")


def _check_placed(address: str) -> bool:
    """Print how the tables are placed; whether that is as it has to be. One plain PostgreSQL holds without."""
    with psycopg.connect(address) as connection:
        version = connection.execute(CITUS).fetchone()
        if version is None:
            print(
                "not distributed: this PostgreSQL has no extension citus, so all tenants are on one primary"
            )
            return True
        nodes = connection.execute(NODES).fetchall()
        names = [f"perdure.{table}" for table in TABLES]
        groups: dict[str, int] = dict(connection.execute(GROUPS, (names,)).fetchall())
        columns = {name: connection.execute(COLUMN, (name,)).fetchone() for name in names if name in groups}
    print(f"citus {version[0]}, {len(nodes)} nodes that hold shards")
    holds = True
    for name in names:
        if name not in groups:
            print(f"{name}: NOT DISTRIBUTED")
        elif columns[name] != ("tenant",):
            print(f"{name}: distributed by another column than tenant")
        elif groups[name] != groups[names[0]]:
            print(f"{name}: NOT COLOCATED with {names[0]}")
        else:
            continue
        holds = False
    if holds:
        print(f"all {len(names)} tables are distributed by tenant, in one colocation group")
    return holds


def _run_suite(number: int, address: str, select: str) -> bool:
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "test_cluster.py"
        file.write_text(SUITE, encoding="utf-8")
        command = [
            sys.executable,
            "-m",
            "pytest",
            "-q",
            "-p",
            "no:cacheprovider",
            "--rootdir",
            folder,
            str(file),
        ]
        # No plugin is needed, and to import those that are installed takes longer than the suite.
        done = subprocess.run(
            [*command, *(["-k", select] if select else [])],
            env={**os.environ, "CHECKED_ADDRESS": address, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"},
            cwd=folder,
            capture_output=True,
            text=True,
            check=False,
        )
    print(
        f"log suite through node {number}: {done.stdout.strip().splitlines()[-1] if done.stdout else 'did not start'}"
    )
    if done.returncode:
        print(done.stdout[-4000:] + done.stderr[-2000:])
    return done.returncode == 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
