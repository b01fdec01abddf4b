"""The audit: events of all that happened to a store, chained, in a log beside it; never what anything says."""

from perdure.audit.offline import verify

__all__ = ["verify"]
