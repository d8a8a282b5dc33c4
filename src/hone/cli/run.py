"""`hone run`: run one task, print the answer and return an exit code."""

import asyncio
import json
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from hone.app import Hone
from hone.cli.context import Interrupts, news, open_session, recap, take_turn, tell_past, trust_hint, waiting
from hone.cli.detach import SAID, After, leave, spawn
from hone.cli.modes import WARNING
from hone.cli.options import (
    FAILED,
    FIT,
    INTERRUPTED,
    Command,
    Options,
    at_terminal,
    complete,
    image_option,
    mode_option,
    note,
    read_piped,
    schema_option,
)
from hone.cli.render import Renderer, paint_for, split_lines
from hone.core import seldom
from hone.core.errors import HoneError, Refused
from hone.core.events import Emit, Event, Notice
from hone.core.ledger import ChangeId, ChangeQuery, LessonText
from hone.core.loading import import_object
from hone.core.messages import Attachment, Message, user
from hone.core.model import total
from hone.core.permissions import GO_AHEAD, Mode
from hone.core.trust import Trust
from hone.core.turn import Returned, Stop, Turn
from hone.core.value import replace
from hone.core.visible import visible
from hone.runtime.permissions.rules import parse_rules
from hone.runtime.session import Session
from hone.settings import Settings, home_folder, read

if TYPE_CHECKING:
    from hone.runtime.returning import AnswerForm, SendMessage

ATTACH = "hone.runtime.pictures:attach"
"""Imported with the first image."""
READ_FORM, ASK_FOR = "hone.cli.schema_file:read_form", "hone.runtime.returning:ask_for"
"""Imported for an answer that must fit a schema."""
FIND_LESSONS, LESSON_DATA = "hone.knowledge.wording:find_lessons", "hone.knowledge.wording:lesson_data"
"""Imported if a turn taught something."""
SHOWN = "hone.web.events:shown"
"""Imported for programs that read events."""
NOTHING: Mapping[str, Any] = {}
TEXT, JSON, STREAM = OUTPUTS = ("text", "json", "stream-json")
PIPED = "standard input"
CODES = {Stop.ANSWERED: 0, Stop.BUDGET: 3, Stop.STUCK: 3, Stop.INTERRUPTED: INTERRUPTED}
EPILOG = """\b
Examples:
  hone run "which files are never imported?"
  git diff | hone run "review this"
  hone run - < task.md
  hone run --image plan.png "what is missing here?"
  hone run --output json "count the tests" | jq -r .text
  hone run --output stream-json "fix it" | jq -r .type
  hone run --schema bug.json "what is wrong?" | jq .line
  hone run --max-calls 20 "make the tests pass"
  hone run --allow "terminal: make test" "fix the tests"

\b
Exit codes:
  0    answered
  1    failed: provider, store, or unknown conversation
  2    wrong usage, wrong settings, or no model
  3    out of model calls, or the model repeats itself
  130  interrupted
"""


class RunTask(NamedTuple):
    """What to do. `piped` is text besides the owner's words; `voice` is the label of the words, if they are
    not the owner's."""

    words: str
    piped: str = ""
    voice: Trust | None = None


def _noted(*names: str, field: str, **more: Any) -> Callable[[Command], Command]:
    return click.option(*names, expose_value=False, callback=note(field), **more)


@click.command(epilog=EPILOG)
@click.argument("task", nargs=-1)
@click.option("--json", "as_json", is_flag=True, help="The same as --output json.")
@click.option("--quiet", "-q", is_flag=True, help="Do not show what Hone does on the way.")
@click.option(
    *("--skill", "skills"),
    multiple=True,
    metavar="NAME",
    help="Give it this skill; repeatable.",
    shell_complete=complete("skills"),
)
@_noted(
    "--output",
    field="output",
    type=click.Choice(OUTPUTS),
    help="Print the answer, one JSON object, or one JSON object per event. [default: text]",
)
@_noted("--model", "-m", field="model", metavar="PROVIDER/NAME", help="The model to use.")
@_noted(
    *("--resume", "-r", "--session"),
    field="resume",
    metavar="ID",
    help="Continue this conversation.",
    shell_complete=complete("sessions"),
)
@_noted("--continue", "-c", field="last", is_flag=True, help="Continue the last conversation of this folder.")
@_noted("--template", field="template", metavar="NAME|auto", help="Start with examples; see hone templates.")
@_noted(
    "--max-calls",
    field="calls",
    type=click.IntRange(1),
    metavar="N",
    help="Stop after this many model calls; one more for a summary. [default: calls in hone.toml, or 90]",
)
@_noted(
    "--allow",
    field="allow",
    multiple=True,
    metavar="RULE",
    help='Allow this without asking, such as "terminal: make test"; repeatable. See hone permissions.',
)
@_noted("--deny", field="deny", multiple=True, metavar="RULE", help="Refuse this; repeatable.")
@mode_option(noted=True)
@image_option()
@schema_option()
@click.pass_obj
def run(options: Options, task: tuple[str, ...], as_json: bool, quiet: bool, skills: tuple[str, ...]) -> int:
    """Do one TASK and print the answer.

    The TASK counts as your words. Text piped in beside it is attached and counts as foreign. So does text
    piped in alone; with - as the TASK, it counts as your words. The answer goes to standard output,
    everything else to standard error. Nobody can be asked: Hone refuses what needs your approval, unless
    --allow or --mode full covers it.
    """
    options.check()
    if as_json and options.output not in ("", JSON):
        raise click.UsageError(f"--json and --output {options.output} do not go together.")
    given = assemble(task)
    if not given.words.strip():
        raise click.UsageError('There is no task. Say what to do: hone run "…"')
    return perform(options._replace(output=JSON) if as_json else options, given, skills, quiet=quiet)


def assemble(task: Sequence[str]) -> RunTask:
    """Build the task. Arguments are the owner's words. Piped text may come from anybody, unless the owner
    says with `-` that it is the task."""
    said = " ".join(task)
    if said == "-":
        return RunTask(read_piped())
    piped = "" if at_terminal() else read_piped()
    if not said.strip():
        return RunTask(piped, voice=Trust.FOREIGN)
    return RunTask(said, piped if piped.strip() else "")


def override(options: Options) -> Settings | None:
    """Return the settings with the overrides of this run; None if there are none. Raises UsageError."""
    if not (options.calls or options.allow or options.deny):
        return None
    try:
        parse_rules(options.allow, options.deny)
    except Refused as refusal:
        raise click.UsageError(str(refusal)) from refusal
    settings = read(options.home or home_folder())
    return replace(settings, calls=options.calls or settings.calls).with_rules(options.allow, options.deny)


def perform(options: Options, task: RunTask, skills: Sequence[str] = (), *, quiet: bool = False) -> int:
    """Do the task with these skills, print the result, and return the exit code."""
    form: AnswerForm | None = import_object(READ_FORM)(options.schema) if options.schema else None
    streamed = options.output in ("", TEXT) and form is None and sys.stdout.isatty()
    emit = _print_events() if options.output == STREAM else _shower(streamed=streamed, quiet=quiet)
    session, returned, lessons, left = asyncio.run(_once(options, task, skills, emit, form))
    left, turn = spawn(options.home or home_folder(), left), returned.turn
    code = CODES.get(turn.stop or Stop.FAILED, FAILED)
    if options.output in (JSON, STREAM):
        kind = {"type": "done"} if options.output == STREAM else {}
        value = {"value": returned.value} if form else {}
        print(as_object(session.id, turn, lessons, left, value, kind))
    elif returned.json:
        print(json.dumps(returned.value))
    elif not form and not streamed and code in (0, 3):
        # A reply that was restarted, or that led to calls, is no answer: a pipe gets the last one only.
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
    options: Options, task: RunTask, skills: Sequence[str], emit: Emit, form: "AnswerForm | None"
) -> tuple[Session, Returned, Sequence[LessonText], After]:
    settings = override(options)
    async with Hone(home=options.home, settings=settings, mode=options.mode, learning="queue") as hone:
        session = await open_session(hone, options)
        if options.output == STREAM:
            print(_begin(session), flush=True)
        _warn(session.mode)
        aside = await hone.library.use(skills, session.id)
        count = len(await hone.ledger.pending())
        await tell_past(hone)
        learned = await recap(hone, "hone log") if sys.stderr.isatty() else ()
        waits = [waiting(count, "hone pending", trust_hint(hone))] if count else ()
        for sentence in (*news(hone), *learned, *waits):
            emit(Notice(sentence))
        before = await hone.ledger.latest()
        said, voice = await _compose(hone, session, options, task)
        with Interrupts() as interrupts:
            send = partial(take_turn, session, interrupts=interrupts)
            returned = await _answer(session, form, said, emit, send, voice, aside)
        for sentence in news(hone):
            emit(Notice(sentence))
        return session, returned, await _lessons(hone, session, before), await leave(hone)


def _begin(session: Session) -> str:
    """Return the first line of a stream of events."""
    folder, model = session.header.folder, session.agent.prefix.model
    return json.dumps({"type": "session", "session": session.id, "folder": folder, "model": model})


async def _compose(
    hone: Hone, session: Session, options: Options, task: RunTask
) -> tuple[Message, Trust | None]:
    """Return the message, and its label if it is not the owner's."""
    said, voice = user(task.words), task.voice
    if options.images:
        attach = import_object(ATTACH)
        said, label = await attach(task.words, options.images, session.agent.prefix.model, hone)
        voice = label if voice is None else min(label, voice)
    if task.piped:
        said = Message(said.role, (*said.parts, Attachment(task.piped, PIPED)))
    return said, voice


async def _answer(
    session: Session,
    form: "AnswerForm | None",
    said: Message,
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
    """Return what was learned in this turn. It is in `hone log`, even if it cannot be read here."""
    with suppress(HoneError):
        made = await hone.ledger.entries(ChangeQuery(session=session.id, after=before))
        found: Sequence[LessonText] = (
            await import_object(FIND_LESSONS)(hone.ledger, reversed(made)) if made else ()
        )
        return found
    return ()


def _warn(mode: Mode) -> None:
    """Warn of a mode in which everything, or nothing, is allowed."""
    if mode is Mode.FULL:
        print(WARNING, file=sys.stderr)
    elif mode is Mode.ASK:
        print("Mode ask: nobody can be asked here, so Hone refuses every write and command.", file=sys.stderr)


def _print_events() -> Emit:
    """Print one JSON object per event, in ASCII, as soon as it happens."""
    shown = import_object(SHOWN)

    def show(event: Event) -> None:
        kind, values = shown(event)
        print(json.dumps({"type": kind, **values}), flush=True)

    return show


def _shower(*, streamed: bool, quiet: bool) -> Emit:
    fit = import_object(FIT) if sys.stderr.isatty() else split_lines
    renderer = Renderer(paint_for(sys.stderr), fit)

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
    kind: Mapping[str, Any] = NOTHING,
) -> str:
    """Return the whole turn for a program, in ASCII. `learned` is what it has learned already; `learning`
    says who reviews it: a background process, the next `hone` (queued), or none because nothing is due."""
    spent = total(turn.usage)
    usage = {"input": spent.input, "cached": spent.cached, "output": spent.output, "cost": spent.cost}
    return json.dumps(
        {
            **kind,
            "session": session,
            "text": turn.text,
            "stop": turn.stop,
            "error": turn.error,
            "usage": usage,
            "calls": len(turn.usage),
            "learned": [import_object(LESSON_DATA)(each) for each in lessons],
            "learning": After.NONE if left is After.QUIET else left,
            **more,
        }
    )
