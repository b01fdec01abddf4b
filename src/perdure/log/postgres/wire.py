"""What is said over one connection: statements that are prepared once, and as many of them as are known in one round trip.

The driver's own pipeline asks for a flush after its end, and stays in it for a round trip more. The server then ends no
session that is idle within a transaction, so a process that hangs would keep its locks.
"""

from __future__ import annotations

import select
from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import cache, cached_property
from typing import Any, NamedTuple, TypeVar

import psycopg
from psycopg.adapt import PyFormat, Transformer
from psycopg.generators import execute, fetch_many
from psycopg.pq import ConnStatus, ExecStatus, Format
from psycopg.pq.abc import PGconn, PGresult

from perdure.base.forking import OwnProcess
from perdure.base.text import counted
from perdure.log.postgres.failures import Silence

T = TypeVar("T")
Row = tuple[Any, ...]
Params = Sequence[object]


class Reply:
    """What a statement yields, once it was run."""

    __slots__ = ("_rows",)

    def __init__(self) -> None:
        self._rows: list[Row] | None = None

    def fetchall(self) -> list[Row]:
        """Return all rows."""
        assert self._rows is not None, "what is said together is answered after its end"
        return self._rows

    def fetchone(self) -> Row | None:
        """Return the first row, None where there is none."""
        rows = self.fetchall()
        return rows[0] if rows else None

    def fill(self, rows: list[Row]) -> None:
        """Take the rows."""
        self._rows = rows


Asked = tuple[str, Params | None, Reply]  # without parameters, None, it is run once and not kept prepared
Key = tuple[str, tuple[int, ...]]  # a statement, and the types of its parameters
_BINARY = (Format.BINARY,) * 8
_READABLE, _WRITABLE = 1, 2  # as the driver's generators ask for, and are told
_HEARD_EACH = 16  # statements at most that the server says nothing for, while it is at work
_CANCEL_S = 1.0  # to have the server stop what nobody waits for any more
_SYNC_WAIT = "SyncRepWaitForLSN"  # where the server warns that a commit did not wait for its standby; in every language


class _Bound(NamedTuple):
    """A statement with its parameters as the server takes them."""

    key: Key | None  # None of one that is not kept prepared
    sql: str
    values: Any
    formats: Any
    reply: Reply


class Wire:
    """A connection, and what is prepared on it. For one thread at a time."""

    def __init__(self, connection: psycopg.Connection[Row]) -> None:
        """The connection is of no transaction, and its adapters are set."""
        self.connection, self.process = connection, OwnProcess()
        self.silence_s: float | None = (
            None  # after which the server is held to be away; None: however long it takes
        )
        self.fell_silent = self._is_unconfirmed = False
        connection.add_notice_handler(self._hear)
        self._transformer = Transformer.from_context(connection)
        self._names: dict[Key, bytes] = {}
        self._polled = _polled(connection)

    def ask(self, asked: Sequence[Asked]) -> None:
        """Have statements run, one after the other, in one round trip; fill their replies.

        Raises the driver's error of the first that fails; those after it are not run.
        """
        self._check()
        pgconn, told = self.connection.pgconn, [self._bound(*one) for one in asked]
        known = self._names.get(told[0].key) if len(told) == 1 and told[0].key is not None else None
        if known is not None:
            [one] = told
            pgconn.send_query_prepared(known, one.values, one.formats, Format.BINARY)
            results = self.waited(execute(pgconn))
            self._check_confirmed()
            self._take(_first(results), one.reply)
            return
        self.waited(self._asked(told))

    def asking(self, asked: Sequence[Asked]) -> Generator[Any, Any, None]:
        """Do as `ask`, where the caller waits: it yields what for, as the driver's own generators do, and is sent what came."""
        self._check()
        yield from self._asked([self._bound(*one) for one in asked])

    def _asked(self, told: Sequence[_Bound]) -> Generator[Any, Any, None]:
        pgconn = self.connection.pgconn
        fresh: dict[Key, bytes] = {}
        taking: list[
            tuple[Key | None, Reply | None]
        ] = []  # what each result is of: a statement prepared, or one run
        pgconn.enter_pipeline_mode()
        try:
            for position, one in enumerate(told, 1):
                if position % _HEARD_EACH == 0:
                    pgconn.send_flush_request()
                if one.key is None:
                    pgconn.send_query_params(one.sql.encode(), None)
                    taking.append((None, one.reply))
                    continue
                name = self._names.get(one.key) or fresh.get(one.key)
                if name is None:
                    name = fresh[one.key] = b"p%d" % (len(self._names) + len(fresh))
                    # Not before its turn: a transaction with a level of its own is begun before anything is looked up.
                    pgconn.send_prepare(name, _numbered(one.key[0]), one.key[1])
                    taking.append((one.key, None))
                pgconn.send_query_prepared(name, one.values, one.formats, Format.BINARY)
                taking.append((one.key, one.reply))
            pgconn.pipeline_sync()
            results = yield from _fetched(pgconn)
        finally:
            if pgconn.status == ConnStatus.OK:
                pgconn.exit_pipeline_mode()
        self._check_confirmed()
        for (key, reply), result in zip(taking, results, strict=False):
            self._take(result, reply)
            if reply is None and key is not None:
                self._names[key] = fresh[key]
        if len(results) < len(taking):
            raise _ended()

    def glance(self, key: Key, values: Sequence[bytes]) -> PGresult | None:
        """Have one statement run by the shortest way; None where it was not prepared here yet, and nothing was asked.

        What is said and heard most often is a row that many wait for: what goes through the driver's own waiting, and
        through its types, takes twice as long.

        Args:
            key: a statement, and the types of its parameters.
            values: the parameters, as they are in binary.

        Raises the driver's error of a statement that fails.
        """
        name = self._names.get(key)
        if name is None or self._polled is None:
            return None
        self.process.check()
        pgconn = self.connection.pgconn
        pgconn.send_query_prepared(name, values, _BINARY[: len(values)], Format.BINARY)
        while pgconn.flush():
            self._await(_WRITABLE)
        while True:
            self._await(_READABLE)
            pgconn.consume_input()
            if not pgconn.is_busy():
                break
        result = pgconn.get_result()
        if result is None:
            raise _ended()
        if (
            result.status != ExecStatus.TUPLES_OK
        ):  # the rest is not waited for, so the connection is used no more
            raise _error(self.connection, result)
        while (
            pgconn.get_result() is not None
        ):  # why the server ended the session, if it did once this was done
            pass
        return result

    def glancing(self, key: Key, values: Sequence[bytes]) -> Generator[Any, Any, PGresult]:
        """Do as `glance`, where the caller waits as for `asking`; the first time it is prepared, in a round trip more."""
        self._check()
        pgconn, name = self.connection.pgconn, self._names.get(key)
        if name is None:
            name = b"p%d" % len(self._names)
            pgconn.send_prepare(name, _numbered(key[0]), key[1])
            self._take(_first((yield from execute(pgconn))), None)
            self._names[key] = name
        pgconn.send_query_prepared(name, values, _BINARY[: len(values)], Format.BINARY)
        result = _first((yield from execute(pgconn)))
        if result.status != ExecStatus.TUPLES_OK:
            raise _error(self.connection, result)
        return result

    @contextmanager
    def patience(self) -> Iterator[None]:
        """Let what the block says take as long as it does."""
        before, self.silence_s = self.silence_s, None
        try:
            yield
        finally:
            self.silence_s = before

    def has_ended(self) -> bool:
        """Whether the server ended an idle connection: without asking it, from what it last sent or the end of it."""
        try:
            if self._polled is not None:
                return bool(self._polled.poll(0))
            return bool(select.select([self.connection.fileno()], [], [], 0)[0])
        except (OSError, psycopg.Error):
            return True

    def close(self) -> None:
        """End the connection; in a child of the process that made it leave it to that one."""
        if not self.process.is_parent:
            self.connection.close()  # tells the server so, over a socket that both processes have

    def waited(self, work: Generator[Any, Any, T]) -> T:
        """Return what the driver's generator does, having waited for what it asks; raises Silence as all that waits here."""
        try:
            wanted = next(work)
            while True:
                wanted = work.send(self._await(wanted))
        except StopIteration as ended:
            done: T = ended.value
            return done

    def _await(self, wanted: int) -> int:
        """Return which of what is wanted has come, at least one.

        Raises Silence, and ends the connection, where nothing comes in time: what became of the statement is not known.
        """
        try:
            ready = self._ready(wanted)
        except KeyboardInterrupt:
            with suppress(psycopg.Error):
                self.connection.cancel_safe(timeout=_CANCEL_S)
            self.close()
            raise
        if ready:
            return ready
        self.fell_silent = True
        self.close()
        assert self.silence_s is not None
        raise Silence(f"the database said nothing for {counted(self.silence_s, 'second')}")

    def _ready(self, wanted: int) -> int:
        if self._polled is None:
            return _selected(self.connection.fileno(), wanted, self.silence_s)
        if wanted != _READABLE:
            self._polled.modify(self.connection.fileno(), _events(wanted))
        try:
            found = self._polled.poll(None if self.silence_s is None else self.silence_s * 1000)
        finally:
            if wanted != _READABLE:
                self._polled.modify(self.connection.fileno(), select.POLLIN)
        # An error, or the end of the connection, is for the driver to find as it reads or writes.
        return _told(found[0][1], wanted) if found else 0

    def _hear(self, notice: psycopg.errors.Diagnostic) -> None:
        if notice.source_function == _SYNC_WAIT:
            self._is_unconfirmed = True

    def _check_confirmed(self) -> None:
        """Raise OperationalError, and end the connection, where a commit was answered that its standby has not confirmed."""
        if self._is_unconfirmed:
            self.close()
            raise psycopg.OperationalError("the commit no longer waited for its standby")

    def _check(self) -> None:
        self.process.check()
        if self.connection.closed:
            raise psycopg.OperationalError("the connection is closed")

    def _bound(self, sql: str, params: Params | None, reply: Reply) -> _Bound:
        if params is None:
            return _Bound(None, sql, None, None, reply)
        values = self._transformer.dump_sequence(params, list(map(_format, params)))
        return _Bound((sql, self._transformer.types or ()), sql, values, self._transformer.formats, reply)

    def _take(self, result: PGresult, reply: Reply | None) -> None:
        if result.status == ExecStatus.TUPLES_OK and reply is not None:
            self._transformer.set_pgresult(result)
            reply.fill(self._transformer.load_rows(0, result.ntuples, tuple))
            self._transformer.set_pgresult(None)
        elif result.status == ExecStatus.COMMAND_OK:
            if reply is not None:
                reply.fill([])
        else:
            raise _error(self.connection, result)


class Line(psycopg.Connection[Row]):
    """A connection that waits no longer than its wire does also where the driver says something by itself."""

    @cached_property
    def wire(self) -> Wire:
        """What is said over it. Adapters are set before it is first asked for."""
        return Wire(self)

    def wait(self, gen: Generator[Any, Any, T], *_: Any, **__: Any) -> T:
        """Do as the driver's own, which waits without limit; raises Silence."""
        return self.wire.waited(gen)


def wire_of(connection: psycopg.Connection[Row]) -> Wire:
    """Return what is said over a connection."""
    return connection.wire if isinstance(connection, Line) else Wire(connection)


def _events(wanted: int) -> int:
    return (select.POLLIN if wanted & _READABLE else 0) | (select.POLLOUT if wanted & _WRITABLE else 0)


def _told(event: int, wanted: int) -> int:
    found = (_READABLE if event & select.POLLIN else 0) | (_WRITABLE if event & select.POLLOUT else 0)
    return found or wanted


def _selected(socket: int, wanted: int, limit_s: float | None) -> int:
    """Return which of what is wanted has come, 0 for none; where there is no `poll`."""
    reads, writes, _ = select.select(
        [socket] if wanted & _READABLE else [], [socket] if wanted & _WRITABLE else [], [], limit_s
    )
    return (_READABLE if reads else 0) | (_WRITABLE if writes else 0)


def _error(connection: psycopg.Connection[Row], result: PGresult) -> psycopg.Error:
    return psycopg.errors.error_from_result(result, encoding=connection.info.encoding)


def _polled(connection: psycopg.Connection[Row]) -> select.poll | None:
    """Return what waits until something has come; None of a system that has no such thing."""
    if not hasattr(select, "poll"):
        return None
    polled = select.poll()  # takes descriptors of any number
    polled.register(connection.fileno(), select.POLLIN)
    return polled


def _fetched(pgconn: PGconn) -> Generator[Any, Any, list[PGresult]]:
    """Send what is queued, and gather one result for each up to the end of the round trip, or of the connection."""
    results: list[PGresult] = []
    found = yield from execute(pgconn)
    while found and found[0].status != ExecStatus.PIPELINE_SYNC:
        results.append(found[0])
        try:
            found = yield from fetch_many(pgconn)
        except psycopg.OperationalError:  # what was answered before the connection ended holds
            break
    return results


def _first(found: list[PGresult]) -> PGresult:
    """Return a statement's own result. What may follow it is why the server ended the session once it was done."""
    if not found:
        raise _ended()
    return found[0]


def _ended() -> psycopg.OperationalError:
    return psycopg.OperationalError("the connection ended before all was answered")


def _format(value: object) -> PyFormat:
    # In text the driver takes the narrowest type that holds a list's numbers, and keeps to it; of an empty list nothing but
    # the statement tells the type.
    return PyFormat.TEXT if type(value) is list and not value else PyFormat.BINARY


@cache
def _numbered(sql: str) -> bytes:
    """Return a statement with its parameters as the protocol has them."""
    first, *others = sql.split("%s")
    return "".join([first, *(f"${number}{part}" for number, part in enumerate(others, 1))]).encode()
