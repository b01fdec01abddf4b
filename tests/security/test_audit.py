"""The audit of a server: who wrote by which key, which key was refused, and which keys were made and ended."""

from __future__ import annotations

from perdure import Store
from perdure.server.keys import Keyring, key_digest
from perdure.server.roots import find_directory
from unit.cli.command_line import run, store_path

from .site import Site

__all__ = ["run", "store_path"]


def events(site: Site, tenant: str):
    site.app.close()
    with Store.open(find_directory(site.directory, tenant), clock=site.clock) as store:
        return store.events(limit=1_000).items, store.log.secret, store.verify_events()


def test_an_event_names_the_key_that_wrote_and_the_one_that_was_refused(site: Site):
    writer, reader = site.key("a", principal="u1"), site.key("a", "read", principal="u1")
    other = site.key("b", "admin", principal="u1")
    assert site.call("remember", {"text": "told", "id": "f"}, writer).status_code == 200
    assert site.call("remember", {"text": "told too"}, reader).status_code == 403
    assert site.call("recall", {"query": "told", "spaces": [{"principal": "u2"}]}, reader).status_code == 403
    assert site.call("list", {}, other, perdure_tenant="a").status_code == 403
    found, secret, findings = events(site, "a")
    ids = [key.split("_")[1] for key in (writer, reader)]
    assert [(one.type, one.actor) for one in found] == [
        ("created", ids[0]),
        ("key_denied", ids[1]),
        ("key_denied", ids[1]),
    ]
    assert found[1].details == {"key": key_digest(secret, ids[1])}
    assert findings == ()


def test_requests_without_a_known_key_leave_no_event(site: Site):
    site.call("remember", {"text": "told"}, site.key("a", principal="u1"))
    for key in (None, "pk_0", f"pk_{'0' * 16}_{'0' * 64}"):
        assert site.call("list", {}, key).status_code == 401
    found, _, _ = events(site, "a")
    assert [one.type for one in found] == ["created"]


def test_the_making_and_the_end_of_a_key_are_events_of_the_store(run, store_path):
    assert run("remember", "told").code == 0
    made = run("keys", "create", "--read-only", "--json").json["created"]
    assert run("keys", "revoke", made["id"]).code == 0
    with Store.open(store_path) as store:
        found = store.events().items
        digest = key_digest(store.log.secret, made["id"])
    assert [(one.type, one.details) for one in found[1:]] == [
        ("key_created", {"key": digest, "role": "read"}),
        ("key_revoked", {"key": digest, "role": "read"}),
    ]
    with Keyring(store_path) as keyring:
        assert [key.revoked_at is None for key in keyring.all_keys()] == [False]


def test_recalls_are_events_where_all_is_to_be_kept(tmp_path):
    with Site(tmp_path / "full", audit="full") as site:
        key = site.key(principal="u1")
        site.call("remember", {"text": "told"}, key)
        for _ in range(3):
            assert site.call("recall", {"query": "told"}, key).status_code == 200
        found, _, _ = events(site, "default")
    assert [one.type for one in found] == ["created", *["recalled"] * 3]
    assert {one.actor for one in found} == {key.split("_")[1]}
