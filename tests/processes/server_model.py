"""What servers may answer: a recall must be that of one state that its moment allows, of all writes that were acknowledged.

Each writer asks for one thing after the other, and for its own facts alone. So a memory's state is how far each writer had
come: at least all that was acknowledged before a recall began, at most all that was asked for before it ended. Which of the
states between it was, is found by the rules of ranking; that one is then built anew in a store of its own, and must answer
the same to the last bit.
"""

from __future__ import annotations

import itertools
import math
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from perdure import Memory, Store
from perdure.lexical.profile import get_profile
from processes.server_writers import K, Place, Recalled, Write, Writer

K1, B = 0.9, 0.4
DIGITS = 10  # that two ways of adding agree on
STATES_MAX = 100_000  # that one recall is held against: past that it is a defect of the run, not of a server
ENGLISH = get_profile("english.v1")


@dataclass(frozen=True)
class Fact:
    id: str
    text: str
    words: tuple[str, ...]
    supersedes: frozenset[str]


Facts = Mapping[str, Fact]


class Course:
    """One writer's facts in one memory: after each of its writes, with the moments that they are of."""

    def __init__(self, writes: Sequence[Write], seen: Mapping[str, float]) -> None:
        """`seen`: when a fact had been recalled by somebody, by its id; from then on everybody has to see it."""
        self.began = [one.began for one in writes]
        self.ended = [
            one.ended if one.text is None else min(one.ended, seen.get(one.id, one.ended)) for one in writes
        ]
        self.states: list[dict[str, Fact]] = [{}]
        for one in writes:
            facts = dict(self.states[-1])
            if one.text is None:
                _forget(facts, one.id)
            else:
                words = tuple(ENGLISH.document_terms(one.text))
                facts[one.id] = Fact(one.id, one.text, words, frozenset(one.supersedes))
            self.states.append(facts)

    def between(self, began: float, ended: float) -> range:
        """Return how many of its writes a reading of that time may have seen."""
        return range(bisect_left(self.ended, began), bisect_right(self.began, ended) + 1)


class Held:
    """One memory's history."""

    def __init__(self, place: Place, writers: Iterable[Writer]) -> None:
        writers = list(writers)
        self.recalls = [one for writer in writers for one in writer.recalls if one.place == place]
        seen: dict[str, float] = {}
        for recalled in self.recalls:
            for id_, _, _ in recalled.hits:
                seen[id_] = min(recalled.ended, seen.get(id_, recalled.ended))
        self.courses = [Course(writer.writes.get(place, ()), seen) for writer in writers]
        self._built: tuple[tuple[int, ...], Memory, Store] | None = None

    def last(self) -> dict[str, Fact]:
        """Return what is there after all writes."""
        return self._facts([len(course.began) for course in self.courses])

    def problems(self) -> list[str]:
        """Return what is wrong with the recalls of this memory."""
        return [problem for recalled in self.recalls if (problem := self._problem(recalled)) is not None]

    def _problem(self, recalled: Recalled) -> str | None:
        if (order := _misorder(recalled)) is not None:
            return order
        given = {id_: round(score, DIGITS) for id_, score, _ in recalled.hits}
        for state in self._states(recalled):
            facts = self._facts(state)
            if ranked(facts, recalled.query) == given:
                return self._rebuilt(state, facts, recalled)
        return (
            f"no state between {recalled.began:.3f} and {recalled.ended:.3f} answers a recall of {recalled.query!r} in "
            f"{recalled.place} so: {recalled.hits}; before it {self._early(recalled)}"
        )

    def _states(self, recalled: Recalled) -> Iterator[tuple[int, ...]]:
        ranges = [course.between(recalled.began, recalled.ended) for course in self.courses]
        assert math.prod(map(len, ranges)) <= STATES_MAX
        return itertools.product(*ranges)

    def _early(self, recalled: Recalled) -> dict[str, float]:
        return ranked(self._facts(next(self._states(recalled))), recalled.query)

    def _facts(self, state: Sequence[int]) -> dict[str, Fact]:
        facts: dict[str, Fact] = {}
        for course, done in zip(self.courses, state, strict=True):
            facts |= course.states[done]
        return facts

    def _rebuilt(self, state: tuple[int, ...], facts: Facts, recalled: Recalled) -> str | None:
        hits = self._memory(state, facts).recall(recalled.query, k=K)
        built = {(hit.fact.id, hit.score, hit.status.value) for hit in hits}
        if built == set(recalled.hits):
            return None
        return f"a store of the same facts answers {recalled.query!r} with {built}, and not {recalled.hits}"

    def _memory(self, state: tuple[int, ...], facts: Facts) -> Memory:
        if self._built is None or self._built[0] != state:
            self.close()
            store = Store.open(":memory:", audit="off")
            memory = store.memory()
            if facts:
                memory.remember_many([_telling(fact, facts) for fact in facts.values()])
            self._built = (state, memory, store)
        return self._built[1]

    def close(self) -> None:
        """Let go of what was built."""
        if self._built is not None:
            self._built[2].close()
            self._built = None


def _forget(facts: dict[str, Fact], id_: str) -> None:
    """Take a fact away; what superseded it supersedes in its place what it superseded."""
    gone = facts.pop(id_)
    for other in list(facts.values()):
        if id_ in other.supersedes:
            facts[other.id] = replace(other, supersedes=other.supersedes - {id_} | gone.supersedes)


def current(facts: Facts) -> set[str]:
    """Return the ids of what no other that is there supersedes."""
    return facts.keys() - {older for fact in facts.values() for older in fact.supersedes}


def ranked(facts: Facts, query: str) -> dict[str, float]:
    """Return what a recall gives of these facts, and its scores: BM25, rounded."""
    if not facts:
        return {}
    terms = list(dict.fromkeys(ENGLISH.query_terms(query)))
    average = sum(len(fact.words) for fact in facts.values()) / len(facts)
    found: dict[str, float] = {}
    for term in terms:
        holders = [fact for fact in facts.values() if term in fact.words]
        rarity = math.log(1 + (len(facts) - len(holders) + 0.5) / (len(holders) + 0.5))
        for fact in holders:
            times = fact.words.count(term)
            bound = K1 * (1 - B + B * len(fact.words) / average)
            found[fact.id] = found.get(fact.id, 0.0) + rarity * times / (times + bound)
    there = current(facts)
    return {id_: round(score, DIGITS) for id_, score in found.items() if id_ in there}


def _telling(fact: Fact, facts: Facts) -> dict[str, object]:
    older = sorted(fact.supersedes & facts.keys())
    return {"id": fact.id, "text": fact.text, "supersedes": older}


def _misorder(recalled: Recalled) -> str | None:
    ids = [id_ for id_, _, _ in recalled.hits]
    if len(set(ids)) != len(ids):
        return f"a recall has one twice: {ids}"
    order = [
        (-score, recorded) for (_, score, _), recorded in zip(recalled.hits, recalled.recorded, strict=True)
    ]
    return None if order == sorted(order) else f"a recall is not in order: {order}"
