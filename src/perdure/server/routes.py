"""From a path and a method to an operation of the contract, and what the address itself says of the request."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qsl

from perdure.contract.operations import OPERATIONS, Operation
from perdure.contract.schema import IMPORT_FLAGS
from perdure.errors import InvalidRequest
from perdure.server.failures import NoRoute, WrongMethod

_OF_DOCUMENTS = {"GET": "getDocument", "PUT": "putDocument", "DELETE": "deleteDocument"}
_VERSION = re.compile(rb'"?(\d{1,16})"?', re.ASCII)
_ESCAPES = re.compile(rb"%([0-9A-Fa-f]{2})")


@dataclass(frozen=True)
class Route:
    """An operation, and the fields of its request that the address and the headers tell."""

    operation: Operation
    fields: dict[str, Any] = field(default_factory=dict, repr=False)
    has_body: bool = True
    purges: bool = False


_BY_PATH = {f"{one.group}/{one.name}".encode("ascii"): Route(one) for one in OPERATIONS.values()}


def route(method: str, path: bytes, query: bytes, headers: dict[bytes, bytes]) -> Route:
    """Return where a request goes.

    Args:
        method: of HTTP, in capitals.
        path: below /api/v1/, percent-encoded as it came.
        query: after the question mark.
        headers: as `single_headers` gives them.

    Raises:
        NoRoute, WrongMethod: there is nothing, or not for this method.
        InvalidRequest: what the address or If-Match says is malformed.
    """
    plain = _BY_PATH.get(path)
    if plain is not None and (plain.operation.group != "documents" or method == "POST"):
        if method != "POST":
            raise WrongMethod("POST")
        if plain.operation.name == "import":
            return Route(plain.operation, _flags(query, *IMPORT_FLAGS))
        _flags(query)
        return plain
    group, _, rest = path.partition(b"/")
    if group != b"documents" or not rest or (method == "POST" and b"/" in rest):
        raise NoRoute
    if method not in _OF_DOCUMENTS:
        raise WrongMethod("GET", "PUT", "DELETE") if method != "POST" else NoRoute
    return _document(method, rest, query, headers)


def _document(method: str, id_: bytes, query: bytes, headers: dict[bytes, bytes]) -> Route:
    fields: dict[str, Any] = {"id": _decoded(id_)}
    told = headers.get(b"if-match")
    if method == "PUT" and headers.get(b"if-none-match") == b"*":
        if told is not None:
            raise InvalidRequest("send the header If-Match or If-None-Match, not both", field="If-Match")
        fields["ifVersion"] = 0
    elif told is not None:
        version = _VERSION.fullmatch(told)
        if method == "GET" or version is None:
            raise InvalidRequest(
                'the header If-Match must be a version, like "3", of PUT or DELETE', field="If-Match"
            )
        fields["ifVersion"] = int(version[1])
    fields |= _flags(query, "purge") if method == "DELETE" else _flags(query)
    return Route(OPERATIONS[_OF_DOCUMENTS[method]], fields, method == "PUT", bool(fields.get("purge")))


def _flags(query: bytes, *names: str) -> dict[str, bool]:
    """Return the flags that the address tells.

    Raises:
        InvalidRequest: there is another parameter, one comes twice, or a value is neither true nor false.
    """
    if not query:
        return {}
    try:
        told = parse_qsl(query.decode("ascii"), keep_blank_values=True, strict_parsing=True, max_num_fields=8)
    except ValueError as error:
        raise InvalidRequest("the address's parameters are malformed", field="query") from error
    flags = dict(told)
    if len(flags) != len(told) or not flags.keys() <= set(names):
        known = (
            f"takes {', '.join(names)}, each once" if names else "takes no parameters; put them in the body"
        )
        raise InvalidRequest(f"this address {known}", field="query")
    for name, value in told:
        if value not in ("true", "false"):
            raise InvalidRequest(f"{name} must be true or false", field=name)
    return {name: value == "true" for name, value in told}


def _decoded(part: bytes) -> str:
    plain = _ESCAPES.sub(lambda escape: bytes.fromhex(escape[1].decode("ascii")), part)
    try:
        return plain.decode("utf-8")
    except UnicodeDecodeError as error:
        raise InvalidRequest(
            f"id is no UTF-8 at byte {error.start + 1} of the address", field="id"
        ) from error
