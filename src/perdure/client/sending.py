"""From arguments in Python to requests of the contract: plain objects of JSON, checked as far as JSON goes.

What a value may be is for the server to say, so that its answer is that of every surface; here is refused only what
JSON would bend: moments, vectors, numbers that are not finite, and what is no JSON at all.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from typing import Any

import msgspec
from msgspec import UNSET

from perdure.base.canonical import checked_json
from perdure.base.instants import to_millis
from perdure.client.vectors import VectorMask, plain_vector
from perdure.contract.naming import camel_case, snake_case
from perdure.errors import InvalidRequest
from perdure.model.inputs import NewFact, RecallOptions
from perdure.model.namespace import Namespace

REQUEST_BYTES_MAX = 1 << 30  # a server takes less, and says how much
MOMENTS = frozenset(
    (
        *("event_time", "valid_from", "valid_to", "as_of", "known_at", "at", "before", "until"),
        *("occurred_at", "created_at", "observation_time"),
        *("updated_after", "updated_before", "created_after", "created_before"),
    )
)
LISTS = frozenset(
    ("entities", "supersedes", "tags", "ids", "texts", "kinds", "statuses", "roles", "subqueries")
)

_SCOPE_FIELDS = {
    "ingested_before": "before",
    "event_before": "before",
    "matching": "metadata",
    "kind": "fact_kind",
}
"""The field that a keyword of a forget becomes in the request's scope, where that has another name."""


def request_of(mask: VectorMask | None = None, /, **told: Any) -> dict[str, Any]:
    """Return the request of these arguments; those that are None are left out."""
    return {camel_case(name): _plain(name, value, mask) for name, value in told.items() if value is not None}


def fact_of(told: Any, index: int, mask: VectorMask | None) -> dict[str, Any]:
    """Return a member of a batch: a NewFact, a mapping of its fields, or a text alone.

    Raises:
        InvalidRequest: it is none of them; the error names the index.
    """
    try:
        if isinstance(told, NewFact):
            return request_of(mask, **msgspec.structs.asdict(told))
        if isinstance(told, str):
            return request_of(mask, text=told)
        if not isinstance(told, Mapping):
            raise InvalidRequest(f"a fact must be a NewFact, an object or a text, got {type(told).__name__}")
        _refuse_unknown(told, NewFact.__struct_fields__, "a fact")
        return request_of(mask, **told)
    except InvalidRequest as error:
        raise InvalidRequest(f"facts[{index}]: {error.message}", field=error.field, index=index) from error


def recall_options(options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options of a recall, an explain or a trace; raises InvalidRequest for one that there is not."""
    _refuse_unknown(options, tuple(RecallOptions.__annotations__), "a recall")
    return dict(options)


def cleared(told: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments that were given, those that are None as the names in `clear`: null is absence in JSON."""
    given = {name: value for name, value in told.items() if value is not UNSET}
    clear = [camel_case(name) for name, value in given.items() if value is None and name != "pinned"]
    return {**given, "clear": clear or None}


def scope_of(told: Mapping[str, Any]) -> dict[str, Any]:
    """Return the scope of a forget from its keywords, of which exactly one is given.

    Raises:
        InvalidRequest: none is given, or several.
    """
    given = {name: value for name, value in told.items() if value is not None and value is not False}
    if len(given) != 1:
        names = ", ".join(told)
        count = "none" if not given else f"{len(given)}: {', '.join(given)}"
        raise InvalidRequest(f"forget takes exactly one scope of {names}; got {count}", field="scope")
    ((name, value),) = given.items()
    if name == "all" and value is not True:
        raise InvalidRequest(f"all must be True or False, got {type(value).__name__}", field="all")
    key = _SCOPE_FIELDS.get(name, name)
    with _named(key, name):
        shown = {} if name == "all" else {camel_case(key): _plain(key, value, None)}
    return {"kind": camel_case(name), **shown}


def named_by_keyword(scope: Mapping[str, Any]) -> AbstractContextManager[None]:
    """Have an error about the field of a request's scope name the keyword that the scope was told by.

    Args:
        scope: of `scope_of`.
    """
    name = snake_case(scope["kind"])
    return _named(f"scope.{_SCOPE_FIELDS.get(name, name)}", name)


@contextmanager
def _named(field: str, name: str) -> Iterator[None]:
    """Have a refusal that is about a field, or something in it, name it otherwise."""
    try:
        yield
    except InvalidRequest as error:
        if error.field is None or not _is_about(error.field, field):
            raise
        error.field = _renamed(error.field, field, name)
        error.message = _renamed(error.message, field, name)
        error.args = (error.message,)
        if isinstance(place := error.details.get("place"), str):
            error.details["place"] = _renamed(place, field, name)
            # The place may stand in the message once more, behind the field.
            error.message = error.message.replace(place, error.details["place"])
        raise


def _is_about(told: str, field: str) -> bool:
    return told.startswith(field) and told[len(field) :][:1] in ("", ".", "[")


def _renamed(text: str, field: str, name: str) -> str:
    return name + text[len(field) :] if text.startswith(field) else text


def names_of(spaces: Collection[Namespace] | None) -> list[dict[str, str]] | None:
    """Return the names of spaces; raises InvalidRequest for what is no Namespace."""
    return None if spaces is None else [name_of(one, "spaces") for one in members(spaces, "spaces")]


def name_of(name: Any, field: str) -> dict[str, str]:
    if not isinstance(name, Namespace):
        raise InvalidRequest(f"{field} takes a Namespace, got {type(name).__name__}", field=field)
    return {"principal": name.principal, "scope": name.scope}


def members(value: Any, field: str) -> list[Any]:
    """Return the members of a list, a tuple or another iterable.

    Raises:
        InvalidRequest: it is one text, an object, or nothing that has members.
    """
    if isinstance(value, str | bytes | Mapping) or not isinstance(value, Iterable):
        raise InvalidRequest(f"{field} must be a list, got {type(value).__name__}", field=field)
    return list(value)


def _plain(name: str, value: Any, mask: VectorMask | None) -> Any:
    if name in MOMENTS and not isinstance(value, tuple | list):
        return to_millis(value, field=name)
    if name in MOMENTS or name == "valid_during":
        return [to_millis(moment, field=name) for moment in members(value, name)]
    if name == "embedding":
        return _vectors(value, mask)
    if name in LISTS:
        value = members(value, name)
    elif name == "spaces":
        value = [_space(one) for one in members(value, name)]
    elif isinstance(value, msgspec.Struct):
        value = {key: item for key, item in msgspec.structs.asdict(value).items() if item is not None}
    return checked_json({"": value}, field=name, bytes_max=REQUEST_BYTES_MAX)[""]


def _vectors(value: Any, mask: VectorMask | None) -> list[Any]:
    """Return a vector, or the list of them that the units of a document have."""
    change: Callable[[list[float]], list[float]] = (lambda vector: vector) if mask is None else mask.flipped
    plain = value.tolist() if callable(getattr(value, "tolist", None)) else value
    if isinstance(plain, list | tuple) and plain and not hasattr(plain[0], "__float__"):
        return [change(plain_vector(one)) for one in plain]
    return change(plain_vector(plain))


def _space(told: Any) -> Any:
    return name_of(told, "spaces") if isinstance(told, Namespace) else told


def _refuse_unknown(told: Mapping[Any, Any], known: Iterable[str], what: str) -> None:
    unknown = sorted(str(key)[:64] for key in set(told) - set(known))
    if unknown:
        raise InvalidRequest(f"unknown field {unknown[0]!r}; {what} has {', '.join(known)}", field=unknown[0])
