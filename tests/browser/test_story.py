"""I3: the story of learning, done by clicking in real Chromium; every page at three widths; two tabs."""

import re
from datetime import UTC, datetime
from pathlib import Path

from playwright.async_api import Page, expect

from tests.browser import shelf, tale
from tests.browser.pictures import PLACES, place
from tests.browser.tab import DESKTOP, PHONE, TABLET, Scheme, Tab, chromium, opened
from tests.conftest import Figures
from tests.web.rig import Running, running

BETTER = "Keep release notes to one line per change; the ticket comes first."


THERE = """([kind, text]) => document.activeElement.matches(kind)
  && document.activeElement.textContent.includes(text)"""


async def begin(page: Page) -> None:
    """An empty home shows what to try; a click puts it into the message."""
    tries = page.get_by_label("Three things to try")
    await expect(tries.get_by_text("Hone would learn:")).to_have_count(3)
    await tries.get_by_role("button").first.click()
    await expect(page.get_by_label("Message")).to_have_value(re.compile("Summarize this folder"))


async def chat(page: Page) -> None:
    """Says something, sees the tool at work and the answer, and then what was learned."""
    await page.get_by_role("link", name="Chat").click()
    await page.get_by_label("Message").fill(tale.ASKED)
    await page.get_by_role("button", name="Send").click()
    await expect(page.locator(".said.user").last).to_contain_text(tale.WISH)
    await expect(page.locator(".tool summary").last).to_contain_text("read_file")
    await expect(page.locator(".said.assistant").last).to_contain_text("HN-214: a change of a skill")
    await expect(page.locator(".learned .line")).to_have_text(
        [f'✎ learned about you: "{tale.WISH}"', "✎ 1 lesson waits"]
    )


async def correct(page: Page, home: Path) -> None:
    """The lesson stands beside the conversation: its evidence is one click away, and so is another wording,
    which is taken back again."""
    knows = page.locator(".knows")
    entry = knows.locator("li", has_text=tale.WISH)
    await expect(entry).to_contain_text("learned here")
    await entry.locator("summary").click()
    await expect(entry.locator("blockquote")).to_contain_text(tale.WISH)
    await entry.get_by_role("button", name="Edit").click()
    await knows.get_by_label(f"Edit: {tale.WISH}").fill(BETTER)
    await knows.get_by_role("button", name="Save").click()
    await knows.locator("summary", has_text=BETTER).click()
    assert (home / "USER.md").read_text() == f"- {BETTER}\n"
    await knows.get_by_role("button", name="Undo").click()
    await expect(knows.locator("summary", has_text=tale.WISH)).to_be_visible()
    assert (home / "USER.md").read_text() == f"- {tale.WISH}\n"
    for name, text in (("Pin", f"{tale.WISH} (pinned)"), ("Unpin", tale.WISH)):
        await knows.locator("summary", has_text=tale.WISH).click()
        await knows.get_by_role("button", name=name, exact=True).first.click()
        await expect(knows.locator("summary .plain", has_text=tale.WISH)).to_have_text(text)
        assert (home / "USER.md").read_text() == f"- {text}\n"


async def undo(page: Page) -> None:
    """Opens the difference beneath the learned line, and takes the change back."""
    change = page.locator(".learned .change").first
    await change.get_by_text("What changed").click()
    await expect(change.locator(".diff .came")).to_have_text(f"+- {tale.WISH}\n")
    await expect(change.locator("blockquote")).to_contain_text(tale.WISH)
    here = str(await page.evaluate("() => location.hash.split('/').pop()"))
    source = change.get_by_role("link", name="this conversation")
    await expect(source).to_have_attribute("href", f"#/sessions/{here}")  # and not to the review
    await change.get_by_role("button", name="Undo").click()
    await expect(change).to_contain_text("undone by")
    await expect(change.get_by_role("button", name="Undo")).to_have_count(0)


async def approve(page: Page) -> None:
    """What waits is named in the navigation, shown in the timeline, and approved there."""
    await expect(page.locator("#waiting")).to_have_text("1")
    await page.get_by_role("link", name="Learning").click()
    waiting = page.get_by_label("Waiting for you")
    await waiting.get_by_text("What changed").click()
    await expect(waiting.locator(".diff .came")).to_have_text(f"+- {tale.FOUND}\n")
    await waiting.get_by_role("button", name="Approve").click()
    await expect(waiting.get_by_role("button", name="Approve")).to_have_count(0)
    await expect(page.locator("#waiting")).to_be_hidden()


async def search(page: Page) -> None:
    """Finds what was said, and opens the tree of the conversation, where the review stands."""
    await page.get_by_role("link", name="Sessions").click()
    await page.get_by_label("Search everything that was said").fill("importing CSV files crashes")
    hit = page.locator(".hit").first
    await expect(hit.locator(".passage")).to_contain_text("importing CSV files")
    await hit.get_by_role("link").click()
    await expect(page.locator(".wanted")).to_contain_text("importing CSV files")
    tree = page.locator("svg.tree")
    await expect(tree.locator(".node")).to_have_count(2)
    await expect(tree.locator("desc")).to_contain_text("Review: after message 4")
    await tree.locator("a", has_text="Review").click()
    await expect(page.get_by_role("link", name="Parent conversation")).to_be_visible()


async def test_the_story_of_learning_is_done_by_clicking(
    home: Path, tmp_path: Path, figures: Figures
) -> None:
    (tmp_path / "changes.txt").write_text(tale.CHANGES)
    async with running(home, tmp_path, tale.script, settings=tale.SETTINGS) as visit, chromium() as browser:
        async with opened(browser, visit) as tab:
            await begin(tab.page)
            await chat(tab.page)
            assert tale.WISH in (home / "USER.md").read_text()
            await correct(tab.page, home)
            await undo(tab.page)
            assert not (home / "USER.md").exists()
            await approve(tab.page)
            assert (home / "MEMORY.md").read_text() == f"- {tale.FOUND}\n"
            await search(tab.page)
            assert tab.trouble.said == []
        figures("1 story clicked, 0 console errors, 0 failed requests, 0 off the host")


async def test_every_page_fits_and_is_silent(home: Path, tmp_path: Path, figures: Figures) -> None:
    views: list[tuple[tuple[int, int], Scheme]] = [(DESKTOP, "light"), (TABLET, "dark"), (PHONE, "light")]
    await tale.lived(home, tmp_path, datetime.now(UTC))
    async with running(home, tmp_path, tale.script, settings=tale.SETTINGS) as visit, chromium() as browser:
        session = (await visit.get("/api/sessions"))["sessions"][-1]["session"]
        await shelf.stock(visit, home, session)
        for size, scheme in views:
            async with opened(browser, visit, size, scheme) as tab:
                for name in PLACES:
                    await tab.go(place(name, session))
                    assert await tab.page.locator("h1").count() == 1, name
                    wide = await tab.page.evaluate("() => document.documentElement.scrollWidth - innerWidth")
                    assert wide <= 0, f"{name} is {wide} pixels too wide at {size[0]}"
                    assert await unnamed(tab.page) == [], name
                assert tab.trouble.said == []
    figures(f"{len(PLACES)} pages at {len(views)} widths, light and dark: 0 too wide, 0 complaints")


async def unnamed(page: Page) -> list[str]:
    """What can be pressed, filled in or looked at, but has no name for those who hear the page."""
    found = await page.evaluate(
        """() => [...document.querySelectorAll("a, button, input, select, textarea, svg[role]")]
          .filter(each => !(each.ariaLabel || each.closest("label") || each.textContent.trim()))
          .map(each => each.outerHTML.slice(0, 120))"""
    )
    return list(found)


async def test_the_story_of_learning_is_done_with_the_keyboard_alone(home: Path, tmp_path: Path) -> None:
    (tmp_path / "changes.txt").write_text(tale.CHANGES)
    async with (
        running(home, tmp_path, tale.script, settings=tale.SETTINGS) as visit,
        chromium() as browser,
        opened(browser, visit, PHONE) as tab,
    ):
        keyboard, page = tab.page.keyboard, tab.page
        await keyboard.type(tale.ASKED)
        await keyboard.press("Enter")
        await page.locator(".learned").wait_for()
        await command(page, "what hone knows")
        await reach(page, "summary", tale.WISH)
        await keyboard.press("Enter")
        await expect(page.locator(".knows blockquote")).to_contain_text(tale.WISH)
        await reach(page, "button", "Edit")
        await keyboard.press("Enter")
        await keyboard.press("Control+a")
        await keyboard.type(BETTER)
        await keyboard.press("Control+Enter")
        await expect(page.locator(".knows summary:focus")).to_contain_text(BETTER)
        assert (home / "USER.md").read_text() == f"- {BETTER}\n"
        await keyboard.press("Enter")
        await reach(page, "button", "Undo")
        await keyboard.press("Enter")
        await expect(page.locator(".knows summary:focus")).to_contain_text(tale.WISH)
        await keyboard.press("Escape")
        await command(page, "learning")
        waiting = page.get_by_label("Waiting for you")
        await expect(waiting.locator(".change")).to_have_count(1)
        for key in "je":
            await keyboard.press(key)
        await expect(waiting.locator("blockquote")).to_contain_text(tale.FOUND)
        await keyboard.press("a")
        await expect(waiting.locator(".change")).to_have_count(0)
        assert (home / "MEMORY.md").read_text() == f"- {tale.FOUND}\n"
        life = page.locator(".change", has_text=tale.WISH).locator(".life li")
        await expect(life).to_have_text([re.compile(each) for each in ("^added", "^replaced", "^undone")])
        assert tab.trouble.said == []


async def command(page: Page, words: str) -> None:
    """By name, from the palette."""
    await page.keyboard.press("Control+k")
    await page.keyboard.type(words)
    await page.keyboard.press("Enter")


async def reach(page: Page, kind: str, text: str) -> None:
    """Tab by tab, from where the focus is."""
    for _ in range(60):
        await page.keyboard.press("Tab")
        if await page.evaluate(THERE, [kind, text]):
            return
    raise AssertionError(f"{text} is not reached")


async def test_two_tabs_see_the_same_turn_and_what_others_change(home: Path, tmp_path: Path) -> None:
    async with (
        running(home, tmp_path, tale.script, settings=tale.SETTINGS) as visit,
        chromium() as browser,
        opened(browser, visit) as one,
        opened(browser, visit, PHONE) as other,
    ):
        await one.page.get_by_label("Message").fill("Good morning.")
        await one.page.get_by_label("Message").press("Enter")
        await expect(one.page.locator(".said.assistant")).to_contain_text("Gladly.")
        await other.go(await _hash(one))
        await expect(other.page.locator(".said.assistant")).to_contain_text("Gladly.")
        await other.page.get_by_label("Message").fill("And a good evening.")
        await other.page.get_by_label("Message").press("Enter")
        await expect(one.page.locator(".said.user")).to_have_count(2)
        await expect(one.page.locator(".said.assistant")).to_have_count(2)
        await _note(visit, "The office is closed on Mondays.")
        await expect(one.page.locator(".knows .fresh")).to_contain_text("closed on Mondays")
        assert await one.page.locator("#talks a[aria-current]").count() == 1
        await other.go("#/access")
        await expect(other.page.locator(".rows li")).to_have_count(2)
        await other.go("#/learning")
        await _note(visit, "The office is closed on Fridays.")
        await expect(other.page.locator(".change").first).to_contain_text("You added to Memory")
        assert one.trouble.said + other.trouble.said == []


async def _hash(tab: Tab) -> str:
    return str(await tab.page.evaluate("() => location.hash"))


async def _note(visit: Running, text: str) -> None:
    await visit.post("/api/journal/memory", edits=[{"action": "add", "text": text}])
