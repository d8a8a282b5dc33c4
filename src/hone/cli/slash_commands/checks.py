"""`/doctor`: check the home folder, the model and the sandbox of this chat."""

from hone.cli.doctor import examine_hone, mark
from hone.cli.slash import ChatState
from hone.core.visible import visible


async def examine(state: ChatState, _: str) -> str:
    found = examine_hone(state.hone, state.session.agent.prefix.model)
    return "\n".join([f"{mark(line, fine=fine)} {visible(line)}" async for fine, line in found])
