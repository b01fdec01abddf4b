"""Text folding for exact comparisons (never for ranking), and values as messages show them."""

from __future__ import annotations

import re
import unicodedata

DIGITS_SHOWN_MAX = 40
MARKS_SORTED_MIN = 31  # longer than any run of marks in the Stream-Safe Text Format of UAX 15
LENGTH_SORTED_MIN = 1_000  # below it, no order of marks costs more than a millisecond
KNOWN_PARTS_MAX = 8_192  # more than any one language's everyday characters

# What nobody sees: the code points that Unicode 15 calls Default_Ignorable_Code_Point, reserved ones included,
# so that every version of Python folds alike; and the controls that are no white space.
_UNSEEN = re.compile(
    "[\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f\u3164"
    "\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufff8\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff"
    "\x00-\x08\x0e-\x1b\x7f-\x84\x86-\x9f]+"
)
# What moves a cursor, ends a line or turns the direction of what follows, as far as JSON lets it pass.
_RAW_IN_JSON = re.compile("[\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]")
RETOLD_CHARACTERS_MIN = 24  # shorter texts ("yes, please") may be equal and mean different things
_NAME = re.compile(r"[A-Za-z0-9_-]{1,32}")  # a mistyped name; longer or otherwise, it may be people's text
_LONG_RUN = re.compile(rb"[^\0]{%d,}" % MARKS_SORTED_MIN)


def counted(number: float | str, noun: str, many: str | None = None) -> str:
    """Return a number with its noun, or with a verb: `1 fact`, `2 facts`; `many` where that is no added s."""
    return f"{number} {noun if number == 1 else many or noun + 's'}"


def shown_number(value: float) -> str:
    """Return the number for a message; one of very many digits is named by its size."""
    # Python refuses to write out integers of more than 4,300 digits.
    if isinstance(value, int) and value.bit_length() > 3 * DIGITS_SHOWN_MAX:
        return f"an integer of {value.bit_length()} bits"
    return str(value)


def shown_real(value: float) -> str:
    """Return the number for a message about a field that takes any number: a whole one without a point, as 7.

    Whoever sends 7 is told 7, also where it was read as a float in between.
    """
    return shown_number(value).removesuffix(".0")


def shown_kind(value: object) -> str:
    """Return what a message may say of a value that may be people's text: the length, else the type."""
    if isinstance(value, str):
        return f"a text of {counted(str.__len__(value), 'character')}"
    return type(value).__name__


def shown_choice(value: object) -> str:
    """Return what a message may say of a value that stands where a name is wanted: one that may be a name, itself."""
    if isinstance(value, str) and _NAME.fullmatch(value):
        return repr(str.__str__(value))
    return shown_kind(value)


def escaped_in_json(text: str) -> str:
    """Return JSON text in which no character of a string moves a cursor, ends a line or turns the direction."""
    return _RAW_IN_JSON.sub(lambda match: f"\\u{ord(match[0]):04x}", text)


def folded_space(text: str) -> str:
    """Return the text stripped, with runs of white space as single spaces; case is kept."""
    return " ".join(text.split())


def folded(text: str) -> str:
    """Return the text in the form that is equal for spellings a person calls the same.

    NFKC, casefolded, without characters that nobody sees, with single spaces; "" for a text of which
    nothing is seen. Costs little more than time linear in the length.
    """
    text = _UNSEEN.sub("", text)
    if text.isascii():
        return " ".join(text.casefold().split())
    once = unicodedata.normalize("NFKC", _with_marks_in_order(text)).casefold()
    return " ".join(unicodedata.normalize("NFKC", once).split())


def retold_form(text: str) -> str | None:
    """Return the form in which a text is told again: single spaces, lower case, punctuation kept.

    None for a text that is shorter than 24 characters in this form, which is never taken for told again.
    """
    form = " ".join(text.split()).lower()
    return form if len(form) >= RETOLD_CHARACTERS_MIN else None


class _Parts(dict[int, str]):
    """Code point to its NFKD, filled as characters are met. Holds single characters, never words."""

    def __missing__(self, code_point: int) -> str:
        if len(self) >= KNOWN_PARTS_MAX:
            self.clear()
        parts = self[code_point] = unicodedata.normalize("NFKD", chr(code_point))
        return parts


_PARTS = _Parts()


def _with_marks_in_order(text: str) -> str:
    """Return a text of the same normal forms in which long runs of marks are in canonical order.

    Normalising puts marks in order at a cost of the square of their number; those in order cost nothing.
    """
    if len(text) < LENGTH_SORTED_MIN:
        return text
    spread = text.translate(_PARTS)
    marks = bytes(map(unicodedata.combining, spread))
    ordered, done = [], 0
    for run in _LONG_RUN.finditer(marks):
        start, end = run.span()
        ordered += [spread[done:start], *sorted(spread[start:end], key=unicodedata.combining)]
        done = end
    return "".join(ordered) + spread[done:] if ordered else text
