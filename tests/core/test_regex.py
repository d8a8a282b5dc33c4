"""Expressions that are compiled late are none the worse for it."""

import re
from collections.abc import Mapping
from importlib import import_module
from pkgutil import walk_packages

import pytest

import hone
from hone.core.regex import LazyPattern, regex

# Packages of optional extras: `make test` installs them, a plain installation and `make smoke` do not.
EXTRAS = {"httpx2", "mcp", "numpy", "opentelemetry", "psycopg", "psycopg_pool", "safetensors", "tokenizers"}


def load(name: str) -> Mapping[str, object]:
    """Import a module and return what it defines; nothing where it needs an extra that is not installed."""
    try:
        return vars(import_module(name))
    except ModuleNotFoundError as error:
        if (error.name or "").split(".")[0] not in EXTRAS:
            raise
        return {}


def test_every_expression_of_hone_compiles() -> None:
    found = 0
    for module in walk_packages(hone.__path__, "hone."):
        if not module.name.endswith("__main__"):
            for value in load(module.name).values():
                if isinstance(value, LazyPattern):
                    assert isinstance(value.pattern, str | bytes)
                    found += 1
    assert found > 100


def test_it_does_what_the_expression_does() -> None:
    word = regex(r"[a-z]+", re.IGNORECASE)
    assert (word.findall("One two"), word.sub("x", "One two")) == (["One", "two"], "x x")
    assert regex(rb"\d").search(b"a1") is not None


def test_a_fault_in_it_shows_when_it_is_used() -> None:
    broken = regex("(")
    with pytest.raises(re.error, match="unterminated"):
        broken.search("x")
