"""Moving memories: nothing is lost or altered, a bad line stops nothing but itself, and what is gone stays gone."""

from __future__ import annotations

import json
import unicodedata
import zipfile
from typing import Any

import pytest

from perdure import Blocked, Conflict, ImportFailed, ManualClock, Memory, MemoryConfig, NewFact, Store
from perdure.model.namespace import Namespace
from scenarios.stores import DAY_MS, NOW_MS, ids, texts

LIKE_JSON = (
    '"2024-01-01"',
    '{"a":1}',
    "null",
    "007",
    "1e5",
    "true",
    "[]",
    "\x00NUL\x00",
    "é",
    "e\u0301",
    "a\r\nb\u2028c",
)
LINE_MAX = 32 * 1024 * 1024


def lived(store: Store, clock: ManualClock) -> Memory:
    """A memory with facts of every standing: open, ended, superseded, expired, corrected, hidden, forgotten."""
    memory = store.memory("ann", "home", config=MemoryConfig(supersession="latest-by-subject"))
    for number, text in enumerate(LIKE_JSON):
        memory.remember(text, id=f"odd {number}", metadata={"text": text, "n": [1, 1.0, None, "007"]})
        clock.advance(DAY_MS)
    for city in ("Paris", "Berlin"):
        memory.remember(f"lives in {city}", id=city, subject="city", tags=["home"], importance=0.25)
        clock.advance(DAY_MS)
    memory.remember("works at Acme", id="acme", valid_from="2020-01-01", valid_to="2024-06-30")
    memory.remember("rents a flat", id="flat", valid_from="2021-01-01", idempotency_key="rent")
    clock.advance(DAY_MS)
    memory.end("flat", at="2025-05-01", reason="sold")
    memory.correct("works at Apex", id="acme", new_id="apex")
    memory.remember("was never so", id="never")
    memory.retract("never", reason="a joke")
    memory.annotate("Berlin", pinned=True, kind="semantic", metadata={})
    for id_ in ("hidden", "gone", "barred"):
        memory.remember(f"to be {id_}", id=id_)
        clock.advance(DAY_MS)
    memory.forget(ids=["hidden"], soft=True)
    memory.forget(ids=["gone"])
    memory.forget(ids=["barred"], block=True)
    store.documents("bob").put("paper", "word " * 5_000 + "end", metadata={"v": 1.0})
    return memory


def body(lines: bytes) -> bytes:
    return lines.split(b"\n", 1)[1]


def exported(store: Store, **options: Any) -> bytes:
    return b"".join(store.export_lines(**options))


def answers(memory: Memory) -> list[Any]:
    found: list[Any] = [memory.list(hidden=True).items]
    days = [NOW_MS + n * DAY_MS for n in range(-1, 25, 3)]
    for known_at in (None, *days):
        for as_of in (None, "2020-06-01", "2025-06-01", *days):
            times = {"as_of": as_of, "known_at": known_at}
            found.append(memory.list(limit=1_000, **times).items)
            found.append(
                memory.recall("lives works rents to be never", k=100, history="all", explain=True, **times)
            )
    return found


# Export, import into an empty store, export


@pytest.mark.parametrize("blocks", [False, True])
def test_export_import_export_is_the_same_but_for_the_header(open_store, clock, blocks):
    source = open_store("source")
    lived(source, clock)
    lines = exported(source, blocks=blocks)
    target = open_store("target")
    report = target.import_([lines])
    assert (report.existing, report.skipped, report.problems) == (0, 0, ())
    assert body(exported(target, blocks=blocks)) == body(lines)


def test_a_moved_memory_answers_alike_at_every_time(open_store, clock):
    source = open_store("source")
    memory = lived(source, clock)
    target = open_store("target")
    target.import_([exported(source)])
    assert answers(target.memory("ann", "home")) == answers(memory)
    paper = target.documents("bob").get("paper")
    assert paper == source.documents("bob").get("paper")
    assert target.documents("bob").search("end", k=1) == source.documents("bob").search("end", k=1)


def test_texts_that_look_like_json_are_moved_as_they_are(open_store, clock):
    source = open_store("source")
    lived(source, clock)
    target = open_store("target")
    target.import_([exported(source)])
    moved = target.memory("ann", "home")
    for number, text in enumerate(LIKE_JSON):
        fact = moved.get(f"odd {number}")
        assert fact is not None
        assert (fact.text, fact.metadata["text"]) == (text, text)
        assert json.dumps(fact.metadata["n"]) == '[1, 1.0, null, "007"]'


def test_half_a_surrogate_pair_cannot_be_told_so_none_is_ever_exported(store):
    line = record('{"type":"fact","number":0,"id":"a","text":"\\ud800","ingestTime":1}')
    report = store.import_([line], dry_run=True)
    assert [problem.line for problem in report.problems] == [3]


def test_a_receipt_still_answers_where_the_secret_is_the_same(open_store, clock):
    secret = bytes(range(32))
    source, target = open_store("source", secret=secret), open_store("target", secret=secret)
    lived(source, clock)
    assert target.import_([exported(source)]).foreign_receipts == 0
    moved = target.memory("ann", "home", config=MemoryConfig(supersession="latest-by-subject"))
    replay = moved.remember("rents a flat", id="flat", valid_from="2021-01-01", idempotency_key="rent")
    assert replay.created  # the first answer, word for word
    with pytest.raises(Conflict):
        moved.remember("something else", idempotency_key="rent")


def test_a_receipt_of_another_secret_is_kept_for_the_next_export_and_counted(open_store, clock):
    source, target = open_store("source", secret=bytes(32)), open_store("target", secret=bytes([1]) * 32)
    lived(source, clock)
    assert target.import_([exported(source)]).foreign_receipts == 1
    moved = target.memory("ann", "home")
    assert moved.remember("something else", idempotency_key="rent").created
    back = open_store("back", secret=bytes(32))
    back.import_([exported(target)])
    with pytest.raises(Conflict):
        back.memory("ann", "home").remember("something else", idempotency_key="rent")


# What was forgotten does not come back


def test_an_earlier_export_does_not_bring_back_what_was_forgotten_with_a_block(open_store, clock):
    store = open_store()
    memory = store.memory("ann")
    memory.remember("The pin is 9", id="pin")
    memory.remember("likes tea", id="tea", supersedes=["pin"])
    earlier = exported(store)
    memory.forget(ids=["pin"], block=True)
    with pytest.raises(ImportFailed) as failed:
        store.import_([earlier])
    assert failed.value.committed == "no"
    assert failed.value.details["problems"][0]["line"] == 3
    assert "forgotten with block: true" in failed.value.details["problems"][0]["reason"]
    report = store.import_([earlier], strict=False)
    assert (report.created, report.existing, report.skipped) == (0, 1, 2)
    assert [problem.line for problem in report.problems] == [3, 5]
    assert ids(memory.list().items) == ["tea"]


@pytest.mark.parametrize(
    "spelling", ["The pin is é9", "THE  PIN\nis É9", unicodedata.normalize("NFD", "The pin is é9")]
)
def test_other_spellings_are_refused_too_and_nothing_of_the_text_is_exported(open_store, spelling):
    store = open_store()
    memory = store.memory("ann")
    memory.remember("The pin is é9", id="pin")
    memory.forget(ids=["pin"], block=True)
    with pytest.raises(Blocked):
        memory.remember(spelling)
    told = store.memory("ann", "other")
    told.remember(spelling, id="other")
    lines = exported(store, spaces=[Namespace("ann", "other")])
    report = store.import_([lines], into=Namespace("ann"), strict=False)
    assert (report.created, report.skipped) == (0, 1)
    assert b"pin" not in exported(store, spaces=[Namespace("ann")], blocks=True).lower()


def test_blocks_that_are_exported_hold_where_they_are_imported_until_they_are_lifted(open_store):
    source, target = open_store("source"), open_store("target", secret=bytes(32))
    memory, other = source.memory("ann"), target.memory("ann")
    memory.remember("The pin is 9", id="pin")
    memory.forget(ids=["pin"], block=True)
    other.remember("likes tea", id="tea")  # a space with a key of its own
    target.import_([exported(source, blocks=True)])
    for told in ({"text": "the PIN is 9"}, {"text": "another", "id": "pin"}):
        with pytest.raises(Blocked):
            other.remember(**told)
    assert other.unblock(ids=["pin"], texts=["The pin is 9"]) == 2
    assert other.remember("The pin is 9", id="pin").created


def test_without_blocks_an_export_says_nothing_of_what_was_forgotten(open_store):
    source, target = open_store("source"), open_store("target")
    memory = source.memory("ann")
    memory.remember("likes tea", id="tea")
    memory.remember("The pin is 9", id="pin")
    memory.forget(ids=["pin"], block=True)
    target.import_([exported(source)])
    assert target.memory("ann").remember("The pin is 9", id="pin").created


# One bad line stops nothing but itself

HEADER = json.dumps(
    {
        "format": "perdure-export", "version": 1, "exportedAt": 1, "generator": "hand", "spaces": None,
        "blocks": False, "secret": "",
    },
    separators=(",", ":"),
)  # fmt: skip
SPACE = '{"type":"space","principal":"ann","scope":"","profile":"english.v1","k1":0.9,"b":0.4,"createdAt":1}'


def fact(number: int, **more: Any) -> str:
    told = {"type": "fact", "number": number, "id": f"f{number}", "text": f"fact {number}", "ingestTime": 1}
    return json.dumps(told | more, separators=(",", ":"))


def record(*lines: str | bytes, header: str = HEADER) -> bytes:
    """A whole file of one space with these records."""
    told = [line.encode() if isinstance(line, str) else line for line in lines]
    facts = sum(b'"type":"fact"' in line for line in told)
    end = f'{{"type":"space-end","facts":{facts},"documents":0,"records":{len(told)}}}'
    total = f'{{"type":"total","spaces":1,"records":{len(told)}}}'
    return b"".join(
        line + b"\n" for line in (header.encode(), SPACE.encode(), *told, end.encode(), total.encode())
    )


WRONG = {
    "invalid UTF-8": (fact(1).encode().replace(b"fact 1", b"\xff"), "UTF-8 at byte"),
    "unknown field": (fact(1, colour="red"), "unknown field 'colour'"),
    "a key twice": (fact(1)[:-1] + ',"text":"b"}', "duplicate key"),
    "unknown type": ('{"type":"opinion"}', "type must be one of"),
    "no object": ('["fact"]', "must be an object"),
    "no JSON": ("{fact", "not valid JSON"),
    "a wrong type": (fact(1, ingestTime="now"), "expected `int`"),
    "a wrong choice": (fact(1, kind="opinion"), "kind must be one of"),
    "a time out of range": (fact(1, ingestTime=10**18), "ingestTime must be"),
    "an empty interval": (fact(1, validFrom=5, validTo=5), "must lie after"),
    "a blank text": (fact(1, text=" "), "no word"),
    "a long text": (fact(1, text="word " * 5_000), "words"),
    "a reserved id": (fact(1, id="perdure:x"), "reserved"),
    "deep metadata": (fact(1)[:-1] + ',"metadata":{"a":' + "[" * 200 + "]" * 200 + "}}", "nested deeper"),
    "a repeated id": (fact(1, id="f0"), "repeats the id"),
    "a repeated number": (fact(0, id="other"), "is not above"),
    "an unknown fact": ('{"type":"end","fact":7,"at":3,"recordedAt":2}', "names fact 7"),
    "a link to itself": ('{"type":"link","newer":0,"older":0,"kind":"supersedes","knownFrom":1}', "supersede itself"),
    "a digest too short": ('{"type":"block","digests":["00"],"recordedAt":1,"key":"00"}', "16 bytes"),
}  # fmt: skip
UNREADABLE = ("invalid UTF-8", "no object", "no JSON")  # with them the beginning of another space may be lost


@pytest.mark.parametrize("name", sorted(WRONG.keys() - UNREADABLE))
def test_a_bad_line_is_named_with_its_reason_and_stops_nothing_but_itself(store, name):
    bad, reason = WRONG[name]
    lines = record(fact(0), bad, fact(2))
    dry = store.import_([lines], dry_run=True)
    assert [problem.line for problem in dry.problems if reason in problem.reason] == [4]
    assert store.log.spaces() == []
    with pytest.raises(ImportFailed, match="line 4") as failed:
        store.import_([lines])
    assert (failed.value.code, failed.value.committed) == ("import_failed", "no")
    assert failed.value.details["problems"] == [
        {"line": problem.line, "reason": problem.reason} for problem in dry.problems
    ]
    assert store.log.spaces() == []
    lenient = store.import_([lines], strict=False)
    assert lenient.problems == dry.problems
    assert (lenient.created, lenient.skipped) == (2, 1)
    assert ids(store.memory("ann").list().items) == ["f0", "f2"]


@pytest.mark.parametrize("name", UNREADABLE)
def test_a_line_that_cannot_be_read_is_named_and_stops_its_space_alone(store, name):
    bad, reason = WRONG[name]
    lines = record(fact(0), bad, fact(2), fact(2, colour="red"))
    dry = store.import_([lines], dry_run=True)
    assert [problem.line for problem in dry.problems] == [4, 6]  # every bad line is listed
    with pytest.raises(ImportFailed, match="line 4"):
        store.import_([lines])
    assert store.log.spaces() == []
    lenient = store.import_([lines], strict=False)
    assert [problem.line for problem in lenient.problems if reason in problem.reason] == [4]
    assert "rest of the space is left out" in lenient.problems[0].reason
    assert (lenient.created, lenient.skipped) == (1, 3)
    assert ids(store.memory("ann").list().items) == ["f0"]


def test_blank_lines_carriage_returns_and_a_byte_order_mark_are_no_faults(store):
    lines = b"\xef\xbb\xbf" + record(fact(0), "", "  ", fact(1)).replace(b"\n", b"\r\n")
    lines = lines.replace(b'"records":4', b'"records":2')
    assert store.import_([lines]).created == 2


@pytest.mark.parametrize("lost", [1, 20, 120, 160])
def test_a_file_that_was_cut_off_is_noticed(store, lost):
    lines = record(fact(0), fact(1))[:-lost]
    if lost == 1:
        assert store.import_([lines], dry_run=True).problems == ()  # only the last line feed is gone
        return
    with pytest.raises(ImportFailed, match="cut"):
        store.import_([lines])
    assert store.log.spaces() == []
    assert store.import_([lines], strict=False).created >= 1


def test_lines_that_were_taken_out_are_noticed(store):
    lines = record(fact(0), fact(1), fact(2)).splitlines(keepends=True)
    del lines[3]
    report = store.import_(lines, dry_run=True)
    assert [problem.line for problem in report.problems] == [5, 6]


@pytest.mark.parametrize("strict", [True, False])
def test_a_newer_format_is_refused_as_a_whole(store, strict):
    newer = HEADER.replace('"version":1', '"version":3,"unheard":true')
    with pytest.raises(ImportFailed, match=r"format version 3.*newer build") as failed:
        store.import_([record(fact(0), header=newer)], strict=strict)
    assert failed.value.committed == "no"
    assert store.log.spaces() == []


@pytest.mark.parametrize("data", [b"", b"\n", b"hello\n", b'{"text":"x"}\n', b"[]", b"\xff", b"\x00" * 100])
def test_what_is_no_export_is_refused(store, data):
    with pytest.raises(ImportFailed, match="line 1: not the header"):
        store.import_([data])
    assert [problem.line for problem in store.import_([data], dry_run=True).problems] == [1]


def test_a_line_of_50_megabytes_is_refused_without_being_kept(store, tmp_path):
    path = tmp_path / "long.jsonl"
    long = b'{"type":"fact","number":1,"id":"f1","ingestTime":1,"text":"' + b"a" * 50_000_000 + b'"}'
    path.write_bytes(record(fact(0), long, fact(2)))
    report = store.import_(path, strict=False)
    assert [(p.line, str(LINE_MAX) in p.reason) for p in report.problems] == [(4, True)]
    assert (report.created, report.skipped) == (1, 2)


def test_an_archive_that_leads_outside_touches_nothing(store, tmp_path):
    path = tmp_path / "inner" / "evil.zip"
    path.parent.mkdir()
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("../evil", record(fact(0)))
    with pytest.raises(ImportFailed):
        store.import_(path)
    assert sorted(entry.name for entry in tmp_path.rglob("*") if "evil" in entry.name) == ["evil.zip"]


def two_memories(open_store, clock):
    """An export of the memories of two people, and its lines: the facts of the second are in lines 8 and on."""
    source = open_store("source")
    for name, facts in (("ann", 3), ("bob", 4)):
        for number in range(facts):
            source.memory(name).remember(f"{name} says {number}", id=f"{name}{number}")
            clock.advance(DAY_MS)
    data = exported(source)
    return data, data.splitlines(keepends=True)


DAMAGES = {
    "a region of zeros": lambda data, lines: _overwritten(data, b"\0"),
    "a region that is no text": lambda data, lines: _overwritten(data, b"\xff"),
    "the end of one and the beginning of the other": lambda data, lines: _marred(lines, 5, 6),
    "the beginning of the other alone": lambda data, lines: _marred(lines, 6),
    "a beginning with a field too many": lambda data, lines: b"".join(
        [*lines[:5], lines[6].replace(b'"k1"', b'"k0":1,"k1"'), *lines[7:]]
    ),
}


def _overwritten(data: bytes, filler: bytes) -> bytes:
    start, end = data.index(b"ann says 2"), data.index(b"bob says 1")
    return data[:start] + filler * (end - start) + data[end:]


def _marred(lines: list[bytes], *places: int) -> bytes:
    return b"".join(b"x" + line if place in places else line for place, line in enumerate(lines))


@pytest.mark.parametrize("name", DAMAGES)
def test_damage_never_moves_what_one_said_into_the_memory_of_another(open_store, clock, name):
    data, lines = two_memories(open_store, clock)
    target = open_store("target")
    report = target.import_([DAMAGES[name](data, lines)], strict=False)
    assert report.problems != ()
    for other in target.spaces():
        whose = texts(target.memory(other.principal).list().items)
        assert [text for text in whose if not text.startswith(other.principal)] == []
    assert "ann1" in ids(target.memory("ann").list().items)


def test_after_a_line_that_cannot_be_read_the_next_memory_is_taken_again(open_store, clock):
    _, lines = two_memories(open_store, clock)
    target = open_store("target")
    report = target.import_([_marred(lines, 3)], strict=False)
    assert (report.created, report.skipped) == (5, 2)
    assert ids(target.memory("ann").list().items) == ["ann0"]


@pytest.mark.parametrize("damage", ["settings", "beginning", "before"])
def test_the_second_memory_is_not_taken_for_the_first_that_was_refused(open_store, clock, damage):
    _, lines = two_memories(open_store, clock)
    target = open_store("target")
    target.memory("cem").remember("cem says 0")
    if damage == "settings":
        lines[1] = lines[1].replace(b'"k1":0.9', b'"k1":1.5')
    else:
        lines[1] = (b"{" if damage == "beginning" else b"x\n") + lines[1]
    report = target.import_(lines, strict=False, into=Namespace("cem"))
    assert report.created == 0
    assert any("into takes one" in problem.reason for problem in report.problems)
    assert texts(target.memory("cem").list().items) == ["cem says 0"]
    one = target.import_(lines, strict=False, into=Namespace("dan"), spaces=[Namespace("bob")])
    assert one.created == 4


# Selection, names, and what a space holds by itself


def test_a_later_export_brings_what_is_new(open_store, clock):
    source, target = open_store("source"), open_store("target")
    memory = source.memory("ann")
    memory.remember("first", id="a")
    target.import_([exported(source)])
    clock.advance(DAY_MS)
    memory.remember("second", id="b", supersedes=["a"])
    memory.end("b", at=NOW_MS + 30 * DAY_MS)
    report = target.import_([exported(source)])
    assert (report.created, report.existing, report.facts) == (3, 1, 1)
    assert body(exported(target)) == body(exported(source))


def test_facts_that_are_told_in_both_places_with_other_content_contradict(open_store):
    source, target = open_store("source"), open_store("target")
    source.memory("ann").remember("one", id="a")
    target.memory("ann").remember("another", id="a")
    with pytest.raises(ImportFailed, match="line 3: conflict"):
        target.import_([exported(source)])


def test_facts_that_were_recorded_before_those_of_the_space_need_another_scope(open_store, clock):
    source, target = open_store("source"), open_store("target")
    source.memory("ann").remember("earlier", id="a")
    clock.advance(DAY_MS)
    target.memory("ann").remember("later", id="b")
    with pytest.raises(ImportFailed, match="another scope"):
        target.import_([exported(source)])
    target.import_([exported(source)], into=Namespace("ann", "moved"))
    assert texts(target.memory("ann", "moved").list().items) == ["earlier"]
    clock.advance(DAY_MS)
    source.memory("ann").remember("latest", id="c")
    report = target.import_([exported(source)], strict=False)
    assert (report.created, report.skipped) == (1, 1)


def test_spaces_can_be_chosen_on_either_side(open_store):
    source, target, third = open_store("source"), open_store("target"), open_store("third")
    for name in ("ann", "bob", "cem"):
        source.memory(name).remember(f"of {name}")
    target.import_([exported(source, spaces=[Namespace("cem"), Namespace("ann")])])
    assert [name.principal for name in target.spaces()] == ["ann", "cem"]
    report = third.import_([exported(source)], spaces=[Namespace("bob")], into=Namespace("dan"))
    assert (report.spaces, report.created) == ((Namespace("bob"),), 1)
    assert [name.principal for name in third.spaces()] == ["dan"]


def test_a_space_of_other_settings_is_not_mixed_with_one_that_is_there(open_store):
    source, target = open_store("source"), open_store("target")
    source.memory("ann", config=MemoryConfig(k1=1.5)).remember("one")
    target.memory("ann").remember("two")
    with pytest.raises(
        ImportFailed, match=r"line 2: k1 is 1\.5 in the file, but the space is there with 0\.9"
    ):
        target.import_([exported(source)])


def test_a_fact_told_again_after_it_was_moved_is_known(open_store, clock):
    source, target = open_store("source"), open_store("target")
    first = source.memory("ann").remember("likes tea")
    target.import_([exported(source)])
    clock.advance(DAY_MS)
    again = target.memory("ann").remember_many([NewFact(text="likes tea")])[0]
    assert (again.id, again.outcome, again.ingest_time) == (first.id, "existing", first.ingest_time)


def test_importing_again_writes_nothing_over_what_was_restored_or_annotated_here(open_store, clock):
    source, target = open_store("source"), open_store("target")
    memory, moved = source.memory("ann"), target.memory("ann")
    for id_ in ("a", "b", "c"):
        memory.remember(f"fact {id_}", id=id_)
    memory.forget(ids=["a", "b"], soft=True)
    memory.annotate("c", tags=["theirs"])
    target.import_([exported(source)])
    moved.restore(["a"])
    moved.annotate("c", tags=["ours"])  # at the same moment
    before = exported(target)
    assert target.import_([exported(source)], dry_run=True).created == 0
    assert target.import_([exported(source)]).created == 0
    assert exported(target) == before
    assert (ids(moved.list().items), moved.get("c").tags) == (["a", "c"], ("ours",))
    clock.advance(DAY_MS)
    memory.annotate("c", tags=["theirs again"])
    assert target.import_([exported(source)]).created == 1
    assert moved.get("c").tags == ("theirs again",)


def test_what_was_hidden_since_is_hidden_by_a_later_export(open_store, clock):
    source, target = open_store("source"), open_store("target")
    source.memory("ann").remember("one", id="a")
    target.import_([exported(source)])
    source.memory("ann").forget(ids=["a"], soft=True)
    assert target.import_([exported(source)]).created == 1
    assert ids(target.memory("ann").list().items) == []


@pytest.mark.parametrize("between", [0, 1_200])  # in the same transaction, and in another one
def test_a_block_earlier_in_the_file_holds_in_a_dry_run_as_well(open_store, between):
    source, target = open_store("source"), open_store("target")
    source.memory("ann").remember("The pin is 9", id="pin")
    source.memory("ann").forget(ids=["pin"], block=True)
    header, space, block = exported(source, blocks=True).splitlines()[:3]
    facts = [fact(n) for n in range(between)]
    lines = record(block, *facts, fact(between, id="x", text="the PIN is 9"), header=header.decode())
    lines = lines.replace(SPACE.encode(), space)
    dry = target.import_([lines], dry_run=True)
    assert [(p.line, "block: true" in p.reason) for p in dry.problems] == [(between + 4, True)]
    with pytest.raises(ImportFailed) as failed:
        target.import_([lines])
    assert failed.value.committed == "no"
    assert target.log.spaces() == []
    assert target.import_([lines], strict=False).problems == dry.problems
