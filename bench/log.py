"""What the SQLite log costs: heads, appends, point reads, whole reads, scrubs.

    python -m bench.log [DIRECTORY]

DIRECTORY (default: a temporary one) says which disk is measured. Times are the best or the median of repeated
rounds, as the table says: the best counts this process's CPU time, the median the clock. What is compared is
measured in turn, so that both sides see the same disk.
"""

from __future__ import annotations

import argparse
import os
import random
import statistics
import tempfile
import time
from pathlib import Path

import apsw

from perdure.log.protocol import Batch
from perdure.log.sqlite import SqliteLog

RECORD_BYTES = 200
ROUNDS = 60


def timed(work):
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def computed(work):
    """Return the seconds of this process's CPU that the work takes: fair on a machine that others use too."""
    start = time.process_time()
    work()
    return time.process_time() - start


def best_us(work, calls, rounds=ROUNDS):
    """Return the mean microseconds of one call in the best round."""

    def repeat():
        for _ in range(calls):
            work()

    return min(computed(repeat) for _ in range(rounds)) / calls * 1e6


def bare_table(path):
    db = apsw.Connection(str(path))
    for pragma in ("journal_mode=WAL", "synchronous=FULL", "fullfsync=ON"):
        db.execute(f"PRAGMA {pragma}").fetchall()
    db.execute("CREATE TABLE rec(rid INTEGER PRIMARY KEY, data BLOB NOT NULL)")
    return db


def fsync_ms(path):
    descriptor = os.open(path, os.O_CREAT | os.O_RDWR, 0o600)
    times = []
    for _ in range(100):
        os.write(descriptor, bytes(4096))
        times.append(timed(lambda: os.fsync(descriptor)))
    os.close(descriptor)
    return statistics.median(times) * 1e3


def single_appends(log, db):
    """Return the median milliseconds of (one durable append, one bare insert), measured in turn."""
    ours, bare = [], []
    for _ in range(400):
        data = os.urandom(RECORD_BYTES)
        head = log.head(1)
        ours.append(timed(lambda data=data, head=head: log.append(1, head, Batch(records=[data]))))
        bare.append(timed(lambda data=data: db.execute("INSERT INTO rec(data) VALUES(?)", (data,))))
    return statistics.median(ours) * 1e3, statistics.median(bare) * 1e3


def batch_appends(log, durability_rounds=60):
    """Return the median milliseconds of an append of 100 records."""
    times = []
    for _ in range(durability_rounds):
        batch = Batch(records=[os.urandom(RECORD_BYTES) for _ in range(100)])
        head = log.head(1)
        times.append(timed(lambda batch=batch, head=head: log.append(1, head, batch)))
    return statistics.median(times) * 1e3


def scrubs(log):
    """Return the median milliseconds of (an append that erases one record, the scrub after it)."""
    erasing, scrubbing = [], []
    for seq in range(100, 130):
        with log.writer():
            head = log.head(1)
            batch = Batch(records=[b"removal"], erase=[seq])
            erasing.append(timed(lambda head=head, batch=batch: log.append(1, head, batch)))
            scrubbing.append(timed(log.scrub))
    return statistics.median(erasing) * 1e3, statistics.median(scrubbing) * 1e3


def measure(directory):
    log = SqliteLog.open(directory / "store")
    log.create_space(bytes(16), b"first")
    batch_ms = batch_appends(log)
    loose = SqliteLog.open(directory / "normal", durability="normal")
    loose.create_space(bytes(16), b"first")
    computing_ms = batch_appends(loose)
    loose.close()
    single_ms, bare_ms = single_appends(log, bare_table(directory / "bare.db"))
    while (head := log.head(1)).seq < 100_000:
        log.append(1, head, Batch(records=[os.urandom(RECORD_BYTES) for _ in range(1000)]))
    chance = random.Random(1)
    ten = [chance.randrange(1, head.seq) for _ in range(10)]
    read_s = min(computed(lambda: sum(1 for _ in log.read(1, 0, head.seq))) for _ in range(12))
    rows = [
        ("fsync of 4 KiB, median", fsync_ms(directory / "sync"), "ms", ""),
        ("head(), best round", best_us(lambda: log.head(1), 2000), "us", "<= 12"),
        ("get of 10 records, best round", best_us(lambda: log.get(1, ten, head), 1000), "us", "<= 25"),
        ("one durable append, median", single_ms, "ms", ""),
        ("one bare SQLite insert, median", bare_ms, "ms", ""),
        ("append / bare insert", single_ms / bare_ms, "x", "<= 1.25"),
        ("100 records durably, median", batch_ms, "ms", ""),
        ("  records per second", 100 / batch_ms * 1e3, "/s", ""),
        ("100 records without sync, median", computing_ms, "ms", "<= 1"),
        ("reading a space, best of 12", head.seq / read_s, "/s", ">= 300,000"),
    ]
    erase_ms, scrub_ms = scrubs(log)
    rows += [("erasing append, median", erase_ms, "ms", ""), ("scrub, median", scrub_ms, "ms", "<= 20")]
    opening = min(timed(lambda: SqliteLog.open(directory / "store").close()) for _ in range(5))
    rows.append((f"opening at {head.seq:,} records, best of 5", opening * 1e3, "ms", ""))
    log.close()
    return rows


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("directory", nargs="?", help="on the disk that is measured; default: a temporary one")
    with tempfile.TemporaryDirectory(dir=parser.parse_args().directory) as name:
        for title, value, unit, bar in measure(Path(name)):
            print(f"{title:42}{value:14,.2f} {unit:4}{bar}")


if __name__ == "__main__":
    main()
