"""What is said over one connection: prepared once, in one round trip where it belongs together, and told what failed."""

from __future__ import annotations

import select
from contextlib import suppress

import psycopg
import pytest
from psycopg import errors as states

from perdure.log.postgres.failures import Silence
from perdure.log.postgres.wire import Line, Reply, Wire
from postgres_server import shared_server

CASTS = "SELECT %s::int8, %s::bytea, %s::text, %s::int8[], %s::uuid IS NULL"


@pytest.fixture
def wire():
    address = shared_server().address("postgres")
    with psycopg.connect(address, autocommit=True, prepare_threshold=0) as connection:
        yield Wire(connection)


def said(wire, *statements):
    replies = [Reply() for _ in statements]
    wire.ask([(sql, params, reply) for (sql, *params), reply in zip(statements, replies, strict=True)])
    return [reply.fetchall() for reply in replies]


def prepared(wire):
    return [row[0] for row in said(wire, ("SELECT name FROM pg_prepared_statements ORDER BY name",))[0]]


def test_values_come_back_as_they_went_however_often_they_are_said(wire):
    told = (CASTS, 1 << 40, b"\0\xff", "ä", [1, 2], None)
    for _ in range(3):
        assert said(wire, told, told) == [[(1 << 40, b"\0\xff", "ä", [1, 2], True)]] * 2


@pytest.mark.parametrize("more", [[1], [40_000], [3_000_000_000], [-1, 1 << 60]])
def test_a_list_may_hold_larger_numbers_than_the_one_before_it_or_none(wire, more):
    for told in ([7], more, [], [7]):
        found = said(wire, ("SELECT a::int8 FROM unnest(%s::int8[]) a", told))[0]
        assert [row[0] for row in found] == told


def test_a_statement_is_prepared_once(wire):
    before = len(prepared(wire))
    for _ in range(3):
        said(wire, ("SELECT %s::int8", 1), ("SELECT %s::int8", 2))
    assert len(prepared(wire)) == before + 1


def test_a_failure_is_that_of_the_first_statement_that_failed_and_none_after_it_is_run(wire):
    with pytest.raises(states.DivisionByZero):
        said(
            wire,
            ("BEGIN",),
            ("CREATE TEMP TABLE here (a int8)",),
            ("SELECT 1 / %s::int8", 0),
            ("COMMIT",),
            ("SELEC",),
        )
    assert said(wire, ("ROLLBACK",), ("SELECT to_regclass('here') IS NULL",)) == [[], [(True,)]]


def test_what_could_not_be_prepared_is_prepared_when_it_is_said_again(wire):
    with pytest.raises(states.UndefinedTable):
        said(wire, ("BEGIN",), ("SELECT a FROM there",), ("SELECT 7",))
    said(wire, ("ROLLBACK",), ("CREATE TEMP TABLE there (a int8)",))
    assert said(wire, ("SELECT a FROM there",), ("SELECT 7",)) == [[], [(7,)]]


def test_a_transaction_may_begin_with_a_level_before_anything_else_is_known(wire):
    begin = ("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY",)
    level = ("SELECT current_setting('transaction_isolation')",)
    assert said(wire, begin, level, ("COMMIT",)) == [[], [("repeatable read",)], []]


def test_what_is_closed_says_so(wire):
    wire.connection.close()
    with pytest.raises(psycopg.OperationalError):
        said(wire, ("SELECT 1",))


def test_a_statement_without_parameters_is_not_kept_prepared(wire):
    before, reply = prepared(wire), Reply()
    said(wire, ("BEGIN",))
    before = prepared(wire)
    wire.ask(
        [("SET LOCAL app.tenant = 'ada'", None, reply), ("SELECT current_setting('app.tenant')", (), Reply())]
    )
    assert reply.fetchall() == []
    assert len(prepared(wire)) == len(before) + 1
    assert said(wire, ("SELECT current_setting('app.tenant')",)) == [[("ada",)]]


def go_on(wire, going, wanted):
    """Have a generator of the driver's go on to its end."""
    with suppress(StopIteration):
        while True:
            reads, writes = ([wire.connection] if wanted & kind else [] for kind in (1, 2))
            reads, writes, _ = select.select(reads, writes, [], 60)
            wanted = going.send(bool(reads) + 2 * bool(writes))


def test_of_many_statements_those_that_are_done_are_heard_of_while_the_others_are_at_work(wire):
    address = shared_server().address("postgres")
    with psycopg.connect(address, autocommit=True) as other:
        other.execute("SELECT pg_advisory_lock(8)")
        told = [*(f"SELECT {number}" for number in range(40)), "SELECT pg_advisory_lock(8)"]
        replies = [Reply() for _ in told]
        going = wire.asking([(sql, None, reply) for sql, reply in zip(told, replies, strict=True)])
        wanted = next(going)
        assert select.select([wire.connection], [], [], 60)[0], "nothing is heard while the last one waits"
        other.execute("SELECT pg_advisory_unlock(8)")
        go_on(wire, going, wanted)
    assert [reply.fetchall() for reply in replies[:40]] == [[(number,)] for number in range(40)]


def test_what_the_driver_says_by_itself_waits_no_longer_than_what_is_said_over_the_wire():
    with Line.connect(shared_server().address("postgres"), autocommit=True) as line:
        line.wire.silence_s = 0.2
        with line.wire.patience():
            assert line.execute("SELECT pg_sleep(0.5), 7").fetchone() == ("", 7)
        with pytest.raises(Silence, match="said nothing"), line.transaction():
            line.execute("SELECT pg_sleep(60)")
        assert line.closed
