"""Run by the tests of read-only stores in a process of its own: `main` with a job and a directory as arguments.

The superuser may write where nobody else may, so that right is given up first.
"""

from __future__ import annotations

import ctypes
import json
import os
import sys
from pathlib import Path

from perdure import Memory, PerdureError, Store
from perdure.log.protocol import Rewritten

VERSION = 0x20080522  # of the call's structures, with two words of 32 rights
OVERRIDES = 0b110  # CAP_DAC_OVERRIDE and CAP_DAC_READ_SEARCH
UNSUPPORTED = 77  # exit code: the right cannot be given up here


def give_up_override():
    if os.geteuid() != 0:
        return
    try:
        system = ctypes.CDLL(None, use_errno=True)
        header, rights = (ctypes.c_uint32 * 2)(VERSION, 0), (ctypes.c_uint32 * 6)()
        failed = system.capget(header, rights)
        rights[0] &= ~OVERRIDES  # of those in effect; the second word has other rights
        failed = failed or system.capset(header, rights)
    except (OSError, AttributeError):
        failed = True
    if failed:
        sys.exit(UNSUPPORTED)


def outcome(call):
    """Return "ok", or the error's code and message. Any other exception ends the process."""
    try:
        call()
    except PerdureError as error:
        return [error.code, error.message]
    return "ok"


def lock(directory, files, folder):
    for path in directory.iterdir():
        path.chmod(files)
    directory.chmod(folder)


def opened(directory, files, folder):
    """Open a store that may not be written, then one that may."""
    lock(directory, int(files, 8), int(folder, 8))
    told = {"open": outcome(lambda: Memory.open(directory).close())}
    told["names"] = sorted(path.name for path in directory.iterdir())
    lock(directory, 0o600, 0o700)
    with Memory.open(directory) as memory:
        told["later"] = outcome(lambda: memory.remember("cup"))
    return told


def created(directory):
    """Make a store where nothing may be made."""
    directory.parent.mkdir()
    directory.parent.chmod(0o500)
    told = {"open": outcome(lambda: Memory.open(directory).close())}
    directory.parent.chmod(0o700)
    return told


def used(directory, files, folder):
    """Use a store that was open when it became read-only."""
    with Store.open(directory, timeout_s=1) as store, Store.open(directory.parent / "other") as other:
        memory = store.memory()
        memory.recall("kettle")
        lock(directory, int(files, 8), int(folder, 8))
        (directory.parent / "full").mkdir(mode=0o500)
        told = {
            "recall": outcome(lambda: memory.recall("kettle")),
            "list": outcome(memory.list),
            "remember": outcome(lambda: memory.remember("teapot")),
            "forget": outcome(lambda: memory.forget(ids=["kettle"])),
            "purge": outcome(lambda: store.log.purge(keep_all)),
            "backup": outcome(lambda: store.log.backup(directory.parent / "copy")),
            "backup to": outcome(lambda: other.log.backup(directory.parent / "full" / "copy")),
            "stats": outcome(store.stats),
            "health": store.health().status,
        }
        lock(directory, 0o600, 0o700)
        told["later"] = outcome(lambda: memory.remember("cup"))
        told["scrub"] = store.log.scrub()
        told["purged"] = outcome(lambda: store.log.purge(keep_all))
    return told


def keep_all(space, read):
    return (Rewritten(entry.data) for entry in read() if entry.data is not None)


def main():
    give_up_override()
    jobs = {job.__name__: job for job in (opened, created, used)}
    print(json.dumps(jobs[sys.argv[1]](Path(sys.argv[2]), *sys.argv[3:])))  # noqa: T201
