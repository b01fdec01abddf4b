"""What fields of requests may be, and what all requests share."""

from __future__ import annotations

from typing import Annotated, Any

from msgspec import Meta, Struct

from perdure.contract import limits
from perdure.model.fact import FACT_KINDS


def limited(description: str, **schema: Any) -> Meta:
    return Meta(description=description, extra_json_schema=schema)


def choice(description: str, *names: str) -> Meta:
    return Meta(description=description, extra_json_schema={"enum": list(names)})


Moment = Annotated[
    int | str,
    Meta(
        description="Milliseconds since 1970-01-01T00:00:00Z, or ISO 8601 text; without a zone it is UTC.",
        examples=[1_704_067_200_000, "2024-01-01T00:00:00Z"],
    ),
]


Id = Annotated[str, limited("1 to 256 bytes, no control characters.", minLength=1, maxLength=256)]


Name = Annotated[str, limited("1 to 1,024 bytes, compared exactly.", minLength=1)]


Tags = Annotated[list[str], limited("Exact names.", maxItems=limits.TAGS_MAX)]


Kind = Annotated[str, limited("What sort of fact it is.", enum=list(FACT_KINDS))]


JsonObject = Annotated[dict[str, Any], limited("An object of the caller's, at most 64 KiB.")]


Filter = Annotated[dict[str, Any], Meta(description="A filter over metadata and @fields.")]


Vector = Annotated[
    list[float],
    limited(
        "Finite numbers, not all 0, of the memory's dimension.", minItems=1, maxItems=limits.DIMENSION_MAX
    ),
]


IdempotencyKey = Annotated[
    str,
    limited(
        "A retry under the same key gives the first reply and writes nothing.", minLength=1, maxLength=256
    ),
]


Interval = Annotated[
    list[Moment], limited("From the first moment until before the second.", minItems=2, maxItems=2)
]


K = Annotated[int, limited("How many results at most.", minimum=1, maximum=limits.K_MAX)]


PageSize = Annotated[
    int, limited("How many items at most; 50 when absent.", minimum=1, maximum=limits.LIST_MAX)
]


Text = Annotated[str, limited("1 to 4,096 words, at most 65,536 bytes; kept byte for byte.", minLength=1)]


Mode = Annotated[str, choice("By words, by vectors, or by both.", "lexical", "semantic", "hybrid")]


Fusion = Annotated[str, choice("How hybrid makes one score of two.", "minmax", "rrf")]


Query = Annotated[str, Meta(description="Words to find; no syntax, every character is text.")]


Cursor = Annotated[str, Meta(description="What the page before gave, with the same arguments.")]


class Request(Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """What all requests share. `repr()` shows no value, for it may be somebody's text."""

    def __repr__(self) -> str:
        told = [name for name in self.__struct_fields__ if getattr(self, name) is not None]
        return f"<{type(self).__name__} of {', '.join(told) or 'nothing'}>"


def told(request: Request) -> dict[str, Any]:
    """Return the fields that are given, by their names in Python; what is nested as plain objects, but a scope."""
    return {
        name: _plain(value)
        for name in request.__struct_fields__
        if (value := getattr(request, name)) is not None
    }


def _plain(value: Any) -> Any:
    if isinstance(value, Request):
        return value if isinstance(value, ForgetScope) else told(value)
    if isinstance(value, list) and any(isinstance(one, Request) for one in value):
        return [_plain(one) for one in value]
    return value


class WeightsInput(Request, frozen=True, kw_only=True):
    """How much words and vectors count in a hybrid recall."""

    lexical: float | None = None
    semantic: float | None = None


class SpaceInput(Request, frozen=True, kw_only=True):
    """The name of a space."""

    principal: str = ""
    scope: str = ""


class ForgetScope(Request, frozen=True, kw_only=True, tag_field="kind"):
    """Which facts a forget means: exactly one kind of scope."""

    @classmethod
    def keyword(cls) -> str:
        """Return its name among the arguments of `Memory.forget`."""
        kind = str(cls.__struct_config__.tag)
        return {"ingestedBefore": "ingested_before", "eventBefore": "event_before"}.get(kind, kind)
