"""The curator over HTTP: its rounds, what a round would do now, doing one, pausing."""

from collections.abc import Iterator
from typing import Annotated, Any

import msgspec

from hone.core.curation import CuratorRun, summarize
from hone.core.errors import Conflict, Missing, Refused
from hone.core.ledger import Actor, ChangeState, skill
from hone.core.secrets import redact
from hone.features.curator.curator import Curator, Preview, report
from hone.features.curator.part import CuratorPart
from hone.features.curator.reports import markdown
from hone.knowledge.descriptions import diff
from hone.knowledge.folding import steps
from hone.web.operation import Nothing, Operation, OperationCall
from hone.web.operations.changes import rows

OLDEST = 50
"""Skills whose age is told, those that were not used for longest."""


class Rounds(msgspec.Struct, frozen=True):
    limit: Annotated[int, msgspec.Meta(ge=1, le=200)] = 20


class RoundRequest(msgspec.Struct, frozen=True):
    """`again` asks a model though no skill has changed since the last time."""

    again: bool = False


class PauseRequest(msgspec.Struct, frozen=True):
    paused: bool


def row(run: CuratorRun) -> dict[str, Any]:
    return {
        "round": run.id,
        "at": run.at.isoformat(),
        "why": run.why,
        "session": run.session or None,
        "error": redact(run.error),
        "changes": run.changes,
    }


async def listed(call: OperationCall[Rounds, Nothing]) -> dict[str, Any]:
    """Rounds, the latest first; why one is due, if one is; what waits; and how long skills were not used."""
    hone = call.state.hone
    curator = hone.part(CuratorPart).curator
    pending = [each for each in await hone.ledger.pending() if each.change.author.actor is Actor.CURATOR]
    aged = sorted(await hone.part(CuratorPart).ages(), key=lambda each: (-each.unused, each.name))
    return {
        "rounds": [row(each) for each in await hone.stores.curator_runs.runs(call.query.limit)],
        "paused": curator.is_paused,
        "due": await curator.due(),
        "waiting": [each.id for each in pending],
        "ages": [{"skill": each.name, "unused": each.unused, "state": each.grade} for each in aged[:OLDEST]],
        "aging": len(aged),
    }


async def one(call: OperationCall[Nothing, Nothing]) -> dict[str, Any]:
    """A round, with its report in Markdown and its changes as they are now."""
    hone, id = call.state.hone, call.path["round"]
    found = next((each for each in await hone.stores.curator_runs.runs() if each.id == id), None)
    if found is None:
        raise Missing(f"There is no round {id}.")
    entries = [await hone.ledger.entry(each) for each in found.changes]
    return {**row(found), "report": redact(markdown(found)), "made": await rows(call.state, entries)}


async def preview(call: OperationCall[Nothing, RoundRequest]) -> dict[str, Any]:
    """What a round would do now, line by line. A model is asked, as in a round, and nothing is changed."""
    made = await _writable(call).preview(again=call.body.again)
    thought = made.thought
    told = report(thought, [each.change for each in made.entries], made.refused)
    return {
        "report": redact(told),
        "session": thought.advice.session or None,
        "error": redact(thought.advice.error),
        "skipped": thought.advice.skipped,
        "refused": [redact(each) for each in made.refused],
        "moves": list(_moves(made)),
    }


def _moves(made: Preview) -> Iterator[dict[str, Any]]:
    states = {each.change.target: each.change.standing for each in made.entries}
    for number, batch in enumerate(made.thought.batches, 1):
        for move in batch.moves:
            target = skill(move.name)
            if target in states:
                yield {
                    "group": number,
                    "skill": move.name,
                    "deed": move.kind,
                    "waits": states[target] is ChangeState.PENDING,
                    "rows": [
                        {"sign": sign, "text": redact(text)}
                        for sign, text in diff(target, steps(move.before, move.after))
                    ],
                }


async def run(call: OperationCall[Nothing, RoundRequest]) -> dict[str, Any]:
    """Do a round now. What a model wants waits for the owner, unless merging is set free."""
    done = await _writable(call).work(again=call.body.again)
    if done is None:
        raise Conflict("Another process is at it already. Look again in a while.")
    made, entries = done
    return {**row(made), "summary": summarize(made, entries), "made": await rows(call.state, entries)}


async def pause(call: OperationCall[Nothing, PauseRequest]) -> dict[str, Any]:
    """Begin no round by itself, or begin rounds again."""
    reports = _writable(call).reports
    reports.pause() if call.body.paused else reports.resume()
    return {"paused": call.body.paused}


def _writable(call: OperationCall[Any, Any]) -> Curator:
    hone = call.state.hone
    if hone.keeper.rules.closed:
        raise Refused(f"{hone.keeper.rules.closed} Nothing was changed.")
    return hone.part(CuratorPart).curator


OPERATIONS = (
    Operation("GET", "/api/curator", listed, query=Rounds),
    Operation("GET", "/api/curator/rounds/{round:int}", one),
    Operation("POST", "/api/curator/preview", preview, body=RoundRequest, spends=True),
    Operation("POST", "/api/curator/rounds", run, body=RoundRequest, status=201, spends=True),
    Operation("POST", "/api/curator/pause", pause, body=PauseRequest),
)
