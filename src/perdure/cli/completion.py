"""Scripts that make shells complete the command: of the shell that runs it, or of one that is named."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from perdure.errors import InvalidRequest

SHELLS = ("bash", "zsh", "fish", "powershell", "pwsh")
_SHOW, _INSTALL = "--show-completion", "--install-completion"
_VARIABLE = "_PERDURE_COMPLETE"  # by which a shell's script asks the command, for its script too


@contextmanager
def shell_named(args: Sequence[str]) -> Iterator[None]:
    """Have the script of the shell printed that stands behind --show-completion; Typer's option takes no value.

    Raises:
        InvalidRequest: there is no such shell, or one is named where it cannot be.
    """
    shell = _shell(args)
    if shell is None:
        yield
        return
    before = os.environ.get(_VARIABLE)
    os.environ[_VARIABLE] = f"source_{shell}"
    try:
        yield
    finally:
        del os.environ[_VARIABLE]
        if before is not None:
            os.environ[_VARIABLE] = before


def _shell(args: Sequence[str]) -> str | None:
    if not args:
        return None
    option, equals, shell = args[0].partition("=")
    named = [shell] if equals else list(args[1:2])
    if option not in (_SHOW, _INSTALL) or not named:
        return None
    if option == _INSTALL:
        raise InvalidRequest(
            f"{_INSTALL} is for the shell that runs it and takes no name; {_SHOW} SHELL prints the script of any",
            field="install_completion",
        )
    if named[0] not in SHELLS:
        raise InvalidRequest(
            f"{_SHOW} takes {', '.join(SHELLS)}, or nothing for the shell that runs it; got {named[0][:32]!r}",
            field="show_completion",
        )
    return named[0]
