"""Find everything that belongs to a conversation, a lesson or a memory to erase."""

from collections.abc import Iterable, Sequence

from hone.app import Hone
from hone.core.erasure import SHORTEST, Erasure, Scrubber
from hone.core.errors import Missing, Refused
from hone.core.ids import SessionId
from hone.core.ledger import ITEM, SKILL, ChangeId, ChangeKind, ChangeQuery, Entry, LessonText
from hone.core.messages import Role
from hone.core.ports import StoredSession
from hone.core.regex import regex
from hone.features.erasing.database import DatabaseEraser
from hone.knowledge import places
from hone.knowledge.folding import Step, load_steps
from hone.knowledge.items import PATH, decode, load
from hone.knowledge.skills.facts import new_lines
from hone.knowledge.wording import find_lessons

DISTINCT = 24
"""The fewest characters of a skill's line, or a memory's value, to search for elsewhere: shorter ones may
occur anywhere for other reasons."""
PROBES, LONGEST = 12, 120
"""The most lines of a conversation that the proof searches for, and their fewest characters."""
_SPILLED = regex(r"spill/([A-Za-z0-9_-]{1,64}-[0-9a-f]{16}\.txt)")


def plan_words(texts: Sequence[str]) -> Erasure:
    """Erase words wherever they are. Raises Refused if they are too short."""
    for text in texts:
        if len("".join(text.split())) < SHORTEST:
            raise Refused(
                f"{text!r} is too short: it would be erased from the middle of other words everywhere. "
                f"Give at least {SHORTEST} characters."
            )
    return Erasure(words=tuple(texts))


async def plan_session(hone: Hone, session: SessionId) -> Erasure:
    """Erase a conversation, with the forks that Hone made of it and everything that only they have."""
    ids = await DatabaseEraser(hone).store.family([session])
    stored = [line for id in ids for line in (*await hone.sessions.earlier(id), await hone.sessions.load(id))]
    said = [node.message for line in stored for node in line.transcript.nodes]
    typed = frozenset(message.text.strip() for message in said if message.role is Role.USER)
    shared = [each for each in await hone.sessions.list(None) if each.header.parent in ids]
    spilled = () if shared else _spilled(stored)
    probes = _distinct(message.text for message in said if message.text)
    return Erasure(sessions=tuple(ids), lines=typed - {""}, files=spilled, probes=probes)


def _distinct(texts: Iterable[str]) -> tuple[str, ...]:
    """Return some distinctive lines, the longest ones."""
    lines = {line.strip()[:LONGEST] for text in texts for line in text.splitlines()}
    return tuple(sorted((line for line in lines if len(line) >= DISTINCT), key=len)[-PROBES:])


def _spilled(stored: Iterable[StoredSession]) -> tuple[str, ...]:
    """Return the files with results of a conversation."""
    results = (node.message.result for line in stored for node in line.transcript.nodes)
    names = {name for result in results if result for name in _SPILLED.findall(result.text)}
    return tuple(f"spill/{name}" for name in sorted(names))


async def plan_lesson(hone: Hone, change: ChangeId) -> Erasure:
    """Erase what a change taught, in all its versions."""
    entry = await hone.ledger.entry(change)
    target = entry.change.target
    every = (await hone.ledger.entries(ChangeQuery(target=target)))[::-1]
    if target.startswith(SKILL):
        return await _plan_skill(hone, entry, every)
    lessons = await find_lessons(hone.ledger, every)
    texts = _versions(lessons, change)
    if not texts:
        raise Refused(f"Change {change} says nothing that could be erased. hone log lists what there is.")
    about = tuple({each.change for each in lessons if {each.text, each.replaced} & texts})
    return Erasure(words=tuple(sorted(texts)), changes=about)


def _versions(lessons: Sequence[LessonText], change: ChangeId) -> set[str]:
    """Return what a lesson said before and after each rewording."""
    texts = {each.text or each.replaced for each in lessons if each.change == change}
    while (
        more := {
            text
            for each in lessons
            if each.text and each.replaced and {each.text, each.replaced} & texts
            for text in (each.text, each.replaced)
        }
        - texts
    ):
        texts |= more
    return {each for each in texts if len(each.strip()) >= SHORTEST}


async def _plan_skill(hone: Hone, entry: Entry, every: Sequence[Entry]) -> Erasure:
    """Erase a skill as a whole if the change made it, or the lines that the change added."""
    made = await load_steps(hone.ledger, entry.change)
    before, after = _side(made, "before"), _side(made, "after")
    lines = {line for line in new_lines(before, after) if len(line) >= DISTINCT}
    if entry.change.kind not in (ChangeKind.CREATE, ChangeKind.INSTALL):
        if not lines:
            raise Refused(f"Change {entry.id} brought no line that could be erased. Erase words instead.")
        return Erasure(words=tuple(sorted(lines)), changes=(entry.id,))
    return Erasure(
        words=tuple(sorted(lines)),
        changes=tuple(each.id for each in every),
        contents=frozenset(
            name
            for each in every
            for delta in each.change.deltas
            for name in (delta.before, delta.after)
            if name and not delta.path.startswith("@")
        ),
    )


def _side(steps: Iterable[Step], name: str) -> dict[str, bytes]:
    return {step.path: data for step in steps if (data := getattr(step, name)) is not None}


async def plan_memory(hone: Hone, key: str) -> Erasure:
    """Erase a memory item with everything that was ever stored under its key, for any user."""
    known = await DatabaseEraser(hone).store.target_names()
    targets = [each for each in known if places.is_item(each) and places.name_of(each) == key]
    every = [entry for each in targets for entry in await hone.ledger.entries(ChangeQuery(target=each))]
    steps = [step for entry in every for step in await load_steps(hone.ledger, entry.change)]
    bodies = [data for step in steps if step.path == PATH for data in (step.before, step.after) if data]
    values = {decode(data).value for data in bodies}
    contents = {
        name
        for entry in every
        for delta in entry.change.deltas
        for name in (delta.before, delta.after)
        if name
    }
    words = tuple(sorted(value for value in values if len(value.strip()) >= DISTINCT))
    return Erasure(words, (), tuple(entry.id for entry in every), frozenset(contents), (key,))


async def find_keys(hone: Hone, words: str) -> list[str]:
    """Return the keys of memory items that contain these words."""
    scrub, found = Scrubber((words,)), []
    for target in await hone.ledger.held_below(ITEM):
        item = await load(hone.ledger, target)
        if item and scrub.count(f"{places.name_of(target)}\n{item.value}"):
            found.append(places.name_of(target))
    return found


async def find_change(hone: Hone, text: str) -> ChangeId:
    """Return the change with a number. Raises Missing."""
    if not (text.isascii() and text.isdigit() and len(text) < 19):
        raise Missing(f"{text!r} is no change. hone log lists them with their numbers.")
    return (await hone.ledger.entry(ChangeId(int(text)))).id
