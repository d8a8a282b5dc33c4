"""Expressions that are compiled late are none the worse for it."""

import re
from importlib import import_module
from pkgutil import walk_packages

import pytest

import hone
from hone.core.regex import LazyPattern, regex


def test_every_expression_of_hone_compiles() -> None:
    found = 0
    for module in walk_packages(hone.__path__, "hone."):
        if not module.name.endswith("__main__"):
            for value in vars(import_module(module.name)).values():
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
