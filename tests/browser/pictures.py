"""Draws the pictures of docs/page.md: python -m tests.browser.pictures [FOLDER] [--all]

The page is real, and so are its server and its database; only the model follows a script.
"""

import asyncio
import sys
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory

from hone.core.messages import assistant
from hone.models.scripted import call, rounds, rules
from tests.browser import shelf, tale
from tests.browser.tab import DESKTOP, PHONE, TABLET, Scheme, Tab, chromium, opened
from tests.web.rig import Running, running

FOLDER = Path("docs/pictures")
INTO_VIEW = "each => each.scrollIntoView({block: 'end'})"
PLACES = (
    *("new", "chat", "learning", "journal", "skills", "skill", "sessions", "session", "reviews"),
    *("figures", "payback", "access", "more", "curator", "permissions", "templates", "template"),
    *("experiments", "experiment", "backends"),
)
STATES = ("palette", "known", "conversations")
"""What opens over the chat."""
WRITES = assistant(
    call(
        "patch",
        path="changes.txt",
        find="Releases are cut on the branch stable.\n",
        replace="Releases come from main.\n",
    )
)
SCRIPT = rules(
    ("look at staging", rounds("Open https://staging.example:8443 in your browser.")),
    ("notes say main", rounds(assistant(call("read_file", path="changes.txt")), WRITES, "Done.")),
    otherwise=shelf.script,
)

View = tuple[str, tuple[int, int], Scheme]
KEPT: Sequence[View] = (("desktop", DESKTOP, "light"), ("phone", PHONE, "light"))
FURTHER: Sequence[View] = (
    ("tablet", TABLET, "light"),
    ("desktop-dark", DESKTOP, "dark"),
    ("phone-dark", PHONE, "dark"),
)


async def talk(tab: Tab, visit: Running) -> None:
    """The part of the story that happens today."""
    page = tab.page
    await page.get_by_label("Message").fill(tale.ASKED)
    await page.get_by_label("Message").press("Enter")
    await page.locator(".said.assistant footer").wait_for()
    # By itself, it would wait until the owner of a local server is quiet.
    await visit.state.hone.background.drain()
    await page.locator(".learned").wait_for()


def place(name: str, session: str) -> str:
    return {
        "new": "#/chat",
        "chat": f"#/chat/{session}",
        "skill": "#/skills/weekly-report",
        "session": f"#/sessions/{session}",
        "template": f"#/templates/{shelf.TEMPLATE}",
        "experiment": f"#/experiments/{shelf.EXPERIMENT}",
    }.get(name, f"#/{name}")


async def shoot(tab: Tab, name: str, session: str, path: Path) -> None:
    await tab.go(place(name, session))
    if name == "chat":
        await tab.page.locator(".learned summary").first.click()
        await tab.page.locator(".learned .diff").wait_for()
        await tab.page.locator(".learned .change").first.evaluate(INTO_VIEW)
    if name == "learning":
        await tab.page.locator(".change summary").nth(1).click()
        await tab.page.locator(".grounds blockquote").first.wait_for()
        await tab.page.evaluate("() => scrollTo(0, 0)")
    if name == "curator":
        await tab.page.get_by_role("button", name="Show the plan").click()
        await tab.page.locator(".change .diff").first.wait_for()
    if name == "backends":
        await tab.page.get_by_role("button", name="Compare the checked ones").click()
        await tab.page.locator("table").wait_for()
        await tab.page.evaluate("() => scrollTo(0, 0)")
    if name == "template":
        await tab.page.locator("details summary").first.click()
    await tab.page.mouse.move(0, 0)
    await tab.page.screenshot(path=path, animations="disabled")


async def shoot_question(tab: Tab, path: Path) -> None:
    """A change of a file that waits for an answer."""
    await tab.go("#/chat")
    await tab.page.get_by_label("Mode", exact=True).select_option("ask")
    await tab.page.get_by_label("Message").fill("Please let the notes say main.")
    await tab.page.get_by_label("Message").press("Enter")
    await tab.page.locator(".question .diff").wait_for()
    await tab.quiet()
    await tab.page.mouse.move(0, 0)
    await tab.page.screenshot(path=path, animations="disabled")
    await tab.page.locator(".question").get_by_role("button", name="No", exact=False).first.click()
    await tab.page.locator(".question").wait_for(state="detached")


async def shoot_why(tab: Tab, path: Path) -> None:
    """An answer, and the entry that shaped it."""
    page = tab.page
    await tab.go("#/chat")
    await page.get_by_label("Message").fill("How do I look at staging?")
    await page.get_by_label("Message").press("Enter")
    await page.locator(".said.assistant footer").wait_for()
    await page.get_by_role("button", name="Why", exact=True).click()
    await page.locator(".why summary").first.click()
    await page.locator(".why .acts").first.wait_for()
    await tab.quiet()
    await page.mouse.move(0, 0)
    await page.screenshot(path=path, animations="disabled")


async def unfold(tab: Tab, name: str) -> None:
    """Opens a panel where it is not open anyway."""
    opener = tab.page.get_by_role("button", name=name, exact=True)
    if await opener.is_visible():
        await opener.click()


async def shoot_state(tab: Tab, name: str, session: str, path: Path) -> None:
    page = tab.page
    await tab.go(place("chat", session))
    if name == "palette":
        await page.keyboard.press("Control+k")
    elif name == "known":
        await unfold(tab, "What Hone knows")
        await page.locator(".knows .parts summary").first.click()
        await page.locator(".knows blockquote").first.wait_for()
    else:
        await unfold(tab, "Conversations")
        await page.get_by_label("Search conversations").fill("report")
    await tab.quiet()
    await page.mouse.move(0, 0)
    await page.screenshot(path=path, animations="disabled")
    await page.keyboard.press("Escape")


async def draw_start(folder: Path, work: Path, views: Sequence[View]) -> None:
    """An empty home."""
    async with running(work / "home", work, tale.script) as visit, chromium() as browser:
        for label, size, scheme in views:
            async with opened(browser, visit, size, scheme) as tab:
                await tab.quiet()
                await tab.page.screenshot(path=folder / f"start-{label}.png", animations="disabled")


async def draw(folder: Path, views: Sequence[View]) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory() as scratch:
        home, work, other = (Path(scratch) / name for name in ("home", "work", "notes"))
        for each in (work, other):
            each.mkdir()
        await draw_start(folder, other, views)
        await tale.lived(home, work, datetime.now(UTC))
        async with (
            running(home, work, SCRIPT, settings=tale.SETTINGS) as visit,
            chromium() as browser,
        ):
            async with opened(browser, visit) as tab:
                await talk(tab, visit)
                session = (await visit.get("/api/sessions"))["sessions"][0]["session"]
                await visit.client.patch(f"/api/sessions/{session}", json={"title": "Release notes for 2.4"})
                await visit.post(f"/api/sessions/{session}/branch", at=2)
            await shelf.stock(visit, home, session)
            for label, size, scheme in views:
                async with opened(browser, visit, size, scheme) as tab:
                    for name in PLACES:
                        await shoot(tab, name, session, folder / f"{name}-{label}.png")
                    for name in STATES:
                        await shoot_state(tab, name, session, folder / f"{name}-{label}.png")
                    assert not tab.trouble.said, tab.trouble.said
            # Last: each question leaves a conversation, which the other pictures would show.
            for label, size, scheme in views:
                async with opened(browser, visit, size, scheme) as tab:
                    await shoot_question(tab, folder / f"approval-{label}.png")
                    if size != PHONE:  # there, Why is behind the dots of a message
                        await shoot_why(tab, folder / f"why-{label}.png")
                    assert not tab.trouble.said, tab.trouble.said


def main() -> None:
    names = [each for each in sys.argv[1:] if not each.startswith("--")]
    views = [*KEPT, *FURTHER] if "--all" in sys.argv else KEPT
    asyncio.run(draw(Path(names[0]) if names else FOLDER, views))


if __name__ == "__main__":
    main()
