"""A memory and a space in plain lists live through the same calls and show the same after each."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from effort import examples
from perdure import MemoryConfig
from properties import strategies
from properties.memory_oracle import Oracle, Refused
from properties.memory_run import CONFIGS, Space, listed, millis, random_script, recalled, shown
from properties.strategies import IDS, Call, calls, scripts

AS_OFS = (None, 0, 2, 5, 99, 102, 150)
KNOWN_ATS = (None, 99, 100, 102, 105)


class SideBySide:
    """One memory and one oracle under the same configuration."""

    def __init__(self, config: MemoryConfig) -> None:
        self.space = Space(config)
        self.oracle = Oracle(
            latest=config.supersession == "latest-by-subject", replaces=config.on_id_conflict == "replace"
        )

    @property
    def now(self) -> int:
        return self.oracle.now(self.space.clock.now())

    def run(self, call: Call) -> None:
        """Make the call on both and compare what they answer."""
        clock = self.space.clock.now()
        reply = self.space.run(call)
        if call[0] == "advance":
            return
        expected = self._answer(clock, call)
        if isinstance(expected, str) or isinstance(reply, str):
            assert reply == expected
        else:
            self._compare(call, reply, expected)

    def _answer(self, clock: int, call: Call) -> Any:
        try:
            return self._expected(clock, call)
        except Refused as refused:
            return refused.code

    def _expected(self, clock: int, call: Call) -> Any:
        name, told = call[0], dict(call[1])
        oracle = self.oracle
        if name in ("remember", "remember_many"):
            return oracle.remember(clock, [told] if name == "remember" else told["facts"])
        if name == "correct":
            return oracle.correct(clock, told.pop("new_text"), told)
        if name == "end":
            return oracle.end(clock, told["id"], told["at"])
        if name == "retract":
            return oracle.retract(clock, told["id"])
        if name == "annotate":
            return oracle.annotate(clock, told.pop("id"), told)
        if name == "forget":
            flags = ("include_chain", "dry_run", "soft", "block")
            how = {flag: told.pop(flag) for flag in flags if flag in told}
            return oracle.forget(clock, told, how)
        return getattr(oracle, name)(clock, **told)

    def _compare(self, call: Call, reply: Any, expected: Any) -> None:
        name = call[0]
        if name in ("remember", "remember_many", "correct"):
            for got, wanted in zip(
                reply if name == "remember_many" else [reply],
                expected if name != "correct" else [expected],
                strict=True,
            ):
                self._compare_reply(got, wanted)
        elif name == "forget":
            assert reply.forgotten == expected
        elif name in ("restore", "unblock"):
            assert reply == expected
        else:
            fact = self.oracle.find_live(call[1]["id"])
            assert shown(reply) == self.oracle.view(fact, self.now)

    def _compare_reply(self, got: Any, wanted: Any) -> None:
        oracle = self.oracle
        oracle.learn(wanted, got.id)
        assert (got.outcome, got.created, got.status.value) == (
            wanted.outcome,
            wanted.outcome != "existing",
            wanted.status,
        )
        assert millis(got.ingest_time) == oracle.facts[wanted.number].ingest
        assert got.supersedes == oracle.ids(wanted.supersedes)
        assert got.superseded_by == oracle.ids(wanted.superseded_by)

    def check(self, as_of: int | None, known_at: int | None) -> None:
        """Compare every fact in every read at one pair of instants."""
        memory, oracle, at = self.space.memory, self.oracle, self.now if as_of is None else as_of
        times: dict[str, Any] = {"as_of": as_of, "known_at": known_at}
        expected = {fact.id: oracle.view(fact, at, known_at) for fact in oracle.known(known_at)}
        facts = listed(memory, **times)
        assert [shown(fact) for fact in facts] == list(expected.values())
        found = {id_: view["status"] for id_, view in expected.items()}
        current = {id_: status for id_, status in found.items() if status == "current"}
        assert recalled(memory, history="all", **times) == found
        assert recalled(memory, **times) == current
        historical = {id_: status for id_, status in found.items() if status != "current"}
        assert recalled(memory, history="historical", **times) == historical
        for id_ in (*IDS, *expected):
            fact = memory.get(id_, **times)
            assert (None if fact is None else shown(fact)) == expected.get(id_)
        for id_ in IDS:
            chain = [fact.id for fact in oracle.history(id_, known_at)]
            assert [fact.id for fact in memory.history(id_, **times)] == chain
        hidden = [oracle.view(fact, at, known_at) for fact in oracle.facts.values() if fact.hidden]
        known_hidden = [view for view in hidden if known_at is None or view["ingest_time"] <= known_at]
        assert [shown(fact) for fact in listed(memory, hidden=True, **times)] == known_hidden


class MemoryMachine(RuleBasedStateMachine):
    """Every write, on both supersession policies and both ways of treating a taken id."""

    def __init__(self) -> None:
        super().__init__()
        self.both: SideBySide

    @initialize(config=st.sampled_from(CONFIGS), facts=scripts(max_size=4))
    def open(self, config: MemoryConfig, facts: list[Call]) -> None:
        self.both = SideBySide(config)
        for call in facts:
            self.both.run(call)

    @rule(call=calls(strategies.remember))
    def remember(self, call: Call) -> None:
        self.both.run(call)

    @rule(call=calls(strategies.remember_many))
    def remember_many(self, call: Call) -> None:
        self.both.run(call)

    @rule(call=calls(strategies.correct))
    def correct(self, call: Call) -> None:
        self.both.run(call)

    @rule(call=calls(strategies.end) | calls(strategies.retract) | calls(strategies.annotate))
    def say_of(self, call: Call) -> None:
        self.both.run(call)

    @rule(call=calls(strategies.forget))
    def forget(self, call: Call) -> None:
        self.both.run(call)

    @rule(call=calls(strategies.restore) | calls(strategies.unblock))
    def undo(self, call: Call) -> None:
        self.both.run(call)

    @rule(call=calls(strategies.advance))
    def advance(self, call: Call) -> None:
        self.both.run(call)

    @invariant()
    def both_show_the_same(self) -> None:
        if hasattr(self, "both"):
            self.both.check(None, None)
            self.both.check(3, 102)

    def teardown(self) -> None:
        if hasattr(self, "both"):
            for as_of in AS_OFS:
                for known_at in KNOWN_ATS:
                    self.both.check(as_of, known_at)


TestMemoryAgainstPlainLists = MemoryMachine.TestCase
TestMemoryAgainstPlainLists.settings = settings(
    max_examples=examples(12), stateful_step_count=25, deadline=None
)


def live_through(seed: int, steps: int) -> None:
    random = Random(seed)
    both = SideBySide(random.choice(CONFIGS))
    for call in random_script(seed, steps):
        both.run(call)
        both.check(random.choice(AS_OFS), random.choice(KNOWN_ATS))


def test_random_histories_read_the_same_in_memory_and_in_plain_lists():
    for seed in range(examples(40)):
        live_through(seed, 25)


@pytest.mark.soak
def test_tens_of_thousands_of_random_histories_read_the_same_in_memory_and_in_plain_lists():
    for seed in range(1_000, 31_000):
        live_through(seed, 25)
