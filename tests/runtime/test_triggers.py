"""E1: the counters' laws, over any conversation."""

import json
from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st

from hone.core.jobs import Counters, Topic, Topics, TurnSummary, count_topics
from hone.core.messages import Message, ToolCall, answer, assistant
from hone.core.topics import NAMES
from hone.runtime.triggers import configure_topics, count_turn, explain, summarize
from hone.settings.sections import Learning
from tests.given import conversations

few = st.integers(0, 12)
used = st.frozensets(st.sampled_from(["memory", "skill_manage", "todo"]))
turns = st.builds(TurnSummary, few, used)
topics = st.builds(lambda often, long: configure_topics(Learning(turns=often, iterations=long)), few, few)
counters = st.dictionaries(st.sampled_from(sorted(NAMES)), st.integers(1, 12))
Configured = Sequence[Topic]


def take(before: Counters, turn: TurnSummary, topics: Configured) -> tuple[Counters, Topics]:
    after, due, why = count_topics(before, count_turn(turn, topics))
    assert why == " and ".join(explain(topic) for topic in topics if topic.name in due)
    return after, due


def added(turn: TurnSummary, topic: Topic) -> int:
    """Written out once more: what counts towards each."""
    return {"memory": 1, "skills": turn.iterations}[topic.name]


def saved(turn: TurnSummary, topic: Topic) -> bool:
    return {"memory": "memory", "skills": "skill_manage"}[topic.name] in turn.changed_by


@given(counters, turns, topics)
def test_a_counter_goes_up_or_begins_anew_and_only_what_is_due_or_was_saved_begins_anew(
    before: Counters, turn: TurnSummary, topics: Configured
) -> None:
    after, due = take(before, turn, topics)
    assert after.keys() == NAMES
    for topic in topics:
        higher = before.get(topic.name, 0) + added(turn, topic)
        anew = saved(turn, topic) or topic.name in due
        assert after[topic.name] == (0 if anew else higher)


@given(counters, turns, topics)
def test_what_is_due_has_reached_its_interval_and_what_is_not_has_not(
    before: Counters, turn: TurnSummary, topics: Configured
) -> None:
    after, due = take(before, turn, topics)
    assert due <= NAMES
    for topic in topics:
        reached = before.get(topic.name, 0) + added(turn, topic) >= topic.interval > 0
        assert (topic.name in due) is (reached and not saved(turn, topic))
        assert not topic.interval or after[topic.name] < topic.interval


@given(st.lists(st.builds(TurnSummary, few), max_size=40), st.integers(1, 12), st.integers(1, 12))
def test_over_a_whole_conversation_no_turn_and_no_iteration_is_forgotten(
    turns: Sequence[TurnSummary], often: int, long: int
) -> None:
    now: Counters = {}
    memory, skills = 0, 0
    for turn in turns:
        now, due = take(now, turn, configure_topics(Learning(turns=often, iterations=long)))
        memory += "memory" in due
        skills += "skills" in due
    assert memory * often + now.get("memory", 0) == len(turns)
    total = sum(turn.iterations for turn in turns)
    assert skills * long + now.get("skills", 0) <= total
    assert (total >= long) is (skills > 0)


@given(st.lists(turns, max_size=20))
def test_with_intervals_of_nothing_nothing_is_ever_due(turns: Sequence[TurnSummary]) -> None:
    now: Counters = {}
    for turn in turns:
        now, due = take(now, turn, configure_topics(Learning(turns=0, iterations=0)))
        assert due == frozenset()


def test_what_another_version_counted_stays_as_it_is() -> None:
    after, due = take({"weather": 7}, TurnSummary(), configure_topics(Learning()))
    assert (after["weather"], due) == (7, frozenset())


@given(conversations(turns=1))
def test_an_iteration_is_a_reply_with_calls(messages: list[Message]) -> None:
    assert summarize(messages).iterations == sum(bool(message.calls) for message in messages)


def turn(name: str, arguments: str, *, failed: bool = False) -> list[Message]:
    call = ToolCall("c", name, arguments)
    return [assistant(call), answer(call, "", failed=failed), assistant("done")]


def test_only_a_call_that_saved_something_counts_as_saved() -> None:
    add, shelve = json.dumps({"action": "add"}), json.dumps({"action": "patch"})
    assert summarize(turn("memory", add)) == TurnSummary(1, frozenset({"memory"}))
    assert summarize(turn("skill_manage", shelve)) == TurnSummary(1, frozenset({"skill_manage"}))
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
        assert not summarize(messages).changed_by & {"memory", "skill_manage"}, messages
        assert summarize(messages).iterations == 1, messages


def test_the_reason_names_what_is_due_and_nothing_else() -> None:
    topics = configure_topics(Learning(turns=7, iterations=9))
    counts = count_turn(TurnSummary(1), topics)
    assert count_topics({"memory": 6}, counts)[2] == "7 turns"
    assert count_topics({"skills": 8}, counts)[2] == "9 tool iterations"
    assert count_topics({"memory": 6, "skills": 8}, counts)[2] == "7 turns and 9 tool iterations"
    assert count_topics({"memory": 5, "skills": 7}, counts)[2] == ""
