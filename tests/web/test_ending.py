"""J3: a server that is about to end begins nothing more, and says when to ask again."""

import asyncio
from pathlib import Path

import httpx2

from tests.web.rig import running
from tests.web.test_users import serving


def told(answer: httpx2.Response) -> tuple[int, str, str]:
    return answer.status_code, answer.json()["error"]["type"], answer.headers["retry-after"]


async def test_a_message_that_has_not_begun_is_put_off_and_nothing_of_it_is_stored(
    home: Path, tmp_path: Path
) -> None:
    async with running(home, tmp_path, latency=60.0) as visit:
        session = (await visit.post("/api/sessions", text="One."))["session"]
        open_session = visit.state.open_sessions.find(session)
        assert open_session is not None
        body = {"messages": [{"role": "user", "content": "Two."}]}
        head = {"x-hone-session": session}
        waiting = asyncio.create_task(visit.client.post("/v1/chat/completions", json=body, headers=head))
        while len(open_session.turns) < 2:
            await visit.get("/api/status")
        assert await visit.state.open_sessions.finish(0.0) == 1
        assert told(await waiting) == (503, "stopping", "5")
        said = [
            each["parts"][-1]["text"] for each in (await visit.get(f"/api/sessions/{session}"))["messages"]
        ]
        assert "Two." not in said
        late = await visit.client.post("/api/sessions", json={"text": "Three."})
        assert told(late) == (503, "stopping", "5")


async def test_a_user_who_comes_while_the_server_ends_is_put_off(tmp_path: Path) -> None:
    async with serving(tmp_path) as team, team.client(team.add("alice")) as alice:
        await team.tenants.end()
        assert told(await alice.get("/api/sessions")) == (503, "stopping", "5")
