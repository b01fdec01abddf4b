"""What a recall must give, rank and leave out, and why: worked out fact by fact from the rules, not by a pipeline.

Shared with the code under test is only the analysis of words. Who is known, how it stands and what is hidden says
`memory_oracle`. Times are milliseconds.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from perdure.lexical.profile import get_profile
from properties.memory_oracle import OneFact, Oracle

K1, B = 0.9, 0.4
HALF_LIFE = 30
DECAY = 50  # milliseconds in which the freshness of a ranking by relevance falls to 1/e
SHARE = {"importance": 0.07, "recency": 0.03}
WEIGHTS = {"minmax": {"lexical": 0.7, "semantic": 0.3}, "rrf": {"lexical": 1.0, "semantic": 0.5}}
NEIGHBOURS, ACTOR, PERIOD = (0.5, 0.25), 1.25, 1.5
YEAR = "1970"  # every time that is told lies in it
EPSILON = 10  # digits after the point that two ways of adding agree on
FILTERS: dict[str, tuple[dict[str, Any], Callable[[OneFact, dict[str, Any]], bool]]] = {
    "equality": ({"n": 1}, lambda fact, data: data.get("n") == 1),
    "a range": ({"n": {"$gte": 2}}, lambda fact, data: data.get("n", 0) >= 2),
    "a negation": ({"$not": {"n": 1}}, lambda fact, data: data.get("n") != 1),
    "a path": ({"at.city": {"$in": ["Oslo"]}}, lambda fact, data: data.get("at") == {"city": "Oslo"}),
    "a field": (
        {"@importance": {"$gt": 0.4}},
        lambda fact, data: (fact.annotations()["importance"] or 0.0) > 0.4,
    ),
    "either": (
        {"$or": [{"n": 3}, {"@tags": {"$contains": "blue"}}]},
        lambda fact, data: data.get("n") == 3 or "blue" in fact.annotations()["tags"],
    ),
}


@dataclass(frozen=True)
class Told:
    """What a fact was told with that decides no status."""

    vector: tuple[float, ...] | None = None
    uri: str | None = None
    position: int | None = None
    actor: str | None = None


@dataclass(frozen=True)
class Verdict:
    """What explain and trace must say of a fact. `rank` and `score` are those of a candidate."""

    reason: str
    status: str | None
    filtered: tuple[str, ...]
    rank: int | None = None
    score: float | None = None


@dataclass(frozen=True)
class Counts:
    seen: int
    eligible: int
    matched: int
    scored: int


class Judge:
    """Judges one question to one space. `options` are those of recall, all times as integers."""

    def __init__(
        self,
        oracle: Oracle,
        told: Mapping[str, Told],
        query: str,
        options: Mapping[str, Any],
        now: int,
        *,
        relevance: bool = False,
    ) -> None:
        """`relevance`: facts are ranked by it."""
        self.relevance = relevance
        self.oracle, self.told, self.query, self.options = oracle, told, query, options
        self.as_of = options.get("as_of", now)
        self.known_at = options.get("known_at")
        self.mode = options.get("mode", "hybrid" if "embedding" in options else "lexical")
        self.context = bool(options.get("context"))
        self.live = sorted(oracle.known(), key=lambda fact: fact.number)
        self.limit = max(options["k"], options["candidate_limit"])
        profile = get_profile("english.v1")
        self.words = {fact.number: profile.document_terms(fact.text) for fact in self.live}
        labels = {
            fact.number: (*fact.annotations()["tags"], fact.annotations()["kind"] or "") for fact in self.live
        }
        self.labels = {
            number: profile.document_terms(" ".join(words)) for number, words in labels.items() if any(words)
        }
        self.phrase = profile.document_terms(query)
        self.terms = list(dict.fromkeys(profile.query_terms(query)))
        self.actors = {
            name: set(profile.document_terms(name))
            for name in {told[fact.id].actor for fact in self.live} - {None}
        }

    # Who may be found

    def knows(self, fact: OneFact) -> bool:
        return self.known_at is None or fact.ingest <= self.known_at

    def filtered(self, fact: OneFact) -> tuple[str, ...]:
        noted, found = fact.annotations(), []
        if self.options.get("subject") not in (None, fact.subject):
            found.append("subject")
        if not set(self.options.get("tags", ())) <= set(noted["tags"]):
            found.append("tags")
        if self.options.get("kind") not in (None, noted["kind"]):
            found.append("kind")
        if self.options.get("pinned") not in (None, noted["pinned"]):
            found.append("pinned")
        asked = self.options.get("filter")
        if asked is not None:
            _, holds = next(one for one in FILTERS.values() if one[0] == asked)
            if not holds(fact, json.loads(fact.seen_metadata)):
                found.append("filter")
        return tuple(found)

    def holds(self, fact: OneFact) -> bool:
        """Whether time and history allow the fact."""
        interval = self.options.get("valid_during")
        if interval is not None:
            instants = range(*interval)
            return any(self.oracle.status(fact.number, at, self.known_at) == "current" for at in instants)
        history = self.options.get("history", "current")
        current = self.oracle.status(fact.number, self.as_of, self.known_at) == "current"
        return history == "all" or current == (history == "current")

    def allows(self, fact: OneFact) -> bool:
        return self.knows(fact) and not self.filtered(fact) and self.holds(fact)

    # Scores of search

    def shares(self, fact: OneFact) -> dict[str, float]:
        """tf / K of each term that the fact holds."""
        words = self.words[fact.number]
        average = sum(map(len, self.words.values())) / len(self.words)
        bound = K1 * (1 - B + B * len(words) / average) if average else K1
        return {term: words.count(term) / bound for term in self.terms if term in words}

    def lexical(self, fact: OneFact, eligible: Sequence[OneFact]) -> float:
        own, total = self.shares(fact), 0.0
        near = self.around(fact, eligible) if self.context else []
        for term in self.terms:
            holders = sum(term in words for words in self.words.values())
            x = own.get(term, 0.0) + sum(
                weight * max((self.shares(one).get(term, 0.0) for one in at), default=0.0)
                for weight, at in near
            )
            if holders and x:
                rarity = math.log(1 + (len(self.words) - holders + 0.5) / (holders + 0.5))
                total += rarity * x / (1 + x)
        if not self.context:
            return total
        named = [name for name, terms in self.actors.items() if terms <= set(self.terms)]
        if len(named) == 1 and self.told[fact.id].actor == named[0]:
            total *= ACTOR
        return total * PERIOD if YEAR in self.query.split() else total

    def label(self, fact: OneFact) -> float:
        """The score of the words of tags and kind, as facts of their own among those that have any."""
        own = self.labels.get(fact.number, []) if self.relevance else []
        total = 0.0
        for term in self.terms:
            if term in own:
                average = sum(map(len, self.labels.values())) / len(self.labels)
                holders = sum(term in words for words in self.labels.values())
                rarity = math.log(1 + (len(self.labels) - holders + 0.5) / (holders + 0.5))
                tf, length = own.count(term), len(own)
                total += rarity * tf / (tf + K1 * (1 - B + B * length / average))
        return total

    def phrases(self, numbers: Iterable[int]) -> dict[int, float]:
        """What the whole query adds to those of the candidates that hold it, word by word."""
        if len(self.phrase) < 2:
            return {}
        times = {number: _times(self.phrase, self.words[number]) for number in numbers}
        times = {number: count for number, count in times.items() if count}
        average = sum(map(len, self.words.values())) / len(self.words)
        rarity = math.log(1 + (len(self.words) - len(times) + 0.5) / (len(times) + 0.5))
        return {
            number: rarity * count / (count + K1 * (1 - B + B * len(self.words[number]) / average))
            for number, count in times.items()
        }

    def around(self, fact: OneFact, eligible: Sequence[OneFact]) -> list[tuple[float, list[OneFact]]]:
        here = self.told[fact.id]
        if here.uri is None or here.position is None:
            return []
        return [
            (weight, [one for one in eligible if self._stands(one, here, distance * side)])
            for distance, weight in enumerate(NEIGHBOURS, 1)
            for side in (-1, 1)
        ]

    def _stands(self, one: OneFact, here: Told, distance: int) -> bool:
        there = self.told[one.id]
        assert here.position is not None
        return there.uri == here.uri and there.position == here.position + distance

    def cosine(self, fact: OneFact) -> float | None:
        mine, asked = self.told[fact.id].vector, self.options.get("embedding")
        if mine is None or asked is None:
            return None
        return math.fsum(a * b for a, b in zip(mine, asked, strict=True)) / (
            math.dist(mine, [0.0] * len(mine)) * math.dist(asked, [0.0] * len(asked))
        )

    def candidates(self, eligible: Sequence[OneFact]) -> tuple[dict[int, float], int]:
        """Return the retrieval scores of the candidates, and how many facts match at all."""
        lexical = {fact.number: self.lexical(fact, eligible) for fact in eligible}
        lexical = {number: score for number, score in lexical.items() if score > 0.0}
        cosines = {fact.number: self.cosine(fact) for fact in eligible}
        meant = {number: cosine for number, cosine in cosines.items() if cosine is not None}
        matching = lexical.keys() | {fact.number for fact in eligible if self.label(fact) > 0.0}
        best = self._by_words(lexical, eligible)
        if self.mode == "lexical":
            return best, len(matching)
        if self.mode == "semantic":
            nearest = _first(meant, self.limit)
            return {number: (1 + cosine) / 2 for number, cosine in nearest.items()}, len(meant)
        chosen = sorted(best.keys() | _first(meant, self.limit).keys())
        words = {number: score for number in chosen if (score := best.get(number, lexical.get(number, 0.0)))}
        meanings = {number: meant[number] for number in chosen if number in meant}
        return self._fused(chosen, words, meanings), len(matching | meant.keys())

    def _by_words(self, lexical: dict[int, float], eligible: Sequence[OneFact]) -> dict[int, float]:
        """Return the best by words, and under relevance by labels and the whole query too."""
        best = _first(lexical, self.limit)
        if not self.relevance:
            return best
        labels = {fact.number: score for fact in eligible if (score := self.label(fact))}
        labels = _first(labels, self.limit)
        numbers = best.keys() | labels.keys()
        phrases = self.phrases(numbers)
        return _first(
            {
                number: lexical.get(number, 0.0) + labels.get(number, 0.0) + phrases.get(number, 0.0)
                for number in numbers
            },
            self.limit,
        )

    def _fused(
        self, chosen: Sequence[int], words: dict[int, float], meanings: dict[int, float]
    ) -> dict[int, float]:
        how = self.options.get("fusion", "minmax")
        weights = WEIGHTS[how] | dict(self.options.get("weights", {}))
        if how == "minmax" and words:
            words = {number: words.get(number, 0.0) for number in chosen}
        scale = _spread if how == "minmax" else _reciprocal
        lexical, semantic = scale(words), scale(meanings)
        return {
            number: weights["lexical"] * lexical.get(number, 0.0)
            + weights["semantic"] * semantic.get(number, 0.0)
            for number in chosen
        }

    # The verdicts

    def weighed(
        self, number: int, score: float, *, top: float, recency: bool, historical_weight: float
    ) -> float:
        fact = self.oracle.facts[number]
        times = (fact.event_time, fact.valid_from, fact.ingest)
        age = max(0, self.as_of - next(time for time in times if time is not None))
        if self.relevance:
            importance = fact.annotations()["importance"]
            score = score / top if top else 0.0
            score += SHARE["importance"] * (0.5 if importance is None else importance)
            score += SHARE["recency"] * math.exp(-age / DECAY)
        if recency:
            score *= 0.5 ** (age / HALF_LIFE)
        current = self.oracle.status(number, self.as_of, self.known_at) == "current"
        return score if current else score * historical_weight

    def verdicts(
        self, *, recency: bool = False, historical_weight: float = 1.0
    ) -> tuple[dict[str, Verdict], Counts]:
        """Return the verdict of every fact that is not hidden, by id, and the counts of a trace."""
        eligible = [fact for fact in self.live if self.allows(fact)]
        found, matched = self.candidates(eligible)
        final = {
            number: self.weighed(
                number,
                score,
                top=max(found.values()),
                recency=recency,
                historical_weight=historical_weight,
            )
            for number, score in found.items()
        }
        by_search = sorted(found, key=lambda number: (-round(found[number], EPSILON), number))
        order = sorted(by_search, key=lambda number: -round(final[number], EPSILON))
        ranks = {number: rank for rank, number in enumerate(order, 1)}
        verdicts = {fact.id: self._verdict(fact, ranks, final, eligible) for fact in self.live}
        seen = len(self.live)
        return verdicts, Counts(seen, len(eligible), matched, len(found))

    def _verdict(
        self,
        fact: OneFact,
        ranks: Mapping[int, int],
        final: Mapping[int, float],
        eligible: Sequence[OneFact],
    ) -> Verdict:
        known, filtered = self.knows(fact), self.filtered(fact)
        status = self.oracle.status(fact.number, self.as_of, self.known_at) if known else None
        if fact.number in ranks:
            rank, score = ranks[fact.number], final[fact.number]
            floor = self.options.get("min_score")
            low = floor is not None and score < floor
            reason = "below-min-score" if low else "below-k" if rank > self.options["k"] else "returned"
            return Verdict(reason, status, filtered, rank, score)
        if not known:
            return Verdict("not-known", status, filtered)
        if filtered:
            return Verdict("filtered", status, filtered)
        if fact not in eligible:
            return Verdict("not-current", status, filtered)
        matches = (self.mode != "semantic" and self.lexical(fact, eligible) + self.label(fact) > 0.0) or (
            self.mode != "lexical" and self.cosine(fact) is not None
        )
        unmatched = "no-match" if self.mode == "lexical" else "no-vector"
        return Verdict("below-candidates" if matches else unmatched, status, filtered)


def _times(sought: Sequence[str], words: Sequence[str]) -> int:
    """How often words follow one another in others, none counted twice."""
    at = found = 0
    while at + len(sought) <= len(words):
        here = list(words[at : at + len(sought)]) == list(sought)
        found, at = found + here, at + (len(sought) if here else 1)
    return found


def _first(scores: Mapping[int, float], limit: int) -> dict[int, float]:
    order = sorted(scores, key=lambda number: (-round(scores[number], EPSILON), number))
    return {number: scores[number] for number in order[:limit]}


def _spread(values: Mapping[int, float]) -> dict[int, float]:
    low, high = min(values.values(), default=0.0), max(values.values(), default=0.0)
    if round(low, EPSILON) == round(high, EPSILON):
        return dict.fromkeys(values, 1.0)
    return {number: (value - low) / (high - low) for number, value in values.items()}


def _reciprocal(values: Mapping[int, float]) -> dict[int, float]:
    order = sorted(values, key=lambda number: (-round(values[number], EPSILON), number))
    return {number: 1.0 / (10 + rank) for rank, number in enumerate(order, 1)}
