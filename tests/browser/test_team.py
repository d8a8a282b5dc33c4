"""K6, I3: the Team view in a browser: two people share a lesson, none of it runs, and axe finds nothing."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from playwright.async_api import Browser, Page, expect

from tests.browser.strings import strings
from tests.browser.tab import DESKTOP, PHONE, Scheme, Tab, Trouble, chromium, opened
from tests.browser.test_accessible import complaints
from tests.browser.test_xss import COUNT, FOREIGN, WORDS, taken_for_markup
from tests.conftest import Figures
from tests.tier import Tier
from tests.web.rig import running
from tests.web.test_users import Team, serving

TELLING = "Ask Marta Kowalska before you touch /srv/billing; https://wiki.acme.corp/runbooks says why."
LESSON = "Deploys freeze on Fridays at noon."
SIDEWAYS = "() => document.documentElement.scrollWidth - innerWidth"


@asynccontextmanager
async def signed_in(
    browser: Browser,
    team: Team,
    key: str,
    size: tuple[int, int] = DESKTOP,
    scheme: Scheme = "light",
    *,
    policy: bool = True,
) -> AsyncIterator[Tab]:
    """A tab that came in by the login page, with the key of a user."""
    width, height = size
    context = await browser.new_context(
        viewport={"width": width, "height": height},
        color_scheme=scheme,
        reduced_motion="reduce",
        bypass_csp=not policy,
    )
    await context.add_init_script(COUNT)
    door = await context.new_page()
    await door.goto(team.server.url)
    await door.get_by_label("Key").fill(key)
    await door.keyboard.press("Enter")
    await Tab(door, team.server.url, Trouble()).ready()
    page = await context.new_page()  # nothing is said in it of the door, which was closed
    tab = Tab(page, team.server.url, Trouble())
    tab.trouble.watch(page, team.server.url)
    await page.goto(team.server.url)
    await door.close()
    try:
        await tab.ready()
        await tab.go("#/team")
        yield tab
    finally:
        await context.close()


async def note(team: Team, key: str, *texts: str) -> None:
    edits = [{"action": "add", "text": text, "anyway": True} for text in texts]
    async with team.client(key) as client:
        answer = await client.post("/api/journal/memory", json={"edits": edits})
        assert answer.is_success, answer.text


async def look(page: Page, words: str) -> None:
    """By the keyboard alone."""
    await page.get_by_label("Some of its words").fill(words)
    await page.keyboard.press("Enter")
    await page.get_by_role("button", name="Propose exactly this").wait_for()


async def propose(page: Page, words: str, why: str = "") -> None:
    await look(page, words)
    await page.get_by_label("Why, for your colleagues").fill(why)
    await page.keyboard.press("Tab")
    await page.keyboard.press("Enter")
    await expect(page.get_by_role("heading", name="Waiting for a second person")).to_be_focused()


async def prompted(team: Team, key: str) -> str:
    """What the model is told in a new conversation of a user."""
    async with team.client(key) as client:
        answer = await client.post(
            "/v1/chat/completions", json={"messages": [{"role": "user", "content": "Hello."}]}
        )
        assert answer.status_code == 200, answer.text
    return team.server.stage.requests[-1].body.decode()


async def test_a_lesson_is_shared_by_two_people_and_taken_back_for_everybody(tmp_path: Path) -> None:
    async with serving(tmp_path) as team, chromium() as browser:
        keys = {name: team.add(name) for name in ("anna", "ben", "cara")}
        await note(team, keys["anna"], TELLING, LESSON)
        async with (
            signed_in(browser, team, keys["anna"]) as anna,
            signed_in(browser, team, keys["ben"], PHONE) as ben,
            signed_in(browser, team, keys["cara"]) as cara,
        ):
            await look(anna.page, "Marta")
            told = anna.page.locator("table.told tbody tr")
            await expect(told).to_contain_text(["Marta Kowalska", "/srv/billing", "https://wiki.acme.corp"])
            await propose(anna.page, "freeze", "it cost us a weekend")
            own = anna.page.locator(".change.pending")
            await expect(own).to_contain_text("You proposed it; somebody else must approve it.")
            await expect(own.get_by_role("button")).to_have_text(["Withdraw"])
            assert LESSON not in await prompted(team, keys["cara"])
            await ben.page.reload()
            await ben.ready()
            waits = ben.page.locator(".change.pending")
            await expect(waits).to_contain_text("from anna")
            await expect(waits).to_contain_text("it cost us a weekend")
            assert await ben.page.evaluate(SIDEWAYS) <= 0
            await waits.get_by_role("button", name="Approve for everybody").focus()
            await ben.page.keyboard.press("Enter")
            await expect(ben.page.get_by_role("heading", name="Shared", exact=True)).to_be_focused()
            for tab in (anna, cara):
                await tab.page.reload()
                await tab.ready()
                shared = tab.page.locator(".change")
                await expect(shared).to_contain_text([f"{LESSON}team 2, shared by anna, approved by ben"])
            assert f"anna: {LESSON}" in await prompted(team, keys["cara"])
            await expect(cara.page.get_by_role("button", name="Undo for everybody")).to_have_count(0)
            await anna.page.get_by_role("button", name="Undo for everybody").click()
            await expect(anna.page.get_by_text("Your team shares nothing yet.")).to_be_visible()
            for tab in (ben, cara):
                await tab.page.reload()
                await tab.ready()
                await expect(tab.page.get_by_text("Your team shares nothing yet.")).to_be_visible()
            assert LESSON not in await prompted(team, keys["cara"])
            assert [anna.trouble.said, ben.trouble.said, cara.trouble.said] == [[], [], []]


async def test_what_cannot_be_proposed_is_said_and_what_waits_can_be_turned_down(tmp_path: Path) -> None:
    async with serving(tmp_path) as team, chromium() as browser:
        keys = {name: team.add(name) for name in ("anna", "ben")}
        await note(team, keys["anna"], LESSON)
        async with (
            signed_in(browser, team, keys["anna"]) as anna,
            signed_in(browser, team, keys["ben"]) as ben,
        ):
            await anna.page.get_by_role("button", name="Look at it first").click()
            await expect(anna.page.locator(".notice")).to_have_count(0)
            await expect(anna.page.get_by_label("Some of its words")).to_be_focused()
            await anna.page.get_by_label("Some of its words").fill("nothing like that")
            await anna.page.keyboard.press("Enter")
            await expect(anna.page.locator(".notice.bad")).to_contain_text("No entry has")
            await propose(anna.page, "freeze")
            await ben.page.reload()
            await ben.ready()
            await ben.page.get_by_role("button", name="Reject").click()
            await expect(ben.page.get_by_text("Nothing waits.")).to_be_visible()
            # She still sees it: what she presses is refused with a sentence.
            await anna.page.get_by_role("button", name="Withdraw").click()
            await expect(anna.page.locator(".notice.bad")).to_contain_text("Nothing waits under number 1.")


async def test_no_shared_text_runs_in_a_colleagues_browser(
    tmp_path: Path, tier: Tier, figures: Figures
) -> None:
    every = strings()
    chosen = [every[7 * draw.index] for draw in tier.draws(short=3, full=len(every) // 7)]
    async with serving(tmp_path) as team, chromium() as browser:
        keys = {name: team.add(name) for name in ("anna", "ben")}
        async with team.client(keys["anna"]) as anna:
            for mark, text in chosen:
                line = " ".join(text.split())
                await note(team, keys["anna"], line)
                shown = (await anna.post("/api/team/proposals", json={"entry": mark})).json()
                body = {"entry": mark, "seal": shown["seal"], "reason": line}
                assert (await anna.post("/api/team/proposals", json=body)).is_success
        async with signed_in(browser, team, keys["ben"], policy=False) as ben:
            await ben.quiet()
            words, foreign = await ben.page.evaluate(WORDS), await ben.page.evaluate(FOREIGN)
            assert [mark for mark, _ in chosen if mark not in words] == []
            for mark, _ in chosen:
                waits = ben.page.locator(".change.pending", has_text=mark)
                await waits.get_by_role("button", name="Approve for everybody").click()
                await expect(ben.page.locator(".change", has_text=mark)).to_contain_text(["approved by ben"])
            foreign += await ben.page.evaluate(FOREIGN)
            ran = [*ben.trouble.ran, *await ben.page.evaluate("() => window.told")]
            assert await taken_for_markup(ben, ["<img src=x onerror='ran(`c`)'>"]), "what runs is noticed"
    figures.tally(len(chosen), got_in=len(ran) + len(foreign), note="texts in the Team view")
    assert (ran, foreign) == ([], [])


LOOKS: tuple[tuple[tuple[int, int], Scheme], ...] = (
    *((DESKTOP, "light"), (PHONE, "dark"), (PHONE, "light"), (DESKTOP, "dark")),
)


async def test_axe_finds_nothing_on_the_team_view(tmp_path: Path, tier: Tier) -> None:
    found: dict[str, list[str]] = {}
    for draw in tier.draws(short=1, full=len(LOOKS)):
        size, scheme = LOOKS[draw.index]
        place = tmp_path / str(draw.index)
        place.mkdir()
        found |= await team_views(place, size, scheme)
    assert {view: told for view, told in found.items() if told} == {}


async def team_views(tmp_path: Path, size: tuple[int, int], scheme: Scheme) -> dict[str, list[str]]:
    """What axe says of each state of the view."""
    found: dict[str, list[str]] = {}
    async with serving(tmp_path) as team, chromium() as browser:
        keys = {name: team.add(name) for name in ("anna", "ben")}
        await note(team, keys["anna"], TELLING, LESSON)
        async with (
            signed_in(browser, team, keys["anna"], size, scheme) as anna,
            signed_in(browser, team, keys["ben"], size, scheme) as ben,
        ):
            found["empty"] = await complaints(anna)
            await propose(anna.page, "freeze")
            await ben.page.reload()
            await ben.ready()
            await ben.page.get_by_role("button", name="Approve for everybody").click()
            await ben.page.get_by_role("button", name="Undo for everybody").wait_for()
            await propose(anna.page, "Marta")
            await look(anna.page, "Marta")
            found["looked at, waiting and shared"] = await complaints(anna)
            await ben.page.reload()
            await ben.ready()
            found["to approve"] = await complaints(ben)
            assert await ben.page.evaluate(SIDEWAYS) <= 0
            await ben.page.context.clear_cookies()
            await ben.page.goto(team.server.url)
            await ben.page.get_by_label("Key").fill("hone-user-wrong")
            await ben.page.keyboard.press("Enter")
            await ben.page.get_by_role("alert").wait_for()
            found["the wrong key"] = await complaints(ben)
    return {f"{view}, {size[0]}, {scheme}": told for view, told in found.items()}


async def test_a_home_of_one_person_says_how_to_get_a_team(home: Path, tmp_path: Path) -> None:
    async with running(home, tmp_path) as visit, chromium() as browser, opened(browser, visit) as tab:
        await tab.page.get_by_role("link", name="More", exact=True).first.click()
        await tab.page.locator(".rows").get_by_role("link", name="Team").click()
        await expect(tab.page.get_by_text("A team needs a PostgreSQL database")).to_be_visible()
        await expect(tab.page.get_by_role("heading", name="Propose")).to_have_count(0)
        assert await complaints(tab) == []
        assert tab.trouble.said == []


async def test_the_form_of_the_login_page_takes_the_password_in_a_browser(home: Path, tmp_path: Path) -> None:
    """A browser names no page, and is refused, where the policy for referrers is the strictest."""
    async with running(home, tmp_path, password="seven green lamps") as visit, chromium() as browser:
        page = await browser.new_page()
        await page.goto(visit.url)
        await page.get_by_label("Password").fill("seven red lamps")
        await page.keyboard.press("Enter")
        await expect(page.get_by_role("alert")).to_have_text("That is not the password.")
        await page.get_by_label("Password").fill("seven green lamps")
        await page.keyboard.press("Enter")
        await expect(page.get_by_label("Message")).to_be_visible()
