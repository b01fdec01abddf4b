"""The shared fixtures at the command line: the replies of the engine, as `--json` prints them.

The command runs in this process, on copies of the two stores on disk. Cases that are refused or that read share one.
"""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from contract.cases import FIXTURES
from contract.stores import SECRET, open_store
from contract.test_client import beyond_http, writes
from contract.typed import LINES, WITHOUT_COMMAND, WITHOUT_OPTION, CannotBeTyped, line_of
from perdure.base.clock import SystemClock
from perdure.contract.operations import OPERATIONS
from unit.cli.command_line import run, store_path

__all__ = ["run", "store_path"]

ALL = json.loads(FIXTURES.read_text(encoding="utf-8"))
# The command line has the limits of the engine in this process, so what only HTTP refuses it answers.
WITHIN = [case for case in ALL if not beyond_http(case)]

# What the command line says in words of its own, since it names words and options, and what was typed. Code and field
# are those of every surface there too.
OWN_WORDS = re.compile(
    "|".join(
        (
            r"Missing argument '.+'\.",
            r"No such option: .+",
            r"query is blank; perdure list shows all facts",
            r"\w+ must be a (whole )?number, got '.+'",
            r"\w+ must be a JSON object in braces",
            r"\w+ must be two moments with a slash between them",
            r"\w+ is not an ISO 8601 time; .+",
            r"--clear takes one of .+",
            r"forget takes exactly one of .+",
            r"principal is missing: .+ \(--principal .+\)",
        )
    ),
    re.DOTALL,
)


def typable() -> Iterator[tuple[dict[str, Any], list[str]]]:
    """Yield the cases that can be typed, each with its line."""
    for case in WITHIN:
        try:
            yield case, line_of(case["op"], case["request"])
        except CannotBeTyped:
            continue


ASKED = list(typable())


class Places:
    """Where the two stores are, and copies of them to write to."""

    def __init__(self, folder: Path) -> None:
        self._folder, self._count = folder, 0
        self.secret, self.moments = folder / "secret", {}
        self.secret.touch(0o600)
        self.secret.write_bytes(SECRET)
        for kind in ("empty", "full"):
            with open_store(kind, folder / kind) as store:
                self.moments[kind] = store.clock.now()
            shutil.copytree(folder / kind, folder / f"{kind}-read")

    def of(self, case: dict[str, Any]) -> Path:
        if not writes(case):
            return self._folder / f"{case['store']}-read"
        # Never of the one that is read: whoever reads events has them derived, so the next have other numbers.
        shared = self._folder / case["store"]
        self._count += 1
        return Path(shutil.copytree(shared, self._folder / f"{case['store']}-{self._count}"))


@pytest.fixture(scope="module")
def places(tmp_path_factory):
    return Places(tmp_path_factory.mktemp("places"))


@pytest.fixture
def answered(places, run, monkeypatch, tmp_path):
    """Runs the line of a case and returns what came of it."""

    def answered_(case, line):
        monkeypatch.setattr(SystemClock, "now", lambda self: places.moments[case["store"]])
        before = ["--store", str(places.of(case)), "--secret-file", str(places.secret)]
        if (vector := case["request"].get("embedding")) is not None:
            file = tmp_path / "vector.json"
            file.write_text(json.dumps(vector), encoding="utf-8")
            end = line.index("--json")
            line = [*line[:end], f"--embedding-file={file}", *line[end:]]
        return run(*before, *line)

    return answered_


def exit_code(op: str, reply: dict[str, Any]) -> int:
    if "error" in reply:
        return 2 if reply["error"]["code"] == "invalid_request" else 1
    found = {name: value for name, value in reply.items() if name in FOUND}
    if op in FORGETS and not reply["purged"]:
        found["forgotten"] = reply["forgotten"]
    return 1 if found and not any(found.values()) else 0


FOUND = {
    "fact",
    "history",
    "document",
    "exists",
    "deleted",
    "conversation",
    "restored",
    "unblocked",
}  # of nothing, the exit code says that nothing is there
FORGETS = {
    "forget",
    "forgetConversation",
}  # of what is named, and where it is not there, the exit code says so


@pytest.mark.parametrize(("case", "line"), ASKED, ids=[case["name"] for case, _ in ASKED])
def test_a_command_prints_the_reply_of_the_fixture(answered, case, line):
    outcome, wanted = answered(case, line), case["reply"]
    found = outcome.json
    if "error" in wanted and OWN_WORDS.fullmatch(found["error"]["message"]):
        found["error"].pop("message")
        wanted = {"error": {name: told for name, told in wanted["error"].items() if name != "message"}}
    assert json.dumps(found) == json.dumps(wanted)
    assert outcome.code == exit_code(case["op"], wanted)


def test_most_fixtures_can_be_typed_and_every_operation_is_asked():
    assert len(ASKED) > 450
    asked = {case["op"] for case, _ in ASKED}
    assert asked == {case["op"] for case in ALL} & set(LINES)


def test_every_field_of_a_request_is_typed_or_has_a_reason_why_it_is_not():
    for op, line in LINES.items():
        operation = OPERATIONS[op]
        kinds = [operation.request, *(operation.many or ())[1:2]]
        fields = {(op, name) for kind in kinds for name in kind.__struct_encode_fields__}
        typed = {(op, name) for name in (*line.words, *line.options)}
        assert fields - typed == {told for told in WITHOUT_OPTION if told[0] == op}
        assert typed <= fields
    assert set(OPERATIONS) - set(LINES) == set(WITHOUT_COMMAND)
