"""From a scenario's file to its values; whatever is not understood is refused by file, line and field."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, get_args, get_type_hints

from perdure.base.canonical import checked_text, strict_json
from perdure.base.ids import checked_id
from perdure.base.instants import find_millis
from perdure.base.text import counted
from perdure.contract.naming import camel_case
from perdure.errors import InvalidRequest, PerdureError
from perdure.evaluation.scenario import Case, Entry, Move, Operation, Scenario, Step
from perdure.importers.entries import Place
from perdure.importers.jsonlines import BOM, fact_of
from perdure.lexical.profile import get_profile, is_blank
from perdure.memory.config import MemoryConfig
from perdure.memory.telling import telling_of
from perdure.model.inputs import NewFact
from perdure.store import Memory

FILE_BYTES_MAX = 256 * 1024 * 1024  # as much as an import decodes whole
SHOWN_MAX = 32  # characters of an unknown field's name
OPERATIONS: tuple[Operation, ...] = get_args(Operation)
CASE_FIELDS = ("query", "name", "category", "options", "expect", "ordered", "absent")
MOMENTS = ("as_of", "known_at")
_CAMEL = re.compile("[a-z]+(?:[A-Z][a-z]+)+")


def read_file(path: str | Path) -> Scenario:
    """Return the scenario of a file; see `read_scenario`. Raises InvalidRequest also when the file cannot be read."""
    if not isinstance(path, str | Path):
        raise InvalidRequest(f"path must be the path of a file, got {type(path).__name__}", field="path")
    path = Path(path)
    with readable(path.name), path.open("rb") as stream:
        data = stream.read(FILE_BYTES_MAX + 1)
    return read_scenario(data, path.name)


@contextmanager
def readable(name: str) -> Iterator[None]:
    """Raise InvalidRequest, naming the scenario, where reading its file inside fails."""
    try:
        yield
    except (OSError, ValueError) as error:  # a path with a null character is a ValueError
        reason = error.strerror if isinstance(error, OSError) else "the name is no path"
        raise InvalidRequest(
            f"{name} cannot be read: {reason}; name the file of a scenario", field="path"
        ) from error


def read_scenario(data: bytes, name: str) -> Scenario:
    """Return the scenario that JSON Lines, or a JSON array of the same objects, describe.

    Args:
        name: of the file, for places and reports.

    Raises:
        InvalidRequest: an entry is malformed. The message begins with the file and the line (or, in an array, the
            index, from 0), and names the field; details hold them as `file`, `line` and `entry`.
    """
    if len(data) > FILE_BYTES_MAX:
        raise InvalidRequest(f"{name} is longer than {FILE_BYTES_MAX} bytes; split the scenario")
    data = data.removeprefix(BOM)
    pieces = _items if data.lstrip().startswith(b"[") else _lines
    entries = []
    for place, decode in pieces(data, name):
        with placed(place):
            told = decode()
        with placed(place, spelling_of(told)):
            entries.append(_entry(told, place))
    return Scenario(name, tuple(entries))


@contextmanager
def placed(place: Place, spelling: Mapping[str, str] | None = None) -> Iterator[None]:
    """Put the place before an error that is raised inside, as `put_place` does."""
    try:
        yield
    except PerdureError as error:
        put_place(error, place, spelling or {})
        raise


def put_place(error: PerdureError, place: Place, spelling: Mapping[str, str]) -> None:
    """Put the place before an error's message and into its details, and spell names as they are written there."""
    reword(error, f"{place}: {respelled(error.message, spelling)}")
    error.details |= {"file": place.file, "line": place.line, "entry": place.entry}


def reword(error: PerdureError, message: str) -> None:
    """Give an error another message."""
    error.message = message
    error.args = (message,)


def spelling_of(told: Any) -> dict[str, str]:
    """Return the names of an entry's objects that are written in camelCase, by their Python names."""
    held = told.values() if isinstance(told, Mapping) else ()
    objects = [one for value in (told, *held) for one in (value if isinstance(value, list) else [value])]
    keys = [key for one in objects if isinstance(one, Mapping) for key in one if isinstance(key, str)]
    return {python: key for key in keys if _CAMEL.fullmatch(key) and (python := _python_name(key)) != key}


def respelled(message: str, spelling: Mapping[str, str]) -> str:
    """Return the message with Python's names replaced by those that are written."""
    for python, written in spelling.items():
        message = re.sub(rf"\b{python}\b", written, message)
    return message


def _python_name(key: str) -> str:
    return re.sub("[A-Z]", lambda letter: "_" + letter[0].lower(), key)


def by_name(told: Any, names: Mapping[str, str], what: str) -> dict[str, Any]:
    """Return an object's values under their Python names.

    Args:
        names: every accepted spelling, and the name that it stands for.
        what: the object, for messages.

    Raises:
        InvalidRequest: no object, an unknown field, or one that is given in both spellings.
    """
    if not isinstance(told, Mapping):
        raise InvalidRequest(f"{what} must be an object, got {_kind(told)}", field=what)
    found: dict[str, Any] = {}
    for key, value in told.items():
        if key not in names:
            known = ", ".join(dict.fromkeys(camel_case(name) for name in names.values()))
            raise InvalidRequest(f"unknown field {key[:SHOWN_MAX]!r} of {what}; it has {known}", field=what)
        if names[key] in found:
            raise InvalidRequest(f"{what}.{names[key]} is given in both spellings; keep one", field=what)
        found[names[key]] = value
    return found


def recall_options(told: Any, what: str = "options") -> dict[str, Any]:
    """Return options of `Memory.recall` by their Python names, and times as milliseconds.

    Raises:
        InvalidRequest: an option that recall does not have, or a malformed time. The other values are checked
            when they are used.
    """
    options = by_name(told, _spellings(Memory.recall, without=("self", "query", "explain")), what)
    for name in MOMENTS:
        if name in options:
            options[name] = find_millis(options[name], field=f"{what}.{name}")
    return options


def _lines(data: bytes, name: str) -> Iterator[tuple[Place, Callable[[], Any]]]:
    for number, line in enumerate(data.split(b"\n"), 1):
        if line.strip():
            yield Place(name, number), partial(_decoded, line, "the line")


def _items(data: bytes, name: str) -> Iterator[tuple[Place, Callable[[], Any]]]:
    with placed(Place(name)):
        items = _decoded(data, "the file")
    for index, item in enumerate(items):
        yield Place(name, entry=f"[{index}]"), partial(_same, item)


def _same(value: Any) -> Any:
    return value


def _decoded(data: bytes, what: str) -> Any:
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise InvalidRequest(f"{what} is not UTF-8 at byte {error.start + 1}") from error
    return strict_json(text, field=what)


def _entry(told: Any, place: Place) -> Entry:
    if not isinstance(told, Mapping):
        raise InvalidRequest(f"an entry must be an object, got {_kind(told)}")
    rest = dict(told)
    clock = find_millis(rest.pop("clock", None), field="clock")
    if rest.pop("note", "") is None or not isinstance(told.get("note", ""), str):
        raise InvalidRequest("note must be text", field="note")
    if "query" in rest:
        return _case(rest, clock, place)
    named = [operation for operation in OPERATIONS if operation in rest]
    unknown = [key for key in rest if key not in OPERATIONS]
    if unknown:
        raise InvalidRequest(
            f"unknown field {unknown[0][:SHOWN_MAX]!r}; an entry has clock, note, and either query with "
            f"{', '.join(CASE_FIELDS[1:])} or one of {', '.join(OPERATIONS)}"
        )
    if len(named) > 1:
        raise InvalidRequest(f"{named[0]} and {named[1]} in one entry; give each an entry of its own")
    if not named:
        if clock is None:
            raise InvalidRequest(
                "the entry says nothing: give query, clock, or an operation such as remember"
            )
        return Move(place, clock)
    if named[0] == "remember":
        facts = tuple(_facts(rest["remember"]))
        return Step(place, "remember", clock, facts=facts, spelling=spelling_of(told))
    arguments = _arguments(named[0], rest[named[0]])
    return Step(place, named[0], clock, arguments=arguments, spelling=spelling_of(told))


def _facts(told: Any) -> Iterator[NewFact]:
    if isinstance(told, list) and not told:
        raise InvalidRequest("remember is an empty array; name at least one fact", field="remember")
    profile = get_profile(MemoryConfig().profile)
    for fact in told if isinstance(told, list) else [told]:
        new = NewFact(text=fact) if isinstance(fact, str) else fact_of(fact)
        telling_of(new, profile, None)  # refuses what no memory would take, before anything is run
        yield new


def _arguments(operation: Operation, told: Any) -> dict[str, Any]:
    arguments = by_name(told, _spellings(getattr(Memory, operation), without=("self",)), operation)
    required = {"correct": "new_text", "forget": None, "restore": "ids"}.get(operation, "id")
    if required is not None and required not in arguments:
        raise InvalidRequest(f"{operation}.{camel_case(required)} is missing", field=operation)
    return arguments


def _case(told: dict[str, Any], clock: int | None, place: Place) -> Case:
    fields = by_name(told, {name: name for name in CASE_FIELDS}, "the case")
    query = checked_text(fields["query"], field="query")
    options = recall_options(fields.get("options", {}))
    if is_blank(query) and options.get("embedding") is None:
        raise InvalidRequest("query is blank", field="query")
    expect, ordered = fields.get("expect"), fields.get("ordered", False)
    if not isinstance(ordered, bool):
        raise InvalidRequest(f"ordered must be true or false, got {_kind(ordered)}", field="ordered")
    wanted = None if expect is None else _ids(expect, "expect")
    absent = _ids(fields.get("absent", []), "absent")
    if wanted is None and not absent:
        raise InvalidRequest(
            "the case expects nothing: give expect (an empty array for no results) or absent"
        )
    both = sorted(set(wanted or ()) & set(absent))
    if both:
        raise InvalidRequest(
            f"of the ids in expect {counted(len(both), 'is', 'are')} in absent too; keep one", field="absent"
        )
    return Case(
        place,
        query,
        clock,
        options,
        wanted,
        ordered,
        absent,
        _name(fields, "category"),
        _name(fields, "name"),
        spelling_of(told),
    )


def _ids(told: Any, field: str) -> tuple[str, ...]:
    if not isinstance(told, list):
        raise InvalidRequest(f"{field} must be an array of ids, got {_kind(told)}", field=field)
    ids = tuple(checked_id(id_, field=field) for id_ in told)
    if len(set(ids)) < len(ids):
        raise InvalidRequest(f"{field} names an id twice; name it once", field=field)
    return ids


def _name(fields: Mapping[str, Any], field: str) -> str | None:
    told = fields.get(field)
    if told is None:
        return None
    name = checked_text(told, field=field)
    if is_blank(name):
        raise InvalidRequest(f"{field} is blank; leave it out or give it a name", field=field)
    return name


def _spellings(call: Callable[..., Any], *, without: tuple[str, ...]) -> dict[str, str]:
    names = [name for name in _parameters(call) if name not in without]
    return {spelling: name for name in names for spelling in (name, camel_case(name))}


def _parameters(call: Callable[..., Any]) -> Iterator[str]:
    """Yield the names of a call's parameters, those of an unpacked typed dictionary among them."""
    for name, parameter in inspect.signature(call).parameters.items():
        if parameter.kind is inspect.Parameter.VAR_KEYWORD:
            for told in get_args(get_type_hints(call)[name]):
                yield from told.__annotations__
        else:
            yield name


def _kind(value: Any) -> str:
    if value is None:
        return "null"
    names = {bool: "a boolean", int: "a number", float: "a number", str: "text", list: "an array"}
    return names.get(type(value), "an object")
