"""Deletes a tenant: all its rows in one transaction, then the keys that they are sealed under, then its name.

In between the tenant is buried: it opens for nobody, and nobody makes another one of its name. Whoever deletes it once
more goes on from there, with the keystore that it was made with: which shows that it is the one by the secret, while it
has it, and afterwards by remembering that it was told to destroy it.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from hmac import compare_digest
from time import monotonic
from typing import NamedTuple
from uuid import UUID

import psycopg

from perdure.errors import PerdureError, Unavailable, WrongKey
from perdure.log.postgres.connections import Database, Session
from perdure.log.postgres.failures import is_broken
from perdure.log.postgres.keystore import FileKeystore, Keystore
from perdure.log.postgres.tenants import tenant_id, verifier_of
from perdure.log.postgres.turns import keep_out

log = logging.getLogger("perdure.log")
ROWS = (
    "tenant_drops_cache_parts",
    "tenant_drops_caches",
    "tenant_drops_all_lookups",
    "tenant_drops_all_records",
    "tenant_drops_spaces",
    "tenant_drops_condemned",
    "tenant_drops_copy_notes",
)


class Dropped(NamedTuple):
    """What went of a tenant. `pending`: what was stored may still be opened, by a key or as it is, somewhere."""

    existed: bool
    spaces: int
    records: int  # erased ones included
    pending: bool


class _Known(NamedTuple):
    """Of which parts the keystore cannot be asked, though it is the tenant's.

    `excused`: it was told to destroy what it had of them when it did not have to remember that yet; `lacking`: beside the
    tenant, and made while a copy of the keystore was in use, which has their keys.
    """

    excused: frozenset[UUID] = frozenset()
    lacking: frozenset[UUID] = frozenset()


class _Part(NamedTuple):
    """The tenant's own log, or one beside it: the digest of its name, its identity, and what its row says."""

    digest: UUID
    own: UUID
    verifier: bytes  # empty once the keystore was known to have taken the order
    encrypted: bool
    buried: bool


def drop(
    database: Database,
    keystore: Keystore | None,
    name: str,
    beside: Sequence[str] = (),
    *,
    only: UUID | None = None,
) -> Dropped:
    """Delete the tenant of a name, and the logs of these parts beside it.

    Where a holder of keys does not confirm that they are gone, the rows are, the tenant stays buried, and the same call
    asks again. Keys of a part that only a copy of the keystore has are pending for good: the log tells which.

    Args:
        only: the identity that it must have; one of the same name that was made since is left alone.

    Raises:
        WrongKey: the keystore is not the tenant's; nothing was deleted.
        Busy, Unavailable: of the keystore; nothing was deleted. Or the database broke off as it was to confirm: the
            message says what is known, and the same call goes on.
        psycopg.Error: nothing was deleted.
    """
    digests = [tenant_id(name), *(tenant_id(name, part) for part in beside)]
    with database.session(digests[0]) as session:
        session.begin()
        parts = _lock(session, digests, only, database.timeout_s)
        if not parts:
            return Dropped(False, 0, 0, pending=False)
        own, encrypted = parts[0].own, parts[0].encrypted
        known = _check(keystore, parts) if encrypted else _Known()
        session.turn_to(own)
        spaces, (_, _, records) = len(session.rows("spaces", (own,))), session.rows("sizes", (own,))[0]
        _bury(session, parts)
        with _telling("whether its rows are deleted is unknown", is_broken):
            session.commit()
        answers = {part.own: _shred(keystore, part.own, known) for part in parts} if encrypted else {}
        with _telling("its rows are deleted, and its name still stands for it"):
            _finish(session, parts, answers)
    is_whole = encrypted and not known.lacking and all(answers.values())
    return Dropped(True, spaces, int(records), pending=not is_whole)


@contextmanager
def _telling(what: str, of: Callable[[psycopg.Error], bool] = lambda _: True) -> Iterator[None]:
    """Raise Unavailable that says what is known of the deletion, for the driver's errors `of` this kind."""
    try:
        yield
    except psycopg.Error as error:
        if not of(error):
            raise
        raise Unavailable(
            f"the database did not confirm that the tenant is deleted: {what}. Delete it once more, once the database is there",
            kind="unconfirmed",
        ) from error


def _lock(session: Session, digests: Sequence[UUID], only: UUID | None, timeout_s: float) -> list[_Part]:
    """Keep all writers out of all of them, the tenant's own log first; return those that are there.

    None is made beside a tenant whose row is locked, and two who delete never wait for each other.
    """
    parts, until = list[_Part](), monotonic() + timeout_s
    for digest in digests:
        session.turn_to(digest)  # rows are seen by whoever is set to their tenant
        named = session.row("identity", (digest,))
        row = None
        if named is not None and (parts or only in (None, named[0])):
            session.turn_to(named[0])
            keep_out(session, named[0], until - monotonic())
            row = session.row("tenant_to_drop", named)
        if row is not None and named is not None:
            parts.append(_Part(digest, named[0], bytes(row[0]), bool(row[1]), bool(row[2])))
        elif not parts:
            return []
    return parts


def _check(keystore: Keystore | None, parts: Sequence[_Part]) -> _Known:
    """Raise WrongKey unless the keystore is that of the tenant, which its own log shows, and of no other part another's.

    Returns the parts that it does not know.
    """
    unknown, theirs = list[_Part](), set[UUID]()
    for part in parts:
        secret = None if keystore is None else keystore.find_secret(part.own)
        if secret is None:
            unknown.append(part)
        elif part.verifier and not compare_digest(verifier_of(secret), part.verifier):
            raise _wrong()
        elif part.verifier:
            theirs.add(part.own)
    forgotten = {part.own for part in unknown if not _remembers(keystore, part.own)}
    own = parts[0]
    if own.own in forgotten and not (own.buried and theirs):
        raise _wrong()
    return _Known(frozenset(forgotten & {own.own}), frozenset(forgotten - {own.own}))


def _remembers(keystore: Keystore | None, tenant: UUID) -> bool:
    """Whether the keystore knows that it dropped a tenant of which it has no secret."""
    if keystore is None:
        return False
    try:
        keystore.drop_tenant(tenant)
    except WrongKey:
        return False
    return True


def _wrong() -> WrongKey:
    return WrongKey(
        "the keystore is not the one that the tenant was made with, so its keys would stay: nothing was deleted. Give the "
        "one that it was made with, and check that its disk is mounted"
    )


def _bury(session: Session, parts: Sequence[_Part]) -> None:
    session.lift_limits()  # however many rows there are
    for part in parts:
        session.turn_to(part.own)
        for name in ROWS:
            session.send(name, (part.own,))
        session.send("bury_tenant", (part.own,))


def _shred(keystore: Keystore | None, tenant: UUID, known: _Known) -> bool | None:
    """Whether all holders confirm that the keys are gone, as far as the keystore can ask them; None where it was not told
    that the order was taken."""
    assert keystore is not None, "it was checked"
    if tenant in known.lacking:
        what = f"the file {tenant}.keys" if isinstance(keystore, FileKeystore) else f"what it has of {tenant}"
        log.warning(
            "keys of the tenant that is deleted are in a copy of the keystore alone, with which its audit was made: destroy %s "
            "there",
            what,
        )
        return True
    try:
        return tenant in known.excused or keystore.drop_tenant(tenant)
    except PerdureError as error:  # the rows are gone all the same, and what is left to do is known
        log.warning("the keys of a tenant that is deleted could not be destroyed yet: %s", error.message)
        return None


def _finish(session: Session, parts: Sequence[_Part], answers: dict[UUID, bool | None]) -> None:
    """Let go of the name where all is confirmed; else note who has taken the order."""
    confirmed = all(answers.values())
    session.begin()
    for part in parts:
        session.turn_to(part.own)
        if not confirmed:
            if answers[part.own] is not None:
                session.send("secret_is_gone", (part.own,))
            continue
        session.send("tenant_drops_condemned", (part.own,))  # which somebody had locked before
        session.send("buried_goes", (part.own,))
        session.turn_to(part.digest)
        session.send("unname_tenant", (part.digest, part.own))
    session.commit()
