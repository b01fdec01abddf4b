"""The command line on a store in a database: the same commands, its own, and what only files have."""

from __future__ import annotations

import json

import psycopg
import pytest

from perdure import InvalidRequest, NotFound, Store, Unavailable, WrongKey, copy, verify
from perdure.cli import addresses
from perdure.databases import delete_tenant, migrate
from perdure.errors import InvalidTenant
from perdure.log.postgres import naming
from perdure.log.postgres.migrating import newest
from perdure.opening import ADDRESSES, DEFAULT_TENANT, Opening, has_tenant
from perdure.server.keys import checked_tenant
from postgres_server import ROLE, fresh_address, fresh_database, shared_server
from unit.cli.command_line import texts

PASSWORD = "correct-horse"


@pytest.fixture
def address():
    return fresh_address()


@pytest.fixture
def keys(tmp_path):
    return tmp_path / "keys"


@pytest.fixture
def on(run, address, keys, monkeypatch):
    monkeypatch.setenv("PERDURE_STORE", address)
    monkeypatch.setenv("PERDURE_KEYSTORE", str(keys))
    monkeypatch.setenv("PERDURE_KEY", "a passphrase of stores in files")
    return run


def bare_address():
    """Return the address of a database without tables, for its owner."""
    server = shared_server()
    return server.address(server.new_database())


def rows(address):
    """Return how many rows of each table there are, of all tenants."""
    database = address.split("/")[3].split("?")[0]
    tables = ("tenant", "space", "record", "lookup", "cache", "cache_part", "key_note", "copy_note")
    return {
        one: shared_server().execute(f"SELECT count(*) FROM perdure.{one}", database)[0][0] for one in tables
    }


def tables(address):
    with psycopg.connect(address) as connection:
        return connection.execute("SELECT to_regnamespace('perdure') IS NOT NULL").fetchone()[0]


def test_the_commands_name_databases_as_the_library_does():
    assert (addresses.ADDRESSES, addresses.DEFAULT_TENANT) == (ADDRESSES, DEFAULT_TENANT)


def test_what_one_command_tells_another_recalls(on):
    assert on("remember", "Alice lives in Paris", "--subject", "alice/city").code == 0
    assert texts(on("recall", "where does Alice live", "--json")) == ["Alice lives in Paris"]
    assert on("stats", "--json").json["backend"] == "postgres"


def test_tenants_of_one_database_see_nothing_of_each_other(on, monkeypatch):
    on("remember", "of acme", "--tenant", "acme")
    monkeypatch.setenv("PERDURE_TENANT", "beta")
    on("remember", "of beta")
    assert texts(on("list", "--json")) == ["of beta"]
    assert texts(on("--tenant", "acme", "list", "--json")) == ["of acme"]


def test_a_store_of_other_options_than_the_environments(run, address, keys, tmp_path):
    secret = tmp_path / "secret"
    secret.write_text("ab" * 32)
    secret.chmod(0o600)
    plain = ("--store", address, "--tenant", "plain", "--keystore", "off", "--secret-file", str(secret))
    assert run("remember", "in the clear", *plain).code == 0
    assert texts(run("list", "--json", *plain)) == ["in the clear"]
    refused = run("list", "--store", address, "--tenant", "plain", "--json")
    assert (refused.code, refused.error["field"]) == (2, "keystore")


@pytest.mark.parametrize(
    "command", [("list",), ("recall", "tea"), ("stats",), ("spaces",), ("documents", "list")]
)
def test_a_command_that_only_reads_makes_no_tenant(on, address, keys, command):
    outcome = on(*command)
    assert outcome.code == 0
    assert "there is no store there yet" in outcome.err
    assert set(rows(address).values()) == {0}
    assert not keys.exists()


def test_a_command_that_only_reads_makes_no_tables(run, keys):
    address = bare_address()
    where = ("--store", address, "--keystore", str(keys))
    assert run("list", *where).code == 0
    assert run("forget", "--all", "--yes", *where).code == 1
    assert run("verify", *where).code == 1
    assert not tables(address)
    with pytest.raises(NotFound):
        verify(address, keystore=keys)
    assert not tables(address)


def test_a_password_on_the_command_line_is_refused_and_never_shown(run, address, monkeypatch):
    told = address.replace(f"{ROLE}@", f"{ROLE}:{PASSWORD}@")
    for store in (told, f"{address}&password={PASSWORD}", f"{address}&p%61ssword={PASSWORD}"):
        refused = run("list", "--store", store, "--json")
        assert (refused.code, refused.error["field"]) == (2, "store")
        assert "PGPASSFILE" in refused.error["message"]
        assert PASSWORD not in refused.out + refused.err
    for fine in (address, f"{address}&application_name=a:b@c"):
        assert addresses.checked_place(fine, "store") == fine
    for told_so in (told, told.replace("horse", "h@rse"), told.replace("horse", "h/rse")):
        assert "correct" not in addresses.shown_place(told_so)
    monkeypatch.setenv("PERDURE_STORE", told)
    shown = run("list")
    assert shown.code == 0
    assert "there is no store there yet" in shown.err
    assert PASSWORD not in shown.out + shown.err


@pytest.mark.parametrize(
    ("command", "named"),
    [
        (("backup", "copy"), "pg_basebackup"),
        (("rekey", "--plain", "--yes"), "purge"),
        (("verify", "--salvage", "saved"), "backup"),
        (("list", "--key-file", "k"), "--keystore"),
        (("list", "--backend", "sqlite"), "--keystore"),
    ],
)
def test_what_only_files_have_is_refused_in_one_line(on, command, named):
    on("remember", "tea")
    refused = on(*command)
    assert refused.code == 2
    assert named in refused.err
    assert len(refused.err.splitlines()) == 1


@pytest.mark.parametrize("option", ["--tenant", "--keystore"])
def test_a_store_in_files_has_neither_tenant_nor_keystore(run, store_path, option):
    for command in (("remember", "tea"), ("list",)):
        refused = run(*command, option, "acme", "--json")
        assert (refused.code, refused.error["field"]) == (2, option[2:])
    assert not store_path.exists()


def test_verify_reads_a_tenant_whole(on, address, keys):
    on("remember", "tea")
    told = on("verify", "--json")
    assert (told.code, told.json["ok"]) == (0, True)
    assert verify(address, keystore=keys).ok
    database = address.split("/")[3].split("?")[0]
    shared_server().execute("UPDATE perdure.record SET data = 'x' WHERE seq = 2", database)
    assert on("verify").code == 1
    assert not verify(address, keystore=keys).ok


def test_migrate_makes_the_tables_once_and_lets_a_role_in(run, keys):
    address = bare_address()
    fresh_database()  # which makes the role
    made = run("migrate", "--store", address, "--role", ROLE, "--json").json["migrated"]
    assert made == {"before": 0, "version": newest(), "granted": ROLE, "copy": False}
    assert run("migrate", "--store", address, "--json").json["migrated"]["before"] == newest()
    assert "already" in run("migrate", "--store", address).out
    assert migrate(address).before == newest()
    theirs = address.replace("postgres@", f"{ROLE}@")
    assert run("remember", "tea", "--store", theirs, "--keystore", str(keys)).code == 0


def test_the_commands_refuse_a_copy_of_a_database_and_say_what_to_do(run, keys):
    server, name = shared_server(), fresh_database()
    migrate(server.address(name))
    told = ("--keystore", str(keys), "--tenant", "acme")
    assert run("remember", "tea", "--store", server.address(name, ROLE), *told).code == 0
    copy = server.new_database(name)
    owner, where = server.address(copy), ("--store", server.address(copy, ROLE), *told)
    before = {file.name: file.read_bytes() for file in keys.iterdir()}
    for command in (
        ("remember", "milk"),
        ("forget", "--all", "--yes"),
        ("purge",),
        ("delete-tenant", "--yes"),
        ("verify",),
        ("list",),
    ):
        refused = run(*command, *where, "--json")
        assert (refused.code, refused.error["details"]) == (1, {"kind": "copy"})
        assert "perdure migrate --adopt" in refused.err
    assert {file.name: file.read_bytes() for file in keys.iterdir()} == before
    warned = run("migrate", "--store", owner, "--json")
    assert (warned.code, warned.json["migrated"]["copy"], "--adopt" in warned.err) == (0, True, True)
    assert "--adopt" in run("migrate", "--store", owner).err
    adopted = run("migrate", "--store", owner, "--adopt", "--json")
    assert (adopted.code, adopted.json["migrated"]["copy"], adopted.err) == (0, False, "")
    assert "open here" in run("migrate", "--store", owner, "--adopt").out
    assert run("list", *where).code == 0


def test_migrate_says_what_is_wrong(run, store_path):
    address = bare_address()
    fresh_database()
    for told in (
        ("--store", address, "--role", "nobody there"),
        ("--store", address.replace("postgres@", f"{ROLE}@")),
    ):
        refused = run("migrate", *told, "--json")
        assert (refused.code, refused.error["code"]) == (1, "unavailable")
    assert run("migrate", "--store", str(store_path)).code == 2


def test_a_database_without_tables_says_to_migrate_where_the_role_may_make_none(run, keys):
    fresh_database()
    where = ("--store", bare_address().replace("postgres@", f"{ROLE}@"), "--keystore", str(keys))
    for command in (("recall", "tea"), ("verify",), ("list",)):
        assert "perdure migrate" in run(*command, *where).err


def test_the_backend_of_an_absent_tenant_is_that_of_its_database(on):
    assert on("stats", "--tenant", "nobody", "--json").json["backend"] == "postgres"


@pytest.mark.parametrize(
    ("name", "is_servable"), [("acme", True), ("a" * 64, True), ("a" * 65, False), ("Ac me", False)]
)
def test_a_name_that_no_server_takes_is_warned_of_once_where_it_is_made(
    on, run, store_path, tmp_path, name, is_servable
):
    told = on("remember", "tea", "--tenant", name)
    assert (told.code, "no server" in told.err) == (0, not is_servable)
    assert "no server" not in on("remember", "milk", "--tenant", name).err
    with Store.open(store_path) as store:
        store.memory().remember("tea")
    where = ("--to", fresh_address(), "--to-keystore", str(tmp_path / "other"), "--to-tenant", name)
    copied = run("copy", "--from", str(store_path), *where)
    assert (copied.code, "no server" in copied.err) == (0, not is_servable)
    assert addresses.is_servable(name) == is_servable
    try:
        assert checked_tenant(name) == name
    except InvalidTenant:
        assert not is_servable


@pytest.mark.parametrize("name", [" a", "a ", "a\u200b"])
def test_of_a_name_that_is_refused_nothing_is_warned(on, name):
    refused = on("remember", "tea", "--tenant", name)
    assert refused.code == 2
    assert "no server" not in refused.err


def test_who_is_asked_for_a_name_sees_it_as_it_is_written(on):
    name = "a b/ü日本😀"
    assert on("remember", "tea", "--tenant", name).code == 0
    assert f'Delete the tenant "{name}"? [y/N]' in on("delete-tenant", "--tenant", name, stdin="no\n").err


def test_a_copy_into_a_tenant_that_is_there_says_one_cause_and_one_option(
    on, address, keys, store_path, tmp_path
):
    with Store.open(store_path) as store:
        store.memory().remember("milk")
    assert on("remember", "tea", "--tenant", "acme").code == 0
    copied = ("copy", "--from", str(store_path), "--to", address, "--to-tenant", "acme", "--to-keystore")
    other = on(*copied, str(keys)).err
    assert "is another store than a copy of this source: name a new tenant (--to-tenant)" in other
    assert "keystore" not in other
    (tmp_path / "more").mkdir(mode=0o700)
    locked = on(*copied, str(tmp_path / "more")).err
    assert "does not open: the keystore in" in locked
    assert "another store" not in locked
    assert all(told.count("--to-tenant") == 1 for told in (other, locked))


def test_what_is_said_of_damage_in_one_memory_brings_the_others_out(on, address, tmp_path):
    for who in ("ann", "bob"):
        assert on("remember", f"tea of {who}", "--principal", who).code == 0
    database = address.partition("?")[0].rpartition("/")[2]
    damage = "UPDATE perdure.record SET data = set_byte(data, 20, get_byte(data, 20) # 1) WHERE space = 1 AND seq = 2"
    server = shared_server()
    for line in (damage, "DELETE FROM perdure.cache_part", "DELETE FROM perdure.cache"):
        server.execute(line, database)
    found = on("verify")
    told = [
        found.out,
        on("list", "--principal", "ann").err,
        on("verify", "--salvage", str(tmp_path / "saved")).err,
    ]
    told.append(on("copy", "--to", str(tmp_path / "copy"), "--no-verify").err)
    for message in told:
        assert "perdure export --principal" in message
        assert "files, run" not in message
        assert "perdure copy" not in message
    listed = on("spaces").out
    assert "ann" in listed
    assert "bob" in listed
    kept = str(tmp_path / "bob.jsonl")
    assert on("export", "--principal", "bob", "--output", kept).code == 0
    assert on("import", kept, "--tenant", "saved").code == 0
    assert texts(on("list", "--principal", "bob", "--tenant", "saved", "--json")) == ["tea of bob"]


def test_an_erasure_that_waits_for_a_hold_names_it_and_the_next_one_ends_it(on, address, keys):
    for id_ in ("one", "two"):
        assert on("remember", f"tea {id_}", "--id", id_).code == 0
    hold = keys / "keystore.hold"
    hold.touch()
    told = on("forget", "--id", "one", "--yes")
    assert told.code == 0
    assert "while there is a file keystore.hold" in told.out
    assert "the next forget or purge destroys" in told.out
    assert "is reading" not in told.out
    with Store.open(address, keystore=keys) as store:
        assert len(store.memory().list().items) == 1, "not any next call"
        health = store.health()
        assert health.erasure_pending
        assert "while there is a file keystore.hold" in health.message
        assert "next calls" not in health.message
        hold.unlink()
        assert len(store.memory().list().items) == 1
        assert "the keystore has not confirmed" in store.health().message, "and nothing is held any more"
    assert "pending" not in (said := on("forget", "--id", "two", "--yes").out)
    assert "not finished" not in said
    with Store.open(address, keystore=keys) as store:
        assert not store.health().erasure_pending


def test_a_name_that_cannot_be_read_is_refused_where_a_tenant_is_made(on, run, store_path, tmp_path):
    refused = on("remember", "tea", "--tenant", "acme\u200b", "--json")
    assert (refused.code, refused.error["field"]) == (2, "tenant")
    with Store.open(store_path) as store:
        store.memory().remember("tea")
    where = ("--to", fresh_address(), "--to-keystore", str(tmp_path / "other"), "--to-tenant", "acme ")
    assert run("copy", "--from", str(store_path), *where).err.startswith(
        "perdure: --to-tenant begins or ends with"
    )


def test_who_deletes_a_tenant_is_asked_for_its_name_in_quotes_and_told_what_stays(on, monkeypatch):
    name = "acme? [y/N] y \u202e"  # of a time when such names were taken
    with monkeypatch.context() as before:
        before.setattr(naming, "check_new", lambda name: None)
        on("remember", "tea", "--tenant", name)
    asked = on("delete-tenant", "--tenant", name, stdin="no\n")
    assert 'Delete the tenant "acme? [y/N] y \\u202e"? [y/N]' in asked.err
    assert "API keys of a server for it (perdure keys) stay" in asked.err
    assert "makes the tenant anew" in on("delete-tenant", "--tenant", name, "--yes").out


def test_a_tenant_that_is_told_as_a_word_is_told_by_an_option(on):
    assert "--tenant NAME" in on("delete-tenant", "acme", "--yes").err


def test_what_is_no_keystore_is_refused_by_its_name(address):
    with pytest.raises(InvalidRequest, match="keystore must be a directory") as refused:
        Store.open(address, keystore=5)
    assert refused.value.field == "keystore"


@pytest.fixture
def roles():
    """Makes roles of a few names, which go at the end."""
    server, made = shared_server(), []

    def make(name, *attributes):
        server.execute(f"CREATE ROLE {name} LOGIN {' '.join(attributes)}")
        made.append(name)
        return name

    yield make
    for name in made:
        server.execute(f"DROP ROLE {name}")


def test_a_grant_by_who_does_not_own_the_tables_is_no_success(run, roles, address):
    lone = roles("lone_one")
    refused = run(
        "migrate", "--store", address, "--role", lone, "--json"
    )  # the address is for who may use them
    assert (refused.code, refused.error["code"]) == (1, "unavailable")
    assert "as the role that owns the tables" in refused.error["message"]


def test_a_migration_by_who_may_not_make_tables_says_who_may(run):
    fresh_database()
    refused = run("migrate", "--store", bare_address().replace("postgres@", f"{ROLE}@"))
    assert "as the role that owns the tables" in refused.err


def test_a_role_that_there_is_not_is_said_to_be_none_and_the_tables_are_made(run):
    address = bare_address()
    refused = run("migrate", "--store", address, "--role", "nobody there")
    assert refused.code == 1
    assert "no role of that name" in refused.err
    assert tables(address)


@pytest.mark.parametrize("attribute", ["SUPERUSER", "BYPASSRLS"])
def test_a_role_that_no_fence_holds_is_warned_of(run, roles, attribute):
    address = bare_address()
    warned = run("migrate", "--store", address, "--role", roles("free_one", attribute), "--json")
    shared_server().execute("DROP OWNED BY free_one", address.split("/")[3].split("?")[0])
    assert warned.code == 0
    assert "does not keep tenants apart" in warned.err
    fresh_database()
    assert "apart" not in run("migrate", "--store", address, "--role", ROLE).err


def test_a_tenant_is_deleted_with_its_rows_its_audit_and_its_keys(on, address, keys):
    for tenant in ("acme", "beta"):
        on("remember", "to forget", "--tenant", tenant)
        assert on("forget", "--all", "--yes", "--tenant", tenant).code == 0  # from here on there is an audit
        on("remember", f"of {tenant}", "--tenant", tenant)
    before = rows(address)
    preview = on("delete-tenant", "--tenant", "acme", "--dry-run", "--json").json
    assert (preview["dryRun"], preview["deleted"]["spaces"]) == (True, 1)
    assert on("delete-tenant", "--tenant", "acme").code == 1  # nobody said yes
    assert rows(address) == before
    assert len(list(keys.glob("*.keys"))) == 4
    told = on("delete-tenant", "--tenant", "acme", "--yes", "--json").json
    assert (told["pending"], told["deleted"]["tenant"]) == (False, "acme")
    assert len(list(keys.glob("*.keys"))) == 2
    assert {name: count * 2 for name, count in rows(address).items()} == before
    assert texts(on("list", "--tenant", "acme", "--json")) == []
    assert texts(on("list", "--tenant", "beta", "--json")) == ["of beta"]
    assert on("delete-tenant", "--tenant", "acme", "--yes").code == 1


def test_which_tenant_to_delete_is_never_guessed(on):
    on("remember", "tea")
    assert on("delete-tenant", "--yes", "--json").error["field"] == "tenant"
    assert on("delete-tenant", "--yes", "--tenant", DEFAULT_TENANT).code == 0


def test_a_deletion_takes_the_tenants_own_keystore(address, keys, tmp_path):
    with Store.open(address, tenant="acme", keystore=keys) as store:
        store.memory().remember("tea")
    for wrong in (tmp_path / "other", "off"):
        with pytest.raises(WrongKey, match="nothing was deleted"):
            delete_tenant(address, "acme", keystore=wrong)
    with pytest.raises(InvalidRequest, match="keystore is missing"):
        delete_tenant(address, "acme", keystore=None)
    with Store.open(address, tenant="acme", keystore=keys) as store:
        assert [fact.text for fact in store.memory().list().items] == ["tea"]


def test_a_tenant_that_is_deleted_is_gone_for_whoever_has_it_open(address, keys):
    opened = Store.open(address, tenant="acme", keystore=keys)
    memory = opened.memory()
    memory.remember("tea")
    with Store.open(address, tenant="acme", keystore=keys) as other:
        deleted = other.delete_tenant()
        assert (deleted.tenant, deleted.spaces, deleted.pending) == ("acme", 1, False)
        with pytest.raises(Unavailable, match="closed"):
            other.memory()
    uses = (memory.list, lambda: memory.recall("tea"), lambda: memory.remember("milk"), opened.purge)
    for use in uses:
        with pytest.raises(Unavailable, match="deleted"):
            use()
    with Store.open(address, tenant="acme", keystore=keys) as made:  # another one, of the same name
        made.memory().remember("coffee")
        for use in (lambda: memory.remember("milk"), lambda: opened.memory("else").remember("milk")):
            with pytest.raises(Unavailable, match="deleted"):
                use()
        assert [fact.text for fact in made.memory().list().items] == ["coffee"]
    opened.close()


class Late:
    """A keystore of files that confirms a deletion when it is told to."""

    def __init__(self, inner):
        self.inner, self.confirms = inner, False

    def __getattr__(self, name):
        return getattr(self.inner, name)

    def drop_tenant(self, tenant):
        return self.inner.drop_tenant(tenant) and self.confirms


def test_a_deletion_is_pending_until_every_holder_of_keys_confirms(address, keys):
    from perdure.log.postgres.keystore import FileKeystore  # noqa: PLC0415

    late = Late(FileKeystore(keys))
    with Store.open(address, tenant="acme", keystore=late) as store:
        store.memory().remember("tea")
    assert delete_tenant(address, "acme", keystore=late).pending
    assert has_tenant(address, Opening(tenant="acme"))
    assert sum(rows(address).values()) == 1  # the name alone, so that nobody makes another one of it
    with pytest.raises(Unavailable, match="being deleted"):
        Store.open(address, tenant="acme", keystore=late)
    late.confirms = True
    assert not delete_tenant(address, "acme", keystore=late).pending
    assert sum(rows(address).values()) == 0
    with Store.open(address, tenant="acme", keystore=late) as store:
        assert store.spaces() == []


READING = [
    ("list",),
    ("recall", "tea"),
    ("get", "drink"),
    ("stats",),
    ("spaces",),
    ("events",),
    ("export", "--output", "-"),
    ("documents", "list"),
    ("config",),
    ("verify",),
    ("capabilities",),
    ("forget", "--all", "--dry-run"),
    ("purge", "--yes"),
]


@pytest.fixture
def buried(address, keys, on):
    """A tenant whose rows are deleted, and whose keys are held."""
    assert on("remember", "tea", "--id", "drink", "--tenant", "acme").code == 0
    (keys / "keystore.hold").touch()
    assert delete_tenant(address, "acme", keystore=keys).pending
    return "acme"


@pytest.mark.parametrize("command", READING, ids=lambda command: command[0])
def test_whoever_reads_a_tenant_that_is_being_deleted_is_told_what_whoever_writes_is(on, buried, command):
    written = on("remember", "milk", "--tenant", buried, "--json")
    told = on(*command, "--tenant", buried, "--json")
    assert (told.code, told.error["code"], told.error["details"]["kind"]) == (1, "unavailable", "buried")
    assert told.error == written.error


def test_the_health_of_a_tenant_that_is_being_deleted_says_so(on, buried):
    health = on("health", "--tenant", buried, "--json")
    assert (health.code, health.json["status"]) == (1, "unavailable")
    assert "being deleted" in health.json["message"]


def test_neither_python_nor_a_copy_takes_a_tenant_that_is_being_deleted_for_none(
    on, buried, address, keys, store_path, tmp_path
):
    with Store.open(store_path) as store:
        store.memory().remember("milk")
    for act in (
        lambda: verify(address, tenant=buried, keystore=keys),
        lambda: copy(address, tmp_path / "to", tenant=buried, keystore=keys),
        lambda: copy(store_path, address, to_tenant=buried, to_keystore=keys),
    ):
        with pytest.raises(Unavailable, match="being deleted"):
            act()


def test_a_store_in_files_is_no_tenant(store_path):
    with Store.open(store_path) as store, pytest.raises(InvalidRequest, match="remove its directory"):
        store.delete_tenant()


def test_keys_of_a_databases_tenants_lie_with_its_keystore(on, keys):
    made = on("keys", "create", "--tenant", "acme", "--principal", "ann", "--json").json["created"]
    assert (made["tenant"], made["principal"]) == ("acme", "ann")
    assert json.loads((keys / "keys.json").read_text())["keys"][0]["id"] == made["id"]
    assert keys.stat().st_mode & 0o777 == 0o700
    assert on("keys", "list", "--json").json["keys"] == [made]
    assert on("keys", "list", "--tenant", "beta", "--json").json["keys"] == []
    on("remember", "tea", "--tenant", "acme")
    assert on("keys", "revoke", made["id"], "--json").code == 0
    events = on("events", "--all", "--tenant", "acme", "--json").json["items"]
    assert [one["type"] for one in events] == ["created", "key_revoked"]


MAKING = [
    ("remember", "tea", "--tenant", "beta"),
    ("config", "--save", "--config", "FILE", "--tenant", "beta"),
    ("keys", "create", "--tenant", "beta"),
]


@pytest.mark.parametrize("command", MAKING, ids=lambda command: command[0])
def test_beside_tenants_no_keystore_is_begun_in_a_directory_that_is_not_there(
    on, address, keys, tmp_path, command
):
    (tmp_path / "config.json").write_text("{}")
    told = [str(tmp_path / "config.json") if word == "FILE" else word for word in command]
    assert on("remember", "tea", "--tenant", "acme").code == 0
    typo = tmp_path / "away" / "kyes"
    refused = on(*told, "--keystore", str(typo), "--json")
    assert (refused.code, refused.error["code"]) == (1, "unavailable")
    assert "make the directory first (mkdir -m 700)" in refused.error["message"]
    assert not typo.parent.exists()
    assert not has_tenant(address, Opening(tenant="beta"))
    typo.mkdir(mode=0o700, parents=True)  # whoever means it makes it
    assert on(*told, "--keystore", str(typo)).code == 0


def test_a_tenant_that_is_there_says_what_is_wrong_with_a_keystore_that_is_not(on, keys, tmp_path):
    assert on("remember", "tea", "--tenant", "acme").code == 0
    told = on("remember", "milk", "--tenant", "acme", "--keystore", str(tmp_path / "kyes"), "--json").error
    assert (told["code"], "since there is no such directory" in told["message"]) == ("wrong_key", True)
    assert not (tmp_path / "kyes").exists()


def test_python_begins_no_keystore_in_a_directory_that_is_not_there_beside_tenants(address, keys, tmp_path):
    from perdure.keystore import FileKeystore  # noqa: PLC0415

    with Store.open(address, keystore=keys) as store:
        store.memory().remember("tea")
    for typo in (tmp_path / "kyes", FileKeystore(tmp_path / "kyes")):
        with pytest.raises(Unavailable, match="directory is not there"):
            Store.open(address, tenant="beta", keystore=typo)
    with pytest.raises(Unavailable, match="directory is not there"):
        copy(address, address, keystore=keys, to_tenant="beta", to_keystore=tmp_path / "kyes")
    assert not (tmp_path / "kyes").exists()
    with Store.open(address, tenant="beta", keystore=keys) as store:  # the one that is there takes any tenant
        store.memory().remember("milk")


def test_keys_need_a_keystore_to_lie_in(run, address):
    for told in ((), ("--keystore", "off")):
        refused = run("keys", "create", "--store", address, *told, "--json")
        assert (refused.code, refused.error["field"]) == (2, "keystore")


def test_serve_says_what_it_cannot_mean(on, run, address, store_path):
    assert on("serve", "--tenant", "acme").code == 2
    assert "Perdure-Tenant" in on("serve", "--tenant", "acme").err
    assert run("serve", "--store", str(store_path), "--keystore", "k").code == 2
