"""Looks for a marker, or a vector, in every byte of every file under a directory, in every form that a store might keep of it.

The files are read in a process of their own: to open and close a live database in a process that has it open
would drop that process's locks on it. Alone, without the package, the module is that process:
`python scan.py` reads requests, a line each, and answers each with a line of what it found.
"""

from __future__ import annotations

import atexit
import base64
import functools
import hashlib
import json
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

CHUNK_BYTES = 1 << 20
PREFIX_BYTES = 10

Hits = dict[str, list[str]]
"""The forms found, by the file's name under the directory."""


def holders(directory: Path, marker: str) -> Hits:
    """Return which files under the directory hold which forms of the marker."""
    return found(directory, forms_of(marker))


def found(directory: Path, forms: dict[str, bytes]) -> Hits:
    """Return which files under the directory hold which of these byte strings, by the strings' names."""
    request = {"directory": str(directory), "forms": {name: form.hex() for name, form in forms.items()}}
    hits: Hits = json.loads(_scanner().ask(json.dumps(request)))
    return hits


class _Scanner:
    """The process that reads the files; one serves all tests, and ends with the process that asks it."""

    def __init__(self) -> None:
        command = [sys.executable, "-I", __file__]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        atexit.register(self.close)

    def ask(self, line: str) -> str:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(line + "\n")
        self._process.stdin.flush()
        answer = self._process.stdout.readline()
        assert answer, "the scanning process ended early"
        return answer

    def close(self) -> None:
        self._process.communicate()


@functools.cache
def _scanner() -> _Scanner:
    return _Scanner()


def forms_of(marker: str) -> dict[str, bytes]:
    """Return the marker as stored bytes, by the form's name: encodings, cases, index terms, a prefix, armours."""
    from perdure import MemoryConfig  # noqa: PLC0415 - the scanning process needs no package
    from perdure.lexical.profile import get_profile  # noqa: PLC0415

    forms = {}
    for case, text in (("", marker), ("lower ", marker.lower()), ("upper ", marker.upper())):
        for encoding in ("utf-8", "utf-16-le", "utf-16-be"):
            forms[case + encoding] = text.encode(encoding)
    forms["prefix"] = marker.encode()[:PREFIX_BYTES]
    # A single character of a term is in other texts too; terms of more are the marker's own.
    for term in get_profile(MemoryConfig().profile).document_terms(marker):
        if len(term.encode()) > 3:
            forms[f"term {term}"] = term.encode()
    forms |= _base64_forms(marker.encode())
    forms |= {"hex": marker.encode().hex().encode(), "HEX": marker.encode().hex().upper().encode()}
    return forms


def vector_forms(vector: Sequence[float]) -> dict[str, bytes]:
    """Return a vector as stored bytes, by the form's name: its numbers, any three in a row, its codes, armours.

    Three numbers in a row lie in any sixteen bytes of a vector, wherever these begin.
    """
    import numpy as np  # noqa: PLC0415 - the scanning process needs no package

    from perdure.vectors.coding import ByteCodes  # noqa: PLC0415

    numbers = np.asarray(vector, dtype="<f4")
    data = numbers.tobytes()
    forms = {"vector": data, "float64": numbers.astype("<f8").tobytes()}
    for start in range(len(numbers) - 2):
        run = data[4 * start : 4 * start + 12]
        forms |= {f"numbers {start}": run, f"hex of numbers {start}": run.hex().encode()}
        forms |= {f"{name} of numbers {start}": form for name, form in _base64_forms(run).items()}
    codes = ByteCodes(len(numbers)).encode(
        numbers[np.newaxis], np.linalg.norm(numbers.astype(float))[np.newaxis]
    )
    return forms | {"codes": codes.codes[0, : len(numbers)].tobytes()}


def _base64_forms(data: bytes) -> dict[str, bytes]:
    """Return what base64 makes of the bytes wherever they begin in what is armoured, without the ends."""
    forms = {}
    for shift in range(3):
        whole = base64.b64encode(bytes(shift) + data)
        # The first and the last group of four may hold bits of what stands beside.
        forms[f"base64 +{shift}"] = whole[4:-4]
    return forms


class _Search:
    """Looks for one set of byte strings, and remembers what it found in which bytes.

    Most of what a database's directory holds is zeros, is there several times, or was there at the scan before.
    """

    def __init__(self, forms: dict[str, bytes]) -> None:
        self._forms = forms
        self._overlap = max(map(len, forms.values())) - 1
        self._known: dict[bytes, frozenset[str]] = {}  # by the digest of a chunk

    def under(self, directory: Path) -> Hits:
        hits: Hits = {}
        for path in sorted(directory.rglob("*")):
            if path.is_file():
                there = {name for chunk in _chunks(path, self._overlap) for name in self._names_in(chunk)}
                if there:
                    hits[str(path.relative_to(directory))] = sorted(there)
        return hits

    def _names_in(self, chunk: bytes) -> frozenset[str]:
        digest = hashlib.sha256(chunk).digest()
        if digest not in self._known:
            self._known[digest] = frozenset(name for name, form in self._forms.items() if form in chunk)
        return self._known[digest]


def _chunks(path: Path, overlap: int) -> Iterator[bytes]:
    """Yield all bytes of a file, each chunk after the first with the end of the one before in front."""
    tail = b""
    with path.open("rb") as file:
        while data := file.read(CHUNK_BYTES):
            yield tail + data
            tail = (tail + data)[-overlap:] if overlap else b""


@functools.lru_cache(maxsize=4)
def _search_for(forms: str) -> _Search:
    """Return the search for byte strings that are told in JSON; those of the last requests are kept."""
    return _Search({name: bytes.fromhex(form) for name, form in json.loads(forms).items()})


def _serve() -> None:
    for line in sys.stdin:
        asked = json.loads(line)
        search = _search_for(json.dumps(asked["forms"]))
        sys.stdout.write(json.dumps(search.under(Path(asked["directory"]))) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    _serve()
