import pytest

from compactctl.document import Place
from compactctl.estimators import get
from compactctl.media import CLAUDE, CLAUDE_4_7, GEMINI, GEMINI_3, image_pixels, pdf_pages, rule, sealed_tokens
from compactctl.model import Media, Message, ToolResult
from compactctl.settings import Settings, with_changes
from tests.builders.images import encoded, gif, jpeg, png
from tests.builders.messages import NO_FILE

PLACE = Place(0)
EVERY_RULE = [
    rule(name)
    for name in (
        "claude-opus-4-5",
        "claude-opus-4-7",
        "gemini-2.5-pro",
        "gemini-3-pro",
        "gpt-4o",
        "gpt-4o-mini",
        "gpt-5",
        "gpt-5-mini",
        "gpt-5.2",
        "o3",
        "o4-mini",
    )
]


def image(width=0, height=0):
    return Media(PLACE, 9000, "image", width, height)


# by family ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "model, name",
    [
        ("claude-3-5-sonnet-20241022", "Claude before 4.7"),
        ("claude-sonnet-4-20250514", "Claude before 4.7"),
        ("claude-opus-4-6", "Claude before 4.7"),
        ("claude-opus-4-7", "Claude from 4.7"),
        ("us.anthropic.claude-opus-4-8-20260601-v1:0", "Claude from 4.7"),
        ("claude-sonnet-5", "Claude from 4.7"),
        ("anthropic/claude-fable-5-20260401", "Claude from 4.7"),
        ("gemini-2.5-flash", "Gemini"),
        ("google/gemini-3-pro-preview", "Gemini 3"),
        ("gpt-4o-mini-2024-07-18", "gpt-4o-mini"),
        ("gpt-4o", "gpt-4o"),
        ("gpt-4.1", "gpt-4o"),
        ("gpt-4.1-mini", "gpt-5-mini"),
        ("gpt-5-nano", "gpt-5-nano"),
        ("gpt-5.1-codex", "gpt-5"),
        ("openai/gpt-5.3-codex", "gpt-5.2"),
        ("gpt-6-astra", "gpt-5.2"),
        ("o1", "o3"),
        ("o4-mini", "o4-mini"),
        ("qwen3-coder", "Claude before 4.7"),
        (None, "Claude before 4.7"),
    ],
)
def test_the_rule_is_that_of_the_models_family(model, name):
    assert rule(model).name == name


@pytest.mark.parametrize(
    "model, width, height, tokens",
    [
        ("claude-opus-4-5", 1, 1, 1),
        ("claude-opus-4-5", 29, 28, 2),
        ("claude-opus-4-5", 1000, 1000, 1296),
        ("claude-opus-4-5", 1568, 784, 56 * 28),  # at both limits
        ("claude-opus-4-5", 3136, 1568, 56 * 28),  # shrunk to half
        ("claude-opus-4-5", 4000, 4000, 39 * 39),  # shrunk until it is under the token limit
        ("claude-opus-4-5", 100_000, 10, 56),  # a strip keeps at least one patch of height
        ("claude-opus-4-7", 1568, 1568, 56 * 56),  # the newer limits leave it whole
        ("claude-opus-4-7", 4000, 4000, 69 * 69),
        ("gpt-4o", 1024, 1024, 85 + 4 * 170),  # OpenAI's own examples, these two
        ("gpt-4o", 2048, 4096, 85 + 6 * 170),
        ("gpt-4o", 200, 200, 85 + 170),
        ("gpt-4o-mini", 1024, 1024, 2833 + 4 * 5667),
        ("gpt-5", 1024, 1024, 70 + 4 * 140),
        ("o3", 1024, 1024, 75 + 4 * 150),
        ("gpt-4.1-mini", 1024, 1024, 1659),  # 1024 patches x 1.62
        ("gpt-4.1-nano", 320, 320, 246),
        ("gpt-5.2", 1024, 1024, 1229),
        ("gemini-2.5-pro", 384, 384, 258),
        ("gemini-2.5-pro", 385, 385, 258),
        ("gemini-2.5-pro", 1920, 1080, 6 * 258),
        ("gemini-3-pro", 1920, 1080, 1120),
    ],
)
def test_an_image_costs_what_the_family_says(model, width, height, tokens):
    assert rule(model).tokens(image(width, height)) == tokens


@pytest.mark.parametrize("each", EVERY_RULE, ids=lambda each: each.name)
def test_every_image_has_a_bounded_cost_that_is_not_zero(each):
    sizes = [1, 27, 500, 1000, 1400, 1567, 1569, 5000, 65_535]
    costs = [each.tokens(image(width, height)) for width in sizes for height in sizes]
    limit = each.image.unknown if each is not GEMINI else 16 * 258
    assert min(costs) >= 1
    assert max(costs) <= limit
    assert 1 <= each.tokens(image()) <= limit


@pytest.mark.parametrize(
    "item, tokens",
    [
        (Media(PLACE, 9000, "pdf", pages=4), 12_000),
        (Media(PLACE, 9000, "pdf"), 3000),
        (Media(PLACE, 9000, "pdf", pages=900_000), 300_000),
        (Media(PLACE, 9000, "recording"), 3000),
        (Media(PLACE, 9000, "file"), 3000),
        (Media(PLACE, 41, "block"), 12),
    ],
)
def test_documents_cost_their_pages_and_unknown_blocks_their_bytes(item, tokens):
    assert CLAUDE.tokens(item) == tokens
    assert CLAUDE_4_7.tokens(item) == tokens


def test_a_page_costs_gemini_less():
    assert (GEMINI.tokens(Media(PLACE, 9, "pdf", pages=4)), GEMINI_3.tokens(Media(PLACE, 9, "pdf"))) == (1032, 560)


@pytest.mark.parametrize("model, tokens", [("claude-opus-4-5", 39 * 39), ("claude-opus-4-7", 56 * 56)])
def test_an_estimator_counts_images_by_the_model_of_its_session(model, tokens):
    subject = type(NO_FILE)(NO_FILE.document, model)
    message = Message("user", (ToolResult(PLACE, "c1", 0, media=(image(1568, 1568),)),), (0,), 1)
    for name in ("heuristic", "tiktoken:o200k_base"):
        estimator = get(name, Settings(), subject)
        plain = Message("user", (ToolResult(PLACE, "c1", 0),), (0,), 1)
        assert estimator.tokens([message]) - estimator.tokens([plain]) == tokens


def test_a_gateway_that_counts_base64_as_text_is_a_setting():
    settings = with_changes(Settings(), ["estimator.media_as_text=true"])
    message = Message("user", (image(200, 200),), (0,), 1)
    for name in ("heuristic", "tiktoken:o200k_base"):
        beside = get(name, settings, NO_FILE).tokens([message]) - get(name, Settings(), NO_FILE).tokens([message])
        assert beside == 2572 - 64  # 9000 bytes / 3.5, against its pixels


# what a header tells -----------------------------------------------------------------------------------


@pytest.mark.parametrize("head", [png(280, 140), gif(280, 140), jpeg(280, 140)], ids=["png", "gif", "jpeg"])
def test_dimensions_come_from_the_header(head):
    assert image_pixels(encoded(head)) == (280, 140)


@pytest.mark.parametrize(
    "data, pixels",
    [
        ("data:image/png;base64," + encoded(png(280, 280)), (280, 280)),
        (encoded(png(280, 280)) + "A" * 40_000_000, (280, 280)),  # the rest is not decoded
        ("\n".join(encoded(png(280, 280))), (280, 280)),
        (encoded(jpeg(280, 280, padding=30_000)), (280, 280)),
        (encoded(jpeg(280, 280, padding=90_000)), (0, 0)),  # its size stands too far in
        (encoded(png(0, 0)), (0, 0)),
        (encoded(b"<svg width='5' height='5'/>"), (0, 0)),
        (encoded(png(280, 280)[:12]), (0, 0)),
        ("https://example.invalid/cat.png", (0, 0)),
        ("", (0, 0)),
        ("\ud83d é", (0, 0)),
    ],
    ids=range(11),
)
def test_what_has_no_readable_header_has_no_pixels(data, pixels):
    assert image_pixels(data) == pixels


@pytest.mark.parametrize(
    "data, pages",
    [
        (b"%PDF-1.5\n%\xe2\xe3\n4 0 obj\n<</Linearized 1/L 89000/O 6/E 4000/N 17/T 88000/H [ 500 200]>>\nendobj\n", 17),
        (b"%PDF-1.5\n1 0 obj\n<</Type/Catalog/Pages 2 0 R>>\nendobj\n", 0),
        (b"%PDF-1.5\n" + b" " * 2000 + b"<</Linearized 1/N 17>>", 0),
        (b"", 0),
    ],
)
def test_a_pdf_made_for_the_web_says_its_pages(data, pages):
    assert pdf_pages(encoded(data)) == pages


@pytest.mark.parametrize("sealed_bytes, tokens", [(0, 0), (1, 1), (4096, 440), (40_960, 4400)])
def test_sealed_reasoning_costs_a_part_of_its_ciphertext(sealed_bytes, tokens):
    assert sealed_tokens(sealed_bytes) == tokens
