"""Members of a zip archive, read in memory and never extracted."""

from __future__ import annotations

import zipfile
from collections.abc import Iterator
from typing import BinaryIO

from perdure.errors import InvalidRequest

MEMBER_BYTES_MAX = 256 * 1024 * 1024  # unpacked; a larger one is a bomb or belongs in files of its own
MEMBERS_MAX = 10_000


def members(stream: BinaryIO) -> Iterator[tuple[str, bytes]]:
    """Yield the name and the bytes of each file in the archive, in the archive's order.

    All names are checked before the first member is read. Folders, names that begin with a dot and
    the `__MACOSX` copies are passed over.

    Raises:
        InvalidRequest: no zip archive, a name that is absolute or leads outside (`..`), too many or
            too large members, an encrypted or damaged one.
    """
    try:
        with zipfile.ZipFile(stream) as archive:
            chosen = [info for info in _checked(archive.infolist()) if _wanted(info)]
            for info in chosen:
                yield info.filename, _read(archive, info)
    except zipfile.BadZipFile as error:
        raise InvalidRequest("the archive is damaged or no zip file") from error


def _checked(infos: list[zipfile.ZipInfo]) -> list[zipfile.ZipInfo]:
    if len(infos) > MEMBERS_MAX:
        raise InvalidRequest(f"the archive has {len(infos)} members; at most {MEMBERS_MAX} are allowed")
    for index, info in enumerate(infos):
        # zipfile itself cuts a name at a NUL and turns the separators of the machine into slashes.
        for name in (info.filename, info.orig_filename):
            if _leads_outside(name):
                raise InvalidRequest(
                    f"member {index + 1} of the archive has a name that is absolute or leads outside; "
                    "nothing of the archive was read"
                )
    return infos


def _leads_outside(name: str) -> bool:
    parts = name.replace("\\", "/").split("/")
    return ".." in parts or parts[0] == "" or ":" in parts[0] or "\0" in name


def _wanted(info: zipfile.ZipInfo) -> bool:
    parts = info.filename.split("/")
    return not info.is_dir() and "__MACOSX" not in parts and not parts[-1].startswith(".")


def _read(archive: zipfile.ZipFile, info: zipfile.ZipInfo) -> bytes:
    if info.flag_bits & 1:
        raise InvalidRequest("the archive is encrypted; unpack it first")
    try:
        with archive.open(info) as member:
            data = member.read(MEMBER_BYTES_MAX + 1)  # the size that the archive claims is not believed
    except (zipfile.BadZipFile, NotImplementedError, EOFError, OSError) as error:
        raise InvalidRequest("a member of the archive is damaged or packed in an unknown way") from error
    if len(data) > MEMBER_BYTES_MAX:
        raise InvalidRequest(f"a member of the archive unpacks to more than {MEMBER_BYTES_MAX} bytes")
    return data
