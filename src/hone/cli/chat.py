"""`hone`: a conversation in the terminal."""

import asyncio
import shlex
import sys
from collections.abc import Sequence
from contextlib import suppress

import click

from hone import __version__
from hone.app import Hone
from hone.cli import modes
from hone.cli.context import Interrupts, news, open_session, recap, take_turn, tell_past, trust_hint, waiting
from hone.cli.detach import SAID, After, leave, spawn
from hone.cli.lessons import Lessons
from hone.cli.listing import entry
from hone.cli.options import Options, at_terminal, read_piped
from hone.cli.output import wrap_words
from hone.cli.render import paint_for
from hone.cli.run import perform
from hone.cli.slash import COMMANDS, ChatState, SlashRequest, obey, parse
from hone.cli.terminal.asking import Asking, ask_plan, ask_trust
from hone.cli.terminal.screen import Status, Surroundings, place, screen_for
from hone.cli.trust import TrustFiles
from hone.core.errors import HoneError, Refused
from hone.core.ledger import ChangeId
from hone.core.messages import Message, Role
from hone.core.permissions import GO_AHEAD, Mode
from hone.core.trust import Trust
from hone.core.turn import Stop
from hone.core.visible import one_line, text_to_path, visible
from hone.runtime.pictures import attach, find_pictures
from hone.runtime.session import Session
from hone.settings import home_folder

ABOUT = 60
"""Letters of a skill's description beside its name, when Tab offers it."""


def chat(options: Options, skills: Sequence[str] = ()) -> int:
    """`skills` go with the first message."""
    if not at_terminal():
        return _piped(options, skills)
    left = spawn(options.home or home_folder(), asyncio.run(_state(options, skills)))
    if left in SAID:
        print(paint_for(sys.stdout).dim(SAID[left]))
    return 0


async def _state(options: Options, skills: Sequence[str]) -> After:
    """Say who looks back over what was said."""
    asking = Asking(paint_for(sys.stdout))
    async with Hone(home=options.home, ask=asking, mode=options.mode, learning="queue") as hone:
        session = await open_session(hone, options)
        await hone.library.load(skills)  # what cannot be had is said now, not after the first message
        with Interrupts() as interrupts:
            chat = Chat(hone, session, options, interrupts, skills)
            asking.pause = chat.screen.pause
            await chat.hold()
        return await leave(hone)


def _piped(options: Options, skills: Sequence[str]) -> int:
    """Without a terminal to talk at, what is piped in is the task."""
    words = read_piped()
    if words.strip():
        return perform(options, words, skills=skills)
    asyncio.run(_check(options))
    raise click.UsageError('There is nobody to talk to and nothing was piped in. Try: hone run "…"')


async def _check(options: Options) -> None:
    """Raises SettingsError where there is no model."""
    async with Hone(home=options.home, learning="queue") as hone:
        await open_session(hone, options)


class Chat:
    """Reads, sends, shows. Ends with Ctrl-D or /quit."""

    def __init__(
        self,
        hone: Hone,
        session: Session,
        options: Options,
        interrupts: Interrupts,
        skills: Sequence[str] = (),
    ) -> None:
        self._state = ChatState(hone, session)
        self._skills = skills
        self._commands = {name: each.help for name, each in COMMANDS.items()}
        self._known: ChangeId | None = None
        self._waiting = 0
        self._options = options
        self._interrupts = interrupts
        self._paint = paint_for(sys.stdout)
        self._status = Status("", "")
        surroundings = Surroundings(
            home=hone.home,
            folder=lambda: text_to_path(self._state.session.header.folder),
            status=lambda: self._status,
            commands=self._commands,
            complain=hone.notices.append,
        )
        self.screen = screen_for(surroundings, interrupts)
        self._lessons = Lessons(hone, self.screen.tell)

    async def hold(self) -> None:
        self._greet()
        await self._first_use()
        for sentence in await recap(self._state.hone, "/log"):
            self._say(sentence)
        with suppress(HoneError):
            await tell_past(self._state.hone)
        self._lessons.begin()
        with suppress(EOFError):
            while True:
                await self._reckon()
                await self._offer_skills()
                await self._tell_news()
                await self._answer(await self.screen.read())
        self._part()
        await self._lessons.finish()

    async def _answer(self, message: str) -> None:
        """Raises EOFError when the message says that it was the last one."""
        command = parse(message)
        if command:
            await self._obey(*command)
        elif message.strip():
            await self._send(message)

    async def _send(self, message: str, aside: str = "") -> None:
        state = self._state
        try:
            said, voice = await self._with_pictures(message)
            skills, self._skills = self._skills, ()
            asides = (await state.hone.library.use(skills, state.session.id), aside)
            told = "\n".join(each for each in asides if each)
            async with self.screen.working(verbose=state.verbose) as emit:
                turn = await take_turn(state.session, said, emit, self._interrupts, voice=voice, aside=told)
        except HoneError as error:
            print(f"{self._paint.red('✗')} {visible(str(error))}\n")
            return
        print()
        if turn.stop is Stop.ANSWERED and state.session.mode is Mode.PLAN:
            await self._offer_plan()

    async def _with_pictures(self, words: str) -> tuple[str | Message, Trust | None]:
        """Return what to send, and how far it can be trusted if it is more than words."""
        session = self._state.session
        files = find_pictures(words, text_to_path(session.header.folder))
        if not files:
            return words, None
        found = await attach(words, files, session.agent.prefix.model, self._state.hone)
        names = ", ".join(visible(file.name) for file in files)
        self._say(f"with {names} (metadata removed)", dim=True)
        return found

    async def _offer_plan(self) -> None:
        """Ask whether to carry out the plan that was just given, and do so."""
        mode = await ask_plan(self._paint)
        print()
        if mode:
            self._state.session.set_mode(mode)
            print(f"> {GO_AHEAD}")
            await self._send(GO_AHEAD)

    async def _obey(self, name: str, argument: str) -> None:
        before = self._state.session
        obeying = asyncio.ensure_future(obey(self._state, name, argument))
        async with self.screen.working():
            with self._interrupts.heed(obeying.cancel):
                await asyncio.wait([obeying])
        result = self._paint.dim("Stopped.") if obeying.cancelled() else obeying.result()
        if isinstance(result, SlashRequest):
            await self._send(result.words, result.aside)
            return
        print(result)
        if name == "resume" and self._state.session is not before:
            if self._state.session.id != before.id:
                await self._state.hone.lookback.leave(before.id)
            self._recall()

    def _greet(self) -> None:
        session = self._state.session
        model, folder = visible(session.agent.prefix.model), place(session.header.folder)
        self._say(f"Hone {__version__} · {model} · {folder}")
        self._say("/help lists commands, Ctrl-C stops an answer, Ctrl-D leaves.", dim=True)
        if session.mode is not Mode.AUTO:
            self._say(modes.describe(session.mode))
        print()
        self._recall()

    async def _first_use(self) -> None:
        """A folder that has no answer yet gets one, for good."""
        hone, folder = self._state.hone, text_to_path(self._state.session.header.folder)
        if hone.folders.is_answered(folder):
            return
        files = TrustFiles.find(folder)
        if not await ask_trust(folder, files.shown(), self._paint):
            hone.folders.decline(folder)
            return
        try:
            files.trust(folder, hone.instructions, hone.permissions.approvals)
        except Refused as refusal:
            self._say(visible(str(refusal)))
            return
        # What was begun before the folder was trusted knows nothing of it; nothing was said yet.
        if not len(self._state.session.transcript):
            self._state.session = await open_session(hone, self._options)

    def _recall(self) -> None:
        """The last exchange of a conversation that goes on."""
        nodes = list(enumerate(self._state.session.transcript.nodes, 1))
        asked = [(number, node) for number, node in nodes if node.message.role is Role.USER]
        for number, node in (*asked[-1:], *nodes[-1:]) if asked else ():
            print("\n".join(entry(number, node, self._paint)))

    async def _reckon(self) -> None:
        """What the conversation has cost so far, the calls that shortened it included."""
        session, store = self._state.session, self._state.hone.sessions
        with suppress(HoneError):
            spent = await store.spending(session.id) if len(session.transcript) else ()
            self._status = Status(
                session.agent.prefix.model,
                session.header.folder,
                [each.usage for each in spent],
                session.mode,
                await self._state.hone.background.next_look(session.id),
            )

    async def _offer_skills(self) -> None:
        """For Tab. A skill that has the name of a command is asked for with /skill."""
        library = self._state.hone.library
        with suppress(HoneError):
            latest = await library.keeper.ledger.latest()
            if latest == self._known:
                return
            skills = {each.name: one_line(each.description, ABOUT) for each in await library.listed()}
            for gone in self._commands.keys() - skills.keys() - COMMANDS.keys():
                del self._commands[gone]
            self._commands |= {name: about for name, about in skills.items() if name not in COMMANDS}
            self._known = latest

    async def _tell_news(self) -> None:
        hone = self._state.hone
        for text in self._lessons.untold():
            print(text)
        for sentence in news(hone):
            self._say(visible(sentence), dim=True)
        with suppress(HoneError):
            before, self._waiting = self._waiting, len(await hone.ledger.pending())
            if self._waiting > max(before, self._lessons.waiting()):
                hint = trust_hint(hone) if not before else ""
                self._say(waiting(self._waiting, "/pending", hint), dim=True)

    def _say(self, words: str, *, dim: bool = False) -> None:
        for line in wrap_words(words):
            print(self._paint.dim(line) if dim else line)

    def _part(self) -> None:
        session, home = self._state.session, self._options.home
        if len(session.transcript) and (self._state.hone.home / "hone.db").exists():
            option = f" --home {shlex.quote(str(home))}" if home else ""
            self._say(f"Session {session.id} is kept. Go on with it: hone{option} --resume {session.id}")
