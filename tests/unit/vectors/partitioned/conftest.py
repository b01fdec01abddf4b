"""Every index that must behave alike: in memory, in a file, in an encrypted file."""

from __future__ import annotations

import pytest

from perdure.vectors import PartitionedVectorIndex

KEY = bytes(range(32))


@pytest.fixture(params=["memory", "sqlite", "encrypted"])
def make(request, tmp_path):
    """Return a function that makes an empty index; all are closed at the end."""
    made = []

    def make_index(descriptor):
        if request.param == "memory":
            index = PartitionedVectorIndex.in_memory(descriptor)
        else:
            key = KEY if request.param == "encrypted" else None
            index = PartitionedVectorIndex.open(tmp_path / f"{len(made)}.vectors", descriptor, key=key)
        made.append(index)
        return index

    yield make_index
    for index in made:
        index.close()
