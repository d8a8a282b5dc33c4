"""`/rewind` in the chat: choose a message, see what a rewind would do, and choose what to take back."""

from hone.cli.output import moment, number_of
from hone.cli.slash import ChatState, SlashDraft, SlashMenu, SlashResult
from hone.cli.slash_commands.conversation import find_begun, go_back
from hone.core.errors import Refused
from hone.core.transcript import Node
from hone.core.visible import one_line
from hone.features.checkpoints.decisions import anchor_of
from hone.features.checkpoints.history import FileHistory
from hone.features.checkpoints.part import CheckpointsPart
from hone.features.checkpoints.text import collapse, count_line, plan_lines
from hone.features.checkpoints.values import RewindPlan, TurnChanges

WORDS = 50
"""The most letters of a message in the list."""
CONVERSATION = ("--conversation", "--with-conversation", "-c")
NOTHING_SAID = "There is nothing to go back to yet."
BOTH, CHAT, FILES = "the conversation and the files", "the conversation only", "the files only"


async def rewind(state: ChatState, argument: str) -> SlashResult:
    """Without an argument, offer messages to go back to. With a turn, show what would happen to files; the
    second time, do it."""
    part, session = state.hone.part(CheckpointsPart), state.session
    history = part.service.history
    if not len(session.transcript):
        return NOTHING_SAID
    words = argument.split()
    if not words:
        return await _offer(history, state)
    plan = await _plan(history, state, words[0])
    conversation = any(word in CONVERSATION for word in words[1:])
    lines = [*plan_lines(plan, session.header.folder)]
    if not plan.acting and not conversation:
        return "\n".join((*lines, "There is nothing to restore."))
    if not part.is_confirmed(argument, plan):
        return "\n".join((*lines, f"Type /rewind {one_line(argument, 40)} again to do it."))
    return await _apply(history, state, plan, conversation=conversation)


async def _offer(history: FileHistory, state: ChatState) -> SlashResult:
    """Offer the messages of this conversation, newest first, with what their turns did to files."""
    turns = {each.anchor: each for each in await history.turns(state.session.id)}
    begun = find_begun(state.session.transcript.nodes)[::-1]
    rows = [_row(node, turns.get(anchor_of(node))) for _, node in begun]

    async def then(number: int) -> SlashResult:
        later = {anchor_of(node) for node in state.session.transcript.nodes[begun[number][0] :]}
        touched = [turn.number for turn in turns.values() if turn.anchor in later]
        plan = await history.plan(state.session.id, min(touched)) if touched else None
        return await _offer_ways(history, state, *begun[number], plan)

    return SlashMenu("Go back to before which message?", rows, then) if rows else NOTHING_SAID


def _row(node: Node, turn: TurnChanges | None) -> str:
    files = len({path for _, path, _ in collapse(turn.changes)}) if turn and not turn.is_taken_back else 0
    did = f"  ({number_of(files, 'file')} changed)" if files else ""
    return f"{moment(node.at)}  {one_line(node.message.text, WORDS)}{did}"


async def _offer_ways(
    history: FileHistory, state: ChatState, count: int, node: Node, plan: RewindPlan | None
) -> SlashResult:
    """Ask what to undo, after showing what would happen to files."""
    if plan is None or not plan.acting:
        left = "\n".join(plan_lines(plan, state.session.header.folder)) if plan else ""
        return await _go_back(state, count, node, left)
    ways, shown = (BOTH, CHAT, FILES), "\n".join(plan_lines(plan, state.session.header.folder))

    async def then(number: int) -> SlashResult:
        if ways[number] == CHAT:
            return await _go_back(state, count, node, "")
        done = await history.apply(plan)
        told = (*plan_lines(done, state.session.header.folder, done=True), count_line(done))
        said = "\n".join((*told, "Undo that with: /rewind redo"))
        return said if ways[number] == FILES else await _go_back(state, count, node, said)

    return SlashMenu("Take back what?", ways, then, shown)


async def _go_back(state: ChatState, count: int, node: Node, done: str) -> SlashDraft:
    """Continue before a message, which is put into the prompt."""
    old = state.session.id
    await go_back(state, count)
    said = f"You are back before this message. The old conversation is kept: /resume {old}"
    return SlashDraft(node.message.text, "\n".join(filter(None, (done, said))))


async def _plan(history: FileHistory, state: ChatState, word: str) -> RewindPlan:
    if word == "redo":
        return await history.plan_redo(state.session.id)
    if not (word.isascii() and word.isdigit() and len(word) < 10):
        raise Refused("Which turn? Try /rewind 3, or /rewind alone for a list. /rewind redo undoes a rewind.")
    return await history.plan(state.session.id, int(word))


async def _apply(history: FileHistory, state: ChatState, plan: RewindPlan, *, conversation: bool) -> str:
    old, hone = state.session, state.hone
    if not conversation or plan.redoes:
        done = await history.apply(plan)
        again = () if plan.redoes else ("Undo that with: /rewind redo",)
        return "\n".join((*plan_lines(done, old.header.folder, done=True), count_line(done), *again))
    _, node = await history.message_of(old.id, plan.turn)
    branched = await history.branch(old.id, plan.turn, hone.clock.now())
    done = await history.apply(plan)
    state.session = await (hone.resume(branched) if branched else hone.session(old.agent.prefix.model))
    return "\n".join(
        (
            *plan_lines(done, old.header.folder, done=True),
            count_line(done),
            f"You are back before turn {plan.turn}. You had said: {one_line(node.message.text, 200)}",
            f"The old conversation is kept: /resume {old.id}",
        )
    )
