"""Telling two states of one space apart: one that was kept, and one that was built from the records anew.

What is only left of forgotten facts, in either, makes no difference.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import numpy.typing as npt

from perdure.space.idmap import IdMap
from perdure.space.snapshot import BITMAPS, COLUMNS, PLAIN_MAPS, POSTINGS
from perdure.space.state import DEAD, SpaceState

# `owned` may name more in the kept state than it must, and is compared apart.
_EQUAL = (
    "settings",
    "newest_ingest",
    "ends",
    "subjects",
    "annotations",
    "dimension",
    "blocked",
    "block_keys",
    "nodes",
    "conversations",
    *BITMAPS,
    *POSTINGS,
    *(name for name in PLAIN_MAPS if name != "owned"),
)


def differences(kept: SpaceState, built: SpaceState) -> list[str]:
    """Return the names of what differs, in a fixed order; empty when both answer alike."""
    if kept.presence != built.presence:
        return ["presence"]  # all else is by number
    living = np.frombuffer(bytes(built.presence), dtype=np.uint8) != DEAD
    found = [name for name in COLUMNS if not _same_column(kept, built, name, living)]
    found += [name for name in _EQUAL if getattr(kept, name) != getattr(built, name)]
    pairs = (
        ("index", kept.index.dump(), built.index.dump()),
        ("labels", dict(_labels(kept)), dict(_labels(built))),
        ("ids", _pairs(kept.ids, living), _pairs(built.ids, living)),
        ("used_in", _pairs(kept.used_in, living), _pairs(built.used_in, living)),
        ("links", _links(kept), _links(built)),
        ("told links", kept.links.told, built.links.told),
        ("receipts", _receipts(kept), _receipts(built)),
    )
    found += [name for name, one, other in pairs if one != other]
    if any(not set(seqs) <= set(kept.owned.get(number, ())) for number, seqs in built.owned.items()):
        found.append("owned")
    return found


def _same_column(kept: SpaceState, built: SpaceState, name: str, living: npt.NDArray[np.bool_]) -> bool:
    one, other = (
        np.frombuffer(memoryview(getattr(state, name)).cast("B"), dtype=np.int64) for state in (kept, built)
    )
    return len(one) == len(other) == len(living) and bool((one[living] == other[living]).all())


def _labels(state: SpaceState) -> Iterable[tuple[int, list[tuple[str, int]]]]:
    return ((number, state.labels.index.row_terms(row)) for number, row in state.labels.row_of.items())


def _pairs(table: IdMap, living: npt.NDArray[np.bool_]) -> list[tuple[int, int]]:
    hashes, numbers = table.dump()
    pairs = zip(memoryview(hashes).cast("Q").tolist(), memoryview(numbers).cast("i").tolist(), strict=True)
    return sorted((hash_, number) for hash_, number in pairs if number >= 0 and living[number])


def _links(state: SpaceState) -> dict[int, set[Any]]:
    return {older: set(links) for older, links in state.links.above.items()}


def _receipts(state: SpaceState) -> dict[bytes, Any]:
    return {key: (receipt.record, receipt.seq) for key, receipt in state.receipts.items()}
