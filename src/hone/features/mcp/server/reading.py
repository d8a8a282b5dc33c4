"""The tools that read: search over sessions, the journal, and skills."""

import base64
import mimetypes
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Annotated, Any, Literal
from urllib.parse import quote

from msgspec import Meta, Struct

from hone.app import Hone
from hone.core.errors import Refused, StoreError
from hone.core.ids import SessionId
from hone.core.ledger import Actor
from hone.core.recall import Query
from hone.core.skill import ARCHIVED, DOCUMENT, SkillEvent
from hone.core.visible import one_line
from hone.features.mcp.server.clients import Client
from hone.knowledge import journal
from hone.knowledge.tools import SHOWN, line
from hone.knowledge.validity import past
from hone.tools.recall import MOST, find, read_around

SCHEME = "skill://"
MARKDOWN = "text/markdown"
Content = Sequence[Mapping[str, Any]]
"""Parts of a result that are not all text, in the protocol's form."""
Part = Literal["project", "memory", "user"]
Words = Annotated[str, Meta(max_length=1_000)]


class SearchArguments(Struct, frozen=True, forbid_unknown_fields=True):
    query: Annotated[Words, Meta(description='a question, words, "a phrase" or prefix*; dates work too')] = ""
    limit: Annotated[int, Meta(ge=1, le=MOST)] = 10
    session: Annotated[Words, Meta(description="read this session instead of searching")] = ""
    at: Annotated[int, Meta(ge=1, le=1_000_000, description="message number to read around")] = 1


class JournalArguments(Struct, frozen=True, forbid_unknown_fields=True):
    part: Annotated[Part, Meta(description="project: this project; memory: other work; user: the person")] = (
        "project"
    )


class ListArguments(Struct, frozen=True, forbid_unknown_fields=True):
    query: Annotated[Words, Meta(description="the task in a few words; empty: the most used skills")] = ""


class ViewArguments(Struct, frozen=True, forbid_unknown_fields=True):
    name: Words
    file: Annotated[Words, Meta(description="a file that the skill lists")] = DOCUMENT


async def search_sessions(hone: Hone, client: Client, wanted: SearchArguments) -> str:
    if not client.access.sessions:
        raise Refused(f"This client may not search sessions. {client.explain_setting('sessions', 'true')}")
    if wanted.session:
        return (await read_around(hone.sessions, wanted.session, wanted.at)).text
    today = hone.clock.now().astimezone().date()
    return (await find(hone.recall, hone.sessions, Query(wanted.query, wanted.limit, today=today))).text


async def read_journal(hone: Hone, client: Client, wanted: JournalArguments) -> str:
    if wanted.part not in client.targets:
        raise Refused(f"This client may only read the project. {client.explain_setting('user', 'true')}")
    found = journal.entries(await hone.keeper.text(client.targets[wanted.part]))
    over = set(past(found, hone.library.today))
    kept = [entry for entry in found if entry not in over]
    return "".join(map(journal.format_entry, kept)).rstrip() or "(empty)"


async def skills_list(hone: Hone, _: Client, wanted: ListArguments) -> str:
    found = await hone.library.search(wanted.query, SHOWN)
    return "\n".join(map(line, found)) or "No skill matches."


async def skill_view(hone: Hone, client: Client, wanted: ViewArguments) -> str | Content:
    """Read a file of a skill: text, an image, a sound, or else the bytes as a resource."""
    files = await hone.library.files(wanted.name)
    if ARCHIVED in files:
        raise Refused(
            f"{wanted.name} is archived. The owner can restore it: hone skills restore {wanted.name}"
        )
    paths = sorted(path for path in files if not path.startswith("@"))
    if wanted.file not in paths:
        raise Refused(f"{wanted.name} has no file {one_line(wanted.file, 100)!r}. Files: {', '.join(paths)}.")
    await count_use(hone, client, wanted.name, wanted.file)
    try:
        text = files[wanted.file].decode()
    except UnicodeDecodeError:
        return _show(wanted, files[wanted.file])
    more = f"\n\nFiles: {', '.join(paths)}." if wanted.file == DOCUMENT and len(paths) > 1 else ""
    return text + more


def _show(wanted: ViewArguments, data: bytes) -> Content:
    encoded, kind = base64.b64encode(data).decode(), find_type(wanted.file)
    said = {"type": "text", "text": f"{wanted.file} of {wanted.name}, {len(data):,} bytes:"}
    if kind.startswith(("image/", "audio/")):
        return [said, {"type": kind.partition("/")[0], "data": encoded, "mimeType": kind}]
    uri = f"{SCHEME}{wanted.name}/{quote(wanted.file)}"
    return [said, {"type": "resource", "resource": {"uri": uri, "mimeType": kind, "blob": encoded}}]


def find_type(path: str) -> str:
    """Return the media type of a skill's file."""
    if path.endswith(".md"):
        return MARKDOWN
    return mimetypes.guess_type(path)[0] or "text/plain"


async def count_use(hone: Hone, client: Client, name: str, file: str) -> None:
    """Count a skill as used, once a day for each client, so that the curator keeps it."""
    place = SessionId(f"{client.label} {hone.library.today.isoformat()}")
    with suppress(Refused, StoreError):  # a read-only home can still be read
        await hone.library.count(name, SkillEvent.VIEW, Actor.CLIENT, place)
        if file == DOCUMENT:
            await hone.library.count(name, SkillEvent.USE, Actor.CLIENT, place)
