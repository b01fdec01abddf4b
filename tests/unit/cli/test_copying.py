"""copy at the command line."""

from __future__ import annotations

import pytest

from perdure.cli import copying
from postgres_server import fresh_address
from unit.cli.command_line import remember, texts

ONE = {"spaces": 1, "records": 2, "erased": 0, "verified": True}


def test_a_store_is_copied_into_a_database_and_back(run, tmp_path):
    remember(run, "The kettle is blue")
    address, keys = fresh_address(), str(tmp_path / "keys")
    shown = run("copy", "--to", address, "--keystore", keys)
    assert (shown.code, shown.err) == (0, "")
    assert "The two are equal" in shown.out
    assert "holds together" in shown.out
    back = str(tmp_path / "back")
    told = run(
        "copy", "--from", address, "--keystore", keys, "--to", back, "--to-backend", "journal", "--json"
    )
    assert told.json["copied"].items() >= ONE.items()
    assert texts(run("list", "--json", "--store", back)) == ["The kettle is blue"]


def test_given_again_it_writes_what_is_new_and_then_nothing(run, tmp_path):
    remember(run, "The kettle is blue")
    line = ("copy", "--to", str(tmp_path / "copy"), "--json", "--no-verify")
    assert run(*line).json["copied"]["written"] > 0
    remember(run, "The mug is red")
    told = run(*line).json["copied"]
    assert told["written"] > 0
    assert told["verified"] is False
    assert run(*line).json["copied"]["written"] == 0


def test_tenants_on_both_sides_are_told_apart(run, tmp_path):
    remember(run, "The kettle is blue")
    address, keys = fresh_address(), str(tmp_path / "keys")
    assert run("copy", "--to", address, "--keystore", keys, "--to-tenant", "acme").code == 0
    again = ("copy", "--from", address, "--tenant", "acme", "--keystore", keys, "--to", address)
    assert run(*again, "--json").error["field"] == "to"
    other = (*again, "--to-tenant", "other", "--to-keystore", str(tmp_path / "more"), "--json")
    assert "is not there" in run(*other).error["message"]  # beside tenants with a keystore that is
    (tmp_path / "more").mkdir(mode=0o700)
    other = run(*other)
    assert other.json["copied"].items() >= ONE.items()


def test_what_is_no_target_is_refused_and_named_as_it_was_told(run, tmp_path, store_path):
    remember(run, "The kettle is blue")
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "letter").write_text("mine")
    for target in (tmp_path / "full", store_path, store_path / "in", ":memory:"):
        refused = run("copy", "--to", str(target), "--json")
        assert (refused.code, refused.error["field"]) == (2, "to")
    for option in ("--from", "--to"):
        refused = run("copy", "--to", str(tmp_path / "new"), option, "postgresql://ann:secret@db/x", "--json")
        assert (refused.code, refused.error["field"]) == (2, option.strip("-"))
        assert "secret" not in refused.out + refused.err
    assert run("copy").code == 2


def test_where_there_is_no_store_there_is_nothing_to_copy(run, tmp_path):
    refused = run("copy", "--to", str(tmp_path / "copy"), "--json")
    assert (refused.code, refused.error["code"]) == (1, "not_found")
    assert not (tmp_path / "copy").exists()


def test_where_nothing_is_the_place_is_named_and_no_password(run, tmp_path, monkeypatch):
    refused = run("copy", "--from", "./nothere", "--to", str(tmp_path / "copy"))
    assert refused.err == "perdure: there is no store there to copy: ./nothere\n"


def test_a_tenant_that_is_not_there_is_named_beside_its_database(run, tmp_path):
    address = fresh_address()
    where = ("--from", address, "--keystore", str(tmp_path / "keys"), "--to", str(tmp_path / "copy"))
    for told, name in (((), "default"), (("--tenant", "nosuch"), "nosuch")):
        refused = run("copy", *where, *told)
        assert refused.err.startswith("perdure: there is no tenant of that name there to copy: postgresql://")
        assert refused.err.endswith(f' (tenant "{name}")\n')
    assert not (tmp_path / "copy").exists()


def test_a_tenant_that_is_there_already_is_named_with_the_option_that_names_another(run, tmp_path):
    remember(run, "The kettle is blue")
    address = fresh_address()
    where = ("copy", "--to", address, "--to-keystore", str(tmp_path / "keys"))
    assert run("remember", "Mine", "--store", address, "--keystore", str(tmp_path / "keys")).code == 0
    refused = run(*where)
    assert refused.err.startswith("perdure: the tenant 'default' is there already")
    assert "--to-tenant" in refused.err
    assert run(*where, "--to-tenant", "home").code == 0


def test_what_is_wrong_with_the_target_is_told_by_the_options_of_the_target(run, tmp_path):
    remember(run, "The kettle is blue")
    address = fresh_address()
    assert run("copy", "--to", address).err.startswith("perdure: --to-keystore is missing")
    assert run("copy", "--to", address, "--json").error["field"] == "toKeystore"
    long = ("--to-tenant", "t" * 257, "--to-keystore", str(tmp_path / "keys"))
    assert run("copy", "--to", address, *long).err.startswith("perdure: --to-tenant must take 1 to 256")
    assert run("copy", "--to", f"{address}&bogus=1").err.startswith("perdure: --to has the parameter bogus")
    assert run("copy", "--from", address, "--to", str(tmp_path / "new")).code == 1
    with_source = run("copy", "--from", f"{address}&bogus=1", "--to", str(tmp_path / "new"))
    assert with_source.err.startswith("perdure: --from has the parameter bogus")


def test_what_was_written_is_counted_with_the_audits_records(run, tmp_path):
    remember(run, "The kettle is blue")
    shown = run("copy", "--to", str(tmp_path / "copy")).out
    assert "2 records of 1 space, 0 of them erased." in shown
    assert "records written now, with those of the audit" in shown


def test_stopped_it_says_that_it_goes_on(run, tmp_path, monkeypatch):
    remember(run, "The kettle is blue")

    def stopped(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("perdure.copying.copy", stopped)
        shown = run("copy", "--to", str(tmp_path / "copy"), "--json")
    assert shown.code == 1
    assert shown.error["message"] == copying.STOPPED


@pytest.mark.parametrize("told", [[], ["--plain"]])
def test_an_encrypted_store_has_an_encrypted_copy_unless_told_otherwise(run, tmp_path, told):
    key, copied = tmp_path / "key", str(tmp_path / "copy")
    key.write_text("a passphrase")
    key.chmod(0o600)
    assert run("remember", "The kettle is blue", "--key-file", str(key)).code == 0
    assert run("copy", "--to", copied, "--key-file", str(key), *told).code == 0
    assert run("list", "--store", copied).code == (0 if told else 1)
