"""`/rewind` in the chat: list turns, show what a rewind would do, and do it when it is asked for again."""

from hone.cli.slash import ChatState
from hone.core.errors import Refused
from hone.core.visible import one_line
from hone.features.checkpoints.history import FileHistory
from hone.features.checkpoints.part import CheckpointsPart
from hone.features.checkpoints.text import NOTHING, count_line, plan_lines, turn_lines
from hone.features.checkpoints.values import RewindPlan

LATEST = 8
"""Turns in the list."""
CONVERSATION = ("--conversation", "--with-conversation", "-c")
HOW = "/rewind TURN restores the files as they were before it; --conversation goes back in the chat, too."


async def rewind(state: ChatState, argument: str) -> str:
    """Without an argument, list turns. With one, show what would be done; the second time, do it."""
    part, session = state.hone.part(CheckpointsPart), state.session
    history = part.service.history
    if not len(session.transcript):
        return NOTHING
    words = argument.split()
    if not words:
        return await _list(history, state)
    plan = await _plan(history, state, words[0])
    conversation = any(word in CONVERSATION for word in words[1:])
    lines = [*plan_lines(plan, session.header.folder)]
    if not plan.acting and not conversation:
        return "\n".join((*lines, "There is nothing to restore."))
    if not part.is_confirmed(argument, plan):
        return "\n".join((*lines, f"/rewind {one_line(argument, 40)} once more does it."))
    return await _apply(history, state, plan, conversation=conversation)


async def _list(history: FileHistory, state: ChatState) -> str:
    turns = await history.turns(state.session.id)
    if not turns:
        return NOTHING
    return "\n".join((*turn_lines(turns[-LATEST:], state.session.header.folder), HOW))


async def _plan(history: FileHistory, state: ChatState, word: str) -> RewindPlan:
    if word == "redo":
        return await history.plan_redo(state.session.id)
    if not (word.isascii() and word.isdigit() and len(word) < 10):
        raise Refused("Which turn? Try /rewind 3. /rewind lists them; /rewind redo takes the last one back.")
    return await history.plan(state.session.id, int(word))


async def _apply(history: FileHistory, state: ChatState, plan: RewindPlan, *, conversation: bool) -> str:
    old, hone = state.session, state.hone
    if not conversation or plan.redoes:
        done = await history.apply(plan)
        again = () if plan.redoes else ("/rewind redo takes that back.",)
        return "\n".join((*plan_lines(done, old.header.folder, done=True), count_line(done), *again))
    _, node = await history.message_of(old.id, plan.turn)
    branched = await history.branch(old.id, plan.turn, hone.clock.now())
    done = await history.apply(plan)
    state.session = await (hone.resume(branched) if branched else hone.session(old.agent.prefix.model))
    return "\n".join(
        (
            *plan_lines(done, old.header.folder, done=True),
            count_line(done),
            f"The chat is back before turn {plan.turn}. You had said: {one_line(node.message.text, 200)}",
            f"The old conversation is kept: /resume {old.id}",
        )
    )
