"""Trials of one's own: scenarios with known answers, run on a memory and measured."""

from perdure.evaluation.comparing import Difference, compare
from perdure.evaluation.metrics import METRICS, mean_scores, score
from perdure.evaluation.reading import read_file, read_scenario
from perdure.evaluation.reporting import comparison_object, run_object
from perdure.evaluation.running import Answer, Run, Trial, run
from perdure.evaluation.scenario import Case, Scenario, Step

__all__ = [
    "METRICS",
    "Answer",
    "Case",
    "Difference",
    "Run",
    "Scenario",
    "Step",
    "Trial",
    "compare",
    "comparison_object",
    "mean_scores",
    "read_file",
    "read_scenario",
    "run",
    "run_object",
    "score",
]
