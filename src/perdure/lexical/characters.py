"""Classes of characters, and the one normal form in which texts are analysed.

A class is one letter per character, so that a text's classes form a string of equal length that regular
expressions can read:

    a letter    d digit    m mark    k Chinese, Japanese, Korean    t Thai, Lao, Khmer, Myanmar and kin
    p pictograph    e emoji modifier    r regional indicator    g tag character    z zero-width joiner
    w white space    f invisible (control, format, variation selector)    u unassigned or private use
    ; punctuation outside ASCII    s other symbol    an ASCII symbol is its own class
"""

from __future__ import annotations

import re
import unicodedata
from bisect import bisect_right
from functools import cache
from itertools import accumulate

from perdure.lexical.unicode_table import CLASSES, GAPS

# Bounds the memory of classes looked up so far; more than any one language's everyday characters.
KNOWN_CLASSES_MAX = 8_192
# Unicode's Stream-Safe Text Format (UAX 15) allows this many marks in a row. Longer runs are cut there,
# because putting marks in order costs the square of their number.
MARKS_MAX = 30

_ASCII_CLASSES = {
    code_point: "a"
    if chr(code_point).isalpha()
    else "d"
    if chr(code_point).isdigit()
    else "w"
    if chr(code_point).isspace()
    else chr(code_point)
    if chr(code_point).isprintable()
    else "f"
    for code_point in range(128)
}
_ONE_SPELLING = str.maketrans(
    {
        **dict.fromkeys("\u2018\u2019\u02bc\u2032", "'"),
        **dict.fromkeys("\u2010\u2011\u2212\u05be", "-"),
        "\u2044": "/",
    }
)
_VISIBLE_ASCII = re.compile(r"[!-~]")
_INVISIBLE_ASCII = re.compile(r"[\x00-\x08\x0e-\x1b\x7f]+")
# Hebrew points and accents, Arabic vowel signs and Koranic marks, and the Arabic stretching sign.
_OPTIONAL_SIGNS = re.compile(
    "[\u0591-\u05bd\u05bf\u05c1\u05c2\u05c4\u05c5\u05c7\u0610-\u061a\u0640\u064b-\u065f\u0670\u06d6-\u06dc"
    "\u06df-\u06e4\u06e7\u06e8\u06ea-\u06ed\u08d3-\u08e1\u08e3-\u08ff]+"
)
# Joiners and tags count only where they make one picture of several characters.
_KEPT = re.compile(r"pe?g*(?:zpe?g*)*|[^zg]+?")
_CJK_OR_REST = re.compile(r"k|[^k]+")


@cache
def _runs() -> tuple[list[int], str]:
    # Decoded on first need: a process that only meets ASCII never pays for it.
    starts = list(accumulate((int(gap, 16) for gap in GAPS.split()), initial=0x80))[1:]
    return starts, CLASSES


class _Classes(dict[int, str]):
    """Code point to class, filled as characters are met. Holds single characters, never words."""

    def __missing__(self, code_point: int) -> str:
        starts, letters = _runs()
        letter = letters[bisect_right(starts, code_point) - 1]
        if len(self) >= KNOWN_CLASSES_MAX:
            self.clear()
            self.update(_ASCII_CLASSES)
        self[code_point] = letter
        return letter


_CLASSES = _Classes(_ASCII_CLASSES)


class _Digits(dict[int, int]):
    """Decimal digit of any script to the ASCII digit; every other code point to itself."""

    def __missing__(self, code_point: int) -> int:
        # Only of assigned code points: those of later versions of Unicode have no value everywhere.
        found = unicodedata.decimal(chr(code_point), None) if classes(chr(code_point)) == "d" else None
        if len(self) >= KNOWN_CLASSES_MAX:
            self.clear()
        self[code_point] = known = code_point if found is None else ord("0") + found
        return known


_DIGITS = _Digits()


def classes(text: str) -> str:
    """Return the class of each character of a text, as a string of the same length."""
    return text.translate(_CLASSES)


def ascii_digits(text: str) -> str:
    """Return a text of the same length with the decimal digits of every script as 0 to 9."""
    return text if text.isascii() else text.translate(_DIGITS)


def is_blank(text: str) -> bool:
    """Say whether a text has no visible character: only white space, controls and format characters."""
    if _VISIBLE_ASCII.search(text):
        return False
    return text.isascii() or not classes(text).strip("wfzg")


def count_words(text: str) -> int:
    """Return the number of words of a text, as limits count them.

    A word is a run between white space with a visible character. Each Chinese, Japanese or Korean character
    counts as one, and so does each stretch of other letters, digits or pictographs between them.
    """
    if text.isascii():
        return len(_INVISIBLE_ASCII.sub("", text).split())
    count = 0
    for chunk in classes(text).split("w"):
        if "k" in chunk:
            pieces = _CJK_OR_REST.findall(chunk)
            count += sum(1 for piece in pieces if any(letter in "kadtpru" for letter in piece))
        elif chunk.strip("wfzg"):
            count += 1
    return count


def normalise(chunk: str) -> str:
    """Return a text in NFKC, casefolded, with ASCII digits, without invisible characters and optional vowel signs.

    Canonically equal texts and texts equal but for case give one result. A code point that Unicode 14 does
    not assign is kept as it is, and normalisation does not reach across it: later versions of Unicode may
    give it a case or a composition. Costs time linear in the length.
    """
    if chunk.isascii():
        return _INVISIBLE_ASCII.sub("", chunk).lower()
    chunk = _drop_invisible(chunk)
    letters = classes(chunk)
    if "u" in letters:
        chunk = "".join(
            chunk[m.start() : m.end()] if m[0][0] == "u" else _fold_case(chunk[m.start() : m.end()])
            for m in re.finditer("u+|[^u]+", letters)
        )
    else:
        chunk = _fold_case(chunk)
    if "d" in letters:
        chunk = ascii_digits(chunk)
    return _OPTIONAL_SIGNS.sub("", chunk.translate(_ONE_SPELLING))


def optional_signs(chunk: str) -> str:
    """Return the vowel signs that `normalise` drops from a text, each once, by code point."""
    if chunk.isascii():
        return ""
    decomposed = unicodedata.normalize("NFKD", "".join(sorted(set(chunk))))
    return "".join(sorted(set("".join(_OPTIONAL_SIGNS.findall(decomposed)))))


def _drop_invisible(chunk: str) -> str:
    letters = classes(chunk)
    if "f" in letters:
        chunk = "".join(c for c, letter in zip(chunk, letters, strict=True) if letter != "f")
        letters = letters.replace("f", "")
    if "z" in letters or "g" in letters:
        chunk = "".join(chunk[m.start() : m.end()] for m in _KEPT.finditer(letters))
    return chunk


def _fold_case(text: str) -> str:
    letters = classes(text)
    if "m" * MARKS_MAX not in letters:
        return _nfkc_casefold(text)
    pieces = re.finditer(rf"(?:[^m]*m{{1,{MARKS_MAX}}}|[^m]+)", letters)
    return "".join(_nfkc_casefold(text[m.start() : m.end()]) for m in pieces)


def _nfkc_casefold(text: str) -> str:
    # Unicode's NFKC_Casefold (definition R5 of chapter 3.13): one round is not enough where folding a
    # decomposed character yields one that composes again.
    folded = unicodedata.normalize("NFD", text).casefold()
    return unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", folded).casefold())
