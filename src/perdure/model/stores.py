"""What whole stores answer: sizes, health, exports and imports."""

from __future__ import annotations

import msgspec

from perdure.model.namespace import Namespace


class StoreStats(msgspec.Struct, frozen=True):
    """Sizes of a store. `facts` counts live facts and documents of all spaces; `reclaimable_bytes` is about what a
    purge would give back. `without_vector` counts the facts and units of documents, hidden ones among them, that have
    no vector: a question by meaning does not find them."""

    backend: str
    spaces: int
    facts: int
    records: int
    size_bytes: int | None
    reclaimable_bytes: int | None
    without_vector: int = 0


class StoreCounters(msgspec.Struct, frozen=True):
    """What a store did in this process since it was opened, and what it holds in memory now.

    `hits` counts the questions that found a space's facts in memory, `misses` how often they were read from the
    store; `commits` and `commit_seconds` are of writes: the seconds are those of making them durable, so of the disk.
    `folds` counts the snapshots that were kept in the background, of a store in a database, and `fold_failures` those that
    could not be. `memory_bytes` is what the spaces in memory take, as `Store.open` bounds it.
    """

    spaces_loaded: int
    facts_loaded: int
    hits: int
    misses: int
    commits: int
    commit_seconds: float
    folds: int = 0
    fold_failures: int = 0
    memory_bytes: int = 0


class Health(msgspec.Struct, frozen=True):
    """Whether a store can be read and written now, as one look at it found.

    `status` is `ok`, or the code of the error that stands in the way (`busy`, `unavailable`, `corrupt`, …);
    `message` says it in words, and what to do.
    """

    status: str
    writable: bool  # a write would get its turn now
    erasure_pending: bool  # text that was forgotten is still to be cleaned from a file
    message: str


class Exported(msgspec.Struct, frozen=True):
    """What an export wrote. `facts` counts documents too; `records` every line about a space but its first
    and last."""

    spaces: int
    facts: int
    records: int
    size_bytes: int


class Problem(msgspec.Struct, frozen=True):
    """A line that cannot be imported, counted from 1, and why. The reason holds none of the file's text."""

    line: int
    reason: str


class Copied(msgspec.Struct, frozen=True):
    """What a copy of a store holds, at the moment at which it and its source were equal.

    `written` counts the records that this call wrote, those of the audit too; 0 where nothing was missing.
    """

    spaces: int
    records: int
    erased: int  # of the records, those whose places alone were copied
    written: int
    verified: bool  # the copy was read whole, and held together


class Imported(msgspec.Struct, frozen=True):
    """What an import did, or, in a dry run, would do.

    `created`, `existing` and `skipped` count lines about a space: stored now, there before, and left out.
    `facts` counts the facts and documents among those created. `foreign_receipts` counts the answers under
    idempotency keys that no key of this store leads to, since another secret made them: they are kept for
    the next export and answer nobody here. `spaces` are named as in the file, in its order.
    """

    created: int
    existing: int
    skipped: int
    facts: int
    spaces: tuple[Namespace, ...]
    problems: tuple[Problem, ...]
    foreign_receipts: int = 0
    dry_run: bool = False


class DeletedTenant(msgspec.Struct, frozen=True):
    """What was deleted with a tenant. `pending`: what was stored may still be opened by somebody.

    That is a holder of keys who has not confirmed that they are gone: delete it again to ask again. Of a tenant that was
    not encrypted it stays so, since the database's logs, replicas and backups are out of reach; and where the audit was made
    with a copy of the keystore, which alone has its keys: the logged warning says what to destroy there.
    """

    tenant: str
    spaces: int
    records: int  # erased ones included
    pending: bool
