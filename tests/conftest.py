"""What holds for every test."""

from __future__ import annotations

import gc

from hypothesis import HealthCheck, settings

from effort import examples

# Of what is set already, such as that numbers are the same each time where CI is, the rest stays. There is no deadline,
# and examples may be slow to make: how long anything takes on a busy machine says nothing of a law.
settings.register_profile(
    "laws",
    settings(),
    max_examples=examples(40),
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("laws")


def pytest_collection_finish() -> None:
    """Leave what was collected out of later searches for garbage: it is large, and it stays until the end."""
    gc.collect()
    gc.freeze()
