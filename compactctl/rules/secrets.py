"""Credentials in the session or beside it."""

from compactctl.rules.interface import Page

PAGES: dict[str, Page] = {
    "secret": Page(
        name="Credential",
        meaning="a text of the shape of a known kind of credential; its value is never told",
        why="Transcripts are shared, uploaded as artifacts and sent to models. Whoever has the file has the key, and a "
        "summary or a spilled file may carry it on.",
        example="aws-access-key in the result of call c7 (fingerprint 3f2a91c0d4e1)",
        fix="Revoke the key. Then take it out of the session, and of what was spilled from it.",
    ),
    "possible-secret": Page(
        name="Possible credential",
        meaning="a value that was given to a name which says that it is secret; its value is never told",
        why="The same, where only the name tells: PASSWORD=..., api_key: ... Some are examples.",
        example="named-secret in the arguments of call c3 (fingerprint 77d0b1aa02c4)",
        fix="Look at the line. Revoke it if it is real; put the finding into a baseline if it is not.",
    ),
}
