"""`hone demo`: show how Hone learns, with a scripted model. Everything except the model is real."""

import asyncio
import sys
from itertools import takewhile
from pathlib import Path
from tempfile import TemporaryDirectory

import click

from hone.app import Hone
from hone.cli.changes import learned_lines
from hone.cli.context import Interrupts, take_turn
from hone.cli.render import Paint, describe, first_line, paint_for
from hone.cli.reviews import attempt, percent
from hone.cli.terminal.screen import working
from hone.core.errors import HoneError
from hone.core.events import Learned
from hone.core.jobs import Job
from hone.core.ledger import Entry
from hone.core.messages import assistant
from hone.core.turn import Stop
from hone.models.fake_provider import FakeProvider
from hone.models.scripted import Script, call, rounds, rules
from hone.runtime.session import Session
from hone.settings import Settings
from hone.settings.sections import Learning, ProviderSettings

INTRODUCTION = """\
This is Hone at work on a small project, in a temporary folder that is removed at the end.
The model is scripted: what it says was written beforehand; no provider is asked and no key is used.
Everything else is real: HTTP and streaming, tools and the files they change, permits, the store."""
FAREWELL = """\
Your turn. Choose a model, with a key or a local server: hone setup"""

WISH = "gross(100) gives 19.0 instead of 119.0. Please find out why, and fix it."
CORRECTION = "Right. But answer in one sentence, always."
QUESTION = "Does anything else use TAX?"
LESSON = "Always answer in one sentence."

FILES = {
    "README.md": "# shop\n\n`gross(100)` must give `119.0`: the net price plus 19% tax.\n",
    "prices.py": "TAX = 0.19\n\n\ndef gross(net: float) -> float:\n    return round(net * TAX, 2)\n",
}


@click.command(short_help="Watch Hone work and learn, without a key or a network.")
def demo() -> None:
    """Watch Hone work and learn. Needs no key, no server and no network."""
    with TemporaryDirectory(prefix="hone-demo-") as folder:
        asyncio.run(_play(Path(folder)))


async def _play(root: Path) -> None:
    print(INTRODUCTION)
    project = root / "shop"
    project.mkdir()
    for name, text in FILES.items():
        (project / name).write_text(text, "utf-8")
    async with FakeProvider(script()) as stage:
        settings = Settings(
            model="scripted/demo",
            providers={"scripted": ProviderSettings(f"{stage.url}/v1", local=False)},
            learning=Learning(turns=2),
        )
        async with Hone(home=root / "home", folder=project, settings=settings, learning="queue") as hone:
            await Demo(hone, stage, paint_for(sys.stdout)).play()
    print(f"\n{FAREWELL}")


def script() -> Script:
    """Return what the model says: to the wish, to the correction, to the review's question, and in session
    two."""
    fix = rounds(
        assistant("Let me see where that price is made.\n", call("search_files", pattern="gross")),
        assistant(call("read_file", path="prices.py"), call("read_file", path="README.md")),
        assistant(
            "It takes the tax alone instead of adding it.\n",
            call("patch", path="prices.py", find="net * TAX", replace="net * (1 + TAX)"),
        ),
        "I looked at prices.py and at the README. The function multiplied the net price by the tax rate, "
        "which gives the tax and not the price. I changed it to add the tax, so gross(100) gives 119.0 now. "
        "There are no tests here that could confirm it.",
    )
    keep = call("memory", action="add", target="user", text=LESSON, evidence=[CORRECTION])
    stray = call("write_file", path="NOTES.md", content="One sentence.\n")
    return rules(
        ("look back over this conversation", rounds(assistant(keep, stray), "Saved how to answer.")),
        ("gross", fix),
        ("one sentence", rounds("gross() now adds the tax.")),
        otherwise=rounds(
            assistant(call("search_files", pattern="TAX")), "Only gross() in prices.py uses it."
        ),
    )


class Demo:
    """The demo, one act after the other, each shown as a user would see it."""

    def __init__(self, hone: Hone, stage: FakeProvider, paint: Paint) -> None:
        self._hone = hone
        self._stage = stage
        self._paint = paint

    async def play(self) -> None:
        self._title("Session one")
        session = await self._hone.session()
        await self._say(session, WISH)
        await self._say(session, CORRECTION)
        learned = await self._review()
        self._title("Session two begins with it")
        session = await self._hone.session()
        self._show_prompt(session)
        await self._say(session, QUESTION)
        await self._undo(learned.entries[0])
        self._title("Session three begins without it")
        self._show_prompt(await self._hone.session())

    async def _say(self, session: Session, words: str) -> None:
        print(f"\n{self._paint.bold(f'> {words}')}")
        with Interrupts() as interrupts:
            async with working(interrupts) as emit:
                turn = await take_turn(session, words, emit, interrupts)
        if turn.stop is not Stop.ANSWERED:
            raise HoneError("The demo stopped: the script has lines left.")

    async def _review(self) -> Learned:
        self._title("The review: a fork that may only keep what it learned")
        print("A copy of the conversation continues on the same prompt, with fewer rights.")
        print("Hone starts it by itself after some turns, and nobody waits for it.\n")
        asked = len(self._stage.bodies)
        [job] = await self._hone.jobs.waiting()
        learned = await attempt(self._hone, job.id)
        if learned is None or not learned.entries:
            raise HoneError("The demo stopped: nothing was learned.")
        print("\n".join(await learned_lines(self._hone.keeper, learned, "on")))
        await self._show_refused(learned)
        self._show_bytes(*self._stage.bodies[asked - 1 : asked + 1])
        await self._show_cache(learned.job)
        return learned

    def _show_bytes(self, parent: bytes, child: bytes) -> None:
        """Show that the review's first request begins with the conversation's last one."""
        shared = in_common(parent, child)
        if shared < len(parent) - len("]}"):
            raise HoneError(f"The fork left its parent's request after {shared:,} of {len(parent):,} bytes.")
        print(f"Its first request has {len(child):,} bytes, the conversation's last one had {len(parent):,}.")
        print(f"The first {shared:,} bytes are the same: all but the two brackets that close the latter.")

    async def _show_cache(self, job: Job) -> None:
        before = (await self._hone.sessions.spending(job.session))[-1].usage
        first = (await self._hone.sessions.spending(job.review))[0].usage
        share = percent(first.cached / before.input)
        print(f"The provider had {first.cached:,} of the latter's {before.input:,} tokens cached: {share}.")
        print(f"With the question it was {percent(job.cached)} of the review's first request.")

    async def _show_refused(self, learned: Learned) -> None:
        """Show what it was not allowed to do."""
        transcript = (await self._hone.sessions.load(learned.job.review)).transcript
        calls = {call.id: call for message in transcript for call in message.calls}
        for result in (message.result for message in transcript):
            if result and result.failed:
                why = first_line(result.text).partition(". ")[0].removesuffix(".")
                print(f"{self._paint.red('✗')} {describe(calls[result.call])}: {why}")

    def _show_prompt(self, session: Session) -> None:
        """Show the part of the system prompt with the journal."""
        _, found, after = session.agent.prefix.system.partition("# Journal\n")
        journal = takewhile(lambda row: not row or row.startswith(("## ", "- ")), after.split("\n"))
        rows = ["# Journal", *filter(None, journal)] if found else ["(no journal)"]
        print("\n".join(("In its system prompt:", *(f"  {row}" for row in rows))))

    async def _undo(self, entry: Entry) -> None:
        self._title(f"hone undo {entry.id}")
        made = await self._hone.keeper.undo(entry.id)
        print(f"Change {entry.id} is undone by change {made.id}. Restore it with: hone undo {made.id}")

    def _title(self, words: str) -> None:
        print(f"\n{self._paint.bold(words)}")


def in_common(one: bytes, other: bytes) -> int:
    """Return how many bytes both begin with."""
    pairs = enumerate(zip(one, other, strict=False))
    return next((at for at, (left, right) in pairs if left != right), min(len(one), len(other)))
