"""The reference is current, and it holds every public name, option, default and code."""

from __future__ import annotations

import dataclasses
import os
import re
import subprocess
import sys
import typing
from collections import Counter
from collections.abc import Iterable

import pytest
from scripts.reference_pages import commands, pages, settings, source

import perdure
import perdure.embedders
import perdure.evaluation
import perdure.policies
from markdown_page import anchors, run_page
from perdure import ManualClock, Memory, MemoryConfig, Store, errors
from perdure.contract import limits
from perdure.contract.operations import OPERATIONS
from perdure.contract.schema import openapi
from perdure.documents.documents import Documents
from perdure.documents.index import DocumentIndex
from perdure.mcp.arguments import input_schema, output_schema
from perdure.mcp.catalogue import TOOLS
from perdure.memory.config import Limits
from perdure.model.event import EVENT_TYPES
from perdure.policies.choices import camel_case
from source_tree import ROOT

FOLDER = ROOT / "docs" / "reference"
BETWEEN_LAYERS = {"Moved"}  # never reaches a caller
INSIDE = {"Store.memory_of"}  # what Memory.open asks of its store
PACKAGES = (perdure, perdure.policies, perdure.embedders, perdure.evaluation)


def page(name: str) -> str:
    return (FOLDER / name).read_text(encoding="utf-8")


def headed(text: str) -> set[str]:
    """Return what a page has an entry for."""
    return set(re.findall(r"^#{2,4} `([^`]+)`", text, re.MULTILINE))


def rows(text: str) -> set[str]:
    """Return what the first cells of a page's tables name, option for option."""
    cells = re.findall(r"^\| ([^|]+) \|", text, re.MULTILINE)
    return {name for cell in cells for name in re.findall(r"`([^`]+)`", cell)}


def missing(names: Iterable[str], told: set[str]) -> list[str]:
    return sorted(set(names) - told)


def test_every_page_is_what_the_sources_make_of_it():
    command = [sys.executable, ROOT / "scripts" / "reference.py", "--check"]
    checked = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (checked.returncode, checked.stderr) == (0, "")


WITHOUT_EXTRAS = """
import runpy, sys
for name in ("granian", "httpx", "litestar", "mcp", "onnxruntime", "opentelemetry", "prometheus_client", "uvicorn"):
    sys.modules[name] = None
sys.path.insert(0, "scripts")
sys.argv = ["reference.py", "--check"]
runpy.run_path("scripts/reference.py", run_name="__main__")
"""


def test_no_page_depends_on_the_machine_its_terminal_or_the_extras_that_it_has():
    narrow = {
        "COLUMNS": "30",
        "TERM": "dumb",
        "LC_ALL": "C",
        "PYTHONHASHSEED": "7",
        "PERDURE_STORE": "elsewhere",
    }
    checked = subprocess.run(
        [sys.executable, "-c", WITHOUT_EXTRAS],
        cwd=ROOT,
        env={**os.environ, **narrow, "HOME": "/nowhere"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (checked.returncode, checked.stderr) == (0, "")


def without_a_line(text: str) -> str:
    """Return a page without the first row or heading of what is generated on it."""
    generated = re.search(r"<!-- reference: [^\n]+ -->\n(.*?)<!-- end -->", text, re.DOTALL)
    lost = next(line for line in generated[1].splitlines() if line.startswith(("|", "#")))
    return text.replace(f"{lost}\n", "", 1)


@pytest.mark.parametrize("first", [0, 1])
def test_the_pages_that_lost_a_line_are_not_current_and_all_others_are(first, tmp_path):
    losing = sorted(path.name for path in FOLDER.glob("*.md") if path.name != "index.md")[first::2]
    for path in FOLDER.glob("*.md"):
        text = without_a_line(page(path.name)) if path.name in losing else page(path.name)
        (tmp_path / path.name).write_text(text, encoding="utf-8")
    assert pages.stale(tmp_path) == losing


@pytest.mark.parametrize("module", PACKAGES, ids=lambda module: module.__name__)
def test_every_public_name_has_an_entry(module):
    told = headed(page("python.md")) | headed(page("errors.md"))
    short = {name.rsplit(".", 1)[-1] for name in told}
    assert missing(module.__all__, short) == []


def test_a_name_that_two_packages_have_has_an_entry_for_each():
    told = Counter(name.rsplit(".", 1)[-1] for name in headed(page("python.md")))
    several = Counter(name for module in PACKAGES for name in module.__all__)
    assert {name for name, count in several.items() if 1 < count > told[name]} == set()


@pytest.mark.parametrize("kind", [Memory, Store, Documents, DocumentIndex])
def test_every_call_has_an_entry(kind):
    calls = {f"{kind.__name__}.{name}" for name in dir(kind) if not name.startswith("_")}
    assert missing(calls - INSIDE, headed(page("python.md"))) == []


@pytest.mark.parametrize("kind", [Memory, Store, Documents])
def test_every_parameter_of_a_call_is_on_the_page(kind):
    text = page("python.md")
    for name in sorted(vars(kind).keys() | {name for base in kind.__bases__ for name in vars(base)}):
        call = getattr(kind, name)
        if name.startswith("_") or f"{kind.__name__}.{name}" in INSIDE or not callable(call):
            continue
        entry = text.split(f"#### `{kind.__name__}.{name}`\n", 1)[1].split("\n```\n", 1)[0]
        parameters = call.__code__.co_varnames[: call.__code__.co_argcount + call.__code__.co_kwonlyargcount]
        told = set(re.findall(r"\b(\w+):", entry))
        assert missing(set(parameters) - {"self", "cls"}, told) == []


def test_every_type_of_the_package_that_a_signature_names_has_an_entry():
    text = page("python.md")
    told = {name.rsplit(".", 1)[-1] for name in headed(text) | headed(page("errors.md"))}
    named = set()
    for code in re.findall(r"^```python\n(.*?)^```$", text, re.MULTILINE | re.DOTALL):
        for annotation in re.findall(r"(?::|->) ([^=#\n]+)", code):
            named |= set(re.findall(r"\b[A-Z]\w+", re.sub(r'"[^"]*"', "", annotation)))
    foreign = {name for name in named if hasattr(typing, name) or name in FOREIGN}
    assert missing(named - foreign, told) == []


FOREIGN = {
    *(
        "AbstractContextManager",
        "AsyncBaseTransport",
        "BaseTransport",
        "Coroutine",
        "NDArray",
        "UUID",
        "None",
        "Path",
        "UnsetType",
    ),
    *("Front", "Metrics", "OpenStore"),  # what a server hands to itself; callers need none of it
    *("JsonObject", "Request"),  # plain objects, and what the contract makes of them
}


def test_the_anchors_of_a_page_are_its_own():
    for path in sorted(FOLDER.glob("*.md")):
        headings = re.findall(
            r"^#{1,6} (.+)$", re.sub(r"```.*?```", "", page(path.name), flags=re.DOTALL), re.MULTILINE
        )
        assert len(headings) == len(anchors(path)), path.name


def test_every_setting_is_on_the_page_with_its_default():
    text = page("configuration.md")
    for field in dataclasses.fields(MemoryConfig):
        (row,) = re.findall(rf"^\| `{field.name}` \| .*", text, re.MULTILINE)
        value = getattr(MemoryConfig(), field.name)
        if field.name not in ("extractor", "observers"):
            assert f"`{camel_case(field.name)}`" in row
        if isinstance(value, bool):
            assert f"| `{str(value).lower()}` |" in row
        elif isinstance(value, int | float | str):
            assert f"| `{value:g}` |" in row if isinstance(value, float) else f"| `{value}` |" in row
    assert missing((field.name for field in dataclasses.fields(Limits)), rows(text)) == []


def test_every_built_in_policy_and_embedder_is_on_the_page_with_its_parameters():
    text = page("configuration.md")
    for setting, kinds in settings.built_in().items():
        section = text.split(f"\n### `{setting}`\n", 1)[1].split("\n### ", 1)[0].split("\n## ", 1)[0]
        for name, kind in kinds.items():
            assert f"`{name}` (" in section
            assert missing(getattr(kind, "PARAMETERS", {}), rows(section)) == []
        empty = [line for line in section.splitlines() if line.startswith("| `") and line.endswith("|  |")]
        assert empty == []


def test_every_limit_of_a_request_is_on_the_page():
    names = [name for name in vars(limits) if name.endswith("_MAX")]
    assert missing(names, set(re.findall(r"`(\w+_MAX)`", page("configuration.md")))) == []
    assert missing(names, set(settings.LIMITS)) == []


def test_every_environment_variable_is_on_the_page():
    read = {text for text in source.texts() if re.fullmatch(r"PERDURE_[A-Z_]+", text)}
    assert read
    assert missing(read, rows(page("configuration.md"))) == []


def test_every_error_is_on_the_page_with_its_code_and_status():
    text = page("errors.md")
    for name, kind in vars(errors).items():
        if not isinstance(kind, type) or not issubclass(kind, errors.PerdureError) or name in BETWEEN_LAYERS:
            continue
        assert f"### `{name}`" in text
        if kind is not errors.PerdureError:
            assert re.search(rf"^\| `{kind.code}` \| {kind.status} \| \[`{name}`\]", text, re.MULTILINE)
            advice = text.split("\n## What to do\n")[1].split("\n## ")[0]
            assert kind.code in rows(advice)


def test_every_kind_of_conflict_is_on_the_page_and_no_other():
    kinds = set()
    for call in source.calls("Conflict"):
        kinds |= {
            word.value.value for word in call.keywords if word.arg == "kind" and hasattr(word.value, "value")
        }
    section = page("errors.md").split("\n## Kinds of conflict\n")[1].split("\n## ")[0]
    assert rows(section) - {"current", "expected"} == kinds


def test_every_command_and_option_is_on_the_page():
    text = page("cli.md")
    shared = rows(text.split("\n## Options of every command\n")[1].split("\n## ")[0])
    for name, command in commands.walked():
        section = text.split(f"\n### `perdure {name}`\n", 1)[1].split("\n### ", 1)[0]
        for parameter in command.params:
            if commands.is_option(parameter) and parameter.name != "help":
                assert missing(commands.spellings(parameter), shared | rows(section)) == []


def test_an_option_that_is_taken_away_is_missed():
    text = page("cli.md")
    assert missing(["--as-of"], rows(text)) == []
    assert missing(["--as-of"], rows(text.replace("`--as-of`", "`--at`"))) == ["--as-of"]


def test_every_name_and_call_of_the_clients_is_on_the_page():
    text = page("python.md")
    assert missing(source.exported("perdure.client"), headed(text)) == []
    for name in source.exported("perdure.client"):
        entry = text.split(f"\n### `{name}`", 1)[1].split("\n### ", 1)[0]
        calls = source.methods(source.find("perdure.client", name))
        assert missing(calls, set(re.findall(r"(?:`|def )(\w+)(?:`|\()", entry))) == []


def test_every_operation_is_on_the_page_with_its_route_role_and_fields():
    text = page("http.md")
    for operation in OPERATIONS.values():
        entry = text.split(f"\n### `{operation.name}`\n", 1)[1].split("\n### ", 1)[0]
        assert f"`POST /api/v1/{operation.group}/{operation.name}` · role {operation.role}\n" in entry
        if operation.name != "import":  # it takes lines, and what else it is told is in the address
            fields = operation.request.__struct_encode_fields__
            assert missing(fields, rows(entry)) == []
    linked = re.findall(r"\]\(#([\w-]+)\)", text)
    assert missing(linked, anchors(FOLDER / "http.md")) == []


def test_every_field_of_a_reply_is_on_the_page():
    text = page("http.md")
    for operation in OPERATIONS.values():
        if operation.name != "export":
            entry = text.split(f"\n### `{operation.reply.__name__}`\n", 1)[1].split("\n### ", 1)[0]
            assert missing(operation.reply.__struct_encode_fields__, rows(entry)) == []


def test_every_header_status_route_and_metric_of_the_server_is_on_the_page():
    text = page("http.md")
    described = openapi()
    told = {f"{method.upper()} {path}" for path, item in described["paths"].items() for method in item}
    assert missing(told, set(re.findall(r"`([A-Z]+ /[^`]+)`", text))) == []
    assert missing([*described["components"]["parameters"]], rows(text)) == []
    assert (
        missing(described["components"]["responses"], set(re.findall(r"^\| (\d+) \|", text, re.MULTILINE)))
        == []
    )
    metrics = {name for name in source.texts("server") if re.fullmatch(r"perdure_[a-z_]+", name)}
    assert metrics
    assert {name for name in metrics if f"`{name}" not in text} == set()


def test_every_tool_is_on_the_page_with_its_arguments_and_results():
    text = page("mcp.md")
    for tool in TOOLS:
        entry = text.split(f"\n### `{tool.name}`\n", 1)[1].split("\n### ", 1)[0]
        assert missing(input_schema(tool, "all")["properties"], rows(entry)) == []
        assert missing(output_schema(tool)["properties"], set(re.findall(r"`(\w+)`", entry))) == []
    for resource in ("perdure://spaces", "perdure://facts/{id}"):
        assert resource in rows(text)


def test_every_kind_of_change_is_on_the_page_and_no_other():
    told = rows(page("event-types.md").split("\n## Events of the audit")[0])
    assert told == _kinds_of_changes()


def test_every_type_of_event_is_on_the_page_and_no_other():
    assert rows(page("event-types.md").split("\n## Events of the audit")[1]) == set(EVENT_TYPES)


def _kinds_of_changes() -> set[str]:
    config = MemoryConfig(on_id_conflict="replace")
    with Store.open(":memory:", clock=ManualClock(1_000)) as store:
        memory = store.memory(config=config)
        for text in ("one fact", "another fact", "a third fact", "a fourth fact"):
            memory.remember(text, id=text.split()[1] if text.startswith("a ") else text.split()[0])
        memory.remember("a fifth fact", id="fifth", supersedes=["one"])
        memory.remember("the fifth fact anew", id="fifth")
        memory.correct("the third fact", id="third")
        memory.end("one")
        memory.retract("another")
        memory.annotate("one", pinned=True)
        memory.record_use(["fourth"])
        memory.forget(ids=["fourth"], soft=True)
        memory.restore(["fourth"])
        memory.forget(ids=["fourth"], block=True)
        memory.unblock(ids=["fourth"])
        store.documents().put("page", "a text of some length")
        return {change.kind for change in memory.changes(limit=1_000).items}


@pytest.mark.parametrize("name", ["configuration.md", "python.md"])
def test_the_hand_written_examples_of_a_page_run(name, tmp_path):
    written = re.sub(r"<!-- reference: .*?<!-- end -->", "", page(name), flags=re.DOTALL)
    path = tmp_path / name
    path.write_text(written, encoding="utf-8")
    run_page(path)
