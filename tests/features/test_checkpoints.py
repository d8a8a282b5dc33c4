"""L3: what is kept before tools change files, for whom, for how long, and what happens when that fails."""

import asyncio
import os
import stat
import subprocess
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta
from pathlib import Path

import pytest

from hone.core.errors import Refused
from hone.core.events import Notice
from hone.core.ids import SessionId
from hone.core.messages import ToolCall, canonical, digest, user
from hone.core.ports import Header
from hone.core.trust import Trust
from hone.core.turn import Origin
from hone.core.value import replace
from hone.features.checkpoints import folders, pruning, snapshot
from hone.features.checkpoints.decisions import expected_digests
from hone.features.checkpoints.git import GitWorktree
from hone.features.checkpoints.rows import microseconds
from hone.features.checkpoints.text import plan_lines, turn_lines
from hone.prompt.compaction import plan as plan_cut
from hone.prompt.compaction import shorten
from tests.features.histories import Deed, do, survey
from tests.features.world import GIT, World
from tests.given import NOON
from tests.rig import PREFIX


@asynccontextmanager
async def living(root: Path, *, git: bool = False) -> AsyncIterator[World]:
    """A world in its first turn."""
    world = World(root.resolve(), git=git)
    await world.say()
    try:
        yield world
    finally:
        await world.service.close()


async def listed(world: World) -> list[str]:
    return [*turn_lines(await world.service.history.turns(world.header.id), str(world.folder))][1:]


async def planned(world: World, turn: int = 1) -> list[str]:
    plan = await world.service.history.plan(world.header.id, turn)
    return [" ".join(line.split()) for line in plan_lines(plan, str(world.folder))]


def notices(world: World) -> list[str]:
    return [event.text for event in world.events if isinstance(event, Notice)]


# What a command did


async def test_what_could_not_be_kept_is_counted_and_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(snapshot, "LARGEST", 100)
    monkeypatch.setattr(snapshot, "MOST", 3)
    async with living(tmp_path) as world:
        for name in ("large1", "large2"):
            (world.folder / name).write_bytes(b"x" * 101)
        for number in range(5):
            (world.folder / f"f{number}").write_bytes(b"y")
            os.utime(world.folder / f"f{number}", ns=(number, number))
        names = ("large1", "large2", *(f"f{number}" for number in range(5)))
        await world.command([Deed("append", name, content=b"!") for name in names])
        said = await listed(world)
        assert said[-2:] == [
            "  2 files changed by a command cannot be taken back: too large",
            "  2 files changed by a command cannot be taken back: too many files",
        ]
        tree = await world.rewind(1)
    left = {name for name in names if tree[name][2].endswith(b"!")}
    assert left == {"large1", "large2", "f0", "f1"}  # those that were changed last had room


async def test_a_folder_of_too_many_files_is_said_once_and_file_tools_are_kept_all_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(folders, "MOST", 10)
    async with living(tmp_path) as world:
        for number in range(11):
            (world.folder / f"f{number}").touch()
        for _ in range(2):
            await world.command([Deed("append", "f1", content=b"!")])
        await world.write("f2", b"by a tool")
        assert [text.partition(".")[0] for text in notices(world)] == [
            "What is changed now cannot be rewound later"
        ]
        tree = await world.rewind(1)
    assert (tree["f1"][2], tree["f2"][2]) == (b"!!", b"")


async def test_dependency_folders_and_ignored_files_are_left_out(tmp_path: Path) -> None:
    async with living(tmp_path, git=True) as world:
        await world.command(
            [
                Deed("write", "node_modules/a/index.js", content=b"1"),
                Deed("write", "build/out.o", content=b"1"),
                Deed("write", "x.log", content=b"1"),
                Deed("write", "kept.txt", content=b"1"),
            ]
        )
        [turn] = await world.service.history.turns(world.header.id)
        assert [change.path.name for change in turn.changes] == ["kept.txt"]
        assert {"node_modules/a/index.js", "build/out.o", "x.log"} <= (await world.rewind(1)).keys()


async def test_a_file_that_only_git_has_comes_back_from_git_and_stays_when_git_is_gone(
    tmp_path: Path,
) -> None:
    async with living(tmp_path, git=True) as world:
        for name in ("d/a", "b.txt"):  # what is as young as the index is not taken for unchanged
            os.utime(world.folder / name, (1, 1))
        world.commit()
        git = GitWorktree.around(world.folder)
        assert git
        found, indexed = git.tracked()
        clean = [
            name for name, each in found.items() if each.is_clean((world.folder / name).lstat(), indexed)
        ]
        before = survey(world.folder)
        await world.command([Deed("delete", "d"), Deed("append", "b.txt", content=b"!")])
        subprocess.run(["rm", "-rf", ".git"], cwd=world.folder, check=True)
        assert await world.rewind(1) == before
    assert "d/a" in clean
    assert "b.txt" not in clean  # its bytes are not git's: it has an identifier that git expands


async def test_nothing_of_a_hostile_repository_runs(tmp_path: Path) -> None:
    async with living(tmp_path, git=True) as world:
        trap = tmp_path / "sprung"
        script = tmp_path / "trap.sh"
        script.write_text(f"#!/bin/sh\necho $0 $@ >> {trap}\ncat\n")
        script.chmod(0o755)
        for key in (
            "core.fsmonitor",
            "core.sshCommand",
            "core.pager",
            "core.editor",
            "diff.external",
            "diff.d.textconv",
            "diff.d.command",
            "filter.f.clean",
            "filter.f.smudge",
            "filter.f.process",
            "credential.helper",
            "core.alternateRefsCommand",
            "uploadpack.packObjectsHook",
            "remote.origin.uploadpack",
        ):
            subprocess.run([*GIT, "config", key, str(script)], cwd=world.folder, check=True)
        for key, value in (
            ("remote.origin.url", "ext::sh -c env%"),
            ("remote.origin.promisor", "true"),
            ("extensions.partialClone", "origin"),
            ("core.repositoryFormatVersion", "1"),
        ):
            subprocess.run([*GIT, "config", key, value], cwd=world.folder, check=True)
        (world.folder / ".gitattributes").write_text("* filter=f diff=d\n")
        hooks = world.folder / ".git" / "hooks"
        hooks.mkdir(exist_ok=True)
        for hook in ("post-index-change", "fsmonitor-watchman", "pre-commit", "reference-transaction"):
            (hooks / hook).symlink_to(script)
        before = survey(world.folder)
        await world.command([Deed("append", "d/a", content=b"!"), Deed("delete", "b.txt")])
        await world.command([Deed("write", "more", content=b"!")])
        assert await world.rewind(1) == before
        missing = GitWorktree(world.folder).contents(["0" * 40])
    assert (missing, trap.exists(), notices(world)) == ({}, False, [])


async def test_what_changes_beside_a_background_process_after_its_turn_is_the_users(tmp_path: Path) -> None:
    async with living(tmp_path) as world:
        context = world.context("terminal", command="serve", background=True)
        around = world.service.observer.around_command(world.folder, "serve", context, network=False)
        async with around:
            do(world.folder, Deed("write", "served", content=b"by the process"))
            await world.command([Deed("write", "built", content=b"by a command")])
            await world.answer("It runs.")
            do(world.folder, Deed("write", "mine", content=b"by the user"))
        assert (await world.rewind(1)).keys() == {"mine"}
        await world.say()
        context = world.context("terminal", command="build", background=True)
        async with world.service.observer.around_command(world.folder, "build", context, network=False):
            do(world.folder, Deed("write", "result", content=b"by a process that ends within its turn"))
        assert (await world.rewind(2)).keys() == {"mine"}


async def test_a_command_that_is_interrupted_is_recorded(tmp_path: Path) -> None:
    async with living(tmp_path) as world:
        begun = asyncio.Event()

        async def interrupted() -> None:
            context = world.context("terminal", command="sleep")
            async with world.service.observer.around_command(world.folder, "sleep", context, network=False):
                do(world.folder, Deed("write", "half", content=b"1"))
                begun.set()
                await asyncio.Event().wait()

        task = asyncio.create_task(interrupted())
        await begun.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert await world.rewind(1) == {}


async def test_commands_that_run_side_by_side_are_taken_back_together(tmp_path: Path) -> None:
    async with living(tmp_path) as world:
        observer = world.service.observer
        first, second = (world.context("terminal", command=name) for name in ("one", "two"))
        async with observer.around_command(world.folder, "one", first, network=False):
            do(world.folder, Deed("write", "a", content=b"1"))
            async with observer.around_command(world.folder, "two", second, network=False):
                do(world.folder, Deed("write", "b", content=b"2"))
            await world.write("c", b"a tool meanwhile")
        [turn] = await world.service.history.turns(world.header.id)
        assert sorted(change.path.name for change in turn.changes) == ["a", "b", "c"]
        assert await world.rewind(1) == {}


# What restoring may touch


async def test_a_folder_that_became_a_link_is_not_followed(tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "file").write_bytes(b"theirs")
    async with living(tmp_path) as world:
        do(world.folder, Deed("write", "d/file", content=b"old"))
        await world.write("d/file", b"theirs")
        await world.write("e/file", b"ours")
        do(world.folder, Deed("delete", "d"))
        (world.folder / "d").symlink_to(outside)
        await world.command([Deed("delete", "e")])
        (world.folder / "e").symlink_to(outside)
        assert "left alone d/file: changed by you since" in await planned(world)
        await world.rewind(1)
    assert {path.name: path.read_bytes() for path in outside.iterdir()} == {"file": b"theirs"}


async def test_hones_home_is_neither_kept_nor_restored(tmp_path: Path) -> None:
    async with living(tmp_path) as world:
        home = world.home / "hone.toml"
        home.write_bytes(b"before")
        context = world.context("write_file", content="after")
        await world.service.observer.before_write(home, b"before", context)
        home.write_bytes(b"after")
        await world.service.observer.after_write(home, b"after", context)
        assert await world.service.history.turns(world.header.id) == []


async def test_a_file_that_changes_after_the_plan_was_shown_is_left_alone(tmp_path: Path) -> None:
    async with living(tmp_path) as world:
        await world.write("a", b"one")
        await world.write("b", b"one")
        history = world.service.history
        plan = await history.plan(world.header.id, 1)
        do(world.folder, Deed("write", "a", content=b"mine"))
        done = await history.apply(plan)
        assert [step.path.name for step in done.acting] == ["b"]
        assert [(step.path.name, step.left) for step in done.left] == [("a", "changed by you since")]
    assert survey(world.folder).keys() == {"a"}


async def test_another_session_that_changed_a_file_later_is_named(tmp_path: Path) -> None:
    async with living(tmp_path) as world:
        await world.write("a", b"one")
        other = replace(world.header, id=SessionId("0123"))
        await world.sessions.start(other, PREFIX, world.transcript.nodes)
        first, world.header = world.header, other
        await world.write("a", b"two")
        world.header = first
        assert await planned(world) == ["left alone a: changed since by session 0123"]


# Whose turn it is


async def test_what_a_child_changes_belongs_to_its_parents_turn(tmp_path: Path) -> None:
    async with living(tmp_path) as world:
        await world.say()
        parent = world.header
        child = Header(SessionId("c1"), NOON, origin=Origin.DELEGATE, parent=parent.id)
        grandchild = replace(child, id=SessionId("c2"), parent=child.id)
        start = world.transcript.upto(0).then(user("do it"), Trust.AGENT, NOON)
        await world.sessions.start(child, PREFIX, start.nodes)
        for header, name in ((child, "a"), (grandchild, "b")):
            world.header, whole = header, world.transcript
            world.transcript = start
            await world.write(name, b"1")
            world.header, world.transcript = parent, whole
        turns = await world.service.history.turns(parent.id)
        assert [(turn.number, len(turn.changes)) for turn in turns] == [(2, 2)]


async def test_a_branch_rewinds_what_its_beginning_did_and_goes_its_own_way(tmp_path: Path) -> None:
    async with living(tmp_path) as world:
        await world.write("a", b"one")
        await world.say()
        await world.write("a", b"two")
        history, old = world.service.history, world.header
        new = await history.branch(old.id, 2, world.clock.now())
        assert new is not None
        await world.rewind(2)
        stored = await world.sessions.load(new)
        world.header, world.transcript, world.turn = stored.header, stored.transcript, 1
        await world.say()
        await world.write("b", b"other")
        turns = await history.turns(new)
        assert [(turn.number, turn.session) for turn in turns] == [(1, old.id), (2, new)]
        assert await world.rewind(1) == {}
        assert [turn.is_taken_back for turn in await history.turns(old.id)] == [True, True]
        with pytest.raises(Refused, match="Turn 7 is not in this conversation"):
            await history.branch(new, 7, world.clock.now())
        assert await history.branch(old.id, 1, world.clock.now()) is None  # nothing was said before


async def test_turns_keep_their_numbers_when_notes_take_the_place_of_messages(tmp_path: Path) -> None:
    async with living(tmp_path) as world:
        for number in range(1, 6):
            await world.write("a", b"%d" % number)
            await world.answer("Done. " * 50)
            await world.say()
        cut = plan_cut(world.transcript, 0.25)
        assert cut
        short = shorten(world.transcript, cut, "notes", None, world.clock.now())
        await world.sessions.shorten(world.header.id, world.transcript.head, short)
        world.transcript = short
        await world.write("a", b"6")
        await world.say()
        await world.write("a", b"7")
        turns = await world.service.history.turns(world.header.id)
        assert [turn.number for turn in turns] == [1, 2, 3, 4, 5, 6, 7]
        assert all(turn.words.startswith("words") for turn in turns)
        with pytest.raises(Refused, match="notes have taken its place"):
            await world.service.history.branch(world.header.id, 3, world.clock.now())
        assert (await world.rewind(3))["a"][2] == b"2"


# When it fails, and how much is kept


async def test_a_checkpoint_that_fails_is_said_once_and_the_tool_works(tmp_path: Path) -> None:
    async with living(tmp_path) as world:
        (world.home / "checkpoints").write_bytes(b"in the way")
        for _ in range(2):
            await world.write("a", b"written all the same")
            await world.command([Deed("write", "b", content=b"run all the same")])
        assert survey(world.folder).keys() == {"a", "b"}
        [said] = notices(world)
        assert said.startswith("What is changed now cannot be rewound later. ")
        assert str(world.home) in said
    (world.home / "checkpoints").unlink()


async def test_a_write_that_was_cut_off_is_known_by_what_it_was_about_to_write(tmp_path: Path) -> None:
    async with living(tmp_path) as world:
        do(world.folder, Deed("write", "a", content=b"one\ntwo\n"))
        observer, path = world.service.observer, world.folder / "a"
        patch = world.context("patch", path="a", find="two", replace="2")
        await observer.before_write(path, b"one\ntwo\n", patch)
        assert await planned(world) == []  # not written yet
        path.write_bytes(b"one\n2\n")
        assert await planned(world) == ["restore a"]
        path.write_bytes(b"one\n2\nmine\n")
        assert await planned(world) == ["left alone a: it cannot be told whether the tool or you changed it"]


def test_what_a_file_can_hold_after_a_call() -> None:
    def after(before: bytes | None, **arguments: object) -> set[str]:
        return {*expected_digests(ToolCall("1", "x", canonical(arguments)), before)}

    assert after(None, content="ä\n") == {digest("ä\n".encode())}
    assert after(b"a b a", find="a", replace="c", all=True) == {digest(b"c b c")}
    assert digest(b"x\r\nc\r\n") in after(b"x\r\ny\r\n", find="y\n", replace="c\n")
    assert after(b"a", find="z", replace="c") == after(b"\xff", find="a", replace="b") == set()
    assert after(None, find="a", replace="b") == after(b"a", find="", replace="b") == set()
    assert expected_digests(ToolCall("1", "x", "no json"), b"") == ()
    assert expected_digests(ToolCall("1", "x", "[]"), b"") == ()


async def test_old_and_excess_checkpoints_go_oldest_first_and_the_running_session_keeps_its_own(
    tmp_path: Path,
) -> None:
    async with living(tmp_path) as world:
        store = world.service.store
        for _ in range(6):
            await world.write("a", os.urandom(300_000))
            await world.say()
        needed = frozenset({world.header.id})
        assert await store.run(pruning.prune, 0, 0, needed) > 1_400_000
        left = await store.run(pruning.prune, 700_000, 0, frozenset())
        assert 600_000 <= left <= 700_000
        turns = await world.service.history.turns(world.header.id)
        assert [turn.number for turn in turns] == [5, 6]
        young = microseconds(world.clock.now() - timedelta(seconds=1))
        await store.run(pruning.prune, 2**30, young, frozenset())
        assert len(await world.service.history.turns(world.header.id)) == 1
        assert await world.service.forget(world.header.id) == 1
        assert await store.run(pruning.examine) == (0, 0, 0)
        assert (
            await store.run(lambda connection: connection.execute("PRAGMA page_count").get) < 40
        )  # room is given back


async def test_a_damaged_content_is_noticed_and_the_file_left(tmp_path: Path) -> None:
    async with living(tmp_path) as world:
        do(world.folder, Deed("write", "a", content=b"one"))
        await world.write("a", b"two")
        await world.service.store.run(
            lambda connection: connection.execute("UPDATE blobs SET data = zeroblob(length(data))").fetchall()
        )
        [(well, line)] = await world.service.checks()
        assert (well, line.split(";")[0]) == (False, "checkpoints: 1 contents are damaged")
        history = world.service.history
        done = await history.apply(await history.plan(world.header.id, 1))
        assert "damaged" in done.left[0].left
        assert survey(world.folder)["a"][2] == b"two"


async def test_only_the_owner_can_read_what_is_kept(tmp_path: Path) -> None:
    async with living(tmp_path) as world:
        await world.write("a", b"one")
        await world.command([Deed("write", "b", content=b"x")])
        modes = {
            path.name: stat.S_IMODE(path.lstat().st_mode)
            for path in (world.home / "checkpoints", *(world.home / "checkpoints").iterdir())
        }
    assert modes.pop("checkpoints") == 0o700
    assert set(modes.values()) == {0o600}
