"""E1: the counters' laws, over any conversation."""

import json
from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st

from hone.core.jobs import Counters, Topic
from hone.core.messages import Message, ToolCall, answer, assistant
from hone.runtime.triggers import Ending, Intervals, counted, ending, why
from tests.given import conversations

few = st.integers(0, 12)
endings = st.builds(Ending, few, st.booleans(), st.booleans())
intervals = st.builds(Intervals, few, few)
counters = st.builds(Counters, few, few)


@given(counters, endings, intervals)
def test_a_counter_goes_up_or_begins_anew_and_only_what_is_due_or_was_saved_begins_anew(
    before: Counters, turn: Ending, every: Intervals
) -> None:
    after, due = counted(before, turn, every)
    assert after.turns in (0, before.turns + 1)
    assert after.iterations in (0, before.iterations + turn.iterations)
    assert (after.turns == 0) is (turn.noted or Topic.MEMORY in due)
    assert after.iterations == 0 or not (turn.shelved or Topic.SKILLS in due)
    if after.iterations == 0 and before.iterations + turn.iterations:
        assert turn.shelved or Topic.SKILLS in due


@given(counters, endings, intervals)
def test_what_is_due_has_reached_its_interval_and_what_is_not_has_not(
    before: Counters, turn: Ending, every: Intervals
) -> None:
    after, due = counted(before, turn, every)
    reached = not turn.noted and before.turns + 1 >= every.turns > 0
    assert (Topic.MEMORY in due) is reached
    reached = not turn.shelved and before.iterations + turn.iterations >= every.iterations > 0
    assert (Topic.SKILLS in due) is reached
    assert not every.turns or after.turns < every.turns
    assert not every.iterations or after.iterations < every.iterations


@given(st.lists(st.builds(Ending, few), max_size=40), st.integers(1, 12), st.integers(1, 12))
def test_over_a_whole_conversation_no_turn_and_no_iteration_is_forgotten(
    turns: Sequence[Ending], often: int, long: int
) -> None:
    now, memory, skills = Counters(), 0, 0
    for turn in turns:
        now, due = counted(now, turn, Intervals(often, long))
        memory += Topic.MEMORY in due
        skills += Topic.SKILLS in due
    assert memory * often + now.turns == len(turns)
    total = sum(turn.iterations for turn in turns)
    assert skills * long + now.iterations <= total
    assert (total >= long) is (skills > 0)


@given(st.lists(endings, max_size=20))
def test_with_intervals_of_nothing_nothing_is_ever_due(turns: Sequence[Ending]) -> None:
    now = Counters()
    for turn in turns:
        now, due = counted(now, turn, Intervals(0, 0))
        assert due == frozenset()


@given(conversations(turns=1))
def test_an_iteration_is_a_reply_with_calls(messages: list[Message]) -> None:
    assert ending(messages) == Ending(sum(bool(message.calls) for message in messages))


def turn(name: str, arguments: str, *, failed: bool = False) -> list[Message]:
    call = ToolCall("c", name, arguments)
    return [assistant(call), answer(call, "", failed=failed), assistant("done")]


def test_only_a_call_that_saved_something_counts_as_saved() -> None:
    add, shelve = json.dumps({"action": "add"}), json.dumps({"action": "patch"})
    assert ending(turn("memory", add)) == Ending(1, noted=True)
    assert ending(turn("skill_manage", shelve)) == Ending(1, shelved=True)
    for messages in (
        turn("memory", add, failed=True),
        turn("memory", json.dumps({"action": "list"})),
        turn("skills_list", "{}"),
        turn("memory", "not JSON"),
        turn("memory", "[]"),
        turn("memory", "[" * 100_000),
        [assistant(ToolCall("c", "memory", add)), assistant("no result")],
        [answer(ToolCall("c", "memory", add), "no call"), assistant(ToolCall("d", "todo", ""))],
    ):
        assert ending(messages) == Ending(1), messages


def test_the_reason_names_what_is_due_and_nothing_else() -> None:
    every = Intervals(7, 9)
    assert why(frozenset({Topic.MEMORY}), every) == "7 turns"
    assert why(frozenset({Topic.SKILLS}), every) == "9 tool iterations"
    assert why(frozenset(Topic), every) == "7 turns and 9 tool iterations"
