"""The echo guard: what a memory said itself is no evidence for it."""

from __future__ import annotations

import re
from collections.abc import Iterable

from perdure.base.canonical import checked_text
from perdure.base.text import folded
from perdure.errors import InvalidRequest
from perdure.model.fact import Fact
from perdure.model.hit import Hit

# What `as_prompt` writes. Its content cannot hold the end, since signs of tags are escaped there.
_FENCED = re.compile(r"<facts>\n.*?(?:</facts>|\Z)", re.DOTALL)
_NO_WORD = re.compile(r"[^\w]+")
_WORD_MAX = 10
_NO_LINE_END = re.compile(r"[^\n]")


def without_fences(text: str) -> str:
    """Return the text with what stands in a fence of recalled facts blanked, so that places stay what they are."""
    return _FENCED.sub(lambda found: _NO_LINE_END.sub(" ", found.group()), text)


class Echoes:
    """The texts that a recall has brought, to hold quotes against."""

    def __init__(self, recalled: Iterable[Hit | Fact | str]) -> None:
        """Take hits, facts, or texts as they were in a prompt.

        Raises InvalidRequest for anything else.
        """
        self._texts = [_words(_text_of(one)) for one in recalled]

    def hold(self, text: str) -> bool:
        """Whether a recalled text holds the words of this one, or this one all of those.

        Case, white space and punctuation make no difference. A single short word that was recalled makes no echo of
        what holds it.
        """
        wanted = _words(text)
        return any(
            _within(wanted, told) or (_is_telling(told) and _within(told, wanted)) for told in self._texts
        )


def _words(text: str) -> str:
    return f" {' '.join(_NO_WORD.sub(' ', folded(text)).split())} "


def _within(part: str, whole: str) -> bool:
    # Scripts without spaces have no words to begin at.
    return part in whole or (not part.isascii() and part.strip() in whole)


def _is_telling(words: str) -> bool:
    return " " in words.strip() or len(words) > _WORD_MAX


def _text_of(one: object) -> str:
    if isinstance(one, Hit | Fact):
        return one.text
    if isinstance(one, str):
        return checked_text(one, field="recalled")
    raise InvalidRequest(
        f"recalled must hold hits, facts or texts, got {type(one).__name__}", field="recalled"
    )
