"""Standard streams while the protocol has them, and the end of a client's side."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from typing import Any

import pytest

from perdure.mcp import stdio
from perdure.mcp.stdio import Messages, Open, Sink, lines_of

CLAIMING = """
import os, subprocess, sys
from perdure.mcp.stdio import claimed
print("before")
with claimed() as wire:
    print("printed")
    os.system("echo child")
    os.write(1, b"raw\\n")
    sys.stdout.write("unfinished")
    assert sys.stdin.read() == ""
    assert os.read(wire.source, 99) == b"from the client"
    os.write(wire.sink, b"message\\n")
print("after")
"""


def test_only_messages_reach_standard_output_while_it_is_claimed():
    done = subprocess.run(
        [sys.executable, "-c", CLAIMING],
        input=b"from the client",
        capture_output=True,
        timeout=60,
        check=True,
    )
    assert done.stdout == b"before\nmessage\nafter\n"
    assert sorted(done.stderr.split()) == [b"child", b"printed", b"raw", b"unfinished"]


def read_lines(data: bytes) -> list[bytes]:
    source, sink = os.pipe()
    try:
        os.write(sink, data)
        os.close(sink)
        return list(lines_of(source))
    finally:
        os.close(source)


def read_all(data: bytes) -> tuple[list[Any], list[Any]]:
    """Return the messages that were taken, and what the others were answered with."""
    (source, into), (out, sink) = os.pipe(), os.pipe()

    async def run() -> list[Any]:
        requests = Open()
        return [one async for one in Messages(source, requests, Sink(sink, requests))]

    try:
        os.write(into, data)
        os.close(into)
        taken = asyncio.run(run())
        os.close(sink)
        return taken, [json.loads(line) for line in lines_of(out)]
    finally:
        os.close(source)
        os.close(out)


def test_lines_end_where_a_newline_is_and_nowhere_else():
    assert read_lines("a\u2028b\r\n\nü\n".encode()) == ["a\u2028b\r".encode(), b"", "ü".encode()]


def test_a_last_line_without_its_end_is_a_line():
    assert read_lines(b"one\ntwo") == [b"one", b"two"]


def test_a_long_line_is_read_whole(monkeypatch):
    monkeypatch.setattr(stdio, "READ_BYTES", 7)
    assert read_lines(b"x" * 10_000 + b"\n" + b"y" * 100) == [b"x" * 10_000, b"y" * 100]


@pytest.mark.parametrize("read_bytes", [1, 7, 65_536])
def test_of_a_line_above_the_limit_one_byte_more_than_that_is_kept(monkeypatch, read_bytes):
    monkeypatch.setattr(stdio, "READ_BYTES", read_bytes)
    monkeypatch.setattr(stdio, "LINE_BYTES_MAX", 100)
    sent = b"\n".join(b"x" * size for size in (99, 100, 101, 102, 5_000, 3))
    assert [len(line) for line in read_lines(sent)] == [99, 100, 101, 101, 101, 3]


def request_line(number: int) -> bytes:
    return json.dumps({"jsonrpc": "2.0", "id": number, "method": "tools/call"}).encode()


def notification_line(name: str, **params: Any) -> bytes:
    return json.dumps({"jsonrpc": "2.0", "method": f"notifications/{name}", "params": params}).encode()


def test_the_end_comes_when_the_requests_that_were_read_are_answered():
    order: list[str] = []

    async def run() -> None:
        source, into = os.pipe()
        out, sink = os.pipe()
        requests = Open()
        writer = Sink(sink, requests)

        async def serve() -> None:
            async for message in Messages(source, requests, writer):
                order.append(message["method"])
            order.append("end")

        os.write(into, request_line(1) + b"\n" + notification_line("initialized") + b"\n")
        os.close(into)
        task = asyncio.create_task(serve())
        while len(order) < 2:
            await asyncio.sleep(0)
        await writer.write('{"id":2,"method":"sampling"}\n')
        assert not task.done()
        order.append("answer")
        await writer.write('{"id":1,"result":{}}\n')
        await task
        assert os.read(out, 999) == b'{"id":2,"method":"sampling"}\n{"id":1,"result":{}}\n'
        for descriptor in (source, out, sink):
            os.close(descriptor)

    asyncio.run(run())
    assert order[2:] == ["answer", "end"]


def test_a_request_that_the_client_gave_up_keeps_nobody_waiting():
    cancelled = notification_line("cancelled", requestId=1)
    taken, answers = read_all(request_line(1) + b"\n" + cancelled)
    assert [one["method"] for one in taken] == ["tools/call", "notifications/cancelled"]
    assert answers == []


def test_what_is_no_message_is_answered_in_turn_and_what_is_blank_is_nothing():
    lines = [b"no json", b"[" * 50_000, request_line(1)[:-1], b'{"id":{},"method":5}', b"7", b" \r", b""]
    taken, answers = read_all(b"\n".join([*lines, notification_line("initialized")]))
    assert [one["method"] for one in taken] == ["notifications/initialized"]
    assert [one["error"]["code"] for one in answers] == [-32700, -32600, -32700, -32600, -32600]


def test_writing_to_a_client_that_has_gone_is_no_error():
    out, sink = os.pipe()
    os.close(out)
    asyncio.run(Sink(sink, Open()).write('{"id":1}\n'))
    os.close(sink)
