"""Others forget, purge, tell and import while an import runs: each keeps what he was promised."""

from __future__ import annotations

from pathlib import Path

import pytest

from backends import chosen, fresh, open_at
from perdure import ImportFailed, ManualClock, Store

FACTS = 1_000  # a transaction: all that is said of the facts comes in the next ones
SECRET = b"s" * 32
OPTIONS = {"clock": ManualClock(900), "durability": "normal", "secret": SECRET}


@pytest.fixture(params=chosen("memory", "sqlite"))
def target(request, tmp_path):
    with open_at(tmp_path / "target", request.param, **OPTIONS) as store:
        yield store


@pytest.fixture
def source():
    clock = ManualClock(1_000_000)
    with fresh(clock=clock, secret=SECRET) as store:
        memory = store.memory("ann")
        for number in range(FACTS):
            memory.remember(f"fact {number}", id=f"f{number}")
            clock.advance(1)
        yield store


def exported(store):
    return b"".join(store.export_lines(blocks=True))


def body(lines):
    return lines.split(b"\n", 1)[1]


def ids(memory, **told):
    return [fact.id for fact in memory.list(limit=1_000, **told).items]


def import_while(store, lines, act, *, facts=FACTS, **options):
    """Import, and act once as soon as so many facts are stored."""
    done = []

    def progress(*_):
        if not done and store.memory("ann").list(limit=1).total >= facts:
            done.append(True)
            act()

    try:
        return store.import_([lines], progress=progress, **options)
    finally:
        assert done


@pytest.mark.parametrize("strict", [True, False])
@pytest.mark.parametrize("beside", [True, False])
def test_a_purge_stops_an_import_before_anything_is_said_of_another_fact(tmp_path, source, strict, beside):
    memory = source.memory("ann")
    memory.annotate("f900", tags=["allergy"])
    memory.end("f950", at=5_000_000)
    memory.correct("corrected", id="f800")
    lines = exported(source)
    with Store.open(tmp_path / "target", **OPTIONS) as target:

        def act():
            with Store.open(tmp_path / "target", **OPTIONS) as other:
                purging = other if beside else target
                purging.memory("ann").forget(ids=["f3", "f4"])
                purging.purge()

        with pytest.raises(ImportFailed, match=r"purged meanwhile.*import again") as failed:
            import_while(target, lines, act, strict=strict)
        assert failed.value.committed == "yes"
        memory = target.memory("ann")
        assert (ids(memory, tags=["allergy"]), memory.list(limit=1).total) == ([], FACTS - 2)
        report = target.import_([lines], strict=False)
        assert (report.existing, report.skipped) == (
            FACTS - 2,
            2,
        )  # what was forgotten would stand too late now
        assert ids(memory, tags=["allergy"]) == ["f900"]
        assert [id_ for id_ in ids(memory) if memory.get(id_).ends] == ["f950"]
        assert ids(memory, status="superseded") == ["f800"]
        assert target.verify().ok


def test_a_new_key_stops_an_import(tmp_path, source):
    with Store.open(tmp_path / "target", **OPTIONS) as target:
        source.memory("ann").end("f950", at=5_000_000)
        lines = exported(source)
        with pytest.raises(ImportFailed, match="purged meanwhile"):
            import_while(target, lines, lambda: target.rekey(b"k" * 32))
        assert target.import_([lines]).created == 1
        assert body(exported(target)) == body(lines)


def test_an_erased_memory_is_not_begun_anew_by_the_rest_of_an_import(target, source):
    source.memory("ann").remember("last", id="last")
    with pytest.raises(ImportFailed, match="erased"):
        import_while(target, exported(source), lambda: target.erase("ann"))
    assert target.spaces() == []


SAID = (
    lambda memory: memory.annotate("f5", tags=["SECRET"], metadata={"note": "SECRET"}),
    lambda memory: memory.end("f5", at=5_000_000, reason="SECRET"),
    lambda memory: memory.retract("f5", reason="SECRET"),
    lambda memory: memory.remember("later", id="later", supersedes=["f5"]),
    lambda memory: memory.remember("fact 5", id="f5", idempotency_key="k"),
)


@pytest.mark.parametrize("strict", [True, False])
@pytest.mark.parametrize("said", SAID)
def test_nothing_more_is_stored_of_what_is_forgotten_while_an_import_runs(tmp_path, source, said, strict):
    said(source.memory("ann"))
    certificates = []
    with Store.open(tmp_path / "target", **OPTIONS) as target:
        memory = target.memory("ann")

        def act():
            certificates.append(memory.forget(ids=["f5"]).certificate)

        if strict:
            with pytest.raises(ImportFailed, match="names fact 5, which was forgotten meanwhile"):
                import_while(target, exported(source), act)
        else:
            report = import_while(target, exported(source), act, strict=False)
            assert [problem.reason for problem in report.problems] == [
                "names fact 5, which was forgotten meanwhile"
            ]
        assert memory.get("f5") is None
        assert target.check_certificate(certificates[0]) == ()
        assert target.verify().ok
        assert b"SECRET" not in exported(target)
    for path in filter(Path.is_file, (tmp_path / "target").rglob("*")):
        assert b"SECRET" not in path.read_bytes()


def test_facts_of_one_line_are_hidden_without_those_that_are_forgotten_meanwhile(target, source):
    source.memory("ann").forget(ids=["f5", "f6"], soft=True)
    memory = target.memory("ann")
    report = import_while(target, exported(source), lambda: memory.forget(ids=["f5"]))
    assert report.problems == ()
    assert set(ids(memory, hidden=True)) - set(ids(memory)) == {"f6"}
    assert memory.get("f5") is None


def test_what_is_told_meanwhile_stays_the_last_so_that_what_is_held_can_be_moved_on(target, source):
    for number in range(2):
        source.memory("ann").remember(f"late {number}", id=f"late {number}")
    late = exported(source)
    target.clock.advance(5_000_000)
    memory = target.memory("ann")
    with pytest.raises(ImportFailed, match=r"recorded later.*what was stored before stays") as failed:
        import_while(target, late, lambda: memory.remember("mine", id="mine"))
    assert failed.value.committed == "yes"
    report = target.import_([late], strict=False)
    assert (report.created, report.existing, report.skipped) == (0, FACTS, 2)
    with Store.open(":memory:") as third:
        assert third.import_([exported(target)]).created == FACTS + 1


@pytest.mark.parametrize("facts", [1, FACTS])
def test_two_imports_of_one_file_at_once_store_it_once(target, source, facts):
    memory = source.memory("ann")
    for number in range(FACTS):
        memory.end(f"f{number}", at=5_000_000, reason="r")
        memory.annotate(f"f{number}", tags=["x"])
    memory.forget(ids=["f0"], soft=True)
    lines = exported(source)
    import_while(target, lines, lambda: target.import_([lines]), facts=facts)
    assert body(exported(target)) == body(lines)
