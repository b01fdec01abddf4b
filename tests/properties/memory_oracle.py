"""A space in plain lists: what a memory must answer, worked out by brute force from the rules themselves.

Nothing here is shared with the code under test. Times are milliseconds; None stands for an absent time.
"""

from __future__ import annotations

import json
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

DAWN = -(10**17)  # before every instant that can be told

Plain = dict[str, Any]


class Refused(Exception):
    """The memory must raise an error of this code and change nothing."""

    def __init__(self, code: str) -> None:
        super().__init__(code)
        self.code = code


@dataclass(frozen=True)
class OneFact:
    """A stored fact: its payload as told, and what has been said of it since."""

    number: int
    id: str
    text: str
    ingest: int
    subject: str | None = None
    entities: tuple[str, ...] = ()
    metadata: str = "{}"  # canonical JSON, as told
    event_time: int | None = None
    valid_from: int | None = None
    valid_to: int | None = None
    tags: tuple[str, ...] = ()
    kind: str | None = None
    importance: float | None = None
    pinned: bool = False
    kept_eff: int | None = None  # corrections
    hidden: bool = False
    ends: tuple[tuple[int | None, int], ...] = ()  # (at, recorded); at None retracts
    noted: Plain | None = None  # annotations given later
    seen_metadata: str = "{}"

    @property
    def eff(self) -> int:
        told = (self.kept_eff, self.valid_from, self.event_time, self.ingest)
        return next(time for time in told if time is not None)

    @property
    def begin(self) -> tuple[int, int]:
        return (self.eff, self.number)

    def annotations(self) -> Plain:
        if self.noted is not None:
            return self.noted
        return {"tags": self.tags, "kind": self.kind, "importance": self.importance, "pinned": self.pinned}

    def payload(self) -> tuple[Any, ...]:
        times = (self.event_time, self.valid_from, self.valid_to)
        return (self.text, self.subject, self.entities, self.metadata, *times)

    def closes(self, known_at: int | None) -> list[int]:
        """Every instant at which validity closes, as known; a retraction closes at the dawn."""
        told = [] if self.valid_to is None else [self.valid_to]
        ends = [at for at, recorded in self.ends if known_at is None or recorded <= known_at]
        return told + [DAWN if at is None else at for at in ends]


@dataclass(frozen=True)
class OneLink:
    newer: int
    older: int
    corrects: bool = False
    since: int | None = None  # None: from where the newer fact takes effect


@dataclass
class Reply:
    """What a telling must answer; `key` is the content that a derived id stands for."""

    number: int
    outcome: str
    key: str | None = None
    supersedes: set[int] = field(default_factory=set)
    superseded_by: set[int] = field(default_factory=set)
    status: str = ""


def canonical(value: Any) -> str:
    """JSON that is equal for equal values: 1 equals 1.0, true is not 1, the order of keys does not count."""
    return json.dumps(_whole(value), sort_keys=True)


def _whole(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _whole(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_whole(item) for item in value]
    return int(value) if isinstance(value, float) and value.is_integer() else value


def blocked_form(text: str) -> str:
    return " ".join(unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", text).casefold()).split())


class Oracle:
    """One space under one configuration."""

    def __init__(self, *, latest: bool = False, replaces: bool = False) -> None:
        self.latest, self.replaces = latest, replaces
        self.facts: dict[int, OneFact] = {}
        self.links: list[OneLink] = []
        self.told: set[tuple[int, int]] = set()
        self.next = 0
        self.newest = DAWN
        self.blocked: set[tuple[str, str]] = set()
        self.derived: dict[str, str] = {}  # content -> id, learnt from the memory's first answer

    # One atomic write

    def write(self, call: Any, *arguments: Any, **named: Any) -> Any:
        """Run a write; whatever it changed is undone when it is refused."""
        before = (
            dict(self.facts),
            list(self.links),
            set(self.told),
            self.next,
            self.newest,
            set(self.blocked),
        )
        try:
            return call(*arguments, **named)
        except Refused:
            self.facts, self.links, self.told, self.next, self.newest, self.blocked = before
            raise

    def now(self, clock: int) -> int:
        return max(clock, self.newest)

    # Reads

    def find(self, id_: str) -> OneFact | None:
        return next((fact for fact in self.facts.values() if fact.id == id_), None)

    def find_live(self, id_: str) -> OneFact:
        fact = self.find(id_)
        if fact is None or fact.hidden:
            raise Refused("not_found")
        return fact

    def known(self, known_at: int | None = None) -> list[OneFact]:
        live = (fact for fact in self.facts.values() if not fact.hidden)
        return [fact for fact in live if known_at is None or fact.ingest <= known_at]

    def since(self, link: OneLink) -> int:
        return self.facts[link.newer].eff if link.since is None else link.since

    def linked(self, known_at: int | None) -> list[OneLink]:
        seen = {fact.number for fact in self.known(known_at)}
        return [link for link in self.links if link.newer in seen and link.older in seen]

    def status(self, number: int, at: int, known_at: int | None = None) -> str:
        fact = self.facts[number]
        if fact.hidden:
            return "hidden"
        if any(link.older == number and self.since(link) <= at for link in self.linked(known_at)):
            return "superseded"
        closes = fact.closes(known_at)
        if DAWN in closes:
            return "expired"
        if fact.valid_from is not None and at < fact.valid_from:
            return "not-yet-valid"
        return "expired" if any(at >= close for close in closes) else "current"

    def statuses(self, at: int, known_at: int | None = None) -> dict[str, str]:
        return {fact.id: self.status(fact.number, at, known_at) for fact in self.known(known_at)}

    def view(self, fact: OneFact, at: int, known_at: int | None = None) -> Plain:
        """Everything that a read shows of a fact."""
        known = {one.number for one in self.known(known_at)}
        ends = [end for end in fact.ends if known_at is None or end[1] <= known_at]
        return {
            "id": fact.id,
            "text": fact.text,
            "subject": fact.subject,
            "entities": fact.entities,
            "metadata": fact.seen_metadata,
            **fact.annotations(),
            "event_time": fact.event_time,
            "valid_from": fact.valid_from,
            "valid_to": fact.valid_to,
            "ingest_time": fact.ingest,
            "ends": tuple(ends),
            "hidden": fact.hidden,
            "supersedes": self.ids({k.older for k in self.links if k.newer == fact.number} & known),
            "superseded_by": self.ids({k.newer for k in self.links if k.older == fact.number} & known),
            "status": self.status(fact.number, at, known_at),
        }

    def history(self, id_: str, known_at: int | None = None) -> list[OneFact]:
        fact = self.find(id_)
        known = self.known(known_at)
        if fact is None or fact not in known:
            return []
        members = self.component(fact.number)
        return sorted((one for one in known if one.number in members), key=lambda one: one.begin)

    def component(self, number: int) -> set[int]:
        members = {number}
        while True:
            touching = [link for link in self.links if members & {link.newer, link.older}]
            wider = members.union(*({link.newer, link.older} for link in touching))
            if wider == members:
                return members
            members = wider

    def ids(self, numbers: Iterable[int]) -> tuple[str, ...]:
        return tuple(sorted({self.facts[n].id for n in numbers if not self.facts[n].hidden}))

    # Links

    def reaches(self, upper: int, lower: int) -> bool:
        """Whether `upper` stands above `lower` through links, or is it."""
        seen, edge = {lower}, {lower}
        while edge:
            edge = {link.newer for link in self.links if link.older in edge} - seen
            seen |= edge
        return upper in seen

    def draw(self, link: OneLink, *, told: bool = False) -> None:
        same = (link.newer, link.older, link.corrects)
        self.links = [one for one in self.links if (one.newer, one.older, one.corrects) != same] + [link]
        if told:
            self.told.add((link.newer, link.older))

    def draw_told(self, newer: int, older: int) -> None:
        if self.reaches(older, newer):
            raise Refused("invalid_request")
        self.draw(OneLink(newer, older), told=True)

    def bridges(self, removed: set[int]) -> list[OneLink]:
        """The links that keep every survivor below what stood above it through removed facts."""
        found: dict[tuple[int, int, bool], int | None] = {}
        for lowest in self.links:
            if lowest.newer in removed and lowest.older not in removed:
                for top, corrects in self._climb(lowest.newer, removed, corrects=lowest.corrects):
                    place = (top, lowest.older, corrects)
                    since = self.since(lowest) if corrects else None
                    known = found.get(place)
                    found[place] = since if known is None or since is None else min(known, since)
        stored = {(one.newer, one.older, one.corrects): self.since(one) for one in self.links}
        return [
            OneLink(newer, older, corrects, since)
            for (newer, older, corrects), since in found.items()
            if (newer, older, corrects) not in stored
            or (since is not None and since < stored[newer, older, corrects])
        ]

    def _climb(self, number: int, removed: set[int], *, corrects: bool) -> Iterator[tuple[int, bool]]:
        for link in self.links:
            if link.older == number:
                both = corrects and link.corrects
                if link.newer in removed:
                    yield from self._climb(link.newer, removed, corrects=both)
                else:
                    yield link.newer, both

    def remove(self, numbers: Iterable[int]) -> None:
        gone = set(numbers)
        for link in self.bridges(gone):
            self.draw(link)
        self.links = [link for link in self.links if not gone & {link.newer, link.older}]
        self.told = {pair for pair in self.told if not gone & set(pair)}
        for number in gone:
            del self.facts[number]

    def link_by_policy(self, number: int, slot: Sequence[int]) -> tuple[set[int], set[int]]:
        """Run latest-by-subject for a fact among these of its slot; return what was linked below and above."""
        arrival = self.facts[number].begin
        order = sorted((n for n in slot if n != number), key=lambda n: self.facts[n].begin)
        before = [n for n in order if self.facts[n].begin < arrival]
        after = [n for n in order if self.facts[n].begin > arrival]
        below = [n for n in reversed(before) if not self.reaches(n, number)][:1]
        above = [n for n in after if not self.reaches(number, n)][:1]
        below += self._furthest(below, set(before), upward=True)
        above += self._furthest(above, set(after), upward=False)
        drawn: tuple[set[int], set[int]] = (set(), set())
        for newer, older in [*((number, n) for n in below), *((n, number) for n in above)]:
            linked = any((link.newer, link.older) == (newer, older) for link in self.links)
            if not linked and not self.reaches(older, newer):
                self.draw(OneLink(newer, older))
                drawn[newer != number].add(older if newer == number else newer)
        return drawn

    def _furthest(self, start: list[int], among: set[int], *, upward: bool) -> list[int]:
        """What is reached from the start through links between these facts and leads no further, ascending."""

        def onward(number: int) -> set[int]:
            pairs = [(k.older, k.newer) if upward else (k.newer, k.older) for k in self.links]
            return {there for here, there in pairs if here == number} & among

        reached, edge = set(start), set(start)
        while edge:
            edge = set().union(*(onward(n) for n in edge)) - reached
            reached |= edge
        return sorted(n for n in reached - set(start) if not onward(n))

    def slot(self, subject: str | None) -> list[int]:
        return [fact.number for fact in self.known() if fact.subject == subject and subject is not None]

    # Telling

    def remember(self, clock: int, tellings: Sequence[Plain]) -> list[Reply]:
        return self.write(self._remember, clock, tellings)  # type: ignore[no-any-return]

    def _remember(self, clock: int, tellings: Sequence[Plain]) -> list[Reply]:
        for told in tellings:
            self._check(told)
        now, settled = self.now(clock), set(self.facts)
        taken: set[str] = set()
        replies: list[Reply] = []
        followers: list[list[int]] = []
        for told in tellings:
            reply, above = self._store(now, told, taken)
            replies.append(reply)
            followers.append(above)
        for told, reply, above in zip(tellings, replies, followers, strict=True):
            if reply.outcome != "existing":
                self._draw_all_told(told, reply, above)
        entered = [n for n in settled if n in self.facts]
        for reply in replies:
            fact = self.facts[reply.number]
            if reply.outcome != "existing" and fact.subject is not None:
                entered.append(fact.number)
                slot = [n for n in self.slot(fact.subject) if n in entered]
                below, above_ = self.link_by_policy(fact.number, slot) if self.latest else (set(), set())
                reply.supersedes |= below
                reply.superseded_by |= above_
        for reply in replies:
            reply.status = self.status(reply.number, now)
        if any(reply.outcome != "existing" for reply in replies):
            self.newest = now
        return replies

    @staticmethod
    def _check(told: Plain) -> None:
        start, end = told.get("valid_from"), told.get("valid_to")
        if start is not None and end is not None and end <= start:
            raise Refused("invalid_request")
        if told.get("id") is not None and told["id"] in (told.get("supersedes") or ()):
            raise Refused("invalid_request")
        if told.get("reassert") and told.get("id") is not None:
            raise Refused("invalid_request")

    def content(self, told: Plain) -> Plain:
        """The fields of OneFact that a telling gives, in their normal form."""
        metadata = canonical(told.get("metadata") or {})
        return {
            "text": told["text"],
            "subject": told.get("subject"),
            "entities": tuple(sorted(set(told.get("entities") or ()))),
            "metadata": metadata,
            "seen_metadata": metadata,
            "event_time": told.get("event_time"),
            "valid_from": told.get("valid_from"),
            "valid_to": told.get("valid_to"),
            "tags": tuple(sorted(set(told.get("tags") or ()))),
            "kind": told.get("kind"),
            "importance": told.get("importance"),
            "pinned": told.get("pinned", False),
        }

    def _store(self, now: int, told: Plain, taken: set[str]) -> tuple[Reply, list[int]]:
        fact = OneFact(self.next, "", ingest=now, **self.content(told))
        key: str | None = None
        id_ = told.get("id")
        if id_ is None:
            listed = sorted(set(told.get("supersedes") or ()))
            base = key = canonical([list(fact.payload()), listed])
            id_ = self._derived(key)
            if told.get("reassert") and self.find(id_) is not None:
                key = self._free_retelling(base)
                id_ = self._derived(key)
        stored = self.find(id_)
        if stored is not None:
            told_alike = ("tags", "kind", "importance", "pinned")
            if stored.payload() == fact.payload() and all(
                getattr(stored, name) == getattr(fact, name) for name in told_alike
            ):
                taken.add(id_)
                return self._recognise(stored, told, key), []
            if id_ in taken or not self.replaces:
                raise Refused("conflict")
        if {("id", id_), ("text", blocked_form(fact.text))} & self.blocked:
            raise Refused("blocked")
        above: list[int] = []
        if stored is not None:
            above = [newer for newer, older in self.told if older == stored.number]
            self.remove({stored.number})
        taken.add(id_)
        self.facts[self.next] = replace(fact, id=id_)
        self.next += 1
        return Reply(fact.number, "created" if stored is None else "replaced", key), above

    def _free_retelling(self, base: str) -> str:
        """A retelling that no fact has, next to one that a fact has (or the first)."""

        def is_free(number: int) -> bool:
            return self.find(self._derived(f"{base} again {number}")) is None

        told, free = 0, 1
        while not is_free(free):
            told, free = free, 2 * free
        while free - told > 1:
            middle = (told + free) // 2
            told, free = (told, middle) if is_free(middle) else (middle, free)
        return f"{base} again {free}"

    def _derived(self, key: str) -> str:
        return self.derived.get(key, f"unknown {key}")

    def learn(self, reply: Reply, id_: str) -> None:
        """Take over the id that the memory derived, or check that it is the one derived before."""
        fact = self.facts[reply.number]
        if reply.key is not None and reply.key not in self.derived:
            assert self.find(id_) is None, "two contents have one derived id"
            self.derived[reply.key] = id_
            self.facts[reply.number] = replace(fact, id=id_)
        else:
            assert fact.id == id_

    def _recognise(self, stored: OneFact, told: Plain, key: str | None) -> Reply:
        for id_ in told.get("supersedes") or ():
            other = self.find(id_)
            if other is not None and not any(
                (link.newer, link.older) == (stored.number, other.number) for link in self.links
            ):
                raise Refused("conflict")
        return Reply(stored.number, "existing", key)

    def _draw_all_told(self, told: Plain, reply: Reply, above: list[int]) -> None:
        for id_ in sorted(set(told.get("supersedes") or ())):
            older = self.find(id_)
            if older is None or older.hidden:
                raise Refused("invalid_request")
            self.draw_told(reply.number, older.number)
            reply.supersedes.add(older.number)
        for newer in above:
            if newer in self.facts:
                self.draw_told(newer, reply.number)
                reply.superseded_by.add(newer)

    # Saying something of a stored fact

    def correct(self, clock: int, text: str, told: Plain) -> Reply:
        return self.write(self._correct, clock, text, told)  # type: ignore[no-any-return]

    def _correct(self, clock: int, text: str, told: Plain) -> Reply:
        now, given = self.now(clock), dict(told)
        names = {name: given.pop(name, None) for name in ("id", "text", "containing", "new_id")}
        self._check({**given, "text": text})
        before = self._corrected_before(now, names, {**given, "text": text})
        if before is not None:
            return self._already(before, now)
        old = self._target(now, names)
        inherited: Plain = {
            "text": text,
            "subject": old.subject,
            "entities": old.entities,
            "metadata": json.loads(old.seen_metadata),
            "event_time": old.event_time,
            "valid_from": old.valid_from,
            "valid_to": old.valid_to,
            **old.annotations(),
        }
        content = inherited | given
        self._check(content)
        kept = None if "valid_from" in given else old.eff
        fact = OneFact(self.next, "", ingest=now, kept_eff=kept, **self.content(content))
        key = None
        id_ = names["new_id"]
        if id_ is None:
            key = canonical([list(fact.payload()), "corrects", old.id])
            id_ = self._derived(key)
        if id_ == old.id:
            raise Refused("invalid_request")
        seen = replace(old, metadata=old.seen_metadata)
        if fact.payload() == seen.payload() and fact.annotations() == old.annotations():
            return self._already(old, now)
        stored = self.find(id_)
        if stored is not None:
            drawn = [link for link in self.links if (link.newer, link.older) == (stored.number, old.number)]
            if not any(link.corrects for link in drawn) or stored.payload() != fact.payload():
                raise Refused("conflict")
            return Reply(stored.number, "existing", key, {old.number}, status=self.status(stored.number, now))
        if {("id", id_), ("text", blocked_form(text))} & self.blocked:
            raise Refused("blocked")
        if self.latest:
            self._refuse_move(old, fact)
        self.facts[self.next] = replace(fact, id=id_, ends=old.ends)
        self.next += 1
        above = self._take_place(old, fact.number)
        self.newest = now
        status = self.status(fact.number, now)
        return Reply(fact.number, "created", key, {old.number}, above, status)

    def _already(self, fact: OneFact, now: int) -> Reply:
        """The answer where the fact says already what a correction would make it say."""
        mistakes = {link.older for link in self.links if link.newer == fact.number and link.corrects}
        return Reply(fact.number, "existing", None, mistakes, status=self.status(fact.number, now))

    def _corrected_before(self, now: int, names: Plain, told: Plain) -> OneFact | None:
        """The fact that the same correction made, when words name a mistake that is current no more."""
        current = self._current(now)
        if names["id"] is not None or any(self._is_named(fact, names) for fact in current):
            return None
        content = self.content(told)
        for fact in current:
            same = all(getattr(fact, name) == content[name] for name in told)
            mistakes = [link.older for link in self.links if link.newer == fact.number and link.corrects]
            if same and any(self._is_named(self.facts[older], names) for older in mistakes):
                return fact
        return None

    def _current(self, now: int) -> list[OneFact]:
        return [fact for fact in self.known() if self.status(fact.number, now) == "current"]

    @staticmethod
    def _is_named(fact: OneFact, names: Plain) -> bool:
        if names["text"] is not None:
            return " ".join(fact.text.split()) == " ".join(names["text"].split())
        return blocked_form(names["containing"]) in blocked_form(fact.text)

    def _target(self, now: int, names: Plain) -> OneFact:
        if names["id"] is not None:
            return self.find_live(names["id"])
        found = [fact for fact in self._current(now) if self._is_named(fact, names)]
        if len(found) != 1:
            raise Refused("conflict" if found else "not_found")
        return found[0]

    def _refuse_move(self, old: OneFact, fact: OneFact) -> None:
        """A slot that is kept by the policy has no place for a correction that would leave the mistake's own."""
        linked = any(old.number in (link.newer, link.older) for link in self.links)
        if fact.subject != old.subject:
            if linked or self.slot(fact.subject):
                raise Refused("invalid_request")
            return
        begins = fact.kept_eff if fact.valid_from is None else fact.valid_from
        if old.subject is None or begins is None or begins == old.eff:
            return
        others = [self.facts[n] for n in self.slot(old.subject) if n != old.number]
        before = [one.eff for one in others if one.begin < old.begin]
        after = [one.eff for one in others if one.begin > old.begin]
        if (before and not max(before) < begins <= old.eff) or (after and begins >= min(after)):
            raise Refused("invalid_request")

    def _take_place(self, old: OneFact, new: int) -> set[int]:
        # What the mistake corrected stays corrected by it; a correction that begins earlier takes over earlier.
        eff = self.facts[new].eff
        below = [link for link in self.links if link.newer == old.number and not link.corrects]
        copies = [replace(link, newer=new, since=min(self.since(link), eff)) for link in below]
        raised = [replace(k, older=new) for k in self.links if k.older == old.number]
        for link in (*copies, *raised):
            self.draw(link)
        # The mistake must show at no instant at which the right fact is seen.
        since = DAWN if old.valid_from is None else old.eff
        self.draw(OneLink(new, old.number, True, since))
        return {link.newer for link in raised}

    def end(self, clock: int, id_: str, at: int | None) -> None:
        fact, now = self.find_live(id_), self.now(clock)
        if at is None:
            if any(close <= now for close in fact.closes(None)):
                return
            at = now
        if fact.valid_from is not None and at <= fact.valid_from:
            raise Refused("invalid_request")
        closes = fact.closes(None)
        if closes and at > min(closes):
            raise Refused("invalid_request")
        if not closes or at < min(closes):
            self.facts[fact.number] = replace(fact, ends=(*fact.ends, (at, now)))
            self.newest = now

    def retract(self, clock: int, id_: str) -> None:
        fact, now = self.find_live(id_), self.now(clock)
        if DAWN not in fact.closes(None):
            self.facts[fact.number] = replace(fact, ends=(*fact.ends, (None, now)))
            self.newest = now

    def annotate(self, clock: int, id_: str, changes: Plain) -> None:
        fact, now = self.find_live(id_), self.now(clock)
        new = dict(changes)
        seen = canonical(new.pop("metadata", None) or {}) if "metadata" in new else fact.seen_metadata
        if "tags" in new:
            new["tags"] = tuple(sorted(set(new["tags"])))
        noted = fact.annotations() | new
        if (noted, seen) != (fact.annotations(), fact.seen_metadata):
            self.facts[fact.number] = replace(fact, noted=noted, seen_metadata=seen)
            self.newest = now

    # Forgetting

    def selected(self, scope: Plain, *, chain: bool, soft: bool) -> list[OneFact]:
        found = {fact.number for fact in self.facts.values() if self._in_scope(fact, scope)}
        if chain:
            found = set().union(*(self.component(number) for number in found))
        return [self.facts[n] for n in sorted(found) if not (soft and self.facts[n].hidden)]

    @staticmethod
    def _in_scope(fact: OneFact, scope: Plain) -> bool:
        ((name, value),) = scope.items()
        if name == "ingested_before":
            return fact.ingest < value
        if name == "event_before":
            times = (fact.event_time, fact.valid_from, fact.ingest)
            return next(time for time in times if time is not None) < value
        if name in ("matching", "filter"):
            seen = json.loads(fact.seen_metadata)
            return all(key in seen and canonical(seen[key]) == canonical(item) for key, item in value.items())
        if name == "text":
            return " ".join(fact.text.split()) == " ".join(value.split())
        held = {
            "ids": lambda: fact.id in value,
            "subject": lambda: fact.subject == value,
            "entity": lambda: value in fact.entities,
            "tag": lambda: value in fact.annotations()["tags"],
            "containing": lambda: blocked_form(value) in blocked_form(fact.text),
            "kind": lambda: fact.annotations()["kind"] == value,
            "all": lambda: True,
        }
        return held[name]()

    def forget(self, clock: int, scope: Plain, how: Plain) -> tuple[str, ...]:
        soft = how.get("soft", False)
        gone = self.selected(scope, chain=how.get("include_chain", False), soft=soft)
        ids = tuple(sorted(fact.id for fact in gone))
        if not gone or how.get("dry_run", False):
            return ids
        self.newest = self.now(clock)
        if how.get("block", False):
            for fact in gone:
                self.blocked |= {("id", fact.id), ("text", blocked_form(fact.text))}
        numbers = {fact.number for fact in gone}
        if not soft:
            self.remove(numbers)
            return ids
        for link in self.bridges(numbers):
            self.draw(link)
        for fact in gone:
            self.facts[fact.number] = replace(fact, hidden=True)
        return ids

    def restore(self, clock: int, ids: Iterable[str]) -> tuple[str, ...]:
        back = [fact for fact in self.facts.values() if fact.hidden and fact.id in set(ids)]
        if back:
            self.newest = self.now(clock)
        waiting = {fact.number for fact in back}
        for fact in sorted(back, key=lambda one: one.number):
            self.facts[fact.number] = replace(fact, hidden=False)
        for number in sorted(waiting):
            waiting.discard(number)
            if self.latest:
                slot = [n for n in self.slot(self.facts[number].subject) if n not in waiting]
                if number in slot:
                    self.link_by_policy(number, slot)
        return tuple(sorted(fact.id for fact in back))

    def unblock(self, clock: int, ids: Iterable[str], texts: Iterable[str]) -> int:
        named = {("id", id_) for id_ in ids} | {("text", blocked_form(text)) for text in texts}
        lifted = named & self.blocked
        if lifted:
            self.newest = self.now(clock)
            self.blocked -= lifted
        return len(lifted)
