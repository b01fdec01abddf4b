"""Runs the command `perdure` in this process, on a store of the test's own."""

from __future__ import annotations

import functools
import io
import json
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from perdure.cli.main import command_line, main

LATEST = '{"supersession":"latest-by-subject"}'
# To make a command takes longer than to run it, and a run leaves no trace in it.
made_once = functools.cache(command_line)


@dataclass(frozen=True)
class Outcome:
    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        """Return the one object on standard output."""
        return json.loads(self.out)

    @property
    def error(self) -> dict[str, Any]:
        """Return the error object, after checking that standard error tells the same in one line."""
        told: dict[str, Any] = self.json["error"]
        assert self.err.splitlines()[-1] == f"perdure: {told['message']}"
        return told


Run = Callable[..., Outcome]


@pytest.fixture
def store_path(tmp_path: Path) -> Path:
    return tmp_path / "store"


@pytest.fixture
def run(store_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    """Runs one command line; `stdin` is text or bytes."""
    monkeypatch.setenv("PERDURE_STORE", str(store_path))
    monkeypatch.delenv("PERDURE_CONFIG", raising=False)
    monkeypatch.setattr("perdure.cli.main.command_line", made_once)

    def run_(*args: str, stdin: str | bytes = b"") -> Outcome:
        data = stdin.encode() if isinstance(stdin, str) else stdin
        streams = {name: _stream() for name in ("stdout", "stderr")}
        with monkeypatch.context() as patch:
            patch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(data), encoding="utf-8"))
            for name, stream in streams.items():
                patch.setattr(sys, name, stream)
            with pytest.raises(SystemExit) as ended:
                main(list(args))
        assert isinstance(ended.value.code, int)
        return Outcome(ended.value.code, *(_written(stream) for stream in streams.values()))

    return run_


def _stream() -> io.TextIOWrapper:
    return io.TextIOWrapper(io.BytesIO(), encoding="utf-8")


def _written(stream: io.TextIOWrapper) -> str:
    stream.flush()
    assert isinstance(stream.buffer, io.BytesIO)
    return stream.buffer.getvalue().decode()


@pytest.fixture
def latest(tmp_path: Path) -> tuple[str, str]:
    """Options of a configuration in which a newer fact of a subject replaces the older one."""
    path = tmp_path / "latest.json"
    path.write_text(LATEST)
    return ("--config", str(path))


def texts(outcome: Outcome) -> list[str]:
    """Return the texts of a recall, a listing or a history printed as JSON."""
    told = outcome.json
    facts = (
        [hit["fact"] for hit in told["results"]]
        if "results" in told
        else told.get("items", told.get("history"))
    )
    return [fact["text"] for fact in facts]


def remember(run: Run, text: str, *options: str) -> str:
    """Tell a fact and return its id."""
    outcome = run("remember", text, *options, "--json")
    assert outcome.code == 0, outcome.err
    return str(outcome.json["id"])
