"""The story of `perdure demo`: a few people over some years, told to a store step by step."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from perdure.base.clock import ManualClock
from perdure.memory.config import MemoryConfig
from perdure.model.hit import Explanation
from perdure.model.inputs import NewFact
from perdure.store import Memory

CONFIG = MemoryConfig(supersession="latest-by-subject")
SECRET = "quince-4410"  # noqa: S105 - of a workshop in a story
END = "2024-06-01"  # the present of the story

BEGINNING: tuple[tuple[str, NewFact], ...] = (
    (
        "2019-03-04",
        NewFact(id="porto", text="Mara lives in Porto", subject="mara/home", valid_from="2018-09-01"),
    ),
    ("2019-03-04", NewFact(id="violins", text="Mara repairs old violins", tags=["work"])),
    ("2019-03-04", NewFact(id="brother", text="Tomas is the brother of Mara")),
    (
        "2019-06-12",
        NewFact(
            id="bees", text="Tomas keeps bees on his roof", subject="tomas/bees", valid_from="2017-05-01"
        ),
    ),
    ("2019-06-12", NewFact(id="honey", text="Mara dislikes honey", kind="semantic")),
    (
        "2020-02-20",
        NewFact(id="lodger", text="Ines rents the room above the workshop of Mara", valid_from="2020-02-01"),
    ),
    ("2020-02-20", NewFact(id="student", text="Ines studies music")),
    ("2020-11-05", NewFact(id="viola", text="Ines plays the viola", subject="ines/instrument")),
    ("2020-11-05", NewFact(id="quartet", text="Ines founded a quartet", event_time="2020-10-17")),
    (
        "2021-01-09",
        NewFact(id="hours", text="The workshop of Mara opens at nine", subject="mara/hours", tags=["work"]),
    ),
    ("2022-08-03", NewFact(id="wood", text="Mara buys spruce from a mill in the Jura", tags=["work"])),
    (
        "2023-02-14",
        NewFact(id="alarm", text=f"The alarm code of the workshop is {SECRET}", subject="mara/alarm"),
    ),
)
MOVE = (
    "2021-05-10",
    NewFact(id="ghent", text="Mara lives in Ghent", subject="mara/home", valid_from="2021-04-01"),
)
WHERE = "where does Mara live"
Asked = tuple[tuple[str, dict[str, str]], ...]


@dataclass(frozen=True)
class Step:
    """One step of the demonstration: what happens, in words, and a table of what was seen."""

    title: str
    says: str
    headers: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    explanation: Explanation | None = None


class Demonstration:
    """Tells the story to an empty memory whose clock it sets."""

    def __init__(self, memory: Memory, clock: ManualClock, folder: Path) -> None:
        self._memory, self._clock, self._folder = memory, clock, folder

    def steps(self) -> list[Step]:
        parts: tuple[Callable[[], Step], ...] = (
            self._remember,
            self._supersede,
            self._recall,
            self._correct,
            self._explain,
            self._end,
            self._forget,
        )
        return [part() for part in parts]

    def _remember(self) -> Step:
        rows = []
        for day, fact in sorted([*BEGINNING, MOVE], key=lambda told: told[0]):
            self._clock.set(day)
            reply = self._memory.remember_many([fact])[0]
            if fact is not MOVE[1]:
                rows.append((day, reply.outcome, fact.text))
        self._clock.set(END)
        return Step(
            "Remember",
            f"Over four years {len(BEGINNING)} things are told. Each is kept with the day it was told.",
            ("told", "outcome", "text"),
            tuple(rows),
        )

    def _supersede(self) -> Step:
        facts = self._memory.history("ghent")
        rows = [
            ("" if fact.valid_from is None else f"{fact.valid_from:%Y-%m-%d}", fact.status.value, fact.text)
            for fact in facts
        ]
        return Step(
            "The world changes",
            "Mara moves on 1 April 2021 and we hear of it on 10 May. Both facts have the subject mara/home: "
            "the newer one takes the older one's place from its first day on, and the older one is kept.",
            ("holds from", "status now", "text"),
            tuple(rows),
        )

    def _recall(self) -> Step:
        asked: Asked = (
            ("now", {}),
            ("as of 2020-06-01", {"as_of": "2020-06-01"}),
            ("as of 2021-04-15", {"as_of": "2021-04-15"}),
            ("as of 2021-04-15, known at 2021-04-15", {"as_of": "2021-04-15", "known_at": "2021-04-15"}),
        )
        rows = [(words, self._answer(WHERE, **times)) for words, times in asked]
        return Step(
            "Recall, at any moment",
            "Where does Mara live? as-of asks what was true then, known-at what we had been told by then. "
            "On 15 April we still believed the old address.",
            ("asked", "answer"),
            tuple(rows),
        )

    def _correct(self) -> Step:
        self._memory.correct("Ines plays the cello", id="viola", new_id="cello")
        query = "what does Ines play"
        asked: Asked = (
            ("now", {}),
            ("known at 2023-01-01", {"as_of": "2023-01-01", "known_at": "2023-01-01"}),
        )
        rows = [(words, self._answer(query, **times)) for words, times in asked]
        return Step(
            "Correct a mistake",
            "It was never a viola. A correction counts for the whole past, yet what we believed stays on record.",
            ("asked", "answer"),
            tuple(rows),
        )

    def _explain(self) -> Step:
        why = self._memory.explain(WHERE, "porto")
        return Step(
            "Explain an absence",
            "Why does Porto not come back, though its words match?",
            (),
            (),
            why,
        )

    def _end(self) -> Step:
        self._memory.end("bees", at="2023-10-01", reason="gave the hives away")
        about = {"subject": "tomas/bees"}
        asked: Asked = (("as of 2022-07-01", {"as_of": "2022-07-01", **about}), ("now", about))
        rows = [(words, self._answer("does Tomas keep bees", **options)) for words, options in asked]
        return Step(
            "End a fact",
            "Tomas gave his hives away on 1 October 2023. Nothing takes the fact's place.",
            ("asked", "answer"),
            tuple(rows),
        )

    def _forget(self) -> Step:
        query = f"alarm code {SECRET}"
        before = self._files_with_secret()
        found = self._answer(query)
        self._memory.forget(subject="mara/alarm")
        rows = (
            ("recall", found, self._answer(query)),
            ("get", "the fact", _count(self._memory.get("alarm") is not None)),
            ("history", "1 fact", _count(len(self._memory.history("alarm")))),
            ("files that hold it", str(before), str(self._files_with_secret())),
        )
        return Step(
            "Forget, for good",
            "The alarm code goes. It is gone from every answer, at every as-of and known-at, and the bytes "
            f"“{SECRET}” are gone from every file of the store.",
            ("looked at", "now", "before"),
            tuple((what, now, earlier) for what, earlier, now in rows),
        )

    def _answer(self, query: str, **options: Any) -> str:
        hits = self._memory.recall(query, k=1, **options)
        return hits[0].text if hits else "nothing"

    def _files_with_secret(self) -> int:
        files = [path for path in self._folder.rglob("*") if path.is_file()]
        return sum(SECRET.encode() in path.read_bytes() for path in files)


def _count(facts: int) -> str:
    return "nothing" if not facts else f"{facts}"
