"""Cutting a turn into pieces to search."""

from __future__ import annotations

import re
from collections.abc import Iterator

# What the small models that embed chunks take in without cutting.
CHUNK_WORDS_MAX = 256
CHUNK_BYTES_MAX = 1_024
_PIECES = re.compile(r"\S+\s*|\s+")


def chunks_of(text: str) -> list[str]:
    """Return pieces that are the text when put together: each at most 256 words and 1,024 bytes of UTF-8.

    Cut before a word, as late as it goes; a word that is longer itself, with the white space after it, is cut
    between characters.
    """
    chunks: list[str] = []
    current, size, words = "", 0, 0
    for piece in _pieces(text):
        length, is_word = len(piece.encode()), not piece.isspace()
        if current and (size + length > CHUNK_BYTES_MAX or words + is_word > CHUNK_WORDS_MAX):
            chunks.append(current)
            current, size, words = "", 0, 0
        current, size, words = current + piece, size + length, words + is_word
    if current:
        chunks.append(current)
    return chunks


def _pieces(text: str) -> Iterator[str]:
    """Yield words with the white space after them, in pieces that fit a chunk."""
    for match in _PIECES.finditer(text):
        piece = match[0]
        while len(piece.encode()) > CHUNK_BYTES_MAX:
            head = _head(piece)
            yield head
            piece = piece[len(head) :]
        if piece:
            yield piece


def _head(text: str) -> str:
    """Return as many characters from the front as fit a chunk."""
    # Cut in bytes, then what was cut through is left out.
    front = text[:CHUNK_BYTES_MAX].encode()[:CHUNK_BYTES_MAX]
    return front.decode(errors="ignore")
