"""Real documentation sites from Debian packages, served by nginx on loopback."""

from __future__ import annotations

import grp
import os
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory


@dataclass(frozen=True, slots=True)
class Site:
    """A folder of pages and where a crawl of it starts."""

    package: str
    folder: Path
    start: str


SITES = (
    Site("postgresql-doc-15", Path("/usr/share/doc/postgresql-doc-15/html"), "index.html"),
    Site("cppreference-doc-en-html", Path("/usr/share/cppreference/doc/html"), "en/index.html"),
)

CONFIGURATION = """
daemon off;
{user}
worker_processes 1;
pid {folder}/nginx.pid;
error_log {folder}/error.log;
events {{ worker_connections 1024; }}
http {{
    include /etc/nginx/mime.types;
    access_log off;
    keepalive_requests 1000000;
    client_body_temp_path {folder}/body;
    proxy_temp_path {folder}/proxy;
    fastcgi_temp_path {folder}/fastcgi;
    uwsgi_temp_path {folder}/uwsgi;
    scgi_temp_path {folder}/scgi;
    server {{ listen 127.0.0.1:{port}; root {root}; index index.html; {headers} }}
}}
"""


def nginx() -> str | None:
    return shutil.which("nginx", path=_PATH)


def missing_packages(sites: Sequence[Site] = SITES) -> list[str]:
    missing = [site.package for site in sites if not site.folder.is_dir()]
    return missing if nginx() else ["nginx-light", *missing]


_PATH = "/usr/sbin:/usr/bin:/usr/local/sbin:/usr/local/bin:/opt/homebrew/bin"


@contextmanager
def served(site: Site, *, validators: bool = True) -> Iterator[str]:
    """Serve the site with nginx during the block; yields the start URL."""
    headers = "" if validators else 'etag off; add_header Last-Modified "";'
    with TemporaryDirectory(prefix="forager-nginx-") as folder:
        port = _free_port()
        configuration = Path(folder) / "nginx.conf"
        configuration.write_text(
            CONFIGURATION.format(
                folder=folder, port=port, root=site.folder, user=_user(), headers=headers
            ),
            encoding="utf-8",
        )
        program = [nginx() or "nginx", "-c", str(configuration)]
        server = subprocess.Popen(program, stderr=subprocess.DEVNULL)
        try:
            _wait_for(port)
            yield f"http://127.0.0.1:{port}/{site.start}"
        finally:
            server.terminate()
            server.wait(10)


def _user() -> str:
    """As root, nginx would read files as `nobody`, who has no access to a temporary folder."""
    if os.getuid() != 0:
        return ""
    return f"user root {grp.getgrgid(0).gr_name};"


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def _wait_for(port: int, seconds: float = 10.0) -> None:
    deadline = time.monotonic() + seconds
    while True:
        try:
            socket.create_connection(("127.0.0.1", port), 1).close()
            return
        except OSError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.02)
