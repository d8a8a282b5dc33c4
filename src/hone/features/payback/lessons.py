"""Find the lessons in the ledger: every entry and every skill that a change added, in use or not."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from enum import StrEnum

from msgspec import Struct

from hone.core.errors import Missing, Refused
from hone.core.ledger import SKILL, Actor, Change, ChangeId, ChangeKind, ChangeState, Entry, Ledger, Target
from hone.core.messages import digest
from hone.core.skill import ARCHIVED, DOCUMENT
from hone.core.value import replace
from hone.core.visible import one_line
from hone.features.payback.bill import LessonKey
from hone.knowledge import places
from hone.knowledge.folding import load_all_steps
from hone.knowledge.journal import compare, entries_in
from hone.knowledge.withdrawn import is_owners_word
from hone.prompt.compose import item

_CHUNK = 200
"""How many changes to read the contents of at once."""
_ANSWERS = (ChangeKind.UNDO, ChangeKind.APPROVE, ChangeKind.REJECT, ChangeKind.CONFIRM)


class LessonState(StrEnum):
    IN_USE = "in use"
    WAITS = "waits"
    GONE = "gone"
    """Undone, rejected, removed, replaced or archived."""


class BilledLesson(Struct, frozen=True):
    """An entry or a skill. `change` is the one that first added it, `at` its time. `owners`: the owner said
    it or wrote it. `latest` is the last change that added it."""

    target: Target
    text: str
    change: ChangeId
    at: datetime
    actor: Actor
    state: LessonState = LessonState.GONE
    owners: bool = False
    latest: ChangeId = ChangeId(0)

    @property
    def is_skill(self) -> bool:
        return self.target.startswith(SKILL)

    @property
    def key(self) -> LessonKey:
        return (self.target, "") if self.is_skill else key_of(self.target, self.text)

    @property
    def name(self) -> str:
        """Return what it is, in one word: the part of the journal, or the skill's name."""
        return places.name_of(self.target)

    @property
    def digest(self) -> str:
        return digest(self.text.encode())


class LessonIndex(Struct, frozen=True):
    """All of them by key, and which of them each change added."""

    known: Mapping[LessonKey, BilledLesson]
    brought: Mapping[ChangeId, tuple[LessonKey, ...]]

    def find(self, wanted: str) -> BilledLesson:
        """Return the one with this change number, this skill name or these words. Raises Missing or
        Refused."""
        if wanted.isascii() and wanted.isdigit():
            found = [self.known[key] for key in self.brought.get(ChangeId(int(wanted)), ())]
        else:
            found = [each for each in self.known.values() if each.is_skill and each.name == wanted]
            found = found or [each for each in self.known.values() if wanted and wanted in each.text]
        using = [each for each in found if each.state is not LessonState.GONE]
        chosen = found if len(found) == 1 else using
        if len(chosen) == 1:
            return chosen[0]
        if found:
            listed = "".join(f"\n  {each.latest}  {one_line(each.text, 100)}" for each in found[:10])
            raise Refused(f"Several lessons fit {one_line(wanted, 80)!r}. Name one by its number:{listed}")
        raise Missing(f"No lesson fits {one_line(wanted, 80)!r}. hone payback lists them with their numbers.")


def key_of(target: Target, entry: str) -> LessonKey:
    """Return the key of an entry, as a prompt has it."""
    return target, "\n".join(item(entry))


async def find_lessons(ledger: Ledger) -> LessonIndex:
    """Read the lessons from the whole ledger, oldest first."""
    made = [each for each in reversed(await ledger.entries()) if not places.is_outside(each.change.target)]
    known: dict[LessonKey, BilledLesson] = {}
    brought: dict[ChangeId, tuple[LessonKey, ...]] = {}
    for start in range(0, len(made), _CHUNK):
        chunk = made[start : start + _CHUNK]
        for entry, texts in zip(chunk, await _load_new(ledger, chunk), strict=True):
            keys = []
            for text in texts:
                lesson = _lesson(entry, text)
                first = known.setdefault(lesson.key, lesson)
                owners = first.owners or lesson.owners
                known[lesson.key] = replace(first, owners=owners, latest=entry.id)
                keys.append(lesson.key)
            brought[entry.id] = tuple(keys)
    states = await _find_states(ledger, {each.target for each in known.values()}, brought)
    return LessonIndex(
        {key: replace(each, state=states.get(key, each.state)) for key, each in known.items()}, brought
    )


def _lesson(entry: Entry, text: str) -> BilledLesson:
    change = entry.change
    owners = is_owners_word(change) or change.author.actor is Actor.OWNER
    return BilledLesson(
        change.target, text, entry.id, entry.at, change.author.actor, owners=owners, latest=entry.id
    )


async def _load_new(ledger: Ledger, chunk: Sequence[Entry]) -> list[list[str]]:
    """Return the entries that each change added; for a change of a skill, the name. Answers add nothing: what
    they restore has its own change."""
    journal = [_brings(each.change) and places.is_journal(each.change.target) for each in chunk]
    wanted = [each.change for each, is_journal in zip(chunk, journal, strict=True) if is_journal]
    steps = iter(await load_all_steps(ledger, wanted))
    found = []
    for each, is_journal in zip(chunk, journal, strict=True):
        if is_journal:
            pairs = [(step.before or b"", step.after or b"") for step in next(steps)]
            found.append([text for before, after in pairs for text in compare(before, after)[0]])
        else:
            is_skill = each.change.target.startswith(SKILL) and _brings(each.change)
            found.append([places.name_of(each.change.target)] if is_skill else [])
    return found


def _brings(change: Change) -> bool:
    return bool(change.deltas) and change.kind not in _ANSWERS


async def _find_states(
    ledger: Ledger, targets: set[Target], brought: Mapping[ChangeId, Sequence[LessonKey]]
) -> Mapping[LessonKey, LessonState]:
    states: dict[LessonKey, LessonState] = {}
    for entry in await ledger.pending():
        if entry.change.standing is ChangeState.PENDING:
            states |= dict.fromkeys(brought.get(entry.id, ()), LessonState.WAITS)
    for target in targets:
        held = await ledger.held(target)
        if target.startswith(SKILL):
            if DOCUMENT in held and ARCHIVED not in held:
                states[target, ""] = LessonState.IN_USE
            continue
        contents = await ledger.contents(set(held.values()))
        for data in contents.values():
            states |= {key_of(target, text): LessonState.IN_USE for text in entries_in(data)}
    return states
