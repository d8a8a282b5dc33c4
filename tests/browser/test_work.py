"""I3: the rest of what a page is for: journal and skills by hand, questions, a stop, a review that failed."""

import asyncio
from datetime import UTC, datetime
from pathlib import Path

from playwright.async_api import FilePayload, Page, Route, expect

from hone.core.messages import assistant, user
from hone.models.scripted import call, rounds, rules
from tests.browser import tale
from tests.browser.tab import DESKTOP, PHONE, chromium, opened
from tests.conftest import Tier
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
        await page.get_by_role("link", name="Skills", exact=True).click()
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
        await question.get_by_label("No, instead").fill("keep it")
        await question.get_by_role("button", name="Say no").click()
        await expect(page.locator(".said.assistant").last).to_contain_text("As you say.")
        await page.locator(".tool summary").last.click()
        await expect(page.locator(".tool").last).to_contain_text("The user said no: keep it.")
        assert not (tmp_path / "done").exists()
        await say(page, "Now wait for me.")
        await expect(page.locator(".tool .state").last).to_have_text("…")
        await page.get_by_role("button", name="Stop").click()
        await expect(page.locator(".said.assistant").last).to_contain_text("Stopped by you.")
        await say(page, "Are you there?")
        await expect(page.locator(".said.assistant").last).to_contain_text("Here I am.")
        assert tab.trouble.said == []


LONG = "\n\n".join(f"Paragraph {number}: " + "words " * 40 for number in range(60))
CHANGE = rounds(
    assistant(call("read_file", path="plan.txt")),
    assistant(call("patch", path="plan.txt", find="Step 7\n", replace="Step 7, twice\n")),
    "Changed.",
)


async def test_an_approval_with_a_diff_is_in_view_below_a_long_answer(
    home: Path, tmp_path: Path, tier: Tier
) -> None:
    sizes = [(1280, 800), (390, 844)]
    for draw in tier.draws(short=1, full=len(sizes)):
        width, height = sizes[draw.index]
        plan = tmp_path / "plan.txt"
        plan.write_text("".join(f"Step {number}\n" for number in range(40)))
        async with (
            running(home, tmp_path, rules(("change it", CHANGE), otherwise=rounds(LONG))) as visit,
            chromium() as browser,
            opened(browser, visit, (width, height)) as tab,
        ):
            page = tab.page
            await page.get_by_label("Mode", exact=True).select_option("ask")
            await say(page, "Tell me a lot.")
            await expect(page.locator(".said.assistant footer")).to_be_visible()
            await say(page, "Please change it.")
            question = page.get_by_label("A question to you")
            await expect(question.locator(".diff .came")).to_contain_text("Step 7, twice")
            for part in (question, question.get_by_role("button").last, page.get_by_label("Message")):
                box = await part.bounding_box()
                assert box is not None
                assert 0 <= box["y"] <= height - box["height"], box
                assert 0 <= box["x"] <= width - box["width"], box
            await expect(question).to_be_focused()
            await page.locator(".question[data-takes-keys]").wait_for()
            await page.keyboard.press("y")
            await expect(page.locator(".said.assistant").last).to_contain_text("Changed.")
            assert "Step 7, twice" in plan.read_text()
            assert tab.trouble.said == []


AT_END = """() => {
  const thread = document.querySelector(".thread");
  return thread.scrollHeight - thread.clientHeight - thread.scrollTop < 4;
}"""


async def test_what_is_sent_during_an_answer_waits_in_line_and_the_reader_stays_at_the_end(
    home: Path, tmp_path: Path
) -> None:
    script = rules(("a lot", rounds(LONG)), otherwise=WORK)
    async with (
        running(home, tmp_path, script) as visit,
        chromium() as browser,
        opened(browser, visit) as tab,
    ):
        page = tab.page
        await say(page, "Tell me a lot.")
        await expect(page.locator(".said.assistant footer")).to_be_visible()
        await say(page, "Now wait for me.")
        await expect(page.locator(".tool .state").last).to_have_text("…")
        await tab.quiet()
        await page.wait_for_function(AT_END)
        for text in ("First.", "Second."):
            await say(page, text)
        queue = page.get_by_label("Queue").locator("li")
        await expect(queue).to_have_count(2)
        await page.get_by_role("button", name="Remove from the queue: First.").click()
        await page.keyboard.press("Escape")
        await page.get_by_label("Message").press("Escape")
        await expect(page.locator(".said.assistant").last).to_contain_text("Stopped by you.")
        await expect(page.locator(".tool .state").last).to_have_text("stopped")
        await expect(queue).to_have_count(1)
        await page.get_by_role("button", name="Send now").click()
        await expect(page.locator(".said.user").last).to_contain_text("Second.")
        await expect(page.locator(".said.assistant").last).to_contain_text("Here I am.")
        await page.wait_for_function(AT_END)
        assert tab.trouble.said == []


async def test_a_notice_covers_no_message_takes_the_place_of_the_last_and_leaves_by_itself(
    home: Path, tmp_path: Path, tier: Tier
) -> None:
    sizes = (DESKTOP, PHONE)
    async with running(home, tmp_path, WORK) as visit, chromium() as browser:
        for draw in tier.draws(short=1, full=len(sizes)):
            async with opened(browser, visit, sizes[draw.index]) as tab:
                page = tab.page
                await page.clock.install()
                await page.reload()
                await tab.ready()
                for mode in ("full", "auto", "full"):
                    await page.get_by_label("Mode", exact=True).select_option(mode)
                notice = page.locator(".notice")
                await expect(notice).to_have_text(["Mode full: Hone works without asking.×"])
                over, under = await notice.bounding_box(), await page.locator(".composer").bounding_box()
                assert over is not None
                assert under is not None
                assert over["y"] + over["height"] <= under["y"]
                await page.clock.fast_forward(20_000)
                await expect(notice).to_have_count(0)
                assert tab.trouble.said == []


async def test_a_picture_and_a_file_go_with_a_message(home: Path, tmp_path: Path) -> None:
    async with (
        running(home, tmp_path, WORK) as visit,
        chromium() as browser,
        opened(browser, visit) as tab,
    ):
        page = tab.page
        drawn = await page.screenshot()
        held = [FilePayload(name="view.png", mimeType="image/png", buffer=drawn)]
        held.append(FilePayload(name="notes.txt", mimeType="text/plain", buffer=b"The roof leaks."))
        await page.get_by_label("Files to attach").set_input_files(held)
        await expect(page.locator(".held li")).to_have_count(2)
        await say(page, "Look at this.")
        await expect(page.locator(".said.assistant").last).to_contain_text("Here I am.")
        await expect(page.locator(".said.user .drawn")).to_be_visible()
        await expect(page.locator(".said.user")).to_contain_text("Attached: file notes.txt (foreign)")
        assert tab.trouble.said == []


async def test_a_failed_turn_stays_an_error_and_a_declined_call_is_not_a_failed_one(
    home: Path, tmp_path: Path
) -> None:
    async with (
        running(home, tmp_path, WORK) as visit,
        chromium() as browser,
        opened(browser, visit) as tab,
    ):
        page = tab.page
        visit.stage.key = "another"  # the provider refuses
        await say(page, "Good morning.")
        await expect(page.locator(".thread .bad")).to_be_visible()
        visit.stage.key = None
        await say(page, "Please throw it away.")
        await page.locator(".question[data-takes-keys]").wait_for()
        await page.keyboard.press("n")
        await expect(page.locator(".said.assistant").last).to_contain_text("As you say.")
        for _ in range(2):
            await expect(page.locator(".tool.declined .state")).to_contain_text("declined")
            await expect(page.locator(".tool.failed")).to_have_count(0)
            await expect(page.locator(".thread .bad")).to_have_count(1)
            await page.reload()


async def test_a_long_conversation_is_read_in_windows_edited_and_its_files_are_taken_back(
    home: Path, tmp_path: Path
) -> None:
    told = [each for number in range(20) for each in (user(f"Say {number}."), assistant(f"{number}."))]
    wrote = assistant(call("write_file", path="done.txt", content="x"))
    script = rules(("write", rounds(wrote, "Written.")), otherwise=rounds("Here I am."))
    async with (
        running(home, tmp_path, script) as visit,
        chromium() as browser,
        opened(browser, visit) as tab,
    ):
        page = tab.page
        long = await visit.state.open_sessions.begin(told=told)
        await tab.go(f"#/chat/{long.session.id}")
        await expect(page.get_by_role("button", name="Earlier messages")).to_be_visible()
        await page.locator(".thread").evaluate("each => { each.scrollTop = 0 }")
        await expect(page.locator(".said")).to_have_count(40)
        await say(page, "Good morning.")
        await expect(page.locator(".said.assistant footer")).to_be_visible()
        await say(page, "Please write it.")
        await expect(page.locator(".said.assistant").last).to_contain_text("Written.")
        assert (tmp_path / "done.txt").exists()
        await page.get_by_role("button", name="More about number 43").click()
        await page.keyboard.type("rewind")
        await page.keyboard.press("Enter")
        await expect(page.locator(".picker li").first).to_contain_text("1 file: done.txt")
        await page.keyboard.press("Enter")
        await expect(page.get_by_text("Please write it.")).to_have_count(0)
        await tab.ready()
        assert not (tmp_path / "done.txt").exists()
        await say(page, "/edit")
        await page.get_by_role("textbox", name="Edit number 41").fill("Good evening.")
        await page.get_by_role("button", name="Send again").click()
        await expect(page.locator(".said.user").last).to_contain_text("Good evening")
        await expect(page.locator("#talks li")).to_have_count(3)
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
        mode = page.get_by_label("Mode", exact=True)
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
        await expect(page.get_by_label("Mode", exact=True)).to_have_value("auto")
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
        await page.get_by_role("link", name="More").click()
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
