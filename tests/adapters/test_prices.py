"""Prices of real models, against sums made by hand from the list that comes with the genai-prices package."""

import subprocess
import sys
from collections.abc import Iterator
from datetime import UTC, datetime
from decimal import Decimal, localcontext

import pytest
from genai_prices.data import providers
from genai_prices.types import ClauseEquals, ModelInfo, ModelPrice, Provider, Tier, TieredPrices

from remit.adapters.prices import REMEMBERED, KnownPrices, Price, Usage
from remit.errors import BadInput
from remit.ports import Prices
from remit.testing import FakeClock

MILLION = 1_000_000


@pytest.fixture(scope="module")
def known() -> Prices:
    return KnownPrices()


@pytest.fixture
def discount() -> Iterator[str]:
    """A model as the list may have one some day: $10, and beyond 1,000 tokens $1 for all of them."""
    price = ModelPrice(input_mtok=TieredPrices(Decimal(10), [Tier(1_000, Decimal(1))]), output_mtok=Decimal(0))
    seller = Provider("discount", "Discount", "", models=[ModelInfo("bulk", ClauseEquals("bulk"), prices=price)])
    providers.append(seller)
    yield "discount:bulk"
    providers.remove(seller)


def at(hour: int, minute: int = 0) -> KnownPrices:
    """Prices at a time of one day."""
    moment = datetime(2026, 3, 2, hour, minute, tzinfo=UTC).timestamp()
    return KnownPrices(clock=FakeClock(int(moment) * MILLION))


# --- the list ----------------------------------------------------------------------------------


@pytest.mark.rule("prices.known")
@pytest.mark.parametrize(
    ("model", "usage", "millionths"),
    [
        # $2.50 input, $1.25 from the cache, $10 output
        ("gpt-4o", Usage(1_000, 500), 2_500 + 5_000),
        ("gpt-4o", Usage(1_000, 500, cached_input=200), 2_000 + 250 + 5_000),
        ("gpt-4o", Usage(1_000, 500, cache_written=200), 2_500 + 5_000),  # has no price of its own
        # $0.15, $0.075, $0.60: rounded up
        ("gpt-4o-mini", Usage(1), 1),
        ("gpt-4o-mini", Usage(7, 3), 3),  # 1.05 + 1.8
        ("gpt-4o-mini", Usage(1_000, 1_000, cached_input=1_000), 75 + 600),
        # $0.80, $0.08 from the cache, $1 into it, $4
        ("claude-3-5-haiku-latest", Usage(1_000, 100, cached_input=500, cache_written=300), 160 + 40 + 300 + 400),
        # $1.60 into it for an hour
        ("claude-3-5-haiku-latest", Usage(1_000, cache_written=1_000, cache_written_1h=1_000), 1_600),
        ("claude-3-5-haiku-latest", Usage(1_000, cache_written=300, cache_written_1h=200), 560 + 100 + 320),
        ("gpt-4o", Usage(1_000, cache_written=200, cache_written_1h=200), 2_500),
        # $1 input and output, and $12 for a thousand requests
        ("perplexity:sonar", Usage(1_000, 1_000), 1_000 + 1_000 + 12_000),
        ("perplexity:sonar", Usage(1_000, 1_000, requests=3), 2_000 + 36_000),
        ("perplexity:sonar", Usage(requests=0), 0),
        # $0.02 input, and no output at all
        ("openai:text-embedding-3-small", Usage(100_000), 2_000),
    ],
)
def test_a_listed_model_costs_what_the_list_says(known: Prices, model: str, usage: Usage, millionths: int):
    assert known.cost(model, usage) == millionths


@pytest.mark.rule("prices.known")
@pytest.mark.parametrize(
    ("usage", "millionths"),
    [
        (Usage(200_000, 1_000), 600_000 + 15_000),  # $3 and $15
        (Usage(200_001, 1_000), 1_200_006 + 22_500),  # all of it at $6 and $22.50
        (Usage(200_001, 0, cached_input=100_000, cache_written=100_000), 6 + 60_000 + 750_000),
    ],
)
def test_long_input_is_paid_at_its_step_of_the_price(known: Prices, usage: Usage, millionths: int):
    assert known.cost("claude-sonnet-4-5", usage) == millionths


@pytest.mark.rule("prices.known")
def test_a_price_that_depends_on_the_hour_is_that_of_the_hour():
    usage = Usage(MILLION, MILLION)

    assert at(12).cost("deepseek-chat", usage) == 270_000 + 1_100_000
    assert at(20).cost("deepseek-chat", usage) == 135_000 + 550_000


@pytest.mark.rule("prices.known")
@pytest.mark.parametrize("model", ["gpt-4o", "GPT-4o", "openai:gpt-4o", "openai/gpt-4o", "azure:gpt-4o"])
def test_a_model_may_be_named_with_its_provider(known: Prices, model: str):
    assert known.cost(model, Usage(1_000)) == 2_500


@pytest.mark.rule("prices.known")
def test_sums_are_exact_whatever_the_program_does_with_decimals(known: Prices):
    with localcontext() as careless:
        careless.prec = 2

        assert known.cost("gpt-4o", Usage(123_456_789, 987_654_321)) == 308_641_973 + 9_876_543_210


# --- the worst case ----------------------------------------------------------------------------


@pytest.mark.rule("prices.worst")
@pytest.mark.parametrize(
    ("model", "tokens", "output", "millionths"),
    [
        ("gpt-4o", 1_000, 500, 2_500 + 5_000),
        ("claude-3-5-haiku-latest", 1_000, 100, 1_600 + 400),  # all of it into the cache, for an hour
        ("claude-sonnet-4-5", 200_000, 1_000, 1_200_000 + 15_000),
        ("claude-sonnet-4-5", 300_000, 1_000, 3_600_000 + 22_500),
        ("perplexity:sonar", 1_000, 1_000, 2_000 + 12_000),
        ("openai:text-embedding-3-small", 100_000, 0, 2_000),
    ],
)
def test_the_worst_case_takes_the_dearest_reading(known: Prices, model: str, tokens: int, output: int, millionths: int):
    assert known.worst(model, tokens, output) == millionths


@pytest.mark.rule("prices.worst")
def test_the_worst_case_knows_that_a_dearer_hour_may_come_and_a_dearer_year_is_over():
    assert at(23, 59).worst("deepseek-chat", MILLION, MILLION) == 270_000 + 1_100_000
    assert at(12).worst("openai:o3", MILLION, MILLION) == 2_000_000 + 8_000_000  # it was $10 and $40 once


@pytest.mark.rule("prices.worst")
@pytest.mark.parametrize(
    "model", ["gpt-4o", "claude-sonnet-4-5", "gemini-2.5-pro", "deepseek-chat", "perplexity:sonar"]
)
def test_nothing_within_the_limits_costs_more_than_the_worst_case(known: Prices, model: str):
    worst = known.worst(model, 250_000, 2_000)
    assert worst is not None

    for tokens in (0, 1, 199_999, 200_000, 200_001, 250_000):
        for cached, written in ((0, 0), (tokens, 0), (0, tokens), (tokens // 3, tokens // 2)):
            cost = known.cost(model, Usage(tokens, 2_000, cached, written))
            assert cost is not None
            assert cost <= worst


@pytest.mark.rule("prices.worst")
def test_the_worst_case_knows_that_less_input_may_be_dearer(discount: str):
    known = KnownPrices()

    assert known.cost(discount, Usage(2_000)) == 2_000
    assert known.cost(discount, Usage(1_000)) == known.worst(discount, 2_000, 0) == 10_000
    assert known.worst(discount, 900, 0) == 9_000


# --- overrides ---------------------------------------------------------------------------------


@pytest.mark.rule("prices.override")
@pytest.mark.parametrize(
    ("written", "asked", "holds"),
    [
        ("gpt-4o", "gpt-4o", True),
        ("gpt-4o", "openai:gpt-4o", True),
        ("gpt-4o", "azure/gpt-4o", True),
        ("openai:gpt-4o", "openai/gpt-4o", True),
        ("openai/gpt-4o", "openai:gpt-4o", True),
        ("openai:gpt-4o", "azure:gpt-4o", False),
        ("openai:gpt-4o", "gpt-4o", False),
        ("openrouter/openai/gpt-4o", "openrouter:openai/gpt-4o", True),
        ("gpt-4o-mini", "gpt-4o", False),
    ],
)
def test_an_override_holds_for_its_model_however_it_is_spelled(written: str, asked: str, holds: bool):
    known = KnownPrices({written: Price("$1", "$2")})

    assert (known.cost(asked, Usage(1_000, 1_000)) == 3_000) is holds
    assert (known.worst(asked, 1_000, 1_000) == 3_000) is holds


@pytest.mark.rule("prices.override")
def test_an_override_prices_what_nobody_else_knows_and_the_nearest_one_wins():
    known = KnownPrices({"llama": Price(0, 0), "ours:llama": Price("$0.10", "$0.20", request="$0.01")})

    assert known.cost("ours/llama", Usage(1_000, 1_000, requests=2)) == 300 + 20_000
    assert known.cost("ollama:llama", Usage(1_000, 1_000)) == 0
    assert known.worst("ollama:llama", 1_000, 1_000) == 0


@pytest.mark.rule("prices.override")
def test_changing_the_overrides_later_changes_nothing():
    overrides = {"gpt-4o": Price("$1", "$2")}
    known = KnownPrices(overrides)
    overrides.clear()

    assert known.cost("gpt-4o", Usage(1_000, 1_000)) == 3_000


@pytest.mark.rule("input.told")
@pytest.mark.parametrize(
    ("wrong", "sentence"),
    [
        (["gpt-4o"], "overrides takes a dictionary of prices"),
        ({"gpt-4o": "$1"}, r"the override for gpt-4o takes Price\(\.\.\.\)"),
        ({7: Price(0, 0)}, "an override is for a model, which is named by text"),
    ],
)
def test_overrides_are_prices_of_models(wrong, sentence):
    with pytest.raises(BadInput, match=sentence):
        KnownPrices(wrong)


# --- what is not known -------------------------------------------------------------------------


@pytest.mark.rule("prices.unknown")
@pytest.mark.parametrize(
    "model", ["nonsense", "", ":", "openai:nonsense", "gpt-99", "ollama:llama3", "nobody/gpt-4o", "x" * 10_000]
)
def test_a_model_without_a_price_has_none_and_is_never_free(known: Prices, model: str):
    for _ in range(2):
        assert known.cost(model, Usage(1_000, 1_000)) is None
        assert known.cost(model, Usage()) is None
        assert known.worst(model, 1_000, 1_000) is None


@pytest.mark.rule("prices.unknown")
@pytest.mark.parametrize(
    ("model", "what"), [("openai:text-embedding-3-small", "output"), ("groq:whisper-large-v3", "tokens at all")]
)
def test_what_the_list_has_no_price_for_is_not_free_either(known: Prices, model: str, what: str):
    assert known.cost(model, Usage(1_000, 1_000)) is None, what
    assert known.worst(model, 1_000, 1_000) is None, what


@pytest.mark.rule("prices.unknown")
def test_any_number_of_unknown_names_is_answered():
    known = KnownPrices()

    assert all(known.cost(f"nobody-{number}", Usage(1)) is None for number in range(REMEMBERED + 10))
    assert known.cost("gpt-4o", Usage(1_000)) == 2_500


@pytest.mark.rule("input.told")
def test_what_is_not_a_usage_or_a_model_is_refused(known: Prices):
    with pytest.raises(BadInput, match=r"usage takes Usage\(\.\.\.\), not None"):
        known.cost("gpt-4o", None)  # pyright: ignore[reportArgumentType]
    with pytest.raises(BadInput, match="a model is named by text, not None"):
        known.cost(None, Usage())  # pyright: ignore[reportArgumentType]
    with pytest.raises(BadInput, match="usage: input is a whole number of at least 0"):
        known.worst("gpt-4o", -1, 0)


# --- the package -------------------------------------------------------------------------------

OFFLINE = """
import sys, threading

def heard(event, _):
    if event.startswith("socket."):
        raise SystemExit(f"it went to the network: {event}")

sys.addaudithook(heard)
from remit.adapters.prices import KnownPrices, Usage
assert "genai_prices" not in sys.modules
known = KnownPrices()
known.cost("gpt-4o", Usage(1)), known.worst("gpt-4o", 1, 1), known.cost("nobody", Usage(1))
print(threading.active_count())
"""

MISSING = """
import sys

sys.modules["genai_prices"] = None
from remit.adapters.prices import KnownPrices
KnownPrices()
"""


@pytest.mark.rule("prices.known")
def test_nothing_is_ever_fetched_and_the_package_is_imported_only_when_it_is_needed():
    done = subprocess.run([sys.executable, "-W", "error", "-c", OFFLINE], capture_output=True, text=True)

    assert (done.returncode, done.stdout.strip()) == (0, "1"), done.stderr


@pytest.mark.rule("input.told")
def test_a_missing_package_is_told_with_what_to_install():
    done = subprocess.run([sys.executable, "-c", MISSING], capture_output=True, text=True)

    assert "KnownPrices needs the genai-prices package; pip install 'remit[prices]'" in done.stderr
