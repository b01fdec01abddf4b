"""From files to a store: formats, archives, all or nothing, leniency, repeats."""

from __future__ import annotations

import io
import json
import zipfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from perdure import Blocked, Conflict, ManualClock, MemoryConfig, NewFact, Store
from perdure.importers import archives
from perdure.importers.entries import Bad, Entry, Found, Place
from perdure.importers.exporting import export_facts
from perdure.importers.importing import BATCH, Target, import_entries
from perdure.importers.jsonlines import fact_of
from perdure.importers.sources import read_file, read_stream

TALK = {
    "session_1_date_time": "1:56 pm on 8 May, 2023",
    "session_1": [{"speaker": "A", "dia_id": "D1:1", "text": "Hi"}],
}


@pytest.fixture
def store():
    with Store.open(":memory:", clock=ManualClock("2025-01-01")) as opened:
        yield opened


def lines(*facts: dict[str, Any]) -> bytes:
    return "".join(json.dumps(fact) + "\n" for fact in facts).encode()


def read(data: bytes, name: str = "facts.jsonl", form: Any = "auto") -> list[Entry]:
    return list(read_stream(io.BytesIO(data), name, form))


def archive(**members: bytes) -> bytes:
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED) as packed:
        for name, data in members.items():
            packed.writestr(name, data)
    return made.getvalue()


def texts(store: Store, principal: str = "") -> list[str]:
    return [fact.text for fact in store.memory(principal).list(limit=1000).items]


def found(*facts: NewFact) -> list[Entry]:
    return [Found(Place("f", index + 1), fact) for index, fact in enumerate(facts)]


@pytest.mark.parametrize("indent", [None, 2])
def test_a_conversation_is_known_by_its_content(indent):
    data = json.dumps(TALK, indent=indent).encode()
    (entry,) = read(data, "talk.json")
    assert isinstance(entry, Found)
    assert (entry.conversation, entry.fact.id) == ("talk", "talk/D1:1")


def test_lines_are_known_by_their_content_where_the_name_says_nothing():
    for name in ("facts.json", "facts", "standard input"):
        assert [
            entry.fact.text
            for entry in read(lines({"text": "a"}, {"text": "b"}), name)
            if isinstance(entry, Found)
        ] == ["a", "b"]


def test_a_named_format_is_not_guessed():
    (entry,) = read(json.dumps(TALK).encode(), "talk.json", "jsonl")
    assert isinstance(entry, Bad)
    (entry,) = read(lines({"text": "a"}), "facts.json", "conversation")
    assert isinstance(entry, Bad)
    assert "session_1" in entry.reason


def test_the_members_of_an_archive_are_read_one_after_the_other():
    data = archive(
        **{
            "a/26.json": json.dumps(TALK).encode(),
            "b.jsonl": lines({"text": "x"}),
            ".hidden": b"?",
            "__MACOSX/b.jsonl": b"?",
        }
    )
    entries = read(data, "all.zip")
    assert [(entry.conversation, entry.place.file) for entry in entries if isinstance(entry, Found)] == [
        ("26", "a/26.json"),
        (None, "b.jsonl"),
    ]
    assert len(entries) == 2


@pytest.mark.parametrize(
    "name",
    ["../evil.jsonl", "/evil.jsonl", "a/../../evil.jsonl", "..\\evil.jsonl", "C:\\evil.jsonl", "\\evil"],
)
def test_an_archive_with_a_name_that_leads_outside_is_refused_whole(tmp_path, monkeypatch, name):
    monkeypatch.chdir(tmp_path)
    (entry,) = read(archive(**{"good.jsonl": lines({"text": "x"}), name: lines({"text": "y"})}), "all.zip")
    assert isinstance(entry, Bad)
    assert "leads outside" in entry.reason
    assert list(tmp_path.iterdir()) == []


def test_a_damaged_archive_gives_a_reason():
    whole = archive(**{"a.jsonl": lines({"text": "x" * 1000})})
    for data in (whole[:60], whole[:-10], b"PK\x03\x04"):
        entries = read(data, "all.zip")
        assert isinstance(entries[-1], Bad)


PACKINGS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA)


def packed(packing: int, name: str = "é.jsonl") -> bytes:
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w", packing) as archived:
        archived.writestr(name, lines({"text": "x" * 40}, {"text": "y"}))
    return made.getvalue()


@settings(max_examples=300, deadline=None)
@given(
    st.sampled_from([packed(packing) for packing in PACKINGS]),
    st.lists(st.tuples(st.floats(0, 1), st.integers(0, 255)), max_size=4),
    st.floats(0, 1),
)
def test_an_archive_damaged_in_any_way_gives_entries_and_never_another_error(whole, changes, kept):
    data = bytearray(whole)
    for where, byte in changes:
        data[4 + int(where * (len(data) - 5))] = byte
    cut = bytes(data[: len(data) if kept > 0.5 else 4 + int(kept * len(data))])
    assert all(isinstance(entry, Found | Bad) for entry in read(cut, "all.zip"))


def changed(data: bytes, at: int, by: bytes) -> bytes:
    assert len(data) >= at + len(by)
    return data[:at] + by + data[at + len(by) :]


def directory(data: bytes) -> int:
    return data.index(b"PK\x01\x02")


def body(data: bytes) -> int:
    """Return where the packed bytes of the only member begin: after 30 fixed bytes and the name."""
    return 30 + int.from_bytes(data[26:28], "little")


whole_zip = {packing: packed(packing) for packing in PACKINGS}
deflated = whole_zip[zipfile.ZIP_DEFLATED]
DAMAGES = {
    "packed bytes, deflated": changed(deflated, body(deflated), b"\xff" * 8),
    "stored bytes": changed(whole_zip[zipfile.ZIP_STORED], body(deflated), b"\xff" * 8),
    "a version that nobody has": changed(deflated, directory(deflated) + 6, b"\xff"),
    "a name in the directory that is no text": changed(deflated, directory(deflated) + 46, b"\xff"),
    "a name before the member that is no text": changed(deflated, 30, b"\xff"),
    "a directory before the beginning": changed(deflated, len(deflated) - 6, b"\xff\xff\xff\x7f"),
}


@pytest.mark.parametrize("data", DAMAGES.values(), ids=DAMAGES)
def test_every_kind_of_damage_is_called_a_damaged_archive(data):
    *_, last = read(data, "all.zip")
    assert isinstance(last, Bad)
    assert last.reason.startswith("damaged archive")


def test_what_stands_before_the_damage_is_read(store):
    whole = archive(**{"a.jsonl": lines({"text": "first"}), "b.jsonl": lines({"text": "x" * 99})})
    second = whole.index(b"b.jsonl") + len("b.jsonl")
    report = import_entries(read(changed(whole, second, b"\xff" * 4), "all.zip"), Target(store), lenient=True)
    assert [bad.reason[:15] for bad in report.bad] == ["damaged archive"]
    assert texts(store) == ["first"]


@pytest.mark.parametrize("method", [zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA, 99])
def test_a_packing_without_a_bound_on_what_it_unpacks_to_is_not_unpacked(method):
    data = whole_zip.get(method) or changed(deflated, directory(deflated) + 10, bytes([method]))
    (entry,) = read(data, "all.zip")
    assert isinstance(entry, Bad)
    assert f"method {method}" in entry.reason


def test_a_member_that_unpacks_to_too_much_is_refused_before_it_is_unpacked(monkeypatch):
    monkeypatch.setattr(archives, "MEMBER_BYTES_MAX", 100_000)
    for packing in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        made = io.BytesIO()
        with zipfile.ZipFile(made, "w", packing) as archived:
            archived.writestr("a.jsonl", b" " * 3_000_000)
        (entry,) = read(made.getvalue(), "all.zip")
        assert isinstance(entry, Bad)
        assert "more than 100000 bytes" in entry.reason


def test_other_members_and_archives_within_are_told():
    entries = read(archive(**{"a.txt": b"x", "b.json": archive(**{"c.jsonl": b""})}), "all.zip")
    assert [isinstance(entry, Bad) for entry in entries] == [True, True]


def test_strict_stores_nothing_when_one_entry_is_bad(store):
    entries = [*found(NewFact(text="good"), NewFact(text="  ")), Bad(Place("f", 3), "odd")]
    report = import_entries(entries, Target(store))
    assert [bad.place.line for bad in report.bad] == [3, 2] or [bad.place.line for bad in report.bad] == [
        2,
        3,
    ]
    assert (report.good, report.stored) == (1, 0)
    assert texts(store) == []


def test_lenient_stores_the_good_ones_and_says_which_are_not(store):
    entries = [*found(NewFact(text="good"), NewFact(text="x", importance=2.0)), Bad(Place("f", 3), "odd")]
    report = import_entries(entries, Target(store), lenient=True)
    assert report.stored == 1
    assert [bad.place.line for bad in report.bad] == [2, 3]
    assert texts(store) == ["good"]


def test_a_dry_run_stores_nothing(store):
    report = import_entries(found(NewFact(text="good")), Target(store), dry_run=True)
    assert (report.good, report.stored, report.dry_run) == (1, 0, True)
    assert store.spaces() == []


def test_a_repeat_stores_nothing_new(store):
    entries = read(json.dumps(TALK).encode(), "talk.json")
    assert import_entries(entries, Target(store)).outcomes == {"created": 1}
    assert import_entries(entries, Target(store)).outcomes == {"existing": 1}


def test_each_conversation_is_a_principal_unless_one_is_given(store):
    entries = read(json.dumps(TALK).encode(), "talk.json")
    import_entries(entries, Target(store))
    import_entries(entries, Target(store, principal="me", scope="s"))
    assert [(name.principal, name.scope) for name in store.spaces()] == [("me", "s"), ("talk", "")]


def test_a_conversation_whose_name_no_principal_can_have_is_bad(store):
    entries = read(json.dumps(TALK).encode(), "a\tb.json")
    report = import_entries(entries, Target(store), lenient=True)
    assert "principal" in report.bad[0].reason
    assert report.stored == 0


def test_what_the_store_refuses_is_raised_with_its_place_and_nothing_is_stored(store):
    store.memory().remember("first", id="a")
    with pytest.raises(Conflict, match="f, line 2"):
        import_entries(found(NewFact(text="b"), NewFact(text="other", id="a")), Target(store))
    assert texts(store) == ["first"]


def test_blocked_content_is_raised_with_its_place_and_nothing_is_stored(store):
    store.memory().remember("gone", id="g")
    store.memory().forget(ids=["g"], block=True)
    with pytest.raises(Blocked, match="f, line 3") as refused:
        import_entries(found(NewFact(text="b"), NewFact(text="c"), NewFact(text="gone")), Target(store))
    details = refused.value.details
    assert (details["file"], details["line"], details["entry"]) == ("f", 3, None)
    assert "index" not in details
    assert texts(store) == []


def test_lenient_puts_what_the_store_refuses_among_the_bad(store):
    store.memory().remember("first", id="a")
    store.memory().remember("gone", id="g")
    store.memory().forget(ids=["g"], block=True)
    told = found(NewFact(text="b"), NewFact(text="other", id="a"), NewFact(text="gone"), NewFact(text="c"))
    report = import_entries(told, Target(store), lenient=True)
    assert [bad.place.line for bad in report.bad] == [2, 3]
    assert report.stored == 2
    assert texts(store) == ["first", "b", "c"]


def test_progress_is_told_per_transaction_and_ends_with_all(store):
    told: list[tuple[int, int]] = []
    facts = [NewFact(text=f"fact {number}") for number in range(BATCH + 3)]
    import_entries(
        found(*facts), Target(store), lenient=True, progress=lambda done, of: told.append((done, of))
    )
    assert told == [(BATCH, BATCH + 3), (BATCH + 3, BATCH + 3)]


def test_a_file_is_read_by_its_path(tmp_path):
    path = tmp_path / "facts.jsonl"
    path.write_bytes(lines({"text": "a"}))
    (entry,) = read_file(path)
    assert entry.place == Place("facts.jsonl", 1)
    with pytest.raises(OSError, match="absent"):
        list(read_file(Path(tmp_path / "absent.jsonl")))


def test_an_export_read_back_holds_the_same_facts_at_every_moment(store):
    memory = store.memory(config=MemoryConfig(supersession="latest-by-subject"))
    memory.remember("Berlin", id="b", subject="home", valid_from="2021-01-01")
    memory.remember("Paris", id="p", subject="home", valid_from="2019-01-01", tags=["t"], importance=0.5)
    memory.remember("Lift broken", id="l", valid_from="2020-01-01", metadata={"n": 1.5})
    memory.end("l", at="2020-02-01")
    memory.remember("never", id="n")
    memory.retract("n")
    exported = [fact_of(told) for told in export_facts(memory)]
    assert import_entries(found(*exported), Target(store, principal="copy")).stored == 3
    copy = store.memory("copy")
    for moment in ("2018-06-01", "2019-06-01", "2020-01-15", "2020-06-01", "2024-06-01"):
        for fact in memory.list(as_of=moment).items:
            if fact.id != "n":
                twin = copy.get(fact.id, as_of=moment)
                assert twin is not None
                assert (twin.status, twin.text, twin.tags, twin.metadata, twin.importance) == (
                    fact.status, fact.text, fact.tags, fact.metadata, fact.importance,
                )  # fmt: skip


plain_facts = st.builds(
    NewFact,
    text=st.text(min_size=1, max_size=20).map(lambda text: f"w {text}"),
    subject=st.none() | st.sampled_from(["s", "t"]),
    tags=st.lists(st.sampled_from(["a", "b"]), max_size=2),
    metadata=st.none()
    | st.dictionaries(st.sampled_from(["k", "l"]), st.integers(-5, 5) | st.text(max_size=3)),
    valid_from=st.none() | st.integers(-(10**12), 10**12),
    importance=st.none() | st.floats(0, 1),
)


@settings(max_examples=30, deadline=None)
@given(st.lists(plain_facts, max_size=6))
def test_an_export_of_an_import_of_an_export_is_the_same(facts):
    with Store.open(":memory:", clock=ManualClock("2025-01-01")) as store:
        import_entries(found(*facts), Target(store, principal="a"), lenient=True)
        once = list(export_facts(store.memory("a")))
        import_entries(found(*map(fact_of, once)), Target(store, principal="b"))
        assert list(export_facts(store.memory("b"))) == once
