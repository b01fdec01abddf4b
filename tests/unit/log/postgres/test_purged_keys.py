"""Which data keys a purge destroys."""

from __future__ import annotations

from perdure import Store
from perdure.audit.audited_log import DIRECTORY
from perdure.log.postgres import FileKeystore
from postgres_server import fresh_address, identity_of


def test_a_purge_destroys_all_keys_of_memories_and_leaves_those_of_the_audit(tmp_path):
    address, keys = fresh_address(), tmp_path / "keys"
    with Store.open(address, tenant="ada", keystore=keys) as store:
        memory = store.memory("ann")
        memory.remember("tea")
        assert store.events().items

        def kept(part: str = "") -> set[int]:
            return set(FileKeystore(keys).find_keys(identity_of(address, "ada", part), range(1, 200)))

        own, audit = kept(), kept(DIRECTORY)
        assert own
        assert audit
        purged = store.purge()
        assert not purged.pending
        assert not own & kept()
        assert audit <= kept(DIRECTORY)
