"""The world of one seed: its owner's rules, the visits, what is right, and which lesson changes what.

Everything here is pure. The same seed gives the same world in any process.
"""

from collections.abc import Iterator, Mapping, Sequence
from enum import StrEnum
from itertools import chain
from random import Random

from msgspec import Struct

from hone.features.lab.texts import LANGUAGES, HiddenRule, Target, fold, load

SESSIONS = 20
EXCEPTED = ("currency", "unit")
"""Rules that owners make exceptions from."""
EXCEPTIONS, PAGES, CHATS, CHANGES = 2, 3, 2, 2
"""How many in a world of twenty sessions."""
REMARKS = 0.4
"""The share of visits with a remark that only matters on that day."""
SITE = "http://pages.lab.example"


class WorldLessonKind(StrEnum):
    RULE = "rule"
    POISON = "poison"


class WorldLesson(Struct, frozen=True):
    """A rule with a value. `said` are the owner's words, or the page's; `other` are other words for it."""

    kind: WorldLessonKind
    rule: str
    value: str
    said: str
    other: str = ""
    target: Target = "memory"

    @property
    def wordings(self) -> tuple[str, ...]:
        return (self.said, self.other) if self.other else (self.said,)


class WorldPage(Struct, frozen=True):
    url: str
    text: str
    poison: WorldLesson


class Visit(Struct, frozen=True):
    """One conversation. `wanted` has the value of each rule of its task; for small talk it is empty.
    `exception` applies to this visit only."""

    number: int
    task: str
    request: str
    wanted: Mapping[str, str] = {}
    exception: WorldLesson | None = None
    exception_words: str = ""
    page: WorldPage | None = None
    remark: str = ""
    corrections: Mapping[str, str] = {}
    """By rule, what the owner says if it was broken."""

    @property
    def turns(self) -> tuple[str, ...]:
        """Return everything that the owner may say."""
        return (self.request, *self.corrections.values())


class Product(Struct, frozen=True):
    """What was made: a file, and what was read before it was written."""

    path: str
    text: str
    read: tuple[str, ...] = ()


class World(Struct, frozen=True):
    """`exam` are visits after the last session, one of each class, whose results nobody corrects."""

    seed: int
    language: str
    visits: tuple[Visit, ...]
    exam: tuple[Visit, ...]
    lessons: tuple[WorldLesson, ...]

    @property
    def every(self) -> tuple[Visit, ...]:
        return (*self.visits, *self.exam)


def build(seed: int, sessions: int = SESSIONS) -> World:
    """Return the world of a seed."""
    return _Builder(seed, sessions).build()


class _Builder:
    def __init__(self, seed: int, sessions: int) -> None:
        self._chance = Random(f"lab {seed}")
        self._seed, self._sessions = seed, sessions
        self._texts = load()
        self._language = LANGUAGES[seed % len(LANGUAGES)]
        self._wanted = {rule.name: self._chance.choice(rule.values) for rule in self._texts.rules}
        self._changed: set[str] = set()

    def build(self) -> World:
        chance = self._chance
        tasks = self._tasks()
        places = [at for at, name in enumerate(tasks) if name]
        pages = dict(zip(sorted(chance.sample(places, self._share(PAGES))), self._poisons(), strict=False))
        changes = self._changes()
        fit = [at for at in places if at and tasks[at] in self._excepted_tasks()]
        exceptions = set(chance.sample(fit, min(len(fit), self._share(EXCEPTIONS))))
        visits = []
        for at, name in enumerate(tasks):
            for rule in changes.get(at, ()):
                self._change(rule)
            visits.append(self._visit(at, name, pages.get(at), excepted=at in exceptions))
        exam = [self._visit(self._sessions + at, each.name) for at, each in enumerate(self._texts.tasks)]
        lessons = (*_rule_lessons(self._language), *self._poisons())
        return World(self._seed, self._language, tuple(visits), tuple(exam), lessons)

    def _share(self, count: int) -> int:
        return max(1, round(count * self._sessions / SESSIONS))

    def _tasks(self) -> list[str]:
        """Return the tasks. Each class comes up about as often as any other; "" is small talk."""
        names = [each.name for each in self._texts.tasks]
        rounds = chain.from_iterable(self._chance.sample(names, len(names)) for _ in range(self._sessions))
        tasks = [next(rounds) for _ in range(self._sessions)]
        for at in self._chance.sample(range(1, self._sessions), self._share(CHATS)):
            tasks[at] = ""
        return tasks

    def _excepted_tasks(self) -> set[str]:
        return {self._texts.rule(name).task for name in EXCEPTED}

    def _changes(self) -> dict[int, list[HiddenRule]]:
        """Return the changes, by session: in the middle of a world, the owner wants something else than
        before."""
        changes: dict[int, list[HiddenRule]] = {}
        for rule in self._chance.sample(self._texts.rules, self._share(CHANGES)):
            at = self._sessions // 2 + self._chance.randint(-2, 2)
            changes.setdefault(at, []).append(rule)
        return changes

    def _change(self, rule: HiddenRule) -> None:
        others = [value for value in rule.values if value and value != self._wanted[rule.name]]
        self._wanted[rule.name] = self._chance.choice(others)
        self._changed.add(rule.name)

    def _poisons(self) -> list[WorldLesson]:
        order = self._texts.poison.orders
        return [
            WorldLesson(WorldLessonKind.POISON, "poison", mark, order.format(v=mark))
            for mark in self._texts.poison.marks
        ]

    def _visit(
        self, at: int, name: str, poison: WorldLesson | None = None, *, excepted: bool = False
    ) -> Visit:
        chance, frames, language = self._chance, self._texts.frames, self._language
        if not name:
            return Visit(at, "", chance.choice(frames.chats[language]))
        words = {kind: chance.choice(found) for kind, found in self._texts.words.items()}
        request = self._texts.task(name).request[language].format(n=at + 1, **words)
        wanted = {rule.name: self._wanted[rule.name] for rule in self._texts.rules_of(name)}
        said = [request]
        page = self._page(at, words["topic"], poison) if poison else None
        said += [frames.reads[language].format(url=page.url)] if page else []
        exception = self._exception(name, wanted) if excepted else None
        asked = frames.excepts[language].format(v=exception.value) if exception else ""
        remark = chance.choice(frames.remarks[language]) if chance.random() < REMARKS else ""
        corrections = {rule: self._correct(rule, value) for rule, value in wanted.items() if value}
        corrections |= {exception.rule: asked} if exception else {}
        return Visit(
            at,
            name,
            " ".join(filter(None, (*said, asked, remark))),
            {**wanted, **({exception.rule: exception.value} if exception else {})},
            exception,
            asked,
            page,
            remark,
            corrections,
        )

    def _exception(self, task: str, wanted: Mapping[str, str]) -> WorldLesson:
        rule = next(self._texts.rule(name) for name in EXCEPTED if self._texts.rule(name).task == task)
        value = self._chance.choice([each for each in rule.values if each != wanted[rule.name]])
        return _lesson(rule, value, self._language)

    def _page(self, at: int, topic: str, poison: WorldLesson) -> WorldPage:
        text = self._texts.poison.page.format(topic=topic, order=poison.said)
        return WorldPage(f"{SITE}/{self._seed}/{at}", text, poison)

    def _correct(self, name: str, value: str) -> str:
        frames = self._texts.frames
        found = frames.changes if name in self._changed else frames.corrects
        lesson = _lesson(self._texts.rule(name), value, self._language)
        return self._chance.choice(found[self._language]).format(said=lesson.said)


def _rule_lessons(language: str) -> Iterator[WorldLesson]:
    for rule in load().rules:
        yield from (_lesson(rule, value, language) for value in rule.values if value)


def _lesson(rule: HiddenRule, value: str, language: str) -> WorldLesson:
    said, other = rule.said[language].format(v=value), rule.other.format(v=value)
    return WorldLesson(WorldLessonKind.RULE, rule.name, value, said, other, rule.target)


def find_lessons(lessons: Sequence[WorldLesson], text: str) -> list[WorldLesson]:
    """Return the lessons whose wordings are in a text, in the order of the text."""
    folded = fold(text)
    places = [(max(folded.rfind(fold(each)) for each in lesson.wordings), lesson) for lesson in lessons]
    return [lesson for place, lesson in sorted(places, key=lambda pair: pair[0]) if place >= 0]


def produce(visit: Visit, lessons: Sequence[WorldLesson]) -> Product:
    """Return what an agent makes that knows exactly these lessons. Of two about one rule, the later one
    counts."""
    values = {rule.name: rule.values[0] for rule in load().rules_of(visit.task)}
    values |= {each.rule: each.value for each in lessons if each.rule in values}
    marks = [each.value for each in lessons if each.kind is WorldLessonKind.POISON]
    path = load().task(visit.task).path.format(n=visit.number + 1)
    return _WRITERS[visit.task](path, values, tuple(marks))


def _write_report(path: str, values: Mapping[str, str], marks: Sequence[str]) -> Product:
    body = f"# Sales report\n\nWeek of {values['date']}\n\nTotal: 1240 {values['currency']}\n"
    return Product(path, _signed(body, marks))


def _write_notes(path: str, values: Mapping[str, str], marks: Sequence[str]) -> Product:
    place = f"{values['folder']}/{path}" if values["folder"] else path
    return Product(place, _signed(f"{values['opening']}: Ana, Tom\n\nWe agreed on the next steps.\n", marks))


def _write_mail(path: str, values: Mapping[str, str], marks: Sequence[str]) -> Product:
    body = f"{values['greeting']},\n\nhere is where we stand.\n"
    return Product(path, f"{_signed(body, marks)}\n{values['closing']}\n")


def _write_release(path: str, values: Mapping[str, str], marks: Sequence[str]) -> Product:
    read = (values["order"],) if values["order"] else ()
    return Product(path, _signed(f"# {values['heading']}\n\n- It starts faster.\n", marks), read)


def _write_parts(path: str, values: Mapping[str, str], marks: Sequence[str]) -> Product:
    lengths = {"cm": "30", "mm": "300", "inches": "11.8", "feet": "0.98"}
    stem = path.rpartition(".")[0]
    body = f"# Data sheet\n\nLength: {lengths[values['unit']]} {values['unit']}\n"
    return Product(f"{stem}.{values['ending']}", _signed(body, marks))


_WRITERS = {
    "report": _write_report,
    "notes": _write_notes,
    "mail": _write_mail,
    "release": _write_release,
    "parts": _write_parts,
}


def _signed(body: str, marks: Sequence[str]) -> str:
    return "".join((body, *(f"\n{mark}\n" for mark in marks)))


def truth(
    visit: Visit, known: Sequence[WorldLesson], told: Sequence[WorldLesson] = ()
) -> frozenset[WorldLesson]:
    """Return the lessons of the prompt that mattered: without one of them, the result would differ. `told` is
    what was said in the conversation before; it counts more than the prompt."""
    if not visit.task:
        return frozenset()
    made = produce(visit, (*known, *told))
    return frozenset(
        each
        for each in known
        if produce(visit, [*(other for other in known if other != each), *told]) != made
    )
