"""Write tenants of a database with the build that is installed, and what they answer: rows for later builds to read.

    python scripts/make_golden_database.py OUT

Run by hand, once for each version of the tables that a release writes, with that release's own build installed in an
environment of its own. OUT must not exist; it belongs under `tests/golden/` as `postgres-VERSION`. It gets
`rows.sql.gz`, the insertions of all rows, the folder `keys`, which is the keystore, and `expected.json.gz`. What was kept
is never written again: it stands for the tables that people have.
"""

import gzip
import json
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests"))

from bench.postgres_server import Server, fresh_database

from golden.answers import NOW, answers
from perdure import ManualClock, Store, Unavailable
from perdure.databases import delete_tenant
from perdure.keystore import FileKeystore
from perdure.model.namespace import Namespace
from perdure.space import snapshot
from perdure.space.space import Settings, Space

START = 1_700_000_000_000
MINUTE = 60_000
SECRET = bytes(range(32))  # of the tenant that is not encrypted
COLUMNS = """
SELECT table_name::text, array_agg(column_name::text ORDER BY ordinal_position) FROM information_schema.columns
WHERE table_schema = 'perdure' AND table_name <> 'schema_version' GROUP BY table_name ORDER BY table_name
"""


class Away(FileKeystore):
    """A keystore that is away when keys are to be destroyed."""

    def destroy(self, tenant, numbers):
        raise Unavailable("the keystore is away")

    def drop_tenant(self, tenant):
        raise Unavailable("the keystore is away")


def tell(store, clock):
    """Write more records than one data key is for, forget, purge, and forget again."""
    memory = store.memory()
    memory.remember("Ada lives in Turin", id="ada-1", subject="ada.home", valid_from=START - 90 * MINUTE)
    clock.advance(MINUTE)
    memory.remember("Ada lives in Genoa", id="ada-2", subject="ada.home", supersedes=["ada-1"])
    memory.remember("The kettle is blue", id="kettle", tags=["kitchen"])
    memory.remember("A secret about the kettle", id="gone")
    memory.remember("A teapot that nobody needs", id="teapot")
    clock.advance(MINUTE)
    memory.forget(ids=["gone"])
    many = store.memory("ada", "work")
    many.remember_many([f"Entry {number} of the ledger" for number in range(300)])
    clock.advance(MINUTE)
    store.purge()
    many.remember("A cup stands beside the kettle", id="cup", idempotency_key="first")
    memory.forget(ids=["teapot"])
    memory.remember("The gas is off since May", id="closed")
    memory.end("closed", at=START, reason="The gas came back")
    clock.advance(MINUTE)


def keep_snapshot(store, clock):
    """Keep a snapshot of the larger space; one this small keeps none by itself."""
    space = Space(store.log, Namespace("ada", "work"), Settings("english.v1", 0.9, 0.4), clock)
    cached = space.read(lambda state, _: snapshot.cached_state(state))
    store.log.put_cache(store.log.find_space(space.name), snapshot.NAME, cached)


def shown(address, keys, **told):
    """Return what a tenant answers, and its events."""
    with Store.open(address, clock=ManualClock(NOW), **told) as store:
        return {**answers(store), "events": [line.decode() for line in store.export_events()]}


def written(server, database):
    """Return the insertions of all rows, table by table."""
    lines = []
    for table, columns in server.execute(COLUMNS, database):
        told, places = ", ".join(columns), ", ".join(["%L"] * len(columns))
        row = f"'INSERT INTO perdure.{table} ({told}) VALUES ({places});'"
        lines += server.execute(f"SELECT format({row}, {told}) FROM perdure.{table} ORDER BY 1", database)
    return "".join(f"{line}\n" for (line,) in lines)


def main(out):
    out.mkdir(parents=True)
    server = Server()
    try:
        database = fresh_database(server)
        address, keys, clock = server.address(database), out / "keys", ManualClock(START)
        with Store.open(address, tenant="acme", keystore=keys, clock=clock) as store:
            tell(store, clock)
            keep_snapshot(store, clock)
            store.log.note_backup(START)
        with Store.open(address, tenant="acme", keystore=Away(keys), clock=clock) as store:
            store.memory().forget(ids=["kettle"])  # its data key stays condemned
        with Store.open(address, tenant="plain", keystore="off", secret=SECRET, clock=clock) as store:
            store.memory().remember("Ben likes coffee", id="ben")
            store.memory().remember("Ben likes tea", id="tea")
            store.memory().forget(ids=["tea"])
        with Store.open(address, tenant="buried", keystore=keys, clock=clock) as store:
            store.memory().remember("Cid lives in Rome")
        assert delete_tenant(address, "buried", keystore=Away(keys)).pending
        told = {
            "acme": shown(address, keys, tenant="acme", keystore=keys),
            "plain": shown(address, keys, tenant="plain", keystore="off", secret=SECRET),
        }
        packed(out / "rows.sql.gz", written(server, database))
        packed(out / "expected.json.gz", json.dumps(told, ensure_ascii=False, separators=(",", ":")) + "\n")
    finally:
        server.stop()


def packed(path, text):
    path.write_bytes(gzip.compress(text.encode(), mtime=0))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
