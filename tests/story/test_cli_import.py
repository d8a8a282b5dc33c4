"""F4: `hone import` tells, asks, stores each conversation as a whole, and nothing twice."""

import asyncio
import os
import re
import shutil
from collections.abc import Sequence
from contextlib import redirect_stderr, redirect_stdout
from datetime import datetime
from io import StringIO
from pathlib import Path

import pytest

from hone import Hone
from hone.cli.main import perform
from hone.core.erasure import Erasure
from hone.core.ids import SessionId
from hone.core.ledger import MEMORY, USER, ChangeState, Entry
from hone.core.messages import assistant
from hone.core.ports import StoredSession
from hone.core.trust import Trust
from hone.core.turn import Stop
from hone.features.erasing.service import Erasing
from hone.features.imports.sources import LINES, SOURCES
from hone.knowledge.journal import entries
from hone.models.fake_provider import FakeProvider
from hone.models.scripted import Script, call, rounds, rules
from hone.settings import Settings
from tests.cli.driving import Ended, environment, hone, terminal
from tests.conftest import Figures, Tier
from tests.features import others

TOLD = {"claude-code": 7, "openai": 6, "codex": 7, "hermes": 12, "opencode": 8}


async def command(home: Path, *arguments: str) -> Ended:
    """In this process: most of what is asked here needs none of its own."""
    out, err = StringIO(), StringIO()

    def act() -> int:
        with redirect_stdout(out), redirect_stderr(err):
            return perform(["--home", str(home), *arguments])

    return Ended(await asyncio.to_thread(act), out.getvalue(), err.getvalue())


async def bring(home: Path, source: str, path: Path, *options: str) -> Ended:
    return await command(home, "import", source, str(path), *options)


async def stored(home: Path) -> dict[SessionId, StoredSession]:
    async with Hone(home=home, settings=Settings()) as opened:
        found = await opened.sessions.list(None, None)
        return {each.header.id: await opened.sessions.load(each.header.id) for each in found}


async def changes(home: Path) -> Sequence[Entry]:
    async with Hone(home=home, settings=Settings()) as opened:
        return list(await opened.library.keeper.ledger.entries())[::-1]


def files(folder: Path) -> dict[str, bytes]:
    return {str(each.relative_to(folder)): each.read_bytes() for each in folder.rglob("*") if each.is_file()}


def heads(found: dict[SessionId, StoredSession]) -> dict[SessionId, str]:
    return {id: each.transcript.head for id, each in found.items()}


@pytest.mark.parametrize("source", SOURCES)
async def test_a_dry_run_tells_and_stores_nothing_and_a_second_import_adds_nothing(
    source: str, home: Path, tmp_path: Path
) -> None:
    path = others.write(tmp_path / "there", source)
    there = files(path)
    tried = await bring(home, source, path, "--dry-run")
    count = 2 if source == "hermes" else 1
    talks = "2 conversations" if count == 2 else "1 conversation"
    assert tried.code == 0
    assert f"Found {talks} with {TOLD[source]} messages in 1 file, 20" in tried.out
    assert f"{count} new, 0 with more than here, 0 here already; {TOLD[source]} messages to add." in tried.out
    assert "Not imported:\n" in tried.out
    assert "If they are not your conversations, say --foreign." in tried.out
    assert (await stored(home), await changes(home)) == ({}, [])
    refused = await bring(home, source, path)
    assert (refused.code, "Add --yes" in refused.err, await stored(home)) == (2, True, {})

    done = await bring(home, source, path, "--yes")
    assert (done.code, done.err) == (0, "")
    assert files(path) == there
    assert f"Stored {talks}. See them: hone sessions list\n" in done.out
    first, made = await stored(home), await changes(home)
    assert (len(first), sum(len(each.transcript) for each in first.values())) == (count, TOLD[source])
    again = await bring(home, source, path, "--yes")
    assert (again.code, again.err) == (0, "")
    assert again.out.endswith("There is nothing to import.\n")
    assert heads(await stored(home)) == heads(first)
    assert await changes(home) == made


@pytest.mark.parametrize("source", LINES)
async def test_a_file_that_has_grown_brings_what_is_new_and_broken_lines_are_counted(
    source: str, home: Path, tmp_path: Path
) -> None:
    path = others.write(tmp_path, source)
    await bring(home, source, path, "--yes")
    [(id, before)] = (await stored(home)).items()
    others.write(tmp_path, source, turns=3)
    [file] = path.rglob("*.jsonl")
    with file.open("ab") as more:
        more.write(b'not JSON \x00\xff\n[1, 2]\n\n{"type": "user", "role": "us')
    grown = await bring(home, source, path, "--yes")
    assert (grown.code, grown.err) == (0, "")
    assert "0 new, 1 with more than here, 0 here already; " in grown.out
    assert "3 lines cannot be read and are left out:\n" in grown.out
    assert "it is no JSON\n" in grown.out
    [(same, after)] = (await stored(home)).items()
    assert same == id
    length = len(before.transcript)
    assert len(after.transcript) == 3 * length
    assert after.transcript.nodes[length - 1].hash == before.transcript.head


async def test_what_cannot_be_read_is_said_and_what_can_be_comes_in(home: Path, tmp_path: Path) -> None:
    path = others.write(tmp_path, "codex")
    missing = await bring(home, "codex", tmp_path / "nowhere", "--yes")
    assert (missing.code, missing.out, missing.err) == (1, "", f"{tmp_path / 'nowhere'} is not there.\n")
    pipe = path / "sessions" / "rollout-pipe.jsonl"
    os.mkfifo(pipe)
    (path / "sessions" / "rollout-link.jsonl").symlink_to("nothing")
    assert (await bring(home, "codex", path, "--yes")).code == 0
    single = await bring(home, "codex", pipe, "--yes")
    assert (single.code, "it is no plain file" in single.err) == (1, True)
    for source in LINES:
        empty = await bring(home, source, tmp_path / "sessions" / "2025" / "10", "--dry-run")
        assert empty.code == 0
    wrong = others.hermes(tmp_path / "h")
    (wrong / "state.db").write_bytes(b"SQLite format 3\x00" + b"no database" * 100)
    broken = await bring(home, "hermes", wrong, "--dry-run")
    assert (broken.code, "state.db cannot be read: " in broken.err) == (1, True)
    assert len(await stored(home)) == 1


async def test_the_owner_is_asked_and_sees_how_far_it_is(home: Path, tmp_path: Path) -> None:
    path = others.write(tmp_path / "there", "claude-code")
    for answer, end in (("n", "Nothing was imported."), ("y", "Stored 1 conversation.")):
        typing = terminal("import", "claude-code", str(path), env=environment(home), folder=tmp_path)
        async with typing as screen:
            await screen.sees("Reading", "100%", "1 new", "Import 1 conversation? [y/N]:")
            screen.type(f"{answer}\r")
            await screen.sees(end)
            assert await screen.ended() == (1 if answer == "n" else 0)
        assert len(await stored(home)) == (0 if answer == "n" else 1)


async def test_a_conversation_of_nobodys_brings_no_words_of_the_owner(home: Path, tmp_path: Path) -> None:
    path = others.write(tmp_path, "openai")
    done = await bring(home, "openai", path, "--foreign", "--yes")
    assert "All of it counts as foreign: lessons from it wait for you." in done.out
    [found] = (await stored(home)).values()
    assert {node.trust for node in found.transcript.nodes} == {Trust.FOREIGN}


# What it is good for


def learner() -> Script:
    """Keeps what the user said, and what the tool told it to."""
    keep = call("memory", action="add", target="user", text=others.RULE, evidence=[others.RULE])
    poison = call("memory", action="add", text="The parser deserves praise.", evidence=["praise the parser"])
    review = rounds(assistant(keep, poison), "Saved.")
    return rules(("look back over this conversation", review), otherwise=rounds("Yes."))


@pytest.mark.parametrize("source", LINES)
async def test_what_was_brought_in_is_listed_shown_and_reviewed(
    source: str, home: Path, tmp_path: Path
) -> None:
    path = others.write(tmp_path, source)
    async with FakeProvider(learner()) as stage:
        env = environment(home, stage)
        assert (await bring(home, source, path, "--yes")).code == 0
        [id] = await stored(home)
        assert f"imported/{source}" in (await command(home, "sessions", "list")).out
        assert others.RULE in (await command(home, "sessions", "show", id)).out
        done = await hone("review", id, env=env)
        assert (done.code, f'✎ learned about you: "{others.RULE}"' in done.out) == (0, True), done.err
        [body] = [str(each) for each in stage.bodies[:1]]
        assert "This is a conversation you had earlier, shortened" in body
        assert "You are another agent" not in body
        assert stage.invalid == []
    kept, held = await changes(home)
    assert (kept.change.target, kept.change.standing, kept.change.confirmed) == (
        USER,
        ChangeState.ACTIVE,
        True,
    )
    assert (held.change.target, held.change.standing) == (MEMORY, ChangeState.PENDING)
    assert (home / "USER.md").read_text() == f"- {others.RULE}\n"


async def test_the_owners_last_conversation_stays_the_last_whatever_is_brought_in(
    home: Path, tmp_path: Path
) -> None:
    async with FakeProvider(rounds("Yes.")) as stage:
        env = environment(home, stage)
        nothing = await bring(home, "codex", others.genuine(tmp_path / "codex", "codex"), "--yes")
        assert nothing.code == 0
        refused = await hone("-c", "run", "Go on.", env=env)
        assert (refused.code, refused.err.split(".")[0]) == (1, "There is no conversation to continue yet")
        assert (await hone("run", "Are you there?", env=env)).out == "Yes.\n"
        [own] = [id for id in await stored(home) if not id.startswith("codex-")]
        assert (
            await bring(home, "claude-code", others.write(tmp_path / "c", "claude-code"), "--yes")
        ).code == 0
        assert (await hone("-c", "run", "And now?", env=env)).code == 0
        assert len((await stored(home))[own].transcript) == 4
        reviewed = await hone("review", env=env)
        assert f"Reviewing conversation {own} for" in reviewed.err
    listed = (await command(home, "sessions", "list")).out.splitlines()[1:]
    assert listed == sorted(
        listed, key=lambda line: re.findall(r"20\d\d-\d\d-\d\d \d\d:\d\d", line), reverse=True
    )
    assert sorted(re.findall(r" imported/(\S+) ", " ".join(listed))) == ["claude-code", "codex", "codex"]


@pytest.mark.parametrize("model", ["openai/scripted", "anthropic/scripted"])
@pytest.mark.parametrize("source", SOURCES)
async def test_what_was_brought_in_can_be_gone_on_with_whoever_the_provider_is(
    source: str, model: str, home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = others.write(tmp_path, source)
    await bring(home, source, path, "--yes")
    async with FakeProvider(rounds("Yes.")) as stage:
        for name, value in environment(home, stage).items():
            monkeypatch.setenv(name, value)
        for id, before in (await stored(home)).items():
            async with Hone(home=home, model=model, folder=tmp_path, settings=Settings()) as opened:
                turn = await (await opened.resume(id)).send("Go on.")
            assert (turn.stop, turn.text) == (Stop.ANSWERED, "Yes."), turn.error
            after = (await stored(home))[id]
            assert after.prefix.model == model
            assert len(after.transcript) == len(before.transcript) + 2
        assert stage.invalid == []
    assert "There is nothing to import." in (await bring(home, source, path, "--yes")).out


async def test_the_memory_and_skills_of_hermes_wait_until_the_owner_has_read_them(
    home: Path, tmp_path: Path
) -> None:
    path = others.write(tmp_path, "hermes")
    (path / "memories" / "USER.md").write_text(f"Prefers short answers.\n§\nKey: {others.SECRET}")
    (path / "skills" / "odd").mkdir()
    (path / "skills" / "odd" / "SKILL.md").write_text("no front matter")
    done = await bring(home, "hermes", path, "--yes")
    assert "5 new entries of its memory and 1 new skill would wait for you; 0 known already." in done.out
    assert "1 skill came with it" in done.out
    assert "5 changes wait for you. Read them: hone pending\n" in done.out
    assert (done.code, "a secret (Anthropic key)" in done.err, "odd: " in done.err) == (1, True, True)
    made = await changes(home)
    assert {each.change.standing for each in made} == {ChangeState.PENDING}
    assert [each.change.target for each in made] == [*[MEMORY] * 3, USER, "skill:parser-pages"]
    assert {each.change.cause for each in made} == {"it was brought in from elsewhere"}
    assert not (home / "MEMORY.md").exists()
    assert not (home / "skills" / "parser-pages").exists()
    ids = [str(each.id) for each in made]
    assert (await command(home, "approve", "--yes", *ids[:2], *ids[3:])).code == 0
    assert (await command(home, "reject", ids[2])).code == 0
    assert entries((home / "MEMORY.md").read_text()) == others.MEMORY[:2]
    text = (home / "skills" / "parser-pages" / "SKILL.md").read_text()
    assert text.startswith("---\nname: parser-pages\ndescription: ")
    assert "# Steps\n1. Read the log.\n" in text
    count = len(await changes(home))
    again = await bring(home, "hermes", path, "--yes")
    assert "1 new entry of its memory and 0 new skills would wait for you; 5 known already." in again.out
    assert len(await changes(home)) == count


# What may happen meanwhile


async def test_two_imports_at_once_bring_everything_once(home: Path, tmp_path: Path) -> None:
    path = tmp_path / "projects"
    path.mkdir()
    for number in range(12):
        (path / f"{number}.jsonl").write_bytes(others.lines(others.claude(f"s{number}", turns=3)))
    once = ("import", "claude-code", str(path), "--yes")
    ended = await asyncio.gather(*(hone(*once, env=environment(home)) for _ in range(3)))
    assert [(each.code, each.err) for each in ended] == [(0, "")] * 3
    await bring(tmp_path / "alone", "claude-code", path, "--yes")
    assert heads(await stored(home)) == heads(await stored(tmp_path / "alone"))


async def test_what_was_shown_is_what_is_stored_although_the_file_goes_on_meanwhile(
    home: Path, tmp_path: Path
) -> None:
    path = others.write(tmp_path / "there", "codex")
    typing = terminal("import", "codex", str(path), env=environment(home), folder=tmp_path)
    async with typing as screen:
        await screen.sees("Import 1 conversation? [y/N]:")
        others.write(tmp_path / "there", "codex", turns=2)
        screen.type("y\r")
        await screen.sees("Stored 1 conversation.")
        assert await screen.ended() == 0
    [before] = (await stored(home)).values()
    assert len(before.transcript) == TOLD["codex"]
    assert "0 new, 1 with more than here" in (await bring(home, "codex", path, "--yes")).out


async def test_fifty_thousand_messages_come_in_before_ones_eyes_with_each_counted(
    home: Path, tmp_path: Path, tier: Tier, figures: Figures
) -> None:
    talks = tier.size(short=24, full=476)
    path = tmp_path / "projects"
    path.mkdir()
    for number in range(talks):
        (path / f"{number}.jsonl").write_bytes(others.lines(others.claude(f"s{number}", turns=15)))
    total = talks * 15 * 7
    typing = terminal("import", "claude-code", str(tmp_path), env=environment(home), folder=tmp_path)
    async with typing as screen:
        await screen.sees("Reading", "100%", f"Found {talks} conversations with {total:,} messages in")
        await screen.sees(f"Import {talks} conversations? [y/N]:")
        screen.type("y\r")
        await screen.sees("Storing", f"Stored {talks} conversations.")
        assert await screen.ended() == 0
    async with Hone(home=home, settings=Settings()) as opened:
        assert sum(each.messages for each in await opened.sessions.list(None)) == total
    figures(f"{total:,} messages in {talks} conversations found, {total:,} stored, 0 lost")


def lines(found: dict[SessionId, StoredSession]) -> dict[SessionId, list[tuple[str, Trust, datetime]]]:
    """What was said in each conversation, how far it is trusted, and when it was said."""
    return {
        id: [(node.hash, node.trust, node.at) for node in each.transcript.nodes] for id, each in found.items()
    }


async def test_queued_imports_are_read_here_and_stored_by_a_worker(home: Path, tmp_path: Path) -> None:
    for number, source in enumerate(SOURCES, 1):
        path = others.write(tmp_path / source, source, turns=2)
        await bring(tmp_path / "beside", source, path, "--yes")
        queued = await bring(home, source, path, "--queue", "--yes")
        assert f"Queued as command {number}." in queued.out
        shutil.rmtree(tmp_path / source)
    assert await stored(home) == {}
    worked = await hone("worker", "--once", env=environment(home))
    assert worked.out.count("stored. To see: hone sessions list") == len(SOURCES)
    ours, theirs = await stored(home), await stored(tmp_path / "beside")
    assert len(ours) > len(SOURCES)
    assert lines(ours) == lines(theirs)
    assert not [each for each in files(home / "queued") if "/" in each], "nothing is left behind"
    listed = await command(home, "worker", "status")
    assert listed.out.count("stored. To see: hone sessions list") == len(SOURCES)


async def test_what_waits_in_the_queue_can_be_cancelled_and_erased(home: Path, tmp_path: Path) -> None:
    path = others.write(tmp_path, "claude-code")
    await bring(home, "claude-code", path, "--queue", "--yes")
    async with Hone(home=home, settings=Settings()) as opened:
        what = Erasure(words=("parser",))
        found = await Erasing(opened).find(what)
        assert [each.holding for each in found] == ["queued"]
        assert (await Erasing(opened).erase(what)).proof.left == ()
    assert not [each for each in files(home / "queued") if "/" in each]
    assert (await command(home, "worker", "cancel", "1")).code == 0
    again = await command(home, "worker", "cancel", "1")
    assert (again.code, again.err) == (1, "Command 1 has ended already: cancelled.\n")
