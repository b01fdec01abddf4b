"""Commands that make anew what is derived from a memory's texts: reindex, embed-missing."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from perdure.base.text import counted
from perdure.cli import options as o
from perdure.cli.erasing import say_pending
from perdure.cli.failures import Failed
from perdure.cli.progress import progress_bar
from perdure.cli.screen import Screen, print_json
from perdure.cli.session import ABSENT, Session, command

if TYPE_CHECKING:
    from perdure.memory.config import MemoryConfig
    from perdure.store import Store


def add_to(app: typer.Typer) -> None:
    command(app, "reindex")(reindex)
    command(app, "embed-missing")(embed_missing)


def reindex(
    session: Session,
    *,
    profile: Annotated[
        str | None,
        typer.Option(
            "--profile",
            metavar="NAME",
            help="english.v1, unicode.v1, or snowball: and a language, as in snowball:german. Default: as it is.",
            autocompletion=_profiles,
        ),
    ] = None,
    k1: Annotated[
        str | None,
        typer.Option(
            "--k1",
            metavar="NUMBER",
            help="How soon more occurrences of a word stop counting, 0 to 1,000. Default: as it is.",
        ),
    ] = None,
    b: Annotated[
        str | None,
        typer.Option(
            "--b",
            metavar="NUMBER",
            help="How much a long text is held against it, 0 to 1. Default: as it is.",
        ),
    ] = None,
    embeddings: Annotated[
        bool,
        typer.Option(
            "--embeddings",
            help="Drop the vectors that an embedder made, and embed every text with that of the configuration.",
        ),
    ] = False,
) -> None:
    """Analyse all texts of a memory anew, with another profile or other weights.

    Facts stay as they are; scores change. Rewrites the store as a purge does: takes room for a second copy meanwhile,
    and makes writers wait.

    \b
    Examples:
      perdure reindex --profile snowball:german --principal anna
      perdure reindex --k1 1.2 --b 0.75
      perdure reindex --embeddings --config memory.json
    """
    weights = {"k1": o.real(k1, "k1"), "b": o.real(b, "b")}
    if not session.has_store():
        raise Failed(ABSENT)
    from perdure.model.namespace import checked_namespace  # noqa: PLC0415 - help must not wait for it

    # Without the configuration: what it says of these settings may be what the memory does not have yet.
    with session.store(configured=False) as store:
        absent = checked_namespace(session.principal, session.scope) not in store.spaces()
        config = _without_settings(session.config, store)
        memory = store.memory(session.principal, session.scope, config=config)
        if absent:
            if not embeddings:
                # Where nothing is, nothing is rewritten; wrong settings are the fault all the same.
                memory.reindex(profile=profile, embeddings=False, progress=None, **weights)
            raise Failed(
                "there is no memory of that name, so there is nothing to reindex; perdure spaces shows the names"
            )
        with progress_bar("reindexing") as progress:
            done = memory.reindex(profile=profile, embeddings=embeddings, progress=progress, **weights)
    if session.as_json:
        from perdure.contract.wire import reindexed_object  # noqa: PLC0415 - only where it is printed

        print_json(reindexed_object(done))
        return
    screen = Screen()
    settings = f"profile {done.profile}, k1 {done.k1:g}, b {done.b:g}"
    screen.line(
        f"The memory was reindexed: {settings}." if done.changed else f"Nothing was rewritten: {settings}."
    )
    if embeddings:
        screen.line(f"{counted(done.embedded, 'text was', 'texts were')} embedded.")
    if done.pending:
        say_pending(session, screen)


def embed_missing(
    session: Session,
    *,
    limit: Annotated[
        str | None,
        typer.Option("--limit", metavar="N", help="At most so many texts, 1 to 100,000. Default: all."),
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Count them, and stop.")] = False,
) -> None:
    """Embed the facts and documents of a memory that have no vector.

    With the embedder of the configuration, oldest first, in small transactions: what was embedded stays when the
    command is stopped, and the next one goes on. --dry-run needs no embedder.

    \b
    Examples:
      perdure embed-missing --dry-run
      perdure embed-missing --config memory.json --limit 1000
    """
    most = o.whole(limit, "limit")
    with session.memory(changes=not dry_run) as memory, progress_bar("embedding") as progress:
        done = memory.embed_missing(limit=most, dry_run=dry_run, progress=progress)
    if session.as_json:
        from perdure.contract.wire import embedded_object  # noqa: PLC0415 - only where it is printed

        print_json(embedded_object(done))
        return
    texts = "text" if done.missing == 1 else "texts"
    has = "has" if done.missing == 1 else "have"
    if dry_run:
        Screen().line(f"{done.missing} {texts} {has} no vector. Nothing was changed.")
    else:
        Screen().line(f"{done.embedded} embedded; {done.missing} {texts} {has} no vector.")


def _without_settings(config: MemoryConfig | None, store: Store) -> MemoryConfig | None:
    """Return the configuration without profile, k1 and b, which a memory may have otherwise before it is reindexed."""
    if config is None or config.to_json() == store.config.to_json():
        return None  # the store's own asks nothing of a memory that is there
    from perdure.memory.config import MemoryConfig as Config  # noqa: PLC0415 - only where one is told

    usual = Config()
    return config.replace(profile=usual.profile, k1=usual.k1, b=usual.b)


def _profiles(incomplete: str) -> list[str]:
    from perdure.lexical.languages import PROFILES  # noqa: PLC0415 - only where a shell asks

    return [name for name in PROFILES if name.startswith(incomplete)]
