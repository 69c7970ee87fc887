"""`-o junit`: JUnit XML, for the test reports of CI systems.

A session is a suite. Each rule that makes it fail is a failed case, with its findings as text; a session without any
is one case that passes. What could not be read is a failure, too; what `--fix` mends is output. Only elements and
attributes that the schemas in use agree on are written: no time, so that equal runs give equal files. Source:
junit-10.xsd of Jenkins' xUnit plugin.
"""

import re
from collections.abc import Iterable
from xml.sax.saxutils import escape, quoteattr

from compactctl.outcome import Outcome
from compactctl.outputs import View, reported
from compactctl.outputs.reported import Told
from compactctl.outputs.safe import visible
from compactctl.totals import Batch

ENCODING: str | None = "utf-8"

PASSED = "audit"
"""What the case of a session is called in which nothing fails."""


def printer(command: str, view: View) -> "Suites":
    return Suites(view)


class Suites:
    """The suites as they come, printed at the end, when their sums are known."""

    def __init__(self, view: View) -> None:
        self._view = view
        self._suites: list[str] = []
        self._tests = 0
        self._failures = 0

    def outcome(self, outcome: Outcome) -> str:
        name = visible(reported.relative(outcome.path, self._view.root) or outcome.path)
        if isinstance(outcome.index, int):
            name = f"{name} [{outcome.index}]"
        found = reported.told(outcome)
        failing: dict[str, list[Told]] = {}
        for item in found:
            if reported.fails(item, self._view.fail_on):
                failing.setdefault(item.rule, []).append(item)
        others = reported.mended(outcome)
        others += [item for item in found if not reported.fails(item, self._view.fail_on)]
        cases = [_failed(name, rule, items) for rule, items in failing.items()]
        if not cases:
            is_skipped = outcome.status == "skipped"
            cases = [
                f"<testcase{_attributes(classname=name, name=PASSED)}>{'<skipped/>' if is_skipped else ''}</testcase>"
            ]
        tests, failures = len(cases), len(failing)
        sums = _attributes(name=name, tests=str(tests), failures=str(failures), errors="0")
        told = f"<system-out>{_text(_lines(name, others))}</system-out>" if others else ""
        self._suites += [f"<testsuite{sums}>", *cases, *([told] if told else []), "</testsuite>"]
        self._tests += tests
        self._failures += failures
        return ""

    def end(self, batch: Batch) -> str:
        sums = _attributes(name="compactctl", tests=str(self._tests), failures=str(self._failures), errors="0")
        head = '<?xml version="1.0" encoding="UTF-8"?>'
        return "".join(f"{line}\n" for line in [head, f"<testsuites{sums}>", *self._suites, "</testsuites>"])


def _failed(name: str, rule: str, items: list[Told]) -> str:
    attributes = _attributes(message=items[0].message, type=items[0].severity)
    failure = f"<failure{attributes}>{_text(_lines(name, items))}</failure>"
    return f"<testcase{_attributes(classname=name, name=rule)}>{failure}</testcase>"


def _lines(name: str, items: Iterable[Told]) -> str:
    """Return the findings as `-o text` has them, a line each."""
    return "\n".join(reported.line(name, item, item.severity) for item in items)


_NOT_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def _text(text: str) -> str:
    return escape(_NOT_XML.sub("\ufffd", text))


def _attributes(**values: str) -> str:
    return "".join(f" {name}={quoteattr(_NOT_XML.sub(chr(0xFFFD), value))}" for name, value in values.items())
