"""An error of a service repeats no key: not one of a known shape, and not the one that was sent to it."""

import base64
import json
from urllib.parse import quote

import pytest

from hone.core.errors import BackendError, ModelError, Overloaded, Unfit
from hone.models.anthropic import AnthropicAssembly
from hone.models.endpoint import Assembly, Endpoint, refusal
from hone.models.openai import ChatAssembly
from hone.models.responses import ResponsesAssembly
from tests.core.secret_shapes import TOKEN_SHAPES, some

KEY = "plain/words+as-a-key=nobody&knows"
OPENAI = Endpoint("openai", "http://x", {"authorization": f"Bearer {KEY}"}, "OPENAI_API_KEY")
ANTHROPIC = Endpoint("anthropic", "http://x", {"x-api-key": KEY, "anthropic-version": "2023-06-01"})
BODIES = [
    f"Incorrect API key provided: {KEY}.",
    json.dumps({"error": {"message": f"Incorrect API key provided: {KEY}."}}),
    json.dumps({"error": {"message": f'headers: {{"Authorization": "Bearer {KEY}"}}'}}),
    json.dumps({"detail": [{"loc": ["header", "x-api-key"], "input": KEY}]}).replace("/", "\\/"),
    f"<html><body>Proxy error<pre>x-api-key: {KEY.replace('&', '&amp;')}</pre></body></html>",
    f"Authorization: Basic {base64.b64encode(f'me:{KEY}'.encode()).decode()}",
    f"GET /v1/models?key={quote(KEY, safe='')}",
    f"Incorrect API key provided: {KEY[:20]}…",
    " " * 290 + f"the key {KEY} is unknown",
    "x" * 280 + f" {KEY}",
]


@pytest.mark.parametrize("endpoint", [OPENAI, ANTHROPIC], ids=["openai", "anthropic"])
@pytest.mark.parametrize("body", BODIES)
def test_a_refusal_repeats_no_part_of_the_key(endpoint: Endpoint, body: str) -> None:
    for status in (400, 401, 404, 413, 429, 503):
        said = str(refusal(endpoint, status, body))
        assert [KEY[at : at + 12] for at in range(len(KEY) - 11) if KEY[at : at + 12] in said] == []
        assert base64.b64encode(KEY.encode()).decode()[4:20] not in said
        assert "2023-06-01" not in said


@pytest.mark.parametrize(
    ("assembly", "endpoint"),
    [(ChatAssembly, OPENAI), (AnthropicAssembly, ANTHROPIC), (ResponsesAssembly, OPENAI)],
)
def test_an_error_within_a_stream_repeats_no_key(assembly: type[Assembly], endpoint: Endpoint) -> None:
    for kind in ("overloaded_error", "invalid_request_error"):
        event = json.dumps({"type": "error", "error": {"type": kind, "message": f"your key {KEY} failed"}})
        with pytest.raises(ModelError) as caught:
            list(assembly(endpoint).feed(event.encode()))
        assert KEY not in str(caught.value)
        assert "your key [redacted: key] failed" in str(caught.value)


def test_what_a_provider_says_beside_a_key_stays() -> None:
    said = refusal(OPENAI, 400, json.dumps({"error": {"message": "temperature must be at most 2, not 3"}}))
    assert str(said) == "openai refused the request (400): temperature must be at most 2, not 3."


def test_a_model_that_wants_responses_says_what_to_set() -> None:
    words = "Function tools with reasoning_effort are not supported for m in /v1/chat/completions. To use "
    words += "function tools, use /v1/responses or set reasoning_effort to 'none'."
    said = str(refusal(OPENAI, 400, json.dumps({"error": {"message": words}})))
    assert words.rstrip(".") in said
    assert 'set format = "responses" in [providers.openai] of hone.toml' in said
    there = Endpoint("openai", "http://x/v1/responses")
    assert 'set format = "openai" in [providers.openai]' in str(refusal(there, 404, "Not Found"))
    assert "format" not in str(refusal(there, 400, "no such thing in /v1/responses"))


@pytest.mark.parametrize(
    ("returns", "words", "value"),
    [
        (
            "nothing",
            "The reasoning_content in the thinking mode must be passed back to the API.",
            "reasoning_content",
        ),
        (
            "nothing",
            "Function call is missing a thought_signature in functionCall parts.",
            "thought_signature",
        ),
        ("reasoning_content", "'messages.2': property 'reasoning_content' is unsupported", "nothing"),
    ],
)
def test_a_provider_that_misses_or_refuses_its_reasoning_says_what_to_set(
    returns: str, words: str, value: str
) -> None:
    place = Endpoint("mine", "http://x/v1/chat/completions", returns=returns)
    said = str(refusal(place, 400, json.dumps({"error": {"message": words}})))
    assert f'set returns = "{value}" in [providers.mine] of hone.toml' in said
    place = Endpoint("mine", "http://x/v1/responses", returns=returns)
    words = "The encrypted content for item rs_1 could not be verified."
    assert 'set returns = "nothing" in [providers.mine]' in str(refusal(place, 400, words))
    assert "returns" not in str(refusal(place, 400, "temperature must be at most 2"))


@pytest.mark.parametrize(("kind", "token"), TOKEN_SHAPES.items())
def test_every_error_of_a_service_is_redacted_when_it_is_made(kind: str, token: str) -> None:
    for error in (ModelError, BackendError, Unfit, Overloaded):
        assert str(error(f"it said {token} to us")) == f"it said [redacted: {kind}] to us"
    assert Overloaded(some(8), 3.0).retry_after == 3.0
