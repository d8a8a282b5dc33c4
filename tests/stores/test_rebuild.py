"""What kind a damage is, and what is rebuilt in place: indexes and all that is made from other rows."""

import asyncio
from contextlib import closing
from pathlib import Path

import apsw
import pytest

from hone.core.recall import Query
from hone.stores import rebuild
from hone.stores.damage import SPACE, BTree, Damage, DamageKind, advise, classify
from hone.stores.database import Database
from hone.stores.examine import examine_file
from hone.stores.recall import SqliteRecall
from hone.stores.repair import Rebuilt, Repaired, repair
from tests.stores.pages import SIZE
from tests.stores.test_damage import DAY, REMADE, Home, build, settle, unlike

TEXT, INDEX, COSMETIC = DamageKind
SESSIONS = (
    BTree("sessions", "sessions", 7, False, count=3),
    BTree("by_title", "sessions", 8, True, True, frozenset({"title"}), 3),
    BTree("by_all", "sessions", 9, True, True, frozenset({"title", "folder"}), 3),
    BTree("by_head", "sessions", 10, True, True, frozenset({"head"}), 3),
    BTree("words", "passage_words_data", 11, False, count=3),
)
LAST = "(SELECT max(id) FROM passage_words_data)"
TOUCH = "UPDATE {0} SET {1} WHERE rowid = (SELECT max(rowid) FROM {0})"


@pytest.fixture
def whole(tmp_path: Path) -> Home:
    return build(tmp_path / "whole.db")


@pytest.mark.parametrize(
    ("lines", "kinds"),
    [
        (["Tree 7 page 12: btreeInitPage() returns error code 11"], [TEXT]),
        (["Tree 9 page 12 cell 3: Offset 7 out of range 8..9", "row 2 missing from index by_all"], [INDEX]),
        (["row 2 missing from index by_title"], [INDEX]),
        (["row 2 missing from index by_all"], [TEXT]),
        (["row 2 missing from index by_title", "row 2 missing from index by_all"], [TEXT, TEXT]),
        (["row 2 missing from index by_head"], [INDEX]),
        (["malformed inverted index for FTS5 table main.passage_words"], [INDEX]),
        (['fts5: corruption found reading blob 137438953473 from table "passage_words"'], [INDEX]),
        (["Page 40: never used", "Page 41: never used"], [COSMETIC]),
        (["Page 40: never used", "Freelist: size is 3 but should be 2"], [INDEX]),
        (["something that no SQLite has said so far"], [TEXT]),
        (["NULL value in sessions.title"], [TEXT]),
        (["NULL value in skills.project"], [INDEX]),
    ],
)
def test_only_what_other_rows_vouch_for_is_called_a_lost_index(
    lines: list[str], kinds: list[DamageKind]
) -> None:
    assert [damage.kind for damage in classify(lines, SESSIONS)] == kinds


def test_an_index_with_more_entries_than_its_table_has_rows_means_lost_text() -> None:
    short = [BTree("sessions", "sessions", 7, False, count=2), *SESSIONS[1:]]
    (damage,) = classify(["wrong # of entries in index by_head"], short)
    assert damage.kind is TEXT


def test_the_advice_is_that_of_the_worst_damage() -> None:
    damages = {kind: Damage(kind, "") for kind in DamageKind}
    assert "repaired copy" in advise(list(damages.values()))
    assert "in place" in advise([damages[COSMETIC], damages[INDEX]])
    assert "nothing has to be done" in advise([damages[COSMETIC]])


LOST: dict[str, str] = {
    "a page of the index": f"DELETE FROM passage_words_data WHERE id = {LAST}",
    "all words": "INSERT INTO passage_words (passage_words) VALUES ('delete-all')",
    "settings of the index": "DELETE FROM passage_words_config",
    "settings of the index of skills": "UPDATE card_words_config SET v = 77 WHERE k = 'version'",
    "the text of a card": TOUCH.format("card_words_content", "c0 = 'otter'"),
    "what a skill holds": "UPDATE holdings SET digest = 'x' WHERE target = 'skill:s3'",
    "the list of skills": "DELETE FROM skills WHERE name = 's4'",
    "a card": "UPDATE skills SET card = card + 1",
    "how far the index goes": "UPDATE backlog SET upto = 50",
    "a sum of an hour": "UPDATE spending_hours SET output = output + 1",
    "the cost of an hour": "UPDATE spending_hours SET cost = cost + 1",
    "the sums of all hours": "DELETE FROM spending_hours",
    "the number given last": "UPDATE sqlite_sequence SET seq = 1",
}


@pytest.mark.parametrize("lost", list(LOST))
def test_what_is_made_from_other_rows_is_made_again_in_place(whole: Home, lost: str) -> None:
    with closing(apsw.Connection(str(whole.path))) as connection:
        connection.execute(LOST[lost])
    assert {damage.kind for damage in examine_file(whole.path)} == {INDEX}
    made = asyncio.run(repair(whole.path, DAY))
    assert isinstance(made, Rebuilt)
    check_same(whole)


def check_same(whole: Home) -> None:
    assert examine_file(whole.path) == []
    assert [each.name for each in whole.path.parent.glob("*.db")] == [whole.path.name]
    errors, others = unlike(whole, whole.path)
    assert not (errors | others) - REMADE, (errors, others)
    assert asyncio.run(find(whole.path, "otters")) > 0


async def find(path: Path, words: str) -> int:
    database = Database.open(path)
    try:
        result = await SqliteRecall(database).search(Query(words))
        return 0 if result.waiting else len(result.hits)
    finally:
        await database.close()


def test_pages_that_nothing_uses_need_nothing_and_can_be_freed(whole: Home) -> None:
    before = whole.path.stat().st_size
    with closing(apsw.Connection(str(whole.path))) as connection:
        connection.execute("CREATE TABLE gone (text)")
        connection.execute("INSERT INTO gone VALUES (zeroblob(50000))")
        connection.pragma("writable_schema", "ON")
        connection.execute("DELETE FROM sqlite_schema WHERE name = 'gone'")
    (damage,) = examine_file(whole.path)
    assert (damage.kind, damage.part) == (COSMETIC, SPACE)
    assert asyncio.run(repair(whole.path, DAY)) == Rebuilt(("the list of free pages",))
    check_same(whole)
    settle(whole.path)
    assert whole.path.stat().st_size <= before


def test_a_wrong_list_of_free_pages_is_made_right(whole: Home) -> None:
    with closing(apsw.Connection(str(whole.path))) as connection:
        connection.execute("CREATE TABLE gone (text)")
        connection.execute("INSERT INTO gone VALUES (zeroblob(50000))")
        connection.execute("DROP TABLE gone")
    settle(whole.path)
    data = bytearray(whole.path.read_bytes())
    data[36:40] = (int.from_bytes(data[36:40]) + 3).to_bytes(4)
    whole.path.write_bytes(data)
    assert [(damage.kind, damage.part) for damage in examine_file(whole.path)] == [(INDEX, SPACE)]
    assert isinstance(asyncio.run(repair(whole.path, DAY)), Rebuilt)
    check_same(whole)


@pytest.mark.parametrize("compacted", [False, True])
def test_a_database_that_lost_its_first_page_is_saved_compacted_or_not(whole: Home, compacted: bool) -> None:
    if compacted:
        with closing(apsw.Connection(str(whole.path))) as connection:
            connection.execute("VACUUM")
        settle(whole.path)
    data = whole.path.read_bytes()
    whole.path.write_bytes(data[:100] + bytes(SIZE - 100) + data[SIZE:])
    made = asyncio.run(repair(whole.path, DAY))
    assert isinstance(made, Repaired)
    assert (made.counts["messages"].gone, made.counts["sessions"].gone, made.left) == (0, 0, ())


def test_a_rebuilding_that_does_not_help_is_undone_and_a_copy_is_made(
    whole: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    def in_vain(connection: apsw.Connection, _: object) -> None:
        connection.execute("DELETE FROM sessions")

    monkeypatch.setattr(rebuild, "_refill", in_vain)
    with closing(apsw.Connection(str(whole.path))) as connection:
        connection.execute(LOST["the list of skills"])
    made = asyncio.run(repair(whole.path, DAY))
    assert isinstance(made, Repaired)
    assert made.counts["sessions"].saved == 7
