"""Errors in texts for people: fields of the contract under the names of the options and words that were typed.

In `--json` they keep the names of the contract, as on every other surface.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from perdure.errors import PerdureError

# Fields that a parameter of another name becomes.
_FIELDS = {
    "allow_host": ("allow_hosts",),
    "embedding_file": ("embedding",),
    "entity": ("entities",),
    "request_timeout": ("request_timeout_s",),
    "space": ("spaces",),
    "tag": ("tags",),
    "weight_lexical": ("weights.lexical",),
    "weight_semantic": ("weights.semantic",),
}
_PLACE = re.compile(r"\[\d+\]")


def name_as_typed(error: PerdureError, params: Sequence[Any]) -> None:
    """Let the message name what was typed, by the parameters of its command.

    A name that is a word of prose too, such as `limit`, is meant where the message is about that field and begins
    with it; one with an underscore is meant everywhere. What callers sent stays as it is.
    """
    from perdure.contract.naming import camel_case, outside_of_values  # noqa: PLC0415 - only for errors

    typed: dict[str, str] = {}
    for param in params:
        name = str(param.name).rstrip("_")
        for field in (name, *_FIELDS.get(name, ())):
            typed[field] = typed[camel_case(field)] = _shown(param)
    own = _PLACE.sub("", error.field or "").removeprefix("scope.")
    own = own if own in typed else own.partition(".")[0]
    compound = [re.escape(name) for name in typed if "_" in name or "." in name or not name.islower()]
    anywhere = re.compile(
        rf"(?<![\w.-])(?:scope\.)?(?P<name>{'|'.join(sorted(compound, key=len, reverse=True))})(?:=True)?(?![\w=-]|\.\w)"
    )
    message = error.message
    begins = re.match(rf"(?:scope\.)?{re.escape(own)}(?![\w=-]|\.\w)", message) if own in typed else None
    if begins is not None:
        message = typed[own] + message[begins.end() :]
    if compound:
        message = outside_of_values(message, lambda part: anywhere.sub(lambda one: typed[one["name"]], part))
    error.message, error.args = message, (message,)


def _shown(param: Any) -> str:
    """Return an option by its name, a word of the line by what its help calls it."""
    if param.param_type_name == "option":
        return str(max(param.opts, key=len))
    return str(param.metavar or param.human_readable_name).strip("[].")
