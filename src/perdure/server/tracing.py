"""Spans of OpenTelemetry, where they are asked for: the operation, the tenant and the code; never text or a key."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

from opentelemetry import trace
from opentelemetry.propagate import extract
from opentelemetry.trace import SpanKind, Status, StatusCode

from perdure.server.asked import Asked

T = TypeVar("T")
_CARRIED = (b"traceparent", b"tracestate")


class Tracing:
    """Makes a span of each operation, below the one that the caller told."""

    def __init__(self, provider: Any = None) -> None:
        """Give the spans to this provider, or to the process's own."""
        self._tracer = trace.get_tracer("perdure", tracer_provider=provider)

    @contextmanager
    def span(self, asked: Asked) -> Iterator[None]:
        """Run a request's work within its span."""
        carried = {
            name.decode(): asked.headers[name].decode("latin-1") for name in _CARRIED if name in asked.headers
        }
        told = {"perdure.op": asked.op, "perdure.tenant": asked.tenant or "", "perdure.request_id": asked.id}
        with self._tracer.start_as_current_span(
            f"perdure {asked.op}",
            context=extract(carried),
            kind=SpanKind.SERVER,
            attributes=told,
            record_exception=False,  # messages and traces may hold people's text
            set_status_on_exception=False,
        ) as span:
            try:
                yield
            except BaseException as error:  # raised again, once the span has its code
                code = getattr(error, "code", "internal")
                span.set_attribute("perdure.code", code)
                span.set_status(Status(StatusCode.ERROR, code))
                raise

    def around(self, asked: Asked, work: Callable[[], T]) -> Callable[[], T]:
        """Return the work, as one that runs within the request's span."""

        def traced() -> T:
            with self.span(asked):
                return work()

        return traced
