"""What was refused, asked or given as a key is written nowhere, and no message or log line shows it."""

from __future__ import annotations

import io
import json
import logging
import traceback

import pytest

from erasure.places import MARKER, open_store
from erasure.scan import holders
from perdure import Blocked, Conflict, InvalidRequest, MemoryConfig, NotFound, PerdureError
from perdure.importers.importing import Target, import_entries
from perdure.importers.sources import read_stream


@pytest.fixture
def store(tmp_path):
    with open_store(tmp_path / "store") as opened:
        memory = opened.memory()
        memory.remember("a plain fact", id="x", tags=["t"])
        memory.remember("what was blocked", id="b")
        memory.forget(ids=["b"], block=True)
        yield opened


def nested(depth=2_000):
    value = MARKER
    for _ in range(depth):
        value = [value]
    return value


REFUSED = {
    "text too long": (InvalidRequest, lambda m: m.remember(f"{MARKER} " * 5_000)),
    "id too long": (InvalidRequest, lambda m: m.remember("a", id=MARKER * 20)),
    "reserved id": (InvalidRequest, lambda m: m.remember("a", id=f"perdure:{MARKER}")),
    "control character in an id": (InvalidRequest, lambda m: m.remember("a", id=f"{MARKER}\0")),
    "subject too long": (InvalidRequest, lambda m: m.remember("a", subject=MARKER * 200)),
    "metadata too deep": (InvalidRequest, lambda m: m.remember("a", metadata={"k": nested()})),
    "metadata that is no JSON": (InvalidRequest, lambda m: m.remember("a", metadata={"k": {MARKER}})),
    "unknown kind": (InvalidRequest, lambda m: m.remember("a", kind=MARKER)),
    "instant that is none": (InvalidRequest, lambda m: m.remember("a", valid_from=MARKER)),
    "empty interval": (InvalidRequest, lambda m: m.remember(MARKER, valid_from=5, valid_to=5)),
    "unknown superseded id": (InvalidRequest, lambda m: m.remember(MARKER, supersedes=[MARKER])),
    "one member of a batch": (
        InvalidRequest,
        lambda m: m.remember_many([MARKER, {"text": MARKER, "id": ""}]),
    ),
    "same id in a batch": (
        Conflict,
        lambda m: m.remember_many([{"text": MARKER, "id": MARKER}, {"text": "b", "id": MARKER}]),
    ),
    "taken id": (Conflict, lambda m: m.remember(MARKER, id="x")),
    "blocked id": (Blocked, lambda m: m.remember(MARKER, id="b")),
    "blocked text": (Blocked, lambda m: m.remember("What  WAS blocked", id=MARKER, subject=MARKER)),
    "correction of nothing": (NotFound, lambda m: m.correct(MARKER, id=MARKER)),
    "correction of no text": (NotFound, lambda m: m.correct("a", text=MARKER)),
    "end of nothing": (NotFound, lambda m: m.end(MARKER, reason=MARKER)),
    "annotation of nothing": (NotFound, lambda m: m.annotate(MARKER, tags=[MARKER])),
    "explanation of nothing": (NotFound, lambda m: m.explain(MARKER, MARKER)),
    "filter that is none": (InvalidRequest, lambda m: m.recall("a", filter=[MARKER])),
    "history that is none": (InvalidRequest, lambda m: m.recall(MARKER, history=MARKER)),
    "cursor that is none": (PerdureError, lambda m: m.list(cursor=MARKER)),
    "change that is none": (PerdureError, lambda m: m.changes(MARKER)),
    "order that is none": (InvalidRequest, lambda m: m.list(order=MARKER)),
    "two scopes": (InvalidRequest, lambda m: m.forget(text=MARKER, subject=MARKER)),
}


@pytest.mark.parametrize(("error", "call"), REFUSED.values(), ids=REFUSED)
def test_what_was_refused_is_in_no_file_message_or_log_line(store, tmp_path, caplog, error, call):
    caplog.set_level(logging.DEBUG)
    with pytest.raises(error) as raised:
        call(store.memory())
    message = "".join(traceback.format_exception_only(raised.value)) + str(raised.value.details)
    assert MARKER[:10] not in message + caplog.text
    assert holders(tmp_path / "store", MARKER) == {}


def test_a_key_that_was_used_again_is_in_no_file_message_or_log_line(store, tmp_path, caplog):
    caplog.set_level(logging.DEBUG)
    memory, documents = store.memory(), store.documents()
    memory.remember("one", idempotency_key=MARKER)
    memory.annotate("x", tags=["u"], idempotency_key=MARKER)
    documents.put("d", "a document", idempotency_key=MARKER)
    for call in (
        lambda: memory.remember(MARKER, idempotency_key=MARKER),
        lambda: memory.annotate("x", tags=[MARKER], idempotency_key=MARKER),
        lambda: documents.put("d", MARKER, idempotency_key=MARKER),
        lambda: documents.put("d", MARKER, if_version=7),
    ):
        with pytest.raises(Conflict) as raised:
            call()
        assert MARKER not in str(raised.value) + str(raised.value.details) + caplog.text
    assert holders(tmp_path / "store", MARKER) == {}


def test_what_was_asked_is_in_no_file_and_no_log_line(store, tmp_path, caplog):
    caplog.set_level(logging.DEBUG)
    memory, documents = store.memory(), store.documents()
    memory.recall(MARKER, explain=True, subject=MARKER, filter={MARKER: MARKER})
    memory.explain(f"plain {MARKER}", "x")
    memory.list(subject=MARKER, tags=[MARKER])
    memory.history(MARKER)
    documents.search(MARKER)
    memory.forget(text=MARKER, dry_run=True)
    memory.forget(containing=MARKER)
    memory.forget(ids=[MARKER], block=True)
    memory.restore([MARKER])
    memory.unblock(ids=[MARKER], texts=[MARKER])
    assert documents.delete(MARKER).deleted is False
    store.close()
    assert MARKER not in caplog.text
    assert holders(tmp_path / "store", MARKER) == {}


def test_what_an_extractor_failed_on_is_in_no_file(store, tmp_path):
    def quarrel(text):
        raise ZeroDivisionError

    memory = store.memory(config=MemoryConfig(extractor=quarrel))
    with pytest.raises(ZeroDivisionError):
        memory.remember(MARKER)
    assert holders(tmp_path / "store", MARKER) == {}


BAD_LINES = [
    json.dumps({"text": f"{MARKER} " * 5_000}).encode(),
    json.dumps({"text": MARKER, "unknown": MARKER}).encode(),
    json.dumps({"text": MARKER, "id": "x"}).encode(),
    json.dumps({"text": "what was BLOCKED", "subject": MARKER}).encode(),
    json.dumps({"text": MARKER, "supersedes": [MARKER]}).encode(),
    f'{{"text": "{MARKER}'.encode(),
    f'"{MARKER}'.encode() + b"\xff",
]


@pytest.mark.parametrize("lenient", [True, False])
def test_the_bad_lines_of_an_import_are_in_no_file_and_no_reason(store, tmp_path, caplog, lenient):
    caplog.set_level(logging.DEBUG)
    lines = b"\n".join([*BAD_LINES, b'{"text": "a good line"}'])
    entries = list(read_stream(io.BytesIO(lines), "facts.jsonl", "jsonl"))
    report = import_entries(entries, Target(store), lenient=lenient)
    assert len(report.bad) == len(BAD_LINES) if lenient else report.stored == 0
    assert report.stored == int(lenient)
    assert MARKER not in repr(report) + caplog.text
    assert holders(tmp_path / "store", MARKER) == {}
