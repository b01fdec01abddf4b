"""Keys of the server: made once, kept as digests, found in constant time, ended at once."""

from __future__ import annotations

import errno
import hashlib
import hmac
import json
import logging
import os
import stat
import threading

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perdure.base.clock import ManualClock
from perdure.errors import Busy, Corrupt, InvalidRequest, InvalidTenant, NotFound, StorageFull
from perdure.server.keyring_file import locked
from perdure.server.keys import Grant, Keyring

NOW = 1_700_000_000_000


@pytest.fixture
def clock():
    return ManualClock(NOW)


@pytest.fixture
def keyring(tmp_path, clock):
    with Keyring(tmp_path, clock=clock) as ring:
        yield ring


def test_a_key_that_was_made_is_found_with_what_it_was_made_for(keyring):
    key, told = keyring.create(Grant("acme", "alice", "work", "read", NOW + 1000))
    assert keyring.find(told) == key
    assert (key.tenant, key.principal, key.scope, key.role) == ("acme", "alice", "work", "read")
    assert (key.created_at, key.expires_at, key.revoked_at) == (NOW, NOW + 1000, None)


def test_a_key_is_its_id_and_256_random_bits(tmp_path):
    drawn = []

    def random(size: int) -> bytes:
        drawn.append(bytes([len(drawn)]) * size)
        return drawn[-1]

    with Keyring(tmp_path, random=random) as ring:
        key, told = ring.create(Grant())
    assert [len(part) * 8 for part in drawn] == [64, 256]
    assert told == f"pk_{drawn[0].hex()}_{drawn[1].hex()}"
    assert key.id == drawn[0].hex()


def test_two_keys_of_one_random_id_get_two_ids(tmp_path):
    ids = iter([b"a" * 8, b"b" * 32, b"a" * 8, b"c" * 8, b"b" * 32])
    with Keyring(tmp_path, random=lambda size: next(ids)) as ring:
        assert ring.create(Grant())[0].id != ring.create(Grant())[0].id
        assert len(ring.all_keys()) == 2


def test_a_key_writes_by_default_for_the_default_tenant_and_any_principal(keyring):
    key, _ = keyring.create(Grant())
    assert (key.tenant, key.principal, key.scope, key.role) == ("default", None, None, "write")
    assert key.expires_at is None


def test_the_file_holds_a_digest_and_never_the_key(keyring, tmp_path):
    key, told = keyring.create(Grant())
    content = (tmp_path / "keys.json").read_text()
    assert told not in content
    assert told.rpartition("_")[2] not in content
    assert json.loads(content)["keys"][0]["digest"] == hashlib.sha256(told.encode()).hexdigest()
    assert key.digest in content


def test_every_file_is_its_owners_alone_whatever_the_umask(tmp_path):
    before = os.umask(0)
    try:
        with Keyring(tmp_path) as ring:
            ring.create(Grant())
    finally:
        os.umask(before)
    assert {path.name: stat.S_IMODE(path.stat().st_mode) for path in tmp_path.iterdir()} == {
        "keys.json": 0o600,
        "keys.lock": 0o600,
    }


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o660, 0o644])
def test_a_file_that_others_reach_is_refused_also_after_it_was_read(keyring, tmp_path, mode):
    _, told = keyring.create(Grant())
    assert keyring.find(told)
    (tmp_path / "keys.json").chmod(mode)
    for use in (lambda: keyring.find(told), keyring.all_keys, lambda: keyring.create(Grant())):
        with pytest.raises(InvalidRequest, match="chmod 600"):
            use()
    (tmp_path / "keys.json").chmod(0o600)
    assert keyring.find(told)


def test_a_key_ends_at_its_moment(keyring, clock):
    _, told = keyring.create(Grant(expires_at=NOW + 10))
    clock.set(NOW + 9)
    assert keyring.find(told)
    clock.set(NOW + 10)
    assert keyring.find(told) is None


def test_a_revoked_key_is_refused_and_stays_listed(keyring, clock):
    key, told = keyring.create(Grant())
    clock.advance(5)
    assert keyring.revoke(key.id).revoked_at == NOW + 5
    assert keyring.find(told) is None
    clock.advance(5)
    assert keyring.revoke(key.id).revoked_at == NOW + 5
    assert [(one.id, one.revoked_at) for one in keyring.all_keys()] == [(key.id, NOW + 5)]


def test_what_another_keyring_does_is_seen_at_once(keyring, tmp_path):
    with Keyring(tmp_path) as other:
        assert other.all_keys() == []
        key, told = keyring.create(Grant())
        assert other.find(told)
        keyring.revoke(key.id)
        assert other.find(told) is None


def test_a_change_is_seen_within_one_tick_of_the_clock_at_the_same_size(keyring, tmp_path):
    """Two writes that leave size and times as they were, as quick ones may on a coarse clock."""
    path = tmp_path / "keys.json"
    _, first = keyring.create(Grant())
    assert keyring.find(first)
    found, content = path.stat(), path.read_bytes()
    unknown = "0" * 64 if b"0" * 64 not in content else "1" * 64
    digest = hashlib.sha256(first.encode()).hexdigest().encode()
    for _ in range(20):  # an inode that is free is soon given again
        new = tmp_path / "new"
        new.write_bytes(content.replace(digest, unknown.encode()))
        new.chmod(0o600)
        os.utime(new, ns=(found.st_atime_ns, found.st_mtime_ns))
        new.replace(path)
        now = path.stat()
        assert (now.st_size, now.st_mtime_ns) == (found.st_size, found.st_mtime_ns)
        assert keyring.find(first) is None
        again = tmp_path / "again"
        again.write_bytes(content)
        again.chmod(0o600)
        os.utime(again, ns=(found.st_atime_ns, found.st_mtime_ns))
        again.replace(path)
        assert keyring.find(first)


def test_a_file_that_did_not_change_is_not_read_again(keyring, tmp_path, monkeypatch):
    _, told = keyring.create(Grant())
    assert keyring.find(told)

    def refuse(*_):
        raise AssertionError("the file is opened")

    monkeypatch.setattr(os, "open", refuse)
    assert keyring.find(told)


@pytest.mark.parametrize("failing", ["write", "replace"])
def test_on_a_full_disk_the_keys_stay_as_they_are_and_nothing_is_left_of_the_try(
    keyring, tmp_path, monkeypatch, failing
):
    _, key = keyring.create(Grant())
    before = {path.name: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}

    def full(*told, **named):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patched:
        patched.setattr(os, failing, full)
        with pytest.raises(StorageFull):
            keyring.create(Grant())
    assert {path.name: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()} == before
    assert keyring.find(key) is not None
    keyring.create(Grant())


def test_without_a_file_there_are_no_keys_and_none_is_made(keyring, tmp_path):
    _, told = keyring.create(Grant())
    (tmp_path / "keys.json").unlink()
    assert keyring.find(told) is None
    assert keyring.all_keys() == []
    with pytest.raises(NotFound):
        keyring.revoke("0" * 16)
    assert not (tmp_path / "keys.json").exists()


UNKNOWN = [
    "pk_" + "0" * 16 + "_" + "0" * 64,
    "pk_" + "0" * 16 + "_" + "0" * 63,
    "pk_",
    "",
    "pk_é\ud800",
    "Bearer",
    "x" * 100_000,
]


@pytest.mark.parametrize("told", UNKNOWN, ids=[f"{len(told)} characters" for told in UNKNOWN])
def test_an_unknown_key_is_compared_with_as_many_bytes_as_a_wrong_one(keyring, monkeypatch, told):
    key, right = keyring.create(Grant())
    compared = []

    def compare(one, other):
        compared.append((len(one), len(other)))
        return one == other

    monkeypatch.setattr(hmac, "compare_digest", compare)
    assert keyring.find(told) is None
    assert keyring.find(f"pk_{key.id}_{'0' * 64}") is None
    assert keyring.find(right) == key
    assert compared == [(32, 32)] * 3


def test_a_key_differs_in_each_of_its_characters(keyring):
    _, told = keyring.create(Grant())
    for place in range(len(told)):
        other = "1" if told[place] != "1" else "2"
        assert keyring.find(told[:place] + other + told[place + 1 :]) is None
    assert keyring.find(told.upper()) is None
    assert keyring.find(told + "\n") is None


def test_neither_repr_nor_log_nor_error_tells_a_key_or_a_name(keyring, tmp_path, caplog):
    caplog.set_level(logging.DEBUG)
    key, told = keyring.create(Grant("acme", "alice-canary", "work-canary"))
    shown = [repr(key), repr([key]), repr(keyring), repr(Grant("acme", "alice-canary", "work-canary"))]
    for wrong in (lambda: keyring.revoke(told), lambda: keyring.create(Grant(told))):
        with pytest.raises((InvalidRequest, InvalidTenant)) as refused:
            wrong()
        shown.append(str(refused.value))
    path = tmp_path / "keys.json"
    path.write_text(path.read_text().replace('"write"', f'"{told}"'))
    with pytest.raises(Corrupt) as damaged:
        keyring.find(told)
    assert damaged.value.__cause__ is None
    shown += [str(damaged.value), caplog.text]
    for text in shown:
        assert told not in text
        assert key.digest not in text
        assert "canary" not in text


@pytest.mark.parametrize(
    "damage",
    [
        lambda text: "",
        lambda text: text[:-20],
        lambda text: "[]",
        lambda text: text.replace("perdure keys", "other keys"),
        lambda text: text.replace('"version":1', '"version":0'),
        lambda text: text.replace('"digest":"', '"digest":"x'),
        lambda text: text.replace('"tenant":"default"', '"tenant":"../etc"'),
        lambda text: text.replace('"role":"write"', '"role":"root"'),
        lambda text: text.replace('"role":"write"', '"role":"write","more":1'),
        lambda text: text.replace(
            '"keys":[', '"keys":[' + text[text.index("[") + 1 : text.rindex("]")] + ","
        ),
        lambda text: "\udcff",
    ],
)
def test_a_damaged_file_takes_no_key_and_is_not_written_over(keyring, tmp_path, damage):
    _, told = keyring.create(Grant())
    path = tmp_path / "keys.json"
    damaged = damage(path.read_text()).encode("utf-8", "surrogateescape")
    path.write_bytes(damaged)
    for use in (lambda: keyring.find(told), keyring.all_keys, lambda: keyring.create(Grant())):
        with pytest.raises(Corrupt):
            use()
    assert path.read_bytes() == damaged


def test_a_file_of_a_newer_version_is_left_alone(keyring, tmp_path):
    keyring.create(Grant())
    path = tmp_path / "keys.json"
    path.write_text(path.read_text().replace('"version":1', '"version":2,"more":{}'))
    with pytest.raises(InvalidRequest, match="version 2"):
        keyring.create(Grant())


@pytest.mark.parametrize(
    ("grant", "error"),
    [
        (Grant(""), InvalidTenant),
        (Grant("a/b"), InvalidTenant),
        (Grant("a" * 65), InvalidTenant),
        (Grant("a\n"), InvalidTenant),
        (Grant("tenänt"), InvalidTenant),
        (Grant(principal="a\x00"), InvalidRequest),
        (Grant(principal="a" * 257), InvalidRequest),
        (Grant(scope="\ud800"), InvalidRequest),
        (Grant(role="root"), InvalidRequest),
        (Grant(expires_at=NOW), InvalidRequest),
    ],
)
def test_a_grant_that_no_request_could_use_is_refused_and_writes_nothing(keyring, tmp_path, grant, error):
    with pytest.raises(error):
        keyring.create(grant)
    assert list(tmp_path.iterdir()) == []


def test_revoking_an_unknown_key_changes_nothing(keyring, tmp_path):
    keyring.create(Grant())
    before = (tmp_path / "keys.json").read_bytes()
    with pytest.raises(NotFound):
        keyring.revoke("0" * 16)
    assert (tmp_path / "keys.json").read_bytes() == before


def test_a_change_gives_up_where_another_keeps_the_lock(keyring, tmp_path):
    with (
        Keyring(tmp_path, timeout_s=0.05) as hurried,
        locked(tmp_path / "keys.lock"),
        pytest.raises(Busy),
    ):
        hurried.create(Grant())
    assert keyring.all_keys() == []


def test_threads_of_one_keyring_see_each_change(keyring):
    made, wrong = [], []

    def work():
        for _ in range(5):
            key, told = keyring.create(Grant())
            made.append(key.id)
            if keyring.find(told) is None:
                wrong.append("created")
            keyring.revoke(key.id)
            if keyring.find(told) is not None:
                wrong.append("revoked")

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []
    assert sorted(key.id for key in keyring.all_keys()) == sorted(made)


NAMES = st.text(max_size=60).filter(lambda text: text.isprintable())


@given(
    tenant=st.from_regex(r"[A-Za-z0-9_-]{1,64}", fullmatch=True),
    principal=st.none() | NAMES,
    scope=st.none() | NAMES,
    role=st.sampled_from(["read", "write", "admin"]),
    expires_at=st.none() | st.integers(NOW + 1, 2**50),
)
def test_what_is_kept_of_a_key_comes_back_as_it_was(
    tmp_path_factory, tenant, principal, scope, role, expires_at
):
    directory = tmp_path_factory.mktemp("keys")
    with (
        Keyring(directory, clock=ManualClock(NOW)) as ring,
        Keyring(directory, clock=ManualClock(NOW)) as other,
    ):
        key, told = ring.create(Grant(tenant, principal, scope, role, expires_at))
        assert other.find(told) == key
        assert other.all_keys() == [key]
        assert (key.principal, key.scope, key.role, key.expires_at) == (principal, scope, role, expires_at)
