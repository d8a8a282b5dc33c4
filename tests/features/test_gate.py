"""K7: lessons prove themselves on held-out tasks of the owner's, and looking often changes no error."""

from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path
from random import Random

import msgspec
import pytest

from hone import Hone
from hone.core.clock import ManualClock
from hone.core.errors import ModelError
from hone.core.events import Event, Notice
from hone.core.ids import SessionId
from hone.core.ledger import MEMORY, Actor, Author, ChangeKind, ChangeState, Entry, Evidence, skill
from hone.core.messages import Message, assistant
from hone.core.model import Reply
from hone.core.skill import SkillOrigin
from hone.core.trust import Trust
from hone.core.turn import Origin
from hone.features.experiments import findings
from hone.features.experiments.gate import FEWEST, FUTILE, Gate
from hone.features.experiments.held_out import UnprovenLesson, find_candidates, is_held_out, name_task
from hone.features.experiments.part import ExperimentsPart
from hone.features.experiments.recording import RecordingOptions, record
from hone.features.experiments.sequential import decide
from hone.features.experiments.values import HELD_OUT, PAIRS, Arm, Check, EffectVerdict, Study, Task
from hone.knowledge.journal import Add
from hone.knowledge.keeper import OWNER
from hone.knowledge.skills.folder import Create
from hone.models.scripted import Scripted
from hone.settings import Settings
from tests.conftest import Figures, Tier
from tests.features.test_statistics import study as make_study

GOOD, BAD = "Rows are counted from one.", "guessing-rows"
DOCUMENT = f"---\nname: {BAD}\ndescription: How to guess rows.\n---\n\nGuess.\n"
IDS = [f"{number:010x}" for number in range(60)]
HELD = [each for each in IDS if is_held_out(SessionId(each))]
OTHERS = [each for each in IDS if not is_held_out(SessionId(each))]


class Learner(Scripted):
    """Answers right if it has been told GOOD, and wrong if it has read of BAD. It forgets itself at times."""

    def __init__(self) -> None:
        super().__init__(self.speak)
        self.system = ""
        self.fails_at = 0
        self.asked = 0

    def stream(self, prefix, transcript):  # type: ignore[no-untyped-def]
        self.asked += 1
        if self.asked == self.fails_at:
            raise ModelError("The provider is out of reach.")
        self.system = prefix.system
        return super().stream(prefix, transcript)

    def speak(self, messages: Sequence[Message]) -> Message | Reply:
        right = GOOD in self.system if "notes" in messages[0].text else BAD not in self.system
        return assistant("Two rows." if right else "No idea.")


def open_home(home: Path, folder: Path, model: Scripted, **learning: object) -> Hone:
    wanted = msgspec.structs.replace(Settings().learning, **({"gate": "all"} | learning))
    return Hone(
        home=home, folder=folder, model=model, settings=Settings(learning=wanted), clock=ManualClock()
    )


async def add_task(hone: Hone, id: str, request: str) -> Task:
    session = await hone.session(id=id)
    await session.send(request)
    wish = RecordingOptions(f"task-{id}", check=Check(text="two rows"))
    task = (await record(hone.sessions, session.id, wish, (), hone.clock)).task
    hone.part(ExperimentsPart).studies.add(task)
    return task


def learned_from(session: str) -> Author:
    evidence = (Evidence(SessionId(session), 1, Trust.OWNER, "0" * 64),)
    return Author(Actor.REVIEW, evidence=evidence, trust_floor=Trust.OWNER)


async def learn_entry(hone: Hone, session: str) -> Entry:
    [entry] = await hone.keeper.note([(MEMORY, Add(GOOD))], learned_from(session))
    assert (entry.change.standing, entry.change.confirmed) == (ChangeState.ACTIVE, False)
    return entry


async def learn_skill(hone: Hone, session: str) -> Entry:
    return await hone.keeper.edit_skill(BAD, Create(DOCUMENT, SkillOrigin.AGENT), learned_from(session))


async def finish(gate: Gate) -> list[str]:
    said: list[str] = []
    while (lines := await gate.step()) is not None:
        said += lines
    return said


def tried(home: Path, gate: Gate) -> set[str]:
    every = [study for name in gate.trials.names() for study in gate.trials.studies(name)]
    return {run.task for study in every for run in study.runs}


async def test_a_lesson_that_helps_is_confirmed_on_tasks_that_it_was_not_learned_from(
    home: Path, tmp_path: Path
) -> None:
    async with open_home(home, tmp_path, Learner()) as hone:
        tasks = [
            await add_task(hone, id, "How many rows do my notes have?") for id in (*HELD[:4], *OTHERS[:2])
        ]
        entry = await learn_entry(hone, HELD[0])
        gate = Gate(hone)
        [item] = await gate.survey()
        assert (item.state, item.candidate.change) == ("not tried yet", entry.id)
        [line] = await finish(gate)
        assert "of 6 pairs, 6 succeeded only with it, 0 only without it" in line
        assert f"Change {entry.id} is confirmed" in line
        made = await hone.ledger.entry((await hone.ledger.entry(entry.id)).settled or entry.id)
        assert (made.change.kind, made.change.author.actor) == (ChangeKind.CONFIRM, Actor.EXPERIMENT)
        assert tried(home, gate) == {name_task(each) for each in tasks[1:4]}, "held out, and not its own"
        assert await gate.survey() == [], "what is confirmed has nothing to prove"
        assert not await hone.ledger.pending(), "no question was asked"
        shown = await hone.findings("entry", MEMORY, item.candidate.subject.lesson.digest)
        assert shown == [
            "helps: held-out tasks: success +100 points (+100 to +100), 6 of 20 pairs, custom/learner"
        ]
        now = hone.clock.now()
        day = (now - timedelta(days=1), now + timedelta(days=1))
        spent = await hone.sessions.total_spending(*day, [Origin.CURATOR])
        assert spent.unpriced > 0, "what a trial costs counts against the budget of learning"


async def test_a_lesson_that_harms_is_proposed_for_removal_and_stays_if_the_owner_says_so(
    home: Path, tmp_path: Path
) -> None:
    async with open_home(home, tmp_path, Learner(), gate="skills") as hone:
        for id in HELD[:3]:
            await add_task(hone, id, "How many rows has the table?")
        await learn_skill(hone, HELD[9])
        await learn_entry(hone, HELD[9])
        gate, told = Gate(hone), list[Event]()
        for _ in range(7):
            await hone.part(ExperimentsPart).tend(told.append)
        [proposal] = await hone.ledger.pending()
        assert (proposal.change.target, proposal.change.kind) == (skill(BAD), ChangeKind.ARCHIVE)
        assert [f"hone reject {proposal.id}" in each.text for each in told if isinstance(each, Notice)] == [
            True
        ]
        assert BAD in {each.name for each in await hone.library.listed()}, "it has effect meanwhile"
        assert f"hone approve {proposal.id}" in (await gate.survey())[0].state
        await hone.keeper.reject(proposal.id)
        assert await finish(gate) == []
        [item] = await gate.survey()
        assert "recorded since you kept it" in item.state
        assert not await hone.ledger.pending(), "the same evidence does not ask twice"
        assert isinstance(hone.clock, ManualClock)
        hone.clock.advance(60)
        for id in HELD[3:6]:
            await add_task(hone, id, "How many rows has the table?")
        [line] = await finish(gate)
        [again] = await hone.ledger.pending()
        assert again.id > proposal.id
        assert f"hone reject {again.id}" in line
        assert gate.trials.names() == [HELD_OUT, f"{HELD_OUT}-2"]


async def test_with_too_few_tasks_a_lesson_stays_unconfirmed_and_the_gate_says_so(
    home: Path, tmp_path: Path
) -> None:
    async with open_home(home, tmp_path, Learner()) as hone:
        for id in (*HELD[:FEWEST], *OTHERS[:4]):
            await add_task(hone, id, "How many rows do my notes have?")
        branch = await hone.branch(HELD[0])
        await learn_entry(hone, branch)
        gate = Gate(hone)
        assert await finish(gate) == []
        [item] = await gate.survey()
        assert item.state == (
            f"unconfirmed: {FEWEST - 1} held-out tasks that it was not learned from, "
            f"{FEWEST} are needed at least"
        )
        assert gate.trials.names() == []


async def test_no_budget_no_trial_and_a_provider_that_fails_costs_no_pair(home: Path, tmp_path: Path) -> None:
    model = Learner()
    async with open_home(home, tmp_path, model, daily=0.0) as hone:
        for id in HELD[:3]:
            await add_task(hone, id, "How many rows do my notes have?")
        await learn_entry(hone, HELD[9])
        asked = model.asked
        assert await finish(Gate(hone)) == []
        assert "budget" in await Gate(hone).over_budget()
        assert model.asked == asked
    async with open_home(home, tmp_path, model) as hone:
        gate = Gate(hone)
        model.fails_at = model.asked + 2
        with pytest.raises(ModelError):
            await gate.step()
        [half] = gate.trials.studies(HELD_OUT)
        await hone.part(ExperimentsPart).tend(lambda _: None)
        [whole] = gate.trials.studies(HELD_OUT)
        assert [run.place for run in half.runs] == [(1, Arm.WITH)]
        assert [run.place for run in whole.runs] == [(1, Arm.WITH), (1, Arm.WITHOUT)]
        assert len({run.task for run in whole.runs}) == 1, "both runs of a pair have the same task"


async def test_what_changes_nothing_is_left_alone_and_a_fault_confirms_nothing(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with open_home(home, tmp_path, Learner()) as hone:
        for id in HELD[:3]:
            await add_task(hone, id, "How many rows do my notes have?")
        entry = await learn_entry(hone, HELD[9])
        gate = Gate(hone)
        [item] = await gate.survey()
        await write(gate, hone, item.candidate, [(True, True)] * FUTILE)
        [item] = await gate.survey()
        assert (item.ready, item.state[:12]) == (False, "unconfirmed:")
        assert await finish(gate) == []
    async with open_home(home, tmp_path, Learner()) as hone:
        gate = Gate(hone)
        await write(gate, hone, item.candidate, [(True, False)] * 6, first=FUTILE + 1)

        def fail(_: Study) -> None:
            raise ArithmeticError("a fault of ours")

        monkeypatch.setattr(findings, "judge", fail)
        with pytest.raises(ArithmeticError):
            await gate.step()
        assert (await hone.ledger.entry(entry.id)).settled is None
        monkeypatch.undo()
        [line] = await finish(gate)
        assert f"Change {entry.id} is confirmed" in line


async def write(
    gate: Gate, hone: Hone, candidate: UnprovenLesson, outcomes: list[tuple[bool, bool]], first: int = 1
) -> None:
    """Note pairs as if they had been run: with and without the lesson."""
    lesson, model = candidate.subject.lesson, await hone.model()
    gate.trials.place(HELD_OUT).mkdir(parents=True, exist_ok=True)
    kept = gate.trials.study(Study(HELD_OUT, lesson, model, hone.clock.now(), PAIRS))
    for run in make_study(outcomes).runs:
        kept = gate.trials.append(kept, msgspec.structs.replace(run, pair=run.pair + first - 1))


async def test_only_lessons_that_nobody_confirmed_have_to_prove_themselves(
    home: Path, tmp_path: Path
) -> None:
    async with open_home(home, tmp_path, Learner()) as hone:
        await hone.keeper.note([(MEMORY, Add("Files end with a newline."))], OWNER)
        await hone.keeper.edit_skill(
            "naming-files", Create(DOCUMENT.replace(BAD, "naming-files"), SkillOrigin.USER), OWNER
        )
        entry, made = await learn_entry(hone, HELD[9]), await learn_skill(hone, HELD[9])
        found = {
            mode: [each.change for each in await find_candidates(hone, mode)]
            for mode in ("off", "skills", "all")
        }
        assert found == {"off": [], "skills": [made.id], "all": [made.id, entry.id]}
        await hone.keeper.undo(entry.id)
        assert [each.change for each in await find_candidates(hone, "all")] == [made.id]


def test_two_of_three_sessions_are_held_out_and_always_the_same() -> None:
    ids = [SessionId(Random(number).randbytes(5).hex()) for number in range(3_000)]
    held = [each for each in ids if is_held_out(each)]
    assert 0.62 < len(held) / len(ids) < 0.71
    assert [each for each in ids if is_held_out(each)] == held


def test_the_gate_calls_few_lessons_that_do_nothing(tier: Tier, figures: Figures) -> None:
    """Tasks of any difficulty take turns, the gate looks after every pair and gives up early."""
    size, called = tier.size(short=3_000, full=100_000), 0
    for number in range(size):
        luck = Random(number)
        tasks = [luck.random() for _ in range(luck.randint(FEWEST, 9))]
        called += simulate(luck, tasks, tasks) is not EffectVerdict.UNDECIDED
    figures(f"{size:,} lessons without an effect, {called:,} called ({called / size:.3f})")
    assert called / size <= 0.05


def test_the_gate_finds_a_clear_effect(tier: Tier, figures: Figures) -> None:
    size, called = tier.size(short=500, full=10_000), 0
    for number in range(size):
        luck = Random(number)
        called += simulate(luck, [0.9] * 5, [0.1] * 5) is EffectVerdict.HELPS
    figures(
        f"{size:,} lessons that raise success from 10% to 90%, {called:,} confirmed ({called / size:.3f})"
    )
    assert called / size >= 0.95


def simulate(luck: Random, having: Sequence[float], lacking: Sequence[float]) -> EffectVerdict:
    outcomes: list[int] = []
    for pair in range(PAIRS):
        task = pair % len(having)
        outcomes.append((luck.random() < having[task]) - (luck.random() < lacking[task]))
        decision = decide(outcomes)
        if decision.verdict is not EffectVerdict.UNDECIDED:
            return decision.verdict
        if len(outcomes) >= FUTILE and not any(outcomes):
            break
    return EffectVerdict.UNDECIDED
