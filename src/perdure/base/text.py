"""Text folding for exact comparisons (never for ranking)."""

from __future__ import annotations

import unicodedata


def folded_space(text: str) -> str:
    """Return the text stripped, with runs of white space as single spaces; case is kept."""
    return " ".join(text.split())


def folded(text: str) -> str:
    """Return NFKC, casefolded text with single spaces: equal for spellings a person calls the same."""
    return " ".join(unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", text).casefold()).split())
