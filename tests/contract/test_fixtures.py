"""The shared fixtures: well-formed and malformed requests with their replies, on the engine in this process."""

from __future__ import annotations

import json
import math
import shutil
from pathlib import Path
from typing import Any

import msgspec
import pytest

from backends import POSTGRES, chosen, open_at
from contract.cases import FIXTURES, cases, changes_nothing
from contract.stores import NOW, SECRET, caller_of, open_store, shared_store
from perdure import InvalidRequest, ManualClock, MemoryConfig, PerdureError, Store
from perdure.contract.limits import HTTP
from perdure.contract.naming import camel_case
from perdure.contract.operations import OPERATIONS
from perdure.contract.replies import ErrorReply
from perdure.contract.wire import error_object
from perdure.errors import BY_CODE
from postgres_server import ROLE, fresh_database, shared_server

ALL = json.loads(FIXTURES.read_text(encoding="utf-8"))
NAMED = pytest.mark.parametrize("case", ALL, ids=[case["name"] for case in ALL])


def asked(store: Any, case: dict[str, Any]) -> dict[str, Any]:
    try:
        return caller_of(store).call(case["op"], case["request"])
    except PerdureError as error:
        return error_object(error)


def replied(case: dict[str, Any]) -> dict[str, Any]:
    """Return the engine's reply, from a store of its own if the case writes."""
    if changes_nothing(case):
        return asked(shared_store(case["store"]), case)
    with open_store(case["store"]) as store:
        return asked(store, case)


def alike(found: Any, wanted: Any) -> bool:
    """Whether two objects of JSON are equal, keys in the same order; numbers to the libraries' last digits."""
    if isinstance(wanted, dict):
        return (
            isinstance(found, dict)
            and list(found) == list(wanted)
            and all(alike(found[key], wanted[key]) for key in wanted)
        )
    if isinstance(wanted, list):
        return isinstance(found, list) and len(found) == len(wanted) and all(map(alike, found, wanted))
    if isinstance(wanted, float):
        return isinstance(found, float) and math.isclose(found, wanted, rel_tol=1e-12)
    return type(found) is type(wanted) and bool(found == wanted)


def test_the_file_holds_every_case_and_no_other():
    assert [(c["name"], c["store"], c["op"]) for c in ALL] == [case[:3] for case in cases()]
    assert {case["op"] for case in ALL if "error" not in case["reply"]} >= {
        one.name for one in OPERATIONS.values() if one.group != "store" and one.name not in UNTRIED
    }


# They need an embedder, or rewrite the store; their own tests ask them.
UNTRIED = {"reindex", "embedMissing"}


@NAMED
def test_the_engine_gives_the_reply_of_the_fixture(case):
    assert alike(replied(case), case["reply"])


class Copies:
    """A store of one kind on disk, and copies of it to write to."""

    def __init__(self, folder: Path, kind: str, backend: str) -> None:
        self._folder, self._backend, self._count = folder, backend, 0
        with open_store(kind, folder / "first", backend=backend) as store:
            self._moment = store.clock.now()

    def open(self) -> Store:
        self._count += 1
        copy = shutil.copytree(self._folder / "first", self._folder / str(self._count))
        return Store.open(copy, clock=ManualClock(self._moment), secret=SECRET, backend=self._backend)


def common(reply: dict[str, Any]) -> bytes:
    """Return a reply as bytes, without what backends do differently to erase, which a certificate says."""
    if isinstance(reply.get("certificate"), dict):
        certificate = reply["certificate"]
        own = ("steps", "outside", "seal")
        reply = reply | {"certificate": {name: told for name, told in certificate.items() if name not in own}}
    return msgspec.json.encode(reply)


class DatabaseCopies:
    """The same in databases, each with a keystore of its own."""

    def __init__(self, folder: Path, kind: str) -> None:
        self._folder, self._count = folder, 0
        self._database = fresh_database()
        with open_store(kind, self._address(self._database), keystore=folder / "first") as store:
            self._moment = store.clock.now()

    def open(self) -> Store:
        self._count += 1
        keys = shutil.copytree(self._folder / "first", self._folder / str(self._count))
        address = self._address(shared_server().new_database(self._database))
        return Store.open(address, clock=ManualClock(self._moment), secret=SECRET, keystore=keys)

    @staticmethod
    def _address(database: str) -> str:
        return shared_server().address(database, ROLE)


class Tenants:
    """Empty stores: tenants of one database, with nothing in them and a keystore of their own."""

    def __init__(self, folder: Path) -> None:
        self._folder, self._count = folder, 0

    def open(self) -> Store:
        self._count += 1
        return open_at(
            self._folder / str(self._count) / "store", POSTGRES, clock=ManualClock(NOW), secret=SECRET
        )


def copies_of(kind: str, backend: str, folder: Path) -> Copies | DatabaseCopies | Tenants:
    if backend != POSTGRES:
        return Copies(folder, kind, backend)
    return DatabaseCopies(folder, kind) if kind == "full" else Tenants(folder)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["empty", "full"])
@pytest.mark.parametrize("backend", chosen("sqlite", "journal", "postgres"))
def test_every_backend_gives_the_same_replies(tmp_path, backend, kind):
    wrong = []
    copies = copies_of(kind, backend, tmp_path)
    with copies.open() as read:
        for case in [case for case in ALL if case["store"] == kind]:
            if changes_nothing(case):
                found = asked(read, case)
            else:
                with copies.open() as written:
                    found = asked(written, case)
            if common(found) != common(replied(case)):
                wrong.append(case["name"])
    assert wrong == []


@NAMED
def test_every_reply_has_the_form_that_its_type_tells(case):
    operation = OPERATIONS.get(case["op"])
    reply = case["reply"]
    kind: Any = ErrorReply if "error" in reply else operation.reply
    if operation is not None and operation.many is not None and operation.many[0] in case["request"]:
        kind = kind if "error" in reply else operation.many[2]
    told = msgspec.convert(reply, kind)
    assert msgspec.json.encode(told) == msgspec.json.encode(reply)


@pytest.mark.parametrize("case", [c for c in ALL if "error" in c["reply"]], ids=lambda case: case["name"])
def test_every_error_has_a_known_code_and_names_a_field_as_it_is_on_the_wire(case):
    error = case["reply"]["error"]
    assert error["code"] in BY_CODE
    assert "_" not in error.get("field", "").replace("$", "")
    assert "Traceback" not in error["message"]
    assert "/" not in error["message"].replace("ids/", "")


def test_a_configuration_does_not_change_what_is_malformed():
    config = MemoryConfig(supersession="latest-by-subject")
    for case in ALL:
        if case["reply"].get("error", {}).get("code") != "invalid_request" or case["op"] == "embedMissing":
            continue
        with pytest.raises(PerdureError) as caught:
            caller_of(shared_store(case["store"]), config=config).call(case["op"], case["request"])
        assert error_object(caught.value) == case["reply"]


@pytest.mark.parametrize("k", [-1, 0, HTTP.k_max + 1])
@pytest.mark.parametrize("op", ["recall", "trace", "searchDocuments"])
def test_a_k_below_or_above_the_range_is_told_the_same_range(op, k):
    with open_store("empty") as store, pytest.raises(InvalidRequest) as raised:
        caller_of(store).call(op, {"query": "tea", "k": k})
    assert raised.value.message == f"k must be 1 to {HTTP.k_max} here, got {k}"


@pytest.mark.parametrize(
    ("op", "request_", "name"),
    [
        ("recall", {"query": "Ann", "as_of": 0}, "as_of"),
        ("remember", {"text": "x", "valid_from": 0}, "valid_from"),
    ],
)
def test_a_field_under_its_name_in_python_is_refused_under_the_name_that_was_sent(op, request_, name):
    with open_store("full") as store:
        error = asked(store, {"op": op, "request": request_})["error"]
    assert error["field"] == name
    assert error["message"].startswith(f"there is no field '{name}'; {op} takes ")
    assert camel_case(name) in error["message"]
