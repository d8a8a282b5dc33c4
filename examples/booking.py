"""Book a table: an agent with one tool of the program's own, a streamed answer and an answer as a value.

Run it with `python examples/booking.py`. It needs a model: a key in the environment, or `hone setup`.
"""

import asyncio
from dataclasses import dataclass

from hone import CallStarted, Hone, Model, TextPiece


@dataclass
class Booking:
    restaurant: str
    seats: int


def free_tables(day: str) -> dict[str, int]:
    """Return the seats that are free on a day, by restaurant."""
    return {"Luigi": 2, "Sakura": 4} if day == "Friday" else {}


async def book(model: Model | str = "") -> Booking:
    rules = ["free_tables: *"]
    async with Hone(model=model, tools=[free_tables], builtin_tools=False, mode="ask", allow=rules) as hone:
        session = await hone.session()
        async for event in session.stream("Where can three of us eat on Friday?"):
            match event:
                case TextPiece(text):
                    print(text, end="")
                case CallStarted(call):
                    print(f"[{call.name}]")
        return await session.obtain("Book it.", Booking)


if __name__ == "__main__":
    print(asyncio.run(book()))
