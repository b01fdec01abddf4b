"""The key and the secret of a store, from where the options and the environment say that they are."""

from __future__ import annotations

import os
from pathlib import Path

from perdure.errors import InvalidRequest

SECRET_BYTES = 32
SECRET_FILE_BYTES_MAX = 128


def told_key(key_file: str | None) -> str | Path | None:
    """Return the file of a key or a passphrase, as the option or the environment tells it; None where neither does.

    Raises InvalidRequest where it is told twice, or the file holds no key.
    """
    passphrase, named = os.environ.get("PERDURE_KEY"), os.environ.get("PERDURE_KEY_FILE")
    if passphrase and (key_file or named):
        raise InvalidRequest(
            f"both PERDURE_KEY and {'--key-file' if key_file else 'PERDURE_KEY_FILE'} tell a key: unset one of them",
            field="key",
        )
    if key_file or named:
        path = Path(key_file or named or "")
        _check_key_file(path, "--key-file" if key_file else "PERDURE_KEY_FILE")
        return path
    return passphrase or None


def _check_key_file(path: Path, named: str) -> None:
    """Raise InvalidRequest, which says what named the file, unless it holds a key."""
    from perdure.base.sqlite.keys import checked_key  # noqa: PLC0415 - only where there is a key to read

    try:
        checked_key(path)
    except InvalidRequest as error:
        message = error.message.replace("the key file", f"the key file of {named}", 1)
        raise InvalidRequest(message, field=error.field) from error


def told_secret(secret_file: str | None) -> bytes | None:
    """Return the secret in the file that the option or the environment names; None where neither does.

    Raises InvalidRequest where the file holds none.
    """
    path = secret_file or os.environ.get("PERDURE_SECRET_FILE")
    if not path:
        return None
    what = f"the secret's file of {'--secret-file' if secret_file else 'PERDURE_SECRET_FILE'}"
    from perdure.base.disk import read_private  # noqa: PLC0415 - only where there is a secret to read

    content = read_private(Path(path), SECRET_FILE_BYTES_MAX, what=what, field="secret_file")
    if len(content) == SECRET_BYTES:
        return content
    try:
        secret = bytes.fromhex(content.decode("ascii").strip())
    except ValueError:  # without its cause, which carries what is in the file
        secret = b""
    if len(secret) != SECRET_BYTES:
        raise InvalidRequest(
            f"{what} must hold {SECRET_BYTES} bytes, or {2 * SECRET_BYTES} hex digits",
            field="secret_file",
        )
    return secret
