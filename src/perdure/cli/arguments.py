"""The shape of the command line: words before options, repeats refused, a leading hyphen is text."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from typer.core import TyperCommand

from perdure.cli.help import HELP as HELP  # noqa: PLC0414 - of a command line as well
from perdure.cli.help import Page
from perdure.cli.wording import name_as_typed
from perdure.errors import InvalidRequest, PerdureError

# What stands for a value that names something.
NAMING = frozenset({"NAME", "DIR", "FILE", "FILE...", "OUT", "PLACE"})
# A space may have no name; of the others it is said where they are judged, and none of them has a default.
MAY_BE_EMPTY = frozenset(
    [
        "principal",
        "scope",
        "into_principal",
        "into_scope",
        "default_principal",
        "allow_host",
        "subject",
        "entity",
    ]
)


class Command(Page, TyperCommand):
    """A command without one-letter options: a word that begins with a single hyphen is text."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        if ctx.resilient_parsing:  # a line that is not finished, for a shell to complete
            return super().parse_args(ctx, args)
        return super().parse_args(ctx, arranged(args, self.params))

    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except PerdureError as error:
            _name_the_store(error)
            if not (ctx.params.get("as_json") or getattr(ctx.obj, "as_json", False)):
                name_as_typed(error, self.params)
            raise


def _name_the_store(error: PerdureError) -> None:
    # What the library calls the path of a store is told by --store here, unless it is of an option of its own.
    if error.field == "path" and error.message.startswith("path "):
        error.field, error.message = "store", f"store{error.message.removeprefix('path')}"
        error.args = (error.message,)


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
            if options[-1] in ("", f"{name}="):
                _check_empty(name, param)
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


def _check_empty(name: str, param: Any) -> None:
    # Whoever tells a name means it: without this a variable that is not set would mean the default.
    if getattr(param, "metavar", None) in NAMING and param.name not in MAY_BE_EMPTY:
        advice = "" if param.required else ", or leave the option out"
        raise InvalidRequest(f"{name} is empty; name one{advice}", field=param.name.rstrip("_"))


def _check_count(words: Sequence[str], params: Sequence[Any]) -> None:
    places = [param for param in params if param.param_type_name == "argument"]
    if len(words) > len(places) and all(param.nargs == 1 for param in places):
        names = {name for param in params for name in param.opts}
        short = next((w for w in words if len(w) > 1 and w[0] == "-" and f"-{w}" in names), None)
        if short is not None:
            raise InvalidRequest(
                f"there is no option {short}; give -{short}", field=short[1:].replace("-", "_")
            )
        if not places:
            raise InvalidRequest(
                f"too many words: {len(words)} are given and none is expected; what the command is about is told by options, "
                "such as --tenant NAME"
            )
        raise InvalidRequest(
            f"too many words: {len(words)} are given and {len(places)} expected; put a text that has "
            "spaces in quotes"
        )


def wants_json(args: Sequence[str]) -> bool:
    """Whether `--json` is among the options, also where the rest of the line cannot be read."""
    before = args[: args.index("--")] if "--" in args else args
    return "--json" in before
