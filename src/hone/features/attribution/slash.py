"""`/why` in the chat: which lessons shaped the last answer, or the answer to a message."""

from hone.cli.slash import ChatState
from hone.core.errors import Refused
from hone.features.attribution.answers import find_answer
from hone.features.attribution.explaining import explain
from hone.features.attribution.report import write_lines

NOTHING_SAID = "There is no answer yet."
EVERYTHING = "all"


async def show_why(state: ChatState, argument: str) -> str:
    """Explain an answer of this conversation. Nothing is sent to the model."""
    words = argument.split()
    number = next((word for word in words if word != EVERYTHING), "")
    if number and not (number.isascii() and number.isdigit() and len(number) < 10):
        raise Refused("Which message? Try /why 14, or /why alone for the last answer.")
    if not len(state.session.transcript):
        return NOTHING_SAID
    answer = await find_answer(state.hone.sessions, state.session.id, int(number or 0))
    lines = write_lines(await explain(state.hone, answer), all_items=EVERYTHING in words)
    return "\n".join((*lines, f"Verify it: hone why {answer.header.id}:{answer.number} --verify"))
