"""The workload is what it claims to be: sound conversations, and answers that ask for one call less."""

from http.client import HTTPConnection
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.bench import environment
from benchmarks.provider import Can, Provider, serving
from benchmarks.subject import recorded
from benchmarks.talk import PIECES, history
from hone.core.messages import ToolCall
from hone.models import anthropic, openai
from hone.models.endpoint import Endpoint, Events
from hone.models.http.framing import Chunked
from tests.rig import faults

ENDPOINT = Endpoint("nobody", "http://127.0.0.1:9")


@given(st.integers(0, 60).map(lambda half: 2 * half))
def test_a_history_of_any_even_length_is_one_a_provider_would_take(count: int) -> None:
    messages = list(recorded("root", history(count)))
    assert len(messages) == count
    assert faults(messages) == []


@pytest.mark.parametrize("path", [b"/v1/chat/completions", b"/v1/messages"])
@given(st.integers(0, 99), st.integers(0, 10**9))
def test_a_canned_answer_calls_with_one_less_until_none_is_left(path: bytes, left: int, number: int) -> None:
    assembly = openai.ChatAssembly(ENDPOINT) if b"chat" in path else anthropic.AnthropicAssembly(ENDPOINT)
    _, _, body = Can().answer(path, left, number).partition(b"\r\n\r\n")
    chunked = Chunked()
    for data in Events(lambda _: None).feed(b"".join(chunked.feed(body))):
        list(assembly.feed(data))
    said = assembly.reply().message
    assert chunked.done
    assert said.text == "".join(PIECES)
    arguments = f'{{"left": {left - 1}}}'
    assert said.calls == ((ToolCall(f"call_{number:010}", "probe", arguments),) if left else ())


@pytest.mark.parametrize(
    ("path", "status"), [("/v1/models", 200), ("/api/v1/models", 200), ("/api/tags", 404)]
)
def test_whoever_looks_around_at_the_provider_changes_nothing_in_its_notes(
    path: str, status: int, tmp_path: Path
) -> None:
    with serving(environment(tmp_path)) as provider:
        assert _asked(provider, "POST", "/v1/chat/completions") == 200
        assert _asked(provider, "GET", path) == status
        assert _asked(provider, "POST", "/api/show") == 404
        assert len(provider.notes().arrivals) == 1
        assert provider.notes().arrivals == ()


def _asked(provider: Provider, method: str, path: str) -> int:
    connection = HTTPConnection("127.0.0.1", provider.port, timeout=60)
    connection.request(method, path, b"{}")
    answer = connection.getresponse()
    answer.read()
    connection.close()
    return answer.status
