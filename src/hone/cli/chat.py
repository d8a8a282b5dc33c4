"""`hone`: a conversation in the terminal."""

import asyncio
import shlex
import sys
from collections.abc import Coroutine, Sequence
from contextlib import suppress
from functools import partial

import click

from hone import __version__
from hone.app import Hone
from hone.cli import modes
from hone.cli.composing import Composed, Composer
from hone.cli.context import Interrupts, news, open_session, recap, take_turn, tell_past, trust_hint, waiting
from hone.cli.detach import SAID, After, leave, spawn
from hone.cli.lessons import Lessons
from hone.cli.listing import entry
from hone.cli.options import Options, at_terminal
from hone.cli.output import columns, fit_lines, wrap_words
from hone.cli.render import paint_for
from hone.cli.run import assemble, perform
from hone.cli.slash import (
    COMMANDS,
    ChatState,
    SlashDraft,
    SlashMenu,
    SlashRequest,
    SlashResult,
    obey,
    parse,
    parse_own,
    settle,
)
from hone.cli.terminal.ahead import TypeAhead
from hone.cli.terminal.asking import Asking, ask_plan
from hone.cli.terminal.screen import Status, Surroundings, place, screen_for
from hone.cli.trust_offer import TrustOffer
from hone.core.errors import HoneError
from hone.core.ledger import ChangeId
from hone.core.loading import import_object
from hone.core.messages import Role
from hone.core.permissions import GO_AHEAD, Mode
from hone.core.turn import Stop, Turn
from hone.core.visible import one_line, text_to_path, visible
from hone.models.wrappers import measure_filled
from hone.runtime.session import Session
from hone.settings import home_folder

PICK = "hone.cli.terminal.picking:pick"
"""Imported with the first list to choose from."""
LEAVING = ("new", "clear", "resume")
"""Commands that end a conversation rather than going back in it."""
ABOUT = 60
"""How many letters of a skill's description Tab shows next to its name."""


def chat(options: Options, skills: Sequence[str] = ()) -> int:
    """Run the chat. `skills` go with the first message."""
    if not at_terminal():
        return _piped(options, skills)
    left = spawn(options.home or home_folder(), asyncio.run(_state(options, skills)))
    if left in SAID:
        for line in wrap_words(SAID[left]):
            print(paint_for(sys.stdout).dim(line))
    return 0


async def _state(options: Options, skills: Sequence[str]) -> After:
    """Say who looks back over what was said."""
    asking = Asking(paint_for(sys.stdout))
    async with Hone(home=options.home, ask=asking, mode=options.mode, learning="queue") as hone:
        session = await open_session(hone, options)
        await hone.library.load(skills)  # report anything missing now, not after the first message
        with Interrupts() as interrupts:
            chat = Chat(hone, session, options, interrupts, skills)
            asking.pause = chat.screen.pause
            await chat.hold()
        return await leave(hone)


def _piped(options: Options, skills: Sequence[str]) -> int:
    """Run piped input as the task, if there is no terminal for a chat."""
    task = assemble(())
    if task.words.strip():
        return perform(options, task, skills)
    asyncio.run(_check(options))
    raise click.UsageError('A chat needs a terminal, and nothing was piped in. Try: hone run "…"')


async def _check(options: Options) -> None:
    """Raise SettingsError if there is no model."""
    async with Hone(home=options.home, learning="queue") as hone:
        await open_session(hone, options)


class Chat:
    """Reads, sends and shows messages. Ends with Ctrl-D or /quit."""

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
        self._typed: list[str] = []
        """Messages and commands that were entered during a turn and are still to be handled."""
        self._draft = ""
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
        self._composer = Composer(hone, interrupts, self._paint, partial(self._say, dim=True))
        self._lessons = Lessons(hone, self.screen.tell)
        self._trust = TrustOffer(hone, self._paint, self._say)

    async def hold(self) -> None:
        self._greet()
        for sentence in await recap(self._state.hone, "/log"):
            self._say(sentence)
        with suppress(HoneError):
            await tell_past(self._state.hone)
        self._lessons.begin()
        with suppress(EOFError):
            while True:
                await self._reckon()
                await self._offer_skills()
                await self._offer_trust()
                await self._tell_news()
                await self._answer(await self._read())
        self._part()
        await self._lessons.finish()

    async def _read(self) -> str:
        """Return what was entered during the last turn, or else what is entered now."""
        if self._typed:
            message = self._typed.pop(0)
            print(f"> {visible(message)}")
            return message
        draft, self._draft = self._draft, ""
        return await self.screen.read(draft)

    async def _answer(self, message: str) -> None:
        """Answer a message. Raises EOFError if it was the last one."""
        command = parse(message)
        if command:
            await self._obey(*command)
        elif own := parse_own(message):
            await self._run(own)
        elif message.strip():
            await self._send(SlashRequest(message))

    async def _send(self, request: SlashRequest) -> None:
        state = self._state
        ahead = TypeAhead(self._hear, self._interrupts.press, self._unheard, self._draft)
        try:
            said, voice = await self._complete(request)
            skills, self._skills = self._skills, ()
            asides = (await state.hone.library.use(skills, state.session.id), request.aside)
            told = "\n".join(each for each in asides if each)
            async with self.screen.working(verbose=state.verbose, ahead=ahead) as emit:
                turn = await take_turn(state.session, said, emit, self._interrupts, voice=voice, aside=told)
        except HoneError as error:
            print(f"{self._paint.red('✗')} {visible(str(error))}\n")
            return
        self._take_typed(turn, ahead.text)
        print()
        if turn.stop is Stop.ANSWERED and state.session.mode is Mode.PLAN:
            await self._offer_plan()

    async def _complete(self, request: SlashRequest) -> Composed:
        if request.message:
            return request.message, request.voice
        return await self._composer.compose(request.words, self._state.session)

    def _hear(self, words: str) -> None:
        """Pass on what is entered during a turn: words to the model, commands and files to the prompt."""
        session = self._state.session
        if parse(words) or parse_own(words) or self._composer.attaches(words, session):
            self._typed.append(words)
        else:
            session.steering.say(words)

    def _unheard(self) -> list[str]:
        steering = self._state.session.steering
        return [*(message.text for message, _ in steering.waiting), *self._typed]

    def _take_typed(self, turn: Turn, begun: str) -> None:
        """Handle input that came too late for the turn: it is the next message, or a draft after a stopped or
        failed turn, and so is a message that was begun."""
        late = self._state.session.steering.withdraw()
        if late and turn.stop is Stop.ANSWERED:
            self._typed.insert(0, "\n".join(late))
            late = []
        self._draft = "\n".join((*late, *filter(None, [begun])))

    async def _offer_plan(self) -> None:
        """Ask whether to carry out the plan that was just given, and do so."""
        mode = await ask_plan(self._paint)
        print()
        if mode:
            self._state.session.set_mode(mode)
            print(f"> {GO_AHEAD}")
            await self._send(SlashRequest(GO_AHEAD))

    async def _obey(self, name: str, argument: str) -> None:
        before = self._state.session
        result = await self._wait_for(obey(self._state, name, argument))
        while isinstance(result, SlashMenu):
            if result.above:
                print(result.above)
            chosen = await import_object(PICK)(result.title, result.rows)
            result = "" if chosen is None else await self._wait_for(settle(result.then(chosen)))
        if self._state.session.id != before.id and len(before.transcript):
            await self._leave(before, is_over=name in LEAVING)
        if isinstance(result, SlashRequest):
            if result.message:
                print(f"> {visible(result.words)}")
            await self._send(result)
            return
        if isinstance(result, SlashDraft):
            self._draft, result = result.words, result.said
        if result:
            print("\n".join(fit_lines(result)))
        if name == "resume" and self._state.session is not before:
            self._recall()

    async def _run(self, command: str) -> None:
        """Run what the owner typed after a !, as the owner."""
        try:
            await self._composer.run(command, self._state.session)
        except HoneError as error:
            self._say(visible(str(error)))

    async def _leave(self, session: Session, *, is_over: bool) -> None:
        """Leave the conversation. One that is over is reviewed now; one that was only set aside, when its own
        time comes."""
        if is_over:
            await self._state.hone.lookback.leave(session.id)
        else:
            self._state.hone.lookback.forget(session.id)

    async def _wait_for(self, command: Coroutine[None, None, SlashResult]) -> SlashResult:
        """Return a command's output. Ctrl-C stops it."""
        obeying = asyncio.ensure_future(command)
        async with self.screen.working():
            with self._interrupts.heed(obeying.cancel):
                await asyncio.wait([obeying])
        return self._paint.dim("Stopped.") if obeying.cancelled() else obeying.result()

    def _greet(self) -> None:
        session = self._state.session
        model, folder = visible(session.agent.prefix.model), place(session.header.folder)
        self._say(f"Hone {__version__} · {model} · {folder}")
        self._say("/help lists commands, Ctrl-C stops an answer, Ctrl-D leaves.", dim=True)
        if session.mode is not Mode.AUTO:
            self._say(modes.describe(session.mode))
        unused = self._trust.describe_unused(text_to_path(session.header.folder))
        for sentence in (*news(self._state.hone), *filter(None, [unused])):
            self._say(visible(sentence), dim=True)
        print()
        self._recall()

    async def _offer_trust(self) -> None:
        """Ask about the folder if a lesson waits for that, unless the owner has begun to type."""
        if self._typed or self._draft or not await self._trust.make(self._state.session):
            return
        with suppress(HoneError):
            self._waiting = len(await self._state.hone.ledger.pending())
        # What began before the folder was trusted does not know that; nothing has been said yet.
        if not len(self._state.session.transcript):
            self._state.session = await open_session(self._state.hone, self._options)

    def _recall(self) -> None:
        """Print the last exchange of a resumed conversation."""
        nodes = list(enumerate(self._state.session.transcript.nodes, 1))
        asked = [(number, node) for number, node in nodes if node.message.role is Role.USER]
        for number, node in (*asked[-1:], *nodes[-1:]) if asked else ():
            print("\n".join(entry(number, node, self._paint, width=columns())))

    async def _reckon(self) -> None:
        """Update the status: what the conversation has cost so far, the calls that shortened it included."""
        session, store = self._state.session, self._state.hone.sessions
        with suppress(HoneError):
            spent = await store.spending(session.id) if len(session.transcript) else ()
            self._status = Status(
                session.agent.prefix.model,
                session.header.folder,
                [each.usage for each in spent],
                session.mode,
                await self._state.hone.background.next_look(session.id),
                measure_filled(session.agent, session.transcript),
            )

    async def _offer_skills(self) -> None:
        """Offer skills for Tab. A skill with the name of a command is requested with /skill."""
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
        hone = self._state.hone
        if len(session.transcript) and (hone.settings.database or (hone.home / "hone.db").exists()):
            option = f" --home {shlex.quote(str(home))}" if home else ""
            self._say(
                f"Conversation {session.id} is kept. To continue it: hone{option} --resume {session.id}"
            )
