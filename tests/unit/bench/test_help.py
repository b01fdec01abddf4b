"""Every run of the folder bench says how it is called, and the page that lists them leaves none out."""

from __future__ import annotations

import importlib
import re

import pytest

from source_tree import ROOT

RUNS = sorted(
    path.stem for path in (ROOT / "bench").glob("*.py") if 'if __name__ == "__main__"' in path.read_text()
)


@pytest.mark.parametrize("name", RUNS)
def test_a_run_tells_how_it_is_called_instead_of_running(name, monkeypatch, capsys):
    monkeypatch.setattr("sys.argv", [f"bench/{name}.py", "--help"])
    with pytest.raises(SystemExit) as ended:
        importlib.import_module(f"bench.{name}").main()
    assert ended.value.code == 0
    assert capsys.readouterr().out.startswith("usage: ")


def test_the_readme_lists_every_run():
    page = (ROOT / "README.md").read_text(encoding="utf-8")
    assert sorted(set(re.findall(r"^python -m bench\.(\w+)", page, re.MULTILINE))) == RUNS
