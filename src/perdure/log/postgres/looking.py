"""Where many spaces stand, of one tenant or of many: asked for in one round trip, and on no thread that waits."""

from __future__ import annotations

from collections.abc import Collection, Generator, Iterator, Sequence
from struct import Struct
from typing import Any, NamedTuple, cast

from psycopg.pq.abc import PGresult

from perdure.base.haste import Seen
from perdure.errors import PerdureError
from perdure.log.digests import stored_key
from perdure.log.looks import HeadLook, Look, NameLook
from perdure.log.postgres.access import Access
from perdure.log.postgres.connections import Database, release
from perdure.log.postgres.failures import translating
from perdure.log.postgres.queries import query, tenant_everywhere
from perdure.log.postgres.wire import Asked, Reply, Row
from perdure.log.protocol import Head, Log

_UUID, _INT8, _INT8S, _BYTEA, _BYTEAS = (
    2950,
    20,
    1016,
    17,
    1001,
)  # types, by their numbers in every PostgreSQL
_LOOKS = (query("looks"), (_UUID, _INT8S, _UUID, _BYTEAS))
_number, _number_of = Struct(">q").pack, Struct(">q").unpack
_size, _none, _some = Struct(">i").pack, Struct(">iiI").pack, Struct(">iiIii").pack


class _Of(NamedTuple):
    """What is asked about one log."""

    log: Log
    spaces: list[int]
    names: dict[bytes, bytes]  # by what stands for them in the table
    reply: Reply

    @property
    def access(self) -> Access:
        return cast(Access, cast(Any, self.log).place())


class Looking:
    """A connection of its own, to ask over. For one thread; close it at the end."""

    def __init__(self, database: Database) -> None:
        """Connect; takes as long as that. The database is released with it, or where it does not come about.

        Raises Busy, Unavailable.
        """
        self._database = database
        try:
            self._link = database.connect_apart()
        except BaseException:  # raised again: nobody else gives the pool back
            release(database)
            raise

    def fileno(self) -> int:
        """Return the connection's socket."""
        return self._link.connection.fileno()

    def ask(self, looks: Collection[Look]) -> Generator[Any, Any, Seen]:
        """Look; yields what is waited for, as the driver's generators do, and returns what was found by its look.

        Of a log one of whose spaces is not there nothing is told: the tenant may be deleted, which others find out.

        Raises Busy or Unavailable; the connection is of no use then.
        """
        asked = list(_by_log(looks))
        if len(asked) == 1 and not self._database.is_distributed:
            return (yield from self._glance(asked[0]))
        with translating():
            yield from self._link.wire.asking([one for of in asked for one in self._statements(of)])
        seen: Seen = {}
        for of in asked:
            seen |= _found(of)
        return seen

    def close(self) -> None:
        """End the connection."""
        self._link.close()
        release(self._database)

    def _glance(self, of: _Of) -> Generator[Any, Any, Seen]:
        """Ask about one log by the shortest way: it is what a server of one tenant does with every read."""
        tenant, wire = of.access.tenant, self._link.wire
        with translating():
            if self._link.tenant != tenant:
                self._link.tenant = tenant
                yield from wire.asking([(query("set_tenant"), (str(tenant),), Reply())])
            own = tenant.bytes
            numbers = _array(_INT8, list(map(_number, of.spaces)))
            found = yield from wire.glancing(_LOOKS, (own, numbers, own, _array(_BYTEA, list(of.names))))
        of.reply.fill([_row(found, place) for place in range(found.ntuples)])
        return _found(of)

    def _statements(self, of: _Of) -> Iterator[Asked]:
        tenant = of.access.tenant
        told = (query("looks"), (tenant, of.spaces, tenant, list(of.names)), of.reply)
        if self._database.is_distributed:
            yield "BEGIN", (), Reply()
            yield tenant_everywhere(tenant), None, Reply()
            yield told
            yield "COMMIT", (), Reply()
            return
        if self._link.tenant != tenant:
            # Should anything fail before it is so, the connection is not used again.
            self._link.tenant = tenant
            yield query("set_tenant"), (str(tenant),), Reply()
        yield told


def _by_log(looks: Collection[Look]) -> Iterator[_Of]:
    logs = {id(look.log): look.log for look in looks}
    for log in logs.values():
        own = [look for look in looks if look.log is log]
        yield _Of(
            log,
            [look.space for look in own if isinstance(look, HeadLook)],
            {stored_key(0, look.name): look.name for look in own if isinstance(look, NameLook)},
            Reply(),
        )


def _array(type_: int, items: Sequence[bytes]) -> bytes:
    """Return an array as the protocol has it."""
    if not items:
        return _none(0, 0, type_)
    return _some(1, 0, type_, len(items), 1) + b"".join(_size(len(item)) + item for item in items)


def _row(found: PGresult, place: int) -> Row:
    values: list[Any] = [found.get_value(place, column) for column in range(6)]
    for column in (0, 2, 3, 4):
        (values[column],) = _number_of(values[column])
    return tuple(values)


def _found(of: _Of) -> Seen:
    rows: list[Row] = of.reply.fetchall()
    heads = {row[0]: Head(*row[2:]) for row in rows if row[1] is None}
    numbers = {bytes(row[1]): row[0] for row in rows if row[1] is not None}
    try:
        of.access.check_open()
    except PerdureError:
        return {}
    if not heads or any(space not in heads for space in of.spaces):
        return {}
    seen: Seen = {HeadLook(of.log, space): of.access.saw(space, head) for space, head in heads.items()}
    return seen | {NameLook(of.log, name): numbers.get(stored) for stored, name in of.names.items()}
