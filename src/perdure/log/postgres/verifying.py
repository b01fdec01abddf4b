"""What a verification looks at: that every record opens, adds up, and leads nowhere that is not there."""

from __future__ import annotations

from collections.abc import Iterator
from uuid import UUID

from perdure.base.text import counted
from perdure.errors import Busy, Moved, PerdureError, Unavailable
from perdure.log.postgres.access import Access
from perdure.log.postgres.migrating import TABLES, tell_open
from perdure.log.postgres.presence import find_identity
from perdure.log.postgres.reading import entries
from perdure.log.protocol import Finding, Head, Progress

ATTEMPTS = 3


def findings(access: Access, named: UUID, *, quick: bool, progress: Progress | None) -> Iterator[Finding]:
    """Yield what is wrong, as `Log.verify` does. `quick` leaves out the records themselves.

    Args:
        named: the digest of the log's name.
    """
    if find_identity(access.database, named) != access.tenant:
        access.check_there()  # else it was deleted, with its name
        yield Finding("the row of perdure.naming that leads to it is missing: whoever opens it finds nothing")
    unheld = access.view(lambda session: session.rows("open_tables", (list(TABLES),)))
    if unheld:
        yield Finding(tell_open([name for (name,) in unheld]))
    for attempt in range(1, ATTEMPTS + 1):
        epoch, count = _state(access)
        rows = access.view(lambda session: session.rows("all_heads", (access.tenant,)))
        heads = {row[0]: Head(*row[2:6]) for row in rows}
        found = list(_structure(access, epoch, heads))
        again, count_again = _state(access)
        if again == epoch:
            break
        if attempt == ATTEMPTS:
            raise Busy("the store is being purged again and again; retry")
    if not count <= len(heads) <= count_again:  # others may make spaces meanwhile
        yield Finding(
            f"the tenant counts {counted(count_again, 'space')}, of which {counted(len(heads), 'is', 'are')} there"
        )
    yield from found
    if not quick:
        yield from _records(access, heads, progress)


def _state(access: Access) -> tuple[int, int]:
    state = access.view(lambda session: session.row("tenant_state", (access.tenant,)))
    if state is None:
        raise access.missing()
    return state[0], state[1]


def _structure(access: Access, epoch: int, heads: dict[int, Head]) -> Iterator[Finding]:
    numbers = sorted(heads)
    if numbers != list(range(1, len(numbers) + 1)):
        yield Finding("the spaces are not numbered 1, 2, 3 … without gaps")
    for number, head in heads.items():
        if head.epoch != epoch:
            yield Finding(f"the space is of epoch {head.epoch}, the store of {epoch}", number)
    for number, of, records in access.view(lambda session: session.rows("stray_records", (access.tenant,))):
        found = heads.get(number)
        if found is None or found.epoch != of:
            yield Finding(
                f"of epoch {of} {counted(records, 'record belongs', 'records belong')} to no space", number
            )
        elif records != found.seq and _last(access, number) == found.seq:
            yield Finding(
                f"the space has {counted(records, 'record')} where its head says {found.seq}", number
            )
    for number, of, last in access.view(lambda session: session.rows("stray_lookups", (access.tenant,))):
        found = heads.get(number)
        if found is None or found.epoch != of:
            yield Finding(f"lookups of epoch {of} belong to no space", number)
        elif last > found.seq and last > _last(access, number):
            yield Finding(f"a lookup leads to record {last}, which there is not", number, last)


def _last(access: Access, number: int) -> int:
    """Return the space's last number now: others may write while a store is verified."""
    row = access.view(lambda session: session.row("head", (access.tenant, number)))
    return 0 if row is None else int(row[1])


def _records(access: Access, heads: dict[int, Head], progress: Progress | None) -> Iterator[Finding]:
    total, done = sum(head.seq for head in heads.values()), 0
    for number, head in heads.items():
        try:
            for _ in entries(access, number, 0, head.seq):
                done += 1
                if progress is not None and done % 1000 == 0:
                    progress(done, total)
        except Moved:
            return  # purged meanwhile: what was written anew was verified as it was written
        except (Busy, Unavailable):
            raise
        except PerdureError as error:
            yield Finding(error.message, number, error.details.get("seq"))
    if progress is not None:
        progress(total, total)
