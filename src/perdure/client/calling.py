"""One call of an operation: what is sent, whether it may be sent again, and what its answer means. Pure."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar

import msgspec

from perdure.base.ids import random_secret
from perdure.client.retrying import Retries, fraction, retry_after_ms
from perdure.contract.operations import OPERATIONS, Operation
from perdure.contract.reading import read_error
from perdure.errors import InvalidRequest, PerdureError, Unavailable

R = TypeVar("R")

SAFE = frozenset({"verify", "storeEvents"})  # these change nothing, although not every reader may call them
# Told again, these write nothing: the id of an event and the name of a version are their keys.
REPEATABLE = frozenset({"recordAdmission", "recordNodeUse", "rememberConversation"})
DRY_UNLESS_TOLD = frozenset({"applyForgetting", "consolidate"})
LONG = frozenset(
    {"stats", "verify", "purge", "erase", "export", "import", "reindex", "embedMissing", "consolidate"}
)
SAID_LATER = "it may still be carried out: ask again with the same idempotency key to be sure"
NOT_SENT = "nothing was carried out"


@dataclass(frozen=True)
class Call:
    """A request on its way. Every attempt carries the same bytes, key and id."""

    operation: Operation
    request: dict[str, Any] = field(repr=False)
    id: str
    repeatable: bool

    @property
    def path(self) -> str:
        return f"/api/v1/{self.operation.group}/{self.operation.name}"

    @property
    def is_long(self) -> bool:
        return self.operation.name in LONG or self.request.get("purge") is True

    @property
    def body(self) -> bytes:
        try:
            return msgspec.json.encode(self.request)
        except (
            OverflowError,
            UnicodeEncodeError,
        ):  # what the fast codec does not take, the server refuses by name
            return json.dumps(self.request).encode()

    def headers(self) -> dict[str, str]:
        return {"Content-Type": "application/json", "X-Request-Id": self.id}


def checked_plain(request: Any) -> dict[str, Any]:
    """Return a request that a caller wrote himself; raises InvalidRequest unless JSON can hold all of it."""
    if not isinstance(request, Mapping):
        raise InvalidRequest(f"a request is an object, got {type(request).__name__}", field="request")
    plain = dict(request)
    try:
        json.dumps(plain, allow_nan=False)
    except (TypeError, ValueError, RecursionError) as error:
        raise InvalidRequest(
            "the request holds something that is not JSON: only text, finite numbers, booleans, null, lists and objects "
            "are",
            field="request",
        ) from error
    return plain


def call_of(name: str, request: dict[str, Any], retries: Retries) -> Call:
    """Return the call of an operation.

    A write gets an idempotency key of its own where it has none, can have one and may have to be sent again: the
    server carries it out once, however often it comes.
    """
    operation = OPERATIONS[name]
    dry = request.get("dryRun", name in DRY_UNLESS_TOLD)
    reads = operation.role == "read" or name in SAFE or dry is True
    takes_key = "idempotency_key" in operation.request.__struct_fields__
    if not reads and takes_key and retries.count and "idempotencyKey" not in request:
        request = {**request, "idempotencyKey": random_secret(16).hex()}
    repeatable = reads or name in REPEATABLE or "idempotencyKey" in request
    return Call(operation, request, random_secret(8).hex(), repeatable)


@dataclass(frozen=True)
class Answer:
    """A whole answer of HTTP."""

    status: int
    body: bytes = field(repr=False)
    retry_after: str | None = None


def reply_of(answer: Answer, kind: type[R]) -> R:
    """Return the reply that an answer holds.

    Raises:
        PerdureError: the server's error, of the class of its code; or Unavailable, where something else answered.
    """
    if answer.status != 200:
        raise error_of(answer)
    try:
        return msgspec.json.decode(answer.body, type=kind)
    except (msgspec.ValidationError, msgspec.DecodeError, RecursionError) as error:
        raise Unavailable(
            "the server answered with something else than this build reads; check url, and that client and server "
            "are of one version",
            reply_status=answer.status,
        ) from error


def error_of(answer: Answer) -> PerdureError:
    """Return the error that an answer tells."""
    try:
        told = json.loads(answer.body)
    except (ValueError, RecursionError):
        told = None
    if isinstance(told, Mapping) and isinstance(told.get("error"), Mapping):
        return read_error(told, answer.status)
    return Unavailable(
        f"something that is no Perdure server answered with status {answer.status}; check url, and what stands "
        "between",
        reply_status=answer.status,
    )


def pause_after_answer(call: Call, answer: Answer, attempt: int, retries: Retries) -> float | None:
    """Return how long to wait before the call is sent again, or None where the answer stands."""
    asked = retry_after_ms(answer.retry_after)
    if answer.status != 503 or asked is None or not call.repeatable:
        return None
    if "certificate" in error_of(answer).details:  # something was erased, and only this answer proves it
        return None
    return retries.pause_ms(attempt, asked, fraction())


def pause_after_break(call: Call, attempt: int, retries: Retries) -> float | None:
    """Return how long to wait before the call is sent again after its connection broke, or None where it is not."""
    return retries.pause_ms(attempt, None, fraction()) if call.repeatable else None


def check_unpacked(encoding: str | None) -> None:
    """Raise Unavailable where an answer's Content-Encoding tells that it is packed: nobody asked for that."""
    if encoding not in (None, "identity"):
        raise Unavailable(
            "the answer is compressed, which was not asked for, and is not read; check what stands between"
        )


def broken(call: Call, message: str, *, arrived: bool) -> Unavailable:
    """Return the error of a call that got no answer; `arrived` tells whether an attempt may have come to the server."""
    details = {"request_id": call.id}
    key = call.request.get("idempotencyKey")
    if not arrived:
        message = f"{message}; {NOT_SENT}"
    elif key is not None:
        message = f"{message}; {SAID_LATER}"
    if key is not None:
        details["idempotency_key"] = key
    return Unavailable(message, **details)
