"""Team knowledge over HTTP. Who acts is the owner of the server's stores, never somebody a request names."""

from typing import Annotated, Any

import msgspec

from hone.core.errors import Refused
from hone.core.knowledge import SharedKnowledge
from hone.core.ledger import ChangeId
from hone.features.team.part import TeamPart
from hone.features.team.service import TeamKnowledge
from hone.features.team.showing import log_data, proposal_data, shared_data, shown_data
from hone.knowledge import descriptions
from hone.web.operation import Nothing, Operation, OperationCall

LOG = 50


class LogLimit(msgspec.Struct, frozen=True):
    limit: Annotated[int, msgspec.Meta(ge=1, le=1_000)] = LOG


class ProposalDraft(msgspec.Struct, frozen=True):
    """An entry by its change number or words, or a skill by its name. Without `seal`, nothing is proposed:
    the answer is what to look at, and its seal."""

    entry: str = ""
    skill: str = ""
    seal: str = ""
    reason: str = ""


class SeenSeal(msgspec.Struct, frozen=True):
    seal: str


class TeamReason(msgspec.Struct, frozen=True):
    reason: str = ""


def _team(call: OperationCall[Any, Any]) -> TeamKnowledge:
    return call.state.hone.part(TeamPart).team


async def listed(call: OperationCall[Nothing, Nothing]) -> dict[str, Any]:
    """What the team shares, what waits for a second person, and who asks. Without a team, why not."""
    try:
        team = _team(call)
    except Refused as error:
        return {"me": None, "why": str(error), **shared_data(SharedKnowledge(), ""), "pending": []}
    known = await team.reader.read(call.state.hone.library.today)
    waiting = [proposal_data(each, team.me) for each in await team.pending()]
    return {"me": team.me, "why": "", **shared_data(known, team.me), "pending": waiting}


async def log(call: OperationCall[LogLimit, Nothing]) -> dict[str, Any]:
    """Who proposed, approved, rejected and undid what, the newest first."""
    team = _team(call)
    found = await descriptions.describe(team.keeper, await team.log(call.query.limit))
    return {"changes": [log_data(each) for each in found]}


async def propose(call: OperationCall[Nothing, ProposalDraft]) -> dict[str, Any]:
    """Show an entry or a skill with what it would tell; with the seal of what was shown, propose it."""
    team, body = _team(call), call.body
    shown = await (team.prepare_skill(body.skill) if body.skill else team.prepare_entry(body.entry))
    if not body.seal:
        return {"change": None, **shown_data(shown)}
    made = await team.propose(shown, body.seal, body.reason)
    return {"change": made.id, **shown_data(shown)}


async def approve(call: OperationCall[Nothing, SeenSeal]) -> dict[str, Any]:
    """Approve what a colleague proposed, exactly as it was shown."""
    made = await _team(call).approve(ChangeId(call.path["change"]), call.body.seal)
    return {"change": made.id}


async def reject(call: OperationCall[Nothing, TeamReason]) -> dict[str, Any]:
    """Turn a proposal down."""
    made = await _team(call).reject(ChangeId(call.path["change"]), call.body.reason)
    return {"change": made.id}


async def undo(call: OperationCall[Nothing, TeamReason]) -> dict[str, Any]:
    """Take back what the team shares, in everybody's next prompt."""
    made = await _team(call).undo(ChangeId(call.path["change"]), call.body.reason)
    return {"change": made.id}


OPERATIONS = (
    Operation("GET", "/api/team", listed),
    Operation("GET", "/api/team/log", log, query=LogLimit),
    Operation("POST", "/api/team/proposals", propose, body=ProposalDraft),
    Operation("POST", "/api/team/{change:int}/approve", approve, body=SeenSeal),
    Operation("POST", "/api/team/{change:int}/reject", reject, body=TeamReason),
    Operation("POST", "/api/team/{change:int}/undo", undo, body=TeamReason),
)
