"""What a client reads back from a reply is what the engine gave."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from contract.stores import PRINCIPAL, SCOPE, open_store
from perdure import NewFact, errors
from perdure.contract import reading, replies, wire
from perdure.contract.naming import on_the_wire, python_names
from perdure.contract.wire import error_object


@pytest.fixture(scope="module")
def store():
    with open_store("full") as opened:
        yield opened


@pytest.fixture
def memory(store):
    return store.memory(PRINCIPAL, SCOPE)


def sent(plain, kind):
    """Return a reply after its way over a wire."""
    return msgspec.json.decode(msgspec.json.encode(plain), type=kind)


def test_facts_and_pages(memory):
    page = memory.list(limit=50)
    assert reading.read_page(sent(wire.page_object(page, wire.fact_object), replies.FactPage)) == page
    assert any(fact.source for fact in page.items)
    assert any(fact.ends for fact in page.items)


@pytest.mark.parametrize("query", ["Ann", "tea in the morning", "カフェ"])
def test_hits_with_and_without_explanations(memory, query):
    for hit in memory.recall(query, history="all"):
        assert reading.read_hit(sent(wire.hit_object(hit), replies.HitObject)) == hit
    for hit in memory.recall(query, history="all", explain=True, context=True):
        told = reading.read_hit(sent(wire.hit_object(hit), replies.HitObject))
        assert told.explanation.marks == hit.explanation.marks
        assert plain(told.explanation) == plain(hit.explanation)


def plain(explanation):
    return msgspec.structs.replace(explanation, marking=None)


def test_traces_and_differences(memory):
    trace = memory.trace("Ann", k=2, history="all")
    assert reading.read_trace(sent(wire.trace_object(trace), replies.TraceObject)) == trace
    diff = memory.diff(("2026-03-01", "2026-03-02"))
    assert reading.read_diff(sent(wire.diff_object(diff), replies.DiffObject)) == diff


def test_changes_and_capabilities(memory):
    changes = memory.changes()
    assert reading.read_changes(sent(wire.changes_object(changes), replies.ChangesReply)) == changes
    told = memory.capabilities()
    assert reading.read_capabilities(sent(wire.capabilities_object(told), replies.CapabilitiesReply)) == told


def test_receipts():
    with open_store("full") as store:
        memory = store.memory(PRINCIPAL, SCOPE)
        told = memory.remember_many([NewFact(text="Ann sails"), NewFact(text="Ann rows", supersedes=["tea"])])
        for one in told:
            assert reading.read_remembered(sent(wire.remembered_object(one), replies.Remembered)) == one
        merged = memory.merge("berlin", ["bike-2"])
        assert reading.read_merged(sent(wire.merged_object(merged), replies.Merged)) == merged
        forgotten = memory.forget(ids=["paris"], purge=True)
        assert reading.read_forgotten(sent(wire.forgotten_object(forgotten), replies.Forgotten)) == forgotten
        planned = memory.consolidate()
        assert (
            reading.read_consolidated(sent(wire.consolidated_object(planned), replies.Consolidated))
            == planned
        )
        again = memory.reindex(profile="unicode.v1")
        assert reading.read_reindexed(sent(wire.reindexed_object(again), replies.ReindexedReply)) == again


def test_documents():
    with open_store("full") as store:
        documents = store.documents(PRINCIPAL, SCOPE)
        page = documents.list()
        object_ = wire.page_object(page, wire.document_object)
        assert reading.read_document_page(sent(object_, replies.DocumentPage)) == page
        for hit in documents.search("kettle"):
            assert (
                reading.read_document_hit(sent(wire.document_hit_object(hit), replies.DocumentHitObject))
                == hit
            )
        put = documents.put("notes", "other notes")
        assert reading.read_put(sent(wire.put_object(put), replies.PutReply)) == put
        gone = documents.delete("notes")
        assert reading.read_deleted(sent(wire.deleted_object(gone), replies.DeletedReply)) == gone


def test_what_stores_answer():
    with open_store("full") as store:
        stats = store.stats()
        assert reading.read_stats(sent(wire.stats_object(stats), replies.StatsReply)) == stats
        some = store.stats(spaces=store.spaces()[:1])
        assert some.size_bytes is None
        assert some.facts < stats.facts
        assert reading.read_stats(sent(wire.stats_object(some), replies.StatsReply)) == some
        verified = store.verify()
        assert reading.read_verified(sent(wire.verified_object(verified), replies.VerifiedReply)) == verified
        erased = store.erase("bob")
        assert reading.read_erased(sent(wire.erased_object(erased), replies.ErasedReply)) == erased
        purged = store.purge()
        assert reading.read_purged(sent(wire.purged_object(purged), replies.PurgedReply)) == purged


ERRORS = [
    errors.InvalidRequest("valid_to must lie after valid_from", field="valid_to", index=3),
    errors.QueryLimit("work", 10),
    errors.NotFound("no fact of this space has that id", field="id"),
    errors.Conflict("2 current facts match", kind="several", ids=["a", "b"]),
    errors.Busy("another process writes"),
    errors.Corrupt("record 3 is damaged", generation=1, space=2, seq=3),
    errors.Unauthorized("there is no key"),
]


@pytest.mark.parametrize("error", ERRORS, ids=lambda error: type(error).__name__)
def test_errors_come_back_with_class_field_details_and_attributes(error):
    told = reading.read_error(msgspec.json.decode(msgspec.json.encode(error_object(error))))
    assert type(told) is type(error)
    assert (str(told), told.field) == (str(error), error.field)
    known = {name: value for name, value in error.details.items() if value is not None}
    assert told.details == known
    for name in known:
        if hasattr(error, name):
            assert getattr(told, name) == getattr(error, name)


@pytest.mark.parametrize("told", [{}, {"error": None}, {"error": "text"}, {"error": {"code": 5}}])
def test_what_is_no_error_reply_is_a_fault_of_the_server(told):
    assert isinstance(reading.read_error(told), errors.Internal)


def test_a_code_that_is_not_known_is_read_by_its_status():
    told = {"error": {"code": "something_new", "message": "x"}}
    assert isinstance(reading.read_error(told, 422), errors.InvalidRequest)
    assert type(reading.read_error(told, 409)) is errors.PerdureError


@given(st.text())
def test_names_of_fields_in_messages_come_back(text):
    message = f"valid_from and {text!r} as_of"
    wired = on_the_wire(message)
    assert "validFrom and" in wired
    assert "valid_from" in python_names(wired)


def test_a_certificate_is_the_same_whether_a_reply_or_a_file_told_it():
    with open_store("full") as store:
        given = store.memory(PRINCIPAL, SCOPE).forget(ids=["paris"], purge=True).certificate
    plain = wire.certificate_object(given)
    assert reading.read_certificate(sent(plain, replies.CertificateObject)) == given
    assert reading.read_kept_certificate(msgspec.json.decode(msgspec.json.encode(plain))) == given


def test_a_reply_may_tell_more_of_a_certificate_than_is_known_here_and_a_file_may_not():
    with open_store("full") as store:
        given = store.memory(PRINCIPAL, SCOPE).forget(ids=["paris"], purge=True).certificate
    plain = wire.certificate_object(given)
    for newer in (
        {"witness": "one more"},
        {"operation": "shred"},
        {"steps": [{"name": "shredded", "done": True}]},
    ):
        told = reading.read_certificate(sent({**plain, **newer}, replies.CertificateObject))
        assert told.seal == given.seal
        assert told.operation == newer.get("operation", given.operation)
        with pytest.raises(errors.InvalidRequest, match="unknown"):
            reading.read_kept_certificate({**plain, **newer})
