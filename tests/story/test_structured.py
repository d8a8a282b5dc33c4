"""An answer comes back as a value of the type that was asked for, or the reason why not; nothing is lost."""

import json
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, make_dataclass
from itertools import count
from pathlib import Path
from types import GenericAlias
from typing import Any, Literal, NotRequired, TypedDict

import msgspec
import pytest
from anthropic.types.message_create_params import MessageCreateParamsStreaming
from hypothesis import given, settings
from hypothesis import strategies as st
from openai.types.chat.completion_create_params import CompletionCreateParamsStreaming
from openai.types.responses.response_create_params import ResponseCreateParamsStreaming
from pydantic import TypeAdapter

from hone import Hone, Settings
from hone.core.errors import AnswerError, Refused
from hone.core.json_schema import check_schema, find_misfit
from hone.core.messages import Message, assistant
from hone.core.trust import Trust
from hone.models.dialects import takes_schemas
from hone.models.fake_provider import FakeProvider
from hone.models.forms import make_format
from hone.models.scripted import Script, Scripted, call, lines
from hone.runtime.returning import extract, make_form
from hone.settings.sections import ProviderSettings
from tests.cli.driving import environment, hone
from tests.conftest import Figures, Tier


class Bug(msgspec.Struct):
    """One mistake."""

    file: str
    line: int


class Report(msgspec.Struct, kw_only=True):
    bugs: list[Bug]
    sure: bool
    note: str | None


@dataclass
class Point:
    x: float
    y: float


class Row(TypedDict):
    name: str
    tags: NotRequired[list[str]]


REPORT = Report(bugs=[Bug("parser.py", 3)], sure=True, note=None)
GOOD = msgspec.json.encode(REPORT).decode()
BAD = '{"bugs": [{"file": "parser.py", "line": "three"}], "sure": true, "note": null}'
SCHEMA = {"type": "object", "properties": {"n": {"type": "integer", "minimum": 1}}, "required": ["n"]}
NATIVE: dict[str, tuple[str, str, Any, Callable[[Any], Any]]] = {
    "openai/scripted": (
        "openai",
        "/v1",
        CompletionCreateParamsStreaming,
        lambda body: body["response_format"]["json_schema"],
    ),
    "openrouter/anthropic/claude-sonnet-5.5": (
        "openai",
        "/v1",
        CompletionCreateParamsStreaming,
        lambda body: body["response_format"]["json_schema"],
    ),
    "openai/gpt-5.4": (
        "responses",
        "/v1",
        ResponseCreateParamsStreaming,
        lambda body: body["text"]["format"],
    ),
    "anthropic/scripted": (
        "anthropic",
        "",
        MessageCreateParamsStreaming,
        lambda body: body["output_config"]["format"],
    ),
}
"""A model: its format, the path of its address, the official type of a request, where the schema stands."""


@asynccontextmanager
async def speaking(
    model: str, home: Path, stage: FakeProvider, *, local: bool | None = None
) -> AsyncIterator[Hone]:
    name = model.partition("/")[0]
    format, path, *_ = NATIVE.get(model, ("openai", "/v1"))
    own = ProviderSettings(f"{stage.url}{path}", format=format, local=local)
    async with Hone(home=home, model=model, settings=Settings(providers={name: own})) as agent:
        yield agent


def working(*answers: str) -> Script:
    """Looks into a folder first, as an agent does."""
    return lines(assistant("I look.", call("search_files", glob="*.py")), *answers)


@pytest.mark.parametrize("model", NATIVE)
async def test_every_format_returns_a_value_after_tools_and_one_wrong_answer(model: str, home: Path) -> None:
    *_, official, schema_of = NATIVE[model]
    async with FakeProvider(working(f"It is {BAD}", GOOD)) as stage, speaking(model, home, stage) as agent:
        assert await agent.run("find bugs", returns=Report) == REPORT
        assert (stage.invalid, len(stage.bodies)) == ([], 3)
        heads = []
        for body in stage.bodies:
            asked = json.loads(body)
            TypeAdapter(official).validate_python(asked)
            assert schema_of(asked)["schema"]["required"] == ["bugs", "sure", "note"]
            heads.append(body[: body.index(b"find bugs")])
        assert heads == heads[:1] * 3  # the provider finds the conversation in its cache
        [summary] = await agent.sessions.list(5)
        stored = await agent.sessions.load(summary.header.id)
        texts = [(node.message.role, node.message.text, node.trust) for node in stored.transcript.nodes]
        assert [text for _, text, _ in texts[3:]][::2] == [f"It is {BAD}", GOOD]
        assert texts[0][1:] == ("find bugs", Trust.OWNER)
        assert texts[4][2] <= Trust.AGENT
        assert "response_format" not in stored.prefix.sampling


@pytest.mark.parametrize("model", NATIVE)
async def test_later_in_a_conversation_the_head_of_the_request_stays(model: str, home: Path) -> None:
    async with FakeProvider(lines("Hello.", GOOD)) as stage, speaking(model, home, stage) as agent:
        session = await agent.session()
        await session.send("hello")
        assert await session.obtain("find bugs", Report) == REPORT
        first, second = stage.bodies
        assert second.startswith(first[: first.index(b"hello")])
        assert stage.invalid == []


@pytest.mark.parametrize(("model", "local"), [("mine/scripted", None), ("openai/scripted", True)])
async def test_an_unknown_or_local_server_is_told_in_words(
    model: str, local: bool | None, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("HONE_LOCAL")
    async with FakeProvider(lines(f"```json\n{GOOD}\n```")) as stage:
        async with speaking(model, home, stage, local=local) as agent:
            assert await agent.run("find bugs", returns=Report) == REPORT
        [body] = map(json.loads, stage.bodies)
        assert "response_format" not in body
        assert "It must fit this JSON schema" in body["messages"][-1]["content"]


async def test_a_provider_that_refuses_the_schema_is_asked_in_words(home: Path) -> None:
    def refuse(number: int) -> str | None:
        return "400" if number == 0 else None

    async with FakeProvider(working(GOOD), fault=refuse) as stage:
        async with speaking("openai/scripted", home, stage) as agent:
            assert await agent.run("find bugs", returns=Report) == REPORT
        assert ["response_format" in json.loads(body) for body in stage.bodies] == [True, False, False]


@pytest.mark.parametrize("answers", [(BAD, BAD), ("no", "[]"), (f"{GOOD} Done.", "{"), (BAD, "[" * 5_000)])
async def test_two_wrong_answers_are_a_plain_error_and_the_conversation_stays(
    answers: Sequence[str], home: Path
) -> None:
    model = Scripted(lines(*answers, "Still here."))
    async with Hone(home=home, model=model) as agent:
        with pytest.raises(AnswerError, match="and neither did the one before: ") as failed:
            await agent.run("find bugs", returns=Report)
        assert len(model.calls) == 2
        id = str(failed.value).rstrip(".").rpartition(" ")[2]
        session = await agent.resume(id)
        assert [message.text for message in session.transcript][1::2] == list(answers)
        assert (await session.send("and now?")).text == "Still here."


async def test_no_answer_and_a_type_that_cannot_be_had_are_errors(home: Path) -> None:
    stage = FakeProvider(lines(GOOD), fault="401")
    async with stage, speaking("openai/scripted", home, stage) as agent:
        with pytest.raises(AnswerError, match="refused the key"):
            await agent.run("find bugs", returns=Report)
        sent = len(stage.bodies)
        impossible: tuple[Any, ...] = ("Report", complex, {"pattern": "x"})
        for each in impossible:
            with pytest.raises(Refused):
                await agent.run("find bugs", returns=each)
        assert (len(stage.bodies), len(await agent.sessions.list(5))) == (sent, 1)


def heard(messages: Sequence[Message]) -> Message:
    """Answers with what the task says, as a model does that copies."""
    return assistant(messages[0].text)


NUMBERS = count()
TYPED_DICT: Any = TypedDict
Kind = tuple[Any, st.SearchStrategy[Any]]
"""A type, and its values."""
LEAVES: tuple[Kind, ...] = (
    (str, st.text()),
    (int, st.integers(-(2**80), 2**80)),
    (float, st.floats(allow_nan=False, allow_infinity=False)),
    (bool, st.booleans()),
    (Literal["a", "b"], st.sampled_from(["a", "b"])),
)


def record(kinds: list[Kind], maker: int) -> Kind:
    """A Struct, a dataclass or a TypedDict with these fields."""
    fields = {f"f{number}": kind for number, (kind, _) in enumerate(kinds)}
    values = {f"f{number}": each for number, (_, each) in enumerate(kinds)}
    name = f"Made{next(NUMBERS)}"
    if maker == 2:
        return TYPED_DICT(name, fields), st.fixed_dictionaries(values)
    pairs = list(fields.items())
    made: Any = msgspec.defstruct(name, pairs) if maker else make_dataclass(name, pairs)
    return made, st.builds(made, **values)


def composed(inner: st.SearchStrategy[Kind]) -> st.SearchStrategy[Kind]:
    return st.one_of(
        inner.map(lambda kind: (GenericAlias(list, kind[0]), st.lists(kind[1], max_size=3))),
        inner.map(lambda kind: (kind[0] | None, st.none() | kind[1])),
        inner.map(
            lambda kind: (GenericAlias(dict, (str, kind[0])), st.dictionaries(st.text(), kind[1], max_size=3))
        ),
        st.builds(record, st.lists(inner, min_size=1, max_size=3), st.integers(0, 2)),
    )


KINDS = st.recursive(st.sampled_from(LEAVES), composed, max_leaves=6)


def test_any_value_of_a_type_comes_back_equal_and_no_provider_excludes_it(
    tier: Tier, figures: Figures
) -> None:
    counts = {"enforced": 0, "in words": 0}

    @settings(max_examples=tier.size(short=200, full=5_000))
    @given(
        KINDS | st.builds(record, st.lists(KINDS, min_size=1, max_size=3), st.integers(0, 2)),
        st.data(),
        st.sampled_from(["{}", " {}\n", "```json\n{}\n```"]),
    )
    def check(kind: Kind, data: st.DataObject, around: str) -> None:
        form, value = make_form(kind[0]), data.draw(kind[1])
        said = around.replace("{}", msgspec.json.encode(value).decode())
        assert form.decode(extract(said)) == value
        native = make_format(form.schema)
        counts["enforced" if native else "in words"] += 1
        if native:
            schema = native["json_schema"]["schema"]
            check_schema(schema)
            assert find_misfit(json.loads(extract(said)), schema) == ""

    check()
    figures(f"values that came back: {counts}")
    assert min(counts.values()) > tier.size(short=10, full=200)


async def test_types_of_every_kind_come_back_through_a_conversation(home: Path) -> None:
    async with Hone(home=home, model=Scripted(heard)) as agent:
        point: Point = await agent.run('{"x": 1, "y": 2.5}', returns=Point)
        row: Row = await agent.run('{"name": "a", "tags": ["b"]}', returns=Row)
        points: list[Point] = await agent.run('[{"x": 0, "y": 0}]', returns=list[Point])
        assert (point, row, points) == (Point(1, 2.5), {"name": "a", "tags": ["b"]}, [Point(0, 0)])
        assert await agent.run('{"n": 12345678901234567890123}', returns=SCHEMA) == {
            "n": 12345678901234567890123
        }
        with pytest.raises(AnswerError, match=r"\$\.n must be at least 1"):
            await agent.run('{"n": 0}', returns=SCHEMA)


def test_what_providers_cannot_say_is_left_out_or_not_asked_of_them() -> None:
    form = make_format(SCHEMA | {"properties": {"n": {"type": "integer", "minimum": 1}, "m": {"const": "x"}}})
    assert form is not None
    assert form["json_schema"] == {
        "name": "answer",
        "schema": {
            "type": "object",
            "properties": {"n": {"type": "integer"}, "m": {"type": "string", "enum": ["x"]}},
            "required": ["n"],
            "additionalProperties": False,
        },
        "strict": False,
    }
    for kind in (list[int], dict[str, int], int, Any):
        assert make_format(make_form(kind).schema) is None
    assert not takes_schemas("openai", "https://api.openai.com/v1", "gpt-4-turbo", "openai")
    assert not takes_schemas("mine", "https://openai.com.example.org/v1", "m", "openai")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (None, "cannot be read: No such file or directory."),
        ("{", "is not JSON: "),
        ("[1]", "A JSON schema is an object"),
        ('{"type": "thing"}', "$.type is not what it must be"),
    ],
)
async def test_a_schema_that_cannot_be_used_is_wrong_usage(
    text: str | None, said: str, home: Path, tmp_path: Path
) -> None:
    if text is not None:
        (tmp_path / "s.json").write_text(text)
    async with FakeProvider(lines("1")) as stage:
        env = environment(home, stage)
        ended = await hone("run", "--schema", "s.json", "x", env=env, folder=tmp_path)
        assert (ended.code, ended.out, stage.bodies) == (2, "", [])
    assert said in ended.err
    assert "s.json" in ended.err


async def test_run_prints_one_line_of_json_or_nothing(home: Path, tmp_path: Path) -> None:
    (tmp_path / "s.json").write_text(json.dumps(SCHEMA))
    flags = ("run", "--schema", "s.json")
    async with FakeProvider(working('{"n": 0}', '```json\n{"n":\n 7, "ü": "\u202e"}\n```')) as stage:
        env = environment(home, stage)
        ended = await hone(*flags, "count", env=env, folder=tmp_path)
        assert (ended.code, ended.out) == (0, '{"n": 7, "\\u00fc": "\\u202e"}\n')
        assert "$.n must be at least 1. Asking once more." in ended.err
        told = await hone(*flags, "--json", "-q", "count", env=env, folder=tmp_path)
        assert (json.loads(told.out)["value"], told.err) == ({"n": 7, "ü": "\u202e"}, "")
    async with FakeProvider(lines("seven")) as stage:
        env = environment(home, stage)
        failed = await hone(*flags, "-q", "count", env=env, folder=tmp_path)
        assert (failed.code, failed.out, len(stage.bodies)) == (1, "", 2)
        assert "does not have the form that was asked for" in failed.err
        told = await hone(*flags, "--json", "-q", "count", env=env, folder=tmp_path)
        data = json.loads(told.out)
        assert (told.code, data["value"], data["stop"]) == (1, None, "failed")
