import pytest

from compactctl.media import (
    IMAGE_LIMIT_TOKENS,
    UNREADABLE_IMAGE_TOKENS,
    image_tokens,
    pixel_tokens,
    sealed_tokens,
)
from tests.builders.images import encoded, gif, jpeg, png


@pytest.mark.parametrize(
    "width, height, tokens",
    [
        (1, 1, 1),
        (28, 28, 1),
        (29, 28, 2),
        (200, 200, 64),
        (1000, 1000, 1296),
        (1092, 1092, 39 * 39),
        (1568, 784, 56 * 28),  # at both limits
        (3136, 1568, 56 * 28),  # shrunk to half
        (4000, 4000, 39 * 39),  # shrunk until it is under the token limit
        (100_000, 10, 56),  # a strip keeps at least one patch of height
    ],
)
def test_an_image_costs_its_patches_after_shrinking(width, height, tokens):
    assert pixel_tokens(width, height) == tokens


def test_no_image_costs_more_than_the_limit():
    sizes = [1, 27, 500, 1000, 1400, 1567, 1568, 1569, 5000, 65_535]
    assert max(pixel_tokens(width, height) for width in sizes for height in sizes) <= IMAGE_LIMIT_TOKENS


@pytest.mark.parametrize("head", [png(280, 280), gif(280, 280), jpeg(280, 280)], ids=["png", "gif", "jpeg"])
def test_dimensions_come_from_the_header(head):
    assert image_tokens(encoded(head)) == 100


@pytest.mark.parametrize(
    "data, tokens",
    [
        ("data:image/png;base64," + encoded(png(280, 280)), 100),
        (encoded(png(280, 280)) + "A" * 40_000_000, 100),  # the rest is not decoded
        ("\n".join(encoded(png(280, 280))), 100),
        (encoded(jpeg(280, 280, padding=30_000)), 100),
        (encoded(jpeg(280, 280, padding=90_000)), UNREADABLE_IMAGE_TOKENS),  # its size stands too far in
        (encoded(png(0, 0)), UNREADABLE_IMAGE_TOKENS),
        (encoded(b"<svg width='5' height='5'/>"), UNREADABLE_IMAGE_TOKENS),
        (encoded(png(280, 280)[:12]), UNREADABLE_IMAGE_TOKENS),
        ("https://example.invalid/cat.png", UNREADABLE_IMAGE_TOKENS),
        ("", UNREADABLE_IMAGE_TOKENS),
        ("\ud83d é", UNREADABLE_IMAGE_TOKENS),
    ],
    ids=range(11),
)
def test_every_image_has_a_bounded_cost_that_is_not_zero(data, tokens):
    assert image_tokens(data) == tokens


@pytest.mark.parametrize("sealed_bytes, tokens", [(0, 0), (1, 1), (4096, 440), (40_960, 4400)])
def test_sealed_reasoning_costs_a_part_of_its_ciphertext(sealed_bytes, tokens):
    assert sealed_tokens(sealed_bytes) == tokens
