"""Explanations cost nothing unless somebody asks for them."""

import pytest

from perdure import ManualClock, Store
from perdure.memory import reading


class Refusing:
    """Stands in for the explainer and fails where it is used."""

    def __init__(self, *_: object, **__: object) -> None:
        raise AssertionError("an explanation was computed")


def test_nothing_is_explained_unless_asked(monkeypatch):
    with Store.open(":memory:", clock=ManualClock(1_000)) as store:
        memory = store.memory()
        id_ = memory.remember("Alice lives in Berlin", valid_from=1).id
        monkeypatch.setattr(reading, "Explainer", Refusing)
        assert [hit.id for hit in memory.recall("where does Alice live")] == [id_]
        assert memory.recall("Alice")[0].explanation is None
        with pytest.raises(AssertionError, match="was computed"):
            memory.recall("Alice", explain=True)
        with pytest.raises(AssertionError, match="was computed"):
            memory.explain("Alice", id_)
