"""`response_format`: the official client gets what it asked for, checked, or an error in OpenAI's shape."""

import json
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path

import openai
import pytest
from openai.types.chat import ChatCompletionMessageParam
from pydantic import BaseModel

from hone.core.messages import Message, Role, assistant
from hone.core.trust import Trust
from hone.models.scripted import call, lines
from tests.web.rig import running
from tests.web.test_endpoint import client

ASKED: list[ChatCompletionMessageParam] = [{"role": "user", "content": "where do we meet?"}]


class Place(BaseModel):
    name: str
    floor: int | None
    doors: list[str]


PLACE = Place(name="hall", floor=2, doors=["east"])
GOOD, BAD = PLACE.model_dump_json(), '{"name": "hall", "floor": "second", "doors": []}'


def guide(messages: Sequence[Message]) -> Message:
    """Looks first, answers wrongly, then rightly; begins anew with each word of the user's."""
    since = next(at for at, each in enumerate(reversed(messages)) if each.role is Role.USER)
    asked = messages[-1 - since].text
    if "does not have the form" in asked:
        return assistant(f"```json\n{GOOD}\n```")
    return assistant(BAD) if since else assistant("I look.", call("search_files", glob="*"))


async def test_the_official_client_parses_the_answer_and_talks_on(home: Path, tmp_path: Path) -> None:
    async with running(home, tmp_path, guide) as visit, client(visit) as ai:
        first = await ai.chat.completions.parse(model="hone", messages=ASKED, response_format=Place)
        [choice] = first.choices
        assert (choice.message.parsed, choice.message.content, choice.finish_reason) == (PLACE, GOOD, "stop")
        assert first.usage is not None
        said: list[ChatCompletionMessageParam] = [
            *ASKED,
            {"role": "assistant", "content": GOOD},
            {"role": "user", "content": "and tomorrow?"},
        ]
        async with ai.chat.completions.stream(model="hone", messages=said, response_format=Place) as events:
            texts = [event.delta async for event in events if event.type == "content.delta" and event.delta]
            last = await events.get_final_completion()
        assert (texts, last.choices[0].message.parsed) == ([GOOD], PLACE)
        assert len(visit.stage.bodies) == 6
        assert visit.stage.invalid == []
        [summary] = await visit.state.hone.sessions.list(5)
        stored = await visit.state.hone.sessions.load(summary.header.id)
        users = [node for node in stored.transcript.nodes if node.message.role is Role.USER]
        assert [node.trust is Trust.OWNER for node in users] == [True, False, True, False]


async def test_any_object_will_do_if_the_client_says_no_more(home: Path, tmp_path: Path) -> None:
    async with running(home, tmp_path, lines("[1]", '{"a": 1}')) as visit, client(visit) as ai:
        answer = await ai.chat.completions.create(
            model="hone", messages=ASKED, response_format={"type": "json_object"}
        )
        assert json.loads(answer.choices[0].message.content or "") == {"a": 1}


async def parse(ai: openai.AsyncOpenAI) -> None:
    await ai.chat.completions.parse(model="hone", messages=ASKED, response_format=Place)


async def stream(ai: openai.AsyncOpenAI) -> None:
    """Nothing of a wrong answer is shown."""
    async with ai.chat.completions.stream(model="hone", messages=ASKED, response_format=Place) as events:
        async for event in events:
            assert event.type != "content.delta" or not event.delta


@pytest.mark.parametrize("ask", [parse, stream])
async def test_two_wrong_answers_are_an_error_of_the_model(
    ask: Callable[[openai.AsyncOpenAI], Awaitable[None]], home: Path, tmp_path: Path
) -> None:
    async with running(home, tmp_path, lines(BAD)) as visit, client(visit) as ai:
        with pytest.raises(openai.APIError, match="does not have the form") as failed:
            await ask(ai)
        assert failed.value.type == "model_error"
        assert len(visit.stage.bodies) == 2
