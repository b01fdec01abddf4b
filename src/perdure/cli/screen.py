"""Printing: JSON for programs; for people, lines that stored text cannot break."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import pairwise
from typing import TYPE_CHECKING, Any, TextIO

import typer

from perdure.base.text import escaped_in_json
from perdure.cli.failures import OutputFailed
from perdure.cli.streams import width

if TYPE_CHECKING:
    from rich.console import Console

# Everything that moves a cursor, changes colours or turns the direction of what follows; and what no terminal shows,
# or each in a width of its own, without that any script needs it: soft hyphens, tags, marks of notes.
_CONTROL = re.compile(
    "[\x00-\x1f\x7f-\x9f\xad\u061c\u180e\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb\U000e0000-\U000e007f]"
)
# Letters that are written from right to left.
_RIGHT_TO_LEFT = re.compile(
    "[\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufefe\U00010800-\U00010fff\U0001e800-\U0001efff]"
)
_LEFT_TO_RIGHT_MARK = "\u200e"
HEIGHT = 25  # nothing is fitted to it
WIDTH_ELSEWHERE = 10_000
WIDTH_MIN = 20  # for wrapped text; a narrower terminal wraps by itself

STYLES = {
    "current": "green",
    "superseded": "yellow",
    "expired": "yellow",
    "not-yet-valid": "cyan",
    "hidden": "red",
}


def shown(text: str) -> str:
    """Return the text with control characters made visible: a line feed is ␊, others are like \\x9b."""
    return _CONTROL.sub(_visible, text)


def quoted(text: str) -> str:
    """Return the text in quotes. What could look like the sentence around it is escaped: quotes, other spaces, and what is
    not seen."""
    import json  # noqa: PLC0415 - help must not wait for it
    from unicodedata import category  # noqa: PLC0415 - likewise

    plain = (one if one > "~" and category(one)[0] in "LMNS" else json.dumps(one)[1:-1] for one in text)
    return f'"{"".join(plain)}"'


def _visible(match: re.Match[str]) -> str:
    code = ord(match[0])
    if code < 0x20:
        return chr(0x2400 + code)
    if code < 0x100:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def _in_order(pieces: list[str]) -> list[str]:
    """Return the pieces of a line with invisible marks that keep them in their order from left to right.

    Else a terminal that knows directions shows two pieces in Hebrew, say, in each other's place.
    """
    if not any(_RIGHT_TO_LEFT.search(piece) for piece in pieces[:-1]):
        return pieces
    marked = [piece + _LEFT_TO_RIGHT_MARK if _RIGHT_TO_LEFT.search(piece) else piece for piece in pieces[:-1]]
    return [_LEFT_TO_RIGHT_MARK + marked[0], *marked[1:], pieces[-1]]


@contextmanager
def _writing() -> Iterator[None]:
    try:
        yield
    except BrokenPipeError:  # the reader has seen enough, which is no failure to tell of
        raise
    except OSError as error:
        raise OutputFailed(
            f"the output cannot be written: {error.strerror or type(error).__name__}"
        ) from error


def put(data: bytes | str) -> None:
    """Write to standard output, all of it before this returns.

    Raises:
        OutputFailed: it cannot be written. BrokenPipeError: its reader is gone.
    """
    with _writing():
        typer.echo(data, nl=False)


def print_json(value: Any) -> None:
    """Print a value as one line of JSON in UTF-8, its keys in the order given."""
    import json  # noqa: PLC0415

    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    text = escaped_in_json(text)
    # Half a surrogate pair, as bytes of the command line that are no text become one, is escaped.
    put(text.encode(errors="backslashreplace") + b"\n")


def compact(value: Any) -> str:
    """Return a value as JSON with sorted keys."""
    from perdure.base.canonical import canonical_json  # noqa: PLC0415 - help must not wait for it

    return canonical_json(value).decode()


def console(file: TextIO) -> Console:
    """Return what prints to the stream: neither markup nor colours are read out of texts."""
    from rich.console import Console  # noqa: PLC0415 - programs that read JSON need not wait for it

    # Both sizes: with one of them missing, COLUMNS=0 is taken at its word and nothing is printed.
    return Console(file=file, width=width(), height=HEIGHT, highlight=False, markup=False, emoji=False)


class Screen:
    """Standard output for people: colours and wrapping on a terminal, plain whole lines elsewhere."""

    def __init__(self, where: Console | None = None) -> None:
        self.console = where or console(sys.stdout)
        self.utf = self.console.encoding.startswith("utf")
        self.block, self.times = ("█", "×") if self.utf else ("#", "x")

    @property
    def room(self) -> int:
        """Columns of a line; off a terminal as many as one likes."""
        return self.console.width if self.console.is_terminal else WIDTH_ELSEWHERE

    def line(self, text: str = "", *, style: str = "") -> None:
        self._print([(text, style)])

    def heading(self, text: str) -> None:
        self._print([(text, "bold")])

    def fields(self, pairs: Iterable[tuple[str, str]]) -> None:
        """Print a name and a value per line; the value, which may be long or of any script, comes last."""
        told = list(pairs)
        width = max((len(name) for name, _ in told), default=0)
        for name, value in told:
            self._row([(name.ljust(width), "dim")], value, "")

    def table(self, headers: Sequence[str], rows: Sequence[Sequence[str]], notes: Sequence[str] = ()) -> None:
        """Print rows under headers; the last column is the text. A note stands under its row.

        The text comes last so that neither its length nor its direction moves anything else.
        """
        from rich.cells import cell_len  # noqa: PLC0415

        cleaned = [[shown(cell) for cell in row] for row in rows]
        widths = [
            max([cell_len(headers[i]), *(cell_len(row[i]) for row in cleaned)])
            for i in range(len(headers) - 1)
        ]

        def padded(row: Sequence[str]) -> list[str]:
            return [cell + " " * (width - cell_len(cell)) for cell, width in zip(row, widths, strict=False)]

        self._print([("  ".join([*padded(headers), headers[-1]]), "dim")])
        for index, row in enumerate(cleaned):
            cells = [(cell, STYLES.get(cell.strip(), "")) for cell in padded(row)]
            self._row(cells, row[-1], "")
            if index < len(notes) and notes[index]:
                self._row([(" " * cell_len(cell), "") for cell, _ in cells], notes[index], "dim")

    def marked(self, indent: str, text: str, marks: Sequence[tuple[int, int]]) -> None:
        """Print a text whose marked places stand out: by style, or in brackets where there are no styles."""
        from rich.text import Text  # noqa: PLC0415

        plain = not self.console.is_terminal or self.console.color_system is None
        ends = [0, *(place for mark in marks for place in mark), len(text)]
        pieces = [shown(text[start:end]) for start, end in pairwise(ends)]
        told = Text()
        for place, piece in enumerate(pieces):
            inside = bool(place % 2)
            told.append(f"[{piece}]" if inside and plain else piece, "bold underline" if inside else "")
        lines = [told]
        if self.console.is_terminal:
            lines = [*told.wrap(self.console, max(WIDTH_MIN, self.console.width - len(indent)))]
        for line in lines:
            line.rstrip()
            with _writing():
                self.console.print(Text.assemble(indent, line), soft_wrap=True)

    def _row(self, cells: Sequence[tuple[str, str]], text: str, style: str) -> None:
        from rich.cells import cell_len  # noqa: PLC0415
        from rich.text import Text  # noqa: PLC0415

        before = [(part, kind) for cell, kind in cells for part, kind in ((cell, kind), ("  ", ""))]
        indent = sum(cell_len(part) for part, _ in before)
        lines = [shown(text)]
        if self.console.is_terminal:
            room = max(WIDTH_MIN, self.console.width - indent)
            lines = [line.plain.rstrip() for line in Text(lines[0]).wrap(self.console, room)] or [""]
        self._print([*before, (lines[0], style)])
        for line in lines[1:]:
            self._print([(" " * indent, ""), (line, style)])

    def _print(self, parts: Iterable[tuple[str, str]]) -> None:
        from rich.text import Text  # noqa: PLC0415

        told = list(parts)
        pieces = [shown(part) for part, _ in told]
        if self.console.is_terminal and self.utf:
            pieces = _in_order(pieces)
        text = Text.assemble(*zip(pieces, (style for _, style in told), strict=True))
        text.rstrip()
        with _writing():
            self.console.print(text, soft_wrap=True)
