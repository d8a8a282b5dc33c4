"""I3: the rest of what a page is for: journal and skills by hand, questions, a stop, a review that failed."""

import asyncio
from datetime import UTC, datetime
from pathlib import Path

from playwright.async_api import Page, Route, expect

from hone.core.messages import assistant
from hone.models.scripted import call, rounds, rules
from tests.browser import tale
from tests.browser.tab import PHONE, chromium, opened
from tests.web.rig import running

WORK = rules(
    (
        "throw it away",
        rounds(assistant(call("terminal", command="git reset --hard && touch done")), "As you say."),
    ),
    ("wait", rounds(assistant(call("terminal", command="sleep 300")), "I waited.")),
    otherwise=rounds("Here I am."),
)


async def say(page: Page, text: str) -> None:
    await page.get_by_label("Message").fill(text)
    await page.get_by_label("Message").press("Enter")


async def test_a_refresh_under_way_does_not_close_an_editor_that_was_opened_meanwhile(
    home: Path, tmp_path: Path
) -> None:
    async with (
        running(home, tmp_path, tale.script) as visit,
        chromium() as browser,
        opened(browser, visit, PHONE) as tab,
    ):
        page, answered = tab.page, asyncio.Event()
        await page.get_by_role("link", name="Journal").click()
        memory = page.locator("section", has=page.get_by_role("heading", name="Memory"))
        await expect(memory).to_be_visible()

        async def hold(route: Route) -> None:
            await answered.wait()
            await route.continue_()

        await page.route("**/api/journal*", hold)
        async with page.expect_response("**/api/journal*") as refreshed:
            async with page.expect_request("**/api/journal*"):
                await visit.post("/api/journal/memory", edits=[{"action": "add", "text": "The roof leaks."}])
            await memory.get_by_role("button", name="Edit").click()
            answered.set()
        await (await refreshed.value).finished()
        await page.evaluate("() => new Promise(requestAnimationFrame)")
        await expect(page.get_by_label("All of memory")).to_be_visible()


async def test_the_journal_is_edited_by_hand_and_nobody_is_overwritten(home: Path, tmp_path: Path) -> None:
    async with (
        running(home, tmp_path, tale.script) as visit,
        chromium() as browser,
        opened(browser, visit, PHONE) as tab,
    ):
        page = tab.page
        await page.get_by_role("link", name="Journal").click()
        await page.get_by_label("Add to user").fill("Likes tea.")
        await page.get_by_label("Add to user").press("Enter")
        await expect(page.locator(".entries")).to_contain_text("Likes tea.")
        assert (home / "USER.md").read_text() == "- Likes tea.\n"
        memory = page.locator("section", has=page.get_by_role("heading", name="Memory"))
        await memory.get_by_role("button", name="Edit").click()
        await page.get_by_label("All of memory").fill("- The roof leaks.\n")
        await memory.get_by_role("button", name="Save").click()
        await expect(memory).to_contain_text("You · ")
        assert tab.trouble.said == []
        await memory.get_by_role("button", name="Edit").click()
        await visit.post("/api/journal/memory", edits=[{"action": "add", "text": "The cellar is dry."}])
        await page.get_by_label("All of memory").fill("- The roof is mended.\n")
        await memory.get_by_role("button", name="Save").click()
        await expect(page.locator(".notice.bad")).to_be_visible()
        await expect(page.get_by_label("All of memory")).to_have_value("- The roof is mended.\n")
        assert (home / "MEMORY.md").read_text() == "- The roof leaks.\n- The cellar is dry.\n"
        await page.get_by_role("button", name="Remove: Likes tea.").click()
        await expect(page.get_by_text("Likes tea.")).to_have_count(0)
        await page.get_by_role("link", name="Learning").click()
        await page.locator(".change", has_text="Likes tea.").first.get_by_role("button", name="Undo").click()
        await expect(page.locator(".notice").last).to_contain_text("is undone by")
        assert (home / "USER.md").read_text() == "- Likes tea.\n"


async def test_a_skill_is_written_pinned_edited_archived_and_brought_back(home: Path, tmp_path: Path) -> None:
    async with (
        running(home, tmp_path, tale.script) as visit,
        chromium() as browser,
        opened(browser, visit) as tab,
    ):
        page = tab.page
        await page.get_by_role("link", name="Skills").click()
        await page.get_by_text("Write a skill").click()
        await page.get_by_label("Name").fill("trip-planning")
        await page.get_by_role("button", name="Start from a draft").click()
        await page.get_by_role("button", name="Create").click()
        await expect(page.get_by_role("heading", name="trip-planning", exact=True)).to_be_visible()
        await page.get_by_role("button", name="Pin").click()
        await expect(page.locator(".head .marks")).to_contain_text("pinned")
        await page.get_by_role("button", name="Edit").click()
        text = await page.get_by_label("SKILL.md").input_value()
        await page.get_by_label("SKILL.md").fill(text.replace("The first step.", "Ask for the dates."))
        await page.get_by_role("button", name="Save").click()
        await expect(page.locator("details pre").first).to_contain_text("Ask for the dates.")
        await expect(page.locator(".cards .change")).to_have_count(3)
        await page.get_by_role("button", name="Archive").click()
        await expect(page.locator(".head .marks")).to_contain_text("archived")
        await page.get_by_role("button", name="Restore").click()
        await expect(page.get_by_role("button", name="Archive")).to_be_visible()
        assert "Ask for the dates." in (home / "skills" / "trip-planning" / "SKILL.md").read_text()
        assert tab.trouble.said == []


async def test_a_question_is_answered_with_a_click_and_a_turn_is_stopped(home: Path, tmp_path: Path) -> None:
    async with (
        running(home, tmp_path, WORK) as visit,
        chromium() as browser,
        opened(browser, visit) as tab,
    ):
        page = tab.page
        await say(page, "Please throw it away.")
        question = page.get_by_label("A question to you")
        await expect(question).to_contain_text("git reset --hard")
        await question.get_by_label("No, because").fill("keep it")
        await question.get_by_role("button", name="Say no").click()
        await expect(page.locator(".said.assistant").last).to_contain_text("As you say.")
        await page.locator(".tool summary").last.click()
        await expect(page.locator(".tool").last).to_contain_text("The user said no: keep it.")
        assert not (tmp_path / "done").exists()
        await say(page, "Now wait for me.")
        await expect(page.locator(".tool .state").last).to_have_text("…")
        await page.get_by_role("button", name="Stop").click()
        await expect(page.locator(".said.assistant").last).to_contain_text("Interrupted.")
        await say(page, "Are you there?")
        await expect(page.locator(".said.assistant").last).to_contain_text("Here I am.")
        assert tab.trouble.said == []


async def test_a_mode_is_chosen_and_a_plan_is_carried_out_with_a_click(home: Path, tmp_path: Path) -> None:
    write = assistant(call("write_file", path="done.txt", content="x"))
    script = rules(("Go ahead", rounds(write, "Carried out.")), otherwise=rounds("First this, then that."))
    async with (
        running(home, tmp_path, script) as visit,
        chromium() as browser,
        opened(browser, visit) as tab,
    ):
        page = tab.page
        mode = page.get_by_label("Mode")
        await expect(mode).to_have_value("auto")
        await mode.select_option("plan")
        await say(page, "Please plan it.")
        plan = page.get_by_label("The plan")
        await expect(plan).to_contain_text("Carry out this plan?")
        await plan.get_by_role("button", name="Keep planning").click()
        await expect(plan).to_have_count(0)
        await expect(mode).to_have_value("plan")
        await say(page, "Please plan it once more.")
        await page.get_by_role("button", name="Work in auto mode").click()
        await expect(page.locator(".said.assistant").last).to_contain_text("Carried out.")
        await expect(mode).to_have_value("auto")
        assert (tmp_path / "done.txt").read_text() == "x"
        await page.reload()
        await expect(page.get_by_label("Mode")).to_have_value("auto")
        assert tab.trouble.said == []


async def test_a_review_that_failed_is_seen_and_tried_again(home: Path, tmp_path: Path) -> None:
    async with (
        running(home, tmp_path, tale.script) as visit,
        chromium() as browser,
        opened(browser, visit) as tab,
    ):
        page, hone, now = tab.page, visit.state.hone, datetime.now(UTC)
        await say(page, "Good morning.")
        await expect(page.locator(".said.assistant footer")).to_be_visible()
        await page.get_by_role("link", name="Reviews").click()
        await expect(page.get_by_text("The queue is empty.")).to_be_visible()
        session = await hone.sessions.find((await visit.get("/api/sessions"))["sessions"][0]["session"])
        job = await hone.jobs.enqueue(session, 2, frozenset({"memory"}), "by hand", now)
        await hone.jobs.fail(job.id, "The provider is out of reach.", now, again=False)
        review = page.locator(".review")
        await expect(review).to_contain_text("The provider is out of reach.")
        await review.get_by_role("button", name="Try again").click()
        await expect(review.locator(".mark")).to_have_text("done")
        await review.get_by_text("What was said and changed").click()
        await expect(review).to_contain_text("Nothing to keep.")
        assert tab.trouble.said == []
