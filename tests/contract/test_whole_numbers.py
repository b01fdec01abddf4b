"""Whole numbers, which JSON may write as 5 or 5.0, and what is said of numbers that are none."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from perdure import Store
from perdure.contract.decoding import decode_request
from perdure.contract.limits import HTTP
from perdure.contract.operations import OPERATIONS
from perdure.contract.shapes import BYTES_MIN, check_shape
from perdure.errors import InvalidRequest
from perdure.server.app import create_app
from perdure.server.settings import Settings

REQUESTS = [
    ("recall", {"query": "x", "k": 5.0, "asOf": 1e12, "maxBytes": 100.0}),
    ("recall", {"query": "x", "validDuring": [1.0, 2.0]}),
    ("remember", {"facts": [{"text": "x", "validFrom": 5.0, "source": {"position": 3.0}}]}),
    ("list", {"limit": 1.0}),
    ("putDocument", {"id": "d", "text": "x", "ifVersion": 0.0}),
]


def whole(value: Any) -> Any:
    if isinstance(value, float):
        return int(value)
    if isinstance(value, dict):
        return {name: whole(one) for name, one in value.items()}
    return [whole(one) for one in value] if isinstance(value, list) else value


@pytest.mark.parametrize(("op", "request_"), REQUESTS)
def test_a_whole_number_may_have_a_point(op: str, request_: dict[str, Any]):
    assert decode_request(OPERATIONS[op], request_) == decode_request(OPERATIONS[op], whole(request_))
    check_shape(OPERATIONS[op], json.dumps(request_).encode(), HTTP)


@given(st.floats(allow_nan=False, allow_infinity=False).filter(lambda number: not number.is_integer()))
def test_a_number_that_is_not_whole_is_shown_in_the_refusal(number: float):
    with pytest.raises(InvalidRequest) as caught:
        decode_request(OPERATIONS["recall"], {"query": "x", "k": number})
    assert (caught.value.message, caught.value.field) == (f"k must be a whole number, got {number}", "k")


def test_a_number_in_the_place_of_a_text_is_not_shown():
    with pytest.raises(InvalidRequest) as caught:
        decode_request(OPERATIONS["remember"], {"text": 5551234})
    assert "5551234" not in caught.value.message


def test_a_body_over_http_counts_five_point_nought_as_five_whether_it_is_long_or_short():
    async def scenario() -> None:
        app = create_app(Settings(":memory:", auth=False))
        try:
            async with httpx.AsyncClient(
                transport=httpx.ASGITransport(app), base_url="http://localhost"
            ) as client:

                async def asked(k: float, space: str = "") -> tuple[int, Any]:
                    body = json.dumps({"query": "kettle", "k": k}) + space
                    reply = await client.post(
                        "/api/v1/memory/recall", content=body, headers={"content-type": "application/json"}
                    )
                    return reply.status_code, reply.json()

                for space in ("", " " * BYTES_MIN):
                    assert await asked(5.0, space) == (200, {"results": []})
                    status, told = await asked(5.5, space)
                    assert (status, told["error"]["message"]) == (
                        422,
                        "k must be a whole number, got 5.5",
                    )
        finally:
            app.close()

    asyncio.run(scenario())


def test_python_and_the_wire_say_the_same_of_a_number_that_is_not_whole():
    with Store.open(":memory:") as store:
        with pytest.raises(InvalidRequest) as in_python:
            store.memory().recall("kettle", k=5.5)  # type: ignore[arg-type]
        with pytest.raises(InvalidRequest) as over_wire:
            store.memory().call("recall", {"query": "kettle", "k": 5.5})
    assert in_python.value.message == over_wire.value.message
