"""The scanner finds what it is for, so that its silence means something."""

from __future__ import annotations

import base64

import pytest

from erasure.scan import CHUNK_BYTES, forms_of, found, holders

MARKER = "Xqzcanaryings 鰭鱗鯨鮫"
PLACED = {
    "as told": MARKER.encode(),
    "lower case": MARKER.lower().encode(),
    "UTF-16, little-endian": MARKER.encode("utf-16-le"),
    "UTF-16, big-endian": MARKER.lower().encode("utf-16-be"),
    "stem": b"xqzcanari",
    "bigram": "鱗鯨".encode(),
    "ten bytes": MARKER.encode()[:10],
    "base64, begun anywhere": base64.b64encode(b"." + MARKER.encode() + b"."),
    "base64, begun elsewhere": base64.b64encode(b".." + MARKER.encode() + b".."),
    "base64, begun with it": base64.b64encode(MARKER.encode()),
    "hexadecimal": MARKER.encode().hex().encode(),
}


@pytest.mark.parametrize("placed", PLACED.values(), ids=PLACED)
@pytest.mark.parametrize("before", [0, 1000])
def test_each_form_of_a_marker_is_found_in_a_file_of_other_bytes(tmp_path, placed, before):
    (tmp_path / "clean").write_bytes(bytes(range(256)) * 20)
    (tmp_path / "below").mkdir()
    (tmp_path / "below" / "file").write_bytes(b"\xff" * before + placed + b"\xff" * 1000)
    assert list(holders(tmp_path, MARKER)) == ["below/file"]


def test_what_stands_across_the_borders_of_the_scanners_own_reads_is_found(tmp_path):
    (tmp_path / "file").write_bytes(b"\0" * (CHUNK_BYTES - 3) + MARKER.encode() + b"\0" * 10)
    assert "utf-8" in holders(tmp_path, MARKER)["file"]


def test_a_file_without_the_marker_is_clean(tmp_path):
    (tmp_path / "file").write_bytes(b"another text " * 1000)
    assert holders(tmp_path, MARKER) == {}
    assert found(tmp_path, {"text": b"another"}) == {"file": ["text"]}
    assert min(map(len, forms_of(MARKER).values())) >= 6


def test_what_was_clean_before_is_searched_again_and_a_copy_of_it_is_found_as_well(tmp_path):
    clean, copies = bytes(2 * CHUNK_BYTES), ("file", "other", "third")
    for name in copies:
        (tmp_path / name).write_bytes(clean)
    assert holders(tmp_path, MARKER) == {}
    (tmp_path / "other").write_bytes(clean[:-1000] + MARKER.encode() + clean[-1000:])
    assert list(holders(tmp_path, MARKER)) == ["other"]
    (tmp_path / "file").write_bytes((tmp_path / "other").read_bytes())
    assert list(holders(tmp_path, MARKER)) == ["file", "other"]
    assert found(tmp_path, {"zeros": bytes(9)}) == {name: ["zeros"] for name in copies}
    assert list(holders(tmp_path, MARKER)) == ["file", "other"]
