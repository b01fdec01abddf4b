"""Options that several commands take, and what turns their words into values."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from perdure.base.instants import to_millis
from perdure.cli.streams import standard_input
from perdure.contract import limits
from perdure.errors import InvalidRequest

TIME = "TIME"
_MILLISECONDS = re.compile(r"[+-]?\d{1,32}", re.ASCII)  # more than any moment has: the range is judged later

KINDS = ("episodic", "semantic", "procedural", "working")
HISTORIES = ("current", "all", "historical")
STATUSES = ("current", "superseded", "expired", "not-yet-valid")
ORDERS = ("ingest", "-ingest", "event", "-event", "importance", "-importance", "last_used", "id")
MODES = ("lexical", "semantic", "hybrid")
FUSIONS = ("minmax", "rrf")


def one_of(*names: str) -> Callable[[str], list[str]]:
    """Return what completes a word to these names, for shells."""

    def complete(incomplete: str) -> list[str]:
        return [name for name in names if name.startswith(incomplete)]

    return complete


TextArgument = Annotated[
    str, typer.Argument(metavar="TEXT", help="The text, in quotes; - reads standard input.")
]
QueryArgument = Annotated[
    str,
    typer.Argument(
        metavar="QUERY",
        help=f"Words to find, at most {limits.QUERY_BYTES_MAX:,} bytes, without a syntax of their own; - reads "
        "standard input.",
    ),
]
IdArgument = Annotated[str, typer.Argument(metavar="ID", help="The fact's id.")]

AsOf = Annotated[
    str | None,
    typer.Option("--as-of", metavar=TIME, help="What held at this moment in the world. Default: now."),
]
KnownAt = Annotated[
    str | None,
    typer.Option(
        "--known-at",
        metavar=TIME,
        help="Ignore what was recorded later than this moment. Default: ignore nothing.",
    ),
]
Subject = Annotated[
    str | None,
    typer.Option(
        "--subject",
        metavar="NAME",
        help=f"The slot that the fact fills; exact, 1 to {limits.NAME_BYTES_MAX:,} bytes.",
    ),
]
Entity = Annotated[
    str | None, typer.Option("--entity", metavar="NAME", help="Only facts that mention this name; exact.")
]
Entities = Annotated[
    list[str] | None,
    typer.Option(
        "--entity",
        metavar="NAME",
        help=f"A name it mentions; repeatable, at most {limits.ENTITIES_MAX} times.",
    ),
]
Tags = Annotated[
    list[str] | None,
    typer.Option(
        "--tag",
        metavar="NAME",
        help=f"Only facts that have this tag; repeatable, for those that have all, at most {limits.TAGS_MAX} times.",
    ),
]
TagsTold = Annotated[
    list[str] | None,
    typer.Option("--tag", metavar="NAME", help=f"A tag for it; repeatable, at most {limits.TAGS_MAX} times."),
]
Kind = Annotated[
    str | None,
    typer.Option(
        "--kind",
        metavar="KIND",
        help="episodic, semantic, procedural or working.",
        autocompletion=one_of(*KINDS),
    ),
]
Filter = Annotated[
    str | None,
    typer.Option(
        "--filter", metavar="JSON", help='Only what it matches, like {"team":"a"} or {"prio":{"$gte":4}}.'
    ),
]
PinnedOnly = Annotated[
    bool | None,
    typer.Option("--pinned/--no-pinned", help="Only facts that are pinned, or that are not. Default: both."),
]
K = Annotated[
    str | None,
    typer.Option(
        "--k",
        metavar="N",
        help=f"At most so many results, 1 to {limits.K_MAX:,}. Default: defaultK of the configuration, else 10.",
    ),
]
Limit = Annotated[
    str | None,
    typer.Option(
        "--limit",
        metavar="N",
        help=f"At most so many a page, 1 to {limits.LIST_MAX:,}. Default: {limits.LIST_DEFAULT}.",
    ),
]
Cursor = Annotated[
    str | None, typer.Option("--cursor", metavar="CURSOR", help="Go on after the page that gave it.")
]
History = Annotated[
    str | None,
    typer.Option(
        "--history",
        metavar="WHICH",
        help="Which facts: current, all or historical (those that are not current). Default: current, or as the "
        "configuration says.",
        autocompletion=one_of(*HISTORIES),
    ),
]
MinScore = Annotated[
    str | None,
    typer.Option(
        "--min-score", metavar="NUMBER", help="Leave out results that score less, from 0. Default: none."
    ),
]
CandidateLimit = Annotated[
    str | None,
    typer.Option(
        "--candidate-limit",
        metavar="N",
        help=f"How many candidates a reordering looks at, k to {limits.CANDIDATES_MAX:,}. Default: "
        f"{limits.CANDIDATES_DEFAULT}, or k where that is more.",
    ),
]
Mode = Annotated[
    str | None,
    typer.Option(
        "--mode",
        metavar="MODE",
        help="lexical (words), semantic (vectors; needs an embedder, or --embedding-file) or hybrid (both). "
        "Default: hybrid where there is a vector to ask with, else lexical.",
        autocompletion=one_of(*MODES),
    ),
]
Fusion = Annotated[
    str | None,
    typer.Option(
        "--fusion",
        metavar="HOW",
        help="How hybrid makes one score of two: minmax or rrf. Default: minmax.",
        autocompletion=one_of(*FUSIONS),
    ),
]
WeightLexical = Annotated[
    str | None,
    typer.Option(
        "--weight-lexical",
        metavar="NUMBER",
        help="How much words count in hybrid, from 0. Default: 0.7 with minmax, 1 with rrf.",
    ),
]
WeightSemantic = Annotated[
    str | None,
    typer.Option(
        "--weight-semantic",
        metavar="NUMBER",
        help="How much meaning counts in hybrid, from 0. Default: 0.3 with minmax, 0.5 with rrf.",
    ),
]
EmbeddingFile = Annotated[
    str | None,
    typer.Option(
        "--embedding-file",
        metavar="FILE",
        help="The query's vector: an array of numbers in JSON. Default: by the embedder, where there is one.",
    ),
]
TextEmbeddingFile = Annotated[
    str | None,
    typer.Option(
        "--embedding-file",
        metavar="FILE",
        help="The text's vector: an array of numbers in JSON. Default: by the embedder, where there is one.",
    ),
]
DocumentEmbeddingFile = Annotated[
    str | None,
    typer.Option(
        "--embedding-file",
        metavar="FILE",
        help="The text's vector as an array of numbers in JSON, or an array of one for each of its units. Default: "
        "by the embedder, where there is one.",
    ),
]
Context = Annotated[
    bool,
    typer.Option("--context", help="Count the neighbours in the source, and whom and when the query names."),
]
ValidDuring = Annotated[
    str | None,
    typer.Option(
        "--valid-during",
        metavar="FROM/UNTIL",
        help="Facts that were current at some instant of it, like 2020-01-01/2021-01-01; not with --history.",
    ),
]
ListedDuring = Annotated[
    str | None,
    typer.Option(
        "--valid-during",
        metavar="FROM/UNTIL",
        help="Facts that were current at some instant of it, like 2020-01-01/2021-01-01; not with --status.",
    ),
]
Spaces = Annotated[
    list[str] | None,
    typer.Option("--space", metavar="SCOPE", help="A further scope of the same principal; repeatable."),
]
MaxBytes = Annotated[
    str | None,
    typer.Option(
        "--max-bytes",
        metavar="N",
        help="Stop before the results, as JSON or --prompt, take more bytes, from 2. Default: no limit.",
    ),
]
Prompt = Annotated[
    bool, typer.Option("--prompt", help="Print the results as text for a prompt, fenced as data.")
]
Explain = Annotated[bool, typer.Option("--explain", help="Say of each result why it came back.")]
Metadata = Annotated[
    str | None,
    typer.Option(
        "--metadata",
        metavar="JSON",
        help=f"An object of your own, at most {limits.METADATA_BYTES_MAX:,} bytes.",
    ),
]
EventTime = Annotated[
    str | None, typer.Option("--event-time", metavar=TIME, help="The moment that the text describes.")
]
ValidFrom = Annotated[
    str | None,
    typer.Option("--valid-from", metavar=TIME, help="Holds from then, inclusive. Default: no beginning."),
]
ValidTo = Annotated[
    str | None, typer.Option("--valid-to", metavar=TIME, help="Holds until then, exclusive. Default: no end.")
]
Supersedes = Annotated[
    list[str] | None,
    typer.Option(
        "--supersedes",
        metavar="ID",
        help=f"A fact that it replaces; repeatable, at most {limits.SUPERSEDES_MAX} times.",
    ),
]
Importance = Annotated[
    str | None, typer.Option("--importance", metavar="NUMBER", help="0 to 1. Default: none.")
]
SourceJson = Annotated[
    str | None,
    typer.Option("--source", metavar="JSON", help="An object with uri, quote, start, end, position, actor."),
]
Reason = Annotated[
    str | None,
    typer.Option(
        "--reason", metavar="TEXT", help=f"Kept with the record; at most {limits.REASON_BYTES_MAX:,} bytes."
    ),
]
IdempotencyKey = Annotated[
    str | None,
    typer.Option(
        "--idempotency-key",
        metavar="KEY",
        help=f"A repeat with the same key and request gives the first answer and writes nothing. 1 to "
        f"{limits.IDEMPOTENCY_KEY_BYTES_MAX} bytes, remembered for receiptDays of the configuration "
        f"({limits.RECEIPT_DAYS}).",
    ),
]
Yes = Annotated[bool, typer.Option("--yes", help="Do not ask.")]


def text_of(argument: str) -> str:
    """Return the argument, or for `-` what standard input holds, without its last line end.

    Raises:
        InvalidRequest: standard input is not UTF-8.
        Failed: standard input is closed.
    """
    if argument != "-":
        return argument
    data = standard_input().read()
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise InvalidRequest(
            f"standard input is not UTF-8 at byte {error.start + 1}", field="text"
        ) from error
    return text.removesuffix("\n").removesuffix("\r")


def query_of(argument: str, *, blank: bool = False) -> str:
    """Return the query, as `text_of`.

    Args:
        blank: whether it may be blank, since there is a vector to search with.

    Raises:
        InvalidRequest: it is blank and may not be.
    """
    from perdure.lexical.profile import is_blank  # noqa: PLC0415 - help must not wait for it

    query = text_of(argument)
    if not blank and is_blank(query):
        raise InvalidRequest("query is blank; perdure list shows all facts", field="query")
    return query


def instant(told: str | None, field: str) -> int | None:
    """Return milliseconds for ISO text, or for milliseconds since 1970 in digits.

    Four digits are refused: they may be meant as a year.
    """
    if told is None:
        return None
    if _MILLISECONDS.fullmatch(told) and not re.fullmatch(r"\d{4}", told):
        return to_millis(int(told), field=field)
    return to_millis(told, field=field)


def whole(told: str | None, field: str) -> int | None:
    """Return a whole number; the call that gets it checks its range."""
    if told is None:
        return None
    if not re.fullmatch(r"[+-]?\d{1,18}", told, re.ASCII):
        raise InvalidRequest(f"{field} must be a whole number, got {told[:32]!r}", field=field)
    return int(told)


def real(told: str | None, field: str) -> float | None:
    """Return a number; the call that gets it checks its range."""
    if told is None:
        return None
    try:
        return float(told)
    except ValueError as error:
        raise InvalidRequest(f"{field} must be a number, got {told[:32]!r}", field=field) from error


def json_object(told: str | None, field: str) -> dict[str, Any] | None:
    """Return the object that a JSON option describes."""
    if told is None:
        return None
    from perdure.base.canonical import strict_json  # noqa: PLC0415 - help must not wait for it

    value = strict_json(told, field=field)
    if not isinstance(value, dict):
        raise InvalidRequest(f"{field} must be a JSON object in braces", field=field)
    return value


def times(as_of: str | None, known_at: str | None) -> dict[str, Any]:
    return {"as_of": instant(as_of, "as_of"), "known_at": instant(known_at, "known_at")}


def interval(told: str | None, field: str) -> tuple[int, int] | None:
    """Return two moments that are written with a slash between them."""
    if told is None:
        return None
    start, slash, end = told.partition("/")
    if not slash:
        raise InvalidRequest(f"{field} must be two moments with a slash between them", field=field)
    first, last = instant(start, field), instant(end, field)
    if first is None or last is None:
        raise InvalidRequest(f"{field} must be two moments with a slash between them", field=field)
    return first, last


def weights(lexical: str | None, semantic: str | None) -> dict[str, float] | None:
    """Return the weights that are told, None where none is."""
    told = {
        "lexical": real(lexical, "weights.lexical"),
        "semantic": real(semantic, "weights.semantic"),
    }
    return {name: weight for name, weight in told.items() if weight is not None} or None


def source_object(told: str | None) -> dict[str, Any] | None:
    """Return the source that a JSON option describes.

    Raises:
        InvalidRequest: it is no source; what is wrong in it is named by its path.
    """
    value = json_object(told, "source")
    if value is not None:
        _judge("remember", {"text": "", "source": value})
    return value


def embedding(path: str | None, *, units: bool = False) -> list[float] | None:
    """Return the vector in a file.

    Args:
        units: it may also be an array of vectors, one for each unit of a document.

    Raises:
        InvalidRequest: the file cannot be read or holds something else than an array of numbers in JSON.
    """
    if path is None:
        return None
    from perdure.base.canonical import strict_json  # noqa: PLC0415 - help must not wait for it

    try:
        value = strict_json(Path(path).read_bytes(), field="embedding_file")
    except OSError as error:
        raise InvalidRequest(
            f"embedding_file cannot be read: {error.strerror}", field="embedding_file"
        ) from error
    if not isinstance(value, list):
        raise InvalidRequest("embedding_file must hold an array of numbers in JSON", field="embedding_file")
    if units:
        _judge("putDocument", {"id": "", "text": "", "embedding": value})
    else:
        _judge("remember", {"text": "", "embedding": value})
    return value


def _judge(operation: str, request: dict[str, Any]) -> None:
    """Refuse a request of a wrong shape as every other surface does."""
    from perdure.contract.decoding import decode_request, operation_of  # noqa: PLC0415 - help must not wait for it

    decode_request(operation_of(operation), request)


def recall_options(told: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options of a recall as the memory takes them, from what its command was called with, by name."""
    # In the order of the contract's request, and moments as they were told: a trace says what it was asked.
    return {
        "k": whole(told["k"], "k"),
        "as_of": _as_told(told["as_of"], "as_of"),
        "known_at": _as_told(told["known_at"], "known_at"),
        "history": told["history"],
        "subject": told["subject"],
        "entity": told["entity"],
        "tags": told["tag"] or None,
        "kind": told["kind"],
        "pinned": told["pinned"],
        "filter": json_object(told["filter_"], "filter"),
        "min_score": real(told["min_score"], "min_score"),
        "candidate_limit": whole(told["candidate_limit"], "candidate_limit"),
        "mode": told["mode"],
        "embedding": embedding(told["embedding_file"]),
        "fusion": told["fusion"],
        "weights": weights(told["weight_lexical"], told["weight_semantic"]),
        "context": told["context"] or None,
        "valid_during": interval(told["valid_during"], "valid_during"),
    }


def _as_told(moment: str | None, field: str) -> int | str | None:
    """Return a moment as it was told, once it is known to be one; milliseconds as a number."""
    found = instant(moment, field)
    return found if moment is None or _MILLISECONDS.fullmatch(moment) else moment
