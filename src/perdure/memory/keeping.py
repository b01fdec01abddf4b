"""The configuration that a store keeps: found, replaced, and held against what a caller gives."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from perdure.base.acting import current_actor
from perdure.base.haste import seen_once
from perdure.base.ids import keyed_hash
from perdure.errors import Busy, Conflict, Corrupt, InvalidRequest, Moved, NotFound, Unavailable
from perdure.log.looks import head_of, number_of
from perdure.log.protocol import ANY_ADVICE, EMPTY, Batch, Head, Log
from perdure.log.records import ConfigRecord, RemovalRecord, SpaceRecord, decode, encode
from perdure.memory.config import MemoryConfig
from perdure.model.namespace import CONFIGURATION
from perdure.policies.choices import Choice
from perdure.space.heads import unsettled
from perdure.space.names import hashed_name

ATTEMPTS = 16  # others who wrote, or purged, so often in a row leave a call with Busy


class KeptConfig:
    """The configuration of one store, as one process sees it. Thread-safe.

    It stands in the records of a space that no caller can name: so it is as whole, as durable and as encrypted as
    all else, and every backup, purge and change of key takes it along. The last ConfigRecord of the space holds;
    the ones before are erased with the write that brings it.
    """

    def __init__(self, log: Log, find_number: Callable[[bytes], int | None]) -> None:
        """`find_number` finds a space by its name, as `Names.find` does: it notices one that lost its key."""
        self._log, self._find_number = log, find_number
        self._is_missed = False  # whether no space says that it has the name
        self._name = hashed_name(log.secret, CONFIGURATION)
        self._seen: tuple[int, Head, MemoryConfig | None] = (0, EMPTY, None)
        self._head, self._number = head_of(log), number_of(log)

    def find(self) -> MemoryConfig | None:
        """Return the configuration that the store keeps now, None where it keeps none.

        Raises:
            Unavailable: a newer build kept it, with settings that this one does not know.
            Corrupt: it cannot be read, or no key leads to it.
            Busy: purges overtook the look again and again.
        """
        return seen_once(self, self._find)

    def _find(self) -> MemoryConfig | None:
        number, seen, config = self._seen
        if number and self._head(number) == seen:  # no other space has had that head
            return config
        for left in reversed(range(ATTEMPTS)):
            if not left:  # what fails now although nothing moves is damage
                epoch = self._log.epoch()
            found = self._number(self._name)
            if found is None:
                self._check_missed()
                return None
            number, head = found, self._log.head(found)
            if self._log.find_space(self._name) != number or self._log.epoch() != head.epoch:
                continue  # a purge may have given the number to another space before the head was read
            try:
                first, last = self._log.get(number, [1, head.seq], head)
            except Moved:
                continue
            _check_first(first, number)
            config = _config_of(last, number, head.seq)
            self._seen = (number, head, config)
            return config
        raise unsettled(self._log, self._name, number, head, epoch)

    def put(self, config: MemoryConfig | None, now: int) -> None:
        """Keep a configuration in place of the one before, or none; durable when it returns, all or nothing.

        Writes nothing where that one is kept already. Waits for the writer's turn.

        Args:
            config: what is kept; None for nothing.
            now: the moment, in ms.

        Raises:
            InvalidRequest: it holds what JSON cannot: a policy, embedder, extractor or observer of one's own.
            Busy, StorageFull, Unavailable, Corrupt: nothing was changed.
        """
        data = b"" if config is None else config.to_json()
        for _ in range(ATTEMPTS):
            try:
                with self._log.writer():
                    self._put(data, now)
            except (Conflict, Moved, NotFound):  # of a log whose turn does not reach other processes
                continue
            self._log.scrub()  # of what was replaced; what cannot be done now, the next operation does
            return
        raise Busy(f"other writers were faster {ATTEMPTS} times in a row; retry")

    def _put(self, data: bytes, now: int) -> None:
        number = self._log.find_space(self._name)
        if number is None:
            self._check_missed()
            if not data:
                return
            number = self._log.create_space(self._name, encode(self._first_record(now)))
        head = self._log.head(number)
        _check_first(self._log.get(number, [1], head)[0], number)
        live: dict[int, bytes] = {}
        for seq, told in self._log.read(number, 0, head.seq):
            record = None if told is None else decode(told, space=number, seq=seq)
            if isinstance(record, ConfigRecord):
                live[seq] = record.data
        if (live[max(live)] if live else b"") == data:
            return
        records = [encode(ConfigRecord(data, now, current_actor()))]
        if live:
            records.insert(0, encode(RemovalRecord((), 0, tuple(live), now)))
        self._log.append(number, head, Batch(records, erase=tuple(live)))

    def _check_missed(self) -> None:
        """Raise Corrupt where the space is there and its key, which no check covers, is damaged.

        Reads what all spaces say of their names, once: damage that comes later is found by the next process.
        """
        if self._is_missed:
            return
        try:
            self._find_number(self._name)
        except Corrupt as error:
            if (
                error.seq is None
            ):  # else a memory's first record is damaged: told where that memory is asked for
                raise
        except Unavailable:  # a newer build began a memory, which leaves the others usable
            return
        else:
            self._is_missed = True

    def _first_record(self, now: int) -> SpaceRecord:
        usual, name = MemoryConfig(), CONFIGURATION
        key = keyed_hash(self._log.secret, b"block key", name.key())
        return SpaceRecord(name.principal, name.scope, usual.profile, usual.k1, usual.b, now, key)


def refuse_other(told: MemoryConfig, kept: MemoryConfig) -> None:
    """Raise InvalidRequest, which names the field, where a configuration is another than the one that is kept.

    Extractors and observers, which nothing can keep, may differ.
    """
    for name in (*MemoryConfig.PARAMETERS, *MemoryConfig.CHOICES, "limits"):
        choice = MemoryConfig.CHOICES.get(name)
        ours, theirs = (_comparable(choice, getattr(config, name), name) for config in (told, kept))
        if ours != theirs:
            shown = f" is {ours!r}, but" if name in MemoryConfig.PARAMETERS else " is another than what"
            what = f" the store keeps {theirs!r}" if name in MemoryConfig.PARAMETERS else " the store keeps"
            raise InvalidRequest(
                f"{name}{shown}{what}: leave the configuration out, give the same, or save this one in its place",
                field=name,
            )


def _comparable(choice: Choice[Any] | None, value: Any, name: str) -> Any:
    if choice is None:
        return value
    try:
        return choice.to_plain(value, field=name)
    except InvalidRequest:  # of one's own: like nothing that a store keeps
        return value


def _check_first(data: bytes | None, number: int) -> None:
    """Raise Corrupt where the key of the configuration's space leads to another one."""
    record = None if data is None else decode(data, space=number, seq=1)
    name = (CONFIGURATION.principal, CONFIGURATION.scope)
    if not isinstance(record, SpaceRecord) or (record.principal, record.scope) != name:
        raise Corrupt(f"space {number} is found under a name that is not its own: {ANY_ADVICE}", space=number)


def _config_of(data: bytes | None, number: int, seq: int) -> MemoryConfig | None:
    record = None if data is None else decode(data, space=number, seq=seq)
    if isinstance(record, SpaceRecord):
        return None  # whoever made the space did not come to keep anything in it
    if not isinstance(record, ConfigRecord):
        raise Corrupt(
            f"the configuration that the store keeps cannot be read: {ANY_ADVICE}", space=number, seq=seq
        )
    if not record.data:
        return None
    try:
        return MemoryConfig.from_json(record.data)
    except InvalidRequest as error:
        raise Unavailable(
            f"the store keeps a configuration that this build cannot use ({error.message}): open it with a newer "
            "build, or save another configuration",
            field=error.field,
        ) from error
