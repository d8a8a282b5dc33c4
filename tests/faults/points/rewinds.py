"""A scenario of checkpoints: tools and a command change files, which are rewound, redone, rewound again."""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from hone import Hone
from hone.core.errors import HoneError
from hone.core.events import Event, Notice
from hone.core.messages import ToolCall, assistant, canonical
from hone.core.tool_context import ToolContext
from hone.core.trust import Trust
from hone.features.checkpoints.part import CheckpointsPart
from hone.features.checkpoints.service import CheckpointService
from hone.features.checkpoints.values import RewindPlan
from hone.files.atomic import is_draft
from hone.files.opening import find_path
from hone.models.scripted import Scripted, rounds
from hone.runtime.session import Session
from hone.settings import Settings
from tests.faults.points.scenario import DONE, NOTICE, REFUSED, Say, Told, debris, unsound
from tests.features.histories import Deed, Tree, do, survey
from tests.given import NOON

ORIGINAL = (
    Deed("write", "a", content=b"original a\n"),
    Deed("write", "b", content=b"original b\n" * 500),
    Deed("write", "c/d", content=b"original d\n"),
    Deed("write", "g", content=b"original g\n"),
    Deed("link", "h", "c/d"),
)
COMMAND = (
    Deed("append", "b", content=b"more\n"),
    Deed("delete", "c"),
    Deed("write", "e/f", content=b"made\n"),
    Deed("swap", "g", content=b"in its place\n"),
    Deed("delete", "h"),
    Deed("write", "h", content=b"no link\n"),
)
TOUCHED = {"b", "c", "c/d", "e", "e/f", "g", "g/in", "h"}
COMMANDED = 3
"""The step that is a command. If it is cut short, nobody has noted what it changed."""


@dataclass
class Desk:
    service: CheckpointService
    session: Session
    folder: Path
    say: Say

    def context(self, turn: int, name: str, **arguments: str) -> ToolContext:
        said = self.session.transcript.upto(2 * turn - 1)
        call = ToolCall("c1", name, canonical(arguments))
        longer = said.then(assistant(call), Trust.AGENT, NOON)
        return ToolContext(self.session.agent, longer, self.hear, header=self.session.header, call=call)

    def hear(self, event: Event) -> None:
        if isinstance(event, Notice):
            self.say(f"{NOTICE}{event.text}")

    async def write(self, turn: int, path: str, text: str) -> None:
        context, observer = self.context(turn, "write_file", content=text), self.service.observer
        with find_path(self.folder, path) as place:
            before = place.read(2**20) if place.exists else None
            await observer.before_write(place.path, before, context)
            place.write(text.encode())
            await observer.after_write(place.path, text.encode(), context)

    async def command(self) -> None:
        context = self.context(2, "terminal", command="make")
        async with self.service.observer.around_command(self.folder, "make", context, network=False):
            for deed in COMMAND:
                do(self.folder, deed)

    async def rewind(self, turn: int) -> None:
        history = self.service.history
        self._tell(await history.apply(await history.plan(self.session.id, turn)))

    async def redo(self) -> None:
        history = self.service.history
        self._tell(await history.apply(await history.plan_redo(self.session.id)))

    def _tell(self, done: RewindPlan) -> None:
        for step in done.left:
            self.say(f"{NOTICE}{step.path.name} is left alone: {step.left}.")


STEPS: tuple[Callable[[Desk], Awaitable[None]], ...] = (
    lambda it: it.write(1, "a", "first a\n"),
    lambda it: it.write(1, "n/new", "new\n"),
    lambda it: it.write(2, "a", "second a\n"),
    Desk.command,
    lambda it: it.rewind(2),
    Desk.redo,
    lambda it: it.rewind(1),
)


@asynccontextmanager
async def opened(root: Path, say: Say = lambda _: None) -> AsyncIterator[Desk]:
    folder = root / "folder"
    model = Scripted(rounds("Yes."))
    async with Hone(
        home=root / "home", folder=folder, settings=Settings(), model=model, learning="queue"
    ) as hone:
        known = await hone.sessions.list()
        session = await (hone.resume(known[0].header.id) if known else hone.session())
        yield Desk(hone.part(CheckpointsPart).service, session, folder, say)


@dataclass(frozen=True)
class Rewinding:
    """Wherever it is cut, the next process brings back every file that a tool has changed."""

    name: str = "rewind"

    async def prepare(self, root: Path) -> None:
        (root / "home").mkdir(mode=0o700)
        for deed in ORIGINAL:
            do(root / "folder", deed)
        async with opened(root) as it:
            for words in ("first", "second"):
                await it.session.send(words)

    async def rehearse(self, root: Path) -> list[Tree]:
        trees = [survey(root / "folder")]
        async with opened(root) as it:
            for step in STEPS:
                await step(it)
                trees.append(survey(root / "folder"))
        assert trees[-1] == trees[0] != trees[4]
        assert trees[2] == trees[5] != trees[4] == trees[6]
        return trees

    async def act(self, root: Path, say: Say) -> None:
        async with opened(root, say) as it:
            for number, step in enumerate(STEPS):
                try:
                    await step(it)
                    say(f"{DONE}{number}")
                except OSError as error:
                    say(f"{NOTICE}a file was not written: {error.strerror}.")
                except HoneError as error:
                    say(f"{REFUSED}{error}")

    async def inspect(self, root: Path, told: Told, expected: list[Tree]) -> list[str]:
        found, done = survey(root / "folder"), len(told.all(DONE))
        known = {path: {tree.get(path) for tree in expected} for tree in expected for path in tree}
        excused = TOUCHED if done == COMMANDED else frozenset()
        wrong = [
            f"half: {path} is {state!r:.60}"
            for path, state in found.items()
            if state not in known.get(path, ()) and path not in excused and not is_draft(Path(path).name)
        ]
        async with opened(root) as it:
            await it.rewind(1)
            left = survey(root / "folder")
            undisturbed = not told.all(NOTICE) and not told.all(REFUSED)
            wrong += [
                f"lost: {path} is {left.get(path)!r:.60} after {told.lines[-1:]}"
                for path in expected[0].keys() | left.keys()
                if undisturbed and path not in excused and left.get(path) != expected[0].get(path)
            ]
            await it.write(2, "after", "the next process works\n")
            await it.rewind(2)
        if (root / "folder" / "after").exists():
            wrong.append("half: the next process cannot rewind")
        names = {f"folder/{path}" for tree in expected for path in tree} | {"home", "folder"}
        return wrong + debris(root, names) + await unsound(root / "home")
