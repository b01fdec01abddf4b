"""The lines of a journal: what each says, and the digest that tells whether it says what was written.

Every line is `{"v":1,"seq":…,"sha":"…","space":…,…}` and a line feed. `sha` is 16 bytes of BLAKE2b in hex over
the line's number in the file, from 1, and the line's bytes without those 32 digits and the line feed; keyed with the store's
secret, but in line 1, which has to be read before the secret is known.
"""

from __future__ import annotations

import re
from base64 import b64encode
from hashlib import blake2b
from hmac import compare_digest
from struct import Struct
from typing import NamedTuple, Protocol

import msgspec

from perdure.errors import Corrupt, Unavailable
from perdure.log.content import SpaceContent
from perdure.log.journal.readable import find_readable, record_bytes
from perdure.log.protocol import ADVICE, CHECK_BYTES, Head

VERSION = 1  # of the lines; the shape up to `space` and the digest are those of all versions to come
FORMAT = "perdure journal"
_LINE = re.compile(
    rb'(\{"v":(\d{1,9}),"seq":(\d{1,19}),"sha":")([0-9a-f]{32})(","space":(\d{1,19}),.*\})\n', re.DOTALL
)
_number = Struct("<Q").pack


class StoreLine(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Line 1: what the file is, whose secret it has, and whether journal.key keeps that."""

    format: str
    verifier: bytes
    kept: bool


class HeadLine(msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """The end of a batch: where the space stands, and what the lines of its records do not say."""

    erasures: int
    digest: bytes
    name: bytes | None = None  # of the space, where the batch is its first and it has one
    erased: tuple[int, ...] = ()  # seqs of the batch that have no line, ascending
    keys: tuple[tuple[bytes, int], ...] = ()  # (hash, seq), ascending


class _Said(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    v: int
    seq: int
    sha: str
    space: int
    store: StoreLine | None = None
    head: HeadLine | None = None
    record: dict[str, object] | None = None
    data: bytes | None = None


class RecordLine(NamedTuple):
    """One record of a batch."""

    data: bytes


class Line(NamedTuple):
    """A line that was verified."""

    seq: int
    space: int
    said: StoreLine | HeadLine | RecordLine


class Digest(Protocol):
    """The digest of one line, in hex."""

    def __call__(self, number: int, before: bytes, after: bytes) -> bytes: ...


class LineParts(NamedTuple):
    """A line taken apart: its digest, and what that covers."""

    before: bytes
    version: int
    seq: int
    sha: bytes
    after: bytes
    space: int

    @property
    def raw(self) -> bytes:
        """The line with its line feed."""
        return b"%b%b%b\n" % (self.before, self.sha, self.after)


_decode = msgspec.json.Decoder(_Said).decode
_encode = msgspec.json.Encoder().encode


def line_digest(secret: bytes) -> Digest:
    """Return the digest of lines of a store with this secret; of line 1 for an empty one."""
    new = blake2b(key=secret, digest_size=CHECK_BYTES, person=b"journal line").copy

    def digest(number: int, before: bytes, after: bytes) -> bytes:
        hashed = new()
        hashed.update(_number(number))
        hashed.update(before)
        hashed.update(after)
        return hashed.hexdigest().encode()

    return digest


plain_digest = line_digest(b"")  # of line 1


def make_verifier(secret: bytes) -> bytes:
    """Return what a journal keeps of its secret: enough to refuse another one, and no more."""
    return blake2b(b"verifier", key=secret, digest_size=32, person=b"journal").digest()


def store_line(secret: bytes, *, kept: bool) -> bytes:
    """Return line 1."""
    said = _encode(StoreLine(FORMAT, make_verifier(secret), kept))
    return _line(plain_digest, 1, (0, 0), b'"store":' + said)


class Writer:
    """Makes lines, one after the other."""

    def __init__(self, secret: bytes, after: int) -> None:
        """Number lines from `after` + 1 on."""
        self._digest = line_digest(secret)
        self.number = after

    def record(self, space: int, seq: int, data: bytes) -> bytes:
        """Return a record's line."""
        shown = find_readable(data)
        said = b'"data":"%b"' % b64encode(data) if shown is None else b'"record":' + shown
        return self._next(space, seq, said)

    def head(self, space: int, head: Head, said: HeadLine) -> bytes:
        """Return the line that ends a batch."""
        return self._next(space, head.seq, b'"head":' + _encode(said))

    def _next(self, space: int, seq: int, said: bytes) -> bytes:
        self.number += 1
        return _line(self._digest, self.number, (seq, space), said)


def head_line(
    head: Head, *, name: bytes | None, erased: list[int], keys: list[tuple[bytes, int]]
) -> HeadLine:
    """Return what ends a batch after which the space stands at `head`."""
    return HeadLine(head.erasures, head.digest, name, tuple(erased), tuple(sorted(dict(keys).items())))


def whole_space_head(space: SpaceContent, name: bytes | None) -> HeadLine:
    """Return what ends the one batch that holds all of a space."""
    erased = [seq for seq, row in enumerate(space.rows, 1) if row.data is None]
    return head_line(space.head, name=name, erased=erased, keys=list(space.keys.items()))


def read_store_line(raw: bytes, name: str) -> StoreLine:
    """Return what line 1 of a journal says.

    Raises:
        Corrupt: it is damaged.
        Unavailable: a newer build wrote it.
    """
    said = read_line(1, raw, plain_digest, name).said
    if not isinstance(said, StoreLine) or said.format != FORMAT:
        raise damaged_line(name, 1)
    return said


def read_line(number: int, raw: bytes, digest: Digest, name: str) -> Line:
    """Return what a line says, with its line feed, verified.

    Args:
        number: which line it is, from 1.
        name: of the file, for messages.

    Raises:
        Corrupt: it is not what was written there.
        Unavailable: a newer build wrote it.
    """
    parts = find_parts(raw)
    if parts is None:
        raise damaged_line(name, number)
    if not compare_digest(digest(number, parts.before, parts.after), parts.sha):
        raise damaged_line(name, number, space=parts.space, seq=parts.seq)
    if parts.version != VERSION:
        raise Unavailable(
            f"{name} has lines of format {parts.version}, this library reads up to {VERSION}: upgrade perdure"
        )
    try:
        line = _decode(raw)
    except msgspec.MsgspecError as error:
        raise damaged_line(name, number, space=parts.space, seq=parts.seq) from error
    return Line(line.seq, line.space, _said(line, name, number))


def find_parts(raw: bytes) -> LineParts | None:
    """Return the parts of what has the shape of a line, unverified; None for anything else."""
    found = _LINE.fullmatch(raw)
    if found is None:
        return None
    before, version, seq, sha, after, space = found.groups()
    return LineParts(before, int(version), int(seq), sha, after, int(space))


def _said(line: _Said, name: str, number: int) -> StoreLine | HeadLine | RecordLine:
    if line.record is not None:
        return RecordLine(record_bytes(line.record))
    if line.data is not None:
        return RecordLine(line.data)
    said = line.head or line.store
    if said is None:
        raise damaged_line(name, number, space=line.space, seq=line.seq)
    return said


def damaged_line(name: str, number: int, *, space: int | None = None, seq: int | None = None) -> Corrupt:
    where = f" (record {seq} of space {space})" if space and seq else ""
    return Corrupt(
        f"line {number} of {name}{where} is not what was written there: undo what was edited; else {ADVICE}",
        space=space or None,
        seq=seq or None,
    )


def _line(digest: Digest, number: int, place: tuple[int, int], said: bytes) -> bytes:
    before = b'{"v":%d,"seq":%d,"sha":"' % (VERSION, place[0])
    after = b'","space":%d,%b}' % (place[1], said)
    return b"%b%b%b\n" % (before, digest(number, before, after), after)
