"""Names and wire forms of conversations: uris of turns, the space that they are kept in, and exact sizes."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Any

import msgspec

from perdure.base.instants import to_millis
from perdure.model.conversation import SourceTurn
from perdure.model.namespace import BESIDE, CONVERSATION_SUFFIX, Namespace

TURN_PREFIX = "perdure:turn/"
SESSION_PREFIX = "perdure:session/"
_PARTS = 3
_PLAIN = re.compile(r"[A-Za-z0-9._~-]+")
_ESCAPES = [chr(byte) if _PLAIN.fullmatch(chr(byte)) else f"%{byte:02X}" for byte in range(256)]
_ESCAPED = re.compile(rb"%([0-9A-Fa-f]{2})")


def conversation_of(namespace: Namespace) -> Namespace:
    """Return the space in which the conversations of this space are kept."""
    return Namespace(namespace.principal, namespace.scope + CONVERSATION_SUFFIX)


def find_beside(namespace: Namespace) -> Namespace | None:
    """Return the space beside which a space of conversations or of sessions lies; None for any other space."""
    for suffix in BESIDE:
        if namespace.scope.endswith(suffix):
            return Namespace(namespace.principal, namespace.scope.removesuffix(suffix))
    return None


def version_uri(session_id: str, version: str) -> str:
    """Return what names a version of a session: the beginning of the uris of its turns."""
    return f"{TURN_PREFIX}{escaped(session_id)}/{escaped(version)}"


def turn_uri(session_id: str, version: str, source_id: str) -> str:
    """Return what names a turn. No two turns share it, whatever characters the names hold."""
    return f"{version_uri(session_id, version)}/{escaped(source_id)}"


def session_uri(session_id: str) -> str:
    """Return what names a session: the beginning of the ids of its turns."""
    return f"{SESSION_PREFIX}{escaped(session_id)}"


def is_turn(uri: str) -> bool:
    """Whether a uri names a turn that a store may keep, of a conversation or of a session."""
    return uri.startswith((TURN_PREFIX, SESSION_PREFIX))


def names_of(uri: str) -> tuple[str, str, str] | None:
    """Return session, version and source id of a turn's uri; None for any other text."""
    parts = uri.removeprefix(TURN_PREFIX).split("/")
    if not uri.startswith(TURN_PREFIX) or len(parts) != _PARTS:
        return None
    session_id, version, source_id = map(_unescaped, parts)
    return session_id, version, source_id


def chunk_id(uri: str, index: int) -> str:
    """Return the id of the fact that one chunk of a turn is, counted from 0."""
    return f"{uri}#{index}"


def turns_of(ids: Iterable[str]) -> frozenset[str]:
    """Return the uris of the turns that these facts are, or are chunks of."""
    return frozenset(
        id_ if id_.startswith(SESSION_PREFIX) else id_.rpartition("#")[0] for id_ in ids if is_turn(id_)
    )


def gap_uri(session_id: str, version: str, position: int) -> str:
    """Return what stands for a turn that was forgotten: only where it stood is known."""
    return f"{version_uri(session_id, version)}#{position}"


def escaped(name: str) -> str:
    """Return a name with all but letters, digits and `-._~` of ASCII percent-encoded in UTF-8."""
    return name if _PLAIN.fullmatch(name) else "".join(map(_ESCAPES.__getitem__, name.encode()))


def _unescaped(part: str) -> str:
    plain = _ESCAPED.sub(lambda match: bytes([int(match[1], 16)]), part.encode())
    return plain.decode(errors="replace")


def source_object(turn: SourceTurn) -> dict[str, Any]:
    """Return a turn as it is on the wire."""
    return {
        "uri": turn.uri,
        "sessionId": turn.session_id,
        "version": turn.version,
        "position": turn.position,
        "sourceId": turn.source_id,
        "role": turn.role,
        "text": turn.text,
        "observationTime": to_millis(turn.observation_time, field="observation_time"),
    }


def source_size(turn: SourceTurn) -> int:
    """Return how many bytes a turn takes as compact JSON."""
    return len(msgspec.json.encode(source_object(turn)))


def sources_size(sizes: Iterable[int]) -> int:
    """Return how many bytes turns of these sizes take as a compact JSON array."""
    told = list(sizes)
    return 2 + sum(told) + max(0, len(told) - 1)


def manifest_size(session_id: str, version: str, source_ids: Sequence[str]) -> int:
    """Return how many bytes the list of a version's turns takes as compact JSON."""
    manifest = {"sessionId": session_id, "version": version, "sourceIds": list(source_ids)}
    return len(msgspec.json.encode(manifest))
