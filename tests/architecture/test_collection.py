"""Every process collects the same tests in the same order, so that they can be spread over several."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from source_tree import ROOT

FILES = sorted((ROOT / "tests").rglob("test_*.py"))


def _unordered(values: ast.expr) -> bool:
    if isinstance(values, ast.BinOp):
        return isinstance(values.op, ast.Sub | ast.BitAnd | ast.BitOr | ast.BitXor)
    if isinstance(values, ast.Call):
        return isinstance(values.func, ast.Name) and values.func.id in ("set", "frozenset")
    return isinstance(values, ast.Set | ast.SetComp)


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_no_test_takes_its_parameters_out_of_a_set(path: Path):
    calls = [
        node for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))) if isinstance(node, ast.Call)
    ]
    named = [
        call for call in calls if isinstance(call.func, ast.Attribute) and call.func.attr == "parametrize"
    ]
    assert [call.lineno for call in named if len(call.args) > 1 and _unordered(call.args[1])] == []
