"""Act on the result of a study: confirm a lesson that helps, propose to archive one that harms."""

from collections.abc import Iterable, Sequence
from datetime import datetime
from statistics import fmean

from msgspec import Struct

from hone.app import Hone
from hone.core.errors import Missing, Refused, StoreError
from hone.core.ledger import Actor, Author, ChangeId, ChangeKind, ChangeQuery, Entry, Target, skill
from hone.core.measured import FigureDifference, StudyResult
from hone.features.experiments.sequential import EarlyDecision, judge
from hone.features.experiments.statistics import FIGURES, SUCCESS, Difference, differences
from hone.features.experiments.store import Studies
from hone.features.experiments.subjects import Subject, change_of
from hone.features.experiments.values import HELD_OUT, EffectVerdict, LessonKind, Study
from hone.features.templates.part import TemplatesPart
from hone.knowledge.folding import load_steps
from hone.knowledge.journal import Remove, entries
from hone.knowledge.keeper import Keeper
from hone.knowledge.skills.folder import Archive


class Finding(Struct, frozen=True):
    """A study with its conclusion."""

    study: Study
    differences: tuple[Difference, ...]
    decision: EarlyDecision

    @property
    def verdict(self) -> EffectVerdict:
        return self.decision.verdict

    @property
    def is_over(self) -> bool:
        """Tell whether it is decided, or nothing is left to do."""
        return self.study.whole or self.verdict is not EffectVerdict.UNDECIDED

    @property
    def success(self) -> Difference:
        return next(each for each in self.differences if each.name == SUCCESS)

    @property
    def gist(self) -> str:
        """Return the conclusion in a few words, for a lesson's or change's page."""
        count = f"{self.success.pairs} of {self.study.pairs} pairs"
        name, _, number = self.study.task.partition(f"{HELD_OUT}-")
        where = f"new held-out tasks ({number})" if number else f"experiment {name}"
        where = "held-out tasks" if name == HELD_OUT else where
        if not self.success.pairs:
            return f"{where}: {count}"
        low, mean, high = (points(each) for each in (self.success.low, self.success.mean, self.success.high))
        return f"{where}: success {mean} points ({low} to {high}), {count}"


def found(study: Study, *, briefly: bool = False) -> Finding:
    """Describe what a study shows so far. `briefly`: of its figures only the success rate."""
    return Finding(study, differences(study, FIGURES[:1] if briefly else FIGURES), judge(study))


def points(share: float) -> str:
    """Format a figure in percentage points."""
    return signed(round(100 * share))


def signed(number: int) -> str:
    """Format a figure with a sign. Zero has none."""
    return f"{'+' if number > 0 else '−' if number < 0 else ''}{abs(number):,}"


async def conclude(hone: Hone, studies: Studies, subject: Subject, finding: Finding) -> list[str]:
    """Act on a study, once, and report it; an undecided one changes nothing. The owner wrote every check: no
    agent can record a task. Nothing happens to a lesson whose content has changed by now."""
    if not finding.is_over:
        return ["Nothing follows yet: not all pairs are done."]
    if subject.lesson != finding.study.lesson:
        return [f"Nothing follows: {subject.lesson} has changed since."]
    if subject.lesson.kind is LessonKind.TEMPLATE:
        return await _rated(hone, studies, subject)
    keeper = hone.keeper
    try:
        match finding.verdict:
            case EffectVerdict.HELPS:
                return [await _confirmed(keeper, subject, finding)]
            case EffectVerdict.HARMS:
                return [await _proposed(keeper, subject, finding)]
    except Refused as refusal:
        return [f"Nothing was changed: {refusal}"]
    return []


async def _confirmed(keeper: Keeper, subject: Subject, finding: Finding) -> str:
    change = await change_of(keeper, subject)
    if change is None or (await keeper.ledger.entry(change)).change.confirmed:
        return "It needs no confirmation."
    entry = await keeper.ledger.entry(change)
    if entry.settled:
        return f"Change {change} was settled by change {entry.settled} already."
    made = await keeper.confirm(change, _author(finding))
    return f"Change {change} is confirmed by change {made.id}."


async def _proposed(keeper: Keeper, subject: Subject, finding: Finding) -> str:
    lesson, target = subject.lesson, _target(subject)
    if waiting := await find_proposal(keeper, subject, finding):
        return _ask(waiting)
    if finding.gist in {each.change.author.reason for each, _ in await find_declined(keeper, subject)}:
        return "You kept it when its removal was proposed, and nothing has been measured since."
    if lesson.kind is LessonKind.SKILL:
        return _ask((await keeper.edit_skill(lesson.name, Archive(), _author(finding))).id)
    [made] = await keeper.note([(target, Remove(subject.entry))], _author(finding))
    return _ask(made.id)


def _target(subject: Subject) -> Target:
    lesson = subject.lesson
    return Target(lesson.name) if lesson.kind is LessonKind.ENTRY else skill(lesson.name)


async def find_proposal(keeper: Keeper, subject: Subject, finding: Finding) -> ChangeId | None:
    """Return the pending proposal that a finding has led to."""
    target = _target(subject)
    return next(
        (each.id for each in await keeper.ledger.pending(target) if _is_ours(each, target, finding)), None
    )


async def find_declined(keeper: Keeper, subject: Subject) -> list[tuple[Entry, datetime]]:
    """Return the proposals to archive this very lesson that the owner rejected, and when, latest first."""
    found: list[tuple[Entry, datetime]] = []
    made = await change_of(keeper, subject)
    for entry in await keeper.ledger.entries(ChangeQuery(target=_target(subject), actor=Actor.EXPERIMENT)):
        if made is None or entry.id < made or not entry.settled or not entry.change.deltas:
            continue
        by = await keeper.ledger.entry(entry.settled)
        if by.change.kind is ChangeKind.REJECT and await _removes(keeper, entry, subject):
            found.append((entry, by.at))
    return found


async def _removes(keeper: Keeper, entry: Entry, subject: Subject) -> bool:
    """Tell whether a proposal is about this lesson; a skill is archived as a whole."""
    if subject.lesson.kind is not LessonKind.ENTRY:
        return True
    made = await load_steps(keeper.ledger, entry.change)
    texts = [(each.before or b"", each.after or b"") for each in made]
    return any(
        subject.entry in {*entries(before.decode())} - {*entries(after.decode())} for before, after in texts
    )


def _is_ours(entry: Entry, target: Target, finding: Finding) -> bool:
    author = entry.change.author
    return entry.change.target == target and author == _author(finding)


def _author(finding: Finding) -> Author:
    return Author(Actor.EXPERIMENT, reason=finding.gist)


def _ask(id: ChangeId) -> str:
    return f"Putting it away waits for you: hone approve {id}   or   hone reject {id}"


async def _rated(hone: Hone, studies: Studies, subject: Subject) -> list[str]:
    name = subject.lesson.name
    effect = await rate(hone, studies, name, subject.lesson.digest)
    if effect is None:
        return []
    if effect < 0:
        return [f"--template auto leaves it out from now on. Delete it with: hone templates delete {name}"]
    return [f"--template auto prefers it from now on ({points(effect)} points)."]


async def rate(hone: Hone, studies: Studies, name: str, digest: str) -> float | None:
    """Write the effect of a template into its file: the mean of all its studies that decided something."""
    known = [
        found(each, briefly=True)
        for each in studies.of(LessonKind.TEMPLATE, name)
        if each.lesson.digest == digest
    ]
    decided = [each.success.mean for each in known if each.verdict is not EffectVerdict.UNDECIDED]
    effect = fmean(decided) if decided else None
    await hone.part(TemplatesPart).store.rate(name, effect)
    return effect


async def forget(hone: Hone, studies: Studies, gone: Sequence[Study]) -> None:
    """Rate a template again from the remaining studies."""
    for lesson in {each.lesson for each in gone if each.lesson.kind is LessonKind.TEMPLATE}:
        try:
            await rate(hone, studies, lesson.name, lesson.digest)
        except Missing:
            continue


def beside(trials: Iterable[Studies], kind: LessonKind, name: str, digest: str) -> list[str]:
    """Return what was measured, to show with the lesson: one line for each study, latest first."""
    try:
        known = [study for each in trials for study in each.of(kind, name)]
    except StoreError as error:
        return [str(error)]
    rows = []
    for study in known:
        same = study.lesson.digest == digest
        if same or kind is not LessonKind.ENTRY:
            other = "" if same else ", measured on an earlier version"
            finding = found(study, briefly=True)
            rows.append(f"{finding.verdict}: {finding.gist}, {study.model}{other}")
    return rows


def measure(trials: Iterable[Studies], kind: LessonKind, name: str, digest: str) -> list[StudyResult]:
    """Return what `beside` says as figures, latest study first. Skip unreadable ones."""
    try:
        known = [study for each in trials for study in each.of(kind, name)]
    except StoreError:
        return []
    return [
        _figures(found(study), current=study.lesson.digest == digest)
        for study in known
        if study.lesson.digest == digest or kind is not LessonKind.ENTRY
    ]


def _figures(finding: Finding, *, current: bool) -> StudyResult:
    known = [each for each in finding.differences if each.pairs]
    figures = tuple(FigureDifference(each.name, each.mean, each.low, each.high) for each in known)
    study = finding.study
    return StudyResult(study.task, study.model, finding.verdict, len(study.paired), figures, current)
