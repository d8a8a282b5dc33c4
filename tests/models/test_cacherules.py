"""B4: one table says how each provider caches; marks, the time of a review and costs follow it."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hone.core.clock import ManualClock
from hone.core.model import Usage
from hone.learning.lookback import look_after
from hone.models.cacherules import LOCAL, RULES, UNKNOWN, CacheMarking, CacheRule, find_rule, marks_of
from hone.models.providers import KNOWN, is_local
from hone.models.wrappers import PRICES, Price
from hone.runtime.model_factory import ModelFactory
from hone.settings import Settings
from hone.settings.sections import PriceSettings, ProviderSettings

CONTROL, KEY, BREAKPOINTS = CacheMarking.CONTROL, CacheMarking.KEY, CacheMarking.BREAKPOINTS
AUTOMATIC = CacheMarking.AUTOMATIC
OWN = {
    "mine": ProviderSettings("http://127.0.0.1:9/v1"),
    "proxy": ProviderSettings("http://127.0.0.1:9", "anthropic"),
    "openrouter": ProviderSettings("http://127.0.0.1:9/v1"),
}


def factory(settings: Settings) -> ModelFactory:
    return ModelFactory(settings, ManualClock(), "", lambda _: None)


@pytest.mark.parametrize(
    ("name", "lasts", "minimum", "marking", "write", "read"),
    [
        ("anthropic/claude-sonnet-5-5", 300, 1_024, CONTROL, 1.25, 0.1),
        ("anthropic/claude-opus-5-5", 300, 512, CONTROL, 1.25, 0.1),
        ("anthropic/claude-opus-4-7", 300, 2_048, CONTROL, 1.25, 0.1),
        ("anthropic/claude-haiku-4-5-20251001", 300, 4_096, CONTROL, 1.25, 0.1),
        ("anthropic/something-new", 300, 1_024, CONTROL, 1.25, 0.1),
        ("openai/gpt-5.6-mini", 1_800, 1_024, BREAKPOINTS, 1.25, 0.1),
        ("openai/gpt-5.4", 300, 1_024, KEY, 1.0, 0.1),
        ("openai/gpt-4o-mini", 300, 1_024, KEY, 1.0, 0.5),
        ("openrouter/anthropic/claude-opus-4.6", 300, 4_096, CONTROL, 1.25, 0.1),
        ("openrouter/openai/gpt-5.6", 600, 1_024, AUTOMATIC, 1.25, 0.1),
        ("openrouter/google/gemini-3.1-pro", 300, 4_096, AUTOMATIC, 1.0, None),
        ("openrouter/nobody/knows", 300, 0, AUTOMATIC, 1.0, None),
        ("ollama/qwen3", 300, 0, AUTOMATIC, 1.0, None),
        ("proxy/claude-opus-4-5", 300, 4_096, CONTROL, 1.25, 0.1),
        ("mine/gpt-5.6", 300, 0, AUTOMATIC, 1.0, None),
        ("custom/scripted", 300, 0, AUTOMATIC, 1.0, None),
    ],
)
def test_the_rule_follows_provider_and_model(
    name: str, lasts: float, minimum: int, marking: CacheMarking, write: float, read: float | None
) -> None:
    rule = factory(Settings(providers=OWN)).cache_rule(name)
    assert (rule.lasts, rule.minimum, rule.marking) == (lasts, minimum, marking)
    assert (rule.write, rule.read) == (write, read)


@pytest.mark.parametrize("name", ["anthropic/claude-sonnet-5-5", "openrouter/anthropic/claude-sonnet-5.5"])
def test_an_hour_is_bought_for_the_system_text_and_messages_stay_at_five_minutes(name: str) -> None:
    rule = factory(Settings(cache="1h")).cache_rule(name)
    assert (rule.extended, rule.lasts) == (True, 300)
    assert b'"ttl":"1h"' in marks_of(rule).system
    assert b"ttl" not in marks_of(rule).message


@pytest.mark.parametrize("name", ["openai/gpt-5.4", "openai/gpt-5.6", "ollama/qwen3", "mine/m"])
def test_an_hour_changes_nothing_where_it_is_not_for_sale(name: str) -> None:
    one, other = (factory(Settings(cache=cache, providers=OWN)).cache_rule(name) for cache in ("5m", "1h"))
    assert one == other
    assert not one.extended


def test_no_provider_is_without_a_rule_and_no_rule_is_absurd() -> None:
    rules = [rule for rows in RULES.values() for _, rule in rows]
    rules += [find_rule(each.name, each.default, each.format, local=is_local(each, {})) for each in KNOWN]
    for rule in (*rules, UNKNOWN, LOCAL):
        assert 0 < rule.lasts <= rule.window
        assert 0 <= (rule.read or 0) < 1 <= rule.write
        assert rule.longer is None or (rule.longer.seconds > rule.window and rule.longer.write > rule.write)
    assert all(rows[-1][0] == ("",) for rows in RULES.values())


@given(st.floats(1, 10**6), st.none() | st.floats(1, 10**6))
def test_a_review_is_due_while_the_cache_is_warm_and_after_ten_minutes_at_the_latest(
    window: float, sticky: float | None
) -> None:
    rule = CacheRule(window, sticky=sticky)
    silence = look_after("detach", lambda _: rule)("some/model")
    assert silence is not None
    assert silence == min(0.8 * rule.lasts, 600.0)
    assert look_after("off", lambda _: rule)("some/model") is None


def test_the_time_of_a_review_follows_the_model_of_the_conversation() -> None:
    silence = look_after("detach", factory(Settings()).cache_rule)
    assert [silence(name) for name in ("anthropic/m", "openai/gpt-5.4", "openai/gpt-5.6", "custom/m")] == [
        *(240.0, 240.0),
        *(600.0, 240.0),
    ]


def test_published_prices_follow_the_rule() -> None:
    assert PRICES["anthropic/claude-sonnet-5-5"] == Price(2.0, 10.0, 0.2, 2.5, 4.0)
    assert PRICES["anthropic/claude-haiku-4-5"] == Price(1.0, 5.0, 0.1, 1.25, 2.0)
    assert PRICES["openai/gpt-5.4-mini"] == Price(0.75, 4.5, 0.075, 0.75)


def test_a_price_of_ones_own_takes_from_the_rule_what_it_leaves_out() -> None:
    prices = {
        "openai/gpt-5.6": PriceSettings(2.0, 8.0),
        "anthropic/m": PriceSettings(3.0, 9.0, cached=0.5, written=4.0),
        "mine/m": PriceSettings(1.0, 2.0),
    }
    price = factory(Settings(prices=prices, providers=OWN)).price
    assert price("openai/gpt-5.6") == Price(2.0, 8.0, 0.2, 2.5)
    assert price("anthropic/m") == Price(3.0, 9.0, 0.5, 4.0, 6.0)
    assert price("mine/m") == Price(1.0, 2.0, 1.0, 1.0)
    assert price("mine/other") is None


tokens = st.integers(0, 10**6)


@given(tokens, tokens, tokens, tokens, tokens)
def test_what_is_kept_for_an_hour_costs_its_own_price(
    fresh: int, cached: int, written: int, output: int, extended: int
) -> None:
    price = Price(1.0, 2.0, 0.1, 1.25, 2.0)
    usage = Usage(fresh + cached + written, cached, written, output)
    longer = min(extended, written)
    expected = fresh + 2 * output + 0.1 * cached + 1.25 * (written - longer) + 2 * longer
    assert price.of(usage, extended) == pytest.approx(expected / 1_000_000)
