"""Do what booking.py does, in pydantic-ai. docs/coming-from.md says how it was checked."""

import asyncio
from dataclasses import dataclass

from pydantic_ai import Agent, FunctionToolCallEvent, PartDeltaEvent, PartStartEvent, TextPart, TextPartDelta
from pydantic_ai.models import Model


@dataclass
class Booking:
    restaurant: str
    seats: int


def free_tables(day: str) -> dict[str, int]:
    """Return the seats that are free on a day, by restaurant."""
    return {"Luigi": 2, "Sakura": 4} if day == "Friday" else {}


async def book(model: Model | str = "openai:gpt-5") -> Booking:
    agent = Agent(model, tools=[free_tables])
    async with agent.iter("Where can three of us eat on Friday?") as run:
        async for node in run:
            if Agent.is_model_request_node(node) or Agent.is_call_tools_node(node):
                async with node.stream(run.ctx) as events:
                    async for event in events:
                        match event:
                            case PartStartEvent(part=TextPart(content=text)):
                                print(text, end="")
                            case PartDeltaEvent(delta=TextPartDelta(content_delta=text)):
                                print(text, end="")
                            case FunctionToolCallEvent(part=call):
                                print(f"[{call.tool_name}]")
        assert run.result is not None
        history = run.result.all_messages()
    booked = await agent.run("Book it.", output_type=Booking, message_history=history)
    return booked.output


if __name__ == "__main__":
    print(asyncio.run(book()))
