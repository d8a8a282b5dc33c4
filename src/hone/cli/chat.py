"""`hone`: a conversation in the terminal."""

import asyncio
import shlex
import sys

import click

from hone import __version__
from hone.app import Hone
from hone.cli import typed
from hone.cli.listing import entry
from hone.cli.main import Options
from hone.cli.opening import news, open_session, take_turn
from hone.cli.paint import paint_for
from hone.cli.render import Renderer
from hone.cli.slash import Talk, obey, parse
from hone.cli.visible import one_line, visible
from hone.core.errors import HoneError
from hone.core.events import Event
from hone.core.messages import Role
from hone.runtime.session import Session


def chat(options: Options) -> int:
    """Between turns the event loop rests, so that line editing and Ctrl-C are the terminal's own."""
    if not typed.at_terminal():
        return _piped(options)
    with asyncio.Runner() as runner:
        hone = runner.run(_open(options))
        try:
            Chat(runner, hone, runner.run(open_session(hone, options)), options).hold()
        finally:
            runner.run(hone.close())
    return 0


async def _open(options: Options) -> Hone:
    return Hone(home=options.home)


def _piped(options: Options) -> int:
    """Without a terminal to talk at, what is piped in is the task."""
    from hone.cli.run import perform

    task = typed.read_piped()
    if task.strip():
        return perform(options, task)
    asyncio.run(_check(options))
    raise click.UsageError('There is nobody to talk to and nothing was piped in. Try: hone run "…"')


async def _check(options: Options) -> None:
    """Raises SettingsError where there is no model."""
    async with Hone(home=options.home) as hone:
        await open_session(hone, options)


class Chat:
    """Reads, sends, shows. Ends with Ctrl-D or /quit."""

    def __init__(self, runner: asyncio.Runner, hone: Hone, session: Session, options: Options) -> None:
        self._runner = runner
        self._talk = Talk(hone, session)
        self._options = options
        self._paint = paint_for(sys.stdout)
        self._renderer = Renderer(self._paint)

    def hold(self) -> None:
        self._greet()
        talking = True
        while talking:
            try:
                talking = self._exchange()
            except EOFError:
                print()
                talking = False
            except KeyboardInterrupt:
                print("" if typed.half_typed() else "\nCtrl-D or /quit leaves.")
        self._part()

    def _exchange(self) -> bool:
        """One message and what follows from it. False when it is the last one."""
        message = typed.read_message(input)
        command = parse(message)
        if command and command[0] in ("quit", "exit"):
            return False
        if command:
            self._obey(*command)
        elif message.strip():
            self._send(message)
        return True

    def _greet(self) -> None:
        session, dim = self._talk.session, self._paint.dim
        model, folder = visible(session.agent.prefix.model), one_line(session.header.folder, 60)
        print(f"Hone {__version__} · {model} · {folder}")
        print(dim("/help lists commands, Ctrl-C stops an answer, Ctrl-D leaves."))
        self._tell_news()
        self._recall()

    def _recall(self) -> None:
        """The last exchange of a conversation that goes on, and its words on the arrow keys."""
        nodes = list(enumerate(self._talk.session.transcript.nodes, 1))
        asked = [(number, node) for number, node in nodes if node.message.role is Role.USER]
        typed.remember(node.message.text for _, node in asked)
        for number, node in (*asked[-1:], *nodes[-1:]) if asked else ():
            print("\n".join(entry(number, node, self._paint)))

    def _obey(self, name: str, argument: str) -> None:
        before = self._talk.session
        print(self._runner.run(obey(self._talk, name, argument)))
        self._tell_news()
        if name == "resume" and self._talk.session is not before:
            self._recall()

    def _send(self, message: str) -> None:
        try:
            self._runner.run(take_turn(self._talk.session, message, self._show))
        except HoneError as error:
            print(f"{self._paint.red('✗')} {visible(str(error))}")
        self._tell_news()

    def _show(self, event: Event) -> None:
        shown = self._renderer.show(event)
        print(shown.answer + shown.aside, end="", flush=True)

    def _tell_news(self) -> None:
        for sentence in news(self._talk.hone):
            print(self._paint.dim(visible(sentence)))

    def _part(self) -> None:
        session, home = self._talk.session, self._options.home
        if len(session.transcript) and (self._talk.hone.home / "hone.db").exists():
            option = f" --home {shlex.quote(str(home))}" if home else ""
            print(f"Session {session.id} is kept. Go on with it: hone{option} --resume {session.id}")
