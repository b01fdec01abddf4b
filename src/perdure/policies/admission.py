"""Admission: which texts a memory takes in. A refusal is an answer, never an error."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol

from perdure.errors import InvalidRequest
from perdure.policies.parameters import Flag, Parameter, set_checked
from perdure.policies.sensitive import find_sensitive
from perdure.policies.small_talk import is_small_talk

PREFERENCE, TASK = "preference", "task"  # tags


@dataclass(frozen=True)
class Decision:
    """Whether a text is taken in; where it is not, `reason` says why and what would admit it.

    A reason is kept in receipts and shown: it must hold nothing of the text.
    """

    admitted: bool
    reason: str | None = None


ADMITTED = Decision(True)


class AdmissionPolicy(Protocol):
    """Asked for each text that is told by remember or correct, before any lock is taken."""

    def decide(self, text: str, tags: Sequence[str]) -> Decision:
        """Return the decision; the same answer for the same input. `tags` are sorted."""
        ...


@dataclass(frozen=True)
class AdmitAll:
    """Take everything in. The default."""

    def decide(self, text: str, tags: Sequence[str]) -> Decision:
        return ADMITTED


@dataclass(frozen=True, kw_only=True)
class StandardAdmission:
    """Refuse secrets and small talk; by choice also preferences and tasks.

    Only the text and the tags are looked at. What is recognised are shapes (keys of well-known services, signed
    tokens, private keys, passwords in addresses, US social security numbers, card numbers with the right check
    digit), words for a secret in several languages with a value after them, and texts of nothing but listed words
    of greeting, thanks and assent. That is a safety net with holes, no proof that a text is harmless.

    Args:
        allow_sensitive: take secrets in.
        remember_preferences: take in what is tagged `preference`.
        remember_tasks: take in what is tagged `task`.
        ignore_small_talk: refuse small talk.
        strict_words: refuse also the bare words for a secret, as in "she changed her password".
    """

    allow_sensitive: bool = False
    remember_preferences: bool = True
    remember_tasks: bool = True
    ignore_small_talk: bool = True
    strict_words: bool = False

    PARAMETERS: ClassVar[Mapping[str, Parameter]] = {
        "allow_sensitive": Flag(),
        "remember_preferences": Flag(),
        "remember_tasks": Flag(),
        "ignore_small_talk": Flag(),
        "strict_words": Flag(),
    }

    def __post_init__(self) -> None:
        set_checked(self, self.PARAMETERS)

    def decide(self, text: str, tags: Sequence[str]) -> Decision:
        if not self.allow_sensitive:
            kind = find_sensitive(text, strict_words=self.strict_words)
            if kind is not None:
                return Decision(
                    False, f"sensitive: the text holds {kind}; leave it out, or allow it with allowSensitive"
                )
        if not self.remember_preferences and PREFERENCE in tags:
            return Decision(False, "preference: facts with this tag are not kept (rememberPreferences)")
        if not self.remember_tasks and TASK in tags:
            return Decision(False, "task: facts with this tag are not kept (rememberTasks)")
        if self.ignore_small_talk and is_small_talk(text):
            return Decision(
                False, "small talk: nothing but greeting, thanks or assent is not kept (ignoreSmallTalk)"
            )
        return ADMITTED


def find_refusal(policy: AdmissionPolicy, text: str, tags: Sequence[str]) -> str | None:
    """Return why the policy refuses the text, or None where it admits it.

    Raises:
        InvalidRequest: (field "admission") the policy returned no Decision. What it raises passes through.
    """
    decision: Any = policy.decide(text, tags)
    admitted, reason = getattr(decision, "admitted", None), getattr(decision, "reason", None)
    if not isinstance(admitted, bool) or not (reason is None or isinstance(reason, str)):
        raise InvalidRequest(
            f"the admission policy must return a Decision(admitted, reason), got {type(decision).__name__}",
            field="admission",
        )
    if admitted:
        return None
    return reason or "the admission policy refused it"
