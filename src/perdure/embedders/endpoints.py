"""Where endpoints are, and the keys that they want: told by name, read when they are needed."""

from __future__ import annotations

import os
from pathlib import Path
from urllib.parse import urlsplit

from perdure.errors import InvalidRequest, Unavailable

_KEY_BYTES_MAX = 8_192


def read_key(key_env: str | None, key_file: str | None) -> str | None:
    """Return the key that an environment variable or a file holds now; None where neither is named.

    Raises Unavailable where it holds none.
    """
    if key_env is not None:
        told = os.environ.get(key_env, "")
        source = f"the environment variable {key_env}"
    elif key_file is not None:
        told, source = _read_key(key_file), f"the file {key_file}"
    else:
        return None
    key = told.strip()
    if not (key and key.isascii() and key.isprintable() and len(key) <= _KEY_BYTES_MAX):
        raise Unavailable(
            f"{source} holds no key: it is absent, empty, or not one line of ASCII; put the endpoint's key there",
            field="key_env" if key_env is not None else "key_file",
        )
    return key


def check_endpoint(url: str, key_env: str | None, key_file: str | None) -> None:
    """Raise InvalidRequest unless it is the plain address of an endpoint, with at most one place of its key."""
    if key_env is not None and key_file is not None:
        raise InvalidRequest("key_env and key_file are both given; keep one of them", field="key_file")
    try:
        parts = urlsplit(url)
        parts.port  # noqa: B018 - reading it checks it
    except ValueError as error:
        raise InvalidRequest(
            "url is no web address; give one such as http://localhost:11434/v1", field="url"
        ) from error
    if parts.scheme not in ("http", "https") or not parts.hostname or not url.isascii() or " " in url:
        raise InvalidRequest(
            "url must begin with http:// or https:// and a host, in ASCII; give one such as "
            "http://localhost:11434/v1",
            field="url",
        )
    if parts.username is not None or parts.password is not None or parts.query or parts.fragment:
        # It would be shown wherever the configuration is.
        raise InvalidRequest(
            "url must hold no user, password, query or fragment; name the key by key_env or key_file",
            field="url",
        )


def _read_key(path: str) -> str:
    try:
        with Path(path).open("rb") as stream:
            return stream.read(_KEY_BYTES_MAX + 1).decode("ascii", "replace")
    except OSError as error:
        raise Unavailable(
            f"the key file {path} cannot be read ({error.strerror}); check its place and its rights",
            field="key_file",
        ) from error
