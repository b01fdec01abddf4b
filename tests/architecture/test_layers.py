"""Imports point downwards only, as .importlinter draws them."""

from __future__ import annotations

from importlinter import api as import_linter

from source_tree import ROOT


def test_imports_point_downwards_and_only_the_store_names_a_backend(monkeypatch, capsys):
    monkeypatch.chdir(ROOT)
    kept = import_linter.use_cases.lint_imports(cache_dir=None, no_logo=True)
    assert kept, capsys.readouterr().out
