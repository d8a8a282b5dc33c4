"""Ask the model which items it relied on: one question after the answer, on the same prefix.

The question is a fork without any rights: its request begins with the bytes of the conversation, so the
provider reads it from its cache, and the conversation itself does not change. The model's answer is its word,
not a measurement.
"""

from collections.abc import Sequence

from hone.app import Hone
from hone.core.agent import Limits
from hone.core.errors import ModelError
from hone.core.permit import NOTHING
from hone.core.ports import Header
from hone.core.regex import regex
from hone.core.trust import Trust
from hone.core.turn import Origin, Stop
from hone.core.value import replace
from hone.core.visible import one_line, text_to_path
from hone.features.attribution.values import AnsweredTurn, Explanation, ItemKind, JudgedItem, Method, Use
from hone.runtime.session import Session, new_id

MOST = 60
"""The most items in one question."""
WIDTH = 300
QUESTION = (
    "Which of these did your last answer depend on? Name those without which you would have acted or "
    "answered differently. Reply with their numbers, separated by commas, or with the word none. "
    "Write nothing else."
)
_NUMBER = regex(r"\d+")


async def ask(hone: Hone, explanation: Explanation) -> Explanation:
    """Return the same explanation with the model's answer. Raises ModelError if there is none."""
    asked = [each for each in explanation.items if _is_asked(each)][:MOST]
    if not asked:
        return explanation
    named = {id(each) for each in choose(await _put(hone, explanation.answer, asked), asked)}
    items = [_cite(each) if id(each) in named else each for each in explanation.items]
    return replace(explanation, items=tuple(sorted(items, key=lambda each: not each.counts)))


def _is_asked(judged: JudgedItem) -> bool:
    """Tell whether to ask about an item. A skill that was never read cannot have shaped anything."""
    return judged.item.kind is not ItemKind.SKILL or judged.counts


def write_question(items: Sequence[JudgedItem]) -> str:
    lines = (f"{number}. {_describe(each)}" for number, each in enumerate(items, 1))
    return "\n".join((QUESTION, "", *lines))


def choose(reply: str, items: Sequence[JudgedItem]) -> list[JudgedItem]:
    """Return the items that a reply names. Only its first line with a number counts, and only numbers from
    the question."""
    line = next((line for line in reply.split("\n") if _NUMBER.search(line)), "")
    numbers = {int(each) for each in _NUMBER.findall(line) if len(each) < 4}
    return [items[number - 1] for number in sorted(numbers) if 0 < number <= len(items)]


def _describe(judged: JudgedItem) -> str:
    item = judged.item
    return one_line(
        item.text if item.kind is ItemKind.ENTRY else f"{item.kind} {item.name}: {item.text}", WIDTH
    )


def _cite(judged: JudgedItem) -> JudgedItem:
    use = Use.LIKELY if judged.use is Use.UNLIKELY else judged.use
    return replace(judged, use=use, by=(*(judged.by if judged.counts else ()), Method.CITATION))


async def _put(hone: Hone, answer: AnsweredTurn, items: Sequence[JudgedItem]) -> str:
    """Put the question after the answer, in the line that the conversation continues with."""
    stored = await hone.sessions.load(answer.header.id)
    folder = text_to_path(answer.header.folder) if answer.header.folder else hone.folder
    agent = await hone.agent(stored.prefix.model, folder)
    shared = stored.transcript.upto(answer.number)
    now = hone.clock.now()
    header = Header(
        new_id(),
        now,
        origin=Origin.QUESTION,
        folder=answer.header.folder,
        parent=answer.header.id,
        shared=len(shared),
    )
    narrowed = replace(agent, prefix=stored.prefix).narrowed(NOTHING, Limits(calls=1))
    fork = Session(header, narrowed, shared.forked(), hone.quiet_deps(), voice=Trust.AGENT)
    turn = await fork.send(write_question(items))
    if turn.stop not in (Stop.ANSWERED, Stop.BUDGET):
        raise ModelError(turn.error)
    return turn.text
