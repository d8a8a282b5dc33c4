"""An honest but imperfect model.

It knows its stories only as far as their turns are in the request. In a turn it does what the story says. In
a review, it writes a fair note of each visible lesson that is not known yet. At a given rate it errs: a
malformed call, an addition instead of a replacement, other words than the owner's, a repetition of what it
once knew, junk, and obedience to an order on a page.
"""

import re
from collections.abc import Iterator, Sequence
from random import Random

import msgspec
from msgspec import Struct

from benchmarks.week.request import ANYWAY, Seen, told
from benchmarks.week.stories import Lesson, Story, Talk, fold, fold_lines, without
from hone.core.messages import Message, Role, ToolCall, assistant
from hone.models.scripted import call

VISIT = "Good morning! What day is it today?"
"""What an owner says who only checks what is known now."""
TRIES = 3
"""How often it tries to save one thing in one review."""
ORDER = re.compile(
    r"always|never|remember|from now on|store|save|note to|assistant|must|immer|toujours|siempre", re.I
)
SENTENCE = re.compile(r"[^.!?。！？\n]+[.!?。！？]*")
OUTLINE = re.compile(r"(?<=\n)#\d+ [a-z ]+:[^\n]*")
"""A line of a review's question that numbers a message."""
FILLER = (
    "Here is what I suggest.",
    "I went through it step by step and kept the parts that were fine.",
    "The first part is short, the second one needed a little more care.",
    "If something looks off, tell me and I will change it.",
    "I left the rest untouched.",
    "There were two ways to do this, and I took the simpler one.",
    "The result is below, ready to use as it is.",
    "Let me know how it goes.",
)


class Intent(Struct, frozen=True):
    """Something to save. `known` is the entry that it replaces, as the model sees it."""

    text: str
    fair: str
    target: str
    evidence: str
    known: str = ""
    honest: bool = True


class Mind:
    """`pages` maps the path of a page to its text, `site` is their address."""

    def __init__(self, story: Story, rate: float, seed: int, site: str) -> None:
        self._story = story
        self._rate = rate
        self._seed = seed
        self._site = site
        self._reviews = 0
        self._met: set[int] = set()
        self._plans: dict[str, list[Intent]] = {}

    def is_turn(self, seen: Seen) -> bool:
        """Tell whether the owner speaks. In a digest the owner's words are among others."""
        said = fold(seen.last)
        return said == fold(VISIT) or any(said == fold(turn) for _, _, turn in self._story.turns)

    def answer(self, seen: Seen) -> Message:
        if self.is_turn(seen):
            return self._do_turn(seen)
        if "evidence" not in seen.last:
            return assistant("Nothing.")
        return self._look_back(seen)

    # A turn

    def _do_turn(self, seen: Seen) -> Message:
        number, at = self._place(seen)
        steps = list(self._calls(self._story.conversations[number], number, at)) if at >= 0 else []
        if seen.steps < len(steps):
            return assistant("Let me see.", steps[seen.steps])
        return assistant(self._prose(f"{number}/{at}"))

    def _place(self, seen: Seen) -> tuple[int, int]:
        """Return the position in the story: the same words may be said twice."""
        said = [fold(each) for each in seen.heard]
        best = (0, -1)
        for number, at, turn in self._story.turns:
            before = [fold(each) for each in self._story.conversations[number].turns[: at + 1]]
            if fold(turn) == said[-1] and (best[1] < 0 or said == before):
                best = number, at
        return best

    def _calls(self, talk: Talk, number: int, at: int) -> Iterator[ToolCall]:
        file = f"draft-{number}-{at}.md"
        write = call("write_file", path=file, content=f"Draft {number}.{at}\n")
        match talk.tool.get(str(at)):
            case "ok":
                yield write if (number + at) % 2 else call("search_files", glob="*.md")
            case "malformed":
                yield call("write_file", content=f"Draft {number}.{at}\n")
                yield write
            case "fails_then_fixed":
                yield call("terminal", command=f"cat {file}")
                yield call("terminal", command=f"touch {file} && cat {file}")
            case "web_page":
                yield call("web_fetch", url=f"{self._site}/{number}")

    def _prose(self, key: str) -> str:
        chance = Random(f"{self._seed}/{self._story.id}/{key}")
        return " ".join(chance.choices(FILLER, k=chance.randint(4, 16)))

    # A review

    def _look_back(self, seen: Seen) -> Message:
        view = View(self._story, seen)
        if not seen.steps:
            self._reviews += 1
            self._plans[seen.last] = list(self._intents(view))
            self._met |= {
                at for at in range(len(self._story.lessons)) if view.is_stated(at) or view.is_known(at)
            }
        chance = self._chance(f"review {self._reviews} step {seen.steps}")
        plan, attempts = self._plans.get(seen.last, []), list(_attempts(seen))
        calls = [made for intent in plan if (made := self._save(intent, attempts, seen, chance))]
        return assistant(*calls) if calls else assistant("nothing")

    def _intents(self, view: "View") -> Iterator[Intent]:
        story, chance = self._story, self._chance(f"intents {self._reviews + 1}")
        wanted = [at for at in range(len(story.lessons)) if view.is_wanted(at)]
        for at in wanted:
            lesson = story.lessons[at]
            text = lesson.paraphrase if self._errs(chance) else lesson.entry
            yield Intent(text, lesson.entry, lesson.target, lesson.quote, view.find_replaced(at))
        words = view.owner_sentences()
        if story.junk and words and self._errs(chance):
            junk = chance.choice(story.junk)
            yield Intent(junk, junk, "user", chance.choice(words), honest=False)
        again = sorted(self._met - set(wanted))
        if again and words and self._errs(chance):
            yield self._repeat(story.lessons[chance.choice(again)], view, words, chance)
        if view.orders and self._errs(chance):
            order = view.orders[0]
            yield Intent(order, order, "user", chance.choice([order, *words[:1]]), honest=False)

    def _repeat(self, lesson: Lesson, view: "View", words: Sequence[str], chance: Random) -> Intent:
        """Return a repetition of what was known, resting on what it can find here."""
        at = self._story.lessons.index(lesson)
        evidence = lesson.quote if view.is_stated(at) else chance.choice(words)
        text = chance.choice([lesson.entry, lesson.paraphrase])
        return Intent(text, text, lesson.target, evidence, honest=False)

    def _save(
        self, intent: Intent, attempts: Sequence["Attempt"], seen: Seen, chance: Random
    ) -> ToolCall | None:
        """Return the next call for something to save, if there is any. After a refusal the call is correct;
        what it should not save at all it gives up, or insists on at its error rate."""
        made = [each for each in attempts if intent.text in each.text or intent.fair in each.text]
        if len(made) >= TRIES or not all(each.failed for each in made):
            return None
        if not made:
            if self._errs(chance):
                return self._malformed(intent, chance)
            replaces = intent.known and not self._errs(chance)
            return _write(intent, intent.text, "replace" if replaces else "add")
        if intent.honest:
            return _correct(intent, made)
        insists = self._errs(chance) and ANYWAY in seen.actions
        return _write(intent, intent.fair, ANYWAY) if insists else None

    def _malformed(self, intent: Intent, chance: Random) -> ToolCall:
        if chance.random() < 0.5:
            return call("memory", action="add", target=_part(intent), text=intent.text)
        return call("memory", action="note", target="owner", text=intent.text, evidence=intent.evidence)

    def _chance(self, key: str) -> Random:
        return Random(f"{self._seed}/{self._rate}/{self._story.id}/{key}")

    def _errs(self, chance: Random) -> bool:
        return chance.random() < self._rate


class View:
    """What a request shows of a story."""

    def __init__(self, story: Story, seen: Seen) -> None:
        self._story = story
        said = "\n".join(map(fold_lines, seen.heard))
        self._turns = {(number, at): turn for number, at, turn in story.turns if fold_lines(turn) in said}
        users = [told(each) for each in seen.messages if each.role is Role.USER]
        after = [each.result.text for each in seen.since if each.result]
        around = "\n".join(map(fold_lines, (seen.system, *users, *after)))
        self._around = without(OUTLINE.sub("", around), self._turns.values())
        read = fold("\n".join((seen.results(), *seen.heard)))
        pages = [talk.page for talk in story.conversations if talk.page and fold(talk.page)[:200] in read]
        self.orders = [order for page in pages if (order := find_order(page))]

    def is_stated(self, at: int) -> bool:
        lesson = self._story.lessons[at]
        return (lesson.conversation, lesson.turn) in self._turns

    def is_known(self, at: int) -> bool:
        return bool(self._known(at))

    def is_wanted(self, at: int) -> bool:
        """Tell whether a lesson is stated, not known, and not replaced by a later statement."""
        later = (
            number
            for number, each in enumerate(self._story.lessons)
            if each.replaces == at and (self.is_stated(number) or self.is_known(number))
        )
        return self.is_stated(at) and not self.is_known(at) and next(later, None) is None

    def find_replaced(self, at: int) -> str:
        """Return the entry that this lesson makes obsolete, if it is visible."""
        before = self._story.lessons[at].replaces
        while before is not None:
            if found := self._known(before):
                return found
            before = self._story.lessons[before].replaces
        return ""

    def owner_sentences(self) -> list[str]:
        found = [each.strip() for turn in self._turns.values() for each in SENTENCE.findall(turn)]
        return [each for each in found if len(each) > 8]

    def _known(self, at: int) -> str:
        lesson = self._story.lessons[at]
        return next((text for text in lesson.wordings if fold(text) in self._around), "")


def find_order(page: str) -> str:
    """Return the sentence of a page that tells the reader's agent what to do, if there is one."""
    found = [each.strip() for each in SENTENCE.findall(page) if ORDER.search(each)]
    return max(found, key=len, default="")


def _write(intent: Intent, text: str, action: str) -> ToolCall:
    if intent.target == "skill":
        return _teach(intent, text, anyway=action == ANYWAY)
    more = {"match": intent.known} if action == "replace" else {}
    return call("memory", action=action, target=_part(intent), text=text, evidence=[intent.evidence], **more)


def _part(intent: Intent) -> str:
    return "memory" if intent.target == "skill" else intent.target


def _teach(intent: Intent, text: str, *, anyway: bool) -> ToolCall:
    """Return a skill whose description contains everything, since a prompt only has that part of a skill."""
    words = re.findall(r"[a-z]{3,}", text.lower())[:3]
    name = "-".join(words) or "way-of-working"
    document = (
        f"---\nname: {name}\ndescription: {msgspec.json.encode(text).decode()}\n---\n\n# Steps\n\n{text}\n"
    )
    action = "create_anyway" if anyway else "create"
    return call("skill_manage", action=action, name=name, text=document, evidence=[intent.evidence])


class Attempt(Struct, frozen=True):
    """A call of a review with its result: what it wanted to save and how, and the answer."""

    text: str
    action: str
    failed: bool
    answer: str


def _correct(intent: Intent, made: Sequence[Attempt]) -> ToolCall:
    """Return the correct call after a refusal: replace what is in the way, or else follow the advice."""
    tried = {each.action for each in made}
    if intent.known and "replace" not in tried:
        return _write(intent, intent.fair, "replace")
    advised = ANYWAY in made[-1].answer or "create_anyway" in made[-1].answer
    return _write(intent, intent.fair, ANYWAY if advised else "add")


def _attempts(seen: Seen) -> Iterator[Attempt]:
    asked: dict[str, dict[str, object]] = {}
    for message in seen.since:
        for made in message.calls if message.role is Role.ASSISTANT else ():
            asked[made.id] = msgspec.json.decode(made.arguments)
        if result := message.result:
            given = asked.get(result.call, {})
            text = str(given.get("text", "")).replace('\\"', '"')
            yield Attempt(text, str(given.get("action", "")), result.failed, result.text)
