"""How well whole questions find their evidence, with text alone.

Tuned on the questions with even numbers; the others tell how good it is.
"""

import calendar
import re
from collections import Counter, defaultdict
from collections.abc import AsyncIterator
from dataclasses import dataclass, replace
from datetime import UTC
from pathlib import Path
from statistics import fmean

from hone.core.ids import SessionId
from hone.core.messages import Message, ToolCall, answer, assistant, user
from hone.core.ports import Header, Sessions
from hone.core.prefix import Prefix
from hone.core.recall import Query, stem
from hone.core.transcript import Transcript
from hone.core.trust import Trust
from hone.stores.database import Database
from hone.stores.recall import SqliteRecall
from hone.stores.sqlite import SqliteSessions
from tests.conftest import Figures
from tests.recall.conversations import Conversation, Place, Question, Said, conversations

PREFIX = Prefix("scripted/one", "One.")
FIRST = 10
AIM, AIM_TOGETHER = 0.75, 0.72
ACKNOWLEDGED = (("go on", "Done."), ("ok", "Noted."), ("thanks", "You are welcome."), ("yes", "Done."))
RARE = 2
WORD = re.compile(r"[^\W_]+")
TIMES = frozenset(calendar.month_name)


@dataclass(frozen=True)
class Score:
    """`found` is the share of the evidence among the first ten, `rank` one over the place of its first."""

    number: int
    kind: str
    found: float
    rank: float


async def test_whole_questions_find_their_evidence(tmp_path: Path, figures: Figures) -> None:
    whole, bare = [pair async for pair in scored(tmp_path)], "without names and rare words"
    assert len(whole) == 300
    halves = {"tuned on": [each for each in whole if not each[0].number % 2]}
    halves["kept apart"] = [each for each in whole if each[0].number % 2]
    for name, half in halves.items():
        figures(f"recall@{FIRST}, {name}: {told([first for first, _ in half])}")
        figures(f"recall@{FIRST}, {name}, {bare}: {told([second for _, second in half])}")
    assert fmean(score.found for score, _ in halves["kept apart"]) >= AIM


async def test_ten_people_share_a_home_and_short_words_come_often(tmp_path: Path, figures: Figures) -> None:
    """As in real use: the words of a question stand in many conversations, and "go on" in all of them."""
    database = Database.open(tmp_path / "hone.db")
    store, recall = SqliteSessions(database), SqliteRecall(database)
    for place, conversation in enumerate(conversations()):
        await keep(store, acknowledged(conversation), f"{place}-")
    scores, number = [], 0
    for place, conversation in enumerate(map(acknowledged, conversations())):
        for question in conversation.questions:
            number += 1
            scores.append(await score(recall, number, question, conversation, f"{place}-"))
    await database.close()
    for name, left in (("tuned on", 0), ("kept apart", 1)):
        figures(
            f"recall@{FIRST}, one home, {name}: {told([each for each in scores if each.number % 2 == left])}"
        )
    assert fmean(each.found for each in scores if each.number % 2) >= AIM_TOGETHER


def acknowledged(conversation: Conversation) -> Conversation:
    """After some of the answers: a word to go on, and a word back."""
    sessions, moved = [], {}
    for number, messages in enumerate(conversation.sessions, 1):
        longer: list[Said] = []
        for place, said in enumerate(messages, 1):
            longer.append(said)
            moved[Place(number, place)] = Place(number, len(longer))
            if said.role == "assistant" and place % 3 == 0:
                asked, given = ACKNOWLEDGED[place % len(ACKNOWLEDGED)]
                longer += [Said("user", asked, said.at), Said("assistant", given, said.at)]
        sessions.append(tuple(longer))
    questions = tuple(
        replace(asked, evidence=tuple(moved[place] for place in asked.evidence))
        for asked in conversation.questions
    )
    return Conversation(conversation.person, tuple(sessions), questions)


def told(scores: list[Score]) -> str:
    kinds: dict[str, list[Score]] = defaultdict(list)
    for score in scores:
        kinds[score.kind].append(score)
    each = ", ".join(f"{kind} {fmean(score.found for score in of):.2f}" for kind, of in sorted(kinds.items()))
    rank = fmean(score.rank for score in scores)
    return f"{fmean(score.found for score in scores):.3f} of {len(scores)} questions, MRR {rank:.3f} ({each})"


async def scored(folder: Path) -> AsyncIterator[tuple[Score, Score]]:
    """Each question as it is, and without what makes it easy."""
    number = 0
    for place, conversation in enumerate(conversations()):
        database = Database.open(folder / f"{place}.db")
        await keep(SqliteSessions(database), conversation)
        recall, often = SqliteRecall(database), frequent(conversation)
        for question in conversation.questions:
            number += 1
            harder = replace(question, question=without(question.question, often))
            yield (
                await score(recall, number, question, conversation),
                await score(recall, number, harder, conversation),
            )
        await database.close()


def frequent(conversation: Conversation) -> set[str]:
    """The words of more than two messages."""
    counts = Counter(
        word for place in conversation.places() for word in set(words(conversation.at(place).text))
    )
    return {word for word, count in counts.items() if count > RARE}


def words(text: str) -> list[str]:
    return [stem(word) for word in WORD.findall(text.lower())]


def without(question: str, often: set[str]) -> str:
    """Without names, numbers and words that hardly anything else holds; a time stays."""
    plain = question[:1].lower() + question[1:]
    kept = [
        each
        for each in plain.split()
        if each in TIMES or (each == each.lower() and often.issuperset(words(each)))
    ]
    return " ".join(kept)


async def keep(store: Sessions, conversation: Conversation, whose: str = "") -> None:
    for number, session in enumerate(conversation.sessions, 1):
        chain = Transcript(PREFIX.digest)
        for said in session:
            chain = chain.then(message(said), Trust.LOCAL, said.at.replace(tzinfo=UTC))
        await store.start(Header(SessionId(f"{whose}{number}"), chain.nodes[0].at), PREFIX, chain.nodes)


def message(said: Said) -> Message:
    match said.role:
        case "user":
            return user(said.text)
        case "assistant":
            return assistant(said.text)
    return answer(ToolCall("1", "look", "{}"), said.text)


async def score(
    recall: SqliteRecall, number: int, question: Question, conversation: Conversation, whose: str = ""
) -> Score:
    today = conversation.sessions[-1][-1].at.date()
    found = await recall.search(Query(question.question, FIRST, today=today))
    places = [(hit.header.id, hit.passage.number) for hit in found.hits]
    wanted = [(f"{whose}{each.session}", each.message) for each in question.evidence]
    ranks = [places.index(each) + 1 for each in wanted if each in places]
    return Score(number, question.kind, len(ranks) / len(question.evidence), 1 / min(ranks) if ranks else 0.0)
