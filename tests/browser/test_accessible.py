"""I3: axe-core finds nothing on any view, light and dark, on a desk and on a phone."""

from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from importlib.resources import files
from itertools import product
from pathlib import Path

import pytest
from playwright.async_api import Route

from hone.core.messages import assistant
from hone.models.scripted import call, rounds, rules
from tests.browser import shelf, tale
from tests.browser.pictures import PLACES, place
from tests.browser.tab import DESKTOP, PHONE, Scheme, Tab, chromium, opened
from tests.conftest import Figures, Tier
from tests.web.rig import listen, running

AXE = (files("axe_playwright_python") / "axe.min.js").read_text()
RUN = """() => axe.run(document, {resultTypes: ["violations"]}).then(({violations}) =>
  violations.map(each => `${each.id}: ${each.nodes.map(node => node.html.slice(0, 200)).join(" ; ")}`))"""
SCHEMES: tuple[Scheme, ...] = ("light", "dark")
WRITES = assistant(call("terminal", command="git reset --hard && touch done"))
SCRIPT = rules(("throw it away", rounds(WRITES, "As you say.")), otherwise=shelf.script)
EMPTY = ("start", "login")
"""What is seen in a home without a conversation."""
Act = Callable[[Tab], Awaitable[object]]


async def palette(tab: Tab) -> None:
    await tab.page.keyboard.press("Control+k")


async def keys(tab: Tab) -> None:
    await tab.page.locator(".thread").focus()
    await tab.page.keyboard.press("?")


async def suggestions(tab: Tab) -> None:
    await tab.page.get_by_label("Message").fill("/")
    await tab.page.locator(".suggest li").first.wait_for()


async def known(tab: Tab) -> None:
    opener = tab.page.get_by_role("button", name="What Hone knows")
    if await opener.is_visible():
        await opener.click()
    for each in await tab.page.locator(".knows summary").all():
        await each.click()


async def conversations(tab: Tab) -> None:
    opener = tab.page.get_by_role("button", name="Conversations", exact=True)
    if await opener.is_visible():
        await opener.click()
    await tab.page.get_by_label("Search conversations").fill("release")


async def question(tab: Tab) -> None:
    await tab.page.get_by_label("Message").fill("Please throw it away.")
    await tab.page.get_by_label("Message").press("Enter")
    await tab.page.get_by_label("A question to you").wait_for()


async def plan(tab: Tab) -> None:
    await tab.page.get_by_role("button", name="Show the plan").click()
    await tab.page.locator(".change .diff").first.wait_for()


async def comparison(tab: Tab) -> None:
    await tab.page.get_by_role("button", name="Compare the checked ones").click()
    await tab.page.get_by_role("heading", name="Comparison").wait_for()


async def unfolded(tab: Tab) -> None:
    await tab.page.evaluate(
        "() => document.querySelectorAll('main details').forEach(each => each.open = true)"
    )


async def nothing(_: Tab) -> None: ...


async def start(tab: Tab) -> None:
    """A home without a conversation and without a model."""

    async def answer(route: Route) -> None:
        status = await (await route.fetch()).json()
        await route.fulfill(json={**status, "model": "", "trouble": "No model can be used."})

    await tab.page.route("**/api/status", answer)
    await tab.page.reload()
    await tab.page.get_by_label("Connect a model").wait_for()


async def login(tab: Tab) -> None:
    """A browser that is not signed in, where a password is set."""
    await tab.page.context.clear_cookies()
    await tab.page.goto(tab.url)
    await tab.page.get_by_label("Password").wait_for()


STATES: dict[str, Act] = {
    "start": start,
    "login": login,
    **dict.fromkeys(PLACES, nothing),
    "curator": plan,
    "backends": comparison,
    **dict.fromkeys(("template", "experiment"), unfolded),
    "palette": palette,
    "keys": keys,
    "suggestions": suggestions,
    "known": known,
    "conversations": conversations,
    "question": question,
}


async def complaints(tab: Tab) -> list[str]:
    await tab.quiet()
    await tab.page.evaluate(AXE)
    return list(await tab.page.evaluate(RUN))


@pytest.mark.timeout(1800)  # a hundred pages, with --long
async def test_axe_finds_nothing_on_any_view(
    home: Path, tmp_path: Path, tier: Tier, figures: Figures
) -> None:
    every = list(product(STATES, (DESKTOP, PHONE), SCHEMES))
    found: dict[str, list[str]] = {}
    (tmp_path / "changes.txt").write_text(tale.CHANGES)
    if tier.long:
        await tale.lived(home, tmp_path, datetime.now(UTC))
    async with (
        running(home, tmp_path, SCRIPT, settings=tale.SETTINGS) as visit,
        running(tmp_path / "empty", tmp_path, password="seven green lamps") as empty,
        chromium() as browser,
    ):
        session = (await visit.post("/api/sessions", text=tale.ASKED))["session"]
        await shelf.stock(visit, home, session)
        if tier.long:
            await listen(visit.client, f"/api/sessions/{session}/events", "learned")
        places = {"start": "#/chat", "login": "#/chat", "question": "#/chat", "skill": "#/skills/code-review"}
        for draw in tier.draws(short=2, full=len(every)):
            name, size, scheme = every[draw.index]
            async with opened(browser, empty if name in EMPTY else visit, size, scheme) as tab:
                there = name if name in PLACES else "chat"
                await tab.go(places.get(name) or place(there, session))
                await STATES[name](tab)
                found[f"{name} at {size[0]}, {scheme}"] = await complaints(tab)
    figures.tally(len(found), got_in=sum(map(len, found.values())), note="views checked by axe-core")
    assert {view: told for view, told in found.items() if told} == {}
