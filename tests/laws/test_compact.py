"""A5: a shortened conversation is valid, keeps first and last words and its task list, and gains no trust."""

import json
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from hone.core.messages import Message, Role, ToolCall, answer, assistant
from hone.core.prefix import Prefix
from hone.core.transcript import Transcript
from hone.core.trust import Trust
from hone.core.value import replace
from hone.prompt.compaction import MARK, digest, plan, shorten, state
from hone.tools.todo import todos
from tests.given import NOON, conversations, trusts
from tests.rig import faults
from tests.tier import fewer

PREFIX = Prefix("openai/m", "system")


@st.composite
def long_conversations(draw: st.DrawFn) -> Transcript:
    """Several turns; some replies also set the task list; any label."""
    chain = Transcript(PREFIX.digest)
    for turn in range(draw(st.integers(1, 5))):
        for message in draw(conversations(turns=1)):
            chain = chain.then(_renamed(message, turn), draw(trusts), NOON)
        if draw(st.booleans()):
            items = draw(st.lists(st.sampled_from(["dig", "plant", "water"]), max_size=2))
            call = ToolCall(f"todo-{turn}", "todo", json.dumps({"items": [{"text": each} for each in items]}))
            chain = chain.then(assistant(call), Trust.AGENT, NOON)
            chain = chain.then(answer(call, "ok", failed=draw(st.booleans())), Trust.AGENT, NOON)
            chain = chain.then(assistant("next"), Trust.AGENT, NOON)
    return chain


def _renamed(message: Message, turn: int) -> Message:
    """Call ids are unique in a turn; made unique in the conversation."""
    if message.result:
        return Message(Role.TOOL, (replace(message.result, call=f"{turn}-{message.result.call}"),))
    return Message(
        message.role,
        tuple(
            replace(part, id=f"{turn}-{part.id}") if isinstance(part, ToolCall) else part
            for part in message.parts
        ),
    )


def last_question(transcript: Transcript) -> Message:
    return next(message for message in reversed(list(transcript)) if message.role is Role.USER)


@fewer(40)
@given(long_conversations(), st.floats(0, 1))
def test_a_shortened_conversation_is_valid_and_keeps_what_it_must(whole: Transcript, tail: float) -> None:
    cut = plan(whole, tail)
    if cut is None:
        return
    gone, rest = whole.nodes[: cut.end], whole.nodes[cut.end :]
    short = shorten(whole, cut, "notes", state(gone, "todo"), NOON)
    messages = list(short)
    assert [fault for fault in faults(messages) if "last word" not in fault] == []
    assert messages[0] == whole.nodes[0].message
    assert messages[1].text.startswith(MARK)
    assert messages[len(messages) - len(rest) :] == [node.message for node in rest]
    assert last_question(whole) in messages
    assert todos(short) == todos(whole)
    assert short.trust <= min(Trust.AGENT, whole.trust)
    roles = [message.role for message in messages if message.role is not Role.TOOL]
    assert all(role is not then or role is Role.ASSISTANT for role, then in pairwise(roles))


@fewer(40)
@given(long_conversations())
def test_shortening_comes_to_an_end(whole: Transcript) -> None:
    rounds = 0
    while (cut := plan(whole, 0)) is not None:
        whole = shorten(whole, cut, "notes", state(whole.nodes[: cut.end], "todo"), NOON)
        rounds += 1
        assert rounds < 5


@fewer(40)
@given(long_conversations())
def test_notes_without_a_model_have_what_the_user_said(whole: Transcript) -> None:
    notes = digest(whole.nodes)
    for message in whole:
        if message.role is Role.USER:
            assert " ".join(message.text.split()[:20]) in notes
