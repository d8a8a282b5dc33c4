"""H3: a conversation that begins with a template says so, and every provider takes it."""

from itertools import pairwise

import pytest
from hypothesis import given

from hone.core.clock import ManualClock
from hone.core.messages import Message, Role, ToolCall, answer, assistant, user
from hone.core.prefix import Prefix
from hone.core.transcript import Transcript
from hone.core.trust import Trust, lowest
from hone.core.value import replace
from hone.features.templates.seeding import HEADING, seeded
from hone.features.templates.values import Template
from hone.models.anthropic import AnthropicMessages
from hone.models.endpoint import Endpoint
from hone.models.fake_provider.shapes import Format
from hone.models.http import Http
from hone.models.openai import OpenAIChat
from hone.prompt.compaction import MARK, drop_examples, plan, shorten, state
from hone.prompt.news import find_known
from hone.tools.todo import todos
from tests.doubles.requests import problems
from tests.given import NOON, conversations, prefixes, templates, transcript, words
from tests.rig import faults

PREFIX = Prefix("openai/m", "system")


def body(format: Format, prefix: Prefix, chain: Transcript) -> bytes:
    clock, endpoint = ManualClock(), Endpoint("test", "http://127.0.0.1:9")
    client = (OpenAIChat if format == "openai" else AnthropicMessages)(Http(clock), clock, endpoint)
    return client.body(prefix, chain)


@pytest.mark.parametrize("format", ["openai", "anthropic"])
@given(prefix=prefixes, template=templates, first=words)
def test_a_seeded_history_is_one_that_the_provider_accepts(
    format: Format, prefix: Prefix, template: Template, first: str
) -> None:
    chain = seeded(template, prefix.digest, NOON)
    assert faults(list(chain)) == []
    asked = chain.then(user(first), Trust.OWNER, NOON)
    assert [
        each for each in problems(format, body(format, prefix, asked)) if not each.startswith("system")
    ] == []


@given(templates)
def test_it_is_announced_marked_from_the_first_to_the_last_message_and_the_users_words_can_follow(
    template: Template,
) -> None:
    messages = list(seeded(template, "root", NOON))
    assert messages[0].note is not None
    assert messages[0].note.text.startswith(HEADING)
    assert f"Template {template.name} " in messages[0].note.text
    assert "not part of this conversation" in messages[0].note.text
    assert {message.template for message in messages} == {template.name}
    assert not any(message.text for message in messages if message.role is Role.USER)
    calls = [call for message in messages for call in message.calls]
    assert [(call.name, call.arguments) for call in calls] == [
        (example.tool, example.arguments) for example in template.examples
    ]
    assert [message.result.text for message in messages if message.result] == [
        example.result for example in template.examples
    ]
    roles = [Role.USER if message.role is Role.TOOL else message.role for message in messages]
    assert all(role is not then for role, then in pairwise([*roles, Role.USER]))


@given(templates)
def test_no_label_is_better_than_it_was(template: Template) -> None:
    nodes = seeded(template, "root", NOON).nodes
    for example, call, result in zip(template.examples, nodes[1:-1:2], nodes[2:-1:2], strict=True):
        assert call.trust <= example.call_trust
        assert result.trust == example.result_trust
    assert nodes[-1].trust <= lowest(
        each for x in template.examples for each in (x.call_trust, x.result_trust)
    )
    assert nodes[0].trust is Trust.AGENT


@pytest.mark.timeout(1_800)
@given(templates, conversations(turns=3))
def test_notes_stand_for_the_conversation_and_the_examples_are_gone(
    template: Template, messages: list[Message]
) -> None:
    chain = seeded(template, PREFIX.digest, NOON)
    for message in messages:
        chain = chain.then(message, Trust.OWNER if message.role is Role.USER else Trust.LOCAL, NOON)
    bare = transcript(PREFIX, messages)
    assert (todos(chain), find_known(chain)) == (todos(bare), find_known(bare))
    assert list(drop_examples(chain)) == messages
    cut = plan(chain, 0.25)
    assert (cut is None) == (plan(bare, 0.25) is None)
    if cut is None:
        return
    gone = chain.nodes[chain.examples : cut.end]
    short = shorten(chain, cut, "notes", state(gone, "todo"), NOON)
    assert [message.template for message in short] == [""] * len(short)
    assert [fault for fault in faults(list(short)) if "last word" not in fault] == []
    assert (short.nodes[0].message, short.nodes[1].message.text[: len(MARK)]) == (messages[0], MARK)
    assert short.nodes[1].trust <= lowest(node.trust for node in chain.nodes[: chain.examples])


def test_a_list_of_tasks_in_an_example_is_not_the_list_of_the_conversation() -> None:
    call = ToolCall("1", "todo", '{"items":[{"text":"dig"}]}')
    here = transcript(PREFIX, [user("hi"), assistant(call), answer(call, "ok")])
    there = transcript(PREFIX, [replace(message, template="t") for message in here])
    assert len(todos(here)) == 1
    assert todos(there) == ()
