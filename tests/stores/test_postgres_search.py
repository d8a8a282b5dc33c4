"""F1: search on PostgreSQL finds what SQLite finds, and all that was stored before, behind two walls."""

import asyncio
import os
from pathlib import Path

import psycopg
import pytest
from hypothesis import given

from hone.core.messages import user
from hone.core.ports import Header
from hone.core.recall import Hit, Query
from hone.core.trust import Trust
from hone.stores.home import Stores
from hone.stores.postgres import passages
from hone.stores.postgres.appending import APPEND, Append
from hone.stores.postgres.database import PostgresDatabase, Rows
from hone.stores.postgres.examine import examine_database
from hone.stores.postgres.search_source import PostgresSource
from hone.stores.recall import search
from hone.stores.stemming import split
from tests import databases
from tests.contract.kinds import new_owner, sqlite
from tests.contract.kinds import postgres as shared_stores
from tests.contract.test_vectors import fill
from tests.doubles.embedder import WordEmbedder
from tests.recall.conversations import Conversation, conversations
from tests.recall.test_quality import acknowledged, keep
from tests.stores.test_recall import NOW, PREFIX, A, B, play, steps, talk
from tests.tier import Tier, fewer

ASKED = ('"boiler"', "apple cellar", "rain*", "Zürich yes", "东")


@pytest.fixture(autouse=True, scope="module")
def server() -> str:
    """Skip before a law is drawn, not inside of it."""
    return databases.shared()


@pytest.fixture
def stores() -> Stores:
    return shared_stores(new_owner())


def shown(hits: tuple[Hit, ...]) -> list[tuple[object, ...]]:
    """What a user sees of hits: the node ids behind them differ."""
    return [
        (
            hit.header.id,
            hit.tree,
            hit.passage,
            hit.before,
            hit.after,
            hit.left,
            round(hit.score, 9),
            hit.title,
        )
        for hit in hits
    ]


async def test_the_bundled_questions_get_the_same_answers_as_on_sqlite(tmp_path: Path, tier: Tier) -> None:
    """Also the scores and the neighbors, with all people in one home."""
    stores = shared_stores(new_owner()), sqlite("sqlite", tmp_path)
    people = [acknowledged(each) for each in conversations()]
    for place, conversation in enumerate(people):
        for each in stores:
            await keep(each.sessions, conversation, f"{place}-")
    asked = [(person, question) for person in people for question in person.questions]
    for draw in tier.draws(short=40, full=len(asked)):
        person, question = asked[draw.index]
        await compare(stores, question.question, person)
    await stores[1].close()


async def compare(stores: tuple[Stores, Stores], words: str, person: Conversation) -> None:
    query = Query(words, today=person.sessions[-1][-1].at.date())
    ours, theirs = [await each.recall.search(query) for each in stores]
    assert shown(ours.hits) == shown(theirs.hits), words
    assert (ours.tried, ours.dropped, ours.waiting) == (theirs.tried, theirs.dropped, 0)


async def test_a_question_with_a_meaning_gets_nearly_the_same_answers_as_on_sqlite(tmp_path: Path) -> None:
    """pgvector compares whole vectors where SQLite compares codes first: the last places may differ."""
    stores, embedder = (shared_stores(new_owner()), sqlite("sqlite", tmp_path)), WordEmbedder("one")
    person = conversations()[0]
    for each in stores:
        await keep(each.sessions, person)
        while await each.vectors.tidy("one") or await fill(each, embedder):
            pass
        assert (await each.vectors.coverage("one")).left == 0
    today = person.sessions[-1][-1].at.date()
    for question in person.questions[:8]:
        [vector] = await embedder.embed([question.question], "question")
        query = Query(question.question, today=today, embedder="one", vector=vector)
        ours, theirs = [await each.recall.search(query) for each in stores]
        plain = await stores[0].recall.search(Query(question.question, today=today))
        assert shown(ours.hits[:3]) == shown(theirs.hits[:3]), question.question
        both = {hit.passage for hit in ours.hits} & {hit.passage for hit in theirs.hits}
        assert len(both) >= 0.7 * len(theirs.hits), question.question
        assert shown(ours.hits) != shown(plain.hits), "the meaning counts"
    await stores[1].close()


@pytest.mark.timeout(3_600)
@fewer(12)
@given(steps)
def test_over_any_history_both_find_the_same_and_nothing_is_left_behind(
    history: list[tuple[str, int, str]],
) -> None:
    owner = new_owner()

    async def live() -> None:
        stores = shared_stores(owner), sqlite("sqlite-memory", Path())
        alive = [await play(each.sessions, history) for each in stores]
        for words in ASKED:
            ours, theirs = [await each.recall.search(Query(words, 50)) for each in stores]
            found = [{(hit.header.id, hit.passage, hit.left) for hit in each.hits} for each in (ours, theirs)]
            assert found[0] == found[1], words
        assert await examine_database(databases.shared(), owner) == [], (
            "doctor finds nothing to complain about"
        )
        for name in alive[0]:
            await stores[0].sessions.delete(name)
        await stores[1].close()

    asyncio.run(live())
    with psycopg.connect(databases.shared()) as connection:
        left = connection.execute("SELECT count(*) FROM hone.passages WHERE owner = %s", (owner,)).fetchone()
    assert left == (0,)


async def test_what_a_slow_transaction_commits_behind_the_others_is_found() -> None:
    """Its message got an earlier id than those that were searched before it was there."""
    owner = new_owner()
    quick = shared_stores(owner)
    chain = talk("The first.")
    await quick.sessions.start(Header(A, NOW), PREFIX, chain.nodes)
    with psycopg.connect(databases.shared()) as connection:
        connection.execute("SET search_path = hone")
        late = chain.then(user("The xylophone."), Trust.OWNER, NOW)
        step = Append(A, late.nodes[-1:], None, (), None)
        Rows(connection, owner).execute(APPEND, **step.values())
        await quick.sessions.start(Header(B, NOW), PREFIX, talk("A harbor.").nodes)
        assert len((await quick.recall.search(Query('"harbor"'))).hits) == 1
        assert len((await quick.recall.search(Query('"harbor"'))).hits) == 1
        assert (await quick.recall.search(Query('"xylophone"'))).hits == ()
    assert len((await quick.recall.search(Query('"xylophone"'))).hits) == 1


async def test_a_search_adds_what_is_new_once_and_then_only_reads(stores: Stores) -> None:
    await stores.sessions.start(Header(A, NOW), PREFIX, talk("apple", "cellar").nodes)
    database: PostgresDatabase = stores.recall._database  # type: ignore[attr-defined]
    assert await passages.catch_up(database, batches=0) == 2
    assert len((await stores.recall.search(Query("apple cellar"))).hits) == 2
    numbers = "SELECT array_agg(id ORDER BY id) FROM passages WHERE owner = %(owner)s"
    assert await database.read(lambda rows: rows.value(numbers)) == [1, 2]
    await stores.sessions.append(A, talk("apple", "cellar", "apple").nodes[2:])
    await stores.recall.search(Query("apple"))
    assert await database.read(lambda rows: rows.value(numbers)) == [1, 2]


async def test_words_stay_behind_the_walls_and_come_by_the_index(stores: Stores) -> None:
    """Row security keeps the server from using an index on words, unless a function does it."""
    other = shared_stores(new_owner())
    for each in (stores, other):
        await each.sessions.start(Header(A, NOW), PREFIX, talk("The zeppelin has landed.").nodes)
        assert len((await each.recall.search(Query("zeppelin"))).hits) == 1
    database: PostgresDatabase = stores.recall._database  # type: ignore[attr-defined]
    theirs = passages.mark_of(other.recall._database.owner)  # type: ignore[attr-defined]
    found = "SELECT ids FROM find_passages(ARRAY[%(asked)s], 10, true, '{}', '{}')"
    assert await database.read(lambda rows: rows.value(found, asked=f"'{theirs}zeppelin'")) == []
    words = f"SELECT * FROM find_words('{theirs}', '''{theirs}'':*', 100, 100)"
    assert await database.read(lambda rows: rows.execute(words).fetchall()) == []
    scans = "SELECT pg_stat_get_xact_numscans(%(name)s::regclass)"

    def count_scans(rows: Rows) -> tuple[int, int]:
        search(PostgresSource(rows), Query("zeppelin"))
        index, table = (rows.value(scans, name=f"hone.{name}") for name in ("passages_words", "passages"))
        return index, table

    index, table = await database.read(count_scans)
    assert index > 0
    assert table == 0


async def test_any_word_however_long_and_any_message_however_full_is_found(stores: Stores) -> None:
    """PostgreSQL refuses words of 2 kB, and messages whose words take more than a megabyte."""
    long = os.urandom(3_000).hex()
    many = " ".join(f"w{number:x}" for number in range(9_000)) + " the last word"
    dense = "".join(chr(0x4E00 + number * 7 % 20_000) for number in range(60_000))
    await stores.sessions.start(Header(A, NOW), PREFIX, talk(f"See {long} there.", many, dense).nodes)
    for words, number in ((long, 1), ("w1f40 w2000", 2), ("last", 2), (dense[40_000:40_006], 3)):
        hits = (await stores.recall.search(Query(words))).hits
        assert hits[0].passage.number == number, words[:20]
    other = f"{long[:-1]}{'0' if long[-1] != '0' else '1'}"
    assert (await stores.recall.search(Query(other))).hits == ()


@pytest.mark.parametrize(
    "text",
    [
        "",
        "Rain, and rain again: raining in Zürich, 东京 and Москва.",
        "again " * 300,
        " ".join(f"w{number}" for number in range(17_000)) + " w1",
    ],
)
async def test_the_server_reads_words_and_places_as_they_were_written(stores: Stores, text: str) -> None:
    expected: dict[str, list[int]] = {}
    for place, stem in enumerate(split(text), 1):
        places = expected.setdefault(f"ab/{stem}", [])
        if place <= 16_383 and len(places) < 255:
            places.append(place)
    database: PostgresDatabase = stores.recall._database  # type: ignore[attr-defined]
    query = "SELECT lexeme, positions FROM unnest((%(words)b::tsvector[])[1])"
    words = [passages.write_words("ab/", text)]
    found = await database.read(lambda rows: rows.execute(query, words=words).fetchall())
    assert {word: places or [] for word, places in found} == expected


async def test_two_searches_at_once_index_each_message_once(stores: Stores) -> None:
    await stores.sessions.start(Header(A, NOW), PREFIX, talk(*(f"apple {n}" for n in range(50))).nodes)
    found = await asyncio.gather(*(stores.recall.search(Query("apple")) for _ in range(8)))
    assert {len(each.hits) for each in found} == {10}
    database: PostgresDatabase = stores.recall._database  # type: ignore[attr-defined]
    counted = "SELECT count(*), count(DISTINCT content) FROM passages WHERE owner = %(owner)s"
    assert await database.read(lambda rows: rows.one(counted)) == (50, 50)
