"""A space small enough to trust: facts in a dict, links written by `perdure.temporal` alone."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass

from perdure.model.status import Status
from perdure.temporal.columns import BEGINNING, FOREVER, RETRACTED, begins_at
from perdure.temporal.links import Link, LinkKind, closes_cycle, copied_links, relinks
from perdure.temporal.slots import insert_position, overtaken, overtaking
from perdure.temporal.status import status_at, superseded_from


@dataclass(frozen=True)
class Told:
    """A fact as told. `supersedes` names numbers, in a batch also those that later members will get."""

    subject: str | None = "s"
    valid_from: int | None = None
    valid_to: int | None = None
    event_time: int | None = None
    supersedes: tuple[int, ...] = ()


@dataclass(frozen=True)
class Stored:
    told: Told
    ingest: int
    effective_from: int | None = None

    @property
    def eff(self) -> int:
        return begins_at(
            self.ingest,
            valid_from=self.told.valid_from,
            event_time=self.told.event_time,
            effective_from=self.effective_from,
        )


class SimulatedSpace:
    """Facts, links and slots under the latest-by-subject policy. It is the LinkView of its own plans."""

    is_ordered = False  # nobody counts here

    def __init__(self) -> None:
        self.facts: dict[int, Stored] = {}
        self.links: dict[tuple[int, int, LinkKind], Link] = {}
        self.ends: list[tuple[int, int, int]] = []  # (number, at, known_from)
        self.hidden: dict[int, Stored] = {}
        self.hidden_links: list[Link] = []
        self.slots: dict[str, list[int]] = {}
        self.begun: dict[
            str, list[int]
        ] = {}  # the oracle's order: removed facts stay, corrections follow at once
        self.told_links: set[tuple[int, int]] = set()
        self.next_number = 0

    # What a LinkView gives.

    def above(self, number: int) -> Iterable[Link]:
        return [link for link in self.links.values() if link.older == number]

    def below(self, number: int) -> Iterable[Link]:
        return [link for link in self.links.values() if link.newer == number]

    def eff(self, number: int) -> int:
        return self.facts[number].eff

    def ingest(self, number: int) -> int:
        return self.facts[number].ingest

    # Writes.

    def tell(self, told: Told, ingest: int) -> int:
        return self.tell_batch([told], ingest)[0]

    def tell_batch(self, batch: Sequence[Told], ingest: int) -> list[int]:
        """Store the members in order. A told link that names no live fact or closes a cycle is left out."""
        numbers = list(range(self.next_number, self.next_number + len(batch)))
        self.next_number += len(batch)
        self.facts |= {number: Stored(told, ingest) for number, told in zip(numbers, batch, strict=True)}
        for number, told in zip(numbers, batch, strict=True):
            for older in told.supersedes:
                self._write_told(number, older)
        for number in numbers:
            self._remember_begin(number)
            self._link_to_neighbours(number)
        return numbers

    def replace(self, number: int, told: Told, ingest: int) -> int:
        """Forget the fact and tell another in its stead, to which other facts' told links then point."""
        pointing = [newer for newer, older in sorted(self.told_links) if older == number]
        self.forget({number})
        new = self.next_number
        self.next_number += 1
        self.facts[new] = Stored(told, ingest)
        for newer in pointing:
            self._write_told(newer, new)
        for older in told.supersedes:
            self._write_told(new, older)
        self._remember_begin(new)
        self._link_to_neighbours(new)
        return new

    def correct(self, old: int, ingest: int) -> int:
        new = self.next_number
        self.next_number += 1
        stored = self.facts[old]
        self.facts[new] = Stored(stored.told, ingest, effective_from=stored.eff)
        for link in copied_links(old, new, self, dated=stored.told.valid_from is not None):
            self._write(link)
        self.ends += [(new, at, ingest) for number, at, _ in self.ends if number == old]
        self._enter_slot(new)
        if stored.told.subject is not None:
            begun = self.begun[stored.told.subject]
            begun.insert(begun.index(old) + 1, new)
        return new

    def end(self, number: int, at: int, known_from: int) -> None:
        self.ends.append((number, at, known_from))

    def retract(self, number: int, known_from: int) -> None:
        self.ends.append((number, RETRACTED, known_from))

    def forget(self, removed: Collection[int]) -> None:
        gone = set(removed) & self.facts.keys()
        for link in relinks(gone, self):
            self._write(link)
        for number in gone:
            fact = self.facts[number]
            if fact.told.subject is not None:
                self.slots[fact.told.subject].remove(number)
        for number in gone:
            del self.facts[number]
        self.links = {ends: link for ends, link in self.links.items() if not gone & {link.newer, link.older}}
        self.told_links = {pair for pair in self.told_links if not gone & set(pair)}
        self.ends = [end for end in self.ends if end[0] not in gone]

    def hide(self, number: int) -> None:
        self.hidden_links += [*self.above(number), *self.below(number)]
        stored = self.facts[number]
        self.forget({number})
        self.hidden[number] = stored

    def restore(self, number: int) -> None:
        self.facts[number] = self.hidden.pop(number)
        for link in self.hidden_links:
            both_live = {link.newer, link.older} <= self.facts.keys()
            # While the fact was hidden, later links may have put its old superseder below it.
            touches = number in (link.newer, link.older) and both_live
            if touches and not closes_cycle(link.newer, link.older, self):
                self._write(link)
        self._link_to_neighbours(number)

    # Reads.

    def superseded_from(self, number: int) -> int:
        return superseded_from(self.above(number), self)

    def valid_to(self, number: int) -> int:
        told = self.facts[number].told.valid_to
        ends = [at for ended, at, _ in self.ends if ended == number]
        return min([FOREVER if told is None else told, *ends])

    def valid_from(self, number: int) -> int:
        told = self.facts[number].told.valid_from
        return BEGINNING if told is None else told

    def status(self, number: int, at: int) -> Status:
        return status_at(self.valid_from(number), self.valid_to(number), self.superseded_from(number), at)

    def current(self, at: int) -> set[int]:
        return {number for number in self.facts if self.status(number, at) is Status.CURRENT}

    def standing(self, subject: str, at: int) -> set[int]:
        """The facts of the slot that took effect by `at` and are not superseded then, valid or not."""
        return {
            number
            for number in self.slots.get(subject, ())
            if self.eff(number) <= at < self.superseded_from(number)
        }

    def last_begun(self, subject: str, at: int) -> set[int]:
        """The oracle: of the live facts that took effect by `at`, the last to begin; ties to later ones."""
        begun = [n for n in self.begun.get(subject, ()) if n in self.facts and self.eff(n) <= at]
        return set(begun[-1:])

    def is_acyclic(self) -> bool:
        """Take away facts with nothing above until none is left; a cycle never loses its members."""
        left = {(link.newer, link.older) for link in self.links.values()}
        while left:
            tops = {newer for newer, _ in left} - {older for _, older in left}
            if not tops:
                return False
            left = {pair for pair in left if pair[0] not in tops}
        return True

    # Inside.

    def _write(self, link: Link) -> None:
        self.links[link.newer, link.older, link.kind] = link

    def _write_told(self, newer: int, older: int) -> None:
        if older in self.facts and not closes_cycle(newer, older, self):
            known_from = max(self.ingest(newer), self.ingest(older))
            self._write(Link(newer, older, LinkKind.SUPERSEDES, None, known_from))
            self.told_links.add((newer, older))

    def _link_to_neighbours(self, number: int) -> None:
        self._enter_slot(number)
        subject = self.facts[number].told.subject
        if subject is None:
            return
        slot, arrival = self.slots[subject], (self.eff(number), number)
        pairs = [(number, older) for older in overtaken(slot, arrival, self)]
        pairs += [(newer, number) for newer in overtaking(slot, arrival, self)]
        for newer, older in pairs:
            linked = any(link.newer == newer for link in self.above(older))
            if not linked and not closes_cycle(newer, older, self):
                known_from = max(self.ingest(newer), self.ingest(older))
                self._write(Link(newer, older, LinkKind.SUPERSEDES, None, known_from))

    def _enter_slot(self, number: int) -> None:
        subject = self.facts[number].told.subject
        if subject is not None:
            slot = self.slots.setdefault(subject, [])
            slot.insert(insert_position(slot, self.eff, (self.eff(number), number)), number)

    def _remember_begin(self, number: int) -> None:
        subject = self.facts[number].told.subject
        if subject is not None:
            begun = self.begun.setdefault(subject, [])
            everyone = self.facts | self.hidden
            later = [i for i, n in enumerate(begun) if n in everyone and everyone[n].eff > self.eff(number)]
            begun.insert(min(later, default=len(begun)), number)
