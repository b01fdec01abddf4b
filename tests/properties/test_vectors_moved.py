"""Vectors are moved, copied, encrypted and saved with what they belong to: nothing is lost, nothing is found twice."""

from __future__ import annotations

from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from effort import examples
from perdure import ManualClock, Store, salvage, verify
from properties.test_vectors import NOW, SECRET, Call, Side, Table, answers, follow, scripts

KEY = b"k" * 32


def lived(
    script: list[Call], place: Path | str = ":memory:", backend: str | None = None
) -> tuple[Side, Table]:
    side, table = Side(place, backend), Table()  # type: ignore[arg-type]
    for call in script:
        follow(table, call, side.run(call))
        side.clock.advance(1)
    return side, table


def exported(store: Store) -> bytes:
    return b"".join(store.export_lines())


def body(lines: bytes) -> bytes:
    return lines.split(b"\n", 1)[1]


def empty() -> Store:
    return Store.open(":memory:", clock=ManualClock(NOW + 10**6), secret=SECRET)


@given(scripts)
@settings(max_examples=examples(16), deadline=None)
def test_an_import_into_an_empty_store_gives_the_same_vectors_and_the_same_export(script):
    side, table = lived(script)
    lines = exported(side.store)
    with empty() as target:
        dry = target.import_([lines], dry_run=True)
        wet = target.import_([lines])
        assert (dry.created, dry.existing, dry.facts, dry.problems) == (
            wet.created,
            wet.existing,
            wet.facts,
            (),
        )
        assert body(exported(target)) == body(lines)
        assert answers(target, table) == answers(side.store, table)
        again = target.import_([lines])
        assert (again.created, again.problems) == (0, ())
    side.close()


@given(scripts, st.randoms(use_true_random=False))
@settings(max_examples=examples(12), deadline=None)
def test_an_import_of_vectors_goes_on_where_an_earlier_one_was_cut_off(script, random):
    side, table = lived(script)
    lines = exported(side.store).splitlines(keepends=True)
    with empty() as target:
        for _ in range(2):
            target.import_([b"".join(lines[: random.randint(1, len(lines))])], strict=False)
        dry = target.import_([b"".join(lines)], dry_run=True)
        wet = target.import_([b"".join(lines)])
        assert (dry.created, dry.existing, dry.problems) == (wet.created, wet.existing, wet.problems)
        assert body(exported(target)) == body(b"".join(lines))
        assert answers(target, table) == answers(side.store, table)
    side.close()


@pytest.mark.parametrize("seed", range(4))
def test_a_backup_a_change_of_key_and_a_salvage_keep_every_vector(seed):
    script = a_script(seed)
    with TemporaryDirectory() as folder:
        side, table = lived(script, Path(folder) / "store", "sqlite")
        expected = answers(side.store, table)
        side.store.backup(Path(folder) / "copy")
        assert verify(Path(folder) / "copy", secret=SECRET).ok
        side.store.rekey(KEY)
        assert answers(side.store, table) == expected
        assert side.store.verify().ok
        side.close()
        salvage(Path(folder) / "copy", Path(folder) / "saved", secret=SECRET)
        for name, key in (("copy", None), ("saved", None), ("store", KEY)):
            with Store.open(Path(folder) / name, key=key, secret=SECRET, clock=ManualClock(NOW)) as store:
                assert answers(store, table) == expected, name


def a_script(seed: int) -> list[Call]:
    random, script = Random(seed), []
    for number in range(14):
        by = random.choice(("", "one"))
        told = {"id": random.choice("abcde"), "by": by}
        vector = [random.gauss(0, 1) for _ in range(3)]
        if number % 4 == 3:
            units = random.choice((1, 2))
            text = "kettle " * (4_097 if units == 2 else 5)
            script.append(("put", {**told, "text": text, "embedding": None if by else [vector] * units}))
        else:
            text = f"red kite {number}"
            script.append(("remember", {**told, "text": text, "embedding": random.choice((vector, None))}))
        if number % 5 == 4:
            script.append(("forget", {"ids": [told["id"]], "soft": random.choice((True, False))}))
    return script
