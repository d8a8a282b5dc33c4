"""`python -m benchmarks.scroll`: the longest task while Chromium scrolls through 5,000 messages.

A task blocks the page while it runs. The figures are processor time of the page's own thread.
"""

import asyncio
import json
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from hone.core.messages import Message, assistant, user
from tests.browser.tab import chromium, opened
from tests.web.rig import running

MESSAGES = 5_000
STRIDE = 1_200
"""Pixels per turn of the wheel."""
TASK, THREAD = "RunTask", "CrRendererMain"
DRAWN = "() => new Promise(requestAnimationFrame)"
TOP = "() => Number(document.querySelector('.said')?.dataset.number)"
ANSWER = """\
## Part {n}

- one `x = {n}`
- two

```python
def part():
    return {n}
```

| a | b |
|---|---|
| {n} | 2 |
"""


def conversation() -> list[Message]:
    pairs = ((user(f"Question {n}?"), assistant(ANSWER.format(n=n))) for n in range(MESSAGES // 2))
    return [message for pair in pairs for message in pair]


async def measure(home: Path, folder: Path) -> str:
    async with running(home, folder) as visit, chromium() as browser:
        session = (await visit.state.open_sessions.begin(told=conversation())).session.id
        async with opened(browser, visit) as tab:
            page, turns = tab.page, 0
            await browser.start_tracing(page=page, categories=["toplevel", "__metadata"])
            await tab.go(f"#/chat/{session}")
            await page.locator(".thread").hover()
            while await page.evaluate(TOP) > 1:
                await page.mouse.wheel(0, -STRIDE)
                await page.evaluate(DRAWN)
                turns += 1
            tasks = durations(json.loads(await browser.stop_tracing()))
            drawn = await page.locator(".said").count()
    over = sum(each > 100 for each in tasks)
    told = f"longest task {tasks[-1]:.0f} ms, {over} over 100 ms"
    return f"{drawn:,} messages, {turns:,} turns of the wheel: {told}"


def durations(trace: Any) -> list[float]:
    """Return the milliseconds of all tasks of pages, the longest last."""
    events = trace["traceEvents"]
    own = {
        (each["pid"], each["tid"])
        for each in events
        if each["name"] == "thread_name" and each["args"]["name"] == THREAD
    }
    tasks = (each for each in events if TASK in each["name"] and (each["pid"], each["tid"]) in own)
    return sorted(each.get("tdur", 0) / 1000 for each in tasks)


def main() -> None:
    with TemporaryDirectory() as scratch:
        folder = Path(scratch) / "work"
        folder.mkdir()
        print(asyncio.run(measure(Path(scratch) / "home", folder)))


if __name__ == "__main__":
    main()
