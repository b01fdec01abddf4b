"""What a memory says that it can do: the same object on every surface."""

from __future__ import annotations

import msgspec

from perdure.base.text import shown_number
from perdure.contract.operations import OPERATIONS as CONTRACT
from perdure.errors import InvalidRequest

CONTRACT_VERSION = 1
PROFILE = "temporal-memory-v1"
OPERATIONS = tuple(sorted(CONTRACT))
"""All that a caller may negotiate about: what is asked of a memory, and of its documents, nodes, conversations, store."""


class Features(msgspec.Struct, frozen=True, rename="camel", kw_only=True):
    """Explicit flags: what is not there is False or None, never left out."""

    as_of: bool = True
    known_at: bool = True
    supersession: bool = True
    explain: bool = True
    history: bool = True
    purge: bool = True
    consolidation: bool = True
    embeddings: bool = True
    embedding_dimension: int | None = None
    encryption: bool = True
    documents: bool = True
    repository: bool = True
    conversation: bool = True
    pagination: bool = True
    analysis_profile: str
    embedder_model: str | None = None


class Capabilities(msgspec.Struct, frozen=True, rename="camel"):
    """The contract's version, the profile that this memory serves, and the operations of all groups, sorted."""

    contract_version: int
    profile: str
    operations: tuple[str, ...]
    features: Features


def capabilities(
    contract_version: int, analysis_profile: str, *, dimension: int | None, model: str | None
) -> Capabilities:
    """Return the capabilities for a contract version; raises InvalidRequest for one we do not speak."""
    if type(contract_version) is not int or contract_version != CONTRACT_VERSION:
        told = (
            shown_number(contract_version)
            if type(contract_version) is int
            else type(contract_version).__name__
        )
        raise InvalidRequest(
            f"contract_version must be {CONTRACT_VERSION}, the one that this build speaks, got {told}",
            field="contract_version",
        )
    return Capabilities(
        CONTRACT_VERSION,
        PROFILE,
        OPERATIONS,
        Features(analysis_profile=analysis_profile, embedding_dimension=dimension, embedder_model=model),
    )
