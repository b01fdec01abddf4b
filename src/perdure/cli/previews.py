"""Before something goes: showing it, and asking."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from perdure.cli.facts import show_facts
from perdure.cli.failures import Failed
from perdure.cli.screen import Screen, console
from perdure.cli.streams import standard_input

if TYPE_CHECKING:
    from perdure.store import Memory

PREVIEW_MAX = 20


def ask(question: str, show: Callable[[Screen], None], *, refused: str) -> None:
    """Show on standard error what is asked about, ask, and read the answer from standard input.

    Raises:
        Failed: the answer is not yes, or there is none; `refused` says what that means.
    """
    show(Screen(console(sys.stderr)))
    # Not typer's own question: it writes to standard output, which may be read by a program.
    print(f"{question} [y/N] ", end="", file=sys.stderr, flush=True)
    answer = b"" if sys.stdin is None else standard_input().readline()
    if not answer.endswith(b"\n"):
        print(file=sys.stderr)
    if answer.strip().lower() not in (b"y", b"yes"):
        raise Failed(f"refused; {refused}. --yes does not ask")


def show_leaving(screen: Screen, memory: Memory, ids: Sequence[str]) -> None:
    """Print the first facts of those that would go, and how many more there are."""
    facts = [fact for id_ in ids[:PREVIEW_MAX] if (fact := memory.get(id_)) is not None]
    if facts:
        show_facts(screen, facts)
    if len(ids) > len(facts):
        screen.line(f"… and {len(ids) - len(facts)} more, or hidden ones.")


def count_of(facts: int) -> str:
    return "1 fact" if facts == 1 else f"{facts} facts"
