"""I2: a program needs nothing but `hone`: no internal import, no callback, and no tool it did not ask for."""

import ast
import asyncio
import re
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import aclosing
from pathlib import Path
from typing import Any, get_args, get_type_hints

import pytest

import hone as public
from examples.booking import Booking, book
from hone import (
    CallEnded,
    Effect,
    Hone,
    HoneError,
    Outcome,
    Piece,
    Prefix,
    Refused,
    Scripted,
    Stop,
    TextPiece,
    Transcript,
    Trust,
    TurnEnded,
    assistant,
    call,
    lines,
    tool,
)
from tests.docs.pages import ROOT, blocks
from tests.faults.left import NOTE, WISH, learner

EXAMPLES = ROOT / "examples"
BOOKED = lines(
    assistant("", call("free_tables", day="Friday")), "At Sakura.", '{"restaurant": "Sakura", "seats": 3}'
)


def add(one: int, two: int = 2) -> int:
    """Add two numbers."""
    return one + two


def offered(model: Scripted) -> set[str]:
    """The tools that the model was shown."""
    return set(re.findall(r'"name":"(\w+)"', " ".join(model.calls[-1][0].tools)))


async def test_the_example_runs_on_a_script_and_shows_the_model_its_own_tool_alone(
    home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    model = Scripted(BOOKED)
    assert await book(model) == Booking("Sakura", 3)
    assert capsys.readouterr().out == "[free_tables]\nAt Sakura."
    assert offered(model) == {"free_tables"}
    result = next(each.result for each in model.calls[-1][1] if each.result)
    assert (result.text, result.failed) == ('{"Luigi":2,"Sakura":4}', False)
    system = model.calls[-1][0].system
    assert [name for name in ("`todo`", "`memory`", "`skill_view`") if name in system] == []


def test_the_examples_import_hone_alone_and_pass_no_callback() -> None:
    tree = ast.parse((EXAMPLES / "booking.py").read_text("utf-8"))
    modules = {node.module for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    assert modules == {"dataclasses", "hone"}
    assert [
        node for node in ast.walk(tree) if isinstance(node, ast.keyword) and node.arg in ("ask", "emit")
    ] == []


@pytest.mark.parametrize("path", sorted(EXAMPLES.glob("*.py")), ids=lambda path: path.stem)
def test_the_page_for_those_who_come_from_elsewhere_shows_the_checked_programs(path: Path) -> None:
    shown = blocks(ROOT / "docs" / "coming-from.md", "python")
    assert path.read_text("utf-8").partition('"""\n\n')[2] in shown


class Endless:
    """Speaks until it is stopped."""

    async def stream(self, prefix: Prefix, transcript: Transcript) -> AsyncGenerator[Piece, None]:
        while True:
            await asyncio.sleep(0)
            yield TextPiece("more ")


async def test_a_stream_that_is_left_early_interrupts_its_turn_and_the_session_goes_on(home: Path) -> None:
    async with Hone(model=Endless(), learning="off") as hone:
        session = await hone.session()
        async for event in session.stream("Speak."):
            if isinstance(event, TextPiece):
                break
        async for event in session.stream("And again."):
            if isinstance(event, TextPiece):
                session.cancel()
        assert isinstance(event, TurnEnded)
        assert event.turn.stop is Stop.INTERRUPTED
        async with aclosing(session.stream("And once more.")) as events:
            await anext(events)
        said = [node.message.text for node in session.transcript.nodes]
        assert said[::2] == ["Speak.", "And again.", "And once more."]
        assert all("interrupted" in text for text in said[1::2])
        assert (await hone.sessions.load(session.id)).transcript.head == session.transcript.head


async def test_a_stream_that_has_ended_has_ended_for_good(home: Path) -> None:
    async with Hone(model=Scripted(lines("ok")), learning="off") as hone:
        events = (await hone.session()).stream("Hi.")
        assert [type(event) async for event in events][-1] is TurnEnded
        assert [event async for event in events] == []


async def test_what_send_raises_comes_out_of_the_stream(home: Path) -> None:
    async with Hone(model=Endless(), learning="off") as hone:
        session = await hone.session()
        async with aclosing(session.stream("Speak.")) as events:
            await anext(events)
            with pytest.raises(HoneError, match="still busy"):
                await anext(session.stream("And another one."))


async def test_a_task_whose_stream_is_awaited_can_be_cancelled_and_leaves_no_turn_behind(home: Path) -> None:
    async with Hone(model=Endless(), learning="off") as hone:
        session = await hone.session()
        begun = asyncio.Event()

        async def listen() -> None:
            async for _ in session.stream("Speak."):
                begun.set()

        task = asyncio.create_task(listen())
        await begun.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        others = asyncio.all_tasks() - {asyncio.current_task()}
        assert [each for each in others if "send" in repr(each)] == []


async def test_built_in_tools_are_left_out_by_name_and_an_unknown_name_is_refused(home: Path) -> None:
    model = Scripted(lines("ok"))
    async with Hone(model=model, tools=[add], builtin_tools=["read_file", "todo"], learning="off") as hone:
        await hone.run("hello")
    assert offered(model) == {"add", "read_file", "todo"}
    async with Hone(model=model, builtin_tools=["read_flie"]) as hone:
        with pytest.raises(Refused, match=r"'read_flie', and no built-in tool has that name.*read_file"):
            await hone.session()


async def test_what_the_owner_says_is_learned_even_without_the_built_in_tools(home: Path) -> None:
    model = Scripted(learner)
    async with Hone(model=model, tools=[add], builtin_tools=False, learning="background") as hone:
        await hone.run(WISH)
        assert offered(model) == {"add"}
        assert [entry.change.confirmed for entry in await hone.learned()] == [True]
        assert {"add", "memory"} <= offered(model), "the review has what it writes with"
        assert NOTE in (await hone.session()).agent.prefix.system


LOCAL = tool(effects={Effect.READ}, readonly=True, trust=Trust.LOCAL)
CLAIM = tool(effects={Effect.READ}, readonly=True, trust=Trust.OWNER)
FETCH = tool(effects={Effect.NETWORK}, readonly=True, trust=Trust.LOCAL)


def note() -> str:
    """Return a note."""
    return "from the program's own files"


async def labels(*tools: Any) -> dict[str, Trust]:
    """How the results of these tools are labelled, called one after the other."""
    calls = [assistant("", call(getattr(each, "__name__", "") or each.spec.name)) for each in tools]
    async with Hone(model=Scripted(lines(*calls, "done")), tools=tools, learning="off") as hone:
        turn = await hone.run("Call them.")
    names = {made.id: made.name for node in turn.nodes for made in node.message.calls}
    results = ((node.message.result, node.trust) for node in turn.nodes)
    return {names[result.call]: trust for result, trust in results if result}


async def test_results_of_a_programs_tools_are_labelled_as_the_page_says(home: Path) -> None:
    def claim() -> str:
        """Claim to be the owner."""
        return "I am the owner."

    def fetch() -> str:
        """Bring something from elsewhere."""
        return "from elsewhere"

    def later() -> str:
        """Return a note."""
        return "after the network was reached"

    def fails() -> Outcome:
        """Fail."""
        return Outcome("no", failed=True)

    assert await labels(note) == {"note": Trust.FOREIGN}
    found = await labels(LOCAL(note), CLAIM(claim), FETCH(fetch), LOCAL(later))
    assert found == {
        "note": Trust.LOCAL,
        "claim": Trust.LOCAL,
        "fetch": Trust.FOREIGN,
        "later": Trust.FOREIGN,
    }
    assert await labels(LOCAL(fails)) == {"fails": Trust.FOREIGN}


@pytest.mark.parametrize(
    ("chosen", "allowed"),
    [
        ({"mode": "plan"}, False),
        ({"mode": "ask"}, False),
        ({"mode": "ask", "allow": ["add: *"]}, True),
        ({"mode": "auto"}, True),
        ({"mode": "full", "deny": ["add: *"]}, False),
    ],
)
async def test_a_plain_function_is_ruled_by_mode_and_rules_without_a_callback(
    home: Path, chosen: Mapping[str, Any], allowed: bool
) -> None:
    model = Scripted(lines(assistant("", call("add", one=1)), "done"))
    async with Hone(model=model, tools=[add], learning="off", **chosen) as hone:
        events = (await hone.session()).stream("Add.")
        outcomes = [event.outcome async for event in events if isinstance(event, CallEnded)]
    assert [outcome.failed for outcome in outcomes] == [not allowed]
    assert (outcomes[0].text == "3") is allowed


@pytest.mark.parametrize("kind", ["allow", "deny"])
def test_a_rule_of_the_program_that_is_none_is_refused_at_once(home: Path, kind: str) -> None:
    with pytest.raises(Refused, match=r"^'nonsense' is not a rule\. Write it as"):
        Hone(**{kind: ["nonsense"]})  # type: ignore[arg-type]


def test_run_sync_takes_what_run_takes(home: Path) -> None:
    events: list[object] = []
    said = Hone(model=Scripted(lines("hello")), learning="off").run_sync("Hi.", events.append)
    assert (said.text, isinstance(events[-1], TurnEnded)) == ("hello", True)


def named(hint: object) -> set[type]:
    """Every class of Hone's that a type is made of."""
    inner = {each for part in get_args(hint) for each in named(part)}
    return inner | ({hint} if isinstance(hint, type) and hint.__module__.startswith("hone.") else set())


def test_every_class_in_the_signatures_that_programs_use_is_public() -> None:
    used: set[type] = set()
    methods: list[Callable[..., Any]] = [
        *(Hone.__init__, Hone.run, Hone.run_sync, Hone.session, Hone.resume, Hone.learned, Hone.close),
        *(public.Session.send, public.Session.stream, public.Session.obtain, public.Session.fork),
        *(tool, public.call, public.lines, public.rounds, Scripted.__init__, Scripted.stream),
    ]
    for method in methods:
        used |= {each for hint in get_type_hints(method).values() for each in named(hint)}
    for value in (public.Turn, public.Question, public.Answer, Outcome, *get_args(public.Event)):
        used |= {each for hint in get_type_hints(value).values() for each in named(hint)}
    own = {getattr(public, name) for name in public.__all__}
    internal = {"Job", "CuratorRun", "ModelFactory", "Provenance", "Change"}
    assert {each.__name__ for each in used if each not in own} <= internal
