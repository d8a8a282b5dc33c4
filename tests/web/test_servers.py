"""J2, I3: several servers on one database are one server to whoever talks to them."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx2
import psycopg

from hone.core.messages import Message, Role, assistant
from hone.models.scripted import call, rounds
from hone.settings import Settings
from tests import databases
from tests.rig import faults
from tests.web.rig import Heard, Running, listen, running

PASSWORD = "correct horse battery"


DELETING = rounds(
    assistant(call("terminal", comand="rm -rf *")),
    assistant(call("terminal", command="rm -rf *")),
    "I could not.",
)
"""The first call is malformed, as those of real models are."""


@asynccontextmanager
async def two_servers(
    tmp_path: Path, script: Any, latency: float = 0.0, password: str = ""
) -> AsyncIterator[tuple[Running, Running]]:
    """Each with its own home and its own connections, as on two machines."""
    for name in ("one", "two", "work"):
        (tmp_path / name).mkdir()
    with databases.new_database() as url:
        settings = Settings(database=url)
        first = running(
            tmp_path / "one", tmp_path / "work", script, settings=settings, latency=latency, password=password
        )
        second = running(
            tmp_path / "two", tmp_path / "work", script, settings=settings, latency=latency, password=password
        )
        async with first as one, second as two:
            yield one, two


def echo(messages: Sequence[Message]) -> Message:
    said = [each for each in messages if each.role is Role.USER][-1].text
    return assistant(f"{len(messages)}: {said}")


async def say(visit: Running, session: str, text: str) -> httpx2.Response:
    return await visit.client.post(f"/api/sessions/{session}/messages", json={"text": text})


async def words(visit: Running, session: str) -> list[str]:
    found = await visit.get(f"/api/sessions/{session}")
    return [each["parts"][-1].get("text", "") for each in found["messages"]]


async def finished(visit: Running, session: str) -> None:
    while session in (await visit.get("/api/sessions"))["busy"]:
        pass  # each look asks the server


async def listening(visit: Running, session: str) -> None:
    """Wait until somebody listens to a conversation at another server than its own."""
    query = "SELECT count(*) FROM hone.listeners WHERE channel = %s"
    with psycopg.connect(visit.state.hone.settings.database, autocommit=True) as connection:
        while connection.execute(query, (session,)).fetchone() == (0,):
            await visit.get("/api/sessions")  # the servers work meanwhile


async def test_a_conversation_goes_on_at_any_server_and_has_one_turn_at_a_time(tmp_path: Path) -> None:
    async with two_servers(tmp_path, echo) as (one, two):
        gate = one.stage.gate = asyncio.Event()
        session = (await one.post("/api/sessions", text="First."))["session"]
        assert session in (await two.get("/api/sessions"))["busy"]
        assert (await two.get(f"/api/sessions/{session}"))["busy"] is True
        refused = await say(two, session, "Too early.")
        assert (refused.status_code, refused.json()["error"]["type"]) == (409, "conflict")
        changed = await two.client.post(f"/api/sessions/{session}/model", json={"model": "stage/other"})
        assert changed.status_code == 409
        hearing = asyncio.create_task(listen(two.client, f"/api/sessions/{session}/events", "ended"))
        await listening(one, session)
        gate.set()
        heard = await hearing
        assert "text" in heard.kinds, "the answer is seen at the other server while it comes"
        await finished(two, session)
        for visit, text in ((two, "Second."), (one, "Third."), (two, "Fourth.")):
            assert (await say(visit, session, text)).status_code == 202
            await finished(visit, session)
        said = [
            "First.",
            "1: First.",
            "Second.",
            "3: Second.",
            "Third.",
            "5: Third.",
            "Fourth.",
            "7: Fourth.",
        ]
        assert await words(one, session) == await words(two, session) == said


async def complete(visit: Running, name: str, text: str) -> str:
    response = await visit.client.post(
        "/v1/chat/completions",
        json={"messages": [{"role": "user", "content": text}]},
        headers={"x-hone-session": name},
    )
    assert response.status_code == 200, response.text
    return str(response.json()["choices"][0]["message"]["content"])


async def test_requests_for_one_conversation_at_two_servers_wait_for_each_other(tmp_path: Path) -> None:
    async with two_servers(tmp_path, echo, latency=0.05) as (one, two):
        asked = [f"message {number}" for number in range(8)]
        found = await asyncio.gather(
            *(complete((one, two)[number % 2], "shared", text) for number, text in enumerate(asked))
        )
        assert sorted(each.partition(": ")[2] for each in found) == asked
        [listed] = (await one.get("/api/sessions"))["sessions"]
        said = await words(two, listed["session"])
        assert len(said) == 16
        assert [f"{at}: {text}" for at, text in zip(range(1, 16, 2), said[::2], strict=True)] == said[1::2]
        stored = await one.state.hone.sessions.load(listed["session"])
        assert faults(list(stored.transcript)) == []
        assert len(await one.state.hone.sessions.spending(listed["session"])) == 8, "every paid turn is kept"


async def test_a_history_continues_at_any_server_and_branches_where_another_was_faster(
    tmp_path: Path,
) -> None:
    async with two_servers(tmp_path, echo, latency=0.05) as (one, two):
        messages = [{"role": "user", "content": "Begin."}]
        ids = set()
        for visit in (one, two, one, two):
            response = await visit.client.post("/v1/chat/completions", json={"messages": messages})
            assert response.status_code == 200, response.text
            ids.add(response.headers["x-hone-session"])
            answer = response.json()["choices"][0]["message"]["content"]
            messages = [
                *messages,
                {"role": "assistant", "content": answer},
                {"role": "user", "content": "On."},
            ]
        assert len(ids) == 1
        both = await asyncio.gather(
            *(visit.client.post("/v1/chat/completions", json={"messages": messages}) for visit in (one, two))
        )
        assert [each.status_code for each in both] == [200, 200]
        assert len({each.headers["x-hone-session"] for each in both}) == 2, "the later one branches off"
        assert {each.json()["choices"][0]["message"]["content"] for each in both} == {"9: On."}


async def test_a_turn_is_interrupted_from_another_server(tmp_path: Path) -> None:
    async with two_servers(tmp_path, echo, latency=30.0) as (one, two):
        session = (await one.post("/api/sessions", text="Wait."))["session"]
        watching = asyncio.create_task(listen(two.client, f"/api/sessions/{session}/events", "ended"))
        assert (await two.post(f"/api/sessions/{session}/interrupt")) == {"interrupted": True}
        heard = await watching
        assert heard.events[-1][2]["stop"] == "interrupted"
        await finished(two, session)
        assert (await two.post(f"/api/sessions/{session}/interrupt")) == {"interrupted": False}


async def asked(visit: Running, session: str, heard: Heard) -> str:
    await listen(visit.client, f"/api/sessions/{session}/events", "question", heard=heard)
    return str(heard.events[-1][2]["id"])


async def test_a_question_asked_at_one_server_is_answered_at_the_other_and_once(tmp_path: Path) -> None:
    async with two_servers(tmp_path, DELETING) as (one, two):
        begun = await one.post("/api/sessions", text="Delete all.")
        session, heard = begun["session"], Heard()
        question = await asked(two, session, heard)
        answer = {"question": question, "answer": "no", "reason": "Keep it."}
        answers = await asyncio.gather(
            *(visit.client.post(f"/api/sessions/{session}/answers", json=answer) for visit in (two, one, two))
        )
        assert sorted(each.status_code for each in answers) == [200, 404, 404]
        await listen(one.client, f"/api/sessions/{session}/events", "ended")
        assert "Keep it." in str(await two.get(f"/api/sessions/{session}"))
        late = await two.client.post(f"/api/sessions/{session}/answers", json=answer)
        assert late.status_code == 404


async def test_a_mode_chosen_at_one_server_holds_at_the_other(tmp_path: Path) -> None:
    async with two_servers(tmp_path, echo) as (one, two):
        session = (await one.post("/api/sessions", text="Begin."))["session"]
        await finished(one, session)
        await two.post(f"/api/sessions/{session}/mode", mode="plan")
        assert (await one.get(f"/api/sessions/{session}/mode"))["mode"] == "plan"
        await say(one, session, "Go on.")
        await finished(one, session)
        found = one.state.open_sessions.find(session)
        assert found is not None
        assert found.session.mode == "plan"
        assert await one.state.relay.board.chosen_mode(session) == "", "the messages say it by now"
        assert (await two.get(f"/api/sessions/{session}/mode"))["mode"] == "plan"


async def test_a_link_made_at_one_server_lets_a_browser_in_at_the_other_once_and_everywhere(
    tmp_path: Path,
) -> None:
    async with two_servers(tmp_path, echo) as (one, two):
        link = (await one.post("/api/tickets"))["url"].partition("/login")[2]
        async with httpx2.AsyncClient(base_url=two.url) as browser:
            assert (await browser.get(f"/login{link}")).status_code == 303
            cookie = {"cookie": "; ".join(f"{name}={value}" for name, value in browser.cookies.items())}
        for visit in (one, two):
            async with httpx2.AsyncClient(base_url=visit.url) as browser:
                assert (await browser.get(f"/login{link}")).status_code == 401, "once"
                assert (await browser.get("/api/status", headers=cookie)).status_code == 200
        [login] = (await one.get("/api/logins"))["logins"]
        gone = await one.client.delete(
            f"/api/logins/{login['login']}", headers={"content-type": "application/json"}
        )
        assert gone.status_code == 200
        async with httpx2.AsyncClient(base_url=two.url) as browser:
            assert (await browser.get("/api/status", headers=cookie)).status_code == 401
            key = {"authorization": f"Bearer {one.key}"}
            assert (await browser.get("/api/status", headers=key)).status_code == 200, (
                "the key of the other home"
            )


async def test_wrong_passwords_are_counted_over_all_servers(tmp_path: Path) -> None:
    async with two_servers(tmp_path, echo, password=PASSWORD) as (one, two):

        async def guess(visit: Running, word: str) -> int:
            async with httpx2.AsyncClient(base_url=visit.url, timeout=60) as browser:
                form = {"origin": visit.url, "content-type": "application/x-www-form-urlencoded"}
                return (await browser.post("/login", content=f"password={word}", headers=form)).status_code

        found = await asyncio.gather(*(guess((one, two)[number % 2], "wrong") for number in range(8)))
        assert set(found) <= {401, 429}
        assert [await guess(visit, "correct+horse+battery") for visit in (one, two)] == [429, 429]
