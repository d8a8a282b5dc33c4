"""I4: other agents use what Hone knows. The official MCP SDK is the client, over both transports and eras."""

import asyncio
import hashlib
import sys
from base64 import b64decode
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from itertools import product
from pathlib import Path
from typing import Any

import httpx2
import mcp_types as types
import pytest
import yaml
from mcp import Client, MCPError, StdioServerParameters
from mcp.client.streamable_http import streamable_http_client
from msgspec import Struct
from pydantic import TypeAdapter

from hone import Hone
from hone.core.ledger import Actor, ChangeState
from hone.features.mcp.server import tools
from hone.features.mcp.server.clients import Client as ServedClient
from hone.features.mcp.server.tools import ServedTool
from hone.knowledge.keeper import OWNER
from hone.knowledge.skills.folder import WriteFile
from hone.settings import read
from hone.web.api_keys import KeyKind
from tests.cli.driving import environment, hone
from tests.conftest import Figures
from tests.features.mcp_rig import (
    ABOUT,
    DOCUMENT,
    ENTRY,
    ENVELOPE,
    FILE,
    HANDSHAKE,
    LEAVES,
    SAID,
    SECRET,
    SKILL,
    furnish,
)
from tests.web.rig import running

LEGACY, STATELESS = "legacy", "2026-07-28"
READING = ["journal", "skills_list", "skill_view"]
SENDING = ["learn", "propose"]
PROPOSED = "Deploy on Mondays only."
ANYTHING = TypeAdapter(dict[str, Any])
URI = f"skill://{SKILL}/SKILL.md"


class Asked(types.Request[dict[str, Any], str]):
    """A request of the skills extension, which the SDK does not know."""


@asynccontextmanager
async def connected(transport: str, mode: str, home: Path, folder: Path, name: str) -> AsyncIterator[Client]:
    if transport == "stdio":
        command = ["-m", "hone", "mcp", "--client", name]
        server = StdioServerParameters(
            command=sys.executable, args=command, cwd=folder, env=environment(home)
        )
        async with Client(server, mode=mode) as client:
            yield client
        return
    async with running(home, folder, settings=read(home)) as visit:
        head = {"authorization": f"Bearer {visit.issued.add(name, KeyKind.PROGRAM)}"}
        async with httpx2.AsyncClient(headers=head, timeout=60) as http:
            way = streamable_http_client(f"{visit.url}/mcp", http_client=http)
            async with Client(way, mode=mode) as client:
                yield client


async def use(client: Client, tool: str, **arguments: Any) -> tuple[str, bool]:
    result = await client.call_tool(tool, arguments)
    assert isinstance(result.content[0], types.TextContent)
    return result.content[0].text, result.is_error


async def ask(client: Client, method: str, **params: Any) -> Any:
    return await client.session.send_request(Asked(method=method, params=params), ANYTHING)


@pytest.mark.parametrize(
    ("transport", "mode"),
    [*product(("stdio", "http"), (LEGACY, STATELESS)), ("stdio", "auto")],
)
async def test_the_official_client_reads_and_proposes_over_both_transports_and_eras(
    transport: str, mode: str, home: Path, tmp_path: Path
) -> None:
    await furnish(home, tmp_path)
    async with connected(transport, mode, home, tmp_path, "friend") as client:
        assert client.protocol_version == ("2025-11-25" if mode == LEGACY else STATELESS)
        tools = (await client.list_tools()).tools
        assert [each.name for each in tools] == ["search_sessions", *READING, *SENDING]
        assert await use(client, "journal") == (f"- {ENTRY}", False)
        assert await use(client, "journal", part="user") == (f"- {ABOUT}", False)
        assert f"- {SKILL}: " in (await use(client, "skills_list", query="tea"))[0]
        assert (await use(client, "skill_view", name=SKILL))[0].startswith(DOCUMENT)
        assert await use(client, "skill_view", name=SKILL, file=FILE) == (LEAVES, False)
        found, _ = await use(client, "search_sessions", query="kettle")
        assert "broken" in found
        told, failed = await use(client, "propose", kind="entry", text=PROPOSED, reason="seen in CI")
        assert (failed, "It waits for the owner's approval" in told) == (False, True)
        said = [{"role": "user", "text": SAID}, {"role": "assistant", "text": "Tea it is."}]
        told, failed = await use(client, "learn", messages=said)
        assert (failed, "Review 1 is queued" in told) == (False, True)
        with pytest.raises(MCPError, match="There is no tool"):
            await client.call_tool("terminal", {"command": "id"})
        wrong = "skill_view was not run: Object missing required field `name`."
        assert await use(client, "skill_view", file="x") == (wrong, True)
    await check_what_waits(home, tmp_path)


async def check_what_waits(home: Path, folder: Path) -> None:
    """The proposal waits under the client's name; the transcript is foreign, and its review is queued."""
    async with Hone(home=home, folder=folder, learning="queue") as hone_:
        [waits] = await hone_.ledger.pending()
        assert waits.change.author.actor is Actor.CLIENT
        assert waits.change.author.name == "mcp/friend"
        [job] = await hone_.jobs.jobs()  # a server may have begun with it
        assert job.why == "mcp/friend"
        nodes = (await hone_.sessions.load(job.session)).transcript.nodes
        assert {node.trust.name for node in nodes} == {"FOREIGN"}
    logged = await hone("log", "--actor", "client", env=environment(home), folder=folder)
    assert PROPOSED in logged.out
    assert "mcp/friend" in logged.out
    shown = await hone("pending", env=environment(home), folder=folder)
    assert "by mcp/friend, with propose" in shown.out


@pytest.mark.parametrize(("transport", "mode"), [("stdio", LEGACY), ("http", STATELESS)])
async def test_skills_over_mcp_have_digests_of_what_is_read(
    transport: str, mode: str, home: Path, tmp_path: Path
) -> None:
    await furnish(home, tmp_path)
    async with connected(transport, mode, home, tmp_path, "stranger") as client:
        listed = (await ask(client, "skills/list"))["skills"]
        [entry] = [each for each in listed if each["uri"] == URI]
        assert (await ask(client, "skills/get", uri=URI))["skill"] == entry
        assert entry["frontmatter"] == yaml.safe_load(DOCUMENT.split("---")[1])
        uris = [each["uri"] for each in entry["resources"]]
        assert uris == [URI, f"skill://{SKILL}/{FILE}"]
        for each in entry["resources"]:
            [content] = (await client.read_resource(each["uri"])).contents
            assert isinstance(content, types.TextResourceContents)
            data = content.text.encode()
            assert each["digest"] == f"sha256:{hashlib.sha256(data).hexdigest()}"
            assert each["size"] == len(data)
        assert URI in [each.uri for each in (await client.list_resources()).resources]
        folder = await ask(client, "resources/directory/read", uri=f"skill://{SKILL}")
        assert [each["mimeType"] for each in folder["resources"]] == [
            "text/markdown",
            "inode/directory",
        ]
        for wrong in ("skill://no-such/SKILL.md", f"skill://{SKILL}/../hone.toml", "file:///etc/passwd", ""):
            with pytest.raises(MCPError):
                await client.read_resource(wrong)
            with pytest.raises(MCPError, match="No skill is served"):
                await ask(client, "skills/get", uri=wrong)


async def test_a_file_of_a_skill_that_is_no_text_comes_as_what_it_is(home: Path, tmp_path: Path) -> None:
    await furnish(home, tmp_path)
    files = {"assets/pot.png": b"\x89PNG\r\n\x1a\n\0", "assets/pot.bin": b"\xff\0\xfe"}
    async with Hone(home=home, folder=tmp_path, learning="off") as opened:
        for name, data in files.items():
            await opened.keeper.edit_skill(SKILL, WriteFile(name, data), OWNER)
    async with connected("stdio", LEGACY, home, tmp_path, "friend") as client:
        found = [await client.call_tool("skill_view", {"name": SKILL, "file": name}) for name in files]
    picture, other = (each.content[1] for each in found)
    assert isinstance(picture, types.ImageContent)
    assert (picture.mime_type, b64decode(picture.data)) == ("image/png", files["assets/pot.png"])
    assert isinstance(other, types.EmbeddedResource)
    assert isinstance(other.resource, types.BlobResourceContents)
    assert (str(other.resource.uri), b64decode(other.resource.blob)) == (
        f"skill://{SKILL}/assets/pot.bin",
        files["assets/pot.bin"],
    )


async def test_a_stranger_gets_skills_and_the_project_and_nothing_of_the_owner(
    home: Path, tmp_path: Path, figures: Figures
) -> None:
    await furnish(home, tmp_path, "[mcp.clients.reader]\nmode = 'off'\n")
    answers: list[str] = []
    async with connected("stdio", LEGACY, home, tmp_path, "stranger") as client:
        assert [each.name for each in (await client.list_tools()).tools] == [*READING, *SENDING]
        assert await use(client, "journal") == (f"- {ENTRY}", False)
        for tool, arguments in (
            ("search_sessions", {"query": "kettle"}),
            ("search_sessions", {"session": "a"}),
            ("journal", {"part": "user"}),
            ("journal", {"part": "memory"}),
            ("propose", {"kind": "entry", "part": "user", "text": ABOUT}),
            ("propose", {"kind": "entry", "part": "memory", "text": ABOUT}),
        ):
            told, failed = await use(client, tool, **arguments)
            assert failed
            assert "hone config set mcp.clients.stranger." in told
            answers.append(told)
    leaked = [told for told in answers if SAID[:10] in told or ABOUT in told]
    figures.tally(len(answers), got_in=len(leaked), note="ways of a client to what was not opened to it")
    assert leaked == []
    async with connected("stdio", STATELESS, home, tmp_path, "reader") as client:
        assert [each.name for each in (await client.list_tools()).tools] == READING
        assert (await use(client, "propose", kind="entry", text=PROPOSED))[1]
        assert (await use(client, "learn", messages=[{"role": "user", "text": "hi"}]))[1]
    async with Hone(home=home, folder=tmp_path, learning="queue") as opened:
        assert not await opened.ledger.pending()
        assert not await opened.jobs.waiting()


async def test_what_leaves_has_no_secret_in_it(home: Path, tmp_path: Path) -> None:
    await furnish(home, tmp_path)
    async with connected("stdio", STATELESS, home, tmp_path, "friend") as client:
        found, _ = await use(client, "search_sessions", query="token kettle")
        session = found.split()[1].rstrip(",")
        whole, _ = await use(client, "search_sessions", session=session)
    assert "token" in found + whole
    assert SECRET not in found + whole


async def test_a_key_of_its_own_names_a_client_and_a_persons_key_is_not_one(
    home: Path, tmp_path: Path
) -> None:
    await furnish(home, tmp_path)
    async with running(home, tmp_path, settings=read(home)) as visit:
        ping = {"jsonrpc": "2.0", "id": 1, "method": "ping", "params": {}}
        refused = await visit.client.post("/mcp", json=ping)
        assert (refused.status_code, "hone serve keys add" in refused.text) == (403, True)
        async with httpx2.AsyncClient() as nobody:
            assert (await nobody.post(f"{visit.url}/mcp", json=ping)).status_code == 401
        words = {kind: visit.issued.add(kind, KeyKind.PROGRAM) for kind in ("one", "two")}
        heads = {kind: {"authorization": f"Bearer {word}"} for kind, word in words.items()}
        hello = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "x"}}
        begun = await visit.client.post(
            "/mcp", json={**ping, "method": "initialize", "params": hello}, headers=heads["one"]
        )
        session = {"mcp-session-id": begun.headers["mcp-session-id"]}
        codes = [
            (await visit.client.post("/mcp", json=ping, headers={**heads[kind], **more})).status_code
            for kind, more in (
                ("one", session),
                ("one", {}),
                ("two", session),
                ("one", {"origin": "http://x"}),
            )
        ]
        assert codes == [200, 400, 404, 403]


async def test_an_approved_proposal_holds_and_a_rejected_one_is_not_proposed_again(
    home: Path, tmp_path: Path
) -> None:
    await furnish(home, tmp_path)
    text = DOCUMENT.replace("Warm the pot.", "Cool the pot.")
    async with connected("stdio", STATELESS, home, tmp_path, "friend") as client:
        assert not (await use(client, "propose", kind="entry", text=PROPOSED))[1]
        assert not (await use(client, "propose", kind="skill", text=text))[1]
        assert not (await use(client, "propose", kind="entry", text="Never deploy on Fridays at all."))[1]
        async with Hone(home=home, folder=tmp_path, learning="queue") as opened:
            first, second, third = await opened.ledger.pending()
            assert {each.change.standing for each in (first, second, third)} == {ChangeState.PENDING}
            await opened.keeper.approve(first.id)
            await opened.keeper.approve(second.id)
            await opened.keeper.reject(third.id)
        assert PROPOSED in (await use(client, "journal"))[0]
        assert "Cool the pot." in (await use(client, "skill_view", name=SKILL))[0]
        again, failed = await use(client, "propose", kind="entry", text="Never deploy on Fridays at all.")
        assert (failed, "took back" in again) == (True, True)


async def test_requests_that_come_together_are_all_answered_and_one_can_be_canceled(
    home: Path, tmp_path: Path
) -> None:
    await furnish(home, tmp_path)
    async with connected("stdio", LEGACY, home, tmp_path, "friend") as client:
        asked = [asyncio.create_task(use(client, "skills_list", query="tea")) for _ in range(12)]
        asked[0].cancel()
        answers = await asyncio.gather(*asked, return_exceptions=True)
        assert all(SKILL in told for told, _ in answers[1:])  # type: ignore[misc]
        assert (await use(client, "journal"))[0] == f"- {ENTRY}"


class NoArguments(Struct, frozen=True):
    pass


async def test_a_request_over_http_that_is_canceled_stops_and_gets_no_answer(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun, ended = asyncio.Queue[None](), asyncio.Queue[str]()

    async def wait(_hone: Hone, _client: ServedClient, _: object) -> str:
        begun.put_nowait(None)
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            ended.put_nowait("canceled")
            raise
        return ""

    monkeypatch.setattr(tools, "TOOLS", {**tools.TOOLS, "wait": ServedTool(wait, "Wait.", NoArguments)})
    async with running(home, tmp_path) as visit:
        head = {"authorization": f"Bearer {visit.issued.add('friend', KeyKind.PROGRAM)}"}

        async def send(params: object, method: str = "tools/call", **more: Any) -> httpx2.Response:
            body = {"jsonrpc": "2.0", "method": method, "params": params, **more}
            return await visit.client.post("/mcp", json=body, headers=head)

        head["mcp-session-id"] = (await send(HANDSHAKE, "initialize", id=1)).headers["mcp-session-id"]
        waiting = asyncio.create_task(send({"name": "wait"}, id=7))
        await begun.get()
        odd: tuple[dict[str, object], ...] = ({"requestId": "7"}, {"requestId": 8}, {}, {"requestId": None})
        for params in (*odd, {"requestId": 7}):
            assert (await send(params, "notifications/cancelled")).status_code == 202
        answer = await waiting
        assert (answer.status_code, answer.content, await ended.get()) == (202, b"", "canceled")

        del head["mcp-session-id"]
        named = {"mcp-protocol-version": STATELESS, "mcp-method": "tools/call", "mcp-name": "wait"}
        head.update(named)
        leaving = asyncio.create_task(send({**ENVELOPE, "name": "wait"}, id=7))
        await begun.get()
        leaving.cancel()
        assert await ended.get() == "canceled"


async def test_a_stateless_request_that_contradicts_itself_is_refused_with_its_code(
    home: Path, tmp_path: Path
) -> None:
    async with running(home, tmp_path) as visit:
        word = visit.issued.add("friend", KeyKind.PROGRAM)
        usual = {"mcp-protocol-version": STATELESS, "mcp-method": "tools/list"}
        envelope = ENVELOPE["_meta"]
        odd = {**envelope, "io.modelcontextprotocol/protocolVersion": "2099-01-01"}
        called = {"_meta": envelope, "name": "journal", "arguments": {}}

        async def send(method: str, params: object, **headers: str) -> tuple[int, Any]:
            body = {"jsonrpc": "2.0", "id": 7, "method": method, "params": params}
            head = {"authorization": f"Bearer {word}", **usual, **headers}
            response = await visit.client.post("/mcp", json=body, headers=head)
            answer = response.json()
            assert answer["id"] == 7
            return response.status_code, answer.get("error", {}).get("code")

        call = {"mcp-method": "tools/call"}
        assert await send("tools/list", {"_meta": envelope}) == (200, None)
        assert await send("tools/list", {"_meta": envelope}, **call) == (400, -32020)
        assert await send("tools/call", called, **call) == (400, -32020)
        assert await send("tools/call", called, **call, **{"mcp-name": "propose"}) == (400, -32020)
        encoded = {"mcp-name": "=?base64?am91cm5hbA==?="}
        assert await send("tools/call", called, **call, **encoded) == (200, None)
        assert await send("tools/list", {}) == (400, -32602)
        later = {"mcp-protocol-version": "2099-01-01"}
        assert await send("tools/list", {"_meta": odd}, **later) == (400, -32022)
        assert await send("ping", {"_meta": envelope}, **{"mcp-method": "ping"}) == (404, -32601)
        big = await visit.client.post(
            "/mcp",
            content=b"[" * 9_000_000,
            headers={"authorization": f"Bearer {word}", "content-type": "application/json"},
        )
        assert big.status_code == 413
