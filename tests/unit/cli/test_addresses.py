"""What is almost the address of a database is refused, and makes no folder of that name; so is a name that is empty."""

from __future__ import annotations

import pytest

from perdure import InvalidRequest, Memory, Store
from postgres_server import fresh_address

ALMOST = [
    "mysql://ann:s3cret@db/x",
    "postgresql+psycopg://ann:s3cret@db/x",
    "postgresql:/ann:s3cret@db/x",
    "https://db/s3cret",
    " postgresql://ann:s3cret@db/x",
    "host=db user=ann password=s3cret dbname=x",
    "password=s3cret host=db",
    " sslmode = require password=s3cret",
    "'postgresql://ann:s3cret@db/x'",
    "postgresql:ann:s3cret@db",
]


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("PERDURE_STORE", raising=False)
    return tmp_path


@pytest.mark.parametrize("place", ALMOST)
@pytest.mark.parametrize(
    "line",
    [
        ("remember", "tea", "--store"),
        ("list", "--store"),
        ("copy", "--to", "there", "--from"),
        ("copy", "--to"),
        ("list", "--store", "postgresql://db/x", "--keystore"),
    ],
    ids=" ".join,
)
def test_what_is_almost_an_address_is_refused_where_a_place_is_told(run, here, line, place):
    refused = run(*line, place, "--json")
    assert (refused.code, refused.error["field"]) == (2, line[-1].strip("-"))
    assert "looks like an address" in refused.error["message"]
    assert "s3cret" not in refused.out + refused.err
    assert list(here.iterdir()) == []


@pytest.mark.parametrize("place", ALMOST)
def test_the_environment_and_the_library_refuse_it_too(run, here, monkeypatch, place):
    monkeypatch.setenv("PERDURE_STORE", place)
    assert "looks like an address" in run("remember", "tea").err
    for opened in (Store.open, Memory.open):
        with pytest.raises(InvalidRequest, match="looks like an address") as refused:
            opened(place)
        assert "s3cret" not in refused.value.message
    with pytest.raises(InvalidRequest, match="keystore looks like an address"):
        Store.open(fresh_address(), keystore=place)
    assert list(here.iterdir()) == []


@pytest.mark.parametrize("place", ["C:/memory", "./mysql:/memory"])
def test_a_drive_and_a_folder_of_such_a_name_stay_paths(here, place):
    with Store.open(place) as store:
        store.memory().remember("tea")
    assert (here / place).is_dir()


def test_an_address_may_begin_with_capitals(run, here):
    address = fresh_address().replace("postgresql://", "PostgreSQL://")
    where = ("--store", address, "--keystore", str(here / "keys"))
    assert run("remember", "tea", *where).code == 0
    assert run("stats", *where, "--json").json["backend"] == "postgres"
    assert run("list", "--store", address.replace("@", ":s3cret@")).code == 2


def test_a_value_that_no_connection_can_be_made_with_is_named_by_the_option(run, here):
    place = "postgresql://127.0.0.1:1/x?keepalives=s3cret"
    for line in (("list", "--store"), ("copy", "--to", "there", "--from")):
        refused = run(*line, place, "--keystore", str(here / "keys"))
        assert (refused.code, "has a keepalives that no connection" in refused.err) == (2, True)
        assert "s3cret" not in refused.err


def test_a_parameter_that_there_is_not_is_named_and_no_part_of_a_password(run):
    refused = run("list", "--store", "postgresql://db/x?bogus=1")
    assert refused.err.startswith("perdure: --store has the parameter bogus")
    assert run("list", "--store", "postgresql://db/x?bogus=1", "--json").error["field"] == "store"
    with pytest.raises(InvalidRequest) as other:
        Store.open("postgresql://db/x?secret=a@b", keystore="keys")
    assert "secret" not in other.value.message


@pytest.mark.parametrize(
    "line",
    [
        ("copy", "--to", "there", "--to-tenant"),
        ("copy", "--to", "there", "--to-keystore"),
        ("copy", "--to", "there", "--to-backend"),
        ("copy", "--to", "there", "--to-key-file"),
        ("copy", "--to", "there", "--from"),
        ("copy", "--to"),
        ("serve", "--tls-cert"),
        ("list", "--tenant"),
        ("list", "--backend"),
        ("migrate", "--role"),
        ("rekey", "--new-key-file"),
    ],
    ids=" ".join,
)
def test_an_option_that_names_something_is_refused_where_it_is_empty(run, here, line):
    for given in ((*line, ""), (*line[:-1], f"{line[-1]}=")):
        refused = run(*given)
        assert (refused.code, refused.err.partition(";")[0]) == (2, f"perdure: {line[-1]} is empty")
    assert run(*line, "", "--json").error["field"]
    assert list(here.iterdir()) == []


def test_a_memory_without_a_name_may_be_told_by_an_empty_one(run, here):
    assert run("remember", "tea", "--principal", "", "--scope", "", "--store", str(here / "store")).code == 0
