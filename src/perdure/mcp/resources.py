"""Facts and spaces as resources: `perdure://facts/{id}` and `perdure://spaces`."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any
from urllib.parse import quote, unquote

from perdure.dispatch import Caller
from perdure.errors import NotFound

JsonObject = dict[str, Any]
FACTS = "perdure://facts/"
SPACES = "perdure://spaces"
TEXT = "text/plain"
RESOURCES: tuple[JsonObject, ...] = (
    {
        "uri": SPACES,
        "name": "spaces",
        "description": "The memories that hold something, of those of the served principal that this caller may reach.",
        "mimeType": TEXT,
    },
)
TEMPLATES: tuple[JsonObject, ...] = (
    {
        "uriTemplate": FACTS + "{id}",
        "name": "fact",
        "description": "One fact as it is now; the id is percent-encoded.",
        "mimeType": TEXT,
    },
)


def uri_of(fact_id: str) -> str:
    return FACTS + quote(fact_id, safe="")


def read(uri: str, caller: Caller) -> Iterable[JsonObject]:
    """Return what a resource holds, as objects of the contract.

    Raises:
        NotFound: there is no such resource, or no such fact in the caller's own space.
    """
    if uri == SPACES:
        spaces = caller.call("spaces", {})["spaces"]
        # A name is somebody's too: those of other principals are not told.
        return [space for space in spaces if space["principal"] == caller.namespace.principal]
    if uri.startswith(FACTS) and len(uri) > len(FACTS):
        fact = caller.call("get", {"id": unquote(uri[len(FACTS) :])})["fact"]
        if fact is not None:
            return [fact]
    raise NotFound(f"there is no such resource; there are {FACTS}{{id}} and {SPACES}", field="uri")
