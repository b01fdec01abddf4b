"""Who is asking: from the header Authorization to what its key allows."""

from __future__ import annotations

import hmac
import ipaddress
import logging
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from perdure.base.clock import Clock
from perdure.errors import InvalidRequest, PerdureError, Unauthorized, Unavailable
from perdure.server.access import Access
from perdure.server.keyring_token import local_token, token_file
from perdure.server.keys import Keyring, digest_of

log = logging.getLogger("perdure.server")

ANYONE = Access(tenant=None, principal=None, scope=None, role="admin", key_id=None)
"""Whoever asks a server without keys, with its token or where none is needed."""

UNAUTHORIZED = "a valid key is needed; send it in the header Authorization, as Bearer KEY"
_SCHEME = "bearer "


@dataclass(frozen=True)
class Binding:
    """Where a server listens, and whether it was told to ask for no key."""

    host: str
    port: int
    no_auth: bool = False


class Authenticator:
    """Judges the header Authorization of each request. Thread-safe; close it when the server ends."""

    def __init__(
        self,
        keyring: Keyring | None,
        *,
        token: str | None = None,
        token_path: Path | None = None,
        anyone: bool = False,
    ) -> None:
        """Take keys, and a token that counts as long as there are none; `anyone` asks for neither."""
        self.token_path, self.anyone = token_path, anyone
        self._keyring = keyring
        self._token = None if token is None else digest_of(token)
        self._said: str | None = None  # in the log, of keys that cannot be read

    def access(self, headers: Sequence[str | bytes]) -> Access:
        """Return what the request may do, from the values of all its headers Authorization.

        Raises:
            Unauthorized: there is none or several, or the key is unknown, revoked or past its time; one text for all.
            Unavailable: the keys cannot be read; the log says why.
        """
        if self.anyone:
            return ANYONE
        told = _bearer(headers)
        found = self._access(told)
        if found is None:
            raise Unauthorized(UNAUTHORIZED)
        return found

    def has_keys(self) -> bool:
        """Whether there are keys, also revoked ones, so that whoever asks needs one.

        Raises:
            Unavailable: they cannot be read; the log says why.
        """
        if self._keyring is None:
            return False
        with self._reading():
            return bool(self._keyring.all_keys())

    def check(self) -> None:
        """Raise Unavailable where nobody would be let in because the keys cannot be read; the log says why."""
        if not self.anyone:
            self.has_keys()

    def close(self) -> None:
        """Let the file of keys go. Idempotent."""
        if self._keyring is not None:
            self._keyring.close()

    def _access(self, told: str) -> Access | None:
        has_token = self._token is not None and hmac.compare_digest(digest_of(told), self._token)
        if has_token:  # a revoked key is one too: else revoking the last would open the server again
            return None if self.has_keys() else ANYONE
        if self._keyring is None:
            return None
        with self._reading():
            key = self._keyring.find(told)
        return None if key is None else Access(key.tenant, key.principal, key.scope, key.role, key.id)

    @contextmanager
    def _reading(self) -> Iterator[None]:
        try:
            yield
        except PerdureError as error:
            if self._said != error.message:  # not once a request
                self._said = error.message
                log.error("the keys cannot be read, so that no key is taken: %s", error.message)
            raise Unavailable("the server cannot read its keys now; its log says why") from error
        if self._said is not None:
            self._said = None
            log.info("the keys can be read again")


def open_authenticator(directory: Path | None, binding: Binding, clock: Clock | None = None) -> Authenticator:
    """Return how a server that listens there tells who is asking.

    With keys, each request needs one. Without any, the server is for this machine alone, and its requests need
    the token in `token_path`; or nothing, where it was told so. Keys that are made later count at once, and from the
    first one on the token is refused.

    Args:
        directory: of the store or the root of tenants, made where it is absent; None for an ephemeral store.

    Raises:
        InvalidRequest: the server has no keys and listens to other machines, or has keys and is to ask for none;
            or others may read the file of keys.
        Corrupt, Busy, StorageFull, Unavailable: the keys or the token cannot be read or made.
    """
    keyring = None if directory is None else Keyring(directory, clock=clock)
    has_keys = keyring is not None and bool(keyring.all_keys())
    check_binding(binding, has_keys=has_keys)
    if binding.no_auth:
        return Authenticator(keyring, anyone=True)
    if has_keys:
        return Authenticator(keyring)
    try:
        if directory is not None:
            directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        path = token_file(directory, binding.port)
    except OSError as error:
        raise Unavailable(
            f"the directory for the server's token cannot be used ({error.strerror}): check that this user may "
            "write there"
        ) from error
    return Authenticator(keyring, token=local_token(path), token_path=path)


def check_binding(binding: Binding, *, has_keys: bool) -> None:
    """Raise InvalidRequest where a server would let more people in than anybody said."""
    if binding.no_auth and has_keys:
        raise InvalidRequest(
            "there are keys, so requests need one: leave --no-auth out, or revoke the keys and remove their file",
            field="no_auth",
        )
    if not has_keys and not is_loopback(binding.host):
        raise InvalidRequest(
            f"{binding.host} is reached from other machines, and there are no keys: make one with perdure keys create, or "
            "listen on 127.0.0.1",
            field="host",
        )


def is_loopback(host: str) -> bool:
    """Whether only this machine reaches a server that listens on this host."""
    if host.lower() == "localhost":
        return True
    try:
        address = ipaddress.ip_address(host.strip("[]"))
    except ValueError:
        return False
    if isinstance(address, ipaddress.IPv6Address) and address.ipv4_mapped is not None:
        address = address.ipv4_mapped  # Python 3.11 and 3.12 take no mapped address for a loopback
    return address.is_loopback


def _bearer(headers: Sequence[str | bytes]) -> str:
    """Return what the one header tells as a key, "" where that is nothing."""
    if len(headers) != 1:
        return ""
    header = headers[0]
    text = header.decode("latin-1") if isinstance(header, bytes) else header
    scheme, told = text[: len(_SCHEME)], text[len(_SCHEME) :]
    return told.strip(" ") if scheme.lower() == _SCHEME else ""
