"""Every place of nodes and conversations where a person's words may come to lie, and what takes them away again."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from erasure.places import MARKER
from governed import (
    add_edge,
    change,
    create,
    create_active,
    evidence,
    revise,
    set_status,
    successor,
    supersession,
)
from perdure import Store
from perdure.extraction import CandidateDraft, Extraction, Quote
from perdure.model.conversation import ConversationInput, ConversationTurn
from perdure.model.node import AccessEvent, Evidence, Relation

NAME = MARKER.replace(" ", "-")


class GovernedPlace(NamedTuple):
    """`plant` writes the marker, `remove` does what erases it; a filtered export or a soft hiding is no such thing."""

    plant: Callable[[Store], object]
    remove: Callable[[Store], object]


def _applied(*operations: Any, key: str = "k") -> Callable[[Store], object]:
    return lambda store: store.repository().apply(change(key, *operations))


def _all(*steps: Callable[[Store], object]) -> Callable[[Store], object]:
    def run(store: Store) -> None:
        for step in steps:
            step(store)

    return run


def _forget(*ids: str) -> Callable[[Store], object]:
    return lambda store: store.repository().forget(ids)


def _forget_fact(store: Store) -> object:
    return store.memory().forget(ids=["perdure:node/n@1"])


def _said(session: str = "s", version: str = "v", source_id: str = "t", text: str = "a plain turn") -> Any:
    turns = (
        ConversationTurn(source_id=source_id, role="user", text=text, observation_time=1),
        ConversationTurn(source_id="other", role="assistant", text="what stays", observation_time=2),
    )
    told = ConversationInput(session_id=session, version=version, turns=turns)
    return lambda store: store.conversation().remember(told)


def _unsaid(session: str = "s", **chosen: Any) -> Callable[[Store], object]:
    return lambda store: store.conversation().forget(session, **chosen)


def _access(**fields: Any) -> Callable[[Store], object]:
    told = {"id": "e", "node_id": "n", "node_revision": 1, "occurred_at": 1_760_000_000_000} | fields
    return lambda store: store.repository().record_use(AccessEvent(**told))


def _noted(uri: str = "perdure:turn/s/v/t", quote: str = "") -> Callable[[Store], object]:
    source = {"uri": uri, "quote": quote}
    return lambda store: store.memory().remember("what stays of it", id="x", source=source)


class _Drafts:
    """Proposes one candidate of each turn, with the turn's words for its content where asked."""

    def __init__(self, content: str = "") -> None:
        self._content = content

    def extract(self, turns: Any) -> list[CandidateDraft]:
        return [
            CandidateDraft(self._content or f"claimed: {turn.text}", (Quote(place, turn.text),))
            for place, turn in enumerate(turns)
        ]


def _extracted(store: Store, content: str = "") -> object:
    session = store.session("s")
    session.add_turn("user", MARKER)
    return session.handover(extraction=Extraction(store.repository(), _Drafts(content)))


def _drafted(store: Store) -> object:
    return _extracted(store, "what stays")


def _drafted_of_words(store: Store) -> object:
    return _extracted(store)


def _forget_candidates(store: Store) -> None:
    store.session("s").clear()
    repository = store.repository()
    found = [node.id for node in repository.review_queue(limit=100).items]
    repository.forget([id_ for id_ in found if id_.startswith("candidate-")])


_node = _applied(create_active("n"))

GOVERNED_PLACES: dict[str, GovernedPlace] = {
    "content": GovernedPlace(_applied(create_active("n", MARKER)), _forget("n")),
    "content, forgotten by its fact": GovernedPlace(_applied(create_active("n", MARKER)), _forget_fact),
    "content of a candidate": GovernedPlace(_applied(create("n", MARKER)), _forget("n")),
    "id": GovernedPlace(_applied(create_active(NAME, MARKER)), _forget(NAME)),
    "subject": GovernedPlace(_applied(create_active("n", subject=MARKER)), _forget("n")),
    "label": GovernedPlace(_applied(create_active("n", labels={"k": MARKER})), _forget("n")),
    "name of a label": GovernedPlace(_applied(create_active("n", labels={MARKER: "v"})), _forget("n")),
    "label of a candidate": GovernedPlace(_applied(create("n", labels={"k": MARKER})), _forget("n")),
    "address of an evidence": GovernedPlace(
        _applied(create_active("n", evidence=[evidence(MARKER)])), _forget("n")
    ),
    "quote of an evidence": GovernedPlace(
        _applied(create_active("n", evidence=[evidence(quote=MARKER, start=1)])), _forget("n")
    ),
    "digest of an evidence": GovernedPlace(
        _applied(create_active("n", evidence=[Evidence("file:x", MARKER, "manual", 1_760_000_000_000)])),
        _forget("n"),
    ),
    "reason of a change": GovernedPlace(
        _all(_node, _applied(revise("n", 1, "anew", actor="bot", reason=MARKER), key="l")), _forget("n")
    ),
    "an earlier revision": GovernedPlace(
        _all(_applied(create_active("n", MARKER)), _applied(revise("n", 1, "anew"), key="l")), _forget("n")
    ),
    "a later revision": GovernedPlace(
        _all(_node, _applied(revise("n", 1, MARKER, "refinement"), key="l")), _forget("n")
    ),
    "a node at the other end of a relation": GovernedPlace(
        _all(
            _node,
            _applied(
                create_active(NAME, MARKER, relations=[Relation("related_to", "n")]),
                add_edge("n", 1, "related_to", NAME),
                key="l",
            ),
        ),
        _forget(NAME),
    ),
    "a node that was superseded": GovernedPlace(
        _all(
            _applied(create_active(NAME, MARKER)),
            _applied(*supersession(NAME, 1, successor("m", NAME)), key="l"),
        ),
        _forget(NAME),
    ),
    "a node that superseded": GovernedPlace(
        _all(_node, _applied(*supersession("n", 1, successor(NAME, "n", MARKER)), key="l")), _forget(NAME)
    ),
    "a node that was tombstoned": GovernedPlace(
        _all(_applied(create_active("n", MARKER)), _applied(set_status("n", 1, "tombstoned"), key="l")),
        _forget("n"),
    ),
    "key of a change set": GovernedPlace(_applied(create_active("n", MARKER), key=MARKER), _forget("n")),
    "access record": GovernedPlace(_all(_node, _access(id=NAME, context_id=NAME, actor="bot")), _forget("n")),
    "text of a turn": GovernedPlace(_said(text=MARKER), _unsaid(source_id="t")),
    "a long turn": GovernedPlace(_said(text=f"{MARKER} and so on, " * 200), _unsaid(source_id="t")),
    "a whole version": GovernedPlace(_said(version=NAME, text=MARKER), _unsaid(version=NAME)),
    "name of a session": GovernedPlace(_said(session=NAME, text=MARKER), _unsaid(NAME)),
    "name of a turn": GovernedPlace(_said(source_id=NAME), _unsaid(source_id=NAME)),
    "turn of a session": GovernedPlace(
        lambda store: store.session(NAME).add_turn("user", MARKER), lambda store: store.session(NAME).clear()
    ),
    "turn that a fact quotes": GovernedPlace(_all(_said(), _noted(quote=MARKER)), _unsaid()),
    "session that a fact quotes": GovernedPlace(
        _all(lambda store: store.session("s").add_turn("user", "x"), _noted("perdure:session/s/0", MARKER)),
        lambda store: store.session("s").clear(),
    ),
    "session that a candidate quotes": GovernedPlace(_drafted, lambda store: store.session("s").clear()),
    "draft of an extractor": GovernedPlace(_drafted_of_words, _forget_candidates),
    "turn that a node quotes": GovernedPlace(
        _all(
            _said(text=MARKER),
            _applied(create_active("n", evidence=[evidence("x", quote=MARKER)])),
        ),
        _all(_unsaid(), _forget("n")),
    ),
}
"""By name; actors are no place, since the audit keeps who did what. What extractors make is candidates."""
