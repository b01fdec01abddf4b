"""Eligibility as one flag a row, for what looks at all rows at once."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from perdure.search.eligibility import Eligibility
from perdure.search.standing import column
from perdure.space.state import LIVE, SpaceState
from perdure.temporal.status import current_mask


def flags_of(state: SpaceState, eligible: Eligibility, at: int) -> NDArray[np.bool_]:
    """Tell for each row whether it is live and eligible at the instant."""
    flags: NDArray[np.bool_] = np.frombuffer(bytes(state.presence), dtype=np.uint8) == LIVE
    if eligible.mask is not None:
        flags &= np.asarray(eligible.mask)[: len(flags)] != 0
    if eligible.rows is not None:
        named = np.zeros(len(flags), dtype=np.bool_)
        named[np.frombuffer(eligible.rows, dtype=np.int32)] = True
        flags &= named
    if eligible.times is not None:
        start, end, superseded = (column(one) for one in eligible.times)
        flags &= current_mask(start, end, superseded, at).view(np.bool_)
    return flags
