"""Opens the tenant of a name, or the log of a part beside it, and makes it where there is none.

Each making has an identity of its own, a random UUID that never comes again: the table `naming` tells which one the name
has now, and it stands for the tenant in all other tables, in the keystore and in what is sealed. So whoever still has a
tenant open that was deleted finds nothing under it, and never what is another's.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from hmac import compare_digest
from typing import NamedTuple
from uuid import UUID

import psycopg

from perdure.base.ids import random_secret
from perdure.errors import Busy, InvalidRequest, PerdureError, Unavailable, WrongKey
from perdure.log.postgres.access import Access
from perdure.log.postgres.connections import Database, Session
from perdure.log.postgres.failures import is_broken, translating
from perdure.log.postgres.keystore import Keystore, missing
from perdure.log.postgres.presence import ATTEMPTS, check_unnamed, find_identity, find_row, find_settled
from perdure.log.postgres.tenants import BURIED, check_new, tenant_id, verifier_of
from perdure.log.postgres.wire import Row
from perdure.log.protocol import SECRET_BYTES

Begun = Callable[[], AbstractContextManager[Session | None]]
"""Begins a transaction that is about the rows of the name; None where nothing may be made."""

IDENTITY_BYTES = 16


class Opened(NamedTuple):
    """What stands for the tenant in every table and in the keystore, and its secret."""

    own: UUID
    secret: bytes


class _Wanted(NamedTuple):
    """What is to be opened, or made: the digest of its name, the name in clear, and what it is sealed with."""

    digest: UUID
    name: str
    part: str  # beside a tenant, empty for the tenant itself
    keystore: Keystore | None
    told: bytes | None  # the secret that the caller gave


def open_tenant(database: Database, name: str, keystore: Keystore | None, told: bytes | None) -> Opened:
    """Open the tenant of a name, having made it where it is new.

    Args:
        told: a secret that it must have, or that it is made with.

    Raises:
        WrongKey: the keystore or the secret is not its own; nothing was written.
        InvalidRequest: the name is none, or none to make a tenant under; or there is neither a keystore nor a secret to make
            it with.
        Corrupt: a row of it is missing.
        Busy, Unavailable: also where it is being deleted.
    """
    wanted = _Wanted(tenant_id(name), name, "", keystore, told)

    @contextmanager
    def begun() -> Iterator[Session | None]:
        with database.session(wanted.digest) as session:
            session.begin()
            yield session

    return _open(database, wanted, lambda: find_identity(database, wanted.digest), begun)


def find_beside(access: Access, tenant: str, part: str) -> UUID | None:
    """Return the identity of the log of a part beside a tenant that is open, None where it was not made.

    Raises Unavailable, of the kind "gone", where the tenant was deleted, also where another one has its name.
    """
    own = find_identity(access.database, tenant_id(tenant, part))
    access.check_there()  # afterwards: then what was found is of this tenant
    return own


def open_beside(access: Access, tenant: str, part: str, told: bytes) -> Opened:
    """Open the log of a part beside a tenant that is open, having made it where it is new, with this secret.

    Raises as `open_tenant`, and as `find_beside`.
    """
    wanted = _Wanted(tenant_id(tenant, part), f"{tenant} ({part})", part, access.keystore, told)

    @contextmanager
    def begun() -> Iterator[Session | None]:
        # Whoever deletes the tenant waits for this, or is waited for: so none is made that he does not see.
        with access.changing() as session:
            if session.row("share_tenant", (access.tenant, access.verifier)) is None:
                yield None
                return
            session.turn_to(wanted.digest)
            yield session

    return _open(access.database, wanted, lambda: find_beside(access, tenant, part), begun)


def _open(database: Database, wanted: _Wanted, find: Callable[[], UUID | None], begun: Begun) -> Opened:
    for _ in range(ATTEMPTS):
        found = find_settled(database, find)
        if found is None:
            if not wanted.part:
                check_unnamed(database, wanted.name)
            _make(wanted, begun)
            continue
        try:
            return Opened(found.own, _secret_of(wanted, found.own, found.row))
        except WrongKey:
            again = find_row(database, found.own)
            if again is not None and again[0] == found.row[0]:
                raise  # else its keys went since, with it
    raise Busy("a tenant of this name is made and deleted again and again; try again")


def _make(wanted: _Wanted, begun: Begun) -> None:
    """Make it, unless others do so at the same time, or the tenant that it is beside was deleted.

    The name is taken first, so that whoever is refused, or slower than others, makes no secret; then the secret is kept, so
    that a tenant that is there always has its own. Where the process dies in between, or the connection breaks, a secret
    that belongs to nobody stays in the keystore.
    """
    if not wanted.part:
        check_new(wanted.name)
    own = UUID(bytes=random_secret(IDENTITY_BYTES))
    with translating(), begun() as session:
        if session is None or session.row("name_tenant", (wanted.digest, own)) is None:
            return
        secret = _new_secret(wanted, own)
        try:
            _add(session, wanted, own, secret)
        except psycopg.Error as error:
            if wanted.keystore is not None and not is_broken(error):  # else it may have been committed
                with suppress(PerdureError):
                    wanted.keystore.drop_tenant(own)
            raise


def _add(session: Session, wanted: _Wanted, own: UUID, secret: bytes) -> None:
    """Add the row of a tenant within the transaction that has named it, and commit."""
    with session.together():
        session.turn_to(own)
        session.send("add_tenant", (own, wanted.name, verifier_of(secret), wanted.keystore is not None))
        session.commit()


def _new_secret(wanted: _Wanted, own: UUID) -> bytes:
    if wanted.keystore is not None:
        return wanted.keystore.put_secret(own, wanted.told or random_secret(SECRET_BYTES))
    if wanted.told is None:
        raise InvalidRequest(
            "without a keystore the database would hold the secret that its digests are keyed with: give secret, or a "
            "keystore",
            field="secret",
        )
    return wanted.told


def _secret_of(wanted: _Wanted, own: UUID, found: Row) -> bytes:
    """Return the secret of a tenant that is there. Raises WrongKey where the keystore, or what was told, is another's."""
    verifier, is_encrypted = bytes(found[0]), bool(found[1])
    if verifier == BURIED:
        raise Unavailable(
            "the tenant is being deleted: perdure delete-tenant brings that to its end", kind="buried"
        )
    if is_encrypted != (wanted.keystore is not None):
        raise WrongKey(
            "the tenant is encrypted, but no keystore was given: give the one that it was made with"
            if is_encrypted
            else "the tenant is not encrypted, but a keystore was given: leave it out"
        )
    secret = wanted.told if wanted.keystore is None else wanted.keystore.find_secret(own)
    if secret is None:
        assert wanted.keystore is not None
        raise missing(wanted.keystore, own, wanted.part)
    if not compare_digest(verifier, verifier_of(secret)) or (
        wanted.told is not None and not compare_digest(wanted.told, secret)
    ):
        raise WrongKey("the secret, or the keystore, is that of another store")
    return secret
