"""What a certificate says, who can make one, and what in a store contradicts it later."""

from __future__ import annotations

import json
from datetime import timedelta

import msgspec
import pytest

from backends import IN_FILES
from perdure import Busy, Certificate, InvalidRequest, MemoryConfig, StorageFull, Store, Unavailable
from perdure.contract.reading import read_kept_certificate
from perdure.contract.wire import (
    certificate_object,
    erased_object,
    error_object,
    forgotten_object,
    purged_object,
)
from perdure.log.memory import MemoryLog
from perdure.planning.certificates import reach_of
from perdure.policies import MaxFacts
from scenarios.stores import EVERY_BACKEND
from unit.space.logs import WrappedLog

MARKER = "XQZ-canary-7731"


@pytest.fixture(params=EVERY_BACKEND)
def backend(request):
    return request.param


@pytest.fixture
def ann(store):
    """Ann's memory, with three facts of which one stays."""
    memory = store.memory("ann")
    memory.remember("the first words", id="a", tags=["t"])
    memory.remember("the second words", id="b", idempotency_key="key")
    memory.remember("the words that stay", id="stays")
    memory.annotate("a", tags=["u"])
    return memory


def forgotten(ann, **options):
    return ann.forget(ids=["a", "b", "nobody"], **options).certificate


def messages(store, certificate):
    return [finding.message for finding in store.check_certificate(certificate)]


def test_a_certificate_tells_what_was_done_and_how_much(store, ann, clock):
    clock.advance(5)
    told = forgotten(ann)
    assert (told.operation, told.epoch, told.facts, told.spaces, told.pending) == ("forget", 0, 2, 0, False)
    # Two facts, the annotation and the receipt that belong to them.
    assert (told.records, len(told.ids), len(told.texts)) == (4, 2, 2)
    assert [(step.name, step.done) for step in told.steps] == [
        *((name, True) for name in reach_of(store.log).erased),
        (reach_of(store.log).scrubbed, True),
    ]
    assert told.at == ann.get("stays").ingest_time + timedelta(milliseconds=5)
    assert (told.backups, bool(told.outside)) == ((), True)
    erased = store.erase("ann").certificate
    assert (erased.operation, erased.epoch, erased.facts, erased.spaces) == ("erase", 1, 1, 1)
    assert (erased.store, erased.pending) == (told.store, False)
    assert [step.name for step in erased.steps] == [
        *reach_of(store.log).erased,
        "rewritten",
        reach_of(store.log).overwritten,
    ]
    purged = store.purge()
    assert (purged.certificate.operation, purged.certificate.epoch, purged.certificate.facts) == (
        "purge",
        2,
        0,
    )
    assert (purged.certificate.ids, purged.certificate.records) == ((), purged.dropped)
    for certificate in (told, erased, purged.certificate):
        assert store.check_certificate(certificate) == ()


def test_nothing_that_was_not_erased_is_certified(store, ann):
    assert ann.forget(ids=["a"], dry_run=True).certificate is None
    assert ann.forget(ids=["a"], soft=True).certificate is None
    assert store.erase("ann", dry_run=True).certificate is None
    assert ann.forget(ids=["a"], idempotency_key="forget").certificate.facts == 1  # a hidden one goes too
    assert ann.forget(ids=["a"], idempotency_key="forget").certificate is None
    assert ann.forget(ids=["a"]).certificate.facts == 0


def test_a_certificate_goes_through_a_file_unchanged_also_within_its_receipt(store, ann):
    forget = ann.forget(ids=["a"])
    erase, purge = store.erase("ann"), store.purge()
    for reply, told in (
        (forget, forgotten_object(forget)),
        (erase, erased_object(erase)),
        (purge, purged_object(purge)),
    ):
        kept = json.loads(json.dumps(told))
        assert read_kept_certificate(kept) == read_kept_certificate(kept["certificate"]) == reply.certificate
        assert store.check_certificate(read_kept_certificate(kept)) == ()


CHANGES = {
    "version": 2,
    "operation": "erase",
    "at": lambda told: told.at + timedelta(milliseconds=1),
    "store": "0" * 32,
    "epoch": 1,
    "spaces": 1,
    "facts": 3,
    "records": 5,
    "ids": lambda told: told.ids[:1],
    "texts": lambda told: told.texts[::-1],
    "steps": lambda told: told.steps[:1],
    "pending": True,
    "backups": lambda told: (told.at,),
    "outside": (),
    "seal": lambda told: told.seal[::-1],
    "event": None,
}


@pytest.mark.parametrize("field", Certificate.__struct_fields__)
def test_a_certificate_that_was_changed_anywhere_is_contradicted(store, ann, field):
    told = forgotten(ann)
    assert store.check_certificate(told) == ()
    change = CHANGES[field]
    changed = msgspec.structs.replace(told, **{field: change(told) if callable(change) else change})
    assert changed != told
    found = messages(store, changed)
    assert len(found) == 1
    assert ("another store" if field == "store" else "changed after it was made") in found[0]


@pytest.mark.parametrize("strange", ["é", "\ud800", "", "0" * 64, "\0"])
@pytest.mark.parametrize("field", ["store", "seal"])
def test_whatever_stands_in_the_place_of_a_digest_is_contradicted_and_breaks_nothing(
    store, ann, field, strange
):
    told = certificate_object(forgotten(ann))
    assert len(messages(store, read_kept_certificate({**told, field: strange}))) == 1
    assert len(messages(store, read_kept_certificate({**told, "seal": strange, "outside": ["\ud800"]}))) == 1


def test_a_certificate_of_another_store_is_no_certificate_of_this_one(open_store, store, ann):
    certificate = forgotten(ann)
    other = open_store("other")
    assert messages(other, certificate) == ["the certificate is of another store"]


def test_what_was_told_again_is_named_with_the_moment_and_forgetting_it_again_mends_it(store, ann, clock):
    certificate = forgotten(ann, purge=True)
    clock.advance(1000)
    ann.remember("other words", id="a")
    ann.remember("the second words", id="c")
    store.memory("bob").remember(
        "the first words", id="b"
    )  # what others tell is nothing to Ann's certificate
    found = store.check_certificate(certificate)
    assert [(one.space, one.seq) for one in found] == [(1, 3), (1, 4)]
    assert "has an id of the certificate: it was told again, at 2026-01-01T00:00:01+00:00" in found[0].message
    assert "under another id: it was told at 2026-01-01T00:00:01+00:00" in found[1].message
    ann.forget(ids=["a", "c"])
    assert store.check_certificate(certificate) == ()


def test_a_fact_of_the_same_text_that_was_not_erased_is_named_as_such(store, ann, clock):
    ann.remember("the first words", id="twin")
    clock.advance(1)
    (message,) = messages(store, forgotten(ann))
    assert "a text of the certificate, under another id, recorded before the erasure" in message


def test_a_document_and_a_hidden_fact_that_came_back_are_found_too(store, ann, clock):
    certificate = forgotten(ann)
    clock.advance(1)
    store.documents("ann").put("a", "a document")
    assert len(messages(store, certificate)) == 1
    store.documents("ann").delete("a")
    assert messages(store, certificate) == []
    ann.remember("the first words", id="a")
    ann.forget(ids=["a"], soft=True)
    assert len(messages(store, certificate)) == 1


@pytest.mark.parametrize("way", ["forget", "purge", "erase"])
def test_a_store_that_was_restored_from_a_copy_contradicts_the_certificate(
    open_store, backend, tmp_path, clock, way
):
    if backend not in IN_FILES:
        pytest.skip("there are no files to copy")
    store = open_store()
    ann = store.memory("ann")
    ann.remember("the first words", id="a")
    clock.advance(1000)
    store.backup(tmp_path / "copy")
    clock.advance(1000)
    if way == "erase":
        certificate = store.erase("ann").certificate
    else:
        certificate = ann.forget(ids=["a"], purge=way == "purge").certificate
    assert store.check_certificate(certificate) == ()
    assert [round(moment.timestamp() * 1000) - clock.now() for moment in certificate.backups] == [-1000]
    of_event, *found = messages(open_store("copy"), certificate)
    assert of_event.startswith("there is no event ")
    assert ["an older copy of the store" in message for message in found] == (
        [False] if way == "forget" else [True, False]
    )
    assert "recorded before the erasure: it was brought back from a copy, or never erased" in found[-1]


def test_every_copy_that_was_noted_is_named_whatever_the_clocks_said(open_store, backend, tmp_path, clock):
    if backend not in IN_FILES:
        pytest.skip("there are no files to copy")
    store = open_store()
    ann = store.memory("ann")
    clock.advance(5000)
    ann.remember("the first words", id="a")
    clock.advance(-4000)
    store.backup(tmp_path / "while the clock was set back")
    set_back = clock.now()
    clock.advance(9000)
    store.backup(tmp_path / "later")
    named = ann.forget(ids=["a"]).certificate.backups
    assert [round(moment.timestamp() * 1000) for moment in named] == [set_back, clock.now()]
    assert ann.forget(ids=["nobody"]).certificate.backups == ()


def test_a_copy_that_was_refused_is_not_named(open_store, backend, tmp_path):
    if backend not in IN_FILES:
        pytest.skip("there are no files to copy")
    store = open_store()
    (tmp_path / "taken").mkdir()
    (tmp_path / "taken" / "file").touch()
    with pytest.raises(InvalidRequest):
        store.backup(tmp_path / "taken")
    store.memory("ann").remember("the first words", id="a")
    assert store.memory("ann").forget(ids=["a"]).certificate.backups == ()


FAILING = {
    "forget": lambda store: store.memory("ann").forget(ids=["a"], purge=True),
    "a policy": lambda store: store.memory(
        "ann", config=MemoryConfig(forgetting=MaxFacts(2))
    ).apply_forgetting(dry_run=False, purge=True),
    "erase": lambda store: store.erase("ann"),
}


@pytest.mark.parametrize("error", [Busy, StorageFull, Unavailable])
@pytest.mark.parametrize("erase", FAILING.values(), ids=FAILING)
def test_where_the_purge_fails_the_error_has_the_certificate_of_what_was_erased(clock, erase, error):
    log = WrappedLog(MemoryLog())
    with Store.open(log=log, clock=clock) as store:
        ann = store.memory("ann")
        for n, id_ in enumerate(("a", "b", "stays")):
            ann.remember(f"words {n}", id=id_)

        def fail(*_):
            log.epoch = lambda: pytest.fail("what stops a purge may stop everything else as well")
            raise error("it cannot be done")

        log.purge = fail
        with pytest.raises(error) as caught:
            erase(store)
        del log.purge, log.epoch
        assert caught.value.message.startswith("what was to be erased is erased, but the purge")
        certificate = read_kept_certificate(caught.value.details["certificate"])
        assert certificate == read_kept_certificate(json.loads(json.dumps(error_object(caught.value))))
        assert [(step.name, step.done) for step in certificate.steps] == [
            ("zeroed", True),
            ("scrubbed", True),
            ("rewritten", False),
        ]
        assert certificate.pending
        assert certificate.facts > 0
        assert store.memory("ann").get("a") is None
        assert [
            "purge that was asked for" in found.message for found in store.check_certificate(certificate)
        ] == [True]
        assert erase(store).certificate.pending is False
        assert store.check_certificate(certificate) == ()


def test_where_a_purge_was_not_confirmed_the_error_says_so_and_not_that_it_could_not_be_done(clock):
    log = WrappedLog(MemoryLog())
    with Store.open(log=log, clock=clock) as store:
        store.memory("ann").remember("words")

        def fail(*_):
            raise Unavailable("whether it was stored is unknown", kind="unconfirmed")

        log.purge = fail
        with pytest.raises(Unavailable, match="is erased, but the purge after it was not confirmed: whether"):
            store.erase("ann")
        del log.purge


def test_a_certificate_shows_no_id_no_text_and_no_name(store):
    memory = store.memory(MARKER, MARKER)
    memory.remember(
        MARKER, id=MARKER, subject=MARKER, tags=[MARKER], metadata={MARKER: MARKER}, entities=[MARKER]
    )
    memory.remember(f"{MARKER} again", id="b")
    for certificate in (
        memory.forget(ids=[MARKER], block=True).certificate,
        store.erase(MARKER).certificate,
        store.purge().certificate,
    ):
        told = json.dumps(certificate_object(certificate)) + repr(certificate)
        for marker in (MARKER, MARKER.lower(), MARKER.encode().hex(), "canary"):
            assert marker not in told


def test_equal_ids_and_texts_of_two_memories_or_stores_leave_no_equal_digests(open_store):
    digests = []
    for place in ("one", "other"):
        store = open_store(place)
        for name in ("ann", "bob"):
            memory = store.memory(name)
            memory.remember("the same words", id="the same")
            certificate = memory.forget(all=True).certificate
            digests += [*certificate.ids, *certificate.texts]
    assert len(set(digests)) == len(digests) == 8


MALFORMED = {
    "nothing": lambda told: None,
    "a list": lambda told: [told],
    "a text": lambda told: "certificate",
    "an empty object": lambda told: {},
    "the receipt of a dry run": lambda told: {"certificate": None},
    "an error without one": lambda told: {"error": {"code": "busy", "details": {}}},
    "a field too many": lambda told: {**told, MARKER: 1},
    "a step with a field too many": lambda told: {**told, "steps": [{**told["steps"][0], MARKER: 1}]},
    "an unknown step": lambda told: {**told, "steps": [{"name": MARKER, "done": True}]},
    "a later version": lambda told: {**told, "version": 2, "new": 1},
    "a version of many digits": lambda told: {**told, "version": 10**4000},
    "an unknown operation": lambda told: {**told, "operation": MARKER},
    **{
        f"{field} {value!r:.20}": lambda told, field=field, value=value: {**told, field: value}
        for field in ("at", "backups", "facts", "ids", "steps", "pending", "store")
        for value in (None, MARKER, True, 1.5, float("nan"), 10**30, -1e300, [None], {"a": 1})
        if not (field == "pending" and value is True) and not (field == "facts" and value == 10**30)
        if not (field == "store" and value == MARKER)
    },
    **{f"no {field}": lambda told, field=field: {n: v for n, v in told.items() if n != field} for field in
       ("version", "operation", "at", "store", "epoch", "ids", "texts", "steps", "pending", "backups")},
}  # fmt: skip


def a_certificate():
    with Store.open(":memory:") as store:
        memory = store.memory()
        memory.remember("words")
        return certificate_object(memory.forget(all=True).certificate)


@pytest.mark.parametrize("change", MALFORMED.values(), ids=MALFORMED)
def test_what_is_no_certificate_is_refused_without_showing_what_it_is(change):
    told = a_certificate()
    assert read_kept_certificate(told).facts == 1
    with pytest.raises(InvalidRequest) as caught:
        read_kept_certificate(change(told))
    assert caught.value.field == "certificate"
    assert MARKER not in str(caught.value)
    assert len(str(caught.value)) < 200


def test_only_a_certificate_is_checked(store, ann):
    for wrong in (None, certificate_object(forgotten(ann)), "certificate"):
        with pytest.raises(InvalidRequest) as caught:
            store.check_certificate(wrong)
        assert caught.value.field == "certificate"


class PurgedInBetween(WrappedLog):
    """Purges, as often as it is told to, when somebody has read the first space and goes on to the second."""

    def __init__(self, log):
        super().__init__(log)
        self.store = None
        self.purges = 0

    def head(self, space):
        if space == 2 and self.purges:
            self.purges -= 1
            self.store.purge()
        return self._log.head(space)


def test_a_check_that_a_purge_overtakes_reads_again_and_misses_nothing(clock):
    log = PurgedInBetween(MemoryLog())
    # Without an audit: each purge would read the second space for it, and so purge in between.
    with Store.open(log=log, clock=clock, audit="off") as store:
        log.store = store
        bob, ann = store.memory("bob"), store.memory("ann")
        bob.remember("words of Bob", id="b")
        ann.remember("words of Ann", id="a")
        certificate = ann.forget(ids=["a"]).certificate
        ann.remember("words of Ann", id="a")
        bob.forget(all=True)  # the next purge moves Ann's memory to the first place
        log.purges = 1
        assert len(store.check_certificate(certificate)) == 1
        assert log.purges == 0
        store.memory("cid").remember("words of Cid")
        log.purges = 100
        with pytest.raises(Busy):
            store.check_certificate(certificate)
