"""Read the basis of a bill: calls, prompts, reviews, the curator's runs, and skills that were read."""

import json
from collections.abc import Collection, Mapping, Sequence
from datetime import datetime, timedelta

from msgspec import Struct

from hone.app import Hone
from hone.core.errors import StoreError
from hone.core.ids import SessionId
from hone.core.ledger import MEMORY, USER, ChangeId, Target, project, skill
from hone.core.overview import SpentCall
from hone.core.prefix import Prefix
from hone.core.transcript import Node
from hone.features.payback.bill import LEARNING, Bill, BillFacts, LessonKey, Prompt, ViewedSkill, make_bill
from hone.features.payback.lessons import LessonIndex, find_lessons
from hone.knowledge.snapshots import journals
from hone.prompt.compose import find_listed, find_noted

DAYS = 30
VIEWER = "skill_view"


class Account(Struct, frozen=True):
    """A bill with the lessons that it names, and the calls behind it."""

    since: datetime
    until: datetime
    bill: Bill
    lessons: LessonIndex
    calls: Sequence[SpentCall]
    prompts: Mapping[str, Prompt]


async def read_account(hone: Hone, days: int = DAYS) -> Account:
    """Make the bill of the last days. Manual edits are merged first, so that the log has them."""
    for place in journals(hone.folder):
        await hone.keeper.text(place)
    await hone.library.listed()
    until = hone.clock.now() + timedelta(seconds=1)
    since = until - timedelta(days=days)
    lessons = await find_lessons(hone.ledger)
    calls = await _place(hone, await hone.stores.overview.calls(since, until))
    prompts = await _read_prompts(hone, calls, lessons)
    facts = BillFacts(
        calls,
        prompts,
        {model: hone.models.price(model) for model in {each.spending.model for each in calls}},
        *await _read_learning(hone, lessons),
        await _read_views(hone, since, calls, lessons),
        frozenset(lessons.known),
    )
    return Account(since, until, make_bill(facts), lessons, calls, prompts)


async def _place(hone: Hone, calls: Sequence[SpentCall]) -> list[SpentCall]:
    """Return the calls, each with its prompt. A session that changed models had another prompt before: use
    the latest one for the model of the call."""
    known = await hone.stores.overview.prompts({each.prefix for each in calls if each.prefix})
    moved = {
        each.session
        for each in calls
        if each.prefix in known and known[each.prefix].model != each.spending.model
    }
    former = {session: await _former(hone, session) for session in moved}
    return [
        SpentCall(each.session, each.spending, former[each.session][each.spending.model].digest, each.folder)
        if each.spending.model in former.get(each.session, {})
        else each
        for each in calls
    ]


async def _former(hone: Hone, session: SessionId) -> Mapping[str, Prefix]:
    try:
        return {each.prefix.model: each.prefix for each in await hone.sessions.earlier(session)}
    except StoreError:
        return {}


async def _read_prompts(hone: Hone, calls: Sequence[SpentCall], lessons: LessonIndex) -> Mapping[str, Prompt]:
    folders = {each.prefix: each.folder for each in calls if each.spending.origin not in LEARNING}
    prefixes = await hone.stores.overview.prompts(folders.keys() - {""})
    return {name: read_prompt(prefix, folders[name], lessons.known) for name, prefix in prefixes.items()}


def read_prompt(prefix: Prefix, folder: str, known: Collection[LessonKey]) -> Prompt:
    """Find the lessons in a prompt, without bundled skills."""
    parts: Mapping[str, Target] = {"user": USER, "memory": MEMORY, "project": project(folder)}
    held: dict[LessonKey, int] = {}
    for part, entries in find_noted(prefix.system).items():
        for entry in entries:
            held[parts[part], entry] = len(entry.encode()) + 1
    listed = find_listed(prefix.system)
    for line in prefix.system.split("\n"):
        name = line[2:].partition(":")[0]
        key = (skill(name), "")
        if line.startswith("- ") and name in listed and key in known:
            held[key] = len(line.encode()) + 1
    return Prompt(len(prefix.encode()), held)


async def _read_learning(
    hone: Hone, lessons: LessonIndex
) -> tuple[Mapping[SessionId, Sequence[LessonKey] | None], Mapping[SessionId, Sequence[LessonKey]]]:
    def bought(changes: Sequence[ChangeId]) -> list[LessonKey]:
        return list(dict.fromkeys(key for each in changes for key in lessons.brought.get(each, ())))

    jobs = [each for each in await hone.jobs.jobs() if each.review]
    reviews = {
        each.review: (bought(each.changes) or None) if each.changes else () for each in jobs if each.ended
    }
    runs = await hone.stores.curator_runs.runs()
    return reviews, {each.session: bought(each.changes) for each in runs if each.session}


async def _read_views(
    hone: Hone, since: datetime, calls: Sequence[SpentCall], lessons: LessonIndex
) -> Mapping[SessionId, Sequence[ViewedSkill]]:
    """Find the texts of skills in conversations. Only conversations that used one are read."""
    here = {each.session for each in calls}
    used: dict[SessionId, set[str]] = {}
    for name, session in await hone.stores.overview.skill_uses(since.date() - timedelta(days=1)):
        if session in here and (skill(name), "") in lessons.known:
            used.setdefault(session, set()).add(name)
    return {session: await _views(hone, session, names) for session, names in used.items()}


async def _views(hone: Hone, session: SessionId, names: Collection[str]) -> Sequence[ViewedSkill]:
    try:
        nodes = (await hone.sessions.load(session)).transcript.nodes
    except StoreError:
        return ()
    return list(find_views(nodes, names))


def find_views(nodes: Sequence[Node], names: Collection[str]) -> Sequence[ViewedSkill]:
    """Return the results of calls that read a skill."""
    found: list[ViewedSkill] = []
    asked: dict[str, str] = {}
    for node in nodes:
        message = node.message
        for call in message.calls:
            name = _read_name(call.arguments) if call.name == VIEWER else ""
            if name in names:
                asked[call.id] = name
        if message.result and message.result.call in asked:
            found.append(ViewedSkill((skill(asked[message.result.call]), ""), len(node.encoded), node.at))
    return found


def _read_name(arguments: str) -> str:
    try:
        return str(json.loads(arguments).get("name", ""))
    except (ValueError, AttributeError):
        return ""
