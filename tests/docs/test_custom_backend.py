"""The log of the page custom-backend.md, as a reader would copy it, keeps the contract of all logs."""

import os
import sys
import types

import pytest

from markdown_page import blocks
from perdure import Store
from perdure.errors import Corrupt, Unavailable
from perdure.log.protocol import Batch
from source_tree import ROOT

PAGE = ROOT / "docs" / "howto" / "custom-backend.md"


def load_page():
    """Run the page's Python as one module and return it."""
    module = types.ModuleType("custom_backend_page")
    sys.modules[module.__name__] = module  # where the page's classes look up their annotations
    for block in blocks(PAGE):
        if block.language == "python":
            exec(compile("\n" * (block.line - 1) + block.text, str(PAGE), "exec"), module.__dict__)
    return module


page = load_page()
TestFileLog = page.TestFileLog
NAME = b"n" * 16


@pytest.fixture
def path(tmp_path):
    return tmp_path / "store"


def opened(path):
    return page.ContentLog(page.FileMedium(path))


def told(log):
    return [entry.data for entry in log.read(1, 0, log.head(1).seq)]


def test_the_log_that_the_page_builds_takes_about_75_lines():
    block = next(block for block in blocks(PAGE) if "class FileMedium" in block.text)
    assert sum(bool(line.strip()) for line in block.text.splitlines()) <= 80


def test_a_memory_over_the_log_of_the_page_remembers_and_forgets_for_good(path):
    with Store.open(log=opened(path)) as store:
        memory = store.memory("alice")
        kept = memory.remember("The kettle is blue")
        gone = memory.remember("The teapot is green")
        memory.forget(ids=[gone.id])
    with Store.open(log=opened(path)) as store:
        assert [hit.id for hit in store.memory("alice").recall("kettle teapot")] == [kept.id]
    assert {file.name for file in path.parent.iterdir() if b"teapot" in file.read_bytes()} == set()


@pytest.mark.parametrize("step", range(3))
def test_a_change_of_the_log_of_the_page_that_fails_at_any_step_is_not_made(path, monkeypatch, step):
    log = opened(path)
    log.create_space(NAME, b"first")
    left = [step]

    def failing(call):
        def wrapped(*arguments):
            left[0] -= 1
            if left[0] < 0:
                left[0] = 1_000
                raise OSError(5, "injected")
            return call(*arguments)

        return wrapped

    with monkeypatch.context() as patched:
        patched.setattr(page.os, "replace", failing(os.replace))
        patched.setattr(page, "sync_directory", failing(page.sync_directory))
        with pytest.raises(Unavailable, match="injected"):
            log.append(1, log.head(1), Batch(records=[b"second"]))
    assert told(log) == told(opened(path)) == [b"first"]
    log.append(1, log.head(1), Batch(records=[b"second"]))
    assert told(opened(path)) == [b"first", b"second"]


def test_the_log_of_the_page_tells_a_damaged_file(path):
    log = opened(path)
    log.create_space(NAME, b"first")
    whole = path.read_bytes()
    path.write_bytes(whole[:-1] + bytes([whole[-1] ^ 1]))
    with pytest.raises(Corrupt, match="backup"):
        log.head(1)
