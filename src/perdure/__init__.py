"""Perdure: facts that hold over time, for AI agents.

Names are loaded on first use, so that importing the package costs next to nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from perdure.asynchronous import AsyncMemory, AsyncStore
    from perdure.base.acting import acting
    from perdure.base.clock import Clock, ManualClock, SystemClock
    from perdure.contract.capabilities import Capabilities
    from perdure.copying import copy
    from perdure.errors import (
        Blocked,
        Busy,
        Conflict,
        Corrupt,
        ImportFailed,
        InvalidRequest,
        NotFound,
        PerdureError,
        QueryLimit,
        StorageFull,
        Unavailable,
        WrongKey,
    )
    from perdure.memory.config import Limits, MemoryConfig
    from perdure.memory.prompting import as_prompt
    from perdure.model.certificate import Certificate, Step
    from perdure.model.context import Context
    from perdure.model.document import Deleted, Document, DocumentHit
    from perdure.model.event import AuditEvent, EventsHead
    from perdure.model.fact import End, Fact, Source
    from perdure.model.finding import Finding, Salvaged, Verified
    from perdure.model.hit import Explanation, Hit
    from perdure.model.inputs import NewFact
    from perdure.model.namespace import Namespace
    from perdure.model.replies import (
        Change,
        Changes,
        Consolidated,
        Erased,
        Forgotten,
        Merged,
        Page,
        PurgeReceipt,
        Reindexed,
        Remembered,
    )
    from perdure.model.status import Status
    from perdure.model.stores import Health
    from perdure.model.trace import Diff, Trace
    from perdure.salvaging import salvage
    from perdure.sessions.session import SessionMemory
    from perdure.store import Memory, Store
    from perdure.verifying import verify

_HOMES = {
    "AsyncMemory": "asynchronous",
    "AsyncStore": "asynchronous",
    "AuditEvent": "model.event",
    "Blocked": "errors",
    "Busy": "errors",
    "Capabilities": "contract.capabilities",
    "Certificate": "model.certificate",
    "Change": "model.replies",
    "Changes": "model.replies",
    "Clock": "base.clock",
    "Conflict": "errors",
    "Consolidated": "model.replies",
    "Context": "model.context",
    "Corrupt": "errors",
    "Deleted": "model.document",
    "Diff": "model.trace",
    "Document": "model.document",
    "DocumentHit": "model.document",
    "End": "model.fact",
    "Erased": "model.replies",
    "EventsHead": "model.event",
    "Explanation": "model.hit",
    "Fact": "model.fact",
    "Finding": "model.finding",
    "Forgotten": "model.replies",
    "Health": "model.stores",
    "Hit": "model.hit",
    "ImportFailed": "errors",
    "InvalidRequest": "errors",
    "Limits": "memory.config",
    "ManualClock": "base.clock",
    "Memory": "store",
    "MemoryConfig": "memory.config",
    "Merged": "model.replies",
    "Namespace": "model.namespace",
    "NewFact": "model.inputs",
    "NotFound": "errors",
    "Page": "model.replies",
    "PerdureError": "errors",
    "PurgeReceipt": "model.replies",
    "Reindexed": "model.replies",
    "QueryLimit": "errors",
    "Remembered": "model.replies",
    "Salvaged": "model.finding",
    "SessionMemory": "sessions.session",
    "Source": "model.fact",
    "Status": "model.status",
    "Step": "model.certificate",
    "StorageFull": "errors",
    "Store": "store",
    "SystemClock": "base.clock",
    "Trace": "model.trace",
    "Unavailable": "errors",
    "Verified": "model.finding",
    "WrongKey": "errors",
    "acting": "base.acting",
    "copy": "copying",
    "as_prompt": "memory.prompting",
    "salvage": "salvaging",
    "verify": "verifying",
}

__all__ = [
    "AsyncMemory",
    "AsyncStore",
    "AuditEvent",
    "Blocked",
    "Busy",
    "Capabilities",
    "Certificate",
    "Change",
    "Changes",
    "Clock",
    "Conflict",
    "Consolidated",
    "Context",
    "Corrupt",
    "Deleted",
    "Diff",
    "Document",
    "DocumentHit",
    "End",
    "Erased",
    "EventsHead",
    "Explanation",
    "Fact",
    "Finding",
    "Forgotten",
    "Health",
    "Hit",
    "ImportFailed",
    "InvalidRequest",
    "Limits",
    "ManualClock",
    "Memory",
    "MemoryConfig",
    "Merged",
    "Namespace",
    "NewFact",
    "NotFound",
    "Page",
    "PerdureError",
    "PurgeReceipt",
    "QueryLimit",
    "Reindexed",
    "Remembered",
    "Salvaged",
    "SessionMemory",
    "Source",
    "Status",
    "Step",
    "StorageFull",
    "Store",
    "SystemClock",
    "Trace",
    "Unavailable",
    "Verified",
    "WrongKey",
    "acting",
    "as_prompt",
    "copy",
    "salvage",
    "verify",
]


def __getattr__(name: str) -> Any:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module 'perdure' has no attribute {name!r}")
    value = getattr(import_module(f"perdure.{home}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
