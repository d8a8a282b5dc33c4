"""Tell a conversation how the tools of servers differ from those in its prefix: names and states, no words of
a server."""

import json
from collections.abc import Iterable, Sequence

from hone.core.messages import Message, Role
from hone.core.prefix import Prefix
from hone.core.tool import is_served
from hone.features.mcp.client.catalog import Offer
from hone.features.mcp.client.placing import CALL, FIND, HEAD

TITLE = "# Tools of MCP servers have changed"
SAME = "- They are again as they were when this conversation began."
MOST = 20
"""The most lines of a note."""


def describe_changes(prefix: Prefix, offers: Sequence[Offer], changed: frozenset[str]) -> list[str]:
    """Return a line per tool or server that differs. `changed` are the names of tools in quarantine."""
    listed = {name for schema in prefix.tools if is_served(name := json.loads(schema)["name"])}
    direct = listed - {FIND, CALL}
    now = {offer.name for offer in offers}
    lines = []
    for name in sorted(direct - now):
        why = "changed and waits for the user's approval" if name in changed else "is no longer available"
        lines.append(f"- {name} {why}.")
    servers = {offer.server.name for offer in offers if offer.name not in direct}
    if CALL in listed:
        told = set(find_servers(prefix.system))
        lines += [f"- The server {name} is no longer available." for name in sorted(told - servers)]
        lines += [
            f"- The server {name} is available with mcp_find and mcp_call." for name in sorted(servers - told)
        ]
    elif new := sorted(now - direct):
        lines += [f"- {name} is available in new conversations." for name in new]
    more = len(lines) - MOST
    return [*lines[:MOST], f"- {more} more."] if more > 0 else lines


def find_servers(system: str) -> list[str]:
    """Return the names of the servers in the section of a prompt."""
    section = system.partition(f"{HEAD}\n")[2].partition("\n\n")[0]
    return [line[2:].partition(":")[0].partition(" (")[0] for line in section.split("\n") if line[:2] == "- "]


def find_told(messages: Iterable[Message]) -> list[str]:
    """Return the lines that a conversation was told last."""
    told: list[str] = []
    for message in messages:
        note = message.note if message.role is Role.USER and not message.template else None
        if note and TITLE in note.text:
            rest = note.text.partition(f"{TITLE}\n")[2]
            told = [line for line in rest.split("\n\n")[0].split("\n") if line.startswith("- ")]
    return told


def write_news(lines: Sequence[str], told: Sequence[str]) -> str:
    """Return the note; empty if the conversation knows all of it."""
    if [*lines] == [*told] or (not lines and [*told] in ([], [SAME])):
        return ""
    return "\n".join((TITLE, *(lines or [SAME]), ""))  # a blank line ends the note
