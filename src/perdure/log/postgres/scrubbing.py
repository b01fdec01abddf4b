"""The last step of an erasure: the data keys that opened what was erased are destroyed, as every holder of them confirms."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from contextlib import suppress

from psycopg import errors as states

from perdure.errors import PerdureError, Unavailable
from perdure.log.postgres.access import Access
from perdure.log.postgres.failures import translating
from perdure.log.postgres.keystore import FileKeystore, Keystore
from perdure.log.postgres.noting import doom
from perdure.model.certificate import Reach

log = logging.getLogger("perdure.log")
_IN_MEMORY = "swap, hibernation, core dumps and the memory of running servers and of those who ask them"
_GIVEN_OUT = "answers, exports and copies that were given out"
SEALED = Reach(
    ("replaced", "resealed"),
    "destroyed",
    "destroyed",
    (
        _GIVEN_OUT,
        "copies that holders of keys keep of the keystore, and blocks of its medium that were remapped or copied on write",
        "in the database, its write-ahead log, replicas and backups: numbers, times and lengths of rows, and keyed digests",
        _IN_MEMORY,
    ),
    "the keystore has not confirmed that the data keys of what was erased are destroyed; the next forget or purge asks again, "
    "once all who hold keys can be reached",
)
_HELD = (
    "no data key is destroyed while there is a file keystore.hold in the keystore's directory; once it is taken away, the next "
    "forget or purge destroys those of what was erased"
)
UNSEALED = Reach(
    ("replaced",),
    "scrubbed",
    "overwritten",
    (
        _GIVEN_OUT,
        "old versions of rows, the write-ahead log, replicas and backups of the database: nothing in them is sealed",
        _IN_MEMORY,
    ),
    "what was erased lay unencrypted in the database, whose old pages, write-ahead log, replicas and backups may hold it "
    "still; only a store with a keystore can make up for that",
)


def reach_with(keystore: Keystore | None) -> Reach:
    """Return what erasures reach where this keystore has the data keys, and why their last step waits just now."""
    if keystore is None:
        return UNSEALED
    if isinstance(keystore, FileKeystore):
        with suppress(Unavailable):  # which is why it waits, too
            if keystore.is_held():
                return SEALED._replace(waits=_HELD)
    return SEALED


def scrub(access: Access) -> bool:
    """Destroy what is condemned, and what was destroyed once and is there again; whether nothing is left to do.

    Condemned are also the keys of transactions that came to nothing. Those that are still on their way are left alone: a
    transaction that holds what was erased is of before the erasure, which waited for it to end, or is a snapshot's.

    What was erased is committed by then, so nothing that goes wrong is raised: it is logged, and left to the next erasure,
    as where the keystore has not confirmed yet.

    Raises Unavailable where the tenant was deleted, of the kind "gone", or the log was closed.
    """
    access.check_open()
    try:
        return _scrub(access)
    except PerdureError as error:
        if error.details.get("kind") == "gone":
            raise
        log.warning("data keys are still to be destroyed: %s", error.message)
        return False


def _scrub(access: Access) -> bool:
    stained, keys_from, destroyed_below = _state(access)
    keystore = access.keystore
    if keystore is None:
        return not stained
    condemned, has_notes = _condemned(access)
    if has_notes:
        with translating(), access.changing() as session:
            doom(session, access.tenant)
        condemned, _ = _condemned(access)
    confirmed = _destroy(access, keystore, condemned) and not stained
    if destroyed_below < keys_from or _is_back(access, keystore, keys_from):
        confirmed = _destroy_below(access, keystore, keys_from) and confirmed
    return confirmed


def pending(access: Access) -> bool:
    """Whether `scrub` has something to do; only looks. What says nothing is found out soon."""
    access.check_speaks()
    stained, keys_from, destroyed_below = _state(access)
    condemned, has_notes = _condemned(access)
    if stained or destroyed_below < keys_from or condemned or (has_notes and _has_unclaimed(access)):
        return True
    keystore = access.keystore
    try:
        return keystore is not None and _is_back(access, keystore, keys_from)
    except Unavailable:
        return False  # nothing is known to be left


def _destroy(access: Access, keystore: Keystore, condemned: Sequence[int]) -> bool:
    if not condemned:
        return True
    access.sealer.forget(condemned)
    access.await_standby("share_condemned", (access.tenant, condemned))
    confirmed = keystore.destroy(access.tenant, condemned)
    if confirmed:
        access.note("absolve", (access.tenant, condemned))
    return confirmed


def _destroy_below(access: Access, keystore: Keystore, number: int) -> bool:
    access.sealer.forget_below(number)
    access.await_standby()
    confirmed = keystore.destroy_below(access.tenant, number)
    if confirmed:
        access.note("note_destroyed", (number, access.tenant, number))
        access.held_below = number
    return confirmed


def _is_back(access: Access, keystore: Keystore, number: int) -> bool:
    """Whether keys that were destroyed are there again; looked for once in an epoch of a store that is open."""
    if access.held_below == number:
        return False
    if keystore.keeps_below(access.tenant, number):
        log.warning(
            "the keystore has keys again that were destroyed: an older copy of it was put in its place. Those of before "
            "the last purge are destroyed anew; run perdure purge for those of later erasures"
        )
        return True
    access.held_below = number
    return False


def _state(access: Access) -> tuple[bool, int, int]:
    row = access.view(lambda session: session.row("tenant_state", (access.tenant,)))
    if row is None:
        raise access.missing()
    access.epoch = max(access.epoch, row[0])
    return row[4], row[2], row[3]


def _has_unclaimed(access: Access) -> bool:
    """Whether there are keys of transactions that came to nothing."""
    try:
        return bool(access.view(lambda session: session.rows("unclaimed", (access.tenant,))))
    except Unavailable as error:
        if isinstance(error.__cause__, states.ReadOnlySqlTransaction):
            return True  # whoever may not lock a note cannot tell whether somebody has
        raise


def _condemned(access: Access) -> tuple[list[int], bool]:
    """Return the keys that are to be destroyed, and whether there are notes beside them."""
    rows = access.view(lambda session: session.rows("condemned", (access.tenant,)))
    return [key for key, is_doomed in rows if is_doomed], not all(is_doomed for _, is_doomed in rows)
