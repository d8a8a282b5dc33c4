"""Decide how to speak to a model: in which wire format, and what it wants back with each of its replies.

Both follow from the provider's name, its address and the model's name; settings override them.
"""

import re

from hone.core.prefix import find_source
from hone.core.regex import regex

_OPENAI = regex(r"(https?://)?([\w-]+\.)*openai\.com(:\d+)?(/|$)")
_NEEDS_RESPONSES = regex(r"(ft:)?(gpt-([5-9]|\d\d)|o\d|codex-)")
_NEVER_REASONS = regex(r"(ft:)?(chat)?gpt-[34]")
_HABITS = (
    ("openrouter", "reasoning_details"),
    ("deepseek", "reasoning_content"),
    ("moonshot", "reasoning_content"),
    ("kimi", "reasoning_content"),
    ("googleapis.com", "thought_signature"),
    ("gemini", "thought_signature"),
)
"""A word in the name or address of a provider, or in the name of a model → what it wants back. A router comes
first: it speaks for the models of others."""


def find_format(provider: str, url: str, model: str) -> str:
    """Return the format for a provider whose format is not set. OpenAI's reasoning models accept function
    tools only over Responses; elsewhere, chat completions are what everyone speaks."""
    is_openai = provider == "openai" or _OPENAI.match(url) is not None
    return "responses" if is_openai and _NEEDS_RESPONSES.match(model) else "openai"


def find_returns(provider: str, url: str, model: str) -> str:
    """Return what chat completions of a model want back with each reply: nothing, its reasoning as text, a
    list of the pieces of its reasoning, or the signature of each call."""
    names = f"{provider} {re.sub('^[a-z]+://', '', url)} {model}".lower()
    return next((wanted for word, wanted in _HABITS if word in names), "nothing")


def make_origin(model: str, format: str) -> str:
    """Return the mark of what a model, given as provider/name, hands out in a format and wants back."""
    return f"{find_source(model)}:{format}"


def can_reason(model: str) -> bool:
    """Tell whether a model may hand out encrypted reasoning. OpenAI refuses a request for it otherwise."""
    return _NEVER_REASONS.match(model) is None
