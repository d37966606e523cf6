"""ClickHouse's HTTP interface, as far as clickhouse-connect needs it, before ClickHouse's engine.

No package index that is open to these tests has a ClickHouse server of today: Debian's is of 2018,
without window functions. chdb is the engine of today, tables and all, as a library; this is the
door: one question at a time.
"""

from __future__ import annotations

import base64
import re
import sys
import tempfile
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib import import_module
from pathlib import Path
from threading import Lock
from typing import Any
from urllib.parse import parse_qs, urlsplit

INSERT = re.compile(rb"\s*(INSERT INTO .*?) FORMAT (\w+)\s*?\n", re.DOTALL | re.IGNORECASE)
CODE = re.compile(r"Code: (\d+)")


class Engine:
    """chdb's session; it knows one current database, so questions take turns."""

    def __init__(self, folder: Path) -> None:
        self._session: Any = import_module("chdb.session").Session(str(folder))
        self._turn = Lock()

    def answer(self, sql: str, values: dict[str, str], database: str, form: str) -> bytes:
        with self._turn:
            self._session.query(f"USE `{database}`")
            found = self._session.query(sql, form, params=values)
            return found.bytes() or b""

    def insert(self, statement: str, form: str, content: bytes, database: str) -> bytes:
        with tempfile.NamedTemporaryFile() as file:
            file.write(content)
            file.flush()
            sql = f"{statement} FROM INFILE '{file.name}' FORMAT {form}"
            return self.answer(sql, {}, database, "TSV")


class Door(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    engine: Engine
    login: str

    def do_GET(self) -> None:
        if urlsplit(self.path).path == "/ping":
            return self._reply(200, b"Ok.\n")
        return self._serve(b"")

    def do_POST(self) -> None:
        self._serve(self._body())

    def _serve(self, body: bytes) -> None:
        if not self._is_known():
            text = b"Code: 516. DB::Exception: Authentication failed. (AUTHENTICATION_FAILED)"
            return self._reply(403, text, {"X-ClickHouse-Exception-Code": "516"})
        asked = {name: each[-1] for name, each in parse_qs(urlsplit(self.path).query).items()}
        try:
            return self._reply(200, self._answer(asked, body))
        except Exception as error:
            code = CODE.search(str(error))
            headers = {"X-ClickHouse-Exception-Code": code[1] if code else "1"}
            return self._reply(500, str(error).encode(), headers)

    def _answer(self, asked: dict[str, str], body: bytes) -> bytes:
        database = asked.get("database", "default")
        whole = asked["query"].encode() + b"\n" + body if "query" in asked else body
        if insert := INSERT.match(whole):
            statement, form = insert[1].decode(), insert[2].decode()
            return self.engine.insert(statement, form, whole[insert.end() :], database)
        values = {name[6:]: each for name, each in asked.items() if name.startswith("param_")}
        form = self.headers.get("X-ClickHouse-Format") or asked.get("default_format", "TSV")
        return self.engine.answer(whole.decode(), values, database, form)

    def _is_known(self) -> bool:
        given = self.headers.get("Authorization", "").removeprefix("Basic ")
        return base64.b64decode(given).decode(errors="replace") == self.login

    def _body(self) -> bytes:
        if self.headers.get("Transfer-Encoding", "").lower() != "chunked":
            return self.rfile.read(int(self.headers.get("Content-Length", 0)))
        body = b""
        while size := int(self.rfile.readline().split(b";")[0], 16):
            body += self.rfile.read(size)
            self.rfile.readline()
        self.rfile.readline()
        return body

    def _reply(self, status: int, content: bytes, headers: dict[str, str] | None = None) -> None:
        self.send_response(status)
        for name, value in (headers or {}).items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, format: str, *args: Any) -> None:
        print(format % args, file=sys.stderr, flush=True)


def main(folder: str, port: str, login: str) -> None:
    Door.engine = Engine(Path(folder))
    Door.login = login
    ThreadingHTTPServer(("127.0.0.1", int(port)), Door).serve_forever()


if __name__ == "__main__":
    main(*sys.argv[1:])
