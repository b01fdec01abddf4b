"""The command that tries a configuration on scenarios with known answers."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Annotated, Any

import typer

from perdure.base.text import counted
from perdure.cli import options as o
from perdure.cli.drawing import REASONS
from perdure.cli.facts import score
from perdure.cli.failures import Failed, complain
from perdure.cli.progress import progress_bar
from perdure.cli.screen import Screen, print_json
from perdure.cli.session import Session, command, read_config
from perdure.errors import InvalidRequest

if TYPE_CHECKING:
    from perdure.evaluation.comparing import Difference
    from perdure.evaluation.running import Answer, Run, Trial, Why
    from perdure.evaluation.scenario import Scenario

_MINIMUM = re.compile(r"([\w@]+)=(\d{1,6}(?:\.\d{1,6})?|\.\d{1,6})", re.ASCII)

FilesArgument = Annotated[
    list[str], typer.Argument(metavar="FILE...", help="Scenarios as JSON Lines or JSON; - is standard input.")
]
Options = Annotated[
    str | None,
    typer.Option(
        "--options",
        metavar="JSON",
        help='Options of recall for every case, like {"k":5}; its own come first.',
    ),
]
Compare = Annotated[
    str | None,
    typer.Option("--compare", metavar="FILE", help="A second configuration, to compare with --config."),
]
CompareOptions = Annotated[
    str | None,
    typer.Option(
        "--compare-options",
        metavar="JSON",
        help="Options of recall for a second run, to compare with the first.",
    ),
]
Minimum = Annotated[
    list[str] | None,
    typer.Option("--min", metavar="METRIC=VALUE", help="Fail where the mean is lower; repeatable."),
]
WhyFlag = Annotated[
    bool, typer.Option("--why", help="Explain each fact that was missed or must not have come back.")
]
OnStore = Annotated[
    bool, typer.Option("--on-store", help="Ask the memory of --store; the files hold cases alone.")
]


def add_to(app: typer.Typer) -> None:
    command(app, "eval")(evaluate)


def evaluate(  # noqa: PLR0913 - one parameter per option
    session: Session,
    files: FilesArgument,
    *,
    options: Options = None,
    compare: Compare = None,
    compare_options: CompareOptions = None,
    minimum: Minimum = None,
    why: WhyFlag = False,
    on_store: OnStore = False,
) -> None:
    """Try a configuration on scenarios with known answers, and measure.

    Tells scenarios to memories of their own, and asks their cases.

    Nothing is kept: each file has a store in memory, whose clock stands at 2000-01-01 until an entry sets it. An
    entry is an object of one of these forms:

    \b
      {"clock": TIME}                       set the clock; any entry may have it
      {"remember": FACT or [FACT, …]}       a text, or an object as in import
      {"correct": {"id": …, "newText": …}}  end, retract, annotate, … as well
      {"query": TEXT, "expect": [ID, …]}    a case, asked where it stands

    A case may have options (of recall, like {"asOf": TIME, "k": 3}), ordered (true where the order of expect counts),
    absent (ids that must not come back), category and name; an empty expect means that nothing comes back. Any entry
    may have a note.

    \b
    Metrics are means from 0 to 1 over the cases that have them:
      R@1 R@5 R@10        share of the expected facts among the first 1, 5, 10
      hit@1 hit@5 hit@10  one of them is there
      nDCG@10 MRR         how near the top they stand
      exact               exactly the expected facts came back
      order               all came back in their order (ordered cases)
      absent              nothing came back that must not

    With --compare or --compare-options the cases are run a second time; a difference is second minus first, with
    the 95 % interval of a paired bootstrap (10,000 rounds, always the same ones).

    Exit code 1 where a --min is missed or a fact came back that must not, in the first run alone; 2 where a file
    cannot be read or is wrong, or an option is.

    \b
    Examples:
      perdure eval scenarios.jsonl --config memory.json --min R@5=0.9
      perdure eval scenarios.jsonl --compare other.json --why
    """
    from perdure.evaluation.running import Trial  # noqa: PLC0415 - help must not wait for it
    from perdure.memory.config import MemoryConfig  # noqa: PLC0415

    least = _minima(minimum or [])
    first_options = _Told("options", options)
    first = Trial(session.config or MemoryConfig(), first_options.read(), why)
    second_options = first_options if compare_options is None else _Told("compare_options", compare_options)
    second = _second(first, compare, None if compare_options is None else second_options)
    scenarios = _scenarios(files)
    if on_store:
        _check_on_store(scenarios, compare)
    with first_options.named():
        runs = [_run(session, scenarios, first, on_store=on_store)]
    if second is not None:
        with second_options.named():
            runs.append(_run(session, scenarios, second, on_store=on_store))
    _refuse_unmeasured(least, runs[0])
    missed = [(name, value) for name, value in least if runs[0].means()[name] < value]
    _report(session, runs, missed, why=why)
    if missed or runs[0].leaks:
        raise typer.Exit(1)


def _minima(told: list[str]) -> list[tuple[str, float]]:
    from perdure.evaluation.metrics import METRICS  # noqa: PLC0415 - help must not wait for it

    found = []
    for one in told:
        match = _MINIMUM.fullmatch(one)
        if match is None or match[1] not in METRICS or float(match[2]) > 1:
            raise InvalidRequest(
                f"--min must be METRIC=VALUE with a metric of {', '.join(METRICS)} and a value from 0 to 1, got "
                f"{one[:32]!r}",
                field="min",
            )
        found.append((match[1], float(match[2])))
    return found


class _Told:
    """Options of recall as an option of the command tells them."""

    def __init__(self, field: str, text: str | None) -> None:
        self._field, self._plain = field, o.json_object(text, field) or {}

    def read(self) -> dict[str, Any]:
        from perdure.evaluation.reading import recall_options  # noqa: PLC0415 - help must not wait for it

        with self.named():
            return recall_options(self._plain)

    @contextmanager
    def named(self) -> Iterator[None]:
        """Say of a wrong option by which option of the command it was told, and spell it as it is there."""
        try:
            yield
        except InvalidRequest as error:
            head, dot, name = (error.field or "").partition(".")
            if head == "options":
                from perdure.evaluation.reading import (  # noqa: PLC0415 - only where it is wrong
                    respelled,
                    reword,
                    spelling_of,
                )

                message = error.message.replace("options", self._field, 1)
                reword(error, respelled(message, spelling_of(self._plain)))
                error.field = f"{self._field}{dot}{name}"
            raise


def _second(first: Trial, config: str | None, options: _Told | None) -> Trial | None:
    from dataclasses import replace  # noqa: PLC0415 - only where there is a second run

    if config is None and options is None:
        return None
    chosen = first if config is None else replace(first, config=read_config(config, "compare", "--compare"))
    return replace(
        chosen,
        options=first.options if options is None else options.read(),
    )


def _scenarios(files: list[str]) -> list[Scenario]:
    from perdure.cli.moving import STDIN, Files  # noqa: PLC0415 - help must not wait for it
    from perdure.evaluation.reading import FILE_BYTES_MAX, read_scenario, readable  # noqa: PLC0415

    if files.count(STDIN) > 1:
        raise InvalidRequest("standard input can be read once; give - once", field="files")
    found, opener = [], Files(files)
    for name in files:
        shown = "standard input" if name == STDIN else name
        with readable(shown), opener.open(name) as stream:
            data = stream.read(FILE_BYTES_MAX + 1)
        found.append(read_scenario(data, shown))
    if not any(scenario.cases for scenario in found):
        raise InvalidRequest(
            "there is no case in the files: an entry with query and expect is one", field="files"
        )
    return found


def _check_on_store(scenarios: list[Scenario], compare: str | None) -> None:
    if compare is not None:
        raise InvalidRequest(
            "--on-store and --compare contradict each other: use --compare-options", field="compare"
        )
    for scenario in scenarios:
        if scenario.has_steps:
            raise InvalidRequest(
                f"{scenario.name} tells facts or sets the clock, which --on-store does not do to a store: leave one out",
                field="on_store",
            )


def _run(session: Session, scenarios: list[Scenario], trial: Trial, *, on_store: bool) -> Run:
    from perdure.evaluation.running import run  # noqa: PLC0415 - help must not wait for it

    with ExitStack() as stack:
        memory = None
        if on_store:
            if not session.has_store():
                raise Failed("there is no store there to ask; leave --on-store out, or name one with --store")
            memory = stack.enter_context(session.memory())
        progress = stack.enter_context(progress_bar("evaluating"))
        return run(scenarios, trial, memory=memory, progress=progress)


def _refuse_unmeasured(least: list[tuple[str, float]], run: Run) -> None:
    means = run.means()
    for name, _ in least:
        if name not in means:
            raise InvalidRequest(
                f"--min {name}: no case has that metric; it has {', '.join(means)}", field="min"
            )


def _report(session: Session, runs: list[Run], missed: list[tuple[str, float]], *, why: bool) -> None:
    from perdure.evaluation.comparing import compare  # noqa: PLC0415 - help must not wait for it
    from perdure.evaluation.reporting import comparison_object, run_object  # noqa: PLC0415

    differences = compare(runs[0], runs[1]) if len(runs) > 1 else []
    means = runs[0].means()
    if session.as_json:
        told: dict[str, Any] = {
            "ok": not (missed or runs[0].leaks),
            "evaluation": run_object(runs[0], why=why),
        }
        if len(runs) > 1:
            told |= {"second": run_object(runs[1], why=why), "differences": comparison_object(differences)}
        told["belowMinimum"] = [{"metric": n, "value": means[n], "minimum": v} for n, v in missed]
        print_json(told)
    else:
        _show(Screen(), runs, differences, why=why)
    for name, value in missed:
        complain(f"{name} is {means[name]:.4f}, below the minimum of {value:g}")
    if runs[0].leaks:
        complain(f"{_cases(len(runs[0].leaks))} gave a fact that must not come back")


def _show(screen: Screen, runs: list[Run], differences: list[Difference], *, why: bool) -> None:
    from perdure.evaluation.reporting import comparison_rows, is_failed, run_rows  # noqa: PLC0415

    labels = ("First run", "Second run") if len(runs) > 1 else ("",)
    summary = []
    for label, run in zip(labels, runs, strict=True):
        if label:
            screen.heading(f"{label}:")
        screen.table(*run_rows(run))
        failed = [answer for answer in run.answers if is_failed(answer)]
        if why:
            for answer in failed:
                _show_failure(screen, answer)
        screen.line()
        summary.append(
            f"{f'{label}: ' if label else ''}{_cases(len(failed))} of {len(run.answers)} missed a fact, gave one that "
            f"must not come back, or gave them in another order{'' if why or not failed else '; --why explains each'}."
        )
    if differences:
        screen.heading("Second minus first:")
        screen.table(*comparison_rows(differences))
        screen.line()
    for line in summary:
        screen.line(line)


def _show_failure(screen: Screen, answer: Answer) -> None:
    case = answer.case
    screen.line()
    screen.heading(f"{case.place}: {case.name or case.query}")
    if answer.reasons:
        screen.table(["fact", "rank", "score", "why"], [_reason_row(why) for why in answer.reasons])
    else:
        screen.fields([("expected", " ".join(case.expect or ())), ("returned", " ".join(answer.returned))])


def _reason_row(why: Why) -> list[str]:
    what = "missed" if why.expected else "unwanted"
    found = why.explanation
    if found is None:
        return [f"{what} {why.id}", "", "", "It was forgotten or hidden."]
    words = f"; it shares: {', '.join(found.matched_terms)}" if found.matched_terms else ""
    return [
        f"{what} {why.id}",
        "" if found.rank is None else str(found.rank),
        "" if found.final_score is None else score(found.final_score),
        f"{REASONS[found.reason]} ({'not known' if found.status is None else found.status.value}){words}.",
    ]


def _cases(count: int) -> str:
    return counted(count, "case")
