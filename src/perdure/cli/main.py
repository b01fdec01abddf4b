"""The entry of the command `perdure`."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any, ClassVar, NoReturn

import typer

from perdure.cli import (
    about,
    asking,
    backups,
    conversing,
    copying,
    databases,
    demo,
    documents,
    encrypting,
    erasing,
    evaluate,
    events,
    files,
    keys,
    maintaining,
    mcp,
    merging,
    reindexing,
    removing,
    reviewing,
    serve,
    telling,
    verifying,
)
from perdure.cli.arguments import check_leading, wants_json
from perdure.cli.completion import shell_named
from perdure.cli.failures import Failed, run
from perdure.cli.help import HELP, Group
from perdure.cli.making import make
from perdure.cli.session import shared_options
from perdure.cli.streams import prepare, settle_errors

ABOUT = """A memory for AI agents: facts that hold over time.

Tell facts with remember, ask with recall, now or as of any moment. Everything is kept in a store, a folder that
the first remember or import makes; --principal and --scope choose a memory inside it.

Times are ISO text (2024-05-31, 2024-05-31T13:45:00Z; without a zone UTC) or milliseconds since 1970. Give a text
that spans words in quotes; "-" reads it from standard input. With --json, replies and errors are objects on
standard output; an error is also one line on standard error.

\b
Examples:
  perdure remember "Alice lives in Paris" --valid-from 2020-01-01
  perdure recall "where does Alice live" --as-of 2021-06-01
  perdure COMMAND --help
"""


class CommandLine(Group):
    """The command with its subcommands; every way out of it is an exit code."""

    headings: ClassVar[list[tuple[str, list[str]]]] = []

    def main(self, args: Any = None, prog_name: str | None = None, *rest: Any, **extra: Any) -> NoReturn:
        arguments = list(sys.argv[1:] if args is None else args)
        prepare()
        extra["standalone_mode"] = False
        whole = super().main

        def action() -> Any:
            if sys.stdout is None:
                raise Failed("standard output is closed, so nothing could be answered; nothing was done")
            with shell_named(arguments):
                return whole(arguments, prog_name or "perdure", *rest, **extra)

        code = run(action, as_json=wants_json(arguments))
        settle_errors()
        sys.exit(code)

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        if not ctx.resilient_parsing:  # a line that is not finished, for a shell to complete
            check_leading(args, self.params)
        return super().parse_args(ctx, args)


app = typer.Typer(
    name="perdure",
    cls=CommandLine,
    help=ABOUT,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,  # a pretty traceback shows people's text
    context_settings={"help_option_names": list(HELP)},
)
app.callback(invoke_without_command=True)(shared_options)
HEADINGS: tuple[tuple[str, tuple[Any, ...]], ...] = (
    ("Tell", (telling, merging)),
    ("Ask", (asking,)),
    ("Forget", (removing, erasing, maintaining)),
    ("Documents", (documents,)),
    ("Govern", (reviewing, conversing, events)),
    ("Move and keep", (files, backups, copying, verifying, encrypting, reindexing)),
    ("Serve", (serve, mcp, keys, databases)),
    ("Look around", (about, evaluate, demo)),
)
"""Which commands stand under which heading of the help, in this order."""


def _names() -> list[str]:
    commands = [str(one.name) for one in app.registered_commands]
    return [*commands, *(str(one.name) for one in app.registered_groups)]


for _heading, _modules in HEADINGS:
    _before = _names()
    for _module in _modules:
        _module.add_to(app)
    CommandLine.headings.append((_heading, [_name for _name in _names() if _name not in _before]))


def command_line() -> Any:
    """Return the command, for typer to run."""
    return make(app)


def main(args: Sequence[str] | None = None) -> NoReturn:
    """Run the command with these arguments (else the process's own) and exit."""
    command_line().main(args, "perdure")
    raise AssertionError("the command exits by itself")
