"""Random spaces and questions, every answer to which is held to `recall_oracle`. A seed makes a trial."""

from __future__ import annotations

import math
import struct
from collections import Counter
from random import Random
from typing import Any

from perdure import MemoryConfig
from perdure.policies import ExponentialRecency, Relevance, combined_score
from perdure.policies.relevance import DAY_MS
from properties.memory_run import millis
from properties.recall_oracle import DECAY, FILTERS, HALF_LIFE, YEAR, Judge, Told
from properties.test_memory_machine import SideBySide

WORDS = ("alpha", "beta", "gamma", "delta", "red", "boat")
VECTORS = ((1.0, 0.0, 0.0), (0.75, 1.0, 0.0), (0.0, 1.0, 1.0), (-1.0, 2.0, 0.5), (0.25, 0.25, 3.0))
TIMES = (None, None, 1, 2, 5, 8, 98, 101, 104, 110)
ACTORS = (None, "Ann", "Bob Lee")
LIMITING: dict[str, tuple[Any, ...]] = {
    "as_of": (0, 2, 5, 101, 150),
    "known_at": (99, 101, 103),
    "subject": ("s", "o"),
    "tags": (["red"], ["blue", "red"]),
    "kind": ("semantic",),
    "pinned": (True, False),
    "filter": tuple(asked for asked, _ in FILTERS.values()),
    "min_score": (0.12, 0.42),  # not to be met exactly, where the last bit would decide
}
ALL = 1_000  # more than there are facts


class Trial:
    """A space with a history, and questions to it."""

    def __init__(self, seed: int) -> None:
        self.random = random = Random(seed)
        self.recency = random.random() < 0.3
        self.weight = random.choice((1.0, 1.0, 0.45))
        self.relevance = random.random() < 0.4
        config = MemoryConfig(
            supersession=random.choice(("explicit", "latest-by-subject")),
            recency=ExponentialRecency(half_life_ms=HALF_LIFE) if self.recency else "none",
            ranking=Relevance(decay_days=DECAY / DAY_MS) if self.relevance else "score",
            historical_weight=self.weight,
            trace_limit=ALL,
        )
        self.both = SideBySide(config)
        self.memory, self.oracle = self.both.space.memory, self.both.oracle
        self.told: dict[str, Told] = {}
        self.counts: Counter[str] = Counter()
        for number in range(random.randint(4, 14)):
            self._tell(f"f{number}")
            self.both.run(("advance", {"milliseconds": random.choice((0, 1, 2))}))
        for number in range(random.randint(0, 6)):
            self._change(f"c{number}")

    def _tell(self, id_: str) -> None:
        random = self.random
        call: dict[str, Any] = {
            "text": " ".join(random.choices(WORDS, k=random.randint(1, 5))),
            "id": id_,
            "subject": random.choice((None, "s", "s", "o")),
            "valid_from": random.choice(TIMES),
            "event_time": random.choice(TIMES),
            "valid_to": random.choice((None, None, 111, 120)),
            "tags": random.choice(([], ["red"], ["red", "blue"])),
            "kind": random.choice((None, None, "semantic")),
            "importance": random.choice((None, 0.0, 0.5, 1.0)),
            "pinned": random.choice((False, True)),
            "metadata": {"n": random.randint(1, 4), "at": {"city": random.choice(("Oslo", "Rome"))}},
        }
        if self.told and random.random() < 0.3:
            call["supersedes"] = [random.choice(list(self.told))]
        uri = random.choice((None, "u", "u", "v"))
        told = Told(
            random.choice((None, *VECTORS)),
            uri,
            None if uri is None else random.randint(0, 6),
            random.choice(ACTORS),
        )
        source = {"uri": told.uri, "position": told.position, "actor": told.actor}
        call["source"] = {name: value for name, value in source.items() if value is not None} or None
        call["embedding"] = None if told.vector is None else list(told.vector)
        self.told[id_] = told
        self.both.run(("remember", {name: value for name, value in call.items() if value is not None}))

    def _change(self, new_id: str) -> None:
        random = self.random
        id_ = random.choice(list(self.told))
        calls = (
            ("end", {"id": id_, "at": random.choice(TIMES)}),
            ("retract", {"id": id_}),
            ("forget", {"ids": [id_], "soft": random.random() < 0.6}),
            ("restore", {"ids": [id_]}),
            ("correct", {"new_text": f"corrected {random.choice(WORDS)}", "id": id_, "new_id": new_id}),
        )
        self.both.run(random.choice(calls))
        if (fact := self.memory.get(new_id)) is not None:
            source = fact.source
            self.told[new_id] = (
                Told() if source is None else Told(None, source.uri, source.position, source.actor)
            )

    def question(self) -> tuple[str, dict[str, Any]]:
        """Return a query and options. The options that a mode has no use for are left out."""
        random = self.random
        query = " ".join(random.choices((*WORDS, "Ann", "Bob Lee", YEAR, "zebra"), k=random.randint(1, 4)))
        k = random.choice((1, 2, 10))
        options: dict[str, Any] = {"k": k, "candidate_limit": random.choice((max(k, 3), 100))}
        mode = random.choice(("lexical", "lexical", "semantic", "hybrid"))
        if mode != "lexical":
            options |= {"mode": mode, "embedding": list(random.choice(VECTORS))}
        if mode == "hybrid":
            options["fusion"] = random.choice(("minmax", "rrf"))
            if random.random() < 0.3:
                options["weights"] = {"lexical": 0.5, "semantic": random.choice((0.0, 0.5))}
        if random.random() < 0.4:
            options["context"] = True
        if random.random() < 0.2:
            start = random.choice((0, 2, 99, 108))
            options["valid_during"] = (start, start + random.choice((1, 4, 20)))
        else:
            options["history"] = random.choice(("current", "current", "all", "all", "historical"))
        # Many questions leave hardly a fact out, so that scores are compared and not only absences.
        often = random.choice((0.05, 0.05, 0.25))
        for name, values in LIMITING.items():
            if random.random() < often:
                options[name] = random.choice(values)
        return query, options

    def ask(self) -> None:
        """Ask one question of every fact in every way, and compare."""
        query, options = self.question()
        judge = Judge(self.oracle, self.told, query, options, self.both.now, relevance=self.relevance)
        weight = self.weight
        if options.get("history", "current") == "current" and "valid_during" not in options:
            weight = 1.0  # then everything that comes back is current
        verdicts, counts = judge.verdicts(recency=self.recency, historical_weight=weight)
        hits = self.memory.recall(query, explain=True, **options)
        returned = sorted((one.rank, id_) for id_, one in verdicts.items() if one.reason == "returned")
        assert [hit.id for hit in hits] == [id_ for _, id_ in returned]
        traced = self.memory.trace(query, **options)
        assert (traced.seen, traced.eligible) == (counts.seen, counts.eligible)
        assert (traced.matched, traced.scored) == (counts.matched, counts.scored)
        assert [(hit.id, bits(hit.score)) for hit in traced.results] == [
            (hit.id, bits(hit.score)) for hit in hits
        ]
        rejected = {one.id: one for one in traced.rejected}
        assert rejected.keys() == verdicts.keys() - {hit.id for hit in hits}
        for id_, verdict in verdicts.items():
            why = self.memory.explain(query, id_, **options)
            status = None if why.status is None else why.status.value
            assert (why.reason, why.rank, status, why.filtered_by) == (
                verdict.reason, verdict.rank, verdict.status, verdict.filtered,
            )  # fmt: skip
            if verdict.score is None:
                assert why.final_score is None
            else:
                assert math.isclose(why.final_score, verdict.score, rel_tol=1e-9, abs_tol=1e-12)
                assert bits(combined_score(why.parts)) == bits(why.final_score)
                self.counts["scores"] += 1
            if id_ in rejected:
                left = rejected[id_]
                assert (left.reason, left.status, left.filter) == (why.reason, why.status, why.filtered_by)
            self.counts["facts"] += 1
            self.counts[why.reason] += 1
        for hit in hits:
            assert hit.explanation == self.memory.explain(query, hit.id, **options)
            assert bits(hit.score) == bits(hit.explanation.final_score)
            assert millis(hit.explanation.as_of) == judge.as_of


def bits(score: float) -> bytes:
    return struct.pack(">d", score)
