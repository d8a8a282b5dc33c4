"""Guardrails by table: when a warning is added, when a call is refused, and that no result is ever hidden."""

import asyncio
import json
from functools import partial

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hone.core.messages import ToolCall
from hone.core.permit import Effect
from hone.core.tool import Outcome, ToolSpec, refused
from hone.core.value import replace
from hone.runtime.guardrails import Attempt, CallCounts, Guard, refusal, tally, warning
from hone.settings.sections import Guardrails
from tests.tools.calls import EMPTY, Puppet

OFF = (0, 0)
DEFAULTS = Guardrails()
PLAIN, WARNED, REFUSED = "plain", "warned", "refused"


class Turn:
    """One turn with a tool that obeys its arguments: {"fail": true} fails, {"say": x} says x."""

    def __init__(self, thresholds: Guardrails = DEFAULTS) -> None:
        self.puppets = {name: Puppet(obey, name) for name in ("one", "two")}
        self.guard = Guard(thresholds)

    def outcome(self, arguments: str, name: str = "one", fault: str = "") -> Outcome:
        puppet, called = self.puppets.get(name), ToolCall("1", name, arguments)
        if puppet and not fault:
            act = partial(puppet.run, called, EMPTY)
        else:
            act = partial(refuse, fault or f"there is no tool named {name!r}")
        return asyncio.run(self.guard.watch(called, puppet.spec if puppet else None, act, fault))

    def step(self, name: str = "one", **arguments: object) -> str:
        outcome = self.outcome(json.dumps(arguments), name)
        if outcome.text.startswith("Not run: "):
            assert outcome.failed
            return REFUSED
        assert outcome.failed is bool(arguments.get("fail"))
        assert outcome.text.startswith(f"said {arguments.get('say')}")
        return WARNED if "[Warning: " in outcome.text else PLAIN


async def refuse(reason: str) -> Outcome:
    return refused(reason)


def obey(call: ToolCall) -> Outcome:
    arguments = json.loads(call.arguments)
    return Outcome(f"said {arguments.get('say')}", failed=bool(arguments.get("fail")))


def test_the_same_call_failing_is_warned_at_the_second_and_refused_after_the_fifth() -> None:
    turn = Turn(Guardrails(same_tool=OFF, same_result=OFF))
    assert [turn.step(fail=True) for _ in range(8)] == [PLAIN, *[WARNED] * 4, *[REFUSED] * 3]
    assert len(turn.puppets["one"].calls) == 5


def test_the_same_tool_failing_is_warned_at_the_third_and_refused_after_the_eighth() -> None:
    turn = Turn(Guardrails(same_call=OFF, same_result=OFF))
    steps = [turn.step(fail=True, say=number) for number in range(10)]
    assert steps == [PLAIN, PLAIN, *[WARNED] * 6, *[REFUSED] * 2]
    assert len(turn.puppets["one"].calls) == 8
    assert turn.step("two", fail=True) == PLAIN


def test_the_same_result_of_any_tool_is_warned_at_the_second_and_refused_after_the_fifth() -> None:
    turn = Turn()
    assert [turn.step(say="x") for _ in range(7)] == [PLAIN, *[WARNED] * 4, *[REFUSED] * 2]
    assert turn.step(say="y") == PLAIN
    assert turn.step("two", say="x") == PLAIN


def test_tools_that_do_not_exist_count_together_whatever_their_names() -> None:
    turn = Turn()
    texts = [turn.outcome("{}", f"tool_{number}").text for number in range(10)]
    assert ["[Warning: " in text for text in texts[:8]] == [False, False, *[True] * 6]
    assert [text[:9] for text in texts[8:]] == ["Not run: "] * 2
    assert turn.step(say="known") == PLAIN
    assert turn.outcome("{}", "tool_11").text == "there is no tool named 'tool_11'"


def test_malformed_calls_count_as_failures_of_their_tool_and_not_of_the_call_they_stand_for() -> None:
    turn = Turn(Guardrails(same_call=OFF))
    broken = [turn.outcome("{}", fault=f"the arguments are not JSON: {number}").text for number in range(9)]
    assert broken[8].startswith("Not run: this tool has failed 8 times in a row")
    again = Turn()
    for number in range(4):
        again.outcome("{}", fault=f"the arguments are not JSON: {number}")
    assert "with these arguments" not in again.outcome('{"fail":true}').text


def test_a_model_that_continues_after_refusals_ends_its_turn() -> None:
    turn, ends = Turn(), []
    for _ in range(8):
        turn.step(say="x")
        ends.append(bool(turn.guard.end_step()))
    assert ends == [False] * 7 + [True]


def test_a_batch_of_refused_calls_counts_once_and_something_new_counts_as_progress() -> None:
    turn = Turn()
    for number in range(30):
        for _ in range(10):
            turn.step(say="x")
        if number % 3 == 2:
            assert turn.step(say=number) == PLAIN
        assert not turn.guard.end_step()


def test_a_success_starts_the_counts_again() -> None:
    turn = Turn(Guardrails())
    for number in range(0, 20, 2):
        assert [turn.step(fail=True, say=each) for each in (number, number + 1)] == [PLAIN, PLAIN]
        assert turn.step(say=f"fine {number}") == PLAIN


A, B = '{"a":1}', '{"b":1}'


def failed(arguments: str, tool: str = "t") -> Attempt:
    return Attempt(tool, arguments, failed=True, result="error")


def saw(arguments: str, result: str, tool: str = "t") -> Attempt:
    return Attempt(tool, arguments, failed=False, result=result)


@pytest.mark.parametrize(
    ("attempts", "expected"),
    [
        ([], CallCounts(0, 0, 0)),
        ([failed(A)], CallCounts(1, 1, 0)),
        ([failed(A), failed(A)], CallCounts(2, 2, 0)),
        ([failed(A), failed(B), failed(A)], CallCounts(2, 3, 0)),
        ([failed(B), failed(B)], CallCounts(0, 2, 0)),
        ([failed(A, "u"), failed(A, "u")], CallCounts(0, 0, 0)),
        ([failed(A), failed(A, "u"), saw(A, "x", "u"), failed(A)], CallCounts(2, 2, 0)),
        ([failed(A), saw(A, "x")], CallCounts(0, 0, 1)),
        ([failed(A), saw(A, "x"), failed(A)], CallCounts(1, 1, 1)),
        ([failed(A), saw(B, "x"), failed(A)], CallCounts(2, 1, 0)),
        ([saw(A, "x"), saw(A, "x"), saw(A, "x")], CallCounts(0, 0, 3)),
        ([saw(A, "x"), saw(A, "y"), saw(A, "x")], CallCounts(0, 0, 1)),
        ([saw(A, "x"), saw(B, "x"), saw(A, "x")], CallCounts(0, 0, 2)),
        ([saw(A, "x"), failed(A), saw(A, "x")], CallCounts(0, 0, 2)),
    ],
)
def test_what_counts(attempts: list[Attempt], expected: CallCounts) -> None:
    assert tally(attempts, "t", A) == expected


@pytest.mark.parametrize(
    ("counts", "failing", "warned", "refused"),
    [
        (CallCounts(), False, None, None),
        (CallCounts(1, 2, 1), True, None, None),
        (CallCounts(2, 2, 0), True, "this call has failed 2 times", None),
        (CallCounts(4, 4, 0), True, "this call has failed 4 times", None),
        (CallCounts(5, 5, 0), True, "this call has failed 5 times", "failed 5 times with these arguments"),
        (CallCounts(1, 3, 0), True, "this tool has failed 3 times", None),
        (CallCounts(0, 7, 0), True, "this tool has failed 7 times", None),
        (CallCounts(0, 8, 0), True, "this tool has failed 8 times", "failed 8 times in a row"),
        (CallCounts(0, 0, 2), False, "same result 2 times", None),
        (CallCounts(0, 0, 4), False, "same result 4 times", None),
        (CallCounts(0, 0, 5), False, "same result 5 times", "same result 5 times"),
        (CallCounts(1, 1, 4), True, None, None),
    ],
)
def test_what_is_said_at_which_count(
    counts: CallCounts, failing: bool, warned: str | None, refused: str | None
) -> None:
    for said, expected in (
        (warning(counts, Guardrails(), failed=failing), warned),
        (refusal(counts, Guardrails()), refused),
    ):
        assert (said is None) == (expected is None)
        assert (expected or "") in (said or "")


def test_a_threshold_of_zero_is_off() -> None:
    off = Guardrails(OFF, OFF, OFF)
    assert refusal(CallCounts(99, 99, 99), off) is None
    assert [warning(CallCounts(99, 99, 99), off, failed=failing) for failing in (True, False)] == [None, None]


@pytest.mark.parametrize(
    ("first", "second", "same"),
    [
        ('{"fail":1,"b":2}', '{ "b": 2, "fail": 1 }', True),
        ('{"fail":1,"b":"\\u00e9"}', '{"fail":1,"b":"é"}', True),
        ('{"fail":1,"b":2}', '{"fail":1,"b":"2"}', False),
        ('{"fail":1,"b":[1,2]}', '{"fail":1,"b":[2,1]}', False),
    ],
)
def test_arguments_are_compared_by_their_value(first: str, second: str, same: bool) -> None:
    turn = Turn(Guardrails(same_tool=OFF))
    turn.outcome(first)
    assert ("[Warning: " in turn.outcome(second).text) is same


@pytest.mark.parametrize("arguments", ["{", "", "[" * 100_000, "\ud800", "NaN"])
def test_arguments_that_are_no_json_are_compared_as_they_are(arguments: str) -> None:
    turn = Turn()
    turn.puppets["one"] = Puppet(lambda _: Outcome("bad arguments", failed=True))
    texts = [turn.outcome(arguments).text for _ in range(6)]
    assert [text[:5] for text in texts] == ["bad a"] * 5 + ["Not r"]


def test_a_tool_that_raises_counts_as_failing_and_its_exception_passes() -> None:
    def explode(call: ToolCall) -> Outcome:
        raise OSError("disk on fire")

    turn = Turn()
    turn.puppets["one"] = Puppet(explode)
    for _ in range(5):
        with pytest.raises(OSError, match="disk on fire"):
            turn.outcome("{}")
    assert turn.outcome("{}").text.startswith("Not run: ")


CALLS = st.lists(st.tuples(st.sampled_from(["one", "two"]), st.booleans(), st.integers(0, 2)), max_size=40)


@given(CALLS, st.builds(Guardrails, *[st.tuples(st.integers(0, 4), st.integers(0, 6))] * 3))
def test_a_guard_never_hides_a_result(calls: list[tuple[str, bool, int]], thresholds: Guardrails) -> None:
    turn = Turn(thresholds)
    for name, fail, say in calls:
        reached = len(turn.puppets[name].calls)
        step = turn.step(name, fail=fail, say=say)
        assert len(turn.puppets[name].calls) - reached == (step != REFUSED)


def test_after_a_file_was_written_the_same_call_is_another_try() -> None:
    failing = [Attempt("test", "{}", failed=True)] * 5
    edit = Attempt("patch", "{}", failed=False, writes=True, new=True)
    assert tally(failing, "test", "{}").same_call == 5
    assert tally([*failing, edit], "test", "{}") == CallCounts(0, 0, 0)
    assert tally([*failing, replace(edit, failed=True, new=False)], "test", "{}").same_call == 5
    assert tally([*failing, replace(edit, new=False)], "test", "{}").same_call == 5
    assert tally([*failing, edit, *failing[:2]], "test", "{}").same_call == 2
    reads = [Attempt("read", "{}", failed=False, result="same")] * 5
    assert (tally(reads, "read", "{}").same_result, tally([*reads, edit], "read", "{}").same_result) == (5, 0)


def told(turn: Turn, tool: str, arguments: str, result: Outcome, *, writes: bool) -> str:
    """Return what the model reads when a tool behaves like this."""

    async def act() -> Outcome:
        return result

    effects = frozenset({Effect.WRITE} if writes else ())
    called, spec = ToolCall("1", tool, json.dumps({"is": arguments})), ToolSpec(tool, "{}", effects)
    return asyncio.run(turn.guard.watch(called, spec, act)).text


Step = tuple[str, str, str, bool]
"""A tool, its arguments, what it says, and whether it fails. `patch` and `terminal` write."""
HONEST: dict[str, list[Step]] = {
    "polling a build whose output grows": [
        ("process", "output 1", f"step {number} of 60 [running for {number} s]", False)
        for number in range(60)
    ],
    "running tests after every edit, until they pass": [
        step
        for number in range(30)
        for step in (
            ("patch", f"edit {number}", "Changed parser.py.", False),
            ("terminal", "pytest", "1 failed [exit code 1; 0.1 s]", True),
        )
    ],
    "running tests that pass after every edit": [
        step
        for number in range(30)
        for step in (
            ("patch", f"edit {number}", "Changed parser.py.", False),
            ("terminal", "pytest", "5 passed [exit code 0; 0.1 s]", False),
        )
    ],
    "updating the list of tasks": [
        ("todo", f"{number} of 40 done", "The list is kept.", False) for number in range(40)
    ],
    "reading a log that grows": [
        ("read_file", "server.log", "\n".join(f"line {each}" for each in range(number)), False)
        for number in range(40)
    ],
    "reading many files, a few of which are missing": [
        (
            "read_file",
            f"{number}.py",
            "There is no such file." if number % 3 == 0 else f"text {number}",
            number % 3 == 0,
        )
        for number in range(60)
    ],
    "editing a file, looking at it, and editing it again": [
        step
        for number in range(30)
        for step in (
            ("write_file", f"version {number}", "Wrote notes.md.", False),
            ("read_file", "notes.md", f"version {number}", False),
        )
    ],
}
WRITERS = ("patch", "terminal", "write_file")


@pytest.mark.parametrize("pattern", HONEST)
def test_honest_repetition_is_never_refused_and_ends_no_turn(pattern: str) -> None:
    turn = Turn()
    for tool, arguments, result, fails in HONEST[pattern]:
        text = told(turn, tool, arguments, Outcome(result, failed=fails), writes=tool in WRITERS)
        assert text.startswith(result)
        assert not turn.guard.end_step()


CIRCLES = st.lists(
    st.tuples(
        st.sampled_from(["todo", "terminal", "read_file", "nothing"]), st.sampled_from("abc"), st.booleans()
    ),
    min_size=1,
    max_size=4,
    unique_by=lambda step: step[:2],
)


@given(CIRCLES)
def test_every_circle_ends_whatever_is_in_it(circle: list[tuple[str, str, bool]]) -> None:
    """A law: calls that are made round and round, with the results they always had, end the turn."""
    turn, rounds = Turn(), 0
    while rounds < 20:
        rounds += 1
        for tool, arguments, fails in circle:
            told(turn, tool, arguments, Outcome("as before", failed=fails), writes=tool == "terminal")
            if turn.guard.end_step():
                assert rounds <= 6 + 3
                return
    raise AssertionError("the turn never ended")


@given(st.lists(st.tuples(st.sampled_from(["one", "two"]), st.booleans()), max_size=60))
def test_a_turn_in_which_every_call_is_new_and_succeeds_hears_nothing(calls: list[tuple[str, bool]]) -> None:
    turn = Turn()
    for number, (tool, writes) in enumerate(calls):
        assert told(turn, tool, str(number), Outcome("fine"), writes=writes) == "fine"
        assert not turn.guard.end_step()
