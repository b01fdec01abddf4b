"""JSON Schema and OpenAPI of the contract, made from its types. Committed copies lie in `schema/`."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from perdure.contract import replies, requests
from perdure.contract.capabilities import CONTRACT_VERSION
from perdure.contract.limits import HTTP
from perdure.contract.operations import OPERATIONS, Operation
from perdure.contract.replies import ErrorReply

JsonObject = dict[str, Any]
DIALECT = "https://json-schema.org/draft/2020-12/schema"
COPIES = Path(__file__).parent / "schemas"
_COMPONENTS = "#/components/schemas/{name}"
_DEFS = "#/$defs/{name}"

JSON = "application/json"
LINES = "application/x-ndjson"
SPACE_HEADERS: Mapping[str, str] = {
    "Perdure-Tenant": "Which tenant's store; percent-encoded UTF-8. A key that fixes one needs none.",
    "Perdure-Principal": "Whose memory; percent-encoded UTF-8.",
    "Perdure-Scope": "Which of the principal's memories; percent-encoded UTF-8.",
}
IMPORT_FLAGS: Mapping[str, str] = {
    "dryRun": "Store nothing; tell what would be.",
    "strict": "Store nothing where a line is wrong (the default), or else all but the wrong lines.",
    "here": "Store all in the space that the headers name.",
}


def _linked(operation: str, field: str = "id") -> JsonObject:
    return {"operationId": operation, "requestBody": {field: "$response.body#/id"}}


# How replies lead to further requests, for tools that follow them.
LINKS: Mapping[str, Mapping[str, Any]] = {
    "remember": {"fact": _linked("get"), "connected": _linked("history"), "withdrawn": _linked("retract")},
    "correct": {"fact": _linked("get"), "connected": _linked("history")},
    "putDocument": {"document": _linked("getDocument"), "gone": _linked("deleteDocument")},
}

# Bodies that fit the schema and are refused all the same (a blank query, an unknown filter operator) are 422 too.
STATUSES: Mapping[str, str] = {
    "400": "the body is no JSON, or the tenant's name is malformed",
    "401": "no key, or one that is not known",
    "403": "the key does not go as far as the request",
    "404": "there is no such fact, document or operation",
    "405": "the address takes another method",
    "408": "the body came too slowly",
    "409": "the store holds something else under that id, key or version, or a cursor is out of date",
    "413": "the body is longer than is taken",
    "415": "the body is not application/json, or is compressed",
    "422": "the request is malformed, holds a key twice, is nested too deeply or is outside a limit; nothing was stored",
    "431": "the headers are too long",
    "500": "a fault of the server, or the store is damaged",
    "503": "the server or the store is busy; a retry is safe",
    "507": "the disk is full; nothing was changed",
}


def request_schema(name: str) -> JsonObject:
    """Return the schema of an operation's request, complete in itself."""
    operation = OPERATIONS[name]
    kinds = [operation.request, *([] if operation.many is None else [operation.many[1]])]
    return _alone(kinds)


def reply_schema(name: str) -> JsonObject:
    """Return the schema of an operation's reply, complete in itself."""
    operation = OPERATIONS[name]
    kinds = [operation.reply, *([] if operation.many is None else [operation.many[2]])]
    return _alone(kinds)


def _alone(kinds: list[type[Any]]) -> JsonObject:
    found, definitions = msgspec.json.schema_components(kinds, ref_template=_DEFS)
    definitions = {name: _tidy(schema) for name, schema in definitions.items()}
    if len(kinds) > 1:
        top: JsonObject = {"anyOf": [_tidy(one) for one in found]}
    else:
        top = definitions.pop(kinds[0].__name__)
    if definitions:
        top["$defs"] = dict(sorted(definitions.items()))
    return top


def _tidy(schema: Any) -> Any:
    """Return a schema without what says nothing: titles, defaults of null, the order that a set gave."""
    if isinstance(schema, list):
        return [_tidy(one) for one in schema]
    if not isinstance(schema, dict):
        return schema
    return {
        key: _tidy(value)
        for key, value in schema.items()
        if not (key == "title" and isinstance(value, str))
        and not (key == "default" and value in (None, [], {}))
    }


def operations_schema() -> JsonObject:
    """Return the requests and replies of all operations as one document."""
    return {
        "$schema": DIALECT,
        "operations": {
            one.name: {
                "group": one.group,
                "role": one.role,
                "summary": one.summary,
                "request": request_schema(one.name),
                "reply": {"type": "string", "description": "Lines of JSON."}
                if one.name == "export"
                else reply_schema(one.name),
            }
            for one in OPERATIONS.values()
        },
        "error": _alone([ErrorReply]),
    }


def openapi() -> JsonObject:
    """Return the OpenAPI 3.1 description of the HTTP server's routes."""
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Perdure",
            "version": f"v{CONTRACT_VERSION}",
            "description": "A memory for AI agents: facts that hold over time. Times are milliseconds since 1970.",
            "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
        },
        "security": [{"key": []}],
        "paths": {**_operation_paths(), **_document_paths(), **_health_paths()},
        "components": {
            "securitySchemes": {"key": {"type": "http", "scheme": "bearer"}},
            "parameters": {name: _header(name, text) for name, text in SPACE_HEADERS.items()},
            "responses": {
                status: {"description": text, "content": {JSON: {"schema": _ref("ErrorReply")}}}
                for status, text in STATUSES.items()
            },
            "schemas": _components(),
        },
    }


def _components() -> JsonObject:
    kinds: dict[type[Any], None] = {ErrorReply: None, requests.DocumentBody: None}
    for one in OPERATIONS.values():
        kinds |= dict.fromkeys((one.request, one.reply))
        if one.many is not None:
            kinds |= dict.fromkeys(one.many[1:])
    kinds.pop(replies.ExportLine)
    _, found = msgspec.json.schema_components([*kinds], ref_template=_COMPONENTS)
    return {name: _within_http(_tidy(schema)) for name, schema in sorted(found.items())}


def _within_http(schema: JsonObject) -> JsonObject:
    """Return the schema of a request with the limits of HTTP, where they are stricter than those of the engine."""
    fields: JsonObject = schema.get("properties", {})
    for kind in fields.get("k", {}).get("anyOf", []):
        if kind["type"] == "integer":
            kind["maximum"] = HTTP.k_max
    if fields.get("facts", {}).get("type") == "array":
        fields["facts"]["maxItems"] = HTTP.batch_max
    return schema


def _ref(name: str) -> JsonObject:
    return {"$ref": _COMPONENTS.format(name=name)}


def _header(name: str, text: str) -> JsonObject:
    return {"name": name, "in": "header", "description": text, "schema": {"type": "string"}}


def _shared(*others: JsonObject) -> list[JsonObject]:
    return [*others, *({"$ref": f"#/components/parameters/{name}"} for name in SPACE_HEADERS)]


def _responses(reply: JsonObject, content: str = JSON, more: Mapping[str, Any] | None = None) -> JsonObject:
    errors = {status: {"$ref": f"#/components/responses/{status}"} for status in STATUSES}
    return {"200": {"description": "done", "content": {content: {"schema": reply}}, **(more or {})}, **errors}


def _body(schema: JsonObject, content: str = JSON) -> JsonObject:
    return {"required": True, "content": {content: {"schema": schema}}}


def _operation_paths() -> JsonObject:
    return {
        f"/api/v{CONTRACT_VERSION}/{one.group}/{one.name}": {"post": _operation(one)}
        for one in OPERATIONS.values()
    }


def _operation(one: Operation) -> JsonObject:
    asked, given = _ref(one.request.__name__), _ref(one.reply.__name__)
    if one.many is not None:
        asked = {"oneOf": [asked, _ref(one.many[1].__name__)]}
        given = {"oneOf": [given, _ref(one.many[2].__name__)]}
    told: JsonObject = {"operationId": one.name, "summary": one.summary, "tags": [one.group]}
    if one.name == "export":
        return {
            **told,
            "parameters": _shared(),
            "requestBody": _body(asked),
            "responses": _responses({"type": "string"}, LINES),
        }
    if one.name == "import":
        flags = [
            {"name": name, "in": "query", "description": text, "schema": {"type": "boolean"}}
            for name, text in IMPORT_FLAGS.items()
        ]
        return {
            **told,
            "parameters": _shared(*flags),
            "requestBody": _body({"type": "string"}, LINES),
            "responses": _responses(given),
        }
    links: JsonObject = {"links": LINKS[one.name]} if one.name in LINKS else {}
    return {
        **told,
        "parameters": _shared(),
        "requestBody": _body(asked),
        "responses": _responses(given, more=links),
    }


def _document_paths() -> JsonObject:
    match = _header("If-Match", "Only at this version, as an ETag.")
    free = _header("If-None-Match", "* stores only where the id is free.")
    purge = {
        "name": "purge",
        "in": "query",
        "description": "Purge afterwards.",
        "schema": {"type": "boolean"},
    }
    id_ = {"name": "id", "in": "path", "required": True, "schema": {"type": "string", "minLength": 1}}
    etag = {"headers": {"ETag": {"description": "The version.", "schema": {"type": "string"}}}}
    return {
        f"/api/v{CONTRACT_VERSION}/documents/{{id}}": {
            "put": {
                "operationId": "documentPut",
                "summary": "Store a text under an id, in place of what was there.",
                "tags": ["documents"],
                "parameters": _shared(id_, match, free),
                "requestBody": _body(_ref("DocumentBody")),
                "responses": _responses(_ref("PutReply"), more=etag),
            },
            "get": {
                "operationId": "documentGet",
                "summary": "One document with its whole text.",
                "tags": ["documents"],
                "parameters": _shared(id_),
                "responses": _responses(_ref("DocumentReply"), more=etag),
            },
            "delete": {
                "operationId": "documentDelete",
                "summary": "Erase a document.",
                "tags": ["documents"],
                "parameters": _shared(id_, match, purge),
                "responses": _responses(_ref("DeletedReply")),
            },
        }
    }


def _health_paths() -> JsonObject:
    status: JsonObject = {"status": {"type": "string"}}
    failing: JsonObject = {"failingStores": {"type": "integer", "minimum": 1}}

    def look(name: str, summary: str, more: JsonObject) -> JsonObject:
        state = {"type": "object", "properties": {**status, **more}, "required": ["status"]}
        answer = {"description": "yes", "content": {JSON: {"schema": state}}}
        refusal = {"description": "no", "content": {JSON: {"schema": state}}}
        return {
            "get": {
                "operationId": name,
                "summary": summary,
                "tags": ["health"],
                "security": [],
                "responses": {"200": answer, "503": refusal},
            }
        }

    return {
        "/health/live": look("healthLive", "Whether the server runs.", {}),
        "/health/ready": look(
            "healthReady",
            "Whether what is served can be read and written. Of a root of tenants: degraded where the stores of some "
            "are not well.",
            failing,
        ),
    }


def documents_of_schema() -> dict[str, bytes]:
    """Return every committed copy by its file name."""
    made = {"operations.json": operations_schema(), "openapi.json": openapi()}
    return {
        name: json.dumps(document, indent=1, ensure_ascii=False).encode() + b"\n"
        for name, document in made.items()
    }
