"""The tools that the model sees: one per approved tool of a server, or two constant ones for all of them."""

import json
import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, nullcontext
from functools import partial
from pathlib import Path
from typing import Any

from msgspec import Struct

from hone.core.clock import Clock
from hone.core.errors import HoneError
from hone.core.events import Emit, Notice
from hone.core.messages import ToolCall, canonical
from hone.core.permissions import Action, Request
from hone.core.permit import Effect
from hone.core.tool import Outcome, ToolSpec, refused
from hone.core.tool_context import ToolContext
from hone.core.trust import Trust
from hone.core.visible import one_line, visible
from hone.core.work import Work
from hone.features.mcp.client.arguments import describe_call, find_fault
from hone.features.mcp.client.catalog import Offer
from hone.features.mcp.client.connection import Elicit
from hone.features.mcp.client.eliciting import CANCELLED, elicit
from hone.features.mcp.client.manager import Servers
from hone.features.mcp.client.placing import CALL, FIND, write_schema
from hone.features.mcp.client.results import render_result
from hone.rpc.messages import RpcError

HITS = 5
QUESTIONS = 5
"""The most questions that a server may ask the owner during one call."""
PAUSE = 2.0
"""Seconds between two progress lines of a call."""
_WORD = re.compile(r"[a-z0-9]+")

Offers = Callable[[], Sequence[Offer]]
"""Returns the tools that may be called now."""


class Bridge(Struct, frozen=True):
    """State that the tools of one conversation share. `folder` is where a server may write, observed by
    `work`."""

    servers: Servers
    folder: Path
    work: Work
    clock: Clock

    async def call(self, offer: Offer, given: object, context: ToolContext, *, through: str = "") -> Outcome:
        """Check a call, ask for permission, and make it. The server's result is foreign."""
        name, schema = offer.name, offer.tool.parameters
        if fault := find_fault(given, schema):
            return refused(f"{name} was not called: {fault}. {describe_call(name, schema, through=through)}")
        assert isinstance(given, dict)
        if no := await self._refusal(offer, given, context):
            return refused(f"{name} was not called. {no}")
        ask = limit_questions(partial(elicit, server=offer.server.name, context=context))
        try:
            async with self._around(offer, context):
                result = await self.servers.call(offer, given, ask, self._reporter(offer, context.emit))
        except RpcError as error:
            return Outcome(f"{name} failed: {error}", failed=True, trust=Trust.FOREIGN)
        except HoneError as error:
            return refused(f"{name} failed. {error}")
        text, failed = render_result(result)
        return Outcome(text, failed=failed, trust=Trust.FOREIGN)

    async def _refusal(self, offer: Offer, given: Mapping[str, Any], context: ToolContext) -> str:
        """Ask about the call itself, and check whether the hosts of its server are denied."""
        settings, server = offer.server.settings, offer.server
        reached = (settings.url,) if settings.url else tuple(f"https://{host}/" for host in settings.hosts)
        for url in reached:
            follows = Request("web_fetch", Action.FETCH, url, url, follows=True)
            if no := await context.refusal(follows):
                return no
        doubt = server.describe_doubt()
        detail = f"{offer.name} of the MCP server {server.name}\n{_describe(given)}"
        question = f"Let {offer.name} do this?"
        request = Request(
            offer.name, Action.USE, canonical(given), detail, question, doubts=(doubt,) if doubt else ()
        )
        return await context.refusal(request)

    def _around(self, offer: Offer, context: ToolContext) -> AbstractAsyncContextManager[None]:
        """Observe what a server writes into the folder of the conversation: all of it is foreign."""
        settings = offer.server.settings
        if offer.server.is_remote or (settings.sandbox and not settings.folders):
            return nullcontext()
        return self.work.around_command(self.folder, offer.name, context, network=True)

    def _reporter(self, offer: Offer, emit: Emit) -> Callable[[str], None]:
        last = -PAUSE

        def report(told: str) -> None:
            nonlocal last
            now = self.clock.monotonic()
            if told and now - last >= PAUSE:
                last = now
                emit(Notice(one_line(f"{offer.name}: {told}", 200)))

        return report


def limit_questions(ask: Elicit) -> Elicit:
    """Return a function that asks the owner this many times during a call, and then no more."""
    left = QUESTIONS

    async def put(params: Mapping[str, Any]) -> dict[str, Any]:
        nonlocal left
        left -= 1
        return await ask(params) if left >= 0 else CANCELLED

    return put


class ServerTool(Struct, frozen=True):
    """An approved tool of a server, as an ordinary tool. The server's claims about its effects grant
    nothing."""

    offer: Offer
    bridge: Bridge
    listed: bool = True

    @property
    def spec(self) -> ToolSpec:
        return ToolSpec(
            self.offer.name, write_schema(self.offer), find_effects(self.offer), listed=self.listed
        )

    async def run(self, call: ToolCall, context: ToolContext) -> Outcome:
        return await self.bridge.call(self.offer, _parse(call.arguments), context)


def find_effects(offer: Offer) -> frozenset[Effect]:
    """Return the effects of a call: it runs code, and reaches the network if its server can."""
    settings = offer.server.settings
    outward = offer.server.is_remote or settings.hosts or not settings.sandbox
    return frozenset({Effect.EXECUTE, Effect.NETWORK} if outward else {Effect.EXECUTE})


def _schema(name: str, description: str, properties: Mapping[str, Any], required: Sequence[str]) -> str:
    parameters = {"type": "object", "properties": properties, "required": required}
    return canonical({"name": name, "description": description, "parameters": parameters})


FIND_SCHEMA = _schema(
    FIND,
    "Find tools of MCP servers by name or by what they do. A result shows the schema of the arguments and a "
    "complete call.",
    {
        "query": {"type": "string", "description": "a tool's name, or a few words on what it should do"},
        "server": {"type": "string", "description": "only tools of this server"},
    },
    ["query"],
)
CALL_SCHEMA = _schema(
    CALL,
    "Call a tool of an MCP server. Find its name and its arguments with mcp_find.",
    {
        "name": {"type": "string", "description": "as mcp_find gives it, such as git__status"},
        "arguments": {"type": "object", "description": "the arguments of that tool"},
    },
    ["name", "arguments"],
)


class FindTool(Struct, frozen=True):
    """Finds tools in the catalog. This starts no server."""

    offers: Offers
    listed: bool = True

    @property
    def spec(self) -> ToolSpec:
        return ToolSpec(FIND, FIND_SCHEMA, frozenset({Effect.READ}), readonly=True, listed=self.listed)

    async def run(self, call: ToolCall, context: ToolContext) -> Outcome:
        given = _parse(call.arguments)
        query = given.get("query") if isinstance(given, dict) else None
        if not isinstance(given, dict) or not isinstance(query, str):
            return refused(f'{FIND} needs a query, as in {{"query": "git status"}}.')
        offers = [each for each in self.offers() if given.get("server") in (None, "", each.server.name)]
        found = search(offers, query)
        if not found:
            names = ", ".join(sorted({each.server.name for each in self.offers()})) or "none"
            return refused(f"No tool matches. Servers with tools: {names}.")
        parts = [
            f"{each.name}: {visible(each.tool.description)[:1_000]}\n"
            f"{describe_call(each.name, each.tool.parameters, through=CALL)}"
            for each in found
        ]
        return Outcome("\n\n".join(parts), trust=Trust.FOREIGN)


class CallTool(Struct, frozen=True):
    """Calls any approved tool by its name. Rules and questions are about that tool."""

    offers: Offers
    bridge: Bridge
    listed: bool = True

    @property
    def spec(self) -> ToolSpec:
        effects = frozenset({Effect.EXECUTE, Effect.NETWORK})
        return ToolSpec(CALL, CALL_SCHEMA, effects, listed=self.listed)

    async def run(self, call: ToolCall, context: ToolContext) -> Outcome:
        given = _parse(call.arguments)
        name = given.get("name") if isinstance(given, dict) else None
        if not isinstance(given, dict) or not isinstance(name, str):
            return refused(f'{CALL} needs a name and arguments, as in {{"name": "…", "arguments": {{}}}}.')
        offers = self.offers()
        offer = next((each for each in offers if each.name == name), None)
        if offer is None:
            near = ", ".join(each.name for each in search(offers, name)) or "none"
            return refused(f"There is no tool {one_line(name, 80)!r} to call. Near it: {near}.")
        arguments = given.get("arguments", {})
        if isinstance(arguments, str):  # some models write JSON into a string
            arguments = _parse(arguments)
        return await self.bridge.call(offer, arguments, context, through=CALL)


def search(offers: Sequence[Offer], query: str) -> list[Offer]:
    """Return the best matching tools. An exact name matches alone."""
    wanted = query.strip()
    exact = [each for each in offers if wanted in (each.name, each.tool.name)]
    if exact:
        return exact[:HITS]
    words = set(_WORD.findall(wanted.lower()))
    ranked = sorted(((-_score(each, words), each.name, each) for each in offers), key=lambda each: each[:2])
    return [each for score, _, each in ranked[:HITS] if score < 0]


def _score(offer: Offer, words: set[str]) -> float:
    """Words of the name count more than those of the description."""
    named = set(_WORD.findall(offer.name.lower()))
    told = set(_WORD.findall(offer.tool.description.lower()))
    return sum(3.0 * (word in named) + 1.0 * (word in told) for word in words)


def _parse(arguments: str) -> object:
    try:
        return json.loads(arguments.strip() or "{}")
    except (ValueError, RecursionError):
        return None


def _describe(given: Mapping[str, Any]) -> str:
    """Return arguments as shown to the owner, one per line."""
    lines = []
    for name, value in given.items():
        text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
        lines.append(f"{name}: {text}")
    return "\n".join(lines) or "(no arguments)"
