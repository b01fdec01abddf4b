"""Which facts of a space were hidden once and restored: an import does not hide them again."""

from __future__ import annotations

from pyroaring import BitMap

from perdure.log.protocol import Log
from perdure.log.records import RestoreRecord, decode
from perdure.space.state import SpaceState


class Restored:
    """Reads the log of one space for it, and reads on from where it was.

    No state keeps this: it is asked for only where a file hides a fact that was there before. A purge drops it
    from the log.
    """

    def __init__(self, log: Log) -> None:
        self._log, self._seq, self._numbers = log, 0, BitMap()

    def of(self, state: SpaceState) -> BitMap:
        """Return the numbers of all facts that were restored up to the state's head; it must not be changed.

        The space must be the same one, of the same epoch, at each call.
        """
        seq = state.head.seq
        if state.number and self._seq < seq:
            for entry in self._log.read(state.number, self._seq, seq):
                if entry.data is None:
                    continue
                record = decode(entry.data, space=state.number, seq=entry.seq)
                if isinstance(record, RestoreRecord):
                    self._numbers.update(record.numbers)
            self._seq = seq
        return self._numbers
