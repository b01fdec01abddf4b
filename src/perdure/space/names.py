"""Spaces by name, held against what the spaces themselves say: a key that leads elsewhere is damage."""

from __future__ import annotations

import threading

from perdure.base.ids import keyed_hash
from perdure.errors import Busy, Corrupt, Moved
from perdure.log.protocol import ANY_ADVICE, Head, Log
from perdure.log.records import GoneRecord, SpaceRecord, decode
from perdure.model.namespace import Namespace

ATTEMPTS = 3  # a look that erasures overtook so often in a row gives up with Busy


def hashed_name(secret: bytes, namespace: Namespace) -> bytes:
    """Return the hash under which a log knows a space."""
    return keyed_hash(secret, b"space", namespace.key())


class Names:
    """Finds spaces for one process. Thread-safe.

    The keys that lead from names to spaces have no checksum, so that a damaged one is merely not found, or
    leads to another's space. What is found is asked for its name; before a name counts as unknown it is
    compared with what all spaces say in record 1, each read once.
    """

    def __init__(self, log: Log) -> None:
        self._log = log
        self._lock = threading.Lock()
        self._told: dict[bytes, int] = {}  # the spaces 1 to _last by what they say
        self._last = 0
        self._epoch = 0  # in which they had these numbers

    def find(self, name: bytes) -> int | None:
        """Return the number of the space of this hashed name, or None when there is none.

        Reads the first records of all spaces when a name is unknown for the first time, later those of
        spaces that are new since; else it costs a few look-ups.

        Raises:
            Corrupt: a space has this name but is not found under it, another one is, or a first record that
                was read is damaged.
            Busy: erasures overtook the look again and again.
        """
        for _ in range(ATTEMPTS):
            epoch, number = self._log.epoch(), self._log.find_space(name)
            if number is None:
                return self._find_lost(name)
            if self._name(number, self._log.head(number)) in (name, None):
                return number
            if self._log.epoch() == epoch:  # else a purge gave the number to another space
                raise Corrupt(
                    f"space {number} is found under a name that is not its own: {ANY_ADVICE}",
                    space=number,
                )
        raise Busy("the store is being purged again and again; retry")

    def _find_lost(self, name: bytes) -> int | None:
        """As `find`, where the log finds no space of this name."""
        with self._lock:
            self._look()
            lost = self._told.get(name)
            if lost is None:
                return None
            number = self._log.find_space(name)  # it may have been created between the two looks
            if number is None and self._name(lost, self._log.head(lost)) == name:
                raise Corrupt(
                    f"space {lost} is not found under its name, or store.lock is that of another store: {ANY_ADVICE}",
                    space=lost,
                )
        return number

    def _look(self) -> None:
        """Read the names of the spaces that were not looked at yet."""
        if self._last and self._log.head(self._last).epoch != self._epoch:
            self._told, self._last = {}, 0  # a purge gave spaces other numbers
        while (head := self._log.head(self._last + 1)).seq:
            name = self._name(self._last + 1, head)
            if name is not None:
                self._told[name] = self._last + 1
            self._last, self._epoch = self._last + 1, head.epoch

    def _name(self, number: int, head: Head) -> bytes | None:
        """Return the hashed name that a space says it has; None when it was purged or erased whole."""
        for _ in range(ATTEMPTS):
            if not head.seq:
                return None
            try:
                data, last = self._log.get(number, [1, head.seq], head)
            except Moved:
                head = self._log.head(number)
                continue
            if data is None and _is_end(last, number, head.seq):
                return None
            record = None if data is None else decode(data, space=number, seq=1)
            if not isinstance(record, SpaceRecord):
                raise Corrupt(
                    f"the first record of space {number} is damaged: {ANY_ADVICE}", space=number, seq=1
                )
            return hashed_name(self._log.secret, Namespace(record.principal, record.scope))
        raise Busy("the store is being erased from again and again; retry")


def _is_end(data: bytes | None, space: int, seq: int) -> bool:
    return data is not None and isinstance(decode(data, space=space, seq=seq), GoneRecord)
