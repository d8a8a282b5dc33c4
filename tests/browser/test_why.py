"""K2 on the page: each answer says why, and what shaped it is corrected from there."""

from collections.abc import Sequence
from pathlib import Path

from playwright.async_api import expect

from hone.core.messages import Message, assistant
from tests.browser.tab import PHONE, chromium, opened
from tests.web.rig import running

ENTRY, OTHER = "The staging server is called heron.", "Invoices are due within 30 days."


def deploys(messages: Sequence[Message]) -> Message:
    if "Which of these" in messages[-1].text:
        return assistant("2")
    return assistant("Deploy it to heron.")


async def test_an_answer_says_what_shaped_it_and_a_click_takes_that_back(home: Path, tmp_path: Path) -> None:
    async with running(home, tmp_path, deploys) as visit, chromium() as browser:
        for text in (ENTRY, OTHER):
            await visit.post("/api/journal/memory", edits=[{"action": "add", "text": text}])
        async with opened(browser, visit) as tab:
            page = tab.page
            await page.get_by_label("Message").fill("Where do I deploy for a first look?")
            await page.get_by_label("Message").press("Enter")
            await page.locator(".said.assistant footer").wait_for()
            knows = page.locator(".knows")
            await expect(knows.locator("li", has_text=ENTRY)).to_contain_text("shaped the last answer")
            await expect(knows.locator("li", has_text=OTHER)).not_to_contain_text("shaped the last answer")
            await page.get_by_role("button", name="Why", exact=True).click()
            why = page.get_by_label("Why this answer")
            await expect(why.locator("li")).to_have_count(1)
            await expect(why.locator("li")).to_contain_text("first said by the model: heron")
            await why.get_by_role("button", name="Ask the model").click()
            await expect(why.locator("li")).to_have_count(2)
            await expect(why.locator("li", has_text=OTHER)).to_contain_text("says the model")
            await page.get_by_label("Message").fill("And later?")
            await page.get_by_label("Message").press("Enter")
            await page.get_by_role("button", name="Why number 2").click()
            await expect(why.locator("li")).to_have_count(1)
            await why.locator("summary", has_text=ENTRY).click()
            await why.get_by_role("button", name="Undo").click()
            await expect(why.locator("li")).to_contain_text("no longer in the journal")
            assert (home / "MEMORY.md").read_text() == f"- {OTHER}\n"
            assert tab.trouble.said == []


async def test_before_the_first_answer_there_is_nothing_to_explain_and_no_error(
    home: Path, tmp_path: Path
) -> None:
    async with (
        running(home, tmp_path, deploys) as visit,
        chromium() as browser,
        opened(browser, visit, PHONE) as tab,
    ):
        session = (await visit.post("/api/sessions", text="Where do I deploy?"))["session"]
        await tab.go(f"#/chat/{session}")
        await tab.page.locator(".said.assistant").first.wait_for()
        found = await visit.get(f"/api/sessions/{session}/why")
        assert (found["message"], found["answer"]) == (2, "Deploy it to heron.")
        assert tab.trouble.said == []
