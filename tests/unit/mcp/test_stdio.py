"""Standard streams while the protocol has them, and the end of a client's side."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys

from perdure.mcp import stdio
from perdure.mcp.stdio import Lines, Open, Sink

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


def read_all(data: bytes, requests: Open | None = None) -> list[str]:
    source, sink = os.pipe()

    async def run() -> list[str]:
        return [line async for line in Lines(source, requests or Open())]

    try:
        os.write(sink, data)
        os.close(sink)
        return asyncio.run(run())
    finally:
        os.close(source)


def test_lines_end_where_a_newline_is_and_nowhere_else():
    assert read_all("a\u2028b\r\n\nü\n".encode()) == ["a\u2028b\r", "", "ü"]


def test_a_last_line_without_its_end_is_a_line():
    assert read_all(b"one\ntwo") == ["one", "two"]


def test_what_is_no_utf8_is_replaced():
    assert read_all(b"a\xffb\n") == ["a\ufffdb"]


def test_a_long_line_is_read_whole(monkeypatch):
    monkeypatch.setattr(stdio, "READ_BYTES", 7)
    assert read_all(b"x" * 10_000 + b"\n" + b"y" * 100) == ["x" * 10_000, "y" * 100]


def test_the_end_comes_when_the_requests_that_were_read_are_answered():
    order: list[str] = []

    async def run() -> None:
        source, into = os.pipe()
        out, sink = os.pipe()
        requests = Open()
        writer = Sink(sink, requests)

        async def serve() -> None:
            async for line in Lines(source, requests):
                order.append(line)
            order.append("end")

        os.write(into, b'{"id":1,"method":"tools/call"}\n{"method":"notifications/initialized"}\n')
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
    cancelled = {"method": "notifications/cancelled", "params": {"requestId": 1}}
    lines = [json.dumps({"id": 1, "method": "tools/call"}), json.dumps(cancelled)]
    assert read_all("\n".join(lines).encode()) == lines


def test_what_is_no_message_keeps_nobody_waiting():
    lines = ["no json", "[" * 50_000, '{"id":{},"method":5}', "7"]
    assert read_all("\n".join(lines).encode()) == lines


def test_writing_to_a_client_that_has_gone_is_no_error():
    out, sink = os.pipe()
    os.close(out)
    asyncio.run(Sink(sink, Open()).write("lost\n"))
    os.close(sink)
