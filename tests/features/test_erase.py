"""F3, F5: what is erased is gone from every byte of the home, and everything else is as it was."""

import json
import os
from collections.abc import Awaitable, Callable
from datetime import timedelta
from pathlib import Path
from random import Random

import apsw
import pytest

from hone import Hone
from hone.core.backend import Deleted
from hone.core.clock import ManualClock
from hone.core.documents import DocumentKind
from hone.core.erasure import Erasure, Scrubber
from hone.core.errors import Conflict, Missing, Refused, StoreError
from hone.core.holding import ERASED
from hone.core.ids import SessionId
from hone.core.ledger import (
    MEMORY,
    USER,
    Actor,
    Author,
    ChangeId,
    ChangeQuery,
    Evidence,
    memory_item,
    project,
)
from hone.core.messages import digest, user
from hone.core.ports import Header
from hone.core.skill import SkillOrigin
from hone.core.transcript import Transcript
from hone.core.trust import Trust
from hone.features.backends.part import MemoryPart
from hone.features.erasing.knowledge import make_rewrite
from hone.features.erasing.part import ErasingPart
from hone.features.erasing.plan import plan_lesson, plan_memory, plan_session, plan_words
from hone.features.erasing.service import Erasing
from hone.features.templates.store import Templates
from hone.files.documents import FileDocuments
from hone.files.erasing import below
from hone.holdings import all_holdings
from hone.knowledge import journal
from hone.knowledge.items import Items, KeptMemory
from hone.knowledge.keeper import OWNER
from hone.knowledge.skills.folder import Create, WriteFile
from hone.models.scripted import Scripted, rounds
from hone.settings import Settings
from hone.settings.sections import Memory, RetentionSettings
from hone.stores import erasing, passages
from hone.stores.carrying import carry_erasures
from hone.stores.damage import Damage
from hone.stores.database import MIGRATIONS, Database, connect, read_script
from hone.stores.examine import examine
from hone.stores.purging import purge
from hone.stores.sqlite import SqliteSessions
from tests.conftest import Figures, Tier
from tests.doubles import odd
from tests.doubles.odd import Odd
from tests.features.facts import SETTINGS, furnish, make_fact, open_home
from tests.given import NOON
from tests.rig import PREFIX

NAMES = {
    "backlog": (),
    "cards": ("digest", "description", "words", "stems"),
    "changes": ("target", "deed", "standing", "actor", "session", "parent", "batch", "platform"),
    "contents": ("digest", "body"),
    "counts": ("tree", "topic"),
    "deltas": ("path", "before", "after"),
    "erasures": ("name", "what"),
    "evidence": ("session", "digest"),
    "histories": ("session", "digest"),
    "holdings": ("target", "path", "digest"),
    "jobs": ("session", "tree", "topics", "state", "review", "changes", "others"),
    "knowledge": ("digest", "body"),
    "looks": ("session", "tree"),
    "mirror": ("home", "backend"),
    "nodes": ("hash",),
    "prefixes": ("digest", "body"),
    "prints": ("target", "path", "digest", "inode", "modified"),
    "rounds": ("session", "changes"),
    "sessions": ("id", "origin", "parent", "model", "opening", "hash", "tree"),
    "skills": ("name", "document", "birth", "project"),
    "spending": ("session", "model", "origin"),
    "spending_hours": ("origin",),
    "tallies": ("skill", "last_use"),
    "uses": ("skill", "day", "session", "result"),
    "embedders": ("name",),
    "vectors": ("vector",),
    "vector_codes": ("contents", "codes"),
    "meanings": ("digest", "vector"),
}
"""Columns that hold ids, digests and names, or that follow from others."""


def damage(home: Path) -> list[Damage]:
    """What `hone doctor --deep` would find in the database."""
    connection = connect(home / "hone.db", 10)
    try:
        return examine(connection)
    finally:
        connection.close()


def places_of(home: Path, fact: str) -> list[str]:
    """Files that hold a fact in any form: as it is, in one case, or escaped."""
    forms = {
        fact,
        fact.casefold(),
        fact.upper(),
        json.dumps(fact)[1:-1],
        json.dumps(fact, ensure_ascii=False)[1:-1],
    }
    wanted = [form.encode() for form in forms]
    return [str(path) for path in below(home) if any(form in path.read_bytes() for form in wanted)]


def terms_of(home: Path) -> set[str]:
    """All words of all full-text indexes of a home."""
    found: set[str] = set()
    for file, index in (
        ("hone.db", "passage_words"),
        ("hone.db", "card_words"),
        ("memories.db", "memo_words"),
    ):
        connection = connect(home / file, 10)
        connection.execute(f"CREATE VIRTUAL TABLE temp.vocabulary USING fts5vocab (main, {index}, row)")
        found |= {str(term) for (term,) in connection.execute("SELECT term FROM temp.vocabulary")}
        connection.close()
    return found


async def erased(root: Path, plan: Callable[[Hone], Awaitable[Erasure]]) -> list[str]:
    """Erase, and return everything that is wrong afterwards."""
    async with open_home(root) as hone:
        what = await plan(hone)
        outcome = await Erasing(hone).erase(what)
        wrong = [f"left: {each}" for each in (*outcome.proof.left, *await Erasing(hone).find(what))]
        wrong += [line for fine, line in await hone.checks() if not fine]
        for summary in await hone.sessions.list(None, None):
            await hone.sessions.load(summary.header.id)
    return [*wrong, *map(str, damage(root / "home"))]


def copy(database: Path, backup: Path) -> None:
    with (
        apsw.Connection(str(backup)) as to,
        apsw.Connection(str(database)) as now,
        to.backup("main", now, "main") as work,
    ):
        work.step()


async def carried(root: Path) -> int:
    """As restoring a backup does it; return how many erasures were carried over."""
    old = Database.open(root / "old.db")
    source = connect(root / "home" / "hone.db", 10)
    made = await old.write(lambda target: carry_erasures(source, target))
    assert await old.read(examine) == []
    source.close()
    # Publishing notes the files by their new names.
    await old.write(lambda connection: connection.execute("DELETE FROM prints"))
    await old.close()
    assert await purge(root / "old.db", Erasure()) == []
    return sum(not each.holdings for each in made)


@pytest.mark.timeout(3_600)
async def test_a_fact_in_every_kind_of_place_is_gone_from_every_byte(
    tmp_path: Path, tier: Tier, figures: Figures
) -> None:
    tried, left, lost = 0, 0, 0
    for draw in tier.draws(short=1, full=200):
        root = tmp_path / str(draw.index)
        root.mkdir()
        fact, other = make_fact(draw.random), make_fact(draw.random)
        await furnish(root, fact, "a")
        await furnish(root, other, "b")
        before = len(places_of(root, other))
        assert len(places_of(root / "home", fact)) > 15

        async def plan(_: Hone, words: str = fact) -> Erasure:
            return plan_words([words])

        wrong = await erased(root, plan)
        stems = {word for word in fact.casefold().split() if word.isalpha() and word.isascii()}
        tried, left = (
            tried + 1,
            left + bool(wrong or places_of(root / "home", fact) or stems & terms_of(root / "home")),
        )
        # The damaged copy of another repair goes, too: nobody can search it.
        lost += before - len(places_of(root, other)) > 1
        assert not wrong
    figures.tally(tried, got_in=left, lost=lost, note="facts in every kind of place, erased")
    assert (left, lost) == (0, 0)


async def test_an_erased_lesson_is_in_no_version_and_on_no_list(tmp_path: Path) -> None:
    fact, other = make_fact(Random(5)), make_fact(Random(6))
    (tmp_path / "work").mkdir()
    async with open_home(tmp_path) as hone:
        [old] = await hone.keeper.note([(USER, journal.Add(f"Lives in {fact}."))], OWNER)
        [new] = await hone.keeper.note(
            [(USER, journal.ReplaceEntry(fact, f"Moved from {fact} to Rome."))], OWNER
        )
        [kept] = await hone.keeper.note([(USER, journal.Add(f"Likes {other}."))], OWNER)
        await hone.keeper.note([(USER, journal.Remove(f"Moved from {fact} to Rome."))], OWNER)
        assert len(await hone.keeper.withdrawals.all()) == 2
    assert not await erased(tmp_path, lambda hone: plan_lesson(hone, new.id))
    assert places_of(tmp_path, fact) == []
    async with open_home(tmp_path) as hone:
        assert await hone.keeper.withdrawals.all() == ()
        assert journal.entries(await hone.keeper.text(USER)) == (f"Likes {other}.",)
        # Whatever is undone now, in whatever order, nothing comes back.
        for entry in await hone.ledger.entries(ChangeQuery(target=USER)):
            try:
                await hone.keeper.undo(entry.id)
            except Refused:
                continue
        assert not Scrubber((fact,)).count(await hone.keeper.text(USER))
    assert old.id < kept.id
    assert not damage(tmp_path / "home")


async def test_an_erased_conversation_leaves_nothing_of_its_own(tmp_path: Path) -> None:
    fact, other = make_fact(Random(7)), make_fact(Random(8))
    (tmp_path / "work").mkdir()
    async with open_home(tmp_path, f"Noted: {fact}.") as hone:
        session = await hone.session()
        await session.send(f"My secret is {fact}.")
        node = session.transcript.nodes[0]
        evidence = (Evidence(session.id, 1, Trust.OWNER, node.digest),)
        author = Author(
            Actor.AGENT, session.id, reason=fact, evidence=evidence, quotes=(f"My secret is {fact}.",)
        )
        [lesson] = await hone.keeper.note([(MEMORY, journal.Add("Has a secret.", anyway=True))], author)
        (hone.home / "history").write_text(
            json.dumps(f"My secret is {fact}.") + "\n" + json.dumps(other) + "\n"
        )
    async with open_home(tmp_path, "Fine.") as hone:
        beside = await hone.session()
        await beside.send(other)
    assert not await erased(tmp_path, lambda hone: plan_session(hone, session.id))
    assert places_of(tmp_path / "home", fact) == []
    async with open_home(tmp_path) as hone:
        assert [each.header.id for each in await hone.sessions.list(None, None)] == [beside.id]
        [cited] = (await hone.ledger.entry(lesson.id)).change.author.evidence
        assert cited.digest != node.digest
        assert "Has a secret." in await hone.keeper.text(MEMORY)
    assert json.dumps(other) in (tmp_path / "home" / "history").read_text()


async def test_an_erased_memory_is_gone_with_its_key(tmp_path: Path) -> None:
    fact = make_fact(Random(9))
    await furnish(tmp_path, fact)
    assert not await erased(tmp_path, lambda hone: plan_memory(hone, "key-a"))
    connection = apsw.Connection(str(tmp_path / "home" / "memories.db"))
    assert "key-a" not in [key for (key,) in connection.execute("SELECT key FROM memos")]
    connection.close()
    assert places_of(tmp_path / "home", f"It is {fact}.") == []


async def test_a_conversation_that_is_open_elsewhere_cannot_bring_it_back(tmp_path: Path) -> None:
    fact = make_fact(Random(10))
    (tmp_path / "work").mkdir()
    async with open_home(tmp_path, "Yes.", "Again.") as elsewhere:
        session = await elsewhere.session()
        await session.send(f"It is {fact}.")

        async def plan(_: Hone) -> Erasure:
            return plan_words([fact])

        assert not await erased(tmp_path, plan)
        with pytest.raises(Conflict):
            await session.send("Go on.")
    async with open_home(tmp_path) as hone:
        assert not await Erasing(hone).find(plan_words([fact]))
        stored = await hone.sessions.load(session.id)
        assert stored.transcript.nodes[0].message.text == f"It is {ERASED}."


async def test_an_older_backup_does_not_bring_back_what_was_erased_since(tmp_path: Path) -> None:
    fact, other = make_fact(Random(11)), make_fact(Random(12))
    await furnish(tmp_path, fact, "a")
    gone = await furnish(tmp_path, other, "b")
    copy(tmp_path / "home" / "hone.db", tmp_path / "old.db")

    async def plan(_: Hone) -> Erasure:
        return plan_words([fact])

    assert not await erased(tmp_path, plan)
    assert not await erased(tmp_path, lambda hone: plan_session(hone, gone))
    assert await carried(tmp_path) == 2
    assert await carried(tmp_path) == 0
    assert places_of(tmp_path, fact) == [str(tmp_path / "work" / "a.txt")]


class Hiding(Odd):
    """A service that gives an item to nobody any more, and keeps it."""

    async def delete(self, user_id: str, key: str) -> Deleted:
        done = await super().delete(user_id, key)
        return Deleted.HIDDEN if done is Deleted.GONE else done


async def test_a_service_that_only_hides_is_named_as_such(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    service = Hiding()
    monkeypatch.setattr(odd, "current", service)
    settings = Settings(memory=Memory(backend="odd", owner="ann"), plugins=("tests.doubles.odd:register",))
    await service.store("ann", "pin", "The pin is quebracho 7731.")
    await service.store("ann", "tea", "Green tea.")
    async with Hone(home=tmp_path, settings=settings, learning="queue") as hone:
        outcome = await Erasing(hone).erase(plan_words(["quebracho 7731"]))
        assert [key for _, key in service.memos] == ["tea"]
        [note] = outcome.notes
        assert "the service still keeps them: pin" in note
        service.mood = "fails"
        [note] = (await Erasing(hone).erase(plan_words(["quebracho 7731"]))).notes
        assert "odd could not be asked" in note


async def test_names_with_the_words_in_them_go_too(tmp_path: Path) -> None:
    word = "zanzibarine"
    (tmp_path / word).mkdir()
    async with Hone(
        home=tmp_path / "home", folder=tmp_path / word, settings=SETTINGS, learning="queue"
    ) as hone:
        keeper = hone.keeper
        await keeper.note([(project(str(hone.folder)), journal.Add("Runs on Mondays."))], OWNER)
        text = "---\nname: {0}\ndescription: Use it on Mondays.\n---\n\n# Steps\n\n1. Go.\n"
        await keeper.edit_skill(f"go-{word}", Create(text.format(f"go-{word}"), SkillOrigin.USER), OWNER)
        await keeper.edit_skill("plain", Create(text.format("plain"), SkillOrigin.USER), OWNER)
        await keeper.edit_skill("plain", WriteFile(f"references/{word}.md", b"Hello.\n"), OWNER)
        memory = KeptMemory("On Mondays.", Trust.OWNER)
        await Items(keeper, hone.clock).keep(memory_item("ann", f"{word}/day"), memory, OWNER)
        await hone.part(MemoryPart).worker.drain()
        await hone.library.listed()

    async def plan(_: Hone) -> Erasure:
        return plan_words([word])

    assert places_of(tmp_path / "home", word)
    copy(tmp_path / "home" / "hone.db", tmp_path / "old.db")
    assert not await erased(tmp_path, plan)
    assert await carried(tmp_path) == 1
    assert places_of(tmp_path, word) == []
    assert places_of(tmp_path / "home", word) == []
    assert not [path for path in below(tmp_path / "home") if word in str(path.relative_to(tmp_path / "home"))]
    async with open_home(tmp_path) as hone:
        names = {each.name for each in await hone.library.listed()}
        assert "plain" in names
        assert not [name for name in names if "erased" in name]
        held = await hone.ledger.held_below("project:")
        assert [journal.entries(await hone.keeper.text(target)) for target in held] == [("Runs on Mondays.",)]


async def test_a_word_that_leads_into_the_index_leaves_no_trace_there(tmp_path: Path) -> None:
    database = Database.open(tmp_path / "hone.db")
    sessions = SqliteSessions(database)
    transcript = Transcript(PREFIX.digest)
    for number in range(120):
        words = " ".join(f"{digest(f'{number} {at}'.encode())[:12]}q" for at in range(60))
        transcript = transcript.then(user(words), Trust.OWNER, NOON)
    await sessions.start(Header(SessionId("s1"), NOON), PREFIX, transcript.nodes)

    def leads(connection: apsw.Connection) -> list[str]:
        rows = connection.execute("SELECT term FROM passage_words_idx").fetchall()
        return [bytes(term).decode()[1:] for (term,) in rows if isinstance(term, bytes) and len(term) > 5]

    await database.write(passages.fill)
    before = await database.read(leads)
    every = {word for node in transcript.nodes for word in node.message.text.split()}
    [word, *_] = [word for word in sorted(every) if any(word.startswith(lead) for lead in before)]
    rewrite = make_rewrite(Scrubber((word,)))
    await database.write(lambda connection: erasing.erase(connection, plan_words([word]), rewrite, 0))
    assert not [lead for lead in await database.read(leads) if word.startswith(lead)]
    assert await database.read(examine) == []
    await database.close()


async def test_what_is_past_its_time_goes_and_nothing_else(tmp_path: Path) -> None:
    (tmp_path / "work").mkdir()
    wanted = RetentionSettings(sessions=30, spill=7, quarantine=7, history=2)
    clock = ManualClock(NOON)
    settings = Settings(retention=wanted)
    model = Scripted(rounds("Yes."))
    async with Hone(home=tmp_path, model=model, settings=settings, clock=clock, learning="queue") as hone:
        old = await hone.session()
        await old.send("One.")
        kept = await hone.branch(old.id)
        gone = await hone.session()
        await gone.send("Two.")
        clock.advance(40 * 86_400)
        await (await hone.resume(kept)).send("Three.")
        for name, age in (("spill/old.txt", 8), ("spill/new.txt", 6), ("quarantine/old", 8)):
            (tmp_path / name).parent.mkdir(exist_ok=True)
            (tmp_path / name).write_text("text")
            at = (clock.now() - timedelta(days=age)).timestamp()
            os.utime(tmp_path / name, (at, at))
        (tmp_path / "history").write_text('"a"\n"b"\n"c"\n')
        await hone.part(ErasingPart).tend(lambda _: None)
        left = {each.header.id for each in await hone.sessions.list(None, None)}
    assert left == {old.id, kept}
    assert (tmp_path / "history").read_text() == '"b"\n"c"\n'
    assert [path.name for path in below(tmp_path / "spill")] == ["new.txt"]
    assert not [*below(tmp_path / "quarantine")]


async def test_a_template_that_the_disk_does_not_take_is_kept_until_the_next_try(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fact = make_fact(Random(5))
    await furnish(tmp_path, fact)

    def refuse(self: FileDocuments, kind: DocumentKind, name: str, *_: object) -> None:
        raise StoreError(f"The disk failed at {kind.name}/{name}.")

    async with open_home(tmp_path) as hone:
        with monkeypatch.context() as patch:
            patch.setattr(FileDocuments, "write", refuse)
            with pytest.raises(StoreError, match="templates/t-a"):
                await Erasing(hone).erase(plan_words([fact]))
        assert Templates(hone.documents).names() == ["t-a", "u-a"]
        assert (await Erasing(hone).erase(plan_words([fact]))).is_clean
        assert "(erased" in (await Templates(hone.documents).read("u-a")).description


def test_every_column_with_text_is_searched_or_holds_a_name() -> None:
    connection = apsw.Connection(":memory:")
    for script in MIGRATIONS:
        connection.execute(read_script(script))
    tables = [name for (name,) in connection.execute("SELECT name FROM sqlite_schema WHERE type = 'table'")]
    for table in tables:
        if str(table).startswith(("sqlite_", "passage_words", "card_words")):
            continue
        rows = connection.execute(f"SELECT name, type FROM pragma_table_info('{table}')").fetchall()
        found = {name for name, kind in rows if kind in ("TEXT", "BLOB")}
        assert found == {*NAMES.get(str(table), ()), *erasing.TEXTS.get(str(table), ())}, table


def test_every_holding_that_words_get_into_has_an_eraser(tmp_path: Path) -> None:
    named = {each.name for each in all_holdings(Hone(home=tmp_path).parts("holdings")) if not each.eraser}
    known = {"settings", "rules", "keys", "locks and caches", "models", "erasures", "learned sources"}
    known |= {"mcp sign-ins", "pauses", "users"}
    assert named == known


@pytest.mark.parametrize("text", ["a b", "", "  \n ", "abc"])
def test_words_that_stand_everywhere_are_refused(text: str) -> None:
    with pytest.raises(Refused, match="too short"):
        plan_words([text])


async def test_what_is_not_there_is_named_as_missing(tmp_path: Path) -> None:
    async with open_home(tmp_path) as hone:
        with pytest.raises(Missing):
            await plan_lesson(hone, ChangeId(7))
