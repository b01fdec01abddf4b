"""A recall brings turns back whole, each with what it rests on, within exact budgets."""

from __future__ import annotations

import msgspec
import pytest

from governed import opened
from perdure import MemoryConfig
from perdure.conversation.checks import checked_options
from perdure.conversation.ranking import asked_queries
from perdure.embedders import HashingEmbedder
from perdure.errors import InvalidRequest, NotFound
from perdure.model.conversation import (
    ConversationContextLimits,
    ConversationRecallOptions,
    QueryPlan,
)
from perdure.model.conversation_forms import source_object
from talks import ASSISTANT, START, USER, found, left_out, names, talk, turn

TRIP = [
    "Please help me plan a journey",  # t0 u
    "Gladly, where to?",  # t1 a
    "Somewhere with fjords",  # t2 u
    "Then take the night train to Bergen",  # t3 a
    "Good, and a hotel?",  # t4 u
    "The calibrated resonator hums at 37 hertz",  # t5 a
    "Unrelated remark",  # t6 u
]
EVERYTHING = ConversationContextLimits(aggregation_only=False)


@pytest.fixture
def store(tmp_path):
    with opened(tmp_path, "memory") as store:
        yield store


@pytest.fixture
def conversation(store):
    return store.conversation("alice")


def options(**told):
    return ConversationRecallOptions(**told)


def anchored(context, source_id):
    return [one for one in context.anchors if one.source.endswith(f"/{source_id}")]


def test_an_assistants_turn_brings_opening_question_and_what_the_question_answers(conversation):
    conversation.remember(talk(TRIP))
    context = conversation.recall("resonator hertz", options(roles=(ASSISTANT,), k=1))
    assert found(context) == ["t5"]
    assert names(context) == ["t0", "t3", "t4", "t5"]
    assert [one.text for one in context.sources] == [TRIP[n] for n in (0, 3, 4, 5)]


def test_a_users_turn_brings_the_opening_turn_alone(conversation):
    conversation.remember(talk(TRIP))
    context = conversation.recall("unrelated remark", options(roles=(USER,), k=1))
    assert (found(context), names(context)) == (["t6"], ["t0", "t6"])
    assert context.verified


def test_the_opening_turn_is_the_first_of_a_user_wherever_it_stands(conversation):
    conversation.remember(talk(["Welcome to the resonator", "hello", "how are you"], roles="aua"))
    context = conversation.recall("resonator", options(roles=(ASSISTANT,), k=1))
    assert (found(context), names(context)) == (["t0"], ["t0", "t1"])


def test_a_session_of_an_assistant_alone_needs_no_user(conversation):
    conversation.remember(talk(["the resonator hums", "it hums on"], roles="aa"))
    context = conversation.recall("resonator hums", options(k=1))
    assert names(context) == ["t0"]
    assert context.verified


def test_versions_and_sessions_do_not_mix(conversation):
    conversation.remember(talk(TRIP, version="v1"))
    conversation.remember(talk([text.upper() for text in TRIP], version="v2"))
    conversation.remember(talk(["resonator", "hertz"], session="other"))
    context = conversation.recall("resonator hertz")
    for source in context.sources:
        kept = conversation.get(source.session_id, source.version)
        assert kept.turns[source.position] == source
    # Each version's turns stand together, in order.
    order = [(one.session_id, one.version) for one in context.sources]
    assert len(set(order)) == sum(a != b for a, b in zip(order, [None, *order], strict=False)) == 3


def test_roles_are_interleaved_by_their_ranks_and_ties_come_in_the_order_asked(conversation):
    said = [f"{'word ' * (4 - n // 2)}{'filler ' * n}number {n}" for n in range(6)]
    conversation.remember(talk(said))
    users_first = conversation.recall("word")
    assert [anchor.score for anchor in users_first.anchors] == [1 / (60 + n) for n in (1, 1, 2, 2, 3, 3)]
    both = found(users_first)
    assert [int(name[1]) % 2 for name in both] == [0, 1, 0, 1, 0, 1]
    swapped = found(conversation.recall("word", options(roles=(ASSISTANT, USER))))
    assert swapped == [name for pair in zip(both[1::2], both[::2], strict=True) for name in pair]
    assert found(conversation.recall("word", options(roles=(USER,)))) == both[::2]


def test_the_chunks_of_a_turn_count_as_one_source(conversation):
    long = " ".join(f"resonator {n}" for n in range(400))
    receipt = conversation.remember(talk([long, "yes", "a resonator too"]))
    assert receipt.chunks > 4
    context = conversation.recall("resonator", options(roles=(USER,), k=2))
    assert sorted(found(context)) == ["t0", "t2"]
    assert context.sources[0].text == long


def test_a_role_that_the_other_crowds_out_is_still_found(conversation):
    said = [*["resonator " * 3] * 30, "a remark on many things, one of them a resonator"]
    conversation.remember(talk(said, roles="u" * 30 + "a"))
    context = conversation.recall("resonator", options(k=2, candidate_limit=3))
    assert "t30" in found(context)


def test_bytes_counted_are_bytes_sent_and_a_group_goes_in_whole(conversation):
    conversation.remember(talk(TRIP))
    whole = conversation.recall("resonator train fjords")
    size = len(msgspec.json.encode([source_object(one) for one in whole.sources]))
    assert whole.byte_count == size
    assert left_out(conversation.recall("resonator train fjords", options(max_bytes=size))) == {}
    less = conversation.recall("resonator train fjords", options(max_bytes=size - 1))
    assert "max-bytes" in left_out(less).values()
    assert less.byte_count < size
    for anchor in less.anchors:
        assert anchor.source in {one.uri for one in less.sources}


def test_what_does_not_fit_is_listed_and_others_still_go_in(conversation):
    conversation.remember(talk(TRIP))
    context = conversation.recall("resonator hertz unrelated remark", options(max_sources=2, k=1))
    assert names(context) == ["t0", "t6"]
    assert left_out(context) == {"t5": "max-sources"}
    assert conversation.recall("resonator", options(max_sources=1, k=1)).sources == ()


def test_an_empty_answer_proves_nothing(conversation):
    context = conversation.recall("resonator")
    assert (context.sources, context.anchors, context.dropped) == ((), (), ())
    assert (context.verified, context.byte_count) == (False, 2)


def test_expansion_brings_what_did_not_match_and_says_what_is_missing_before(conversation):
    conversation.remember(talk(TRIP))
    local = conversation.recall("resonator hertz", options(roles=(ASSISTANT,), k=1))
    assert not local.verified
    assert [uri.rsplit("/", 1)[1] for uri in local.unresolved_premise_ids()] == ["t1", "t2"]
    expanded = conversation.expand(local, EVERYTHING)
    assert names(expanded) == ["t0", "t1", "t2", "t3", "t4", "t5"]
    assert expanded.verified
    assert expanded.unresolved_premise_ids() == ()
    assert expanded.anchors == local.anchors
    at_once = conversation.recall("resonator hertz", options(roles=(ASSISTANT,), k=1, expand=EVERYTHING))
    assert at_once == expanded


@pytest.mark.parametrize(
    "limits", [{"max_sources": 5}, {"max_rounds": 1}, {"max_bytes": 600}, {"max_sources": 1}]
)
def test_a_closure_that_does_not_fit_leaves_the_context_as_it_was(conversation, limits):
    conversation.remember(talk(TRIP))
    local = conversation.recall("resonator hertz", options(roles=(ASSISTANT,), k=1))
    expanded = conversation.expand(local, ConversationContextLimits(aggregation_only=False, **limits))
    assert expanded == local


def test_rounds_count_links_in_a_row(conversation):
    conversation.remember(talk([f"word {n}" for n in range(8)]))
    local = conversation.recall("word 7", options(roles=(ASSISTANT,), k=1))
    assert found(local) == ["t7"]
    sizes = [
        len(
            conversation.expand(
                local, ConversationContextLimits(aggregation_only=False, max_rounds=n)
            ).sources
        )
        for n in range(1, 6)
    ]
    assert sizes == [4, 4, 8, 8, 8]  # t7 rests on t5 and t6, t5 on t3 and t4, t3 on t1 and t2, t1 on t0


@pytest.mark.parametrize("query", ["How many resonators", "list them", "TOTAL hertz", "every resonator"])
def test_by_default_only_questions_that_count_or_list_are_expanded(conversation, query):
    conversation.remember(talk(TRIP))
    asked = options(roles=(ASSISTANT,), k=1, expand=ConversationContextLimits())
    assert len(conversation.recall("resonator hertz", asked).sources) == 4
    assert len(conversation.recall(f"{query} resonator hertz", asked).sources) == 6


def test_words_that_only_begin_like_counting_do_not_expand(conversation):
    conversation.remember(talk(TRIP))
    asked = options(roles=(ASSISTANT,), k=1, expand=ConversationContextLimits())
    assert len(conversation.recall("allow listed resonator country", asked).sources) == 4


def test_other_candidates_come_before_premises_of_premises(conversation):
    conversation.remember(talk(TRIP))
    conversation.remember(talk(["a resonator of another kind"], session="other"))
    local = conversation.recall(
        "resonator hertz another kind", options(k=1, max_sources=4, roles=(ASSISTANT, USER))
    )
    assert left_out(local) == {"t0": "max-sources"}
    expanded = conversation.expand(local, ConversationContextLimits(max_sources=5, aggregation_only=False))
    assert ("other", "t0") in {(one.session_id, one.source_id) for one in expanded.sources}
    assert len(expanded.sources) == 5
    assert expanded.dropped == ()
    assert not expanded.verified


def test_a_context_whose_turn_was_forgotten_is_not_expanded(conversation):
    conversation.remember(talk(TRIP))
    local = conversation.recall("resonator hertz", options(roles=(ASSISTANT,), k=1))
    conversation.forget("s", source_id="t3")
    with pytest.raises(NotFound):
        conversation.expand(local, EVERYTHING)


class Planner:
    def __init__(self, *subqueries, ranges=(), error=None):
        self.plan_, self.error, self.asked = QueryPlan(subqueries, ranges), error, []

    def plan(self, query):
        self.asked.append(query)
        if self.error is not None:
            raise self.error
        return self.plan_


def planned(store, planner, **told):
    store.conversation("alice").remember(talk(["apples grow", "pears grow", "plums grow", "figs grow"]))
    return store.conversation("alice", planner=planner).recall("apples", options(**told))


def test_subqueries_count_only_with_a_weight(store):
    planner = Planner("plums")
    assert found(planned(store, planner)) == found(planned(store, None))
    assert planner.asked == []
    assert set(found(planned(store, None, subqueries=("plums",)))) == set(found(planned(store, None)))
    assert "t2" in found(planned(store, planner, subquery_weight=0.5))
    assert found(planned(store, None, subqueries=("plums",), subquery_weight=1.0))[0] == "t2"


def test_four_distinct_subqueries_share_the_weight(store):
    told = ("plums", "plums", " ", "apples", "pears", "figs", "grow")
    four = planned(store, None, subqueries=told, subquery_weight=0.4)
    assert four.anchors == planned(store, None, subqueries=told[:6], subquery_weight=0.4).anchors
    queries = asked_queries(
        "apples", checked_options(options(subqueries=told, subquery_weight=0.4)), None
    ).queries
    assert [one.text for one in queries] == ["apples", "plums", "pears", "figs"]
    assert [one.weight for one in queries] == [0.6, *[pytest.approx(0.4 / 3)] * 3]


@pytest.mark.parametrize(
    "planner",
    [Planner(), Planner(" ", "\ud800", 7), Planner("apples"), Planner(error=ValueError()), Planner(None)],
)
def test_without_a_usable_subquery_the_query_itself_is_asked(store, planner):
    plain = planned(store, None)
    assert planned(store, planner, subquery_weight=1.0).anchors == plain.anchors
    assert planner.asked == ["apples"]


def test_times_of_a_planner_are_told_and_filter_nothing(store):
    ranges = ((None, None),)
    context = planned(store, Planner("plums", ranges=ranges), subquery_weight=0.5)
    assert context.time_ranges == ranges
    assert "t0" in found(context)


def test_what_was_observed_earlier_is_found_beside_what_was_observed_later(conversation):
    def told(version, at):
        return msgspec.structs.replace(
            talk(["x"], version=version), turns=(turn("a", USER, "the resonator hums", at),)
        )

    conversation.remember(told("new", "2050-01-01"))
    conversation.remember(told("old", START))
    assert {one.version for one in conversation.recall("resonator").sources} == {"new", "old"}


def test_vectors_find_what_words_do_not(tmp_path):
    with opened(tmp_path, "memory") as store:
        config = MemoryConfig(embedder=HashingEmbedder(dimension=256))
        conversation = store.conversation("p", config=config)
        conversation.remember(talk(["calibrated resonators", "nothing of it"]))
        assert found(conversation.recall("calibrateds resonatorses"))[0] == "t0"


@pytest.mark.parametrize(
    ("told", "field"),
    [
        ({"roles": ()}, "roles"),
        ({"roles": ("user", "user")}, "roles"),
        ({"roles": ("system",)}, "roles[0]"),
        ({"roles": "user"}, "roles"),
        ({"k": 0}, "k"),
        ({"k": 1001}, "k"),
        ({"k": 20, "candidate_limit": 19}, "candidate_limit"),
        ({"candidate_limit": 1001}, "candidate_limit"),
        ({"max_sources": 0}, "max_sources"),
        ({"max_bytes": 0}, "max_bytes"),
        ({"subqueries": "a text"}, "subqueries"),
        ({"subqueries": ("a", 7)}, "subqueries[1]"),
        ({"subquery_weight": 1.5}, "subquery_weight"),
        ({"subquery_weight": float("nan")}, "subquery_weight"),
        ({"expand": {"max_sources": 1}}, "expand"),
        ({"expand": ConversationContextLimits(max_rounds=0)}, "expand.max_rounds"),
    ],
)
def test_malformed_options_are_refused_by_name(conversation, told, field):
    for _ in range(2):  # of an empty space as of one that holds something
        with pytest.raises(InvalidRequest) as refused:
            conversation.recall("resonator", options(**told))
        assert refused.value.field == field
        conversation.remember(talk(TRIP))


def test_a_blank_query_and_foreign_arguments_are_refused(store, conversation):
    for call in (
        lambda: conversation.recall("  "),
        lambda: conversation.recall("x", {"k": 1}),
        lambda: conversation.expand({"query": "x"}),
        lambda: conversation.remember({"session_id": "s"}),
        lambda: store.conversation("alice", planner=lambda query: ()),
        lambda: conversation.get("", "v1"),
        lambda: conversation.forget(7),
    ):
        with pytest.raises(InvalidRequest):
            call()


def test_facts_that_others_tell_to_the_space_are_no_turns(store, conversation):
    conversation.remember(talk(["the resonator"]))
    store.memory("alice", "#conversation").remember(
        "a resonator too", metadata={"role": "user", "session": "s", "version": "v1", "position": 0}
    )
    assert found(conversation.recall("resonator")) == ["t0"]


def test_shown_objects_show_no_text(conversation):
    said = talk(["the secret word"])
    conversation.remember(said)
    context = conversation.recall("secret word")
    for shown in (said, said.turns[0], context, context.sources[0]):
        assert "secret" not in repr(shown)


def test_the_reply_of_the_contract_sends_as_many_bytes_of_sources_as_it_counts(conversation):
    conversation.remember(talk(['a "quoted" r\u00e9sonator \U0001f600\n\ttab', "resonator \u2028 two"]))
    reply = conversation.call("recallConversation", {"query": "resonator", "maxBytes": 2_000})
    sent = msgspec.json.encode(reply["context"]["sources"])
    assert reply["context"]["byteCount"] == len(sent) > 2
    less = conversation.call("recallConversation", {"query": "resonator", "maxBytes": len(sent) - 1})
    assert less["context"]["byteCount"] < len(sent)
    again = conversation.call(
        "expandConversation", {"context": less["context"], "limits": {"aggregationOnly": False}}
    )
    assert again["context"]["sources"] == reply["context"]["sources"]
