"""Figures of a search, and questions about the owner's own home: what is refused, and the laws."""

import asyncio
import json
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import astuple

from hone.core.clock import SystemClock
from hone.core.embedding import Purpose, pack
from hone.core.errors import HoneError, Refused
from hone.core.ids import SessionId
from hone.core.messages import Role, assistant, user
from hone.core.ports import Header
from hone.core.recall import Hit, Passage, Query, SearchResult
from hone.core.transcript import Transcript
from hone.core.trust import Trust
from hone.features.recall.bundled import BundledPerson, people
from hone.features.recall.evaluation import PREFIX, WORDS, Probe, ask, evaluate_people
from hone.features.recall.metrics import ALL, Trial, by_kind, recall_at, reciprocal, standing
from hone.features.recall.own_questions import find_evidence, read_questions
from hone.features.recall.report import lines
from hone.features.recall.searches import prepare_with
from hone.features.recall.writing import DrawnMessage, count_tokens, draw, find_fault
from hone.stores.home import open_stores
from tests.conftest import Figures

NOW = datetime(2026, 6, 30, tzinfo=UTC)
ONE, OTHER = SessionId("one"), SessionId("other")
ranks = st.lists(st.none() | st.integers(1, 12), min_size=1, max_size=4).map(tuple)
trials = st.lists(st.builds(Trial, st.sampled_from("abc"), ranks), max_size=30)
places = st.tuples(st.sampled_from([ONE, OTHER]), st.integers(1, 6))


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ("no json", "no question"),
        ('{"question": "Who?", "session": "one"}', "message"),
        ('{"question": "Who?", "session": "one", "message": 0}', ">= 1"),
        ('{"question": "Who?", "session": "one", "message": []}', "length"),
        ('{"question": "", "session": "one", "message": 1}', "length"),
        ('{"question": "Who?", "session": "one", "message": 1, "mesage": 2}', "mesage"),
        ('{"question": "Who\\ud800?", "session": "one", "message": 1}', "no question"),
    ],
)
def test_a_line_that_is_no_question_is_refused_with_its_number(tmp_path: Path, line: str, why: str) -> None:
    path = tmp_path / "mine.jsonl"
    path.write_text('{"question": "Who?", "session": "one", "message": 1}\n\n' + line + "\n")
    with pytest.raises(Refused, match=r"mine\.jsonl, line 3: ") as refused:
        read_questions(path)
    assert why in str(refused.value)


def test_a_file_that_is_missing_empty_or_no_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "empty.jsonl").write_text("\n\n")
    for name in ("missing.jsonl", "empty.jsonl", "."):
        with pytest.raises(Refused, match=r"cannot be read|no question in it"):
            read_questions(tmp_path / name)


async def test_a_message_that_does_not_exist_is_refused_and_a_shared_one_counts_in_both(
    tmp_path: Path,
) -> None:
    stores = open_stores(tmp_path)
    chain = Transcript(PREFIX.digest)
    for number in range(4):
        chain = chain.then(user(f"said {number}"), Trust.OWNER, NOW)
    await stores.sessions.start(Header(ONE, NOW), PREFIX, chain.nodes)
    rest = chain.then(assistant("another"), Trust.AGENT, NOW).nodes[4:]
    await stores.sessions.start(Header(OTHER, NOW, parent=ONE, shared=4), PREFIX, rest)
    path = tmp_path / "mine.jsonl"

    async def found(session: str, message: int | list[int]) -> list[Probe]:
        path.write_text(json.dumps({"question": "Who?", "session": session, "message": message}))
        return await find_evidence(stores.sessions, read_questions(path), path, NOW.date())

    for session, message in (("third", 1), ("one", 5), ("other", 6)):
        with pytest.raises(Refused, match=r"mine\.jsonl, line 1: "):
            await found(session, message)
    assert (await found("oth", [2, 5]))[0].evidence == (
        frozenset({(OTHER, 2), (ONE, 2)}),
        frozenset({(OTHER, 5)}),
    )
    await stores.close()


@given(trials)
def test_the_figures_of_all_are_the_mean_of_those_of_the_kinds(tried: list[Trial]) -> None:
    found = by_kind(tried)
    parts = [each for kind, each in found.items() if kind != ALL] or [found[ALL]]
    assert sum(each.questions for each in parts) == found[ALL].questions == len(tried)
    for field in ("recall_1", "recall_5", "recall_10", "mrr"):
        weighed = sum(getattr(each, field) * each.questions for each in parts)
        assert getattr(found[ALL], field) * len(tried) == pytest.approx(weighed)


@given(trials)
def test_the_order_of_the_questions_does_not_matter(tried: list[Trial]) -> None:
    one, other = standing(tried), standing(sorted(tried, key=repr))
    assert astuple(one) == pytest.approx(astuple(other))


@given(ranks)
def test_recall_grows_with_depth_and_a_better_rank_never_lowers_a_figure(
    found: tuple[int | None, ...],
) -> None:
    trial = Trial("a", found)
    shares = [recall_at(depth, trial) for depth in range(1, 13)]
    assert shares == sorted(shares)
    assert shares[-1] == sum(rank is not None for rank in found) / len(found)
    better = Trial("a", tuple(rank and max(1, rank - 1) for rank in found))
    assert reciprocal(better) >= reciprocal(trial)
    assert recall_at(5, better) >= recall_at(5, trial)
    assert (reciprocal(trial) == 1) == (recall_at(1, trial) > 0)
    assert (reciprocal(trial) == 0) == (shares[-1] == 0)


class Listed:
    """A search that finds these places, whatever is asked."""

    def __init__(self, found: list[tuple[SessionId, int]]) -> None:
        self.found = found

    async def search(self, query: Query) -> SearchResult:
        hits = (
            Hit(Header(session, NOW), session, Passage(number, Role.USER, Trust.OWNER, NOW, query.words))
            for session, number in self.found
        )
        return SearchResult(tuple(hits))


@given(st.lists(places, unique=True), st.frozensets(places, min_size=1))
def test_evidence_has_the_place_of_its_first_result(
    found: list[tuple[SessionId, int]], accepted: frozenset[tuple[SessionId, int]]
) -> None:
    trial = asyncio.run(ask(Listed(found), Probe("Who?", "a", (accepted,), NOW.date())))
    wanted = [rank for rank, place in enumerate(found[:10], 1) if place in accepted]
    assert trial.ranks == (min(wanted, default=None),)


@pytest.mark.parametrize(
    ("question", "fault"),
    [
        ("", "is empty"),
        ("?!", "is empty"),
        ("Which plumber repaired the boiler on Friday?", "repeats"),
        ("which PLUMBERS repair boilers?", "repeats"),
        ("Who fixed our heating at the end of that week?", ""),
    ],
)
def test_a_question_that_repeats_its_message_is_left_out(question: str, fault: str) -> None:
    assert find_fault(question, "The plumber Osei repaired the boiler on Friday.").startswith(fault)


async def test_messages_are_drawn_from_many_sessions_and_secrets_stay_here(tmp_path: Path) -> None:
    secret = "sk-ant-api03-" + "aB3dE5fG7hJ9" * 7
    stores = open_stores(tmp_path)
    for number in range(6):
        chain = Transcript(PREFIX.digest)
        for place in range(10):
            chain = chain.then(
                user("ok" if place % 2 else f"{number} {place} {secret} " * 9), Trust.OWNER, NOW
            )
        await stores.sessions.start(Header(SessionId(str(number)), NOW), PREFIX, chain.nodes)
    drawn = await draw(stores.sessions, 6, 1)
    assert len({each.session for each in drawn}) == 6
    assert all(each.number % 2 for each in drawn)
    assert secret not in str(drawn)
    assert drawn == await draw(stores.sessions, 6, 1) != await draw(stores.sessions, 6, 2)
    assert len(await draw(stores.sessions, 500, 1)) == 30
    assert count_tokens(drawn)[0] > sum(len(each.text) for each in drawn) // 4
    await stores.close()


def test_nothing_is_drawn_from_nothing() -> None:
    assert count_tokens(list[DrawnMessage]()) == (0, 0)


@pytest.mark.parametrize("merged", [False, True])
async def test_bundled_people_are_asked_about_in_their_own_homes_or_in_one(
    merged: bool, figures: Figures
) -> None:
    told: list[tuple[int, int]] = []
    some = people()[:3]
    found = await evaluate_people(some, merged=merged, tell=lambda done, of: told.append((done, of)))
    count = sum(len(person.questions) for person in some)
    assert told == [(number, count) for number in range(1, count + 1)]
    assert found.searches[WORDS]["plain"].recall_10 > 0.8
    assert found.searches[WORDS]["phrase"].recall_10 > 0.8
    table = list(lines(found))
    assert len(table) == 2 + len(found.searches[WORDS])
    figures(f"{table[0]}: {table[2]}")


async def test_what_another_person_said_is_no_evidence() -> None:
    one = people()[0]
    twin = BundledPerson("A twin", one.sessions, ())
    alone = await evaluate_people([one], merged=True)
    beside = await evaluate_people([one, twin], merged=True)
    assert beside.searches[WORDS][ALL].mrr < alone.searches[WORDS][ALL].mrr


class Oracle:
    """An embedder to which a question means the same as its evidence, and everything else something else."""

    id, host = "test/oracle", ""

    def __init__(self, person: BundledPerson, fault: str = "") -> None:
        self.fault = fault
        self.topics: dict[str, int] = {}
        for asked in person.questions:
            session, message = asked.evidence[0]
            said = person.sessions[session][message].text
            self.topics[asked.question] = self.topics.setdefault(said, len(self.topics) + 1)

    async def embed(self, texts: Sequence[str], purpose: Purpose) -> list[bytes]:
        if purpose == self.fault:
            raise HoneError("The oracle is silent.")
        return [pack([float(self.topics.get(text, 0) == number) for number in range(80)]) for text in texts]

    async def close(self) -> None: ...


async def test_an_embedder_is_measured_beside_words_alone() -> None:
    one = people()[-1]
    prepare = prepare_with("test/oracle", Oracle(one), SystemClock())
    found = await evaluate_people([one], merged=False, prepare=prepare)
    assert list(found.searches) == [WORDS, "test/oracle"]
    words, meaning = (found.searches[name]["paraphrase"].recall_10 for name in found.searches)
    assert meaning > words
    table = list(lines(found))
    assert table[1].split() == ["words", "alone", "with", "test/oracle"]
    assert len({len(line) for line in table[2:]}) == 1


@pytest.mark.parametrize("fault", ["question", "passage"])
async def test_an_embedder_that_fails_gives_no_figures(fault: str) -> None:
    prepare = prepare_with("test/oracle", Oracle(people()[0], fault), SystemClock())
    with pytest.raises(HoneError, match="The oracle is silent"):
        await evaluate_people(people()[:1], merged=False, prepare=prepare)
