"""Say what a conversation knows: journal and skills in its prompt, its model, its window, its cost."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from msgspec import DecodeError, Struct, json

from hone.app import Hone
from hone.core.ids import SessionId
from hone.core.messages import Message
from hone.core.prefix import Prefix
from hone.core.secrets import redact
from hone.core.skill import ListedSkill
from hone.core.transcript import Transcript
from hone.core.visible import path_to_text, text_to_path
from hone.knowledge.sections import Section, data, sections
from hone.models.providers import is_local
from hone.models.wrappers import Windowed
from hone.prompt.compose import find_listed, find_noted, item
from hone.prompt.news import find_known
from hone.runtime.model_factory import KeyedEnvironment, list_providers
from hone.web.operation import Nothing, Operation, OperationCall
from hone.web.state import ServerState

TOKEN = 4
"""Bytes that count as a token where the provider has not counted."""
READS = ("skill_view",)
"""Tools that read a skill."""


class KnownConversation(Struct, frozen=True):
    """What is needed of one, whether it is open or not. `window` is 0 if nobody knows it."""

    id: SessionId
    folder: str
    prefix: Prefix
    transcript: Transcript
    window: int
    tokens: int


async def known(call: OperationCall[Nothing, Nothing]) -> dict[str, Any]:
    """What is in the prompt of a conversation, what it was told since, and what it will be told next."""
    hone = call.state.hone
    talk = await _find(call.state, await hone.sessions.find(call.path["session"]))
    folder = text_to_path(talk.folder) if talk.folder else hone.folder
    sums = await hone.stores.overview.session_sum(talk.id)
    return {
        "session": talk.id,
        "folder": redact(talk.folder),
        "model": talk.prefix.model,
        "window": talk.window,
        "tokens": talk.tokens,
        "calls": sums.calls,
        "cost": None if sums.unpriced else sums.usage.cost,
        **_journal(await sections(hone.keeper, folder), talk, hone),
        "skills": await _skills(hone, folder, find_listed(talk.prefix.system), talk.transcript),
    }


async def known_at_start(call: OperationCall[Nothing, Nothing]) -> dict[str, Any]:
    """What a new conversation would begin with."""
    hone = call.state.hone
    found = await sections(hone.keeper, hone.folder)
    entries = [{**each, "known": "prompt"} for part in found for each in _entries(part)]
    ranking = await hone.library.ranked(path_to_text(hone.folder))
    skills = [_skill(each.name, each, used=False) for each in ranking.skills]
    return {"folder": path_to_text(hone.folder), "entries": entries, "gone": [], "skills": skills}


async def _find(state: ServerState, id: SessionId) -> KnownConversation:
    opened = state.open_sessions.find(id)
    if opened is None:
        stored = await state.hone.sessions.load(id)
        prefix, transcript = stored.prefix, stored.transcript
        size = len(prefix.system.encode()) + sum(map(len, prefix.tools))
        tokens = (size + sum(len(node.encoded) for node in transcript.nodes)) // TOKEN
        return KnownConversation(
            id, stored.header.folder, prefix, transcript, _window(state.hone, prefix.model), tokens
        )
    session = opened.session
    model, prefix, transcript = session.agent.model, session.agent.prefix, session.transcript
    window, tokens = 0, 0
    if isinstance(model, Windowed):
        window, tokens = model.window, model.estimate(prefix, transcript)
    return KnownConversation(id, session.header.folder, prefix, transcript, window, tokens)


def _window(hone: Hone, model: str) -> int:
    """Return the window of a model that is not connected."""
    environ = KeyedEnvironment(hone.home, hone.settings)
    provider = next((each for each in list_providers(hone.settings) if f"{each.name}/" in model), None)
    return hone.models.window(model, local=provider is not None and is_local(provider, environ))


def _journal(found: Sequence[Section], talk: KnownConversation, hone: Hone) -> dict[str, Any]:
    noted, told = find_noted(talk.prefix.system), find_known(talk.transcript)
    upto = -1 if told is None else told
    later = "later" if hone.settings.memory.freshness == "next-session" else "next"
    entries = [
        {**each, "known": _standing(each, noted, talk.id, upto, later)}
        for part in found
        for each in _entries(part)
    ]
    return {"entries": entries, "gone": [*_gone(entries, noted)]}


def _standing(
    entry: Mapping[str, Any], noted: Mapping[str, Sequence[str]], id: SessionId, upto: int, later: str
) -> str:
    """Say how a conversation knows of an entry: from its prompt, from what was said in it, from a note
    since then, or not before the next message or the next conversation."""
    if _written(entry["text"]) in noted.get(entry["part"], ()):
        return "prompt"
    if id in (entry.get("session"), entry.get("parent")):
        return "own"
    return "told" if entry.get("change", upto + 1) <= upto else later


def _gone(
    entries: Sequence[Mapping[str, Any]], noted: Mapping[str, Sequence[str]]
) -> Iterator[dict[str, str]]:
    """Yield what stands in the prompt and holds no more."""
    held = {(each["part"], _written(each["text"])) for each in entries}
    for part, texts in noted.items():
        for text in texts:
            if (part, text) not in held:
                yield {"part": part, "text": "\n".join(line[2:] for line in text.split("\n"))}


def _entries(section: Section) -> Iterator[dict[str, Any]]:
    for each in data(section)["entries"]:
        brought = section.brought.get(each["text"])
        parent = {"parent": brought.change.author.parent} if brought else {}
        yield {
            **each,
            **parent,
            "part": section.name,
            "target": section.target,
        }


def _written(text: str) -> str:
    return "\n".join(item(text))


async def _skills(
    hone: Hone, folder: Path, listed: frozenset[str], messages: Transcript
) -> list[dict[str, Any]]:
    ranking = await hone.library.ranked(path_to_text(folder))
    ranked = {each.name: each for each in ranking.skills}
    used = {*_read(messages)}
    names = sorted(listed | used, key=lambda name: (name not in used, name))
    return [_skill(name, ranked.get(name), used=name in used) for name in names]


def _skill(name: str, listed: ListedSkill | None, *, used: bool) -> dict[str, Any]:
    """One that is no longer among the first in rank is known by its name alone."""
    facts = {"description": listed.description, "pinned": listed.pinned} if listed else {}
    return {"name": name, "description": "", "pinned": None, **facts, "used": used}


def _read(messages: Transcript) -> Iterator[str]:
    """Yield the skills that were read in a conversation."""
    for message in messages:
        yield from (name for call in _calls(message) for name in _named(call))


def _calls(message: Message) -> Sequence[str]:
    return [call.arguments for call in message.calls if call.name in READS]


def _named(arguments: str) -> Iterator[str]:
    try:
        value = json.decode(arguments)
    except (DecodeError, RecursionError):
        return
    name = value.get("name") if isinstance(value, dict) else None
    if isinstance(name, str):
        yield name


OPERATIONS = (
    Operation("GET", "/api/known", known_at_start),
    Operation("GET", "/api/sessions/{session}/known", known),
)
