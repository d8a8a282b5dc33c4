"""Do what booking.py does, with the Claude Agent SDK. docs/coming-from.md says how it was checked."""

import asyncio
from typing import Any

from claude_agent_sdk import (
    AssistantMessage,
    ClaudeAgentOptions,
    ClaudeSDKClient,
    ResultMessage,
    TextBlock,
    ToolUseBlock,
    create_sdk_mcp_server,
    tool,
)

BOOKING = {
    "type": "object",
    "properties": {"restaurant": {"type": "string"}, "seats": {"type": "integer"}},
    "required": ["restaurant", "seats"],
}


@tool("free_tables", "Return the seats that are free on a day, by restaurant.", {"day": str})
async def free_tables(arguments: dict[str, Any]) -> dict[str, Any]:
    free = '{"Luigi": 2, "Sakura": 4}' if arguments["day"] == "Friday" else "{}"
    return {"content": [{"type": "text", "text": free}]}


async def book() -> Any:
    options = ClaudeAgentOptions(
        tools=[],
        mcp_servers={"tables": create_sdk_mcp_server("tables", tools=[free_tables])},
        allowed_tools=["mcp__tables__free_tables"],
        output_format={"type": "json_schema", "schema": BOOKING},
    )
    answer: Any = None
    async with ClaudeSDKClient(options) as client:
        for message in ("Where can three of us eat on Friday?", "Book it."):
            await client.query(message)
            async for event in client.receive_response():
                match event:
                    case AssistantMessage(content=blocks):
                        for block in blocks:
                            match block:
                                case TextBlock(text=text):
                                    print(text)
                                case ToolUseBlock(name=name):
                                    print(f"[{name}]")
                    case ResultMessage(structured_output=booked):
                        answer = booked
    return answer


if __name__ == "__main__":
    print(asyncio.run(book()))
