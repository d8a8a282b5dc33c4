"""What every shelf promises, line by line of the port; then all of them against the reference."""

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hone.core.ids import SessionId
from hone.core.ledger import MEMORY, Actor, Author, Change, ChangeKind, ChangeState, Delta, Ledger, skill
from hone.core.messages import digest, sound
from hone.core.skill import (
    ARCHIVED,
    DOCUMENT,
    ORIGIN,
    PINNED,
    PROJECT,
    ListedSkill,
    SkillCatalog,
    SkillEvent,
    SkillOrigin,
    SkillResult,
    SkillSummary,
    SkillWords,
    UsageCounts,
)
from hone.core.value import replace
from hone.stores.database import Database
from hone.stores.home import Stores
from hone.stores.ledger import SqliteLedger
from hone.stores.skill_catalog import SqliteSkillCatalog
from tests.contract.kinds import KINDS, all_kinds, kept
from tests.tier import fewer

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
TODAY = date(2026, 3, 1)
S1, S2, S3 = SessionId("s1"), SessionId("s2"), SessionId("s3")


@dataclass(frozen=True)
class Library:
    """A ledger with its catalog of skills, and a short way to write some."""

    ledger: Ledger
    catalog: SkillCatalog

    async def write(self, name: str, files: Mapping[str, str | None]) -> None:
        """Makes the skill hold these; None: it holds it no more."""
        held = await self.ledger.held(skill(name))
        bodies = {path: None if text is None else sound(text).encode() for path, text in files.items()}
        deltas = tuple(
            Delta(path, held.get(path), None if body is None else digest(body))
            for path, body in bodies.items()
        )
        contents = {digest(body): body for body in bodies.values() if body is not None}
        await self.ledger.record(
            [Change(skill(name), ChangeKind.EDIT, deltas, Author(Actor.OWNER))], contents, NOW
        )

    async def add(self, name: str, description: str = "", body: str = "", **facts: str) -> None:
        """A skill with its card; facts by the name without the @."""
        text = f"{name}\n{description}\n{body}"
        await self.write(name, {DOCUMENT: text} | {f"@{key}": value for key, value in facts.items()})
        await self.catalog.save_summaries(
            {digest(sound(text).encode()): SkillSummary(name, description, body)}
        )

    async def names(self, **wanted: Any) -> list[str]:
        return [each.name for each in await self.catalog.listed(**wanted)]

    async def ranks(self, folder: str = "", today: date = TODAY, limit: int = 100) -> list[str]:
        return [each.name for each in await self.catalog.ranked(folder, today, limit)]

    async def found(self, *words: str, limit: int = 10) -> list[str]:
        return [each.name for each, *_ in (await self.catalog.search(words, limit)).found]

    async def use(self, name: str, session: SessionId = S1, today: date = TODAY) -> None:
        await self.catalog.count(name, SkillEvent.USE, Actor.AGENT, session, today)


@pytest.fixture(params=KINDS)
def library(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Library]:
    with kept(request.param, tmp_path) as stores:
        yield Library(stores.ledger, stores.catalog)


async def test_a_skill_without_a_card_is_in_no_list_and_its_document_is_asked_for(library: Library) -> None:
    await library.write("plain", {DOCUMENT: "text", "references/a.md": "more"})
    await library.write("twin", {DOCUMENT: "text"})
    await library.write("no-document", {"references/a.md": "more", ORIGIN: "user"})
    await library.write("archived", {DOCUMENT: "old", ARCHIVED: "1"})
    assert sorted(await library.catalog.unsummarized()) == sorted([digest(b"text"), digest(b"old")])
    assert (await library.names(archived=True), await library.ranks(), await library.found("text")) == (
        [],
        [],
        [],
    )
    assert await library.catalog.names() == {"plain": False, "twin": False, "archived": True}
    await library.catalog.save_summaries({digest(b"text"): SkillSummary("plain", "words", "")})
    assert await library.catalog.unsummarized() == (digest(b"old"),)
    assert await library.names(archived=True) == ["plain", "twin"]


async def test_the_skills_that_carry_checks_are_found_by_their_files(library: Library) -> None:
    await library.write("b", {DOCUMENT: "text", "checks/sums": "exit 0"})
    await library.write("a", {DOCUMENT: "old", "checks/data/table.txt": "1", ARCHIVED: "1"})
    await library.write("c", {DOCUMENT: "more", "scripts/checks/x": "1", "checks0": "1"})
    await library.write("d", {"checks/sums": "exit 0"})
    assert list(await library.catalog.with_checks()) == ["a", "b"]
    await library.write("b", {"checks/sums": None})
    assert list(await library.catalog.with_checks()) == ["a"]


async def test_of_those_without_a_card_the_first_in_rank_can_be_asked_for(library: Library) -> None:
    await library.add("a", "words")
    for name, facts in (("b", {}), ("c", {}), ("d", {PINNED: "1"}), ("e", {ARCHIVED: "1"}), ("f", {})):
        await library.write(name, {DOCUMENT: f"text of {name}", **facts})
    await library.use("f", today=TODAY - timedelta(days=1))
    wanted = [digest(f"text of {name}".encode()) for name in "dfbc"]
    for limit, count in ((0, 0), (1, 1), (2, 2), (3, 2), (4, 3), (9, 4)):
        found = await library.catalog.unsummarized_first("", TODAY, limit)
        assert sorted(found) == sorted(wanted[:count])


async def test_what_waits_or_is_no_skill_is_not_on_the_shelf(library: Library) -> None:
    waiting = Change(
        skill("waits"),
        ChangeKind.CREATE,
        (Delta(DOCUMENT, None, digest(b"x")),),
        Author(Actor.REVIEW),
        ChangeState.PENDING,
    )
    note = Change(MEMORY, ChangeKind.ADD, (Delta(DOCUMENT, None, digest(b"x")),), Author(Actor.OWNER))
    await library.ledger.record([waiting, note], {digest(b"x"): b"x"}, NOW)
    assert await library.catalog.unsummarized() == ()
    await library.catalog.save_summaries({digest(b"x"): SkillSummary("waits", "words", "")})
    assert (await library.names(archived=True), await library.found("words")) == ([], [])


async def test_a_card_counts_only_while_the_document_is_held(library: Library) -> None:
    await library.add("deploy", "the old way")
    await library.write("deploy", {DOCUMENT: "changed"})
    assert (await library.names(), await library.found("old"), await library.ranks()) == ([], [], [])
    await library.catalog.save_summaries({digest(b"changed"): SkillSummary("deploy", "the new way", "")})
    assert (await library.found("old"), await library.found("new")) == ([], ["deploy"])
    await library.write("deploy", {DOCUMENT: None})
    assert (await library.names(), await library.found("new"), await library.catalog.unsummarized()) == (
        [],
        [],
        (),
    )


async def test_a_card_can_be_made_anew_and_one_for_nobody_is_no_trouble(library: Library) -> None:
    await library.add("deploy", "first words")
    text = b"deploy\nfirst words\n"
    await library.catalog.save_summaries(
        {digest(text): SkillSummary("deploy", "second words", ""), digest(b"?"): SkillSummary("x", "y", "z")}
    )
    assert (await library.catalog.listed())[0].description == "second words"
    assert (await library.found("first"), await library.found("second"), await library.found("z")) == (
        [],
        ["deploy"],
        [],
    )
    await library.catalog.save_summaries({"\udcff": SkillSummary("\udcff", "\udcff", "\udcff")})


async def test_a_line_says_all_that_is_known_without_reading(library: Library) -> None:
    await library.add("full", "Grüße\0 \udcff", origin="user", pinned="1", archived="1", project="/tmp/ä b")
    await library.add("bare")
    await library.add("odd", origin="from the future", project="")
    await library.use("full")
    bare, full, odd = await library.catalog.listed(archived=True)
    assert (full.name, full.description) == ("full", "Grüße\0 \ufffd\ufffd\ufffd")
    assert (full.origin, full.pinned, full.archived) == (SkillOrigin.USER, True, True)
    assert (full.project, full.counts) == ("/tmp/ä b", UsageCounts(uses=1, last_use=TODAY))
    assert bare == ListedSkill("bare", "", digest(b"bare\n\n"))
    assert odd.origin is SkillOrigin.USER, "what is not known is protected"
    await library.write("full", {PINNED: None, ARCHIVED: None, ORIGIN: None, PROJECT: None})
    assert (await library.catalog.listed())[1] == replace(
        full, origin=SkillOrigin.AGENT, pinned=False, archived=False, project=""
    )


async def test_lists_are_by_name_and_leave_out_the_archived_unless_asked(library: Library) -> None:
    for name in ("b", "a-b", "ab", "a", "z"):
        await library.add(name, "words", **({"archived": "1"} if name == "ab" else {}))
    assert await library.names() == ["a", "a-b", "b", "z"]
    assert await library.names(archived=True) == ["a", "a-b", "ab", "b", "z"]
    assert "ab" not in [*await library.ranks(), *await library.found("words", "ab")]


async def test_rank_is_pinned_then_near_then_used_last_then_most_then_by_name(library: Library) -> None:
    for name, facts in {
        "z-pinned": {"pinned": "1"},
        "y-near": {"project": "/here"},
        "x-late": {"project": "/elsewhere"},
        "w-often": {},
        "v-once": {},
        "b-never": {"project": "/there"},
        "a-never": {},
    }.items():
        await library.add(name, **facts)
    for session in (S1, S2, S3):
        await library.use("w-often", session, TODAY - timedelta(days=3))
    await library.use("v-once", S1, TODAY - timedelta(days=3))
    await library.use("x-late", S1, TODAY - timedelta(days=2))
    await library.catalog.count("b-never", SkillEvent.VIEW, Actor.OWNER, S1, TODAY - timedelta(days=1))
    order = ["z-pinned", "y-near", "x-late", "w-often", "v-once", "a-never", "b-never"]
    assert await library.ranks("/here") == order
    assert [await library.ranks("/here", limit=size) for size in (0, 3, 99)] == [[], order[:3], order]
    far = [*order[:1], *order[2:], "y-near"]
    assert (await library.ranks(""), (await library.ranks("/there"))[:2]) == (far, ["z-pinned", "b-never"])


async def test_what_is_ranked_is_the_same_all_day_whatever_is_used(library: Library) -> None:
    for name in "abcd":
        await library.add(name)
    await library.use("c", S1, TODAY - timedelta(days=1))
    await library.use("d", S1, TODAY - timedelta(days=2))
    morning = await library.catalog.ranked("", TODAY, 10)
    assert [each.name for each in morning] == ["c", "d", "a", "b"]
    for session in (S1, S2):
        await library.use("b", session)
        await library.use("d", session)
        await library.catalog.count("a", SkillEvent.VIEW, Actor.AGENT, session, TODAY)
    assert await library.catalog.ranked("", TODAY, 10) == morning
    assert await library.ranks(today=TODAY + timedelta(days=1)) == ["b", "d", "c", "a"]
    assert await library.ranks(today=TODAY - timedelta(days=1)) == ["d", "a", "b", "c"], "clocks go back"


async def test_a_use_counts_once_a_session_and_its_last_day_is_kept(library: Library) -> None:
    for days, session in ((0, S1), (0, S1), (3, S1), (1, S2)):
        await library.use("deploy", session, TODAY + timedelta(days=days))
    await library.use("other", S1)
    tallies = await library.catalog.usage_counts()
    assert tallies == {
        "deploy": UsageCounts(uses=2, last_use=TODAY + timedelta(days=3)),
        "other": UsageCounts(uses=1, last_use=TODAY),
    }
    assert await library.catalog.days() == {
        "deploy": {TODAY + timedelta(days=days) for days in (0, 1, 3)},
        "other": {TODAY},
    }


async def test_a_look_of_a_review_or_the_curator_never_counts_as_use(library: Library) -> None:
    await library.add("deploy")
    await library.add("again")
    for actor in Actor:
        for deed in SkillEvent:
            await library.catalog.count("deploy", deed, actor, SessionId(f"{actor}"), TODAY)
    for actor in (Actor.REVIEW, Actor.CURATOR):
        await library.catalog.count("again", SkillEvent.USE, actor, S1, TODAY)
    expected = UsageCounts(3, 3, 3, 4, 4, TODAY)
    assert await library.catalog.usage_counts() == {"deploy": expected}
    assert [each.counts for each in await library.catalog.listed()] == [UsageCounts(), expected]
    later = TODAY + timedelta(days=1)
    for actor in (Actor.REVIEW, Actor.CURATOR):
        await library.catalog.count("again", SkillEvent.USE, actor, S1, later)
    assert await library.ranks(today=later + timedelta(days=1)) == ["deploy", "again"]


async def test_a_tally_is_kept_of_bundled_skills_and_outlives_the_skill(library: Library) -> None:
    await library.catalog.count("comes-with-hone", SkillEvent.VIEW, Actor.AGENT, S1, TODAY)
    await library.add("mine")
    await library.use("mine")
    await library.write("mine", {DOCUMENT: None})
    assert await library.catalog.usage_counts() == {
        "comes-with-hone": UsageCounts(views=1),
        "mine": UsageCounts(uses=1, last_use=TODAY),
    }


async def test_search_finds_any_of_the_words_and_the_best_comes_first(library: Library) -> None:
    await library.add("release-notes", "Writes the changelog of a release", "git log")
    await library.add("cooking", "Recipes and shopping lists", "one could mention a release, too")
    await library.add("gardening", "Roses", "water")
    await library.add("old-release", "release notes changelog", archived="1")
    matches = await library.catalog.search(["release", "changelog", "nowhere"], 10)
    results = matches.found
    assert [line.name for line, *_ in results] == ["release-notes", "cooking"]
    assert results[0][2] > results[1][2] > 0
    assert (matches.total, matches.counts) == (4, {"release": 3, "changelog": 2, "nowhere": 0})
    assert results[0][1] == SkillWords("releas not", "writ the changelog of a", "git log")
    assert results[0][0] == (await library.catalog.listed())[2]
    assert await library.found("Release", "nowhere") == ["release-notes", "cooking"]
    assert await library.found("release", limit=1) == ["release-notes"]
    assert (await library.found("release", limit=0), await library.found("nowhere")) == ([], [])
    assert (await library.found(), await library.found(""), await library.found(" -!")) == ([], [], [])
    assert await library.found("roses-or-tulips") == ["gardening"]


async def test_search_knows_no_accents_and_scripts_without_blanks(library: Library) -> None:
    await library.add("accents", "Présentation à l'école")
    await library.add("chinese", "编写发布说明和更新日志")
    await library.add("japanese", "リリースノートを書く")
    await library.add("korean", "배포를 자동으로 합니다")
    assert await library.found("presentation") == ["accents"]
    assert await library.found("ÉCOLE") == ["accents"]
    assert await library.found("帮我写一下发布说明吧") == ["chinese"]
    assert await library.found("リリース") == ["japanese"]
    assert await library.found("배포") == ["korean"]
    assert (await library.found("説"), await library.found("说")) == ([], ["chinese"])


SYNTAX = [
    '"', '""', "'", "*", "a*", "NEAR(", "NEAR(a b)", "a AND b", "NOT", "OR", "AND", "^a", "name:", "name : x",
    "{name body}:x", "-x", "+", "a + b", "(", ")", ":", "\0", 'x"\0"y', "--", ";", "\\", "_", "__", "\udcff",
    "\u0301", "\u2028", "e\u0301", "ʼ", "🙂", "\U0010ffff", "x" * 10_000,
]  # fmt: skip


@pytest.mark.parametrize("word", SYNTAX, ids=ascii)
async def test_nothing_that_is_typed_is_taken_for_syntax(library: Library, word: str) -> None:
    await library.add("plain", "near words not or and", "name body")
    for words in ([word], [word, "plain"], ["plain", word, '"']):
        names = await library.found(*words)
        assert names == ["plain"] or "plain" not in words


async def test_a_whole_page_is_a_query_too(library: Library) -> None:
    await library.add("plain", "words")
    page = ["words", *(f"word{number}" for number in range(5_000))]
    assert await library.found(*page) == ["plain"]


# The law: whatever is written, carded and counted, all shelves answer alike.


@dataclass(frozen=True)
class Step:
    name: str
    document: str
    facts: dict[str, str]
    deed: SkillEvent
    actor: Actor
    session: SessionId
    day: int


STEPS = st.builds(
    Step,
    st.sampled_from(["a", "b", "c"]),
    st.sampled_from(["", "one words", "two words", "three"]),
    st.dictionaries(
        st.sampled_from([ORIGIN, PINNED, ARCHIVED, PROJECT]), st.sampled_from(["user", "/here"]), max_size=2
    ),
    st.sampled_from(SkillEvent),
    st.sampled_from(Actor),
    st.sampled_from([S1, S2]),
    st.integers(-2, 2),
)


async def take(library: Library, step: Step) -> Any:
    """The answers after the step."""
    files: dict[str, str | None] = {
        path: step.facts.get(path) for path in (ORIGIN, PINNED, ARCHIVED, PROJECT)
    }
    await library.write(step.name, files | {DOCUMENT: step.document or None})
    day = TODAY + timedelta(days=step.day)
    await library.catalog.count(step.name, step.deed, step.actor, step.session, day)
    texts = ["one words", "two words", "three"]
    before = await library.names(archived=True)
    await library.catalog.save_summaries(
        {digest(text.encode()): SkillSummary("name", text, text) for text in texts}
    )
    return (
        before,
        await library.catalog.names(),
        await library.catalog.unsummarized(),
        await library.catalog.unsummarized_first("/here", TODAY, 2),
        await library.catalog.listed(),
        await library.catalog.listed(archived=True),
        [await library.catalog.ranked("/here", TODAY + timedelta(days=days), 2) for days in (-2, 0, 1)],
        await library.catalog.usage_counts(),
        sorted(await library.found("words", "three")),
    )


async def compare(kinds: Sequence[Stores], steps: Sequence[Step]) -> None:
    libraries = [Library(stores.ledger, stores.catalog) for stores in kinds]
    for step in steps:
        expected, *found = [await take(library, step) for library in libraries]
        assert found == [expected] * len(found)


async def agree(folder: Path, steps: Sequence[Step]) -> None:
    async with all_kinds(folder) as kinds:
        await compare(kinds, steps)
        for stores in kinds[1:]:
            assert isinstance(stores.ledger, SqliteLedger)
            assert await stores.ledger.unsound() == []


@fewer(30)
@given(st.lists(STEPS, min_size=1, max_size=12))
def test_sqlite_and_the_reference_agree_over_any_history(steps: list[Step]) -> None:
    with TemporaryDirectory() as folder:
        asyncio.run(agree(Path(folder), steps))


@fewer(50)
@given(st.lists(st.text(max_size=20), max_size=5), st.text(max_size=60))
def test_any_text_can_be_a_description_or_a_query(words: list[str], text: str) -> None:
    async def search(path: Path) -> None:
        database = Database.open(path)
        library = Library(SqliteLedger(database), SqliteSkillCatalog(database))
        await library.add("plain", text, text)
        assert set(await library.found(*words)) <= {"plain"}
        assert (await library.catalog.listed())[0].description == text
        await database.close()

    with TemporaryDirectory() as folder:
        asyncio.run(search(Path(folder) / "hone.db"))


async def test_idle_ones_are_those_that_only_their_name_ranks(library: Library) -> None:
    for name in ("a", "b", "c", "d", "e", "f"):
        await library.add(name)
    await library.write("b", {PINNED: "1"})
    await library.write("c", {PROJECT: "/here"})
    await library.write("d", {ARCHIVED: "1"})
    await library.catalog.count("e", SkillEvent.USE, Actor.AGENT, S1, TODAY)
    counted = [
        await library.catalog.idle(before, folder, TODAY + timedelta(days=days))
        for before, folder, days in (
            ("a", "", 0),
            ("z", "", 0),
            ("z", "/here", 0),
            ("z", "", 1),
            ("c", "", 0),
        )
    ]
    assert counted == [0, 4, 3, 3, 1]
    assert await library.catalog.names() == {name: name == "d" for name in "abcdef"}


async def test_how_a_use_went_is_counted_once_a_session_and_can_be_said_anew(library: Library) -> None:
    for name in ("a", "b"):
        await library.add(name)
    for session in (S1, S2):
        await library.catalog.count("a", SkillEvent.USE, Actor.AGENT, session, TODAY)
    await library.catalog.count("a", SkillEvent.USE, Actor.AGENT, S1, TODAY + timedelta(days=1))
    assert (await library.catalog.used(S1), await library.catalog.used(S3)) == (("a",), ())
    for session in (S1, S2, S3):
        await library.catalog.rate("a", session, SkillResult.SUCCEEDED)
    await library.catalog.rate("b", S1, SkillResult.CORRECTED)
    assert [(each.succeeded, each.corrected) for each in (await library.catalog.usage_counts()).values()] == [
        (2, 0)
    ]
    await library.catalog.rate("a", S1, SkillResult.CORRECTED)
    await library.catalog.rate("a", S2, SkillResult.UNKNOWN)
    (tally,) = (await library.catalog.usage_counts()).values()
    assert (tally.uses, tally.succeeded, tally.corrected) == (2, 0, 1)
    assert (await library.catalog.listed())[0].counts == tally
