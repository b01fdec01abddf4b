"""Processes that write, forget and purge on one store, killed at random points while a survivor goes on.

Every batch of facts has a name, a size and a marker that is in each of its texts. A child tells what it is about to do
and what was acknowledged; from that the run knows what must be there, what must be gone, and what may be either, whole.
"""

from __future__ import annotations

import shutil
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from hashlib import blake2b
from itertools import count
from pathlib import Path
from random import Random
from typing import Any

from crash.children import Child, Nursery, Tell
from perdure import Memory, NewFact, Store
from perdure.log.sqlite import SqliteLog  # noqa: F401 - imported before the fork, not after it

LETTERS = "bcfghkmpvwbcfghk"  # none that a stemmer would take off
PATTERN = "xqz[bcfghkmpvw]{12}x"
SIZES = (1, 2, 3, 5, 30)
SPACES = ("ada", "ben", "cleo")
KINDS = ("write", "write", "forget", "forget", "purge", "erase")
AT_ONCE = 3
ERA = 60  # kills after which spaces of other names are used, so that no child loads a long history
YOUNG = 0.15  # share of children that are killed while they may still be opening
YOUNG_S = 0.06
WORDS = 6  # that another child says in the mean before it is killed; what it does next takes as long as a word took
PURGING_SHARE = 0.1  # of forgets
# What may lie beside the one generation; the journal stays after a kill until it is next written, and holds no text.
NAMES = {"store.lock", "store.lock-journal", "writer.lock", "writer.next", "backup.lock", "audit"}


def marker_of(tag: str) -> str:
    digest = blake2b(tag.encode(), digest_size=6).hexdigest()
    return "xqz" + "".join(LETTERS[int(digit, 16)] for digit in digest) + "x"


def batch_of(tag: str, size: int) -> list[NewFact]:
    """Return the facts of a batch; each later one replaces the one before it."""
    marker = marker_of(tag)
    return [
        NewFact(
            text=f"{marker.upper()} member {place} of {size}",
            id=f"{tag}.{place}",
            tags=[tag],
            subject=marker,
            metadata={"said": marker.title()},
            supersedes=[f"{tag}.{place - 1}"] if place else None,
        )
        for place in range(size)
    ]


class Teller:
    """Writes and forgets batches, telling before and after each."""

    def __init__(self, tell: Tell, name: str, seed: int) -> None:
        self.tell, self.name, self.random = tell, name, Random(seed)
        self._places = count()

    def write(self, memory: Memory, principal: str) -> str:
        tag, size = f"{self.name}-{next(self._places)}", self.random.choice(SIZES)
        self.tell("writing", tag, principal, size)
        memory.remember_many(batch_of(tag, size), idempotency_key=self.random.choice((None, tag)))
        self.tell("wrote", tag)
        return tag

    def forget(self, memory: Memory, tag: str, **options: Any) -> None:
        marker = marker_of(tag)
        self.tell("forgetting", tag)
        scope: dict[str, Any] = self.random.choice(
            ({"tag": tag}, {"subject": marker}, {"filter": {"said": marker.title()}})
        )
        gone = memory.forget(**scope, **options)
        self.tell("forgot", tag, gone.pending)


def write(tell: Tell, directory: str, name: str, seed: int, era: int) -> None:
    """Write batches until killed."""
    teller = Teller(tell, name, seed)
    store = Store.open(directory)
    tell("opened")
    while True:
        principal = f"{teller.random.choice(SPACES)}{era}"
        teller.write(store.memory(principal), principal)


def forget(tell: Tell, directory: str, name: str, seed: int, era: int) -> None:
    """Forget batches, its own and others', until killed."""
    teller = Teller(tell, name, seed)
    store = Store.open(directory)
    tell("opened")
    while True:
        principal = f"{teller.random.choice(SPACES)}{era}"
        memory = store.memory(principal)
        own = teller.write(memory, principal)
        recent = [fact.tags[0] for fact in memory.list(order="-ingest", limit=50).items]
        teller.forget(
            memory, teller.random.choice((own, *recent)), purge=teller.random.random() < PURGING_SHARE
        )


def purge(tell: Tell, directory: str, name: str, seed: int, era: int) -> None:
    """Purge until killed."""
    random = Random(seed)
    store = Store.open(directory)
    tell("opened")
    while True:
        tell("purging")
        tell("purged", store.purge().pending)
        time.sleep(random.random() * 0.03)


def erase(tell: Tell, directory: str, name: str, seed: int, era: int) -> None:
    """Write as a person of one's own and erase that person, again and again, until killed."""
    teller = Teller(tell, name, seed)
    store = Store.open(directory)
    tell("opened")
    for time_ in count():
        principal = f"{name}/{time_}"
        tags = [teller.write(store.memory(principal), principal) for _ in range(2)]
        for tag in tags:
            tell("forgetting", tag)
        pending = store.erase(principal).pending
        for tag in tags:
            tell("forgot", tag, pending)
        tell("purged", pending)


@dataclass
class Known:
    """What children told, by batch."""

    written: dict[str, tuple[str, int]] = field(
        default_factory=dict
    )  # principal and size, also of unfinished ones
    wrote: set[str] = field(default_factory=set)
    forgetting: set[str] = field(default_factory=set)
    forgot: set[str] = field(default_factory=set)
    cleaned: set[str] = field(default_factory=set)  # of these the text was said to be in no file
    purges: int = 0

    def tell(self, word: str, *told: Any) -> None:
        match word, *told:
            case "writing", tag, principal, size:
                self.written[tag] = principal, size
            case "wrote", tag:
                self.wrote.add(tag)
            case "forgetting", tag:
                self.forgetting.add(tag)
            case "forgot", tag, pending:
                self.forgot.add(tag)
                if not pending:
                    self.cleaned.add(tag)
            case "purged", _:
                self.purges += 1

    def sure(self) -> list[str]:
        """Return the batches that must be there."""
        return sorted(self.wrote - self.forgetting)


@dataclass
class Life:
    """A child under way: it is killed at a moment, or after so many words and some part of what it does then."""

    kind: str
    words: int
    at: float = float("inf")
    born: float = field(default_factory=time.monotonic)
    heard: int = 0


@dataclass
class Summary:
    """What a run of kills came to. All of `wrong` is a defect."""

    kills: Counter[str] = field(default_factory=Counter)  # by kind of the child
    moments: Counter[str] = field(default_factory=Counter)  # by what the child had said last
    batches: int = 0  # acknowledged
    forgets: int = 0  # acknowledged
    pending: int = 0  # of these answered `pending`
    purges: int = 0  # acknowledged
    scans: int = 0
    seconds: float = 0.0
    wrong: list[str] = field(default_factory=list)

    def line(self) -> str:
        kinds = ", ".join(f"{number} {kind}" for kind, number in sorted(self.kills.items()))
        return (
            f"{self.kills.total()} kills ({kinds}): {self.batches} batches, {self.forgets} forgets "
            f"({self.pending} pending) and {self.purges} purges acknowledged; {self.scans} scans; "
            f"{len(self.wrong)} wrong; {self.seconds:.0f} s"
        )


class Run:
    """One store under kills. `go` starts and kills children; `finish` checks what is left."""

    def __init__(self, directory: Path, nursery: Nursery, seed: int, kinds: tuple[str, ...] = KINDS) -> None:
        self.directory, self.nursery, self.random, self.kinds = directory, nursery, Random(seed), kinds
        self.known, self.summary = Known(), Summary()
        self._living: dict[Child, Life] = {}
        self._started = self._era = 0
        self.survivor = Store.open(directory)
        self._teller = Teller(self.known.tell, "survivor", seed)

    def go(self, kills: int) -> None:
        begun = time.monotonic()
        next_scan = 10
        while (done := self.summary.kills.total()) < kills:
            while len(self._living) < AT_ONCE and done + len(self._living) < kills:
                self._start()
            first = min(life.at for life in self._living.values())
            self.nursery.hear(min(0.05, max(0.0, first - time.monotonic())))
            self._listen()
            for child, life in list(self._living.items()):
                if time.monotonic() >= life.at:
                    self._kill(child, life)
            self._survive()
            if done >= next_scan:
                next_scan += 10
                self._scan_amid()
        self.summary.seconds = time.monotonic() - begun

    def _start(self) -> None:
        kind = self.random.choice(self.kinds)
        self._era = self.summary.kills.total() // ERA
        name, seed = f"{kind}{self._started}", self.random.randrange(1 << 30)
        child = self.nursery.start(kind, str(self.directory), name, seed, self._era)
        self._started += 1
        life = self._living[child] = Life(kind, 1 + int(self.random.expovariate(1 / WORDS)))
        if self.random.random() < YOUNG:
            life.at = life.born + self.random.random() * YOUNG_S

    def _listen(self) -> None:
        for child, life in self._living.items():
            for said in child.said[life.heard :]:
                self.known.tell(*said)
            life.heard = len(child.said)
            if child.failure:
                raise AssertionError(f"a child that was to {life.kind} failed: {child.failure}")
            if life.heard >= life.words and life.at == float("inf"):
                now = time.monotonic()
                life.at = now + self.random.random() * (now - life.born) / life.heard

    def _kill(self, child: Child, life: Life) -> None:
        self.nursery.kill(child)
        self._listen()
        del self._living[child]
        self.summary.kills[life.kind] += 1
        self.summary.moments[child.said[-1][0] if child.said else "opening"] += 1

    def _survive(self) -> None:
        """Do one thing with the handle that was open all the while; it must answer rightly."""
        random, known = self.random, self.known
        principal = f"{random.choice(SPACES)}{self._era}"
        memory = self.survivor.memory(principal)
        match random.randrange(20):
            case 0:
                findings = self.survivor.verify().findings
                self._expect(not findings, f"a verification amid the run finds {findings[:1]}")
            case 1 | 2 | 3:
                self._teller.write(memory, principal)
            case 4 | 5 | 6:
                own = [tag for tag in known.sure() if tag.startswith("survivor")]
                if own:
                    tag = random.choice(own)
                    self._teller.forget(self.survivor.memory(known.written[tag][0]), tag)
            case 7 | 8 | 9 if known.forgot:
                tag = random.choice(sorted(known.forgot))
                memory = self.survivor.memory(known.written[tag][0])
                texts = [hit.text for hit in memory.recall(marker_of(tag), history="all")]
                self._expect(
                    not any(marker_of(tag).upper() in text for text in texts), f"{tag} came back in recall"
                )
                self._expect(memory.get(f"{tag}.0") is None, f"{tag} came back")
            case _:
                # Only what nobody else may be forgetting at this very moment must be there.
                sure = known.sure()
                if sure:
                    tag = random.choice(sure)
                    place, size = known.written[tag]
                    found = self.survivor.memory(place).get(f"{tag}.{size - 1}")
                    self._listen_again()
                    self._expect(
                        found is not None or tag in known.forgetting, f"{tag} is lost to the survivor"
                    )

    def _listen_again(self) -> None:
        self.nursery.hear(0)
        self._listen()

    def _scan_amid(self) -> None:
        """What a forget said to have cleaned is in no file, whoever was killed since, and whoever still writes."""
        gone = {marker_of(tag) for tag in self.known.cleaned}
        found = self.nursery.scan(self.directory, PATTERN)
        self._listen()
        self.summary.scans += 1
        self._expect(not found & gone, f"{len(found & gone)} cleaned markers are in files, amid the run")

    def finish(self, copy: Path) -> Summary:
        """End all children and check what is left: by the survivor, by a fresh opening, by a rebuild."""
        for child, life in list(self._living.items()):
            self._kill(child, life)
        # A killed commit that nobody saw may still lie whole in the write-ahead log, and a later opening would find
        # it. The next write decides: it takes the place.
        self._teller.write(self.survivor.memory(SPACES[0]), SPACES[0])
        held = self._check(self.survivor, "the survivor")
        self._check_files()
        with Store.open(self.directory) as fresh:
            findings = fresh.verify().findings
            self._expect(not findings, f"a verification finds {findings[:1]}")
            self._expect(self._check(fresh, "a fresh opening") == held, "a fresh opening answers otherwise")
        self.survivor.close()
        shutil.copytree(self.directory, copy, ignore=shutil.ignore_patterns("cache-*"))
        with Store.open(copy) as rebuilt:
            self._expect(self._check(rebuilt, "a rebuild") == held, "a rebuild answers otherwise")
        known, summary = self.known, self.summary
        summary.batches, summary.forgets = len(known.wrote), len(known.forgot)
        summary.pending, summary.purges = len(known.forgot) - len(known.cleaned), known.purges
        return summary

    def _check(self, store: Store, who: str) -> dict[str, list[Any]]:
        """Compare what is there with what was told; return all answers."""
        answers = {space.principal: answers_of(store.memory(space.principal)) for space in store.spaces()}
        there = Counter(fact.tags[0] for facts, *_ in answers.values() for fact in facts)
        for tag, (_, size) in self.known.written.items():
            self._expect(there[tag] in (0, size), f"{who}: {there[tag]} of the {size} facts of {tag}")
            if tag in self.known.forgot:
                self._expect(there[tag] == 0, f"{who}: {tag} was forgotten and is there")
            elif tag in self.known.wrote and tag not in self.known.forgetting:
                self._expect(there[tag] == size, f"{who}: {tag} was acknowledged and is lost")
        self._expect(there.keys() <= self.known.written.keys(), f"{who}: facts that nobody told")
        # A write that was cut short may leave its text in the write-ahead log: nobody was told of it, or forgot it.
        self._gone = [tag for tag in self.known.forgetting if there[tag] == 0]
        self._there = [tag for tag in self.known.written if there[tag]]
        return answers

    def _check_files(self) -> None:
        found = self.nursery.scan(self.directory, PATTERN)
        self.summary.scans += 1
        for tag in self._gone:
            self._expect(marker_of(tag) not in found, f"the marker of {tag} is in a file")
        for tag in self._there:  # the positive control
            self._expect(
                marker_of(tag) in found, f"the marker of {tag} was not found, though its facts are there"
            )
        names = {path.name for path in self.directory.iterdir()} - NAMES
        numbers = {name.split(".")[0].partition("-")[2] for name in names}
        self._expect(len(numbers) == 1, f"files are left over: {sorted(names)}")

    def _expect(self, right: object, wrong: str) -> None:
        if not right:
            self.summary.wrong.append(wrong)


def answers_of(memory: Memory) -> list[Any]:
    """Return what a space answers: every fact with its status, and what some questions find, with scores."""
    facts: list[Any] = []
    cursor = None
    while True:
        page = memory.list(limit=1000, cursor=cursor)
        facts += page.items
        cursor = page.cursor
        if cursor is None:
            break
    questions: list[Callable[[], Any]] = [
        lambda: memory.recall("member 1 of 5", k=50),
        lambda: memory.recall("member", k=50, history="all"),
    ]
    questions += [lambda fact=fact: memory.recall(fact.subject, history="all") for fact in facts[::97]]
    return [facts, *(ask() for ask in questions)]


def run(directory: Path, kills: int, seed: int, kinds: tuple[str, ...] = KINDS) -> Summary:
    """Run so many kills on a new store in the directory."""
    with Nursery("crash.kills") as nursery:
        work = Run(directory / "store", nursery, seed, kinds)
        try:
            work.go(kills)
            return work.finish(directory / "rebuilt")
        finally:
            work.survivor.close()
