"""How much a law is tried: a little in the ordinary suite, and as many times that as PERDURE_EXAMPLES says."""

from __future__ import annotations

import os

TIMES = int(os.environ.get("PERDURE_EXAMPLES", "1"))


def examples(few: int) -> int:
    """Return how many examples, or seeds, are tried: `few`, times PERDURE_EXAMPLES (1 unless it is set)."""
    return few * TIMES
