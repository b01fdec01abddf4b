"""Extraction: an extractor proposes, and what holds against its turns becomes candidates in a repository."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from typing import Protocol, runtime_checkable

import msgspec

from perdure.base.canonical import canonical_json
from perdure.base.instants import find_millis, to_millis
from perdure.errors import Blocked, InvalidRequest, NotFound, PerdureError
from perdure.extraction.echoes import Echoes, without_fences
from perdure.model.conversation import SourceTurn
from perdure.model.extraction import CandidateDraft, Extracted, Quote, Refusal
from perdure.model.fact import Fact
from perdure.model.hit import Hit
from perdure.model.node import Evidence, EvidenceKind, NodeDraft
from perdure.model.node_change import ChangeSet, Create
from perdure.planning.checks import members_of
from perdure.repository.repository import Repository
from perdure.repository_errors import IdempotencyConflict, NodeAlreadyExists

DRAFTS_MAX = 1_000
_ID_DIGITS = 40  # of SHA-256


@runtime_checkable
class CandidateExtractor(Protocol):
    """Reads turns and proposes what is worth knowing. It decides nothing."""

    def extract(self, turns: Sequence[SourceTurn]) -> Sequence[CandidateDraft]:
        """Return drafts whose quotes name turns by their place in the list. What was recalled is blanked there."""
        ...


class _Refused(Exception):
    def __init__(self, reason: str, message: str) -> None:
        super().__init__(message)
        self.reason, self.message = reason, message


class Extraction:
    """Carries drafts of an extractor into a repository, as candidates only. Thread-safe if the extractor is."""

    def __init__(
        self, repository: Repository, extractor: CandidateExtractor, *, actor: str | None = None
    ) -> None:
        """Take where candidates go and who proposes them.

        Args:
            actor: kept with each candidate as the one that proposed it.

        Raises InvalidRequest where the extractor has no method `extract`.
        """
        if not callable(getattr(extractor, "extract", None)):
            raise InvalidRequest(
                f"extractor must have a method extract, got {type(extractor).__name__}", field="extractor"
            )
        self.repository, self._extractor, self._actor = repository, extractor, actor

    def run(self, turns: Iterable[SourceTurn], *, recalled: Iterable[Hit | Fact | str] = ()) -> Extracted:
        """Ask the extractor and make a candidate of each draft that holds.

        A node's id is a digest of the whole draft with its evidence, and each candidate is a change set of its own under
        that id, so that running again over the same turns makes nothing new, also when they came with another version
        of their session; neither does it bring back what was rejected or forgotten.

        Args:
            turns: in order; those of a conversation cite it, and their quotes are held against it once more.
            recalled: what recalls have brought into these turns: a draft that quotes it is refused as an `echo`. What
                `as_prompt` has fenced is never shown to the extractor at all.

        Raises:
            InvalidRequest: the turns are malformed, or the extractor returned something else than drafts.
            What the extractor raises; Busy, StorageFull, Unavailable: candidates up to there are stored.
        """
        told = _checked_turns(turns)
        echoes = Echoes(members_of(recalled, "recalled", "hits, facts or texts"))
        shown = [msgspec.structs.replace(turn, text=without_fences(turn.text)) for turn in told]
        created: list[str] = []
        existing: list[str] = []
        refused: list[Refusal] = []
        for place, draft in enumerate(_checked_drafts(self._extractor.extract(shown))):
            try:
                node = _node_of(draft, told, shown, echoes)
                known = self.repository.get(node.id) is not None or not self._propose(node)
            except _Refused as error:
                refused.append(Refusal(place, error.reason, error.message))
                continue
            (existing if known else created).append(node.id)
        return Extracted(tuple(created), tuple(existing), tuple(refused))

    def _propose(self, node: NodeDraft) -> bool:
        """Make the candidate; False where somebody was faster, from another version of the same session."""
        occurred_at = node.created_at
        assert occurred_at is not None
        operation = Create(actor=self._actor, draft=node)
        try:
            self.repository.apply(ChangeSet(node.id, occurred_at, (operation,)))
        except Blocked as error:
            raise _Refused("blocked", error.message) from error
        except NotFound as error:
            raise _Refused("forgotten", error.message) from error
        except InvalidRequest as error:
            raise _Refused("invalid", error.message) from error
        except (IdempotencyConflict, NodeAlreadyExists):
            return False
        return True


def _checked_turns(turns: Iterable[SourceTurn]) -> list[SourceTurn]:
    told = list(members_of(turns, "turns", "turns"))
    for place, turn in enumerate(told):
        if not isinstance(turn, SourceTurn):
            raise InvalidRequest(
                f"turns[{place}] must be a SourceTurn, got {type(turn).__name__}", field="turns"
            )
    return told


def _checked_drafts(drafts: object) -> list[CandidateDraft]:
    if isinstance(drafts, str | bytes) or not isinstance(drafts, Iterable):
        raise InvalidRequest(
            f"the extractor must return a list of CandidateDraft, got {type(drafts).__name__}",
            field="extractor",
        )
    told = list(drafts)
    strangers = [one for one in told if not isinstance(one, CandidateDraft)]
    if strangers:
        raise InvalidRequest(
            f"the extractor must return CandidateDraft values, got {type(strangers[0]).__name__} among them",
            field="extractor",
        )
    if len(told) > DRAFTS_MAX:
        raise InvalidRequest(
            f"the extractor returned {len(told)} drafts; at most {DRAFTS_MAX} are taken at once",
            field="extractor",
        )
    return told


def _node_of(
    draft: CandidateDraft, told: Sequence[SourceTurn], shown: Sequence[SourceTurn], echoes: Echoes
) -> NodeDraft:
    quotes = list(draft.quotes)
    if not quotes:
        raise _Refused("no-quote", "the draft quotes no turn")
    evidence = [_evidence(quote, told, shown) for quote in quotes]
    if any(echoes.hold(quote.text) for quote in quotes):
        raise _Refused("echo", "the draft rests on what a recall had brought")
    latest = max(evidence, key=lambda one: to_millis(one.occurred_at, field="occurred_at"))
    node = NodeDraft(
        id="",
        kind=draft.kind,
        content=draft.content,
        confidence=draft.confidence,
        importance=draft.importance,
        evidence=tuple(_united(evidence)),
        labels=draft.labels,
        subject=draft.subject,
        valid_from=draft.valid_from,
        valid_to=draft.valid_to,
        created_at=latest.occurred_at,
    )
    return msgspec.structs.replace(node, id=_digest(node, told))


def _evidence(quote: Quote, told: Sequence[SourceTurn], shown: Sequence[SourceTurn]) -> Evidence:
    if not isinstance(quote, Quote) or not isinstance(quote.turn, int) or not 0 <= quote.turn < len(told):
        raise _Refused("quote-not-found", "a quote names a turn that is not there")
    turn, text = told[quote.turn], shown[quote.turn].text
    if not isinstance(quote.text, str) or not quote.text.strip():
        raise _Refused("no-quote", "a quote is blank")
    start = text.find(quote.text) if quote.start is None else quote.start
    if start < 0 or not text.startswith(quote.text, start):
        raise _Refused("quote-not-found", f"a quote is not in turn {quote.turn}, or not at its place")
    return Evidence(
        uri=turn.uri,
        digest=f"sha256:{hashlib.sha256(turn.text.encode()).hexdigest()}",
        kind=EvidenceKind.SESSION_TURN,
        occurred_at=turn.observation_time,
        quote=quote.text,
        start=start,
        end=start + len(quote.text),
    )


def _united(evidence: Iterable[Evidence]) -> list[Evidence]:
    """Return one evidence a turn, that of its first quote: a node names a source once."""
    first: dict[str, Evidence] = {}
    for one in evidence:
        first.setdefault(one.uri, one)
    return list(first.values())


def _digest(node: NodeDraft, turns: Sequence[SourceTurn]) -> str:
    """Return the id of a draft: equal drafts from the same turns have the same, whatever version they came with."""
    places = {turn.uri: (turn.session_id, turn.source_id, turn.role) for turn in turns}
    told = {
        "kind": str(node.kind),
        "content": node.content,
        "confidence": node.confidence,
        "importance": node.importance,
        "labels": dict(node.labels),
        "subject": node.subject,
        "validFrom": find_millis(node.valid_from, field="valid_from"),
        "validTo": find_millis(node.valid_to, field="valid_to"),
        "evidence": [
            [
                *places[one.uri],
                one.digest,
                to_millis(one.occurred_at, field="occurred_at"),
                one.quote,
                one.start,
            ]
            for one in node.evidence
        ],
    }
    try:
        data = canonical_json(told)
    except (PerdureError, TypeError, ValueError) as error:
        raise _Refused("invalid", "a field of the draft is of a wrong type") from error
    return f"candidate-{hashlib.sha256(data).hexdigest()[:_ID_DIGITS]}"
