"""The file of turns that `conversation remember` takes: one JSON object a line."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from perdure.cli.streams import standard_input
from perdure.errors import Conflict, InvalidRequest, PerdureError

_TURN = re.compile(r"(?<![\w.])turns\[(\d+)\][\w.]*")
_TYPED = {"session_id": "SESSION", "version": "VERSION"}


class Turns(NamedTuple):
    """What a file holds, and the line of each turn, from 1."""

    told: list[Any]
    lines: list[int]

    @contextmanager
    def named(self, *, as_json: bool) -> Iterator[None]:
        """Let errors about a turn name its fields as the file does, and its line.

        Errors about the words of the command line name these, where people read them.
        """
        try:
            yield
        except (InvalidRequest, Conflict) as error:
            self._name(error, as_json=as_json)
            raise

    def _name(self, error: PerdureError, *, as_json: bool) -> None:
        from perdure.contract.naming import on_the_wire, outside_of_values  # noqa: PLC0415 - only for errors

        field = error.field or ""
        if field in _TYPED and not as_json:
            error.message = outside_of_values(error.message, lambda part: part.replace(field, _TYPED[field]))
        elif not error.in_wire_names:
            error.message, error.field = on_the_wire(error.message), on_the_wire(field) or None
            error.in_wire_names = True
        error.message = outside_of_values(error.message, lambda part: _TURN.sub(self._with_line, part))
        error.args = (error.message,)
        about = _TURN.match(field)
        if about is not None and int(about[1]) < len(self.lines):
            error.details["line"] = self.lines[int(about[1])]

    def _with_line(self, found: re.Match[str]) -> str:
        place = int(found[1])
        return f"{found[0]} (line {self.lines[place]})" if place < len(self.lines) else found[0]


def read_turns(file: str) -> Turns:
    """Return the turns of a file, of standard input for `-`; blank lines count as lines and hold none.

    Raises:
        InvalidRequest: it cannot be read, is no UTF-8, or a line is no JSON.
    """
    from perdure.base.canonical import strict_json  # noqa: PLC0415 - help must not wait for it

    try:
        data = standard_input().read() if file == "-" else Path(file).read_bytes()
        lines = data.decode("utf-8").split("\n")
    except OSError as error:
        raise InvalidRequest(f"FILE cannot be read: {error.strerror}", field="turns") from error
    except UnicodeDecodeError as error:
        raise InvalidRequest(
            f"the file of turns is no UTF-8 at byte {error.start + 1}", field="turns"
        ) from error
    turns = Turns([], [])
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            turns.told.append(strict_json(line))
        except InvalidRequest as error:
            raise InvalidRequest(
                f"line {number} of the file of turns: {error.message}", field="turns", line=number
            ) from error
        turns.lines.append(number)
    return turns
