"""Erasing what is in every kind of place. Killed anywhere, it can be repeated, and comes to the same end."""

import re
from collections.abc import Awaitable, Callable, Sequence
from contextlib import closing
from pathlib import Path
from random import Random
from typing import Any

from hone import Hone
from hone.core.erasure import Erasure
from hone.core.ledger import USER, Actor, Author, ChangeQuery
from hone.features.erasing.plan import plan_lesson, plan_session, plan_words
from hone.features.erasing.service import Erasing
from hone.files.erasing import below
from hone.knowledge import journal
from hone.stores.database import connect
from hone.stores.examine import examine
from tests.faults.points.scenario import DONE, Say, Told, copy_furnished
from tests.features.facts import furnish, make_fact, open_home

FACT, REASON = make_fact(Random(1)), "kept for this test"
LESSON = f"Keeps {make_fact(Random(3))} at home."
_TAG = re.compile(r"\(erased [0-9a-f]{8}\)|erased-[0-9a-f]{8}")

Plan = Callable[[Hone], Awaitable[Erasure | None]]


async def words(_: Hone) -> Erasure | None:
    return plan_words([FACT])


async def lesson(hone: Hone) -> Erasure | None:
    """By its number, as a command does. When the rows are done, nobody knows its words any more."""
    every = await hone.ledger.entries(ChangeQuery(target=USER))
    found = [entry for entry in every if entry.change.author.reason == REASON]
    return await plan_lesson(hone, found[0].id) if found else None


async def session(hone: Hone) -> Erasure | None:
    every = await hone.sessions.list(None)
    found = [each.header.id for each in every if each.header.title == f"About {FACT}"]
    return await plan_session(hone, found[0]) if found else None


STEPS: Sequence[tuple[Plan, str]] = (
    (session, f"Please remember this.\\n{FACT}"),
    (lesson, LESSON),
    (words, FACT),
)
"""What is erased one after another, and what no file may hold then."""


class Erase:
    """A conversation, a lesson and words, each in every place that has them."""

    name = "erase"

    async def prepare(self, root: Path) -> None:
        await copy_furnished(self.name, root, _furnish)

    async def rehearse(self, root: Path) -> Any:
        for plan, _ in STEPS:
            await _erase(root, plan)
        return await _view(root)

    async def act(self, root: Path, say: Say) -> None:
        for number, (plan, _) in enumerate(STEPS):
            await _erase(root, plan)
            say(f"{DONE}{number}")

    async def inspect(self, root: Path, told: Told, expected: Any) -> list[str]:
        done = len(told.all(DONE))
        gone = [f"lost: {left} has it" for _, secret in STEPS[:done] if (left := _left(root, secret))]
        for plan, secret in STEPS[done:]:
            await _erase(root, plan)
            gone += [f"half: {left} has it after a second try" for left in _left(root, secret)]
        if (found := await _view(root)) != expected:
            gone.append(f"half: the next process does not come to the same end: {found!r:.1500}")
        with closing(connect(root / "home" / "hone.db", 10)) as connection:
            return gone + [f"unsound: {line}" for line in examine(connection)]


async def _furnish(root: Path) -> None:
    await furnish(root, FACT, "a")
    async with open_home(root) as hone:
        author = Author(Actor.OWNER, reason=REASON)
        await hone.keeper.note([(USER, journal.Add(LESSON))], author)


async def _erase(root: Path, plan: Plan) -> None:
    """Erase as the command does: finish what was cut off, then do what is asked for."""
    async with open_home(root) as hone:
        if await Erasing(hone).is_cut_off():
            await Erasing(hone).resume()
        if what := await plan(hone):
            outcome = await Erasing(hone).erase(what)
            assert outcome.is_clean, outcome


def _left(root: Path, secret: str) -> list[str]:
    return [path.name for path in below(root / "home") if secret.encode() in path.read_bytes()]


async def _view(root: Path) -> Any:
    """All there is to know, without times, numbers and random names."""
    async with open_home(root) as hone:
        known = {target: await hone.keeper.files(target) for target in await _targets(hone)}
        lines = [await hone.sessions.load(each.header.id) for each in await hone.sessions.list(None, None)]
        said = sorted([node.message.text for node in line.transcript.nodes] for line in lines)
        checks = await hone.checks()
        waiting = len(await hone.ledger.pending())
    apart = ("provenance", "locks")  # what the next process clears, and what lies there empty
    names = sorted(str(path.relative_to(root)) for path in below(root) if path.parent.name not in apart)
    texts = {name: (root / name).read_bytes() for name in names if name.endswith((".md", ".txt", "history"))}
    return eval(_TAG.sub("(erased)", repr((known, said, checks, waiting, names, texts))))


async def _targets(hone: Hone) -> list[Any]:
    held = await hone.ledger.held_below("")
    return sorted(held)
