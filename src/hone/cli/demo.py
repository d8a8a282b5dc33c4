"""`hone demo`: the main job, shown with a scripted model. Everything but the model's thinking is real."""

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from hone.core.errors import HoneError

if TYPE_CHECKING:
    from hone.app import Hone
    from hone.cli.paint import Paint
    from hone.core.ports import Spending, Stored
    from hone.models.scripted import Script
    from hone.models.stage import Stage
    from hone.runtime.session import Session

INTRODUCTION = """\
This is Hone at work on a small project, in a temporary folder that is removed at the end.
The model is scripted: what it says was written beforehand; no provider is asked and no key is used.
Everything else is real: HTTP and streaming, tools and the files they change, permits, the store."""
FAREWELL = """\
Your turn. Set ANTHROPIC_API_KEY or OPENAI_API_KEY, or start a local server such as ollama, then: hone"""

WISH = "gross(100) gives 19.0 instead of 119.0. Please find out why, and fix it."
THANKS = "Thank you. Put a line about it into CHANGES.md, too."
REVIEW = "Looking back: which rule of this project is worth keeping? Write it into NOTES.md."

FILES = {
    "README.md": "# shop\n\n`gross(100)` must give `119.0`: the net price plus 19 % tax.\n",
    "prices.py": "TAX = 0.19\n\n\ndef gross(net: float) -> float:\n    return round(net * TAX, 2)\n",
}


@click.command(short_help="Watch Hone do its job, without a key or a network.")
def demo() -> None:
    """Watch Hone do its job. Needs no key, no server and no network."""
    import asyncio
    from tempfile import TemporaryDirectory

    with TemporaryDirectory(prefix="hone-demo-") as folder:
        asyncio.run(_play(Path(folder)))


async def _play(root: Path) -> None:
    from hone.app import Hone
    from hone.cli.paint import paint_for
    from hone.models.stage import Stage
    from hone.settings import Provider, Settings

    print(INTRODUCTION)
    project = root / "shop"
    project.mkdir()
    for name, text in FILES.items():
        (project / name).write_text(text, "utf-8")
    async with Stage(script()) as stage:
        settings = Settings(model="scripted/demo", providers={"scripted": Provider(f"{stage.url}/v1")})
        async with Hone(home=root / "home", folder=project, settings=settings) as hone:
            await Demo(hone, stage, paint_for(sys.stdout)).play()
    print(f"\n{FAREWELL}")


def script() -> "Script":
    """What the model says, reply after reply; the fork goes on where the conversation stands."""
    from hone.core.messages import assistant
    from hone.models.scripted import call, lines

    return lines(
        assistant("Let me see where that price is made.\n", call("search_files", pattern="gross")),
        assistant(call("read_file", path="prices.py"), call("read_file", path="README.md")),
        assistant(
            "It takes the tax alone instead of adding it.\n",
            call("patch", path="prices.py", find="net * TAX", replace="net * (1 + TAX)"),
        ),
        "Fixed in prices.py: gross() now adds the tax to the net price, so gross(100) gives 119.0 as the "
        "README asks. There are no tests here that could confirm it.",
        assistant(call("write_file", path="CHANGES.md", content="- gross() adds the tax to the net price\n")),
        "Done: CHANGES.md has one line about it.",
        assistant(call("write_file", path="NOTES.md", content="Prices are gross: net plus 19 % tax.\n")),
        "I may not write here, so I only say it: prices are gross, that is net plus 19 % tax.",
    )


class Demo:
    """One act after the other, each shown as a user would see it."""

    def __init__(self, hone: "Hone", stage: "Stage", paint: "Paint") -> None:
        self._hone = hone
        self._stage = stage
        self._paint = paint

    async def play(self) -> None:
        session = await self._hone.session()
        await self._say(session, WISH)
        await self._say(session, THANKS)
        self._show_files()
        self._title(f"What is kept (hone sessions show {session.id})")
        self._show_kept(await self._hone.sessions.load(session.id))
        self._title("What the provider still knew of each request (its cache)")
        self._show_cache(await self._hone.sessions.spending(session.id))
        await self._fork(session)

    async def _say(self, session: "Session", words: str) -> None:
        from hone.cli.interrupt import Interrupts
        from hone.cli.opening import take_turn
        from hone.cli.terminal.screen import working
        from hone.core.turn import Stop

        print(f"\n{self._paint.bold(f'> {words}')}")
        with Interrupts() as interrupts:
            async with working(interrupts) as emit:
                turn = await take_turn(session, words, emit, interrupts)
        if turn.stop is not Stop.ANSWERED:
            raise HoneError("The demo broke off: the scripted model was not heard to its end.")

    def _show_files(self) -> None:
        self._title("What changed in the folder")
        for name in ("prices.py", "CHANGES.md"):
            text = (self._hone.folder / name).read_text("utf-8")
            print(f"{name}: … {text.splitlines()[-1].strip()}")

    def _show_kept(self, stored: "Stored") -> None:
        from hone.cli.listing import brief

        for number, node in enumerate(stored.transcript.nodes, 1):
            print(brief(number, node))

    def _show_cache(self, spent: "Sequence[Spending]") -> None:
        from hone.cli.render import share

        for number, each in enumerate(spent, 1):
            print(f"call {number}: {each.usage.input:,} tokens in, {share(each.usage)} cached")

    async def _fork(self, session: "Session") -> None:
        """The fork's first request must be the parent's last one and more."""
        from hone.core.permit import Effect, Permit
        from hone.core.turn import Origin

        self._title("A fork that may only read")
        print("The conversation goes on beside itself, as it will for a review, with fewer rights.")
        asked = len(self._stage.bodies)
        fork = session.fork(Permit(frozenset({Effect.READ})), Origin.REVIEW)
        await self._say(fork, REVIEW)
        parent, child = self._stage.bodies[asked - 1 : asked + 1]
        shared = in_common(parent, child)
        if shared < len(parent) - len("]}"):
            raise HoneError(f"The fork left its parent's request after {shared:,} of {len(parent):,} bytes.")
        print(f"\nNOTES.md was {'' if (self._hone.folder / 'NOTES.md').exists() else 'not '}written.")
        print(f"The fork's first request has {len(child):,} bytes, its parent's last had {len(parent):,}.")
        print(f"The first {shared:,} bytes are the same: all but the two brackets that close the parent's.")

    def _title(self, words: str) -> None:
        print(f"\n{self._paint.bold(words)}")


def in_common(one: bytes, other: bytes) -> int:
    """How many bytes both begin with."""
    pairs = enumerate(zip(one, other, strict=False))
    return next((at for at, (left, right) in pairs if left != right), min(len(one), len(other)))
