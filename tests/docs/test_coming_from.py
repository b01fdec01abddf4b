"""The pages for people who come from another library: every name is told of, every name of ours exists, all of it runs."""

from __future__ import annotations

import json
import re
from functools import cache
from pathlib import Path

import pytest

import forked
from forked import COMMAND
from markdown_page import blocks, run_page
from perdure import Memory, Store
from public_names import exists
from source_tree import ROOT

FOLDER = ROOT / "docs" / "coming-from"  # warm.md, memory-agent-sdk.md and a3s-memory.md
NAMES = Path(__file__).with_name("seed_names")
PAGES = ("a3s-memory", "memory-agent-sdk", "warm")
EXAMPLES = {"a3s-memory": 9, "memory-agent-sdk": 17, "warm": 4}  # of each library's own description
ABSENT = "## Not here, and why"
ROW = re.compile(r"^\| (?!---)(.*) \|$", re.MULTILINE)
SPAN = re.compile(r"`([^`\n]+)`")
WORD = re.compile(r"[A-Za-z_]\w*(?:-[a-z0-9]\w*)*")


@cache
def prose(name):
    return re.sub(
        r"^```.*?^```$", "", (FOLDER / f"{name}.md").read_text("utf-8"), flags=re.MULTILINE | re.DOTALL
    )


def rows(text):
    """Return the cells of every row of the page's tables, without their headings."""
    found = [[cell.strip() for cell in row.split(" | ")] for row in ROW.findall(text.replace("| |", "|  |"))]
    return [cells for cells in found if cells[0] not in PAGES and cells[0] != "WARM"]


def mapped(name):
    return rows(prose(name).split(ABSENT)[0])


def absent(name):
    return rows(prose(name).split(ABSENT)[1])


def told(cells):
    """Return the names in a first cell: each as it stands in code, and each word of it."""
    return {word for span in SPAN.findall(cells[0]) for word in (span, *WORD.findall(span))}


def listed(name):
    return (NAMES / f"{name}.txt").read_text("utf-8").split()


@pytest.mark.parametrize("name", PAGES)
def test_every_name_of_the_library_is_mapped_or_listed_as_not_here(name):
    known = {word for cells in (*mapped(name), *absent(name)) for word in told(cells)}
    assert [word for word in listed(name) if word not in known] == []


@pytest.mark.parametrize("name", PAGES)
def test_every_row_maps_to_something_of_ours(name):
    assert [cells[0] for cells in mapped(name) if not SPAN.findall(cells[1])] == []
    assert [cells[0] for cells in absent(name) if len(cells) != 2 or len(cells[1]) < 20] == []


@pytest.mark.parametrize("name", PAGES)
def test_every_name_of_ours_that_a_table_gives_exists(name):
    assert [span for cells in mapped(name) for span in SPAN.findall(cells[1]) if not exists(span)] == []


@pytest.mark.parametrize("name", PAGES)
def test_every_other_name_in_the_text_is_one_of_ours_or_of_theirs(name):
    text = re.sub(r"^(\| )[^|]*", r"\1", prose(name), flags=re.MULTILINE)  # first cells are theirs
    theirs = set(listed(name))
    unknown = {
        span for span in SPAN.findall(text) if not exists(span) and not set(WORD.findall(span)) & theirs
    }
    assert unknown - PLAIN == set()


PLAIN = {
    *(
        ":memory:",
        "None",
        "id=",
        "?purge=true",
        "dry_run",
        "int",
        "-event",
        "-ingest",
        "memory.json",
        "sqlite",
        "journal",
    ),
    *("yes", "no", "unknown", "eventTime", "validTo", "metadata"),
    '{"@importance": {"$gte": 0.7}}',
    'Client("http://localhost:8420")',
}
"""What stands on the pages as code and is neither: values, arguments of the call beside them, commands."""


@pytest.mark.parametrize(
    "told",
    [
        *(
            "Memory.recal",
            "Memory.recall(as_off=)",
            "Fact.colour",
            '"createdd"',
            "perdure remembr",
            "--no-such-option",
        ),
        *("POST /api/v1/memory/recal", "perdure.vector", "Memory.recall and more", "perdure recall --blocks"),
    ],
)
def test_a_name_that_is_mistyped_is_not_taken_for_one_of_ours(told):
    assert not exists(told)


@pytest.mark.parametrize("name", PAGES)
def test_all_examples_of_the_library_are_there_and_give_what_the_page_says(name):
    page = FOLDER / f"{name}.md"
    assert sum(block.language == "python" and not block.needs for block in blocks(page)) >= EXAMPLES[name]
    assert run_page(page) >= EXAMPLES[name]


def run_script(name, *arguments, folder):
    """Run a script in its folder, as `python NAME ARGUMENTS` does."""
    program = f"import runpy; runpy.run_path({name!r}, run_name='__main__')"
    done = forked.run(program, *arguments, text=True, cwd=folder)
    assert done.returncode == 0, done.stderr
    return done


def made_lines(name, folder, argument):
    """Run the script of a page as a reader would, and return the file that it made."""
    (script,) = [block.text for block in blocks(FOLDER / f"{name}.md") if block.needs == "script"]
    assert len(script.splitlines()) <= 15
    (folder / "lines.py").write_text(script, encoding="utf-8")
    made = run_script("lines.py", argument, folder=folder)
    (folder / "facts.jsonl").write_text(made.stdout, encoding="utf-8")
    return folder / "facts.jsonl"


def imported(folder, file):
    """Import a file with the command, twice, and open what it made."""
    for _ in range(2):
        forked.run(COMMAND, "import", file, "--store", folder / "store", cwd=folder).check_returncode()
    return Memory.open(folder / "store")


def record(number, text, **others):
    fixed = {
        "tags": ["preference"],
        "importance": 0.9,
        "status": "active",
        "superseded_by": None,
        "expires_at": None,
    }
    made = {"id": f"m{number}", "text": text, "created_at": f"2026-0{number}-05T10:00:00+00:00"}
    return fixed | made | {"metadata": {"n": number}} | others


RECORDS = [
    record(1, "User prefers concise answers", status="superseded", superseded_by="m2"),
    record(2, "User prefers concise Python examples", metadata={"corrects": "m1"}),
    record(3, "The password of the door is swordfish", status="forgotten"),
    record(4, "Parking is free — until June", expires_at="2026-06-01T00:00:00+00:00"),
]
EVENTS = [{"id": "e1", "type": "MEMORY_CREATED", "memory_id": "m3", "details": {"text": "swordfish"}}]


@pytest.mark.parametrize(
    "form", [list, lambda records: {one["id"]: one for one in records}], ids=["list", "by id"]
)
def test_the_file_of_memory_agent_sdk_comes_over(tmp_path, form):
    (tmp_path / "memory.json").write_text(
        json.dumps({"records": form(RECORDS), "events": EVENTS}), encoding="utf-8"
    )
    file = made_lines("memory-agent-sdk", tmp_path, "memory.json")
    assert "swordfish" not in file.read_text("utf-8")
    with imported(tmp_path, file) as memory:
        facts = {fact.id: fact for fact in memory.list(as_of="2026-05-01").items}
        assert {id_: fact.status.value for id_, fact in facts.items()} == {
            "m1": "superseded",
            "m2": "current",
            "m4": "current",
        }
        assert facts["m2"].supersedes == ("m1",)
        assert (facts["m2"].tags, facts["m2"].importance, facts["m2"].metadata) == (("preference",), 0.9, {})
        assert facts["m1"].valid_from.isoformat() == "2026-01-05T10:00:00+00:00"
        assert [hit.id for hit in memory.recall("concise", as_of="2026-01-20")] == ["m1"]
        assert [hit.id for hit in memory.recall("concise", as_of="2026-05-01")] == ["m2"]
        assert memory.get("m4", as_of="2026-06-01").status.value == "expired"


def item(number, content, **others):
    fixed = {"importance": 0.5, "tags": [], "metadata": {}, "access_count": 2, "last_accessed": None}
    made = {"id": f"i{number}", "content": content, "timestamp": f"2026-0{number}-01T12:00:00.123456789Z"}
    return fixed | made | {"memory_type": "episodic"} | others


ITEMS = [
    item(1, "Deploys happen on Fridays", metadata={"team": "ops"}),
    item(
        2,
        "Deploys happen on Mondays",
        metadata={"supersedes": "i1, gone", "team": "ops"},
        memory_type="semantic",
    ),
    item(3, "Use write_all – always", tags=["pinned", "rust"], importance=1.5, memory_type="Procedural"),
]


def test_the_items_of_a3s_memory_come_over(tmp_path):
    (tmp_path / "memory" / "items").mkdir(parents=True)
    (tmp_path / "memory" / "index.json").write_text("[]", encoding="utf-8")
    for one in ITEMS:
        path = tmp_path / "memory" / "items" / f"{one['id']}.json"
        path.write_text(json.dumps(one, indent=2, ensure_ascii=False), encoding="utf-8")
    with imported(tmp_path, made_lines("a3s-memory", tmp_path, "memory")) as memory:
        facts = {fact.id: fact for fact in memory.list().items}
        assert {id_: (fact.status.value, fact.kind) for id_, fact in facts.items()} == {
            "i1": ("superseded", "episodic"),
            "i2": ("current", "semantic"),
            "i3": ("current", "procedural"),
        }
        assert (facts["i2"].supersedes, facts["i2"].metadata) == (("i1",), {"team": "ops"})
        assert (facts["i3"].pinned, facts["i3"].importance, facts["i3"].tags) == (
            True,
            1.0,
            ("pinned", "rust"),
        )
        assert facts["i3"].valid_from.isoformat().startswith("2026-03-01T12:00:00.123")
        assert [hit.id for hit in memory.recall("deploys")] == ["i2"]
        assert [hit.id for hit in memory.recall("deploys", as_of="2026-01-20")] == ["i1"]


def node(id_, content, status, month, *relations):
    said = {"uri": "chat/1", "digest": "d", "kind": "session_turn", "occurredAt": "2026-01-01T08:00:00.5Z"}
    edges = [{"kind": kind, "targetId": target} for kind, target in relations]
    made = {"id": id_, "content": content, "status": status, "createdAt": f"2026-0{month}-01T00:00:00Z"}
    fixed = {"kind": "semantic", "confidence": 0.75, "importance": 0.5, "labels": {"team": "ops"}}
    others = {"revision": 3, "revisionKind": "activated", "updatedAt": "2026-04-01T00:00:00Z", "history": []}
    return made | fixed | others | {"evidence": [said], "relations": edges}


NODES = [
    node("c", "Deploys happen on Tuesdays", "active", 3, ("supersedes", "b"), ("related_to", "blue")),
    node("b", "Deploys happen on Mondays", "superseded", 2, ("supersedes", "a"), ("superseded_by", "c")),
    node("a", "Deploys happen on Fridays", "superseded", 1, ("superseded_by", "b"), ("superseded_by", "hot")),
    node("hot", "Hotfixes go out at once", "active", 2, ("supersedes", "a")),
    node("blue", "The vault is blue", "conflicted", 1, ("related_to", "c"), ("conflicts_with", "grey")),
    node("grey", "The vault is grey", "tombstoned", 1, ("conflicts_with", "blue")),
    node("tea", "Ana likes tea", "candidate", 3),
]


def test_the_nodes_of_a3s_memory_come_over(tmp_path):
    (script,) = [block.text for block in blocks(FOLDER / "a3s-memory.md") if block.needs == "nodes"]
    (tmp_path / "nodes.py").write_text(script, encoding="utf-8")
    (tmp_path / "nodes.json").write_text(json.dumps(NODES), encoding="utf-8")
    for _ in range(2):
        run_script("nodes.py", "nodes.json", "store", "alice", "2026-05-01", folder=tmp_path)
    with Store.open(tmp_path / "store") as store:
        repository, memory = store.repository("alice"), store.memory("alice")
        for told in NODES:
            moved = repository.get(told["id"])
            assert (moved.status.value, moved.content) == (told["status"], told["content"])
            assert (moved.confidence, moved.labels) == (0.75, {"team": "ops"})
            assert moved.created_at.isoformat() == told["createdAt"].replace("Z", "+00:00")
            assert {(one.kind, one.target) for one in moved.relations} == {
                (one["kind"], one["targetId"]) for one in told["relations"]
            }
            assert {one.uri for one in moved.evidence} == {"chat/1", "a3s-memory"}
        found = {hit.text for hit in memory.recall("deploys hotfixes vault tea")}
        assert found == {"Deploys happen on Tuesdays", "Hotfixes go out at once"}
        then = memory.recall("when do deploys happen", as_of="2026-01-20")
        assert [hit.text for hit in then] == ["Deploys happen on Fridays"]
        assert store.verify().ok


WARM_FACTS = [
    {"id": "home-1", "text": "Alice lives in Paris", "subject": "alice/city", "validFrom": 1_577_836_800_000},
    {
        "id": "home-2",
        "text": "Alice lives in Berlin",
        "metadata": {"n": 2},
        "validFrom": 1_735_689_600_000,
        "supersedes": ["home-1", "gone"],
        "ingestTime": 1_735_689_600_000,
    },
]


@pytest.mark.parametrize("form", [dict, lambda fact: {"fact": fact, "score": 0.5}], ids=["plain", "nested"])
def test_what_warm_answers_comes_over(tmp_path, form):
    replies = [{"results": [form(WARM_FACTS[0])]}, {"history": [form(one) for one in WARM_FACTS]}]
    lines = "".join(json.dumps(reply) + "\n" for reply in replies)
    (tmp_path / "replies.jsonl").write_text(lines, encoding="utf-8")
    with imported(tmp_path, made_lines("warm", tmp_path, "replies.jsonl")) as memory:
        assert [hit.id for hit in memory.recall("Alice lives")] == ["home-2"]
        assert [hit.id for hit in memory.recall("Alice lives", as_of="2021-06-01")] == ["home-1"]
        told = {fact.id: fact for fact in memory.list().items}
        assert (told["home-1"].subject, told["home-2"].metadata) == ("alice/city", {"n": 2})
        assert told["home-2"].supersedes == ("home-1",)
