"""The share of a query's words and two-character pieces that a text holds.

Words are runs of characters that Unicode calls alphabetic or numeric. Chinese, Japanese and Korean characters are cut
out of them and stand in whole runs and in overlapping pairs. Nothing is weighed, folded (but to lower case) or left
out, so the number is the same in every store, for every language, and under every version of Python.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator
from functools import cache

from perdure.lexical.characters import classes

KNOWN_MAX = 8_192  # more than any one language's everyday characters
_WORD, _CJK, _GAP = "w", "k", " "
_PIECE = re.compile("w+|k+")
_CJK_RANGES = (
    "1100-11ff 2e80-2fff 3005-3007 3031-3035 3040-30ff 3100-318f 3190-31bf 31f0-31ff 3400-4dbf 4e00-9fff "
    "a960-a97f ac00-d7ff f900-faff ff66-ff9f 20000-2fa1f 30000-323af"
)
# Other_Alphabetic of Unicode 14, as text analysis has it: vowel signs and letters in circles. And the one letter that
# analysis does not see, a filler.
_ALPHABETIC_RANGES = (
    "345 5b0-5bd 5bf 5c1-5c2 5c4-5c5 5c7 610-61a 64b-657 659-65f 670 6d6-6dc 6e1-6e4 6e7-6e8 6ed 711 "
    "730-73f 7a6-7b0 816-817 81b-823 825-827 829-82c 8d4-8df 8e3-8e9 8f0-903 93a-93b 93e-94c 94e-94f "
    "955-957 962-963 981-983 9be-9c4 9c7-9c8 9cb-9cc 9d7 9e2-9e3 a01-a03 a3e-a42 a47-a48 a4b-a4c a51 "
    "a70-a71 a75 a81-a83 abe-ac5 ac7-ac9 acb-acc ae2-ae3 afa-afc b01-b03 b3e-b44 b47-b48 b4b-b4c b56-b57 "
    "b62-b63 b82 bbe-bc2 bc6-bc8 bca-bcc bd7 c00-c03 c3e-c44 c46-c48 c4a-c4c c55-c56 c62-c63 c81-c83 cbe- "
    "cc4 cc6-cc8 cca-ccc cd5-cd6 ce2-ce3 d00-d03 d3e-d44 d46-d48 d4a-d4c d57 d62-d63 d81-d83 dcf-dd4 dd6 "
    "dd8-ddf df2-df3 e31 e34-e3a e4d eb1 eb4-eb9 ebb-ebc ecd f71-f81 f8d-f97 f99-fbc 102b-1036 1038 "
    "103b-103e 1056-1059 105e-1060 1062-1064 1067-106d 1071-1074 1082-108d 108f 109a-109d 1712-1713 "
    "1732-1733 1752-1753 1772-1773 17b6-17c8 1885-1886 18a9 1920-192b 1930-1938 1a17-1a1b 1a55-1a5e "
    "1a61-1a74 1abf-1ac0 1acc-1ace 1b00-1b04 1b35-1b43 1b80-1b82 1ba1-1ba9 1bac-1bad 1be7-1bf1 1c24-1c36 "
    "1de7-1df4 24b6-24e9 2de0-2dff a674-a67b a69e-a69f a802 a80b a823-a827 a880-a881 a8b4-a8c3 a8c5 a8ff "
    "a926-a92a a947-a952 a980-a983 a9b4-a9bf a9e5 aa29-aa36 aa43 aa4c-aa4d aa7b-aa7d aab0 aab2-aab4 "
    "aab7-aab8 aabe aaeb-aaef aaf5 abe3-abea fb1e ffa0 10376-1037a 10a01-10a03 10a05-10a06 10a0c-10a0f "
    "10d24-10d27 10eab-10eac 11000-11002 11038-11045 11073-11074 11082 110b0-110b8 110c2 11100-11102 "
    "11127-11132 11145-11146 11180-11182 111b3-111bf 111ce-111cf 1122c-11234 11237 1123e 112df-112e8 "
    "11300-11303 1133e-11344 11347-11348 1134b-1134c 11357 11362-11363 11435-11441 11443-11445 "
    "114b0-114c1 115af-115b5 115b8-115be 115dc-115dd 11630-1163e 11640 116ab-116b5 1171d-1172a "
    "1182c-11838 11930-11935 11937-11938 1193b-1193c 11940 11942 119d1-119d7 119da-119df 119e4 "
    "11a01-11a0a 11a35-11a39 11a3b-11a3e 11a51-11a5b 11a8a-11a97 11c2f-11c36 11c38-11c3e 11c92-11ca7 "
    "11ca9-11cb6 11d31-11d36 11d3a 11d3c-11d3d 11d3f-11d41 11d43 11d47 11d8a-11d8e 11d90-11d91 "
    "11d93-11d96 11ef3-11ef6 16f4f 16f51-16f87 16f8f-16f92 16ff0-16ff1 1bc9e 1e000-1e006 1e008-1e018 "
    "1e01b-1e021 1e023-1e024 1e026-1e02a 1e947 1f130-1f149 1f150-1f169 1f170-1f189"
)
_ALPHANUMERIC_CLASSES = frozenset("adkt")  # letters and numbers, of the scripts that analysis tells apart


def tokens(text: str) -> frozenset[str]:
    """Return the words of a text, its runs of Chinese, Japanese and Korean characters, and their pairs."""
    return frozenset(_tokens(text.lower()))


def coverage(asked: frozenset[str], text: str) -> float:
    """Return which share of the tokens (at least one) the text holds, 0 to 1."""
    return len(asked & tokens(text)) / len(asked)


def _tokens(text: str) -> Iterator[str]:
    kinds = "".join(map(_KINDS.__getitem__, text))
    for piece in _PIECE.finditer(kinds):
        start, end = piece.span()
        yield text[start:end]
        if kinds[start] == _CJK:
            yield from (text[at : at + 2] for at in range(start, end - 1))


class _Kinds(dict[str, str]):
    """Character to its kind, filled as characters are met. Holds single characters, never words."""

    def __missing__(self, character: str) -> str:
        if len(self) >= KNOWN_MAX:
            self.clear()
        kind = self[character] = _kind(character)
        return kind


_KINDS = _Kinds()


def _kind(character: str) -> str:
    code_point = ord(character)
    if _within(code_point, _CJK_RANGES):
        return _CJK
    if classes(character) in _ALPHANUMERIC_CLASSES or _within(code_point, _ALPHABETIC_RANGES):
        return _WORD
    return _GAP


@cache
def _bounds(ranges: str) -> list[int]:
    """Return where ranges begin and where they are over, in turn, ascending."""
    found: list[int] = []
    for one in ranges.split():
        first, _, last = one.partition("-")
        found += [int(first, 16), int(last or first, 16) + 1]
    return found


def _within(code_point: int, ranges: str) -> bool:
    return bisect_right(_bounds(ranges), code_point) % 2 == 1
