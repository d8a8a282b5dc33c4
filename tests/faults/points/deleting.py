"""Deleting several conversations with one command. Killed anywhere, the same command finishes it."""

import asyncio
from contextlib import redirect_stderr, redirect_stdout
from io import StringIO
from pathlib import Path

from hone import Hone
from hone.cli.main import perform
from hone.core.ledger import USER, Actor, Author, Evidence
from hone.core.trust import Trust
from hone.knowledge import journal
from hone.models.scripted import Scripted, rounds
from hone.settings import Settings
from tests.faults.points.scenario import DONE, REFUSED, Say, Told, copy_furnished, debris, lying, unsound

SECRET = "The spare key is below the third flowerpot."


class Deleting:
    """Three of four conversations, with what was learned from one of them."""

    name = "delete"

    async def prepare(self, root: Path) -> None:
        await copy_furnished(self.name, root, furnish)

    async def rehearse(self, root: Path) -> tuple[object, set[str]]:
        code, message = await asyncio.to_thread(delete, root)
        assert code == 0, message
        heads, known = await view(root)
        assert (len(heads), known) == (1, {})
        return (heads, known), lying(root)

    async def act(self, root: Path, say: Say) -> None:
        code, message = await asyncio.to_thread(delete, root)
        for line in message.splitlines():
            say(f"{REFUSED}{line}")
        if code == 0:
            say(f"{DONE}all")

    async def inspect(self, root: Path, told: Told, expected: tuple[object, set[str]]) -> list[str]:
        whole, known = expected
        wrong = []
        if told.all(DONE) and await view(root) != whole:
            wrong.append("lost: what was said to be deleted is there")
        code, message = await asyncio.to_thread(delete, root)
        if (code, await view(root)) != (0, whole):
            wrong.append(f"half: the second try ends with {code} and {message!r}")
        return wrong + debris(root, known) + await unsound(root / "home")


def opened(root: Path) -> Hone:
    model, settings = Scripted(rounds("Noted.")), Settings()
    return Hone(home=root / "home", folder=root, model=model, settings=settings, learning="queue")


async def furnish(root: Path) -> None:
    ids = []
    async with opened(root) as hone:
        for number in range(4):
            session = await hone.session()
            await session.send(f"{SECRET} This is number {number}.")
            ids.append(session.id)
        said = (await hone.sessions.load(ids[1])).transcript.nodes[0]
        evidence = (Evidence(ids[1], 1, Trust.OWNER, said.digest),)
        author = Author(Actor.AGENT, ids[1], reason="said so", evidence=evidence, quotes=(SECRET,))
        await hone.keeper.note([(USER, journal.Add(SECRET))], author)
    root.with_name("ids").write_text(" ".join(ids[:3]))  # beside what the disk refuses


def delete(root: Path) -> tuple[int, str]:
    """Like `hone sessions delete A B C`: its exit code, and what it has to say beside the result."""
    out, err = StringIO(), StringIO()
    ids = root.with_name("ids").read_text().split()
    words = ["--home", str(root / "home"), "sessions", "delete", *ids, "--lessons", "withdraw", "--yes"]
    with redirect_stdout(out), redirect_stderr(err):
        code = perform(words)
    return code, err.getvalue().strip()


async def view(root: Path) -> tuple[dict[str, str], dict[str, bytes]]:
    """The conversations that are left, and what is known of the owner."""
    async with opened(root) as hone:
        ids = [each.header.id for each in await hone.sessions.list(None, None)]
        heads = {str(id): (await hone.sessions.load(id)).transcript.head for id in ids}
        files = await hone.keeper.files(USER)
        return heads, {path: text for path, text in files.items() if SECRET.encode() in text}
