"""Tells whether a name that a page mentions is one of ours: a class, call, argument, value, command, option or route."""

from __future__ import annotations

import enum
import importlib.util
import inspect
import pkgutil
import re
import typing
from collections.abc import Iterator, Mapping
from functools import cache
from types import ModuleType
from typing import Any

import msgspec
from scripts.reference_pages import commands

import perdure
from perdure.contract.naming import camel_case
from perdure.contract.operations import OPERATIONS
from perdure.contract.schema import openapi
from perdure.errors import BY_CODE
from perdure.memory.config import MemoryConfig
from perdure.model.event import EVENT_TYPES
from perdure.model.inputs import RecallOptions
from perdure.repository_errors import BY_KIND
from source_tree import ROOT

PACKAGES = (
    *(
        "client",
        "conversation",
        "embedders",
        "evaluation",
        "extraction",
        "policies",
        "repository",
        "sessions",
        "vectors",
    ),
    *(
        "audit",
        "errors",
        "repository_errors",
        "log.protocol",
        "testing.log_suite",
        "documents.documents",
        "contract.naming",
        "server.settings",
    ),
)
TYPES = ("event", "fact", "hit", "model", "node", "node_change", "conversation", "trace", "replies", "inputs")
WORDS = re.compile(r"^[\w.]+(?:\((?P<arguments>[^()]*)\))?$")
ROUTE = re.compile(r"^(GET|POST|PUT|DELETE) (/\S+)$")


def exists(told: str) -> bool:
    """Return whether this is one of our names: `Memory.recall(as_of=)`, `"created"`, `perdure import`, a route, a file."""
    if told.startswith('"'):
        return told.strip('"') in values()
    if told.startswith(("--", "perdure ")):
        return _of_the_command_line(told.split())
    if route := ROUTE.match(told):
        return route[1].lower() in openapi()["paths"].get(route[2], {})
    if told.startswith("python -m "):
        return (ROOT / told.split()[2].replace(".", "/")).with_suffix(".py").is_file()
    if "/" in told:
        return (ROOT / told).exists()
    words = WORDS.match(told)
    if words is None:
        return False
    path = told.partition("(")[0]
    return any(_takes(one, words["arguments"] or "") for one in _found(path))


@cache
def values() -> frozenset[str]:
    """Return every text that stands for something: of enumerations, literals, policies, events, operations, errors."""
    told: set[str] = {*EVENT_TYPES, *OPERATIONS, *BY_CODE, *BY_KIND}
    for choice in MemoryConfig.CHOICES.values():
        told |= set(vars(choice)["_kinds"])
    for module in _walked():
        for one in vars(module).values():
            if isinstance(one, type) and issubclass(one, enum.Enum):
                told |= {member.value for member in one}
            if typing.get_origin(one) is typing.Literal:
                told |= set(typing.get_args(one))
            if isinstance(one, str):
                told.add(one)
            if isinstance(one, type) and issubclass(one, msgspec.Struct):
                told |= {camel_case(name) for name in one.__struct_fields__}
    return frozenset(one for one in told if isinstance(one, str))


def _walked() -> Iterator[ModuleType]:
    for package in ("model", "policies", "memory", "contract", "vectors", "conversation"):
        home = importlib.import_module(f"perdure.{package}")
        for found in pkgutil.walk_packages(home.__path__, f"{home.__name__}."):
            yield importlib.import_module(found.name)


@cache
def _heads() -> Mapping[str, tuple[Any, ...]]:
    found: dict[str, list[Any]] = {"perdure": [perdure]}
    modules = [perdure, *(importlib.import_module(f"perdure.{name}") for name in PACKAGES)]
    modules += [importlib.import_module(f"perdure.model.{name}") for name in TYPES if name != "model"]
    for module in modules:
        for name in getattr(module, "__all__", None) or [name for name in vars(module) if name[0] != "_"]:
            found.setdefault(name, []).append(getattr(module, name))
    return {name: tuple(ones) for name, ones in found.items()}


def _found(path: str) -> Iterator[Any]:
    """Yield all that a dotted path leads to."""
    first, *others = path.split(".")
    for one in _heads().get(first, ()):
        reached = one
        for place, name in enumerate(others, 1):
            reached = _member(reached, name, last=place == len(others))
        if reached is not None:
            yield reached


def _member(of: Any, name: str, *, last: bool) -> Any:
    """Return what a name means within a class or module, None if nothing; a field without a value stands for any object."""
    if isinstance(of, ModuleType) and not hasattr(of, name):
        within = f"{of.__name__}.{name}"
        return importlib.import_module(within) if importlib.util.find_spec(within) else None
    return getattr(of, name, object if last and name in _fields(of) else None)


def _fields(of: Any) -> set[str]:
    """Return what the objects of a class have, told by annotations or, as with errors, by assignment when they are made."""
    made = inspect.getsource(of.__init__) if isinstance(of, type) and issubclass(of, Exception) else ""
    return {*getattr(of, "__annotations__", ()), *re.findall(r"self\.(\w+)(?=[^=\n]*=)", made)}


def _takes(one: Any, arguments: str) -> bool:
    names = [part.partition("=")[0].strip() for part in arguments.split(",") if part.strip()]
    if not names:
        return True
    parameters = dict(inspect.signature(one).parameters)
    if "options" in parameters and parameters["options"].kind is inspect.Parameter.VAR_KEYWORD:
        parameters |= dict.fromkeys(RecallOptions.__annotations__)
    return all(name in parameters for name in names)


@cache
def _commands() -> Mapping[str, frozenset[str]]:
    return {
        name: frozenset(word for one in told.params for word in commands.spellings(one))
        for name, told in commands.walked()
    }


def _of_the_command_line(words: list[str]) -> bool:
    options = {word for word in words if word.startswith("--")}
    if words[0] != "perdure":
        return any(options <= told for told in _commands().values())
    plain = [word for word in words[1:] if word[0] != "-" and word.islower()]
    name = next((name for n in (2, 1) if (name := " ".join(plain[:n])) in _commands()), None)
    return name is not None and options <= _commands()[name]
