"""Whatever two servers do, however it fails: no key is destroyed that is needed, and none is kept that sealed what nobody needs."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path
from uuid import UUID

import psycopg
import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from perdure.errors import Busy, Unavailable
from perdure.log.postgres import FileKeystore, PostgresLog, sealing, writing
from perdure.log.postgres.connections import Session
from perdure.log.postgres.sealing import Sealer
from perdure.log.protocol import Batch, Cached, Entry, Rewritten
from postgres_server import ROLE, fresh_database, shared_server

NAMES = [bytes([number]) * 16 for number in range(2)]
SERVERS = st.integers(0, 1)
SPACES = st.sampled_from(NAMES)
BREAKS = st.none() | st.tuples(st.integers(0, 20), st.booleans())  # at which statement, and whether it kills
BUCKET = 3  # records of one data key here, so that few are many
numbers = count(1)


class Killed(BaseException):
    """What a process does that is killed: nothing any more."""


class Fault:
    """Makes the n-th statement fail that is said, or kills whoever says it."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self.left, self.kills = -1, False
        run = Session.run

        def running(session, sql, params=()):
            if self.left == 0:
                self.left = -1
                if self.kills:
                    session.connection.close()
                    raise Killed
                return run(session, "SELECT 1 / 0", None)
            self.left = max(-1, self.left - 1)
            return run(session, sql, params)

        patch.setattr(Session, "run", running)


def keep(_space: int, read: Callable[[], Iterator[Entry]]) -> Iterator[Rewritten]:
    return (Rewritten(entry.data) for entry in read() if entry.data is not None)


class Keys(RuleBasedStateMachine):
    @initialize()
    def open(self) -> None:
        self.patch = pytest.MonkeyPatch()
        for module in (sealing, writing):
            self.patch.setattr(module, "RECORDS_MAX", BUCKET)
        self.patch.setattr(sealing, "KEYS_AHEAD", 2)
        self.sealed: set[int] = set()
        self._spy()
        self.fault = Fault(self.patch)
        self.keys, self.database = Path(tempfile.mkdtemp(prefix="keys")), fresh_database()
        self.owner = psycopg.connect(shared_server().address(self.database), autocommit=True)
        self.logs = [self._open() for _ in range(2)]
        self.live: dict[bytes, list[bytes]] = {}
        for server, name in enumerate(NAMES):
            self.tell(server, name, 2 * BUCKET + 1, None)

    def _spy(self) -> None:
        seal, seal_parts, sealed = Sealer.seal, Sealer.seal_parts, self.sealed

        def sealing_record(sealer, key, *told):
            sealed.add(key)
            return seal(sealer, key, *told)

        def sealing_parts(sealer, key, *told):
            sealed.add(key)
            return seal_parts(sealer, key, *told)

        self.patch.setattr(Sealer, "seal", sealing_record)
        self.patch.setattr(Sealer, "seal_parts", sealing_parts)

    def _open(self) -> PostgresLog:
        address = shared_server().address(self.database, ROLE)
        return PostgresLog.open(address, tenant="acme", keystore=FileKeystore(self.keys), timeout_s=3)

    def teardown(self) -> None:
        if hasattr(self, "logs"):
            self.fault.left = -1
            for log in self.logs:
                assert [finding.message for finding in log.verify()] == []
                log.close()
            self.owner.close()
            self.patch.undo()
            shutil.rmtree(self.keys)

    def execute(self, statement: str) -> list[tuple[object, ...]]:
        return self.owner.execute(statement.encode()).fetchall()

    def kept(self) -> set[int]:
        keystore, [file] = FileKeystore(self.keys), self.keys.glob("*.keys")
        tenant = UUID(file.stem)
        return set(keystore.find_keys(tenant, range(1, keystore.newest(tenant) + 1)))

    def in_use(self) -> set[int]:
        used = "SELECT key FROM perdure.record WHERE data IS NOT NULL UNION SELECT key FROM perdure.cache"
        return {int(str(key)) for (key,) in self.execute(used)}

    def done(self, work: Callable[[], object], breaks: tuple[int, bool] | None) -> bool:
        """Whether it was done; else it failed, or whoever did it was killed, and another process takes its place."""
        if breaks is not None:
            self.fault.left, self.fault.kills = breaks
        try:
            work()
        except (Busy, Unavailable):
            return False
        except Killed:
            # Its sessions end a moment later than it does.
            while self.execute(
                f"SELECT 1 FROM pg_stat_activity WHERE datname = '{self.database}' AND state LIKE 'idle in%'"
            ):
                continue
            return False
        finally:
            self.fault.left = -1
        return True

    @rule(server=SERVERS, name=SPACES, size=st.integers(1, 7), breaks=BREAKS)
    def tell(self, server: int, name: bytes, size: int, breaks: tuple[int, bool] | None) -> None:
        log, told = self.logs[server], [b"%d" % next(numbers) for _ in range(size)]

        def work() -> None:
            space = log.find_space(name)
            if space is None:
                log.create_space(name, told[0])
                self.live[name] = [told.pop(0)]
                space = log.find_space(name)
            assert space is not None
            if told:
                with log.writer(space=space):
                    log.append(space, log.head(space), Batch(told))
                self.live[name] += told

        self.done(work, breaks)

    @rule(server=SERVERS, name=SPACES, chosen=st.data(), size=st.integers(0, 4), breaks=BREAKS)
    def forget(
        self, server: int, name: bytes, chosen: st.DataObject, size: int, breaks: tuple[int, bool] | None
    ) -> None:
        log = self.logs[server]
        if len(self.live.get(name, ())) < 2:
            return
        gone = chosen.draw(st.sets(st.integers(1, len(self.live[name]) - 1), min_size=1, max_size=5))
        told = [b"%d" % next(numbers) for _ in range(size)]
        left = [data for place, data in enumerate(self.live[name]) if place not in gone] + told

        def work() -> None:
            space = log.find_space(name)
            assert space is not None
            head = log.head(space)
            live = [entry.seq for entry in log.read(space, 0, head.seq) if entry.data is not None]
            log.append(space, head, Batch(told, [live[place] for place in sorted(gone)]))
            self.live[name] = left

        self.done(work, breaks)

    @rule(server=SERVERS, name=SPACES, late=st.booleans(), breaks=BREAKS)
    def put_cache(self, server: int, name: bytes, late: bool, breaks: tuple[int, bool] | None) -> None:
        log = self.logs[server]

        def work() -> None:
            space = log.find_space(name)
            if space is not None:
                head = log.head(space)
                log.put_cache(space, "state", Cached(head._replace(erasures=head.erasures - late), b"state"))

        self.done(work, breaks)

    @rule(server=SERVERS, breaks=BREAKS)
    def purge(self, server: int, breaks: tuple[int, bool] | None) -> None:
        self.done(lambda: self.logs[server].purge(keep), breaks)

    @rule(server=SERVERS, name=SPACES, breaks=BREAKS)
    def tell_alone(self, server: int, name: bytes, breaks: tuple[int, bool] | None) -> None:
        """Write while all others are kept out."""
        log, told = self.logs[server], b"%d" % next(numbers)

        def work() -> None:
            space = log.find_space(name)
            if space is not None:
                with log.writer():
                    log.append(space, log.head(space), Batch([told] * BUCKET))
                    self.live[name] += [told] * BUCKET

        self.done(work, breaks)
        if breaks is not None and breaks[1] and told not in self.live.get(name, ()):
            # The store's turn is taken anew after the commit: who is killed then has told nobody of it.
            other = self.logs[1 - server]
            space = other.find_space(name)
            if space is not None and told in (
                entry.data for entry in other.read(space, 0, other.head(space).seq)
            ):
                self.live[name] += [told] * BUCKET

    @rule(server=SERVERS, breaks=BREAKS)
    def scrub(self, server: int, breaks: tuple[int, bool] | None) -> None:
        log, confirmed = self.logs[server], list[bool]()
        if not self.done(lambda: confirmed.append(log.scrub()), breaks):
            return
        if confirmed == [False]:
            assert breaks is not None, "nothing else keeps it from the last step"
            return
        assert not log.scrub_pending()
        # A snapshot that was never finished holds what is there still, as long as nothing was erased since.
        unfinished = {
            int(str(key))
            for (key,) in self.execute("SELECT key FROM perdure.key_note WHERE NOT doomed AND space > 0")
        }
        assert (self.kept() & self.sealed) - self.in_use() <= unfinished

    @invariant()
    def nothing_that_is_needed_is_destroyed(self) -> None:
        assert self.in_use() - self.kept() == set()
        for log in self.logs:
            for name, live in self.live.items():
                space = log.find_space(name)
                assert space is not None
                found = [entry.data for entry in log.read(space, 0, log.head(space).seq)]
                assert [data for data in found if data is not None] == live


TestKeys = Keys.TestCase
TestKeys.settings = settings(
    max_examples=20,
    stateful_step_count=25,
    deadline=None,
    suppress_health_check=list(HealthCheck),
)
