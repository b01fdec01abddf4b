"""A bar on standard error for what takes long; nothing where that is no terminal."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from perdure.cli.screen import console


@contextmanager
def progress_bar(title: str) -> Iterator[Callable[[int, int], None] | None]:
    """Yield what moves the bar, given how much is done and of how much; None where nobody watches."""
    from rich.progress import Progress as Bar  # noqa: PLC0415 - only where there is something to show

    errors = console(sys.stderr)
    if not errors.is_terminal:
        yield None
        return
    with Bar(console=errors, transient=True) as bar:
        task = bar.add_task(title, total=None)
        yield lambda done, of: bar.update(task, completed=done, total=of)
