"""A reverse proxy that shows a server below a path."""

from __future__ import annotations

import http.client
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import urlsplit

HOP: frozenset[str] = frozenset({"connection", "keep-alive", "transfer-encoding", "content-length", "host"})


@contextmanager
def proxied(server: str, prefix: str, *, strips: bool, tells: bool) -> Iterator[str]:
    """Address of `server` below `prefix`. strips: takes the prefix from the path; tells: names it in a header"""
    upstream = urlsplit(server).netloc

    class Handler(BaseHTTPRequestHandler):
        def do_any(self) -> None:
            if not self.path.startswith(f"{prefix}/"):
                self.send_error(404)
                return
            body = self.rfile.read(int(self.headers.get("content-length", 0)))
            headers = {name: value for name, value in self.headers.items() if name.lower() not in HOP}
            headers |= {"Host": self.headers["host"], "X-Forwarded-Host": self.headers["host"]}
            if tells:
                headers["X-Forwarded-Prefix"] = prefix
            connection = http.client.HTTPConnection(upstream, timeout=60)
            path = self.path.removeprefix(prefix) if strips else self.path
            connection.request(self.command, path, body, headers)
            reply = connection.getresponse()
            content = reply.read()
            self.send_response(reply.status)
            for name, value in reply.getheaders():
                if name.lower() not in HOP:
                    self.send_header(name, value)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)
            connection.close()

        def log_message(self, *_parts: object) -> None:
            """Nothing."""

    for method in ("GET", "POST", "PUT", "PATCH", "DELETE"):
        setattr(Handler, f"do_{method}", Handler.do_any)
    proxy = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=proxy.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{proxy.server_address[1]}{prefix}"
    finally:
        proxy.shutdown()
        proxy.server_close()
