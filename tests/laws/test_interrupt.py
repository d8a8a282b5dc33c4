"""A6: wherever a turn is interrupted, every call has a result and the session can go on."""

import asyncio

from hypothesis import given
from hypothesis import strategies as st

from hone.core.messages import Message, ToolCall, assistant
from hone.core.tool import Outcome
from hone.core.turn import Stop, Turn
from hone.models.scripted import Scripted, lines
from tests.rig import Memory, Puppet, agent, asked, faults, take_turn


async def pausing(call: ToolCall) -> Outcome:
    for _ in range(3):
        await asyncio.sleep(0)
    return Outcome("done")


TOOLS = [Puppet("read", readonly=True, act=pausing), Puppet("write", act=pausing)]
batches = st.lists(st.sampled_from(["read", "write"]), min_size=1, max_size=4)


def reply(names: list[str], number: int) -> Message:
    made = (ToolCall(f"c{number}-{index}", name, "{}") for index, name in enumerate(names))
    return assistant("let me see what there is to see", *made)


async def interrupted(replies: list[Message], steps: int, again: int) -> tuple[Turn, Memory]:
    memory = Memory()
    who = agent(Scripted(lines(*replies, "all done now")), TOOLS)
    task = asyncio.create_task(take_turn(who, memory))
    await asyncio.sleep(0)
    for pause in (steps, again):
        for _ in range(pause):
            await asyncio.sleep(0)
        task.cancel()
    return await task, memory


@given(st.lists(batches, min_size=1, max_size=3), st.integers(0, 60), st.integers(0, 6))
def test_every_call_has_a_result_wherever_the_turn_is_cut(
    plan: list[list[str]], steps: int, again: int
) -> None:
    replies = [reply(names, number) for number, names in enumerate(plan)]
    turn, memory = asyncio.run(interrupted(replies, steps, again))
    assert turn.stop in (Stop.INTERRUPTED, Stop.ANSWERED)
    assert turn.nodes == tuple(memory.nodes)
    history = [*asked(), *(node.message for node in memory.nodes)]
    assert faults(history) == []
