"""Where a store may be, where a copy of it may go, and what lies there already."""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterable, Iterator
from pathlib import Path

from perdure.errors import InvalidRequest, Unavailable
from perdure.log.protocol import Finding

_SQLITE = re.compile(r"store\.lock|gen-\d{1,18}\.(?:db(?:-wal|-shm)?|hw)")
_JOURNAL = re.compile(r"journal\.(?:current|key)|journal-\d{1,19}\.(?:jsonl|mark)")
_ADDRESS = re.compile(
    r"[\s\"'<]*(?:[A-Za-z][A-Za-z0-9+.-]+:/|postgres(?:ql)?:)", re.IGNORECASE
)  # a drive of Windows has one letter
# How PostgreSQL's programs take it as well, in any order.
_WORDS = re.compile(
    r"[\s\"']*(?:host|hostaddr|port|dbname|user|password|passfile|service|options|connect_timeout|application_name|"
    r"target_session_attrs|channel_binding|gss\w+|ssl\w+|keepalives\w*)\s*="
)


def refuse_address(told: str, field: str) -> None:
    """Raise InvalidRequest, of this field, for what looks like an address: it would become a folder of that name."""
    if _ADDRESS.match(told) or _WORDS.match(told):
        raise InvalidRequest(
            f"{field} looks like an address and is no path: that of a database begins with postgresql:// and nothing before it, "
            "and a folder of such a name is written ./NAME",
            field=field,
        )


def checked_path(path: object, field: str = "path") -> Path:
    """Return the path as an absolute one.

    Raises:
        InvalidRequest: of this field; no file can have it.
        Unavailable: it is relative, and the present directory is gone.
    """
    if not isinstance(path, str | Path):
        raise InvalidRequest(f"{field} must be text or a Path, got {type(path).__name__}", field=field)
    told = str(path)
    if not told or "\0" in told:
        what = "has a character of value 0, which no path may have" if told else "is empty"
        raise InvalidRequest(f"{field} {what}", field=field)
    if isinstance(path, str):  # a Path has lost what its text began with, ./ for one
        refuse_address(path, field)
    try:
        whole = Path(path).absolute()
        str(whole).encode("utf-8")
    except OSError as error:
        raise Unavailable(
            f"{field} is relative to a directory that cannot be used ({error.strerror}): give an absolute one"
        ) from error
    except UnicodeEncodeError as error:
        raise InvalidRequest(
            f"{field} has a character that UTF-8 cannot encode, or lies in a directory whose name has one: give "
            "another",
            field=field,
        ) from error
    return whole


def checked_target(store: Path, directory: object, field: str = "directory") -> Path:
    """Return the place of a copy of a store, its links resolved: absent, or an empty directory.

    Raises:
        InvalidRequest: of this field; it is in use, or lies within this store or another one.
        OSError: it cannot be looked at.
    """
    target = Path(os.path.realpath(checked_path(directory, field)))
    if any(place.exists() and place.samefile(store) for place in (target, *target.parents)):
        raise InvalidRequest(
            f"{field} lies within the store, where a purge would not find what it must erase: give another",
            field=field,
        )
    if any(map(is_store, target.parents)):
        raise InvalidRequest(
            f"{field} lies within another store, and would go with it: give another", field=field
        )
    if target.exists() and not target.is_dir():
        raise InvalidRequest(f"{field} is the name of a file: give a directory", field=field)
    if target.exists() and any(target.iterdir()):
        raise taken_target(field)
    return target


def taken_target(field: str = "directory") -> InvalidRequest:
    return InvalidRequest(
        f"{field} holds something already: give a directory that is empty, or does not exist yet", field=field
    )


def is_store(place: Path) -> bool:
    """Whether a store lies in this directory; as far as a look tells, which changes nothing."""
    if (place / "journal.current").exists():
        return True
    return (place / "store.lock").exists() and any(place.glob("gen-*.db"))


def traces(directory: Path) -> dict[str, str]:
    """Return of which backends there is any file, however much of the store is lost: a name of one for each.

    Raises:
        OSError, ValueError: it is no directory that can be read.
    """
    found: dict[str, str] = {}
    for name in sorted(os.listdir(directory)):
        if _SQLITE.fullmatch(name):
            found.setdefault("sqlite", name)
        elif _JOURNAL.fullmatch(name):
            found.setdefault("journal", name)
    return found


def mode_findings(directory: Path, files: Iterable[Path]) -> Iterator[Finding]:
    """Yield which of a store's directory and files others than their owner reach."""
    if os.name != "posix":
        return
    for path in (directory, *files):
        mode, right = stat.S_IMODE(path.stat().st_mode), "700" if path == directory else "600"
        if mode & 0o077:
            what = "the store's directory" if path == directory else path.name
            yield Finding(
                f"{what} has mode {mode:04o}, so that others than its owner reach it: run chmod {right} on it"
            )
