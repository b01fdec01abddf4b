"""The image of the server is built from what its build needs, and from nothing that lies about besides."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
FILE = ROOT / ".dockerignore"
pytestmark = pytest.mark.skipif(not FILE.exists(), reason="an archive of the sources makes no image")


def rules() -> list[str]:
    lines = FILE.read_text(encoding="utf-8").splitlines()
    return [line for line in lines if line and not line.startswith("#")]


def pattern_of(rule: str) -> re.Pattern[str]:
    """Return what matches a path, or a folder above it, as builders of images read a rule."""
    parts = re.split(r"(\*\*/|\*)", rule)
    told = "".join({"**/": "(?:.*/)?", "*": "[^/]*"}.get(part, re.escape(part)) for part in parts)
    return re.compile(f"{told}(?:/.*)?")


def is_sent(path: str) -> bool:
    """Whether a file goes to the builder: the last rule that matches says so."""
    sent = True
    for rule in rules():
        if pattern_of(rule.removeprefix("!")).fullmatch(path):
            sent = rule.startswith("!")
    return sent


def test_what_the_build_reads_is_sent():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    named = [project["readme"], *project["license-files"], "pyproject.toml", "setup.py"]
    sources = [
        str(path.relative_to(ROOT))
        for path in (ROOT / "src").rglob("*")
        if path.is_file() and path.suffix in {".py", ".c", ".h", ".pyi", ".json", ".jsonl", ".typed"}
    ]
    assert len(sources) > 300
    assert [path for path in [*named, *sources] if not is_sent(path) and ".egg-info" not in path] == []


def test_nothing_else_is_sent():
    others = (
        *(".venv/bin/python", ".git/config", "build/lib/perdure/store.py", ".hypothesis/unicode_data"),
        *(
            "tests/conftest.py",
            "docs/index.md",
            "bench/server.py",
            "store/store.db",
            "server.token",
            "keys.json",
        ),
        *("src/perdure/__pycache__/store.cpython-311.pyc", "src/perdure/lexical/_kernel.cpython-311.so"),
        "src/perdure.egg-info/PKG-INFO",
    )
    assert [path for path in others if is_sent(path)] == []
