"""Policies: pure decisions, each a protocol with built-in values; the defaults change nothing."""

from perdure.policies.admission import (
    AdmissionPolicy,
    AdmitAll,
    Decision,
    StandardAdmission,
    find_refusal,
)
from perdure.policies.consolidation import Consolidation, ConsolidationPolicy, NoConsolidation
from perdure.policies.duplicates import CollapseDuplicates
from perdure.policies.extraction import EntityExtractor
from perdure.policies.forgetting import (
    ExpiredFor,
    FactSummary,
    ForgettingPolicy,
    KeepAll,
    MaxFacts,
    SupersededFor,
    Superseder,
    reads_content,
)
from perdure.policies.observers import MemoryObserver
from perdure.policies.pruning import Prune
from perdure.policies.recency import (
    Basis,
    ExponentialRecency,
    NoRecency,
    RecencyContext,
    RecencyPolicy,
    age,
    checked_factor,
)
from perdure.policies.relevance import RankingParts, RankingPolicy, Relevance, ScoreOrder, ranking_scores
from perdure.policies.scoring import combined_score, final_score, historical_factor, score_parts
from perdure.policies.supersession import (
    Arrival,
    ExplicitOnly,
    LatestBySubject,
    Slot,
    SlotFact,
    SupersessionDecision,
    SupersessionPolicy,
    checked_decision,
)

__all__ = [
    "AdmissionPolicy",
    "AdmitAll",
    "Arrival",
    "Basis",
    "CollapseDuplicates",
    "Consolidation",
    "ConsolidationPolicy",
    "Decision",
    "EntityExtractor",
    "ExpiredFor",
    "ExplicitOnly",
    "ExponentialRecency",
    "FactSummary",
    "ForgettingPolicy",
    "KeepAll",
    "LatestBySubject",
    "MaxFacts",
    "MemoryObserver",
    "NoConsolidation",
    "NoRecency",
    "Prune",
    "RankingParts",
    "RankingPolicy",
    "RecencyContext",
    "RecencyPolicy",
    "Relevance",
    "ScoreOrder",
    "Slot",
    "SlotFact",
    "StandardAdmission",
    "SupersededFor",
    "Superseder",
    "SupersessionDecision",
    "SupersessionPolicy",
    "age",
    "checked_decision",
    "checked_factor",
    "combined_score",
    "final_score",
    "find_refusal",
    "historical_factor",
    "ranking_scores",
    "reads_content",
    "score_parts",
]
