"""Commands that change nodes which are there: revise, corroborate, dispute, forget-node."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from perdure.base.text import counted
from perdure.cli import options as o
from perdure.cli.deciding import (
    Deciding,
    Decision,
    NodeId,
    Operation,
    Witnessing,
    WitnessUri,
    decide,
    named_as_typed,
    show_node,
)
from perdure.cli.erasing import CertificateOption, PurgeFlag, certificate_file, say_pending
from perdure.cli.failures import complain
from perdure.cli.previews import ask
from perdure.cli.screen import Screen, print_json
from perdure.cli.session import Session, command
from perdure.errors import InvalidRequest

if TYPE_CHECKING:
    from perdure.model.replies import Forgotten
    from perdure.repository import Repository

MODES = ("refinement", "correction")


def add_to(app: typer.Typer) -> None:
    for name, function in (
        ("revise", revise),
        ("corroborate", corroborate),
        ("dispute", dispute),
        ("forget-node", forget_node),
    ):
        command(app, name)(function)


def revise(
    session: Session,
    id_: NodeId,
    text: o.TextArgument,
    *,
    evidence: WitnessUri,
    mode: Annotated[
        str,
        typer.Option(
            "--mode",
            metavar="MODE",
            help="refinement, better put or new; or correction, it was told wrong.",
            autocompletion=o.one_of(*MODES),
        ),
    ] = "refinement",
    how: Witnessing,
) -> None:
    """Say a node anew, with the evidence for it; what it said before stays in its revisions.

    \b
    Example:
      perdure revise nine "It opens at ten" --evidence chat/9 --quote "at ten"
    """
    words = o.text_of(text)
    if mode not in MODES:
        with named_as_typed(session):
            raise InvalidRequest(f"mode must be one of {', '.join(MODES)}, got {mode[:64]!r}", field="mode")

    def operations(decision: Decision) -> list[Operation]:
        return [decision.on(id_, how.revision)("revise", content=words, mode=mode)]

    decide(session, how, how.told(evidence), operations)


def corroborate(
    session: Session,
    id_: NodeId,
    *,
    evidence: WitnessUri,
    how: Witnessing,
) -> None:
    """Add another witness to a node; what it says and its status stay.

    \b
    Example:
      perdure corroborate vault-nine --evidence chat/9 --quote "yes, at nine"
    """

    def operations(decision: Decision) -> list[Operation]:
        return [decision.on(id_, how.revision)("corroborate")]

    decide(session, how, how.told(evidence), operations)


def dispute(
    session: Session,
    id_: NodeId,
    *,
    other: Annotated[str, typer.Option("--with", metavar="ID", help="The node that contradicts it.")],
    how: Deciding,
) -> None:
    """Say that two nodes contradict each other: neither is served until it is resolved or activated.

    \b
    Example:
      perdure dispute one-key --with two-keys --reason "they cannot both hold"
    """

    def operations(decision: Decision) -> list[Operation]:
        pair = ((id_, other, decision.on(id_, how.revision)), (other, id_, decision.on(other)))
        made = [
            step("set_status", status="conflicted") for one, _, step in pair if decision.seen[one] == "active"
        ]
        return made + [
            step("add_relation", relation={"kind": "conflicts_with", "target": target})
            for _, target, step in pair
        ]

    decide(session, how, how.told, operations)


def forget_node(
    session: Session,
    ids: Annotated[list[str], typer.Argument(metavar="ID...", help="The nodes' ids.")],
    *,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show what would go, and stop.")] = False,
    purge: PurgeFlag = False,
    certificate: CertificateOption = None,
    yes: o.Yes = False,
) -> None:
    """Erase nodes of any status, candidates and rejected ones too, from every answer and every file.

    All revisions, evidence and quotes go, and the facts that they were served as. Shows what would go and asks first.

    \b
    Examples:
      perdure forget-node vault-ten --dry-run
      perdure forget-node vault-ten --yes --purge --certificate erased.json
    """
    with (
        session.store(changes=not dry_run) as store,
        certificate_file(certificate, dry_run=dry_run) as keep,
    ):
        repository = store.repository(session.principal, session.scope)
        found = repository.forget(ids, dry_run=True)
        reply = found
        if not dry_run:
            if not yes and found.forgotten:
                ask(
                    f"Forget {_count(found)}?",
                    lambda screen: _show(screen, repository, found),
                    refused="nothing was forgotten",
                )
            reply = repository.forget(ids if yes else found.forgotten, purge=purge)
            keep(reply.certificate)
        _answer(session, repository, reply)
    missing = sorted(set(ids) - set(reply.forgotten))
    if missing:
        complain(f"not found: {', '.join(missing)}")
    if not reply.forgotten:
        raise typer.Exit(1)


def _answer(session: Session, repository: Repository, reply: Forgotten) -> None:
    if session.as_json:
        from perdure.contract.wire import forgotten_object  # noqa: PLC0415 - only where it is printed

        print_json(forgotten_object(reply))
        return
    screen = Screen()
    if reply.dry_run:
        _show(screen, repository, reply)
        screen.line(f"{_count(reply)} would go. Nothing was changed.")
        return
    screen.line(f"{_count(reply)} forgotten.")
    if reply.purged:
        screen.line("The store was rewritten without them.")
    if reply.pending:
        say_pending(session, screen)


def _show(screen: Screen, repository: Repository, found: Forgotten) -> None:
    for place, id_ in enumerate(found.forgotten):
        if place:
            screen.line()
        show_node(screen, repository.call("node", {"id": id_})["node"])


def _count(reply: Forgotten) -> str:
    return counted(len(reply.forgotten), "node")
