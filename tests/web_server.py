"""A real HTTP server on the loopback address, whose answers the test decides."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


@dataclass
class Asked:
    """One request as it came."""

    method: str
    path: str
    headers: dict[str, str]
    body: bytes


@dataclass
class Site:
    """The answers and the requests of a server."""

    url: str = ""
    status: int = 200
    body: bytes = b"{}"
    headers: dict[str, str] = field(default_factory=lambda: {"Content-Type": "application/json"})
    asked: list[Asked] = field(default_factory=list)
    #: Does what an answer of status, headers and body cannot.
    instead: Callable[[BaseHTTPRequestHandler], None] | None = None


@contextmanager
def web_server() -> Iterator[Site]:
    """Run a server until the block is left."""
    site = Site()

    class Handler(BaseHTTPRequestHandler):
        def log_message(self, *_: object) -> None:
            """Say nothing."""

        def answer(self) -> None:
            """Note the request and answer as the site says."""
            length = int(self.headers.get("Content-Length") or 0)
            headers = {name.lower(): value for name, value in self.headers.items()}
            site.asked.append(Asked(self.command, self.path, headers, self.rfile.read(length)))
            if site.instead is not None:
                site.instead(self)
                return
            self.send_response(site.status)
            for name, value in {"Content-Length": str(len(site.body)), **site.headers}.items():
                self.send_header(name, value)
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(site.body)

        do_GET = do_HEAD = do_POST = answer  # noqa: N815 - the names that http.server calls

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    site.url = f"http://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    try:
        yield site
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
