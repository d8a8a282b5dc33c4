"""Propose to remove entries that were in many prompts for long and that nothing ever used.

An entry counts as used in a conversation if a third of its words came up there, in the owner's words, in an
answer or in a call. That is deliberately generous: a proposed entry is certainly useless. If a feature or
plugin attributes answers to entries, that counts instead. What the owner said or wrote is never proposed.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from datetime import timedelta

from msgspec import Struct

from hone.app import Hone
from hone.core.errors import HoneError, StoreError
from hone.core.ids import SessionId
from hone.core.ledger import Actor, Author, ChangeQuery, Entry
from hone.core.secrets import redact
from hone.core.skill import to_stems
from hone.core.transcript import Node
from hone.core.visible import one_line
from hone.features.payback.bill import LEARNING, LessonKey
from hone.features.payback.lessons import BilledLesson, LessonState
from hone.features.payback.reading import Account, read_account
from hone.features.payback.report import read_used
from hone.knowledge.folding import load_all_steps
from hone.knowledge.journal import Remove, compare

LOOKS_BACK = 90
"""How many days of conversations to check."""
LONG = timedelta(days=30)
MANY = 20
"""In how many prompts an entry must have been before it can count as unused."""
READ = 200
"""The most conversations to read, latest first."""
SHARE = 1 / 3
SHORTEST = 4
"""The fewest letters of a stem that counts. Shorter ones are in every conversation."""
REASON = "in prompts for long, and never used"


class UnusedEntry(Struct, frozen=True):
    """An entry with the number of conversations that had it in their prompt."""

    lesson: BilledLesson
    talks: int


async def find_unused(hone: Hone) -> list[UnusedEntry]:
    """Return the unneeded entries of the journal, those in most prompts first."""
    old = hone.clock.now() - LONG
    account = await read_account(hone, LOOKS_BACK)
    known = account.lessons.known.values()
    candidates = [each for each in known if _can_go(each) and each.at <= old]
    talks = _find_talks(account, {each.key for each in candidates})
    long = [each for each in candidates if len(talks.get(each.key, ())) >= MANY]
    if not long:
        return []
    used = await _find_used(hone, account, long, talks)
    found = [UnusedEntry(each, len(talks[each.key])) for each in long if each.key not in used]
    return sorted(found, key=lambda each: (-each.talks, each.lesson.change))


def _can_go(lesson: BilledLesson) -> bool:
    return lesson.state is LessonState.IN_USE and not lesson.is_skill and not lesson.owners


def _find_talks(account: Account, keys: Collection[LessonKey]) -> Mapping[LessonKey, Collection[SessionId]]:
    """Return the conversations with each of these entries in their prompt, in order."""
    found: dict[LessonKey, dict[SessionId, None]] = {}
    for call in account.calls:
        prompt = account.prompts.get(call.prefix)
        if prompt and call.spending.origin not in LEARNING:
            for key in prompt.held.keys() & keys:
                found.setdefault(key, {})[call.session] = None
    return found


async def _find_used(
    hone: Hone,
    account: Account,
    entries: Sequence[BilledLesson],
    talks: Mapping[LessonKey, Collection[SessionId]],
) -> set[LessonKey]:
    if any(part.attribution() for part in hone.parts("attribution")):
        counts = await read_used(hone, account)
        return {each.key for each in entries if counts.get(each.digest)}
    every = dict.fromkeys(session for each in entries for session in talks[each.key])
    used: set[LessonKey] = set()
    for session in list(every)[-READ:]:
        try:
            said = read_stems((await hone.sessions.load(session)).transcript.nodes)
        except StoreError:
            continue
        used |= {each.key for each in entries if session in talks[each.key] and is_used(each.text, said)}
    return used


def read_stems(nodes: Sequence[Node]) -> frozenset[str]:
    """Return the stems of what was said and called in a conversation."""
    messages = [node.message for node in nodes]
    texts = [text for each in messages for text in (each.text, *(one.arguments for one in each.calls))]
    return frozenset(stem for text in texts for stem in to_stems(text))


def is_used(entry: str, said: frozenset[str]) -> bool:
    """Tell whether an entry may have been useful where these stems came up."""
    stems = {stem for stem in to_stems(entry) if len(stem) >= SHORTEST}
    return not stems or len(stems & said) >= SHARE * len(stems)


async def propose(hone: Hone) -> Sequence[Entry]:
    """Propose to remove what is unused, unless such a proposal is pending or was answered before."""
    ledger = hone.ledger
    ours = [
        each
        for each in await ledger.entries(ChangeQuery(actor=Actor.EXPERIMENT))
        if each.change.author.reason == REASON
    ]
    if any(not each.settled for each in ours):
        return ()
    steps = await load_all_steps(ledger, [each.change for each in ours])
    pairs = [(step.before or b"", step.after or b"") for own in steps for step in own]
    before = {text for one, other in pairs for text in compare(one, other)[1]}
    fresh = [each.lesson for each in await find_unused(hone) if each.lesson.text not in before]
    if not fresh:
        return ()
    edits = [(each.target, Remove(each.text)) for each in fresh]
    return await hone.keeper.note(edits, Author(Actor.EXPERIMENT, reason=REASON))


async def propose_quietly(hone: Hone) -> None:
    """Do so in idle time. Errors leave it to another day."""
    try:
        await propose(hone)
    except HoneError:
        return


def tell_unused(found: Sequence[UnusedEntry]) -> Iterator[str]:
    """List the unneeded entries, one line each."""
    if not found:
        yield f"No entry was in {MANY} prompts or more, for {LONG.days} days or longer, without being used."
    for each in found:
        lesson = each.lesson
        yield f"{lesson.latest}  {lesson.name}: {one_line(lesson.text, 300)} · in {each.talks} conversations"
    if found:
        yield "Hone proposes to remove them when it is idle: hone pending. At once: hone memory rm ENTRY"


def unused_data(each: UnusedEntry) -> dict[str, object]:
    """Return the unneeded entries for programs."""
    lesson = each.lesson
    return {
        "change": lesson.latest,
        "target": lesson.target,
        "text": redact(lesson.text),
        "conversations": each.talks,
    }
