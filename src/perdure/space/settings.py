"""What a space is made with: how its texts are analysed and how matches are weighed."""

from __future__ import annotations

from typing import NamedTuple

import msgspec

from perdure.errors import InvalidRequest
from perdure.log.records import SpaceRecord


class Settings(NamedTuple):
    """What a space is created with; only a reindexing changes it."""

    profile: str
    k1: float
    b: float


def settings_of(record: SpaceRecord) -> Settings:
    """Return the settings that record 1 of a space holds."""
    return Settings(record.profile, record.k1, record.b)


def with_settings(record: SpaceRecord, settings: Settings) -> SpaceRecord:
    """Return record 1 of a space with other settings."""
    return msgspec.structs.replace(record, **settings._asdict())


def refuse_others(wanted: Settings, usual: Settings, held: Settings) -> None:
    """Raise InvalidRequest when a setting is asked for otherwise than the space holds it.

    A setting at its usual value asks for nothing.
    """
    for name, value, default, fixed in zip(Settings._fields, wanted, usual, held, strict=True):
        if value not in (default, fixed):
            raise InvalidRequest(
                f"{name} is {value} in the configuration, but the space was made with {fixed}: leave it out, give "
                "the same value, or change the space with reindex",
                field=name,
            )
