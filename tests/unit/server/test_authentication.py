"""Who is let in: keys, the token of a server without keys, and where a server may listen."""

from __future__ import annotations

import hmac
import logging
import stat

import pytest

from perdure.base.clock import ManualClock
from perdure.errors import Corrupt, InvalidRequest, Unauthorized, Unavailable
from perdure.server.access import Access
from perdure.server.keyring_authentication import (
    ANYONE,
    Authenticator,
    Binding,
    check_binding,
    is_loopback,
    open_authenticator,
)
from perdure.server.keyring_token import local_token, token_file
from perdure.server.keys import Grant, Keyring

NOW = 1_700_000_000_000
HERE = Binding("127.0.0.1", 8420)


@pytest.fixture
def clock():
    return ManualClock(NOW)


@pytest.fixture
def keyring(tmp_path, clock):
    with Keyring(tmp_path, clock=clock) as ring:
        yield ring


@pytest.fixture
def let(tmp_path, clock):
    """Opens the authenticator of a binding; closed at the end."""
    opened = []

    def let_(binding=HERE, directory=tmp_path):
        opened.append(open_authenticator(directory, binding, clock))
        return opened[-1]

    yield let_
    for one in opened:
        one.close()


def test_a_key_in_the_header_is_what_the_request_may_do(keyring, let):
    key, told = keyring.create(Grant("acme", "alice", "work", "read"))
    for header in (f"Bearer {told}", f"bearer  {told}", f"BEARER {told} ", f"Bearer {told}".encode()):
        assert let().access([header]) == Access("acme", "alice", "work", "read", key.id)


def test_every_refusal_is_one_text(keyring, let, clock):
    _, good = keyring.create(Grant())
    revoked, ended = keyring.create(Grant())
    _, late = keyring.create(Grant(expires_at=NOW + 1))
    keyring.revoke(revoked.id)
    clock.advance(1)
    judge = let()
    refused = set()
    for headers in (
        [],
        [""],
        ["Bearer"],
        ["Bearer "],
        [good],
        [f"Basic {good}"],
        [f"Bearer{good}"],
        [f"Bearer {good}", f"Bearer {good}"],
        [f"Bearer {good} {good}"],
        [f"Bearer {good[:-1]}"],
        [f"Bearer {ended}"],
        [f"Bearer {late}"],
        [b"Bearer \xff\xfe"],
        ["Bearer pk_" + "0" * 16 + "_" + "0" * 64],
    ):
        with pytest.raises(Unauthorized) as error:
            judge.access(headers)
        refused.add((error.value.message, error.value.field, str(error.value.details)))
    assert len(refused) == 1
    assert judge.access([f"Bearer {good}"])


def test_a_revoked_key_is_refused_at_the_next_request(keyring, let):
    key, told = keyring.create(Grant())
    judge = let()
    assert judge.access([f"Bearer {told}"])
    keyring.revoke(key.id)
    with pytest.raises(Unauthorized):
        judge.access([f"Bearer {told}"])


def test_a_key_that_is_made_while_the_server_runs_counts_at_once(keyring, let):
    judge = let()
    _, told = keyring.create(Grant())
    assert judge.access([f"Bearer {told}"]).key_id


def test_from_the_first_key_on_the_token_of_a_running_server_is_refused(keyring, let):
    judge = let()
    token = judge.token_path.read_text().strip()
    assert judge.access([f"Bearer {token}"]) == ANYONE
    key, told = keyring.create(Grant())
    for _ in range(2):
        with pytest.raises(Unauthorized) as refused:
            judge.access([f"Bearer {token}"])
        with pytest.raises(Unauthorized) as unknown:
            judge.access(["Bearer unknown"])
        assert refused.value.message == unknown.value.message
        keyring.revoke(key.id)  # the last key's end does not bring the token back
    assert told not in refused.value.message


def test_the_token_lets_nobody_in_while_the_keys_cannot_be_read(let, tmp_path):
    judge = let()
    token = judge.token_path.read_text().strip()
    (tmp_path / "keys.json").write_text("{")
    (tmp_path / "keys.json").chmod(0o600)
    with pytest.raises(Unavailable):
        judge.access([f"Bearer {token}"])


def test_revoking_every_key_lets_nobody_in(keyring, let):
    key, told = keyring.create(Grant())
    keyring.revoke(key.id)
    judge = let()
    assert judge.token_path is None
    for headers in ([], [f"Bearer {told}"]):
        with pytest.raises(Unauthorized):
            judge.access(headers)


def test_keys_that_cannot_be_read_let_nobody_in_and_the_log_says_why(keyring, let, tmp_path, caplog):
    _, told = keyring.create(Grant())
    judge = let()
    (tmp_path / "keys.json").chmod(0o644)
    with caplog.at_level(logging.ERROR), pytest.raises(Unavailable) as refused:
        judge.access([f"Bearer {told}"])
    assert "0644" in caplog.text
    assert "0644" not in refused.value.message
    assert told not in caplog.text + refused.value.message


def test_a_file_of_keys_that_is_gone_is_no_reason_to_call_a_key_wrong_and_the_log_says_so_once(
    keyring, let, tmp_path, caplog
):
    _, told = keyring.create(Grant())
    judge = let()
    assert judge.access([f"Bearer {told}"])
    tmp_path.rename(tmp_path.with_name("away"))
    with caplog.at_level(logging.INFO):
        for _ in range(3):
            with pytest.raises(Unavailable):
                judge.access([f"Bearer {told}"])
        with pytest.raises(Unavailable):
            judge.check()
        assert [record.levelname for record in caplog.records] == ["ERROR"]
        assert "check that the disk of its directory is mounted" in caplog.text
        tmp_path.with_name("away").rename(tmp_path)
        assert judge.access([f"Bearer {told}"])
        judge.check()
    assert [record.levelname for record in caplog.records] == ["ERROR", "INFO"]


def test_a_file_of_keys_in_an_empty_directory_that_took_the_place_of_another_is_gone(keyring, let, tmp_path):
    _, told = keyring.create(Grant())
    judge = let()
    assert judge.access([f"Bearer {told}"])
    (tmp_path / "keys.json").rename(tmp_path / "elsewhere")
    with pytest.raises(Unavailable):
        judge.access([f"Bearer {told}"])
    with pytest.raises(Unavailable):
        judge.access(["Bearer unknown"])


def test_without_keys_the_token_beside_the_store_lets_in_and_nothing_else_does(let, tmp_path):
    judge = let()
    assert judge.token_path == tmp_path / "server.token"
    assert stat.S_IMODE(judge.token_path.stat().st_mode) == 0o600
    token = judge.token_path.read_text().strip()
    assert judge.access([f"Bearer {token}"]) == ANYONE
    for wrong in ([], ["Bearer "], [f"Bearer {token[:-1]}"], [token]):
        with pytest.raises(Unauthorized):
            judge.access(wrong)


def test_all_workers_and_the_next_start_have_one_token(let):
    assert let().token_path.read_text() == let().token_path.read_text()
    token = let().token_path.read_text().strip()
    assert let().access([f"Bearer {token}"]) == ANYONE


def test_a_removed_token_file_makes_another_token(tmp_path):
    path = tmp_path / "server.token"
    first = local_token(path)
    path.unlink()
    assert local_token(path) != first


def test_a_token_is_compared_in_constant_time(let, monkeypatch):
    judge, compared = let(), []

    def compare(one, other):
        compared.append((len(one), len(other)))
        return one == other

    monkeypatch.setattr(hmac, "compare_digest", compare)
    for told in ("", "x", "y" * 1000):
        with pytest.raises(Unauthorized):
            judge.access([f"Bearer {told}"])
    assert set(compared) == {(32, 32)}


def test_a_token_file_that_others_read_or_that_holds_something_else_is_refused(tmp_path):
    path = tmp_path / "server.token"
    local_token(path)
    path.chmod(0o640)
    with pytest.raises(InvalidRequest, match="chmod 600"):
        local_token(path)
    path.chmod(0o600)
    path.write_text("password")
    with pytest.raises(Corrupt) as refused:
        local_token(path)
    assert "password" not in str(refused.value)


def test_the_token_of_an_ephemeral_store_is_in_the_users_runtime_directory(let, tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    judge = let(directory=None)
    assert judge.token_path == tmp_path / "perdure" / "server-8420.token"
    assert stat.S_IMODE(judge.token_path.parent.stat().st_mode) == 0o700
    assert judge.access([f"Bearer {judge.token_path.read_text().strip()}"]) == ANYONE


def test_without_a_runtime_directory_it_is_in_one_of_the_users_own_among_temporary_files(
    tmp_path, monkeypatch
):
    monkeypatch.delenv("XDG_RUNTIME_DIR", raising=False)
    monkeypatch.setattr("tempfile.gettempdir", lambda: str(tmp_path))
    path = token_file(None, 1)
    assert path.parent.parent == tmp_path
    path.parent.chmod(0o755)
    with pytest.raises(InvalidRequest, match="alone"):
        token_file(None, 1)
    path.parent.rmdir()
    path.parent.symlink_to(tmp_path)
    with pytest.raises(InvalidRequest, match="alone"):
        token_file(None, 1)


def test_no_auth_lets_everybody_of_this_machine_in(let, tmp_path):
    judge = let(Binding("localhost", 1, no_auth=True))
    assert judge.access([]) == ANYONE
    assert judge.token_path is None
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("host", "own"),
    [
        ("127.0.0.1", True),
        ("127.8.9.1", True),
        ("::1", True),
        ("[::1]", True),
        ("::ffff:127.0.0.1", True),
        ("localhost", True),
        ("LOCALHOST", True),
        ("0.0.0.0", False),
        ("::", False),
        ("::ffff:10.0.0.1", False),
        ("10.0.0.1", False),
        ("", False),
        ("localhost.example.com", False),
        ("127.0.0.1.example.com", False),
        ("2130706433", False),
    ],
)
def test_a_server_without_keys_listens_to_this_machine_alone(host, own):
    assert is_loopback(host) is own
    check_binding(Binding(host, 1), has_keys=True)
    for no_auth in (False, True):
        if own:
            check_binding(Binding(host, 1, no_auth), has_keys=False)
        else:
            with pytest.raises(InvalidRequest) as refused:
                check_binding(Binding(host, 1, no_auth), has_keys=False)
            assert refused.value.field == "host"


def test_a_server_with_keys_is_not_told_to_ask_for_none(keyring, let):
    keyring.create(Grant())
    with pytest.raises(InvalidRequest) as refused:
        let(Binding("127.0.0.1", 1, no_auth=True))
    assert refused.value.field == "no_auth"


def test_a_refused_start_writes_nothing(let, tmp_path):
    with pytest.raises(InvalidRequest):
        let(Binding("0.0.0.0", 1), tmp_path / "new")
    assert list(tmp_path.iterdir()) == []


def test_neither_repr_nor_log_tells_a_token(let, caplog):
    caplog.set_level(logging.DEBUG)
    judge = let()
    token = judge.token_path.read_text().strip()
    judge.access([f"Bearer {token}"])
    assert token not in repr(judge) + repr(vars(judge)) + caplog.text


def test_without_keys_and_token_nobody_is_let_in():
    with pytest.raises(Unauthorized):
        Authenticator(None).access(["Bearer x"])
