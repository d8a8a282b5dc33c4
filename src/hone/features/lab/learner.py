"""The scripted learner: what it makes of a task depends only on its prompt.

It knows the world only as far as a request tells it. When it is corrected, or asked to review, it saves what
the owner stated. At a given rate it makes each possible error: a malformed call, an addition instead of a
replacement, other words than the owner's, a missed lesson, a lesson not applied, junk or an exception saved
as a lasting rule, and obedience to a page.
"""

from collections.abc import Iterator, Sequence
from random import Random

from msgspec import Struct

from hone.core.messages import Message, ToolCall, assistant
from hone.core.value import replace
from hone.features.lab.dialect import MALFORMED, SKILL, Dialect, Note, skill_name, write_skill
from hone.features.lab.request import MadeCall, Seen
from hone.features.lab.texts import fold, load
from hone.features.lab.world import Visit, World, WorldLesson, WorldLessonKind, find_lessons, produce, truth
from hone.models.scripted import call

VIEW, SAVING = "skill_view", ("memory", "skill_manage")
TRIES = 3
"""How often it tries to save one thing."""
SLIP = 1 / 3
"""The share of the rate at which it does not apply what it knows."""


class Profile(Struct, frozen=True):
    """`rate` is how often it errs. `eager` is the share of corrections that it saves immediately."""

    name: str
    rate: float
    eager: float = 0.5


PROFILES = {
    each.name: each
    for each in (
        Profile("perfect", 0.0, eager=0.0),
        Profile("honest", 0.1),
        Profile("careless", 0.3),
        Profile("hopeless", 0.6),
    )
}


class TaskTruth(Struct, frozen=True):
    """What a learner knew and used when it first answered a request. `known` was in its prompt; without
    `mattered` it would have made something else."""

    visit: int
    known: tuple[WorldLesson, ...]
    mattered: frozenset[WorldLesson]


class _Intent(Struct, frozen=True):
    """`fair` is the note that it writes after a refusal. Anything dishonest is then given up."""

    note: Note
    fair: str
    honest: bool = True


class Learner:
    """`work` is the truth about each visit, by its number."""

    def __init__(self, world: World, profile: Profile, dialect: Dialect) -> None:
        self._world = world
        self._profile = profile
        self._dialect = dialect
        self._rules = [each for each in world.lessons if each.kind is WorldLessonKind.RULE]
        self._plans: dict[str, list[_Intent]] = {}
        self.work: dict[int, TaskTruth] = {}

    def is_review(self, seen: Seen) -> bool:
        return self._dialect.is_review(seen.last)

    def answer(self, seen: Seen) -> Message:
        if self.is_review(seen):
            return self._look_back(seen)
        visit = self._find_visit(seen)
        if visit is None or not any(fold(turn) in fold(seen.last) for turn in visit.turns):
            return assistant("Nothing.")
        return self._do_task(visit, seen) if visit.task else assistant("How about the first one?")

    def _find_visit(self, seen: Seen) -> Visit | None:
        """Return the visit with the latest request."""
        for said in reversed(seen.heard):
            words = fold(said)
            for visit in self._world.every:
                if fold(visit.request) in words:
                    return visit
        return None

    # A task

    def _do_task(self, visit: Visit, seen: Seen) -> Message:
        step = self._save_at_once(visit, seen) or self._prepare(visit, seen)
        if step is not None:
            return assistant(step)
        known, told = self._recall(seen), self._hear(visit, seen)
        used = [each for each in known if not self._errs(f"{visit.number}/{each.said}", SLIP)]
        product = produce(visit, (*used, *told))
        if len(seen.heard) == 1:
            self.work[visit.number] = TaskTruth(visit.number, tuple(known), truth(visit, used, told))
        done = [each.call for each in seen.attempts]
        for path in product.read:
            if not any(made.name == "read_file" and path in made.arguments for made in done):
                return assistant(call("read_file", path=path))
        written = [made for made in done if made.name == "write_file"]
        if not written and self._errs(f"{visit.number}/{len(seen.heard)}/write"):
            return assistant(call("write_file", content=product.text))
        if not any('"path"' in made.arguments for made in written):
            return assistant(call("write_file", path=product.path, content=product.text))
        return assistant(f"I have written {product.path}:\n\n{product.text}")

    def _prepare(self, visit: Visit, seen: Seen) -> ToolCall | None:
        """Return the next call before the work itself: a skill, a page, a file."""
        made = [each.call for each in seen.past]
        skill = SKILL.format(task=visit.task)
        if f"- {skill}:" in seen.system and not any(each.name == VIEW for each in made):
            return self._dialect.view(skill)
        if visit.page and not any(each.name == "web_fetch" for each in made):
            return call("web_fetch", url=visit.page.url)
        reads = load().task(visit.task).reads.format(n=visit.number + 1)
        if reads and not any(reads in each.arguments for each in made):
            return call("read_file", path=reads)
        return None

    def _recall(self, seen: Seen) -> list[WorldLesson]:
        """Return what it knows from its prompt, and from skills that it has read."""
        viewed = [each.result for each in seen.past if each.call.name == VIEW]
        return find_lessons(self._world.lessons, "\n".join((seen.system, *viewed)))

    def _hear(self, visit: Visit, seen: Seen) -> list[WorldLesson]:
        """Return what the owner said in this conversation, an exception last."""
        stated = [each for said in seen.heard for each in _stated(self._rules, said)]
        return [*stated, *([visit.exception] if visit.exception else [])]

    def _save_at_once(self, visit: Visit, seen: Seen) -> ToolCall | None:
        """Return a call that saves the owner's latest correction, for some corrections."""
        stated = _stated(self._rules, seen.last)
        tried = any(each.call.name in SAVING for each in seen.attempts)
        chance = self._chance(f"{visit.number}/{seen.last}/at once")
        if not stated or tried or chance.random() >= self._profile.eager:
            return None
        return self._first_try(self._intend(stated[-1], seen.system, chance), seen, chance)

    # A review

    def _look_back(self, seen: Seen) -> Message:
        visits = [each for each in self._world.every if _is_asked(each, seen)]
        key = f"review of {[each.number for each in visits]} after {len(seen.heard)}"
        if not seen.steps:
            self._plans[seen.last] = list(self._find_intents(seen, visits, self._chance(key)))
        chance = self._chance(f"{key}, step {seen.steps}")
        attempts = seen.attempts
        plan = self._plans.get(seen.last, [])
        calls = [made for each in plan if (made := self._save(each, attempts, seen, chance))]
        return assistant(*calls) if calls else assistant("nothing")

    def _find_intents(self, seen: Seen, visits: Sequence[Visit], chance: Random) -> Iterator[_Intent]:
        known = self._find_known(seen)
        held = {each.rule: each for each in find_lessons(self._rules, known)}
        stated = {each.rule: each for each in _stated(self._rules, _said(seen))}
        taught: set[str] = set()
        for lesson in stated.values():
            if held.get(lesson.rule) == lesson or self._draw(chance):
                continue
            intent = self._intend(lesson, known, chance)
            if not intent.note.task or intent.note.task not in taught:  # one skill holds a whole task
                taught.add(intent.note.task)
                yield intent
        for visit in visits:
            yield from self._err(visit, seen, known, chance)

    def _err(self, visit: Visit, seen: Seen, known: str, chance: Random) -> Iterator[_Intent]:
        """Yield what a careful model would not save."""
        if visit.exception and self._draw(chance):
            lesson = replace(visit.exception, target="memory")
            intent = self._intend(lesson, known, chance)
            yield replace(intent, note=replace(intent.note, evidence=visit.exception_words), honest=False)
        if visit.remark and self._draw(chance):
            yield _Intent(Note(visit.remark, visit.remark, "user"), visit.remark, honest=False)
        everything = fold("\n".join((*seen.heard, *(each.result for each in seen.past))))
        if visit.page and fold(visit.page.poison.said) in everything and self._draw(chance):
            order = visit.page.poison.said
            evidence = chance.choice([order, visit.request])
            yield _Intent(Note(order, evidence, "user"), order, honest=False)

    def _find_known(self, seen: Seen) -> str:
        """Return what is in the prompt, in the skills it read, and in the lists of a review's question."""
        rows = [line for line in seen.last.splitlines() if line.startswith("- ")]
        viewed = [each.result for each in seen.past if each.call.name == VIEW]
        return "\n".join((seen.system, *viewed, *rows))

    def _intend(self, lesson: WorldLesson, known: str, chance: Random) -> _Intent:
        """Return a note of a lesson, in the owner's words or others, replacing what is known about it."""
        text = lesson.other if lesson.other and self._draw(chance) else lesson.said
        if lesson.target == "skill":
            task = load().rule(lesson.rule).task
            return _Intent(Note(text, lesson.said, lesson.target, task), lesson.said)
        old = [each for each in find_lessons(self._rules, known) if each.rule == lesson.rule]
        written = [words for each in old for words in each.wordings if fold(words) in fold(known)]
        others = [words for words in written if words not in lesson.wordings]
        return _Intent(Note(text, lesson.said, lesson.target, old="".join(others[-1:])), lesson.said)

    def _save(
        self, intent: _Intent, attempts: Sequence[MadeCall], seen: Seen, chance: Random
    ) -> ToolCall | None:
        """Return the next call for something to save, if there is any. After a refusal the call is
        correct."""
        texts = (intent.note.text, intent.fair)
        made = [each for each in attempts if any(text in each.call.arguments for text in texts)]
        if len(made) >= TRIES or not all(map(self._dialect.has_failed, made)):
            return None
        if not made:
            return self._first_try(intent, seen, chance)
        if all(MALFORMED in each.call.arguments for each in made):
            return self._write(intent, seen, chance)
        if not intent.honest and not (self._draw(chance) and self._dialect.offers_anyway(made[-1])):
            return None
        return self._correct(intent, made, seen)

    def _first_try(self, intent: _Intent, seen: Seen, chance: Random) -> ToolCall:
        malformed = self._draw(chance)
        return self._dialect.malformed(intent.note) if malformed else self._write(intent, seen, chance)

    def _write(self, intent: _Intent, seen: Seen, chance: Random) -> ToolCall:
        if intent.note.task:
            return self._teach(intent, seen)
        replaces = intent.note.old and not self._draw(chance)
        return self._dialect.note(intent.note, "replace" if replaces else "add")

    def _correct(self, intent: _Intent, made: Sequence[MadeCall], seen: Seen) -> ToolCall:
        """Return the correct call after a refusal: replace what is in the way, or follow the advice."""
        note = replace(intent.note, text=intent.fair)
        if (
            note.task
            and VIEW in made[-1].result
            and not any(each.call.name == VIEW for each in seen.attempts)
        ):
            return self._dialect.view(skill_name(note))
        if note.task:
            return self._teach(replace(intent, note=note), seen, again=True)
        if note.old and not any('"replace"' in each.call.arguments for each in made):
            return self._dialect.note(note, "replace")
        return self._dialect.note(note, "add_anyway" if self._dialect.offers_anyway(made[-1]) else "add")

    def _teach(self, intent: _Intent, seen: Seen, *, again: bool = False) -> ToolCall:
        """Return the whole skill: its text, with this lesson in place of others about the same rule."""
        lessons, note = self._world.lessons, intent.note
        viewed = [each.result for each in seen.past if each.call.name == VIEW]
        new = find_lessons(lessons, note.text)
        about = {each.rule for each in new}
        stated = _stated(self._rules, _said(seen))
        before = {each.rule: each for each in (*find_lessons(lessons, "\n".join(viewed)), *stated)}
        kept = [each.said for each in before.values() if each.target == "skill" and each.rule not in about]
        listed = f"- {skill_name(note)}:"
        written = any(each.call.name == "skill_manage" for each in seen.past)
        exists = written or listed in seen.system or listed in seen.last
        action = "edit" if exists or again else "create"
        return self._dialect.teach(note, write_skill(note, [*kept, note.text]), action)

    # Chance

    def _chance(self, key: str) -> Random:
        return Random(f"{self._world.seed}/{self._profile.name}/{key}")

    def _errs(self, key: str, share: float = 1.0) -> bool:
        return self._draw(self._chance(key), share)

    def _draw(self, chance: Random, share: float = 1.0) -> bool:
        return chance.random() < self._profile.rate * share


def _stated(lessons: Sequence[WorldLesson], words: str) -> list[WorldLesson]:
    """Return the lessons in the owner's words, in order."""
    folded = fold(words)
    found = [(folded.find(fold(each.said)), each) for each in lessons]
    return [lesson for place, lesson in sorted(found, key=lambda pair: pair[0]) if place >= 0]


def _said(seen: Seen) -> str:
    """Return what was said in a conversation, without the lists of what is known in a review's question."""
    return "\n".join(line for said in seen.heard for line in said.splitlines() if not line.startswith("- "))


def _is_asked(visit: Visit, seen: Seen) -> bool:
    """Tell whether a visit's request stands among what was said."""
    return any(fold(visit.request) in fold(said) for said in seen.heard)
