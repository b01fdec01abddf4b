"""Pages of help: what a command is for, its words, its own options, those of all commands, examples, exit codes."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, ClassVar

import typer
from typer.core import TyperGroup

HELP = ("-h", "--help")
SHARED = frozenset(
    {
        "store",
        "principal",
        "scope",
        "config",
        "key_file",
        "secret_file",
        "backend",
        "tenant",
        "keystore",
        "as_json",
    }
)
"""The names of the parameters that every command has; `session.Common` holds them."""

EXIT_CODES = (
    ("0", "done; a search or a list may be empty"),
    ("1", "not found, refused, or failed"),
    ("2", "a wrong command line or value; nothing was changed"),
)
ENVIRONMENT = (
    ("PERDURE_STORE", "the store's folder or address, where --store is not given"),
    ("PERDURE_CONFIG", "the configuration's file, where --config is not given"),
    ("PERDURE_KEY", "the passphrase of an encrypted store"),
    ("PERDURE_KEY_FILE", "the file of its key, where --key-file is not given"),
    ("PERDURE_SECRET_FILE", "the file of its secret, where --secret-file is not given"),
    ("PERDURE_TENANT", "the tenant in a database, where --tenant is not given"),
    ("PERDURE_KEYSTORE", "the folder of a database's keys, where --keystore is not given"),
    ("PERDURE_REPLICA", "the standby that serve loads from, where --replica is not given"),
    ("COLUMNS", "how wide the output is, where that is no terminal"),
)


class Page:
    """Lays out the help of a command or a group; mixed into both."""

    epilog: str | None = None

    def collect_usage_pieces(self, ctx: Any) -> list[str]:
        words = [_word_shown(param) for param in self._words(ctx)]
        more = ["COMMAND [ARGS]..."] if isinstance(self, TyperGroup) else []
        return ["[OPTIONS]", *words, *more]

    def format_options(self, ctx: Any, formatter: Any) -> None:
        words = [(str(param.metavar), _told(param)) for param in self._words(ctx)]
        options = [param for param in self._params(ctx) if param.param_type_name == "option"]
        own = [_record(param) for param in options if param.name not in SHARED]
        shared = [_record(param) for param in options if param.name in SHARED]
        _section(formatter, "Arguments", words)
        if isinstance(self, TyperGroup):
            self.format_commands(ctx, formatter)
        _section(formatter, "Options", own)
        _section(formatter, "Options of every command, before or after it", shared)
        _section(formatter, "Exit codes", EXIT_CODES)
        _section(formatter, "Environment", ENVIRONMENT)

    def _params(self, ctx: Any) -> list[Any]:
        return [param for param in self.get_params(ctx) if not getattr(param, "hidden", False)]  # type: ignore[attr-defined]

    def _words(self, ctx: Any) -> list[Any]:
        return [param for param in self._params(ctx) if param.param_type_name == "argument"]


class Group(Page, TyperGroup):
    """A command with subcommands, each shown with the whole first sentence of what it says of itself."""

    headings: ClassVar[list[tuple[str, list[str]]]] = []  # of the commands, in order; the others come last

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        told = {name: self.commands[name] for name in self.list_commands(ctx)}
        rows = {name: brief(one.help) for name, one in told.items() if not one.hidden}
        for heading, names in self.headings:
            _section(formatter, heading, [(name, rows.pop(name)) for name in names if name in rows])
        _section(formatter, "Other commands" if self.headings else "Commands", list(rows.items()))


def brief(text: str | None) -> str:
    """Return the first sentence of a page, on one line."""
    paragraph = (text or "").strip().partition("\n\n")[0]
    sentence, stop, _ = " ".join(paragraph.split()).partition(". ")
    return sentence + ("." if stop else "")


def add_group(app: typer.Typer, name: str, about: str) -> typer.Typer:
    """Register and return a group of commands; without one of them it shows its help, and the exit code is 2."""
    group = typer.Typer(
        name=name,
        cls=Group,
        help=about,
        context_settings={"help_option_names": list(HELP)},
        rich_markup_mode=None,
        pretty_exceptions_enable=False,
        add_completion=False,
    )
    group.callback(invoke_without_command=True)(_show_help)
    app.add_typer(group, name=name)
    return group


def _show_help(ctx: typer.Context) -> None:
    if ctx.invoked_subcommand is None:
        typer.echo(ctx.get_help())
        raise typer.Exit(2)


def _section(formatter: Any, heading: str, rows: Iterable[tuple[str, str]]) -> None:
    told = list(rows)
    if told:
        with formatter.section(heading):
            formatter.write_dl(told)


def _record(param: Any) -> tuple[str, str]:
    names = ", ".join(sorted(param.opts, key=len))
    if param.secondary_opts:
        names += " / " + ", ".join(param.secondary_opts)
    if not param.is_flag:
        names += f" {param.metavar or param.name.upper()}"
    return names, _told(param)


def _told(param: Any) -> str:
    told, usual = str(param.help or ""), getattr(param, "default", None)
    if usual in (None, False, True, "") or callable(usual) or "efault" in told:
        return told
    return f"{told} Default: {usual}."


def _word_shown(param: Any) -> str:
    shown = str(param.metavar)
    return shown if param.required or shown.startswith("[") else f"[{shown}]"
