"""Digit groups written apart, as in telephone numbers, joined so that the unbroken form finds them."""

from __future__ import annotations

import re

GROUPS_MAX = 6
DIGITS_MIN, DIGITS_MAX = 5, 15  # from a short local number to E.164's longest

_SEPARATOR = r"(?:\)?[ \-\u00a0\u2009\u202f]\(?|\))"
_RUN = re.compile(
    r"(?<![0-9A-Za-z.,])[0-9]+(?![0-9A-Za-z])(?:" + _SEPARATOR + r"[0-9]+(?![0-9A-Za-z]|[.,][0-9]))+"
)
_TWO_GROUPS = re.compile(r"[0-9][) \-\u00a0\u2009\u202f]+\(?[0-9]")
_GROUP = re.compile(r"[0-9]+")


def joined_groups(text: str) -> list[tuple[str, str]]:
    """Return (as written, digits joined) for every 2 to 6 neighbouring groups with 5 to 15 digits in all.

    Groups are neighbours across one space, one hyphen or a closing bracket. Ascending by where they begin,
    then by length. At most five for each group, so the cost stays linear in the text.
    """
    if not _TWO_GROUPS.search(text):
        return []
    found: list[tuple[str, str]] = []
    for run in _RUN.finditer(text):
        groups = list(_GROUP.finditer(text, run.start(), run.end()))
        for first in range(len(groups) - 1):
            digits = groups[first][0]
            for last in groups[first + 1 : first + GROUPS_MAX]:
                digits += last[0]
                if len(digits) > DIGITS_MAX:
                    break
                if len(digits) >= DIGITS_MIN:
                    found.append((text[groups[first].start() : last.end()], digits))
    return found
