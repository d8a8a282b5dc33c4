"""`/resume`: continue another conversation, by its id, by its words, or from a list."""

from datetime import UTC, datetime

from hone.cli import modes
from hone.cli.resuming import describe_row, find_candidates
from hone.cli.slash import ChatState, SlashMenu, SlashResult
from hone.core.errors import Missing, Refused
from hone.core.permissions import Mode
from hone.core.visible import one_line


async def resume(state: ChatState, words: str) -> SlashResult:
    folder = state.session.header.folder
    every = [each for each in await state.hone.sessions.list(None) if each.header.id != state.session.id]
    if not every and not words:
        raise Refused("There is no other conversation yet.")
    found = find_candidates(every, words, folder)
    if not found.found:
        return await _open_other(state, words)
    if found.sure:
        return await open_session(state, found.found[0].header.id)
    now = datetime.now(UTC)

    async def then(number: int) -> SlashResult:
        return await open_session(state, found.found[number].header.id)

    return SlashMenu("Which conversation?", [describe_row(each, folder, now) for each in found.found], then)


async def _open_other(state: ChatState, words: str) -> str:
    """Continue one that lists leave out, such as a fork, by its id."""
    try:
        return await open_session(state, words)
    except Missing:
        raise Missing(
            f"No conversation matches “{one_line(words, 40)}”. /resume alone offers a list."
        ) from None


async def open_session(state: ChatState, beginning: str) -> str:
    """Continue a conversation. Raises Missing if no id begins like this."""
    state.session = await state.hone.resume(beginning)
    mode = state.session.mode
    said = "" if mode is Mode.AUTO else f" {modes.describe(mode)}"
    return f"Continuing {state.session.id}, {len(state.session.transcript):,} messages.{said}"
