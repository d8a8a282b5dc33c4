"""J1: two machines on one database see the same templates, experiments, long results and consent; what one of
them trusts, the other does not."""

from collections.abc import Iterator, Sequence
from contextlib import AsyncExitStack
from pathlib import Path

import pytest

from hone import Hone
from hone.core.clock import ManualClock
from hone.core.documents import EXPERIMENTS, RULES, SPILL, TEMPLATES
from hone.core.erasure import Erasure
from hone.core.errors import Refused
from hone.core.ids import SessionId
from hone.core.messages import Message, ToolResult, assistant
from hone.features.checkpoints.part import CheckpointsPart
from hone.features.checkpoints.store import CheckpointStore
from hone.features.checkpoints.values import ChangeDraft, TurnMark
from hone.features.erasing.retention import Retention
from hone.features.erasing.service import Erasing
from hone.features.experiments.part import ExperimentsPart
from hone.features.experiments.values import Check, Task
from hone.features.experiments.working import delete, working
from hone.features.templates.part import TemplatesPart
from hone.features.templates.seeding import TemplateOptions
from hone.models.scripted import Script, Scripted, call, lines
from hone.runtime.permissions.rules import Rule
from hone.settings import Settings
from hone.settings.sections import RetentionSettings
from tests import databases
from tests.stores.test_recall import NOW

FACT = "Heron blueprint 48213"
LIMIT = 2_000
ANSWER = lines("Yes.")


@pytest.fixture
def database() -> Iterator[str]:
    """A database of its own: all homes have the same owner so far."""
    with databases.new_database() as url:
        yield url


class Machines:
    """Homes on one database, in one folder of work. They differ as homes of different machines do."""

    def __init__(self, root: Path, database: str) -> None:
        self.root, self._database = root, database
        self.work = root / "work"
        self.work.mkdir(exist_ok=True)
        self._stack = AsyncExitStack()

    async def __aenter__(self) -> "Machines":
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._stack.aclose()

    async def open(self, name: str, script: Script = ANSWER, **more: object) -> Hone:
        settings = Settings(database=self._database, result_limit=LIMIT, **more)  # type: ignore[arg-type]
        made = Hone(home=self.root / name, model=Scripted(script), folder=self.work, settings=settings)
        return await self._stack.enter_async_context(made)


async def long_result(hone: Hone) -> tuple[SessionId, ToolResult]:
    """A conversation that reads a file that is too long for it."""
    (hone.folder / "notes.txt").write_text("".join(f"line {number}: {FACT}\n" for number in range(1_000)))
    session = await hone.session()
    turn = await session.send("read the notes")
    [result] = [node.message.result for node in turn.nodes if node.message.result]
    return session.id, result


def calling(tool: str, **arguments: object) -> Script:
    """Call a tool after each message of the user's."""

    def reply(messages: Sequence[Message]) -> Message:
        is_done = messages[-1].result is not None
        return assistant("done") if is_done else assistant(call(tool, **arguments))

    return reply


def reading(**arguments: object) -> Script:
    return calling("read_file", **arguments)


def path_in(result: ToolResult) -> str:
    return result.text.partition("full result in ")[2].partition(" …")[0]


def files_in(home: Path) -> set[str]:
    return {path.relative_to(home).parts[0] for path in home.rglob("*") if path.is_file()}


async def test_a_long_result_is_read_on_another_machine(tmp_path: Path, database: str) -> None:
    async with Machines(tmp_path, database) as machines:
        one = await machines.open("one", reading(path="notes.txt"))
        session, result = await long_result(one)
        place = path_in(result)
        assert place.startswith(str(tmp_path / "one" / "spill"))
        assert "spill" not in files_in(tmp_path / "one"), "it is in the database"
        other = await machines.open("other", reading(path=place, offset=500, limit=3))
        turn = await (await other.resume(session)).send("what was in the middle?")
        [found] = [node.message.result for node in turn.nodes if node.message.result]
        assert "line 500: Heron" in found.text, found.text
        assert "spill" not in files_in(tmp_path / "other"), "nothing is left to erase"
        searching = calling("search_files", pattern="line 77:", path=place)
        third = await machines.open("third", searching)
        turn = await (await third.resume(session)).send("and line 77?")
        [found] = [node.message.result for node in turn.nodes if node.message.result]
        assert "line 77: Heron" in found.text, found.text


async def test_templates_and_experiments_are_the_same_on_all_machines(tmp_path: Path, database: str) -> None:
    async with Machines(tmp_path, database) as machines:
        one = await machines.open("one", reading(path="notes.txt", limit=5))
        other = await machines.open("other")
        session, _ = await long_result(one)
        await one.part(TemplatesPart).create(session, TemplateOptions(name="notes"))
        store = other.part(TemplatesPart).store
        assert [each.name for each in (await store.all())[0]] == ["notes"]
        await store.count("notes", SessionId("x"))
        assert (await one.part(TemplatesPart).store.read("notes")).uses == ("x",)
        task = Task("rows", session, NOW, "/nowhere", "Count.", Check("true"))
        one.part(ExperimentsPart).studies.add(task)
        assert other.part(ExperimentsPart).studies.task("rows") == task
        async with working(one, "rows"):
            with pytest.raises(Refused, match="Another process is at work on experiment rows"):
                await delete(other, "rows")
        assert await delete(other, "rows") == []
        assert one.part(ExperimentsPart).studies.names() == []
        assert not files_in(tmp_path / "one") & {TEMPLATES.folder, EXPERIMENTS.folder}
        assert not any(not good for good, _ in await other.checks())


async def test_consent_holds_everywhere_and_trust_on_one_machine(tmp_path: Path, database: str) -> None:
    async with Machines(tmp_path, database) as machines:
        one, other = await machines.open("one"), await machines.open("other")
        folder = machines.work
        (folder / "AGENTS.md").write_text("Be kind.")
        one.folders.trust(folder)
        shown = one.instructions.of(folder)
        assert one.folders.trusts(folder)
        assert shown is not None
        assert (other.folders.trusts(folder), other.folders.is_answered(folder)) == (False, False)
        assert other.instructions.of(folder) is None
        rules = one.permissions.rules
        rules.add("", "allow", Rule("terminal", "make check"))
        rules.add("", "allow", Rule("write_file", "/srv/x/**"))
        rules.add("", "deny", Rule("read_file", "/srv/secret"))
        rules.add(str(folder), "allow", Rule("terminal", "make deploy"))
        here, there = one.permissions.effective(folder), other.permissions.effective(folder)
        assert {str(each) for each in here.allow} - {str(each) for each in there.allow} == {
            "write_file: /srv/x/**",
            "terminal: make deploy",
        }
        assert [str(each) for each in there.allow] == ["terminal: make check"]
        assert [str(each) for each in there.deny] == ["read_file: /srv/secret"]
        assert other.permissions.rules.remove("", Rule("terminal", "make check"))
        assert not one.permissions.rules.remove("", Rule("terminal", "make check"))
        one.folders.forget(folder)
        assert not one.folders.trusts(folder)
    assert not files_in(tmp_path / "one") & {*RULES.fixed}


async def test_a_copied_home_trusts_nothing_on_another_machine(
    tmp_path: Path, database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with Machines(tmp_path, database) as machines:
        (await machines.open("one")).folders.trust(machines.work)
        assert (await machines.open("one")).folders.trusts(machines.work)
        monkeypatch.setattr("socket.gethostname", lambda: "elsewhere")
        assert not (await machines.open("one")).folders.trusts(machines.work)


async def test_words_are_erased_from_documents_wherever_they_were_written(
    tmp_path: Path, database: str
) -> None:
    async with Machines(tmp_path, database) as machines:
        one = await machines.open("one", reading(path="notes.txt"))
        session, _ = await long_result(one)
        await one.part(TemplatesPart).create(session, TemplateOptions(name="notes", description=FACT))
        task = Task("rows", SessionId("x"), NOW, "/nowhere", f"Where is the {FACT}?", Check("true"))
        one.part(ExperimentsPart).studies.add(task)
        one.permissions.rules.add("", "deny", Rule("read_file", "/srv/other"))
    async with Machines(tmp_path, database) as machines:
        other = await machines.open("other")
        what = Erasure(words=(FACT,))
        found = {each.holding for each in await Erasing(other).find(what)}
        assert {"spill", "templates", "experiments"} <= found
        outcome = await Erasing(other).erase(what)
        assert (outcome.proof.left, outcome.proof.owners) == ((), ())
        assert other.documents.names(EXPERIMENTS) == []
        assert b"line 500: (erased)" in (other.documents.read(SPILL, other.documents.names(SPILL)[0]) or b"")
        assert (await other.part(TemplatesPart).store.read("notes")).description == "(erased)"
    async with Machines(tmp_path, database) as machines:
        decided = await machines.open("third")
        decided.permissions.rules.add("", "deny", Rule("terminal", FACT))
        outcome = await Erasing(decided).erase(Erasure(words=(FACT,)))
        assert outcome.proof.owners == ("permissions-everywhere.json",), "what the owner decided is named"
        assert outcome.proof.left == ()


async def test_old_versions_of_files_are_erased_on_all_machines_and_from_a_file_that_stayed(
    tmp_path: Path, database: str
) -> None:
    async with Machines(tmp_path, database) as machines:
        one = await machines.open("one", calling("write_file", path="plan.txt", content="nothing"))
        (machines.work / "plan.txt").write_text(FACT)
        session = await one.session()
        await session.send("clear the plan")
        service = one.part(CheckpointsPart).service
        [change] = await service.store.changes(session.id)
        assert change.before
        assert await service.store.content(change.before.digest) == FACT.encode()
        # What a home had before its data moved.
        left = CheckpointStore(one.home, one.clock)
        draft = ChangeDraft(change.path, change.before, None, "write_file")
        contents = {change.before.digest: FACT.encode()}
        await left.begin(TurnMark(session.id, 1, change.anchor), [draft], contents, [])
        await left.close()
    async with Machines(tmp_path, database) as machines:
        (machines.work / "notes.txt").unlink(missing_ok=True)
        what = Erasure(words=(FACT,))
        for name in ("other", "one"):
            hone = await machines.open(name)
            [found] = [each for each in await Erasing(hone).find(what) if each.holding == "checkpoints"]
            assert found.count == 1
            assert (await Erasing(hone).erase(what)).proof.left == ()
            assert not [each for each in await Erasing(hone).find(what) if each.holding == "checkpoints"]


async def test_old_results_go_with_retention(tmp_path: Path, database: str) -> None:
    async with Machines(tmp_path, database) as machines:
        kept = RetentionSettings(spill=7)
        one = await machines.open("one", reading(path="notes.txt"), retention=kept)
        await long_result(one)
        await Retention(one).apply()
        assert len(one.documents.names(SPILL)) == 1
        one.clock = ManualClock(one.clock.now().replace(year=one.clock.now().year + 1))
        await Retention(one).apply()
        assert one.documents.names(SPILL) == []
