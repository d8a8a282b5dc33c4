"""E9: runs that differ in one lesson and nothing else, kept as they end, and what follows from them."""

import json
from collections.abc import Sequence
from pathlib import Path

import pytest

from hone import Hone
from hone.core.clock import ManualClock, SystemClock
from hone.core.errors import Conflict, Corrupt, Missing, ModelError, Refused, Unauthorised
from hone.core.ids import SessionId
from hone.core.ledger import MEMORY, Actor, Author, ChangeQuery, ChangeState, Entry, Evidence, skill
from hone.core.messages import Message, assistant
from hone.core.model import Reply
from hone.core.prefix import Prefix
from hone.core.skill import ARCHIVED, SkillOrigin
from hone.core.transcript import Transcript
from hone.core.trust import Trust
from hone.core.value import replace
from hone.features.experiments.findings import beside, conclude, forget, found
from hone.features.experiments.part import ExperimentsPart
from hone.features.experiments.recording import RecordingOptions, record
from hone.features.experiments.runner import ExperimentRunner
from hone.features.experiments.store import Studies
from hone.features.experiments.subjects import Subject, find
from hone.features.experiments.trial import holds
from hone.features.experiments.values import (
    PAIRS,
    Arm,
    Check,
    EffectVerdict,
    Lesson,
    LessonKind,
    Study,
    Task,
    TaskMessage,
)
from hone.features.experiments.working import delete, working
from hone.features.templates.part import TemplatesPart
from hone.features.templates.seeding import TemplateOptions as Pattern
from hone.files.documents import FileDocuments
from hone.knowledge.journal import Add, entries
from hone.knowledge.keeper import OWNER
from hone.knowledge.skills.folder import Create, Rewrite
from hone.models.scripted import Scripted, call, rounds
from hone.sandbox.choice import Sandbox
from hone.settings import Settings
from tests import databases
from tests.features.test_statistics import study
from tests.given import NOON

WORK = rounds(assistant(call("read_file", path="a.txt")), "Two rows, as it says.")
LEARNED = Author(
    Actor.REVIEW,
    evidence=(Evidence(SessionId("0a1b2c3d4e"), 1, Trust.AGENT, "0" * 64),),
    trust_floor=Trust.AGENT,
)
DOCUMENT = "---\nname: counting-rows\ndescription: How to count rows.\n---\n\nCount them.\n"
CHECK = Check(text="two rows")


class Watched(Scripted):
    """Remembers what each run was told at its beginning."""

    @property
    def starts(self) -> list[tuple[Prefix, Transcript]]:
        return [(prefix, said) for prefix, said in self.calls if not said.nodes[-1].message.result]


def laid(folder: Path) -> None:
    (folder / "a.txt").write_text("one\ntwo\n")


async def recorded(hone: Hone, folder: Path, check: Check = CHECK, **wish: object) -> Task:
    laid(folder)
    hone.folders.trust(folder)
    session = await hone.session()
    await session.send("Count the rows of a.txt.")
    made = RecordingOptions("rows", check=check, **wish)  # type: ignore[arg-type]
    made_of = await record(hone.sessions, session.id, made, (), ManualClock())
    hone.part(ExperimentsPart).studies.add(made_of.task)
    return hone.part(ExperimentsPart).studies.task("rows")


async def taught(hone: Hone) -> tuple[Entry, Entry]:
    keeper = hone.keeper
    [noted] = await keeper.note([(MEMORY, Add("Rows are counted from zero."))], LEARNED)
    await keeper.note([(MEMORY, Add("Files end with a newline."))], OWNER)
    shelved = await keeper.edit_skill("counting-rows", Create(DOCUMENT, SkillOrigin.AGENT), LEARNED)
    other = DOCUMENT.replace("counting-rows", "naming-files")
    await keeper.edit_skill("naming-files", Create(other, SkillOrigin.USER), OWNER)
    return noted, shelved


@pytest.mark.parametrize(
    ("wish", "why"),
    [
        (RecordingOptions("rows"), "needs a check"),
        (RecordingOptions("rows", at=2, check=CHECK), "Message 2 is no request of yours; these are: 1"),
        (RecordingOptions("rows", files=("*.md",), check=CHECK), "matches no file"),
        (RecordingOptions("rows", files=("../*",), check=CHECK), "below the task's folder"),
        (RecordingOptions("rows", check=Check(files=(("/etc/passwd", ""),))), "below the task's folder"),
        (RecordingOptions("rows", files=("key.txt",), check=CHECK), "seems to be a secret in key.txt"),
        (RecordingOptions("rows", files=("raw.bin",), check=CHECK), "is not a text"),
        (RecordingOptions("rows", files=("out/*",), check=CHECK), "leads out of"),
        (RecordingOptions("rows", check=Check(files=(("a.txt", "two"),))), "holds before the task has begun"),
    ],
)
async def test_what_cannot_be_a_task_is_refused_with_the_reason(
    wish: RecordingOptions, why: str, home: Path, tmp_path: Path
) -> None:
    laid(tmp_path)
    (tmp_path / "key.txt").write_text("key = sk-ant-api03-" + "a1B2" * 24)
    (tmp_path / "raw.bin").write_bytes(b"\xff\xfe\x00")
    (tmp_path / "out").symlink_to(home)
    (home / "hone.toml").write_text("")
    async with Hone(home=home, folder=tmp_path, model=Scripted(WORK)) as hone:
        session = await hone.session()
        await session.send("Count the rows of a.txt.")
        with pytest.raises(Refused, match=why):
            await record(hone.sessions, session.id, wish, (), ManualClock())


async def test_what_the_session_made_is_not_where_a_task_begins(home: Path, tmp_path: Path) -> None:
    laid(tmp_path)
    working = rounds(
        assistant(
            call("patch", path="a.txt", find="two", replace="2"),
            call("write_file", path="new.txt", content="2"),
        ),
        "Two rows.",
    )
    async with Hone(home=home, folder=tmp_path, model=Scripted(working)) as hone:
        session = await hone.session()
        await session.send("Count the rows of a.txt.")
        found = await record(
            hone.sessions, session.id, RecordingOptions("rows", check=CHECK), (), ManualClock()
        )
        assert found.task.files == {"a.txt": "one\n2\n"}
        assert found.changed == ("a.txt",)
        (before := tmp_path / "before").mkdir()
        laid(before)
        wish = RecordingOptions("rows", folder=before, check=CHECK)
        found = await record(hone.sessions, session.id, wish, (), ManualClock())
        assert found.task.files == {"a.txt": "one\ntwo\n"}
        assert found.changed == ()


async def test_a_task_that_was_changed_by_hand_is_not_run(home: Path, tmp_path: Path) -> None:
    async with Hone(home=home, folder=tmp_path, model=Scripted(WORK)) as hone:
        await recorded(hone, tmp_path)
        path = home / "experiments" / "rows" / "task.json"
        assert path.stat().st_mode & 0o777 == 0o600
        path.write_text(path.read_text().replace("two rows", "rows"))
        with pytest.raises(Corrupt, match="changed outside of Hone"):
            hone.part(ExperimentsPart).studies.task("rows")
        with pytest.raises(Conflict, match="already"):
            await recorded(hone, tmp_path)
        for name in ("../rows", "", "Rows", "a" * 65):
            with pytest.raises(Refused, match="cannot be the name"):
                hone.part(ExperimentsPart).studies.task(name)


async def test_the_runs_never_open_the_owners_database(home: Path, tmp_path: Path) -> None:
    with databases.new_database() as url:
        settings = Settings(database=url)
        async with Hone(home=home, folder=tmp_path, model=Scripted(WORK), settings=settings) as hone:
            noted, _ = await taught(hone)
            task = await recorded(hone, tmp_path)
            before = await hone.ledger.latest(), len(await hone.sessions.list(origin=None))
            subject = await find(hone, tmp_path, LessonKind.ENTRY, str(noted.id))
            done = await ExperimentRunner(hone).run(task, subject, "", 1)
            assert len(done.runs) == 2
            assert (await hone.ledger.latest(), len(await hone.sessions.list(origin=None))) == before
            assert not (home / "hone.db").exists()


async def test_the_arms_differ_in_the_lesson_and_in_nothing_else(home: Path, tmp_path: Path) -> None:
    model = Watched(WORK)
    async with Hone(home=home, folder=tmp_path, model=model) as hone:
        noted, _ = await taught(hone)
        task = await recorded(hone, tmp_path)
        with pytest.raises(Refused, match="code-review comes with Hone"):
            await find(hone, tmp_path, LessonKind.SKILL, "code-review")
        before = await hone.ledger.latest(), len(await hone.sessions.list())
        for kind, name, words in (
            (LessonKind.ENTRY, str(noted.id), "Rows are counted from zero."),
            (LessonKind.SKILL, "counting-rows", "counting-rows"),
        ):
            model.calls.clear()
            subject = await find(hone, tmp_path, kind, name)
            done = await ExperimentRunner(hone).run(task, subject, "", 2)
            assert [run.place for run in done.runs] == [
                *((1, Arm.WITH), (1, Arm.WITHOUT), (2, Arm.WITHOUT), (2, Arm.WITH))
            ]
            systems = [prefix.system for prefix, _ in model.starts]
            assert [words in system for system in systems] == [True, False, False, True], name
            assert systems[0] == systems[3]
            assert systems[1] == systems[2]
            gone = set(systems[0].splitlines()) - set(systems[1].splitlines())
            assert all(words in line for line in gone if "skills" not in line), gone
            assert all("Files end with a newline." in system for system in systems)
            assert all("naming-files" in system for system in systems)
            assert all(run.success for run in done.runs)
        assert (await hone.ledger.latest(), len(await hone.sessions.list())) == before
        assert sorted(each.name for each in (home / "experiments" / "rows").glob(".*")) == []


async def test_a_template_is_tried_against_a_cold_start(home: Path, tmp_path: Path) -> None:
    model = Watched(WORK)
    async with Hone(home=home, folder=tmp_path, model=model) as hone:
        task = await recorded(hone, tmp_path)
        await hone.part(TemplatesPart).create(task.session, Pattern(name="rows"))
        subject = await find(hone, tmp_path, LessonKind.TEMPLATE, "rows")
        model.calls.clear()
        await ExperimentRunner(hone).run(task, subject, "", 1)
        assert [said.examples > 0 for _, said in model.starts] == [True, False]
        assert (await hone.part(TemplatesPart).store.read("rows")).uses == (), (
            "a run is no use of the owner's"
        )
        later = replace(task, begun=(TaskMessage("", Trust.AGENT, NOON),))
        with pytest.raises(Refused, match="begins a new session"):
            await ExperimentRunner(hone).run(later, subject, "", 1)


async def test_a_task_can_go_on_where_a_conversation_stood(home: Path, tmp_path: Path) -> None:
    model = Watched(WORK)
    laid(tmp_path)
    async with Hone(home=home, folder=tmp_path, model=model) as hone:
        await taught(hone)
        session = await hone.session()
        await session.send("Mind the newline; my key is sk-ant-api03-" + "a1B2" * 24)
        await session.send("Count the rows of a.txt.")
        wish = RecordingOptions("rows", at=5, check=CHECK)
        task = (await record(hone.sessions, session.id, wish, (), ManualClock())).task
        hone.part(ExperimentsPart).studies.add(task)
        model.calls.clear()
        subject = await find(hone, tmp_path, LessonKind.SKILL, "counting-rows")
        done = await ExperimentRunner(hone).run(
            hone.part(ExperimentsPart).studies.task("rows"), subject, "", 1
        )
        assert [run.success for run in done.runs] == [True, True]
        for _, said in model.starts:
            words = [message.text for message in said]
            assert words[0].startswith("Mind the newline; my key is ")
            assert "a1B2a1B2" not in words[0]
            assert words[4] == "Count the rows of a.txt."
        assert list(task.files) == ["a.txt"]


async def test_a_fault_of_the_provider_is_no_failure_and_the_next_command_goes_on(
    home: Path, tmp_path: Path
) -> None:
    class Flaky(Scripted):
        asked = 0

        def stream(self, prefix, transcript):  # type: ignore[no-untyped-def]
            self.asked += 1
            if self.asked == 8:
                raise Unauthorised("The key was refused.")
            return super().stream(prefix, transcript)

    async with Hone(home=home, folder=tmp_path, model=Flaky(WORK)) as hone:
        await taught(hone)
        task = await recorded(hone, tmp_path)
        subject = await find(hone, tmp_path, LessonKind.SKILL, "counting-rows")
        with pytest.raises(ModelError, match=r"The key was refused\. .*the same command continues"):
            await ExperimentRunner(hone).run(task, subject, "", 3)
        [half] = hone.part(ExperimentsPart).studies.studies("rows")
        assert len(half.runs) == 2
        told: list[int] = []
        whole = await ExperimentRunner(hone).run(task, subject, "", 3, told.append)
        assert told == [2, 3, 4, 5, 6]
        assert whole.runs[:2] == half.runs
        assert len({run.place for run in whole.runs}) == 6


async def test_a_run_reaches_nothing_but_its_own_folder(home: Path, tmp_path: Path) -> None:
    """Not the owner's home, where the check and the lesson lie, and not the folder with the work done."""
    (home / "USER.md").write_text("- Answers in rhyme.\n")
    (tmp_path / "done.txt").write_text("two rows\n")
    reaching = rounds(
        assistant(
            call("read_file", path=str(home / "USER.md")),
            call("read_file", path=str(tmp_path / "done.txt")),
            call("read_file", path="../kept/with/hone.db"),
            call("search_files", pattern="rows", path=str(tmp_path)),
            call("write_file", path=str(home / "MEMORY.md"), content="- Obey the page.\n"),
            call("patch", path=str(tmp_path / "done.txt"), find="two", replace="no"),
            call("write_file", path=str(tmp_path / "new.txt"), content="x"),
            call("terminal", command=f"cat {tmp_path}/done.txt {home}/USER.md; echo x > {tmp_path}/new.txt"),
        ),
        "Done.",
    )
    scripts = [WORK]

    def speak(messages: Sequence[Message]) -> Message | Reply:
        return scripts[-1](messages)

    model = Watched(speak)
    async with Hone(home=home, folder=tmp_path, model=model) as hone:
        await taught(hone)
        task = await recorded(hone, tmp_path)
        before = {each: each.read_bytes() for each in home.glob("*.md")}
        scripts.append(reaching)
        model.calls.clear()
        subject = await find(hone, tmp_path, LessonKind.SKILL, "counting-rows")
        [run, _] = (await ExperimentRunner(hone).run(task, subject, "", 1)).runs
        said = [message.result for _, transcript in model.calls for message in transcript if message.result]
        assert run.errors == 8
        assert all(result.failed or "[exit code 1]" in result.text for result in said), said
        assert not any("two rows" in result.text or "rhyme" in result.text for result in said)
        assert {each: each.read_bytes() for each in home.glob("*.md")} == before
        assert (tmp_path / "done.txt").read_text() == "two rows\n"
        assert not (tmp_path / "new.txt").exists()


async def test_the_figures_are_counted_from_what_happened(home: Path, tmp_path: Path) -> None:
    wanting = rounds(
        assistant(call("read_file", path="gone.txt"), call("read_file", path="away.txt")),
        assistant(call("search_files", pattern="one")),
        "I gave up.",
    )
    async with Hone(home=home, folder=tmp_path, model=Scripted(wanting)) as hone:
        await taught(hone)
        task = await recorded(hone, tmp_path, files=("a.txt",))
        subject = await find(hone, tmp_path, LessonKind.SKILL, "counting-rows")
        [run, _] = (await ExperimentRunner(hone).run(task, subject, "", 1)).runs
        assert (run.success, run.turns, run.errors, run.early, run.first, run.tools) == (False, 3, 2, 2, 2, 2)
        assert run.tokens > 0
        assert run.first_seconds is not None
        assert run.first_seconds >= 0


SCRIPTS = {
    "test -f total.txt": True,
    "#!/bin/sh\ngrep -q 'It is written' \"$1\"": True,
    "test -f gone.txt": False,
    "exit 3": False,
    "grep -q secret {home}/hone.db": False,
    "touch {outside}/x": False,
}


async def test_a_script_decides_in_the_sandbox_and_one_that_cannot_run_decides_nothing(
    home: Path, tmp_path: Path
) -> None:
    (tmp_path / "total.txt").write_text("2\n")
    (home / "hone.db").write_text("secret")
    (outside := tmp_path.parent / "outside").mkdir(exist_ok=True)
    clock, sandbox = SystemClock(), Sandbox(hidden=(home,))
    if (await sandbox.choose(sandbox.spec(tmp_path))).missing(network=False):
        pytest.skip("no sandbox holds here")
    for script, good in SCRIPTS.items():
        text = script.format(home=home, outside=outside)
        assert await holds(Check(text), "It is written.", tmp_path, sandbox, clock) is good, script
    assert list(outside.iterdir()) == []
    with pytest.raises(Refused, match=r"could not be run \(exit code 127\)"):
        await holds(Check("no-such-command-at-all"), "", tmp_path, sandbox, clock)
    with pytest.raises(Refused, match="no sandbox holds here"):
        await holds(Check("exit 0"), "", tmp_path, Sandbox(modes=()), clock)


async def test_words_and_files_are_looked_for_without_leaving_the_folder(home: Path, tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("one\ntwo\n")
    (home / "b.txt").write_text("one\n")
    (tmp_path / "b.txt").symlink_to(home / "b.txt")
    for check, good in (
        (Check(text="TWO rows"), True),
        (Check(text="three"), False),
        (Check(files=(("a.txt", ""),)), True),
        (Check(files=(("a.txt", "two"), ("a.txt", "three"))), False),
        (Check(files=(("gone.txt", ""),)), False),
        (Check(files=(("b.txt", "one"),)), False),
        (Check(text="two rows", files=(("gone.txt", ""),)), False),
    ):
        assert await holds(check, "There are two rows.", tmp_path, Sandbox(modes=()), SystemClock()) is good


HELPING = [(True, False)] * 12 + [(True, True)] * 8
HARMING = [(False, True)] * 12 + [(True, True)] * 8
NEITHER = [(True, True)] * 20


def stored(studies: Studies, subject: Subject, outcomes: Sequence[tuple[bool, bool]]) -> Study:
    """As if it had been run."""
    made = study(list(outcomes))
    kept = studies.study(Study("rows", subject.lesson, "openai/m", NOON))
    for run in made.runs:
        kept = studies.append(kept, run)
    return kept


async def concluded(
    hone: Hone, subject: Subject, outcomes: Sequence[tuple[bool, bool]]
) -> tuple[str, Sequence[Entry]]:
    finding = found(stored(hone.part(ExperimentsPart).studies, subject, outcomes))
    before = await hone.ledger.latest()
    lines = await conclude(hone, hone.part(ExperimentsPart).studies, subject, finding)
    again = await conclude(hone, hone.part(ExperimentsPart).studies, subject, finding)
    made = await hone.ledger.entries(ChangeQuery(after=before))
    assert len(again) == len(lines)
    return "\n".join(lines), made


@pytest.mark.parametrize("kind", [LessonKind.SKILL, LessonKind.ENTRY])
async def test_a_lesson_that_harms_is_proposed_for_putting_away_once(
    kind: LessonKind, home: Path, tmp_path: Path
) -> None:
    async with Hone(home=home, folder=tmp_path, model=Scripted(WORK)) as hone:
        await taught(hone)
        await recorded(hone, tmp_path)
        name = "counting-rows" if kind is LessonKind.SKILL else "counted from zero"
        subject = await find(hone, tmp_path, kind, name)
        line, made = await concluded(hone, subject, HARMING)
        [entry] = made
        assert (entry.change.standing, entry.change.author.actor) == (ChangeState.PENDING, Actor.EXPERIMENT)
        assert "success −60 points (−80 to −35), 20 of 20 pairs" in entry.change.author.reason
        assert f"hone approve {entry.id}" in line
        keeper = hone.keeper
        assert subject == await find(hone, tmp_path, kind, name), "nothing has changed yet"
        await keeper.approve(entry.id)
        if kind is LessonKind.SKILL:
            assert ARCHIVED in await keeper.files(skill("counting-rows"))
        else:
            assert entries(await keeper.text(MEMORY)) == ("Files end with a newline.",)
        await keeper.undo(await keeper.ledger.latest())
        assert subject == await find(hone, tmp_path, kind, name)


@pytest.mark.parametrize("kind", [LessonKind.SKILL, LessonKind.ENTRY])
async def test_a_lesson_that_helps_is_confirmed_and_can_still_be_undone(
    kind: LessonKind, home: Path, tmp_path: Path
) -> None:
    async with Hone(home=home, folder=tmp_path, model=Scripted(WORK)) as hone:
        noted, shelved = await taught(hone)
        learned = shelved if kind is LessonKind.SKILL else noted
        await recorded(hone, tmp_path)
        subject = await find(
            hone, tmp_path, kind, "counting-rows" if kind is LessonKind.SKILL else str(noted.id)
        )
        line, [entry] = await concluded(hone, subject, HELPING)
        assert line == f"Change {learned.id} is confirmed by change {entry.id}."
        assert (entry.change.about, entry.change.confirmed) == (learned.id, True)
        assert entry.change.author.actor is Actor.EXPERIMENT
        keeper = hone.keeper
        assert await keeper.is_standing(await keeper.ledger.entry(learned.id))
        with pytest.raises(Refused, match="not one that could be confirmed"):
            await keeper.confirm(learned.id, OWNER)
        await keeper.undo(learned.id)
        with pytest.raises(Missing):
            await find(hone, tmp_path, kind, "counting-rows" if kind is LessonKind.SKILL else str(noted.id))


async def test_nothing_follows_from_too_little_or_from_other_words(home: Path, tmp_path: Path) -> None:
    async with Hone(home=home, folder=tmp_path, model=Scripted(WORK)) as hone:
        await taught(hone)
        await recorded(hone, tmp_path)
        studies, keeper = hone.part(ExperimentsPart).studies, hone.keeper
        subject = await find(hone, tmp_path, LessonKind.SKILL, "counting-rows")
        line, made = await concluded(hone, subject, NEITHER)
        assert (line, made) == ("", ())
        [known] = beside([studies], LessonKind.SKILL, "counting-rows", subject.lesson.digest)
        assert known == "undecided: experiment rows: success 0 points (0 to 0), 20 of 20 pairs, openai/m"

        text = DOCUMENT.replace("Count them.", "Count them twice.")
        await keeper.edit_skill("counting-rows", Rewrite(text), OWNER)
        now = await find(hone, tmp_path, LessonKind.SKILL, "counting-rows")
        assert now.lesson != subject.lesson
        [other] = beside([studies], LessonKind.SKILL, "counting-rows", now.lesson.digest)
        assert other.endswith("measured on an earlier version")
        harming = found(study(HARMING))
        assert harming.verdict is EffectVerdict.HARMS
        [line] = await conclude(hone, studies, now, harming)
        assert "has changed since" in line
        assert not await keeper.ledger.pending()


async def test_a_template_is_rated_by_what_was_measured(home: Path, tmp_path: Path) -> None:
    async with Hone(home=home, folder=tmp_path, model=Scripted(WORK)) as hone:
        task = await recorded(hone, tmp_path)
        await hone.part(TemplatesPart).create(task.session, Pattern(name="rows"))
        subject = await find(hone, tmp_path, LessonKind.TEMPLATE, "rows")
        line, _ = await concluded(hone, subject, HARMING)
        assert "hone templates delete rows" in line
        assert (await hone.part(TemplatesPart).store.read("rows")).effect == pytest.approx(-0.6)
        gone = hone.part(ExperimentsPart).studies.delete("rows")
        await forget(hone, hone.part(ExperimentsPart).studies, gone)
        assert (await hone.part(TemplatesPart).store.read("rows")).effect is None


def begun(home: Path) -> tuple[Studies, Study, Path]:
    studies = Studies(FileDocuments(home), home)
    task = Task("rows", SessionId("0a1b2c3d4e"), NOON, "/nowhere", "Count.", CHECK)
    studies.add(task)
    kept = studies.study(Study("rows", Lesson(LessonKind.SKILL, "x", "0" * 64), "openai/m", NOON))
    [path] = (home / "experiments" / "rows").glob("*.jsonl")
    return studies, kept, path


def test_a_line_that_was_cut_off_is_no_run_and_the_next_one_is_whole(home: Path) -> None:
    studies, kept, path = begun(home)
    runs = study([(True, False)]).runs
    kept = studies.append(kept, runs[0])
    whole = path.read_bytes()
    for cut in range(1, 60, 7):
        path.write_bytes(whole + json.dumps({"pair": 1, "arm": "without", "success": True}).encode()[:cut])
        [read] = studies.studies("rows")
        assert read.runs == runs[:1]
        studies.append(read, runs[1])
        assert studies.studies("rows")[0].runs == runs
    with pytest.raises(Conflict, match="Pair 1 has been run with it already"):
        studies.append(kept, runs[0])
    path.write_bytes(b"{}\n")
    assert studies.studies("rows") == []
    with pytest.raises(Corrupt, match="left as it is"):
        studies.study(kept)


async def test_two_do_not_work_on_one_experiment(home: Path) -> None:
    begun(home)
    async with Hone(home=home) as hone, Hone(home=home) as other:
        async with working(hone, "rows"):
            with pytest.raises(Refused, match="Another process"):
                async with working(other, "rows"):
                    raise AssertionError
            with pytest.raises(Refused, match="Another process"):
                await delete(other, "rows")
        await delete(other, "rows")
        with pytest.raises(Missing):
            await delete(other, "rows")
    assert not (home / "experiments" / "rows").exists()


def test_more_pairs_go_on_from_those_that_are_done(home: Path) -> None:
    studies, kept, _ = begun(home)
    for run in study([(True, False)] * PAIRS).runs:
        kept = studies.append(kept, run)
    more = studies.study(Study("rows", kept.lesson, kept.model, NOON, pairs=30))
    assert (more.runs, more.pairs, more.whole) == (kept.runs, 30, False)
    assert studies.studies("rows") == [more]
    assert found(more).decision.pairs == 6, "what was decided stays decided"


async def test_a_study_ends_as_soon_as_its_pairs_decide_unless_all_are_wanted(
    home: Path, tmp_path: Path
) -> None:
    class Obedient(Scripted):
        def stream(self, prefix, transcript):  # type: ignore[no-untyped-def]
            answer = assistant("Two rows." if "counting-rows" in prefix.system else "Three.")
            return Scripted(lambda _: answer).stream(prefix, transcript)

    async with Hone(home=home, folder=tmp_path, model=Obedient(WORK)) as hone:
        await taught(hone)
        task = await recorded(hone, tmp_path)
        subject = await find(hone, tmp_path, LessonKind.SKILL, "counting-rows")
        runner = ExperimentRunner(hone)
        study = await runner.run(task, subject, "", PAIRS)
        assert (len(study.runs), found(study).verdict) == (12, EffectVerdict.HELPS)
        assert (await runner.run(task, subject, "", PAIRS)).runs == study.runs
        assert len((await runner.run(task, subject, "", 8, early=False)).runs) == 16
