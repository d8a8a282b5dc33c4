"""Rule 5 of dangers: each gate before what is known is made to raise, and then nothing becomes known."""

from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, NoReturn, SupportsIndex

import pytest

from hone import Hone
from hone.core.ids import SessionId
from hone.core.ledger import MEMORY, Actor, Author, ChangeState, Evidence
from hone.core.messages import ToolCall, assistant
from hone.core.permit import REVIEW, USER, Effect, Permit
from hone.core.tool import Outcome, Tool
from hone.core.transcript import Source, Transcript
from hone.core.trust import Trust
from hone.core.turn import Turn
from hone.core.value import replace
from hone.knowledge.journal import Add
from hone.knowledge.keeper import Keeper
from hone.knowledge.tools import knowledge_tools
from hone.knowledge.verdicts import KeeperRules, LearningMode
from hone.models.scripted import Scripted, call, lines
from hone.tools.wrappers import SafeTool
from tests.rig import Memory, Puppet, agent, asked, take_turn

SAID = "I always want tabs."
HERE = SessionId("5e55")
OWNERS = Author(Actor.AGENT, HERE, evidence=(Evidence(HERE, 1, Trust.OWNER, "0" * 64),), quotes=(SAID,))
"""What nothing stands against, but for a gate that is broken."""
NOTE = call("memory", action="add", text=SAID, evidence=[SAID])
KNOWN = (ValueError, LookupError, RecursionError, MemoryError)
"""What the judge expects to go wrong. Everything else is for the wall around all tools."""
FAULTS = [*KNOWN, RuntimeError, OSError, AssertionError]
faulty = pytest.mark.parametrize("fault", FAULTS)

Fault = type[Exception]


def raising(fault: Fault) -> Callable[..., Any]:
    def broken(*_: object, **__: object) -> NoReturn:
        raise fault("the gate broke")

    return broken


@asynccontextmanager
async def house(folder: Path) -> AsyncIterator[Hone]:
    async with Hone(model=Scripted(lines("hi")), folder=folder) as hone:
        yield hone


async def is_unknown(hone: Hone) -> bool:
    """Nothing took effect, neither in the ledger, nor on the disk, nor in a prompt."""
    keeper = hone.keeper
    made = await keeper.ledger.entries()
    active = [entry for entry in made if entry.change.standing is ChangeState.ACTIVE]
    printed = (hone.home / "MEMORY.md").exists()
    return not active and not printed and "tabs" not in (await hone.session()).agent.prefix.system


async def noted(keeper: Keeper, author: Author, text: str = SAID) -> str:
    """How it ended: the error's name, or why it waits."""
    try:
        entries = await keeper.note([(MEMORY, Add(text))], author)
    except Exception as error:  # noqa: BLE001  whatever it is, it must not be a success
        return type(error).__name__
    return entries[0].change.cause


async def turned(tool: Tool, ask: ToolCall = NOTE, permit: Permit = USER) -> Turn:
    """A turn of a model that makes this one call."""
    who = agent(Scripted(lines(assistant(ask), "done")), [tool], permit)
    return await take_turn(who, Memory(), asked(SAID))


def result(turn: Turn) -> str:
    return next(node.message.result.text for node in turn.nodes if node.message.result)


def memory_of(hone: Hone, source: Source | None = None) -> Tool:
    return next(
        tool for tool in knowledge_tools(hone.library, str(hone.folder), source) if tool.spec.name == "memory"
    )


async def test_with_every_gate_in_order_the_owners_words_become_known(tmp_path: Path) -> None:
    """The control."""
    async with house(tmp_path) as hone:
        assert result(await turned(memory_of(hone), permit=REVIEW)).startswith("Saved")
        assert not await is_unknown(hone)


class Torn(str):
    """Words that cannot be looked at."""

    fault: Fault

    def replace(self, old: str, new: str, count: SupportsIndex = -1) -> str:
        raise self.fault("torn")


@faulty
async def test_a_screen_that_raises_lets_nothing_through(fault: Fault, tmp_path: Path) -> None:
    words = Torn(SAID)
    words.fault = fault
    async with house(tmp_path) as hone:
        assert await noted(hone.keeper, OWNERS, words) == fault.__name__
        assert await is_unknown(hone)


class Lost(Transcript, frozen=True):
    """A conversation that cannot be read."""

    fault: Fault = ValueError

    def __getattribute__(self, name: str) -> Any:
        if name == "nodes":
            raise object.__getattribute__(self, "fault")("lost")
        return object.__getattribute__(self, name)


@faulty
async def test_evidence_that_cannot_be_looked_up_is_none(fault: Fault, tmp_path: Path) -> None:
    lost = Lost("", fault=fault)
    async with house(tmp_path) as hone:
        turn = await turned(memory_of(hone, Source(HERE, lost)))
        assert result(turn) == f"memory was refused: {fault.__name__} while Hone checked or ran it"
        assert await is_unknown(hone)


class Unsaid(tuple[str, ...]):
    """Quotes that break when they are read."""

    fault: Fault = ValueError

    def __iter__(self) -> Iterator[str]:
        raise self.fault("unsaid")


@faulty
async def test_quotes_that_cannot_be_compared_are_none(fault: Fault, tmp_path: Path) -> None:
    quotes = Unsaid((SAID,))
    quotes.fault = fault
    async with house(tmp_path) as hone:
        how = await noted(hone.keeper, replace(OWNERS, quotes=quotes, trust_floor=Trust.FOREIGN))
        waits = f"it could not be judged ({fault.__name__})"
        assert how == (waits if issubclass(fault, KNOWN) else fault.__name__)
        assert await is_unknown(hone)


@faulty
async def test_a_judge_that_raises_lets_nothing_through(fault: Fault, tmp_path: Path) -> None:
    class Modes(dict[Actor, LearningMode]):
        get = raising(fault)

    async with house(tmp_path) as hone:
        keeper = hone.keeper
        keeper.rules = KeeperRules(keeper.rules.limits, Modes())
        assert await noted(keeper, OWNERS) == fault.__name__
        assert await is_unknown(hone)


class Unchecked(Permit, frozen=True):
    """A permit that breaks when it is asked."""

    fault: Fault = ValueError

    def allows(self, effects: frozenset[Effect], *, readonly: bool = False, tool: str | None = None) -> bool:
        raise self.fault("unchecked")


@faulty
@pytest.mark.parametrize("permit", [USER, REVIEW], ids=["foreground", "review"])
async def test_a_permit_that_cannot_be_checked_is_a_no(fault: Fault, permit: Permit, tmp_path: Path) -> None:
    async with house(tmp_path) as hone:
        turn = await turned(memory_of(hone), permit=Unchecked(permit.effects, permit.attended, fault=fault))
        assert result(turn) == f"memory was refused: {fault.__name__} while Hone checked or ran it"
        assert await is_unknown(hone)


@faulty
async def test_what_cannot_be_redacted_is_read_by_nobody(fault: Fault, tmp_path: Path) -> None:
    async def page(_: ToolCall) -> Outcome:
        return Outcome("xobabaqu is the key")

    fetch = Puppet("fetch", frozenset({Effect.NETWORK}), act=page)
    turn = await turned(SafeTool(fetch, raising(fault)), call("fetch"))
    assert "xobabaqu" not in "".join(node.encoded.decode() for node in turn.nodes)
    async with house(tmp_path) as hone:
        assert await is_unknown(hone)
