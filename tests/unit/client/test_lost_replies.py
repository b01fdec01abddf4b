"""Replies that get lost on the way change nothing: each write is carried out once, and answered as the first time."""

from __future__ import annotations

import httpx
from hypothesis import given, settings
from hypothesis import strategies as st

from perdure import ManualClock
from perdure.client import Client
from perdure.client.in_process import AppTransport, AsyncAppTransport
from perdure.server.app import create_app
from perdure.server.settings import Settings
from unit.client.waiting import WaitingClient

ids = st.sampled_from(["a", "b", "c"])
writes = st.one_of(
    st.tuples(st.just("remember"), st.builds(lambda id_: {"text": f"Fact {id_}", "id": id_}, ids)),
    st.tuples(st.just("remember"), st.just({"text": "The same again", "reassert": True})),
    st.tuples(st.just("record_use"), st.builds(lambda id_: {"ids": [id_]}, ids)),
    st.tuples(st.just("forget"), st.builds(lambda id_: {"ids": [id_]}, ids)),
    st.tuples(st.just("forget"), st.builds(lambda id_: {"ids": [id_], "soft": True}, ids)),
    st.tuples(st.just("restore"), st.builds(lambda id_: {"ids": [id_]}, ids)),
)


def app():
    return create_app(Settings(":memory:", auth=False), clock=ManualClock(1_000))


class Losing(AppTransport):
    """Calls the application, and loses the replies that it is told to."""

    def __init__(self, lost):
        super().__init__(app())
        self.lost = lost

    def handle_request(self, request):
        response = super().handle_request(request)
        if self.lost and self.lost.pop(0):
            raise httpx.ReadError("lost")
        return response


class AsyncLosing(AsyncAppTransport):
    def __init__(self, lost):
        super().__init__(app())
        self.lost = lost

    async def handle_async_request(self, request):
        response = await super().handle_async_request(request)
        if self.lost and self.lost.pop(0):
            raise httpx.RemoteProtocolError("lost")
        return response


def told(client, program):
    memory, answers = client.memory("alice"), []
    for name, arguments in program:
        reply = getattr(memory, name)(**arguments)
        answers.append(reply.forgotten if name == "forget" else reply)
    return answers, memory.list(), memory.list(hidden=True)


@settings(max_examples=20, deadline=None)
@given(st.lists(writes, max_size=6), st.lists(st.integers(0, 2), max_size=6))
def test_a_store_whose_replies_get_lost_is_that_of_one_whose_replies_arrive(program, losses):
    with Client(app=app()) as client:
        answers, shown, hidden = told(client, program)
    lost = [part for count in losses for part in (*[True] * count, False)]
    with Client("http://localhost", transport=Losing(lost), retries=3) as client:
        found, found_shown, found_hidden = told(client, program)
    assert (found_shown, found_hidden) == (shown, hidden)
    # A forget that is asked for again has nothing left to forget, and says so.
    pairs = zip(program, found, answers, strict=True)
    assert all(one == other for (name, _), one, other in pairs if name != "forget")


def test_the_client_for_asyncio_asks_again_under_the_same_key_too():
    with WaitingClient("http://localhost", transport=AsyncLosing([True, True, False])) as client:
        memory = client.memory("alice")
        assert memory.remember("The kettle is blue", reassert=True).created
        assert memory.list().total == 1
