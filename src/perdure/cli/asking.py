"""Commands that ask: recall, explain, trace, diff, get, history, list, changes. None of them writes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from perdure.base.text import counted
from perdure.cli import options as o
from perdure.cli.drawing import show_explanation, show_hits
from perdure.cli.facts import iso, show_fact, show_facts
from perdure.cli.failures import complain
from perdure.cli.screen import Screen, print_json, put
from perdure.cli.session import Session, command

if TYPE_CHECKING:
    from perdure.model.hit import Hit
    from perdure.store import Memory, Store

LATER = "that fact was recorded after --known-at"


def add_to(app: typer.Typer) -> None:
    for name, function in (
        ("recall", recall),
        ("explain", explain),
        ("trace", trace),
        ("diff", diff),
        ("get", get),
        ("history", history),
        ("list", list_facts),
        ("changes", changes),
    ):
        command(app, name)(function)


def recall(  # noqa: PLR0913 - one parameter per option
    session: Session,
    query: o.QueryArgument,
    *,
    k: o.K = None,
    as_of: o.AsOf = None,
    known_at: o.KnownAt = None,
    history: o.History = None,
    subject: o.Subject = None,
    entity: o.Entity = None,
    tag: o.Tags = None,
    kind: o.Kind = None,
    pinned: o.PinnedOnly = None,
    filter_: o.Filter = None,
    min_score: o.MinScore = None,
    candidate_limit: o.CandidateLimit = None,
    mode: o.Mode = None,
    fusion: o.Fusion = None,
    weight_lexical: o.WeightLexical = None,
    weight_semantic: o.WeightSemantic = None,
    embedding_file: o.EmbeddingFile = None,
    context: o.Context = False,
    valid_during: o.ValidDuring = None,
    space: o.Spaces = None,
    max_bytes: o.MaxBytes = None,
    prompt: o.Prompt = False,
    explain: o.Explain = False,
) -> None:
    """Find the facts that match best and hold.

    Best first; of equal ones, the earlier told first. --as-of asks what was true at another moment, --known-at what
    had been told by then.

    \b
    Examples:
      perdure recall "where does Alice live"
      perdure recall "where does Alice live" --as-of 2021-06-01
      perdure recall Alice --filter '{"team":"a"}' --k 3 --explain
    """
    asked = o.recall_options(locals())
    words = o.query_of(query, blank=embedding_file is not None)
    size = o.whole(max_bytes, "max_bytes")
    with session.store() as store:
        memory = store.memory(session.principal, session.scope)
        asked["spaces"] = space or None
        hits = memory.recall(words, max_bytes=None if prompt else size, explain=explain, **asked)
        # Only an empty answer leaves open whether anything matches.
        left_out = not hits and size is not None and bool(memory.recall(words, **asked))
        unknown = None if hits or not session.has_store() else _unknown(session, store)
    if unknown is not None:
        complain(unknown)
    _show(session, hits, prompt=prompt, size=size, left_out=left_out)


def _show(session: Session, hits: list[Hit], *, prompt: bool, size: int | None, left_out: bool) -> None:
    """Print hits; what matches and does not fit is told where the answer would read as if nothing matched."""
    too_large = f"what matches does not fit in {size} bytes"
    if session.as_json:
        from perdure.contract.wire import hit_object  # noqa: PLC0415 - only where it is printed

        print_json({"results": [hit_object(hit) for hit in hits]})
    elif prompt:
        from perdure.memory.prompting import as_prompt  # noqa: PLC0415 - only where it is printed

        text = as_prompt(hits, max_bytes=size)
        left_out = bool(hits) and text == as_prompt(())
        put(text)
    elif left_out:
        Screen().line(f"{too_large.capitalize()}; give --max-bytes more.")
        return
    else:
        show_hits(Screen(), hits)
    if left_out:
        complain(f"{too_large}; give --max-bytes more")


def _unknown(session: Session, store: Store) -> str | None:
    """Return what to say where the store has no memory of the names that are asked."""
    names = store.spaces()
    if any((name.principal, name.scope) == (session.principal or "", session.scope or "") for name in names):
        return None
    if session.principal or session.scope:
        return "there is no memory of that name; perdure spaces shows the names"
    return "the default memory is empty; perdure spaces shows which others there are" if names else None


def explain(  # noqa: PLR0913 - one parameter per option
    session: Session,
    query: o.QueryArgument,
    id_: o.IdArgument,
    *,
    k: o.K = None,
    as_of: o.AsOf = None,
    known_at: o.KnownAt = None,
    history: o.History = None,
    subject: o.Subject = None,
    entity: o.Entity = None,
    tag: o.Tags = None,
    kind: o.Kind = None,
    pinned: o.PinnedOnly = None,
    filter_: o.Filter = None,
    min_score: o.MinScore = None,
    candidate_limit: o.CandidateLimit = None,
    mode: o.Mode = None,
    fusion: o.Fusion = None,
    weight_lexical: o.WeightLexical = None,
    weight_semantic: o.WeightSemantic = None,
    embedding_file: o.EmbeddingFile = None,
    context: o.Context = False,
    valid_during: o.ValidDuring = None,
) -> None:
    """Say why a fact comes back from a recall, or why it does not.

    Shows the parts of its score, the words that matched, and the facts that take its place or lose theirs to it.
    Options are those of the recall that is explained.

    \b
    Examples:
      perdure explain "where does Alice live" paris
      perdure explain "where does Alice live" paris --as-of 2021-06-01
    """
    asked = o.recall_options(locals())
    words = o.query_of(query, blank=embedding_file is not None)
    with session.memory() as memory:
        explanation = memory.explain(
            words,
            id_,
            **asked,
        )
    if session.as_json:
        from perdure.contract.wire import explanation_object  # noqa: PLC0415 - only where it is printed

        print_json({"explanation": explanation_object(explanation)})
    else:
        show_explanation(Screen(), explanation)


def trace(  # noqa: PLR0913 - one parameter per option
    session: Session,
    query: o.QueryArgument,
    *,
    k: o.K = None,
    as_of: o.AsOf = None,
    known_at: o.KnownAt = None,
    history: o.History = None,
    subject: o.Subject = None,
    entity: o.Entity = None,
    tag: o.Tags = None,
    kind: o.Kind = None,
    pinned: o.PinnedOnly = None,
    filter_: o.Filter = None,
    min_score: o.MinScore = None,
    candidate_limit: o.CandidateLimit = None,
    mode: o.Mode = None,
    fusion: o.Fusion = None,
    weight_lexical: o.WeightLexical = None,
    weight_semantic: o.WeightSemantic = None,
    embedding_file: o.EmbeddingFile = None,
    context: o.Context = False,
    valid_during: o.ValidDuring = None,
) -> None:
    """Show what a recall gives and what it leaves out, and why.

    Lists at most traceLimit (of the configuration, 100) facts that were left out. Options are those of the recall.

    \b
    Example:
      perdure trace "where does Alice live" --as-of 2021-06-01
    """
    asked = o.recall_options(locals())
    words = o.query_of(query, blank=embedding_file is not None)
    with session.memory() as memory:
        found = memory.trace(
            words,
            **asked,
        )
    if session.as_json:
        from perdure.contract.wire import trace_object  # noqa: PLC0415 - only where it is printed

        print_json({"trace": trace_object(found)})
        return
    screen = Screen()
    show_hits(screen, list(found.results))
    screen.line(
        f"Seen {found.seen}, eligible {found.eligible}, matched {found.matched}, ranked {found.scored}, "
        f"returned {found.returned}."
    )
    rows = [
        [one.id, one.reason, "unknown" if one.status is None else one.status.value, ", ".join(one.filter)]
        for one in found.rejected
    ]
    if rows:
        screen.table(["id", "left out", "status", "filtered by"], rows)


def diff(  # noqa: PLR0913 - one parameter per option
    session: Session,
    known_at: Annotated[
        str, typer.Argument(metavar="FROM/UNTIL", help="Two moments of the store with a slash between them.")
    ],
    *,
    as_of: o.AsOf = None,
    subject: o.Subject = None,
    entity: o.Entity = None,
    tag: o.Tags = None,
    kind: o.Kind = None,
    pinned: o.PinnedOnly = None,
    filter_: o.Filter = None,
) -> None:
    """Show what came to be known after one moment and until another.

    What was learnt, ended, retracted, superseded and corrected in between, as it stands --as-of.

    \b
    Examples:
      perdure diff 2024-01-01/2024-02-01
      perdure diff 2024-01-01/2024-02-01 --subject alice/city
    """
    between, where = o.interval(known_at, "known_at"), o.json_object(filter_, "filter")
    assert between is not None
    with session.memory() as memory:
        found = memory.diff(
            between,
            as_of=o.times(as_of, None)["as_of"],
            subject=subject,
            entity=entity,
            tags=tag or None,
            kind=kind,
            pinned=pinned,
            filter=where,
        )
    if session.as_json:
        from perdure.contract.wire import diff_object  # noqa: PLC0415 - only where it is printed

        print_json({"diff": diff_object(found)})
        return
    screen = Screen()
    for name in ("learnt", "ended", "retracted", "superseded", "corrected"):
        members = getattr(found, name)
        screen.line(f"{name}: {len(members)}")
        rows = [
            ["unknown" if one.before is None else one.before.value, one.after.value, one.fact.text]
            for one in members
        ]
        if rows:
            screen.table(["before", "after", "text"], rows, [one.id for one in members])


def get(session: Session, id_: o.IdArgument, *, as_of: o.AsOf = None, known_at: o.KnownAt = None) -> None:
    """Show one fact, with all that is noted of it.

    Its status is that of --as-of. A fact that was recorded after --known-at is not found.

    \b
    Examples:
      perdure get paris
      perdure get paris --as-of 2021-06-01 --json
    """
    moments = o.times(as_of, known_at)
    with session.memory() as memory:
        fact = memory.get(id_, **moments)
        later = fact is None and _is_later(memory, id_, moments)
    if session.as_json:
        from perdure.contract.wire import fact_object  # noqa: PLC0415 - only where it is printed

        print_json({"fact": None if fact is None else fact_object(fact)})
    elif fact is not None:
        show_fact(Screen(), fact)
    if fact is None:
        complain(LATER if later else "there is no fact with that id")
        raise typer.Exit(1)


def history(session: Session, id_: o.IdArgument, *, as_of: o.AsOf = None, known_at: o.KnownAt = None) -> None:
    """Show every version that is joined to a fact, in the order in which they take effect.

    The history of a fact that was recorded after --known-at is empty.

    \b
    Example:
      perdure history paris
    """
    moments = o.times(as_of, known_at)
    with session.memory() as memory:
        facts = memory.history(id_, **moments)
        later = not facts and _is_later(memory, id_, moments)
    if session.as_json:
        from perdure.contract.wire import fact_object  # noqa: PLC0415 - only where it is printed

        print_json({"history": [fact_object(fact) for fact in facts]})
    elif facts:
        show_facts(Screen(), facts)
    elif later:
        Screen().line(f"No history then: {LATER}.")
    if not facts and not later:
        complain("there is no fact with that id")
        raise typer.Exit(1)


def _is_later(memory: Memory, id_: str, moments: dict[str, Any]) -> bool:
    """Whether a fact that was not found at `known_at` is there by what is known now."""
    return moments["known_at"] is not None and memory.get(id_) is not None


def list_facts(  # noqa: PLR0913 - one parameter per option
    session: Session,
    *,
    subject: o.Subject = None,
    entity: o.Entity = None,
    tag: o.Tags = None,
    kind: o.Kind = None,
    pinned: o.PinnedOnly = None,
    filter_: o.Filter = None,
    status: Annotated[
        str | None,
        typer.Option(
            "--status",
            metavar="STATUS",
            help="Only current, superseded, expired or not-yet-valid ones. Default: all.",
            autocompletion=o.one_of(*o.STATUSES),
        ),
    ] = None,
    as_of: o.AsOf = None,
    known_at: o.KnownAt = None,
    valid_during: o.ListedDuring = None,
    order: Annotated[
        str,
        typer.Option(
            "--order",
            metavar="ORDER",
            help="ingest, event, importance (- before it reverses), last_used, id. Default: ingest.",
            autocompletion=o.one_of(*o.ORDERS),
        ),
    ] = "ingest",
    hidden: Annotated[bool, typer.Option("--hidden", help="Only the softly forgotten ones.")] = False,
    limit: o.Limit = None,
    cursor: o.Cursor = None,
) -> None:
    """Show all facts, a page at a time.

    Also those that do not hold: --status current leaves them out.

    \b
    Examples:
      perdure list --subject alice/city
      perdure list --status current --order -importance --limit 10
    """
    moments, where = o.times(as_of, known_at), o.json_object(filter_, "filter")
    with session.memory() as memory:
        page = memory.list(
            filter=where,
            subject=subject,
            entity=entity,
            tags=tag or None,
            kind=kind,
            pinned=pinned,
            status=status,
            valid_during=o.interval(valid_during, "valid_during"),
            order=order,
            hidden=hidden,
            limit=o.whole(limit, "limit"),
            cursor=cursor,
            **moments,
        )
    if session.as_json:
        from perdure.contract.wire import fact_object, page_object  # noqa: PLC0415 - only where it is printed

        print_json(page_object(page, fact_object))
        return
    screen = Screen()
    if page.items:
        show_facts(screen, page.items)
    screen.line(f"{len(page.items)} of {counted(page.total, 'fact')}.")
    if page.has_more:
        screen.line(f"More: --cursor {page.cursor}")


def changes(
    session: Session,
    *,
    since: Annotated[
        str | None,
        typer.Option(
            "--since",
            metavar="CURSOR",
            help="Go on after what gave this cursor. Default: from the beginning.",
        ),
    ] = None,
    limit: o.Limit = None,
) -> None:
    """Show what was written, in order.

    Each entry has the ids that it is about, never a text. The last line gives the cursor to go on with.

    \b
    Examples:
      perdure changes
      perdure changes --since CURSOR --limit 100
    """
    with session.memory() as memory:
        found = memory.changes(since, limit=o.whole(limit, "limit"))
    if session.as_json:
        from perdure.contract.wire import changes_object  # noqa: PLC0415 - only where it is printed

        print_json(changes_object(found))
        return
    screen = Screen()
    rows = [[str(c.sequence), iso(c.at), c.kind, str(c.count), " ".join(c.ids)] for c in found.items]
    screen.table(["sequence", "at", "kind", "facts", "ids"], rows)
    screen.line(f"{'More: ' if found.has_more else 'Later: '}--since {found.cursor}")
