"""B4, E3: a review reads from each provider's cache by that provider's rule, and a digest once it is cold."""

import json
from pathlib import Path
from typing import Literal, NamedTuple

import pytest

from hone import Hone
from hone.core.clock import ManualClock
from hone.core.jobs import State
from hone.core.model import Usage
from hone.core.topics import NAMES
from hone.models.cacherules import LOCAL, CacheRule
from hone.models.fake_provider import FakeProvider
from hone.models.fake_provider.caching import unmarked
from hone.models.wrappers import PRICES
from hone.settings import Settings
from hone.settings.sections import ProviderSettings
from tests.conftest import Figures
from tests.wire.test_review import learning

LONG = "a conversation of many words, " * 50_000
SONNET = "claude-sonnet-5-5"


class Case(NamedTuple):
    """A model, how long its provider keeps messages, and how that provider is set up."""

    model: str
    lasts: float
    cache: Literal["5m", "1h"] = "5m"
    format: str = "openai"
    rule: CacheRule | None = None

    def settings(self, url: str) -> Settings:
        provider, _, _ = self.model.partition("/")
        own = ProviderSettings(url if self.format == "anthropic" else f"{url}/v1", self.format)
        return Settings(model=self.model, providers={provider: own}, cache=self.cache, window=2_000_000)


CASES = {
    "OpenAI chat": Case("openai/gpt-5.4", 300),
    "OpenAI chat, newest": Case("openai/gpt-5.6", 1_800),
    "Responses": Case("openai/gpt-5.4", 300, format="responses"),
    "Responses, newest": Case("openai/gpt-5.6", 1_800, format="responses"),
    "Anthropic, 5 minutes": Case(f"anthropic/{SONNET}", 300, format="anthropic"),
    "Anthropic, 1 hour": Case(f"anthropic/{SONNET}", 300, "1h", format="anthropic"),
    "OpenRouter with Anthropic": Case("openrouter/anthropic/claude-sonnet-5.5", 300),
    "OpenRouter with Anthropic, 1 hour": Case("openrouter/anthropic/claude-sonnet-5.5", 300, "1h"),
    "local": Case("ollama/qwen3", 300, rule=LOCAL),
}


async def reviewed(case: Case, folder: Path, silence: float) -> tuple[Usage, list[Usage], list[bytes], int]:
    """A review after some seconds of silence: its first call, those of the conversation, the request of the
    first and of the last of these, and how many messages the review shares."""
    clock = ManualClock()
    async with FakeProvider(learning(thinking=False), clock=clock, rule=case.rule) as stage:
        async with Hone(folder=folder, settings=case.settings(stage.url), clock=clock) as hone:
            session = await hone.session()
            await session.send("look for x")
            await session.send(f"{LONG} and this?")
            clock.advance(silence)
            sent = len(stage.bodies)
            job = await hone.jobs.enqueue(session.id, len(session.transcript), NAMES, "asked", clock.now())
            await hone.reviewer.work(job.id, lambda _: None)
            done = await hone.jobs.job(job.id)
            assert done.state is State.DONE, done.error
            first = (await hone.sessions.spending(done.review))[0].usage
            assert done.cached == first.cached / first.input
            shared = (await hone.sessions.load(done.review)).header.shared
            talk = [row.usage for row in await hone.sessions.spending(session.id)]
        assert stage.invalid == []
    return first, talk, [stage.bodies[sent], stage.bodies[sent - 1]], shared


@pytest.mark.parametrize("name", CASES)
async def test_a_review_within_the_window_finds_its_first_request_in_the_cache(
    name: str, tmp_path: Path, figures: Figures
) -> None:
    case = CASES[name]
    first, talk, bodies, shared = await reviewed(case, tmp_path, 0.8 * case.lasts)
    (longer, _), (shorter, _) = map(unmarked, bodies)
    assert longer.startswith(shorter)
    whole, parent = first.cached / first.input, first.cached / talk[-1].input
    figures(f"{name}: {whole:.2%} of a review's first request cached, {parent:.2%} of its parent's last one")
    assert shared
    assert min(whole, parent) >= 0.99


@pytest.mark.parametrize("name", CASES)
async def test_past_the_window_a_review_reads_a_digest(name: str, tmp_path: Path) -> None:
    case = CASES[name]
    first, _, (body, _), shared = await reviewed(case, tmp_path, case.lasts + 1)
    sent = json.loads(body)
    messages = [each for each in sent.get("messages") or sent["input"] if each["role"] != "system"]
    assert (len(messages), shared) == (1, 0)
    if case.cache == "1h":  # the system text and the tools are still there
        assert first.cached > 1_024
    else:
        assert first.cached == 0


@pytest.mark.parametrize("name", ["Anthropic, 5 minutes", "Anthropic, 1 hour"])
async def test_an_hour_costs_twice_the_price_of_what_it_is_bought_for(name: str, tmp_path: Path) -> None:
    """The first request writes little beside the system text and the tools."""
    _, (first, *_), _, _ = await reviewed(CASES[name], tmp_path, 1)
    price = PRICES[f"anthropic/{SONNET}"]
    assert first.cost is not None
    extended = (first.cost - price.of(first)) * 1_000_000 / (2.0 - 1.25) / price.input
    if name == "Anthropic, 5 minutes":
        assert extended == pytest.approx(0, abs=0.01)
    else:
        assert 0.9 * first.written < extended < first.written
