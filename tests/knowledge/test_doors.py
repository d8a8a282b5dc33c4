"""E5: whoever changes what is known goes through one function per kind. Here are all of them, by name."""

import ast
import asyncio
import shlex
import sys
from collections import defaultdict
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from datetime import datetime
from pathlib import Path

import click
import pytest

import hone
from hone.cli.main import cli, perform
from hone.core.clock import ManualClock
from hone.core.ids import SessionId
from hone.core.ledger import MEMORY, USER, Actor, Author, Change, Entry, Evidence, copy, project, skill
from hone.core.messages import user
from hone.core.ports import Header
from hone.core.skill import DOCUMENT
from hone.core.transcript import Transcript
from hone.core.trust import Trust
from hone.core.value import replace
from hone.files.tree import FileTree
from hone.knowledge.journal import Add
from hone.knowledge.keeper import OWNER, Keeper
from hone.knowledge.library import Library
from hone.knowledge.skills.folder import Archive, Install, Pin, Restore, Uninstall, Unpin
from hone.knowledge.sources import find_derived, withdraw
from hone.knowledge.tools import knowledge_tools
from hone.knowledge.verdicts import DEFAULTS
from hone.stores.database import Database
from hone.stores.ledger import SqliteLedger
from hone.stores.skill_catalog import SqliteSkillCatalog
from tests.given import NOON
from tests.tools.calls import EMPTY, called

SOURCE = Path(hone.__file__).parent
NAME = "trip-planning"
TEXT = f"---\nname: {NAME}\ndescription: Plan a trip day by day.\n---\n\nBook the train.\n"
ERASER = "features/erasing/database.py DatabaseEraser"
TEAM = "features/team/service.py TeamKnowledge"  # of the team's own ledger
KEEPER, FILE_SYNC = "knowledge/keeper.py", "knowledge/file_sync.py"

# Where it is written in the code

DOORS = {
    "ledger.record": {
        f"{KEEPER} Keeper._record",
        f"{KEEPER} Keeper.reject",
        f"{KEEPER} Keeper.confirm",
        f"{FILE_SYNC} FileSync._edited",
        f"{FILE_SYNC} FileSync.adopt",
        "knowledge/items.py Items._adopt",
        "knowledge/items.py Items._record",
    },
    "items.keep": {"features/backends/access.py Access._changed", f"{ERASER}._uninstall"},
    "store.erase": {
        f"{ERASER}.erase",
        "features/erasing/places.py ProvenanceEraser._erase",
        "features/team/erasing.py TeamEraser.erase",  # of what its owner shared
    },
    "ledger.mark_published": {
        f"{FILE_SYNC} FileSync._write",
        f"{FILE_SYNC} FileSync.adopt",
        "knowledge/copies.py Copies.publish",
        "features/checkouts/bases.py HomeBases.save",
    },
    "disk.write": {f"{FILE_SYNC} FileSync._write.write"},
    "disk.remove": {f"{FILE_SYNC} FileSync._write.write"},
    "journal.apply": {
        "knowledge/noting.py Noting._draft",
        f"{KEEPER} Keeper._replay",
        f"{FILE_SYNC} _accepted",
        "knowledge/vetting.py _staying",  # to compare only
        "features/experiments/scratch_home.py _less",  # of the scratch home of an experiment
    },
    "folder.apply": {
        f"{KEEPER} Keeper.edit_skill",
        f"{KEEPER} Keeper._draft_batch",
        f"{KEEPER} Keeper._replay",
        f"{FILE_SYNC} _accepted",
    },
    "jobs.complete": {"learning/review.py Reviewer._complete.finish"},
    "runs.complete": {"features/curator/curator.py Curator._close.close"},
    "keeper.commit": {"learning/review.py Reviewer._complete"},
    "keeper.arrange": {
        "features/curator/curator.py Curator._close",
        "features/curator/curator.py Curator.preview",
    },
    "library.wake": {"knowledge/tools.py reading_tools.skill_view"},
    "keeper.mark": {"knowledge/library.py Library.wake", "features/checks/checker.py SkillChecker._follow"},
    "keeper.note": {
        "cli/memory.py _change",
        "cli/slash_commands/memory.py remember",
        "cli/editing.py edit_journal.record",
        "knowledge/tools.py memory_tool.memory",
        "features/imports/proposals.py _made",
        "features/experiments/findings.py _proposed",
        "features/mcp/server/sending.py _propose_entry",
        "features/checkouts/service.py _record",
        "features/recheck/entries.py settle",
        "features/payback/unused.py propose",
        "features/team/promoting.py promote_entry",
        f"{TEAM}.propose",
        "web/operations/journal.py _noted",
    },
    "keeper.edit_skill": {
        "cli/skills.py new.act",
        "cli/editing.py edit_document.record",
        "cli/installing.py installed.install",
        "features/checkouts/service.py _record",
        "cli/skills.py _shelving.shelve",
        "knowledge/tools.py managing_tool.skill_manage",
        "features/imports/proposals.py _made",
        "features/experiments/findings.py _proposed",
        "features/experiments/scratch_home.py furnish",  # of the scratch home of an experiment
        "features/mcp/server/sending.py _propose_skill",
        f"{TEAM}.propose",
        f"{ERASER}._uninstall",
        "web/operations/skills.py _shelve",
    },
    "keeper.share": {"features/sharing/commands.py _write", f"{ERASER}._take_copies"},
    "keeper.undo": {
        "cli/demo.py Demo._undo",
        "cli/pending.py undo",
        "cli/slash.py _undo",
        "features/backends/part.py MemoryPart.deliver",
        "knowledge/sources.py withdraw",
        f"{TEAM}.undo",
        "web/operations/changes.py undo",
    },
    "keeper.confirm": {"features/experiments/findings.py _confirmed", "web/operations/changes.py confirm"},
    "keeper.approve": {
        "cli/pending.py _settled",
        "features/imports/knowledge_commands.py _approve_lessons",
        "learning/reconsider.py reconsider",
        "cli/slash.py _approve",
        f"{TEAM}.approve",
        "web/operations/changes.py approve",
    },
    "keeper.reject": {
        "cli/pending.py _settled",
        "cli/slash.py _reject",
        f"{ERASER}._reject_empty",
        "knowledge/sources.py withdraw",
        f"{TEAM}.reject",
        "web/operations/changes.py reject",
    },
}
WRITING = {
    *("os.replace", "os.rename", "os.unlink", "os.remove", "os.rmdir", "os.mkdir", "os.symlink", "os.link"),
    *("os.truncate", "os.write", "os.utime", "shutil.rmtree", "shutil.move", "shutil.copy"),
}
PATHS = {"write_text", "write_bytes", "unlink", "touch", "symlink_to", "hardlink_to", "rmdir", "mkdir"}


def references(file: Path) -> Iterator[tuple[str, str, str]]:
    """Every `x.name` in a file: the last word of x, the name, and the function it stands in."""

    def walk(node: ast.AST, within: tuple[str, ...]) -> Iterator[tuple[str, str, str]]:
        if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            within = (*within, node.name)
        if isinstance(node, ast.Attribute):
            yield ast.unparse(node.value).rpartition(".")[2].lstrip("_"), node.attr, ".".join(within)
        for child in ast.iter_child_nodes(node):
            yield from walk(child, within)

    yield from walk(ast.parse(file.read_text()), ())


def sources(*rooms: str) -> list[Path]:
    return [file for room in rooms or ("",) for file in sorted((SOURCE / room).rglob("*.py"))]


def test_what_changes_knowledge_stands_in_these_functions_and_nowhere_else() -> None:
    """But for the stores themselves. A review's completion records what `commit` hands it, under the lock."""
    found: defaultdict[str, set[str]] = defaultdict(set)
    for file in {*sources()} - {*sources("stores")}:
        for owner, name, function in references(file):
            if f"{owner}.{name}" in DOORS:
                found[f"{owner}.{name}"].add(f"{file.relative_to(SOURCE)} {function}")
    assert {door: found[door] for door in DOORS} == DOORS


def test_nothing_that_changes_knowledge_goes_by_another_name() -> None:
    """What the list above looks for by its words cannot be had without them."""
    for file in sources():
        imports = [each for each in ast.walk(ast.parse(file.read_text())) if isinstance(each, ast.ImportFrom)]
        for each in imports:
            if each.module in ("hone.knowledge", "hone.knowledge.skills"):
                assert all(name.asname is None for name in each.names), file
            if each.module in ("hone.knowledge.journal", "hone.knowledge.skills.folder"):
                assert "apply" not in {name.name for name in each.names}, file
    others = {
        f"{file.relative_to(SOURCE)} {owner}.{name}"
        for file in sources()
        for owner, name, _ in references(file)
        if name in ("record", "mark_published") and owner not in ("ledger", "journal")
    }
    assert others == {
        "features/checkpoints/commanding.py store.record",  # of files
        "models/fake_provider/server.py self.record",  # of requests
    }


def test_below_the_runtime_only_the_disk_writes_files() -> None:
    found = {
        str(file.relative_to(SOURCE))
        for file in sources("knowledge", "files")
        for owner, name, _ in references(file)
        if f"{owner}.{name}" in WRITING or name in PATHS
    }
    assert found == {
        *("files/tree.py", "files/atomic.py", "files/moving.py", "files/opening.py"),
        "files/erasing.py",
        "files/documents.py",
    }


# What comes through


class Watched(SqliteLedger):
    """Notes each call that changes it."""

    def __init__(self, database: Database) -> None:
        super().__init__(database)
        self.seen: list[tuple[str, str, str, str]] = []

    async def record(
        self, changes: Sequence[Change], contents: Mapping[str, bytes], at: datetime
    ) -> Sequence[Entry]:
        made = await super().record(changes, contents, at)
        self.seen += map(line, made)
        return made


def line(entry: Entry) -> tuple[str, str, str, str]:
    change = entry.change
    return change.kind, change.author.actor, change.target, change.standing


class Desk:
    """A home whose ledger is watched, and somebody who talks."""

    def __init__(self, home: Path, database: Database) -> None:
        self.home = home
        self.ledger = Watched(database)
        self.keeper = Keeper(self.ledger, FileTree(home), ManualClock(), lambda _: None, DEFAULTS)
        library = Library(self.keeper, SqliteSkillCatalog(database), ManualClock())
        self.tools = {tool.spec.name: tool for tool in knowledge_tools(library, "/work/shop")}
        said = Transcript(EMPTY.transcript.head).then(user("I like tea in the train."), Trust.OWNER, NOON)
        self.context = replace(EMPTY, transcript=said, header=Header(SessionId("5e55"), NOON))

    async def call(self, named: str, /, **arguments: object) -> None:
        tool = self.tools[named]
        proof = {} if tool.spec.readonly else {"evidence": ["tea in the train"]}
        outcome = await tool.run(called(tool, **proof, **arguments), self.context)
        assert not outcome.failed, outcome.text

    async def left(self) -> list[tuple[str, str, str, str]]:
        """What was recorded since the last look: by the calls seen, and by what the ledger has."""
        seen, self.ledger.seen = self.ledger.seen, []
        entries = (await self.ledger.entries())[: len(seen)]
        assert [line(each) for each in reversed(entries)] == seen
        return seen


@asynccontextmanager
async def context(home: Path) -> AsyncIterator[Desk]:
    database = Database.open(home / "hone.db")
    it = Desk(home, database)
    yield it
    it.keeper.close()
    await database.close()


MISLED = Author(
    Actor.AGENT,
    SessionId("bad"),
    evidence=(Evidence(SessionId("bad"), 1, Trust.FOREIGN, "0" * 64),),
    trust_floor=Trust.FOREIGN,
)


async def test_each_call_of_the_memory_tool_leaves_one_entry_for_each_part(home: Path) -> None:
    async with context(home) as it:
        await it.call("memory", action="add", text="Likes tea.")
        await it.call("memory", action="replace", match="tea", text="Likes tea in the train.")
        await it.call("memory", action="remove", match="tea")
        items = [{"action": "add", "text": "a b c"}, {"action": "add", "target": "user", "text": "d e f"}]
        await it.call("memory", action="batch", batch=items)
        await it.call("memory", action="list")
        made = [("add", MEMORY), ("replace", MEMORY), ("remove", MEMORY), ("add", MEMORY), ("add", USER)]
        assert await it.left() == [(deed, "agent", target, "active") for deed, target in made]


async def test_each_call_of_skill_manage_leaves_one_entry(home: Path) -> None:
    async with context(home) as it:
        calls: list[tuple[str, dict[str, str]]] = [
            ("create", {"text": TEXT}),
            ("patch", {"find": "the train", "text": "the night train"}),
            ("edit", {"text": f"{TEXT}Take tea.\n"}),
            ("write_file", {"file": "references/tea.md", "text": "Green.\n"}),
            ("remove_file", {"file": "references/tea.md"}),
            ("archive", {}),
        ]
        for action, arguments in calls:
            await it.call("skill_manage", action=action, name=NAME, **arguments)
        deeds = ["create", "patch", "rewrite", "writefile", "removefile", "archive"]
        assert await it.left() == [(deed, "agent", skill(NAME), "active") for deed in deeds]
        await it.call("skills_list")
        assert await it.left() == []


async def test_each_edit_by_hand_leaves_one_entry_of_the_owners(home: Path) -> None:
    async with context(home) as it:
        (home / "MEMORY.md").write_text("- by hand\n")
        await it.keeper.text(MEMORY)
        (home / "skills" / NAME).mkdir(parents=True)
        (home / "skills" / NAME / DOCUMENT).write_text(TEXT)
        await it.call("skills_list")
        made = [("edit", "owner", target, "active") for target in (MEMORY, skill(NAME))]
        assert await it.left() == made


async def test_undo_approve_reject_and_forget_leave_one_entry_each(home: Path) -> None:
    async with context(home) as it:
        waiting = [(await it.keeper.note([(MEMORY, Add(text))], MISLED))[0].id for text in "abc"]
        assert await it.left() == [("add", "agent", MEMORY, "pending")] * 3
        approved = await it.keeper.approve(waiting[0])
        await it.keeper.undo(approved.id)
        await it.keeper.reject(waiting[1])
        await withdraw(it.keeper, await find_derived(it.keeper, SessionId("bad")))
        deeds = ["approve", "undo", "reject", "reject"]
        assert await it.left() == [(deed, "owner", MEMORY, "active") for deed in deeds]


async def test_each_deed_of_the_owner_on_a_skill_leaves_one_entry(home: Path) -> None:
    async with context(home) as it:
        edits = (Install({DOCUMENT: TEXT.encode()}, "/x"), Pin(), Unpin(), Archive(), Restore(), Uninstall())
        for edit in edits:
            await it.keeper.edit_skill(NAME, edit, OWNER)
        deeds = [type(edit).__name__.lower() for edit in edits]
        assert await it.left() == [(deed, "owner", skill(NAME), "active") for deed in deeds]


# What can be typed


def commands(command: click.Command, *path: str) -> Iterator[tuple[str, str]]:
    """Each with the module it stands in."""
    if not isinstance(command, click.Group):
        yield " ".join(path), command.callback.__module__ if command.callback else ""
        return
    context = click.Context(command)
    for name in command.list_commands(context):
        found = command.get_command(context, name)
        assert found
        yield from commands(found, *path, name)


LOOKS = (
    *("memory show", "skills list", f"skills show {NAME}", "skills check", f"skills diff {NAME}"),
    *("log", "show 1", "diff 1", "pending", "curator status"),
)
TYPED: tuple[tuple[str, list[tuple[str, str]]], ...] = (
    ("memory add 'Likes tea.'", [("add", MEMORY)]),
    ("memory replace tea 'Likes rain.'", [("replace", MEMORY)]),
    ("memory pin rain", [("pin", MEMORY)]),
    ("memory unpin rain", [("unpin", MEMORY)]),
    ("memory rm rain", [("remove", MEMORY)]),
    ("memory edit", [("edit", MEMORY)]),
    ("memory add 'Likes snow.' --to project", [("add", project("CWD"))]),
    ("memory promote snow --yes", [("remove", project("CWD")), ("add", MEMORY)]),
    (f"skills new {NAME} --from FILE", [("create", skill(NAME))]),
    (f"skills edit {NAME}", [("edit", skill(NAME))]),
    (f"skills pin {NAME}", [("pin", skill(NAME))]),
    (f"skills unpin {NAME}", [("unpin", skill(NAME))]),
    (f"skills archive {NAME}", [("archive", skill(NAME))]),
    (f"skills restore {NAME}", [("restore", skill(NAME))]),
    (f"curator pin {NAME}", [("pin", skill(NAME))]),
    (f"curator unpin {NAME}", [("unpin", skill(NAME))]),
    (f"curator archive {NAME}", [("archive", skill(NAME))]),
    (f"curator restore {NAME}", [("restore", skill(NAME))]),
    (f"skills sync {NAME} --to claude-code --yes", [("install", copy(f"THERE/skills/{NAME}"))]),
    (f"skills export {NAME} ARCHIVE", []),
    ("skills install FOLDER --yes", [("install", skill("night-trains"))]),
    ("skills uninstall night-trains", [("uninstall", skill("night-trains"))]),
    ("undo LATEST", [("undo", skill("night-trains"))]),
    ("approve WAITING --yes", [("approve", MEMORY)]),
    ("reject WAITING", [("reject", MEMORY)]),
    ("forget bad --yes", [("undo", MEMORY), ("reject", MEMORY)]),
)


def test_every_command_of_a_module_that_can_change_knowledge_is_typed_below() -> None:
    """`forget` and, by the same function, `sessions delete` and `sessions prune` go by `withdraw`."""
    doors = {place.partition(" ")[0] for places in DOORS.values() for place in places}
    modules = {f"hone.{file.removesuffix('.py').replace('/', '.')}" for file in doors} | {"hone.cli.forget"}
    typed = (*LOOKS, *(words for words, _ in TYPED))
    able = {name for name, module in commands(cli) if module in modules} - {"demo"}  # in a home of its own
    assert {"memory add", "skills pin", "undo", "approve", "forget"} <= able
    assert [name for name in able if not any(f"{each} ".startswith(f"{name} ") for each in typed)] == []


def test_each_command_leaves_its_entries_and_a_look_leaves_none(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    program = "import sys; open(sys.argv[1], 'a').write('- more\\n')"
    monkeypatch.setenv("EDITOR", shlex.join([sys.executable, "-c", program]))
    (tmp_path / "SKILL.md").write_text(TEXT)
    parcel = tmp_path / "night-trains"
    parcel.mkdir()
    (parcel / DOCUMENT).write_text(TEXT.replace(NAME, "night-trains"))
    there = tmp_path / "claude"
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(there))
    waiting = asyncio.run(propose(home))
    for typed, wanted in TYPED:
        before = asyncio.run(made(home))
        words = {"FILE": str(tmp_path / "SKILL.md"), "FOLDER": str(parcel), "LATEST": str(before[-1].id)}
        words["ARCHIVE"] = str(tmp_path / "trip.skill")
        words["WAITING"] = str(waiting.pop(0)) if "WAITING" in typed else ""
        arguments = [words.get(each, each) for each in shlex.split(typed)]
        assert perform(arguments) == 0, (typed, capsys.readouterr().err)
        after = asyncio.run(made(home))
        assert [each.change for each in after[: len(before)]] == [each.change for each in before]
        left = [line(each) for each in after[len(before) :]]
        targets = [
            (deed, target.replace("THERE", str(there)).replace("CWD", str(Path.cwd())))
            for deed, target in wanted
        ]
        assert left == [(deed, "owner", target, "active") for deed, target in targets], typed
    count = len(asyncio.run(made(home)))
    for typed in LOOKS:
        assert perform(shlex.split(typed)) == 0, (typed, capsys.readouterr().err)
    assert len(asyncio.run(made(home))) == count


async def propose(home: Path) -> list[int]:
    async with context(home) as it:
        return [(await it.keeper.note([(MEMORY, Add(text))], MISLED))[0].id for text in "abc"]


async def made(home: Path) -> list[Entry]:
    """Oldest first."""
    async with context(home) as it:
        return list(await it.ledger.entries())[::-1]
