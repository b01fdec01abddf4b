"""A database never holds a word of anybody's, and what was forgotten can be opened by nobody, whatever copies were kept.

Its directory is what a backup or a replica would have: heap, indexes and all of the write-ahead log; and the server's own
log, told to hold every statement with its parameters.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple
from uuid import UUID

import pytest
from bench.postgres_server import Server

from erasure.governed_places import GOVERNED_PLACES
from erasure.places import MADE_OF, MARKER, NOW, PLACES, VECTOR, fill, vector_of
from erasure.scan import Hits, forms_of, found, vector_forms
from perdure import ManualClock, Store
from perdure.errors import Corrupt, Moved, WrongKey
from perdure.log.postgres import FileKeystore
from perdure.log.postgres.sealing import Sealer
from postgres_server import ROLE, fresh_database, identity_of

pytestmark = pytest.mark.slow

EVERY_PLACE: dict[str, Any] = PLACES | {f"node: {name}": place for name, place in GOVERNED_PLACES.items()}
WITH_CACHE = ("text", "tag", "long document", "vector that was searched", "node: content")
SETTINGS = {
    "fsync": "off",
    "log_statement": "all",
    "log_parameter_max_length": "-1",
    "log_parameter_max_length_on_error": "-1",
    "wal_keep_size": "2GB",  # nothing of the log goes
    "max_wal_size": "4GB",
}
FORMS = (
    forms_of(MARKER)
    | {f"given {name}": form for name, form in vector_forms(VECTOR).items()}
    | {f"made {name}": form for name, form in vector_forms(vector_of(MADE_OF)).items()}
)


class Row(NamedTuple):
    """A ciphertext as the table of records held it at some time."""

    tenant: UUID
    space: int
    epoch: int
    seq: int
    key: int
    data: bytes


class Kept:
    """What somebody copied out of a keystore, as a keystore."""

    def __init__(self, keys: dict[UUID, dict[int, bytes]]) -> None:
        self.keys = keys

    def find_keys(self, tenant: UUID, numbers: Any) -> dict[int, bytes]:
        there = self.keys.get(tenant, {})
        return {number: there[number] for number in numbers if number in there}


class Site:
    """A server, its database, and the keystore beside it."""

    def __init__(self, keystore: Path) -> None:
        self.server = Server(SETTINGS)
        self.database = fresh_database(self.server)
        self.keystore = keystore
        self.clock = ManualClock(NOW)
        # All stores of one address share their connections, which stay as long as one of them is open.
        self._holder = self.open("holder")

    def open(self, tenant: str, **how: Any) -> Store:
        how = {"keystore": self.keystore, "clock": self.clock} | how
        return Store.open(self.server.address(self.database, ROLE), tenant=tenant, **how)

    def close(self) -> None:
        self._holder.close()
        self.server.stop()

    def traces(self) -> Hits:
        """Return what files hold of the marker, once all that the server has in memory is in them."""
        self.server.execute("CHECKPOINT")
        return found(self.server.root, FORMS)

    def rows(self) -> list[Row]:
        """Return every ciphertext of a record."""
        told = self.server.execute(
            "SELECT tenant, space, epoch, seq, key, data FROM perdure.record WHERE data IS NOT NULL",
            self.database,
        )
        return [Row(*row) for row in told]

    def copy_keys(self, rows: list[Row]) -> Kept:
        """Return all keys that there are to these rows."""
        wanted: dict[UUID, set[int]] = {}
        for row in rows:
            wanted.setdefault(row.tenant, set()).add(row.key)
        keys = {}
        for tenant, numbers in wanted.items():
            try:
                keys[tenant] = FileKeystore(self.keystore).find_keys(tenant, numbers)
            except WrongKey:  # nothing of the tenant is left
                continue
        return Kept(keys)

    def key_bytes(self) -> bytes:
        return b"".join(path.read_bytes() for path in self.keystore.rglob("*") if path.is_file())


def opened(rows: list[Row], keys: Kept) -> Iterator[tuple[Row, bytes]]:
    """Yield what can be opened, with its bytes."""
    sealers: dict[UUID, Sealer] = {}
    for row in rows:
        sealer = sealers.setdefault(row.tenant, Sealer(row.tenant, keys))  # type: ignore[arg-type]
        try:
            yield row, sealer.open(row.key, row.space, row.epoch, row.seq, row.data)
        except (Moved, Corrupt):
            continue


def is_marked(data: bytes) -> bool:
    return any(form in data for form in FORMS.values())


@pytest.fixture(scope="module")
def site(tmp_path_factory) -> Iterator[Site]:
    made = Site(tmp_path_factory.mktemp("site") / "keys")
    yield made
    made.close()


def test_what_is_forgotten_or_purged_cannot_be_opened_with_any_key_that_is_left(site):
    for name, place in EVERY_PLACE.items():
        with site.open(name) as store:
            if name in WITH_CACHE:
                fill(store)
            place.plant(store)
            store.events()
    for name in WITH_CACHE:
        with site.open(name) as store:
            assert store.memory().recall("note", k=1)
    assert site.traces() == {}

    old = site.rows()
    copied = site.copy_keys(old)
    marked = [row for row, data in opened(old, copied) if is_marked(data)]
    assert len({row.tenant for row in marked}) >= len(EVERY_PLACE), "each place holds what was planted"
    assert len(list(opened(old, copied))) == len(old)

    for name, place in EVERY_PLACE.items():
        with site.open(name) as store:
            place.remove(store)
            store.events()
            assert not store.health().erasure_pending
    assert site.traces() == {}
    now = site.copy_keys(old)
    assert [row[:4] for row, _ in opened(marked, now)] == []
    present = site.key_bytes()
    assert [row[:4] for row in marked if copied.keys[row.tenant][row.key] in present] == []
    after = site.rows()
    assert [row[:4] for row, data in opened(after, site.copy_keys(after)) if is_marked(data)] == []

    for name in EVERY_PLACE:
        with site.open(name) as store:
            assert not store.purge().pending
            assert store.verify().ok
    assert site.traces() == {}
    # Their audits have keys of their own, and are not written anew.
    own = {identity_of(site.server.address(site.database, ROLE), name) for name in EVERY_PLACE}
    assert [row[:4] for row, _ in opened(old, site.copy_keys(old)) if row.tenant in own] == []
    present = site.key_bytes()
    for tenant in own:
        assert [number for number, key in copied.keys[tenant].items() if key in present] == []


def test_the_scan_finds_what_a_store_without_a_keystore_leaves(site):
    """The control: what lies there unencrypted is seen in the heap and in the write-ahead log."""
    with site.open("control", keystore="off", secret=bytes(32)) as store:
        store.memory().remember(f"they say {MARKER} here", id="x", embedding=VECTOR)
        hits = site.traces()
        assert any(name.startswith("data/base/") for name in hits)
        assert any(name.startswith("data/pg_wal/") for name in hits)
        assert any(form.startswith("given") for forms in hits.values() for form in forms)
        store.memory().forget(ids=["x"])
        assert store.health().erasure_pending, "and it says that it cannot be sure of it"
        store.purge()
        assert store.health().erasure_pending
