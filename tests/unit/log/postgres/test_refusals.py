"""Why a database could not be used is said in words of ours: what is full, what is closed, and where it was looked for."""

from __future__ import annotations

import psycopg
import pytest

from perdure import Store
from perdure.errors import Busy, InvalidRequest, Unavailable
from perdure.log.postgres.failures import lasts, unmet
from postgres_server import fresh_address, fresh_database, shared_server

FEW = "few_at_once"


@pytest.fixture
def crowded():
    """The address of a database for a role that may have no connection, but for the password nothing is wrong."""
    server, database = shared_server(), fresh_database()
    server.execute(f"DROP ROLE IF EXISTS {FEW}")
    server.execute(f"CREATE ROLE {FEW} LOGIN CONNECTION LIMIT 0")
    yield server.address(database, FEW)
    server.execute(f"DROP ROLE {FEW}")


def refusal(address):
    with pytest.raises(psycopg.OperationalError) as refused:
        psycopg.connect(address)
    return refused.value


def test_a_role_that_has_all_its_connections_is_busy_and_no_wrong_password(crowded, tmp_path):
    assert not lasts(refusal(crowded))
    with pytest.raises(Busy, match="53300"):
        Store.open(crowded, keystore=tmp_path / "keys", timeout_s=0)


@pytest.mark.parametrize(
    ("address", "said"),
    [
        ("postgresql://x@no-such-host.invalid/d", "at no-such-host.invalid could not be reached: no machine"),
        ("postgresql://x@127.0.0.1:1/d", "at 127.0.0.1, port 1, could not be reached: nothing listens there"),
        (
            "postgresql:///d?host=/nowhere&port=7",
            "at /nowhere, port 7, could not be reached: there is no socket",
        ),
    ],
)
def test_a_database_that_is_not_reached_is_said_with_its_host_and_port(address, said, tmp_path):
    with pytest.raises(Unavailable) as refused:
        Store.open(address, keystore=tmp_path / "keys", timeout_s=0)
    assert said in refused.value.message
    assert "state" not in refused.value.message


def test_a_database_that_accepts_no_connections_says_so(tmp_path):
    server = shared_server()
    closed = server.new_database()
    server.execute(f"ALTER DATABASE {closed} ALLOW_CONNECTIONS false")
    try:
        with pytest.raises(Unavailable, match="accepts no connections"):
            Store.open(server.address(closed, "tenants"), keystore=tmp_path / "keys", timeout_s=0)
    finally:
        server.execute(f"ALTER DATABASE {closed} ALLOW_CONNECTIONS true")


@pytest.mark.parametrize(
    ("address", "told"),
    [
        (
            "postgresql://ann:s3cret@s3cret@127.0.0.1:1/memory",
            "an @ of a user or of a password is written %40",
        ),
        ("postgresql://ann:s3cret/s3cret@127.0.0.1/memory", "a port that is none"),
        ("postgresql://ann:s3cret:s3cret@s3cret@db/memory", "an @ of a user or of a password is written %40"),
        ("postgresql://ann:s3cret@db:99999/memory", "a number of 1 to 65535"),
        ("postgresql://ann:s3cret@db:0/memory", "a number of 1 to 65535"),
        ("postgresql://ann:s3cret@db,other:abc/memory", "a number of 1 to 65535"),
        ("postgresql://ann:s3cret@db/memory?sslmode=s3cret", "it may be disable, allow"),
        ("postgresql://ann:12/s3cret@db/memory", "an @ only behind its first /"),
    ],
)
def test_what_the_driver_takes_and_reaches_no_server_is_refused_and_shows_nothing_of_a_password(
    address, told, tmp_path
):
    for place, field in (
        ({"path": address}, "path"),
        ({"path": fresh_address(), "replica": address}, "replica"),
    ):
        with pytest.raises(InvalidRequest, match=told) as refused:
            Store.open(**place, keystore=tmp_path / "keys")
        assert refused.value.field == field
        assert "s3cret" not in refused.value.message


UNTAKEN = {
    "target_session_attrs": "s3cret",
    "channel_binding": "s3cret",
    "keepalives": "s3cret",
    "tcp_user_timeout": "99999999999999",
    "ssl_min_protocol_version": "s3cret",
    "hostaddr": "s3cret!",
    "service": "s3cret",
}


@pytest.mark.parametrize("name", UNTAKEN)
def test_a_value_that_no_connection_can_be_made_with_is_a_bad_argument_that_is_named_and_not_shown(
    name, tmp_path
):
    address = f"postgresql://ann:s3cret@127.0.0.1:1/memory?{name}={UNTAKEN[name]}"
    with pytest.raises(InvalidRequest, match=f"has a {name} that no connection") as refused:
        Store.open(address, keystore=tmp_path / "keys", timeout_s=0)
    assert refused.value.field == "path"
    assert "s3cret" not in refused.value.message
    with pytest.raises(psycopg.OperationalError) as told:
        psycopg.connect(address)
    assert lasts(told.value)


def test_what_the_environment_tells_of_a_connection_is_named_likewise(monkeypatch, tmp_path):
    monkeypatch.setenv("PGPORT", "99999")
    with pytest.raises(InvalidRequest, match=r"has a port that .*, or the environment \(PG…\) has"):
        Store.open("postgresql://ann@127.0.0.1/memory", keystore=tmp_path / "keys", timeout_s=0)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("No route to host", "there is no way to it"),
        ("Permission denied", "may not connect there"),
        ("something that nobody has read", "why is not known; check the address"),
    ],
)
def test_a_connection_that_did_not_come_about_is_never_said_to_have_no_reason(words, said):
    told = unmet(psycopg.OperationalError(f"connection failed: {words}"))
    assert isinstance(told, Unavailable)
    assert said in told.message
