"""A tab of real Chromium that notes whatever a clean page does not do."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, Literal
from urllib.parse import urlsplit

from playwright.async_api import (
    Browser,
    ConsoleMessage,
    Dialog,
    Page,
    Request,
    Response,
    async_playwright,
    expect,
)

from tests.conftest import requires
from tests.web.rig import Running

DESKTOP, TABLET, PHONE = (1280, 800), (768, 1024), (390, 844)
PATIENCE = 30_000.0
GO = """place => {
    const before = location.hash;
    const mark = document.querySelector(".page[data-ready]");
    location.hash = place;
    if (location.hash !== before && mark) delete mark.dataset.ready;
}"""
DRAWN = "() => new Promise(done => requestAnimationFrame(() => setTimeout(done)))"
Scheme = Literal["light", "dark"]
expect.set_options(timeout=PATIENCE)


@dataclass
class Trouble:
    """What went wrong in a tab."""

    said: list[str] = field(default_factory=list)
    ran: list[str] = field(default_factory=list)
    """What a stored text managed to run."""
    open: set[Request] = field(default_factory=set)
    """What was asked for and is not answered yet, streams aside."""
    quiet: asyncio.Event = field(default_factory=asyncio.Event)

    def watch(self, page: Page, url: str) -> None:
        host = urlsplit(url).netloc

        def on_console(message: ConsoleMessage) -> None:
            if message.type in ("error", "warning"):
                self.said.append(f"console: {message.text}")

        def on_request(request: Request) -> None:
            asked = urlsplit(request.url)
            if request.resource_type != "eventsource":
                self.open.add(request)
                self.quiet.clear()
            if asked.scheme != "data" and asked.netloc != host:
                self.said.append(f"off the host: {request.url}")

        def on_response(response: Response) -> None:
            if response.status >= 400:
                self.said.append(f"{response.status}: {response.url}")

        def on_end(request: Request) -> None:
            self.open.discard(request)
            if not self.open:
                self.quiet.set()

        def on_failure(request: Request) -> None:
            on_end(request)
            # Leaving a page ends what it was about to read; that is no failure.
            if request.failure != "net::ERR_ABORTED":
                self.said.append(f"{request.failure}: {request.url}")

        async def on_dialog(dialog: Dialog) -> None:
            self.ran.append(dialog.message)
            await dialog.dismiss()

        page.on("console", on_console)
        page.on("pageerror", lambda error: self.said.append(f"error: {error}"))
        page.on("request", on_request)
        page.on("response", on_response)
        page.on("requestfinished", on_end)
        page.on("requestfailed", on_failure)
        page.on("dialog", on_dialog)


@dataclass
class Tab:
    page: Page
    url: str
    trouble: Trouble

    async def go(self, place: str) -> None:
        """To a place in the page, as a link would lead there. The page it leaves is no longer ready."""
        await self.page.evaluate(GO, place)
        await self.ready()

    async def ready(self) -> None:
        await self.page.locator(".page[data-ready]").wait_for()

    async def quiet(self) -> None:
        """When all that was asked for is answered and drawn."""
        await self.page.evaluate(DRAWN)
        async with asyncio.timeout(PATIENCE / 1000):
            await self.trouble.quiet.wait()
        await self.page.evaluate(DRAWN)


@asynccontextmanager
async def chromium() -> AsyncIterator[Browser]:
    """Debian's, headless. Without it the test is skipped with one line, and fails in CI."""
    path = requires("chromium")
    async with async_playwright() as playwright:
        # A font server or a component update would be a request off the host.
        browser = await playwright.chromium.launch(
            executable_path=path, args=["--disable-gpu", "--disable-component-update"]
        )
        try:
            yield browser
        finally:
            await browser.close()


@asynccontextmanager
async def opened(
    browser: Browser, visit: Running, size: tuple[int, int] = DESKTOP, scheme: Scheme = "light", **more: Any
) -> AsyncIterator[Tab]:
    """A tab that came in with a ticket, as from the address that hone serve prints."""
    width, height = size
    context = await browser.new_context(
        viewport={"width": width, "height": height}, color_scheme=scheme, reduced_motion="reduce", **more
    )
    context.set_default_timeout(PATIENCE)
    page = await context.new_page()
    tab = Tab(page, visit.url, Trouble())
    tab.trouble.watch(page, visit.url)
    try:
        await page.goto(f"{visit.url}/login?ticket={visit.state.keys.ticket()}")
        await tab.ready()
        yield tab
    finally:
        await context.close()
