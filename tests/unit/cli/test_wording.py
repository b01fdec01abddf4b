"""Errors name what was typed where people read them, and the contract's fields where programs do."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from perdure.cli.main import command_line
from perdure.cli.wording import name_as_typed
from perdure.errors import InvalidRequest


def commands(group: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    for name, one in group.commands.items():
        if hasattr(one, "commands"):
            yield from commands(one, f"{path}{name} ")
        else:
            yield f"{path}{name}", one


ALL = dict(commands(command_line()))


@pytest.mark.parametrize("name", ALL)
def test_every_parameter_of_every_command_is_named_as_it_is_typed(name: str):
    params = ALL[name].params
    for param in params:
        field = param.name.rstrip("_")
        error = InvalidRequest(f"{field} must be told, got '{field}'", field=field)
        name_as_typed(error, params)
        typed, rest = str(error).split(" ", 1)
        assert typed in param.opts if param.param_type_name == "option" else typed.isupper()
        assert rest == f"must be told, got '{field}'"


BAD = [
    (("remember", "x", "--valid-from", "soon"), "--valid-from is not", "validFrom is not"),
    (("remember", "x", "--importance", "7"), "--importance must", "importance must"),
    (("recall", "x", "--as-of", "soon"), "--as-of is not", "asOf is not"),
    (("recall", "x", "--valid-during", "soon"), "--valid-during must be two", "validDuring must be two"),
    (("recall", "x", "--max-bytes", "1"), "--max-bytes must", "maxBytes must"),
    (("recall", "x", "--embedding-file", "/nope"), "--embedding-file cannot", "embeddingFile cannot"),
    (("recall", "x", "--weight-lexical", "-1"), "--weight-lexical must", "weights.lexical must"),
    (("recall", "x", "--k", "0"), "--k must", "k must"),
    (("recall", " "), "QUERY is blank", "query is blank"),
    (("diff", "soon"), "FROM/UNTIL must be two", "knownAt must be two"),
    (("diff", "2024-02-01/2024-01-01"), "FROM/UNTIL must end", "knownAt must end"),
    (("documents", "put", "d", "x", "--if-version", "one"), "--if-version must", "ifVersion must"),
    (("forget", "--event-before", "soon", "--yes"), "--event-before is not", "scope.before is not"),
    (("conversation", "recall", "x", "--max-bytes", "0"), "--max-bytes must", "maxBytes must"),
]


@pytest.mark.parametrize(("line", "for_people", "for_programs"), BAD)
def test_what_is_wrong_is_named_for_whom_it_is_told(run, line, for_people, for_programs):
    refused = run(*line)
    assert refused.code == 2
    assert refused.err.startswith(f"perdure: {for_people}")
    told = run(*line, "--json")
    assert told.error["message"].startswith(for_programs)
    assert run("--json", *line).err == told.err


def test_a_name_of_hosts_is_refused_by_its_option(run):
    assert run("serve", "--allow-host", "").err.startswith("perdure: --allow-host must")


@pytest.mark.parametrize(
    ("option", "variable"), [("--key-file", "PERDURE_KEY_FILE"), ("--secret-file", "PERDURE_SECRET_FILE")]
)
@pytest.mark.parametrize("content", [None, b"", b"\xff"])
def test_a_file_that_cannot_be_used_is_named_by_what_named_it(
    run, tmp_path, monkeypatch, option, variable, content
):
    path = tmp_path / "named"
    if content is not None:
        path.write_bytes(content)
        path.chmod(0o600)
    assert f"file of {option} " in run("list", option, str(path)).err
    monkeypatch.setenv(variable, str(path))
    refused = run("list")
    assert refused.code == 2
    assert f"file of {variable} " in refused.err


def test_moments_in_errors_are_written_out(run):
    told = run("remember", "x", "--valid-from", "2024-01-01", "--valid-to", "2023-01-01").err
    assert "--valid-to (2023-01-01T00:00:00Z) must lie after --valid-from (2024-01-01T00:00:00Z)" in told
    run("remember", "Ann lives in Paris", "--id", "paris", "--valid-from", "2024-01-01")
    assert "--at (2023-01-01T00:00:00Z) must lie after" in run("end", "paris", "--at", "2023-01-01").err
    run("end", "paris", "--at", "2024-06-01")
    assert "closed at 2024-06-01T00:00:00Z" in run("end", "paris", "--at", "2025-01-01").err
