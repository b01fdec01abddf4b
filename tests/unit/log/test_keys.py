"""A key in each of its forms; what is wrong with one is told without showing it."""

import os
import traceback
from pathlib import Path

import apsw
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from effort import examples
from perdure import Corrupt, InvalidRequest, Memory, Store, Unavailable, WrongKey
from perdure.base.sqlite.ciphers import PAGE_KEY_BYTES, PLAIN
from perdure.base.sqlite.keys import FILE_BYTES_MAX, checked_key
from perdure.log.protocol import SECRET_BYTES
from perdure.log.sqlite import SqliteLog
from perdure.log.sqlite.schema import LOCK
from perdure.log.sqlite.seals import SEALED_VERSION, find_seal, replace_cipher, unsealed
from perdure.log.sqlite.state import new_state, read_state, write_state

RAW = bytes(range(100, 132))
PASSPHRASE = "a passphrase that nobody guesses"
posix = pytest.mark.skipif(os.name != "posix", reason="modes tell who may read on POSIX only")
raw_keys = st.binary(min_size=PAGE_KEY_BYTES, max_size=PAGE_KEY_BYTES)
secrets = st.binary(min_size=SECRET_BYTES, max_size=SECRET_BYTES)


def key_file(directory, content, mode=0o600):
    path = directory / "key"
    path.write_bytes(content)
    path.chmod(mode)
    return path


def opened(directory, key):
    """Open the store and close it again; return its secret."""
    log = SqliteLog.open(directory / "store", key=key)
    log.close()
    return log.secret


@pytest.mark.parametrize(
    "content",
    [RAW, RAW.hex().encode(), RAW.hex().upper().encode() + b"\n", RAW.hex().encode() + b"\r\n"],
    ids=["bytes", "digits", "capitals and a line end", "a Windows line end"],
)
def test_a_file_of_32_bytes_or_64_digits_holds_that_key(tmp_path, content):
    secret = opened(tmp_path, RAW)
    assert opened(tmp_path, key_file(tmp_path, content)) == secret


@pytest.mark.parametrize("end", ["", "\n", "\r\n"])
def test_any_other_file_holds_a_passphrase_without_its_last_line_end(tmp_path, end):
    secret = opened(tmp_path, PASSPHRASE + "é")
    assert opened(tmp_path, key_file(tmp_path, f"{PASSPHRASE}é{end}".encode())) == secret


def test_only_the_last_line_end_is_left_out(tmp_path):
    opened(tmp_path, PASSPHRASE)
    with pytest.raises(WrongKey):
        opened(tmp_path, key_file(tmp_path, f"{PASSPHRASE}\n\n".encode()))


def test_a_passphrase_is_none_of_the_same_letters_in_another_case(tmp_path):
    opened(tmp_path, PASSPHRASE)
    with pytest.raises(WrongKey):
        opened(tmp_path, PASSPHRASE.upper())


def test_a_text_of_64_digits_is_a_passphrase_and_not_the_key_that_they_spell(tmp_path):
    opened(tmp_path, RAW)
    with pytest.raises(WrongKey, match="passphrase"):
        opened(tmp_path, RAW.hex())


@pytest.mark.parametrize("value", [RAW, PASSPHRASE], ids=["bytes", "passphrase"])
def test_a_function_is_asked_once_in_an_opening(tmp_path, value):
    calls = []

    def ask():
        calls.append(value)
        return value

    secret = opened(tmp_path, ask)
    assert len(calls) == 1
    log = SqliteLog.open(tmp_path / "store", key=ask)
    log.create_space(b"n" * 16, b"first")
    list(log.read(1, 0, 9))
    log.close()
    assert (len(calls), log.secret) == (2, secret)


def test_what_the_function_raises_passes_through_and_nothing_is_created(tmp_path):
    def ask():
        raise LookupError("the keychain is locked")

    with pytest.raises(LookupError, match="keychain"):
        opened(tmp_path, ask)
    assert list(tmp_path.iterdir()) == []


WRONG = [
    b"",
    b"short",
    bytes(33),
    "",
    "\ud800 no text",
    17,
    True,
    bytearray(RAW),
    [RAW],
    lambda: None,
    lambda: Path("key"),
    lambda: b"short",
    lambda: "",
    lambda: checked_key,
]


@pytest.mark.parametrize("key", WRONG, ids=lambda key: type(key).__name__)
def test_what_is_no_key_is_refused_by_the_name_of_its_field(tmp_path, key):
    with pytest.raises(InvalidRequest) as caught:
        opened(tmp_path, key)
    assert caught.value.field == "key"
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "empty"),
        (b"\n", "empty"),
        (b"\xff" * 40, "40 bytes"),
        (b"x" * (FILE_BYTES_MAX + 1), str(FILE_BYTES_MAX)),
    ],
    ids=["empty", "a line end", "no text", "too long"],
)
def test_a_file_that_holds_no_key_is_refused(tmp_path, content, said):
    with pytest.raises(InvalidRequest, match=said) as caught:
        opened(tmp_path, key_file(tmp_path, content))
    assert caught.value.field == "key"


@posix
@pytest.mark.parametrize("mode", [0o640, 0o604, 0o620, 0o601])
def test_a_file_that_others_may_read_is_refused(tmp_path, mode):
    with pytest.raises(InvalidRequest, match=f"{mode:04o}.*chmod 600") as caught:
        opened(tmp_path, key_file(tmp_path, RAW, mode))
    assert caught.value.field == "key"
    opened(tmp_path, key_file(tmp_path, RAW, 0o400))


@pytest.mark.parametrize("name", ["absent", ".", "a\0b", "absent/key"])
def test_a_file_that_cannot_be_read_is_refused(tmp_path, name):
    with pytest.raises(InvalidRequest, match="cannot be read") as caught:
        opened(tmp_path, tmp_path / name)
    assert caught.value.field == "key"


def told_by(error):
    """All that a report of an error shows, of its causes and of values that the failing frames hold too."""
    shown = traceback.TracebackException.from_exception(error, capture_locals=True)
    inside = [
        f"{frame.name} {frame.locals}"
        for frame in shown.stack
        if "perdure" in frame.filename or frame.filename.endswith(".c")
    ]
    return "".join(shown.format(chain=True)), inside


@pytest.mark.parametrize(
    ("first", "then"),
    [(RAW, RAW[::-1]), (None, RAW), (RAW, PASSPHRASE), (PASSPHRASE, RAW), (PASSPHRASE, "another one")],
)
def test_no_error_shows_a_key(tmp_path, first, then):
    opened(tmp_path, first)
    with pytest.raises(WrongKey) as caught:
        opened(tmp_path, then)
    error = caught.value
    shown = f"{error!r} {error} {error.details} {error.__cause__!r} {error.__context__!r}"
    for key in filter(None, (first, then)):
        assert str(key) not in shown
        assert not isinstance(key, bytes) or key.hex() not in shown


@pytest.mark.parametrize("key", [RAW, PASSPHRASE], ids=["bytes", "passphrase"])
def test_a_key_has_no_form_that_shows_it(key):
    checked = checked_key(key)
    cipher = checked.new_cipher()
    shown = f"{checked!r} {checked} {cipher!r} {cipher}"
    assert RAW.hex() not in shown
    assert str(RAW) not in shown
    assert PASSPHRASE not in shown


def test_a_driver_that_fails_while_it_has_the_key_shows_none(tmp_path):
    opened(tmp_path, RAW)
    cipher = checked_key(RAW).new_cipher()
    (tmp_path / "other").write_bytes(b"no database of any kind" * 400)

    def alone(db):
        cipher.unlock(db)
        db.execute("SELECT * FROM sqlite_schema").fetchall()

    for work in (alone, lambda db: cipher.attach(db, str(tmp_path / "other"), "log")):
        db = apsw.Connection(str(tmp_path / "other"))
        with pytest.raises(apsw.Error) as caught:
            work(db)
        told, frames = told_by(caught.value)
        assert RAW.hex() not in told + "".join(frames)
        assert RAW.hex() not in str(db.cache_stats(True))
        db.close(True)


def lock_of(secret, *, kept):
    """A store.lock in memory, as a creation makes it."""
    db = apsw.Connection(":memory:")
    for statement in LOCK:
        db.execute(statement)
    write_state(db, new_state(secret, keep=kept))
    return db


@given(raw_keys, raw_keys, secrets, st.booleans())
def test_a_seal_gives_its_secret_to_its_own_key_alone(raw, other, secret, kept):
    db = lock_of(secret, kept=kept)
    replace_cipher(db, checked_key(raw).new_cipher(), secret)
    seal, state = find_seal(db), read_state(db)
    assert state.secret is None
    cipher = unsealed(seal, checked_key(raw), state)
    assert seal.secret(cipher) == (secret if kept else None)
    assert secret not in b"".join(part for part in seal if isinstance(part, bytes))
    if other != raw:
        with pytest.raises(WrongKey):
            unsealed(seal, checked_key(other), state)
    replace_cipher(db, PLAIN, secret)
    assert find_seal(db) is None
    assert read_state(db).secret == (secret if kept else None)


@given(raw_keys, secrets)
def test_two_seals_of_one_secret_and_key_have_nothing_in_common(raw, secret):
    seals = []
    for _ in range(2):
        db = lock_of(secret, kept=True)
        replace_cipher(db, checked_key(raw).new_cipher(), secret)
        seals.append(find_seal(db))
    assert seals[0].nonce != seals[1].nonce
    assert seals[0].wrapped != seals[1].wrapped
    assert seals[0].tag != seals[1].tag


COLUMNS = ("name", "derivation", "salt", "nonce", "wrapped", "tag", "ck")
FORGED = st.one_of(st.integers(-(2**63), 2**63 - 1), st.text(max_size=8), st.binary(max_size=40))


@settings(max_examples=examples(24))
@given(raw_keys, secrets, st.sampled_from(COLUMNS), FORGED)
def test_a_damaged_seal_is_reported_and_never_taken_for_a_wrong_key(raw, secret, column, value):
    db = lock_of(secret, kept=True)
    replace_cipher(db, checked_key(raw).new_cipher(), secret)
    before = db.execute(f"SELECT {column} FROM cipher").get
    assume((type(value), value) != (type(before), before))
    db.execute(f"UPDATE cipher SET {column} = ?", (value,))
    with pytest.raises(Corrupt):
        find_seal(db)


def test_a_seal_of_another_store_is_not_that_of_this_one():
    first, second = lock_of(b"a" * SECRET_BYTES, kept=True), lock_of(b"b" * SECRET_BYTES, kept=True)
    for db, secret in ((first, b"a" * SECRET_BYTES), (second, b"b" * SECRET_BYTES)):
        replace_cipher(db, checked_key(RAW).new_cipher(), secret)
    with pytest.raises(WrongKey):
        unsealed(find_seal(first), checked_key(RAW), read_state(second))


def test_a_store_in_memory_and_a_log_of_ones_own_take_no_key(tmp_path):
    with pytest.raises(InvalidRequest, match="leave key out") as ephemeral:
        Store.open(":memory:", key=RAW)
    log = SqliteLog.open(tmp_path / "store", key=RAW)
    with pytest.raises(InvalidRequest, match="leave key out") as given_log:
        Store.open(log=log, key=RAW)
    log.close()
    assert (ephemeral.value.field, given_log.value.field) == ("key", "key")


def test_a_backend_that_does_not_encrypt_says_so():
    with Store.open(":memory:") as store, pytest.raises(InvalidRequest, match="does not encrypt"):
        store.rekey(RAW)


def test_a_memory_is_opened_with_a_key(tmp_path):
    with Memory.open(tmp_path / "store", key=RAW) as memory:
        memory.remember("x", id="x")
    with pytest.raises(WrongKey):
        Memory.open(tmp_path / "store")
    with Memory.open(tmp_path / "store", key=RAW) as memory:
        assert memory.get("x").text == "x"
        assert memory.capabilities().features.encryption


@pytest.mark.parametrize("derivation", ["scrypt-1073741824-8-1", "argon2-1-1-1", "scrypt-3-8-1"])
def test_a_derivation_that_is_not_known_or_not_affordable_is_refused(derivation):
    with pytest.raises(Unavailable, match="derive"):
        checked_key(PASSPHRASE).cipher(derivation, b"salt")


def test_a_cipher_that_is_not_known_is_refused():
    db = lock_of(b"a" * SECRET_BYTES, kept=True)
    replace_cipher(db, checked_key(RAW).new_cipher(), b"a" * SECRET_BYTES)
    other = find_seal(db)._replace(name="aes256cbc")
    db.execute("UPDATE cipher SET name = ?, ck = ?", (other.name, other.check))
    with pytest.raises(Unavailable, match="upgrade"):
        find_seal(db)


def test_a_plain_store_whose_lock_says_that_it_is_encrypted_is_damaged():
    db = lock_of(b"a" * SECRET_BYTES, kept=True)
    db.execute(f"PRAGMA user_version={SEALED_VERSION}").fetchall()
    with pytest.raises(Corrupt, match=r"store\.lock is damaged"):
        find_seal(db)
