"""Rewind files over HTTP: list the turns that changed some, say what a rewind would do, do it, redo it."""

from typing import Annotated, Any

import msgspec

from hone.core.errors import Conflict
from hone.core.ids import SessionId
from hone.core.secrets import redact
from hone.features.checkpoints.history import FileHistory
from hone.features.checkpoints.part import CheckpointsPart
from hone.features.checkpoints.text import plan_data, turn_data
from hone.features.checkpoints.values import RewindPlan
from hone.web.operation import Nothing, Operation, OperationCall


class RewindBody(msgspec.Struct, frozen=True):
    """`turn` and all later ones are taken back. `conversation` begins a new session with what was said
    before; `dry_run` only says what would be done."""

    turn: Annotated[int, msgspec.Meta(ge=1, le=2**53)]
    conversation: bool = False
    dry_run: bool = False


async def listed(call: OperationCall[Nothing, Nothing]) -> dict[str, Any]:
    """List the turns of a conversation that changed files, with what they changed. `message` is the number of
    the message that began it, if it is still part of the conversation."""
    session, history = await _find(call)
    places = await history.numbers(session)
    turns = [
        turn_data(turn) | {"words": redact(turn.words), "message": places.get(turn.anchor)}
        for turn in await history.turns(session)
    ]
    return {"session": session, "turns": turns}


async def rewind(call: OperationCall[Nothing, RewindBody]) -> dict[str, Any]:
    """Restore the files as they were before a turn. What the user changed since is left alone."""
    session, history = await _find(call)
    plan = await history.plan(session, call.body.turn)
    if call.body.dry_run:
        return {**plan_data(plan), "done": False, "branch": None}
    await _insist_on_quiet(call, session)
    branched = None
    if call.body.conversation:
        branched = await history.branch(session, call.body.turn, call.state.clock.now())
    return await _apply(history, plan, branched)


async def redo(call: OperationCall[Nothing, Nothing]) -> dict[str, Any]:
    """Take the last rewind of files back."""
    session, history = await _find(call)
    await _insist_on_quiet(call, session)
    return await _apply(history, await history.plan_redo(session), None)


async def _apply(history: FileHistory, plan: RewindPlan, branched: SessionId | None) -> dict[str, Any]:
    return {**plan_data(await history.apply(plan)), "done": True, "branch": branched}


async def _find(call: OperationCall[Any, Any]) -> tuple[SessionId, FileHistory]:
    hone = call.state.hone
    session = await hone.sessions.find(call.path["session"])
    return session, hone.part(CheckpointsPart).service.history


async def _insist_on_quiet(call: OperationCall[Any, Any], session: SessionId) -> None:
    if session in await call.state.busy():
        raise Conflict("This conversation is busy. Interrupt it, or wait until its turn has ended.")


OPERATIONS = (
    Operation("GET", "/api/sessions/{session}/checkpoints", listed),
    Operation("POST", "/api/sessions/{session}/rewind", rewind, body=RewindBody),
    Operation("POST", "/api/sessions/{session}/redo", redo),
)
