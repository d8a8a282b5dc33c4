"""`hone run`: run one task, print the answer and return an exit code."""

import asyncio
import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any

import click

from hone.app import Hone
from hone.cli.context import Interrupts, news, open_session, recap, take_turn, tell_past, trust_hint, waiting
from hone.cli.detach import SAID, After, leave, spawn
from hone.cli.modes import WARNING
from hone.cli.options import (
    FAILED,
    INTERRUPTED,
    Options,
    at_terminal,
    image_option,
    mode_option,
    read_piped,
    schema_option,
)
from hone.cli.render import Renderer, paint_for
from hone.core import seldom
from hone.core.errors import HoneError
from hone.core.events import Emit, Event, Notice
from hone.core.ledger import ChangeId, ChangeQuery, LessonText
from hone.core.loading import import_object
from hone.core.messages import Message
from hone.core.model import total
from hone.core.permissions import GO_AHEAD, Mode
from hone.core.trust import Trust
from hone.core.turn import Returned, Stop, Turn
from hone.core.visible import visible
from hone.knowledge.wording import find_lessons, lesson_data
from hone.runtime.session import Session
from hone.settings import home_folder

if TYPE_CHECKING:
    from hone.runtime.returning import AnswerForm, SendMessage

ATTACH = "hone.runtime.pictures:attach"
"""Loaded with the first picture."""
READ_FORM, ASK_FOR = "hone.cli.schema_file:read_form", "hone.runtime.returning:ask_for"
"""Loaded for an answer that must fit a schema."""
NOTHING: Mapping[str, Any] = {}
EPILOG = """\b
Examples:
  hone run "which files are never imported?"
  git diff | hone run "review this"
  hone run - < task.md
  hone run --image plan.png "what is wrong with this drawing?"
  hone run --json "count the tests" | jq -r .text
  hone run --schema bug.json "what is wrong in parser.py?" | jq .line

\b
Exit codes:
  0 answered · 1 failed · 2 wrong usage or settings · 3 the budget was spent · 130 interrupted
"""


@click.command(epilog=EPILOG)
@click.argument("task", nargs=-1)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object instead of the answer's text.")
@click.option("--quiet", "-q", is_flag=True, help="Do not show what is done on the way.")
@click.option("--model", "-m", default="", metavar="PROVIDER/NAME", help="The model to talk to.")
@click.option("--resume", "-r", default="", metavar="ID", help="Go on with this session.")
@click.option("--skill", "skills", multiple=True, metavar="NAME", help="Give it this skill; repeatable.")
@click.option("--template", default="", metavar="NAME|auto", help="Begin with examples; see hone templates.")
@mode_option(noted=True)
@image_option()
@schema_option()
@click.pass_obj
def run(
    options: Options,
    task: tuple[str, ...],
    as_json: bool,
    quiet: bool,
    model: str,
    resume: str,
    skills: tuple[str, ...],
    template: str,
) -> int:
    """Do one TASK and print the answer.

    The task is the argument, or what is piped in (- says so); with both, what is piped in is added to the
    task and counts as foreign text. The answer goes to standard output, everything else to standard error.
    Nobody is asked anything: what would need a question is refused, unless --mode full says otherwise.
    """
    words, voice = assemble(task)
    if not words.strip():
        raise click.UsageError('There is no task. Say what to do: hone run "…"')
    last = options.last and not resume
    chosen = options._replace(
        model=model or options.model,
        resume=resume or options.resume,
        last=last,
        template=template or options.template,
    )
    if chosen.template and (chosen.resume or chosen.last):
        raise click.UsageError("--template goes with a new session; this one has begun.")
    return perform(chosen, words, voice, skills, as_json=as_json, quiet=quiet)


def assemble(task: Sequence[str]) -> tuple[str, Trust | None]:
    """The argument's words, and what is piped in. Nobody can tell the two apart afterwards, and so both
    together are worth no more than what anybody may have written into a file."""
    said = " ".join(task)
    if said == "-":
        return read_piped(), None
    piped = "" if at_terminal() else read_piped()
    if said.strip() and piped.strip():
        return f"{said}\n\n{piped}", Trust.FOREIGN
    return said or piped, None


def perform(
    options: Options,
    words: str,
    voice: Trust | None = None,
    skills: Sequence[str] = (),
    *,
    as_json: bool = False,
    quiet: bool = False,
) -> int:
    """`voice` says whose words they are, if not the owner's; `skills` go with them."""
    form: AnswerForm | None = import_object(READ_FORM)(options.schema) if options.schema else None
    streamed = not as_json and form is None and sys.stdout.isatty()
    emit = _shower(streamed=streamed, quiet=quiet)
    session, returned, lessons, left = asyncio.run(_once(options, words, voice, skills, emit, form))
    left, turn = spawn(options.home or home_folder(), left), returned.turn
    codes = {Stop.ANSWERED: 0, Stop.BUDGET: 3, Stop.STUCK: 3, Stop.INTERRUPTED: INTERRUPTED}
    code = codes.get(turn.stop or Stop.FAILED, FAILED)
    if as_json:
        value = {"value": returned.value} if form else {}
        print(as_object(session.id, turn, lessons, left, value))
    elif returned.json:
        print(json.dumps(returned.value))
    elif not form and not streamed and code in (0, 3):
        # A reply that was begun again, or that led to calls, is no answer: a pipe gets the last one only.
        print(visible(turn.text))
    if quiet and turn.error:
        print(visible(turn.error), file=sys.stderr)
    if turn.stop is Stop.ANSWERED and not quiet:
        print(*_next_step(session, options), sep="\n", end="", file=sys.stderr)
    if left in SAID and not quiet and sys.stderr.isatty():
        print(paint_for(sys.stderr).dim(SAID[left]), file=sys.stderr)
    return code


def _next_step(session: Session, options: Options) -> Iterator[str]:
    """Say how to carry out a plan."""
    if session.mode is Mode.PLAN:
        home = f" --home {seldom.shlex.quote(str(options.home))}" if options.home else ""
        yield "Nothing was changed. To carry out this plan:"
        yield f'  hone{home} run --resume {session.id} --mode auto "{GO_AHEAD}"\n'


async def _once(
    options: Options,
    words: str,
    voice: Trust | None,
    skills: Sequence[str],
    emit: Emit,
    form: "AnswerForm | None",
) -> tuple[Session, Returned, Sequence[LessonText], After]:
    async with Hone(home=options.home, mode=options.mode, learning="queue") as hone:
        session = await open_session(hone, options)
        _warn(session.mode)
        aside = await hone.library.use(skills, session.id)
        count = len(await hone.ledger.pending())
        await tell_past(hone)
        learned = await recap(hone, "hone log") if sys.stderr.isatty() else ()
        waits = [waiting(count, "hone pending", trust_hint(hone))] if count else ()
        for sentence in (*news(hone), *learned, *waits):
            emit(Notice(sentence))
        before = await hone.ledger.latest()
        said: str | Message = words
        if options.images:
            attach = import_object(ATTACH)
            said, label = await attach(words, options.images, session.agent.prefix.model, hone)
            voice = label if voice is None else min(label, voice)
        with Interrupts() as interrupts:
            send = partial(take_turn, session, interrupts=interrupts)
            returned = await _answer(session, form, said, emit, send, voice, aside)
        for sentence in news(hone):
            emit(Notice(sentence))
        return session, returned, await _lessons(hone, session, before), await leave(hone)


async def _answer(
    session: Session,
    form: "AnswerForm | None",
    said: str | Message,
    emit: Emit,
    send: "SendMessage",
    voice: Trust | None,
    aside: str,
) -> Returned:
    if form is None:
        return Returned(await send(said, emit, voice=voice, aside=aside))
    ask_for = import_object(ASK_FOR)
    returned: Returned = await ask_for(session, form, said, emit, voice=voice, aside=aside, send=send)
    return returned


async def _lessons(hone: Hone, session: Session, before: ChangeId) -> Sequence[LessonText]:
    """What was learned in this turn, in its own words. It is in `hone log`, whether or not it can be read."""
    with suppress(HoneError):
        made = await hone.ledger.entries(ChangeQuery(session=session.id, after=before))
        return await find_lessons(hone.ledger, reversed(made))
    return ()


def _warn(mode: Mode) -> None:
    """Warn of a mode in which everything, or nothing, is done."""
    if mode is Mode.FULL:
        print(WARNING, file=sys.stderr)
    elif mode is Mode.ASK:
        print("Mode ask: nobody is asked here, so every write and command is refused.", file=sys.stderr)


def _shower(*, streamed: bool, quiet: bool) -> Emit:
    renderer = Renderer(paint_for(sys.stderr))

    def show(event: Event) -> None:
        shown = renderer.show(event)
        if streamed and shown.answer:
            print(shown.answer, end="", flush=True)
        if shown.aside and not quiet:
            print(shown.aside, end="", file=sys.stderr, flush=True)

    return show


def as_object(
    session: str,
    turn: Turn,
    lessons: Sequence[LessonText] = (),
    left: After = After.NONE,
    more: Mapping[str, Any] = NOTHING,
) -> str:
    """The whole turn for a program, in ASCII. `learned` is what it learned already; `learning` says who looks
    back over it: a process in the background, the next `hone` (queued), or none because nothing is due."""
    spent = total(turn.usage)
    usage = {"input": spent.input, "cached": spent.cached, "output": spent.output, "cost": spent.cost}
    return json.dumps(
        {
            "session": session,
            "text": turn.text,
            "stop": turn.stop,
            "error": turn.error,
            "usage": usage,
            "calls": len(turn.usage),
            "learned": [lesson_data(each) for each in lessons],
            "learning": After.NONE if left is After.QUIET else left,
            **more,
        }
    )
