"""Compare conversations before and after a lesson: weaker evidence than an experiment, and labeled so.

A conversation after the lesson is matched with the one before it whose first words are most similar, in the
same folder, each at most once. The difference in a figure is the mean over these pairs, with Student's
interval. Other things change with time, too: the work, the model, other lessons.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from datetime import datetime
from math import sqrt
from statistics import NormalDist, fmean, stdev

from msgspec import Struct

from hone.app import Hone
from hone.core.errors import StoreError
from hone.core.ids import SessionId
from hone.core.ledger import PROJECT
from hone.core.measured import FigureDifference
from hone.core.messages import Role
from hone.core.overview import SpentCall
from hone.core.ports import SessionSummary
from hone.core.skill import to_stems
from hone.core.transcript import Node
from hone.core.trust import Trust
from hone.core.turn import Origin
from hone.features.payback.lessons import BilledLesson
from hone.features.payback.reading import Account
from hone.knowledge.reasons import LABELS, find_cue

FEWEST = 5
"""The fewest pairs for a result."""
MOST = 40
"""The most pairs whose conversations are read."""
ALIKE = 0.25
"""The share of stems that two first messages must have in common."""
_CORRECTS = frozenset(LABELS[kind] for kind in ("correction", "complaint", "change"))


class PastTalk(Struct, frozen=True):
    """A conversation: its folder, its start, and the stems of its first words."""

    id: SessionId
    folder: str
    at: datetime
    stems: frozenset[str]


class TalkOutcome(Struct, frozen=True):
    """What a conversation took."""

    calls: int
    tokens: int
    failures: int
    corrections: int


class Comparison(Struct, frozen=True):
    """`pairs` are matched conversations. With too few of them there are no differences."""

    pairs: int
    differences: tuple[FigureDifference, ...] = ()


FIGURES: Mapping[str, Callable[[TalkOutcome], int]] = {
    "model calls": lambda each: each.calls,
    "tokens": lambda each: each.tokens,
    "failed tool calls": lambda each: each.failures,
    "corrections by you": lambda each: each.corrections,
}


async def compare(hone: Hone, account: Account, lesson: BilledLesson) -> Comparison:
    """Compare conversations with a lesson in their prompt to those from before it."""
    having = {each.session for each in account.calls if _has(account, each, lesson)}
    folder = lesson.target.removeprefix(PROJECT) if lesson.target.startswith(PROJECT) else None
    talks = [_talk(each) for each in await hone.sessions.list(own=True)]
    here = [each for each in talks if folder in (None, each.folder)]
    paid = {each.session for each in account.calls}
    after = [each for each in here if each.id in having and each.at >= lesson.at]
    before = [each for each in here if each.id in paid and each.at < lesson.at]
    pairs = match(before, after)
    if len(pairs) < FEWEST:
        return Comparison(len(pairs))
    spent = _spent(account.calls, {each for pair in pairs for each in pair})
    read = [(await _outcome(hone, one, spent), await _outcome(hone, two, spent)) for one, two in pairs]
    return summarize([(one, two) for one, two in read if one and two])


def _has(account: Account, call: SpentCall, lesson: BilledLesson) -> bool:
    prompt = account.prompts.get(call.prefix)
    return prompt is not None and lesson.key in prompt.held


def _talk(summary: SessionSummary) -> PastTalk:
    header = summary.header
    return PastTalk(header.id, header.folder, header.created, frozenset(to_stems(summary.opening)))


def match(before: Sequence[PastTalk], after: Sequence[PastTalk]) -> list[tuple[SessionId, SessionId]]:
    """Return pairs of conversations with similar beginnings, most similar first."""
    close = [
        (-_likeness(old.stems, new.stems), old.at, new.at, old.id, new.id)
        for new in after
        for old in before
        if old.folder == new.folder and _likeness(old.stems, new.stems) >= ALIKE
    ]
    taken: set[SessionId] = set()
    found: list[tuple[SessionId, SessionId]] = []
    for _, _, _, old, new in sorted(close):
        if not taken & {old, new} and len(found) < MOST:
            taken |= {old, new}
            found.append((old, new))
    return found


def _likeness(one: frozenset[str], other: frozenset[str]) -> float:
    return len(one & other) / len(one | other) if one and other else 0.0


def summarize(pairs: Sequence[tuple[TalkOutcome, TalkOutcome]]) -> Comparison:
    """Return the differences, after minus before; none with too few pairs."""
    if len(pairs) < FEWEST:
        return Comparison(len(pairs))
    return Comparison(
        len(pairs),
        tuple(
            _difference(name, [float(value(new) - value(old)) for old, new in pairs])
            for name, value in FIGURES.items()
        ),
    )


def _difference(name: str, apart: Sequence[float]) -> FigureDifference:
    mean, free = fmean(apart), len(apart) - 1
    z = NormalDist().inv_cdf(0.975)
    # Student's t by its expansion around the normal distribution.
    t = z + (z**3 + z) / (4 * free) + (5 * z**5 + 16 * z**3 + 3 * z) / (96 * free**2)
    reach = t * stdev(apart) / sqrt(len(apart))
    return FigureDifference(name, mean, mean - reach, mean + reach)


def _spent(
    calls: Sequence[SpentCall], sessions: Collection[SessionId]
) -> Mapping[SessionId, tuple[int, int]]:
    found: dict[SessionId, tuple[int, int]] = {}
    for call in calls:
        if call.session in sessions and call.spending.origin is Origin.USER:
            count, tokens = found.get(call.session, (0, 0))
            usage = call.spending.usage
            found[call.session] = count + 1, tokens + usage.input + usage.output
    return found


async def _outcome(
    hone: Hone, session: SessionId, spent: Mapping[SessionId, tuple[int, int]]
) -> TalkOutcome | None:
    try:
        nodes = (await hone.sessions.load(session)).transcript.nodes
    except StoreError:
        return None
    return TalkOutcome(*spent.get(session, (0, 0)), *count_trouble(nodes))


def count_trouble(nodes: Sequence[Node]) -> tuple[int, int]:
    """Return how many tool calls failed, and how often the owner corrected something after an answer."""
    failures = sum(bool(each.message.result and each.message.result.failed) for each in nodes)
    said = [
        each.message.text
        for each in nodes
        if each.message.role is Role.USER and each.trust is Trust.OWNER and not each.message.template
    ]
    return failures, sum(find_cue(text) in _CORRECTS for text in said[1:])
