"""From a file of any known format to entries."""

from __future__ import annotations

import io
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import BinaryIO, Literal

from perdure.base.canonical import strict_json
from perdure.errors import InvalidRequest
from perdure.importers.archives import members
from perdure.importers.conversations import is_conversation, read_conversations
from perdure.importers.entries import Bad, Entry, Place
from perdure.importers.jsonlines import BOM, read_lines
from perdure.transfer.reading import HEAD_BYTES, is_export

Format = Literal["auto", "jsonl", "conversation"]
FORMATS: tuple[Format, ...] = ("auto", "jsonl", "conversation")
DOCUMENT_BYTES_MAX = 256 * 1024 * 1024  # a document is decoded whole
_ZIP = b"PK\x03\x04"
_LINES = (".jsonl", ".ndjson")


def read_file(path: Path, form: Format = "auto") -> Iterator[Entry]:
    """Yield the entries of a file; see `read_stream`. Raises OSError when it cannot be opened."""
    with path.open("rb") as stream:
        yield from read_stream(stream, path.name, form)


def read_stream(stream: BinaryIO, name: str, form: Format = "auto") -> Iterator[Entry]:
    """Yield the entries of a binary stream, in order.

    Args:
        name: names the file in places, and, without its ending, a conversation without a name.
        form: `jsonl` (a fact per line), `conversation`, or `auto`: a zip archive by its first bytes
            (its members one after the other), lines by the ending `.jsonl` or `.ndjson`, otherwise
            whatever the content is.

    A file that cannot be read as what it is gives one Bad entry; nothing is raised for its content.
    """
    head = stream.read(HEAD_BYTES)
    if head.startswith(_ZIP):
        yield from _archive(head + stream.read(), name, form)
    elif is_export(head):
        yield Bad(
            Place(name), "an export of whole spaces; import it by itself, not in an archive (Store.import_)"
        )
    elif form == "jsonl" or (form == "auto" and name.lower().endswith(_LINES)):
        yield from read_lines(_again(head, stream), name)
    else:
        yield from _document(_again(head, stream), name, form)


def _archive(data: bytes, name: str, form: Format) -> Iterator[Entry]:
    try:
        for member, content in members(io.BytesIO(data)):
            if not member.lower().endswith((".json", *_LINES)):
                yield Bad(Place(f"{name}/{member}"), "only .json, .jsonl and .ndjson members can be imported")
            elif content.startswith(_ZIP):
                yield Bad(Place(f"{name}/{member}"), "an archive within an archive; unpack it first")
            else:
                yield from read_stream(io.BytesIO(content), member, form)
    except InvalidRequest as error:
        yield Bad(Place(name), error.message)


def _document(stream: BinaryIO, name: str, form: Format) -> Iterator[Entry]:
    data = stream.read(DOCUMENT_BYTES_MAX + 1)
    if len(data) > DOCUMENT_BYTES_MAX:
        if form == "conversation":
            yield Bad(Place(name), f"longer than {DOCUMENT_BYTES_MAX} bytes; split it")
        else:
            yield from read_lines(_again(data, stream), name)
        return
    try:
        document = strict_json(data.removeprefix(BOM).decode("utf-8"), field="the file")
    except (InvalidRequest, UnicodeDecodeError) as error:
        if form == "auto":
            yield from read_lines(io.BytesIO(data), name)
        else:
            yield Bad(Place(name), error.message if isinstance(error, InvalidRequest) else "not UTF-8")
        return
    if is_conversation(document):
        yield from read_conversations(document, PurePosixPath(name).stem, name)
    elif form == "conversation":
        yield Bad(Place(name), "not a conversation: it has no session_1, nor a list of samples that do")
    else:
        yield from read_lines(io.BytesIO(data), name)


def _again(head: bytes, stream: BinaryIO) -> BinaryIO:
    """Return a stream of what was read already and of what follows."""
    return io.BufferedReader(_Joined(head, stream))


class _Joined(io.RawIOBase):
    def __init__(self, head: bytes, stream: BinaryIO) -> None:
        self._head, self._stream = head, stream

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]
        data = self._head[: len(buffer)] or self._stream.read(len(buffer))
        self._head = self._head[len(buffer) :]
        buffer[: len(data)] = data
        return len(data)
