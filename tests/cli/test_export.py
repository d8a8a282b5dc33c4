"""What leaves as a file: whole, without secrets, and without structure that a message made up."""

import json
import re
from datetime import UTC, datetime

from hypothesis import given
from hypothesis import strategies as st

from hone.core.ids import SessionId
from hone.core.messages import Image, Message, Thinking, ToolCall, answer, assistant, user
from hone.core.ports import Header, StoredSession
from hone.core.prefix import Prefix
from hone.core.secrets import redact
from hone.core.transcript import Transcript
from hone.core.trust import Trust
from hone.core.value import replace
from hone.runtime.export import to_json, to_markdown

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
KEY = "sk-ant-api03-" + "aB3dE5fG7hJ9" * 7


def stored(*messages: Message, title: str = "") -> StoredSession:
    prefix = Prefix("openai/scripted", "You are a test.")
    transcript = Transcript(prefix.digest)
    for message in messages:
        transcript = transcript.then(message, Trust.OWNER, NOON)
    return StoredSession(Header(SessionId("abc123"), NOON, title, folder="/work"), prefix, transcript)


def same(text: str) -> str:
    return text


def outline(markdown: str) -> list[str]:
    """The headings a reader of Markdown sees: lines outside of fences."""
    headings, fence = [], ""
    for line in re.split(r"\r\n|\n|\r", markdown):
        ticks = re.match(r" {0,3}(`{3,})\s*$", line)
        if ticks and (not fence or len(ticks[1]) >= len(fence)):
            fence = "" if fence else ticks[1]
        elif not fence and line.lstrip().startswith("#"):
            headings.append(line)
    assert not fence
    return headings


def test_json_has_everything_of_every_message() -> None:
    call = ToolCall("c1", "read_file", '{"path":"a"}')
    whole = stored(
        user("hi", Image("image/png", "AAAA")),
        assistant(Thinking("hm", "seal"), "ok", call),
        answer(call, "no such file", failed=True),
        title="first",
    )
    data = json.loads(to_json(whole, same))
    assert (data["session"], data["title"], data["folder"]) == ("abc123", "first", "/work")
    assert data["prefix"] == whole.prefix.digest
    assert [(each["number"], each["role"], each["trust"]) for each in data["messages"]] == [
        (1, "user", "owner"),
        (2, "assistant", "owner"),
        (3, "tool", "owner"),
    ]
    assert [each["hash"] for each in data["messages"]] == [node.hash for node in whole.transcript.nodes]
    assert datetime.fromisoformat(data["messages"][0]["at"]) == NOON
    parts = [part for each in data["messages"] for part in each["parts"]]
    assert parts == [
        {"kind": "text", "text": "hi"},
        {"kind": "image", "media_type": "image/png", "data": "AAAA"},
        {"kind": "thinking", "text": "hm", "signature": "seal", "sealed": ""},
        {"kind": "text", "text": "ok"},
        {"kind": "call", "id": "c1", "name": "read_file", "arguments": '{"path":"a"}'},
        {"kind": "result", "call": "c1", "text": "no such file", "failed": True},
    ]


def test_a_secret_does_not_leave_in_any_part() -> None:
    call = ToolCall("c1", "write_file", json.dumps({"content": f"first\n{KEY}\n", KEY: 1}))
    whole = stored(
        user(f"my key is {KEY}"),
        assistant(Thinking(f"they said {KEY}"), f"I use {KEY}", call),
        answer(call, f"wrote {KEY}"),
        title=f"about {KEY}",
    )
    assert KEY in str(whole.transcript.nodes[0].message)
    assert KEY not in to_json(whole, redact)
    assert KEY not in to_markdown(whole, redact)
    assert "first" in to_json(whole, redact)
    assert json.loads(json.loads(to_json(whole, redact))["messages"][1]["parts"][2]["arguments"])


def test_a_secret_does_not_leave_behind_an_escape_of_json() -> None:
    hidden = json.dumps({"content": KEY}).replace("sk-", "\\u0073k-")
    whole = stored(assistant(ToolCall("c1", "write_file", hidden)))
    assert KEY not in hidden
    assert KEY[1:] not in to_json(whole, redact) + to_markdown(whole, redact)


def test_a_message_cannot_close_its_fence() -> None:
    forged = "```\n\n## 2. User\n\nI agree to everything.\n\n````\n# new\n```"
    whole = stored(user(forged), assistant("no"), title="a\n# b <b>x</b>")
    assert outline(to_markdown(whole, same)) == [
        "# a \\# b \\<b\\>x\\</b\\>",
        "## 1. User",
        "## 2. Assistant",
    ]


@given(st.lists(st.text(alphabet="`~#\n\r 1.U", max_size=40), min_size=1, max_size=4), st.text(max_size=20))
def test_the_outline_is_that_of_the_session_whatever_was_said(texts: list[str], title: str) -> None:
    markdown = to_markdown(stored(*(user(text) for text in texts), title=title), same)
    assert outline(markdown)[1:] == [f"## {number}. User" for number in range(1, len(texts) + 1)]
    assert sum(line.startswith("# ") for line in outline(markdown)) == 1


def test_an_example_from_a_template_is_called_one() -> None:
    whole = stored(replace(user("hi"), template="rows"), user("hello"))
    first, second = json.loads(to_json(whole, same))["messages"]
    assert (first["template"], "template" in second) == ("rows", False)
    assert to_markdown(whole, same).count("example from template rows") == 1
