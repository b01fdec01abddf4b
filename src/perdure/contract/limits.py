"""Every limit of a request, with its one home."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from perdure.model import node_limits

TEXT_BYTES_MAX = 65_536
TEXT_WORDS_MAX = 4_096
DOCUMENT_BYTES_MAX = 1_048_576
METADATA_BYTES_MAX = 65_536
NAME_BYTES_MAX = 1_024  # subject, entity, tag
ENTITIES_MAX = 256
TAGS_MAX = 256
SUPERSEDES_MAX = 256
QUERY_BYTES_MAX = 65_536
REASON_BYTES_MAX = 4_096
SOURCE_TEXT_BYTES_MAX = 65_536
IDEMPOTENCY_KEY_BYTES_MAX = 256
K_MAX = 1_000
CANDIDATES_MAX = 4_096
CANDIDATES_DEFAULT = 100
LIST_DEFAULT = 50
LIST_MAX = 1_000
WORK_DEFAULT = 10_000_000
FRONTIER_DEFAULT = 16_384
BYTES_DEFAULT = 64 * 1024 * 1024
RECEIPT_DAYS = 30
METADATA_KEY_RESERVED = "perdure"
MERGED_IDS_MAX = 256  # digests of merged tellings that a fact keeps, 16 bytes each
DIMENSION_MAX = 4_096  # of an embedding
MODEL_BYTES_MAX = 256  # of an embedder's fingerprint
TRACE_LIMIT = 100  # rejections that a trace lists
TRACE_LIMIT_MAX = 100_000
BATCH_MAX = 100_000  # facts in one transaction; more would hold the writer turn for seconds
SOURCES_MAX = 4_096  # turns of one version of a session, and of one answer
BATCHES = ("facts", "ids", "texts")  # lists whose members are each looked up or stored
MEMBERS: Mapping[str, int] = MappingProxyType(  # of the lists that are one fact's or one question's
    {
        "tags": TAGS_MAX,
        "entities": ENTITIES_MAX,
        "supersedes": SUPERSEDES_MAX,
        "embedding": DIMENSION_MAX,  # a document has fewer units than that
        **dict.fromkeys(("turns", "sources", "anchors", "dropped"), SOURCES_MAX),
    }
)
NODE_MEMBERS: Mapping[str, int] = MappingProxyType(  # likewise of a change set's and a node's
    {
        "operations": node_limits.OPERATIONS_MAX,
        "evidence": node_limits.EVIDENCE_MAX,
        "relations": node_limits.RELATIONS_MAX,
    }
)


@dataclass(frozen=True, slots=True)
class SurfaceLimits:
    """The limits of requests that differ between surfaces."""

    k_max: int
    query_bytes_max: int
    batch_max: int

    def members_max(self, name: str) -> int | None:
        """Return how many members a list of this name in a request may have; None where no number bounds them."""
        if name in BATCHES:
            return self.batch_max
        return MEMBERS.get(name) or NODE_MEMBERS.get(name)


EMBEDDED = SurfaceLimits(K_MAX, QUERY_BYTES_MAX, BATCH_MAX)
HTTP = SurfaceLimits(k_max=100, query_bytes_max=16 * 1024, batch_max=1_000)
BODY_BYTES_MAX = 16 * 1024 * 1024  # of a request over a network
