"""Judge each item of a prompt: what the records of the turn say, and what the measure says."""

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby

from msgspec import DecodeError, Struct
from msgspec.json import decode

from hone.core.embedding import Meanings
from hone.core.errors import HoneError
from hone.core.messages import Message, Role
from hone.core.transcript import Node
from hone.features.attribution.items import NOTE, VIEW, find_asked, list_calls, list_items
from hone.features.attribution.measure import LIKELY, TraceScore, TurnStep, TurnText, rate
from hone.features.attribution.values import (
    AnsweredTurn,
    ItemKind,
    ItemPlace,
    JudgedItem,
    Method,
    PromptItem,
    Use,
)
from hone.knowledge.nearness import rate as rate_nearness

READ = 200_000
"""The most characters of earlier messages to compare."""
PIECES, WIDTH = 400, 2_000
"""The most pieces of all items, and the most characters of one."""
NEARBY = 1_000
"""The most characters of the answer to compare by meaning."""
_WHOLE = (ItemKind.ENTRY, ItemKind.MEMORY, ItemKind.TEAM)


class SkillRecord(Struct, frozen=True):
    """How a skill was used: in this turn, or earlier in the conversation."""

    now: str = ""
    earlier: str = ""
    text: str = ""


async def judge(answer: AnsweredTurn, meanings: Meanings | None = None) -> list[JudgedItem]:
    """Judge all items. Those that shaped the answer come first, the most certain ones first."""
    items, skills = list_items(answer), read_skills(answer)
    texts = [(item, skills[item.name].text if item.name in skills else item.text) for item in items]
    pieces = [
        (item, piece) for item, text in texts if _is_measured(item, skills) for piece in cut(item, text)
    ]
    near = await _find_near(meanings, answer, [piece for _, piece in pieces])
    scores: dict[PromptItem, TraceScore] = {}
    measured = [piece for _, piece in pieces[:PIECES]]
    rated = await asyncio.to_thread(rate, measured, to_text(answer), near)
    for (item, _), score in zip(pieces, rated, strict=False):
        if item not in scores or score.value > scores[item].value:
            scores[item] = score
    judged = [_judge(item, scores.get(item), skills, answer) for item in items]
    return sorted(judged, key=lambda each: (_RANK[each.use], -each.score))


_RANK = {Use.USED: 0, Use.LIKELY: 1, Use.UNLIKELY: 2}


def _judge(
    item: PromptItem, score: TraceScore | None, skills: Mapping[str, SkillRecord], answer: AnsweredTurn
) -> JudgedItem:
    start = len(answer.before) + 1
    if item.kind is ItemKind.SKILL:
        record = skills.get(item.name, SkillRecord())
        if record.now:
            return JudgedItem(item, Use.USED, (Method.RECORD,), 1.0, record.now)
        if not record.earlier:
            return JudgedItem(item, Use.UNLIKELY, (Method.RECORD,), 0.0, "listed, not read")
    if item.place is ItemPlace.CONVERSATION and item.message >= start:
        if item.kind is ItemKind.MEMORY:
            return JudgedItem(item, Use.USED, (Method.RECORD,), 1.0, f"looked up in message {item.message}")
        if item.kind is ItemKind.ENTRY:
            return JudgedItem(item, Use.UNLIKELY, (Method.RECORD,), 0.0, "written in this turn")
    found = score or TraceScore(0.0)
    use = Use.LIKELY if found.value >= LIKELY else Use.UNLIKELY
    return JudgedItem(item, use, (Method.MEASURE,), round(found.value, 3), describe_score(found))


def describe_score(score: TraceScore) -> str:
    """Return the reason in a few words."""
    if score.trait:
        return f"the answer has this form: {score.trait}"
    return f"first said by the model: {', '.join(score.words)}" if score.words else ""


def _is_measured(item: PromptItem, skills: Mapping[str, SkillRecord]) -> bool:
    return item.kind is not ItemKind.SKILL or bool(item.name in skills and skills[item.name].earlier)


def cut(item: PromptItem, text: str) -> Iterable[str]:
    """Return the pieces to compare: an entry as a whole, of longer texts each paragraph or line."""
    if item.kind in _WHOLE and len(text) <= WIDTH:
        return (text,)
    return [line[:WIDTH] for line in text.split("\n") if line.strip()]


def read_skills(answer: AnsweredTurn) -> Mapping[str, SkillRecord]:
    """Return the skills that were read, asked for or run, by name."""
    found: dict[str, SkillRecord] = {}
    start = len(answer.before) + 1
    nodes = (*answer.before, *answer.turn)

    def note(name: str, number: int, what: str, text: str = "") -> None:
        known = found.get(name, SkillRecord())
        said = f"{what} in message {number}"
        now, earlier = (said, known.earlier) if number >= start else (known.now, said)
        found[name] = SkillRecord(now or known.now, earlier, f"{known.text}\n{text}".strip())

    for number, node in enumerate(nodes, 1):
        for name in find_asked(node.message) if not node.message.template else ():
            note(name, number, "you asked for it", node.message.note.text if node.message.note else "")
    for made in list_calls(nodes):
        if made.call.name == VIEW and made.get("name"):
            note(made.get("name"), made.number, "read", made.result)
    for made in list_calls(nodes):
        for name in found if made.call.name != VIEW else ():
            if f"skills/{name}/" in made.call.arguments:
                note(name, made.number, "run")
    return found


def to_text(answer: AnsweredTurn) -> TurnText:
    """Return a turn as text for the measure. The output of the journal's own tool was known before."""
    listed = {call.id for node in answer.turn for call in node.message.calls if call.name == NOTE}
    before = "\n".join(_said(node, frozenset()) for node in answer.before if not node.message.template)
    steps: list[TurnStep] = []
    for is_reply, some in groupby(answer.turn[1:], lambda node: node.message.role is Role.ASSISTANT):
        nodes = [*some]
        if is_reply:
            steps += [TurnStep(_written(each.message), "", _tools(each.message)) for each in nodes]
        elif steps:
            heard = "\n".join(_said(node, listed) for node in nodes)
            steps[-1] = TurnStep(steps[-1].written, heard, steps[-1].tools)
    return TurnText(answer.request.text, tuple(steps), before[-READ:])


def _said(node: Node, hidden: Iterable[str]) -> str:
    message = node.message
    result = message.result
    if result and result.call not in hidden:
        return result.text
    return "\n".join((_written(message), *(each.text for each in message.attachments)))


def _written(message: Message) -> str:
    """Return the words of a message and the values in its calls, without their names."""
    return "\n".join((message.text, *(_values(call.arguments) for call in message.calls)))


def _values(arguments: str) -> str:
    """Return the values of a call's arguments; if they are not JSON, all of the text."""
    try:
        return "\n".join(_flatten(decode(arguments)))
    except (DecodeError, RecursionError):
        return arguments


def _flatten(value: object) -> Iterable[str]:
    if isinstance(value, dict):
        value = [*value.values()]
    if isinstance(value, list):
        return [text for each in value for text in _flatten(each)]
    return [str(value)] if isinstance(value, str | int | float) else []


def _tools(message: Message) -> tuple[str, ...]:
    return tuple(call.name for call in message.calls)


async def _find_near(
    meanings: Meanings | None, answer: AnsweredTurn, pieces: Sequence[str]
) -> Sequence[float]:
    """Return how near each piece is to the answer in meaning; nothing without an embedder."""
    if meanings is None or not pieces or len(pieces) > PIECES:
        return ()
    try:
        return await rate_nearness(meanings, answer.text[:NEARBY], pieces)
    except HoneError:
        return ()
