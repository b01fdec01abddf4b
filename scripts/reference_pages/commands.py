"""Writes the command line: every command with its usage, words and options."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import Any

from perdure.cli.main import command_line
from perdure.cli.session import Common

from .book import Block, Book
from .markdown import anchor, code, table

KEPT = "\b"  # marks a paragraph whose lines are not to be filled


def shared(book: Book, block: Block) -> list[str]:
    """Write the options that every command takes."""
    return table(("option", "meaning"), _options([p for p in _root().params if p.name in _shared_names()]))


def own_of_root(book: Book, block: Block) -> list[str]:
    """Write the options that stand by themselves, without a command."""
    return table(
        ("option", "meaning"), _options([p for p in _root().params if p.name not in _shared_names()])
    )


def overview(book: Book, block: Block) -> list[str]:
    """Write a table of all commands, each with the first sentence of its help."""
    rows = [(f"[`{name}`](#{anchor(f'`perdure {name}`')})", _summary(told)) for name, told in walked()]
    return table(("command", "what it does"), rows)


def commands(book: Book, block: Block) -> list[str]:
    """Write an entry for each of the commands, `*` being all that no other block names; of a group for all its own."""
    known = dict(walked())
    firsts = list(dict.fromkeys(name.split()[0] for name in known))
    wanted = book.rest_of(block, firsts)
    lines: list[str] = []
    for first in wanted:
        for name, told in known.items():
            if name.split()[0] == first:
                lines += ["", f"### `perdure {name}`", "", *_command(name, told)]
    return lines[1:]


def walked() -> Iterator[tuple[str, Any]]:
    """Yield every command that is shown, with its words: `documents put`."""
    yield from _walked("", _root())


def spellings(parameter: Any) -> list[str]:
    """Return how an option is written: its names, and those that switch it off."""
    return [*parameter.opts, *parameter.secondary_opts]


def is_option(parameter: Any) -> bool:
    """Whether a parameter is an option that help shows, and no word."""
    return parameter.param_type_name == "option" and not getattr(parameter, "hidden", False)


def own_options(command: Any) -> list[Any]:
    """Return a command's options without those that every command takes, and without help."""
    shared_names = _shared_names()
    return [p for p in command.params if is_option(p) and p.name not in {*shared_names, "help"}]


def _shared_names() -> list[str]:
    return list(Common.__dataclass_fields__)


@cache
def _root() -> Any:
    return command_line()


def _walked(prefix: str, command: Any) -> Iterator[tuple[str, Any]]:
    for name, told in getattr(command, "commands", {}).items():
        if told.hidden:
            continue
        if hasattr(told, "commands"):
            yield from _walked(f"{prefix}{name} ", told)
        else:
            yield f"{prefix}{name}", told


def _command(name: str, command: Any) -> list[str]:
    words = [parameter for parameter in command.params if parameter.param_type_name == "argument"]
    usage = " ".join(["perdure", name, *map(_word, words), "[OPTIONS]"])
    lines = [*code(usage, "text"), "", *_help(command.help)]
    told = [(f"`{_metavar(word)}`", word.help or "") for word in words if word.help]
    if told:
        lines += ["", *table(("word", "meaning"), told)]
    options = list(_options(own_options(command)))
    if options:
        lines += ["", *table(("option", "meaning"), options)]
    return lines


def _word(parameter: Any) -> str:
    several = parameter.nargs != 1 and not _metavar(parameter).endswith(("…", "..."))
    shown = f"{_metavar(parameter)}{'...' if several else ''}"
    return shown if parameter.required or shown.startswith("[") else f"[{shown}]"


def _metavar(parameter: Any) -> str:
    return str(parameter.metavar or parameter.name.strip("_").replace("_", "-").upper())


def _options(parameters: list[Any]) -> Iterator[tuple[str, str]]:
    for parameter in parameters:
        if not is_option(parameter):
            continue
        shown = ", ".join(f"`{name}`" for name in spellings(parameter))
        if not parameter.is_flag:
            shown += f" `{_metavar(parameter)}`"
        yield shown, _escaped(parameter.help or "") + _default(parameter)


def _default(parameter: Any) -> str:
    value = parameter.default
    if parameter.is_flag or value is None or callable(value) or value in ((), [], ""):
        return ""
    return f" Default: `{value}`."


def _summary(command: Any) -> str:
    return _escaped(" ".join((command.help or "").split("\n\n")[0].split()))


def _help(text: str | None) -> list[str]:
    """Return help as Markdown: its paragraphs, and its examples as code."""
    lines: list[str] = []
    for paragraph in (text or "").split("\n\n"):
        told = paragraph.strip("\n").split("\n")
        told = told[1:] if told[0] == KEPT else told
        if lines:
            lines.append("")
        examples = [line[2:] for line in told[1:] if line.startswith("  ")]
        if examples:
            lines += [*_escaped(told[0]).split("\n"), "", *code("\n".join(examples), "sh")]
        else:
            lines += _escaped("\n".join(told)).split("\n")
    return lines


def _escaped(text: str) -> str:
    """Return help as Markdown: options and JSON stand in backquotes."""
    text = text.replace("&", "&amp;").replace("<", "&lt;").replace("*", "\\*")
    return " ".join(_quoted(word) if " " not in word else word for word in text.split(" "))


def _quoted(word: str) -> str:
    """Return a word in backquotes where it is an option or JSON; what is quoted already stays."""
    if "`" in word or "\n" in word:
        return "\n".join(_quoted(part) for part in word.split("\n")) if "\n" in word else word
    core = word.rstrip(".,;:)")
    head = core.lstrip("(")
    if not head.startswith(("--", "{", "PERDURE_")) or len(head) < 3:
        return word
    start = word[: len(core) - len(head)]
    return f"{start}`{head}`{word[len(core) :]}"
