"""`hone rewind`: take back what tools and commands did to files."""

from collections.abc import Iterator

import click
import msgspec

from hone.app import Hone
from hone.cli.context import with_home
from hone.cli.options import FAILED, Options, at_terminal, confirm
from hone.cli.output import echo, echo_json, number_of
from hone.core.errors import Missing
from hone.core.ids import SessionId
from hone.core.visible import one_line, path_to_text, visible
from hone.features.checkpoints.part import CheckpointsPart
from hone.features.checkpoints.text import (
    NOTHING,
    count_line,
    files_of,
    plan_data,
    plan_lines,
    turn_data,
    turn_lines,
)
from hone.features.checkpoints.values import RewindPlan, TurnChanges

LATEST = 200
"""How many sessions to search for one that changed files in this folder."""
NONE_HERE = "No session has changed files in this folder. Name one: hone rewind SESSION"
EPILOG = """\b
Examples:
  hone rewind          list the turns here, and ask
  hone rewind --to 3   restore the files of before turn 3
  hone rewind --to 3 --with-conversation
                       and begin a new session from there
  hone rewind --redo   undo the last rewind
"""


class RewindRequest(msgspec.Struct, frozen=True):
    """The command line's request."""

    session: str = ""
    turn: int | None = None
    only_list: bool = False
    dry_run: bool = False
    conversation: bool = False
    redo: bool = False
    forget: bool = False
    as_json: bool = False
    yes: bool = False


class FoundSession(msgspec.Struct, frozen=True):
    """A session with the turns that changed files."""

    id: SessionId
    folder: str
    turns: list[TurnChanges]


@click.command(epilog=EPILOG, short_help="Undo what tools did to your files.")
@click.argument("session", required=False, default="")
@click.option("--to", "turn", type=click.IntRange(1), help="Undo this turn and all later ones.")
@click.option("--list", "only_list", is_flag=True, help="Only list the turns and the files they changed.")
@click.option("--dry-run", is_flag=True, help="Say what would be done, and do nothing.")
@click.option(
    "--with-conversation/--files-only",
    "conversation",
    default=False,
    help="Go back in the conversation, too, or in the files alone (default).",
)
@click.option("--redo", is_flag=True, help="Undo the last rewind.")
@click.option("--forget", is_flag=True, help="Delete the old versions of files that are kept for SESSION.")
@click.option("--json", "as_json", is_flag=True, help="Print a JSON object.")
@click.option("--yes", "-y", is_flag=True, help="Do not ask.")
@click.pass_obj
def rewind(options: Options, /, **given: object) -> int:
    """Undo what tools and commands did to files, turn by turn.

    A file that you have changed since is left alone, and a rewind can be undone. Without SESSION, it uses the
    last one that changed files in this folder.
    """
    request = msgspec.convert(given, RewindRequest)
    if request.forget:
        return _forget(options, request)
    found = with_home(options, lambda hone: find_session(hone, request.session))
    if found is None or not (found.turns or request.conversation):
        _say_nothing(found, request)
        return 0
    if request.only_list or (request.turn is None and not request.redo and not at_terminal()):
        _list(found, request)
        return 0
    return _act(options, found, request)


async def find_session(hone: Hone, beginning: str) -> FoundSession | None:
    """Return the session with that id or, without one, the last one that changed files in this folder."""
    history = hone.part(CheckpointsPart).service.history
    if beginning:
        id = await hone.sessions.find(beginning)
        stored = await hone.sessions.load(id)
        return FoundSession(id, stored.header.folder, await history.turns(id))
    for each in await hone.sessions.list(LATEST, own=True):
        header = each.header
        if header.folder == path_to_text(hone.folder) and (turns := await history.turns(header.id)):
            return FoundSession(header.id, header.folder, turns)
    return None


def _say_nothing(found: FoundSession | None, request: RewindRequest) -> None:
    if request.as_json:
        echo_json({"session": found.id if found else None, "turns": []})
    else:
        click.echo(NOTHING if found else NONE_HERE)


def _list(found: FoundSession, request: RewindRequest) -> None:
    if request.as_json:
        echo_json({"session": found.id, "turns": [turn_data(each) for each in found.turns]})
        return
    click.echo(f"Session {found.id} in {one_line(found.folder, 200)}")
    echo(turn_lines(found.turns, found.folder))


def _act(options: Options, found: FoundSession, request: RewindRequest) -> int:
    turn = request.turn
    if turn is None and not request.redo:
        _list(found, request)
        turn = click.prompt("Restore the files as they were before which turn?", type=click.IntRange(1))

    async def make(hone: Hone) -> RewindPlan:
        history = hone.part(CheckpointsPart).service.history
        return await (history.plan_redo(found.id) if turn is None else history.plan(found.id, turn))

    plan = with_home(options, make)
    if request.dry_run:
        _report(plan, found, request, done=False)
        return 0
    if not plan.acting and not request.conversation:
        _report(plan, found, request, done=True)
        return FAILED if plan.left else 0
    if not request.as_json and not request.yes:
        echo(plan_lines(plan, found.folder))
    question = f"Change {number_of(len(files_of(plan.acting)), 'file')}?"
    alone = f"{question} Hone cannot ask here. Add --yes, or --dry-run to look first."
    if not confirm(question, alone, yes=request.yes):
        click.echo("Nothing was changed.")
        return FAILED
    done, branched = with_home(options, lambda hone: _apply(hone, plan, conversation=request.conversation))
    _report(done, found, request, done=True, branched=branched)
    return 0


async def _apply(hone: Hone, plan: RewindPlan, *, conversation: bool) -> tuple[RewindPlan, str | None]:
    """Rewind the files, and the conversation if requested. Return the new session, empty for one that begins
    with nothing."""
    history = hone.part(CheckpointsPart).service.history
    if not conversation or plan.redoes:
        return await history.apply(plan), None
    branched = await history.branch(plan.session, plan.turn, hone.clock.now())
    return await history.apply(plan), branched or ""


def _report(
    plan: RewindPlan, found: FoundSession, request: RewindRequest, *, done: bool, branched: str | None = None
) -> None:
    if request.as_json:
        echo_json({**plan_data(plan), "done": done, "branch": branched})
        return
    echo(_lines(plan, found, done=done, branched=branched))


def _lines(plan: RewindPlan, found: FoundSession, *, done: bool, branched: str | None) -> Iterator[str]:
    yield from plan_lines(plan, found.folder, done=done)
    if not plan.acting:
        yield "There is nothing to restore." if not plan.left else "Nothing was changed."
    elif done:
        yield count_line(plan)
        if not plan.redoes:
            yield f"Undo that with: hone rewind {found.id} --redo"
    if branched:
        yield f"The conversation before turn {plan.turn} is session {branched}: hone --resume {branched}"
    elif branched is not None:
        yield "Nothing was said before that turn. Start a new conversation: hone"


def _forget(options: Options, request: RewindRequest) -> int:
    if not request.session:
        raise click.UsageError("Say whose: hone rewind SESSION --forget")
    question = f"Delete the old versions of files kept for session {visible(request.session)}?"
    if not confirm(question, f"{question} Hone cannot ask here. Add --yes.", yes=request.yes):
        click.echo("Nothing was deleted.")
        return FAILED

    async def act(hone: Hone) -> int:
        try:
            id = await hone.sessions.find(request.session)
        except Missing:
            id = SessionId(request.session)  # a session that was deleted
        return await hone.part(CheckpointsPart).service.forget(id)

    count = with_home(options, act)
    click.echo(f"Deleted {number_of(count, 'change')}." if count else "Nothing is kept for this session.")
    return 0
