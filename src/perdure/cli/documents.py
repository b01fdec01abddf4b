"""Commands about texts of any length: documents put, get, has, delete, search, list."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from perdure.base.text import counted
from perdure.cli import options as o
from perdure.cli.erasing import CertificateOption, PurgeFlag, certificate_file, say_pending
from perdure.cli.facts import score
from perdure.cli.failures import complain
from perdure.cli.help import add_group
from perdure.cli.previews import ask
from perdure.cli.screen import Screen, compact, print_json
from perdure.cli.session import Session, command

if TYPE_CHECKING:
    from perdure.model.document import Document

ABOUT = """Keep texts of any length under ids of your own, and search them.

A document is always current: it has no times and no subject, and a new text under its id replaces it. Facts of the
memory are seen as documents too, superseded ones included.

\b
Examples:
  perdure documents put oven - < oven-manual.txt
  perdure documents search "descale the boiler"
"""
EXCERPT = 240  # characters of a text in a table; get and --json give the whole
NONE = "there is no document with that id"

DocumentId = Annotated[str, typer.Argument(metavar="ID", help="The document's id, 1 to 256 bytes.")]
IfVersion = Annotated[
    str | None,
    typer.Option(
        "--if-version",
        metavar="N",
        help="Only if it is at this version; 0: only if the id is free. Default: in any case.",
    ),
]


def add_to(app: typer.Typer) -> None:
    group = add_group(app, "documents", ABOUT)
    for name, function in (
        ("put", put),
        ("get", get),
        ("has", has),
        ("delete", delete),
        ("search", search),
        ("list", list_documents),
    ):
        command(group, name)(function)


def put(  # noqa: PLR0913 - one parameter per option
    session: Session,
    id_: DocumentId,
    text: o.TextArgument,
    *,
    metadata: o.Metadata = None,
    embedding_file: o.DocumentEmbeddingFile = None,
    if_version: IfVersion = None,
    idempotency_key: o.IdempotencyKey = None,
) -> None:
    """Store a text under an id, in place of what was there.

    What was there is erased, and the version grows by one. The same text and metadata again write nothing. A text
    has at most 1,048,576 bytes; from standard input it is taken without its last line end.

    \b
    Examples:
      perdure documents put oven - < oven-manual.txt
      perdure documents put note "Call the plumber" --metadata '{"room":"bath"}'
      perdure documents put note "Call Ines" --if-version 1
    """
    wanted, noted = o.whole(if_version, "if_version"), o.json_object(metadata, "metadata")
    vector, words = o.embedding(embedding_file, units=True), o.text_of(text)
    given: dict[str, Any] = {
        "metadata": noted,
        "embedding": vector,
        "if_version": wanted,
        "idempotency_key": idempotency_key,
    }
    session.rehearse(lambda empty: empty.documents(session.principal, session.scope).put(id_, words, **given))
    with session.documents(writes=True) as documents:
        reply = documents.put(id_, words, **given)
    if session.as_json:
        from perdure.contract.wire import put_object  # noqa: PLC0415 - only where it is printed

        print_json(put_object(reply))
        return
    told = {"outcome": reply.outcome, "id": reply.id, "version": str(reply.version), "note": reply.reason}
    screen = Screen()
    screen.fields((name, value) for name, value in told.items() if value)
    if reply.pending:
        say_pending(session, screen)


def get(session: Session, id_: DocumentId) -> None:
    """Show one document with its whole text.

    \b
    Examples:
      perdure documents get oven
      perdure documents get oven --json
    """
    with session.documents() as documents:
        found = documents.get(id_)
    if session.as_json:
        from perdure.contract.wire import document_object  # noqa: PLC0415 - only where it is printed

        print_json({"document": None if found is None else document_object(found)})
    elif found is not None:
        screen = Screen()
        screen.fields(_fields(found).items())
        screen.line()
        for line in found.text.splitlines():
            screen.line(line)
    if found is None:
        complain(NONE)
        raise typer.Exit(1)


def has(session: Session, id_: DocumentId) -> None:
    """Say whether there is a document of an id: by the exit code, 0 or 1, too.

    \b
    Example:
      perdure documents has oven && echo "it is there"
    """
    with session.documents() as documents:
        there = documents.has(id_)
    if session.as_json:
        print_json({"exists": there})
    else:
        Screen().line("yes" if there else "no")
    if not there:
        raise typer.Exit(1)


def delete(  # noqa: PLR0913 - one parameter per option
    session: Session,
    id_: DocumentId,
    *,
    if_version: IfVersion = None,
    purge: PurgeFlag = False,
    certificate: CertificateOption = None,
    yes: o.Yes = False,
    idempotency_key: o.IdempotencyKey = None,
) -> None:
    """Erase a document, from every file of the store too. Shows it and asks first.

    The id of a fact erases the fact, as forget does.

    \b
    Examples:
      perdure documents delete oven
      perdure documents delete oven --if-version 2 --yes
    """
    wanted = o.whole(if_version, "if_version")
    with session.documents(changes=True) as documents, certificate_file(certificate) as keep:
        found = None if yes else documents.get(id_)
        if found is not None:
            shown = found
            ask("Delete it?", lambda screen: _show(screen, [shown]), refused="nothing was deleted")
        reply = documents.delete(id_, if_version=wanted, purge=purge, idempotency_key=idempotency_key)
        keep(reply.certificate)
    if session.as_json:
        from perdure.contract.wire import deleted_object  # noqa: PLC0415 - only where it is printed

        print_json(deleted_object(reply))
    elif reply.deleted:
        screen = Screen()
        screen.line("The document is erased.")
        if reply.pending:
            say_pending(session, screen)
    if not reply.deleted:
        complain(NONE)
        raise typer.Exit(1)


def search(  # noqa: PLR0913 - one parameter per option
    session: Session,
    query: o.QueryArgument,
    *,
    k: o.K = None,
    filter_: o.Filter = None,
    mode: o.Mode = None,
    fusion: o.Fusion = None,
    weight_lexical: o.WeightLexical = None,
    weight_semantic: o.WeightSemantic = None,
    embedding_file: o.EmbeddingFile = None,
) -> None:
    """Find the documents that match best, each by its best unit.

    A long text is cut into units of at most 4,096 words; a result shows the place of the first word that is found.

    \b
    Examples:
      perdure documents search "rubber gasket"
      perdure documents search gasket --k 3 --filter '{"room":"kitchen"}'
    """
    asked: dict[str, Any] = {
        "k": o.whole(k, "k"),
        "filter": o.json_object(filter_, "filter"),
        "mode": mode,
        "fusion": fusion,
        "weights": o.weights(weight_lexical, weight_semantic),
        "embedding": o.embedding(embedding_file),
    }
    words = o.query_of(query)
    with session.documents() as documents:
        hits = documents.search(words, **asked)
    if session.as_json:
        from perdure.contract.wire import document_hit_object  # noqa: PLC0415 - only where it is printed

        print_json({"results": [document_hit_object(hit) for hit in hits]})
        return
    screen = Screen()
    if not hits:
        screen.line("Nothing matches.")
        return
    rows = [[score(hit.score), str(hit.unit), excerpt(hit.text, words)] for hit in hits]
    screen.table(["score", "unit", "text"], rows, [hit.id for hit in hits])


def list_documents(
    session: Session,
    *,
    filter_: o.Filter = None,
    limit: o.Limit = None,
    cursor: o.Cursor = None,
) -> None:
    """Show all documents, facts included, by id, a page at a time.

    \b
    Examples:
      perdure documents list --limit 10
      perdure documents list --filter '{"room":"kitchen"}'
    """
    where, size = o.json_object(filter_, "filter"), o.whole(limit, "limit")
    with session.documents() as documents:
        page = documents.list(filter=where, limit=size, cursor=cursor)
    if session.as_json:
        from perdure.contract.wire import document_object, page_object  # noqa: PLC0415

        print_json(page_object(page, document_object))
        return
    screen = Screen()
    if page.items:
        _show(screen, page.items)
    screen.line(f"{len(page.items)} of {counted(page.total, 'document')}.")
    if page.has_more:
        screen.line(f"More: --cursor {page.cursor}")


def _show(screen: Screen, documents: list[Document] | tuple[Document, ...]) -> None:
    rows = [[str(one.version), excerpt(one.text, "")] for one in documents]
    screen.table(["version", "text"], rows, [one.id for one in documents])


def _fields(document: Document) -> dict[str, str]:
    told = {"id": document.id, "version": str(document.version)}
    return told | ({"metadata": compact(document.metadata)} if document.metadata else {})


def excerpt(text: str, words: str) -> str:
    """Return at most about 240 characters of a text, around the first place where one of the words stands."""
    if len(text) <= EXCERPT:
        return text
    plain = text.lower()
    places = [place for word in words.lower().split() if (place := plain.find(word)) >= 0]
    start = max(0, min(places, default=0) - EXCERPT // 4)
    end = start + EXCERPT
    return f"{'… ' if start else ''}{text[start:end]}{' …' if end < len(text) else ''}"
