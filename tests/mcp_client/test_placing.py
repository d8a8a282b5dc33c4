"""Where tools stand, what they are called and what a conversation is told: laws over any tools."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from hone.core.messages import SystemNote, user
from hone.core.prefix import Prefix
from hone.features.mcp.client.arguments import find_fault, make_example
from hone.features.mcp.client.catalog import CatalogEntry, Offer, approve, list_offers, note_seen
from hone.features.mcp.client.news import SAME, TITLE, describe_changes, find_told, write_news
from hone.features.mcp.client.placing import (
    CALL,
    FIND,
    MOST_BYTES,
    MOST_TOOLS,
    describe_servers,
    place,
    write_schema,
)
from hone.features.mcp.client.values import McpServer, name_tools
from hone.settings.sections import McpServerSettings
from tests.mcp_client.stage import tool

NAMES = st.lists(st.text("abAB._/-1", min_size=1, max_size=90), max_size=25, unique=True)


def offers(
    names: Sequence[str], tools: Any = "auto", size: int = 10
) -> tuple[list[Offer], dict[str, CatalogEntry]]:
    server = McpServer("s", McpServerSettings("x", tools=tools), "hone.toml", Path("/nowhere"))
    entry = note_seen(CatalogEntry("s", "hone.toml"), [tool(name, "x" * size) for name in names])
    entry = approve(entry, entry.tools, "purpose")
    return list_offers([server], {server.key: entry}), {server.key: entry}


@given(NAMES)
def test_names_are_unique_and_such_as_every_provider_takes(names: list[str]) -> None:
    made = name_tools("s", names)
    assert set(made) == set(names)
    assert len({name.lower() for name in made.values()}) == len(names)
    assert all(len(name) <= 64 and name.startswith("s__") and name.isascii() for name in made.values())
    assert not any(letter in name for name in made.values() for letter in "./")


@given(NAMES, st.sampled_from(("auto", "always", "never")), st.integers(1, 1_500))
def test_every_tool_stands_in_one_place_and_auto_keeps_the_bounds(
    names: list[str], tools: str, size: int
) -> None:
    found, entries = offers(names, tools, size)
    placed = place(found)
    assert placed.direct | placed.behind == {offer.name for offer in found}
    assert not placed.direct & placed.behind
    if tools == "auto":
        direct = [write_schema(offer) for offer in found if offer.name in placed.direct]
        assert len(direct) <= MOST_TOOLS
        assert sum(len(each.encode()) for each in direct) <= MOST_BYTES
    else:
        assert bool(placed.behind) is (tools == "never" and bool(found))
    section = describe_servers(found, placed.behind, entries)
    assert bool(section) is bool(placed.behind)


@given(NAMES, NAMES)
def test_a_conversation_is_told_of_a_change_once(before: list[str], after: list[str]) -> None:
    told: list[Any] = []
    first, _ = offers(before, "always")
    prefix = Prefix("p/m", "", tuple(write_schema(offer) for offer in first))
    for names in (after, after, before, before):
        lines = describe_changes(prefix, offers(names, "always")[0], frozenset())
        note = write_news(lines, find_told(told))
        told.append(user(SystemNote(f"{note}\n- beside it") if note else SystemNote(""), "words"))
    second, again, third, last = (message.note.text for message in told if message.note)
    assert (second == "") is ({*map(str, before)} == {*map(str, after)})
    assert again == ""
    assert last == ""
    assert (SAME in third) is bool(second)
    assert not second or second.startswith(TITLE)


def test_servers_behind_the_two_tools_come_and_go_as_lines() -> None:
    found, entries = offers(["a", "b"], "never")
    system = f"Words.\n\n{describe_servers(found, place(found).behind, entries)}\n\nMore words."
    constant = tuple(json.dumps({"name": name}) for name in (FIND, CALL))
    prefix = Prefix("p/m", system, constant)
    assert describe_changes(prefix, found, frozenset()) == []
    assert describe_changes(prefix, [], frozenset()) == ["- The server s is no longer available."]


SCHEMAS = st.recursive(
    st.sampled_from(
        [{"type": kind} for kind in ("string", "integer", "number", "boolean", "null")]
        + [
            {"enum": ["a", "b"]},
            {"type": "string", "pattern": "("},
            {"type": "integer", "minimum": 3},
            {},
            True,
        ]
    ),
    lambda inner: st.one_of(
        st.builds(lambda item: {"type": "array", "items": item}, inner),
        st.builds(
            lambda one, two: {"type": "object", "properties": {"a": one, "b": two}, "required": ["a"]},
            inner,
            inner,
        ),
        st.builds(lambda one, two: {"anyOf": [one, two]}, inner, inner),
    ),
    max_leaves=8,
)


@given(SCHEMAS, SCHEMAS)
def test_the_complete_call_that_is_shown_fits_the_schema(one: Any, two: Any) -> None:
    schema = {"type": "object", "properties": {"one": one, "two": two}, "required": ["one"]}
    assert find_fault(make_example(schema), schema) == ""
    assert find_fault({}, schema) == "$ lacks 'one'"
    assert find_fault([], schema) == "the arguments must be an object"
