"""The tools that add something: `learn` passes a conversation, `propose` a lesson. Both wait for approval."""

import json
from collections.abc import Sequence
from typing import Annotated, Literal

from msgspec import Meta, Struct, to_builtins

from hone.app import Hone
from hone.core.errors import LimitReached, Refused
from hone.core.jobs import Job
from hone.core.ledger import Entry, skill
from hone.core.ports import StoredSession
from hone.core.skill import SkillOrigin
from hone.core.topics import NAMES
from hone.features.mcp.server.clients import Client
from hone.features.mcp.server.reading import Part, Words
from hone.knowledge import journal
from hone.knowledge.skills import bundled, folder
from hone.knowledge.skills.document import parse
from hone.knowledge.verdicts import LearningMode

LARGEST = 4_000_000
"""The most bytes of a conversation."""
REVIEWS, PROPOSALS = 20, 100
"""The most pending changes of one client, so that it cannot bury others."""
LATEST = 500
"""How many reviews to search for one that has read the same."""


class SaidMessage(Struct, frozen=True, forbid_unknown_fields=True):
    role: Literal["user", "assistant"]
    text: str


class LearnArguments(Struct, frozen=True, forbid_unknown_fields=True):
    messages: Annotated[
        list[SaidMessage] | None, Meta(description="the conversation, word for word, oldest message first")
    ] = None
    transcript: Annotated[
        str, Meta(description="instead of messages: the lines of a transcript file, as `format` says")
    ] = ""
    format: Literal["openai", "claude-code", "codex"] = "openai"
    conversation: Annotated[
        Words, Meta(description="your own id of the conversation: the same id continues the same one")
    ] = ""
    title: Words = ""


class ProposeArguments(Struct, frozen=True, forbid_unknown_fields=True):
    kind: Literal["entry", "skill"]
    text: Annotated[str, Meta(max_length=200_000, description="the entry, or a whole SKILL.md")]
    part: Annotated[Part, Meta(description="of an entry: where it belongs")] = "project"
    replaces: Annotated[Words, Meta(description="the entry to replace, or a unique part of it")] = ""
    add_anyway: Annotated[bool, Meta(description="though there are entries that are alike")] = False
    reason: Words = ""


async def learn(hone: Hone, client: Client, wanted: LearnArguments) -> str:
    _check_mode(client)
    lines = _write_lines(wanted)
    if len(lines) > LARGEST:
        raise Refused(f"A conversation has at most {LARGEST:,} bytes; hand over a part of it.")
    waiting = [job for job in await hone.jobs.waiting() if job.why == client.label]
    if len(waiting) >= REVIEWS:
        raise Refused(f"{REVIEWS} conversations of this client wait for their review. Try again later.")
    await client.admit()
    stored = await _store(hone, client, lines, wanted.format if wanted.transcript else "openai")
    return "\n".join([await _queue(hone, client, each) for each in stored])


def _write_lines(wanted: LearnArguments) -> bytes:
    if bool(wanted.messages) is bool(wanted.transcript):
        raise Refused("Give either messages or a transcript.")
    if wanted.transcript:
        return wanted.transcript.encode("utf-8", "replace")
    said = [{"role": each.role, "content": each.text} for each in wanted.messages or ()]
    named = {"conversation_id": wanted.conversation, "title": wanted.title}
    return json.dumps({**named, "messages": to_builtins(said)}).encode()


async def _store(hone: Hone, client: Client, lines: bytes, form: str) -> Sequence[StoredSession]:
    """Store a conversation under the client's own name, so that it affects nobody else's."""
    label = client.label.replace("/", "-")
    for part in hone.parts("import_transcript"):
        if found := await part.import_transcript(lines, form, label):
            return found
    raise Refused("This installation of Hone cannot import conversations.")


async def _queue(hone: Hone, client: Client, stored: StoredSession) -> str:
    id, count = stored.header.id, len(stored.transcript)
    kept = f"Stored as session {id} ({count:,} messages)."
    if why := hone.learning_off:
        return f"{kept} It is not reviewed: {why}"
    if client.mode is LearningMode.ASK:
        return f"{kept} The owner reviews it with: hone review {id}"
    if any(_covers(job, stored) for job in await hone.jobs.jobs(LATEST)):
        return f"{kept} Its review was queued before."
    try:
        await client.admit()
    except LimitReached as error:
        return f"{kept} It is not reviewed: {error}"
    job = await hone.jobs.enqueue(id, count, NAMES, client.label, hone.clock.now())
    return f"{kept} Review {job.id} is queued; what it finds waits for the owner's approval."


def _covers(job: Job, stored: StoredSession) -> bool:
    return job.session == stored.header.id and job.messages >= len(stored.transcript)


async def propose(hone: Hone, client: Client, wanted: ProposeArguments) -> str:
    _check_mode(client)
    pending = await hone.ledger.pending()
    if sum(each.change.author.platform == client.label for each in pending) >= PROPOSALS:
        raise Refused(f"{PROPOSALS} proposals of this client wait for the owner. Try again later.")
    made = await (_propose_skill if wanted.kind == "skill" else _propose_entry)(hone, client, wanted)
    return f"It waits for the owner's approval (change {made.id}) and has no effect until then."


async def _propose_entry(hone: Hone, client: Client, wanted: ProposeArguments) -> Entry:
    if wanted.part not in client.targets:
        allow = client.explain_setting("user", "true")
        raise Refused(f"This client may only propose entries for the project. {allow}")
    target = client.targets[wanted.part]
    add = journal.Add(wanted.text, anyway=wanted.add_anyway)
    edit = journal.ReplaceEntry(wanted.replaces, wanted.text) if wanted.replaces else add
    return (await hone.keeper.note([(target, edit)], client.author("propose", wanted.reason)))[0]


async def _propose_skill(hone: Hone, client: Client, wanted: ProposeArguments) -> Entry:
    name = parse(wanted.text).name
    known = name in bundled.names() or bool(await hone.keeper.files(skill(name)))
    new = folder.Create(wanted.text, SkillOrigin.AGENT, client.folder)
    edit = folder.Rewrite(wanted.text) if known else new
    return await hone.keeper.edit_skill(name, edit, client.author("propose", wanted.reason))


def _check_mode(client: Client) -> None:
    if client.mode is LearningMode.OFF:
        allow = client.explain_setting("mode", "auto")
        raise Refused(f"The owner lets this client only read; nothing was changed. {allow}")
