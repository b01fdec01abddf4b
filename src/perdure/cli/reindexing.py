"""The command that changes how a memory's texts are analysed: reindex."""

from __future__ import annotations

from typing import Annotated

import typer

from perdure.cli.erasing import PENDING
from perdure.cli.failures import Failed
from perdure.cli.progress import progress_bar
from perdure.cli.screen import Screen, print_json
from perdure.cli.session import ABSENT, Session, command


def add_to(app: typer.Typer) -> None:
    command(app, "reindex")(reindex)


def reindex(
    session: Session,
    *,
    profile: Annotated[
        str | None,
        typer.Option(
            "--profile",
            metavar="NAME",
            help="english.v1, unicode.v1, or snowball: and a language, as in snowball:german.",
        ),
    ] = None,
    k1: Annotated[
        float | None, typer.Option("--k1", help="How soon more occurrences of a word stop counting.")
    ] = None,
    b: Annotated[float | None, typer.Option("--b", help="How much a long text is held against it.")] = None,
) -> None:
    """Analyse all texts of a memory anew, with another profile or other weights. Facts stay as they are.

    Rewrites the store as a purge does: takes room for a second copy meanwhile, and makes writers wait.
    """
    if not session.has_store():
        raise Failed(ABSENT)
    from perdure.model.namespace import checked_namespace  # noqa: PLC0415 - help must not wait for it

    with session.store() as store:
        if checked_namespace(session.principal, session.scope) not in store.spaces():
            raise Failed(
                "there is no memory of that name, so there is nothing to reindex; perdure spaces shows the names"
            )
        # Without the configuration: what it says of these settings may be what the memory does not have yet.
        memory = store.memory(session.principal, session.scope)
        with progress_bar("reindexing") as progress:
            done = memory.reindex(profile=profile, k1=k1, b=b, progress=progress)
    if session.as_json:
        told = {"profile": done.profile, "k1": done.k1, "b": done.b}
        print_json({"reindexed": {**told, "changed": done.changed, "pending": done.pending}})
        return
    screen = Screen()
    settings = f"profile {done.profile}, k1 {done.k1:g}, b {done.b:g}"
    screen.line(
        f"The memory was reindexed: {settings}." if done.changed else f"Nothing was rewritten: {settings}."
    )
    if done.pending:
        screen.line(PENDING)
