"""Commands about conversations kept as evidence: conversation remember, recall, get, list, forget. Experimental."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from perdure.base.instants import to_iso
from perdure.base.text import counted
from perdure.cli import options as o
from perdure.cli.deciding import named_as_typed, show_cursor
from perdure.cli.erasing import CertificateOption, PurgeFlag, certificate_file, say_pending
from perdure.cli.failures import complain
from perdure.cli.help import add_group
from perdure.cli.previews import ask, refuse_changed
from perdure.cli.removing import DerivedFlag
from perdure.cli.screen import Screen, print_json
from perdure.cli.session import Session, command
from perdure.cli.turns import read_turns

if TYPE_CHECKING:
    from perdure.model.replies import Forgotten
    from perdure.store import Store

ABOUT = """Keep conversations word for word, as evidence, and recall turns with what they rest on. Experimental.

They are kept beside the memory of --principal and --scope; recalls of facts see nothing of them.

\b
Examples:
  perdure conversation remember monday 1 turns.jsonl
  perdure conversation recall "when does the vault open"
"""
OPTIONS = {
    "query": "QUERY",
    "roles": "--role",
    "k": "--k",
    "candidate_limit": "--candidate-limit",
    "max_sources": "--max-sources",
    "max_bytes": "--max-bytes",
    "subqueries": "--subquery",
    "subquery_weight": "--subquery-weight",
    "session_id": "SESSION",
    "version": "VERSION",
    "source_id": "--turn",
    "limit": "--limit",
    "cursor": "--cursor",
}
"""What was typed, by the field of the contract that it became."""
ROLES = ("user", "assistant")
NONE = "there is no conversation of that name and version"
Turn = dict[str, Any]

SessionId = Annotated[str, typer.Argument(metavar="SESSION", help="The session's name.")]
VersionWord = Annotated[str, typer.Argument(metavar="VERSION", help="Which version of it.")]


def add_to(app: typer.Typer) -> None:
    group = add_group(app, "conversation", ABOUT)
    for name, function in (
        ("remember", remember),
        ("recall", recall),
        ("get", get),
        ("list", list_conversations),
        ("forget", forget),
    ):
        command(group, name)(function)


def remember(
    session: Session,
    session_id: SessionId,
    version: VersionWord,
    file: Annotated[
        str, typer.Argument(metavar="FILE", help="The turns, one JSON object a line; - reads standard input.")
    ],
) -> None:
    """Keep a version of a session: its turns, each an object with sourceId, role, text and observationTime.

    All of it or nothing. The very same again stores nothing; other turns under the same version are refused.

    \b
    Examples:
      perdure conversation remember monday 1 turns.jsonl
      perdure conversation remember monday 2 - < turns.jsonl
    """
    turns = read_turns(file)
    told = {"sessionId": session_id, "version": version, "turns": turns.told}

    def act(store: Store) -> dict[str, Any]:
        return store.conversation(session.principal, session.scope).call("rememberConversation", told)

    with turns.named(as_json=session.as_json):
        session.rehearse(act)
        with session.store(writes=True) as store:
            reply = act(store)
    if session.as_json:
        print_json(reply)
        return
    shown = {"outcome": reply["outcome"], "turns": str(reply["turns"]), "pieces": str(reply["chunks"])}
    note = {} if reply["reason"] is None else {"note": reply["reason"]}
    Screen().fields([*shown.items(), *note.items()])


def recall(  # noqa: PLR0913 - one parameter per option
    session: Session,
    query: o.QueryArgument,
    *,
    role: Annotated[
        list[str] | None,
        typer.Option(
            "--role",
            metavar="ROLE",
            help="user or assistant; repeatable. Default: both.",
            autocompletion=o.one_of(*ROLES),
        ),
    ] = None,
    k: Annotated[
        str | None, typer.Option("--k", metavar="N", help="Turns found of each role. Default: 10.")
    ] = None,
    candidate_limit: Annotated[
        str | None,
        typer.Option("--candidate-limit", metavar="N", help="Pieces that are ranked. Default: 100."),
    ] = None,
    max_sources: Annotated[
        str | None, typer.Option("--max-sources", metavar="N", help="Turns of the answer. Default: 32.")
    ] = None,
    max_bytes: Annotated[
        str | None,
        typer.Option("--max-bytes", metavar="N", help="Bytes of the turns as JSON. Default: 65536."),
    ] = None,
    subquery: Annotated[
        list[str] | None,
        typer.Option("--subquery", metavar="QUERY", help="Another way to ask; repeatable, up to four."),
    ] = None,
    subquery_weight: Annotated[
        str | None,
        typer.Option("--subquery-weight", metavar="NUMBER", help="Their share, 0 to 1. Default: 0."),
    ] = None,
    expand: Annotated[
        bool,
        typer.Option("--expand", help="Go on to premises of premises, where the query counts or lists."),
    ] = False,
) -> None:
    """Find the turns that match best, each with the turns that it rests on.

    \b
    Examples:
      perdure conversation recall "when does the vault open"
      perdure conversation recall "how many keys" --expand --json
    """
    with named_as_typed(session, OPTIONS):
        asked: dict[str, Any] = {
            "query": o.query_of(query),
            "roles": role or None,
            "k": o.whole(k, "k"),
            "candidateLimit": o.whole(candidate_limit, "candidate_limit"),
            "maxSources": o.whole(max_sources, "max_sources"),
            "maxBytes": o.whole(max_bytes, "max_bytes"),
            "subqueries": subquery or None,
            "subqueryWeight": o.real(subquery_weight, "subquery_weight"),
            "expand": {} if expand else None,
        }
    reply = _called(session, "recallConversation", asked)
    if session.as_json:
        print_json(reply)
        return
    context, screen = reply["context"], Screen()
    found = {one["source"] for one in context["anchors"]}
    _show_turns(screen, context["sources"], found)
    for one in context["dropped"]:
        screen.line(f"Left out ({one['reason']}): {one['source']}")
    if not context["verified"]:
        screen.line("Not all that these turns rest on is there.")


def get(session: Session, session_id: SessionId, version: VersionWord) -> None:
    """Show a version of a session with the turns that are left.

    \b
    Example:
      perdure conversation get monday 1
    """
    reply = _called(session, "conversation", {"sessionId": session_id, "version": version})
    found = reply["conversation"]
    if session.as_json:
        print_json(reply)
    elif found is not None:
        screen = Screen()
        _show_turns(screen, found["turns"], set())
        if found["gaps"]:
            screen.line(f"Forgotten: the turns at {', '.join(map(str, found['gaps']))}.")
    if found is None:
        complain(NONE)
        raise typer.Exit(1)


def list_conversations(
    session: Session,
    *,
    session_id: Annotated[
        str | None, typer.Option("--session", metavar="SESSION", help="Versions of this session only.")
    ] = None,
    limit: o.Limit = None,
    cursor: o.Cursor = None,
) -> None:
    """List the versions of sessions that are kept, in order of arrival.

    \b
    Example:
      perdure conversation list --session monday
    """
    with named_as_typed(session, OPTIONS):
        asked = {"sessionId": session_id, "limit": o.whole(limit, "limit"), "cursor": cursor}
    reply = _called(session, "conversations", asked)
    if session.as_json:
        print_json(reply)
        return
    screen = Screen()
    rows = [
        [
            to_iso(one["recordedAt"]),
            str(one["turns"]),
            str(len(one["gaps"])),
            one["version"],
            one["sessionId"],
        ]
        for one in reply["items"]
    ]
    screen.table(["recorded", "turns", "forgotten", "version", "session"], rows)
    show_cursor(screen, reply)


def forget(  # noqa: PLR0913 - one parameter per option
    session: Session,
    session_id: SessionId,
    *,
    version: Annotated[
        str | None, typer.Option("--version", metavar="VERSION", help="Of this version only.")
    ] = None,
    source_id: Annotated[str | None, typer.Option("--turn", metavar="ID", help="This turn only.")] = None,
    include_derived: DerivedFlag = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show what would go, and stop.")] = False,
    purge: PurgeFlag = False,
    certificate: CertificateOption = None,
    yes: o.Yes = False,
) -> None:
    """Erase a session, a version of it or one turn, from every answer and every file.

    Shows what would go and asks first. With --include-derived what cites it goes too. Where nothing of it was there, the
    exit code is 1.

    \b
    Examples:
      perdure conversation forget monday --dry-run
      perdure conversation forget monday --version 1 --turn t3 --yes
    """
    which: dict[str, Any] = {
        "sessionId": session_id,
        "version": version,
        "sourceId": source_id,
        "includeDerived": include_derived,
    }
    with (
        session.store(changes=not dry_run) as store,
        certificate_file(certificate, dry_run=dry_run) as keep,
    ):
        conversations = store.conversation(session.principal, session.scope)
        preview = conversations.call("forgetConversation", {**which, "dryRun": True})
        if dry_run:
            _answer_forgotten(session, preview)
            _exit_where_nothing_was(preview)
            return
        if not yes and preview["forgotten"]:
            ask(
                f"Forget {_count(preview)}?",
                lambda screen: _show_forgotten(screen, preview),
                refused="nothing was forgotten",
            )
        if yes:
            reply = conversations.forget(
                session_id, version=version, source_id=source_id, include_derived=include_derived, purge=purge
            )
        else:
            now = conversations.call("forgetConversation", {**which, "dryRun": True})
            refuse_changed(preview["forgotten"], now["forgotten"])
            reply = _forget_shown(session, store, now["forgotten"], derived=include_derived, purge=purge)
        keep(reply.certificate)
    from perdure.contract.wire import forgotten_object  # noqa: PLC0415 - help must not wait for it

    told = forgotten_object(reply)
    _answer_forgotten(session, told)
    _exit_where_nothing_was(told)


def _forget_shown(
    session: Session, store: Store, shown: list[str], *, derived: bool, purge: bool
) -> Forgotten:
    """Erase the turns that were shown and none that came since; answer as `ConversationMemory.forget` does."""
    from msgspec import structs  # noqa: PLC0415 - help must not wait for it

    from perdure.model.conversation_forms import chunk_id, is_turn, names_of, turns_of  # noqa: PLC0415
    from perdure.model.namespace import CONVERSATION_SUFFIX  # noqa: PLC0415

    # By the first of the facts that a turn is found as, since a turn is forgotten whole.
    ids = [chunk_id(uri, 0) for uri in shown if names_of(uri) is not None]
    turns = store.memory(session.principal, f"{session.scope or ''}{CONVERSATION_SUFFIX}")
    reply = turns.forget(ids=ids, include_derived=derived, purge=purge)
    others = (id_ for id_ in reply.forgotten if not is_turn(id_))
    return structs.replace(reply, forgotten=tuple(sorted({*turns_of(reply.forgotten), *others})))


def _exit_where_nothing_was(reply: dict[str, Any]) -> None:
    """Raise typer.Exit with 1 where nothing was there to forget, unless the call made up for a purge."""
    if not reply["forgotten"] and not reply["purged"]:
        complain("nothing was forgotten: there is no such session, version or turn")
        raise typer.Exit(1)


def _called(session: Session, op: str, asked: dict[str, Any]) -> dict[str, Any]:
    with named_as_typed(session, OPTIONS), session.store() as store:
        return store.conversation(session.principal, session.scope).call(op, asked)


def _show_turns(screen: Screen, turns: list[Turn], found: set[str]) -> None:
    rows = [
        [
            "*" if one["uri"] in found else "",
            to_iso(one["observationTime"]),
            one["role"],
            one["sourceId"],
            one["text"],
        ]
        for one in turns
    ]
    screen.table(["", "said", "role", "turn", "text"], rows)


def _answer_forgotten(session: Session, reply: dict[str, Any]) -> None:
    if session.as_json:
        print_json(reply)
        return
    screen = Screen()
    if reply["dryRun"]:
        _show_forgotten(screen, reply)
        screen.line(f"{_count(reply)} would go. Nothing was changed.")
        return
    screen.line(f"{_count(reply)} forgotten.")
    if reply["derived"]:
        screen.line(f"Still citing them: {', '.join(reply['derived'])}")
    if reply["pending"]:
        say_pending(session, screen)


def _show_forgotten(screen: Screen, reply: dict[str, Any]) -> None:
    for uri in reply["forgotten"]:
        screen.line(uri)
    if reply["derived"]:
        screen.line(f"Citing them: {', '.join(reply['derived'])}")


def _count(reply: dict[str, Any]) -> str:
    from perdure.model.conversation_forms import is_turn  # noqa: PLC0415 - help must not wait for it

    turns = sum(is_turn(id_) for id_ in reply["forgotten"])
    citing = len(reply["forgotten"]) - turns
    told = counted(turns, "turn")
    if citing:
        told += f" and {counted(citing, 'node or fact that cites', 'nodes and facts that cite')} them"
    return told
