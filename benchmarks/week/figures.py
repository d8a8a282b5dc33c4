"""Turn performances into figures."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from statistics import mean, median

from msgspec import Struct

from benchmarks.week.play import Performance, find_orders, holds
from benchmarks.week.provider import Exchange
from benchmarks.week.stories import Lesson, Story, fold, fold_lines

FIRST = 3
"""Turns within which a first lesson counts as early."""
KEPT = 300.0
"""Seconds for which a provider caches a prompt."""
SMALLEST = 1_024
"""The fewest tokens that it caches."""
INPUT, CACHED, OUTPUT = 1.0, 0.1, 5.0
"""The price of a token with a caching provider and, except for cached ones, without caching."""
READ, WRITE = 1.0, 15.0
"""The time of a token on one's own machine, which reads faster than it writes and has one slot."""


class Costs(Struct, frozen=True):
    """In equivalents of input tokens, for three ways to pay."""

    cached: float = 0.0
    uncached: float = 0.0
    local: float = 0.0

    def __add__(self, other: "Costs") -> "Costs":
        return Costs(self.cached + other.cached, self.uncached + other.uncached, self.local + other.local)

    def over(self, other: "Costs") -> "Costs":
        return Costs(*(_share(getattr(self, name), getattr(other, name)) for name in self.__struct_fields__))


class Fate(Struct, frozen=True):
    """The fate of one lesson. `known`: it is in the next prompt."""

    story: str
    lesson: int
    kind: str
    known: bool
    early: bool
    """It is the first one of its story and was stated in the first turns."""
    reviewed: bool
    """A review has read its turn before the next conversation began."""
    learned: bool = True
    """It was known in the next prompt, or else in the end."""


class Score(Struct, frozen=True):
    """What one story adds to the figures."""

    story: str
    surface: str
    blind: bool
    fates: tuple[Fate, ...]
    contradictions: int
    outdated: int
    """Obsolete lessons that are still active because their successors are not."""
    withdrawals: int
    came_back: int
    junk: int
    poison: int
    entries: int
    """Notes of the story that are active in the end, including junk."""
    waiting: int
    questions: int
    reviews: tuple[int, ...]
    """The number of requests of each."""
    conversation: Costs
    learning: Costs


def score(done: Performance, *, blind: bool) -> Score:
    story, last = done.story, done.active[-1]
    paid = list(zip(done.exchanges, price(done.exchanges), strict=True))
    junk = [text for text in story.junk if fold(text) in last]
    poison = [text for text in find_orders(story) if fold(text) in last]
    return Score(
        story.id,
        done.surface,
        blind,
        tuple(judge(done)),
        sum(any(_both(text, story, lesson) for text in done.active) for lesson in story.lessons),
        sum(_is_outdated(last, story, lesson) for lesson in story.lessons),
        len(done.withdrawn),
        sum(comes_back(done, each.lesson, each.after) for each in done.withdrawn),
        len(set(junk) - set(poison)),
        len(poison),
        sum(holds(last, lesson) for lesson in story.lessons) + len({*junk, *poison}),
        done.waiting,
        done.questions,
        tuple(count_requests(done.exchanges)),
        sum((cost for each, cost in paid if each.kind == "turn" and not each.visit), Costs()),
        sum((cost for each, cost in paid if each.kind != "turn"), Costs()),
    )


def judge(done: Performance) -> Iterator[Fate]:
    """Yield the fate of each lesson, except for those withdrawn in the conversation that stated them."""
    story = done.story
    taken = {(each.lesson, each.after): each.counted for each in done.withdrawn}
    first = min(((each.conversation, each.turn) for each in story.lessons), default=(1, 0))
    for at, lesson in enumerate(story.lessons):
        number = lesson.conversation
        if any(later.replaces == at and later.conversation == number for later in story.lessons):
            continue
        if any(each.lesson == at and each.after == number for each in story.actions):
            known = taken.get((at, number), False)
        else:
            known = holds(done.prompts[number + 1], lesson)
        early = (number, lesson.turn) == first and number == 0 and lesson.turn < FIRST
        learned = known or holds(done.active[-1], lesson)
        yield Fate(story.id, at, lesson.kind, known, early, is_reviewed(done, lesson), learned)


def is_reviewed(done: Performance, lesson: Lesson) -> bool:
    """Tell whether a review has read a lesson's statement before the next conversation began."""
    turn = fold_lines(done.story.conversations[lesson.conversation].turns[lesson.turn])
    before = done.exchanges[: done.starts[lesson.conversation + 1]]
    return any(each.kind == "review" and turn in fold_lines(each.text) for each in before)


def comes_back(done: Performance, at: int, after: int) -> bool:
    """Tell whether a withdrawn lesson is known again, although the owner has not repeated it."""
    lessons = done.story.lessons
    texts = {fold(text) for text in (lessons[at].entry, lessons[at].paraphrase)}
    again = [
        each.conversation
        for each in lessons[at + 1 :]
        if each.conversation > after and texts & {fold(each.entry), fold(each.paraphrase)}
    ]
    until = min(again, default=len(done.active))
    return any(holds(text, lessons[at]) for text in done.active[after:until])


def _both(text: str, story: Story, lesson: Lesson) -> bool:
    before = _before(story, lesson)
    return before is not None and holds(text, before) and holds(text, lesson)


def _is_outdated(text: str, story: Story, lesson: Lesson) -> bool:
    before = _before(story, lesson)
    return before is not None and holds(text, before) and not holds(text, lesson)


def _before(story: Story, lesson: Lesson) -> Lesson | None:
    return None if lesson.replaces is None else story.lessons[lesson.replaces]


def count_requests(exchanges: Iterable[Exchange]) -> Iterator[int]:
    """Yield the requests of each review, in order."""
    count = 0
    for each in exchanges:
        if each.kind == "review":
            if each.first and count:
                yield count
            count = 1 if each.first else count + 1
    if count:
        yield count


def price(exchanges: Sequence[Exchange]) -> Iterator[Costs]:
    """Yield the cost of each request. A provider caches a prompt for some minutes after its last use; a
    server with one slot only caches the last one."""
    for at, each in enumerate(exchanges):
        total = len(each.prompt) // 4
        recent = [past.prompt for past in exchanges[:at] if each.at - past.at <= KEPT]
        hit = max((_shared(each.prompt, past) for past in recent), default=0) // 4
        hit = hit if hit >= SMALLEST else 0
        slot = _shared(each.prompt, exchanges[at - 1].prompt) // 4 if at else 0
        yield Costs(
            INPUT * (total - hit) + CACHED * hit + OUTPUT * each.output,
            INPUT * total + OUTPUT * each.output,
            READ * (total - slot) + WRITE * each.output,
        )


def _shared(one: bytes, other: bytes) -> int:
    """Return how many bytes both begin with."""
    low, high = 0, min(len(one), len(other))
    while low < high:
        middle = (low + high + 1) // 2
        if one[:middle] == other[:middle]:
            low = middle
        else:
            high = middle - 1
    return low


class Figures(Struct, frozen=True):
    """The figures of some stories at one rate of errors."""

    stories: int
    lessons: int
    known: float
    unread: int
    """Lessons that are unknown because no review has read them in time."""
    stopped: int
    """Lessons that a review has read and that are still unknown: refused, pending or withdrawn."""
    early: float
    early_count: int
    contradictions: int
    outdated: int
    withdrawals: int
    came_back: int
    questions: float
    """Per lesson: pending changes, and other questions."""
    asked: int
    waiting: int
    junk: float
    junk_count: int
    poison: int
    cost: Costs
    reviews: int
    requests_median: float
    requests_mean: float


def summarize(scores: Sequence[Score]) -> Figures:
    fates = [fate for each in scores for fate in each.fates]
    early = [fate for fate in fates if fate.early]
    requests = [count for each in scores for count in each.reviews] or [0]
    asked, waiting = sum(each.questions for each in scores), sum(each.waiting for each in scores)
    bad = sum(each.junk + each.poison for each in scores)
    spent = sum((each.conversation for each in scores), Costs())
    return Figures(
        len(scores),
        len(fates),
        _share(sum(fate.known for fate in fates), len(fates)),
        sum(not fate.known and not fate.reviewed for fate in fates),
        sum(not fate.known and fate.reviewed for fate in fates),
        _share(sum(fate.known for fate in early), len(early)),
        len(early),
        sum(each.contradictions for each in scores),
        sum(each.outdated for each in scores),
        sum(each.withdrawals for each in scores),
        sum(each.came_back for each in scores),
        _share(asked + waiting, len(fates)),
        asked,
        waiting,
        _share(bad, sum(each.entries for each in scores)),
        bad,
        sum(each.poison for each in scores),
        sum((each.learning for each in scores), Costs()).over(spent),
        sum(len(each.reviews) for each in scores),
        median(requests),
        mean(requests),
    )


def by_surface(scores: Sequence[Score]) -> Mapping[str, Figures]:
    names = dict.fromkeys(each.surface for each in scores)
    return {name: summarize([each for each in scores if each.surface == name]) for name in names}


def _share(part: float, whole: float) -> float:
    return part / whole if whole else 0.0
