"""Do what booking.py does, in smolagents. docs/coming-from.md says how it was checked."""

import json
from dataclasses import dataclass
from typing import cast

from smolagents import FinalAnswerStep, Model, OpenAIModel, ToolCall, ToolCallingAgent, tool


@dataclass
class Booking:
    restaurant: str
    seats: int


@tool
def free_tables(day: str) -> dict[str, int]:
    """Return the seats that are free on a day, by restaurant.

    Args:
        day: the name of a weekday
    """
    return {"Luigi": 2, "Sakura": 4} if day == "Friday" else {}


def book(model: Model) -> Booking:
    agent = ToolCallingAgent(tools=[free_tables], model=model)
    for event in agent.run("Where can three of us eat on Friday?", stream=True):
        match event:
            case ToolCall(name=name):
                print(f"[{name}]")
            case FinalAnswerStep(output=text):
                print(text)
    asked = 'Book it. Answer with JSON: {"restaurant": TEXT, "seats": NUMBER}.'
    return Booking(**json.loads(cast(str, agent.run(asked, reset=False))))


if __name__ == "__main__":
    print(book(OpenAIModel("gpt-5")))
