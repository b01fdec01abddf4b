"""The terms of one chunk: a run of a text between white space, taken apart by script and by joint."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import pairwise

from perdure.lexical.characters import classes, is_blank, normalise, optional_signs
from perdure.lexical.words import TERM_LENGTH_MAX, Language, bounded, without_accents

# A compound of more parts is a list or encoded data: its parts are kept, the whole is not.
PARTS_MAX = 64
SYMBOLS_MAX = 32  # characters of a term made of symbols only

# Most chunks: one word of ASCII letters and digits with sentence punctuation. Taken here for speed only.
_PLAIN = re.compile(r"[\"']?([A-Za-z0-9]+)[.,;:!?\"']*")
_SCRIPTS = re.compile(
    r"(?P<unspaced>(?:km*)+|(?:tm*)+)"
    r"|(?P<picture>rr|pe?g*(?:zpe?g*)*|[er])"
    r"|(?P<unknown>u)"
    r"|(?P<piece>(?:[adm'+#/\\:@_$%&*=~^s]|(?<!\.)\.(?!\.)|(?<!-)-(?!-)|(?<=d),(?=d))+)"
)
_UNIT = re.compile(r"[kt]m*")
_PICTURE = re.compile(r"p")
_VISIBLE_WORD = re.compile(r"[admktperu]")
# A piece starts with `.` only before a word (.NET, .5) and with `-` only before a digit.
_BEFORE_CORE = re.compile(r"(?:(?!\.[ad]|-d)['.:&=\-])*")
_AFTER_CORE = "'.:-&=/@$~^\\"
_EMPHASIS = re.compile(r"(\*+|~+|_(?!_))([^*~]+)\1")
_ATOM = re.compile(
    r"(?P<number>d+(?:\.d+)+|d{1,3}(?:,d{2,3})+(?:\.d+)?(?!d)|d{1,2}(?::dd){1,2}(?![:d]))"
    r"|(?P<plus>[adm]+(?:\+\+|\#)(?![adm+\#]))"
    r"|(?P<prefix>a[am]*(?=d+\.d))"
    r"|(?P<word>[adm]+(?:'[adm]+)*)"
)
_SECTION = re.compile(r"[^/\\@=&:]+")
_SHORT_PREFIX = re.compile(r"[am]{1,2}-[am]{2,}")
_ABBREVIATION = re.compile(r"(?:am*){1,2}(?:\.am*){1,7}")  # U.S.A. and Ph.D., which many write USA and PhD
_MOMENT = re.compile(
    r"([0-9]{4}-[0-9]{2}-[0-9]{2})t([0-9]{2}:[0-9]{2}(?::[0-9]{2}(?:\.[0-9]+)?)?)(z|[+-][0-9]{2}:?[0-9]{2})?"
)
_CLITICS = frozenset({"s", "ll", "re", "ve", "d", "m"})
# Marks of ordinary sentences: too frequent to be terms unless they stand alone.
_NO_SYMBOL = frozenset("admktperuwfzg;.,:!?'\"-")


@dataclass(frozen=True, slots=True)
class ChunkTerms:
    """The analysed terms of one chunk, each list in the order of the text, with repeats.

    `document` is what the index holds. `content` is the part of it that a query asks for, `loose` the stop
    words and symbols, which a query asks for only when it has nothing else.
    """

    language: Language
    document: list[str] = field(default_factory=list)
    content: list[str] = field(default_factory=list)
    loose: list[str] = field(default_factory=list)

    def ask(self, terms: Iterable[str]) -> None:
        """Add terms to index and to ask for."""
        added = list(terms)
        self.document.extend(added)
        self.content.extend(added)

    def ask_last(self, terms: Iterable[str]) -> None:
        """Add terms to index, and to ask for when a query has no others."""
        added = list(terms)
        self.document.extend(added)
        self.loose.extend(added)

    def store(self, terms: Iterable[str]) -> None:
        """Add terms to index only."""
        self.document.extend(terms)


def analyse(chunk: str, language: Language) -> ChunkTerms:
    """Return the terms of a chunk. A chunk with a visible character has at least one in content or loose."""
    terms = ChunkTerms(language)
    if plain := _PLAIN.fullmatch(chunk):
        _add_plain(terms, plain[1].lower())
        return terms
    text = normalise(chunk)
    letters = classes(text)
    for match in _SCRIPTS.finditer(letters):
        part = text[match.start() : match.end()]
        match match.lastgroup:
            case "unspaced":
                _add_unspaced(terms, part, match[0])
            case "picture":
                _add_picture(terms, part, match[0])
            case "unknown":
                terms.ask([part])
            case _:
                _add_piece(terms, part, match[0])
    _add_symbols(terms, chunk, text, letters)
    return terms


def written_form(chunk: str) -> str:
    """Return a chunk as written, without the sentence punctuation and brackets around its words."""
    inner = chunk.strip("()[]{}<>\"'`,;!?:\u201c\u201d\u2018\u2019\u00ab\u00bb\u2026").rstrip(".")
    return inner if _VISIBLE_WORD.search(classes(inner)) else chunk


def _add_unspaced(terms: ChunkTerms, run: str, letters: str) -> None:
    # A query asks for pairs, because single characters would find every row that shares one with it. The
    # single ones are stored so that a query of one character finds its rows.
    units = [run[m.start() : m.end()] for m in _UNIT.finditer(letters)] if "m" in letters else list(run)
    singles = [bounded(unit) for unit in units]
    if len(units) == 1:
        terms.ask(singles)
    else:
        terms.ask([bounded(left + right) for left, right in pairwise(units)])
        terms.store(singles)


def _add_picture(terms: ChunkTerms, picture: str, letters: str) -> None:
    terms.ask([bounded(picture)])
    if letters[0] == "p" and len(letters) > 1:
        terms.ask(picture[m.start()] for m in _PICTURE.finditer(letters))


def _add_piece(terms: ChunkTerms, piece: str, letters: str) -> None:
    start, end = _core(letters)
    core, letters = piece[start:end], letters[start:end]
    if moment := _MOMENT.fullmatch(core):
        _add_moment(terms, core, *moment.groups())
        return
    atoms = list(_ATOM.finditer(letters))
    if atoms and atoms[0][0] != letters and len(atoms) <= PARTS_MAX:
        terms.ask(_wholes(terms.language, core, letters, len(atoms)))
        if _ABBREVIATION.fullmatch(letters):
            _add_plain(terms, core.replace(".", ""))
    for atom in atoms:
        _add_atom(terms, core[atom.start() : atom.end()], atom)


def _add_moment(terms: ChunkTerms, whole: str, date: str, time: str, zone: str | None) -> None:
    """Add a date and a time that a letter joins (2024-05-01T10:30:00Z), so that either finds them."""
    terms.ask([bounded(whole), date.replace("-", "")])
    for part in filter(None, (date, time, zone)):
        _add_piece(terms, part, classes(part))


def _core(letters: str) -> tuple[int, int]:
    """Return where a piece begins and ends once sentence punctuation and emphasis marks are cut off."""
    before = _BEFORE_CORE.match(letters)
    start = before.end() if before else 0
    end = max(start, len(letters.rstrip(_AFTER_CORE)))
    if end - start <= TERM_LENGTH_MAX and (marked := _EMPHASIS.fullmatch(letters, start, end)):
        return marked.span(2)
    return start, end


def _wholes(language: Language, core: str, letters: str, parts: int) -> Iterator[str]:
    """Yield a compound's terms as a whole: all of it, its sections, and a short prefix joined on (email)."""
    yield bounded(without_accents(core))
    if _SHORT_PREFIX.fullmatch(letters):
        yield bounded(language.stem(without_accents(core.replace("-", ""))))
    if parts <= 2:
        return
    for section in _SECTION.finditer(letters):
        start, end = _core(section[0])
        if end - start < len(letters) and len(_ATOM.findall(section[0])) > 1:
            offset = section.start()
            yield bounded(without_accents(core[offset + start : offset + end]))


def _add_atom(terms: ChunkTerms, text: str, atom: re.Match[str]) -> None:
    match atom.lastgroup:
        case "number":
            terms.ask([bounded(text)])
            if "," in text:
                terms.ask([bounded(text.replace(",", ""))])
        case "plus":
            terms.ask([bounded(text)])
            _add_plain(terms, text.rstrip("+#"))
        case "prefix" if text == "v":
            return  # the letter of a version number: v1.2.10 is also found as 1.2.10
        case _:
            _add_word(terms, text)


def _add_word(terms: ChunkTerms, word: str) -> None:
    """Add the terms of a word with or without apostrophes.

    dog's gives dog, don't gives dont, and o'brien gives obrien, o and brien.
    """
    base, apostrophe, last = word.rpartition("'")
    if apostrophe and last in _CLITICS:
        word = base
        base, apostrophe, last = word.rpartition("'")
    _add_plain(terms, word.replace("'", ""))
    if apostrophe and not (last == "t" and base.endswith("n")):
        for part in word.split("'"):
            _add_plain(terms, part)


def _add_plain(terms: ChunkTerms, word: str) -> None:
    found, is_stop_word = terms.language.terms(word)
    if is_stop_word:
        terms.ask_last(found[:1])
        terms.ask(found[1:])
    else:
        terms.ask(found)


def _add_symbols(terms: ChunkTerms, chunk: str, text: str, letters: str) -> None:
    """Add each symbol beside words once; a chunk without words is also one term, whatever its symbols."""
    if terms.document:
        symbols = (c for c, letter in zip(text, letters, strict=True) if letter not in _NO_SYMBOL)
        terms.ask_last(list(dict.fromkeys(symbols))[:SYMBOLS_MAX])
        return
    visible = _without_blanks(text) + optional_signs(chunk)  # here they belong to no letter
    if visible:
        terms.ask_last([visible[:SYMBOLS_MAX]])
    if len(visible) > 1:
        terms.ask_last(list(dict.fromkeys(visible))[:SYMBOLS_MAX])


def _without_blanks(text: str) -> str:
    return "".join(character for character in text if not is_blank(character))
