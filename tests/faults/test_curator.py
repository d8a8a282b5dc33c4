"""E8: a curator's plan is applied, approved or undone wholly or not at all, whenever that is killed."""

import asyncio
import os
import signal
import sys
from asyncio.subprocess import PIPE, Process
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import pytest

from hone.core.ledger import ChangeId, skill
from tests.conftest import Figures, Tier, requires
from tests.faults import curator_worker
from tests.faults.beside import ROOT, hear, rest
from tests.faults.curator_worker import NAMES, furnished, house
from tests.faults.test_knowledge import FIRST, LAST, LINE, TRACE, State, Tally, sound, state

MADE = {"apply": 4, "approve": 7, "undo": 7}
"""Changes that are there before each deed; each makes three more."""


async def tried(home: Path, deed: str, under: Sequence[str]) -> tuple[Process, list[str]]:
    """The deed on a fresh home, which somebody has open until it begins: so its first write is its own."""
    home.mkdir(mode=0o700)
    await furnished(home, deed)
    command = [*under, sys.executable, "-W", "error", curator_worker.__file__, deed, str(home)]
    environ = os.environ | {"PYTHONPATH": str(ROOT)}
    async with house(home):
        worker = await asyncio.create_subprocess_exec(*command, stdin=PIPE, stdout=PIPE, env=environ)
        ready = await hear(worker)
    return worker, [ready, *await rest(worker, "")]


async def rehearse(strace: str, deed: str, folder: Path) -> tuple[list[tuple[str, int]], State]:
    log, home = folder / "log", folder / "rehearsed"
    worker, said = await tried(home, deed, [strace, "-f", "-qq", "-o", str(log), "-e", TRACE])
    assert (worker.returncode, said) == (0, ["ready", f"done {deed}", "over"])
    made = Counter(match.groups() for match in map(LINE.match, log.read_text().splitlines()) if match)
    threads = Counter(name for _, name in made)
    assert [name for name, count in threads.items() if count > 1] == ["flock"]  # else some are never reached
    points = {(name, at + 1) for (_, name), count in made.items() for at in range(count)}
    return sorted(points - {FIRST}), state(home)


async def aftermath(home: Path, deed: str, states: tuple[State, State], *, done: bool) -> list[str]:
    """What the next process finds."""
    async with house(home) as it:
        for name in NAMES:
            await it.keeper.files(skill(name))
        found = state(home)
        made = len(await it.keeper.ledger.entries(after=ChangeId(MADE[deed])))
        rounds = len(await it.rounds.rounds())
    _, after = states
    wrong = []
    if found not in states:
        wrong.append(f"debris or halves: {sorted(set(found.items()) ^ set(after.items()))}")
    if made != (3 if found == after else 0):
        wrong.append(f"halves: {made} changes in the ledger")
    if deed == "apply" and rounds != bool(made):
        wrong.append(f"halves: {rounds} rounds for {made} changes")
    if done and found != after:
        wrong.append("lost")
    return wrong + [f"unsound {each}" for each in await sound(home)]


@pytest.mark.parametrize("deed", MADE)
async def test_a_kill_at_any_write_leaves_a_group_whole_or_absent(
    tmp_path: Path, deed: str, tier: Tier, figures: Figures
) -> None:
    strace, tally = requires("strace"), Tally()
    points, after = await rehearse(strace, deed, tmp_path)
    untouched = tmp_path / "before"
    untouched.mkdir(mode=0o700)
    await furnished(untouched, deed)
    states = (state(untouched), after)
    assert states[0] != states[1]
    points.remove(LAST)
    some = tier.random().sample(points, tier.size(short=4, full=len(points)))
    for name, when in (*some, LAST):
        home = tmp_path / f"{name}-{when}"
        kill = f"inject={name}:signal=SIGKILL:when={when}"
        worker, said = await tried(
            home, deed, [strace, "-f", "-qq", "-o", os.devnull, "-e", TRACE, "-e", kill]
        )
        killed = worker.returncode == -signal.SIGKILL
        tally.kills += killed
        tally.through += not killed
        tally.acknowledged += f"done {deed}" in said
        wrong = await aftermath(home, deed, states, done=f"done {deed}" in said)
        tally.whole += not wrong and state(home) == after
        tally.wrong += [f"{name} {when}: {each}" for each in wrong]
    figures(f"kill -9 in {deed} of a group, {len(some) + 1} of {len(points) + 1} write points: {tally}")
    assert not tally.wrong, "\n".join(tally.wrong)
    assert tally.kills
    assert tally.acknowledged
