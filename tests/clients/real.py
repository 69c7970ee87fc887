"""The real agents, resumed on a session in a home and a network of their own, and what they then send.

`resumed_request(client, session)` is the one thing that tests need: the messages of the request in which the
agent asks its new question, as dictionaries:

    {"role", "text"}, and where they apply: "reasoning" (text), "calls" ([id, name, arguments]), "result_of" (call id)

Nothing is sent but on loopback: each run has its own network namespace, where `mock.py` plays the model.
"""

import glob
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.clients import mock

Json = dict[str, Any]

QUESTION = "And what now, please?"
SECONDS = 90
BASE = f"http://127.0.0.1:{mock.PORT}/v1"
CLIENTS = ("codex", "pi", "piold")


def resumed_request(client: str, session: Path) -> list[Json]:
    """Return the messages that `client` sends when it resumes this session. Skips where that can't be tried."""
    return [*resumed_requests(client, session)][-1]


def resumed_requests(client: str, session: Path) -> list[list[Json]]:
    """Return the messages of every request it sends, compactions of its own included."""
    folder = Path(tempfile.mkdtemp(prefix=f"real-{client}-"))
    try:
        command, environment = prepare(client, session, folder)
        return requests(command, environment, folder / "requests.jsonl", folder / "work")
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def requests(command: Sequence[str], environment: dict[str, str], log: Path, work: Path) -> list[list[Json]]:
    """Run a client, and return the messages of every request it sends."""
    done = _run_isolated(log, command, environment, work)
    bodies = [json.loads(line)["body"] for line in log.read_text().splitlines()] if log.exists() else []
    assert bodies, f"it sent nothing (status {done.returncode}): {done.stderr[-2000:]}"
    return [_read(body) for body in bodies]


def _read(body: Json) -> list[Json]:
    if "input" in body:
        return read_responses(body)
    return read_messages(body) if "max_tokens" in body and "system" in body else read_chat(body)


def printed(client: str, *options: str) -> bytes:
    """Return the log that `client` prints of a new session in which it is asked one question."""
    folder = Path(tempfile.mkdtemp(prefix=f"real-{client}-"))
    home = folder / "home"
    for name in ("home/tmp", "home/.codex", "work"):
        (folder / name).mkdir(parents=True)
    environment = {"HOME": str(home), "TMPDIR": str(home / "tmp"), "MOCK_KEY": "none"}
    try:
        if client == "codex":
            (home / ".codex/config.toml").write_text(_CODEX_CONFIG)
            binary = _installed("codex/node_modules/@openai/codex-*/vendor/*/bin/codex")
            command = [binary, "exec", "--skip-git-repo-check", "--json", *options, QUESTION]
        else:
            command, environment = claude(home, "--verbose", *options, QUESTION)
        done = _run_isolated(folder / "requests.jsonl", command, environment, folder / "work")
        assert done.stdout, f"it printed nothing (status {done.returncode}): {done.stderr[-2000:]}"
        return done.stdout.encode()
    finally:
        shutil.rmtree(folder, ignore_errors=True)


# running a client ----------------------------------------------------------------------------------


def _installed(pattern: str) -> str:
    root = os.environ.get("CLIENTS_INST")
    if not root:
        pytest.skip("CLIENTS_INST is not set: run tests/clients/install and name its folder there")
    client = pattern.partition("/")[0]
    if not os.path.isdir(os.path.join(root, client)):
        pytest.skip(f"not installed in CLIENTS_INST: {client} (run tests/clients/install)")
    found = sorted(glob.glob(os.path.join(root, pattern)))
    assert found, f"{client} is in CLIENTS_INST, and nothing there is {pattern}"
    return found[0]


def _run_isolated(
    log: Path, command: Sequence[str], environment: dict[str, str], work: Path
) -> subprocess.CompletedProcess[str]:
    unshare = ["unshare", *([] if os.geteuid() == 0 else ["-r"]), "-n"]
    try:
        possible = subprocess.run([*unshare, "true"], capture_output=True, check=False).returncode == 0
    except FileNotFoundError:
        possible = False
    if not possible:
        pytest.skip("no network namespace can be made here (unshare -n), and clients run in no other network")
    return subprocess.run(
        [*unshare, sys.executable, mock.__file__, str(log), str(SECONDS), *command],
        cwd=work,
        env={"PATH": os.environ["PATH"], "LANG": "C.UTF-8", **environment},
        capture_output=True,
        text=True,
        errors="replace",
        timeout=SECONDS + 30,
        check=False,
    )


def prepare(client: str, session: Path, folder: Path) -> tuple[list[str], dict[str, str]]:
    """Return the command and the environment that resume a copy of the session, all files staged."""
    home = folder / "home"
    for name in ("home/tmp", "work"):
        (folder / name).mkdir(parents=True)
    environment = {"HOME": str(home), "TMPDIR": str(home / "tmp"), "MOCK_KEY": "none"}
    if client == "codex":
        return _prepare_codex(session, home), {**environment, "CODEX_HOME": str(home / ".codex")}
    quiet = {"PI_OFFLINE": "1", "PI_TELEMETRY": "0", "PI_SKIP_VERSION_CHECK": "1"}
    return _prepare_pi(client, session, home, folder / "work"), {**environment, **quiet}


def claude(home: Path, *arguments: str) -> tuple[list[str], dict[str, str]]:
    """Return the command and the environment that run Claude Code once, in this home."""
    binary = _installed("claude/node_modules/@anthropic-ai/claude-code-linux-*/claude")
    quiet = ("DISABLE_TELEMETRY", "DISABLE_ERROR_REPORTING", "DISABLE_AUTOUPDATER")
    environment = dict.fromkeys((*quiet, "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "IS_SANDBOX"), "1")
    environment |= {"ANTHROPIC_BASE_URL": BASE.removesuffix("/v1"), "ANTHROPIC_API_KEY": "none", "HOME": str(home)}
    return [binary, "-p", "--dangerously-skip-permissions", "--model", mock.MODEL, *arguments], environment


_CODEX_CONFIG = f"""
model = "{mock.MODEL}"
model_provider = "mock"
model_context_window = 200000
check_for_update_on_startup = false
approval_policy = "never"
sandbox_mode = "danger-full-access"
[model_providers.mock]
name = "mock"
base_url = "{BASE}"
wire_api = "responses"
env_key = "MOCK_KEY"
request_max_retries = 0
stream_max_retries = 0
[analytics]
enabled = false
"""


def _prepare_codex(session: Path, home: Path) -> list[str]:
    binary = _installed("codex/node_modules/@openai/codex-*/vendor/*/bin/codex")
    head, _, rest = session.read_bytes().partition(b"\n")
    first = json.loads(head)
    session_id = first["payload"]["id"]
    stamp = re.sub(r"[:]", "-", str(first["payload"].get("timestamp") or first["timestamp"])[:19])
    year, month, day = stamp[:10].split("-")
    folder = home / ".codex/sessions" / year / month / day
    folder.mkdir(parents=True)
    if first["payload"].get("model_provider"):
        # codex refuses to go on with another provider than the recorded one
        first["payload"]["model_provider"] = "mock"
        head = json.dumps(first).encode()
    (folder / f"rollout-{stamp}-{session_id}.jsonl").write_bytes(head + b"\n" + rest)
    (home / ".codex/config.toml").write_text(_CODEX_CONFIG)
    return [binary, "exec", "resume", "--skip-git-repo-check", "--json", session_id, QUESTION]


def _prepare_pi(client: str, session: Path, home: Path, work: Path) -> list[str]:
    scope = "@earendil-works" if client == "pi" else "@mariozechner"
    script = _installed(
        f"{client}/node_modules/{scope}/pi-coding-agent/dist/{'bundle/' if client == 'pi' else ''}cli.js"
    )
    node = _installed("node22/node_modules/node-linux-*/bin/node")
    agent = home / ".pi/agent"
    agent.mkdir(parents=True)
    model = {"id": mock.MODEL, "name": "mock", "reasoning": False, "input": ["text", "image"]}
    limits = {"contextWindow": 200_000, "maxTokens": 8_000}
    costs = {"cost": {"input": 0, "output": 0, "cacheRead": 0, "cacheWrite": 0}}
    provider = {
        "baseUrl": BASE,
        "api": "openai-completions",
        "apiKey": "none",
        "models": [{**model, **limits, **costs}],
    }
    (agent / "models.json").write_text(json.dumps({"providers": {"mock": provider}}))
    staged = home / "session.jsonl"
    staged.write_bytes(_with_folder(session.read_bytes(), work))
    return [node, script, "-p", "--provider", "mock", "--model", mock.MODEL, "--session", str(staged), QUESTION]


def _with_folder(raw: bytes, work: Path) -> bytes:
    """Return the session with a recorded folder that exists: pi stops where it does not."""
    head, _, rest = raw.partition(b"\n")
    return json.dumps({**json.loads(head), "cwd": str(work)}).encode() + b"\n" + rest


# reading a request -----------------------------------------------------------------------------------


def read_responses(body: Json) -> list[Json]:
    """Return the messages of a Responses request: neighbouring items of the assistant are one message."""
    messages: list[Json] = []
    for item in body["input"]:
        message = _read_item(item)
        if message["role"] == "assistant" and messages and messages[-1]["role"] == "assistant":
            join(messages[-1], message)
        else:
            messages.append(message)
    return messages


def _read_item(item: Json) -> Json:
    kind = item.get("type", "message")
    if kind == "message":
        return {"role": item["role"], "text": _text(item["content"])}
    if kind.endswith("_output"):
        return {"role": "tool", "text": _text(item.get("output", "")), "result_of": item.get("call_id")}
    if kind == "reasoning":
        return {"role": "assistant", "text": "", "reasoning": _text(item.get("summary") or [])}
    if kind in ("function_call", "custom_tool_call"):
        arguments = item["arguments"] if "arguments" in item else item["input"]
        return {"role": "assistant", "text": "", "calls": [[item["call_id"], item["name"], arguments]]}
    return {"role": kind, "text": _text(item.get("content") or "")}


def join(message: Json, more: Json) -> None:
    message["text"] += more["text"]
    if "reasoning" in more:
        message["reasoning"] = message.get("reasoning", "") + more["reasoning"]
    if "calls" in more:
        message["calls"] = message.get("calls", []) + more["calls"]


def read_messages(body: Json) -> list[Json]:
    """Return the messages of a request of the Messages API: each result as one of its own, then what else is said."""
    messages: list[Json] = []
    for message in body["messages"]:
        content = message["content"]
        blocks = [{"type": "text", "text": content}] if isinstance(content, str) else content
        messages += [
            {"role": "tool", "text": _text(block.get("content") or ""), "result_of": block["tool_use_id"]}
            for block in blocks
            if block["type"] == "tool_result"
        ]
        said = [block for block in blocks if block["type"] in ("text", "tool_use")]
        if said:
            calls = [[block["id"], block["name"], block["input"]] for block in said if block["type"] == "tool_use"]
            messages.append({"role": message["role"], "text": _text(said), **({"calls": calls} if calls else {})})
    return messages


def read_chat(body: Json) -> list[Json]:
    """Return the messages of a chat-completions request."""
    return [_read_chat_message(message) for message in body["messages"]]


def _read_chat_message(message: Json) -> Json:
    read: Json = {"role": message["role"], "text": _text(message.get("content") or "")}
    if message.get("reasoning_content"):
        read["reasoning"] = message["reasoning_content"]
    if message.get("tool_calls"):
        calls = [(call["id"], call["function"]) for call in message["tool_calls"]]
        read["calls"] = [[call_id, function["name"], function["arguments"]] for call_id, function in calls]
    if message["role"] == "tool":
        read["result_of"] = message["tool_call_id"]
    return read


def _text(content: Any) -> str:
    if isinstance(content, str):
        return content
    return "".join(block.get("text", "") for block in content)
