"""Counts and times for Prometheus. With several workers they share files, so that any of them tells all."""

from __future__ import annotations

from typing import Any

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client import multiprocess as shared
from prometheus_client import values as kept

from perdure.model.stores import StoreCounters

SECONDS = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)
CONTENT_TYPE = b"text/plain; version=0.0.4; charset=utf-8"


class Metrics:
    """What a worker counts. `op` and `code` are closed sets; tenants are no labels, there may be very many."""

    def __init__(self, directory: str | None = None, slot: int = 0) -> None:
        """Count in memory, or with other workers in the files of a directory.

        Args:
            directory: the workers' own; must be named in PROMETHEUS_MULTIPROC_DIR as well.
            slot: the worker's number. One that takes the place of a dead one goes on with its counts.
        """
        self._directory = directory
        if directory is not None:
            kept.ValueClass = kept.MultiProcessValue(process_identifier=lambda: slot)  # type: ignore[no-untyped-call]
        self._registry = registry = CollectorRegistry()
        self._requests = Counter(
            "perdure_requests", "Requests that were answered.", ["op", "code"], registry=registry
        )
        self._seconds = Histogram(
            "perdure_request_seconds",
            "Seconds to the end of a reply.",
            ["op"],
            buckets=SECONDS,
            registry=registry,
        )
        self._pending = self._gauge(
            "perdure_pending_calls", "Calls that run or wait for a thread.", ["line"], "sum"
        )
        self._stores = self._gauge("perdure_open_stores", "Stores that are open.", [], "sum")
        self._failing = self._gauge(
            "perdure_failing_stores", "Tenants' stores that are not well, in a root of them.", [], "max"
        )
        self._bytes = self._gauge("perdure_log_bytes", "Bytes of the open stores' logs on disk.", [], "max")
        self._spaces = self._gauge("perdure_spaces_loaded", "Spaces whose facts are in memory.", [], "sum")
        self._facts = self._gauge(
            "perdure_facts_loaded", "Facts and documents in memory, in each worker that has them.", [], "sum"
        )
        self._memory = self._gauge(
            "perdure_memory_bytes",
            "Bytes that spaces take in memory; each worker allows --memory-bytes for those of all tenants.",
            [],
            "sum",
        )
        self._hits = Counter(
            "perdure_cache_hits", "Questions that found a space's facts in memory.", [], registry=registry
        )
        self._misses = Counter(
            "perdure_cache_misses",
            "Times that a space's facts were read from the store.",
            [],
            registry=registry,
        )
        self._commits = Counter(
            "perdure_log_commits", "Writes that the log made durable.", [], registry=registry
        )
        self._syncs = Counter(
            "perdure_log_commit_seconds",
            "Seconds that making them durable took, of the disk.",
            [],
            registry=registry,
        )
        self._seen: tuple[float, ...] = (0.0,) * 4
        self._counted: dict[tuple[str, str], Any] = {}
        self._timed: dict[str, Any] = {}

    def count(self, op: str, code: str, seconds: float) -> None:
        """Count one reply: `code` is "ok", or that of its error."""
        counted = self._counted.get((op, code))
        if counted is None:
            counted = self._counted[op, code] = self._requests.labels(op, code)
        counted.inc()
        timed = self._timed.get(op)
        if timed is None:
            timed = self._timed[op] = self._seconds.labels(op)
        timed.observe(seconds)

    def set_pending(self, line: str, pending: int) -> None:
        self._pending.labels(line).set(pending)

    def set_stores(self, *, stores: int, failing: int, log_bytes: int) -> None:
        """Tell what this worker has open now; of other workers it is as they told last."""
        self._stores.set(stores)
        self._failing.set(failing)
        self._bytes.set(log_bytes)

    def set_counters(self, told: StoreCounters) -> None:
        """Tell what this worker's stores hold in memory now, and what they have done since it began."""
        self._spaces.set(told.spaces_loaded)
        self._facts.set(told.facts_loaded)
        self._memory.set(told.memory_bytes)
        now = (told.hits, told.misses, told.commits, told.commit_seconds)
        counters = (self._hits, self._misses, self._commits, self._syncs)
        for counter, count, before in zip(counters, now, self._seen, strict=True):
            counter.inc(max(0.0, count - before))
        # Two who ask at once may come here in either order, and nothing is counted twice.
        self._seen = tuple(map(max, now, self._seen))

    def page(self) -> bytes:
        """Return all of it in Prometheus's text format."""
        if self._directory is None:
            return generate_latest(self._registry)
        registry = CollectorRegistry()
        shared.MultiProcessCollector(registry, path=self._directory)  # type: ignore[no-untyped-call]
        return generate_latest(registry)

    def _gauge(self, name: str, told: str, labels: list[str], mode: Any) -> Any:
        return Gauge(name, told, labels, registry=self._registry, multiprocess_mode=mode)
