"""A repository, its memory and forgetting live beside a plain model, and show the same after each step."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from effort import examples
from governed import (
    activate,
    add_edge,
    change,
    corroborate,
    create,
    create_active,
    evidence,
    opened,
    remove_edge,
    revise,
    set_status,
    successor,
)
from perdure.errors import Conflict, NotFound
from perdure.model.node import NodeStatus
from perdure.model.node_change import Resolve
from perdure.model.node_snapshot import SnapshotRequest
from perdure.repository_errors import HistoryChanged

IDS = ("a", "b", "c", "d", "e")
ENDED = ("superseded", "tombstoned")
OFTEN = (
    "create",
    "activate",
    "revise",
    "corroborate",
    "supersede_by_a_new_one",
    "supersede_by_one_that_is_there",
    "join",
    "part",
    "conflict",
    "resolve",
    "tombstone",
)
SELDOM = ("tell_again", "forget", "remember", "forget_a_fact", "purge")
LOOKS = (
    "recall_serves_what_is_active_and_nothing_else",
    "queries_show_the_nodes_of_the_model",
    "heads_are_those_of_the_model",
    "supersession_has_no_cycle",
    "equal_tokens_are_equal_content_and_count_the_steps",
    "the_feed_goes_on_from_every_token_of_this_history",
    "no_token_of_an_older_history_is_taken",
)
steps = st.tuples(st.sampled_from((*OFTEN * 3, *SELDOM)), st.integers(0, 2**16))
EVERYTHING = SnapshotRequest(tuple(NodeStatus))
INVERSE = {
    "supersedes": "superseded_by",
    "superseded_by": "supersedes",
    "conflicts_with": "conflicts_with",
    "related_to": "related_to",
}


@dataclass(frozen=True)
class Plain:
    """A node of the model; an edge to a forgotten node has no target."""

    status: str
    content: str
    revision: int = 1
    edges: tuple[tuple[str, str | None], ...] = ()

    def step(self, **changes: Any) -> Plain:
        return replace(self, revision=self.revision + 1, **changes)

    def joined(self, kind: str, target: str) -> Plain:
        return self.step(edges=(*self.edges, (kind, target)))

    def parted(self, kind: str, target: str) -> Plain:
        return self.step(edges=tuple(one for one in self.edges if one != (kind, target)))


@dataclass
class Model:
    nodes: dict[str, Plain] = field(default_factory=dict)
    facts: set[str] = field(default_factory=set)  # texts told to the memory
    shown: set[str] = field(default_factory=set)  # contents that were once active
    sequence: int = 0

    def status(self, id_: str) -> str | None:
        return None if id_ not in self.nodes else self.nodes[id_].status

    def is_open(self, *named: str) -> bool:
        return all(self.status(id_) not in (None, *ENDED) for id_ in named)

    def may_lose(self, id_: str, kind: str, target: str) -> bool:
        """Whether a node does without the edge: a conflict needs one."""
        node = self.nodes[id_]
        if kind != "conflicts_with" or node.status != "conflicted":
            return True
        return sum(1 for one in node.edges if one[0] == kind) > 1

    @property
    def active(self) -> set[str]:
        return {node.content for node in self.nodes.values() if node.status == "active"}


class SideBySide:
    def __init__(self) -> None:
        self.store = opened(None, "memory")
        self.repository = self.store.repository("alice")
        self.memory = self.store.memory("alice")
        self.model = Model()
        self.count = 0
        self.told: list[tuple[Any, Any]] = []  # change sets and their answers
        self.tokens = [self.repository.change_token()]
        self.purged_at = 0
        self.contents: dict[str, str] = {}  # digest of the snapshot by token

    def choose(self, among: Any) -> Any:
        return self.dice.choice(list(among))

    def live(self, step: tuple[str, int]) -> None:
        """Do something, with what chance says, and look at everything."""
        name, seed = step
        self.dice = Random(seed)
        getattr(self, name)()
        for look in LOOKS:
            getattr(self, look)()

    def pick(self, *statuses: str) -> str:
        """Return an id, mostly one of a node of such a status: what is refused is easy to come by."""
        fitting = [id_ for id_, node in self.model.nodes.items() if node.status in statuses]
        return self.choose(fitting * 5 + list(IDS))

    def words(self, id_: str) -> str:
        self.count += 1
        return f"word of {id_} number {self.count}"

    def revision(self, id_: str) -> int:
        node = self.model.nodes.get(id_)
        return 1 if node is None else node.revision

    def apply(self, operations: Any, after: dict[str, Plain] | None) -> None:
        """Apply and compare: `after` is what the model says of the changed nodes, None where it refuses."""
        self.count += 1
        told = change(f"key {self.count}", *operations)
        before = self.repository.snapshot(EVERYTHING)
        try:
            answer = self.repository.apply(told)
        except (Conflict, NotFound):
            assert after is None
            assert self.repository.snapshot(EVERYTHING) == before
            return
        assert after is not None
        assert {node.id: (node.status.value, node.content, node.revision) for node in answer.nodes} == {
            id_: (node.status, node.content, node.revision) for id_, node in after.items()
        }
        self.model.nodes.update(after)
        self.model.shown |= {node.content for node in after.values() if node.status == "active"}
        self.model.sequence += 1
        self.told.append((told, answer))
        self.tokens.append(self.repository.change_token())

    def create(self) -> None:
        self.make(self.choose(IDS), active=self.choose([False, True]))

    def make(self, id_: str, *, active: bool) -> None:
        words = self.words(id_)
        made = (create_active if active else create)(id_, words, evidence=[evidence()])
        after = {id_: Plain("active" if active else "candidate", words)}
        self.apply([made], None if id_ in self.model.nodes else after)

    def activate(self) -> None:
        id_ = self.pick("candidate")
        node = self.model.nodes.get(id_)
        allowed = node is not None and node.status == "candidate"
        self.apply(
            [activate(id_, self.revision(id_))], {id_: node.step(status="active")} if allowed else None
        )

    def revise(self) -> None:
        mode = self.choose(["correction", "refinement"])
        late = self.choose([False, False, False, True])
        id_ = self.pick("active", "conflicted")
        words = self.words(id_)
        allowed = self.model.is_open(id_) and not late
        after = {id_: self.model.nodes[id_].step(content=words)} if allowed else None
        self.apply([revise(id_, self.revision(id_) + late, words, mode)], after)

    def corroborate(self) -> None:
        id_ = self.pick("active", "conflicted")
        after = {id_: self.model.nodes[id_].step()} if self.model.is_open(id_) else None
        self.apply([corroborate(id_, self.revision(id_))], after)

    def supersede_by_a_new_one(self) -> None:
        free = [id_ for id_ in IDS if id_ not in self.model.nodes]
        new = self.choose(free * 5 + list(IDS))
        old = self.pick("active", "conflicted")
        words, at = self.words(new), self.revision(old)
        made = successor(new, old, words)
        operations = [made, add_edge(old, at, "superseded_by", new), set_status(old, at + 1, "superseded")]
        allowed = self.model.status(old) in ("active", "conflicted") and new not in self.model.nodes
        after = None
        if allowed:
            gone = self.model.nodes[old].joined("superseded_by", new).step(status="superseded")
            after = {old: gone, new: Plain("active", words, 1, (("supersedes", old),))}
        self.apply(operations, after)

    def supersede_by_one_that_is_there(self) -> None:
        old, new = self.pick("active", "conflicted"), self.pick("active")
        at = self.revision(old)
        operations = [
            add_edge(new, self.revision(new), "supersedes", old),
            add_edge(old, at, "superseded_by", new),
            set_status(old, at + 1, "superseded"),
        ]
        after = None
        allowed = old != new and self.model.status(old) in ("active", "conflicted")
        if allowed and self.model.status(new) == "active":
            gone = self.model.nodes[old].joined("superseded_by", new).step(status="superseded")
            after = {old: gone, new: self.model.nodes[new].joined("supersedes", old)}
        self.apply(operations, after)

    def join(self) -> None:
        """Supersession is no edge alone: what is superseded must say so."""
        kind = self.choose([*sorted(INVERSE), "conflicts_with", "conflicts_with"])
        one, other = self.pick("active", "conflicted"), self.pick("active", "candidate")
        back = INVERSE[kind]
        operations = [
            add_edge(one, self.revision(one), kind, other),
            add_edge(other, self.revision(other), back, one),
        ]
        after = None
        if one != other and self.model.is_open(one, other) and "supersede" not in kind:
            mine, theirs = self.model.nodes[one], self.model.nodes[other]
            if (kind, other) not in mine.edges:
                after = {one: mine.joined(kind, other), other: theirs.joined(back, one)}
        self.apply(operations, after)

    def part(self) -> None:
        one = self.pick("active", "conflicted", "candidate")
        there = self.model.nodes.get(one, Plain("", "")).edges
        some = [edge for edge in there if edge[1] is not None] * 3 + [("related_to", id_) for id_ in IDS]
        kind, other = self.choose(some)
        back = INVERSE[kind]
        operations = [
            remove_edge(one, self.revision(one), kind, other),
            remove_edge(other, self.revision(other), back, one),
        ]
        after = None
        allowed = self.model.is_open(one, other) and (kind, other) in there
        if allowed and self.model.may_lose(one, kind, other) and self.model.may_lose(other, back, one):
            mine, theirs = self.model.nodes[one], self.model.nodes[other]
            after = {one: mine.parted(kind, other), other: theirs.parted(back, one)}
        self.apply(operations, after)

    def conflict(self) -> None:
        clashing = [id_ for id_, one in self.model.nodes.items() if ("conflicts_with" in dict(one.edges))]
        id_ = self.choose(clashing * 5 + list(IDS))
        node = self.model.nodes.get(id_)
        allowed = node is not None and node.status == "active"
        allowed = allowed and any(kind == "conflicts_with" for kind, _ in node.edges)
        after = {id_: node.step(status="conflicted")} if allowed else None
        self.apply([set_status(id_, self.revision(id_), "conflicted")], after)

    def resolve(self) -> None:
        id_ = self.pick("conflicted")
        node = self.model.nodes.get(id_)
        allowed = node is not None and node.status == "conflicted"
        operation = Resolve(node_id=id_, expected_revision=self.revision(id_), evidence=[evidence()])
        self.apply([operation], {id_: node.step(status="active")} if allowed else None)

    def tombstone(self) -> None:
        id_ = self.pick("active", "conflicted", "superseded")
        node = self.model.nodes.get(id_)
        allowed = node is not None and node.status != "tombstoned"
        after = {id_: node.step(status="tombstoned")} if allowed else None
        self.apply([set_status(id_, self.revision(id_), "tombstoned")], after)

    def tell_again(self) -> None:
        if not self.told:
            return
        told, answer = self.choose(self.told)
        before = self.repository.snapshot(EVERYTHING)
        assert self.repository.apply(told) == answer
        assert self.repository.snapshot(EVERYTHING) == before

    def forget(self) -> None:
        id_, by_fact = self.pick(*NodeStatus), self.choose([False, True])
        node = self.repository.get(id_)
        facts = [
            fact.id
            for fact in self.memory.list(limit=1000).items
            if fact.id.startswith(f"perdure:node/{id_}@")
        ]
        if by_fact and node is not None and facts:
            assert self.memory.forget(ids=facts[:1]).forgotten == tuple(sorted(facts))
        else:
            assert self.repository.forget([id_]).forgotten == (() if node is None else (id_,))
        if node is None:
            return
        del self.model.nodes[id_]
        for other, plain in self.model.nodes.items():
            edges = tuple((kind, None if target == id_ else target) for kind, target in plain.edges)
            self.model.nodes[other] = replace(plain, edges=edges)
        self.model.sequence += 1
        for told, answer in self.told:
            if any(node.id == id_ for node in answer.nodes):
                with pytest.raises(NotFound):
                    self.repository.apply(told)
        self.told = [one for one in self.told if all(node.id != id_ for node in one[1].nodes)]
        # What an answer says of edges to the forgotten node is told anew.
        self.told = [(told, self.repository.apply(told)) for told, _ in self.told]
        self.tokens.append(self.repository.change_token())

    def remember(self) -> None:
        text = self.words("a person")
        self.memory.remember(text)
        self.model.facts.add(text)

    def forget_a_fact(self) -> None:
        if not self.model.facts:
            return
        text = self.choose(sorted(self.model.facts))
        self.memory.forget(text=text)
        self.model.facts.discard(text)

    def purge(self) -> None:
        before = self.repository.snapshot(EVERYTHING)
        self.store.purge()
        assert self.repository.snapshot(EVERYTHING) == before
        self.model.sequence = 0
        self.purged_at = len(self.tokens)
        self.tokens.append(self.repository.change_token())

    def recall_serves_what_is_active_and_nothing_else(self) -> None:
        found = {hit.text for hit in self.memory.recall("word", k=1000)}
        assert found == self.model.active | self.model.facts
        ever = {hit.text for hit in self.memory.recall("word", k=1000, history="all")}
        assert ever <= self.model.shown | self.model.facts

    def queries_show_the_nodes_of_the_model(self) -> None:
        for status in NodeStatus:
            found = self.repository.query("word", statuses=[status], limit=100)
            expected = {id_ for id_, node in self.model.nodes.items() if node.status == status}
            assert {hit.node.id for hit in found.items} == expected
            assert all(hit.score > 0 for hit in found.items)
        waiting = {
            id_ for id_, node in self.model.nodes.items() if node.status in ("candidate", "conflicted")
        }
        assert {node.id for node in self.repository.review_queue(limit=100).items} == waiting

    def heads_are_those_of_the_model(self) -> None:
        for id_ in IDS:
            node, plain = self.repository.get(id_), self.model.nodes.get(id_)
            if plain is None:
                assert node is None
                continue
            assert (node.status, node.content, node.revision) == (
                plain.status,
                plain.content,
                plain.revision,
            )
            edges = [(one.kind.value, one.target or "") for one in node.relations]
            assert sorted(edges) == sorted((kind, target or "") for kind, target in plain.edges)
            assert self.repository.revisions(id_).total == plain.revision
            assert (node.fact is not None) == (plain.status == "active")

    def supersession_has_no_cycle(self) -> None:
        below = {
            id_: [target for kind, target in node.edges if kind == "supersedes" and target]
            for id_, node in self.model.nodes.items()
        }
        for start, first in below.items():
            seen, waiting = set(), list(first)
            while waiting:
                at = waiting.pop()
                assert at != start
                if at not in seen:
                    seen.add(at)
                    waiting += below[at]

    def equal_tokens_are_equal_content_and_count_the_steps(self) -> None:
        token = self.repository.change_token()
        assert token.sequence == self.model.sequence
        assert token == self.tokens[-1]
        content = self.repository.snapshot(EVERYTHING).digest
        assert self.contents.setdefault(repr(token), content) == content

    def the_feed_goes_on_from_every_token_of_this_history(self) -> None:
        for token in self.tokens[self.purged_at :]:
            told, at, has_more = [], token, True
            while has_more:
                page = self.repository.changes(at, limit=2)
                told += [one.sequence for one in page.items]
                at, has_more = page.token, page.has_more
            assert told == list(range(token.sequence + 1, self.model.sequence + 1))
            assert at == self.repository.change_token()

    def no_token_of_an_older_history_is_taken(self) -> None:
        now = self.repository.change_token()
        for token in self.tokens[: self.purged_at]:
            if token.history_id == now.history_id:  # of the empty space, both times
                continue
            with pytest.raises(HistoryChanged):
                self.repository.changes(token)


@settings(max_examples=examples(10), deadline=None)
@given(st.lists(steps, min_size=10, max_size=40))
def test_a_repository_shows_what_a_plain_model_of_it_shows(script: list[tuple[str, int]]) -> None:
    both = SideBySide()
    try:
        for id_ in IDS[:3]:
            both.make(id_, active=id_ != "c")
        for step in script:
            both.live(step)
    finally:
        both.store.close()
