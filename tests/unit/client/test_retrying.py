"""What is sent again, when, and with what: never a write that might be carried out twice."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perdure import Busy, Conflict, InvalidRequest, PerdureError, Unavailable
from perdure.base.clock import SystemClock
from perdure.client import Client
from perdure.client.calling import call_of
from perdure.client.retrying import Retries, fraction, retry_after_ms
from perdure.contract.operations import OPERATIONS
from unit.client.stub import BREAK, RECALLED, REMEMBERED, SILENCE, answer, busy, serving
from unit.client.waiting import WaitingClient

BOTH = pytest.mark.parametrize("make", [Client, WaitingClient])
FORGOTTEN = {
    "forgotten": [],
    "derived": [],
    "dryRun": True,
    "purged": False,
    "pending": False,
    "certificate": None,
}


def remembered(stub, make, **options):
    with make(stub.url, **options) as client:
        return client.memory("alice").remember("The kettle is blue")


def recalled(stub, make, **options):
    with make(stub.url, **options) as client:
        return client.memory("alice").recall("kettle")


# Sent again


@BOTH
@pytest.mark.parametrize("failure", [BREAK, busy()], ids=["break", "busy"])
def test_a_read_is_sent_again_until_it_is_answered(make, failure):
    with serving(failure, failure, answer(RECALLED)) as stub:
        assert recalled(stub, make) == []
        assert len(stub.asked) == 3


@BOTH
@pytest.mark.parametrize("failure", [BREAK, busy()], ids=["break", "busy"])
def test_a_write_is_sent_again_under_one_key_and_one_request_id(make, failure):
    with serving(failure, failure, answer(REMEMBERED)) as stub:
        assert remembered(stub, make).created
        (path, headers, body), *others = stub.asked
        assert len(others) == 2
        assert path == "/api/v1/memory/remember"
        assert len(body["idempotencyKey"]) == 32
        for again in others:
            assert (again[0], again[2]) == (path, body)
            assert again[1]["X-Request-Id"] == headers["X-Request-Id"]


def test_two_writes_have_two_keys_and_two_request_ids():
    with serving(answer(REMEMBERED)) as stub, Client(stub.url) as client:
        client.memory().remember("The kettle is blue")
        client.memory().remember("The kettle is blue")
        (_, first, one), (_, second, other) = stub.asked
        assert one["idempotencyKey"] != other["idempotencyKey"]
        assert first["X-Request-Id"] != second["X-Request-Id"]


def test_the_key_that_a_caller_gives_is_the_one_that_is_sent():
    with serving(BREAK, answer(REMEMBERED)) as stub, Client(stub.url) as client:
        client.memory().remember("The kettle is blue", idempotency_key="mine")
        assert [body["idempotencyKey"] for _, _, body in stub.asked] == ["mine", "mine"]


# Not sent again


@BOTH
def test_nothing_is_sent_more_often_than_was_said(make):
    with serving(busy()) as stub:
        with pytest.raises(Busy) as refused:
            recalled(stub, make, retries=2)
        assert len(stub.asked) == 3
        assert (refused.value.code, refused.value.status) == ("busy", 503)


@BOTH
def test_without_retries_everything_is_sent_once_and_no_key_is_made(make):
    with serving(BREAK) as stub:
        with pytest.raises(Unavailable):
            remembered(stub, make, retries=0)
        ((_, _, body),) = stub.asked
        assert "idempotencyKey" not in body


@BOTH
@pytest.mark.parametrize("failure", [BREAK, busy()], ids=["break", "busy"])
def test_a_write_that_takes_no_key_is_sent_once(make, failure):
    with serving(failure) as stub, make(stub.url) as client:
        for call in (client.store.purge, lambda: client.memory().reindex(k1=1.0)):
            with pytest.raises(PerdureError):
                call()
        assert len(stub.asked) == 2


@BOTH
@pytest.mark.parametrize(
    ("status", "code", "headers"),
    [
        (500, "internal", {"Retry_After": "0"}),
        (507, "storage_full", {"Retry_After": "0"}),
        (503, "busy", {}),
        (422, "invalid_request", {}),
        (409, "conflict", {"Retry_After": "0"}),
    ],
)
def test_no_other_answer_is_asked_for_again(make, status, code, headers):
    told = {"error": {"code": code, "message": "no", "details": {"kind": "id"}}}
    with serving(answer(told, status, **headers)) as stub:
        with pytest.raises(PerdureError) as refused:
            recalled(stub, make)
        assert len(stub.asked) == 1
        assert (refused.value.code, refused.value.status) == (code, status)
        assert isinstance(refused.value, Conflict) is (code == "conflict")


@BOTH
def test_a_pause_that_is_too_long_is_left_to_the_caller(make):
    with serving(busy("3600")) as stub:
        with pytest.raises(Busy):
            recalled(stub, make)
        assert len(stub.asked) == 1


@BOTH
def test_an_answer_that_holds_the_certificate_of_an_erasure_is_not_asked_for_again(make):
    with serving(busy("0", certificate={"version": 1})) as stub, make(stub.url) as client:
        with pytest.raises(Busy) as refused:
            client.memory().forget(all=True, purge=True)
        assert refused.value.details["certificate"] == {"version": 1}
        assert len(stub.asked) == 1


@BOTH
def test_a_dry_run_is_sent_again_and_without_a_key(make):
    with serving(BREAK, answer(FORGOTTEN)) as stub, make(stub.url) as client:
        client.memory().forget(all=True, dry_run=True)
        assert [body.get("idempotencyKey") for _, _, body in stub.asked] == [None, None]


# Without an answer


@BOTH
def test_a_time_out_is_unavailable_and_names_the_key_to_ask_again_with(make):
    with serving(SILENCE) as stub:
        with pytest.raises(Unavailable, match=r"0\.2 s") as late:
            remembered(stub, make, timeout_s=0.2)
        ((_, headers, body),) = stub.asked
        assert late.value.details == {
            "request_id": headers["X-Request-Id"],
            "idempotency_key": body["idempotencyKey"],
        }


@BOTH
def test_a_server_that_is_not_there_is_unavailable(make):
    with serving(answer(RECALLED)) as stub:
        pass
    with pytest.raises(Unavailable, match="cannot be reached"):
        recalled(stub, make, retries=1)


@BOTH
@pytest.mark.parametrize(
    "told",
    [
        answer(b"<html>Bad gateway</html>", 502),
        answer(b"[1, 2]", 500),
        answer(b"{}", 404),
        answer(b"", 307, Location="http://localhost/"),
        answer(b"<html>Hello</html>"),
        answer(b'{"results": 5}'),
        answer(b"\xff"),
    ],
)
def test_what_is_no_answer_of_a_perdure_server_is_unavailable(make, told):
    with serving(told) as stub:
        with pytest.raises(Unavailable, match="check url"):
            recalled(stub, make)
        assert len(stub.asked) == 1


@BOTH
def test_a_closed_client_says_so(make):
    with serving(answer(RECALLED)) as stub:
        with make(stub.url) as client:
            memory = client.memory()
            client.close()
            client.close()
            with pytest.raises(Unavailable, match="closed"):
                memory.recall("kettle")
        assert stub.asked == []


# The rules by themselves


@given(
    st.integers(0, 10), st.integers(0, 20), st.none() | st.floats(0, 1e9), st.floats(0, 1, exclude_max=True)
)
def test_pauses_are_bounded_and_never_shorter_than_the_server_asks_for(count, attempt, asked, part):
    pause = Retries(count).pause_ms(attempt, asked, part)
    if attempt >= count or (asked or 0) > 60_000:
        assert pause is None
    else:
        assert (asked or 0) <= pause <= (asked or 0) + min(100 * 2**attempt, 5_000)


def test_chance_is_spread_between_nothing_and_one():
    found = [fraction() for _ in range(500)]
    assert all(0 <= one < 1 for one in found)
    assert 0.4 < sum(found) / len(found) < 0.6


@pytest.mark.parametrize(
    ("told", "wanted"),
    [(None, None), ("0", 0.0), (" 12 ", 12_000.0), ("1.5", None), ("-1", None), ("soon", None), ("", None)],
)
def test_a_retry_after_is_read_as_seconds(told, wanted):
    assert retry_after_ms(told) == wanted


def test_a_retry_after_may_be_a_date():
    assert retry_after_ms("Thu, 01 Jan 1970 00:00:00 GMT") == 0.0
    assert retry_after_ms("Fri, 31 Dec 9999 23:59:59 GMT") > SystemClock().now() / 2


@pytest.mark.parametrize("name", sorted(OPERATIONS))
def test_every_write_may_be_sent_again_only_under_a_key(name):
    operation = OPERATIONS[name]
    call = call_of(name, {"dryRun": False}, Retries(3))
    takes_key = "idempotency_key" in operation.request.__struct_fields__
    reads = operation.role == "read" or name in ("verify", "storeEvents")
    # The id of an event and the version of a session are keys of their own.
    keyed = name in ("recordAdmission", "recordNodeUse", "rememberConversation")
    assert call.repeatable is (reads or takes_key or keyed)
    assert ("idempotencyKey" in call.request) is (takes_key and not reads)


@pytest.mark.parametrize(
    ("field", "told"),
    [
        ("retries", -1),
        ("retries", 11),
        ("retries", True),
        ("retries", 1.5),
        ("timeout_s", 0),
        ("timeout_s", float("nan")),
        ("timeout_s", float("inf")),
        ("timeout_s", True),
        ("timeout_s", "30"),
        ("long_timeout_s", 86_401),
    ],
)
def test_settings_out_of_range_are_refused_by_name(field, told):
    with pytest.raises(InvalidRequest) as refused:
        Client("http://localhost", **{field: told})
    assert refused.value.field == field
