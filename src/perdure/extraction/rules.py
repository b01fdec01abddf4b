"""An extractor by rules, for tests and demonstrations: a few forms of English sentences, and nothing else."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from perdure.model.conversation import SourceTurn
from perdure.model.extraction import CandidateDraft, Quote

_SENTENCE = re.compile(r"[^.!?\n]+")
_WORD_MAX = 300  # characters of a sentence that is looked at


class _Rule(NamedTuple):
    form: re.Pattern[str]
    content: str
    subject: str
    label: str


def _rule(form: str, content: str, subject: str, label: str) -> _Rule:
    return _Rule(re.compile(form, re.IGNORECASE), content, subject, label)


_RULES = (
    _rule(
        r"\bmy (?P<what>[\w-]+(?: [\w-]+)?) is (?P<value>.+)",
        "The user's {what} is {value}",
        "user/{what}",
        "attribute",
    ),
    _rule(r"\bi (?P<how>prefer|like|love|hate) (?P<value>.+)", "The user {how}s {value}", "", "preference"),
    _rule(
        r"\bi work (?P<how>at|for) (?P<value>.+)",
        "The user works {how} {value}",
        "user/employer",
        "attribute",
    ),
    _rule(r"\bi live in (?P<value>.+)", "The user lives in {value}", "user/home", "attribute"),
    _rule(r"\bremember that (?P<value>.+)", "{value}", "", "note"),
)


class RuleExtractor:
    """Finds in what users say: "my X is Y", "I prefer (like, love, hate) X", "I work at (for) X", "I live in X" and
    "remember that X", one draft a sentence, English only. The same turns give the same drafts, in their order.

    It understands nothing: "I live in hope" is a home to it. Candidates are there to be reviewed.
    """

    def extract(self, turns: Sequence[SourceTurn]) -> list[CandidateDraft]:
        """Return the drafts; each quotes its sentence."""
        return [
            draft
            for place, turn in enumerate(turns)
            if turn.role == "user"
            for sentence in _SENTENCE.finditer(turn.text)
            if len(sentence.group()) <= _WORD_MAX and (draft := _draft(place, sentence)) is not None
        ]


def _draft(place: int, sentence: re.Match[str]) -> CandidateDraft | None:
    text = sentence.group().strip()
    for rule in _RULES:
        found = rule.form.search(text)
        if found is None:
            continue
        words = {name: value.strip(" ,;:") for name, value in found.groupdict().items()}
        if not words["value"]:
            continue
        words = {name: value if name == "value" else value.lower() for name, value in words.items()}
        start = sentence.start() + len(sentence.group()) - len(sentence.group().lstrip())
        return CandidateDraft(
            content=rule.content.format_map(words),
            quotes=(Quote(place, text, start),),
            subject=rule.subject.format_map(words) or None,
            labels={"rule": rule.label},
        )
    return None
