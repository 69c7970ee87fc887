"""Claude Code's sessions: `~/.claude/projects/<folder>/<session id>.jsonl`, and the files of its subagents.

What the files are like (research: formats 0 and 1; 397 real sessions of versions 2.0.64 to 2.1.219), and which of
it decides here:

- Every line of `user`, `assistant`, `system`, `attachment` and `progress` has a uuid and names its parent. Only the
  first two are talk; the others lie on the path between and never decide a branch (anthropics/claude-code#35024).
- An answer of the provider is written a block a line, all with one `message.id`. Usage is that of the last line, or
  of the one with most output: the first is a placeholder (ccusage#901). The input side is `input_tokens` and both
  cache counts together.
- The conversation stands at its newest line of talk, or where the newest `last-prompt` since the last compaction says
  (`leafUuid`), if that is on another branch: so a rewind is recorded after which nothing was said (2.1.332).
- The results of parallel calls hang each on its own call's line, so the path to the leaf misses all but one
  (anthropics/claude-code#31330); they are put back as Anthropic's SDK does (claude-agent-sdk, `sessions.py`, MIT).
- A `compact_boundary` is a root; its `logicalParentUuid` is not followed. Newer ones keep messages from before it:
  `preservedMessages.uuids`, else the segment from head to tail, put in after the line `anchorUuid` (the summary,
  or the boundary itself: then before the summary), and not at all where one of them is missing.
- `microcompact_boundary` (seen in 2.1.17 to 2.1.22): the results it lists were cleared in the requests of that run.
  They are in the context here with the size of the note that stood for them, since the usage that follows counts
  them so, and are never spilled. 2.1.332 does not heed the record: it would send them whole.
- A parent that is not in the file (anthropics/claude-code#58554) or a cycle: reading goes on with the talk that
  stands before in the file; so it does throughout a file in which no line names a parent.
- A uuid that comes again is a replay (anthropics/claude-code#92089, #5034): its newest text and parent count, its
  first place in the file.
- Not sent: notes that the client made itself about an API error (model `<synthetic>` and `isApiErrorMessage`; other
  `<synthetic>` answers are sent), answers of thinking alone, `system` lines, sidechains, and attachments that are
  only shown (see `attachments`). `system` lines of subtype `local_command` are left out here, too, though 2.1.332
  sends them as a few bytes of user text: they are the person's own commands, not conversation (#92509).
- `isMeta` lines and lines with `isVisibleInTranscriptOnly` are sent (2.1.332).
- `toolUseResult` is the display's copy of the result on its line: never sent, slimmed along with it.
- The window is not recorded: 200,000 unless the model's name ends in `[1m]` or a larger context is on record.
- What usage was recorded does not make the client compact on resume (research: clients, finding A).

Behaviour marked 2.1.332 was seen by resuming small sessions with that version against a mock of the API.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from msgspec.structs import replace

from compactctl.document import Document
from compactctl.findings import Finding, sort
from compactctl.formats.claude_code.compact import compaction
from compactctl.formats.claude_code.context import Drafts, drafted
from compactctl.formats.claude_code.fork import new_session
from compactctl.formats.claude_code.lines import BOOKKEEPING, SYNTHETIC_MODEL, Lines, Node, copies
from compactctl.formats.claude_code.mend import CHAIN, mend_links, unknown_results
from compactctl.formats.claude_code.slim import slim_edits
from compactctl.formats.claude_code.tree import Path, effective
from compactctl.formats.edits import spill_edits
from compactctl.formats.interface import CompactionEdits, Mend, NewSession, OwnCheck, RecordedCut, Resume, Spilled
from compactctl.formats.mending import mend_pairs
from compactctl.formats.whole import lacks
from compactctl.model import (
    Compaction,
    Message,
    Opaque,
    OutsideResult,
    Part,
    SideRun,
    ToolResult,
    Transcript,
    Usage,
    token_count,
)
from compactctl.splicing import Edit
from compactctl.turns import pairing_findings

WINDOW_TOKENS = 200_000
"""What the client takes for the window of a model whose name has no mark of a longer one (`windows`)."""

_TREE_TYPES = frozenset(("user", "assistant", "system", "attachment", "progress"))
_FOREIGN_KEYS = frozenset(("session_id", "parent_tool_use_id", "systemPayload", "usageMetadata", "toolCallResult"))
"""Keys of stream-json logs and of Qwen Code, whose records look alike."""


class ClaudeCode:
    """The format of Claude Code's session files."""

    name = "claude-code"
    is_anthropic = True
    home = ".claude/projects"
    printed_by = ""
    in_place_risk = ""
    preview_style = "native"

    @property
    def check(self) -> OwnCheck:
        """What an audit asks of it."""
        from compactctl.formats.claude_code.checks import CHECK  # of all commands only `audit` has need of it

        return CHECK

    def claims(self, record: Mapping[str, Any]) -> bool:
        """Return whether a decoded record is certainly a line of a Claude Code session."""
        kind = record.get("type")
        if not isinstance(kind, str) or (record.keys() & _FOREIGN_KEYS and "sessionId" not in record):
            return False
        if kind in _TREE_TYPES:
            return _is_tree_line(record, kind)
        if kind == "summary":
            return isinstance(record.get("summary"), str) and "leafUuid" in record
        if kind == "file-history-snapshot":
            return "messageId" in record and "snapshot" in record
        return kind in BOOKKEEPING and isinstance(record.get("sessionId"), str) and "message" not in record

    def read(self, document: Document) -> Sequence[Transcript]:
        """Return the one session in the document: the main conversation, or the subagent's whose file it is."""
        lines = Lines(document)
        return [_transcript(lines)] if lines.is_known else []

    def spill_edits(self, document: Document, spilled: Sequence[Spilled]) -> list[Edit]:
        """Return the edits that put previews where results stand, and slim the display's copies."""
        return spill_edits(document, spilled, lambda result: copies(document, result.place.record))

    def usage_edits(self, document: Document, transcript: Transcript, tokens_after: int) -> list[Edit]:
        """Return nothing: Claude Code takes no decision from recorded usage when it resumes."""
        return []

    def compaction(self, document: Document, transcript: Transcript, recorded: RecordedCut) -> CompactionEdits:
        """Return the edits that put a boundary and a summary in, and take out what they stand for."""
        return compaction(document, transcript, recorded)

    def slim_edits(self, document: Document, limit_bytes: int, path: str) -> list[Edit]:
        """Return the edits that shorten the display's copies, and take progress and logged requests out."""
        return slim_edits(document, limit_bytes, path)

    def mend_links(self, document: Document, transcript: Transcript) -> list[Mend]:
        """Return what links lines anew to the ones from which reading goes on."""
        return mend_links(document, transcript)

    def mend_pairs(self, document: Document, transcript: Transcript) -> list[Mend]:
        """Return what makes calls and results pair up."""
        return mend_pairs(document, transcript, unknown_results, CHAIN)

    def new_session(self, document: Document, transcript: Transcript, name: str, seed: str) -> NewSession | None:
        """Return the session under an id derived from `seed`; None for a subagent's."""
        return new_session(document, transcript, name, seed)

    def resume(self, path: str, session_id: str | None) -> Resume:
        """Return the command that opens a session by its id, or a file anywhere by its path and what that takes."""
        if session_id is not None:
            return Resume(("claude", "--resume", session_id), "in the folder that the session was in")
        words = ("claude", "--resume", path, "--fork-session")
        return Resume(words, "without --fork-session, Claude Code goes on writing to the original session")


FORMAT = ClaudeCode()


def _is_tree_line(record: Mapping[str, Any], kind: str) -> bool:
    message = record.get("message")
    if isinstance(message, dict) and ("parts" in message or "usageMetadata" in record):
        return False
    if "systemPayload" in record or "toolCallResult" in record:
        return False
    if isinstance(record.get("uuid"), str):
        return bool(record.keys() & {"parentUuid", "sessionId", "isSidechain"})
    if kind not in ("user", "assistant") or record.keys() & _FOREIGN_KEYS:
        return False
    return isinstance(message, dict) and message.get("role") == kind and "content" in message


# the transcript ----------------------------------------------------------------------------------


def _transcript(lines: Lines) -> Transcript:
    newest = next((node for node in reversed(lines.nodes) if node.is_talk), None)
    is_side = newest is not None and newest.is_side and all(node.is_side for node in lines.nodes if node.is_talk)
    agent = newest.marks.agent if newest is not None and is_side else ""
    path = effective(lines, is_side, agent)
    side_runs = _side_runs(lines, is_side, agent)
    lines.forget_targets()
    drafts = drafted(path)
    requests = lines.side_requests if is_side else lines.requests
    model = _model(path.nodes) or _model(lines.nodes)
    session_id = lines.session_id
    found = Transcript(
        format=ClaudeCode.name,
        messages=(),
        session_id=agent or session_id if is_side else session_id,
        agent=f"Claude Code {lines.version}" if lines.version else "Claude Code",
        model=model,
        cwd=lines.cwd,
        parent_session_id=session_id if is_side else None,
        anchor_floor=drafts.anchor_floor,
        default_window_tokens=WINDOW_TOKENS,
        peak_tokens=_peak(requests.values(), lines.compactions),
        requests=tuple(requests.values()),
        compactions=tuple(map(_compaction, lines.compactions)),
        outside=_outside(lines, path, drafts, is_side),
        side_runs=side_runs,
        bytes_by_kind=lines.bytes,
        findings=(*path.findings, *_blank_summary(path)),
    )
    del newest, path
    lines.forget_nodes()
    return _with_messages(found, drafts.messages(requests, lines.blind), lines)


def _with_messages(found: Transcript, messages: tuple[Message, ...], lines: Lines) -> Transcript:
    findings = [*lines.findings(), *found.findings, *_message_findings(messages, found.requests)]
    return replace(found, messages=messages, findings=sort(findings))


def _model(nodes: Sequence[Node]) -> str | None:
    """Return the newest model that really answered."""
    return next((node.model for node in reversed(nodes) if node.model and node.model != SYNTHETIC_MODEL), None)


def _peak(requests: Iterable[Usage], compactions: Iterable[Node]) -> int:
    sizes = [usage.input_tokens for usage in requests]
    sizes += [_compaction(node).tokens_before or 0 for node in compactions]
    return max(sizes, default=0)


def _compaction(node: Node) -> Compaction:
    metadata = node.marks.metadata or {}
    tokens, trigger = metadata.get("preTokens"), metadata.get("trigger")
    return Compaction(
        node.line,
        token_count(tokens) or None,
        trigger if isinstance(trigger, str) else None,
    )


def _message_findings(messages: Sequence[Message], requests: Sequence[Usage]) -> list[Finding]:
    said = [message for message in messages if message.role == "assistant" or not _is_reminder(message)]
    lacking = lacks(messages, requests, "no usage was recorded", empty="no message in its context")
    return [*pairing_findings(said, order_matters=False), *lacking]


def _blank_summary(path: Path) -> list[Finding]:
    summaries = (node.marks for node in path.nodes if node.marks.is_summary)
    if path.compaction is None or any(not summary.is_blank for summary in summaries):
        return []
    text = "no summary follows the newest compaction, or it is empty"
    return [Finding(path.compaction.line, "blank-summary", text)]


def _is_reminder(message: Message) -> bool:
    return isinstance(message.parts[0], Opaque)


def _outside(lines: Lines, path: Path, drafts: Drafts, is_side: bool) -> tuple[OutsideResult, ...]:
    in_path = lines.flags(path.nodes)
    found: list[OutsideResult] = []
    for node in lines.nodes:
        if in_path[node.order] and node.record not in drafts.cleared:
            continue
        why = "cleared by a microcompaction" if in_path[node.order] else _why_outside(node, path, is_side)
        found += _results(node.parts, node.line, why)
    for replay in lines.replays:
        found += _results(replay.parts, replay.first_line, f"written again on line {replay.line}")
    return tuple(sorted(found, key=lambda result: result.line))


def _results(parts: Iterable[Part], line: int, why: str) -> Iterator[OutsideResult]:
    return (OutsideResult(line, part.name, part.size_bytes, why) for part in parts if isinstance(part, ToolResult))


def _why_outside(node: Node, path: Path, is_side: bool) -> str:
    if node.is_side and not is_side:
        return "a subagent's"
    if path.compaction is not None and node.order < path.compaction.order:
        return f"before the compaction at line {path.compaction.line}"
    return "on a branch that was left"


def _side_runs(lines: Lines, is_side: bool, agent: str) -> tuple[SideRun, ...]:
    """Return the subagents' runs besides the conversation itself, in the order in which they begin.

    Older versions name no agent; there a run is what hangs together.
    """
    runs: dict[str, list[Node]] = {}
    run_of: dict[int, str] = {}
    for node in lines.nodes:
        if node.is_side and not (is_side and node.marks.agent == agent):
            above = lines.targets.get(node.parent) if isinstance(node.parent, str) else None
            fallback = run_of.get(above.order, "") if isinstance(above, Node) else ""
            run_of[node.order] = node.marks.agent or fallback or f"sidechain {len(runs) + 1}"
            runs.setdefault(run_of[node.order], []).append(node)
    return tuple(_side_run(name, nodes, lines) for name, nodes in runs.items())


def _side_run(name: str, nodes: list[Node], lines: Lines) -> SideRun:
    messages = drafted(Path(tuple(nodes), None, ())).messages(lines.side_requests, frozenset())
    usages = [message.usage for message in messages if message.usage is not None]
    return SideRun(name, len(messages), usages[-1] if usages else None)
