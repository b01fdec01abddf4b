"""The checksums of a space's records, by which a state knows whether what a log holds is what it was made of."""

from __future__ import annotations

from collections.abc import Iterable

from perdure.log.digests import ERASED_CHECK
from perdure.log.protocol import CHECK_BYTES


class Checks:
    """The checksum of each record from 1 on, 16 bytes each; zeros where the record was erased."""

    __slots__ = ("_data",)

    def __init__(self, data: bytes = b"") -> None:
        self._data = bytearray(data)

    def __len__(self) -> int:
        return len(self._data) // CHECK_BYTES

    def extend(self, checks: bytes) -> None:
        """Add the checksums of the next records, one after the other."""
        self._data += checks

    def of(self, seq: int) -> bytes:
        """Return a record's checksum; nothing of one that is not known here."""
        return bytes(self._data[(seq - 1) * CHECK_BYTES : seq * CHECK_BYTES]) if seq > 0 else b""

    def erase(self, seqs: Iterable[int]) -> None:
        """Let go of the checksums of erased records: one would tell whether a guess at the text is right."""
        for seq in seqs:
            if 0 < seq <= len(self):
                self._data[(seq - 1) * CHECK_BYTES : seq * CHECK_BYTES] = ERASED_CHECK

    def live(self, seqs: Iterable[int]) -> list[tuple[int, bytes]]:
        """Return (seq, checksum) of those of the records that are known here and were not erased."""
        found = ((seq, self.of(seq)) for seq in seqs)
        return [(seq, check) for seq, check in found if check and check != ERASED_CHECK]

    def differ(self, seq: int, check: bytes) -> bool:
        """Whether a record of this checksum is another than the one that is known here."""
        known = self.of(seq)
        return bool(known) and known not in (check, ERASED_CHECK)

    def dump(self) -> bytes:
        """Return all of them, one after the other."""
        return bytes(self._data)
