"""`-o gitlab`: GitLab's code quality report, a list of issues.

GitLab tells new issues from old ones by their fingerprints. Source: GitLab's "Code Quality report format".
"""

import hashlib
from typing import Any

import orjson

from compactctl.outcome import Outcome
from compactctl.outputs import View, reported
from compactctl.outputs.json import dumps
from compactctl.outputs.reported import Told
from compactctl.totals import Batch

ENCODING: str | None = "utf-8"

SEVERITIES = {"error": "critical", "warning": "minor", "note": "info"}
"""What GitLab calls ours."""


def printer(command: str, view: View) -> "Issues":
    return Issues(view)


class Issues:
    """The issues as they come, printed as one list at the end."""

    def __init__(self, view: View) -> None:
        self._root = view.root
        self._issues: list[dict[str, Any]] = []

    def outcome(self, outcome: Outcome) -> str:
        path = reported.relative(outcome.path, self._root) or outcome.path
        self._issues += [_issue(path, item) for item in reported.told(outcome)]
        return ""

    def end(self, batch: Batch) -> str:
        return dumps(self._issues, orjson.OPT_INDENT_2)


def _issue(path: str, item: Told) -> dict[str, Any]:
    return {
        "description": f"{item.rule}: {item.message}",
        "check_name": item.rule,
        "fingerprint": item.fingerprint or _fingerprint(path, item.rule, str(item.line), item.message),
        "severity": SEVERITIES[item.severity],
        "location": {"path": path, "lines": {"begin": item.line or 1}},
    }


def _fingerprint(*parts: str) -> str:
    return hashlib.sha256("\0".join(parts).encode("utf-8", "surrogatepass")).hexdigest()[:32]
