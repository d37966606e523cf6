"""Traces of requests, jobs and pages, sent to an OpenTelemetry collector.

Off unless a collector is named, and then nothing of OpenTelemetry is imported: a span is one object
that does nothing. A trace crosses processes as a W3C `traceparent`: it comes with a request, stays
in the job's row, and is continued by the process that runs the job.
"""

from __future__ import annotations

import logging
import os
import re
import threading
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from typing import TYPE_CHECKING, Protocol

from forager import __version__
from forager.logs import ThrottledHandler, get_logger
from forager.settings import Settings

if TYPE_CHECKING:
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.trace import Tracer

log = get_logger("traces")

HEADER = "traceparent"
ENDPOINTS = ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT")
PATH = "/v1/traces"
INSTALL = "pip install 'forager-crawler[tracing]'"
# how long a process that ends waits for the collector to receive its last spans
SHUTDOWN_LIMIT = 2.0
LOG_INTERVAL = 60.0

Value = str | int | float | bool

_tracer: Tracer | None = None


class Span(Protocol):
    """What is used of OpenTelemetry's spans."""

    def set_attributes(self, attributes: Mapping[str, Value]) -> None: ...
    def update_name(self, name: str) -> None: ...


class _NoSpan:
    """A span while tracing is off."""

    __slots__ = ()

    def __enter__(self) -> Span:
        return self

    def __exit__(self, *_: object) -> None:
        return None

    def set_attributes(self, attributes: Mapping[str, Value]) -> None:
        pass

    def update_name(self, name: str) -> None:
        pass


NO_SPAN = _NoSpan()


def span(
    name: str, *, parent: str | None = None, attributes: Mapping[str, Value] | None = None
) -> AbstractContextManager[Span]:
    """Time a block, below the span around it, or below `parent` from elsewhere."""
    if _tracer is None:
        return NO_SPAN
    return _recorded(_tracer, name, parent, attributes)


def traceparent() -> str | None:
    """The span around us, as another process can take it up."""
    if _tracer is None:
        return None
    from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

    carrier: dict[str, str] = {}
    TraceContextTextMapPropagator().inject(carrier)
    return carrier.get(HEADER)


def is_traced() -> bool:
    return _tracer is not None


@contextmanager
def tracing(settings: Settings, part: str) -> Iterator[None]:
    """Send the spans of this process to the collector, if one is named."""
    global _tracer
    if _tracer is not None or not is_wanted(settings):
        yield
        return
    provider = _provider(settings, part)
    if provider is None:
        yield
        return
    _tracer = provider.get_tracer("forager", __version__)
    try:
        yield
    finally:
        _tracer = None
        _shut_down(provider)


def is_wanted(settings: Settings) -> bool:
    return settings.traces_url is not None or any(os.environ.get(name) for name in ENDPOINTS)


def _provider(settings: Settings, part: str) -> TracerProvider | None:
    try:
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
        from opentelemetry.sdk.resources import Resource
        from opentelemetry.sdk.trace import TracerProvider
        from opentelemetry.sdk.trace.export import BatchSpanProcessor
    except ImportError:
        # no reason to stop working
        log.error("no traces: OpenTelemetry is not installed", hint=INSTALL)
        return None
    exporter_log = logging.getLogger("opentelemetry")
    handler = ThrottledHandler(_log_loss, kind=lambda _: "", every=LOG_INTERVAL)
    exporter_log.handlers, exporter_log.propagate = [handler], False
    # without one, the exporter reads the standard variables itself
    exporter = OTLPSpanExporter(endpoint=_endpoint(settings.traces_url), timeout=5)
    about = {"service.name": f"forager {part}", "service.version": __version__}
    # ended by us: its own exit handler would wait for a collector that does not answer
    provider = TracerProvider(resource=Resource.create(about), shutdown_on_exit=False)
    provider.add_span_processor(BatchSpanProcessor(exporter))
    return provider


def _shut_down(provider: TracerProvider) -> None:
    """Send what is left. A collector that does not answer must not keep a process from ending."""
    ending = threading.Thread(target=provider.shutdown, name="last traces", daemon=True)
    ending.start()
    ending.join(SHUTDOWN_LIMIT)


_QUERY = re.compile(r"\?[^\s'\")]+")


def _log_loss(record: logging.LogRecord, _held_back: int) -> None:
    # the query of the collector's URL may hold a key
    log.warning("traces are lost", reason=_QUERY.sub("?***", record.getMessage()))


def _endpoint(url: str | None) -> str | None:
    if url is None:
        return None
    address, mark, query = url.partition("?")
    address = address.rstrip("/")
    return address.removesuffix(PATH) + PATH + mark + query


@contextmanager
def _recorded(
    tracer: Tracer, name: str, parent: str | None, attributes: Mapping[str, Value] | None
) -> Iterator[Span]:
    from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

    context = TraceContextTextMapPropagator().extract({HEADER: parent}) if parent else None
    with tracer.start_as_current_span(name, context=context, attributes=attributes) as opened:
        yield opened
