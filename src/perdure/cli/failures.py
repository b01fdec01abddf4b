"""From exceptions to exit codes: 0 done, 1 not found, refused or failed, 2 a wrong command line or value."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import typer

from perdure.errors import InvalidRequest, PerdureError, QueryLimit

# Typer's own base of everything wrong with a command line; it moved between modules with the versions.
_LineError: type[Exception] = typer.BadParameter.__mro__[2]

_OPTION = re.compile(r"[a-z]+(?:_[a-z]+)+")

UNPURGED = (
    "what was to be erased is erased; only the store was not rewritten: run perdure purge when nothing is in the way, "
    "then check the certificate of this erasure"
)


class Failed(PerdureError):
    """Something outside the store went wrong: a file cannot be read or written, or a question went unanswered."""

    code = "failed"


class OutputFailed(Failed):
    """What the command answers cannot be written: a full disk, for example."""

    code = "failed"


def run(action: Callable[[], Any], *, as_json: bool) -> int:
    """Run a command and return its exit code; what it raises becomes one line on standard error.

    With `as_json` the error is also an object on standard output, so that there is always one to read.
    """
    try:
        code = action()
    except OutputFailed as error:
        return _report(error, as_json=False)
    except PerdureError as error:
        return _report(error, as_json=as_json)
    except typer.Abort:
        return _report(Failed("stopped; nothing was changed"), as_json=as_json)
    except _LineError as error:
        return _report(_usage_error(error), as_json=as_json)
    except OSError as error:
        return _report(Failed(_about_file(error)), as_json=as_json)
    return code if isinstance(code, int) else 0


def complain(message: str) -> None:
    """Print one line on standard error; where that cannot be written, there is nobody to tell."""
    from perdure.cli.screen import shown  # noqa: PLC0415 - help must not wait for it

    with suppress(OSError):
        print(f"perdure: {shown(message)}", file=sys.stderr)


def _report(error: PerdureError, *, as_json: bool) -> int:
    if error.details.get("kind") == "governed" and "node" in error.details:
        error.message = f"{error.message.partition(';')[0]}: {error.details['node']}; perdure revise, reject or forget-node changes it"
        error.args = (error.message,)
    if "certificate" in error.details:
        complain(UNPURGED)
    told = _object(error) if as_json else None
    complain(str(error) if told is None else told["error"]["message"])
    try:
        if told is not None:
            from perdure.cli.screen import print_json  # noqa: PLC0415

            print_json(told)
        elif sys.stdout is not None:
            sys.stdout.flush()
    except (OutputFailed, OSError):
        from perdure.cli.streams import discard_output  # noqa: PLC0415

        discard_output()
    return 2 if isinstance(error, InvalidRequest) and not isinstance(error, QueryLimit) else 1


def _object(error: PerdureError) -> dict[str, Any]:
    """Return the error as on every surface; the name of an option that only this one has is in camelCase too."""
    from perdure.contract.naming import camel_case, outside_of_values  # noqa: PLC0415 - only where it is printed
    from perdure.contract.wire import error_object  # noqa: PLC0415 - only where it is printed

    told = error_object(error)
    field = told["error"].get("field", "")
    if _OPTION.fullmatch(field):
        named, wired = re.compile(rf"(?<![\w.-]){field}(?!\w)"), camel_case(field)
        message = outside_of_values(told["error"]["message"], lambda part: named.sub(wired, part))
        told["error"] |= {"message": message, "field": wired}
    return told


def _usage_error(error: Any) -> PerdureError:
    message = " ".join(error.format_message().split())
    unknown = getattr(error, "option_name", None)  # as it was typed; there is no parameter of that name
    name = getattr(getattr(error, "param", None), "name", None) or unknown
    return InvalidRequest(message, field=name and name.strip("-_").replace("-", "_"))


def _about_file(error: OSError) -> str:
    named = f"{error.filename}: " if isinstance(error.filename, str) else ""
    return f"{named}{error.strerror or type(error).__name__}"
