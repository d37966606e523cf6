"""A collector of traces on loopback: takes what the exporter posts, and reads it."""

from __future__ import annotations

import gzip
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTraceServiceRequest,
    ExportTraceServiceResponse,
)


@dataclass(frozen=True, slots=True)
class Received:
    """One span, as it arrived."""

    name: str
    trace: str
    id: str
    parent: str
    service: str
    attributes: dict[str, str]


@dataclass(slots=True)
class Collector:
    url: str = ""
    spans: list[Received] = field(default_factory=list)

    def named(self, name: str) -> list[Received]:
        return [span for span in list(self.spans) if span.name == name]


@contextmanager
def collector() -> Iterator[Collector]:
    found = Collector()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            if self.headers.get("Content-Encoding") == "gzip":
                body = gzip.decompress(body)
            assert self.path == "/v1/traces"
            found.spans.extend(_spans(body))
            answer = ExportTraceServiceResponse().SerializeToString()
            self.send_response(200)
            self.send_header("Content-Type", "application/x-protobuf")
            self.send_header("Content-Length", str(len(answer)))
            self.end_headers()
            self.wfile.write(answer)

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        found.url = f"http://127.0.0.1:{server.server_address[1]}"
        serving = threading.Thread(target=server.serve_forever, name="collector")
        serving.start()
        try:
            yield found
        finally:
            server.shutdown()
            serving.join(60)


def _spans(body: bytes) -> Iterator[Received]:
    request = ExportTraceServiceRequest.FromString(body)
    for resource in request.resource_spans:
        about = {each.key: each.value.string_value for each in resource.resource.attributes}
        for scope in resource.scope_spans:
            for span in scope.spans:
                yield Received(
                    name=span.name,
                    trace=span.trace_id.hex(),
                    id=span.span_id.hex(),
                    parent=span.parent_span_id.hex(),
                    service=about["service.name"],
                    attributes={each.key: each.value.string_value for each in span.attributes},
                )
