"""I3: stored texts that would run as markup, shown on every page, with and without the policy."""

import json
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from playwright.async_api import Browser

from hone import Hone
from hone.core.ledger import USER
from hone.core.messages import Message, Role, Text, assistant
from hone.core.skill import SkillOrigin
from hone.knowledge.journal import Add
from hone.knowledge.keeper import OWNER
from hone.knowledge.skills.folder import Create, WriteFile
from hone.models.fake_provider import FakeProvider
from hone.models.scripted import call
from hone.settings import Learning, Memory, Settings
from tests.browser.strings import strings
from tests.browser.tab import Tab, chromium, opened
from tests.conftest import Figures, Tier
from tests.faults.furnish import furnish, provider
from tests.web.rig import Running, running

ROOMY = Settings(memory=Memory(memory=10**6, user=10**6), learning=Learning(turns=0, iterations=0))
COUNT = "window.told = []; window.ran = mark => window.told.push(mark)"
UNFOLD = "() => document.querySelectorAll('details').forEach(each => { each.open = true })"
FOREIGN = """() => [...document.querySelectorAll("main *, #notices *")].filter(each =>
  /^(script|img|iframe|object|embed|video|audio|link|style|base|meta|math|marquee|template|body)$/i.test(each.tagName)
  || [...each.attributes].some(own => /^on/i.test(own.name) || /javascript:/i.test(own.value)
    && !["value", "aria-label", "title", "placeholder", "data-key"].includes(own.name)))
  .map(each => each.outerHTML.slice(0, 200))"""
WORDS = """() => document.querySelector("main").textContent
  + [...document.querySelectorAll("textarea, input")].map(each => each.value).join(" ")"""
BATCH = 25
TAKE = """text => {
  const each = document.createElement("div");
  each.innerHTML = text;
  document.body.append(each);
}"""
NAMES = ("apple", "birch", "cedar", "dune", "elm")


@dataclass(frozen=True)
class Planted:
    mark: str
    text: str
    session: str
    skill: str


def parrot(messages: Sequence[Message]) -> Message:
    """Puts what it hears into a call, a lesson and an answer."""
    asked = [at for at, each in enumerate(messages) if each.role is Role.USER]
    words, since = messages[asked[-1]].text, messages[asked[-1] + 1 :]
    if "look back over" in words:
        words = messages[asked[-2]].text
        lesson = call("memory", action="add", target="memory", text=words, reason=words, evidence=["#2"])
        return assistant(words) if since else assistant(words, lesson)
    return assistant(words) if since else assistant(words, call("read_file", path=words))


async def plant(hone: Hone, mark: str, text: str, number: int) -> Planted:
    """In a conversation, its title and its template, a review and its error, the journal, a skill."""
    example = Message(Role.USER, (Text("An example."),), template=text)
    session, now = await hone.session(told=[example, assistant("Like this.")]), datetime.now(UTC)
    await session.send(text)
    await hone.sessions.rename(session.id, " ".join(text.split()))
    topics, length = frozenset({"memory"}), len(session.transcript)
    await hone.jobs.enqueue(session.id, length, topics, text, now)
    await hone.background.drain()
    job = await hone.jobs.enqueue(session.id, length, topics, text, now)
    await hone.jobs.fail(job.id, text, now, again=False)
    keeper, name = hone.keeper, f"{NAMES[number % 5]}-{NAMES[number // 5]}-notes"
    await keeper.note([(USER, Add(text))], OWNER)
    described = f"---\nname: {name}\ndescription: {json.dumps(' '.join(text.split()))}\n---\n\n{text}\n"
    await keeper.edit_skill(name, Create(described, SkillOrigin.USER), OWNER)
    await keeper.edit_skill(name, WriteFile("references/more.md", text.encode()), OWNER)
    return Planted(mark, text, session.id, name)


@asynccontextmanager
async def watched(browser: Browser, visit: Running, *, policy: bool) -> AsyncIterator[Tab]:
    async with opened(browser, visit, bypass_csp=not policy) as tab:
        await tab.page.context.add_init_script(COUNT)
        await tab.page.reload()
        await tab.ready()
        yield tab


async def shown(tab: Tab, place: str, marks: Sequence[str]) -> None:
    """A page, unfolded: every text is there as text, and nothing of it as anything else."""
    await tab.go(place)
    await tab.page.evaluate(UNFOLD)
    await tab.quiet()
    words = await tab.page.evaluate(WORDS)
    assert [mark for mark in marks if mark not in words] == [], place
    assert await tab.page.evaluate(FOREIGN) == [], place


async def visited(tab: Tab, planted: Sequence[Planted], *, talk: bool) -> int:
    """Gives how many pages were seen."""
    marks = [each.mark for each in planted]
    places = ["learning", "journal", "skills", "sessions", "reviews"]
    for place in places:
        await shown(tab, f"#/{place}", marks)
    await shown(tab, "#/figures", [])
    for each in planted:
        await shown(tab, f"#/sessions/{each.session}", [each.mark])
        assert each.mark in await tab.page.locator(".said.example .meta").first.inner_text()
        await shown(tab, f"#/skills/{each.skill}", [each.mark])
        await shown(tab, f"#/chat/{each.session}", [each.mark])
        if talk:
            await shown(tab, f"#/sessions?q={each.mark}", [each.mark])
            await said(tab, each)
    return len(places) + 1 + len(planted) * (5 if talk else 3)


async def said(tab: Tab, each: Planted) -> None:
    """Typed into the chat, and streamed back."""
    await tab.go("#/chat")
    await tab.page.get_by_label("Message").fill(each.text)
    await tab.page.get_by_role("button", name="Send").click()
    await tab.page.locator(".said.assistant footer").wait_for()
    await tab.page.evaluate(UNFOLD)
    assert each.mark in await tab.page.locator(".said.assistant").last.inner_text()
    assert await tab.page.evaluate(FOREIGN) == []


async def taken_for_markup(tab: Tab, texts: Sequence[str]) -> int:
    """How many run where they are taken for markup: what this test can see."""
    for text in texts:
        await tab.page.evaluate(TAKE, text)
    await tab.page.wait_for_function("() => window.told.length > 0")
    return len(await tab.page.evaluate("() => [...new Set(window.told)]"))


async def test_no_stored_text_runs_on_any_page(tmp_path: Path, tier: Tier, figures: Figures) -> None:
    every = strings()
    chosen = [every[draw.index] for draw in tier.draws(short=4, full=len(every))]
    tried = pages = control = 0
    ran: list[str] = []
    async with chromium() as browser:
        for start in range(0, len(chosen), BATCH):
            home, batch = tmp_path / f"home{start}", chosen[start : start + BATCH]
            async with (
                FakeProvider(parrot) as stage,
                furnish(home, tmp_path, provider("openai", stage.url), settings=ROOMY) as hone,
            ):
                planted = [await plant(hone, *each, place) for place, each in enumerate(batch)]
            async with running(home, tmp_path, parrot, settings=ROOMY) as visit:
                for policy in (True, False):
                    async with watched(browser, visit, policy=policy) as tab:
                        pages += await visited(tab, planted, talk=policy)
                        ran += [*tab.trouble.ran, *await tab.page.evaluate("() => window.told")]
                        assert tab.trouble.said == []
                        if not policy:
                            control += await taken_for_markup(tab, ["<img src=x onerror='ran(`c`)'>"])
                tried += len(planted)
    marks = [mark for mark, _ in every]
    at = [marks.index(mark) for mark in {*ran} & {*marks}]
    figures.tally(tried, got_in=len(ran), note=f"texts on {pages:,} pages", at=at)
    assert ran == []
    assert control > 0, "a text that runs is not noticed"
