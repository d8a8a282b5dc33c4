"""I3: stored texts that would run as markup, shown on every page, with and without the policy."""

import asyncio
import json
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

import pytest
from playwright.async_api import Browser, FilePayload

from hone import Hone
from hone.core.curation import UNNUMBERED, CuratorRun
from hone.core.ids import SessionId
from hone.core.ledger import USER
from hone.core.messages import Message, Role, Text, assistant
from hone.core.skill import SkillOrigin
from hone.core.trust import Trust
from hone.features.experiments.store import Studies
from hone.features.experiments.values import Check, Lesson, LessonKind, Study, Task
from hone.features.templates.part import TemplatesPart
from hone.features.templates.values import Example, Template, WorkKind
from hone.files.documents import FileDocuments
from hone.knowledge.journal import Add
from hone.knowledge.keeper import OWNER
from hone.knowledge.skills.folder import Create, WriteFile
from hone.models.fake_provider import FakeProvider
from hone.models.scripted import call
from hone.runtime.permissions.rules import Rule
from hone.settings import Settings
from hone.settings.sections import Learning, Memory
from tests.browser.strings import strings
from tests.browser.tab import Tab, chromium, opened
from tests.conftest import Figures, Tier
from tests.faults.furnish import furnish, provider
from tests.web.rig import Running, running

ROOMY = Settings(memory=Memory(memory=10**6, user=10**6), learning=Learning(turns=0, iterations=0))
COUNT = "window.told = []; window.ran = mark => window.told.push(mark)"
UNFOLD = "() => document.querySelectorAll('details').forEach(each => { each.open = true })"
FOREIGN = """() => [...document.querySelectorAll("body *")].filter(each =>
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
RUN = "Please run "
LISTS = (
    *("learning", "journal", "skills", "sessions", "reviews"),
    *("templates", "experiments", "curator", "permissions"),
)
TABS = 3
"""Browsers that look at the texts of one home at the same time: most of a visit is waiting for frames."""
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
    tool = call("terminal", command=words) if RUN in words else call("read_file", path=words)
    return assistant(words) if since else assistant(words, tool)


async def plant(hone: Hone, mark: str, text: str, number: int) -> Planted:
    """In a conversation, its title and its template, a review and its error, the journal, a skill, and all
    that the further views show."""
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
    await plant_further(hone, name, text, session.id)
    return Planted(mark, text, session.id, name)


async def plant_further(hone: Hone, name: str, text: str, session: SessionId) -> None:
    """In a template, an experiment, a rule, a round of the curator, and the error of a backend."""
    now, line = datetime.now(UTC), " ".join(text.split())
    shown = json.dumps({"path": text})
    example = Example("read_file", shown, text, len(text), Trust.LOCAL, Trust.LOCAL)
    template = Template(name, WorkKind.FILE, session, now, text, (line,), (example,))
    await hone.part(TemplatesPart).store.add(template)
    studies, check = Studies(FileDocuments(hone.home), hone.home), Check(text, text, ((line, text),))
    studies.add(Task(name, session, now, "/work", text, check, {line: text}))
    studies.study(Study(name, Lesson(LessonKind.SKILL, line, "ab12"), line, now))
    hone.permissions.rules.add("", "allow", Rule("terminal", line))
    runs = hone.stores.curator_runs
    latest = next((each.id for each in await runs.runs(1)), UNNUMBERED)
    await runs.complete(CuratorRun(now, text, error=text, report=text), latest, (), {})
    for letter in await hone.stores.outbox.letters():
        await hone.stores.outbox.failed(letter.change, text)


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
    older = tab.page.get_by_role("button", name="Older ")
    while await older.is_visible():
        await older.click()
        await tab.quiet()
    await tab.page.evaluate(UNFOLD)
    await tab.quiet()
    words = await tab.page.evaluate(WORDS)
    assert [mark for mark in marks if mark not in words] == [], place
    assert await tab.page.evaluate(FOREIGN) == [], place


async def lists(tab: Tab, planted: Sequence[Planted]) -> int:
    """Visits the pages that show all texts at once. Returns how many pages were seen."""
    marks = [each.mark for each in planted]
    for place in LISTS:
        await shown(tab, f"#/{place}", marks)
    await shown(tab, "#/figures", [])
    await shown(tab, "#/payback", marks)
    await shown(tab, "#/backends", marks[-1:])
    return len(LISTS) + 3


async def details(tab: Tab, planted: Sequence[Planted], *, talk: bool) -> int:
    """Visits the pages that show one text each. Returns how many pages were seen."""
    for each in planted:
        await shown(tab, f"#/sessions/{each.session}", [each.mark])
        assert each.mark in await tab.page.locator(".said.example .meta").first.inner_text()
        await shown(tab, f"#/skills/{each.skill}", [each.mark])
        await shown(tab, f"#/chat/{each.session}", [each.mark])
        for place in ("templates", "experiments"):
            await shown(tab, f"#/{place}/{each.skill}", [each.mark])
        if talk:
            await shown(tab, f"#/sessions?q={each.mark}", [each.mark])
            await beside(tab, each)
            await said(tab, each)
            await asked(tab, each)
    return len(planted) * (7 if talk else 5)


async def beside(tab: Tab, each: Planted) -> None:
    """In the list of conversations, in what is known, in the palette and after a slash."""
    page = tab.page
    await tab.go(f"#/chat/{each.session}")
    assert each.mark in await page.locator(".knows").inner_text()
    assert each.mark in await page.locator("#talks").inner_text()
    await page.get_by_label("Search conversations").fill(each.mark)
    await tab.quiet()
    await page.get_by_label("Search conversations").fill("")
    await page.keyboard.press("Control+k")
    await tab.quiet()
    await page.keyboard.type(each.mark)
    await page.locator(".picker li", has_text=each.mark).first.wait_for()
    assert await page.evaluate(FOREIGN) == []
    await page.keyboard.press("Escape")
    await page.get_by_label("Message").fill(f"/{each.skill}")
    await page.locator(".suggest li", has_text=each.mark).first.wait_for()
    assert await page.evaluate(FOREIGN) == []
    await page.get_by_label("Message").fill("")


async def said(tab: Tab, each: Planted) -> None:
    """Typed into the chat with a file of such a name, and streamed back."""
    await tab.go("#/chat")
    await tab.page.get_by_label("Message").fill(each.text)
    file = FilePayload(
        name=each.text.replace("/", "∕")[:200], mimeType="text/plain", buffer=each.text.encode()
    )
    await tab.page.get_by_label("Files to attach").set_input_files([file])
    await tab.page.locator(".held li").wait_for()
    assert await tab.page.evaluate(FOREIGN) == []
    await tab.page.get_by_role("button", name="Send").click()
    await tab.page.locator(".said.assistant footer").wait_for()
    await tab.page.evaluate(UNFOLD)
    assert each.mark in await tab.page.locator(".said.assistant").last.inner_text()
    assert await tab.page.evaluate(FOREIGN) == []


async def asked(tab: Tab, each: Planted) -> None:
    """In a question, in the rule that it offers, and in what is said instead."""
    page = tab.page
    await page.get_by_label("Mode", exact=True).select_option("ask")
    await page.get_by_label("Message").fill(f"{RUN}{each.text}")
    await page.get_by_role("button", name="Send").click()
    question = page.locator(".question")
    await question.wait_for()
    assert each.mark in await question.inner_text()
    assert await page.evaluate(FOREIGN) == []
    await page.get_by_label("No, instead").fill(each.text)
    await question.get_by_role("button", name="Say no").click()
    await page.locator(".tool.declined").wait_for()
    await page.evaluate(UNFOLD)
    assert await page.evaluate(FOREIGN) == []


async def taken_for_markup(tab: Tab, texts: Sequence[str]) -> int:
    """How many run where they are taken for markup: what this test can see."""
    for text in texts:
        await tab.page.evaluate(TAKE, text)
    await tab.page.wait_for_function("() => window.told.length > 0")
    return len(await tab.page.evaluate("() => [...new Set(window.told)]"))


@dataclass
class Seen:
    """What a suite of visits came to. `control` counts texts that were made to run."""

    pages: int = 0
    control: int = 0
    ran: list[str] = field(default_factory=list)

    async def look(self, browser: Browser, visit: Running, planted: Sequence[Planted], part: int) -> None:
        """Visit without the policy, where all that gets in runs: one part of the texts, used by hand, too.
        The first tab sees the lists as well."""
        async with watched(browser, visit, policy=False) as tab:
            pages = 0 if part else await lists(tab, planted)
            pages += await details(tab, planted[part::TABS], talk=True)
            await self.note(tab, pages)
            noticed = await taken_for_markup(tab, ["<img src=x onerror='ran(`c`)'>"])
            self.control += noticed

    async def look_under_policy(self, browser: Browser, visit: Running, planted: Sequence[Planted]) -> None:
        """Visit as a reader does: the pages are the same, and the policy complains of none of them. It only
        forbids, so what does not run without it does not run here: of the pages with one text, a few do."""
        async with watched(browser, visit, policy=True) as tab:
            pages = await lists(tab, planted) + await details(tab, planted[:TABS], talk=False)
            await self.note(tab, pages)

    async def note(self, tab: Tab, pages: int) -> None:
        told = await tab.page.evaluate("() => window.told")
        self.ran += [*tab.trouble.ran, *told]
        self.pages += pages
        assert tab.trouble.said == []


@pytest.mark.timeout(3600)  # three hundred texts, with --long
async def test_no_stored_text_runs_on_any_page(tmp_path: Path, tier: Tier, figures: Figures) -> None:
    every, seen, tried = strings(), Seen(), 0
    chosen = [every[draw.index] for draw in tier.draws(short=3, full=len(every))]
    async with chromium() as browser:
        for start in range(0, len(chosen), BATCH):
            home, batch = tmp_path / f"home{start}", chosen[start : start + BATCH]
            async with (
                FakeProvider(parrot) as stage,
                furnish(home, tmp_path, provider("openai", stage.url), settings=ROOMY) as hone,
            ):
                planted = [await plant(hone, *each, place) for place, each in enumerate(batch)]
            async with running(home, tmp_path, parrot, settings=ROOMY) as visit:
                await seen.look_under_policy(browser, visit, planted)
                async with asyncio.TaskGroup() as group:
                    for part in range(min(TABS, len(planted))):
                        group.create_task(seen.look(browser, visit, planted, part))
            tried += len(planted)
    marks = [mark for mark, _ in every]
    at = [marks.index(mark) for mark in {*seen.ran} & {*marks}]
    figures.tally(tried, got_in=len(seen.ran), note=f"texts on {seen.pages:,} pages", at=at)
    assert seen.ran == []
    assert seen.control > 0, "a text that runs is not noticed"
