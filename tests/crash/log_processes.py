"""What the crash tests run in processes of their own."""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path

import forked
from perdure.errors import Conflict
from perdure.log.protocol import Batch
from perdure.log.sqlite import SqliteLog


def start(job, directory, *arguments):
    """Start a job; its output is a pipe, its input too."""
    return forked.start("from crash.log_processes import main; main()", job, directory, *arguments, text=True)


def finish(process):
    """Wait for a job to end well and return the lines it wrote."""
    output, error = process.communicate(timeout=120)
    assert process.returncode == 0, error
    return output.splitlines()


def await_kill(process):
    """Wait for a job to kill itself."""
    process.communicate(timeout=60)
    assert process.returncode == -signal.SIGKILL


def holders(directory, marker):
    """Return the names of the files that hold the marker, scanned in a process without locks on them."""
    return finish(start("scan", directory, marker))


def tell(*words):
    """Write one line to whoever started this job."""
    sys.stdout.write(" ".join(map(str, words)) + "\n")
    sys.stdout.flush()


def append(directory, writer, count):
    """Append batches of two records, telling each acknowledged one."""
    log = SqliteLog.open(directory)
    space = log.spaces()[0]
    number = 0
    while number < int(count):
        try:
            head = log.append(
                space, log.head(space), Batch(records=[f"{writer}/{number}/{half}".encode() for half in "ab"])
            )
        except Conflict:
            continue
        tell(head.seq - 1, f"{writer}/{number}")
        number += 1


def scan(directory, marker):
    for path in sorted(Path(directory).iterdir()):
        if marker.encode() in path.read_bytes():
            tell(path.name)


def idle(directory):
    """Read once, then keep the connection open until told to go; read again before going."""
    log = SqliteLog.open(directory)
    space = log.spaces()[0]
    tell(len(list(log.read(space, 0, 10**6))))
    sys.stdin.readline()
    tell(len([entry for entry in log.read(space, 0, 10**6) if entry.data is not None]))
    log.append(space, log.head(space), Batch(records=[b"from the idle one"]))


def erase_and_die(directory, seq):
    """Erase one record and die before anything else is cleaned."""
    log = SqliteLog.open(directory)
    space = log.spaces()[0]
    with log.writer():
        log.append(space, log.head(space), Batch(records=[b"removal"], erase=[int(seq)]))
        os.kill(os.getpid(), signal.SIGKILL)


def die_in_turn(directory):
    """Die while having the writer's turn."""
    log = SqliteLog.open(directory)
    with log.writer():
        os.kill(os.getpid(), signal.SIGKILL)


def hold(directory):
    """Keep the writer's turn until told to go."""
    log = SqliteLog.open(directory)
    with log.writer():
        tell("holding")
        sys.stdin.readline()
    log.close()


def create(directory, *_):
    """Open, creating the store if need be."""
    log = SqliteLog.open(directory)
    tell(log.secret.hex())


def main():
    jobs = {job.__name__: job for job in (append, scan, idle, erase_and_die, die_in_turn, hold, create)}
    jobs[sys.argv[1]](*sys.argv[2:])
