"""Digit groups written apart, as in telephone numbers, joined so that the unbroken form finds them."""

from __future__ import annotations

import re
from functools import cache

from perdure.lexical.characters import ascii_digits

GROUPS_MAX = 6
DIGITS_MIN, DIGITS_MAX = 5, 15  # from a short local number to E.164's longest

_SPACES = "\u00a0\u2009\u202f"
# A group ends where no letter follows. Beyond ASCII only spaces, quotes and Chinese, Japanese and Korean text
# may follow, but for its combining marks, so that a composed and a decomposed letter count alike.
_FREE_BEYOND_ASCII = (
    _SPACES
    + "\u1100-\u11ff\u2010-\u201f\u3000-\u3029\u3030-\u3098\u309b-\u30ff\u3400-\u9fff\uac00-\ud7a3\uf900-\ufaff"
    "\uff00-\uffef\U00020000-\U0003ffff"
)
_TIED = rf"[0-9A-Za-z]|[^\x00-\x7f{_FREE_BEYOND_ASCII}]"
_SEPARATOR = rf"(?:\)?[ \-{_SPACES}]\(?|\))"
_TWO_GROUPS = re.compile(rf"[0-9][) \-{_SPACES}]+\(?[0-9]")
_GROUP = re.compile(r"[0-9]+")


@cache
def _run() -> re.Pattern[str]:
    # Compiled on first need: it takes longer than all else here together.
    group = rf"[0-9]+(?!{_TIED})"
    return re.compile(rf"(?<![.,])(?<!{_TIED}){group}(?:{_SEPARATOR}{group}(?![.,][0-9]))+")


def joined_groups(text: str) -> list[tuple[str, str]]:
    """Return (as written, digits joined) for every 2 to 6 neighbouring groups with 5 to 15 digits in all.

    Groups are neighbours across one space, one hyphen or a closing bracket. Ascending by where they begin,
    then by length. At most five for each group, so the cost stays linear in the text.
    """
    plain = ascii_digits(text)
    if not _TWO_GROUPS.search(plain):
        return []
    found: list[tuple[str, str]] = []
    for run in _run().finditer(plain):
        groups = list(_GROUP.finditer(plain, run.start(), run.end()))
        for first in range(len(groups) - 1):
            digits = groups[first][0]
            for last in groups[first + 1 : first + GROUPS_MAX]:
                digits += last[0]
                if len(digits) > DIGITS_MAX:
                    break
                if len(digits) >= DIGITS_MIN:
                    found.append((text[groups[first].start() : last.end()], digits))
    return found
