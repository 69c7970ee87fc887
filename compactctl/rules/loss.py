"""What a compaction lost that was needed again."""

from compactctl.rules.interface import Page

PAGES: dict[str, Page] = {
    "lost-after-compaction": Page(
        name="Lost in a compaction",
        meaning="much of what later calls name had been known and is not in the context after a compaction",
        why="The agent has to find again what it knew: paths, ids, names, commands. What it doesn't look for, it "
        "guesses.",
        example="64 of 80 things used again are gone (path 20 of 31, identifier 44 of 49): src/rows.py (line 812), …",
        fix="Compact with a summary that keeps facts literally (compactctl compact), or say in the instructions for a "
        "compaction what has to stay. audit.lost_percent and audit.lost_count say from where on it is told.",
    ),
    "lost-instruction": Page(
        name="Lost instruction",
        meaning="what a person had asked for is not in the context after a compaction, and was asked for again",
        why="Until it was said again the agent worked against it, or might have.",
        example="not in the context after it, and said again at line 640: Never edit the generated files.",
        fix="Put what always holds into the project's instructions (CLAUDE.md, AGENTS.md): no compaction touches them.",
    ),
    "read-again": Page(
        name="Files read again",
        meaning="many of the files that were read after a compaction had been read before it",
        why="Each is paid for twice, and fills the context that was just made free.",
        example="23 of 30 reads until the next compaction read a file again (412,000 bytes): src/rows.py, src/table.py",
        fix="Spill large results (compactctl spill), so that a compaction comes later, or have the summary say what "
        "the files hold. audit.read_again_percent and audit.read_again_count say from where on it is told.",
    ),
}
