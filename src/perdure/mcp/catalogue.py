"""The tools that are offered: their names, when to use them, and what they take and give."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from perdure.contract.operations import OPERATIONS, ROLES, Role

Profile = Literal["default", "all"]
PROFILES: tuple[Profile, ...] = ("default", "all")


@dataclass(frozen=True)
class Tool:
    """A tool. `operation` is what it does by the contract; `takes` are the arguments that it has by default.

    `erases` says that it may remove something for good, and is not offered where that is not wanted.
    """

    name: str
    operation: str
    use: str
    takes: tuple[str, ...]
    by_default: bool = False
    erases: bool = False
    repeatable: bool = True  # a second call with the same arguments changes nothing more

    @property
    def role(self) -> Role:
        return OPERATIONS[self.operation].role

    @property
    def only_reads(self) -> bool:
        return self.role == "read"


def offered(profile: Profile, role: Role, *, may_forget: bool) -> dict[str, Tool]:
    """Return the tools of a profile for a caller of this role, by name, in order."""
    return {
        tool.name: tool
        for tool in TOOLS
        if (tool.by_default or profile == "all")
        and ROLES.index(tool.role) <= ROLES.index(role)
        and (may_forget or not tool.erases)
    }


_WHEN = ("as_of", "known_at")
_WHICH = ("subject", "entity", "tags", "kind", "filter")

TOOLS: tuple[Tool, ...] = (
    Tool(
        "remember",
        "remember",
        "Store a fact worth knowing later: preferences, decisions, names, states and since when they hold. Use "
        "when told something durable. Repeating it is harmless. If it replaces an older fact, give that one's id "
        "in supersedes: history is kept. If the older one was never right, use correct.",
        (
            *("text", "facts", "subject", "entities", "tags", "kind", "metadata", "event_time"),
            *("valid_from", "valid_to", "supersedes", "importance"),
        ),
        by_default=True,
    ),
    Tool(
        "recall",
        "recall",
        "Find facts by words, best first, as true at a moment (as_of, default now) and as known at one "
        "(known_at). Use before answering about the user, the project or past decisions.",
        ("query", "k", *_WHEN, "history", *_WHICH, "min_score"),
        by_default=True,
    ),
    Tool(
        "explain",
        "explain",
        "Say why a fact came back for a query, or why it did not. Use when a recall surprises.",
        ("query", "id", *_WHEN, "history"),
        by_default=True,
    ),
    Tool(
        "history",
        "history",
        "All versions connected with a fact: what it superseded, what superseded it, since when each holds. Use "
        "when asked how something changed.",
        ("id", *_WHEN),
        by_default=True,
    ),
    Tool(
        "forget",
        "forget",
        "Erase facts for good. Use only when asked to forget or delete. By ids it acts at once. By anything else "
        "(exactly one) it answers with a preview and a token: show the preview to the user, then repeat the call "
        "with the token.",
        (
            *("ids", "subject", "entity", "tag", "text", "containing", "kind", "matching", "filter"),
            *(
                "session",
                "ingested_before",
                "event_before",
                "all",
                "include_chain",
                "soft",
                "block",
                "dry_run",
                "token",
            ),
        ),
        by_default=True,
        erases=True,
    ),
    Tool(
        "correct",
        "correct",
        "Replace a fact that was told wrong (for one that changed since, remember with supersedes). Name it by "
        "id, or by containing if one fact matches. What is not given is inherited.",
        ("new_text", "id", "containing", "subject", "event_time", "valid_from", "valid_to"),
        by_default=True,
        repeatable=False,
    ),
    Tool(
        "list_facts",
        "list",
        "List facts page by page, without a query. Use to review what is stored.",
        (*_WHICH, "status", *_WHEN, "limit", "cursor"),
        by_default=True,
    ),
    Tool(
        "memory_status",
        "capabilities",
        "How many facts there are, whose memory this is, and what this server offers.",
        (),
        by_default=True,
    ),
    Tool("get", "get", "One fact by its id. Use when you have an id.", ("id", *_WHEN)),
    Tool(
        "trace",
        "trace",
        "A recall with what it left out, and why. Use to find out why an expected fact is missing.",
        (),
    ),
    Tool(
        "annotate",
        "annotate",
        "Change tags, kind, importance, pinned or metadata of a fact, not what it says.",
        (),
    ),
    Tool("end", "end", "Say that a fact holds no longer, from `at` on, without a successor.", ()),
    Tool("retract", "retract", "Say that a fact was never true, without a right one in its place.", ()),
    Tool("restore", "restore", "Bring back facts that were forgotten softly.", ()),
    Tool("unblock", "unblock", "Allow ids and texts again that were forgotten with block.", ()),
    Tool(
        "merge",
        "merge",
        "Say that several current facts tell the same as one that is kept. Try dry_run first.",
        (),
    ),
    Tool(
        "record_use",
        "recordUse",
        "Count that facts were used for an answer. Use after having answered with them.",
        (),
        repeatable=False,
    ),
    Tool("changes", "changes", "What happened to the facts, in order, page by page.", ()),
    Tool("diff", "diff", "What came to be known between two moments: learnt, ended, corrected.", ()),
    Tool(
        "apply_forgetting",
        "applyForgetting",
        "Erase what the configured policy lets go. A dry run unless dry_run is false, which answers with a preview "
        "and a token first.",
        (),
        erases=True,
    ),
    Tool(
        "consolidate",
        "consolidate",
        "Add the summaries that the configured policy plans. A dry run unless dry_run is false; with "
        "allow_destructive it answers with a preview and a token first.",
        (),
        erases=True,
    ),
    Tool(
        "put_document",
        "putDocument",
        "Store a text of any length under an id, in place of what was there. Use if_version (0: only when new) "
        "to overwrite nothing unseen.",
        (),
        erases=True,
    ),
    Tool("get_document", "getDocument", "A document with its whole text.", ()),
    Tool("delete_document", "deleteDocument", "Erase a document. Use only when asked to.", (), erases=True),
    Tool("search_documents", "searchDocuments", "Find documents by words; each tells its best part.", ()),
    Tool("list_documents", "listDocuments", "List documents by id, page by page.", ()),
    Tool(
        "apply_changes",
        "applyChanges",
        "Change governed knowledge, all or nothing. Propose with create: a candidate is served to nobody until it is "
        "activated. activate, resolve and set_status decide: use them only when the user has decided.",
        (),
    ),
    Tool("review_queue", "reviewQueue", "What waits for a decision, oldest first, with its evidence.", ()),
    Tool("get_node", "node", "A node of governed knowledge, with evidence and quotes.", ()),
    Tool("node_revisions", "revisions", "How a node came to be what it is, the first revision first.", ()),
    Tool("query_nodes", "queryNodes", "Find nodes of any status by words, labels, times or evidence.", ()),
    Tool("snapshot", "snapshot", "All nodes of some statuses at one moment, with a digest.", ()),
    Tool("node_changes", "nodeChanges", "What changed of nodes after a change token, in order.", ()),
    Tool("change_token", "changeToken", "Where the nodes stand: equal tokens mean equal content.", ()),
    Tool(
        "record_admission",
        "recordAdmission",
        "Note that an active node went into a prompt. A refusal means: take it out.",
        (),
    ),
    Tool("record_node_use", "recordNodeUse", "Note that a node was used by an answer.", ()),
    Tool("access_events", "accessEvents", "When a node went into prompts and answers.", ()),
    Tool("usage_summary", "usageSummary", "How often a node was admitted and used.", ()),
    Tool(
        "forget_nodes",
        "forgetNodes",
        "Erase nodes for good, with all revisions and evidence. Use only when asked to; dry_run shows what would go.",
        (),
        erases=True,
    ),
    Tool(
        "remember_conversation",
        "rememberConversation",
        "Keep a conversation word for word, as evidence that quotes can be checked against.",
        (),
    ),
    Tool(
        "recall_conversation",
        "recallConversation",
        "Find turns of kept conversations, each with the turns that it rests on.",
        (),
    ),
    Tool("get_conversation", "conversation", "A kept version of a session with its turns.", ()),
    Tool("list_conversations", "conversations", "The conversations that are kept, page by page.", ()),
    Tool(
        "forget_conversation",
        "forgetConversation",
        "Erase a session, a version of it or one turn. Use only when asked to. One turn, by session, version and "
        "source, goes at once; anything else answers with a preview and a token first.",
        (),
        erases=True,
    ),
    Tool("events", "events", "What happened to the memory, when and by whom; never what anything says.", ()),
    Tool("search", "recall", "Find facts for a query, as connectors ask for them.", ("query",)),
    Tool("fetch", "get", "A fact by an id that search gave, as connectors ask for it.", ("id",)),
)
