"""The token of a server without keys: one random text in a private file, for programs of the same user."""

from __future__ import annotations

import os
import re
import stat
import tempfile
from contextlib import suppress
from pathlib import Path

from perdure.base.ids import random_secret
from perdure.errors import Corrupt, InvalidRequest
from perdure.server.keyring_file import Sight, locked, replace, system_errors

TOKEN_FILE = "server.token"  # noqa: S105 - a name
TOKEN_BYTES = 32
_TOKEN = re.compile(r"pt_[0-9a-f]{64}", re.ASCII)


def token_file(directory: Path | None, port: int) -> Path:
    """Return where the token is: in the store's directory, or for an ephemeral store in the user's runtime one."""
    if directory is not None:
        return directory / TOKEN_FILE
    return runtime_directory() / f"server-{port}.token"


def forget_token(path: Path | None) -> None:
    """Remove a token of the user's runtime directory, and its lock, once its server has ended.

    One in a store's directory stays, so that the next start has the same.
    """
    if path is None or path.name == TOKEN_FILE:
        return
    with suppress(OSError):  # somebody may have removed it, or the directory
        path.unlink(missing_ok=True)
        path.with_suffix(".lock").unlink(missing_ok=True)


def runtime_directory() -> Path:
    """Return a directory that only this user enters, made where it is not there yet.

    Raises:
        InvalidRequest: what lies there is somebody else's, or open to others.
        OSError: it cannot be made.
    """
    told = os.environ.get("XDG_RUNTIME_DIR", "")
    if Path(told).is_absolute() and Path(told).is_dir():
        directory = Path(told) / "perdure"
    else:
        user = os.getuid() if os.name == "posix" else os.environ.get("USERNAME", "user")
        directory = Path(tempfile.gettempdir()) / f"perdure-{user}"
    directory.mkdir(mode=0o700, exist_ok=True)
    found = directory.lstat()
    # Anybody may have made a directory of this name among temporary files.
    own = os.name != "posix" or (found.st_uid == os.getuid() and not found.st_mode & 0o077)
    if not own or not stat.S_ISDIR(found.st_mode):
        raise InvalidRequest(
            f"the runtime directory {directory.name} is not this user's alone: remove it, or set XDG_RUNTIME_DIR",
            field="store",
        )
    return directory


def local_token(path: Path) -> str:
    """Return the token in this file, made where there is none, so that all workers of a store have the same.

    The file's directory must exist. Removing the file makes the next start choose another token.

    Raises:
        InvalidRequest: others may read the file.
        Corrupt: it holds something else.
        Busy, StorageFull, Unavailable.
    """
    with system_errors(path.name), locked(path.with_suffix(".lock")):
        try:
            sight = Sight(path)
        except FileNotFoundError:
            token = f"pt_{random_secret(TOKEN_BYTES).hex()}"
            replace(path, token.encode("ascii") + b"\n")
            return token
        sight.close()
    token = sight.content.decode("ascii", "replace").strip()
    if not _TOKEN.fullmatch(token):
        raise Corrupt(f"{path.name} holds no token: remove it, and the next start makes one")
    return token
