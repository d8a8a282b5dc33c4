"""`hone team`: propose, approve and undo what the team shares."""

from collections.abc import Iterable, Iterator

import click

from hone.app import Hone
from hone.cli.context import in_home, with_home
from hone.cli.help_formatter import CommandGroup
from hone.cli.options import FAILED, Options, at_terminal, limit_option
from hone.cli.output import echo, to_json
from hone.core.ledger import ChangeId
from hone.features.team.part import TeamPart
from hone.features.team.preparing import check_shareable
from hone.features.team.service import TeamKnowledge
from hone.features.team.showing import (
    describe_log,
    describe_proposal,
    describe_shared,
    describe_shown,
    log_data,
    proposal_data,
    shared_data,
)
from hone.features.team.values import ShareReport
from hone.knowledge import descriptions

ID = click.IntRange(1)
YES = click.option(
    "--yes", "seal", metavar="SEAL", default="", help="Do not ask: you have seen the text with this seal."
)
REASON = click.option("--reason", default="", metavar="TEXT", help="Why, for the team's log.")


@click.group(
    cls=CommandGroup, short_help="Share what you know with your team, after a second person approves."
)
def team() -> None:
    """Share entries and skills with everybody on your database.

    You propose what you know yourself. Hone shows what the text would tell about people, machines and
    private matters. It reaches nobody before a second person approves it.
    """


@team.command(name="list", short_help="Show what your team shares.")
@click.option("--json", "as_json", is_flag=True, help="Print a JSON object.")
@in_home
async def list_(hone: Hone, as_json: bool) -> Iterable[str]:
    """Show what your team shares, with who shared and who approved it."""
    of_team = _team(hone)
    known = await of_team.reader.read(hone.library.today)
    return to_json(shared_data(known, of_team.me)) if as_json else describe_shared(known)


@team.command(short_help="Propose an entry or a skill of yours.")
@click.argument("entry", metavar="ENTRY", default="")
@click.option("--skill", metavar="NAME", default="", help="Propose this skill instead of an entry.")
@REASON
@YES
@click.pass_obj
def propose(options: Options, entry: str, skill: str, reason: str, seal: str) -> int:
    """Propose ENTRY, named by its change number or a unique part of its text.

    Hone shows the whole text and what it would tell. Exactly that is proposed, or nothing. The conversation
    it came from stays yours.
    """
    if bool(entry) is bool(skill):
        raise click.UsageError("Name one entry, or one skill with --skill.")

    async def prepare(known: TeamKnowledge) -> ShareReport:
        return await (known.prepare_skill(skill) if skill else known.prepare_entry(entry))

    shown = with_home(options, lambda hone: prepare(_team(hone)))
    echo(describe_shown(shown))
    check_shareable(shown)
    if not _agrees(shown, seal, "Propose this to your team as shown?"):
        return FAILED

    async def act(hone: Hone) -> None:
        made = await _team(hone).propose(await prepare(_team(hone)), shown.seal, reason)
        click.echo(f"Proposed as team {made.id}. It waits for a second person: hone team approve {made.id}")

    with_home(options, act)
    return 0


def _agrees(shown: ShareReport, seal: str, question: str) -> bool:
    """Ask, or use the seal of what was shown before."""
    if seal:
        if seal == shown.seal:
            return True
        click.echo(f"This is not what you have seen: its seal is {shown.seal}.", err=True)
        return False
    if at_terminal():
        return click.confirm(question)
    click.echo(f"Nothing was changed. To agree to exactly this, add --yes {shown.seal}", err=True)
    return False


@team.command(short_help="Show what waits for a second person.")
@click.option("--json", "as_json", is_flag=True, help="Print a JSON list.")
@in_home
async def pending(hone: Hone, as_json: bool) -> Iterable[str]:
    """Show what was proposed, with what it would tell. It is in nobody's prompt yet."""
    known = _team(hone)
    found = await known.pending()
    if as_json:
        return to_json([proposal_data(each, known.me) for each in found])

    def lines() -> Iterator[str]:
        for each in found:
            yield from describe_proposal(each)
            yield f"hone team approve {each.change}   or   hone team reject {each.change}\n"
        if not found:
            yield "Nothing waits for a second person."

    return lines()


@team.command(short_help="Approve what a colleague proposed.")
@click.argument("id", type=ID)
@YES
@click.pass_obj
def approve(options: Options, id: ChangeId, seal: str) -> int:
    """Approve proposal ID of a colleague. It is in everybody's next prompt then.

    Hone shows it first. Exactly what it showed takes effect. You cannot approve what you proposed yourself.
    """
    proposal = with_home(options, lambda hone: _team(hone).prepare_approval(id))
    echo(describe_proposal(proposal))
    if not _agrees(proposal.shown, seal, f"Approve team {id} as shown, for everybody?"):
        return FAILED

    async def act(hone: Hone) -> None:
        made = await _team(hone).approve(id, proposal.shown.seal)
        click.echo(f"Team {id} is approved by team {made.id}. Undo it with: hone team undo {made.id}")

    with_home(options, act)
    return 0


@team.command(short_help="Reject a proposal.")
@click.argument("id", type=ID)
@REASON
@in_home
async def reject(hone: Hone, id: ChangeId, reason: str) -> str:
    """Reject proposal ID; it stays in the team's log."""
    made = await _team(hone).reject(id, reason)
    return f"Team {id} is rejected by team {made.id}."


@team.command(short_help="Take back what the team shares.")
@click.argument("id", type=ID)
@REASON
@in_home
async def undo(hone: Hone, id: ChangeId, reason: str) -> str:
    """Take back what the team shares under ID, in everybody's next prompt.

    The one who shared it, the one who approved it and the operator can do so.
    """
    made = await _team(hone).undo(id, reason)
    return f"Team {id} is undone by team {made.id}. To share it again, propose it again."


@team.command(short_help="List the changes of what the team shares.")
@limit_option("How many, newest first.")
@click.option("--json", "as_json", is_flag=True, help="Print a JSON list.")
@in_home
async def log(hone: Hone, limit: int, as_json: bool) -> Iterable[str]:
    """List who proposed, approved, rejected and undid what, the newest first."""
    known = _team(hone)
    found = await descriptions.describe(known.keeper, await known.log(limit))
    if as_json:
        return to_json([log_data(each) for each in found])
    return map(describe_log, found) if found else "Nothing was proposed to the team yet."


def _team(hone: Hone) -> TeamKnowledge:
    return hone.part(TeamPart).team
