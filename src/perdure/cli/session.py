"""What every command shares: which store, whose memory, which configuration, what form of output."""

from __future__ import annotations

import inspect
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, get_type_hints

import typer

from perdure.cli.arguments import HELP, Command
from perdure.cli.failures import Failed, complain
from perdure.cli.options import one_of
from perdure.errors import InvalidRequest

if TYPE_CHECKING:
    from perdure.documents.documents import Documents
    from perdure.memory.config import MemoryConfig
    from perdure.store import Memory, Store

EPHEMERAL = ":memory:"
SECRET_BYTES = 32
SECRET_FILE_BYTES_MAX = 128
ABSENT = "there is no store there yet; remember or import makes one"

StoreOption = Annotated[
    str | None,
    typer.Option(
        "--store",
        metavar="DIR",
        help="The store's folder. Default: PERDURE_STORE, else a folder among the user's data.",
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
        autocompletion=one_of("sqlite", "journal"),
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
            self.as_json or other.as_json,
        )


@dataclass(frozen=True)
class Session:
    """One run of a command."""

    place: str
    principal: str | None
    scope: str | None
    as_json: bool
    config: MemoryConfig | None = field(repr=False)  # as told; None for the one that the store keeps
    key: str | Path | None = field(repr=False, default=None)  # a passphrase, or the file of a key
    secret: bytes | None = field(repr=False, default=None)
    backend: Any = None  # as told; opening a store judges it

    def has_store(self) -> bool:
        """Whether there is a store at the place, or something else that opening it must judge.

        A folder without a file of a store's own is somebody else's, or not in use yet: it has none.
        """
        if self.place == EPHEMERAL:
            return True
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

        absent = not writes and not self.has_store()
        if absent and changes:
            raise Failed(f"{ABSENT}: {self.place}")
        place = EPHEMERAL if absent else self.place
        # What is only in memory has nothing to encrypt, also where the environment holds a key for other stores.
        options: dict[str, Any] = {"key": self.key, "secret": self.secret, "backend": self.backend}
        if timeout_s is not None:
            options["timeout_s"] = timeout_s
        config = self.config if configured else None
        with named_as_in_the_file():
            opened = Store.open(place, config=config, **({} if place == EPHEMERAL else options))
        with opened as store:
            yield store
        if absent:
            complain(f"{ABSENT}: {self.place}")

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
        InvalidRequest: the configuration cannot be read or is wrong, one of the options that name
            a file is empty, the secret's file holds none, or the key is told twice.
    """
    for name in ("store", "config", "key_file", "secret_file"):
        if getattr(common, name) == "":
            option = name.replace("_", "-")
            raise InvalidRequest(f"--{option} is empty; name one, or leave the option out", field=name)
    place = common.store or os.environ.get("PERDURE_STORE") or str(default_store())
    config, named = common.config, "--config"
    if not config:
        config, named = os.environ.get("PERDURE_CONFIG"), "PERDURE_CONFIG"
    key, secret = _key(common.key_file), _secret(common.secret_file)
    names = common.principal, common.scope, common.as_json
    told = read_config(config, named=named) if config else None
    return Session(place, *names, told, key, secret, common.backend)


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


def _key(key_file: str | None) -> str | Path | None:
    passphrase, named = os.environ.get("PERDURE_KEY"), os.environ.get("PERDURE_KEY_FILE")
    if passphrase and (key_file or named):
        raise InvalidRequest(
            f"both PERDURE_KEY and {'--key-file' if key_file else 'PERDURE_KEY_FILE'} tell a key: unset one of them",
            field="key",
        )
    if key_file or named:
        return Path(key_file or named or "")
    return passphrase or None


def _secret(secret_file: str | None) -> bytes | None:
    named = secret_file or os.environ.get("PERDURE_SECRET_FILE")
    if not named:
        return None
    from perdure.log.disk import read_private  # noqa: PLC0415 - only where there is a secret to read

    content = read_private(Path(named), SECRET_FILE_BYTES_MAX, what="the secret's file", field="secret_file")
    if len(content) == SECRET_BYTES:
        return content
    try:
        secret = bytes.fromhex(content.decode("ascii").strip())
    except ValueError:  # without its cause, which carries what is in the file
        secret = b""
    if len(secret) != SECRET_BYTES:
        raise InvalidRequest(
            f"the secret's file must hold {SECRET_BYTES} bytes, or {2 * SECRET_BYTES} hex digits",
            field="secret_file",
        )
    return secret


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
    as_json: JsonFlag = False,
    version: Annotated[bool, typer.Option("--version", help="Print the version, and stop.")] = False,
) -> None:
    if version:
        _print_version(as_json=as_json)
        raise typer.Exit
    ctx.obj = Common(store, principal, scope, config, key_file, secret_file, backend, as_json)
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
    """Register a function as a command; its first parameter is the Session, the rest are its options."""

    def register(function: Callable[..., None]) -> Callable[..., None]:
        def run(ctx: typer.Context, **options: Any) -> None:
            given = Common(**{key: options.pop(key) for key in Common.__dataclass_fields__})
            function(session_of(given.over(ctx.obj or Common())), **options)

        _sign(run, function)
        app.command(name, cls=Command, context_settings={"help_option_names": list(HELP)})(run)
        return function

    return register


def _sign(run: Callable[..., None], function: Callable[..., None]) -> None:
    """Give `run` the options of the function and the shared ones, which is where typer reads them."""
    hints = get_type_hints(function, include_extras=True)
    shared = get_type_hints(shared_options, include_extras=True)
    own = list(inspect.signature(function).parameters.values())[1:]
    there = inspect.signature(shared_options).parameters
    extra = [there[name] for name in Common.__dataclass_fields__]
    keyword = inspect.Parameter.KEYWORD_ONLY
    context = inspect.Parameter("ctx", keyword, annotation=typer.Context)
    parameters = [
        context,
        *(p.replace(kind=keyword, annotation=hints[p.name]) for p in own),
        *(p.replace(kind=keyword, annotation=shared[p.name]) for p in extra),
    ]
    run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    run.__annotations__ = {p.name: p.annotation for p in parameters}
    run.__name__, run.__doc__ = function.__name__, function.__doc__
