"""Writing entries into a store: all or nothing, or whatever is good, with a report of the rest."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from perdure.contract.limits import BATCH_MAX
from perdure.contract.naming import on_the_wire
from perdure.errors import Blocked, Conflict, InvalidRequest, PerdureError
from perdure.importers.entries import Bad, Entry, Found
from perdure.lexical.profile import get_profile
from perdure.memory.config import MemoryConfig
from perdure.memory.telling import telling_of
from perdure.model.namespace import checked_namespace
from perdure.model.replies import Remembered
from perdure.store import Memory, Store

_MEMBER = re.compile(r"^facts\[\d+\](?:: |\.)")
BATCH = 500  # facts per transaction; larger ones save little and keep other writers waiting longer

Progress = Callable[[int, int], None]
"""Told after each step: how many facts are done, and of how many."""


@dataclass(frozen=True, slots=True)
class Target:
    """Where facts go: one principal for all, or, with None, one per conversation."""

    store: Store
    principal: str | None = None
    scope: str | None = None
    config: MemoryConfig | None = None


@dataclass(frozen=True, slots=True)
class Report:
    """What an import did. `outcomes` counts the receipts (`created`, `existing`, …); in a dry run it
    is empty, and `good` facts would be sent to the store. `bad` are in the order of the files; those
    that the store refused come last."""

    good: int
    outcomes: dict[str, int]
    bad: tuple[Bad, ...]
    dry_run: bool
    principals: tuple[str, ...]

    @property
    def stored(self) -> int:
        return self.outcomes.get("created", 0) + self.outcomes.get("replaced", 0)


def check_entries(
    entries: Iterable[Entry], config: MemoryConfig | None = None
) -> tuple[list[Found], list[Bad]]:
    """Part the entries into facts that keep every limit and bad ones, each with its reason.

    What only the store can tell (an id that holds other content, a block, an unknown id in
    `supersedes`) is not checked.
    """
    chosen = config or MemoryConfig()
    profile = get_profile(chosen.profile)
    good: list[Found] = []
    bad: list[Bad] = []
    for entry in entries:
        if isinstance(entry, Bad):
            bad.append(entry)
            continue
        try:
            checked_namespace(entry.conversation, None)
            telling_of(entry.fact, profile, chosen.extractor)
        except InvalidRequest as error:
            bad.append(Bad(entry.place, _reason(error)))
        else:
            good.append(entry)
    return good, bad


def import_entries(
    entries: Iterable[Entry],
    target: Target,
    *,
    lenient: bool = False,
    dry_run: bool = False,
    progress: Progress | None = None,
) -> Report:
    """Store the facts and report.

    Strict (not lenient): when an entry is bad nothing is stored, and the report's `stored` is 0. The
    facts of one principal are one transaction up to 100,000 facts; a refusal by the store is raised,
    names its place, and leaves the principals and transactions before it stored.
    Lenient: in batches of 500 per transaction; a batch that the store refuses is told fact by fact, and
    what is refused is among the bad ones.

    Importing the same entries again stores nothing new.

    Raises:
        Conflict, Blocked, InvalidRequest: strict only. Busy, StorageFull, Unavailable: in either mode.
    """
    good, bad = check_entries(entries, target.config)
    groups = _by_principal(good, target.principal)
    if dry_run or (bad and not lenient):
        return Report(len(good), {}, tuple(bad), dry_run, tuple(groups))
    outcomes: Counter[str] = Counter()
    done = 0
    for principal, group in groups.items():
        memory = target.store.memory(principal or None, target.scope, config=target.config)
        for batch in _batches(group, BATCH if lenient or len(group) > BATCH_MAX else BATCH_MAX):
            outcomes.update(reply.outcome for reply in _store(memory, batch, bad if lenient else None))
            done += len(batch)
            if progress is not None:
                progress(done, len(good))
    return Report(len(good), dict(outcomes), tuple(bad), dry_run, tuple(groups))


def _store(memory: Memory, batch: Sequence[Found], bad: list[Bad] | None) -> list[Remembered]:
    """Store a batch; with a list for bad ones, fact by fact where the whole is refused."""
    try:
        return memory.remember_many([found.fact for found in batch])
    except (Conflict, Blocked, InvalidRequest) as error:
        if bad is None:
            raise _placed(error, batch) from error
    replies = []
    for found in batch:
        try:
            replies += memory.remember_many([found.fact])
        except (Conflict, Blocked, InvalidRequest) as error:
            bad.append(Bad(found.place, _reason(error)))
    return replies


def _placed(error: PerdureError, batch: Sequence[Found]) -> PerdureError:
    """Return the error with the place of the refused fact, where the store named one: in the message and
    as the details `file`, `line` and `entry` in place of `index`."""
    index = error.details.pop("index", 0 if len(batch) == 1 else None)
    if isinstance(index, int):
        place = batch[index].place
        error.message = f"{place}: {_reason(error)}"
        error.args = (error.message,)
        error.details |= {"file": place.file, "line": place.line, "entry": place.entry}
    return error


def _reason(error: PerdureError) -> str:
    """Return the message as the file names fields, without the index that a batch puts before it."""
    place = error.details.get("place")
    return on_the_wire(_MEMBER.sub("", str(error)), place if isinstance(place, str) else "")


def _by_principal(found: Iterable[Found], principal: str | None) -> dict[str, list[Found]]:
    groups: dict[str, list[Found]] = {}
    for one in found:
        name = principal if principal is not None else one.conversation or ""
        groups.setdefault(name, []).append(one)
    return groups


def _batches(found: Sequence[Found], size: int) -> Iterable[Sequence[Found]]:
    for start in range(0, len(found), size):
        yield found[start : start + size]
