"""The shape of the command line: words before options, repeats refused, a leading hyphen is text."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from typer.core import TyperCommand

from perdure.cli.help import HELP as HELP  # noqa: PLC0414 - of a command line as well
from perdure.cli.help import Page
from perdure.errors import InvalidRequest


class Command(Page, TyperCommand):
    """A command without one-letter options: a word that begins with a single hyphen is text."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        if ctx.resilient_parsing:  # a line that is not finished, for a shell to complete
            return super().parse_args(ctx, args)
        return super().parse_args(ctx, arranged(args, self.params))


def arranged(args: Sequence[str], params: Sequence[Any]) -> list[str]:
    """Return the arguments with the options first and the words behind `--`, each in order.

    Raises:
        InvalidRequest: an option that takes one value is given twice, so that one would be lost, or
            there are more words than the command takes, or an option lacks its value.
    """
    known = {name: param for param in params for name in (*param.opts, *param.secondary_opts)}
    options: list[str] = []
    words: list[str] = []
    seen: set[str] = set()
    unknown = False
    rest = iter(args)
    for arg in rest:
        if arg == "--":
            words += rest
        elif arg.startswith("--") or arg in HELP:
            options.append(arg)
            name, equals, _ = arg.partition("=")
            param = known.get(name)
            if param is None or param.is_flag:
                unknown |= param is None
                continue
            if param.name in seen and not param.multiple:
                raise InvalidRequest(f"{name} is given twice; give it once", field=param.name)
            seen.add(param.name)
            if not equals:
                options.append(_value_of(name, param, next(rest, None)))
        else:
            words.append(arg)
    if not unknown:  # else the unknown option is the fault, and its value looks like a word
        _check_count(words, params)
    return [*options, "--", *words] if words else options


def check_leading(args: Sequence[str], params: Sequence[Any]) -> None:
    """Refuse options before the command that lack their value or are given twice.

    Raises:
        InvalidRequest: as `arranged`.
    """
    leading = []
    known = {name: param for param in params for name in param.opts}
    rest = iter(args)
    for arg in rest:
        if arg == "--" or not arg.startswith("--"):
            break
        leading.append(arg)
        param = known.get(arg)
        if param is not None and not param.is_flag:
            leading += [value for value in [next(rest, None)] if value is not None]
    arranged(leading, params)


def _value_of(name: str, param: Any, value: str | None) -> str:
    # The next word is no value but an option, or the mark before the words, where it looks like one.
    if value is None or value.startswith("--") or value in HELP:
        raise InvalidRequest(
            f"{name} needs a value; one that begins with two hyphens is written {name}=VALUE",
            field=param.name,
        )
    return value


def _check_count(words: Sequence[str], params: Sequence[Any]) -> None:
    places = [param for param in params if param.param_type_name == "argument"]
    if len(words) > len(places) and all(param.nargs == 1 for param in places):
        raise InvalidRequest(
            f"too many words: {len(words)} are given and {len(places)} expected; put a text that has "
            "spaces in quotes"
        )


def wants_json(args: Sequence[str]) -> bool:
    """Whether `--json` is among the options, also where the rest of the line cannot be read."""
    before = args[: args.index("--")] if "--" in args else args
    return "--json" in before
