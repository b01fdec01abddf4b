"""Salvage of a journal saves every line that is whole, wherever it stands, tells of the others, and revives nothing."""

from __future__ import annotations

import json
import shutil
from collections import Counter

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from crash.damage import answers, hashes
from effort import examples
from perdure import (
    Busy,
    Conflict,
    Corrupt,
    InvalidRequest,
    ManualClock,
    NotFound,
    PerdureError,
    Store,
    WrongKey,
    salvage,
    verify,
)
from perdure.log.journal import JournalLog, is_journal
from perdure.log.protocol import Batch
from perdure.log.records import GoneRecord, UseRecord, encode

NOW = 1_700_000_000_000
SECRET = b"s" * 32
KINDS = {
    "SpaceRecord",
    "FactRecord",
    "LinkRecord",
    "EndRecord",
    "AnnotationRecord",
    "HideRecord",
    "RestoreRecord",
    "RemovalRecord",
    "ReceiptRecord",
    "UseRecord",
    "BlockRecord",
    "UnblockRecord",
    "GoneRecord",
}


def build(directory, *, secret=None):
    """Make a journal with records of every kind, some of them written anew by erasures, some appended."""
    clock = ManualClock(NOW)
    with Store.open(directory, clock=clock, backend="journal", secret=secret) as store:
        house, work, gone = store.memory(), store.memory("ada", "work"), store.memory("bob")
        for number in range(3):
            clock.advance(1000)
            house.remember(
                f"fact {number} of the house",
                id=f"f{number}",
                subject="house",
                supersedes=[f"f{number - 1}"] if number == 2 else None,
                idempotency_key=f"key-{number}",
            )
            work.remember(f"note {number} by ada", id=f"n{number}", tags=["note"], metadata={"n": number})
        gone.remember("Bob is here", id="bob")
        house.remember("the secret is out", id="secret")
        house.forget(ids=["secret"], block=True)
        work.remember("the plan is known", id="plan")
        work.forget(ids=["plan"], block=True)
        _append_rest(house, work)
        store.documents("ada", "work").put("manual", "how to air the rooms. " * 20)
    _append_uses_and_an_end(directory, secret)
    with Store.open(directory, clock=clock, secret=secret) as store:
        store.memory().remember("the last fact", id="last")
    return directory


def _append_rest(house, work):
    work.unblock(ids=["plan"])
    house.end("f0", reason="moved away")
    house.annotate("f1", tags=["seen"])
    house.correct("the roof is red", id="f2")
    house.forget(ids=["f1"], soft=True)
    house.forget(ids=["f0"], soft=True)
    house.restore(ids=["f1"])


def _append_uses_and_an_end(directory, secret):
    """Append what a process leaves that told of uses, and one that died between an erasure and its purge."""
    log = JournalLog.open(directory, secret=secret)
    house, bob = log.spaces()[0], 3
    log.append(house, log.head(house), Batch([encode(UseRecord((0,), b"context", NOW))]))
    head = log.head(bob)
    log.append(bob, head, Batch([encode(GoneRecord(NOW))], erase=range(1, head.seq + 1)))
    log.close()


def journal_of(store):
    [path] = store.glob("journal-*.jsonl")
    return path


def lines_of(store):
    return journal_of(store).read_bytes().splitlines(keepends=True)


def facts(directory, *, secret=None):
    """Return how often each fact and document is told, by id and text, in whichever space."""
    told = Counter()
    for space in answers(directory, secret=secret).values():
        shown = [*space["facts"].values(), *space["hidden"], *space["documents"]]
        told.update({each.id: each.text for each in shown}.items())
    return told


def said_by(lines):
    """Return the facts and documents that lines tell, as `facts` does."""
    records = [json.loads(line).get("record") or {} for line in lines]
    told = [record for record in records if record.get("type") == "FactRecord"]
    return Counter((record["id"], record["text"]) for record in told)


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    return build(tmp_path_factory.mktemp("salvage") / "store")


@pytest.fixture(scope="module")
def truth(whole):
    return facts(whole)


@pytest.fixture
def store(whole, tmp_path):
    return shutil.copytree(whole, tmp_path / "store")


@pytest.fixture
def out(tmp_path):
    return tmp_path / "out"


def flip(lines, at):
    line = bytearray(lines[at])
    line[len(line) // 2] ^= 1
    lines[at] = bytes(line)


def cut(lines, at):
    lines[at] = lines[at][: len(lines[at]) // 2] + b"\n"


def delete(lines, at):
    del lines[at]


def duplicate(lines, at):
    lines.insert(at, lines[at])


def swap(lines, at):
    other = (at + 1) % len(lines)
    lines[at], lines[other] = lines[other], lines[at]


def insert(lines, at):
    lines.insert(at, b'{"v":1,"seq":3,"sha":"00000000000000000000000000000000","space":1,"record":{}}\n')


def join(lines, at):
    lines[at] = lines[at][:-1] + b" "


def strip(lines, at):
    lines[at] = lines[at][:-1]


DAMAGES = [flip, cut, delete]
SHIFTS = [duplicate, swap, insert, join, strip]
LINES = range(34)


def test_the_journal_has_records_of_every_kind(whole):
    lines = [json.loads(line) for line in lines_of(whole)]
    assert {line["record"]["type"] for line in lines if "record" in line} == KINDS
    assert len(lines) == len(LINES)


# What is saved


def test_of_a_whole_journal_all_is_saved_into_another(store, out):
    before = hashes(store)
    saved = salvage(store, out)
    assert (saved.generation, saved.lost, saved.notes) == (int(journal_of(store).stem[8:]), (), ())
    assert hashes(store) == before
    assert is_journal(out)
    assert verify(out).ok
    old, new = answers(store), answers(out)
    assert old.keys() == new.keys()
    for name in old:
        for part in ("facts", "got", "hidden", "hits", "histories", "explained", "documents"):
            assert new[name][part] == old[name][part], part


def test_the_new_journal_is_private_writable_and_knows_the_idempotency_keys(store, out):
    salvage(store, out)
    assert all(path.stat().st_mode & 0o077 == 0 for path in out.iterdir())
    assert (out / "journal.key").read_bytes() == (store / "journal.key").read_bytes()
    with Store.open(out, clock=ManualClock(NOW + 10**8)) as opened:
        with pytest.raises(Conflict, match="idempotency"):
            opened.memory().remember("another text", idempotency_key="key-2")
        opened.memory().remember("one more", id="more")
        opened.purge()
    assert verify(out).ok


@pytest.mark.slow
@pytest.mark.parametrize("number", LINES)
@pytest.mark.parametrize("damage", DAMAGES)
def test_a_line_that_is_damaged_is_lost_alone_and_named(store, truth, out, damage, number):
    lines = lines_of(store)
    line = json.loads(lines[number])
    expected = truth - said_by([lines[number]])
    damage(lines, number)
    journal_of(store).write_bytes(b"".join(lines))
    saved = salvage(store, out)
    assert verify(out).ok
    assert facts(out) == expected
    assert any(f"line {number + 1} of journal-" in note for note in saved.notes)
    places = [(finding.space, finding.seq) for finding in saved.lost]
    assert ((line["space"], line["seq"]) in places) == ("record" in line)
    assert bool(saved.lost) == ("record" in line)


@pytest.mark.slow
@pytest.mark.parametrize("number", LINES)
@pytest.mark.parametrize("shift", SHIFTS)
def test_a_line_that_only_moved_or_met_another_is_saved(store, truth, out, shift, number):
    lines = lines_of(store)
    shift(lines, number)
    journal_of(store).write_bytes(b"".join(lines))
    saved = salvage(store, out)
    assert (saved.lost, saved.notes) == ((), ())
    assert verify(out).ok
    assert facts(out) == truth


def test_lines_that_got_other_ends_and_marks_between_them_are_saved(store, out):
    expected = facts(store)
    lines = lines_of(store)
    changed = [
        b"\xef\xbb\xbf" + lines[0],
        b"<<<<<<< ours\n",
        *lines[1:],
        b"=======\n",
        *lines[9:],
        b">>>>>>> theirs\n",
    ]
    journal_of(store).write_bytes(b"".join(changed).replace(b"\n", b"\r\n"))
    saved = salvage(store, out)
    assert (saved.lost, saved.notes) == ((), ())
    assert facts(out) == expected


@pytest.mark.slow
@given(data=st.data())
@settings(
    max_examples=examples(25),
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
)
def test_every_line_that_is_still_in_the_file_is_saved_whatever_else_happened_to_it(
    whole, truth, tmp_path, data
):
    store, out = tmp_path / "store", tmp_path / "out"
    for place in (store, out):
        shutil.rmtree(place, ignore_errors=True)
    shutil.copytree(whole, store)
    before = lines_of(store)
    lines = data.draw(st.permutations(before)) if data.draw(st.booleans()) else list(before)
    for damage in data.draw(st.lists(st.sampled_from([*DAMAGES, *SHIFTS[:3]]), max_size=12)):
        damage(lines, data.draw(st.integers(0, len(lines) - 1)))
    journal_of(store).write_bytes(b"".join(lines))
    kept = said_by(line for line in before if line in lines)
    saved = salvage(store, out)
    assert verify(out).ok
    told = facts(out)
    assert told == truth & kept
    assert told == truth or saved.lost


def test_lines_behind_a_long_gap_are_saved(tmp_path, out):
    with Store.open(tmp_path / "store", backend="journal") as store:
        store.memory().remember_many([{"text": f"fact {n}", "id": f"f{n}"} for n in range(400)])
        store.memory().remember("the last fact", id="last")
    lines = lines_of(tmp_path / "store")
    del lines[50:350]
    journal_of(tmp_path / "store").write_bytes(b"".join(lines))
    expected = said_by(lines)
    saved = salvage(tmp_path / "store", out)
    assert facts(out) == expected
    assert any("lines 51 to 350 of journal-" in note for note in saved.notes)
    assert ("records 49 to 348 of space 1 are lost") in [finding.message for finding in saved.lost]


# The end of the file


def test_acknowledged_lines_of_which_nothing_is_left_are_told(store, out):
    lines = lines_of(store)
    journal_of(store).write_bytes(b"".join(lines[:-2]))
    saved = salvage(store, out)
    assert facts(out) == said_by(lines[:-2])
    [lost] = saved.lost
    assert "2 had no record that is missed" in lost.message


def test_a_last_batch_that_was_not_acknowledged_is_left_out_unless_it_is_whole(store, out, tmp_path):
    mark = next(store.glob("*.mark"))
    before, acknowledged = facts(store), mark.read_bytes()
    with Store.open(store) as opened:
        opened.memory().remember_many([{"text": "one of two"}, {"text": "two of two"}])
    after, lines = facts(store), lines_of(store)
    mark.write_bytes(acknowledged)
    assert salvage(store, out).lost == ()
    assert facts(out) == after
    for count, left in ((1, lines[:-1]), (2, lines[:-3] + lines[-2:])):
        journal_of(store).write_bytes(b"".join(left))
        saved = salvage(store, tmp_path / f"out-{count}")
        assert saved.lost or any("not acknowledged" in note or "acknowledged" in note for note in saved.notes)
        assert facts(tmp_path / f"out-{count}") == before


def test_one_lost_line_after_the_mark_costs_its_batch_alone(tmp_path, out):
    directory = tmp_path / "store"
    with Store.open(directory, backend="journal") as store:
        store.memory().remember("The first fact", id="first")
    mark = (directory / "journal-1.mark").read_bytes()
    with Store.open(directory) as store:
        for number in range(6):
            store.memory().remember(f"fact {number}", id=f"f{number}")
    (directory / "journal-1.mark").write_bytes(mark)  # as with durability "normal", until the store is closed
    lines = lines_of(directory)
    flip(lines, [b'"f2"' in line for line in lines].index(True))
    journal_of(directory).write_bytes(b"".join(lines))
    saved = salvage(directory, out)
    assert {id_ for id_, _ in facts(out)} == {"first", "f0", "f1", "f3", "f4", "f5"}
    assert [finding.space for finding in saved.lost] == [1, 1]


@pytest.mark.parametrize("mark", [None, b"", b"\xff" * 8, bytes(8), (3).to_bytes(8, "little")])
def test_a_damaged_mark_costs_nothing(store, out, mark):
    expected = facts(store)
    path = next(store.glob("*.mark"))
    path.unlink()
    if mark is not None:
        path.write_bytes(mark)
    assert salvage(store, out).lost == ()
    assert facts(out) == expected


# What was erased


@pytest.fixture(params=[(0, 0), (0, 1), (1, 0), (1, 1)], ids=str)
def erased(request, tmp_path):
    """A journal of which something was erased, and its lines from before: told within a millisecond, or not."""
    directory, clock = tmp_path / "erased", ManualClock(NOW)
    with Store.open(directory, backend="journal", clock=clock) as store:
        memory = store.memory()
        memory.remember("The secret is out", id="secret")
        clock.advance(request.param[0])
        memory.remember("The kettle is blue", id="kettle")
        clock.advance(request.param[1])
        before = lines_of(directory)
        memory.forget(ids=["secret"])
    return directory, before


@pytest.mark.parametrize("at", [0, 1, 2, 3, 4, 5])
def test_an_erased_line_that_somebody_put_back_stays_away(erased, out, at):
    directory, before = erased
    [secret] = [line for line in before if b"The secret" in line]
    lines = lines_of(directory)
    for changed in ([*lines[:at], secret, *lines[at:]], [*lines[:at], secret, *lines[at + 1 :]]):
        journal_of(directory).write_bytes(b"".join(changed))
        try:
            salvage(directory, out)
        except Corrupt:
            continue
        told = facts(out)
        assert set(told) <= {("kettle", "The kettle is blue")}
        assert all(b"The secret" not in path.read_bytes() for path in out.iterdir())
        shutil.rmtree(out)


def test_lines_of_before_a_purge_at_the_end_of_the_file_stay_away(erased, out):
    directory, before = erased
    with Store.open(directory) as store:
        store.purge()
    path = journal_of(directory)
    path.write_bytes(path.read_bytes() + b"".join(before[-2:]) + b"".join(before[1:]))
    try:
        saved = salvage(directory, out)
    except Corrupt:
        assert not out.exists()
    else:
        assert set(facts(out)) <= {("kettle", "The kettle is blue")}
        told = [finding.message for finding in saved.lost]
        assert any("older copy" in message or "none is taken for it" in message for message in told)


def test_a_line_of_before_a_purge_in_the_place_of_another_is_noted(erased, out):
    directory, before = erased
    with Store.open(directory) as store:
        store.purge()
    lines = lines_of(directory)
    numbers = [number for number, line in enumerate(before) if b"The secret" in line]
    changed = [*lines[:2], *before[numbers[0] : numbers[0] + 1], *lines[3:]]
    journal_of(directory).write_bytes(b"".join(changed))
    saved = salvage(directory, out)
    assert saved.lost or any("forget it again" in note for note in saved.notes)


def test_an_older_generation_is_not_read_in_place_of_the_one_that_is_the_store(erased, out):
    directory, before = erased
    newest = journal_of(directory)
    (directory / "journal-1.jsonl").write_bytes(b"".join(before))
    salvage(directory, out)
    assert set(facts(out)) == {("kettle", "The kettle is blue")}
    shutil.rmtree(out)
    for change in (lambda: newest.write_bytes(b""), newest.unlink):
        change()
        with pytest.raises(Corrupt, match="backup"):
            salvage(directory, out)
        assert not out.exists()


def test_without_the_pointer_the_newest_generation_is_read_or_none(erased, out):
    directory, before = erased
    (directory / "journal-1.jsonl").write_bytes(b"".join(before))
    (directory / "journal.current").write_bytes(b"?")
    saved = salvage(directory, out)
    assert set(facts(out)) == {("kettle", "The kettle is blue")}
    assert any("journal.current is damaged or missing" in note for note in saved.notes)
    shutil.rmtree(out)
    (directory / "journal.current").unlink()
    (directory / "journal-2.mark").unlink()
    with pytest.raises(Corrupt, match="which generation"):
        salvage(directory, out)
    assert not out.exists()


# Secrets


@pytest.mark.parametrize("key", [None, b"", b"0" * 64 + b"\n", b"?\n"])
def test_without_its_secret_no_line_can_be_proven_and_it_says_what_to_do(store, out, key):
    expected, secret = facts(store), bytes.fromhex((store / "journal.key").read_text())
    (store / "journal.key").unlink()
    if key is not None:
        (store / "journal.key").touch(0o600)
        (store / "journal.key").write_bytes(key)
    with pytest.raises(Corrupt, match=r"restore journal.key .* or give its 32 bytes as secret="):
        salvage(store, out)
    assert not out.exists()
    assert salvage(store, out, secret=secret).lost == ()
    assert facts(out) == expected
    assert bytes.fromhex((out / "journal.key").read_text()) == secret


def test_a_key_whose_line_feed_was_changed_is_read(store, out):
    path = store / "journal.key"
    path.write_bytes(path.read_bytes()[:-1] + b"\r\n")
    assert salvage(store, out).lost == ()


def test_a_secret_from_outside_is_asked_for_and_stays_outside(tmp_path, out):
    store = build(tmp_path / "store", secret=SECRET)
    for secret in (None, b"x" * 32):
        with pytest.raises(WrongKey):
            salvage(store, out, secret=secret)
    with pytest.raises(InvalidRequest, match="32 bytes"):
        salvage(store, out, secret=b"short")
    lines = lines_of(store)
    journal_of(store).write_bytes(b"".join(lines[1:]))
    assert not out.exists()
    assert salvage(store, out, secret=SECRET).lost == ()
    assert not (out / "journal.key").exists()
    with pytest.raises(WrongKey):
        Store.open(out)
    assert facts(out, secret=SECRET) == facts(build(tmp_path / "again", secret=SECRET), secret=SECRET)


def test_where_no_line_holds_nothing_is_made(store, out):
    path = journal_of(store)
    for content in (b"", bytes(1000), path.read_bytes().replace(b'"sha":"', b'"sha":"0')):
        path.write_bytes(content)
        with pytest.raises(Corrupt, match="backup"):
            salvage(store, out)
        assert not out.exists()


# Arguments


def test_a_journal_that_is_open_is_busy_and_one_without_its_lock_is_read(store, out, monkeypatch):
    monkeypatch.setattr("perdure.log.journal.salvaging.WAIT_S", 0.05)
    with Store.open(store), pytest.raises(Busy):
        salvage(store, out)
    assert not out.exists()
    (store / "journal.lock").unlink()
    salvage(store, out)
    assert not (store / "journal.lock").exists()


def test_a_journal_has_no_key_and_is_not_its_own_copy(store, out):
    with pytest.raises(InvalidRequest) as caught:
        salvage(store, out, key=b"k" * 32)
    assert caught.value.field == "key"
    for place in (store, store / "inside"):
        with pytest.raises(InvalidRequest):
            salvage(store, place)
    with pytest.raises(NotFound):
        salvage(store.parent / "absent", out)
    assert not out.exists()


@pytest.mark.parametrize("name", ["journal.current", "journal.key", "mark", "jsonl"])
def test_what_lies_in_the_place_of_a_file_is_an_error_or_of_no_consequence(store, out, name):
    path = store / name if "." in name else next(store.glob(f"journal-*.{name}"))
    path.unlink()
    path.mkdir()
    try:
        salvage(store, out)
    except PerdureError:
        assert not out.exists()
    else:
        assert facts(out)
