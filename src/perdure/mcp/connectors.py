"""`search` and `fetch` in the shapes that connectors expect: one object of JSON, also as the text of the result."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from perdure.base.text import folded_space
from perdure.dispatch import Caller
from perdure.errors import NotFound
from perdure.mcp.fencing import fenced, random_nonce
from perdure.mcp.resources import uri_of

TITLE_LENGTH_MAX = 80  # characters; a title is one line in a list
K = 10

JsonObject = dict[str, Any]


def search(caller: Caller, told: Mapping[str, Any]) -> JsonObject:
    """Return the best facts, each by id, title and address."""
    hits = caller.call("recall", {**told, "k": K})["results"]
    return {"results": [_head(hit["fact"]) for hit in hits]}


def fetch(caller: Caller, told: Mapping[str, Any]) -> JsonObject:
    """Return one fact; its text is fenced as data, since connectors give it to a model as it is.

    Raises NotFound where there is none.
    """
    fact = caller.call("get", told)["fact"]
    if fact is None:
        raise NotFound("there is no fact of this id", field="id")
    text = fenced([{name: fact[name] for name in _SHOWN}], random_nonce())
    return {**_head(fact), "text": text, "metadata": {"status": fact["status"]}}


_SHOWN = ("text", "status", "subject", "eventTime", "validFrom", "validTo", "ends", "source", "ingestTime")


def _head(fact: JsonObject) -> JsonObject:
    line = folded_space(fact["text"])
    title = line if len(line) <= TITLE_LENGTH_MAX else line[: TITLE_LENGTH_MAX - 1] + "…"
    return {"id": fact["id"], "title": title, "url": uri_of(fact["id"])}
