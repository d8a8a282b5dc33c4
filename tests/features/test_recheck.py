"""K4: what is past its date is asked about or probed, and what took the place of what can be read."""

import json
from datetime import date, timedelta
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from hone import Hone
from hone.core.ledger import MEMORY, USER, Entry
from hone.features.recheck.entries import find_entries
from hone.knowledge import validity
from hone.knowledge.chains import pair, read_chain
from hone.knowledge.journal import Add, Remove, ReplaceEntry, entries
from hone.knowledge.keeper import OWNER
from tests.cli.driving import environment, terminal
from tests.cli.driving import hone as command

DAYS = st.dates(date(2000, 1, 1), date(2100, 1, 1))
FRESH = (date.today() + timedelta(days=30)).isoformat()  # noqa: DTZ011  as the command says


@given(st.sampled_from(["Staging is down", "Two\nlines"]), st.none() | DAYS, DAYS, st.none() | DAYS)
def test_an_entry_gets_another_end_or_none_and_nothing_else_changes(
    words: str, since: date | None, until: date, end: date | None
) -> None:
    start = f"from {since} " if since else ""
    renewed = validity.read(validity.renew(f"{words} ({start}until {until})", end))
    assert (renewed.wording, renewed.since, renewed.until) == (words, since, end)


async def noted(home: Path, folder: Path) -> dict[str, int]:
    """Write three entries that are past their date, and one that is not."""
    texts = {
        "down": "Staging answers slowly (until 2026-01-02)",
        "wifi": "The Makefile has a deploy target (until 2026-02-03)",
        "move": "The office is in Turin (from 2025-01-01 until 2026-03-04)",
        "tea": "Likes tea.",
    }
    found: dict[str, int] = {}
    async with Hone(home=home, folder=folder, learning="off") as hone:
        for name, text in texts.items():
            [entry] = await hone.keeper.note([(USER if name == "tea" else MEMORY, Add(text))], OWNER)
            found[name] = entry.id
    return found


async def left(home: Path, folder: Path) -> set[str]:
    async with Hone(home=home, folder=folder, learning="off") as hone:
        return set(entries(await hone.keeper.text(MEMORY)))


async def test_entries_past_their_date_are_listed_and_settled_in_one_step(home: Path, tmp_path: Path) -> None:
    ids, env = await noted(home, tmp_path), environment(home)
    ended = await command("recheck", "--json", env=env, folder=tmp_path)
    listed = json.loads(ended.out)
    assert [each["change"] for each in listed] == [ids["down"], ids["wifi"], ids["move"]]
    assert listed[0]["until"] == "2026-01-02"
    ended = await command("recheck", env=env, folder=tmp_path)
    assert ended.code == 0
    assert "3 entries past the date" in ended.out
    assert "hone recheck NUMBER --keep" in ended.out
    for arguments in ((str(ids["down"]), "--keep"), ("Turin", "--until", "2099-01-01")):
        ended = await command("recheck", *arguments, env=env, folder=tmp_path)
        assert (ended.code, "Undo it with: hone undo" in ended.out) == (0, True), ended
    ended = await command("recheck", str(ids["wifi"]), "--remove", "--json", env=env, folder=tmp_path)
    assert json.loads(ended.out)["kind"] == "remove"
    assert await left(home, tmp_path) == {
        "Staging answers slowly",
        "The office is in Turin (from 2025-01-01 until 2099-01-01)",
    }
    ended = await command("recheck", env=env, folder=tmp_path)
    assert ended.out == "No entry is past its date.\n"
    for wrong in (("Turin", "--keep"), ("99", "--remove")):
        ended = await command("recheck", *wrong, env=env, folder=tmp_path)
        assert (ended.code, "hone recheck lists them" in ended.err) == (1, True)
    for words in ("Turin", "--keep", "Turin --keep --remove"):
        assert (await command("recheck", *words.split(), env=env, folder=tmp_path)).code == 2


async def test_a_probe_runs_in_the_sandbox_and_decides(home: Path, tmp_path: Path) -> None:
    folder = tmp_path / "work"
    folder.mkdir()
    ids, env = await noted(home, folder), environment(home)
    (folder / "Makefile").write_text("deploy:\n\ttrue\n")
    probe = ("--holds-if", f"grep deploy Makefile && ! touch here && ! cat {home}/MEMORY.md")
    ended = await command("recheck", str(ids["wifi"]), *probe, env=env, folder=folder)
    assert ended.code == 0, ended
    assert "The command succeeded." in ended.out
    assert not (folder / "here").exists()
    ended = await command("recheck", "Turin", "--gone-if", "true", env=env, folder=folder)
    assert "removed by change" in ended.out
    ended = await command(
        "recheck", "Staging", "--gone-if", "command -v no-such-program", env=env, folder=folder
    )
    assert ("kept by change" in ended.out, ended.code) == (True, 0), ended
    assert await left(home, folder) == {
        f"The Makefile has a deploy target (until {FRESH})",
        f"Staging answers slowly (until {FRESH})",
    }


async def test_a_probe_that_cannot_run_says_nothing_about_the_entry(home: Path, tmp_path: Path) -> None:
    ids, env = await noted(home, tmp_path), environment(home)
    before = await left(home, tmp_path)
    ended = await command(
        "recheck", str(ids["wifi"]), "--holds-if", "no-such-program", env=env, folder=tmp_path
    )
    assert (ended.code, "Nothing was changed" in ended.err) == (1, True), ended
    assert await left(home, tmp_path) == before


async def test_a_person_is_asked_about_each(home: Path, tmp_path: Path) -> None:
    await noted(home, tmp_path)
    async with terminal("recheck", env=environment(home), folder=tmp_path) as screen:
        for key, sees in (("k", "Staging"), ("s", "Makefile"), ("r", "Turin")):
            await screen.sees(sees, "[s] skip it (default)")
            await screen.enter(key)
        await screen.sees("removed by change")
        assert await screen.ended() == 0
    assert await left(home, tmp_path) == {
        "Staging answers slowly",
        "The Makefile has a deploy target (until 2026-02-03)",
    }


async def test_one_line_tells_of_all_of_them(home: Path, tmp_path: Path) -> None:
    await noted(home, tmp_path)
    async with Hone(home=home, folder=tmp_path, learning="off") as hone:
        assert len(await find_entries(hone.keeper, tmp_path, hone.library.today)) == 3
    ended = await command("pending", env=environment(home), folder=tmp_path)
    assert "Answer with: hone recheck" in ended.out


async def test_what_took_the_place_of_what_is_read_from_both_ends(home: Path, tmp_path: Path) -> None:
    async with Hone(home=home, folder=tmp_path, learning="off") as hone:
        keeper, steps = hone.keeper, list[Entry]()
        steps += await keeper.note([(MEMORY, Add("The server is in Rome."))], OWNER)
        await keeper.note([(MEMORY, Add("Lunch is at noon."))], OWNER)
        for old, new in (("Rome", "The server is in Turin."), ("Turin", "The server is in Milan.")):
            steps += await keeper.note([(MEMORY, ReplaceEntry(old, new))], OWNER)
        steps += await keeper.note([(MEMORY, Remove("Milan"))], OWNER)
        expected = [each.id for each in steps]
        for start in expected:
            found = await read_chain(hone.ledger, start)
            assert [link.entry.id for link in found] == expected
        assert [link.now for link in found] == [
            *(f"The server is in {town}." for town in ("Rome", "Turin", "Milan")),
            "",
        ]
        undone = await keeper.undo(expected[-1])
        expected.append(undone.id)
        assert [link.entry.id for link in await read_chain(hone.ledger, expected[0])] == expected
    env = environment(home)
    ended = await command("log", "--chain", str(expected[1]), env=env, folder=tmp_path)
    rows = ended.out.splitlines()
    assert [int(row.partition(", ")[0].split()[-1]) for row in rows] == expected
    assert "brought back: The server is in Milan." in rows[-1]
    assert "replaced it with: The server is in Milan." in rows[2]
    told = json.loads((await command("log", "--chain", "1", "--json", env=env, folder=tmp_path)).out)
    assert told[1]["replaced"] == ["The server is in Rome."]
    ended = await command("show", str(expected[2]), env=env, folder=tmp_path)
    assert "added: The server is in Rome." in ended.out


@given(st.lists(st.sampled_from(["Rome", "Turin", "Milan", "Genoa"]), max_size=3, unique=True), st.data())
def test_every_entry_that_came_or_went_is_in_a_link(came: list[str], data: st.DataObject) -> None:
    gone = data.draw(st.lists(st.sampled_from(["Bari", "Rome town", "Pisa"]), max_size=3, unique=True))
    links = pair(None, came, gone)  # type: ignore[arg-type]
    assert {link.now for link in links if link.now} == set(came)
    assert {text for link in links for text in link.before} == set(gone)
