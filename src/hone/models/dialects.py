"""Decide how to talk to a model: its wire format, and what it wants back with each of its replies.

Both follow from the provider's name, its address and the model's name. Settings override them.
"""

from itertools import chain

from hone.core.prefix import find_source
from hone.core.regex import regex

_OPENAI = regex(r"(https?://)?([\w-]+\.)*openai\.com(:\d+)?(/|$)")
_NEEDS_RESPONSES = regex(r"(ft:)?(gpt-([5-9]|\d\d)|o\d|codex-)")
_NEVER_REASONS = regex(r"(ft:)?(chat)?gpt-[34]")
_ANTHROPIC = regex(r"(https?://)?([\w-]+\.)*anthropic\.com(:\d+)?(/|$)")
_ROUTER = regex(r"(https?://)?([\w-]+\.)*openrouter\.ai(:\d+)?(/|$)")
_WITHOUT_SCHEMAS = regex(r"(.*/)?((ft:)?gpt-(3|4(-|$))|claude-(\d|instant))")
_PLACES = (
    ("openrouter", "reasoning_details"),
    ("deepseek", "reasoning_content"),
    ("moonshot", "reasoning_content"),
    ("googleapis.com", "thought_signature"),
    ("gemini", "thought_signature"),
)
"""A word in the name or the address of a provider → what it wants back."""
_MODELS = (
    (regex(r"deepseek-(chat|reasoner|v\d)|kimi-"), "reasoning_content"),
    (regex(r"gemini-"), "thought_signature"),
)
"""The model names that their vendors use. Other hosts put a vendor before the name, and may refuse a field
that they do not know."""


def find_format(provider: str, url: str, model: str) -> str:
    """Return the format of a provider without a configured one. OpenAI's reasoning models accept function
    tools only over Responses; everyone else supports chat completions."""
    is_openai = provider == "openai" or _OPENAI.match(url) is not None
    return "responses" if is_openai and _NEEDS_RESPONSES.match(model) else "openai"


def find_returns(provider: str, url: str, model: str) -> str:
    """Return what chat completions of a model want back with each reply: nothing, its reasoning as text, the
    pieces of its reasoning as a list, or the signature of each call."""
    place = f"{provider} {url}".lower()
    found = (wanted for word, wanted in _PLACES if word in place)
    named = (wanted for pattern, wanted in _MODELS if pattern.match(model))
    return next(chain(found, named), "nothing")


def takes_schemas(provider: str, url: str, model: str, format: str) -> bool:
    """Tell whether a provider can enforce a JSON schema for a model's answers while it has tools. Unknown
    servers may ignore the field, refuse it, or give up their tools for it."""
    if _WITHOUT_SCHEMAS.match(model):
        return False
    if format == "anthropic":
        return provider == "anthropic" or _ANTHROPIC.match(url) is not None
    known = provider in ("openai", "openrouter")
    return known or any(place.match(url) for place in (_OPENAI, _ROUTER))


def make_origin(model: str, format: str) -> str:
    """Return the origin of what a model, given as provider/name, returns in a format and wants back."""
    return f"{find_source(model)}:{format}"


def can_reason(model: str) -> bool:
    """Tell whether a model may return encrypted reasoning. Otherwise OpenAI refuses a request for it."""
    return _NEVER_REASONS.match(model) is None
