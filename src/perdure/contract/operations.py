"""Every operation by its name on the wire: its group, its types, and what a caller must be allowed to do."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from perdure.contract import replies, requests

Group = Literal["memory", "documents", "repository", "conversation", "store"]
Role = Literal["read", "write", "admin"]
ROLES: tuple[Role, ...] = ("read", "write", "admin")  # each may do what those before it may


@dataclass(frozen=True, slots=True)
class Operation:
    """One operation. Where there are two requests, the second is the one that holds `plural`."""

    name: str
    group: Group
    role: Role
    request: type[requests.Request]
    reply: type[replies.Reply]
    many: tuple[str, type[requests.Request], type[replies.Reply]] | None = None
    streams: bool = False  # lines of JSON go in or out, in place of one object

    @property
    def summary(self) -> str:
        """What it does, in one sentence."""
        return (self.request.__doc__ or "").strip().splitlines()[0]


def _operations() -> tuple[Operation, ...]:
    a, r = requests, replies
    many = ("facts", a.RememberMany, r.RememberedMany)
    return (
        Operation("remember", "memory", "write", a.Remember, r.Remembered, many),
        Operation("recall", "memory", "read", a.Recall, r.Recalled),
        Operation("trace", "memory", "read", a.Trace, r.Traced),
        Operation("explain", "memory", "read", a.Explain, r.Explained),
        Operation("get", "memory", "read", a.Get, r.Got),
        Operation("history", "memory", "read", a.History, r.HistoryReply),
        Operation("list", "memory", "read", a.List, r.FactPage),
        Operation("correct", "memory", "write", a.Correct, r.Remembered),
        Operation("annotate", "memory", "write", a.Annotate, r.OneFact),
        Operation("end", "memory", "write", a.End, r.OneFact),
        Operation("retract", "memory", "write", a.Retract, r.OneFact),
        Operation("changes", "memory", "read", a.Changes, r.ChangesReply),
        Operation("diff", "memory", "read", a.Diff, r.Differed),
        Operation("forget", "memory", "write", a.Forget, r.Forgotten),
        Operation("restore", "memory", "write", a.Restore, r.Restored),
        Operation("unblock", "memory", "write", a.Unblock, r.Unblocked),
        Operation("applyForgetting", "memory", "write", a.ApplyForgetting, r.Forgotten),
        Operation("consolidate", "memory", "write", a.Consolidate, r.Consolidated),
        Operation("recordUse", "memory", "write", a.RecordUse, r.Used),
        Operation("merge", "memory", "write", a.Merge, r.Merged),
        Operation("events", "memory", "read", a.Events, r.EventPage),
        Operation("capabilities", "memory", "read", a.Capabilities, r.CapabilitiesReply),
        Operation("reindex", "memory", "admin", a.Reindex, r.ReindexedReply),
        Operation("embedMissing", "memory", "write", a.EmbedMissing, r.EmbeddedReply),
        Operation("putDocument", "documents", "write", a.PutDocument, r.PutReply),
        Operation("hasDocument", "documents", "read", a.HasDocument, r.HasReply),
        Operation("getDocument", "documents", "read", a.GetDocument, r.DocumentReply),
        Operation("deleteDocument", "documents", "write", a.DeleteDocument, r.DeletedReply),
        Operation("searchDocuments", "documents", "read", a.SearchDocuments, r.DocumentsFound),
        Operation("listDocuments", "documents", "read", a.ListDocuments, r.DocumentPage),
        Operation("applyChanges", "repository", "write", a.ApplyChanges, r.ChangesApplied),
        Operation("node", "repository", "read", a.GetNode, r.NodeReply),
        Operation("revisions", "repository", "read", a.Revisions, r.NodePage),
        Operation("queryNodes", "repository", "read", a.QueryNodes, r.NodesFound),
        Operation("snapshot", "repository", "read", a.TakeSnapshot, r.SnapshotReply),
        Operation("nodeChanges", "repository", "read", a.NodeChanges, r.NodeChangesReply),
        Operation("changeToken", "repository", "read", a.GetChangeToken, r.TokenReply),
        Operation("recordAdmission", "repository", "write", a.RecordAdmission, r.AccessRecorded),
        Operation("recordNodeUse", "repository", "write", a.RecordNodeUse, r.AccessRecorded),
        Operation("accessEvents", "repository", "read", a.AccessEvents, r.AccessEventPage),
        Operation("usageSummary", "repository", "read", a.UsageSummary, r.UsageReply),
        Operation("reviewQueue", "repository", "read", a.ReviewQueue, r.NodePage),
        Operation("forgetNodes", "repository", "write", a.ForgetNodes, r.Forgotten),
        Operation(
            "rememberConversation", "conversation", "write", a.RememberConversation, r.ConversationRemembered
        ),
        Operation("recallConversation", "conversation", "read", a.RecallConversation, r.ContextReply),
        Operation("expandConversation", "conversation", "read", a.ExpandConversation, r.ContextReply),
        Operation("conversation", "conversation", "read", a.GetConversation, r.ConversationReply),
        Operation("conversations", "conversation", "read", a.ListConversations, r.ConversationPage),
        Operation("forgetConversation", "conversation", "write", a.ForgetConversation, r.Forgotten),
        Operation("spaces", "store", "read", a.Spaces, r.SpacesReply),
        Operation("stats", "store", "read", a.Stats, r.StatsReply),
        Operation("storeEvents", "store", "admin", a.StoreEvents, r.EventPage),
        Operation("verify", "store", "admin", a.Verify, r.VerifiedReply),
        Operation("purge", "store", "admin", a.Purge, r.PurgedReply),
        Operation("erase", "store", "admin", a.Erase, r.ErasedReply),
        Operation("export", "store", "admin", a.Export, r.ExportLine, streams=True),
        Operation("import", "store", "admin", a.Import, r.ImportedReply, streams=True),
    )


OPERATIONS: Mapping[str, Operation] = {operation.name: operation for operation in _operations()}


def needed_role(operation: Operation, request: requests.Request) -> Role:
    """Return what a caller must be allowed for this request: a purge takes more than the operation without it."""
    return "admin" if getattr(request, "purge", None) else operation.role
