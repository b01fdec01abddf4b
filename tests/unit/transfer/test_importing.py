"""An import that fails says what was stored, tries no write again, and goes on where it was."""

from __future__ import annotations

import io
import json
import os
import tracemalloc

import pytest

from backends import chosen, fresh, open_at
from perdure import (
    Busy,
    Corrupt,
    ImportFailed,
    InvalidRequest,
    ManualClock,
    Namespace,
    NewFact,
    StorageFull,
    Store,
    Unavailable,
)
from perdure.transfer.reading import is_export

BIG = "word " + "x" * 9_995  # 10 kB, of which little is to be analysed
MANY = 2_500  # three transactions


@pytest.fixture
def lines():
    """An export of facts for three transactions, each fact with a link to the one before."""
    with fresh(clock=ManualClock(1_000)) as source:
        memory = source.memory("ann")
        memory.remember_many([NewFact(text=f"fact {n}", id=str(n)) for n in range(MANY)])
        yield b"".join(source.export_lines())


@pytest.fixture
def target(tmp_path):
    with open_at(
        tmp_path / "target", *chosen("sqlite"), clock=ManualClock(2_000), durability="normal"
    ) as store:
        yield store


def body(store):
    return b"".join(store.export_lines()).split(b"\n", 1)[1]


def failing(store, monkeypatch, error, *, after):
    """Let appends fail from a certain one on; return the list of those that were tried."""
    tried, real = [], store.log.append

    def append(space, expected, batch):
        tried.append(len(batch.records))
        if len(tried) > after:
            raise error
        return real(space, expected, batch)

    monkeypatch.setattr(store.log, "append", append)
    return tried


@pytest.mark.parametrize(
    ("error", "after", "committed"),
    [
        (Busy("busy"), 0, "no"),
        (StorageFull("full"), 0, "no"),
        (Unavailable("gone"), 0, "unknown"),
        (Busy("busy"), 1, "yes"),
        (StorageFull("full"), 2, "yes"),
        (Unavailable("gone"), 1, "yes"),
    ],
)
def test_a_write_that_fails_is_tried_once_and_told_as_what_it_leaves(
    target, lines, monkeypatch, error, after, committed
):
    with monkeypatch.context() as patch:
        tried = failing(target, patch, error, after=after)
        with pytest.raises(ImportFailed) as failed:
            target.import_([lines])
    assert len(tried) == after + 1
    assert (failed.value.code, failed.value.committed) == ("import_failed", committed)
    assert failed.value.details["cause"] == error.code
    assert failed.value.__cause__ is error
    assert len(target.memory("ann").list(limit=1).items) == min(after, 1)
    report = target.import_([lines])
    assert (report.created, report.existing) == (MANY - 1_000 * after, 1_000 * after)
    assert body(target) == lines.split(b"\n", 1)[1]


def test_a_read_that_fails_stores_nothing(target, lines, monkeypatch):
    target.memory("ann", "other").remember("one")

    def head(_):
        raise Corrupt("damaged", space=1)

    with monkeypatch.context() as patch:
        patch.setattr(target.log, "head", head)
        with pytest.raises(ImportFailed) as failed:
            target.import_([lines])
    # Where a database looks names up, the first who reads is whoever has begun to write.
    is_writer = getattr(target.log, "keeps_names", False)
    told = failed.value.committed, failed.value.details["cause"]
    assert told == ("unknown" if is_writer else "no", "corrupt")
    assert list(target.memory("ann").list().items) == []


def test_a_source_that_breaks_off_while_it_is_read_stores_nothing(target, lines):
    class Broken(io.RawIOBase):
        def readable(self):
            return True

        def readinto(self, buffer):
            raise OSError(5, "Input/output error")

    with pytest.raises(Unavailable, match="cannot be read"):
        target.import_(io.BufferedReader(Broken()))
    assert target.spaces() == []


def test_a_file_is_read_from_a_path_a_stream_or_pieces_alike(tmp_path, lines):
    path = tmp_path / "lines.jsonl"
    path.write_bytes(lines)
    pipe_out, pipe_in = os.pipe()
    small = lines.splitlines(keepends=True)
    with os.fdopen(pipe_in, "wb") as writing, path.open("rb") as stream:
        cut = b"".join([*small[:3], b'{"type":"space-end","facts":1,"documents":0,"records":1}\n'])
        writing.write(cut + b'{"type":"total","spaces":1,"records":1}\n')
        writing.close()
        with os.fdopen(pipe_out, "rb") as piped:
            sources = {"path": path, "text": str(path), "stream": stream, "pieces": small, "piped": piped}
            for name, source in sources.items():
                with Store.open(":memory:") as store:
                    report = store.import_(source)
                    assert report.facts == (1 if name == "piped" else MANY)


def closed():
    stream = io.BytesIO(b"")
    stream.close()
    return stream


@pytest.mark.parametrize("strict", [True, False])
@pytest.mark.parametrize(
    "source", [7, None, b"bytes", ["text"], [7], io.StringIO("text"), closed(), "", "a\0b", "\udcff", "/"]
)
def test_a_source_of_another_kind_is_refused(target, source, strict):
    with pytest.raises(InvalidRequest) as refused:
        target.import_(source, strict=strict)
    assert refused.value.field == "source"


def test_a_stream_that_is_open_for_writing_alone_is_refused(target, tmp_path):
    with (tmp_path / "out").open("wb") as stream, pytest.raises(InvalidRequest, match="open to be read"):
        target.import_(stream)


def test_a_file_that_is_not_there_is_refused_by_name_of_the_argument(target, tmp_path):
    with pytest.raises(InvalidRequest) as refused:
        target.import_(tmp_path / "absent")
    assert refused.value.field == "source"


def test_an_export_is_known_by_its_header_however_that_is_written():
    header = {"format": "perdure-export", "version": 1}
    known = [
        json.dumps(header), json.dumps(header, indent=1).replace("\n", " "), "\ufeff" + json.dumps(header),
        '{"unheard":[{}],"version":7,"format":"perdure-export"}', '{"version":1,"format" :"perdure\\u002dexport"}',
    ]  # fmt: skip
    for line in known:
        for rest in ("", '\n{"type":"total"}\n', "\r\n"):
            assert is_export((line + rest).encode()), line
    fact = {"text": json.dumps(header), "metadata": header}
    for line in (json.dumps(fact), "[1]", '"perdure-export"', "", '{"format":"perdure"}', '{"format":'):
        assert not is_export(line.encode()), line


@pytest.mark.parametrize(
    "told", [{"dry_run": 1}, {"strict": "no"}, {"spaces": []}, {"spaces": ["a"]}, {"into": "a"}]
)
def test_wrong_options_are_refused(target, told):
    with pytest.raises(InvalidRequest) as refused:
        target.import_([], **told)
    assert refused.value.field == next(iter(told))


def test_a_space_that_the_file_does_not_hold_is_a_problem(target, lines):
    with pytest.raises(ImportFailed, match="not in the file"):
        target.import_([lines], spaces=[Namespace("Ann")])
    assert target.spaces() == []


def test_into_takes_one_space(target):
    with Store.open(":memory:") as source:
        for name in ("ann", "bob"):
            source.memory(name).remember("one")
        two = list(source.export_lines())
    with pytest.raises(ImportFailed, match="into takes one"):
        target.import_(two, into=Namespace("cem"))
    assert target.spaces() == []


def test_a_space_comes_into_being_with_its_first_good_line_only(target, lines):
    bad = [
        line.replace(b'"ingestTime":1000', b'"ingestTime":"x"') for line in lines.splitlines(keepends=True)
    ]
    report = target.import_(bad, strict=False)
    assert (report.created, report.skipped) == (0, MANY)
    assert target.log.spaces() == []


def test_lines_that_name_what_was_left_out_are_left_out_with_it(target):
    with Store.open(":memory:", clock=ManualClock(1_000)) as source:
        memory = source.memory("ann")
        memory.remember("one", id="a", idempotency_key="k")
        memory.remember("two", id="b", supersedes=["a"])
        memory.end("a", at=2_000)
        told = list(source.export_lines())
    told[2] = told[2].replace(b'"text":"one"', b'"text":" "')
    report = target.import_(told, strict=False)
    assert [problem.line for problem in report.problems] == [3, 4, 6, 7]
    assert (report.created, report.skipped) == (1, 4)


def test_what_another_process_writes_between_two_transactions_is_kept(tmp_path, lines, monkeypatch):
    options = {"clock": ManualClock(1_000), "durability": "normal"}
    with (
        Store.open(tmp_path / "store", **options) as target,
        Store.open(tmp_path / "store", **options) as other,
    ):
        real, beside = target.log.append, other.memory("ann")

        def append(space, expected, batch):
            head = real(space, expected, batch)
            waiting.append((space, expected))
            return head

        waiting = []
        seen = []

        def progress(done, of):
            if waiting and not seen:
                seen.append(beside.remember("beside", id="beside"))

        with monkeypatch.context() as patch:
            patch.setattr(target.log, "append", append)
            report = target.import_([lines], progress=progress)
        assert (report.created, len(waiting)) == (MANY, 3)
        assert [fact.id for fact in target.memory("ann").list(order="id", limit=1_000).items[-1:]] != []
        assert target.memory("ann").get("beside") is not None
        assert other.memory("ann").get("0") is not None


def test_an_import_needs_little_memory_beyond_the_state_of_the_space(tmp_path):
    path = tmp_path / "big.jsonl"
    with Store.open(tmp_path / "source", durability="normal") as source:
        memory = source.memory()
        for start in range(0, 1_000, 250):
            memory.remember_many([NewFact(text=f"{n} {BIG}", id=str(n)) for n in range(start, start + 250)])
        source.export(path)
    assert path.stat().st_size > 10_000_000
    with Store.open(tmp_path / "target", durability="normal") as target:
        tracemalloc.start()
        try:
            target.import_(path, dry_run=True)
            judged = tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()
        assert judged < 20_000_000  # a transaction's lines of 4 MiB, and what was made of them
        assert target.import_(path).facts == 1_000


def test_progress_is_told_in_bytes_of_both_readings(target, lines, tmp_path):
    path = tmp_path / "lines.jsonl"
    path.write_bytes(lines)
    seen = []
    target.import_(path, progress=lambda done, of: seen.append((done, of)))
    assert seen[-1][1] == 2 * len(lines)
    assert [done for done, _ in seen] == sorted(done for done, _ in seen)
    header = json.loads(lines.splitlines()[0])
    assert header["format"] == "perdure-export"
    assert seen[-1][0] <= 2 * len(lines)
