"""The error of an endpoint that gives no vectors."""

from __future__ import annotations

from perdure.errors import Unavailable


def unavailable(what: str, **details: object) -> Unavailable:
    """Return the error of an endpoint. It names neither a text nor anything that the endpoint said."""
    return Unavailable(f"the embedding endpoint {what}", field="embedder", **details)
