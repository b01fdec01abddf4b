"""Changing how a space's texts are analysed and how its matches are weighed, checked and answered."""

from __future__ import annotations

from typing import Any

from perdure.errors import InvalidRequest
from perdure.log.protocol import Progress
from perdure.memory.config import MemoryConfig
from perdure.model.replies import Reindexed
from perdure.space.reindexing import reindex
from perdure.space.space import Space


def reindex_space(space: Space, told: dict[str, Any], progress: Progress | None) -> Reindexed:
    """Give the space those of the settings profile, k1 and b that are not None.

    Raises:
        InvalidRequest: a setting is wrong, or none is told.
    """
    checked = {
        name: MemoryConfig.PARAMETERS[name].checked(value, field=name)
        for name, value in told.items()
        if value is not None
    }
    if not checked:
        raise InvalidRequest("reindex changes a setting: name a profile, k1 or b", field="profile")
    done = reindex(space, checked, progress)
    return Reindexed(*done.settings, changed=done.changed, pending=done.pending)
