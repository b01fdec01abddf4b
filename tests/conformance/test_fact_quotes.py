"""What plain facts quote of turns, on every log: it goes with the turn, and the facts stay."""

from __future__ import annotations

import io

import pytest

from erasure.scan import holders
from governed import BACKENDS, opened
from perdure import verify
from talks import talk

URI = "perdure:turn/s/v1/t0"
SAID = "the kettle whistles zqkettle at noon"
SOURCE = {"uri": URI, "quote": "whistles zqkettle", "start": 11, "end": 28, "position": 3, "actor": "ann"}


@pytest.fixture(params=BACKENDS)
def store(request, tmp_path):
    with opened(tmp_path, request.param) as store:
        store.conversation("alice").remember(talk([SAID, "indeed"]))
        yield store


@pytest.fixture
def memory(store):
    memory = store.memory("alice")
    memory.remember("Alice has a kettle", id="kettle", source=SOURCE, tags=["kitchen"])
    memory.remember("Alice has a cup", id="cup", source={"uri": "https://cups", "quote": "a cup"})
    return memory


def quote_of(memory, id_="kettle"):
    return memory.get(id_).source.quote


def is_blank(memory):
    source = memory.get("kettle").source
    told = (source.uri, source.position, source.actor)
    return told == (URI, 3, "ann") and (source.quote, source.start, source.end) == (None, None, None)


WAYS = {
    "conversation": lambda store: store.conversation("alice").forget("s", source_id="t0"),
    "ids": lambda store: store.memory("alice", "#conversation").forget(ids=[f"{URI}#0"]),
    "all": lambda store: store.memory("alice", "#conversation").forget(all=True),
    "purge": lambda store: store.conversation("alice").forget("s", purge=True),
    "erase": lambda store: store.erase("alice", "#conversation"),
}


@pytest.mark.parametrize("way", WAYS)
def test_a_quote_goes_with_its_turn_on_every_way_and_the_fact_stays(store, memory, way):
    assert memory.recall("kettle")[0].fact.source.quote == "whistles zqkettle"
    WAYS[way](store)
    assert is_blank(memory)
    assert memory.recall("kettle")[0].fact.source.quote is None
    assert memory.get("kettle").tags == ("kitchen",)
    assert quote_of(memory, "cup") == "a cup"
    assert store.verify().ok


def test_the_answer_to_a_forget_names_the_facts_that_lose_a_quote(store, memory):
    foreseen = store.conversation("alice").forget("s", source_id="t0", dry_run=True)
    assert (foreseen.derived, quote_of(memory)) == (("kettle",), "whistles zqkettle")
    told = store.conversation("alice").forget("s", source_id="t0")
    assert (told.forgotten, told.derived) == ((URI,), ("kettle",))
    assert memory.get("kettle") is not None


def test_another_turn_that_is_forgotten_takes_no_quote_along(store, memory):
    store.conversation("alice").forget("s", source_id="t1")
    assert quote_of(memory) == "whistles zqkettle"


@pytest.mark.parametrize("backend", ["sqlite", "journal"])
def test_no_byte_of_a_forgotten_quote_is_left_and_a_store_that_opens_again_knows_no_other_state(
    tmp_path, backend
):
    with opened(tmp_path, backend) as store:
        store.conversation("alice").remember(talk([SAID, "indeed"]))
        memory = store.memory("alice")
        memory.remember("Alice has a kettle", id="kettle", source=SOURCE)
        memory.annotate("kettle", importance=0.5)
        memory.remember("Alice has a better one", id="better", supersedes=["kettle"])
        store.conversation("alice").forget("s", source_id="t0")
    assert holders(tmp_path, "zqkettle") == {}
    assert verify(tmp_path / backend).ok
    with opened(tmp_path, backend) as store:
        memory = store.memory("alice")
        assert is_blank(memory)
        kettle = memory.get("kettle")
        assert (kettle.importance, kettle.status.value) == (0.5, "superseded")
        store.purge()
        assert is_blank(memory)
        memory.forget(ids=["kettle"])
        assert memory.get("kettle") is None
        assert store.verify().ok


def test_a_telling_repeated_after_its_quote_went_is_the_stored_one_and_brings_nothing_back(store, memory):
    store.conversation("alice").forget("s")
    again = memory.remember("Alice has a kettle", id="kettle", source=SOURCE, tags=["kitchen"])
    assert (again.outcome, is_blank(memory)) == ("existing", True)


def test_an_export_has_the_quotes_that_are_left_and_an_import_brings_them(store, memory, tmp_path):
    before = b"".join(store.export_lines())
    assert b"whistles zqkettle" in before
    with opened(tmp_path / "other", "memory") as other:
        other.import_(io.BytesIO(before))
        assert quote_of(other.memory("alice")) == "whistles zqkettle"
        other.conversation("alice").forget("s")
        assert is_blank(other.memory("alice"))
        other.import_(io.BytesIO(before))
        assert is_blank(other.memory("alice"))
    store.conversation("alice").forget("s")
    assert b"zqkettle" not in b"".join(store.export_lines())


def test_a_fact_that_is_forgotten_takes_its_quote_along(store, memory):
    memory.forget(ids=["kettle"])
    assert memory.get("kettle") is None
    store.conversation("alice").forget("s")
    assert store.verify().ok


def test_quotes_of_facts_move_no_token_of_the_repository(store, memory):
    before = store.repository("alice").change_token()
    store.conversation("alice").forget("s")
    assert store.repository("alice").change_token() == before


def test_facts_that_are_made_from_quoting_ones_and_tellings_of_one_batch_keep_their_quotes_apart(store):
    memory = store.memory("alice")
    told = [
        {"text": f"fact {n}", "id": f"f{n}", "source": {"uri": f"perdure:turn/s/v1/t{n}", "quote": f"q{n}"}}
        for n in range(2)
    ]
    memory.remember_many(told)
    store.conversation("alice").forget("s", source_id="t0")
    assert [memory.get(f"f{n}").source.quote for n in range(2)] == [None, "q1"]
