"""Members of a zip archive, read in memory and never extracted."""

from __future__ import annotations

import struct
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from typing import BinaryIO

from perdure.errors import InvalidRequest

MEMBER_BYTES_MAX = 256 * 1024 * 1024  # unpacked; a larger one is a bomb or belongs in files of its own
MEMBERS_MAX = 10_000
# A few bytes of any other packing may stand for gigabytes, which zipfile unpacks in one go.
PACKINGS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
STEP_BYTES = 1 << 16

# What zipfile and the unpackers below it let through for bytes that no archiver wrote.
_DAMAGE = (
    zipfile.BadZipFile,
    zlib.error,
    struct.error,
    ArithmeticError,
    EOFError,
    LookupError,
    OSError,
    RuntimeError,  # NotImplementedError among them: a version that is not known
    ValueError,
)


def members(stream: BinaryIO) -> Iterator[tuple[str, bytes]]:
    """Yield the name and the bytes of each file in the archive, in the archive's order.

    All names are checked before the first member is read. Folders, names that begin with a dot and
    the `__MACOSX` copies are passed over.

    Raises:
        InvalidRequest: no zip archive, a name that is absolute or leads outside (`..`), too many or
            too large members, one that is encrypted, damaged, or packed by anything but deflate.
    """
    with _refusing_damage("it cannot be read as a zip file"):
        archive = zipfile.ZipFile(stream)
    with archive:
        chosen = [info for info in _checked(archive.infolist()) if _wanted(info)]
        for info in chosen:
            yield info.filename, _read(archive, info)


@contextmanager
def _refusing_damage(what: str) -> Iterator[None]:
    try:
        yield
    except InvalidRequest:
        raise
    except _DAMAGE as error:
        raise InvalidRequest(f"damaged archive: {what}; pack it anew") from error


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
    if info.compress_type not in PACKINGS:
        raise InvalidRequest(
            f"a member of the archive is packed by method {info.compress_type}; pack it anew by deflate (8)"
        )
    data = bytearray()
    with _refusing_damage("a member is not what was packed"), archive.open(info) as member:
        while step := member.read(STEP_BYTES):  # the size that the archive claims is not believed
            data += step
            if len(data) > MEMBER_BYTES_MAX:
                raise InvalidRequest(f"a member of the archive unpacks to more than {MEMBER_BYTES_MAX} bytes")
    return bytes(data)
