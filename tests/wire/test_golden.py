"""The exact bytes of a request. A change here empties every provider's cache for every running session."""

from pathlib import Path

import pytest

from hone.core.clock import SystemClock
from hone.core.messages import Image, SystemNote, Thinking, ToolCall, answer, assistant, user
from hone.core.prefix import Prefix
from hone.models.anthropic import AnthropicMessages
from hone.models.cacherules import extend, find_rule, marks_of
from hone.models.endpoint import Endpoint
from hone.models.http import Http
from hone.models.marked_chat import MarkedChat
from hone.models.openai import OpenAIChat
from tests.given import transcript

CLOCK = SystemClock()
ENDPOINT = Endpoint("nobody", "http://127.0.0.1:9")
HOUR = extend(find_rule("anthropic", "some-model", "anthropic"), "1h")
ROUTED = find_rule("openrouter", "anthropic/some-model")
NEWEST = find_rule("openai", "gpt-5.6")
GOLDEN = Path(__file__).with_name("golden")
PARAMETERS = '{"properties":{"path":{"type":"string"}},"type":"object"}'
TOOL = f'{{"description":"Read a file.","name":"read_file","parameters":{PARAMETERS}}}'
CALLS = (ToolCall("c1", "read_file", '{"path": "a.txt"}'), ToolCall("c2", "read_file", "{}"))
CONVERSATION = [
    user("Grüße 你好 \u0000", Image("image/png", "aGk=")),
    assistant(Thinking("hm", "sig"), Thinking("", sealed="x9"), "Let me see.", *CALLS),
    answer(CALLS[0], "one\ntwo"),
    answer(CALLS[1], "", failed=True),
    assistant(Thinking("unsigned"), "It says one, two."),
    user('and "now"?'),
    assistant("Now."),
    user(
        SystemNote("# 1 change in what is known\n- About the user, new: likes </hone-note> tea\n  green", 7),
        "Tea?",
    ),
    assistant("Yes."),
    user(SystemNote("", 8), "Sure?"),
    assistant("Yes."),
    user(
        SystemNote("# 1 change in what is known\n- Skill tea: no longer there", 9),
        "This?",
        Image("image/png", "aGk="),
    ),
]


@pytest.mark.parametrize(
    ("name", "model"),
    [
        ("openai", OpenAIChat(Http(CLOCK), CLOCK, ENDPOINT, cache_key=True)),
        ("anthropic", AnthropicMessages(Http(CLOCK), CLOCK, ENDPOINT)),
        ("anthropic-hour", AnthropicMessages(Http(CLOCK), CLOCK, ENDPOINT, marks_of(HOUR))),
        ("openrouter", MarkedChat(Http(CLOCK), CLOCK, ENDPOINT, marks_of(ROUTED))),
        ("openai-newest", MarkedChat(Http(CLOCK), CLOCK, ENDPOINT, marks_of(NEWEST), cache_key=True)),
    ],
)
def test_the_bytes_on_the_wire_are_these(name: str, model: OpenAIChat | AnthropicMessages) -> None:
    prefix = Prefix(f"{name}/some-model", "You are Hone.", (TOOL,), '{"temperature":0.5}')
    body = model.body(prefix, transcript(prefix, CONVERSATION))
    assert body.decode() == (GOLDEN / f"{name}.json").read_text(encoding="utf-8").rstrip("\n")
