"""J1: a user signs a browser in with their key, and is held to their limits by every door."""

import asyncio
from collections import Counter
from pathlib import Path

import httpx2
import pytest

from hone.features.users.service import make_key
from hone.web.page import read
from tests.features.mcp_rig import HANDSHAKE
from tests.web.test_users import Team, serving


async def sign_in(team: Team, word: str, **headers: str) -> httpx2.Response:
    own = {"origin": team.server.url, "accept": "text/html", **headers}
    async with team.client() as browser:
        return await browser.post("/login", data={"password": word}, headers=own)


async def test_a_key_signs_one_browser_in_until_it_is_revoked(tmp_path: Path) -> None:
    async with serving(tmp_path) as team, team.client() as browser:
        key = team.add("alice")
        page = await browser.get("/", headers={"accept": "text/html"})
        assert (page.status_code, "hone users add" in page.text, key in page.text) == (401, True, False)
        head = {"origin": team.server.url}
        answer = await browser.post("/login", data={"password": f" {key}\n"}, headers=head)
        assert (answer.status_code, answer.headers["location"]) == (303, "/")
        assert (await browser.get("/api/status")).status_code == 200
        [login] = (await browser.get("/api/logins")).json()["logins"]
        assert (login["here"], login["by_key"]) == (True, True)
        assert team.events()["signed in", "alice", ""] == 1
        team.admin.revoke("alice", "first")
        assert (await browser.get("/api/logins")).status_code == 401


@pytest.mark.parametrize("password", ["", "seven green lamps"])
async def test_nobody_signs_in_with_a_wrong_key_or_that_of_a_program(tmp_path: Path, password: str) -> None:
    async with serving(tmp_path, password=password) as team:
        key, disabled = team.add("alice"), team.add("bob")
        program = make_key(team.admin, "alice", "editor", "program", None)
        team.admin.switch("bob", off=True)
        wrong = {
            "wrong": await sign_in(team, f"hone-user-{'x' * 43}"),
            "disabled": await sign_in(team, disabled),
            "program": await sign_in(team, program),
            "no key": await sign_in(team, "alice"),
            "empty": await sign_in(team, ""),
        }
        assert {what: each.status_code for what, each in wrong.items()} == dict.fromkeys(wrong, 401)
        assert all("set-cookie" not in each.headers for each in wrong.values())
        assert wrong["wrong"].text == wrong["disabled"].text, "the answer says nothing of the reason"
        assert "for a program" in wrong["program"].text
        foreign = await sign_in(team, key, origin="http://elsewhere.example")
        assert foreign.status_code == 403
        events = team.events()
        assert events["key refused", "bob", "disabled"] == 1
        assert (await sign_in(team, key)).status_code == 303


async def test_the_files_of_the_page_use_nothing_of_a_users_requests(tmp_path: Path) -> None:
    """A browser takes all of them at once, more than a user may ask for at a time."""
    async with serving(tmp_path) as team, team.client() as browser:
        key, head = team.add("alice", requests_per_minute=60), {"origin": team.server.url}
        assert (await browser.post("/login", data={"password": key}, headers=head)).status_code == 303
        files = [f"/static/{name}" for name in read()]
        assert {(await browser.get(each)).status_code for each in files} == {200}
        codes = Counter(
            each.status_code for each in await asyncio.gather(*(browser.get("/api/modes") for _ in range(20)))
        )
        assert 9 <= codes[200] <= 15
        assert codes[200] + codes[429] == 20, "all else counts"
        team.admin.switch("alice", off=True)
        assert (await browser.get(files[0])).status_code == 401


async def test_a_conversation_that_an_agent_hands_over_counts_as_a_review_that_waits(tmp_path: Path) -> None:
    call = {"jsonrpc": "2.0", "id": 1, "method": "tools/call"}
    said = [{"role": "user", "text": "Deploys freeze on Fridays."}, {"role": "assistant", "text": "Noted."}]
    async with serving(tmp_path) as team:
        team.add("alice", reviews=2)
        key = make_key(team.admin, "alice", "editor", "program", None)
        async with team.client(key, accept="application/json, text/event-stream") as agent:
            begun = await agent.post("/mcp", json={**call, "method": "initialize", "params": HANDSHAKE})
            head = {"mcp-session-id": begun.headers["mcp-session-id"]}

            async def learn(conversation: str) -> tuple[bool, str]:
                given = {"messages": said, "conversation": conversation}
                params = {"name": "learn", "arguments": given}
                answer = await agent.post("/mcp", json={**call, "params": params}, headers=head)
                result = answer.json()["result"]
                return result["isError"], result["content"][0]["text"]

            for number in range(2):
                failed, text = await learn(f"c{number}")
                assert not failed, text
                assert "is queued" in text
            failed, text = await learn("c2")
            assert (failed, "2 reviews of yours are waiting" in text) == (True, True), text
        assert team.events()["limit reached", "alice", "reviews"] == 1
