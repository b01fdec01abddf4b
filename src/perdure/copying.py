"""Copying a store into one of any other backend, as it is: the same records under the same numbers."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import replace
from functools import partial
from pathlib import Path

from perdure.audit.audit import Audit
from perdure.audit.audited_log import audit_of
from perdure.audit.book import book_name
from perdure.base.clock import SystemClock, checked_now
from perdure.errors import (
    Busy,
    Corrupt,
    InvalidRequest,
    NotFound,
    PerdureError,
    StorageFull,
    Unavailable,
    WrongKey,
)
from perdure.log.copying import LogCopy, are_equal
from perdure.log.places import checked_path, is_store, taken_target
from perdure.log.protocol import Log, Progress
from perdure.log.records import SpaceRecord, decode
from perdure.model.namespace import Namespace
from perdure.model.stores import Copied
from perdure.opening import (
    DEFAULT_TENANT,
    EPHEMERAL,
    UNENCRYPTED,
    Auditing,
    Backend,
    KeyForm,
    KeystoreForm,
    Opening,
    audited,
    find_backend,
    has_tenant,
    is_address,
    open_log,
    refuse_file,
)
from perdure.planning.checks import checked_flag
from perdure.space.names import hashed_name
from perdure.space.verifying import verify_log
from perdure.store import Store

_OF_SOURCE = {"path": "source"}  # what opening calls it, and what a copy does
_OF_TARGET = {
    "path": "target",
    "tenant": "to_tenant",
    "keystore": "to_keystore",
    "key": "to_key",
    "backend": "to_backend",
}
PASSES = 8  # over the source while others write to it; what is left then is copied while they wait
PASSES_MAX = 64
LOCKS = frozenset(
    {"writer.lock", "writer.next", "backup.lock", "journal.lock"}
)  # of a store that is being made


def copy(  # noqa: PLR0913 - the names of the public interface
    source: str | Path | Store,
    target: str | Path,
    *,
    key: KeyForm | None = None,
    secret: bytes | None = None,
    tenant: str | None = None,
    keystore: KeystoreForm | None = None,
    to_backend: Backend | None = None,
    to_key: KeyForm | None = None,
    to_tenant: str | None = None,
    to_keystore: KeystoreForm | None = None,
    plain: bool = False,
    verify: bool = True,
    progress: Progress | None = None,
) -> Copied:
    """Copy a store, with its audit, into one of any backend: the same spaces, records, numbers and secret.

    So both answer alike, with the same scores, ids, cursors and change tokens. What was forgotten is not copied, only
    the places that it leaves. Others may go on writing to the source: the copy follows until both are equal, and keeps
    them out for the last bit where it does not catch up. A copy that was stopped goes on when the call is repeated. The
    source notes that it was copied, as it does of a backup, and the target has the same notes.

    Args:
        source: a directory, the address of a database, or a store that is open, an ephemeral one too.
        target: a directory, or the address of a database: new, empty, or a copy of this source that was begun.
        key: what the source is encrypted with, as in `Store.open`; so `tenant` and `keystore`.
        secret: that of a source that keeps none itself; the target then keeps none either.
        to_backend: what a new target in files is kept in, "sqlite" or "journal".
        to_key: what a target in SQLite is encrypted with; the source's key when absent.
        to_tenant, to_keystore: of the target, as in `Store.open`.
        plain: let the target be unencrypted where the source has a key.
        verify: read the source before the copy begins and the target once it is there, whole, and check all of it.
        progress: told the records that are in the target, of all.

    Raises:
        NotFound: there is no source.
        InvalidRequest: an argument is wrong, or the target holds something else: then nothing was written.
        WrongKey: of the source; or the target is another store: then nothing was written.
        Corrupt: the source is damaged, with what was found first; nothing more was written.
        Conflict: somebody else wrote to the target meanwhile.
        Busy, StorageFull, Unavailable: what was copied stays, and the same call goes on there.
    """
    form, to_form = _called(key), _called(to_key)
    opening = Opening(None, secret, form, tenant=tenant, keystore=keystore)
    told = Opening(to_backend, None, to_form, tenant=to_tenant, keystore=to_keystore)
    _check_places(source, target, opening, told)
    with _named(_OF_TARGET):
        is_begun = _is_begun(target, told)
    told = _encrypted(target, told, None if checked_flag(plain, "plain") else form)
    with _opened_source(source, opening) as (log, kept), ExitStack() as ending:
        if verify and not is_begun:
            _check(log, "the source")
        try:
            with _named(_OF_TARGET):
                there = _opened_target(target, told, log.secret, kept=kept)
        except WrongKey as error:
            raise WrongKey(_another(target, told, error)) from error
        ending.callback(there.close)
        followed = audited(there, target, told, SystemClock(), Auditing())
        ending.callback(followed.close)
        whole = _StoreCopy(log, followed, progress)
        whole.run()
        if verify:
            _check(whole.target, "the copy")
        return whole.answer(verified=verify)


class _StoreCopy:
    """A main log with its audit on the way into another pair."""

    def __init__(self, source: Log, target: Log, progress: Progress | None) -> None:
        self.source, self.target, self._progress = source, target, progress
        self._done = self._total = 0
        # The logs themselves: what is erased in the target was told of in the audit that is copied.
        self._main = LogCopy(_inner(source), _inner(target), partial(_name_of, source.secret), self._told)
        self._events: LogCopy | None = None

    def run(self) -> None:
        """Copy until both are equal."""
        self._total = _count(self.source)
        self._main.check()
        if self._has_events():
            self._total += _count(_events(self.source))
        if not are_equal(self.source, self.target):
            self._note()
        self._follow()
        _copy_notes(self.source, self.target)
        # What was there before may be where a copying that was stopped had it: a turn waits until it is as safe as its own.
        with self.target.writer():
            self.target.epoch()
        self.target.scrub()

    def answer(self, *, verified: bool) -> Copied:
        """Return what was copied."""
        numbers = self.target.spaces()
        heads = [self.target.head(number) for number in numbers]
        written = self._main.written + (0 if self._events is None else self._events.written)
        records, erased = sum(head.seq for head in heads), sum(head.erasures for head in heads)
        return Copied(len(numbers), records, erased, written, verified)

    def _follow(self) -> None:
        for _ in range(PASSES):
            if not self._pass():
                return
        with self.source.writer():
            for _ in range(PASSES_MAX):
                if not self._pass():
                    return
        raise Busy(
            "the source is written to all the time, past its writer's turn; stop that, and copy once more"
        )

    def _pass(self) -> bool:
        # The audit first: that of a copy that is stopped then goes on where the copied log is.
        moved = False
        if self._has_events() and self._events is not None:
            _derive_events(self.source)
            moved = self._events.follow()
        return self._main.follow() or moved

    def _has_events(self) -> bool:
        """Whether the source has an audit by now; that of the target is opened then, and held against it."""
        if self._events is None and (audit := audit_of(self.source)) is not None and audit.exists:
            name = book_name(self.source.secret)
            self._events = LogCopy(_events(self.source), _events(self.target), lambda *_: name, self._told)
            self._events.check()
        return self._events is not None

    def _note(self) -> None:
        """Note the copy, before there is one, where a certificate of the source will tell of it, and so of the target."""
        now = checked_now(SystemClock())
        try:
            self.source.note_backup(now)
        except (Unavailable, StorageFull):  # an ephemeral one, or one that cannot be written
            self.target.note_backup(now)

    def _told(self, count: int) -> None:
        self._done += count
        if self._progress is not None:
            self._progress(self._done, max(self._total, self._done))


# Places


def _check_places(source: object, target: object, opening: Opening, told: Opening) -> None:
    if str(target) == EPHEMERAL:
        raise InvalidRequest(
            "a copy in memory would be gone when it is made: give a directory", field="target"
        )
    if is_address(target):
        if is_address(source) and (str(source), opening.tenant) == (str(target), told.tenant):
            raise InvalidRequest("source and target are one store: give another target", field="target")
        return
    place = checked_path(target, "target")
    refuse_file(place, "target")
    if isinstance(source, str | Path) and not is_address(source) and str(source) != EPHEMERAL:
        _check_apart(checked_path(source, "source"), place)


def _check_apart(source: Path, target: Path) -> None:
    ours, theirs = Path(os.path.realpath(source)), Path(os.path.realpath(target))
    if ours == theirs or ours in theirs.parents or theirs in ours.parents:
        raise InvalidRequest(
            "the target is the source, or one of them lies within the other: give a directory apart from it",
            field="target",
        )


def _is_begun(target: str | Path, told: Opening) -> bool:
    """Whether a copy was begun there, so that the source was checked before."""
    if is_address(target):
        return has_tenant(str(target), told)
    return find_backend(checked_path(target, "target")) is not None


@contextmanager
def _named(names: Mapping[str, str]) -> Iterator[None]:
    """Let what is wrong with how one of the two is opened be told by the arguments that are its own."""
    try:
        yield
    except InvalidRequest as error:
        told = error.field or ""
        if told in names:
            if error.message.startswith(f"{told} "):
                error.message = f"{names[told]}{error.message.removeprefix(told)}"
            error.field, error.args = names[told], (error.message,)
        raise


def _called(key: KeyForm | None) -> KeyForm | None:
    return key() if callable(key) and not isinstance(key, Path) else key


def _encrypted(target: str | Path, told: Opening, key: KeyForm | None) -> Opening:
    """Return how the target is opened where the source has this key, None where the target may be plain."""
    if key is None or told.key is not None:
        return told
    if is_address(target):
        lacks = told.keystore == UNENCRYPTED
    else:
        lacks = (find_backend(checked_path(target, "target")) or told.backend) == "journal"
        told = told if lacks else replace(told, key=key)
    if lacks:
        raise InvalidRequest(
            "the source is encrypted, and the target would not be: say that it may be plain, or give another target",
            field="plain",
        )
    return told


def _another(target: str | Path, told: Opening, error: WrongKey) -> str:
    """Return what a target is that does not open with the source's secret, and what to do."""
    if not is_address(target):
        return f"the target is another store than a copy of this source, or has another key: {error.message}"
    there = f"the tenant {told.tenant or DEFAULT_TENANT!r} is there already"
    if told.keystore != UNENCRYPTED:
        try:
            open_log(target, told).close()  # with the secret that it has
        except WrongKey:
            return f"{there}, and does not open: {error.message}. Or name a new tenant (to_tenant)"
        except PerdureError:
            pass  # what else is in its way is told to who opens it
    return f"{there}, and is another store than a copy of this source: name a new tenant (to_tenant)"


@contextmanager
def _opened_source(source: str | Path | Store, opening: Opening) -> Iterator[tuple[Log, bool]]:
    """Yield the log of the source, with its audit, and whether it keeps its secret itself."""
    if isinstance(source, Store):
        yield source.log, opening.secret is None
        return
    if str(source) == EPHEMERAL:
        raise InvalidRequest(
            "an ephemeral store is not found by its name: give the store that is open", field="source"
        )
    if is_address(source):
        with _named(_OF_SOURCE):
            is_there = has_tenant(str(source), opening)
    else:
        is_there = find_backend(checked_path(source, "source")) is not None
    if not is_there and is_address(source):
        raise NotFound("there is no tenant of that name there to copy", field="tenant")
    if not is_there:
        raise NotFound("there is no store there to copy", field="source")
    log, kept = _opened(source, opening)
    try:
        log = audited(log, source, opening, SystemClock(), Auditing())
        yield log, kept
    finally:
        log.close()


def _opened(source: str | Path, opening: Opening) -> tuple[Log, bool]:
    if opening.secret is None:
        return open_log(source, opening), True
    # A secret may be told of a store that keeps it too.
    try:
        log = open_log(source, replace(opening, secret=None))
    except (WrongKey, InvalidRequest):
        return open_log(source, opening), False
    if log.secret != opening.secret:
        log.close()
        raise WrongKey("the source was created with another secret: give that one, or none")
    return log, True


def _opened_target(target: str | Path, told: Opening, secret: bytes, *, kept: bool) -> Log:
    ours = replace(told, secret=secret)
    if is_address(target):
        if kept and told.keystore == UNENCRYPTED:
            raise InvalidRequest(
                "a database without a keystore keeps no secret, and the source keeps its own: give a keystore",
                field="to_keystore",
            )
        return open_log(target, ours)
    place = checked_path(target, "target")
    found = find_backend(place, told.backend)
    if found is None:
        _check_empty(place)
    backend = found or told.backend or "sqlite"
    if not kept:
        return open_log(place, replace(ours, backend=backend))
    return _kept_in_files(place, backend, ours)


def _kept_in_files(place: Path, backend: Backend, ours: Opening) -> Log:
    """Open a target that is to keep its secret itself, and have it do so where it is new."""
    ours = replace(ours, backend=backend)
    if backend == "journal":
        from perdure.log.journal import create_keeping, is_unfinished  # noqa: PLC0415 - only where it is wanted

        if ours.key is None and is_unfinished(place):
            assert ours.secret is not None
            create_keeping(place, ours.secret)
        return open_log(place, ours)
    from perdure.base.sqlite.keys import checked_key  # noqa: PLC0415 - likewise
    from perdure.log.sqlite.salvaging import keep_secret  # noqa: PLC0415 - likewise

    log = open_log(place, ours)
    if log.spaces():
        return log
    log.close()
    assert ours.secret is not None
    keep_secret(place, checked_key(ours.key), ours.secret)
    return open_log(place, ours)


def _check_empty(place: Path) -> None:
    """Raise InvalidRequest unless nothing lies there but what a copy that was stopped at once has left."""
    try:
        names = {path.name for path in place.iterdir()}
    except FileNotFoundError:
        names = set()
    except OSError as error:
        raise InvalidRequest(
            f"the target is no folder that can be used ({error.strerror}): give another", field="target"
        ) from error
    if not names <= LOCKS:
        raise taken_target("target")
    if any(map(is_store, place.parents)):
        raise InvalidRequest(
            "the target lies within another store, and would go with it: give another", field="target"
        )


# Logs


def _inner(log: Log) -> Log:
    audit = audit_of(log)
    return log if audit is None else log.inner  # type: ignore[attr-defined]


def _events(log: Log) -> Log:
    audit = audit_of(log)
    assert isinstance(audit, Audit)
    return audit.book.log


def _derive_events(log: Log) -> None:
    """Have the audit follow the log, so that whoever reads the copy's events has nothing to add to them."""
    audit = audit_of(log)
    assert audit is not None
    with suppress(StorageFull, Unavailable):  # then the copy's does so later, as this one would
        audit.follow()


def _name_of(secret: bytes, number: int, first: bytes) -> bytes:
    record = decode(first, space=number, seq=1)
    if not isinstance(record, SpaceRecord):
        raise Corrupt(f"the first record of space {number} is damaged: run a verify", space=number, seq=1)
    return hashed_name(secret, Namespace(record.principal, record.scope))


def _count(log: Log) -> int:
    return sum(log.head(number).seq for number in log.spaces())


def _copy_notes(source: Log, target: Log) -> None:
    there = Counter(target.backups())
    for at in source.backups():
        if there[at] > 0:
            there[at] -= 1
        else:
            target.note_backup(at)


def _check(log: Log, what: str) -> None:
    for finding in verify_log(log).findings:
        raise Corrupt(
            f"{what} does not hold together: {finding.message}", space=finding.space, seq=finding.seq
        )
