"""A store that may not be written: what cannot be done says so, nothing is lost, all works when it may be again."""

import json
import os

import pytest

import forked
from perdure import Memory

pytestmark = pytest.mark.skipif(os.name != "posix", reason="modes of files are POSIX")
UNSUPPORTED = 77


def run(*arguments):
    process = forked.run("from crash.read_only import main; main()", *arguments, text=True, timeout=120)
    if process.returncode == UNSUPPORTED:
        pytest.skip("the superuser's right to write anywhere cannot be given up here")
    assert process.returncode == 0, process.stderr
    return json.loads(process.stdout)


@pytest.fixture
def directory(tmp_path):
    with Memory.open(tmp_path / "store") as memory:
        memory.remember("The kettle is blue", id="kettle")
        memory.remember("The saucer is green", id="saucer")
    return tmp_path / "store"


@pytest.mark.parametrize("folder", ["500", "700"])
def test_a_store_of_read_only_files_does_not_open_and_is_left_as_it_is(directory, folder):
    before = sorted(path.name for path in directory.iterdir())
    told = run("opened", directory, "400", folder)
    code, message = told["open"]
    assert code == "unavailable"
    assert "check that this user may write there" in message
    assert told["names"] == before
    assert told["later"] == "ok"


def test_a_store_in_a_read_only_directory_can_be_read(directory):
    assert run("opened", directory, "600", "500")["open"] == "ok"
    with Memory.open(directory) as memory:
        assert [hit.id for hit in memory.recall("kettle")] == ["kettle"]


def test_a_store_cannot_be_made_in_a_read_only_directory(tmp_path):
    code, message = run("created", tmp_path / "parent" / "store")["open"]
    assert code == "unavailable"
    assert "check that this user may write there" in message
    assert list((tmp_path / "parent").iterdir()) == []


@pytest.mark.parametrize(("files", "folder"), [("600", "500"), ("400", "500")])
def test_a_store_that_becomes_read_only_while_it_is_open_goes_on_reading_and_loses_nothing(
    directory, files, folder
):
    told = run("used", directory, files, folder)
    for name in ("recall", "list", "stats", "later", "purged"):
        assert told[name] == "ok"
    for name in ("forget", "purge", "backup", "backup to"):
        code, message = told[name]
        assert code == "unavailable"
        assert "writ" in message
    assert (told["health"], told["scrub"]) == ("unavailable", True)
    assert not (directory.parent / "copy").exists()
    with Memory.open(directory) as memory:
        assert memory.get("kettle") is not None
        assert len(memory.recall("cup")) == 1
        assert (len(memory.recall("teapot")) == 1) == (told["remember"] == "ok")
