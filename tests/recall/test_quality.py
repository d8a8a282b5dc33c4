"""How well whole questions find their evidence, with text alone.

Tuned on the questions with even numbers; the others tell how good it is.
"""

from collections import defaultdict
from collections.abc import AsyncIterator
from dataclasses import dataclass
from datetime import UTC
from pathlib import Path
from statistics import fmean

from hone.core.ids import SessionId
from hone.core.messages import Message, ToolCall, answer, assistant, user
from hone.core.ports import Header
from hone.core.prefix import Prefix
from hone.core.recall import Query
from hone.core.transcript import Transcript
from hone.core.trust import Trust
from hone.stores.database import Database
from hone.stores.recall import SqliteRecall
from hone.stores.sqlite import SqliteSessions
from tests.conftest import Figures
from tests.recall.conversations import Conversation, Place, Question, Said, conversations

PREFIX = Prefix("scripted/one", "One.")
FIRST = 10
AIM = 0.75


@dataclass(frozen=True)
class Score:
    """`found` is the share of the evidence among the first ten, `rank` one over the place of its first."""

    number: int
    kind: str
    found: float
    rank: float


async def test_whole_questions_find_their_evidence(tmp_path: Path, figures: Figures) -> None:
    scores = [score async for score in scored(tmp_path)]
    assert len(scores) == 300
    kept = [score for score in scores if score.number % 2]
    for name, half in (("tuned on", [each for each in scores if each not in kept]), ("kept apart", kept)):
        figures(f"recall@{FIRST}, {name}: {told(half)}")
    assert fmean(score.found for score in kept) >= AIM


def told(scores: list[Score]) -> str:
    kinds: dict[str, list[Score]] = defaultdict(list)
    for score in scores:
        kinds[score.kind].append(score)
    each = ", ".join(f"{kind} {fmean(score.found for score in of):.2f}" for kind, of in sorted(kinds.items()))
    rank = fmean(score.rank for score in scores)
    return f"{fmean(score.found for score in scores):.3f} of {len(scores)} questions, MRR {rank:.3f} ({each})"


async def scored(folder: Path) -> AsyncIterator[Score]:
    number = 0
    for place, conversation in enumerate(conversations()):
        database = Database.open(folder / f"{place}.db")
        await keep(SqliteSessions(database), conversation)
        recall = SqliteRecall(database)
        for question in conversation.questions:
            number += 1
            yield await score(recall, number, question, conversation)
        await database.close()


async def keep(store: SqliteSessions, conversation: Conversation) -> None:
    for number, session in enumerate(conversation.sessions, 1):
        chain = Transcript(PREFIX.digest)
        for said in session:
            chain = chain.then(message(said), Trust.LOCAL, said.at.replace(tzinfo=UTC))
        await store.start(Header(SessionId(str(number)), chain.nodes[0].at), PREFIX, chain.nodes)


def message(said: Said) -> Message:
    match said.role:
        case "user":
            return user(said.text)
        case "assistant":
            return assistant(said.text)
    return answer(ToolCall("1", "look", "{}"), said.text)


async def score(recall: SqliteRecall, number: int, question: Question, conversation: Conversation) -> Score:
    today = conversation.sessions[-1][-1].at.date()
    found = await recall.search(Query(question.question, FIRST, today=today))
    places = [Place(int(hit.header.id), hit.passage.number) for hit in found.hits]
    ranks = [places.index(each) + 1 for each in question.evidence if each in places]
    return Score(number, question.kind, len(ranks) / len(question.evidence), 1 / min(ranks) if ranks else 0.0)
