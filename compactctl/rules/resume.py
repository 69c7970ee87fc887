"""What an agent or a provider stumbles over when the session goes on."""

from compactctl.rules.interface import Page

PAGES: dict[str, Page] = {
    "result-without-call": Page(
        name="Result without a call",
        meaning="a tool result whose call is not in its exchange",
        why="Providers refuse the request. Codex and Claude Code drop such a result when they resume; pi, Gemini CLI, "
        "Kimi and Vibe send it.",
        example='{"role": "user", "content": "go on"}\n{"role": "tool", "tool_call_id": "c9", "content": "ok"}',
        fix="Take the result out, or put its call back.",
    ),
    "call-without-result": Page(
        name="Call without a result",
        meaning="a tool call that nothing answers, though the session went on",
        why="Providers refuse the request. Most agents add a made-up result when they resume; Gemini CLI and Kimi CLI "
        "send the call alone.",
        example='{"role": "assistant", "tool_calls": [{"id": "c1", ...}]}\n{"role": "user", "content": "and now?"}',
        fix="Answer the call with a result that says that the run was interrupted.",
    ),
    "duplicate-result": Page(
        name="Second result",
        meaning="a second result for one call",
        why="Anthropic's API refuses two results of one id. It comes of an error that was recorded by two places, or "
        "of a record that was written twice.",
        example='{"role": "tool", "tool_call_id": "c1", ...}\n{"role": "tool", "tool_call_id": "c1", ...}',
        fix="Keep the first.",
    ),
    "bad-call-id": Page(
        name="Call id that pairs nothing",
        meaning="a call or a result without an id, or two calls of one answer with the same",
        why="Nobody can tell which result answers which call; providers refuse an empty id and an id that comes twice.",
        example='{"role": "assistant", "tool_calls": [{"id": "c1", ...}, {"id": "c1", ...}]}',
        fix="Give each call an id of its own, and its result the same.",
    ),
    "parent-cycle": Page(
        name="Records that are their own ancestors",
        meaning="records that are each other's ancestors",
        why="The history is the way from the newest record to its first ancestor. Here it has no end: an agent "
        "hangs, or stops at some point and loses what is above.",
        example='{"uuid": "a", "parentUuid": "b", ...}\n{"uuid": "b", "parentUuid": "a", ...}',
        fix="Let the earlier of them name the record that stands before it.",
    ),
    "missing-spill": Page(
        name="Spilled file gone or changed",
        meaning="a file that compactctl spilled a result to is not there, or not as it was written",
        why="The preview in the session promises the whole text in that file. The model will look for it in vain, and "
        "restore needs the originals beside it.",
        example="s.compacted.jsonl without s.compacted/tool-results/",
        fix="Bring the folder back; it belongs to the session. compactctl restore gives the original while "
        "originals.jsonl is there.",
    ),
    "missing-header": Page(
        name="Header missing or late",
        meaning="the record that the file has to start with is not its first",
        why="Codex refuses a rollout whose first line is not session_meta; pi takes a file without its session header "
        "for an empty one.",
        example='{"type": "response_item", ...}\n{"type": "session_meta", ...}',
        fix="Put the header first.",
    ),
    "missing-ordinal": Page(
        name="Last record without its ordinal",
        meaning="records are numbered, and the last one is not",
        why="Codex numbers the records of its newer rollouts and refuses to resume one whose final record has no "
        "number. Gaps and repeats it accepts.",
        example='{"ordinal": 41, "type": "event_msg", ...}\n{"type": "compacted", ...}',
        fix="Number the last record: one more than the largest before.",
    ),
    "ignored-compaction": Page(
        name="Compaction that its agent does not honour",
        meaning="a record of a compaction that its agent will pass over, or lose messages by",
        why="The agent sends all that was to give way, or less than was to be kept: compactMetadata is missing (Claude "
        "Code), the first kept entry is not on the way to the compaction (pi), or an entry stands in by a reference "
        "whose digest is not that of the item (Codex).",
        example='{"type": "compaction", "summary": "...", "firstKeptEntryId": "not in the file"}',
        fix="Write the record as the agent does; compactctl summarize does.",
    ),
    "edited-reasoning": Page(
        name="Signed reasoning that was edited",
        meaning="reasoning whose text is not what its signature was made for",
        why="A provider checks the signature against the text and refuses the request, and every later one.",
        example='two lines with one "signature", and different "thinking"',
        fix="Take the whole block out. Never shorten or mask signed reasoning.",
    ),
    "dangling-parent": Page(
        name="Parent that is not there",
        meaning="a record names a parent that is not in the file",
        why="pi and Qwen Code lose all that is above, in silence; so did older Claude Code.",
        example='{"uuid": "b", "parentUuid": "not in the file", ...}',
        fix="Let the record name the one that stands before it.",
    ),
    "blank-summary": Page(
        name="Empty summary",
        meaning="a compaction whose summary is empty",
        why="The history gave way to nothing: the model goes on without knowing what it was doing.",
        example='{"type": "compaction", "summary": "", ...}',
        fix="Restore the session from before the compaction, or summarise it again.",
    ),
    "unfinished-call": Page(
        name="Unfinished call",
        meaning="the session ends before a tool call is answered",
        why="The run was stopped. Most agents close the call when they resume; a program that sends the messages as "
        "they are is refused.",
        example='{"role": "assistant", "tool_calls": [{"id": "c1", ...}]}<end of file>',
        fix="Resume the session in its agent, or answer the call.",
    ),
    "result-out-of-place": Page(
        name="Result out of place",
        meaning="another message stands between a call and its result",
        why="Chat-completions APIs want the results right behind their calls.",
        example='{"role": "assistant", "tool_calls": [...]}\n{"role": "user", ...}\n{"role": "tool", ...}',
        fix="Move the message behind the results.",
    ),
    "refused-role": Page(
        name="Role that providers refuse",
        meaning="a role that the provider of this format does not take, or no message of a person or the model",
        why="The request fails before a model sees it. A summary under the role system alone leaves nothing to answer.",
        example='{"role": "critic", "content": "looks good"}',
        fix="Say it under the role user, or leave it out.",
    ),
    "empty-content": Page(
        name="Message without content",
        meaning="a message that has no text, no call, no result and no media in it",
        why="Anthropic's API refuses empty messages and empty text blocks; others answer with an empty text.",
        example='{"role": "user", "content": ""}',
        fix="Leave the message out, and let what hangs on it hang on the one before.",
    ),
    "hollow-reasoning": Page(
        name="Reasoning without text and signature",
        meaning="a block of reasoning that has neither a text nor a signature, or a text that nothing signs among "
        "signed ones",
        why="Anthropic's API refuses a block of thinking without its signature; something took it out.",
        example='{"type": "thinking", "thinking": "First I look at...", "signature": ""}',
        fix="Take the whole block out.",
    ),
    "unreachable-output": Page(
        name="Persisted output that is not there",
        meaning="the agent's own preview names a file that is neither there nor beside the session",
        why="The model will try to read the rest of the output and fail. On another machine than the agent's this is "
        "to be expected, unless tool-results/ was copied along.",
        example="<persisted-output>\nOutput too large (61.6KB). Full output saved to: /home/a/.claude/.../b1.txt",
        fix="Copy the session's folder along with it.",
    ),
}
