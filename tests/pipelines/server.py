"""An HTTP server on loopback that answers well, or badly in ways that hold a client."""

from __future__ import annotations

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

DRIP_S = 0.2  # far below every limit per read in the pipelines

GOOD: dict[str, Any] = {
    "/collections": {"collections": [{"id": "roads"}, {"id": "parcels"}]},
    "/collections/roads/search": {"features": [{"id": 7}]},
    "/catalogue.json": {"name": "roads", "records": "roads.json"},
    "/roads.json": {
        "features": [
            {"type": "Feature", "properties": {"id": 1}, "geometry": {"type": "Point", "coordinates": [7.5, 47.5]}}
        ]
    },
    "/osm/tiles.json": {"minzoom": 3, "maxzoom": 14},
    "/region.geojson": {
        "type": "FeatureCollection",
        "features": [
            {
                "type": "Feature",
                "properties": {"name": "Plains"},
                "geometry": {"type": "Polygon", "coordinates": [[[7, 47], [9, 47], [9, 48], [7, 47]]]},
            }
        ],
    },
}


class _Handler(BaseHTTPRequestHandler):
    server: Server

    def do_GET(self) -> None:
        length = int(self.headers.get("Content-Length") or 0)
        self.rfile.read(length)
        manner, _, rest = self.path.removeprefix("/").partition("/")
        match manner:
            case "good":
                self._answer(f"/{rest}")
            case "gone":
                self.send_error(410)
            case "silent":
                self.server.stopping.wait()
            case "slow-headers":
                self._drip("HTTP/1.1 200 OK\r\nX-Filler: ")
            case "slow-body":
                self._drip("HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n")

    do_POST = do_GET

    def _answer(self, path: str) -> None:
        body = json.dumps(GOOD[path]).encode() if path in GOOD else f"what is at {path}".encode() * 20_000
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def _drip(self, beginning: str) -> None:
        self.wfile.write(beginning.encode())
        while not self.server.stopping.wait(DRIP_S):
            self.wfile.write(b" ")

    def handle(self) -> None:
        try:
            super().handle()
        except ConnectionError:
            self.close_connection = True  # the client has left, as it should

    def log_message(self, format: str, *args: Any) -> None:
        pass


class Server(ThreadingHTTPServer):
    """The first part of a path says how the rest is answered: `good`, `gone`, `silent`, `slow-headers`, `slow-body`."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.stopping = threading.Event()
        threading.Thread(target=self.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"

    def close(self) -> None:
        self.stopping.set()
        self.shutdown()
        self.server_close()
