"""A typed function becomes a tool, and whatever the model sends as arguments ends in an outcome."""

import asyncio
import json
import threading
from dataclasses import dataclass
from typing import Annotated, Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hone.core.messages import ToolCall, assistant, canonical, user
from hone.core.permit import Effect
from hone.core.tool import Outcome, Tool, ToolKind
from hone.core.tool_context import ToolContext
from hone.tools.define import Function, FunctionTool, tool
from tests.rig import context
from tests.tools.calls import EMPTY, conversation, perform, perform_raw


@dataclass(frozen=True)
class Step:
    text: str
    count: int = 1


@tool(effects={Effect.READ}, readonly=True, kind=ToolKind.RESEARCH)
def repeat(
    title: Annotated[str, "what to say"],
    times: Annotated[int, "how often", msgspec.Meta(ge=1)] = 2,
    steps: list[Step] | None = None,
    loud: bool = False,
    anything: Any = None,
) -> str:
    """Say it.

    Again and again.
    """
    return f"{title!r} {times!r} {steps!r} {loud!r} {anything!r}"


DEEP = "[" * 100_000 + "]" * 100_000


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        ("{", "not valid JSON"),
        ("nonsense", "not valid JSON"),
        ('{"title": "a"} {"title": "b"}', "not valid JSON"),
        ('{"title": "\\ud800"}', "not valid JSON"),
        ('{"title": "\ud800"}', "not valid JSON"),
        ("null", "Expected `object`, got `null`"),
        ("[]", "Expected `object`, got `array`"),
        ("", "missing required field `title`"),
        ("  ", "missing required field `title`"),
        ("{}", "missing required field `title`"),
        ('{"title": "a", "tittle": "b"}', "unknown field `tittle`"),
        ('{"title": 5}', "Expected `str`, got `int` - at `$.title`"),
        ('{"title": null}', "Expected `str`, got `null` - at `$.title`"),
        ('{"title": "a", "times": "often"}', "Expected `int`, got `str` - at `$.times`"),
        ('{"title": "a", "times": 1.5}', "Expected `int`, got `float` - at `$.times`"),
        ('{"title": "a", "times": 0}', "`int` >= 1 - at `$.times`"),
        ('{"title": "a", "times": ' + "9" * 5_000 + "}", "`$.times`"),
        (
            '{"title": "a", "steps": [{"text": "x"}, {"count": 2}]}',
            "missing required field `text` - at `$.steps[1]`",
        ),
        (f'{{"title": {DEEP}}}', "Expected `str`, got `array`"),
        (f'{{"title": "a", "anything": {DEEP}}}', "nested too deeply"),
        (DEEP, "Expected `object`, got `array`"),
    ],
)
def test_arguments_that_do_not_fit_give_a_failure_that_tells_what_was_expected(
    arguments: str, complaint: str
) -> None:
    outcome = perform_raw(repeat, arguments)
    assert outcome.failed
    assert complaint in outcome.text
    assert outcome.text.startswith("repeat was not run: ")
    assert "{title: string, times?: integer, steps?: array, loud?: boolean, anything?: any}" in outcome.text
    assert len(outcome.text) < 400


@given(
    st.text() | st.recursive(st.none() | st.booleans() | st.floats() | st.text(), st.lists).map(json.dumps)
)
def test_no_text_of_arguments_raises(arguments: str) -> None:
    assert isinstance(perform_raw(repeat, arguments), Outcome)


@given(
    st.fixed_dictionaries(
        {"title": st.text()},
        optional={
            "times": st.integers(1, 2**62),
            "loud": st.booleans(),
            "steps": st.lists(st.builds(Step, st.text(), st.integers(-(2**62), 2**62))),
        },
    )
)
def test_arguments_arrive_as_they_were_sent(arguments: dict[str, Any]) -> None:
    seen: dict[str, object] = {}

    @tool(effects=())
    def echo(title: str, times: int = 2, loud: bool = False, steps: list[Step] | None = None) -> str:
        """Give back."""
        seen.update(title=title, times=times, loud=loud, steps=steps)
        return "done"

    sent = msgspec.json.encode(arguments).decode()
    assert perform_raw(echo, sent) == Outcome("done")
    assert seen == {"times": 2, "loud": False, "steps": None, **arguments}


def test_a_number_in_quotes_will_do() -> None:
    assert perform(repeat, title="a", times="5", loud="true").text == "'a' 5 None True None"


def test_the_schema_is_canonical_flat_and_says_what_the_signature_says() -> None:
    schema = json.loads(repeat.spec.schema)
    assert canonical(schema) == repeat.spec.schema
    step = {
        "type": "object",
        "properties": {"text": {"type": "string"}, "count": {"type": "integer", "default": 1}},
        "required": ["text"],
    }
    assert schema == {
        "name": "repeat",
        "description": "Say it.\n\nAgain and again.",
        "parameters": {
            "type": "object",
            "properties": {
                "title": {"type": "string", "description": "what to say"},
                "times": {"type": "integer", "description": "how often", "default": 2, "minimum": 1},
                "steps": {"type": "array", "items": step},
                "loud": {"type": "boolean", "default": False},
                "anything": {},
            },
            "required": ["title"],
            "additionalProperties": False,
        },
    }


def test_the_surface_carries_what_was_declared() -> None:
    spec = repeat.spec
    assert (spec.name, spec.effects, spec.readonly, spec.kind) == (
        *("repeat", frozenset({Effect.READ})),
        *(True, ToolKind.RESEARCH),
    )


def test_a_parameter_that_takes_the_scene_gets_it_and_is_no_argument() -> None:
    @tool(effects=())
    def length(context: ToolContext) -> str:
        """Count."""
        return str(len(context.transcript))

    assert json.loads(length.spec.schema)["parameters"]["properties"] == {}
    assert perform(length, context="mine").failed
    longer = context(conversation(user("one"), assistant("two")))
    assert asyncio.run(length.run(ToolCall("1", "length", "{}"), longer)).text == "2"


def test_a_plain_function_leaves_the_event_loop_and_an_async_one_stays_in_it() -> None:
    @tool(effects=())
    def plain() -> str:
        """Where am I?"""
        return threading.current_thread().name

    @tool(effects=())
    async def inside() -> str:
        """Where am I?"""
        return threading.current_thread().name

    assert perform(plain).text != threading.current_thread().name
    assert perform(inside).text == threading.current_thread().name


def test_a_failure_that_was_expected_is_handed_on_and_an_exception_is_not_caught() -> None:
    @tool(effects=())
    def careful() -> Outcome:
        """Fail as a value."""
        return Outcome("no", failed=True)

    @tool(effects=())
    def careless() -> str:
        """Fail as an exception."""
        raise ValueError("raised inside the function")

    assert perform(careful) == Outcome("no", failed=True)
    with pytest.raises(ValueError, match="raised inside the function"):
        perform(careless)


def test_a_value_that_cannot_be_json_is_a_mistake_of_its_author() -> None:
    def number() -> Any:
        """Return a number."""
        return 5

    def wrong() -> Any:
        """Return an object."""
        return object()

    assert perform(tool(effects=())(number)).text == "5"
    with pytest.raises(TypeError, match="type object is unsupported"):
        perform(tool(effects=())(wrong))


def test_a_function_that_cannot_be_a_tool_is_refused_when_it_is_defined() -> None:
    @dataclass
    class Tree:
        children: "list[Tree]"

    Tree.__annotations__["children"] = list[Tree]

    def silent(path: str) -> str:
        return path

    def untyped(path: str) -> str:
        """Take anything."""
        return path

    del untyped.__annotations__["path"]

    def many(*paths: str) -> str:
        """Take many."""
        return "".join(paths)

    def endless(tree: Tree) -> str:
        """Take a tree."""
        return str(tree)

    mistakes: list[tuple[Function, str]] = [
        (silent, "needs a docstring"),
        (untyped, "path of untyped"),
        (many, "paths of many"),
        (endless, "contains itself"),
    ]
    for function, complaint in mistakes:
        with pytest.raises(TypeError, match=complaint):
            tool(effects=())(function)


def made(default: Any, note: str) -> FunctionTool:
    @tool(effects=())
    def echo(text: Annotated[str, note], *, times: Any = default) -> str:
        """Say it."""
        return f"{text} {times!r} {note}"

    return echo


def test_a_function_made_anew_shares_its_shape_and_nothing_else() -> None:
    first, second, *others = made(1, "a"), made(1, "a"), made(2, "a"), made(True, "a"), made(1, "b")
    assert second.shape is first.shape
    assert second.function is not first.function
    assert len({each.spec.schema for each in (first, *others)}) == 4
    assert perform(others[0], text="x").text == "x 2 a"


def test_what_cannot_be_compared_is_worked_out_each_time() -> None:
    first, second = made([], "a"), made([], "a")
    assert second.shape is not first.shape
    assert second.spec == first.spec


def test_a_defined_tool_is_a_tool() -> None:
    found: Tool = repeat
    assert isinstance(found, FunctionTool)
    assert asyncio.run(found.run(ToolCall("1", "repeat", '{"title":"x"}'), EMPTY)).text.startswith("'x' 2")
