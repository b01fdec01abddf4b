"""How a recall looks around its matches."""

from __future__ import annotations

import msgspec

# Chosen on the LoCoMo dev conversations: `python -m bench.quality FILE.zip --sensitivity` tries other values.
NEIGHBOURS = (0.5, 0.25)  # round numbers on a plateau
ACTOR = 1.25  # more helps questions about one actor and harms those that take one for another
PERIOD = 1.5  # any from 1.25 to 3 does as well there


class Context(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How much counts what stands around a match. `Context()` is what `context=True` means.

    Args:
        neighbours: weights of the words of the facts one, two, ... positions away in the same source, each 0 to
            1; facts tell both by `source` (`uri` and `position`). Empty: neighbours do not count.
        actor: 1 or more; multiplies the lexical score of the facts of an actor (`source.actor`) whom the
            query names, if it names exactly one.
        period: 1 or more; multiplies that of facts from a year, month or day that the query names, and up to 38
            days later.
    """

    neighbours: tuple[float, ...] = NEIGHBOURS
    actor: float = ACTOR
    period: float = PERIOD
