"""`-o sarif`: SARIF 2.1.0, for code scanning and the viewers of editors.

A finding of a whole session stands at its first line, since GitHub wants a line. Paths are relative to the root of the
repository (`%SRCROOT%`); one outside of it is a `file:` URI. `partialFingerprints` hold the finding's own fingerprint
twice: under a name of ours, and under the one that GitHub compares. What could not be read, and what `--fix` mends, is
a notification of the invocation. Sources: SARIF 2.1.0 (OASIS), GitHub's "SARIF support for code scanning".
"""

import os
from typing import Any

from compactctl import __version__
from compactctl.findings import GROUPS, RULES
from compactctl.outcome import Outcome
from compactctl.outputs import View, reported
from compactctl.outputs.json import dumps
from compactctl.outputs.reported import Told
from compactctl.rules import page
from compactctl.totals import Batch

ENCODING: str | None = "utf-8"

SCHEMA = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"

ROOT = "%SRCROOT%"

SECURITY_SEVERITY = "8.0"
"""What a credential counts as where GitHub sorts by severity: high."""

Json = dict[str, Any]


def printer(command: str, view: View) -> "Log":
    return Log(view)


class Log:
    """The results as they come, printed as one log at the end."""

    def __init__(self, view: View) -> None:
        self._root = view.root
        self._rules: dict[str, int] = {}
        self._results: list[Json] = []
        self._notifications: list[Json] = []

    def outcome(self, outcome: Outcome) -> str:
        self._notifications += [self._notification(outcome.path, item) for item in reported.mended(outcome)]
        for item in reported.told(outcome):
            if item.is_failure:
                self._notifications.append(self._notification(outcome.path, item))
            else:
                self._results.append(self._result(outcome.path, item))
        return ""

    def end(self, batch: Batch) -> str:
        driver = {
            "name": "compactctl",
            "version": __version__,
            "semanticVersion": __version__,
            "rules": [_rule(rule) for rule in self._rules],
        }
        run = {
            "tool": {"driver": driver},
            "automationDetails": {"id": "compactctl/"},
            "originalUriBaseIds": {ROOT: {"description": {"text": "The root of the repository."}}},
            "invocations": [
                {
                    "executionSuccessful": batch.exit_code in (0, 1),
                    "exitCode": batch.exit_code,
                    "toolExecutionNotifications": self._notifications,
                }
            ],
            "results": self._results,
        }
        return dumps({"$schema": SCHEMA, "version": "2.1.0", "runs": [run]})

    def _result(self, path: str, item: Told) -> Json:
        made: Json = {
            "ruleId": item.rule,
            "ruleIndex": self._rules.setdefault(item.rule, len(self._rules)),
            "level": item.severity,
            "message": {"text": plain(item.message)},
            "locations": self._locations(path, item.line),
        }
        if item.fingerprint:
            made["partialFingerprints"] = {
                "compactctl/v1": item.fingerprint,
                "primaryLocationLineHash": item.fingerprint,
            }
        if item.is_known is not None:
            made["baselineState"] = "unchanged" if item.is_known else "new"
        return made

    def _notification(self, path: str, item: Told) -> Json:
        made: Json = {
            "level": item.severity,
            "message": {"text": plain(item.message)},
            "descriptor": {"id": item.rule},
        }
        return {**made, "locations": self._locations(path, item.line)}

    def _locations(self, path: str, line: int | None) -> list[Json]:
        if path == reported.STANDARD_INPUT:
            return []
        inside = reported.relative(path, self._root)
        if inside is None:
            artifact = {"uri": f"file://{_leading_slash(reported.uri(os.path.abspath(path).replace(os.sep, '/')))}"}
        else:
            artifact = {"uri": reported.uri(inside), "uriBaseId": ROOT}
        return [{"physicalLocation": {"artifactLocation": artifact, "region": {"startLine": line or 1}}}]


def _leading_slash(path: str) -> str:
    return path if path.startswith("/") else f"/{path}"


def plain(text: str) -> str:
    """Return a message in which no viewer finds a link: SARIF has them as `[text](target)`, also in plain text."""
    return text.replace("](", "] (")


def _rule(rule: str) -> Json:
    told, group = page(rule), GROUPS[rule]
    properties: Json = {"tags": [group]}
    if group == "secrets":
        properties = {"tags": ["security", group], "security-severity": SECURITY_SEVERITY}
    return {
        "id": rule,
        "name": told.name,
        "shortDescription": {"text": plain(f"{told.meaning[:1].upper()}{told.meaning[1:]}.")},
        "fullDescription": {"text": plain(told.why)},
        "help": {"text": plain(f"{told.why}\n\nFix: {told.fix}\n\nExample: {told.example}")},
        "defaultConfiguration": {"level": RULES[rule]},
        "properties": properties,
    }
