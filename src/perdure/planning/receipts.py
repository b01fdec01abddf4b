"""Idempotency keys: a replay gives the first answer; another request under the key is a conflict."""

from __future__ import annotations

from perdure.base.ids import keyed_hash
from perdure.errors import Conflict, NotFound
from perdure.log.records import ReceiptItem, ReceiptRecord
from perdure.space.draft import Draft

DAY_MS = 86_400_000


class Keyed:
    """An operation called with an idempotency key: the key and the request it stands for."""

    def __init__(self, operation: str, key: str | None, request: bytes, receipt_days: int) -> None:
        self.operation, self.key, self._request = operation, key, request
        self._lifetime = receipt_days * DAY_MS
        self.count = 0  # of the first answer, once `find` has found it

    def find(self, draft: Draft) -> tuple[ReceiptItem, ...] | None:
        """Return the items of the first answer, or None when the key is unused (or expired).

        Raises:
            Conflict: the key was used with another request.
            NotFound: a fact of the first answer was forgotten since.
        """
        if self.key is None:
            return None
        receipt = draft.receipt(draft.receipt_key(self.operation, self.key))
        if receipt is None or receipt.record.recorded_at + self._lifetime < draft.now:
            return None
        if receipt.record.lost:
            raise NotFound(
                "what this idempotency key stored was forgotten since; use another key to store it anew",
                field="idempotency_key",
                reason="forgotten",
            )
        if receipt.record.request != self._digest(draft):
            raise Conflict(
                "this idempotency key was used with another request; use a new key for a new request",
                kind="idempotency",
                field="idempotency_key",
            )
        self.count = receipt.record.count
        return receipt.record.items

    def keep(self, draft: Draft, items: tuple[ReceiptItem, ...], *, count: int = 0) -> None:
        """Keep the answer in the same transaction, if there is a key."""
        if self.key is not None:
            draft.add(
                ReceiptRecord(
                    self.operation,
                    draft.receipt_key(self.operation, self.key),
                    self._digest(draft),
                    items,
                    draft.now,
                    count=count,
                )
            )

    def _digest(self, draft: Draft) -> bytes:
        return keyed_hash(draft.secret, b"request", self._request)


def lose_receipts(draft: Draft, numbers: set[int]) -> None:
    """Replace the receipts that name these facts: the key stays known, the answer is gone."""
    for key, receipt in draft.state.receipts.items():
        record = receipt.record
        if not record.lost and any(item.number in numbers for item in record.items):
            draft.add(ReceiptRecord(record.operation, key, b"", (), record.recorded_at, lost=True))
