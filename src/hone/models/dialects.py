"""Decide how to speak to a model: in which wire format, and what it wants back with each of its replies.

Both follow from the provider's name, its address and the model's name; settings override them.
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
"""How models are called by those who make them. Others who serve them put a vendor before the name; they may
refuse a field that they do not know."""


def find_format(provider: str, url: str, model: str) -> str:
    """Return the format for a provider whose format is not set. OpenAI's reasoning models accept function
    tools only over Responses; elsewhere, chat completions are what everyone speaks."""
    is_openai = provider == "openai" or _OPENAI.match(url) is not None
    return "responses" if is_openai and _NEEDS_RESPONSES.match(model) else "openai"


def find_returns(provider: str, url: str, model: str) -> str:
    """Return what chat completions of a model want back with each reply: nothing, its reasoning as text, a
    list of the pieces of its reasoning, or the signature of each call."""
    place = f"{provider} {url}".lower()
    found = (wanted for word, wanted in _PLACES if word in place)
    named = (wanted for pattern, wanted in _MODELS if pattern.match(model))
    return next(chain(found, named), "nothing")


def takes_schemas(provider: str, url: str, model: str, format: str) -> bool:
    """Tell whether a provider can hold the answers of a model to a JSON schema, beside its tools. Unknown
    servers may ignore the field, refuse it, or give up their tools for it."""
    if _WITHOUT_SCHEMAS.match(model):
        return False
    if format == "anthropic":
        return provider == "anthropic" or _ANTHROPIC.match(url) is not None
    known = provider in ("openai", "openrouter")
    return known or any(place.match(url) for place in (_OPENAI, _ROUTER))


def make_origin(model: str, format: str) -> str:
    """Return the mark of what a model, given as provider/name, hands out in a format and wants back."""
    return f"{find_source(model)}:{format}"


def can_reason(model: str) -> bool:
    """Tell whether a model may hand out encrypted reasoning. OpenAI refuses a request for it otherwise."""
    return _NEVER_REASONS.match(model) is None
