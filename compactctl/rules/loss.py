"""What a compaction lost that was needed again."""

from compactctl.rules.interface import Page

PAGES: dict[str, Page] = {}
