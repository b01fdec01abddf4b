"""Before something goes: showing it, and asking."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING

from perdure.base.text import counted
from perdure.cli.facts import show_facts
from perdure.cli.failures import Failed
from perdure.cli.screen import Screen, console
from perdure.cli.streams import standard_input

if TYPE_CHECKING:
    from perdure.model.replies import Forgotten
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


def refuse_changed(shown: Sequence[str], now: Sequence[str]) -> None:
    """Raise Failed where something else would go by now than what was agreed to."""
    if sorted(shown) != sorted(now):
        raise Failed("what would go has changed meanwhile, so nothing was forgotten: look again")


def show_leaving(screen: Screen, memory: Memory, ids: Sequence[str]) -> None:
    """Print the first facts of those that would go, the nodes that were never served, and how many more there are."""
    facts = [fact for id_ in ids[:PREVIEW_MAX] if (fact := memory.get(id_)) is not None]
    if facts:
        show_facts(screen, facts)
    nodes = unserved_nodes(memory, ids)
    if nodes:
        screen.line(f"Nodes that were never served: {', '.join(nodes)}")
    if rest := len(ids) - len(facts) - len(nodes):
        screen.line(f"… and {rest} more, or hidden ones.")


def unserved_nodes(memory: Memory, ids: Iterable[str]) -> list[str]:
    """Return the nodes that were never served among what would go, where they go by the facts that they would be."""
    from perdure.model.node_forms import find_node_id  # noqa: PLC0415 - help must not wait for it

    named = ((id_, find_node_id(id_)) for id_ in ids)
    return [name for id_, name in named if name is not None and memory.get(id_) is None]


def count_leaving(memory: Memory, reply: Forgotten) -> str:
    """Count what goes by a receipt, or what would: facts, and apart from them nodes that were never served."""
    if reply.certificate is None:
        nodes = len(unserved_nodes(memory, reply.forgotten)) if reply.dry_run else 0
    else:
        from perdure.model.node_forms import find_node_id  # noqa: PLC0415 - help must not wait for it

        # They are gone, but of what went the certificate counts the facts.
        named = sum(find_node_id(id_) is not None for id_ in reply.forgotten)
        nodes = max(0, min(named, len(reply.forgotten) - reply.certificate.facts))
    facts = len(reply.forgotten) - nodes
    told = [counted(nodes, "node")] if nodes else []
    return " and ".join([count_of(facts), *told] if facts or not nodes else told)


def count_of(facts: int) -> str:
    return counted(facts, "fact")
