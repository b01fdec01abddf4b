"""What every command shares: which store, whose memory, which configuration, what form of output."""

from __future__ import annotations

import inspect
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, fields, is_dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, get_type_hints

import typer

from perdure.cli.addresses import (
    DEFAULT_TENANT,
    UNSERVABLE,
    checked_place,
    is_address,
    is_servable,
    refuse_any_address,
    refuse_other_address,
    shown_place,
)
from perdure.cli.arguments import HELP, Command
from perdure.cli.failures import Failed, complain
from perdure.cli.options import one_of
from perdure.cli.secret_files import told_key, told_secret
from perdure.errors import InvalidRequest, PerdureError

if TYPE_CHECKING:
    from perdure.documents.documents import Documents
    from perdure.memory.config import MemoryConfig
    from perdure.store import Memory, Store

EPHEMERAL = ":memory:"
BACKENDS = ("sqlite", "journal")
ABSENT = "there is no store there yet; remember, propose, conversation remember or import makes one"

StoreOption = Annotated[
    str | None,
    typer.Option(
        "--store",
        metavar="PLACE",
        help="The store's folder, or postgresql://…, a database. Default: PERDURE_STORE, else a folder among the user's "
        "data.",
    ),
]
PrincipalOption = Annotated[
    str | None,
    typer.Option(
        "--principal",
        metavar="NAME",
        help="Whose memory; exact, at most 256 bytes. Default: the one without a name.",
    ),
]
ScopeOption = Annotated[
    str | None,
    typer.Option(
        "--scope",
        metavar="NAME",
        help="Which of the principal's memories; exact, at most 256 bytes. Default: the one without a name.",
    ),
]
ConfigOption = Annotated[
    str | None,
    typer.Option(
        "--config",
        metavar="FILE",
        help="The settings of the memory, as JSON. Default: PERDURE_CONFIG, else those that the store keeps (perdure config --save), else the usual ones.",
    ),
]
KeyFileOption = Annotated[
    str | None,
    typer.Option(
        "--key-file",
        metavar="FILE",
        help="A file of yours alone with the key of an encrypted store, or its passphrase. Default: "
        "PERDURE_KEY_FILE, or the passphrase in PERDURE_KEY.",
    ),
]
SecretFileOption = Annotated[
    str | None,
    typer.Option(
        "--secret-file",
        metavar="FILE",
        help="A file of yours alone with the secret of a store that keeps none itself: 32 bytes, or 64 hex "
        "digits. Default: PERDURE_SECRET_FILE.",
    ),
]
BackendOption = Annotated[
    str | None,
    typer.Option(
        "--backend",
        metavar="NAME",
        help="What a new store is kept in: sqlite (the default), or journal, one readable file.",
        autocompletion=one_of(*BACKENDS),
    ),
]
TenantOption = Annotated[
    str | None,
    typer.Option(
        "--tenant",
        metavar="NAME",
        help="Whose store it is among those of a database: 1 to 256 bytes, and for a server 1 to 64 of A-Z, a-z, 0-9, _ and "
        "-. Default: PERDURE_TENANT, else default. Of keys: whom they are for.",
    ),
]
KeystoreOption = Annotated[
    str | None,
    typer.Option(
        "--keystore",
        metavar="DIR",
        help="Of a database: the folder outside it with the keys that it is encrypted with; or off, with --secret-file. "
        "Default: PERDURE_KEYSTORE.",
    ),
]
JsonFlag = Annotated[bool, typer.Option("--json", help="Print JSON, for programs.")]


@dataclass(frozen=True)
class Common:
    """The shared options as they were given at one place; None where they were not."""

    store: str | None = None
    principal: str | None = None
    scope: str | None = None
    config: str | None = None
    key_file: str | None = None
    secret_file: str | None = None
    backend: str | None = None
    tenant: str | None = None
    keystore: str | None = None
    as_json: bool = False

    def over(self, other: Common) -> Common:
        """Return these options with the gaps filled from `other`."""
        return Common(
            other.store if self.store is None else self.store,
            other.principal if self.principal is None else self.principal,
            other.scope if self.scope is None else self.scope,
            other.config if self.config is None else self.config,
            other.key_file if self.key_file is None else self.key_file,
            other.secret_file if self.secret_file is None else self.secret_file,
            other.backend if self.backend is None else self.backend,
            other.tenant if self.tenant is None else self.tenant,
            other.keystore if self.keystore is None else self.keystore,
            self.as_json or other.as_json,
        )


@dataclass(frozen=True)
class Session:
    """One run of a command."""

    place: str = field(repr=False)  # an address may hold a password
    principal: str | None
    scope: str | None
    as_json: bool
    config: MemoryConfig | None = field(repr=False)  # as told; None for the one that the store keeps
    key: str | Path | None = field(repr=False, default=None)  # a passphrase, or the file of a key
    secret: bytes | None = field(repr=False, default=None)
    backend: Any = None  # as told; opening a store judges it
    tenant: str | None = None  # as told, of a database or of keys
    keystore: str | None = None  # as told, of a database

    @property
    def is_database(self) -> bool:
        """Whether the place is the address of one."""
        return is_address(self.place)

    @property
    def shown(self) -> str:
        """The place as people may see it."""
        named = f" (tenant {self.tenant or DEFAULT_TENANT})" if self.is_database else ""
        return f"{shown_place(self.place)}{named}"

    @property
    def options(self) -> dict[str, Any]:
        """What `Store.open` takes beside the place."""
        told: dict[str, Any] = {"key": self.key, "secret": self.secret, "backend": self.backend}
        return {**told, "tenant": self.tenant, "keystore": self.keystore}

    def has_store(self) -> bool:
        """Whether there is a store at the place, or something else that opening it must judge.

        A folder without a file of a store's own is somebody else's, or not in use yet: it has none. In a database the
        tenant is what is there or not.
        """
        if self.place == EPHEMERAL:
            return True
        if self.is_database:
            from perdure.opening import Opening, has_tenant  # noqa: PLC0415 - help must not wait for it

            return has_tenant(self.place, Opening(tenant=self.tenant))
        from perdure.log.places import traces  # noqa: PLC0415 - help must not wait for it
        from perdure.opening import ROOT_MARK  # noqa: PLC0415 - likewise

        place = Path(self.place)
        try:
            return bool(traces(place)) or (place / ROOT_MARK).exists()
        except FileNotFoundError:
            return False
        except (OSError, ValueError):  # a file, a folder that may not be read, no path at all
            return True

    @contextmanager
    def store(
        self,
        *,
        writes: bool = False,
        changes: bool = False,
        configured: bool = True,
        timeout_s: float | None = None,
    ) -> Iterator[Store]:
        """Open the store; where there is none, a command that only reads sees an empty one and makes none.

        Args:
            writes: make the store where there is none.
            changes: the command changes what is there, and fails where there is nothing.
            configured: with the configuration that was told, which must be the one that the store keeps, if any.
            timeout_s: how long to wait for others; None for as long as a store usually does.

        Raises:
            Failed: there is nothing to change.
        """
        from perdure.store import Store  # noqa: PLC0415 - help and usage errors must not wait for it

        if not self.is_database and (self.tenant or self.keystore):
            from perdure.opening import refuse_tenant  # noqa: PLC0415 - only where something is wrong

            refuse_tenant(tenant=self.tenant, keystore=self.keystore)
        absent = not writes and not self.has_store()
        if absent and changes:
            raise Failed(self.absence())
        is_unservable = writes and self._makes_unservable()
        place = EPHEMERAL if absent else self.place
        # What is only in memory has nothing to encrypt, also where the environment holds a key for other stores.
        options = self.options
        if timeout_s is not None:
            options["timeout_s"] = timeout_s
        config = self.config if configured else None
        with named_as_in_the_file():
            opened = Store.open(place, config=config, **({} if place == EPHEMERAL else options))
        if is_unservable:
            complain(UNSERVABLE)
        with opened as store:
            yield store
        if absent:
            complain(self.absence())

    def absence(self) -> str:
        """Return that there is no store, with what a database lacks for one to be made there."""
        told = f"{ABSENT}: {self.shown}"
        if not self.is_database:
            return told
        from perdure.databases import Lookout  # noqa: PLC0415 - help must not wait for it

        try:
            with Lookout(self.place) as lookout:
                lookout.check()
        except PerdureError as error:
            return f"{told}; {error.message}"
        return told

    def _makes_unservable(self) -> bool:
        """Whether opening the store makes one in a database that no server can serve, for its name."""
        tenant = self.tenant or DEFAULT_TENANT
        return self.is_database and not is_servable(tenant) and not self.has_store()

    def rehearse(self, act: Callable[[Store], object]) -> None:
        """Where there is no store yet, carry out what makes one on an empty one that nobody keeps, so that what is
        refused makes none. Raises what it raises."""
        if self.has_store():
            return
        from perdure.store import Store  # noqa: PLC0415 - help and usage errors must not wait for it

        with named_as_in_the_file():
            opened = Store.open(EPHEMERAL, config=self.config)
        with opened as store:
            act(store)

    @contextmanager
    def memory(self, *, writes: bool = False, changes: bool = False) -> Iterator[Memory]:
        with self.store(writes=writes, changes=changes) as store:
            yield store.memory(self.principal, self.scope)

    @contextmanager
    def documents(self, *, writes: bool = False, changes: bool = False) -> Iterator[Documents]:
        with self.store(writes=writes, changes=changes) as store:
            yield store.documents(self.principal, self.scope)


def session_of(common: Common) -> Session:
    """Return the session that the options and the environment describe.

    Raises:
        InvalidRequest: there is no such backend, the configuration cannot be read or is wrong, one of the options that name
            a file is empty, the secret's file holds none, or the key is told twice.
    """
    for name in ("store", "config", "key_file", "secret_file", "tenant", "keystore"):
        if getattr(common, name) == "":
            option = name.replace("_", "-")
            raise InvalidRequest(f"--{option} is empty; name one, or leave the option out", field=name)
    if common.backend is not None and common.backend not in BACKENDS:
        raise InvalidRequest(
            f"backend must be one of {', '.join(BACKENDS)}, got {common.backend[:64]!r}", field="backend"
        )
    told_place = None if common.store is None else checked_place(common.store, "store")
    place = told_place or os.environ.get("PERDURE_STORE") or str(default_store())
    refuse_other_address(place, "store")
    config, named = common.config, "--config"
    if not config:
        config, named = os.environ.get("PERDURE_CONFIG"), "PERDURE_CONFIG"
    # What the environment tells for stores of the other kind is not for this one; what an option tells is.
    if is_address(place):
        _refuse_options_of_files(common)
    key = None if is_address(place) else told_key(common.key_file)
    secret = told_secret(common.secret_file)
    names = common.principal, common.scope, common.as_json
    told = read_config(config, named=named) if config else None
    tenant, keystore = common.tenant, common.keystore
    if is_address(place):
        tenant = tenant or os.environ.get("PERDURE_TENANT") or None
        keystore = keystore or os.environ.get("PERDURE_KEYSTORE") or None
        if keystore is not None:
            refuse_any_address(keystore, "keystore")
    return Session(place, *names, told, key, secret, common.backend, tenant, keystore)


@contextmanager
def named_as_in_the_file() -> Iterator[None]:
    """Let errors about a field of the configuration name it as its file does: `default_k` is `defaultK`."""
    try:
        yield
    except InvalidRequest as error:
        from perdure.contract.naming import camel_case  # noqa: PLC0415 - only where something is wrong
        from perdure.memory.config import MemoryConfig  # noqa: PLC0415 - likewise

        field = error.field
        if field is None or field not in (*MemoryConfig.PARAMETERS, *MemoryConfig.CHOICES):
            raise
        named = camel_case(field)
        raise InvalidRequest(error.message.replace(field, named), field=named) from error


def _refuse_options_of_files(common: Common) -> None:
    for option, told in (("key-file", common.key_file), ("backend", common.backend)):
        if told is not None:
            raise InvalidRequest(
                f"--{option} is for a store in files: one in a database is encrypted with the keys of --keystore. Leave "
                "it out",
                field=option.replace("-", "_"),
            )


def default_store() -> Path:
    """Return the folder among the user's data where the store is, unless told otherwise."""
    home = Path.home()
    if sys.platform == "darwin":
        base = home / "Library" / "Application Support"
    elif sys.platform == "win32":
        base = Path(os.environ.get("LOCALAPPDATA") or home / "AppData" / "Local")
    else:
        told = os.environ.get("XDG_DATA_HOME", "")
        base = Path(told) if Path(told).is_absolute() else home / ".local" / "share"
    return base / "perdure" / "store"


def read_config(path: str, field: str = "config", named: str = "--config") -> MemoryConfig:
    """Return the configuration in a file.

    Raises InvalidRequest, naming `field`, and what `named` the file, where it cannot be read.
    """
    from perdure.memory.config import MemoryConfig  # noqa: PLC0415 - help must not wait for it

    try:
        data = Path(path).read_bytes()
    except OSError as error:
        raise InvalidRequest(
            f"the configuration of {named} cannot be read ({error.strerror}): name a file with JSON",
            field=field,
        ) from error
    return MemoryConfig.from_json(data)


def shared_options(  # noqa: PLR0913 - the group's callback: the same options, before the command
    ctx: typer.Context,
    *,
    store: StoreOption = None,
    principal: PrincipalOption = None,
    scope: ScopeOption = None,
    config: ConfigOption = None,
    key_file: KeyFileOption = None,
    secret_file: SecretFileOption = None,
    backend: BackendOption = None,
    tenant: TenantOption = None,
    keystore: KeystoreOption = None,
    as_json: JsonFlag = False,
    version: Annotated[bool, typer.Option("--version", help="Print the version, and stop.")] = False,
) -> None:
    if version:
        _print_version(as_json=as_json)
        raise typer.Exit
    ctx.obj = Common(
        store, principal, scope, config, key_file, secret_file, backend, tenant, keystore, as_json
    )
    if ctx.invoked_subcommand is None:
        typer.echo(ctx.get_help())
        raise typer.Exit(2)


def _print_version(*, as_json: bool) -> None:
    from importlib.metadata import version  # noqa: PLC0415 - only where it is printed

    from perdure.cli.screen import print_json, put  # noqa: PLC0415 - only where it is printed

    told = version("perdure")
    if as_json:
        print_json({"version": told})
    else:
        put(f"perdure {told}\n")


def command(app: typer.Typer, name: str) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Register a function as a command; its first parameter is the Session, the rest are its options.

    It is `signed` only when the command is made.
    """
    return app.command(name, cls=Command, context_settings={"help_option_names": list(HELP)})


def signed(function: Callable[..., None]) -> Callable[..., None]:
    """Return what typer calls for such a function, with the function's options and the shared ones.

    A parameter whose type is a dataclass stands for the options that its fields are.
    """
    hints = get_type_hints(function, include_extras=True)
    groups: dict[str, type[Any]] = {name: kind for name, kind in hints.items() if _is_group(kind)}

    def run(ctx: typer.Context, **options: Any) -> None:
        given = Common(**{key: options.pop(key) for key in Common.__dataclass_fields__})
        for name, kind in groups.items():
            options[name] = kind(**{one.name: options.pop(one.name) for one in fields(kind)})
        function(session_of(given.over(ctx.obj or Common())), **options)

    shared = get_type_hints(shared_options, include_extras=True)
    own = [
        one
        for given in list(inspect.signature(function).parameters.values())[1:]
        for one in _spread(given, hints)
    ]
    there = inspect.signature(shared_options).parameters
    extra = [there[name] for name in Common.__dataclass_fields__]
    keyword = inspect.Parameter.KEYWORD_ONLY
    context = inspect.Parameter("ctx", keyword, annotation=typer.Context)
    parameters = [
        context,
        *(p.replace(kind=keyword) for p in own),
        *(p.replace(kind=keyword, annotation=shared[p.name]) for p in extra),
    ]
    run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    run.__annotations__ = {p.name: p.annotation for p in parameters}
    run.__name__, run.__doc__ = function.__name__, function.__doc__
    return run


def _is_group(kind: object) -> bool:
    return is_dataclass(kind) and kind is not Session


def _spread(parameter: inspect.Parameter, hints: dict[str, Any]) -> list[inspect.Parameter]:
    """Return the parameter with its type, or those that the fields of its dataclass are."""
    kind: type[Any] = hints[parameter.name]
    if not _is_group(kind):
        return [parameter.replace(annotation=kind)]
    told = get_type_hints(kind, include_extras=True)
    members = inspect.signature(kind).parameters.values()
    return [one.replace(annotation=told[one.name]) for one in members]
