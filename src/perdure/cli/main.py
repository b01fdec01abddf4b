"""The entry of the command `perdure`."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any, NoReturn

import typer
from typer.core import TyperGroup

from perdure.cli import (
    about,
    asking,
    backups,
    demo,
    encrypting,
    erasing,
    evaluate,
    files,
    keys,
    maintaining,
    merging,
    reindexing,
    removing,
    telling,
    verifying,
)
from perdure.cli.arguments import HELP, check_leading, wants_json
from perdure.cli.failures import Failed, run
from perdure.cli.session import shared_options
from perdure.cli.streams import prepare

ABOUT = """A memory for AI agents: facts that hold over time.

Times are ISO text (2024-05-31, 2024-05-31T13:45:00Z; without a zone UTC) or milliseconds since 1970.
Give a text that spans words in quotes; "-" reads it from standard input. Exit codes: 0 done, 1 not found,
refused or failed, 2 a wrong command line or value. With --json, replies and errors are objects on
standard output; an error is also one line on standard error."""


class CommandLine(TyperGroup):
    """The command with its subcommands; every way out of it is an exit code."""

    def main(self, args: Any = None, prog_name: str | None = None, *rest: Any, **extra: Any) -> NoReturn:
        arguments = list(sys.argv[1:] if args is None else args)
        prepare()
        extra["standalone_mode"] = False
        whole = super().main

        def action() -> Any:
            if sys.stdout is None:
                raise Failed("standard output is closed, so nothing could be answered; nothing was done")
            return whole(arguments, prog_name or "perdure", *rest, **extra)

        sys.exit(run(action, as_json=wants_json(arguments)))

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
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
for module in (
    telling,
    asking,
    removing,
    erasing,
    maintaining,
    merging,
    files,
    keys,
    backups,
    verifying,
    encrypting,
    reindexing,
    evaluate,
    about,
    demo,
):
    module.add_to(app)


def main(args: Sequence[str] | None = None) -> NoReturn:
    """Run the command with these arguments (else the process's own) and exit."""
    typer.main.get_command(app).main(args, "perdure")
    raise AssertionError("the command exits by itself")
