"""The bytes of a lexical index: what a state cache keeps so that postings need no text to be rebuilt.

Only the forward index is stored; postings and statistics follow from it. All numbers are little-endian,
uint32 unless said otherwise:

    magic (8 bytes), version, 0, k1 (float64), b (float64), rows, terms, words, bytes of text
    per row: its length, with its state in the high two bits (0 live, 1 hidden, 2 erased)
    per row: the number of its words
    the words: an entry is a term number in the low 30 bits and a tf of 1 to 3 in the high two,
               or 0 there and the tf in the next word
    per term: its length in bytes
    the terms' UTF-8 text
    CRC-32 of all the bytes before

A row's entries stand in order of first appearance and terms are numbered by first use, so equal contents
have equal bytes. A term that only erased rows held is not in them.
"""

from __future__ import annotations

import struct
import zlib
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from perdure.lexical.bm25 import K1_MAX, LENGTH_MAX, TF_MAX

Integers = npt.NDArray[np.int64]

LIVE, HIDDEN, ERASED = 0, 1, 2

MAGIC = b"PerdLexI"
VERSION = 1
_HEADER = struct.Struct("<8sIIddIIII")
_STATE_SHIFT = 30
_TERM_MASK = (1 << 30) - 1
_SMALL_TF = 4  # a tf below this fits beside the term number


@dataclass(frozen=True, slots=True)
class Contents:
    """What an index holds, as columns.

    lengths, states and entry_counts have a place per row; numbers and tfs one per entry, row after row;
    a number is a place in terms.
    """

    k1: float
    b: float
    lengths: Integers
    states: Integers
    entry_counts: Integers
    numbers: Integers
    tfs: Integers
    terms: list[str]


def encode(contents: Contents) -> bytes:
    """Return the snapshot; the terms may be numbered in any way, and unused ones are left out."""
    numbers, terms = _by_first_use(contents)
    words, word_counts = _pack(contents, numbers)
    texts = [term.encode() for term in terms]
    text = b"".join(texts)
    header = _HEADER.pack(
        MAGIC, VERSION, 0, contents.k1, contents.b, len(contents.lengths), len(terms), len(words), len(text)
    )
    columns = [
        contents.lengths | contents.states << _STATE_SHIFT,
        word_counts,
        words,
        np.array([len(each) for each in texts], dtype=np.int64),
    ]
    body = header + b"".join(column.astype("<u4").tobytes() for column in columns) + text
    return body + struct.pack("<I", zlib.crc32(body))


def decode(blob: bytes) -> Contents:
    """Return what a snapshot holds.

    Raises:
        ValueError: the bytes are not a whole and consistent snapshot.
    """
    if len(blob) < _HEADER.size + 4 or blob[:8] != MAGIC:
        raise _damaged("it is no snapshot of a lexical index")
    if zlib.crc32(blob[:-4]) != int.from_bytes(blob[-4:], "little"):
        raise _damaged("its checksum does not match")
    _, version, zero, k1, b, rows, term_count, word_count, text_size = _HEADER.unpack_from(blob)
    if (version, zero) != (VERSION, 0):
        raise _damaged(f"its version is {version}, not {VERSION}")
    if not (0 <= k1 <= K1_MAX and 0 <= b <= 1):
        raise _damaged("k1 or b is out of range")
    sizes = [rows, rows, word_count, term_count]
    if len(blob) != _HEADER.size + 4 * sum(sizes) + text_size + 4:
        raise _damaged("its size is not what its header says")
    integers = np.frombuffer(blob, dtype="<u4", count=sum(sizes), offset=_HEADER.size).astype(np.int64)
    packed, word_counts, words, text_lengths = np.split(integers, np.cumsum(sizes)[:-1])
    entry_counts, numbers, tfs = _unpack(words, word_counts)
    terms = _split_text(blob[-4 - text_size : -4], text_lengths)
    lengths, states = packed & _TERM_MASK, packed >> _STATE_SHIFT
    contents = Contents(k1, b, lengths, states, entry_counts, numbers, tfs, terms)
    _check_rows(contents)
    _check_entries(contents)
    return contents


def _damaged(problem: str) -> ValueError:
    return ValueError(f"the snapshot is damaged: {problem}. Rebuild the index.")


def _by_first_use(contents: Contents) -> tuple[Integers, list[str]]:
    used, first, inverse = np.unique(contents.numbers, return_index=True, return_inverse=True)
    order = np.argsort(first)
    place = np.empty(len(used), dtype=np.int64)
    place[order] = np.arange(len(used))
    return place[inverse], [contents.terms[number] for number in used[order].tolist()]


def _pack(contents: Contents, numbers: Integers) -> tuple[Integers, Integers]:
    small = contents.tfs < _SMALL_TF
    sizes = np.where(small, 1, 2)
    ends = np.cumsum(sizes)
    words = np.zeros(int(ends[-1]) if len(ends) else 0, dtype=np.int64)
    words[ends - sizes] = numbers | np.where(small, contents.tfs << _STATE_SHIFT, 0)
    words[ends[~small] - 1] = contents.tfs[~small]
    before = np.concatenate(([0], ends))
    stops = np.cumsum(contents.entry_counts)
    return words, before[stops] - before[stops - contents.entry_counts]


def _unpack(words: Integers, word_counts: Integers) -> tuple[Integers, Integers, Integers]:
    """Split the words into entries; in a run of words with 0 in the high bits every second one is a tf."""
    if word_counts.sum() != len(words):
        raise _damaged("its rows do not use all of its words")
    places = np.arange(len(words))
    high = words >> _STATE_SHIFT
    run_start = np.maximum.accumulate(np.where(high == 0, -1, places))
    is_tf = (high == 0) & ((places - run_start) % 2 == 0)
    entries = np.flatnonzero(~is_tf)
    stops = np.cumsum(word_counts)
    wide = entries[high[entries] == 0]
    starts = (stops - word_counts)[word_counts > 0]
    if is_tf[starts].any() or (len(wide) and (wide[-1] + 1 == len(words))):
        raise _damaged("an entry is cut off")
    tfs = high[entries]
    tfs[tfs == 0] = words[wide + 1]
    if (words[wide + 1] < _SMALL_TF).any() or (words[wide + 1] > TF_MAX).any():
        raise _damaged("a tf is out of range")
    before = np.concatenate(([0], np.cumsum(~is_tf)))
    return before[stops] - before[stops - word_counts], words[entries] & _TERM_MASK, tfs


def _split_text(text: bytes, lengths: Integers) -> list[str]:
    if lengths.sum() != len(text):
        raise _damaged("its terms do not use all of its text")
    ends = np.cumsum(lengths)
    sizes = zip(ends.tolist(), lengths.tolist(), strict=True)
    try:
        terms = [text[end - size : end].decode() for end, size in sizes]
    except UnicodeDecodeError:
        raise _damaged("a term is not UTF-8") from None  # the cause holds the text
    if len(set(terms)) != len(terms):
        raise _damaged("its terms are not distinct")
    return terms


def _check_rows(contents: Contents) -> None:
    lengths, counts, erased = contents.lengths, contents.entry_counts, contents.states == ERASED
    stops = np.cumsum(counts)
    totals = np.concatenate(([0], np.cumsum(contents.tfs)))
    sums = totals[stops] - totals[stops - counts]
    capped_before = np.concatenate(([0], np.cumsum(contents.tfs == TF_MAX)))
    capped = capped_before[stops] > capped_before[stops - counts]
    fits = np.where(capped, sums <= lengths, sums == lengths)
    fits = np.where(lengths == LENGTH_MAX, capped | (sums >= LENGTH_MAX), fits)
    whole = (counts > 0) & (lengths > 0) & (lengths <= LENGTH_MAX) & fits
    if (contents.states > ERASED).any() or not np.where(erased, (counts == 0) & (lengths == 0), whole).all():
        raise _damaged("a row's entries do not fit its length or state")


def _check_entries(contents: Contents) -> None:
    numbers = contents.numbers
    used, first = np.unique(numbers, return_index=True)
    if len(used) != len(contents.terms) or (used != np.arange(len(used))).any() or (np.diff(first) < 0).any():
        raise _damaged("its terms are not numbered by first use")
    row_of_entry = np.repeat(np.arange(len(contents.lengths)), contents.entry_counts)
    if len(np.unique(row_of_entry * max(len(used), 1) + numbers)) != len(numbers):
        raise _damaged("a row holds a term twice")
