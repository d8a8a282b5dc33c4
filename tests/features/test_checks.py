"""K3: a skill with checks is used only while they pass, and nothing of them runs outside the sandbox."""

import os
import socket
from collections.abc import Mapping
from datetime import timedelta
from pathlib import Path

import msgspec
import pytest

from hone import Hone
from hone.cli.main import perform
from hone.core.clock import ManualClock
from hone.core.errors import Refused
from hone.core.events import Event, Notice
from hone.core.ids import SessionId
from hone.core.ledger import Actor, Author, ChangeKind, ChangeState, Evidence, skill
from hone.core.messages import assistant
from hone.core.skill import ARCHIVED, FAILED, SkillOrigin
from hone.core.trust import Trust
from hone.features.checks import checker
from hone.features.checks.checker import SkillChecker
from hone.features.checks.part import ChecksPart
from hone.features.checks.records import FILE, CheckRecords
from hone.features.checks.running import CheckReport, run_checks
from hone.knowledge.folding import Draft, Files
from hone.knowledge.keeper import OWNER
from hone.knowledge.skills.facts import digest_files
from hone.knowledge.skills.folder import Archive, Create, Install, Restore, WriteFile
from hone.models.scripted import Scripted, call, rounds
from hone.sandbox.choice import Sandbox
from hone.settings import Settings
from tests import databases
from tests.conftest import Figures

NAME = "tide-sums"
TEXT = f"---\nname: {NAME}\ndescription: Add up tide tables.\n---\n\nRun scripts/sum.py on the table.\n"
SUM = "import sys\nprint(sum(map(int, sys.stdin.read().split())))\n"
CHECK = """#!/bin/sh
found=$(echo 1 2 3 | python3 scripts/sum.py)
echo "the sum is $found"
test "$found" = 6
"""
LEARNED = Author(
    Actor.REVIEW,
    evidence=(Evidence(SessionId("0a1b2c3d4e"), 1, Trust.OWNER, "0" * 64),),
    trust_floor=Trust.OWNER,
)


def files(**others: str) -> Mapping[str, bytes]:
    made = {"SKILL.md": TEXT, "scripts/sum.py": SUM, "checks/sums": CHECK}
    return {path: text.encode() for path, text in (made | others).items()}


class Double:
    """Stands where the checks are run: they pass unless `reason` says why not."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.seen: list[str] = []
        self.reason = ""
        self.error: Exception | None = None
        monkeypatch.setattr(checker, "run_checks", self.run)

    async def run(self, name: str, files: Mapping[str, bytes], *_: object) -> CheckReport:
        self.seen.append(digest_files(files))
        if self.error:
            raise self.error
        return CheckReport(digest_files(files), not self.reason, 1, self.reason, "what it said")


@pytest.fixture
def double(monkeypatch: pytest.MonkeyPatch) -> Double:
    return Double(monkeypatch)


def open_home(home: Path, folder: Path, **given: object) -> Hone:
    return Hone(home=home, folder=folder, model=Scripted(rounds("Done.")), **given)  # type: ignore[arg-type]


async def install(hone: Hone, **others: str) -> None:
    await hone.keeper.edit_skill(NAME, Install(files(**others), "elsewhere"), OWNER)


async def is_used(hone: Hone) -> bool:
    """Whether it is in the prompt; what lists and views say must agree."""
    prompt = (await hone.session()).agent.prefix.system
    listed = NAME in {each.name for each in await hone.library.listed()}
    found = NAME in {each.name for each in await hone.library.search("add up tide tables", 5)}
    held = await hone.library.files(NAME)
    assert (NAME in prompt) is listed is found is (ARCHIVED not in held)
    return listed


async def test_a_skill_whose_script_breaks_is_switched_off_before_the_next_prompt(
    home: Path, tmp_path: Path
) -> None:
    async with open_home(home, tmp_path) as hone:
        await install(hone)
        assert await is_used(hone)
        assert (await hone.findings("skill", NAME, ""))[0].startswith("checks: 1 check passed on ")
        (home / "skills" / NAME / "scripts" / "sum.py").write_text("print(7)\n")
        assert not await is_used(hone)
        shown = await hone.findings("skill", NAME, "")
        assert shown[:2] == ["switched off: checks/sums failed with exit code 1", "  the sum is 7"]
        assert "checks/sums failed" in hone.notices[-1]
        assert not (home / "skills" / NAME).exists(), "commands still see its scripts"
    tools = rounds(assistant(call("skill_view", name=NAME)), "Done.")
    async with Hone(home=home, folder=tmp_path, model=Scripted(tools)) as hone:
        turn = await (await hone.session()).send("Add up the tides.")
        assert any("switched off" in node.message.result.text for node in turn.nodes if node.message.result)
        mended = home / "skills" / ".archive" / NAME / "scripts" / "sum.py"
        mended.write_text(SUM + "# mended\n")
        assert await is_used(hone)
        made = [each.change for each in await hone.ledger.entries() if each.change.target == skill(NAME)]
        kinds = [each.kind for each in made]
        assert kinds[:4] == [ChangeKind.RECOVER, ChangeKind.EDIT, ChangeKind.DEMOTE, ChangeKind.EDIT]


async def test_nothing_of_a_check_reaches_what_lies_outside_its_copy(
    home: Path, tmp_path: Path, figures: Figures
) -> None:
    outside = tmp_path / "outside"
    outside.mkdir(mode=0o777)
    outside.chmod(0o777)
    (outside / "secret").write_text("canary-4711")
    listener = socket.create_server(("127.0.0.1", 0))
    listener.setblocking(False)
    port = listener.getsockname()[1]
    attempts = [
        f"touch {outside}/written",
        f"cp /proc/self/status {outside}/status",
        f"cat {outside}/secret",
        f"cat {home}/hone.db && echo canary-4711",
        f"echo 'print(6)' > {home}/skills/{NAME}/scripts/sum.py",
        f"python3 -c 'import socket; socket.create_connection((\"127.0.0.1\", {port}))' && echo canary-4711",
        f"kill -0 {os.getpid()} && echo canary-4711",
    ]
    script = "#!/bin/sh\n" + "".join(f"({each}) 2>/dev/null\n" for each in attempts) + "echo tried; exit 1\n"
    async with open_home(home, tmp_path) as hone:
        await install(hone, **{"checks/sums": script})
        assert not await is_used(hone)
        held = await hone.keeper.files(skill(NAME))
        said = held[FAILED].decode()
        left = [each.name for each in outside.iterdir()] != ["secret"] or held[
            "scripts/sum.py"
        ] != SUM.encode()
        try:
            listener.accept()
            reached = True
        except BlockingIOError:
            reached = False
    listener.close()
    figures.tally(len(attempts), got_in=int(left) + int(reached) + said.count("canary-4711"), lost=0)
    assert "tried" in said
    assert not left
    assert not reached
    assert "canary" not in said


async def test_no_check_runs_before_its_bytes_are_approved(
    home: Path, tmp_path: Path, double: Double
) -> None:
    async with open_home(home, tmp_path) as hone:
        await hone.keeper.edit_skill(NAME, Create(TEXT, SkillOrigin.AGENT), LEARNED)
        waiting = await hone.keeper.edit_skill(NAME, WriteFile("checks/sums", CHECK.encode()), LEARNED)
        data = await hone.keeper.edit_skill(NAME, WriteFile("checks/data/table.txt", b"1 2"), LEARNED)
        assert {waiting.change.standing, data.change.standing} == {ChangeState.PENDING}
        assert await is_used(hone)
        assert double.seen == []
        await hone.keeper.approve(waiting.id)
        assert await is_used(hone)
        assert double.seen == [digest_files(await hone.keeper.files(skill(NAME)))]
        await hone.library.listed()
        assert len(double.seen) == 1, "the same files are not checked again"


async def test_a_check_that_raises_lets_no_skill_through(
    home: Path, tmp_path: Path, double: Double, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with open_home(home, tmp_path) as hone:
        await install(hone)
        for error in (OSError("no space"), ValueError("no"), RuntimeError("a fault of ours")):
            double.error = error
            for look in (hone.session, hone.library.listed, lambda: hone.library.files(NAME)):
                with pytest.raises(type(error)):
                    await look()
        monkeypatch.setattr(checker, "run_checks", run_checks)
        broken = Sandbox(modes=())
        monkeypatch.setattr(broken, "survey", lambda folder: (_ for _ in ()).throw(OSError("no place")))
        await SkillChecker(hone, broken).settle([NAME])
        held = await hone.keeper.files(skill(NAME))
        assert b"could not be run: no place" in held[FAILED]
        monkeypatch.setattr(checker, "run_checks", double.run)
        double.error = None
        assert await is_used(hone), "what could not be run is tried again"


async def test_the_owner_may_use_a_failing_skill_until_its_files_change(
    home: Path, tmp_path: Path, double: Double
) -> None:
    double.reason = "checks/sums failed with exit code 1"
    async with open_home(home, tmp_path) as hone:
        await install(hone)
        assert not await is_used(hone)
        await hone.keeper.edit_skill(NAME, Restore(), OWNER)
        assert await is_used(hone)
        assert await is_used(hone)
        assert "you use the skill anyway" in (await hone.findings("skill", NAME, ""))[0]
        assert len(double.seen) == 2
        [(passed, line)] = await hone.part(ChecksPart).check_skills([NAME])
        assert not passed
        assert "failed" in line
        assert await is_used(hone)
        await hone.keeper.edit_skill(NAME, WriteFile("scripts/sum.py", b"print(8)\n"), OWNER)
        assert not await is_used(hone)
        demoted = next(e for e in await hone.ledger.entries() if e.change.kind is ChangeKind.DEMOTE)
        await hone.keeper.undo(demoted.id)
        assert await is_used(hone), "an undo counts as much as a restore"


async def test_a_failing_skill_that_the_owner_archives_does_not_come_back(
    home: Path, tmp_path: Path, double: Double
) -> None:
    double.reason = "checks/sums failed with exit code 1"
    async with open_home(home, tmp_path) as hone:
        await install(hone)
        assert not await is_used(hone)
        await hone.keeper.edit_skill(NAME, Archive(), OWNER)
        double.reason = ""
        await hone.part(ChecksPart).check_skills([NAME])
        assert not await is_used(hone)


async def test_with_a_database_elsewhere_each_machine_checks_for_itself(
    home: Path, tmp_path: Path, double: Double
) -> None:
    with databases.new_database() as url:
        settings = Settings(database=url)
        async with open_home(home, tmp_path, settings=settings) as hone:
            await install(hone)
            assert await is_used(hone)
            double.reason = "checks/sums failed with exit code 1"
            await hone.keeper.edit_skill(NAME, WriteFile("scripts/sum.py", b"print(8)\n"), OWNER)
            assert not await is_used(hone)
            double.reason = ""
            await hone.part(ChecksPart).check_skills([NAME])
            assert await is_used(hone)
        async with open_home(tmp_path / "other", tmp_path, settings=settings) as hone:
            seen = len(double.seen)
            assert await is_used(hone)
            assert len(double.seen) == seen + 1


async def test_checks_run_again_on_a_schedule_and_find_what_changed_around_a_skill(
    home: Path, tmp_path: Path, double: Double
) -> None:
    clock, told = ManualClock(), list[Event]()
    async with open_home(home, tmp_path, clock=clock) as hone:
        await install(hone)
        assert await is_used(hone)
        part = hone.part(ChecksPart)
        double.reason = "checks/sums failed with exit code 127"
        clock.advance(timedelta(days=6).total_seconds())
        await part.tend(told.append)
        assert (len(double.seen), told) == (1, [])
        clock.advance(timedelta(days=1).total_seconds())
        await part.tend(told.append)
        assert not await is_used(hone)
        double.reason = ""
        clock.advance(timedelta(days=7).total_seconds())
        await part.tend(told.append)
        assert await is_used(hone)
        texts = [each.text for each in told if isinstance(each, Notice)]
        assert ["switched off" in texts[0], "switched on again" in texts[1]] == [True, True]


async def test_without_a_sandbox_no_check_runs_and_the_skill_says_so(home: Path, tmp_path: Path) -> None:
    async with open_home(home, tmp_path) as hone:
        await install(hone, **{"checks/sums": f"#!/bin/sh\ntouch {tmp_path}/ran\nexit 1\n"})
        bare = SkillChecker(hone, Sandbox(modes=()))
        await bare.settle([NAME])
        assert not (tmp_path / "ran").exists()
        assert await bare.describe(NAME) == (
            "checks: not run, because no sandbox holds on this machine (see hone doctor)",
        )
        assert await is_used(hone), "it is used as before"


async def test_what_was_archived_for_another_reason_stays_so(
    home: Path, tmp_path: Path, double: Double
) -> None:
    settings = msgspec.structs.replace(Settings().learning, checks="off")
    async with open_home(home, tmp_path, settings=Settings(learning=settings)) as hone:
        await install(hone)
        assert await is_used(hone)
        assert double.seen == []
    async with open_home(home, tmp_path) as hone:
        held = dict(await hone.keeper.files(skill(NAME)))
        (home / FILE).write_text("{ not json")
        assert CheckRecords(home).all() == {}
        assert await is_used(hone)
        await hone.keeper.edit_skill(NAME, Archive(), OWNER)
        double.reason = "checks/sums failed with exit code 1"
        await hone.part(ChecksPart).check_skills([NAME])
        assert await hone.keeper.files(skill(NAME)) == {**held, ARCHIVED: b"1"}


async def test_what_marks_a_skill_cannot_change_its_files(home: Path, tmp_path: Path, double: Double) -> None:
    async def choose(before: Files) -> Draft:
        after = {**before, "scripts/sum.py": b"print(8)\n"}
        return Draft(skill(NAME), ChangeKind.DEMOTE, before, after)

    async with open_home(home, tmp_path) as hone:
        await install(hone)
        with pytest.raises(Refused, match="not its files"):
            await hone.keeper.mark(NAME, choose)
        assert await is_used(hone)
        [(_, line)] = await hone.part(ChecksPart).check_skills([])
        assert line == "tide-sums: 1 check passed."
        [listed] = await hone.part(ChecksPart).checker.list()
        assert (listed["name"], listed["checks"]) == (NAME, 1)


async def test_every_way_in_meets_the_checks(home: Path, tmp_path: Path, double: Double) -> None:
    """A folder that the owner put there, an approved proposal from elsewhere, and what a review sees."""
    double.reason = "checks/sums failed with exit code 1"
    async with open_home(home, tmp_path) as hone:
        for path, data in files().items():
            place = home / "skills" / NAME / path
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_bytes(data)
        assert not await is_used(hone)
        other = {path: data.replace(NAME.encode(), b"tide-means") for path, data in files().items()}
        brought = Author(Actor.OWNER, trust_floor=Trust.FOREIGN)
        waiting = await hone.keeper.edit_skill("tide-means", Install(other, "another agent"), brought)
        assert waiting.change.standing is ChangeState.PENDING
        assert len(double.seen) == 1, "nothing of a proposal runs"
        await hone.keeper.approve(waiting.id)
        staged, _ = hone.library.stage()
        assert "tide-means" not in {each.name for each in await staged.listed()}
        with pytest.raises(Refused, match="switched off"):
            await hone.library.load(["tide-means"])


def test_the_command_line_runs_checks_and_says_what_they_printed(
    home: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def hone(*arguments: str, code: int = 0) -> str:
        capsys.readouterr()
        assert perform(["--home", str(home), *arguments]) == code
        ended = capsys.readouterr()
        return ended.out + ended.err

    source = tmp_path / NAME
    for path, data in files(**{"scripts/sum.py": "print(7)\n"}).items():
        (source / path).parent.mkdir(parents=True, exist_ok=True)
        (source / path).write_bytes(data)
    assert "is switched off: checks/sums failed with exit code 1" in hone(
        "skills", "install", str(source), "-y"
    )
    assert NAME not in hone("skills", "list")
    assert "  the sum is 7" in hone("skills", "show", NAME)
    assert "+the sum is 7" in hone("show", "2")
    assert "skill tide-sums switched off" in hone("log")
    assert "✗ tide-sums: checks/sums failed" in hone("skills", "check", NAME, code=1)
    (source / "scripts" / "sum.py").write_text(SUM)
    assert "is installed" in hone("skills", "install", str(source), "-y")
    assert "✓ tide-sums: 1 check passed." in hone("skills", "check", NAME)
    assert "1 check passed" in hone("skills", "checks")
    assert NAME in hone("skills", "list")
