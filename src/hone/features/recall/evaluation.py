"""Evaluate a search with questions whose evidence is known, from bundled conversations or from the owner's.

Nothing is written to the owner's home: bundled people are in a scratch folder for that time.
"""

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from datetime import date
from pathlib import Path
from tempfile import TemporaryDirectory

from msgspec import Struct

from hone.core.ids import SessionId
from hone.core.messages import Message, ToolCall, answer, assistant, user
from hone.core.ports import Header
from hone.core.prefix import Prefix
from hone.core.recall import Query, Recall
from hone.core.transcript import Transcript
from hone.core.trust import Trust
from hone.features.recall.bundled import BundledMessage, BundledPerson
from hone.features.recall.metrics import DEPTH, Standing, Trial, by_kind
from hone.stores.home import Stores, open_stores

PREFIX = Prefix("bundled/people", "People whose conversations search is measured with.")
WORDS = "words"
"""The search without an embedder."""

Place = tuple[SessionId, int]
"""A session and the number of a message in it, from 1."""
Searches = Mapping[str, Recall]
"""Name → search. The first one uses words alone."""
Prepare = Callable[[Stores], AbstractAsyncContextManager[Searches]]
"""Makes the searches of a scratch home in a folder."""
Tell = Callable[[int, int], None]
"""Hears how many questions were asked, and the total."""


def silent(_done: int, _total: int) -> None: ...


class Probe(Struct, frozen=True):
    """A question, and for each piece of evidence the places where it counts as found."""

    question: str
    kind: str
    evidence: tuple[frozenset[Place], ...]
    today: date


class Evaluation(Struct, frozen=True):
    """The result of a set of questions: the name of a search → kind → figures."""

    name: str
    searches: Mapping[str, Mapping[str, Standing]]


async def ask(recall: Recall, probe: Probe) -> Trial:
    found = await recall.search(Query(probe.question, DEPTH, today=probe.today))
    places = [(hit.header.id, hit.passage.number) for hit in found.hits[:DEPTH]]
    return Trial(probe.kind, tuple(_first(places, accepted) for accepted in probe.evidence))


def _first(places: Sequence[Place], accepted: frozenset[Place]) -> int | None:
    return next((rank for rank, place in enumerate(places, 1) if place in accepted), None)


async def evaluate(name: str, searches: Searches, probes: Sequence[Probe], tell: Tell = silent) -> Evaluation:
    """Run every question against every search of one home."""
    trials = await _asked(searches, probes, tell, 0, len(probes))
    return Evaluation(name, {each: by_kind(of) for each, of in trials.items()})


async def _asked(
    searches: Searches, probes: Sequence[Probe], tell: Tell, before: int, total: int
) -> dict[str, list[Trial]]:
    trials: dict[str, list[Trial]] = {name: [] for name in searches}
    for number, probe in enumerate(probes, 1):
        for name, recall in searches.items():
            trials[name].append(await ask(recall, probe))
        tell(before + number, total)
    return trials


@asynccontextmanager
async def by_words(stores: Stores) -> AsyncIterator[Searches]:
    """Search the stores of a scratch home by words alone."""
    yield {WORDS: stores.recall}


async def evaluate_people(
    people: Sequence[BundledPerson],
    *,
    merged: bool,
    prepare: Prepare = by_words,
    tell: Tell = silent,
) -> Evaluation:
    """Run each person's questions in a home with their own conversations, or in one with everybody's."""
    total, done = sum(len(person.questions) for person in people), 0
    trials: dict[str, list[Trial]] = {}
    for home in [people] if merged else [[person] for person in people]:
        probes = [probe for person in home for probe in probes_of(person)]
        async with settled(home, prepare) as searches:
            for each, of in (await _asked(searches, probes, tell, done, total)).items():
                trials.setdefault(each, []).extend(of)
        done += len(probes)
    name = f"{len(people)} homes, {'merged into one' if merged else 'each by itself'}"
    return Evaluation(name, {each: by_kind(of) for each, of in trials.items()})


def probes_of(person: BundledPerson) -> list[Probe]:
    return [
        Probe(
            asked.question,
            asked.kind,
            tuple(frozenset({(_id(person, session), message + 1)}) for session, message in asked.evidence),
            person.asked.date(),
        )
        for asked in person.questions
    ]


@asynccontextmanager
async def settled(people: Sequence[BundledPerson], prepare: Prepare) -> AsyncIterator[Searches]:
    """Store the conversations of some people in a scratch home, in chronological order."""
    with TemporaryDirectory(prefix="hone-recall-") as scratch:
        stores = open_stores(Path(scratch))
        try:
            sessions = [
                (session[0].at, _id(person, number), session)
                for person in people
                for number, session in enumerate(person.sessions)
            ]
            for at, id, session in sorted(sessions, key=lambda each: each[:2]):
                chain = Transcript(PREFIX.digest)
                for said in session:
                    chain = chain.then(*_message(said), said.at)
                await stores.sessions.start(Header(id, at), PREFIX, chain.nodes)
            async with prepare(stores) as searches:
                yield searches
        finally:
            await stores.close()


def _id(person: BundledPerson, session: int) -> SessionId:
    return SessionId(f"{person.name}/{session}")


def _message(said: BundledMessage) -> tuple[Message, Trust]:
    match said.role:
        case "user":
            return user(said.text), Trust.OWNER
        case "assistant":
            return assistant(said.text), Trust.AGENT
    return answer(ToolCall("1", "shell", "{}"), said.text), Trust.LOCAL
