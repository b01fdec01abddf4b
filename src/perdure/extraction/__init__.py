"""From turns to candidates: what an extractor proposes becomes nodes that nobody is told until they are reviewed."""

from perdure.extraction.extraction import CandidateExtractor, Extraction
from perdure.extraction.openai import OpenAIExtractor
from perdure.extraction.rules import RuleExtractor
from perdure.model.extraction import CandidateDraft, Extracted, Quote, Refusal

__all__ = [
    "CandidateDraft",
    "CandidateExtractor",
    "Extracted",
    "Extraction",
    "OpenAIExtractor",
    "Quote",
    "Refusal",
    "RuleExtractor",
]
