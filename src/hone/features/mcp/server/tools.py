"""The table of tools that a client is offered, and how one is called."""

from collections.abc import Awaitable, Callable, Mapping
from typing import Any

import msgspec
from msgspec import Raw, Struct

from hone.app import Hone
from hone.core.errors import HoneError
from hone.features.mcp.server import reading, sending
from hone.features.mcp.server.clients import Client, clear
from hone.features.mcp.server.reading import Content
from hone.knowledge.verdicts import LearningMode
from hone.rpc.messages import INVALID_PARAMS, RpcError

Act = Callable[[Hone, Client, Any], Awaitable[str | Content]]
FAULTS = (ArithmeticError, LookupError, MemoryError, RecursionError, TypeError, ValueError)
"""What may go wrong where a text is searched for secrets. Then it stays here."""


class ServedTool(Struct, frozen=True):
    """`offered` tells whether a client sees it; the tool itself checks again when it is called."""

    act: Act
    description: str
    arguments: type[Struct]
    readonly: bool = True
    offered: Callable[[Client], bool] = lambda _: True


def _may_send(client: Client) -> bool:
    return client.mode is not LearningMode.OFF


TOOLS: Mapping[str, ServedTool] = {
    "search_sessions": ServedTool(
        reading.search_sessions,
        "Search the owner's earlier conversations, or read one around a message.",
        reading.SearchArguments,
        offered=lambda client: client.access.sessions,
    ),
    "journal": ServedTool(
        reading.read_journal,
        "Read the journal: short, lasting facts and preferences about this project.",
        reading.JournalArguments,
    ),
    "skills_list": ServedTool(
        reading.skills_list,
        "Search skills: proven ways to do a class of task. Look here before you start one.",
        reading.ListArguments,
    ),
    "skill_view": ServedTool(reading.skill_view, "Read a skill or one of its files.", reading.ViewArguments),
    "learn": ServedTool(
        sending.learn,
        "Hand over a conversation to learn from. It counts as foreign text: it is reviewed later, and what "
        "the review finds waits for the owner's approval.",
        sending.LearnArguments,
        readonly=False,
        offered=_may_send,
    ),
    "propose": ServedTool(
        sending.propose,
        "Propose a journal entry (one lasting fact in one sentence) or a skill (a whole SKILL.md). It waits "
        "for the owner's approval.",
        sending.ProposeArguments,
        readonly=False,
        offered=_may_send,
    ),
}


class CallParams(Struct, frozen=True):
    name: str
    arguments: Raw = Raw(b"{}")


def list_tools(client: Client) -> dict[str, Any]:
    return {"tools": [_describe(name, tool) for name, tool in TOOLS.items() if tool.offered(client)]}


def _describe(name: str, tool: ServedTool) -> dict[str, Any]:
    hints = {"readOnlyHint": tool.readonly, "destructiveHint": False, "openWorldHint": False}
    return {
        "name": name,
        "description": tool.description,
        "inputSchema": _schema(tool.arguments),
        "annotations": hints,
    }


def _schema(arguments: type[Struct]) -> dict[str, Any]:
    (reference,), types = msgspec.json.schema_components([arguments], ref_template="#/$defs/{name}")
    own = types.pop(reference.pop("$ref").rpartition("/")[2])
    return {**reference, **own, **({"$defs": types} if types else {})}


async def call_tool(hone: Hone, client: Client, params: CallParams) -> dict[str, Any]:
    """Call a tool. What it refuses is a result that a model can read. Raises RpcError for an unknown one."""
    tool = TOOLS.get(params.name)
    if tool is None:
        raise RpcError(INVALID_PARAMS, f"There is no tool {params.name[:100]!r}.")
    try:
        wanted = msgspec.json.decode(bytes(params.arguments), type=tool.arguments)
        found = await tool.act(hone, client, wanted)
        return _result(found) if isinstance(found, str) else {"content": found, "isError": False}
    except (msgspec.DecodeError, RecursionError) as error:
        return _result(f"{params.name} was not run: {error}.", failed=True)
    except HoneError as error:
        return _result(str(error), failed=True)


def _result(text: str, *, failed: bool = False) -> dict[str, Any]:
    try:
        shown = clear(text)
    except FAULTS as error:
        shown = f"The result is withheld: it could not be searched for secrets ({type(error).__name__})."
        failed = True
    return {"content": [{"type": "text", "text": shown}], "isError": failed}
