"""The schemas of the contract: current copies, and requests and replies that they describe."""

from __future__ import annotations

import functools
import json

import jsonschema
import pytest

from contract.cases import FIXTURES
from perdure.contract.limits import EMBEDDED, HTTP
from perdure.contract.operations import OPERATIONS
from perdure.contract.schema import COPIES, documents_of_schema, openapi, reply_schema, request_schema

ALL = json.loads(FIXTURES.read_text(encoding="utf-8"))
GOOD = [case for case in ALL if "error" not in case["reply"]]


@pytest.mark.parametrize("name", ["operations.json", "openapi.json"])
def test_the_committed_copy_is_what_the_types_give(name):
    assert (COPIES / name).read_bytes() == documents_of_schema()[name]


def test_there_is_no_copy_of_anything_else():
    assert sorted(path.name for path in COPIES.iterdir()) == sorted(documents_of_schema())


@functools.cache
def validators(op):
    """Return what judges the requests and what judges the replies of an operation."""
    return [jsonschema.Draft202012Validator(schema(op)) for schema in (request_schema, reply_schema)]


@pytest.mark.parametrize("case", GOOD, ids=[case["name"] for case in GOOD])
def test_what_is_carried_out_fits_its_schemas(case):
    for validator, told in zip(validators(case["op"]), (case["request"], case["reply"]), strict=True):
        validator.validate(told)


@pytest.mark.parametrize("name", [n for n in OPERATIONS if n != "export"])
def test_schemas_are_schemas(name):
    for schema in (request_schema(name), reply_schema(name)):
        jsonschema.Draft202012Validator.check_schema(schema)


def test_every_operation_is_a_route_of_its_own():
    found = {
        (path, method["operationId"])
        for path, methods in openapi()["paths"].items()
        for method in methods.values()
    }
    assert {(f"/api/v1/{one.group}/{one.name}", one.name) for one in OPERATIONS.values()} <= found


def test_no_reference_of_the_description_leads_nowhere():
    told = openapi()

    def references(part):
        if isinstance(part, dict):
            yield from ([part["$ref"]] if "$ref" in part else [])
            for one in part.values():
                yield from references(one)
        elif isinstance(part, list):
            for one in part:
                yield from references(one)

    for reference in references(told):
        at = told
        for step in reference.removeprefix("#/").split("/"):
            at = at[step]


def test_the_description_of_http_tells_the_limits_of_http_and_the_schemas_those_of_the_engine():
    told = openapi()["components"]["schemas"]
    for name in ("recall", "trace", "explain", "searchDocuments"):
        operation = OPERATIONS[name]
        shown = told[operation.request.__name__]["properties"]["k"]
        assert [kind["maximum"] for kind in shown["anyOf"] if "maximum" in kind] == [HTTP.k_max]
        own = request_schema(name)["properties"]["k"]
        assert [kind["maximum"] for kind in own["anyOf"] if "maximum" in kind] == [EMBEDDED.k_max]
    assert told["RememberMany"]["properties"]["facts"]["maxItems"] == HTTP.batch_max
