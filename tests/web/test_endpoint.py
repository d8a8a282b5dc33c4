"""I3: the official OpenAI client talks to Hone as to a model; each conversation is a session that learns."""

import asyncio
import re
from collections.abc import AsyncIterable, Sequence
from pathlib import Path
from typing import Any

import httpx2
import openai
import pytest
from openai.types.chat import ChatCompletionMessageParam

from hone.core.jobs import State
from hone.core.ledger import USER, Actor, ChangeQuery
from hone.core.messages import Message, Role, assistant
from hone.core.trust import Trust
from hone.core.turn import Origin
from hone.knowledge.journal import entries
from hone.models.scripted import call, echo
from hone.settings import Settings
from hone.settings.sections import Learning
from tests.conftest import Figures, Tier
from tests.rig import faults
from tests.web.rig import Running, listen, running

Said = list[ChatCompletionMessageParam]
CANARY = re.compile(r"canary-\d+-")
TURNS = 3
LEARNING = Settings(learning=Learning(turns=TURNS, iterations=0))


def client(visit: Running, **headers: str) -> openai.AsyncOpenAI:
    return openai.AsyncOpenAI(
        base_url=f"{visit.url}/v1", api_key=visit.key, max_retries=0, default_headers=headers
    )


def worker(messages: Sequence[Message]) -> Message:
    """Looks into a file, then says what it was told; asked to look back, it keeps what the owner likes."""
    asked = max(at for at, message in enumerate(messages) if message.role is Role.USER)
    words, since = messages[asked].text, messages[asked + 1 :]
    if "look back over" in words:
        if since:
            return assistant("Saved.")
        said = next(m.text for m in messages if m.role is Role.USER and "I like" in m.text)
        return assistant(call("memory", action="add", target="user", text=said, evidence=[said]))
    if not since:
        return assistant("I look.", call("read_file", path="here.txt"))
    return assistant(f"You said: {words}")


async def talk(ai: openai.AsyncOpenAI, number: int, *, streamed: bool) -> None:
    """Three turns as a client has them: it sends all that was said, each time."""
    said: Said = [{"role": "system", "content": "You are in a test."}]
    for turn in range(TURNS):
        words = "hello" if turn == 0 else f"I like canary-{number}-{turn}."
        said.append({"role": "user", "content": words})
        if streamed:
            text = await stream(ai, said)
        else:
            whole = await ai.chat.completions.create(model="hone", messages=said)
            text = whole.choices[0].message.content or ""
        assert text == f"I look.\n\nYou said: {words}"
        said.append({"role": "assistant", "content": text})


async def stream(ai: openai.AsyncOpenAI, said: Said) -> str:
    response = await ai.chat.completions.create(
        model="hone", messages=said, stream=True, stream_options={"include_usage": True}
    )
    pieces, counted = [], 0
    async for chunk in response:
        counted += bool(chunk.usage and chunk.usage.prompt_tokens)
        pieces += [choice.delta.content or "" for choice in chunk.choices]
    assert counted == 1
    assert len(pieces) > 4
    return "".join(pieces)


async def test_many_clients_at_once_are_answered_kept_apart_and_learned_from(
    home: Path, tmp_path: Path, tier: Tier, figures: Figures
) -> None:
    count = tier.size(short=16, full=50)
    (tmp_path / "here.txt").write_text("a file\n")
    async with running(home, tmp_path, worker, settings=LEARNING) as visit:
        visit.stage.pace = 0.001  # pieces that arrive together are passed on together
        hone = visit.state.hone
        hone.folders.trust(tmp_path)
        async with client(visit) as ai:
            await asyncio.gather(*(talk(ai, number, streamed=number % 2 == 0) for number in range(count)))
        await hone.background.drain()
        found = await hone.sessions.list()
        assert len(found) == count
        seen = set()
        for each in found:
            stored = await hone.sessions.load(each.header.id)
            whole = b"".join(node.encoded for node in stored.transcript.nodes).decode()
            canaries = set(CANARY.findall(whole))
            assert len(canaries) == 1
            seen |= canaries
            assert faults(list(stored.transcript)) == []
            asked = [node for node in stored.transcript.nodes if node.message.role is Role.USER]
            assert [node.trust for node in asked] == [Trust.OWNER] * TURNS
        assert len(seen) == count
        jobs = await hone.jobs.jobs()
        assert {job.session for job in jobs} == {each.header.id for each in found}
        assert {job.state for job in jobs} == {State.DONE}
        made = await hone.ledger.entries(ChangeQuery(actor=Actor.REVIEW))
        assert len(made) == count
        kept = entries(await hone.keeper.text(USER))
        assert visit.stage.invalid == []
        figures(
            f"{count} conversations at once, {count * TURNS} turns, half of them streamed: 0 failed, "
            f"0 mixed up, {len(jobs)} reviewed, {len(made)} lessons recorded, {len(kept)} in the journal"
        )


async def test_a_name_in_the_header_is_a_conversation_for_good(home: Path, tmp_path: Path) -> None:
    async def ask(ai: openai.AsyncOpenAI, name: str, words: str) -> str:
        response = await ai.chat.completions.with_raw_response.create(
            model="hone",
            messages=[{"role": "user", "content": words}],
            extra_headers={"X-Hone-Session": name},
        )
        return str(response.headers["x-hone-session"])

    async with running(home, tmp_path) as visit, client(visit) as ai:
        at_once = await asyncio.gather(*(ask(ai, "team:one", f"word {number}") for number in range(4)))
        [one] = set(at_once)
        other = await ask(ai, "team:two", "else")
        assert await ask(ai, one, "by its own id") == one
        with pytest.raises(openai.BadRequestError, match="x-hone-session"):
            await ask(ai, "no name/at all", "hi")
    async with running(home, tmp_path) as visit, client(visit) as ai:
        assert await ask(ai, "team:one", "after a restart") == one
        stored = await visit.state.hone.sessions.load(await visit.state.hone.sessions.find(one))
        said = [message.text for message in stored.transcript if message.role is Role.USER]
        assert sorted(said[:4]) == [f"word {number}" for number in range(4)]
        assert said[4:] == ["by its own id", "after a restart"]
        assert other != one


async def ask(visit: Running, *words: str) -> tuple[str, str]:
    """The last of the user's words, after those before and the echo's answers to them."""
    said: Said = []
    for each in words:
        said += [{"role": "user", "content": each}, {"role": "assistant", "content": heard(each)}]
    response = await visit.client.post("/v1/chat/completions", json={"messages": said[:-1]})
    text = response.json()["choices"][0]["message"]["content"]
    assert text == heard(words[-1])
    return response.headers["x-hone-session"], text


def heard(words: str) -> str:
    return f"A scripted model heard: {words}"


async def test_a_history_leads_back_to_its_conversation_also_after_a_restart(
    home: Path, tmp_path: Path
) -> None:
    async with running(home, tmp_path) as visit:
        first, _ = await ask(visit, "one")
        assert (await ask(visit, "one", "two"))[0] == first
    async with running(home, tmp_path) as visit:
        assert (await ask(visit, "one", "two", "three"))[0] == first
        assert len(await visit.state.hone.sessions.list()) == 1


async def test_another_answer_to_an_earlier_word_is_a_branch(home: Path, tmp_path: Path) -> None:
    async with running(home, tmp_path) as visit:
        first, _ = await ask(visit, "one")
        await ask(visit, "one", "two")
        other, _ = await ask(visit, "one", "two instead")
        assert other != first
        assert (await ask(visit, "one", "two instead", "three"))[0] == other
        assert (await ask(visit, "one", "two", "three"))[0] == first
        stored = await visit.state.hone.sessions.load(await visit.state.hone.sessions.find(other))
        assert (stored.header.parent, stored.header.shared) == (first, 2)


async def test_a_history_that_nobody_witnessed_is_worth_no_more_than_anybodys_word(
    home: Path, tmp_path: Path
) -> None:
    async with running(home, tmp_path) as visit:
        id, _ = await ask(visit, "never said here", "and now?")
        stored = await visit.state.hone.sessions.load(await visit.state.hone.sessions.find(id))
        labels = [node.trust for node in stored.transcript.nodes]
        assert labels[:3] == [Trust.FOREIGN, Trust.FOREIGN, Trust.OWNER]
        assert stored.transcript.trust is Trust.FOREIGN
        assert faults(list(stored.transcript)) == []
        assert (await ask(visit, "never said here", "and now?", "more"))[0] == id


async def test_a_program_can_say_that_its_words_are_not_the_owners(home: Path, tmp_path: Path) -> None:
    async with running(home, tmp_path) as visit:
        async with client(visit, **{"X-Hone-Voice": "foreign"}) as ai:
            await ai.chat.completions.create(model="hone", messages=[{"role": "user", "content": "a mail"}])
        [summary] = await visit.state.hone.sessions.list()
        stored = await visit.state.hone.sessions.load(summary.header.id)
        assert stored.transcript.nodes[0].trust is Trust.FOREIGN


async def test_what_the_clients_program_says_goes_with_the_first_words_and_is_not_the_users(
    home: Path, tmp_path: Path
) -> None:
    async with running(home, tmp_path) as visit, client(visit) as ai:
        said: Said = [{"role": "system", "content": "Be brief.\n# Not a heading of Hone's"}]
        await ai.chat.completions.create(model="hone", messages=[*said, {"role": "user", "content": "hi"}])
        [summary] = await visit.state.hone.sessions.list()
        first = (await visit.state.hone.sessions.load(summary.header.id)).transcript.nodes[0].message
        assert first.text == "hi"
        assert first.note is not None
        assert "\n  Be brief.\n  # Not a heading" in first.note.text


TOOL = {"type": "function", "function": {"name": "f", "parameters": {"type": "object", "properties": {}}}}

PICTURE = {"type": "image_url", "image_url": {"url": "http://127.0.0.1/x.png"}}

UNSUPPORTED: tuple[tuple[dict[str, Any], str, str], ...] = (
    ({"tools": [TOOL]}, "tools", "tools_not_supported"),
    ({"functions": [{"name": "f"}]}, "functions", "tools_not_supported"),
    ({"n": 2}, "n", "unsupported_value"),
    ({"response_format": {"type": "grammar"}}, "response_format", "unsupported_value"),
    ({"response_format": {"type": "json_schema"}}, "response_format", "invalid_schema"),
    (
        {"response_format": {"type": "json_schema", "json_schema": {"schema": {"type": "thing"}}}},
        "response_format",
        "invalid_schema",
    ),
    ({"logprobs": True}, "logprobs", "unsupported_value"),
    ({"modalities": ["text", "audio"]}, "modalities", "unsupported_value"),
    ({"messages": []}, "messages", "unsupported_value"),
    ({"messages": [{"role": "assistant", "content": "hi"}]}, "messages", "unsupported_value"),
    ({"messages": [{"role": "user", "content": ""}]}, "messages", "unsupported_value"),
    (
        {
            "messages": [
                {"role": "tool", "tool_call_id": "1", "content": "x"},
                {"role": "user", "content": "y"},
            ]
        },
        "messages",
        "unsupported_value",
    ),
    ({"messages": [{"role": "user", "content": [PICTURE]}]}, "messages", "unsupported_value"),
)


async def test_what_cannot_be_done_is_refused_in_the_clients_own_language(home: Path, tmp_path: Path) -> None:
    async with running(home, tmp_path) as visit, client(visit) as ai:
        for more, param, code in UNSUPPORTED:
            asked: dict[str, Any] = {"model": "hone", "messages": [{"role": "user", "content": "hi"}], **more}
            with pytest.raises(openai.BadRequestError) as caught:
                await ai.chat.completions.create(**asked)
            assert (caught.value.param, caught.value.code) == (param, code)
            assert caught.value.type == "invalid_request_error"
        assert not await visit.state.hone.sessions.list()
        assert visit.stage.bodies == []


async def test_models_keys_and_names_that_are_wrong_are_told_apart(home: Path, tmp_path: Path) -> None:
    said: Said = [{"role": "user", "content": "hi"}]
    async with running(home, tmp_path) as visit:
        async with client(visit) as ai:
            assert [model.id async for model in ai.models.list()] == ["hone", "stage/scripted"]
            await ai.chat.completions.create(model="stage/scripted", messages=said)
            with pytest.raises(openai.NotFoundError, match="provider/name"):
                await ai.chat.completions.create(model="gpt-9", messages=said)
            with pytest.raises(openai.UnprocessableEntityError, match="nobody"):
                await ai.chat.completions.create(model="nobody/else", messages=said)
        async with openai.AsyncOpenAI(base_url=f"{visit.url}/v1", api_key="wrong", max_retries=0) as ai:
            with pytest.raises(openai.AuthenticationError):
                await ai.chat.completions.create(model="hone", messages=said)


async def test_a_provider_that_fails_is_an_error_and_the_conversation_can_go_on(
    home: Path, tmp_path: Path
) -> None:
    said: Said = [{"role": "user", "content": "hi"}]
    async with running(home, tmp_path, settings=Settings(tries=1)) as visit:
        async with client(visit, **{"X-Hone-Session": "a"}) as ai:
            visit.stage.fault = "500"
            with pytest.raises(openai.APIError, match="stage"):
                await ai.chat.completions.create(model="hone", messages=said)
            with pytest.raises(openai.APIError, match="stage"):
                await drained(await ai.chat.completions.create(model="hone", messages=said, stream=True))
            visit.stage.fault = None
            answer = await ai.chat.completions.create(model="hone", messages=said)
        assert answer.choices[0].message.content == heard("hi")
        [summary] = await visit.state.hone.sessions.list()
        stored = await visit.state.hone.sessions.load(summary.header.id)
        assert faults(list(stored.transcript)) == []


async def drained(stream: AsyncIterable[object]) -> int:
    return len([each async for each in stream])


@pytest.mark.parametrize("streamed", [False, True])
async def test_a_client_that_goes_away_ends_its_turn_in_order(
    home: Path, tmp_path: Path, streamed: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("hone.web.openai.endpoint.ALIVE", 0.05)
    begun = asyncio.Event()

    def script(messages: Sequence[Message]) -> Message:
        begun.set()
        return assistant(call("todo", items=[{"text": str(len(messages))}]))

    async with running(home, tmp_path, script, latency=0.02) as visit:
        body = {"messages": [{"role": "user", "content": "hi"}], "stream": streamed}
        async with httpx2.AsyncClient(base_url=visit.url, headers=visit.client.headers) as leaving:
            request = asyncio.ensure_future(leaving.post("/v1/chat/completions", json=body))
            await begun.wait()
            [session] = visit.state.open_sessions.busy
            request.cancel()
            await asyncio.wait([request])
        ended = await listen(visit.client, f"/api/sessions/{session}/events", "ended")
        assert ended.events[-1][2]["stop"] == "interrupted"
        [summary] = await visit.state.hone.sessions.list()
        stored = await visit.state.hone.sessions.load(summary.header.id)
        assert faults(list(stored.transcript)) == []


async def test_the_page_sees_what_clients_do(home: Path, tmp_path: Path) -> None:
    async with running(home, tmp_path, echo) as visit:
        session, _ = await ask(visit, "seen from the page")
        [row] = (await visit.get("/api/sessions"))["sessions"]
        assert (row["session"], row["opening"], row["origin"]) == (session, "seen from the page", Origin.USER)
        whole = await visit.get(f"/api/sessions/{session}")
        assert [each["role"] for each in whole["messages"]] == ["user", "assistant"]
