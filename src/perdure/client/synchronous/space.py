# Made of perdure/client/asynchronous/space.py by scripts/unasync.py: change that file, and run it.
"""What the memory and the documents of a space have in common."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

from perdure.client.calling import checked_plain
from perdure.client.settings import Space
from perdure.client.synchronous.exchange import Exchange
from perdure.contract.decoding import operation_of
from perdure.contract.reading import read_capabilities
from perdure.contract.replies import CapabilitiesReply
from perdure.errors import InvalidRequest

R = TypeVar("R")


class ClientSpace:
    """A space of the server's store, and how it is reached."""

    def __init__(self, exchange: Exchange, space: Space) -> None:
        self._exchange, self._space = exchange, space
        self._mask = exchange.settings.mask
        self._mask_may_be_used = self._mask is None

    def _call(self, name: str, request: dict[str, Any], kind: type[R]) -> R:
        if not self._mask_may_be_used:
            self._check_mask()
        return self._exchange.call(name, request, kind, self._space)

    def _check_mask(self) -> None:
        """Refuse a mask where the server embeds texts itself: its vectors and masked ones have nothing in common."""
        told = self._exchange.call("capabilities", {}, CapabilitiesReply, self._space)
        model = read_capabilities(told).features.embedder_model
        if model is not None:
            raise InvalidRequest(
                "the server embeds texts itself, and no mask reaches those vectors; serve without an embedder, or leave "
                "vector_mask out",
                field="vector_mask",
            )
        self._mask_may_be_used = True

    def _call_plain(self, op: str, request: Mapping[str, Any], group: str) -> dict[str, Any]:
        if self._mask is not None:
            raise InvalidRequest(
                "call sends requests as they are, and vector_mask would not reach their embeddings; use the methods",
                field="vector_mask",
            )
        operation = operation_of(op, group)
        return self._exchange.call(operation.name, checked_plain(request), dict, self._space)

    def _check_mode(self, told: Mapping[str, Any]) -> None:
        if (
            self._mask is not None
            and told.get("mode") in ("semantic", "hybrid")
            and told.get("embedding") is None
        ):
            raise InvalidRequest(
                f"mode {told['mode']} needs an embedding of the query where vectors are masked; give embedding",
                field="embedding",
            )

    def __repr__(self) -> str:
        return f"<{type(self).__name__} of {self._exchange.settings.url}>"
