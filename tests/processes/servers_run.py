"""A run of several servers on one database: written to at random while connections are cut, and it is killed and started
again; then all that was answered is held against what may have been."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from perdure import Memory, Store
from perdure.databases import migrate
from postgres_server import ROLE, Server
from processes.server_model import Facts, Held, current
from processes.server_writers import ACTS, MET, PATIENCE_S, PRINCIPALS, TENANTS, WORDS, K, Place, Writer
from unit.server.running_server import Running, running

SERVERS, WRITERS = 4, 8
CUT_EVERY_S, KILL_EVERY_S, AWAY_S = 0.7, 30.0, 1.5
CUT = (
    "SELECT count(*) FILTER (WHERE pg_terminate_backend(pid)) FROM pg_stat_activity "
    "WHERE datname = 'memory' AND random() < 0.4"
)
STORES_TALK = 20  # problems that a summary tells


@dataclass
class Summary:
    """What was done, and what is wrong with it."""

    counts: Counter[str] = field(default_factory=Counter)
    problems: list[str] = field(default_factory=list)
    seconds: float = 0.0

    def line(self) -> str:
        told = ", ".join(f"{number} {name}" for name, number in self.counts.items())
        return f"{told}; {len(self.problems)} problems; {self.seconds:.0f} s"


class Disturbance:
    """Cuts connections again and again; in the middle of each half minute it kills the database, and starts it again; at
    three quarters of it, it puts a new server in the place of one that it kills."""

    def __init__(self, database: Server, servers: list[Running], counts: Counter[str]) -> None:
        self._database, self._servers, self._counts = database, servers, counts

    def go_on(self, seconds: float, start: Callable[[], Running]) -> None:
        """Disturb for so long. `start` starts a server."""
        began = time.monotonic()
        kill_at, replace_at = min(seconds, KILL_EVERY_S) / 2, KILL_EVERY_S * 3 / 4
        while (passed := time.monotonic() - began) < seconds:
            time.sleep(CUT_EVERY_S)
            if passed > kill_at:
                kill_at += KILL_EVERY_S
                self._database.kill()
                time.sleep(AWAY_S)
                self._database.start()
                self._counts["killed databases"] += 1
            if passed > replace_at:
                replace_at += KILL_EVERY_S
                self._servers.pop(0).process.kill()
                self._servers.append(start())
                self._counts["killed servers"] += 1
            [(cut,)] = self._database.execute(CUT)
            self._counts["cut connections"] += cut


@contextmanager
def database() -> Iterator[Server]:
    """Start a server that syncs, so that what it acknowledged outlives it, with the tables in its database `memory`."""
    server = Server({})
    try:
        server.execute(f"CREATE ROLE {ROLE} LOGIN")
        server.execute("CREATE DATABASE memory")
        migrate(server.address("memory"), role=ROLE)
        yield server
    finally:
        server.stop()


def run(folder: Path, server: Server, seconds: float) -> Summary:
    """Run servers and writers for so long, and hold what came of it to what was told."""
    address, keys, ended, began = (
        server.address("memory", ROLE),
        folder / "keys",
        threading.Event(),
        time.monotonic(),
    )
    summary = Summary()
    with ExitStack() as ending:
        told = {"opening": {"keystore": str(keys)}, "log_level": "error"}

        def start() -> Running:
            return ending.enter_context(running(address, **told))

        servers = [start() for _ in range(SERVERS)]
        writers = [Writer(number, servers, ended) for number in range(WRITERS)]
        for writer in writers:
            writer.thread.start()
        try:
            Disturbance(server, servers, summary.counts).go_on(seconds, start)
        finally:
            ended.set()
            for writer in writers:
                writer.thread.join(2 * PATIENCE_S)
        for name in (*ACTS, *MET):
            summary.counts[name] = sum(writer.counts[name] for writer in writers)
        summary.problems += [problem for writer in writers for problem in writer.problems]
        if not summary.problems:  # else what was asked last came to no end, and what is there is not known
            for table in ("cache", "cache_part"):  # so that what follows is built from the records alone
                server.execute(f"DELETE FROM perdure.{table}", "memory")
            for tenant in TENANTS:
                with Store.open(address, tenant=tenant, keystore=keys) as store:
                    summary.problems += _of_tenant(store, tenant, servers, writers)
                    summary.problems += _of_sequences(store, tenant, summary.counts)
            summary.problems += _of_recalls(writers)
        codes = [one.stop() for one in servers]
        if any(codes):
            summary.problems.append(f"servers ended with {codes}")
        if summary.problems:
            summary.problems += [f"the log of a server: {line}" for one in servers for line in said(one)]
    summary.seconds = time.monotonic() - began
    return summary


def said(server: Running) -> list[str]:
    """Return the last lines of the log of a server that has ended."""
    assert server.process.stderr is not None
    return server.process.stderr.read().splitlines()[-STORES_TALK:]


def _of_recalls(writers: Sequence[Writer]) -> list[str]:
    found = []
    for tenant in TENANTS:
        for principal in PRINCIPALS:
            with closing(Held((tenant, principal), writers)) as held:
                found += held.problems()
    return found


def _of_tenant(store: Store, tenant: str, servers: Sequence[Running], writers: Sequence[Writer]) -> list[str]:
    found = [f"{tenant}: {finding}" for finding in (*store.verify().findings, *store.verify_events())]
    if not store.log.scrub() or store.log.scrub_pending():
        found.append(f"{tenant}: keys of what was erased are there still")
    purges = sum(writer.purges[tenant] for writer in writers)
    if store.log.epoch() < purges:
        found.append(f"{tenant} was purged {store.log.epoch()} times, and {purges} were acknowledged")
    for principal in PRINCIPALS:
        place, memory = (tenant, principal), store.memory(principal)
        with closing(Held(place, writers)) as held:
            found += _of_memory(memory, place, held.last())
        found += _of_servers(memory, place, servers)
    return found


def _of_sequences(store: Store, tenant: str, counts: Counter[str]) -> list[str]:
    """Return where a number is missing, and count the records."""
    found, spaces = [], store.log.spaces()
    if spaces != list(range(1, len(spaces) + 1)):
        found.append(f"{tenant} has the spaces {spaces}")
    for space in spaces:
        head = store.log.head(space)
        numbers = [entry.seq for entry in store.log.read(space, 0, head.seq)]
        counts["records"] += len(numbers)
        if numbers != list(range(1, head.seq + 1)):
            found.append(f"space {space} of {tenant} has the records {numbers}, and is at {head.seq}")
    return found


def _of_memory(memory: Memory, place: Place, facts: Facts) -> list[str]:
    """Return what is lost, double, back, or superseded wrongly."""
    found, there, cursor = [], list[tuple[str, str, str]](), None
    while True:
        page = memory.list(limit=200, cursor=cursor)
        there += [(fact.id, fact.text, fact.status.value) for fact in page.items]
        cursor = page.cursor
        if cursor is None:
            break
    now = current(facts)
    expected = {(id_, fact.text, "current" if id_ in now else "superseded") for id_, fact in facts.items()}
    if len(there) != len(expected) or set(there) != expected:
        lost, more = expected - set(there), set(there) - expected
        found.append(f"{place} lost {lost} and has {more} beside, {len(there)} in all")
    return found


def _of_servers(memory: Memory, place: Place, servers: Sequence[Running]) -> list[str]:
    """Return where a server answers otherwise than a store that was opened just now."""
    found, (tenant, principal) = [], place
    headers = {"perdure-tenant": tenant, "perdure-principal": principal}
    for word in WORDS:
        built = [(hit.fact.id, hit.score, hit.status.value) for hit in memory.recall(word, k=K)]
        for server in servers:
            for _ in range(50):  # what was idle when the database was killed is noticed by the next who asks
                status, told = server.post("memory/recall", {"query": word, "k": K}, **headers)
                if status != 503:
                    break
                time.sleep(0.1)
            results = told.get("results", ())
            if [(hit["fact"]["id"], hit["score"], hit["status"]) for hit in results] != built:
                found.append(f"a server answers {word!r} in {place} with {status} {told}, and not {built}")
    return found
