"""What tokens cost at list prices, where the package genai-prices is installed and knows the model.

Its data is what the package was built with; nothing is looked up anywhere. Importing it takes 0.3 s, so it is imported
when a price is asked for.
"""

import contextlib
import importlib.metadata
from datetime import UTC, datetime

from compactctl.outcome import PriceNote
from compactctl.providers.interface import ProviderUsage
from compactctl.windows import table

PACKAGE = "genai-prices"


def price(model: str | None, usage: ProviderUsage | None) -> PriceNote | None:
    """Return the price of a usage and how old the data is; None where it is not known."""
    if not model or usage is None:
        return None
    try:
        import genai_prices
    except ImportError:
        return None
    counted = genai_prices.Usage(
        input_tokens=usage.input_tokens,
        output_tokens=usage.output_tokens,
        cache_read_tokens=usage.cache_read_tokens or None,
        cache_write_tokens=usage.cache_write_tokens or None,
    )
    version = importlib.metadata.version(PACKAGE)
    known = table()
    is_ours = known.source == f"{PACKAGE} {version}"
    with contextlib.suppress(LookupError, ValueError):
        found = genai_prices.calc_price(counted, model_ref=model, genai_request_timestamp=_moment(known.as_of))
        as_of = f"{known.as_of}, {PACKAGE} {version}" if is_ours else f"{PACKAGE} {version}"
        return PriceNote(float(found.total_price), as_of)
    return None


def _moment(as_of: str) -> datetime:
    """Return the moment whose prices count: that of our own table, so that no clock decides."""
    year, _, month = as_of.partition("-")
    return datetime(int(year), int(month or 1), 1, tzinfo=UTC)
