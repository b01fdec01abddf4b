"""The forms in which a key is given: 32 bytes, a passphrase, a file that holds either, a function that returns it.

What is wrong with a key is told without showing any of it.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

from perdure.base.disk import read_private
from perdure.base.sqlite.ciphers import PAGE_KEY_BYTES, Key
from perdure.base.text import counted
from perdure.errors import InvalidRequest

KeyForm = bytes | str | Path | Callable[[], bytes | str]

FILE_BYTES_MAX = 4096  # more is no key, but a file that was named by mistake
_HEX = re.compile(rb"[0-9A-Fa-f]{64}\s*", re.ASCII)


def checked_key(key: KeyForm | None) -> Key | None:
    """Return the key that was given in any form, None for none.

    Raises:
        InvalidRequest: of field `key`: the form or its content is wrong, or others may read the file. What a
            function raises passes through.
    """
    if key is None:
        return None
    if isinstance(key, Path):
        return _from_file(key)
    if not isinstance(key, bytes | str) and callable(key):
        return _from_value(key(), "the function for key returned")
    return _from_value(key, "key is")


def _from_value(value: object, what: str) -> Key:
    if isinstance(value, str):
        return _passphrase(value)
    if not isinstance(value, bytes):
        raise _wrong(
            f"{what} of type {type(value).__name__}: give {PAGE_KEY_BYTES} bytes, a passphrase as text, the Path "
            "of a key file, or a function that returns one of the first two"
        )
    if len(value) != PAGE_KEY_BYTES:
        raise _wrong(
            f"{what} {counted(len(value), 'byte')} long: it must be {PAGE_KEY_BYTES}. Give a passphrase as text"
        )
    return Key(bytes(value), is_passphrase=False)


def _passphrase(text: str) -> Key:
    try:
        encoded = text.encode()
    except UnicodeEncodeError:
        # Without its cause, which carries the passphrase.
        raise _wrong("key is text that UTF-8 cannot encode: give another passphrase") from None
    if not encoded:
        raise _wrong("key is an empty text: give a passphrase, or leave the key out")
    return Key(encoded, is_passphrase=True)


def _from_file(path: Path) -> Key:
    content = read_private(path, FILE_BYTES_MAX, what="the key file", field="key")
    if len(content) == PAGE_KEY_BYTES:
        return Key(content, is_passphrase=False)
    if _HEX.fullmatch(content):
        return Key(bytes.fromhex(content.decode("ascii")), is_passphrase=False)
    if len(content) > FILE_BYTES_MAX:
        raise _wrong(f"the key file is longer than {FILE_BYTES_MAX} bytes: name the right one")
    try:
        text = content.decode()
    except UnicodeDecodeError:
        raise _wrong(
            f"the key file is {counted(len(content), 'byte')} long and no text in UTF-8: it must hold {PAGE_KEY_BYTES} bytes, "
            f"{2 * PAGE_KEY_BYTES} hex digits or a passphrase"
        ) from None
    text = text.removesuffix("\n").removesuffix("\r")
    if not text:
        raise _wrong("the key file is empty: write a key or a passphrase into it")
    return _passphrase(text)


def _wrong(message: str) -> InvalidRequest:
    return InvalidRequest(message, field="key")
