"""Text folding for exact comparisons (never for ranking), and numbers as messages show them."""

from __future__ import annotations

import unicodedata

DIGITS_SHOWN_MAX = 40


def shown_number(value: float) -> str:
    """Return the number for a message; one of very many digits is named by its size."""
    # Python refuses to write out integers of more than 4,300 digits.
    if isinstance(value, int) and value.bit_length() > 3 * DIGITS_SHOWN_MAX:
        return f"an integer of {value.bit_length()} bits"
    return str(value)


def folded_space(text: str) -> str:
    """Return the text stripped, with runs of white space as single spaces; case is kept."""
    return " ".join(text.split())


def folded(text: str) -> str:
    """Return NFKC, casefolded text with single spaces: equal for spellings a person calls the same."""
    return " ".join(unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", text).casefold()).split())
