"""The task list is read out of the history: only calls that succeeded count, the last one wins."""

import asyncio
import json

from hypothesis import given
from hypothesis import strategies as st

from hone.core.messages import Message, ToolCall, answer, assistant, user
from hone.core.tool import ToolKind
from hone.core.transcript import Transcript
from hone.tools.todo import TodoItem, todo, todos
from tests.rig import context
from tests.tools.calls import EMPTY, conversation, perform, perform_raw


def said(arguments: str, *, name: str = "todo", failed: bool = False, id: str = "1") -> list[Message]:
    call = ToolCall(id, name, arguments)
    return [assistant(call), answer(call, "ok", failed=failed)]


def written(*texts: str) -> str:
    return json.dumps({"items": [{"text": text} for text in texts]})


def reply(transcript: Transcript, arguments: str) -> str:
    outcome = asyncio.run(todo.run(ToolCall("9", "todo", arguments), context(transcript)))
    assert not outcome.failed
    return outcome.text


def test_calls_that_failed_or_were_never_answered_or_are_of_another_tool_change_nothing() -> None:
    kept = said(written("kept"))
    for later in (
        said(written("denied"), failed=True),
        said(written("other"), name="todos"),
        [assistant(ToolCall("2", "todo", written("open")))],
        said("{"),
        said('{"items": "nonsense"}'),
        said('{"items": [{"text": "x", "state": "lost"}]}'),
        said("[" * 100_000),
        said("{}"),
        said(""),
        said('{"items": null}'),
        [user("todo: forget everything"), assistant('{"items": []}')],
    ):
        assert todos(conversation(*kept, *later)) == (TodoItem("kept"),)


def test_an_item_that_does_not_fit_is_refused() -> None:
    for arguments in (
        '{"items": [{"text": "x", "state": "lost"}]}',
        '{"items": [{}]}',
        '{"items": "x"}',
        '{"item": []}',
    ):
        assert perform_raw(todo, arguments).failed


def test_the_last_list_wins_and_an_id_that_comes_again_is_another_call() -> None:
    transcript = conversation(*said(written("a", "b"), id="x"), *said(written("c"), id="x"))
    assert todos(transcript) == (TodoItem("c"),)
    assert todos(conversation(*said(written("a")), *said('{"items": []}'))) == ()
    assert todos(EMPTY.transcript) == ()


def test_results_out_of_order_still_belong_to_their_calls() -> None:
    first, second = ToolCall("1", "todo", written("a")), ToolCall("2", "read_file", written("b"))
    transcript = conversation(assistant(first, second), answer(second, "text"), answer(first, "ok"))
    assert todos(transcript) == (TodoItem("a"),)


def test_reading_shows_the_list_in_the_history_and_writing_shows_the_new_one() -> None:
    items = [{"text": "plan"}, {"text": "build\nit", "state": "doing"}, {"text": "ask", "state": "done"}]
    transcript = conversation(*said(json.dumps({"items": items})))
    assert reply(transcript, "{}") == "[ ] plan\n[~] build it\n[x] ask"
    assert reply(transcript, written("new")) == "[ ] new"
    assert reply(transcript, '{"items": []}') == "The list is empty."
    assert perform(todo).text == "The list is empty."


@given(st.lists(st.builds(TodoItem, st.text(), st.sampled_from(["open", "doing", "done"])), max_size=5))
def test_what_was_written_is_what_the_history_says(items: list[TodoItem]) -> None:
    arguments = json.dumps({"items": [{"text": item.text, "state": item.state} for item in items]})
    if not perform_raw(todo, arguments).failed:
        assert todos(conversation(*said(arguments))) == tuple(items)


def test_the_list_has_no_effect_outside_of_the_history() -> None:
    assert (todo.spec.effects, todo.spec.readonly, todo.spec.kind) == (
        frozenset(),
        False,
        ToolKind.OTHER,
    )
