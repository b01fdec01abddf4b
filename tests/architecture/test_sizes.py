"""Modules, functions and parameter lists stay small; each exception carries its reason."""

from __future__ import annotations

import statistics

from source_tree import Function, functions, line_count, modules, name_of

MODULE_LINES_MAX = 500
MODULE_LINES_MEDIAN = 200
FUNCTION_LINES_MAX = 70
FUNCTION_LINES_MEDIAN = 20
PARAMETERS_MAX = 6

# Modules whose keyword-only parameters are what a user types: one flat call reads better there than an
# options object that is built for it.
FACADES = (
    "asynchronous.py",
    "cli/",
    "client/asynchronous/",
    "client/synchronous/",
    "memory/facade.py",
    "documents/documents.py",
    "repository/repository.py",
    "store.py",
    "verifying.py",
    "copying.py",
)

LONG_MODULES: dict[str, str] = {
    "memory/facade.py": "every call of Memory with its docstring, and hardly anything else; it is read by name",
    "store.py": "every call of Store with its docstring, and hardly anything else; it is read by name",
    "testing/log_suite.py": "one class of sentences that an author of a backend inherits whole",
}
LONG_FUNCTIONS: dict[str, str] = {
    "store.py:Store.open": "one flat call with what each argument means; its statements are twenty lines",
}
MANY_PARAMETERS: dict[str, str] = {}


def _length(function: Function, *, command: bool = False) -> int:
    """Return its lines; of a command without its signature, which has a few lines for each option."""
    assert function.end_lineno is not None
    first = function.body[0].lineno if command else function.lineno
    return function.end_lineno - first + 1


def _parameters(function: Function, *, facade: bool) -> int:
    arguments = function.args
    positional = [argument.arg for argument in [*arguments.posonlyargs, *arguments.args]]
    if positional[:1] in (["self"], ["cls"]):
        positional = positional[1:]
    return len(positional) + (0 if facade else len(arguments.kwonlyargs))


def _sizes() -> dict[str, int]:
    return {
        f"{name_of(path)}:{name}": _length(function, command=name_of(path).startswith("cli/"))
        for path in modules()
        for name, function in functions(path)
    }


def _parameter_counts() -> dict[str, int]:
    return {
        f"{name_of(path)}:{name}": _parameters(function, facade=name_of(path).startswith(FACADES))
        for path in modules()
        for name, function in functions(path)
    }


def _over(sizes: dict[str, int], limit: int) -> dict[str, int]:
    return {name: size for name, size in sizes.items() if size > limit}


def test_no_module_is_longer_than_500_lines_without_a_reason():
    long = _over({name_of(path): line_count(path) for path in modules()}, MODULE_LINES_MAX)
    assert {name: size for name, size in long.items() if name not in LONG_MODULES} == {}
    assert set(LONG_MODULES) <= set(long), "an exception that is no longer needed: delete it"


def test_no_function_is_longer_than_70_lines_without_a_reason():
    long = _over(_sizes(), FUNCTION_LINES_MAX)
    assert {name: size for name, size in long.items() if name not in LONG_FUNCTIONS} == {}
    assert set(LONG_FUNCTIONS) <= set(long), "an exception that is no longer needed: delete it"


def test_no_function_takes_more_than_6_parameters_without_a_reason():
    many = _over(_parameter_counts(), PARAMETERS_MAX)
    assert {name: count for name, count in many.items() if name not in MANY_PARAMETERS} == {}
    assert set(MANY_PARAMETERS) <= set(many), "an exception that is no longer needed: delete it"


def test_half_of_all_modules_and_functions_are_short():
    assert statistics.median(line_count(path) for path in modules()) <= MODULE_LINES_MEDIAN
    assert statistics.median(_sizes().values()) <= FUNCTION_LINES_MEDIAN
