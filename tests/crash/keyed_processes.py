"""What the tests of encryption run in processes of their own."""

from __future__ import annotations

import hashlib
import os
import signal
import sys
from pathlib import Path

import forked
from perdure.errors import PerdureError
from perdure.log.protocol import Batch, Rewritten
from perdure.log.sqlite import SqliteLog


def start(job, directory, *arguments):
    """Start a job; its output is a pipe, its input too."""
    return forked.start(
        "from crash.keyed_processes import main; main()", job, directory, *arguments, text=True
    )


def finish(process, told=None):
    """Wait for a job to end well and return the lines it wrote."""
    output, error = process.communicate(told, timeout=120)
    assert process.returncode == 0, error
    return output.splitlines()


def await_kill(process):
    """Wait for a job to kill itself."""
    process.communicate(timeout=120)
    assert process.returncode == -signal.SIGKILL


def holders(directory, marker):
    """Return the names of the files that hold the marker in any form, read in a process without locks on them."""
    return finish(start("scan", directory, marker))


def contents(directory):
    """Return the name, time of change and digest of every file, read in a process without locks on them."""
    return finish(start("digest", directory))


def key_of(told):
    """Return a key from its form as an argument: hex digits, or "none"."""
    return None if told == "none" else bytes.fromhex(told)


def kept(space, read):
    """A rewrite that keeps what was not erased."""
    for entry in read():
        if entry.data is not None:
            yield Rewritten(entry.data)


def tell(*words):
    sys.stdout.write(" ".join(map(str, words)) + "\n")
    sys.stdout.flush()


def scan(directory, marker):
    forms = {
        form.encode(encoding)
        for form in (marker, marker.lower(), marker.upper(), marker[::-1])
        for encoding in ("utf-8", "utf-16-le", "utf-16-be", "utf-32-le")
    }
    for path in sorted(one for one in Path(directory).rglob("*") if one.is_file()):
        data = path.read_bytes()
        if any(form in data for form in forms):
            tell(path.name)


def digest(directory):
    for path in sorted(one for one in Path(directory).rglob("*") if one.is_file()):
        tell(path.name, path.stat().st_mtime_ns, hashlib.sha256(path.read_bytes()).hexdigest())


def wait_and_use(directory, key):
    """Open, wait until told, then read and write; tell the code of each error, or the records."""
    log = SqliteLog.open(directory, key=key_of(key))
    tell(log.head(1).seq)
    sys.stdin.readline()
    for work in (
        lambda: len(list(log.read(1, 0, 10**6))),
        lambda: log.append(1, log.head(1), Batch(records=[b"late"])).seq,
        lambda: log.get_cache(1, "state"),
    ):
        try:
            tell(work())
        except PerdureError as error:
            tell(error.code, error.message)
    log.close()


def rekey_and_die(directory, old, new):
    """Change the key, and die in the middle of writing the new files."""
    log = SqliteLog.open(directory, key=key_of(old))

    def rewrite(space, read):
        for number, record in enumerate(kept(space, read)):
            yield record
            if number == 2:
                os.kill(os.getpid(), signal.SIGKILL)

    log.rekey(rewrite, key_of(new))


def rekey_past_the_switch_and_die(directory, old, new):
    """Change the key while a reader keeps the old files from being overwritten, and die then."""
    log = SqliteLog.open(directory, key=key_of(old), timeout_s=1)
    entries = log.read(1, 0, 10**6)
    next(entries)
    log.rekey(kept, key_of(new))
    os.kill(os.getpid(), signal.SIGKILL)


def main():
    jobs = (scan, digest, wait_and_use, rekey_and_die, rekey_past_the_switch_and_die)
    {job.__name__: job for job in jobs}[sys.argv[1]](*sys.argv[2:])
