"""Change tokens and the feed of what changed since one.

The sequence counts steps: a change set, or an erasure of nodes or of quotes. A token of an earlier step is held against the
digest of what the store holds of that step, so that a copy that was put in the store's place, and went on from
there, is told apart.
"""

from __future__ import annotations

from collections.abc import Iterator

from perdure.base.instants import to_datetime
from perdure.log.records import NodeRecord
from perdure.model.node_change import ChangeToken, NodeChange, NodeChanges
from perdure.repository_errors import HistoryChanged
from perdure.space.facts import FactReader
from perdure.space.nodes import DIGEST_BYTES, NodeTable, history_of, revision_digest
from perdure.space.state import SpaceState

_WRAP = 1 << (8 * DIGEST_BYTES)
_BATCH = 1_000


class Feed:
    """The steps of one consistent view."""

    def __init__(self, state: SpaceState, reader: FactReader, secret: bytes) -> None:
        self._state, self._reader, self._secret = state, reader, secret
        self._table: NodeTable = state.nodes
        self._history = self._table.history_id(state.settings, secret)

    def token(self) -> ChangeToken:
        """Return the token of what there is."""
        return self._token(self._table.sequence, self._table.digest)

    def since(self, token: ChangeToken | None, limit: int) -> NodeChanges:
        """Return up to `limit` steps after the token's, or after the beginning of this history.

        Raises HistoryChanged where the token is not one of this history.
        """
        after = 0 if token is None else self._place_of(token)
        places = [place for place in sorted(self._table.steps) if place > after]
        last = limit
        # A page ends where its digest can be told: after a step of which something is there.
        while last < len(places) and not self._is_telling(places[last - 1]):
            last += 1
        shown = places[:last]
        items = tuple(self._change(place) for place in shown)
        if last >= len(places):
            return NodeChanges(items, False, self.token())
        digest = self._digest_at(shown[-1])
        assert digest is not None  # the page ends at a telling step
        return NodeChanges(items, True, self._token(shown[-1], digest))

    def _token(self, sequence: int, digest: int) -> ChangeToken:
        return ChangeToken(sequence, self._history.hex(), digest.to_bytes(DIGEST_BYTES, "little").hex())

    def _place_of(self, token: ChangeToken) -> int:
        token.verify()
        if token.history_id != self._history.hex() or token.sequence > self._table.sequence:
            raise HistoryChanged
        if token.sequence == 0:
            told = int.from_bytes(bytes.fromhex(token.head_digest), "little")
            is_same = history_of(self._state.settings, told, self._secret) == self._history
        else:
            digest = self._digest_at(token.sequence)
            is_same = digest is None or self._token(token.sequence, digest) == token
        if not is_same and not self._erased_after(token.sequence):
            raise HistoryChanged
        return token.sequence

    def _erased_after(self, place: int) -> bool:
        return any(step.is_erasure for at, step in self._table.steps.items() if at > place)

    def _change(self, place: int) -> NodeChange:
        step, heads = self._table.steps[place], self._table.heads
        there = [(heads[number], revision) for number, revision in step.nodes if number in heads]
        nodes = tuple(sorted((head.id, revision) for head, revision in there))
        if step.is_erasure:
            return NodeChange(place, "erased", None, nodes, step.forgotten)
        moments = [self._moment(head.seqs[revision - 1]) for head, revision in there[:1]]
        return NodeChange(place, "applied", to_datetime(moments[0]) if moments else None, nodes, 0)

    def _moment(self, seq: int) -> int:
        (record,) = self._reader.records(self._state, [seq])
        assert isinstance(record, NodeRecord)
        return record.recorded_at

    def _is_telling(self, place: int) -> bool:
        heads = self._table.heads
        return any(number in heads for number, _ in self._table.steps[place].nodes)

    def _digest_at(self, place: int) -> int | None:
        """Return the digest, over what lives, of the state after a step; None where that cannot be told."""
        if place == self._table.sequence:
            return self._table.digest
        end = self._last_seq(place)
        if end is None:
            return None
        later = 0
        for record in self._records_after(end):
            later += int.from_bytes(revision_digest(record, self._secret), "little")
        return (self._table.digest - later) % _WRAP

    def _last_seq(self, place: int) -> int | None:
        """Return the last living record of a step or, where it left none, of the last one before that did."""
        heads = self._table.heads
        for at in range(place, 0, -1):
            step = self._table.steps.get(at)
            seqs = [heads[n].seqs[r - 1] for n, r in step.nodes if n in heads] if step else []
            if seqs:
                return max(seqs)
        return None if self._table.history else 0

    def _records_after(self, seq: int) -> Iterator[NodeRecord]:
        seqs = sorted(one for head in self._table.heads.values() for one in head.seqs if one > seq)
        for start in range(0, len(seqs), _BATCH):
            for record in self._reader.records(self._state, seqs[start : start + _BATCH]):
                assert isinstance(record, NodeRecord)
                yield record
