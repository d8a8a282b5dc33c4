"""Why over HTTP: what was in the prompt of an answer, and what shaped it."""

from typing import Annotated, Any

import msgspec

from hone.features.attribution.answers import NoAnswer, find_answer
from hone.features.attribution.citing import ask
from hone.features.attribution.explaining import explain
from hone.features.attribution.report import to_data
from hone.features.attribution.values import Explanation
from hone.web.operation import LARGEST_NUMBER, Nothing, Operation, OperationCall


class WhyQuery(msgspec.Struct, frozen=True):
    """`message` is any message of the turn; 0: the last one."""

    message: Annotated[int, msgspec.Meta(ge=0, le=LARGEST_NUMBER)] = 0


async def why(call: OperationCall[WhyQuery, Nothing]) -> dict[str, Any]:
    """The journal entries, skills, templates and memories in the prompt of an answer, those that shaped it
    first, each with how that is known and the commands that correct it. No model is asked. Where nothing was
    answered yet, there are none."""
    try:
        return to_data(await _explain(call))
    except NoAnswer:
        return {"session": call.path["session"], "message": None, "items": []}


async def cite(call: OperationCall[WhyQuery, Nothing]) -> dict[str, Any]:
    """The same, with what the model says when it is asked which of them it relied on. It costs one call."""
    return to_data(await ask(call.state.hone, await _explain(call)))


async def _explain(call: OperationCall[WhyQuery, Nothing]) -> Explanation:
    hone = call.state.hone
    answer = await find_answer(hone.sessions, call.path["session"], call.query.message)
    return await explain(hone, answer)


OPERATIONS = (
    Operation("GET", "/api/sessions/{session}/why", why, query=WhyQuery),
    Operation("POST", "/api/sessions/{session}/why", cite, query=WhyQuery, spends=True),
)
