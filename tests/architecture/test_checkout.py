"""What the tests import is what this checkout holds."""

from __future__ import annotations

from pathlib import Path

import perdure
from source_tree import SOURCES, modules, name_of


def test_the_installed_package_is_this_checkout():
    installed = Path(perdure.__file__).parent
    if installed == SOURCES:
        return
    theirs = {path.relative_to(installed).as_posix(): path for path in installed.rglob("*.py")}
    ours = {name_of(path): path for path in modules()}
    assert set(theirs) == set(ours), "install again: pip install '.[test]'"
    stale = [name for name, path in ours.items() if path.read_bytes() != theirs[name].read_bytes()]
    assert stale == [], "install again: pip install '.[test]'"


def test_the_package_says_that_it_is_typed():
    assert (Path(perdure.__file__).parent / "py.typed").is_file()
