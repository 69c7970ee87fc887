"""A model on loopback that always says the same, and keeps every request it gets.

Run as `mock.py LOG SECONDS COMMAND…` in a fresh network namespace: it raises the loopback device, serves there,
runs the command beside it, and leaves with the command's status. LOG gets one JSON line a request.
"""

import fcntl
import json
import re
import socket
import struct
import subprocess
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

PORT = 8123
ANSWER = "Understood."
MODEL = "mock-model"
CALL_ID = "toolu_mock"
RUN = re.compile(r"Please run `([^`]+)`")
"""What a person says to have a command run."""

Json = dict[str, Any]
Events = list[Json]

_RESPONSE_USAGE = {
    "input_tokens": 1200,
    "input_tokens_details": {"cached_tokens": 0},
    "output_tokens": 3,
    "output_tokens_details": {"reasoning_tokens": 0},
    "total_tokens": 1203,
}


def responses_events() -> Events:
    """Return a whole answer of the Responses API as its events."""
    content = {"type": "output_text", "text": ANSWER, "annotations": []}
    item = {"type": "message", "id": "msg_mock", "role": "assistant", "status": "completed", "content": [content]}
    begun = {"id": "resp_mock", "object": "response", "model": MODEL, "status": "in_progress", "output": []}
    ended = {**begun, "status": "completed", "output": [item], "usage": _RESPONSE_USAGE}
    return [
        {"type": "response.created", "response": begun},
        {"type": "response.output_item.added", "output_index": 0, "item": {**item, "content": []}},
        {
            "type": "response.output_text.delta",
            "item_id": "msg_mock",
            "output_index": 0,
            "content_index": 0,
            "delta": ANSWER,
        },
        {"type": "response.output_item.done", "output_index": 0, "item": item},
        {"type": "response.completed", "response": ended},
    ]


def chat_events() -> Events:
    """Return a whole answer of the chat-completions API as its chunks."""
    chunk = {"id": "chat_mock", "object": "chat.completion.chunk", "created": 1, "model": MODEL}
    said = {"index": 0, "delta": {"role": "assistant", "content": ANSWER}, "finish_reason": None}
    stop = {"index": 0, "delta": {}, "finish_reason": "stop"}
    usage = {"prompt_tokens": 1200, "completion_tokens": 3, "total_tokens": 1203}
    return [
        {**chunk, "choices": [said]},
        {**chunk, "choices": [stop]},
        {**chunk, "choices": [], "usage": usage},
    ]


def message_events(body: Json) -> Events:
    """Return an answer of the Messages API as its events: a call of Bash where one is asked for and not yet made."""
    asked = json.dumps(body["messages"])
    command = RUN.search(asked) if "tool_result" not in asked else None
    usage = {"input_tokens": 1200, "output_tokens": 3}
    identity = {"id": f"msg_mock_{len(body['messages'])}", "type": "message", "role": "assistant", "model": MODEL}
    begun = {**identity, "content": [], "stop_reason": None, "stop_sequence": None, "usage": usage}
    said: tuple[Json, Json] = {"type": "text", "text": ""}, {"type": "text_delta", "text": ANSWER}
    if command:
        block = {"type": "tool_use", "id": CALL_ID, "name": "Bash", "input": {}}
        called = json.dumps({"command": command[1], "description": "as asked"})
        said = block, {"type": "input_json_delta", "partial_json": called}
    ended = {"stop_reason": "tool_use" if command else "end_turn", "stop_sequence": None}
    return [
        {"type": "message_start", "message": begun},
        {"type": "content_block_start", "index": 0, "content_block": said[0]},
        {"type": "content_block_delta", "index": 0, "delta": said[1]},
        {"type": "content_block_stop", "index": 0},
        {"type": "message_delta", "delta": ended, "usage": usage},
        {"type": "message_stop"},
    ]


class Handler(BaseHTTPRequestHandler):
    log_path = ""
    lock = threading.Lock()

    def log_message(self, format: str, *args: Any) -> None:
        pass

    def do_GET(self) -> None:
        models = [{"id": MODEL, "object": "model", "created": 1, "owned_by": "mock"}]
        self._send("application/json", json.dumps({"object": "list", "data": models, "models": []}).encode())

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers.get("content-length") or 0)))
        with self.lock, open(self.log_path, "a", encoding="utf-8") as log:
            log.write(json.dumps({"path": self.path, "body": body}) + "\n")
        path = self.path.partition("?")[0]
        if path.endswith(("/responses", "/messages")):
            events = responses_events() if path.endswith("/responses") else message_events(body)
            lines = [f"event: {event['type']}\ndata: {json.dumps(event)}\n\n" for event in events]
        else:
            lines = [*(f"data: {json.dumps(event)}\n\n" for event in chat_events()), "data: [DONE]\n\n"]
        self._send("text/event-stream", "".join(lines).encode())

    def _send(self, kind: str, body: bytes) -> None:
        self.send_response(200)
        self.send_header("content-type", kind)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


def raise_loopback() -> None:
    """Set the flags UP and RUNNING of the device `lo`."""
    get_flags, set_flags, up_and_running = 0x8913, 0x8914, 0x41
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as device:
        request = struct.pack("16sh", b"lo", 0)
        (flags,) = struct.unpack_from("h", fcntl.ioctl(device, get_flags, request), 16)
        fcntl.ioctl(device, set_flags, struct.pack("16sh", b"lo", flags | up_and_running))


def main(log_path: str, seconds: str, *command: str) -> int:
    raise_loopback()
    Handler.log_path = log_path
    server = ThreadingHTTPServer(("127.0.0.1", PORT), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return subprocess.run(command, stdin=subprocess.DEVNULL, timeout=float(seconds), check=False).returncode


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
