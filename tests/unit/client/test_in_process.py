"""An application that is called in this process lives as under a server: it begins, answers and ends."""

from __future__ import annotations

import threading

import pytest

from perdure import Unavailable
from perdure.client import Client
from unit.client.waiting import WaitingClient

BOTH = pytest.mark.parametrize("make", [Client, WaitingClient])


class App:
    """Counts its beginnings and ends; `begins` says how it begins."""

    def __init__(self, begins="complete"):
        self.begins, self.told = begins, []

    async def __call__(self, scope, receive, send):
        if scope["type"] == "lifespan":
            await self._live(receive, send)
            return
        self.told.append(scope["path"])
        body = b'{"results": []}' if scope["path"].endswith("recall") else b"oops"
        if body == b"oops":
            raise RuntimeError("of the application")
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": body})

    async def _live(self, receive, send):
        if self.begins == "never":
            raise RuntimeError("no lifespan here")
        while True:
            message = await receive()
            self.told.append(message["type"])
            if message["type"] == "lifespan.startup":
                await send({"type": f"lifespan.startup.{self.begins}"})
                if self.begins == "failed":
                    return
            else:
                await send({"type": "lifespan.shutdown.complete"})
                return


@BOTH
def test_an_application_begins_with_the_first_call_and_ends_with_the_client(make):
    app = App()
    with make(app=app) as client:
        assert app.told == []
        client.memory().recall("kettle")
        client.memory().recall("kettle")
    path = "/api/v1/memory/recall"
    assert app.told == ["lifespan.startup", path, path, "lifespan.shutdown"]


@BOTH
def test_an_application_without_a_beginning_is_called_all_the_same(make):
    app = App("never")
    with make(app=app) as client:
        assert client.memory().recall("kettle") == []


@BOTH
def test_an_application_that_does_not_begin_is_unavailable(make):
    with make(app=App("failed"), retries=0) as client, pytest.raises(Unavailable, match="did not start"):
        client.memory().recall("kettle")


@BOTH
def test_what_an_application_raises_is_an_answer_without_sense(make):
    with make(app=App(), retries=0) as client, pytest.raises(Unavailable, match="status 500"):
        client.memory().get("kettle")


def test_a_closed_client_leaves_no_thread_behind():
    before = threading.active_count()
    with Client(app=App()) as client:
        client.memory().recall("kettle")
    assert threading.active_count() == before


def test_a_client_may_be_used_by_several_threads():
    app, found = App(), []
    with Client(app=app) as client:
        threads = [
            threading.Thread(target=lambda: found.append(client.memory().recall("kettle"))) for _ in range(8)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert found == [[]] * 8
    assert app.told.count("lifespan.startup") == 1
