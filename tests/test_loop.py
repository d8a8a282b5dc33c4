"""A1-A4, A6, A7: one turn, told as what a user could see of it."""

import asyncio
from collections.abc import Sequence

import pytest

from hone.core.errors import Conflict, Overflow, Rejected
from hone.core.events import CallEnded, Event, Notice
from hone.core.messages import Message, Role, ToolCall, assistant, user
from hone.core.model import Finish, Reply, Usage
from hone.core.permit import NOTHING, Effect, Permit
from hone.core.tool import Outcome, Tool, ToolKind
from hone.core.transcript import Node, Transcript
from hone.core.trust import Trust
from hone.core.turn import Origin, Stop
from hone.core.value import replace
from hone.loop import RunContext, run
from hone.models.scripted import Scripted, lines
from tests.doubles.faulty import Faulty
from tests.given import NOON
from tests.rig import Act, Memory, Puppet, agent, asked, faults, take_turn


def calls(*names: str, text: str = "") -> Message:
    made = [ToolCall(f"{name}-{index}", name, f'{{"n":{index}}}') for index, name in enumerate(names)]
    return assistant(*([text] if text else []), *made)


def results(turn_nodes: object) -> list[str]:
    return [node.message.result.text for node in turn_nodes if node.message.result]  # type: ignore[attr-defined]


async def test_a_turn_goes_on_until_the_model_answers_without_calls() -> None:
    memory = Memory()
    model = Scripted(lines(calls("look"), calls("look"), "found it"))
    turn = await take_turn(agent(model, [Puppet("look")]), memory)
    assert turn.stop is Stop.ANSWERED
    assert turn.text == "found it"
    assert [node.message.role for node in turn.nodes] == [Role.ASSISTANT, Role.TOOL] * 2 + [Role.ASSISTANT]
    assert turn.nodes == tuple(memory.nodes)
    assert len(turn.usage) == 3 == len(memory.usage)


async def test_read_only_calls_run_together_and_others_in_call_order_and_results_in_call_order() -> None:
    running: list[str] = []
    most: list[int] = []
    gate = asyncio.Event()

    async def slow(call: ToolCall) -> Outcome:
        running.append(call.id)
        most.append(len(running))
        if len(running) == 3:
            gate.set()
        if call.name == "read":
            await gate.wait()
        running.remove(call.id)
        return Outcome(call.id)

    tools = [Puppet("read", readonly=True, act=slow), Puppet("write", act=slow)]
    model = Scripted(lines(calls("read", "read", "read", "write", "write", "read"), "done"))
    turn = await asyncio.wait_for(take_turn(agent(model, tools), Memory()), 20)
    assert results(turn.nodes) == ["read-0", "read-1", "read-2", "write-3", "write-4", "read-5"]
    assert most == [1, 2, 3, 1, 1, 1]


async def test_a_failed_tool_is_data_for_the_model_and_an_exception_is_a_refusal() -> None:
    async def fails(call: ToolCall) -> Outcome:
        return Outcome("disk on fire", failed=True)

    async def raises(call: ToolCall) -> Outcome:
        raise ZeroDivisionError("secret detail")

    model = Scripted(lines(calls("fails", "raises"), "sorry"))
    turn = await take_turn(agent(model, [Puppet("fails", act=fails), Puppet("raises", act=raises)]), Memory())
    first, second = (node.message.result for node in turn.nodes if node.message.result)
    assert first is not None
    assert second is not None
    assert (first.text, first.failed, second.failed) == ("disk on fire", True, True)
    assert "ZeroDivisionError" in second.text
    assert "secret detail" not in second.text


async def test_a_spent_budget_ends_in_a_summary_whose_question_is_not_kept() -> None:
    replies = [calls("look"), calls("look"), replace_text(calls("look"), "half done")]
    model = Scripted(lines(*replies))
    memory = Memory()
    turn = await take_turn(agent(model, [Puppet("look")], calls=2), memory)
    assert turn.stop is Stop.BUDGET
    assert len(model.calls) == 3
    last_prefix, last_transcript = model.calls[-1]
    assert last_prefix is model.calls[0][0]
    assert "budget" in last_transcript.nodes[-1].message.text
    assert turn.text == "half done"
    assert not turn.nodes[-1].message.calls
    assert [node.message.role for node in turn.nodes].count(Role.USER) == 0
    assert faults([*asked(), *(node.message for node in turn.nodes)]) == []


def replace_text(message: Message, text: str) -> Message:
    return replace(message, parts=assistant(text).parts + message.parts)


@pytest.mark.parametrize(
    ("names", "budget", "asked_for"),
    [
        (["code"], 3, 9),
        (["code", "code"], 3, 9),
        (["code", "look"], 3, 3),
        (["look"], 3, 3),
    ],
)
async def test_a_refund_really_extends_the_turn_up_to_three_times(
    names: list[str], budget: int, asked_for: int
) -> None:
    model = Scripted(lambda messages: calls(*names))
    tools = [Puppet("code", kind=ToolKind.CODE), Puppet("look", readonly=True)]
    turn = await take_turn(agent(model, tools, calls=budget), Memory())
    assert len(model.calls) == asked_for + 1
    assert turn.stop is Stop.BUDGET


@pytest.mark.parametrize(
    ("call", "explanation"),
    [
        (ToolCall("a", "look", '{"n": '), "not valid JSON"),
        (ToolCall("a", "look", '{"n": NaN}'), "not valid JSON"),
        (ToolCall("a", "look", "[1]"), "not an object"),
        (ToolCall("a", "look", '{"n":"\\ud800"}'), "not valid Unicode"),
        (ToolCall("a", "look", '{"n":' + "[" * 100_000), "nested too deeply"),
        (ToolCall("a", "no such tool!", "{}"), "no tool named 'no such tool!'"),
        (ToolCall("a", "ghost", "{}"), "no tool named 'ghost'. Allowed here: look."),
        (ToolCall("a", "", "{}"), "no tool named ''"),
    ],
)
async def test_a_bad_call_gets_a_clear_error_and_a_history_any_provider_takes(
    call: ToolCall, explanation: str
) -> None:
    model = Scripted(lines(assistant(call), "I see"))
    turn = await take_turn(agent(model, [Puppet("look")]), Memory())
    assert turn.text == "I see"
    (result,) = results(turn.nodes)
    assert explanation in result
    (kept,) = turn.nodes[0].message.calls
    assert kept.name.replace("_", "").isalnum()
    assert faults([*asked(), *(node.message for node in turn.nodes)]) == []


@pytest.mark.parametrize("ids", [["a", "a"], ["", ""], ["ü!", "b c"], ["x" * 100, "x" * 100]])
async def test_ids_that_are_missing_odd_or_used_twice_are_replaced(ids: list[str]) -> None:
    reply = assistant(*(ToolCall(each, "look", "") for each in ids))
    model = Scripted(lines(reply, reply, "done"))
    turn = await take_turn(agent(model, [Puppet("look")]), Memory())
    assert turn.stop is Stop.ANSWERED
    assert faults([*asked(), *(node.message for node in turn.nodes)]) == []
    assert len(results(turn.nodes)) == 4


async def test_a_cut_answer_is_kept_and_said() -> None:
    memory = Memory()
    model = Scripted(lines(Reply(assistant("half a sen"), Finish.LENGTH, Usage())))
    turn = await take_turn(agent(model), memory)
    assert turn.text == "half a sen"
    assert any(isinstance(event, Notice) and "limit" in event.text for event in memory.events)


async def test_a_provider_that_fails_leaves_one_sentence_and_a_history_that_can_go_on() -> None:
    spoken = Scripted(lines(calls("look"), "never said"))
    model = Faulty(spoken, lambda call, _: Rejected("No.") if call else None)
    memory = Memory()
    turn = await take_turn(agent(model, [Puppet("look")]), memory)
    assert (turn.stop, turn.error) == (Stop.FAILED, "No.")
    assert faults([*asked(), *(node.message for node in memory.nodes)]) == []


async def test_words_that_were_shown_before_a_failure_are_kept() -> None:
    model = Faulty(
        Scripted(lines("one two three four")), lambda _, passed: Rejected("Cut.") if passed == 2 else None
    )
    turn = await take_turn(agent(model), Memory())
    assert turn.text.startswith("one ")
    assert turn.text.endswith("(cut short: Cut.)")


async def test_a_store_that_fails_ends_the_turn_with_its_sentence() -> None:
    async def keep(*_: object) -> None:
        raise Conflict("Another process went on with this session.")

    context = RunContext(keep, lambda _: None, Memory().context().clock)
    turn = await run(agent(Scripted(lines("hi"))), asked(), Origin.USER, context)
    assert (turn.stop, turn.nodes) == (Stop.FAILED, ())
    assert "Another process" in turn.error


async def test_results_are_kept_before_the_model_reads_them() -> None:
    gate, memory = asyncio.Event(), Memory()

    async def keep(nodes: Sequence[Node], usage: Usage | None) -> None:
        if any(node.message.result for node in nodes):
            await gate.wait()
        await memory.keep(nodes, usage)

    model = Scripted(lines(calls("look"), "done"))
    who, context = agent(model, [Puppet("look")]), replace(memory.context(), keep=keep)
    task = asyncio.create_task(run(who, asked(), Origin.USER, context))
    for _ in range(100):
        await asyncio.sleep(0)
    assert (len(model.calls), len(memory.nodes)) == (1, 1)
    gate.set()
    assert (await task).nodes == tuple(memory.nodes)


async def test_relief_takes_over_from_a_model_that_fails() -> None:
    broken = Faulty(Scripted(lines("no")), lambda *_: Rejected("Gone."))
    spare = agent(Scripted(lines("yes")))

    async def relieve(error: object, transcript: Transcript) -> tuple[object, Transcript] | None:
        return None if isinstance(error, Overflow) else (spare, transcript)

    context = replace(Memory().context(), fall_back=relieve)  # type: ignore[arg-type]
    turn = await run(agent(broken), asked(), Origin.USER, context)
    assert (turn.stop, turn.text) == (Stop.ANSWERED, "yes")


FORBIDDEN: list[Tool] = [Puppet(effect.value, frozenset({effect})) for effect in Effect]
REVIEW = Permit(frozenset({Effect.NOTE, Effect.SKILL}))


@pytest.mark.parametrize("alone", [True, False])
@pytest.mark.parametrize("permit", [NOTHING, REVIEW])
async def test_a_forbidden_call_is_refused_and_told_what_is_allowed(permit: Permit, alone: bool) -> None:
    names = [tool.spec.name for tool in FORBIDDEN]
    replies = [calls(name) for name in names] if alone else [calls(*names)]
    turn = await take_turn(agent(Scripted(lines(*replies, "ok")), FORBIDDEN, permit), Memory())
    allowed = sorted(effect.value for effect in permit.effects)
    for name, result in zip(names, results(turn.nodes), strict=True):
        assert ("is not permitted here" in result) == (name not in allowed)
        if name not in allowed:
            assert (f"Allowed here: {', '.join(allowed)}." if allowed else "No tool is allowed") in result


async def test_a_gate_that_raises_denies() -> None:
    class Broken(Permit, frozen=True):
        def allows(
            self, effects: frozenset[Effect], *, readonly: bool = False, tool: str | None = None
        ) -> bool:
            raise RuntimeError("the gate fell over")

    ran: list[str] = []

    async def act(call: ToolCall) -> Outcome:
        ran.append(call.name)
        return Outcome("ran")

    tools = [Puppet("one", act=act), Puppet("two", readonly=True, act=act)]
    turn = await take_turn(agent(Scripted(lines(calls("one", "two"), "ok")), tools, Broken()), Memory())
    assert ran == []
    assert all("was refused" in result for result in results(turn.nodes))


def brings(trust: Trust) -> Act:
    async def act(call: ToolCall) -> Outcome:
        return Outcome("data", trust=trust)

    return act


LOCAL, FOREIGN, AGENT = Trust.LOCAL, Trust.FOREIGN, Trust.AGENT
SOURCES: list[Tool] = [
    Puppet("here", frozenset({Effect.READ}), readonly=True, act=brings(LOCAL)),
    Puppet("elsewhere", frozenset({Effect.READ}), readonly=True, act=brings(FOREIGN)),
    Puppet("fetch", frozenset({Effect.NETWORK}), readonly=True, act=brings(FOREIGN)),
    Puppet("shell", frozenset({Effect.EXECUTE}), act=brings(LOCAL), network_flag="net"),
    Puppet("clean_child", frozenset({Effect.SPAWN}), act=brings(LOCAL)),
    Puppet("foul_child", frozenset({Effect.SPAWN}), act=brings(FOREIGN)),
    Puppet("list", act=brings(AGENT)),
]
NET = ToolCall("n", "shell", '{"net": true}')
ODD = ToolCall("o", "shell", '{"net": "no"}')
OFF = ToolCall("f", "shell", '{"net": false}')


@pytest.mark.parametrize(
    ("batches", "labels"),
    [
        ([["here"], ["here"]], [LOCAL, LOCAL]),
        ([["elsewhere"], ["here"]], [FOREIGN, LOCAL]),
        ([["fetch"], ["here"], ["shell"]], [FOREIGN, FOREIGN, FOREIGN]),
        ([["here", "fetch"], ["here"]], [FOREIGN, FOREIGN, FOREIGN]),
        ([["here"], [NET], ["here"]], [LOCAL, FOREIGN, FOREIGN]),
        ([["here"], [ODD], ["here"]], [LOCAL, FOREIGN, FOREIGN]),
        ([[OFF], ["here"]], [LOCAL, LOCAL]),
        ([["clean_child"], ["here"]], [LOCAL, LOCAL]),
        ([["foul_child"], ["here"]], [FOREIGN, FOREIGN]),
        ([["list"], ["here"], ["list"]], [AGENT, LOCAL, LOCAL]),
        ([["list"], ["elsewhere"], ["list"]], [AGENT, FOREIGN, FOREIGN]),
        ([["ghost"], ["here"]], [AGENT, LOCAL]),
    ],
)
async def test_the_label_of_a_result_follows_from_what_was_done(
    batches: list[list[str | ToolCall]], labels: list[Trust]
) -> None:
    replies = [
        assistant(*(each if isinstance(each, ToolCall) else ToolCall("", each, "{}") for each in batch))
        for batch in batches
    ]
    memory = Memory()
    who = agent(Scripted(lines(*replies, "done")), SOURCES)
    turn = await take_turn(who, memory)
    assert [node.trust for node in turn.nodes if node.message.result] == labels
    lowest = Trust.OWNER
    for node in turn.nodes:
        lowest = min(lowest, node.trust)
        assert node.message.result or node.trust <= lowest
    later = asked().extended(turn.nodes).then(user("more"), Trust.OWNER, NOON)
    again = await take_turn(
        agent(Scripted(lines(*replies, "done", calls("here"), "end")), SOURCES), Memory(), later
    )
    tainted = FOREIGN if labels[-1] is FOREIGN and batches[-1] != ["list"] else LOCAL
    assert [node.trust for node in again.nodes if node.message.result] == [tainted]


async def test_a_refused_call_to_the_network_spoils_nothing() -> None:
    permit = Permit(frozenset({Effect.READ, Effect.EXECUTE}))
    model = Scripted(lines(calls("fetch"), assistant(NET), calls("here"), "done"))
    turn = await take_turn(agent(model, SOURCES, permit), Memory())
    assert [node.trust for node in turn.nodes if node.message.result] == [AGENT, AGENT, LOCAL]


async def test_a_finished_call_is_never_reported_as_cut_off() -> None:
    """Two reads run together; one is done when the interrupt comes."""
    memory, done = Memory(), asyncio.Event()

    def emit(event: Event) -> None:
        if isinstance(event, CallEnded):
            done.set()

    async def act(call: ToolCall) -> Outcome:
        if call.id == "read-1":
            await asyncio.Event().wait()
        return Outcome("42", failed=False)

    model = Scripted(lines(calls("read", "read"), "never"))
    who = agent(model, [Puppet("read", readonly=True, act=act)])
    task = asyncio.create_task(run(who, asked(), Origin.USER, replace(memory.context(), emit=emit)))
    await done.wait()
    task.cancel()
    turn = await task
    assert turn.stop is Stop.INTERRUPTED
    assert results(turn.nodes) == ["42", "did not finish: interrupted"]


async def fails(call: ToolCall) -> Outcome:
    return Outcome("not like this", failed=True)


@pytest.mark.parametrize(
    ("names", "requests"),
    [
        (["write", "write"], 1),
        (["write", "fail"], 2),
        (["write", "look"], 2),
        (["write", "wander"], 2),
        (["write", "nowhere"], 2),
    ],
    ids=["all succeed", "one fails", "one looks", "one does nothing", "one is unknown"],
)
async def test_a_run_that_ends_when_it_is_done_asks_again_only_where_something_is_left(
    names: list[str], requests: int
) -> None:
    tools = [
        Puppet("write", frozenset({Effect.NOTE})),
        Puppet("fail", frozenset({Effect.NOTE}), act=fails),
        Puppet("look", frozenset({Effect.NOTE}), readonly=True),
        Puppet("wander"),
    ]
    model = Scripted(lines(calls(*names), "done"))
    acting = agent(model, tools)
    until_done = replace(acting, limits=replace(acting.limits, until_done=True))
    turn = await take_turn(until_done, Memory())
    assert (turn.stop, len(turn.usage)) == (Stop.ANSWERED, requests)
    usual = await take_turn(agent(Scripted(lines(calls("write"), "done")), tools), Memory())
    assert len(usual.usage) == 2
