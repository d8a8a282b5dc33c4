"""B4: the scripted server bills each provider's cache by that provider's rule."""

import json
from typing import Any

import pytest

from hone.core.clock import ManualClock
from hone.core.value import replace
from hone.models.cacherules import LOCAL, find_rule
from hone.models.fake_provider.caching import BLOCK, Billing, Breakpoints, Prefixes, is_misordered
from hone.models.fake_provider.shapes import Format
from tests.models.test_caching import chat, marked

CLOCK = ManualClock()
HOUR = {"cache_control": {"type": "ephemeral", "ttl": "1h"}}
LONG = "A conversation about many things. " * 200
SMALL_TALK = "hello " * 100
GPT, CLAUDE, HAIKU = "gpt-5.4", "claude-sonnet-5-5", "claude-haiku-4-5"
OPENAI, NEWEST = find_rule("openai", GPT), find_rule("openai", "gpt-5.6")
ANTHROPIC = find_rule("anthropic", CLAUDE, "anthropic")


def newest(*texts: str, explicit: tuple[int, ...] = (), key: str = "k") -> bytes:
    """A chat for OpenAI's newest models. With breakpoints, it sets all of them."""
    parts: list[dict[str, Any]] = [{"type": "text", "text": text} for text in texts]
    for mark in explicit:
        parts[mark]["prompt_cache_breakpoint"] = {"mode": "explicit"}
    options = {"prompt_cache_options": {"mode": "explicit"}} if explicit else {}
    messages = [{"role": "user", "content": [part]} for part in parts]
    body = {"model": "gpt-5.6", "prompt_cache_key": key, **options, "messages": messages}
    return json.dumps(body, separators=(",", ":")).encode()


def test_openai_reads_whole_blocks_and_nothing_below_the_minimum() -> None:
    cache = Prefixes(OPENAI, 64, CLOCK)
    short, long = chat(SMALL_TALK), chat(LONG)
    assert [cache.count(short).cached, cache.count(short).cached] == [0, 0]
    cache.count(long)
    again = cache.count(long)
    assert again.cached == again.total - again.total % BLOCK
    assert again.cached >= OPENAI.minimum


@pytest.mark.parametrize(
    ("format", "model", "body"),
    [
        ("openai", GPT, chat(LONG)),
        ("openai", "gpt-5.6", newest(LONG)),
        ("openai", "anthropic/claude-sonnet-5.5", marked(LONG)),
        ("openai", "deepseek/deepseek-v4", chat(LONG)),
        ("anthropic", CLAUDE, marked(LONG)),
    ],
)
def test_every_cache_is_warm_to_the_end_of_its_window_and_cold_after_it(
    format: Format, model: str, body: bytes
) -> None:
    clock = ManualClock()
    billing = Billing(64, clock)
    lasts = {"gpt-5.6": NEWEST.lasts}.get(model, 300.0)
    assert billing.count(format, model, body).cached == 0
    for _ in range(3):  # each use starts the window anew
        clock.advance(lasts)
        warm = billing.count(format, model, body)
        assert warm.cached >= 0.99 * warm.total - BLOCK
    clock.advance(lasts + 1)
    assert billing.count(format, model, body).cached == 0


@pytest.mark.parametrize(("model", "cached"), [(CLAUDE, True), (HAIKU, False)])
def test_anthropic_a_mark_below_the_models_minimum_costs_and_saves_nothing(model: str, cached: bool) -> None:
    billing = Billing(64, CLOCK)
    first, again = (billing.count("anthropic", model, marked(LONG)) for _ in range(2))
    assert first.total < find_rule("anthropic", HAIKU, "anthropic").minimum
    assert (bool(first.written), bool(again.cached)) == (cached, cached)


def test_anthropic_an_hour_holds_for_what_is_marked_with_it_and_is_billed_apart() -> None:
    clock = ManualClock()
    cache = Breakpoints(ANTHROPIC, 64, clock)
    talk = marked(LONG, system=LONG, first=HOUR)
    first = cache.count(talk)
    assert 0 < first.extended < first.written
    clock.advance(301)
    later = cache.count(talk)
    assert (later.cached, later.extended) == (first.extended, 0)
    assert later.written == first.written - first.extended
    clock.advance(3_601)
    assert cache.count(talk) == first


def test_anthropic_the_longer_window_comes_first() -> None:
    assert not is_misordered(marked("a", first=HOUR))
    wrong = marked("a").replace(b'{"type":"ephemeral"}', b'{"type":"ephemeral","ttl":"1h"}')
    wrong = wrong.replace(b',"ttl":"1h"', b"", 1)
    assert is_misordered(wrong)


def test_openais_newest_models_read_at_breakpoints_and_bill_what_they_write() -> None:
    cache = Breakpoints(NEWEST, 64, CLOCK)
    first = cache.count(newest(LONG))
    longer = cache.count(newest(LONG, "yes", "go on"))
    assert (first.cached, first.written) == (0, first.total)
    assert longer.cached == first.total
    assert longer.written == longer.total - longer.cached
    # What two prompts have in common is not enough: nobody wrote there.
    assert cache.count(newest(LONG + "!", "yes")).cached == 0


def test_openais_newest_models_leave_all_breakpoints_to_a_request_that_sets_them() -> None:
    cache = Breakpoints(NEWEST, 64, CLOCK)
    first = cache.count(newest(LONG, explicit=(0,)))
    moved = cache.count(newest(LONG, "yes", "go on", explicit=(2,)))
    kept = cache.count(newest(LONG, "yes", "go on", "well", explicit=(0, 3)))
    assert (first.written, moved.cached, kept.cached) == (first.total, 0, first.total)


def test_requests_with_different_keys_do_not_meet() -> None:
    billing = Billing(64, CLOCK)
    shares = [billing.count("openai", "gpt-5.6", newest(LONG, key=key)).cached for key in "aba"]
    assert shares[:2] == [0, 0]
    assert shares[2]


def test_one_rule_can_hold_for_all() -> None:
    local = Billing(64, CLOCK, LOCAL)
    first, again = (local.count("openai", "anthropic/claude", chat("hi")) for _ in range(2))
    assert (first.cached, again.cached) == (0, again.total)
    assert Billing(64, CLOCK, replace(LOCAL, minimum=10**6)).count("openai", "m", chat("hi")).cached == 0
