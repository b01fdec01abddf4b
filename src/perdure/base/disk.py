"""Files that only their owner reads: created, synced and overwritten so that it counts."""

from __future__ import annotations

import errno
import logging
import os
import stat
from collections.abc import Iterable
from pathlib import Path

from perdure.errors import InvalidRequest, StorageFull, Unavailable

try:
    import fcntl
except ImportError:  # not a POSIX system
    fcntl = None  # type: ignore[assignment]

FULL = frozenset(code for name in ("ENOSPC", "EFBIG", "EDQUOT") if (code := getattr(errno, name, None)))
"""What the system calls a disk or a quota that is full, as far as the platform knows it."""

FREE_BYTES_MIN = 4 << 20  # a batch of texts, its index entries, and as much again in a write-ahead log
_ZEROS = bytes(1 << 20)
_BINARY = getattr(os, "O_BINARY", 0)  # else Windows would translate line ends
MOUNTS = Path("/proc/self/mountinfo")  # Linux: one line per mount, "… MAJOR:MINOR … - TYPE …"
_NETWORK = frozenset({
    "9p", "afs", "beegfs", "ceph", "cifs", "fuse.ceph", "fuse.glusterfs", "fuse.rclone", "fuse.s3fs",
    "fuse.sshfs", "gfs2", "lustre", "ncpfs", "nfs", "nfs4", "ocfs2", "smb3", "smbfs",
})  # fmt: skip

log = logging.getLogger("perdure.log")


def make_directory(directory: Path) -> None:
    """Create the directory with mode 0700, or take an empty one and give it that mode."""
    directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    if not any(directory.iterdir()):
        directory.chmod(0o700)


def warn_of_network(directory: Path, mounts: Path = MOUNTS) -> None:
    """Log a warning when the directory lies on a network filesystem, whose locks and syncs cannot be trusted."""
    kind = find_filesystem(directory, mounts)
    if kind in _NETWORK:
        log.warning(
            "the store's directory is on a network filesystem (%s), where locks and syncs may not hold: "
            "several processes can damage the store there. Keep it on a local disk",
            kind,
        )


def find_filesystem(directory: Path, mounts: Path = MOUNTS) -> str | None:
    """Return the type of the filesystem as the system names it; None where that cannot be told.

    Known on Linux alone, and only where the mount table has the directory's own device.
    """
    try:
        device = directory.stat().st_dev
        lines = mounts.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return None
    place = f"{os.major(device)}:{os.minor(device)}"
    for line in lines:
        before, _, after = line.partition(" - ")
        if before.split(" ")[2:3] == [place] and after:
            return after.split(" ")[0]
    return None


def check_writable(directory: Path, files: Iterable[Path]) -> None:
    """Look whether these files and others beside them could be written now. Writes nothing.

    Raises:
        StorageFull: less than FREE_BYTES_MIN is free on the disk.
        Unavailable: this user may not write there, or the disk is mounted for reading only.
        OSError: the directory is gone.
    """
    if hasattr(os, "statvfs"):
        found = os.statvfs(directory)
        free = found.f_bavail * found.f_frsize
        if found.f_blocks and free < FREE_BYTES_MIN:
            raise StorageFull(
                f"the disk or quota has {free} bytes left, less than {FREE_BYTES_MIN}: make room before writes fail"
            )
    for path in (directory, *files):
        if not _may_write(path):
            where = "directory" if path == directory else f"file {path.name}"
            raise Unavailable(
                f"the store's {where} is read-only: check that this user may write there, and that the disk is not "
                "mounted for reading only"
            )


def _may_write(path: Path) -> bool:
    if os.access in os.supports_effective_ids:
        return os.access(path, os.W_OK, effective_ids=True) or not path.exists()
    return os.access(path, os.W_OK) or not path.exists()


def create_private(path: Path) -> bool:
    """Create an empty file of mode 0600; return False when it exists.

    An existing file is not opened: closing it would drop this process's SQLite locks on it.
    """
    try:
        descriptor = os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR | _BINARY, 0o600)
    except FileExistsError:
        return False
    os.close(descriptor)
    path.chmod(0o600)  # the umask may have taken more away, never less
    return True


def check_private(path: Path) -> None:
    """Raise InvalidRequest when others than the owner may read the file."""
    mode = stat.S_IMODE(path.stat().st_mode)
    if os.name == "posix" and mode & 0o077:
        raise InvalidRequest(
            f"{path.name} has mode {mode:04o}: it holds the store's secret, so nobody but its owner may read "
            "it. Run chmod 600 on it",
            field="path",
        )


def read_private(path: Path, bytes_max: int, *, what: str, field: str) -> bytes:
    """Return at most bytes_max + 1 bytes of a file that nobody but its owner may read: a key, a secret.

    Raises:
        InvalidRequest: of this field; it cannot be read, or others may read it. Nothing of it is shown.
    """
    try:
        with path.open("rb") as file:
            # Of the file that is open: another may take its name meanwhile.
            mode = stat.S_IMODE(os.fstat(file.fileno()).st_mode)
            content = file.read(bytes_max + 1)
    except (OSError, ValueError) as error:
        told = getattr(error, "strerror", None) or "no file can have this name"
        raise InvalidRequest(
            f"{what} cannot be read ({told}): check its name and its owner", field=field
        ) from error
    if os.name == "posix" and mode & 0o077:
        raise InvalidRequest(
            f"{what} has mode {mode:04o}: nobody but its owner may read it. Run chmod 600 on it", field=field
        )
    return content


def open_private(path: Path) -> int:
    """Open a file that SQLite never opens, creating it with mode 0600; return its descriptor."""
    return os.open(path, os.O_CREAT | os.O_RDWR | _BINARY, 0o600)


def sync(descriptor: int) -> None:
    """Force a file's bytes down to the medium, as far as the platform can."""
    full = getattr(fcntl, "F_FULLFSYNC", None)
    if full is not None:
        fcntl.fcntl(descriptor, full)
    else:
        os.fsync(descriptor)


def sync_file(path: Path) -> None:
    """Force a file down that nothing in this process has open."""
    descriptor = os.open(path, os.O_RDWR | _BINARY)
    try:
        sync(descriptor)
    finally:
        os.close(descriptor)


def sync_directory(directory: Path) -> None:
    """Make creations and removals in the directory durable (a no-op where directories cannot be opened)."""
    if os.name != "posix":
        return
    descriptor = os.open(directory, os.O_RDONLY)
    try:
        sync(descriptor)
    finally:
        os.close(descriptor)


def overwrite(path: Path) -> bool:
    """Write zeros over all of a file's bytes, in place and synced; return False when it has none.

    Never for a database or -shm file that this process has open.
    """
    size = size_bytes(path)
    if size == 0:
        return False
    descriptor = os.open(path, os.O_RDWR | _BINARY)
    try:
        left = size
        while left > 0:
            left -= os.write(descriptor, _ZEROS[:left] if left < len(_ZEROS) else _ZEROS)
        sync(descriptor)
    finally:
        os.close(descriptor)
    return True


def erase(path: Path) -> None:
    """Overwrite a file, then unlink it; where unlinking is refused, leave it empty."""
    overwrite(path)
    try:
        path.unlink(missing_ok=True)
    except PermissionError:
        os.truncate(path, 0)


def size_bytes(path: Path) -> int:
    """Return a file's size, 0 when there is none."""
    try:
        return path.stat().st_size
    except FileNotFoundError:
        return 0
