"""Laws of conversations: exact originals, bounded chunks, whole contexts, exact bytes, separate versions."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from effort import examples
from governed import opened
from perdure.conversation.chunks import CHUNK_BYTES_MAX, CHUNK_WORDS_MAX, chunks_of
from perdure.errors import Conflict, InvalidRequest, NotFound
from perdure.lexical.profile import is_blank
from perdure.model.conversation import (
    ROLES,
    ConversationContextLimits,
    ConversationInput,
    ConversationRecallOptions,
)
from perdure.model.conversation_forms import source_object, turn_uri
from talks import turn

WORDS = st.sampled_from(["sail", "harbour", "resonator", "hertz", "fjord", "train", "yes", "37"])
SAID = st.lists(WORDS, min_size=1, max_size=6).map(" ".join)
ANY_TEXT = st.text(min_size=1, max_size=60).filter(lambda text: not is_blank(text))
MOMENTS = st.integers(-62_135_596_800_000, 253_402_300_799_999)
NAMES = st.text(st.characters(exclude_categories=["Cs", "Cc"]), min_size=1, max_size=20).filter(
    lambda name: not name.startswith("perdure:")
)


@st.composite
def conversations(
    draw: st.DrawFn, texts: st.SearchStrategy[str] = SAID, most: int = 12
) -> list[ConversationInput]:
    """One to three versions of one or two sessions, each of some turns."""
    places = draw(
        st.lists(
            st.tuples(st.sampled_from("st"), st.sampled_from(["v1", "v2"])),
            min_size=1,
            max_size=3,
            unique=True,
        )
    )
    return [
        ConversationInput(
            session_id=session,
            version=version,
            turns=tuple(
                turn(f"t{n}", role, text)
                for n, (role, text) in enumerate(
                    draw(st.lists(st.tuples(st.sampled_from(ROLES), texts), min_size=1, max_size=most))
                )
            ),
        )
        for session, version in places
    ]


@contextmanager
def told(said: list[ConversationInput], backend: str = "memory") -> Iterator:
    with tempfile.TemporaryDirectory() as folder, opened(Path(folder), backend) as store:
        conversation = store.conversation("p", "s")
        for one in said:
            assert conversation.remember(one).outcome == "created"
        yield store, conversation


def rested_on(turns: dict[int, str], told_with: int, position: int) -> set[int]:
    """Return what a turn rests on by one link, as the concept says it, where no turn was forgotten."""
    users = [at for at in range(told_with) if turns.get(at) == "user"]
    found = {users[0]} if users else set()
    if turns[position] == "assistant":
        asked = [at for at in users if at < position]
        if asked:
            found.add(asked[-1])
            if turns.get(asked[-1] - 1) == "assistant":
                found.add(asked[-1] - 1)
    return found - {position}


@given(st.text(max_size=3000) | st.text("ab \n\u00e9\U0001f600", max_size=6000))
def test_chunks_are_bounded_and_cover_the_text(text):
    chunks = chunks_of(text)
    assert "".join(chunks) == text
    for chunk in chunks:
        assert 1 <= len(chunk.encode()) <= CHUNK_BYTES_MAX
        assert len(chunk.split()) <= CHUNK_WORDS_MAX


@given(st.lists(st.text("abc\u00e9", min_size=1, max_size=12), min_size=1, max_size=900))
def test_words_that_fit_are_never_cut_and_chunks_are_as_full_as_can_be(words):
    chunks = chunks_of(" ".join(words))
    assert [word for chunk in chunks for word in chunk.split()] == words
    for chunk, following in pairwise(chunks):
        first = following.split(" ", 1)[0]
        full = len(chunk.split()) == CHUNK_WORDS_MAX
        assert full or len((chunk + first).encode()) > CHUNK_BYTES_MAX - 1


@settings(max_examples=examples(16), deadline=None)
@given(
    st.sampled_from(["memory", "sqlite", "journal"]),
    NAMES,
    NAMES,
    st.lists(
        st.tuples(NAMES, st.sampled_from(ROLES), ANY_TEXT, MOMENTS),
        min_size=1,
        max_size=6,
        unique_by=lambda t: t[0],
    ),
)
def test_hydration_is_exact_on_every_log(backend, session, version, turns):
    said = ConversationInput(session_id=session, version=version, turns=tuple(turn(*one) for one in turns))
    with told([said], backend) as (_, conversation):
        kept = conversation.get(session, version)
        assert [
            (one.source_id, one.role, one.text, int(one.observation_time.timestamp() * 1000 // 1))
            for one in kept.turns
        ] == [(*one[:3], pytest.approx(one[3], abs=1)) for one in turns]
        assert [one.position for one in kept.turns] == list(range(len(turns)))
        assert len({one.uri for one in kept.turns}) == len(turns)
        assert all(one.uri == turn_uri(session, version, one.source_id) for one in kept.turns)
        assert conversation.remember(said).outcome == "existing"


@settings(max_examples=examples(24), deadline=None)
@given(
    conversations(),
    SAID,
    st.builds(
        ConversationRecallOptions,
        roles=st.permutations(ROLES).flatmap(lambda both: st.sampled_from([tuple(both), (both[0],)])),
        k=st.integers(1, 6),
        candidate_limit=st.integers(6, 12),
        max_sources=st.integers(1, 16),
        max_bytes=st.integers(100, 4_000),
    ),
    st.booleans(),
)
def test_an_answer_is_whole_within_its_budgets_and_says_what_it_lacks(said, query, options, expanded):
    limits = ConversationContextLimits(max_sources=16, max_rounds=4, max_bytes=4_000, aggregation_only=False)
    with told(said) as (_, conversation):
        context = conversation.recall(query, options)
        most = (options.max_sources, options.max_bytes)
        if expanded:
            before, context = context, conversation.expand(context, limits)
            most = (max(most[0], 16), max(most[1], 4_000))
            assert set(before.sources) <= set(context.sources)
            assert {one.source for one in before.anchors} <= {one.source for one in context.anchors}
        kept = {(one.session_id, one.version): conversation.get(one.session_id, one.version) for one in said}
        uris = {source.uri for source in context.sources}
        # Sources are originals, each once, never clipped.
        assert len(uris) == len(context.sources)
        for source in context.sources:
            assert kept[source.session_id, source.version].turns[source.position] == source
        # Bytes counted are bytes sent.
        sent = msgspec.json.encode([source_object(one) for one in context.sources])
        assert context.byte_count == len(sent) <= max(most[1], 2)
        assert len(context.sources) <= most[0]
        # Every anchor has its required context, whole; every link that is left is named.
        by_uri = {source.uri: source for source in context.sources}
        missing = set()
        for source in context.sources:
            version = kept[source.session_id, source.version]
            roles = {one.position: one.role for one in version.turns}
            needed = {version.turns[at].uri for at in rested_on(roles, len(roles), source.position)}
            missing |= needed - uris
            if source.uri in {one.source for one in context.anchors}:
                assert needed <= uris
        assert {one.source for one in context.anchors} <= by_uri.keys()
        assert set(context.unresolved_premise_ids()) == missing
        assert context.verified == (bool(uris) and not missing)
        # Roles as asked, scores of the ranks, best first; nothing is both an anchor and dropped.
        assert all(by_uri[one.source].role in options.roles for one in context.anchors)
        scores = [one.score for one in context.anchors]
        assert scores == sorted(scores, reverse=True)
        assert set(scores) <= {1 / (60 + rank) for rank in range(1, options.k + 1)}
        dropped = {one.source for one in context.dropped}
        assert dropped.isdisjoint(one.source for one in context.anchors)


@settings(max_examples=examples(16), deadline=None)
@given(conversations(), SAID, st.integers(1, 6))
def test_a_recall_asks_each_role_by_itself(said, query, k):
    """The anchors of both roles are those of each, interleaved by rank."""
    wide = {"k": k, "candidate_limit": 60, "max_sources": 4_096, "max_bytes": 10**6}
    with told(said) as (_, conversation):

        def ask(*roles):
            return conversation.recall(query, ConversationRecallOptions(roles=roles, **wide)).anchors

        users, assistants = ask("user"), ask("assistant")
        assert len(users) <= k
        assert len(assistants) <= k
        both = ask("user", "assistant")
        assert sorted(both, key=lambda one: one.source) == sorted(
            (*users, *assistants), key=lambda one: one.source
        )
        assert [one.score for one in both] == sorted((one.score for one in both), reverse=True)
        for first, second in pairwise(both):
            if first.score == second.score:
                assert (first in users, second in assistants) == (True, True)


@settings(max_examples=examples(16), deadline=None)
@given(conversations(most=8), st.data())
def test_what_was_forgotten_comes_back_by_no_way(said, data):
    with told(said) as (store, conversation):
        one = data.draw(st.sampled_from(said))
        gone = sorted(data.draw(st.sets(st.integers(0, len(one.turns) - 1), min_size=1)))
        uris = set()
        for position in gone:
            receipt = conversation.forget(one.session_id, version=one.version, source_id=f"t{position}")
            uris.update(receipt.forgotten)
        assert len(uris) == len(gone)
        kept = conversation.get(one.session_id, one.version)
        if len(gone) == len(one.turns):
            assert kept is None
        else:
            assert list(kept.gaps) == gone
            assert [source.text for source in kept.turns] == [
                told_.text for at, told_ in enumerate(one.turns) if at not in gone
            ]
            with pytest.raises(Conflict):
                conversation.remember(one)
        for query in {told_.text for told_ in one.turns}:
            context = conversation.recall(query)
            assert uris.isdisjoint(source.uri for source in context.sources)
            for source in context.sources:
                if (source.session_id, source.version) == (one.session_id, one.version):
                    assert source.position not in gone
            try:
                expanded = conversation.expand(context, ConversationContextLimits(aggregation_only=False))
            except NotFound:
                assert not context.verified
            else:
                assert uris.isdisjoint(source.uri for source in expanded.sources)
        others = [other for other in said if other is not one]
        for other in others:
            assert conversation.get(other.session_id, other.version).gaps == ()
        assert store.verify().findings == ()


@settings(max_examples=examples(10), deadline=None)
@given(conversations(texts=ANY_TEXT, most=5), st.integers(0, 4), st.sampled_from(["", " \t", "\ud800"]))
def test_one_bad_turn_keeps_all_of_a_conversation_out(said, place, bad):
    first, *rest = said
    turns = list(first.turns)
    turns[min(place, len(turns) - 1)] = turn("bad", "user", bad)
    with told(rest) as (store, conversation):
        before = store.stats().records
        with pytest.raises(InvalidRequest):
            conversation.remember(msgspec.structs.replace(first, turns=tuple(turns)))
        assert store.stats().records == before
        assert conversation.get(first.session_id, first.version) is None
