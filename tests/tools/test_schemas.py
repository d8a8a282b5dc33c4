"""The schemas of Hone's own tools lie beside the code, and are those that the code says."""

import msgspec
import pytest

from hone import Hone, Scripted, lines
from hone.tools import define, todo
from hone.tools.define import (
    SCHEMAS,
    Function,
    KnownSchema,
    name_function,
    read_docstring,
    read_schemas,
    tool,
    work_out,
)
from tests.golden import WRITE


async def test_the_stored_schemas_are_those_of_the_code(monkeypatch: pytest.MonkeyPatch) -> None:
    """After a change of a tool: WRITE_GOLDENS=1 pytest tests/tools/test_schemas.py"""
    found: dict[str, KnownSchema] = {}

    def work_it_out(function: Function) -> str:
        found[name_function(function)] = KnownSchema(read_docstring(function), work_out(function).schema)
        return ""

    work_it_out(todo.todo.function)
    with monkeypatch.context() as patched:
        patched.setattr(define, "_find_schema", work_it_out)
        async with Hone(model=Scripted(lines("x")), learning="off") as hone:
            await hone.session()
    if WRITE:
        SCHEMAS.write_bytes(msgspec.json.format(msgspec.json.encode(found, order="sorted")) + b"\n")
    assert msgspec.json.decode(SCHEMAS.read_bytes(), type=dict[str, KnownSchema]) == found


def test_a_function_with_another_docstring_has_its_own_schema() -> None:
    (key, known), *_ = read_schemas().items()
    module, _, name = key.partition(":")

    def other(text: str) -> str:
        return text

    other.__module__, other.__qualname__, other.__doc__ = module, name, "Something else."
    assert '"Something else."' in tool(effects=())(other).spec.schema
    other.__doc__ = known.docstring
    assert tool(effects=())(other).spec.schema == known.schema
