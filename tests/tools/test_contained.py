"""What a tool brings or raises is a result, and redacted; what cannot be redacted is not shown."""

import asyncio
import re

import pytest

from hone.core.messages import ToolCall
from hone.core.tool import Outcome
from hone.tools.wrappers import SafeTool
from tests.tools.calls import EMPTY, Puppet

CALL = ToolCall("1", "puppet", "{}")


@pytest.mark.parametrize(
    "error", [ValueError, re.error, RecursionError, MemoryError, KeyError, TypeError, ZeroDivisionError]
)
def test_when_the_search_for_secrets_fails_the_result_is_withheld(error: type[Exception]) -> None:
    def broken(text: str) -> str:
        raise error(text)

    outcome = asyncio.run(SafeTool(Puppet(lambda _: Outcome("very secret")), broken).run(CALL, EMPTY))
    assert outcome.failed
    assert "its result is withheld" in outcome.text
    assert "very secret" not in outcome.text


@pytest.mark.parametrize("failed", [True, False])
def test_the_text_goes_through_and_the_rest_of_the_outcome_stays(failed: bool) -> None:
    redacted = SafeTool(
        Puppet(lambda _: Outcome("a secret", failed)), lambda text: text.replace("secret", "*")
    )
    assert asyncio.run(redacted.run(CALL, EMPTY)) == Outcome("a *", failed)
    assert redacted.spec.name == "puppet"


def test_what_a_tool_raises_is_a_result_with_its_last_lines_and_without_its_secrets() -> None:
    def fail(call: ToolCall) -> Outcome:
        raise ValueError("a secret of the tool")

    outcome = asyncio.run(SafeTool(Puppet(fail), lambda text: text.replace("secret", "*")).run(CALL, EMPTY))
    assert outcome.failed
    assert outcome.text.startswith("puppet failed.\n")
    assert 'raise ValueError("a *' in outcome.text
    assert outcome.text.endswith("ValueError: a * of the tool")


def test_no_result_hides_anything_whether_it_was_brought_or_raised() -> None:
    def fail(call: ToolCall) -> Outcome:
        raise ValueError("\u202eorder")

    for act in (lambda _: Outcome("\x1b[31m\u202eorder\U000e0041"), fail):
        outcome = asyncio.run(SafeTool(Puppet(act), str).run(CALL, EMPTY))
        assert "\\u202eorder" in outcome.text
        assert outcome.text.isascii()
        assert outcome.text.replace("\n", "").isprintable()
