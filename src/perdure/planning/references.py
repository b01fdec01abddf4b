"""Uris that name what a store keeps: each in one spelling alone, so that whoever is named by it is found by it."""

from __future__ import annotations

import re
import unicodedata
from itertools import islice

from perdure.base.ids import RESERVED_PREFIX
from perdure.errors import InvalidRequest
from perdure.model.conversation_forms import TURN_PREFIX, names_of, turn_uri
from perdure.model.node_forms import FACT_PREFIX

# What a store gives out as uris besides turns: facts of nodes, turns of sessions, decisions, resources of the MCP.
_OTHERS = re.compile(
    rf"{re.escape(FACT_PREFIX)}.+|perdure:session/[A-Za-z0-9._~%-]+/[0-9]+|perdure:decision"
    r"|perdure://facts/.+|perdure://spaces",
    re.DOTALL,
)


def refuse_misspelt(uri: str, *, field: str) -> None:
    """Raise InvalidRequest where a uri is reserved for what a store keeps, and is not spelt as the store spells it.

    Reserved is what a reader may take for our prefix: in capitals or other forms of its letters, or with white space
    and what cannot be seen before or in it. A turn has one spelling: each name with all but letters, digits and `-._~`
    percent-encoded, in capital digits.
    """
    if not _is_reserved(uri) or _OTHERS.fullmatch(uri):
        return
    if not uri.startswith(TURN_PREFIX):
        raise InvalidRequest(
            f"{field} starts as {RESERVED_PREFIX!r} does, which is reserved, and names nothing of a store: give the uri "
            "as the store gave it",
            field=field,
        )
    names = names_of(uri)
    if names is None or not all(names) or turn_uri(*names) != uri:
        raise InvalidRequest(
            f"{field} is not the uri of a turn as the store gives it, {TURN_PREFIX}<session>/<version>/<source id>: "
            "escape in each name all but letters, digits and -._~, as %2F in capitals, and nothing else",
            field=field,
        )


def _is_reserved(uri: str) -> bool:
    told = unicodedata.normalize("NFKC", uri).casefold()
    seen = (one for one in told if unicodedata.category(one)[0] not in "CZ")
    return "".join(islice(seen, len(RESERVED_PREFIX))) == RESERVED_PREFIX
