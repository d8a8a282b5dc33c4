"""Run a turn again from what the model was given, in a copied folder, isolated from the owner's data.

Commands run in the sandbox. Only the model itself uses the network: the permit excludes it, and the owner's
servers, plugins and hooks are not there.
"""

import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import msgspec

from hone.app import Hone
from hone.core.errors import ModelError
from hone.core.permit import USER, Effect, Permit
from hone.core.ports import Header
from hone.core.screen import screen
from hone.core.transcript import Node, Transcript
from hone.core.turn import Stop, Turn
from hone.core.value import replace
from hone.core.visible import text_to_path
from hone.features.attribution.ablating import GivenTurn
from hone.features.attribution.items import list_calls
from hone.features.attribution.values import AnsweredTurn
from hone.features.experiments.scratch_home import HomeContents, copy_trust, furnish, gather
from hone.features.experiments.trial import lay, open_beside
from hone.files.atomic import open_file
from hone.knowledge.sections import targets
from hone.prompt.compose import change_folder, find_noted
from hone.runtime.session import Session, new_id
from hone.runtime.toolbox_factory import Enclosure
from hone.sandbox.caches import cleared
from hone.sandbox.choice import Sandbox
from hone.settings import Settings
from hone.settings.sections import McpSettings

LARGEST, MOST, WHOLE = 200_000, 200, 2_000_000
"""The most characters of a file, files of a folder, and characters of all of them."""
PERMIT = Permit(USER.effects - {Effect.NETWORK})
_LEFT = frozenset({"node_modules", "venv", "target", "dist", "build", "__pycache__"})


class TurnRoom:
    """Folders below `root` for the runs of one turn. Each run has the same paths and fresh contents."""

    def __init__(self, owner: Hone, answer: AnsweredTurn, root: Path) -> None:
        self._owner = owner
        self._answer = answer
        self._folder = text_to_path(answer.header.folder) if answer.header.folder else owner.folder
        self._home, self._work = root / "home", root / "work"
        self._sandbox = Sandbox(hidden=(owner.home, self._home), clock=owner.clock)
        self._files = collect_files(self._folder, answer.turn)

    async def run(self, given: GivenTurn) -> Turn:
        """Run the turn. Raises ModelError if the provider gave no answer, which is no difference."""
        for folder in (self._home, self._work):
            if folder.exists():
                cleared(folder)
        lay(self._work, self._files)
        self._home.mkdir(mode=0o700)
        hone = open_beside(
            self._owner,
            self._home,
            Enclosure(self._work, self._sandbox),
            close_settings(self._owner.settings),
        )
        try:
            await furnish(hone, self._home, await self._contents(given))
            copy_trust(self._owner, self._folder, hone, self._work)
            session = await self._open(hone, given)
            turn = await session.send(given.request, voice=self._answer.turn[0].trust)
        finally:
            await hone.close()
        if turn.stop is Stop.FAILED:
            raise ModelError(turn.error)
        return turn

    async def _contents(self, given: GivenTurn) -> HomeContents:
        """Return what tools may ask for: the skills as they are now, and the journal as in the prompt."""
        contents = await gather(self._owner, self._folder, self._work)
        skills = {name: files for name, files in contents.skills.items() if name != given.skill}
        noted, own = find_noted(given.prefix.system), targets(self._work)
        texts = {own[part]: "".join(f"{each}\n" for each in entries) for part, entries in noted.items()}
        return HomeContents(texts, skills)

    async def _open(self, hone: Hone, given: GivenTurn) -> Session:
        """Open a conversation at the start of the turn, under the prefix it had."""
        session = await hone.session(given.prefix.model)
        if given.before:
            header = Header(new_id(), hone.clock.now(), folder=str(self._work))
            prefix = session.agent.prefix
            said = Transcript(prefix.digest, given.before).rooted(prefix.digest)
            await hone.sessions.start(header, prefix, said.nodes)
            session = await hone.resume(header.id, given.prefix.model)
        agent = session.agent.narrowed(PERMIT)
        await session.switch(replace(agent, prefix=change_folder(given.prefix, self._work)))
        return session


def close_settings(settings: Settings) -> Settings:
    """Return the owner's settings without anything that runs outside the sandbox or adds to the prompt."""
    memory = msgspec.structs.replace(settings.memory, backend="null", freshness="next-session")
    learning = msgspec.structs.replace(settings.learning, checks="off")
    return msgspec.structs.replace(
        settings,
        learning=learning,
        memory=memory,
        database="",
        mode="auto",
        plugins=(),
        hooks=(),
        mcp=McpSettings(),
        fallback="",
    )


def collect_files(folder: Path, turn: Sequence[Node]) -> Mapping[str, str]:
    """Return the texts of a folder as they are now, without hidden ones, secrets, and files that the turn
    wrote first. If a folder is too large, only those that the turn names."""
    written = {made.get("path") for made in list_calls(turn) if made.call.name == "write_file"}
    named = {path for made in list_calls(turn) if (path := made.get("path"))}
    found: dict[str, str] = {}
    whole = 0
    for path in _walk(folder):
        text = _read(folder, path)
        if text is None or path in written:
            continue
        found[path], whole = text, whole + len(text)
        if len(found) > MOST or whole > WHOLE:
            kept = sorted(named - written)
            return {path: text for path in kept if (text := _read(folder, path)) is not None}
    return found


def _walk(folder: Path) -> Iterator[str]:
    for root, folders, names in os.walk(folder):
        folders[:] = sorted(name for name in folders if not name.startswith(".") and name not in _LEFT)
        for name in sorted(names):
            if not name.startswith("."):
                yield (Path(root) / name).relative_to(folder).as_posix()


def _read(folder: Path, path: str) -> str | None:
    """Return a small text; None for anything else, and for one in which a secret is recognized."""
    try:
        place = (folder / path).resolve(strict=True)
        if not place.is_relative_to(folder.resolve()) or not place.is_file():
            return None
        with open_file(place) as file:
            text = file.read(LARGEST + 1).decode()
    except (OSError, ValueError, RuntimeError):
        return None
    return None if len(text) > LARGEST or screen(text).secrets else text
