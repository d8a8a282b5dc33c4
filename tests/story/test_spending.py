"""B4: every model call leaves a row of what it cost, a fork's too; an unknown price stays unknown."""

from collections.abc import Mapping
from pathlib import Path

import pytest

from hone import Hone
from hone.core.messages import assistant
from hone.core.model import Usage
from hone.core.permit import REVIEW
from hone.core.ports import Spending
from hone.core.turn import Origin
from hone.models.fake_provider import FakeProvider
from hone.models.scripted import call, rounds
from hone.settings import Settings
from hone.settings.sections import PriceSettings, ProviderSettings

PRICE = PriceSettings(input=1.0, output=2.0, cached=0.1, written=1.25)


def cost(usage: Usage) -> float:
    fresh = usage.input - usage.cached - usage.written
    return (fresh * 1.0 + usage.output * 2.0 + usage.cached * 0.1 + usage.written * 1.25) / 1_000_000


async def spent(
    format: str, folder: Path, prices: Mapping[str, PriceSettings] | None = None
) -> tuple[list[Spending], list[Spending], int]:
    """The rows of a conversation and of its fork, and how many requests there were."""
    async with FakeProvider(rounds(assistant("I look.", call("todo")), "done")) as stage:
        url = f"{stage.url}/v1" if format == "openai" else stage.url
        settings = Settings(
            model="stage/scripted", providers={"stage": ProviderSettings(url, format)}, prices=prices or {}
        )
        async with Hone(folder=folder, settings=settings) as hone:
            session = await hone.session()
            await session.send("do it")
            fork = session.fork(REVIEW, Origin.REVIEW)
            await fork.send("what did you learn?")
            rows = [list(await hone.sessions.spending(each.id)) for each in (session, fork)]
            assert [*rows[0], *rows[1]] == list(await hone.sessions.spending())
        return rows[0], rows[1], len(stage.bodies)


@pytest.mark.parametrize("format", ["openai", "anthropic"])
async def test_every_call_has_a_row_and_a_forks_first_one_is_nearly_all_cached(
    format: str, tmp_path: Path
) -> None:
    own, forked, requests = await spent(format, tmp_path)
    assert (len(own), len(forked), requests) == (2, 2, 4)
    assert {row.model for row in own + forked} == {"stage/scripted"}
    assert ({row.origin for row in own}, {row.origin for row in forked}) == ({Origin.USER}, {Origin.REVIEW})
    assert own[0].usage.cached == 0
    assert forked[0].usage.cached >= 0.99 * own[-1].usage.input
    assert all(row.usage.input > row.usage.cached and row.usage.output > 0 for row in own + forked)


@pytest.mark.parametrize("format", ["openai", "anthropic"])
async def test_a_price_from_the_settings_counts_cached_tokens_apart(format: str, tmp_path: Path) -> None:
    own, forked, _ = await spent(format, tmp_path, prices={"stage/scripted": PRICE})
    for row in own + forked:
        assert row.usage.cost == pytest.approx(cost(row.usage))
        assert row.usage.cost


async def test_an_unknown_price_is_unknown_and_not_nothing(tmp_path: Path) -> None:
    own, forked, _ = await spent("openai", tmp_path)
    assert [row.usage.cost for row in own + forked] == [None] * 4


async def test_a_known_model_needs_no_price_in_the_settings(tmp_path: Path) -> None:
    async with FakeProvider(rounds("done")) as stage:
        provider = {"openai": ProviderSettings(f"{stage.url}/v1")}
        async with Hone(
            folder=tmp_path, settings=Settings(model="openai/gpt-5.4", providers=provider)
        ) as hone:
            turn = await hone.run("do it")
    (usage,) = turn.usage
    assert usage.cost
    assert usage.cost == pytest.approx((usage.input * 2.5 + usage.output * 15.0) / 1_000_000)
