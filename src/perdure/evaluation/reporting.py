"""Runs and comparisons as plain objects of JSON and as rows of a table."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from perdure.contract.wire import explanation_object
from perdure.evaluation.comparing import Difference
from perdure.evaluation.metrics import METRICS
from perdure.evaluation.running import Answer, Run, Why
from perdure.importers.entries import Place

ALL = "(all)"
NOTHING = "-"


def run_object(run: Run, *, why: bool = False) -> dict[str, Any]:
    """Return means over all cases and by category, and each case that missed something or gave what it must not.

    Args:
        why: the explanations too, which hold texts.
    """
    categories = {name: _means(run, name) for name in run.categories}
    told: dict[str, Any] = {"all": _means(run, None), "categories": categories}
    failed = [answer for answer in run.answers if is_failed(answer)]
    told["failures"] = [_failure(answer, why=why) for answer in failed]
    return told


def is_failed(answer: Answer) -> bool:
    """Whether an expected fact is missing or out of its order, or one came back that must not."""
    return bool(answer.missed or answer.unwanted) or answer.scores.get("order") == 0


def comparison_object(differences: Sequence[Difference]) -> list[dict[str, Any]]:
    """Return each difference with its 95 % interval; `category` is null for all cases."""
    return [
        {
            "category": one.category,
            "metric": one.metric,
            "cases": one.cases,
            "first": one.first,
            "second": one.second,
            "difference": one.difference,
            "interval": [one.low, one.high],
        }
        for one in differences
    ]


def run_rows(run: Run) -> tuple[list[str], list[list[str]]]:
    """Return the headers and rows of a run's table: a row per category and one for all, the name last."""
    overall = run.means()
    metrics = [name for name in METRICS if name in overall]
    rows = []
    for category in (*run.categories, None):
        means = run.means(category)
        values = [f"{means[name]:.3f}" if name in means else NOTHING for name in metrics]
        rows.append([str(len(run.of(category))), *values, ALL if category is None else category])
    return ["cases", *metrics, "category"], rows


def comparison_rows(differences: Sequence[Difference]) -> tuple[list[str], list[list[str]]]:
    """Return the headers and rows of a comparison's table."""
    rows = [
        [
            one.metric,
            str(one.cases),
            f"{one.first:.3f}",
            f"{one.second:.3f}",
            f"{one.difference:+.3f}",
            f"{one.low:+.3f} to {one.high:+.3f}",
            ALL if one.category is None else one.category,
        ]
        for one in differences
    ]
    return ["metric", "cases", "first", "second", "difference", "95 % interval", "category"], rows


def _means(run: Run, category: str | None) -> dict[str, Any]:
    return {"cases": len(run.of(category)), **run.means(category)}


def _failure(answer: Answer, *, why: bool) -> dict[str, Any]:
    case = answer.case
    told: dict[str, Any] = {
        **place_object(case.place),
        "name": case.name,
        "category": case.category,
        "returned": list(answer.returned),
        "missed": list(answer.missed),
        "unwanted": list(answer.unwanted),
    }
    if why:
        told["why"] = [_reason(reason) for reason in answer.reasons]
    return told


def _reason(why: Why) -> dict[str, Any]:
    explanation = None if why.explanation is None else explanation_object(why.explanation)
    return {"id": why.id, "expected": why.expected, "explanation": explanation}


def place_object(place: Place) -> dict[str, Any]:
    return {"file": place.file, "line": place.line, "entry": place.entry}
