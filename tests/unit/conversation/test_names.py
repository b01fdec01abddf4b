"""The uri of a turn says which one it is, whatever its names hold."""

from __future__ import annotations

from urllib.parse import quote

from hypothesis import given
from hypothesis import strategies as st

from perdure.model.conversation_forms import TURN_PREFIX, conversation_of, names_of, turn_uri
from perdure.model.namespace import Namespace

NAMES = st.text(st.characters(exclude_categories=["Cs"]), min_size=1) | st.text("a/%2F#.~ \u00e9", min_size=1)


@given(NAMES, NAMES, NAMES)
def test_a_uri_gives_the_names_back(session, version, source_id):
    uri = turn_uri(session, version, source_id)
    assert names_of(uri) == (session, version, source_id)
    assert uri == TURN_PREFIX + "/".join(quote(name, safe="") for name in (session, version, source_id))


@given(
    st.sampled_from(["", "file:a/b/c", "perdure:turn/a/b", "perdure:turn/a/b/c/d", "perdure:turn/", "a/b/c"])
)
def test_other_texts_name_no_turn(text):
    assert names_of(text) is None


def test_conversations_have_a_space_of_their_own():
    assert conversation_of(Namespace("alice", "work")) == Namespace("alice", "work#conversation")
