"""A stand-in API server on loopback that answers with canned JSON, and ends watches when it has told everything."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit


@dataclass
class StandIn:
    """Lists by path, pages of ``page`` objects, and what to answer instead: a status, or raw bytes.

    ``watches`` are what the watches of a path answer one after the other: lines of JSON, raw bytes, a status, or an
    iterator of bytes, each sent as it comes.
    """

    lists: dict[str, list[dict]] = field(default_factory=dict)
    instead: dict[str, list[int | bytes]] = field(default_factory=dict)
    watches: dict[str, list[list[dict] | bytes | int | Iterator[bytes]]] = field(default_factory=dict)
    page: int = 500
    version: str = "100"
    asked: list[str] = field(default_factory=list)
    url: str = ""

    def answer(self, target: str) -> tuple[int, bytes | Iterator[bytes]]:
        self.asked.append(target)
        parts, query = urlsplit(target), parse_qs(urlsplit(target).query)
        if "watch" in query:
            return self._watched(parts.path)
        if self.instead.get(parts.path):
            instead = self.instead[parts.path].pop(0)
            if isinstance(instead, bytes):
                return 200, instead
            if instead != 200:
                return instead, json.dumps({"kind": "Status", "code": instead}).encode()
        if parts.path not in self.lists:
            return 404, b"404 page not found"
        begin = int(query.get("continue", ["0"])[0])
        items = self.lists[parts.path]
        more = {"continue": str(begin + self.page)} if begin + self.page < len(items) else {}
        metadata = {"resourceVersion": self.version, **more}
        return 200, json.dumps({"metadata": metadata, "items": items[begin : begin + self.page]}).encode()

    def _watched(self, path: str) -> tuple[int, bytes | Iterator[bytes]]:
        told = self.watches[path].pop(0) if self.watches.get(path) else []
        if isinstance(told, int):
            return told, b"{}"
        if not isinstance(told, list):
            return 200, told
        return 200, b"".join(json.dumps(line).encode() + b"\n" for line in told)

    def queries(self, path: str, *, watch: bool = False) -> list[dict[str, list[str]]]:
        """What lists (or watches) of a path were asked with, in order."""
        asked = [parse_qs(urlsplit(target).query) for target in self.asked if urlsplit(target).path == path]
        return [query for query in asked if ("watch" in query) == watch]


@contextmanager
def listening(stand_in: StandIn) -> Iterator[StandIn]:
    """Let it answer on a port of its own, which its ``url`` names."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            status, body = stand_in.answer(self.path)
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            if isinstance(body, bytes):
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)
                return
            self.send_header("Transfer-Encoding", "chunked")
            self.end_headers()
            # An empty chunk stands for a connection that breaks: a length is told, and less is sent.
            for chunk in body:
                self.wfile.write(f"{len(chunk):x}\r\n".encode() + chunk + b"\r\n" if chunk else b"5\r\nx")
            self.wfile.write(b"0\r\n\r\n")

        def log_message(self, *_: object) -> None:
            """Silence."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    stand_in.url = f"http://127.0.0.1:{server.server_address[1]}"
    try:
        yield stand_in
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def kubeconfig_of(stand_in: StandIn, folder: Path, cluster: str = "c") -> Path:
    """A kubeconfig that leads to it."""
    document: dict[str, Any] = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "here",
        "clusters": [{"name": cluster, "cluster": {"server": stand_in.url}}],
        "users": [{"name": "u", "user": {"token": "secret"}}],
        "contexts": [{"name": "here", "context": {"cluster": cluster, "user": "u"}}],
    }
    file = folder / "kubeconfig"
    file.write_text(json.dumps(document), encoding="utf-8")
    return file
