"""The HTTP server: requests a second and latencies of recall and remember, beside what the same server does at most.

    python -m bench.server                                     1 and 2 workers, 1, 8 and 64 connections
    python -m bench.server --seconds 10 --facts 10000 --out bench/results/server.md
    python -m bench.server --mixed 600 --kill-every 30         mixed load while a worker is killed again and again
    python -m bench.server --servers                           Litestar on Granian beside Litestar on Uvicorn

The load comes from a process of its own: raw HTTP over asyncio, one request at a time on each connection. `constant` is
GET /health/live, which passes the guard, the counts and the log of every request and answers 15 fixed bytes: what
the server can do at most. `null load` is the same load against a server that does nothing but write fixed bytes,
which tells how far the load itself could go. Times of the processor are those of the server's processes together,
and hardly change with what else the machine does; requests a second do.

The mixed load is remember and recall, 4 to 1, and a get of what was acknowledged; a worker is killed with SIGKILL.
At the end every write that was acknowledged is looked for in the store, and the memory of the workers is compared.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import random
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib import metadata
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

from bench.machine import describe
from bench.report import Report
from perdure import Store

ROOT = Path(__file__).resolve().parent.parent
CONNECTIONS = (1, 8, 64)
START_S = 60.0
TICKS = os.sysconf("SC_CLK_TCK")
TOPICS, PEOPLE, TOWNS = 17, 31, 7


class Measured(NamedTuple):
    """One load. Milliseconds; microseconds of the server's processors for each request."""

    rate: float
    p50_ms: float
    p99_ms: float
    cpu_us: float
    failed: int


# The load, in a process of its own: (port, kind, connections, seconds) -> JSON on standard output


class Client(asyncio.Protocol):
    """One connection that asks again as soon as it is answered."""

    def __init__(self, ask: Callable[[], bytes], until: float, load: Load) -> None:
        self._ask, self._until, self._load = ask, until, load
        self._buffer = b""
        self._began = 0.0

    def connection_made(self, transport: Any) -> None:
        self._transport = transport
        self._next()

    def data_received(self, data: bytes) -> None:
        self._buffer += data
        head, blank, body = self._buffer.partition(b"\r\n\r\n")
        if not blank:
            return
        lower = head.lower()
        at = lower.index(b"content-length:")
        length = int(lower[at + 15 :].split(b"\r\n", 1)[0])
        if len(body) < length:
            return
        now = time.perf_counter()
        self._load.times.append(now - self._began)
        self._load.failed += not self._buffer.startswith(b"HTTP/1.1 200")
        if now < self._until:
            self._next()
        else:
            self._transport.close()

    def connection_lost(self, error: Exception | None) -> None:
        self._load.failed += error is not None
        self._load.open -= 1
        if not self._load.open:
            self._load.done.set()

    def _next(self) -> None:
        self._buffer = b""
        self._began = time.perf_counter()
        self._transport.write(self._ask())


class Load:
    """What all connections of a load saw."""

    def __init__(self, connections: int) -> None:
        self.times: list[float] = []
        self.failed = 0
        self.open = connections
        self.done = asyncio.Event()


def request(method: str, path: str, body: bytes = b"") -> bytes:
    head = f"{method} {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
    return head.encode() + b"Content-Length: %d\r\n\r\n" % len(body) + body


def asking(kind: str) -> Callable[[], bytes]:
    """Return what gives one request after another of a kind."""
    source = random.Random(7)
    if kind == "constant":
        fixed = request("GET", "/health/live")
        return lambda: fixed
    if kind == "recall":
        asked = [
            request(
                "POST",
                "/api/v1/memory/recall",
                json.dumps({"query": f"person {n % PEOPLE} in town {n % TOWNS}"}).encode(),
            )
            for n in range(200)
        ]
        return lambda: source.choice(asked)

    def remember() -> bytes:
        told = f"something that happened as number {source.randrange(1 << 60)} to person {source.randrange(PEOPLE)}"
        return request("POST", "/api/v1/memory/remember", json.dumps({"text": told}).encode())

    return remember


async def put_load(port: int, kind: str, connections: int, seconds: float) -> dict[str, Any]:
    load, loop = Load(connections), asyncio.get_running_loop()
    ask, began = asking(kind), time.perf_counter()
    until = began + seconds
    for _ in range(connections):
        await loop.create_connection(lambda: Client(ask, until, load), "127.0.0.1", port)
    await load.done.wait()
    return {"times": sorted(load.times), "failed": load.failed, "seconds": time.perf_counter() - began}


# Servers


@contextmanager
def serving(command: list[str], port: int, log: Path) -> Iterator[subprocess.Popen[bytes]]:
    """Run a server and wait until it answers; end it afterwards."""
    with log.open("wb") as told:
        process = subprocess.Popen(command, stderr=told, stdout=told, cwd=ROOT)
        try:
            _await(process, port, log)
            yield process
        finally:
            process.terminate()
            try:
                process.wait(60)
            except subprocess.TimeoutExpired:
                process.kill()


def _await(process: subprocess.Popen[bytes], port: int, log: Path) -> None:
    deadline = time.monotonic() + START_S
    while time.monotonic() < deadline and process.poll() is None:
        try:
            urllib.request.urlopen(f"http://127.0.0.1:{port}/health/live", timeout=5).close()
        except OSError:
            time.sleep(0.1)
        else:
            time.sleep(0.5)
            return
    raise SystemExit(f"the server did not start:\n{log.read_text()[-2000:]}")


def perdure_command(store: Path, port: int, workers: int) -> list[str]:
    serve = "from perdure.cli.main import main; main()"
    told = [
        "--store",
        str(store),
        "--port",
        str(port),
        "--workers",
        str(workers),
        "--no-auth",
        "--log-level",
        "warning",
    ]
    return [sys.executable, "-c", serve, "serve", *told]


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        found: int = probe.getsockname()[1]
    return found


def fill(store: Path, count: int) -> None:
    facts = [
        {"text": f"fact number {n} about topic {n % TOPICS} and person {n % PEOPLE} in town {n % TOWNS}"}
        for n in range(count)
    ]
    with Store.open(store) as opened:
        memory = opened.memory()
        for start in range(0, count, 1000):
            memory.remember_many(facts[start : start + 1000])


def measure(port: int, pid: int, kind: str, connections: int, seconds: float) -> Measured:
    command = [sys.executable, "-m", "bench.server", "--load", json.dumps([port, kind, connections, seconds])]
    before = cpu_seconds(pid)
    run = subprocess.run(command, capture_output=True, check=True, cwd=ROOT)
    spent = cpu_seconds(pid) - before
    told = json.loads(run.stdout)
    times = told["times"]
    return Measured(
        len(times) / told["seconds"],
        times[len(times) // 2] * 1000,
        times[int(len(times) * 0.99)] * 1000,
        spent / len(times) * 1e6,
        told["failed"],
    )


def family(pid: int) -> list[int]:
    """Return a process and all below it."""
    try:
        children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    except OSError:
        return []
    return [pid, *(one for child in children for one in family(int(child)))]


def cpu_seconds(pid: int) -> float:
    total = 0
    for one in family(pid):
        try:
            fields = Path(f"/proc/{one}/stat").read_text().rpartition(")")[2].split()
        except OSError:
            continue
        total += int(fields[11]) + int(fields[12])
    return total / TICKS


def memory_bytes(pid: int) -> int:
    total = 0
    for one in family(pid):
        try:
            total += int(Path(f"/proc/{one}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
        except OSError:
            continue
    return total


# Reports


def head(report: Report, title: str, folder: Path) -> None:
    report.say(f"# {title}")
    report.say()
    report.say(describe(folder))
    names = ("litestar", "uvicorn", "httptools", "granian", "uvloop")
    versions = [f"{name} {_version(name)}" for name in names if find_spec(name) is not None]
    report.say(f"server: {', '.join(versions)}")
    report.say()


def _version(name: str) -> str:
    return metadata.version(name)


def table(report: Report, folder: Path, seconds: float, facts: int) -> None:
    head(report, "The HTTP server", folder)
    report.say(
        f"{facts} facts; {seconds:g} s of each load, from one process beside the server on the same machine."
    )
    for workers in (1, 2):
        report.say()
        report.say(f"## {workers} {'worker' if workers == 1 else 'workers'}")
        report.say()
        report.say(
            "| | connections | requests/s | p50 ms | p99 ms | processor us/request | of the constant's | failed |"
        )
        report.say("| --- | --: | --: | --: | --: | --: | --: | --: |")
        store, port = folder / f"store-{workers}", free_port()
        fill(store, facts)
        with serving(perdure_command(store, port, workers), port, folder / "log") as process:
            for kind in ("constant", "recall", "remember"):
                measure(port, process.pid, kind, 8, min(1.0, seconds))
            for connections in CONNECTIONS:
                constant = measure(port, process.pid, "constant", connections, seconds)
                for kind in ("constant", "recall", "remember"):
                    found = (
                        constant
                        if kind == "constant"
                        else measure(port, process.pid, kind, connections, seconds)
                    )
                    report.say(_row(kind, connections, found, constant))
        shutil.rmtree(store)
    report.say()
    null_load(report, folder, seconds)


def _row(kind: str, connections: int, found: Measured, constant: Measured) -> str:
    share = f"{found.cpu_us / constant.cpu_us:.1f}x processor, {constant.rate / found.rate:.1f}x time"
    return (
        f"| {kind} | {connections} | {found.rate:,.0f} | {found.p50_ms:.2f} | {found.p99_ms:.2f} | {found.cpu_us:,.0f} | "
        f"{share} | {found.failed} |"
    )


def null_load(report: Report, folder: Path, seconds: float) -> None:
    """Say how far the load itself can go."""
    port = free_port()
    code = (
        "import asyncio,sys\n"
        "class P(asyncio.Protocol):\n"
        "    def connection_made(self, t): self.t = t\n"
        '    def data_received(self, d): self.t.write(b\'HTTP/1.1 200 OK\\r\\ncontent-length: 15\\r\\n\\r\\n{"status":"ok"}\')\n'
        "async def main():\n"
        "    server = await asyncio.get_running_loop().create_server(P, '127.0.0.1', int(sys.argv[1]))\n"
        "    await server.serve_forever()\n"
        "asyncio.run(main())\n"
    )
    with serving([sys.executable, "-c", code, str(port)], port, folder / "log") as process:
        found = measure(port, process.pid, "constant", 64, seconds)
    report.say(f"The load against a server that does nothing, 64 connections: {found.rate:,.0f} requests/s.")


# Litestar on two servers

APPLICATION = """
import asyncio, json
from concurrent.futures import ThreadPoolExecutor
import msgspec
from litestar import Litestar, Request, Response, get, post
from perdure import Store
from perdure.contract.wire import hit_object

POOL = ThreadPoolExecutor(4)
MEMORY = None

def start(app):
    global MEMORY
    MEMORY = Store.open(":memory:").memory()
    MEMORY.remember_many([{{"text": f"fact number {{n}} about topic {{n % 17}} and person {{n % 31}} in town {{n % 7}}"}} for n in range({facts})])

@get("/health/live")
async def live() -> dict[str, str]:
    return {{"status": "ok"}}

@post("/api/v1/memory/recall", status_code=200)
async def recall(request: Request) -> Response:
    query = msgspec.json.decode(await request.body())["query"]
    hits = await asyncio.get_running_loop().run_in_executor(POOL, MEMORY.recall, query)
    return Response(msgspec.json.encode({{"results": [hit_object(hit) for hit in hits]}}), media_type="application/json")

app = Litestar([live, recall], on_startup=[start], openapi_config=None)
"""


def servers(report: Report, folder: Path, seconds: float, facts: int) -> None:
    head(report, "Litestar on Granian and on Uvicorn", folder)
    (folder / "bench_application.py").write_text(APPLICATION.format(facts=facts))
    report.say("| | | connections | requests/s | p50 ms | p99 ms | processor us/request |")
    report.say("| --- | --- | --: | --: | --: | --: | --: |")
    for name in ("granian", "uvicorn"):
        port = free_port()
        quiet = ["--log-level", "warning", "--port", str(port)]
        more = (
            ["--interface", "asgi", "--no-ws"] if name == "granian" else ["--no-access-log", "--ws", "none"]
        )
        command = [sys.executable, "-m", name, *quiet, *more, "bench_application:app"]
        os.environ["PYTHONPATH"] = str(folder)
        with serving(command, port, folder / "log") as process:
            for kind in ("constant", "recall"):
                for connections in CONNECTIONS:
                    found = measure(port, process.pid, kind, connections, seconds)
                    report.say(
                        f"| {name} | {kind} | {connections} | {found.rate:,.0f} | {found.p50_ms:.2f} | "
                        f"{found.p99_ms:.2f} | {found.cpu_us:,.0f} |"
                    )


# Mixed load with kills


class Mixed:
    """Writers and readers that go on while workers die, and what they saw."""

    def __init__(self, port: int) -> None:
        self.port = port
        self.acknowledged: list[str] = []
        self.reads = self.broken = self.refused = self.unseen = 0
        self.stop = threading.Event()

    def run(self, thread: int) -> None:
        source = random.Random(thread)
        number, mine = 0, ""
        while not self.stop.is_set():
            number += 1
            id_ = f"{thread}-{number}"
            try:
                if number % 5:
                    text = f"fact {id_} about person {source.randrange(PEOPLE)} in town {source.randrange(TOWNS)}"
                    status, _ = self._post("remember", {"id": id_, "text": text})
                    if status == 200:
                        self.acknowledged.append(id_)
                        mine = id_
                else:
                    status, _ = self._post("recall", {"query": f"person {source.randrange(PEOPLE)}"})
                    if mine:
                        status, told = self._post("get", {"id": mine})
                        self.unseen += status == 200 and told["fact"] is None
                    self.reads += status == 200
                self.refused += status != 200
            except (OSError, ValueError):
                self.broken += 1

    def _post(self, op: str, body: Any) -> tuple[int, Any]:
        import http.client  # noqa: PLC0415

        link = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        try:
            link.request(
                "POST", f"/api/v1/memory/{op}", json.dumps(body), {"content-type": "application/json"}
            )
            reply = link.getresponse()
            return reply.status, json.loads(reply.read())
        except http.client.HTTPException as error:
            raise OSError(str(error)) from error
        finally:
            link.close()


def mixed(report: Report, folder: Path, seconds: float, kill_every: float) -> bool:
    """Run the mixed load; return whether nothing was lost."""
    head(report, "Mixed load, a worker killed again and again", folder)
    store, port, workers = folder / "store", free_port(), 2
    fill(store, 1000)
    kills, sizes = 0, []
    with serving(perdure_command(store, port, workers), port, folder / "log") as process:
        load = Mixed(port)
        threads = [threading.Thread(target=load.run, args=(number,)) for number in range(8)]
        for thread in threads:
            thread.start()
        ends = time.monotonic() + seconds
        while time.monotonic() < ends:
            time.sleep(min(kill_every, max(0.0, ends - time.monotonic())))
            sizes.append(memory_bytes(process.pid))
            if time.monotonic() < ends:
                kills += _kill_one(process.pid)
        load.stop.set()
        for thread in threads:
            thread.join()
        sizes.append(memory_bytes(process.pid))
    lost = _lost(store, load.acknowledged)
    report.say(f"{seconds:g} s, {workers} workers, 8 connections at once, {kills} workers killed.")
    report.say()
    report.say(f"* writes acknowledged: {len(load.acknowledged):,}; lost: {len(lost)}")
    report.say(
        f"* reads: {load.reads:,}; of acknowledged writes that another request did not see: {load.unseen}"
    )
    report.say(f"* refused with an error: {load.refused}; connections that broke: {load.broken}")
    report.say(
        f"* memory of all processes, MiB, before each kill: {', '.join(f'{size >> 20}' for size in sizes)}"
    )
    return not lost and not load.unseen


def _kill_one(pid: int) -> int:
    workers = [one for one in family(pid)[1:] if "spawn_main" in Path(f"/proc/{one}/cmdline").read_text()]
    if not workers:
        return 0
    os.kill(random.choice(workers), signal.SIGKILL)
    return 1


def _lost(store: Path, ids: list[str]) -> list[str]:
    with Store.open(store) as opened:
        memory = opened.memory()
        return [id_ for id_ in ids if memory.get(id_) is None]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seconds", type=float, default=5.0, help="of each load")
    parser.add_argument("--facts", type=int, default=1000)
    parser.add_argument("--mixed", type=float, metavar="SECONDS")
    parser.add_argument("--kill-every", type=float, default=30.0, metavar="SECONDS")
    parser.add_argument("--servers", action="store_true")
    parser.add_argument("--out", type=Path)
    parser.add_argument("--load", help=argparse.SUPPRESS)
    told = parser.parse_args()
    if told.load:
        print(json.dumps(asyncio.run(put_load(*json.loads(told.load)))))
        return
    report, kept = Report(), True
    with tempfile.TemporaryDirectory(prefix="perdure-bench-") as name:
        if told.mixed:
            kept = mixed(report, Path(name), told.mixed, told.kill_every)
        elif told.servers:
            servers(report, Path(name), told.seconds, told.facts)
        else:
            table(report, Path(name), told.seconds, told.facts)
    if told.out:
        told.out.write_text("\n".join(report.lines) + "\n", encoding="utf-8")
    if not kept:
        raise SystemExit(1)


if __name__ == "__main__":
    main()
