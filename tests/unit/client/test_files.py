"""Exports come whole or not at all; what is imported is read in parts, from wherever it is."""

from __future__ import annotations

import io
import stat

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perdure import InvalidRequest, Unavailable
from perdure.client import Client
from perdure.client.files import Lines, Partial, parts_of
from perdure.model.stores import Exported
from unit.client.stub import answer, serving
from unit.client.waiting import WaitingClient

BOTH = pytest.mark.parametrize("make", [Client, WaitingClient])
FILE = (
    b'{"format":"perdure-export","version":1}\n'
    b'{"type":"space","principal":"a","scope":""}\n'
    b'{"type":"fact","text":"\xe2\x80\xa8 {\\"type\\":\\"total\\""}\n'
    b'{"type":"space-end","facts":1,"documents":2,"records":3}\n'
    b'{"type":"total","spaces":1,"records":3}\n'
)


@given(st.lists(st.integers(0, len(FILE))).map(sorted))
def test_lines_are_the_same_however_the_bytes_come(cuts):
    lines, found = Lines(), []
    for start, end in zip([0, *cuts], [*cuts, len(FILE)], strict=True):
        found += lines.feed(FILE[start:end])
    assert found == FILE.splitlines(keepends=True)
    assert lines.counted() == Exported(1, 3, 3, len(FILE))


@BOTH
@pytest.mark.parametrize("end", [0, 10, FILE.index(b'{"type":"total"'), len(FILE) - 1])
def test_an_export_that_was_cut_off_leaves_no_file(make, tmp_path, end):
    with serving(answer(FILE[:end])) as stub, make(stub.url) as client:
        with pytest.raises(Unavailable, match="broke off"):
            client.store.export(tmp_path / "file")
        with pytest.raises(Unavailable, match="broke off"):
            list(client.store.export_lines())
    assert list(tmp_path.iterdir()) == []


@BOTH
def test_an_export_is_a_file_of_its_owner_alone(make, tmp_path):
    with serving(answer(FILE)) as stub, make(stub.url) as client:
        assert client.store.export(tmp_path / "file") == Exported(1, 3, 3, len(FILE))
        assert list(client.store.export_lines()) == FILE.splitlines(keepends=True)
    assert (tmp_path / "file").read_bytes() == FILE
    assert stat.S_IMODE((tmp_path / "file").stat().st_mode) == 0o600


@BOTH
def test_a_file_that_is_there_is_written_over_only_by_force(make, tmp_path):
    taken = tmp_path / "file"
    taken.write_text("mine")
    with serving(answer(FILE)) as stub, make(stub.url) as client:
        with pytest.raises(InvalidRequest) as refused:
            client.store.export(taken)
        assert (refused.value.field, taken.read_text(), stub.asked) == ("path", "mine", [])
        client.store.export(str(taken), force=True)
        assert taken.read_bytes() == FILE


def test_a_folder_and_a_link_are_never_written_over(tmp_path):
    (tmp_path / "link").symlink_to(tmp_path / "elsewhere")
    for place in (tmp_path, tmp_path / "link"):
        with pytest.raises(InvalidRequest):
            Partial(place, force=True)
    assert not (tmp_path / "elsewhere").exists()


@pytest.mark.parametrize(("path", "force"), [("", False), (5, False), ("file", 1)])
def test_a_path_and_its_force_are_checked(path, force):
    with pytest.raises(InvalidRequest):
        Partial(path, force=force)


def test_a_place_that_cannot_be_written_is_unavailable(tmp_path):
    with pytest.raises(Unavailable, match="No such file"):
        Partial(tmp_path / "nowhere" / "file", force=False)


def test_what_came_into_being_meanwhile_stays(tmp_path):
    place = tmp_path / "file"
    with Partial(place, force=False) as file:
        file.write(b"export")
        place.write_text("mine")
        with pytest.raises(InvalidRequest):
            file.finish()
    assert [path.name for path in tmp_path.iterdir()] == ["file"]
    assert place.read_text() == "mine"


@pytest.mark.parametrize(
    "make",
    [
        lambda path: path,
        str,
        lambda path: path.open("rb"),
        lambda path: io.BytesIO(path.read_bytes()),
        lambda path: path.read_bytes().splitlines(keepends=True),
        lambda path: iter([path.read_bytes()]),
    ],
    ids=["path", "name", "file", "stream", "lines", "iterator"],
)
def test_an_import_is_read_from_wherever_it_is(tmp_path, make):
    path = tmp_path / "file"
    path.write_bytes(FILE * 1_000)
    source = make(path)
    assert b"".join(parts_of(source)) == FILE * 1_000
    if hasattr(source, "close"):
        assert not source.closed
        source.close()


@pytest.mark.parametrize("source", [b"bytes", 5, None, ["text"], io.StringIO("text"), [5]])
def test_what_gives_no_bytes_is_refused(source):
    with pytest.raises(InvalidRequest) as refused:
        list(parts_of(source))
    assert refused.value.field == "source"


def test_a_file_that_is_not_there_is_unavailable(tmp_path):
    with pytest.raises(Unavailable):
        parts_of(tmp_path / "nothing")
