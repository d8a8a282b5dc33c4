"""Find the change that broke a task, by running the task with what was known at different times."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from msgspec import Struct

from hone.app import Hone
from hone.core.errors import Refused
from hone.core.ledger import SKILL, ChangeId, ChangeState, Entry, Target, project
from hone.core.visible import path_to_text
from hone.features.experiments.bisection import Suspicion, Tally, choose_state, suspect
from hone.features.experiments.scratch_home import HomeContents
from hone.features.experiments.trial import TrialRoom
from hone.features.experiments.values import Task
from hone.features.experiments.working import working
from hone.knowledge import places
from hone.knowledge.folding import fold, load_held
from hone.knowledge.snapshots import journals

FIRST = 3
"""How many runs before the first change and after the last one, to see that there is something to find."""
MOST = 60
"""The default number of runs."""
Known = Mapping[Target, Mapping[str, str]]
"""What was known at one moment: the digests of its contents, by target and path."""
Progress = Callable[[int, Suspicion], None]
"""Hears how many runs are done, and their result so far."""


class SuspectChange(Struct, frozen=True):
    """A change, or several that were made together, with what was known after it."""

    entries: tuple[Entry, ...]
    known: Known

    @property
    def id(self) -> ChangeId:
        return self.entries[0].id


class ChangeHistory(Struct, frozen=True):
    """The changes in question, oldest first, and what was known before them."""

    before: Known
    suspects: tuple[SuspectChange, ...]

    def known(self, state: int) -> Known:
        return self.suspects[state - 1].known if state else self.before


class BisectResult(Struct, frozen=True):
    """How the runs ended, by state, and what follows. Without a `culprit` it is open, or `nothing` says why
    there is nothing to find."""

    history: ChangeHistory
    tallies: tuple[Tally, ...]
    suspicion: Suspicion
    nothing: str = ""

    @property
    def culprit(self) -> SuspectChange | None:
        found = None if self.nothing else self.suspicion.culprit
        return self.history.suspects[found - 1] if found else None

    @property
    def runs(self) -> int:
        return sum(each.successes + each.failures for each in self.tallies)


async def read_history(hone: Hone, folder: Path, since: ChangeId | None, task: Task) -> ChangeHistory:
    """Return the changes that a folder's prompt could show: those after `since`, or those made after the task
    was recorded. Raises Refused if there are none."""
    await hone.library.listed()  # a manual edit is a change, too
    here = set(journals(folder))
    known: dict[Target, Mapping[str, str]] = {}
    before: Known = {}
    suspects: list[SuspectChange] = []
    for entry in reversed(await hone.ledger.entries()):
        change = entry.change
        concerns = change.target in here or change.target.startswith(SKILL)
        if change.standing is not ChangeState.ACTIVE or not change.deltas or not concerns:
            continue
        known[change.target] = fold(known.get(change.target, {}), change)
        if entry.id <= since if since is not None else entry.at <= task.created:
            before = dict(known)
        elif suspects and change.group and suspects[-1].entries[-1].change.group == change.group:
            suspects[-1] = SuspectChange((*suspects[-1].entries, entry), dict(known))
        else:
            suspects.append(SuspectChange((entry,), dict(known)))
    if not suspects:
        raise Refused("Nothing that Hone knows here has changed since then. Name an earlier change: --since")
    return ChangeHistory(before, tuple(suspects))


class Bisector:
    """Runs a task with what the owner's Hone knew at different times."""

    def __init__(self, owner: Hone, model: str = "") -> None:
        self._owner = owner
        self._model = model

    async def find(self, task: Task, history: ChangeHistory, most: int, tell: Progress) -> BisectResult:
        """Search. Raises ModelError if the provider gives no answer."""
        tallies = [Tally()] * (len(history.suspects) + 1)
        async with working(self._owner, task.name) as root:
            room = TrialRoom(self._owner, task, root, self._model)
            for runs in range(most):
                suspicion = suspect(tallies)
                tell(runs, suspicion)
                state = _choose(tallies, suspicion)
                if state is None or is_hopeless(tallies):
                    break
                await self._prepare(room, task, history, state)
                good = (await room.run(str(state))).success
                tallies[state] += Tally(int(good), int(not good))
        return BisectResult(history, tuple(tallies), suspect(tallies), is_hopeless(tallies))

    async def _prepare(self, room: TrialRoom, task: Task, history: ChangeHistory, state: int) -> None:
        if not room.has(str(state)):
            contents = await self._load(history.known(state), Path(task.folder), room.work)
            await room.prepare(str(state), contents)

    async def _load(self, known: Known, from_folder: Path, to: Path) -> HomeContents:
        """Load what was known in a folder, as if it were in another one."""
        ledger, own = self._owner.ledger, project(path_to_text(from_folder))
        texts: dict[Target, str] = {}
        skills: dict[str, Mapping[str, bytes]] = {}
        for target, held in known.items():
            files = await load_held(ledger, held)
            if target.startswith(SKILL):
                if files:
                    skills[places.name_of(target)] = files
            else:
                there = project(path_to_text(to)) if target == own else target
                texts[there] = files.get(places.path_of(target), b"").decode("utf-8")
        return HomeContents(texts, skills)


def _choose(tallies: Sequence[Tally], suspicion: Suspicion) -> int | None:
    """Return the state of the next run: first both ends, then the most informative one; None if it is
    decided."""
    for state in (len(tallies) - 1, 0):
        if tallies[state].successes + tallies[state].failures < FIRST:
            return state
    return None if suspicion.culprit is not None else choose_state(tallies, suspicion)


def is_hopeless(tallies: Sequence[Tally]) -> str:
    """Return why there is nothing to find if both ends behave alike in all of their first runs; empty if
    not."""
    first, last = tallies[0], tallies[-1]
    if min(first.successes, last.successes) >= FIRST and not first.failures + last.failures:
        return "The task succeeds with what is known now, as it did before."
    if min(first.failures, last.failures) >= FIRST and not first.successes + last.successes:
        return "The task failed before the first of these changes, too. Name an earlier one: --since"
    return ""
