"""Running calls on a memory, and reading all that it shows in plain values."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import UTC, datetime, timedelta
from random import Random
from typing import Any

from backends import fresh
from perdure import ManualClock, Memory, MemoryConfig, PerdureError
from properties.memory_oracle import canonical
from properties.strategies import NOW, Call, a_call, planting

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
SECRET = bytes(range(32))
QUERY = "alpha beta gamma delta epsilon"  # every told text holds one of these words
CONFIGS = [
    MemoryConfig(supersession=policy, on_id_conflict=conflict)
    for policy in ("explicit", "latest-by-subject")
    for conflict in ("reject", "replace")
]


def millis(moment: datetime | None) -> int | None:
    return None if moment is None else (moment - EPOCH) // timedelta(milliseconds=1)


class Space:
    """One memory of a store in memory, with the clock that tells its time."""

    def __init__(self, config: MemoryConfig | None = None) -> None:
        self.clock = ManualClock(NOW)
        self.store = fresh(clock=self.clock, secret=SECRET)
        self.memory: Memory = self.store.memory(config=config)

    def run(self, call: Call) -> Any:
        """Return the reply, or the code of the error."""
        name, told = call
        if name == "advance":
            return self.clock.advance(told["milliseconds"])
        try:
            return getattr(self.memory, name)(**told)
        except PerdureError as error:
            return error.code

    def run_all(self, script: Iterable[Call]) -> list[Any]:
        return [self.run(call) for call in script]


def random_script(seed: int, size: int, kind: Callable[[Random], Call] = a_call) -> list[Call]:
    random = Random(seed)
    return planting(random) + [kind(random) for _ in range(size)]


def shown(fact: Any) -> dict[str, Any]:
    """A fact as plain values."""
    return {
        "id": fact.id,
        "text": fact.text,
        "subject": fact.subject,
        "entities": fact.entities,
        "metadata": canonical(fact.metadata),
        "tags": fact.tags,
        "kind": fact.kind,
        "importance": fact.importance,
        "pinned": fact.pinned,
        "event_time": millis(fact.event_time),
        "valid_from": millis(fact.valid_from),
        "valid_to": millis(fact.valid_to),
        "ingest_time": millis(fact.ingest_time),
        "ends": tuple((millis(end.at), millis(end.recorded_at)) for end in fact.ends),
        "hidden": fact.hidden,
        "supersedes": fact.supersedes,
        "superseded_by": fact.superseded_by,
        "status": fact.status.value,
    }


def listed(memory: Memory, **options: Any) -> tuple[Any, ...]:
    return memory.list(limit=1_000, **options).items  # type: ignore[no-any-return]


def statuses(memory: Memory, **options: Any) -> dict[str, str]:
    return {fact.id: fact.status.value for fact in listed(memory, **options)}


def recalled(memory: Memory, query: str = QUERY, **options: Any) -> dict[str, str]:
    hits = memory.recall(query, k=1_000, candidate_limit=1_000, **options)
    return {hit.id: hit.status.value for hit in hits}


def everything(
    memory: Memory, *, as_ofs: Iterable[int | None] = (None, 3), known_ats: Iterable[int | None] = (None, 102)
) -> Any:
    """All that reads show, scores and explanations included: equal for equal states, bit for bit."""
    answers: list[Any] = [memory.changes(limit=1_000).items, memory.list(hidden=True, limit=1_000).items]
    for as_of in as_ofs:
        for known_at in known_ats:
            times: dict[str, Any] = {"as_of": as_of, "known_at": known_at}
            facts = listed(memory, **times)
            answers.append(facts)
            answers += [memory.history(fact.id, **times) for fact in facts]
            for history in ("current", "all", "historical"):
                answers.append(memory.recall(f"{QUERY} red semantic", history=history, explain=True, **times))
            answers += [memory.explain("alpha gamma", fact.id, **times) for fact in facts]
    return answers
