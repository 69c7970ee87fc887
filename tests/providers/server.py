"""A server on loopback that answers as it is told, and records what it was sent."""

import json
import threading
from collections.abc import Iterable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

SOON = {"retry-after-ms": "1"}
"""The wait that a server may ask for, which both SDKs honour: no test sleeps."""


class Reply:
    """One reply: JSON, or text or bytes as they stand.

    `cut_bytes` of the body are promised and never sent; nothing is sent before `hold` is set.
    """

    def __init__(self, body=None, status=200, headers=None, cut_bytes=0, hang_up=False, hold=None):
        self.raw = body if isinstance(body, bytes) else body.encode() if isinstance(body, str) else _json(body)
        self.status = status
        self.headers = {"content-type": "application/json", **(headers or {})}
        self.cut_bytes = cut_bytes
        self.hang_up = hang_up
        self.hold = hold


def _json(body):
    return b"" if body is None else json.dumps(body).encode()


class Seen:
    """One request as it came."""

    def __init__(self, path, headers, body):
        self.path = path
        self.headers = headers
        self.body = body


class Server:
    """Gives its replies one after the other, the last one again and again."""

    def __init__(self, replies: Iterable[Reply]):
        self.replies = list(replies)
        self.seen: list[Seen] = []
        self._http = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self.url = f"http://127.0.0.1:{self._http.server_port}"
        self._thread = threading.Thread(target=self._http.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)

    def __enter__(self):
        self._thread.start()
        return self

    def __exit__(self, *_):
        self._http.shutdown()
        self._http.server_close()
        self._thread.join()

    def _handler(server):
        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self):
                body = json.loads(self.rfile.read(int(self.headers["content-length"])))
                reply = server.replies[min(len(server.seen), len(server.replies) - 1)]
                server.seen.append(Seen(self.path, {k.lower(): v for k, v in self.headers.items()}, body))
                self.close_connection = True
                if reply.hold is not None:
                    reply.hold.wait(30)
                if reply.hang_up:
                    return
                self.send_response(reply.status)
                for name, value in reply.headers.items():
                    self.send_header(name, value)
                self.send_header("content-length", str(len(reply.raw) + reply.cut_bytes))
                self.send_header("connection", "close")
                self.end_headers()
                self.wfile.write(reply.raw)

            def log_message(self, *_):
                pass

        return Handler
