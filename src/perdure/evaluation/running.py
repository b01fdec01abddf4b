"""Running a scenario: its steps are told to a memory, its cases are asked, the answers are measured."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from perdure.base.clock import ManualClock
from perdure.base.instants import to_millis
from perdure.errors import InvalidRequest, NotFound, PerdureError
from perdure.evaluation.metrics import mean_scores, score, unwanted
from perdure.evaluation.reading import placed, put_place, recall_options, reword
from perdure.evaluation.scenario import Case, Entry, Scenario, Step
from perdure.memory.config import MemoryConfig
from perdure.model.hit import Explanation
from perdure.planning.checks import members_of
from perdure.store import Memory, Store

START = to_millis("2000-01-01", field="start")  # where the clock stands until a scenario sets it
Progress = Callable[[int, int], None]


@dataclass(frozen=True, slots=True)
class Trial:
    """How a scenario is run.

    Args:
        config: of the memory.
        options: of recall, for every case that does not give them itself.
        why: explain what was missed and what should not have come back.
        timer: gives nanoseconds; called before and after each recall. None measures no time.

    Raises InvalidRequest for what is no configuration, and for options that recall does not have.
    """

    config: MemoryConfig = field(default_factory=MemoryConfig)
    options: Mapping[str, Any] = field(default_factory=dict)
    why: bool = False
    timer: Callable[[], int] | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.config, MemoryConfig):
            raise InvalidRequest(
                f"config must be a MemoryConfig, got {type(self.config).__name__}; MemoryConfig.from_json reads an object",
                field="config",
            )
        object.__setattr__(self, "options", recall_options(self.options))


@dataclass(frozen=True, slots=True)
class Why:
    """Why an expected fact is missing, or one came back; `explanation` is None where it is not in the memory."""

    id: str
    expected: bool
    explanation: Explanation | None


@dataclass(frozen=True, slots=True)
class Answer:
    """What came back for a case, and how good that is. `missed` and `unwanted` are in the order told and returned."""

    case: Case
    returned: tuple[str, ...]
    scores: Mapping[str, float]
    missed: tuple[str, ...]
    unwanted: tuple[str, ...]
    reasons: tuple[Why, ...] = ()
    nanoseconds: int | None = None


@dataclass(frozen=True, slots=True)
class Run:
    """The answers of one configuration, in the order in which the cases were asked."""

    answers: tuple[Answer, ...]

    @property
    def categories(self) -> list[str]:
        """The names of the cases' categories, in the order in which they first appear."""
        return list(dict.fromkeys(a.case.category for a in self.answers if a.case.category is not None))

    @property
    def leaks(self) -> tuple[Answer, ...]:
        """The answers in which something came back that must not."""
        return tuple(answer for answer in self.answers if answer.unwanted)

    def of(self, category: str | None) -> list[Answer]:
        """Return the answers of a category; of all with None."""
        return [a for a in self.answers if category is None or a.case.category == category]

    def means(self, category: str | None = None) -> dict[str, float]:
        """Return the mean of each metric over the cases (of a category) that have it."""
        return mean_scores(answer.scores for answer in self.of(category))


def run(
    scenarios: Iterable[Scenario],
    trial: Trial | None = None,
    *,
    memory: Memory | None = None,
    clock: ManualClock | None = None,
    progress: Progress | None = None,
) -> Run:
    """Run the scenarios and return their answers.

    Each has an ephemeral store of its own, whose clock stands at 2000-01-01T00:00:00Z until an entry sets it. With a
    memory, all are told to it and asked of it, in order.

    Args:
        memory: run on this one, whose own configuration counts.
        clock: the clock of that memory's store; entries that set the clock need it.
        progress: told after each entry: how many are done, and of how many.

    Raises:
        InvalidRequest: an option or an argument is refused, a case names an id that nothing had when it was asked,
            or an entry sets the clock of a memory whose clock was not given. Whatever a call of Memory raises
            passes through; the message begins with the place of the entry, or with `options` where an option of the
            trial is wrong.
    """
    chosen, told = _checked_trial(trial), _checked_scenarios(scenarios)
    _check_memory(memory, clock)
    count, done = sum(len(scenario.entries) for scenario in told), 0
    answers: list[Answer] = []
    for scenario in told:
        with _stage(memory, clock, chosen) as stage:
            for entry in scenario.entries:
                answers += stage.play(entry)
                done += 1
                if progress is not None:
                    progress(done, count)
    return Run(tuple(answers))


def _checked_trial(trial: object) -> Trial:
    if trial is None:
        return Trial()
    if not isinstance(trial, Trial):
        hint = "; put it into one: Trial(config)" if isinstance(trial, MemoryConfig) else ""
        raise InvalidRequest(f"trial must be a Trial, got {type(trial).__name__}{hint}", field="trial")
    return trial


def _checked_scenarios(told: object) -> list[Scenario]:
    if isinstance(told, Scenario):
        raise InvalidRequest("scenarios must be a list; put the one into brackets", field="scenarios")
    scenarios = [*members_of(told, "scenarios", "scenarios, such as read_file gives")]
    for index, one in enumerate(scenarios):
        if not isinstance(one, Scenario):
            raise InvalidRequest(
                f"scenarios[{index}] must be a Scenario, got {type(one).__name__}; read_file makes one of a file",
                field="scenarios",
            )
    return scenarios


def _check_memory(memory: object, clock: object) -> None:
    if memory is not None and not isinstance(memory, Memory):
        raise InvalidRequest(f"memory must be a Memory, got {type(memory).__name__}", field="memory")
    if clock is not None and not isinstance(clock, ManualClock):
        raise InvalidRequest(f"clock must be a ManualClock, got {type(clock).__name__}", field="clock")


@contextmanager
def _stage(memory: Memory | None, clock: ManualClock | None, trial: Trial) -> Iterator[_Stage]:
    if memory is not None:
        yield _Stage(memory, clock, trial, own=False)
        return
    clock = ManualClock(START)
    with Store.open(":memory:", clock=clock) as store:
        yield _Stage(store.memory(config=trial.config), clock, trial, own=True)


class _Stage:
    """A memory while a scenario is played on it."""

    def __init__(self, memory: Memory, clock: ManualClock | None, trial: Trial, *, own: bool) -> None:
        self._memory, self._clock, self._trial = memory, clock, trial
        self._own = own
        self._told: set[str] = set()  # every id that a fact ever had here

    def play(self, entry: Entry) -> list[Answer]:
        """Do what the entry says; return the answer of a case."""
        if entry.clock is not None:
            with placed(entry.place):
                self._set_clock(entry.clock)
        if isinstance(entry, Case):
            return [self._ask(entry)]
        if isinstance(entry, Step):
            with placed(entry.place, entry.spelling):
                self._do(entry)
        return []

    def _set_clock(self, moment: int) -> None:
        if self._clock is None:
            raise InvalidRequest("the entry sets the clock of a memory that has its own", field="clock")
        self._clock.set(moment)

    def _do(self, step: Step) -> None:
        if step.operation == "remember":
            replies = self._memory.remember_many(step.facts)
            self._told.update(reply.id for reply in replies if reply.id is not None)
        elif step.operation == "correct":
            reply = self._memory.correct(**step.arguments)
            self._told.update(id_ for id_ in (reply.id,) if id_ is not None)
        else:
            getattr(self._memory, step.operation)(**step.arguments)

    def _ask(self, case: Case) -> Answer:
        with placed(case.place):
            self._refuse_unknown(case)
        options = {**self._trial.options, **case.options}
        timer = self._trial.timer
        start = 0 if timer is None else timer()
        with self._blamed(case):
            hits = self._memory.recall(case.query, **options)
        took = None if timer is None else timer() - start
        returned = tuple(hit.id for hit in hits)
        missed = tuple(id_ for id_ in case.expect or () if id_ not in returned)
        leaked = unwanted(returned, case.expect, case.absent)
        reasons: tuple[Why, ...] = ()
        if self._trial.why:
            reasons = tuple(
                Why(id_, expected, self._explain(case.query, id_, options))
                for expected, ids in ((True, missed), (False, leaked))
                for id_ in ids
            )
        scores = score(returned, case.expect, case.absent, ordered=case.ordered)
        return Answer(case, returned, scores, missed, leaked, reasons, took)

    @contextmanager
    def _blamed(self, case: Case) -> Iterator[None]:
        """Say of an error whether an option of the trial or the case is wrong."""
        try:
            yield
        except PerdureError as error:
            name = (error.field or "").partition(".")[0]
            is_of_trial = name in self._trial.options and name not in case.options
            if isinstance(error, InvalidRequest) and is_of_trial:
                reword(error, f"options: {error.message}")
                error.field = f"options.{error.field}"
            else:
                put_place(error, case.place, case.spelling)
            raise

    def _explain(self, query: str, id_: str, options: Mapping[str, Any]) -> Explanation | None:
        try:
            return self._memory.explain(query, id_, **options)
        except NotFound:
            return None

    def _refuse_unknown(self, case: Case) -> None:
        # A mistyped id would be missed for ever, or, worse, always be absent.
        for field_, ids in (("expect", case.expect or ()), ("absent", case.absent)):
            if field_ == "absent" and not self._own:
                continue  # it may have been forgotten before
            for index, id_ in enumerate(ids):
                if id_ not in self._told and self._memory.get(id_) is None:
                    raise InvalidRequest(
                        f"{field_}[{index}] is an id that no fact had by then; check its spelling",
                        field=field_,
                    )
