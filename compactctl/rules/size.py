"""What is too large, or about to be."""

from compactctl.rules.interface import Page

PAGES: dict[str, Page] = {
    "over-window": Page(
        name="Context over the window",
        meaning="the context is larger than what the model takes",
        why="The next request is refused as too long. Some agents compact by themselves then; a compaction that "
        "needs the same window fails, too.",
        example="212,400 tokens where the window is 200,000",
        fix="compactctl spill, or compactctl compact where that is not enough.",
    ),
    "over-threshold": Page(
        name="Context at its threshold",
        meaning="the context has reached the size at which a summary is due",
        why="Little is left for answers; the agent's own compaction comes soon, and decides by itself what is lost.",
        example="171,000 tokens where a summary is due at 167,000",
        fix="compactctl spill moves what is large and loses nothing; compactctl compact does what is due.",
    ),
    "large-result": Page(
        name="Large tool result",
        meaning="a result in context is over layer1.single_limit_bytes",
        why="It is sent again with every request, and is seldom needed whole twice.",
        example="58,351 bytes by Read, where the limit is 50,000",
        fix="compactctl spill moves it to a file and leaves a preview with the path.",
    ),
    "large-round": Page(
        name="Large round",
        meaning="the results of one round are over layer1.round_limit_bytes together",
        why="Parallel calls fill the window at once, though none of their results is over the limit alone.",
        example="eight results of 30,000 bytes each, where the limit is 200,000",
        fix="compactctl spill moves the largest of them.",
    ),
    "large-request": Page(
        name="Request over a byte budget",
        meaning="what is in context is over audit.request_limit_bytes, images included",
        why="Providers limit the bytes of a request beside its tokens, and answer 413. Images carry few tokens and "
        "many bytes, so a session may be stuck at 15 % of its window.",
        example="42 screenshots of 800 kB each",
        fix="Leave images out of the session's older part.",
    ),
    "large-image": Page(
        name="Large image",
        meaning="an image in context is over audit.image_limit_bytes",
        why="Anthropic's API refuses an image of more than 5 MB, and with it every request that has it in its "
        "history, a compaction's, too.",
        example="a screenshot of 8.4 MB",
        fix="Take the image out of the message.",
    ),
    "too-many-images": Page(
        name="Too many images",
        meaning="more images in context than audit.image_limit_count",
        why="Providers limit the images of a request (100 at Anthropic, 50 at some gateways); the session is stuck.",
        example="120 screenshots in one session",
        fix="Take the older ones out.",
    ),
    "heavy-results": Page(
        name="Few results take much of the window",
        meaning="the largest results take more than audit.heavy_results_percent of the window together",
        why="A few results decide how soon the context is full.",
        example="5 results of 400,000 bytes: about 57 % of a window of 200,000 tokens",
        fix="compactctl spill --target 50%",
    ),
}
