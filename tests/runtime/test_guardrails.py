"""Guardrails by table: when a warning is added, when a call is refused, and that no result is ever hidden."""

import asyncio
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hone.core.messages import ToolCall
from hone.core.tool import Outcome
from hone.core.value import replace
from hone.runtime.guardrails import Attempt, CallCounts, Guard, refusal, tally, warning
from hone.settings import Guardrails
from tests.tools.calls import EMPTY, Puppet

OFF = (0, 0)
PLAIN, WARNED, REFUSED = "plain", "warned", "refused"


class Turn:
    """One turn with a tool that obeys its arguments: {"fail": true} fails, {"say": x} says x."""

    def __init__(self, thresholds: Guardrails, *, readonly: bool = False) -> None:
        self.puppets = {name: Puppet(obey, name, readonly) for name in ("one", "two")}
        self.guard = Guard(thresholds)
        self.toolbox = self.guard.around(self.puppets)

    def outcome(self, arguments: str, name: str = "one") -> Outcome:
        return asyncio.run(self.toolbox[name].run(ToolCall("1", name, arguments), EMPTY))

    def step(self, name: str = "one", **arguments: object) -> str:
        outcome = self.outcome(json.dumps(arguments), name)
        if outcome.text.startswith("Not run: "):
            assert outcome.failed
            return REFUSED
        assert outcome.failed is bool(arguments.get("fail"))
        assert outcome.text.startswith(f"said {arguments.get('say')}")
        return WARNED if "[Warning: " in outcome.text else PLAIN


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


def test_the_same_read_only_result_is_warned_at_the_second_and_refused_after_the_fifth() -> None:
    turn = Turn(Guardrails(), readonly=True)
    assert [turn.step(say="x") for _ in range(7)] == [PLAIN, *[WARNED] * 4, *[REFUSED] * 2]
    assert turn.step(say="y") == PLAIN
    assert turn.step("two", say="x") == PLAIN


def test_a_tool_that_is_not_read_only_may_say_the_same_again() -> None:
    turn = Turn(Guardrails())
    assert [turn.step(say="x") for _ in range(10)] == [PLAIN] * 10


def test_a_success_starts_the_counts_again() -> None:
    turn = Turn(Guardrails())
    for number in range(0, 20, 2):
        assert [turn.step(fail=True, say=each) for each in (number, number + 1)] == [PLAIN, PLAIN]
        assert turn.step(say="fine") == PLAIN


A, B = '{"a":1}', '{"b":1}'


def failed(arguments: str, tool: str = "t") -> Attempt:
    return Attempt(tool, arguments, failed=True, readonly=True, result="error")


def saw(arguments: str, result: str, tool: str = "t", *, readonly: bool = True) -> Attempt:
    return Attempt(tool, arguments, failed=False, readonly=readonly, result=result)


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
        ([saw(A, "x", readonly=False), saw(A, "x", readonly=False)], CallCounts(0, 0, 0)),
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
    puppet = Puppet(lambda _: Outcome("bad arguments", failed=True))
    tool = Guard(Guardrails()).around({"puppet": puppet})["puppet"]
    texts = [asyncio.run(tool.run(ToolCall("1", "puppet", arguments), EMPTY)).text for _ in range(6)]
    assert [text[:5] for text in texts] == ["bad a"] * 5 + ["Not r"]


def test_a_tool_that_raises_counts_as_failing_and_its_exception_passes() -> None:
    def explode(call: ToolCall) -> Outcome:
        raise OSError("disk on fire")

    tool = Guard(Guardrails()).around({"puppet": Puppet(explode)})["puppet"]
    for _ in range(5):
        with pytest.raises(OSError, match="disk on fire"):
            asyncio.run(tool.run(ToolCall("1", "puppet", "{}"), EMPTY))
    assert asyncio.run(tool.run(ToolCall("1", "puppet", "{}"), EMPTY)).text.startswith("Not run: ")


def test_every_turn_has_a_guard_of_its_own_and_one_guard_sees_every_tool() -> None:
    turn = Turn(Guardrails(same_call=OFF))
    for _ in range(9):
        turn.step(fail=True)
    assert turn.step(fail=True) == REFUSED
    again = Guard(turn.guard.thresholds).around(turn.puppets)["one"]
    assert asyncio.run(again.run(ToolCall("1", "one", '{"fail":true}'), EMPTY)).text == "said None"
    assert turn.toolbox["one"].spec == turn.puppets["one"].spec


CALLS = st.lists(st.tuples(st.sampled_from(["one", "two"]), st.booleans(), st.integers(0, 2)), max_size=40)


@given(CALLS, st.booleans(), st.builds(Guardrails, *[st.tuples(st.integers(0, 4), st.integers(0, 6))] * 3))
def test_a_guard_never_hides_a_result(
    calls: list[tuple[str, bool, int]], readonly: bool, thresholds: Guardrails
) -> None:
    turn = Turn(thresholds, readonly=readonly)
    for name, fail, say in calls:
        reached = len(turn.puppets[name].calls)
        step = turn.step(name, fail=fail, say=say)
        assert len(turn.puppets[name].calls) - reached == (step != REFUSED)


def test_after_a_file_was_written_the_same_call_is_another_try() -> None:
    failing = [Attempt("test", "{}", failed=True)] * 5
    edit = Attempt("patch", "{}", failed=False, writes=True)
    assert tally(failing, "test", "{}").same_call == 5
    assert tally([*failing, edit], "test", "{}") == CallCounts(0, 5, 0)
    assert tally([*failing, replace(edit, failed=True)], "test", "{}").same_call == 5
    assert tally([*failing, edit, *failing[:2]], "test", "{}").same_call == 2
    reads = [Attempt("read", "{}", failed=False, readonly=True, result="same")] * 5
    assert (tally(reads, "read", "{}").same_result, tally([*reads, edit], "read", "{}").same_result) == (5, 0)
