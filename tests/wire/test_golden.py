"""The exact bytes of a request. A change here empties every provider's cache for every running session."""

import os
from pathlib import Path

import pytest

from hone.core.clock import SystemClock
from hone.core.messages import Image, Part, SystemNote, Text, Thinking, ToolCall, answer, assistant, user
from hone.core.prefix import Prefix
from hone.core.value import replace
from hone.models.anthropic import AnthropicMessages
from hone.models.cacherules import extend, find_rule, marks_of
from hone.models.endpoint import Endpoint
from hone.models.http import Http
from hone.models.marked_chat import MarkedChat
from hone.models.marked_responses import MarkedResponses
from hone.models.openai import OpenAIChat
from hone.models.responses import OpenAIResponses
from tests.given import transcript

CLOCK = SystemClock()
ENDPOINT = Endpoint("nobody", "http://127.0.0.1:9")
HOUR = extend(find_rule("anthropic", "some-model", "anthropic"), "1h")
ROUTED = find_rule("openrouter", "anthropic/some-model")
NEWEST = find_rule("openai", "gpt-5.6")
ORIGIN = "nobody:wire"
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
ITEM = '{"id": "rs_1", "summary": [], "type": "reasoning", "encrypted_content": "gAAAA\\u003d="}'
DETAILS = '[{"type":"reasoning.text","text":"hm","signature":"s==","index":0}]'
SIGNED = '{"google": {"thought_signature": "CsIE=="}}'
REASONED: dict[str, tuple[str | Part, ...]] = {
    "responses": (
        Thinking("", opaque=ITEM, origin=ORIGIN),
        Text("Let me see.", '"commentary"', ORIGIN),
        *CALLS,
    ),
    "reasoning_content": (Thinking(" hm\n", origin=ORIGIN), "Let me see.", *CALLS),
    "reasoning_details": (Thinking("hm", opaque=DETAILS, origin=ORIGIN), *CALLS),
    "thought_signature": (replace(CALLS[0], opaque=SIGNED, origin=ORIGIN), CALLS[1]),
}
"""A reply as each provider gives it that wants something back."""


def make(name: str) -> OpenAIChat | AnthropicMessages | OpenAIResponses:
    http, endpoint = Http(CLOCK), replace(ENDPOINT, origin=ORIGIN)
    match name:
        case "openai":
            return OpenAIChat(http, CLOCK, ENDPOINT, cache_key=True)
        case "anthropic":
            return AnthropicMessages(http, CLOCK, ENDPOINT)
        case "anthropic-hour":
            return AnthropicMessages(http, CLOCK, ENDPOINT, marks_of(HOUR))
        case "openrouter":
            return MarkedChat(http, CLOCK, ENDPOINT, marks_of(ROUTED))
        case "openai-newest":
            return MarkedChat(http, CLOCK, ENDPOINT, marks_of(NEWEST), cache_key=True)
        case "responses-newest":
            return MarkedResponses(http, CLOCK, endpoint, marks_of(NEWEST), cache_key=True)
        case "responses":
            return OpenAIResponses(http, CLOCK, endpoint, cache_key=True)
        case _:
            return OpenAIChat(http, CLOCK, replace(endpoint, returns=name))


@pytest.mark.parametrize(
    "name",
    ["openai", "anthropic", "anthropic-hour", "openrouter", "openai-newest", "responses-newest", *REASONED],
)
def test_the_bytes_on_the_wire_are_these(name: str) -> None:
    prefix = Prefix(f"{name}/some-model", "You are Hone.", (TOOL,), '{"temperature":0.5}')
    said = list(CONVERSATION)
    if name in REASONED:
        strange = assistant(Thinking("theirs", opaque=ITEM, origin="another:wire"), ToolCall("c3", "x", "{}"))
        said[1] = assistant(*REASONED[name])
        said += [strange, answer(ToolCall("c3", "x", "{}"), "so")]
    body = make(name).body(prefix, transcript(prefix, said))
    if os.environ.get("WRITE_GOLDENS"):
        (GOLDEN / f"{name}.json").write_text(f"{body.decode()}\n", encoding="utf-8")
    assert body.decode() == (GOLDEN / f"{name}.json").read_text(encoding="utf-8").rstrip("\n")
