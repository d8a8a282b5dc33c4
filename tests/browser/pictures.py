"""Draws the pictures of docs/page.md: python -m tests.browser.pictures [FOLDER] [--all]

The page is real, and so are its server and its database; only the model follows a script.
"""

import asyncio
import sys
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.browser import tale
from tests.browser.tab import DESKTOP, PHONE, TABLET, Scheme, Tab, chromium, opened
from tests.web.rig import running

FOLDER = Path("docs/pictures")
INTO_VIEW = "each => each.scrollIntoView({block: 'end'})"
PLACES = ("chat", "learning", "journal", "skills", "skill", "sessions", "session", "reviews", "figures")

View = tuple[str, tuple[int, int], Scheme]
KEPT: Sequence[View] = (("desktop", DESKTOP, "light"), ("phone", PHONE, "light"))
FURTHER: Sequence[View] = (
    ("tablet", TABLET, "light"),
    ("desktop-dark", DESKTOP, "dark"),
    ("phone-dark", PHONE, "dark"),
)


async def talk(tab: Tab) -> None:
    """The part of the story that happens today."""
    page = tab.page
    await page.get_by_label("Message").fill(tale.ASKED)
    await page.get_by_label("Message").press("Enter")
    await page.locator(".learned").wait_for(timeout=90_000)  # a local server is left to the owner for a while


def place(name: str, session: str) -> str:
    return {
        "chat": f"#/chat/{session}",
        "skill": "#/skills/weekly-report",
        "session": f"#/sessions/{session}",
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
    await tab.page.mouse.move(0, 0)
    await tab.page.screenshot(path=path, animations="disabled")


async def draw(folder: Path, views: Sequence[View]) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory() as scratch:
        home, work = Path(scratch) / "home", Path(scratch) / "work"
        work.mkdir()
        await tale.lived(home, work, datetime.now(UTC))
        async with (
            running(home, work, tale.script, settings=tale.SETTINGS) as visit,
            chromium() as browser,
        ):
            async with opened(browser, visit) as tab:
                await talk(tab)
                session = (await visit.get("/api/sessions"))["sessions"][0]["session"]
                await visit.client.patch(f"/api/sessions/{session}", json={"title": "Release notes for 2.4"})
                await visit.post(f"/api/sessions/{session}/branch", at=2)
            for label, size, scheme in views:
                async with opened(browser, visit, size, scheme) as tab:
                    for name in PLACES:
                        await shoot(tab, name, session, folder / f"{name}-{label}.png")
                    assert not tab.trouble.said, tab.trouble.said


def main() -> None:
    names = [each for each in sys.argv[1:] if not each.startswith("--")]
    views = [*KEPT, *FURTHER] if "--all" in sys.argv else KEPT
    asyncio.run(draw(Path(names[0]) if names else FOLDER, views))


if __name__ == "__main__":
    main()
