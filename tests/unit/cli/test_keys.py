"""The commands about keys: create, list, revoke."""

from __future__ import annotations

import re
import stat

import pytest

from perdure.server.keys import Keyring
from perdure.server.roots import find_directory, is_root
from postgres_server import fresh_address
from unit.cli.command_line import texts

KEY = re.compile(r"pk_[0-9a-f]{16}_[0-9a-f]{64}")


def create(run, *options):
    outcome = run("keys", "create", *options, "--json")
    assert outcome.code == 0, outcome.err
    return outcome.json


def listed(run, *options):
    return run("keys", "list", *options, "--json").json["keys"]


def test_a_key_is_printed_once_and_then_never_again(run, store_path):
    made = run("keys", "create")
    key = KEY.search(made.out)[0]
    assert made.out.startswith(key + "\n")
    assert "not shown again" in made.out
    for shown in (run("keys", "list"), run("keys", "list", "--json")):
        assert shown.code == 0
        assert KEY.search(shown.out) is None
        assert key.split("_")[1] in shown.out
        assert key.split("_")[2] not in shown.out
    with Keyring(store_path) as keyring:
        assert keyring.find(key)


def test_as_json_it_tells_the_key_and_what_it_is_for(run, store_path):
    told = create(
        run, "--principal", "alice", "--scope", "work", "--role", "admin", "--expires", "2100-01-01"
    )
    assert list(told) == ["key", "created"]
    made = told["created"]
    assert list(made) == [
        "id", "tenant", "principal", "scope", "role", "createdAt", "expiresAt", "revokedAt"
    ]  # fmt: skip
    assert (made["tenant"], made["principal"], made["scope"]) == ("default", "alice", "work")
    assert (made["role"], made["expiresAt"], made["revokedAt"]) == ("admin", 4_102_444_800_000, None)
    assert listed(run) == [made]
    assert stat.S_IMODE((store_path / "keys.json").stat().st_mode) == 0o600
    assert stat.S_IMODE(store_path.stat().st_mode) == 0o700


def test_the_list_shows_every_field_and_what_a_key_leaves_open(run):
    create(run, "--principal", "alice", "--scope", "", "--read-only", "--expires", "2100-01-01T12:30:00Z")
    shown = run("keys", "list").out
    assert shown.split("\n")[0].split() == [
        "id", "tenant", "role", "created", "expires", "revoked", "scope", "principal"
    ]  # fmt: skip
    row = shown.split("\n")[1].split()
    assert (row[1], row[2], row[4], row[5:]) == (
        "default",
        "read",
        "2100-01-01T12:30:00Z",
        ["-", "(default)", "alice"],
    )
    create(run)
    assert run("keys", "list").out.split("\n")[2].split()[-2:] == ["(any)", "(any)"]


def test_a_revoked_key_is_listed_as_such(run, store_path):
    told = create(run)
    id_ = told["created"]["id"]
    assert run("keys", "revoke", id_).out == f"The key {id_} is revoked.\n"
    with Keyring(store_path) as keyring:
        assert keyring.find(told["key"]) is None
    assert listed(run)[0]["revokedAt"] >= told["created"]["createdAt"]
    assert run("keys", "revoke", id_, "--json").json["revoked"] == listed(run)[0]


def test_the_list_is_narrowed_by_tenant_principal_and_scope(run):
    for tenant, principal in (("acme", "alice"), ("acme", "bob"), ("other", "alice")):
        create(run, "--tenant", tenant, "--principal", principal)
    assert len(listed(run)) == 3
    assert [key["principal"] for key in listed(run, "--tenant", "acme")] == ["alice", "bob"]
    assert [key["tenant"] for key in listed(run, "--principal", "alice")] == ["acme", "other"]
    assert listed(run, "--scope", "work") == []


def test_a_store_that_is_in_use_gets_keys_and_stays_as_it_was(run):
    assert run("remember", "The kettle is blue").code == 0
    create(run)
    assert texts(run("list", "--json")) == ["The kettle is blue"]
    assert run("verify").code == 0


def test_a_key_of_another_tenant_makes_a_new_place_a_root(run, store_path):
    create(run, "--tenant", "acme")
    assert is_root(store_path)
    assert find_directory(store_path, "acme").is_dir()


def test_one_store_takes_no_key_of_another_tenant(run, store_path):
    assert run("remember", "The kettle is blue").code == 0
    refused = run("keys", "create", "--tenant", "acme", "--json")
    assert refused.code == 2
    assert refused.error["field"] == "tenant"
    assert not (store_path / "keys.json").exists()


@pytest.mark.parametrize(
    ("line", "field"),
    [
        (("create", "--tenant", ""), "tenant"),
        (("create", "--tenant", "../x"), "tenant"),
        (("create", "--role", "root"), "role"),
        (("create", "--role", "write", "--read-only"), "role"),
        (("create", "--expires", "2000-01-01"), "expires"),
        (("create", "--expires", "soon"), "expires"),
        (("create", "--expires", "2100"), "expires"),
        (("create", "--principal", "a\x07b"), "principal"),
        (("create", "--scope", "a" * 257), "scope"),
        (("revoke", "x"), "id"),
        (("revoke", "pk_" + "0" * 16 + "_" + "0" * 64), "id"),
    ],
)
def test_a_wrong_value_is_exit_code_2_and_writes_nothing(run, store_path, line, field):
    refused = run("keys", *line, "--json")
    assert refused.code == 2
    assert refused.error["field"] == field
    assert KEY.search(refused.error["message"]) is None
    assert not store_path.exists()


def test_an_unknown_id_is_exit_code_1(run, store_path):
    refused = run("keys", "revoke", "0" * 16, "--json")
    assert (refused.code, refused.error["code"]) == (1, "not_found")
    assert not store_path.exists()


def test_where_there_are_no_keys_the_list_is_empty_and_makes_nothing(run, store_path):
    assert listed(run) == []
    assert not store_path.exists()


def test_an_ephemeral_store_has_no_keys(run):
    assert run("keys", "create", "--store", ":memory:", "--json").error["code"] == "failed"


def test_keys_that_others_read_are_refused_with_what_to_do(run, store_path):
    create(run)
    (store_path / "keys.json").chmod(0o644)
    for line in (("list",), ("create",), ("revoke", "0" * 16)):
        refused = run("keys", *line)
        assert refused.code == 2
        assert "chmod 600" in refused.err


def test_without_a_command_the_help_is_shown(run):
    shown = run("keys")
    assert shown.code == 2
    for command in ("create", "list", "revoke"):
        assert f"  {command} " in shown.out


def test_a_path_of_several_new_folders_is_told_and_a_list_of_nothing_says_so(run, tmp_path):
    place = tmp_path / "a" / "b" / "store"
    assert "there is no store there yet" in run("keys", "list", "--store", str(place)).err
    assert not (tmp_path / "a").exists()
    made = run("keys", "create", "--store", str(place))
    assert "made 3 new folders" in made.err
    assert str(place) in made.err
    assert run("keys", "list", "--store", str(place)).err == ""
    assert "folders" not in run("keys", "create", "--store", str(tmp_path / "one")).err


def test_beside_a_database_of_tenants_a_directory_that_holds_nothing_is_doubted(run, tmp_path, monkeypatch):
    monkeypatch.setenv("PERDURE_STORE", fresh_address())
    told = ("--keystore", str(tmp_path / "keys"))
    assert "no keystore there yet" in run("keys", "list", *told).err
    assert run("remember", "tea", *told).code == 0
    assert run("keys", "list", *told).err == ""
    (tmp_path / "mount").mkdir(mode=0o700)
    other = ("--keystore", str(tmp_path / "mount"))
    listed_ = run("keys", "list", *other)
    assert (listed_.code, "check that its disk is mounted" in listed_.err) == (0, True)
    assert "check that its disk is mounted" in run("keys", "create", *other).err
    assert run("keys", "list", *other).err == ""


def test_a_keystore_that_is_a_file_is_refused_as_what_it_is(run, tmp_path, monkeypatch):
    monkeypatch.setenv("PERDURE_STORE", "postgresql://nobody@localhost:1/none")
    (tmp_path / "afile").write_text("")
    for asked in (("list",), ("create",), ("revoke", "0" * 16)):
        refused = run("keys", *asked, "--keystore", str(tmp_path / "afile"), "--json")
        assert (refused.code, refused.error["field"]) == (2, "keystore")
        assert "no directory" in refused.error["message"]
