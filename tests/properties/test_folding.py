"""Laws of folding: what a purge keeps of a space is what was there, in order, and nothing of the forgotten."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from random import Random
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from effort import examples
from perdure import Corrupt, ManualClock, Memory, MemoryConfig, PerdureError, Store
from perdure.log.memory import MemoryLog
from perdure.log.protocol import Entry
from perdure.log.records import (
    AnnotationRecord,
    BlockRecord,
    EndRecord,
    FactRecord,
    GoneRecord,
    HideRecord,
    LinkRecord,
    ReceiptItem,
    ReceiptRecord,
    Record,
    RemovalRecord,
    RestoreRecord,
    SpaceRecord,
    UnblockRecord,
    UseRecord,
    decode,
    encode,
)
from perdure.policies import Relevance
from perdure.space.folding import fold
from properties import strategies
from properties.memory_run import CONFIGS, SECRET, everything, listed
from properties.strategies import IDS, METADATA, NOW, ONE_IN, TEXTS, Call, Chooser, Drawn, planting, scripts

KEYS = ("key 0", "key 1", "key 2")
FIRST = SpaceRecord("ann", "", "english.v1", 0.9, 0.4, 1, b"block key")
configs = st.sampled_from([*CONFIGS, MemoryConfig(ranking=Relevance())])
usual = settings(max_examples=examples(16), deadline=None)


# Records, one by one: a history in which some facts are forgotten, beside one that never held them.


class Histories:
    """Two logs of a space: the first also holds facts that are erased in the end, the second never did."""

    def __init__(self) -> None:
        self.first: list[Record | None] = [FIRST]
        self.second: list[Record | None] = [msgspec.structs.replace(FIRST, created_at=7)]
        self.kept: dict[int, int] = {}  # the numbers of facts that stay, in the first and in the second
        self.gone: list[int] = []
        self.owned: list[int] = []  # the seqs that are erased with them
        self.next = self.second_next = 0

    def fact(self, random: Chooser, at: int, *, stays: bool) -> None:
        cuts = random.choice(((), (), (3,), (2, 4)))
        told = FactRecord(
            self.next, f"fact {self.next}", random.choice(TEXTS), at, cuts=cuts, version=int(bool(cuts))
        )
        sources = [number for number in (*self.kept, *self.gone) if random.choice((True, False, False))]
        told = msgspec.structs.replace(told, made_from=tuple(sorted(sources)))
        if stays:
            living = tuple(self.kept[number] for number in told.made_from if number in self.kept)
            self.kept[self.next] = self.second_next
            self.second.append(msgspec.structs.replace(told, number=self.second_next, made_from=living))
            self.second_next += 1 + len(cuts)
        else:
            self.gone.append(self.next)
            self.owned.append(len(self.first) + 1)
        self.first.append(told)
        self.next += 1 + len(cuts)

    def both(self, make: Any, numbers: Sequence[int]) -> None:
        """Add a record that speaks of kept facts to both logs."""
        self.first.append(make(*numbers))
        self.second.append(make(*(self.kept[number] for number in numbers)))

    def secret(self, record: Record) -> None:
        self.first.append(record)
        self.owned.append(len(self.first))

    def finish(self, at: int) -> None:
        for seq in self.owned:
            self.first[seq - 1] = None
        self.first.append(RemovalRecord(tuple(self.gone), self.next, tuple(self.owned), at))


def a_record(random: Chooser, found: Histories, at: int) -> None:
    kind = random.choice(("fact", "fact", "secret", "of kept", "of kept", "of secret", "of both", "of none"))
    if kind in ("fact", "secret"):
        found.fact(random, at, stays=kind == "fact")
    elif kind == "of kept" and found.kept:
        numbers = sorted(found.kept)
        one, other = random.choice(numbers), random.choice(numbers)
        kinds: list[tuple[Any, list[int]]] = [
            (lambda n: EndRecord(n, random_at, at, "sold"), [one]),
            (lambda n: AnnotationRecord(n, ("t",), None, 0.5, False, b"{}", at), [one]),
            (lambda n: UseRecord((n,), b"context", at), [one]),
            (lambda n: HideRecord((n,), at), [one]),
            (lambda n: RestoreRecord((n,), at), [one]),
            (lambda n, m: LinkRecord(n, m, corrects, random_at, at, told), [one, other]),
            (lambda n: ReceiptRecord("remember", key, b"r", (ReceiptItem(n, "created", ""),), at), [one]),
        ]
        random_at, corrects = random.choice((None, 1, 5)), random.choice((True, False))
        told, key = random.choice((True, False)), random.choice(KEYS).encode()
        make, numbers = random.choice(kinds)
        found.both(make, numbers)
    elif kind == "of secret" and found.gone:
        one = random.choice(found.gone)
        item = ReceiptItem(one, "created", "")
        secrets: list[Record] = [
            EndRecord(one, None, at, "a secret"),
            AnnotationRecord(one, ("secret",), None, None, True, None, at),
            ReceiptRecord("remember", b"secret key", b"r", (item,), at),
        ]
        found.secret(random.choice(secrets))
    elif kind == "of both" and found.gone and found.kept:
        one, other = random.choice(sorted(found.kept)), random.choice(found.gone)
        record, rest = random.choice(
            (
                (HideRecord((one, other), at), HideRecord((found.kept[one],), at)),
                (UseRecord((other, one), b"", at), UseRecord((found.kept[one],), b"", at)),
                (HideRecord((other,), at), None),
                (
                    ReceiptRecord("correct", b"both", b"r", (ReceiptItem(one, "created", "", (other,)),), at),
                    ReceiptRecord(
                        "correct", b"both", b"r", (ReceiptItem(found.kept[one], "created", ""),), at
                    ),
                ),
                (ReceiptRecord("end", b"lost key", b"", (), at, lost=True), None),
            )
        )
        found.first.append(record)
        if rest is not None:
            found.second.append(rest)
    elif kind == "of none":
        digests = (random.choice((b"1", b"2", b"3")),)
        key = random.choice((b"", b"elsewhere"))
        record = random.choice(
            (BlockRecord(digests, at, key), BlockRecord(digests, at), UnblockRecord(digests, at))
        )
        found.first.append(record)
        found.second.append(record)


@st.composite
def histories(draw: Any) -> Histories:
    found = Histories()
    for at in range(draw(st.integers(0, 30))):
        a_record(Drawn(draw), found, at)
    found.finish(1_000)
    return found


def folded(records: Sequence[Record | None]) -> list[Record]:
    data = [None if record is None else encode(record) for record in records]

    def read() -> Iterator[Entry]:
        return (Entry(seq, one) for seq, one in enumerate(data, 1))

    return list(fold(1, read, b"secret"))


def numbers_in(record: Record) -> Iterable[int]:
    if isinstance(record, FactRecord):
        return record.made_from
    if isinstance(record, LinkRecord):
        return (record.newer, record.older)
    if isinstance(record, EndRecord | AnnotationRecord):
        return (record.number,)
    if isinstance(record, HideRecord | UseRecord):
        return record.numbers
    if isinstance(record, ReceiptRecord):
        return [n for item in record.items for n in (item.number, *item.supersedes, *item.superseded_by)]
    return ()


def check_dense(records: Sequence[Record]) -> None:
    """Assert that facts are numbered without gaps and that whatever speaks of one comes after it."""
    next_number, known = 0, set()
    assert not records or isinstance(records[0], SpaceRecord)
    assert len(records) != 1
    for record in records[1:]:
        assert not isinstance(
            record, SpaceRecord | RemovalRecord | RestoreRecord | UnblockRecord | GoneRecord
        )
        if isinstance(record, FactRecord):
            assert record.number == next_number
            assert record.number not in record.made_from
            known.add(next_number)
            next_number += 1 + len(record.cuts)
        assert set(numbers_in(record)) <= known


@given(histories())
@settings(max_examples=examples(120), deadline=None)
def test_what_is_folded_is_what_a_space_that_never_held_the_forgotten_facts_folds_to(found):
    first = folded(found.first)
    assert first == folded(found.second)
    check_dense(first)
    assert folded(first) == first


def meaning(records: Sequence[Record | None]) -> dict[str, Any]:
    """What records say together, each thing as it was said last; in the order in which it came to hold."""
    said: dict[str, Any] = {name: {} for name in ("annotations", "links", "receipts", "hidden", "blocks")}
    said |= {"told": set(), "facts": [], "ends": [], "uses": []}
    for record in records:
        if isinstance(record, FactRecord):
            said["facts"].append(record)
        elif isinstance(record, EndRecord):
            said["ends"].append(record)
        elif isinstance(record, UseRecord):
            said["uses"].append(record)
        elif isinstance(record, AnnotationRecord):
            said["annotations"].pop(record.number, None)
            said["annotations"][record.number] = record
        elif isinstance(record, LinkRecord):
            pair = (record.newer, record.older)
            said["links"].pop((*pair, record.corrects), None)
            said["links"][(*pair, record.corrects)] = (record.effective_at, record.known_from)
            said["told"] |= {pair} if record.told else set()
        elif isinstance(record, ReceiptRecord):
            said["receipts"].pop(record.key, None)
            if not record.lost:
                said["receipts"][record.key] = record
        elif isinstance(record, HideRecord):
            for number in record.numbers:
                said["hidden"].setdefault(number, record.recorded_at)
        elif isinstance(record, RestoreRecord):
            for number in record.numbers:
                said["hidden"].pop(number, None)
        elif isinstance(record, BlockRecord):
            for digest in record.digests:
                said["blocks"].setdefault((digest, record.key), record.recorded_at)
        elif isinstance(record, UnblockRecord):
            said["blocks"] = {
                place: at for place, at in said["blocks"].items() if place[0] not in record.digests
            }
    return {name: list(value.items()) if isinstance(value, dict) else value for name, value in said.items()}


@given(histories())
@settings(max_examples=examples(60), deadline=None)
def test_folding_changes_nothing_of_what_the_records_say_and_says_each_thing_once(found):
    kept = folded(found.second)
    said = meaning(kept)
    assert said == meaning(found.second)
    counts = [sum(isinstance(record, kind) for record in kept) for kind in (AnnotationRecord, LinkRecord)]
    assert counts == [len(said["annotations"]), len(said["links"])]
    assert sum(isinstance(record, ReceiptRecord) for record in kept) == len(said["receipts"])
    hidden = [number for record in kept if isinstance(record, HideRecord) for number in record.numbers]
    blocked = [(d, record.key) for record in kept if isinstance(record, BlockRecord) for d in record.digests]
    assert hidden == [number for number, _ in said["hidden"]]
    assert blocked == [place for place, _ in said["blocks"]]


def test_that_a_caller_told_a_link_is_kept_with_the_link_that_took_its_place():
    facts = [FactRecord(n, f"{n}", "words", 1) for n in range(2)]
    links = [LinkRecord(1, 0, False, None, 2, told=True), LinkRecord(1, 0, False, 5, 3)]
    assert folded([FIRST, *facts, *links])[3:] == [LinkRecord(1, 0, False, 5, 3, told=True)]


@given(histories(), st.integers(0, 1_000))
@usual
def test_a_space_that_was_erased_whole_folds_to_nothing(found, at):
    assert folded([*(None for _ in found.first), GoneRecord(at)]) == []


@given(histories(), st.data())
@usual
def test_a_record_that_was_zeroed_without_a_word_is_never_passed_over(found, data):
    told = [seq for seq, record in enumerate(found.second, 1) if record is not None]
    lost = data.draw(st.sampled_from(told))
    found.second[lost - 1] = None
    with pytest.raises(Corrupt) as caught:
        folded(found.second)
    assert (caught.value.space, caught.value.seq) == (1, lost)


@pytest.mark.parametrize(
    "records",
    [
        [FactRecord(0, "x", "words", 1)],
        [FIRST, FIRST],
        [FIRST, FactRecord(0, "x", "words", 1), FactRecord(0, "y", "words", 2)],
        [FIRST, FactRecord(0, "x", "words", 1, cuts=(2,)), FactRecord(1, "y", "words", 2)],
        [None, RemovalRecord((), 0, (), 1)],
    ],
    ids=["no space's record", "two of them", "a number twice", "a unit's number again", "a name zeroed"],
)
def test_what_no_space_can_hold_is_damage_and_is_not_folded(records):
    with pytest.raises(Corrupt):
        folded(records)


# Through the front door: histories of calls, with documents and keys among them.


class Lived:
    """A memory and its documents in a store whose log can be looked at."""

    def __init__(self, config: MemoryConfig) -> None:
        self.clock = ManualClock(NOW)
        self.log = MemoryLog(SECRET)
        self.store = Store.open(log=self.log, clock=self.clock)
        self.memory: Memory = self.store.memory(config=config)
        self.documents = self.store.documents(config=config)

    def run(self, call: Call) -> Any:
        name, told = call
        if name == "advance":
            return self.clock.advance(told["milliseconds"])
        try:
            reply = getattr(self.documents if name in ("put", "delete") else self.memory, name)(**told)
        except PerdureError as error:
            return error.code
        # A certificate tells how often the store was purged and what else an erasure took away.
        return (reply.forgotten, reply.dry_run) if name == "forget" else reply

    def run_all(self, script: Iterable[Call]) -> list[Any]:
        return [self.run(call) for call in script]

    def records(self) -> list[Record]:
        """All records of the space; only after a purge, when none is erased."""
        return [decode(data) for _, data in self.log.read(1, 0, self.log.head(1).seq) if data is not None]

    def answers(self) -> Any:
        """What reads show now and at other moments, the change feed left out."""
        _, *answers = everything(self.memory, as_ofs=(None, 3, 102), known_ats=(None, 101, 104))
        for query in ("alpha beta", "gamma red"):
            answers.append([(hit.id, hit.unit, hit.score) for hit in self.documents.search(query, k=1_000)])
        answers += [self.documents.list(limit=1_000).items, [self.memory.history(id_) for id_ in IDS]]
        answers.append([listed(self.memory, order=order) for order in ("-event", "importance", "last_used")])
        return answers


@st.composite
def lives(draw: Any, *, keyed: bool = True) -> list[Call]:
    """A script with documents among its calls, and idempotency keys."""
    random = Drawn(draw)
    script = []
    for call in draw(scripts(max_size=25)):
        name, told = call
        if random.choice(ONE_IN[6]):
            script.append(a_document_call(random))
        if keyed and name in ("remember", "annotate", "end", "forget") and random.choice(ONE_IN[4]):
            told = told | {"idempotency_key": random.choice(KEYS)}
        script.append((name, told))
    return script


def a_document_call(random: Chooser) -> Call:
    id_ = random.choice(("doc 0", "doc 1", IDS[0]))
    if random.choice(ONE_IN[4]):
        return "delete", {"id": id_}
    text = random.choice(TEXTS) + " " + random.choice(TEXTS)
    return "put", {
        "id": id_,
        "text": text if random.choice(ONE_IN[2]) else f"{text} " * 2_500,  # of several units
        "metadata": random.choice(METADATA),
    }


def settled(space: Lived) -> Lived:
    """Let the clock pass everything that is recorded: a removal is a record too, and a purge drops it."""
    space.clock.set(10_000)
    return space


@given(configs, lives())
@usual
def test_a_purge_changes_no_answer_at_any_moment(config, script):
    space = Lived(config)
    space.run_all(script)
    before = settled(space).answers()
    space.store.purge()
    assert space.answers() == before
    assert space.store.verify().findings == ()
    if space.store.spaces():
        check_dense(space.records())


@given(configs, lives(keyed=False), st.lists(strategies.calls(), max_size=12))
@usual
def test_what_is_told_after_a_purge_is_answered_as_if_there_had_been_none(config, script, later):
    purged, other = Lived(config), Lived(config)
    for space in (purged, other):
        space.run_all(script)
        settled(space)
    purged.store.purge()
    later = [call for call in later if call[0] != "advance"]
    assert purged.run_all(later) == other.run_all(later)
    assert settled(purged).answers() == settled(other).answers()


@given(configs, lives())
@usual
def test_a_second_purge_keeps_every_record_as_it_is(config, script):
    space = Lived(config)
    space.run_all(script)
    space.store.purge()
    before = space.records()
    assert space.store.purge().dropped == 0
    assert space.records() == before


@given(configs, lives())
@usual
def test_a_state_that_was_loaded_after_a_purge_answers_like_the_one_that_saw_it(config, script):
    space = Lived(config)
    space.run_all(script)
    settled(space).store.purge()
    other = Lived.__new__(Lived)
    other.store = Store.open(log=space.log, clock=space.clock)
    other.memory, other.documents = other.store.memory(config=config), other.store.documents(config=config)
    assert other.answers() == space.answers()
    assert other.memory.changes(limit=1_000).items == space.memory.changes(limit=1_000).items


def test_the_scripts_of_these_laws_tell_of_documents_and_receipts_and_hide_and_forget():
    seen: set[type] = set()
    for seed in range(30):
        random = Random(seed)
        space = Lived(MemoryConfig())
        calls = planting(random) + [strategies.a_call(random) for _ in range(20)] + [a_document_call(random)]
        space.run_all(calls)
        seen |= {type(decode(data)) for _, data in space.log.read(1, 0, space.log.head(1).seq) if data}
    assert {FactRecord, LinkRecord, EndRecord, AnnotationRecord, HideRecord, RemovalRecord} <= seen
