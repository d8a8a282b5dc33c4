"""I3, E5, L1: templates, experiments, the curator, memory backends and permissions, used in the browser."""

from pathlib import Path

from playwright.async_api import Page, expect

from hone.features.templates.part import TemplatesPart
from tests.browser import shelf, tale
from tests.browser.tab import chromium, opened
from tests.web.rig import running


async def see(page: Page, name: str) -> None:
    await page.get_by_role("link", name="More", exact=True).first.click()
    await page.locator(".rows").get_by_role("link", name=name).click()
    await expect(page.get_by_role("heading", level=1)).to_have_text(name)


async def rule(page: Page) -> None:
    """A rule is added, refused with a reason if it is none, and removed."""
    await see(page, "Permissions")
    await expect(page.locator(".rows li")).to_have_count(2)
    await page.get_by_label("Rule", exact=True).fill("terminal: make docs")
    await page.get_by_label("Where").select_option("everywhere")
    await page.get_by_role("button", name="Add").click()
    added = page.locator(".rows li", has_text="terminal: make docs")
    await expect(added).to_contain_text("everywhere")
    await added.get_by_role("button", name="Remove").click()
    await expect(added).to_have_count(0)
    await page.get_by_role("button", name=f"Remove {shelf.ALLOWED}").click()
    await expect(page.locator(".rows li")).to_have_count(1)


async def curate(page: Page) -> None:
    """The plan comes first and changes nothing; the round makes two changes that wait."""
    await see(page, "Curator")
    await page.get_by_role("button", name="Show the plan").click()
    merge = page.locator(".change", has_text="Merge team-standup")
    await expect(merge.locator(".came", has_text="Blockers come first")).to_be_visible()
    await expect(page.locator(".change", has_text="Archive standup-notes")).to_contain_text("would wait")
    await expect(page.get_by_text("No rounds yet.")).to_be_visible()
    await page.get_by_role("button", name="Apply a round now").click()
    done = page.locator(".review", has_text="Round 1")
    await done.get_by_text("Report and changes").click()
    await expect(done.locator(".prose h3, .prose h4").first).to_be_visible()
    await expect(done.get_by_role("button", name="Approve")).to_have_count(2)
    await expect(page.get_by_text("2 changes from the last round")).to_be_visible()
    await page.get_by_role("button", name="Resume").click()
    await expect(page.get_by_role("button", name="Pause")).to_be_visible()


async def template(page: Page) -> None:
    """A template is made of a conversation, read, and deleted only when that is said twice."""
    await page.get_by_role("link", name="Sessions").click()
    await page.locator(".rows a", has_text="Write the release notes").first.click()
    await page.get_by_role("button", name="Make a template").click()
    await page.get_by_role("link", name="See it").click()
    await page.locator("details", has_text="read_file").locator("summary").click()
    await expect(page.locator("details pre").first).to_contain_text("changes.txt")
    name = await page.get_by_role("heading", level=1).inner_text()
    for answer in ("Keep it", "Delete it"):
        await expect(page.get_by_role("heading", level=1)).to_have_text(name)
        await page.get_by_role("button", name="Delete").click()
        await page.get_by_role("option", name=answer).click()
    await expect(page.locator(".rows li")).to_have_count(1)
    await expect(page.locator(".rows li")).to_contain_text(shelf.TEMPLATE)


async def measured(page: Page) -> None:
    """Each study has its interval, in words and as a drawing, and one click further every figure."""
    await see(page, "Experiments")
    helps = page.locator(".study", has_text="Skill weekly-report")
    await expect(helps.locator("h3 .mark")).to_have_text("helps")
    await expect(helps.locator("svg title")).to_contain_text("95% interval +35 to +90")
    await page.get_by_role("link", name=shelf.EXPERIMENT).click()
    await expect(page.locator("tbody tr")).to_have_count(14)


async def compared(page: Page) -> None:
    await see(page, "Memory backends")
    await page.get_by_label("Compare null").uncheck()
    await page.get_by_role("button", name="Compare the checked ones").click()
    await expect(page.locator("tbody tr")).to_contain_text(["sqlite100recommended100%kept"])


async def test_entries_that_contradict_each_other_stand_side_by_side_and_one_stays(
    home: Path, tmp_path: Path
) -> None:
    async with running(home, tmp_path) as visit, chromium() as browser, opened(browser, visit) as tab:
        page, entries = tab.page, ("Indent with tabs.", "Indent with spaces.")
        edits = [{"action": "add", "text": each} for each in entries]
        await visit.post("/api/journal/user", edits=edits)
        await page.get_by_role("link", name="Learning").click()
        pair = page.locator(".pair")
        await expect(pair.locator(".plain")).to_have_text(entries)
        await pair.get_by_role("button", name="Keep this one: Indent with spaces.").click()
        await expect(pair).to_have_count(0)
        assert (home / "USER.md").read_text() == "- Indent with spaces.\n"
        play = page.get_by_role("button", name="Play from the beginning")
        await play.click()
        await expect(page.get_by_text("2 of 2")).to_be_visible()
        await expect(play).to_be_visible()
        by = page.locator(".filters select").first
        await by.select_option("You")
        await expect(page.locator(".change")).to_have_count(1)
        await expect(page.locator(".life li")).to_have_count(2)
        await by.select_option("A review")
        await expect(page.get_by_text("No change matches.")).to_be_visible()
        assert tab.trouble.said == []


async def test_the_further_views_are_used_by_clicking(home: Path, tmp_path: Path) -> None:
    (tmp_path / "changes.txt").write_text(tale.CHANGES)
    async with (
        running(home, tmp_path, shelf.script) as visit,
        chromium() as browser,
        opened(browser, visit) as tab,
    ):
        session = (await visit.post("/api/sessions", text=tale.ASKED))["session"]
        await shelf.stock(visit, home, session)
        for act in (rule, curate, template, measured, compared):
            await act(tab.page)
        names = [each.name for each in (await visit.state.hone.part(TemplatesPart).store.all())[0]]
        assert names == [shelf.TEMPLATE]
        assert tab.trouble.said == []


async def test_a_link_lets_another_browser_in_once_and_the_first_one_signs_it_out(
    home: Path, tmp_path: Path
) -> None:
    async with (
        running(home, tmp_path, tale.script) as visit,
        chromium() as browser,
        opened(browser, visit) as tab,
    ):
        await see(tab.page, "Access")
        await tab.page.get_by_role("button", name="Link for another browser").click()
        link = await tab.page.locator(".panel code").inner_text()
        other, late = [await (await browser.new_context()).new_page() for _ in range(2)]
        await other.goto(link)
        await expect(other.get_by_role("heading", level=1)).to_have_text("What shall we do?")
        await late.goto(link)
        await expect(late.get_by_role("alert")).to_contain_text("This link has been used already")
        await tab.page.reload()
        await expect(tab.page.locator(".rows li")).to_have_count(2)
        await expect(tab.page.locator(".rows li", has_text="this browser")).to_have_count(1)
        await tab.page.get_by_role("button", name="Sign out Chrome").click()
        await expect(tab.page.locator(".rows li")).to_have_count(1)
        await other.reload()
        await expect(other.get_by_role("heading", name="Sign in to Hone")).to_be_visible()
        await tab.page.get_by_role("button", name="Sign out here").click()
        await expect(tab.page.get_by_role("heading", name="Sign in to Hone")).to_be_visible()


async def test_conversations_are_found_by_day_by_folder_and_by_what_was_said(
    home: Path, tmp_path: Path
) -> None:
    async with (
        running(home, tmp_path, tale.script) as visit,
        chromium() as browser,
        opened(browser, visit) as tab,
    ):
        for folder, words in (("shop", "Order more nails."), ("garden", "Water the roses.")):
            (tmp_path / folder).mkdir()
            session = await visit.state.hone.session(folder=tmp_path / folder)
            await session.send(words)
        await tab.page.reload()
        talks = tab.page.locator("#talks")
        rows = talks.locator("a[data-session]")
        await expect(talks.get_by_role("heading", name="Today")).to_be_visible()
        await expect(rows).to_have_text(["Water the roses.", "Order more nails."])
        await talks.get_by_label("Folder").select_option(label="shop")
        await expect(rows).to_have_text(["Order more nails."])
        await talks.get_by_label("Folder").select_option(label="All folders")
        await talks.get_by_label("Search conversations").fill("roses")
        await expect(rows).to_have_text(["Water the roses."])
        await talks.get_by_label("Search conversations").fill("gladly")
        await expect(talks.get_by_role("heading", name="Said in")).to_be_visible()
        await tab.page.locator("h1").click()
        await tab.page.keyboard.press("?")
        await expect(tab.page.get_by_role("dialog").get_by_text("A new conversation")).to_be_visible()
        assert tab.trouble.said == []
