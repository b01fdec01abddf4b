"""Coverage-guided fuzzing of what reads text and bytes from outside: `python -m bench.fuzz TARGET [options of libFuzzer]`.

Needs the package atheris, which is no dependency: its wheels are for Linux and Python 3.11 to 3.13. Ends at the first
failure and writes the input beside; `-runs=100000` or `-max_total_time=60` bound it. A seeded form of the same
laws runs with the tests, in tests/fuzz.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from contextlib import suppress
from importlib import import_module
from typing import Any

from perdure.errors import PerdureError
from perdure.lexical.languages import PROFILES
from perdure.lexical.profile import get_profile, is_blank
from perdure.log.records import decode, encode
from perdure.memory.config import MemoryConfig


def analysis(data: bytes) -> None:
    profile = get_profile(PROFILES[data[0] % len(PROFILES)] if data else PROFILES[0])
    text = data[1:].decode("utf-8", "replace")
    held, asked = profile.document_terms(text), profile.query_terms(text)
    assert bool(held) is bool(asked) is not is_blank(text)
    assert set(asked) <= set(held)
    assert {term for _, terms in profile.query_words(text) for term in terms} == set(asked)


def records(data: bytes) -> None:
    with suppress(PerdureError):
        record = decode(data)
        assert decode(encode(record)) == record or record != record  # NaN


def configuration(data: bytes) -> None:
    with suppress(PerdureError):
        MemoryConfig.from_json(data)


TARGETS: dict[str, Callable[[bytes], None]] = {
    "analysis": analysis,
    "records": records,
    "configuration": configuration,
}


def main() -> None:
    name = sys.argv[1] if len(sys.argv) > 1 else ""
    if name not in TARGETS:
        sys.exit(f"name a target: {', '.join(TARGETS)}")
    atheris: Any = import_module("atheris")
    atheris.instrument_all()
    atheris.Setup([sys.argv[0], *sys.argv[2:]], TARGETS[name])
    atheris.Fuzz()


if __name__ == "__main__":
    main()
