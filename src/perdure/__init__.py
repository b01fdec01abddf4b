"""Perdure: facts that hold over time, for AI agents.

Names are loaded on first use, so that importing the package costs next to nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from perdure.base.clock import Clock, ManualClock, SystemClock
    from perdure.contract.capabilities import Capabilities
    from perdure.errors import (
        Blocked,
        Busy,
        Conflict,
        Corrupt,
        InvalidRequest,
        NotFound,
        PerdureError,
        QueryLimit,
        StorageFull,
        Unavailable,
        WrongKey,
    )
    from perdure.memory.config import Limits, MemoryConfig
    from perdure.model.document import Document, DocumentHit
    from perdure.model.fact import End, Fact, Source
    from perdure.model.hit import Explanation, Hit
    from perdure.model.inputs import NewFact
    from perdure.model.replies import Change, Changes, Consolidated, Forgotten, Page, Remembered
    from perdure.model.status import Status
    from perdure.store import Health, Memory, Store

_HOMES = {
    "Blocked": "errors",
    "Busy": "errors",
    "Capabilities": "contract.capabilities",
    "Change": "model.replies",
    "Changes": "model.replies",
    "Clock": "base.clock",
    "Conflict": "errors",
    "Consolidated": "model.replies",
    "Corrupt": "errors",
    "Document": "model.document",
    "DocumentHit": "model.document",
    "End": "model.fact",
    "Explanation": "model.hit",
    "Fact": "model.fact",
    "Forgotten": "model.replies",
    "Health": "store",
    "Hit": "model.hit",
    "InvalidRequest": "errors",
    "Limits": "memory.config",
    "ManualClock": "base.clock",
    "Memory": "store",
    "MemoryConfig": "memory.config",
    "NewFact": "model.inputs",
    "NotFound": "errors",
    "Page": "model.replies",
    "PerdureError": "errors",
    "QueryLimit": "errors",
    "Remembered": "model.replies",
    "Source": "model.fact",
    "Status": "model.status",
    "StorageFull": "errors",
    "Store": "store",
    "SystemClock": "base.clock",
    "Unavailable": "errors",
    "WrongKey": "errors",
}

__all__ = [
    "Blocked",
    "Busy",
    "Capabilities",
    "Change",
    "Changes",
    "Clock",
    "Conflict",
    "Consolidated",
    "Corrupt",
    "Document",
    "DocumentHit",
    "End",
    "Explanation",
    "Fact",
    "Forgotten",
    "Health",
    "Hit",
    "InvalidRequest",
    "Limits",
    "ManualClock",
    "Memory",
    "MemoryConfig",
    "NewFact",
    "NotFound",
    "Page",
    "PerdureError",
    "QueryLimit",
    "Remembered",
    "Source",
    "Status",
    "StorageFull",
    "Store",
    "SystemClock",
    "Unavailable",
    "WrongKey",
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
