"""Report what lessons cost and saved: as rows for a screen, and as data for programs."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from msgspec import Struct

from hone.app import Hone
from hone.core.measured import FigureDifference, StudyResult
from hone.core.secrets import redact
from hone.core.visible import one_line
from hone.features.payback.bill import FREE, Bill, Cost
from hone.features.payback.lessons import BilledLesson, LessonState
from hone.features.payback.matching import FEWEST, Comparison
from hone.features.payback.money import PICO, round_together, to_dollars
from hone.features.payback.reading import Account
from hone.knowledge.skills.facts import content_digest

TENTH = PICO // 10_000
"""A hundredth of a cent, which is what the table shows."""
WEAKER = "Before and after, which is weaker evidence than an experiment: the work, the model and other"
WEAKER_TOO = "lessons changed meanwhile, too."


class LessonRow(Struct, frozen=True):
    """A lesson with its cost; `used` is the number of conversations that used it, None if unknown."""

    lesson: BilledLesson
    cost: Cost
    measured: tuple[StudyResult, ...] = ()
    used: int | None = None

    @property
    def verdict(self) -> str:
        """Return what the latest study says about the lesson as it is now; empty without one."""
        return next((each.verdict for each in self.measured if each.current), "")


async def list_rows(hone: Hone, account: Account) -> list[LessonRow]:
    """Return the lessons of a bill and those in use, most expensive first."""
    costs = account.bill.lessons
    wanted = [
        each
        for each in account.lessons.known.values()
        if each.key in costs or each.state is not LessonState.GONE
    ]
    used = await read_used(hone, account)
    rows = [await make_row(hone, account, each, used) for each in wanted]
    return sorted(rows, key=lambda row: (-row.cost.total, -row.cost.unpriced, row.lesson.change))


async def make_row(
    hone: Hone, account: Account, lesson: BilledLesson, used: Mapping[str, int] | None = None
) -> LessonRow:
    """Return a lesson with its cost, and what was measured about it."""
    if lesson.is_skill:
        counts = (await hone.library.usage_counts()).get(lesson.name)
        times: int | None = counts.uses if counts else 0
    else:
        times = (await read_used(hone, account) if used is None else used).get(lesson.digest)
    cost = account.bill.lessons.get(lesson.key, FREE)
    return LessonRow(lesson, cost, tuple(await measure(hone, lesson)), times)


async def read_used(hone: Hone, account: Account) -> Mapping[str, int]:
    """Return in how many conversations entries were used, by digest, if a feature or plugin knows."""
    for part in hone.parts("attribution"):
        if attribution := part.attribution():
            return await attribution.used(account.since)
    return {}


async def measure(hone: Hone, lesson: BilledLesson) -> list[StudyResult]:
    """Return what experiments found about a lesson."""
    if lesson.state is LessonState.GONE:
        return []
    kind, name, digest = "entry", str(lesson.target), lesson.digest
    if lesson.is_skill:
        kind, name = "skill", lesson.name
        digest = content_digest(await hone.library.files(name)) if lesson.state is LessonState.IN_USE else ""
    return [each for part in hone.parts("measured") for each in await part.measured(kind, name, digest)]


def dollars(units: int) -> str:
    """Return an amount in the smallest unit that the table shows."""
    return f"${units / 10_000:,.4f}" if units < 10_000 else f"${units / 10_000:,.2f}"


def summarize(bill: Bill, days: int) -> Iterator[str]:
    """Describe what was spent, and that its parts are all of it."""
    parts = (bill.conversations, bill.learned.prompt + bill.rest.prompt)
    learning = bill.learned.review + bill.learned.curator + bill.rest.review + bill.rest.curator
    said = ("conversations", "lessons in their prompts", "learning")
    shown = round_together((*parts, learning), TENTH)
    told = ", ".join(f"{name} ${each / 10_000:,.4f}" for name, each in zip(said, shown, strict=True))
    calls = f"{bill.calls:,} model call{'' if bill.calls == 1 else 's'}"
    yield f"{calls} in {days} days: ${sum(shown) / 10_000:,.4f}. Of this {told}."
    if bill.unpriced:
        yield (
            f"The price of {bill.unpriced:,} of them is unknown, and they are in no sum here. Set it under "
            "[prices] in hone.toml."
        )


TITLES = ("change", "state", "learning", "in prompts", "total", "used", "measured", "lesson")
RIGHT = frozenset({"change", "learning", "in prompts", "total", "used"})


def cells(rows: Sequence[LessonRow], bill: Bill) -> list[tuple[str, ...]]:
    """Return the table: lessons, the unassigned part, and the sum. Each column adds up as shown."""
    costs = [*(row.cost for row in rows), *bill.unassigned.values()]
    learning = round_together([each.review + each.curator for each in costs], TENTH)
    prompts = round_together([each.prompt for each in costs], TENTH)
    names = [_name(row) for row in rows] + [("", "unassigned", "", "", name) for name in bill.unassigned]
    made = [
        (id, state, *_amounts(cost, one, two), used, verdict, text)
        for (id, state, used, verdict, text), cost, one, two in zip(
            names, costs, learning, prompts, strict=True
        )
    ]
    whole = (sum(learning), sum(prompts))
    return [*made, ("", "sum", *(f"${each / 10_000:,.4f}" for each in (*whole, sum(whole))), "", "", "")]


def _amounts(cost: Cost, learning: int, prompts: int) -> tuple[str, str, str]:
    unknown = " + unknown" if cost.unpriced else ""
    one, two, both = (f"${each / 10_000:,.4f}" for each in (learning, prompts, learning + prompts))
    return one, two, f"{both}{unknown}"


def _name(row: LessonRow) -> tuple[str, str, str, str, str]:
    lesson = row.lesson
    text = f"skill {lesson.name}" if lesson.is_skill else lesson.text
    used = "" if row.used is None else f"{row.used:,}"
    return str(lesson.latest), lesson.state, used, row.verdict, one_line(text, 300)


def describe(row: LessonRow, comparison: Comparison, days: int) -> Iterator[str]:
    """Describe one lesson completely."""
    lesson, cost = row.lesson, row.cost
    what = f"skill {lesson.name}" if lesson.is_skill else f"{lesson.name}: {one_line(lesson.text, 500)}"
    yield f"Lesson {lesson.latest} ({lesson.state}), first from change {lesson.change}: {what}"
    review, curator, cached, fresh = round_together(
        (cost.review, cost.curator, cost.cached, cost.fresh), TENTH
    )
    yield f"cost in {days} days  ${sum((review, curator, cached, fresh)) / 10_000:,.4f}"
    yield f"  its part of reviews      {dollars(review)}"
    yield f"  its part of the curator  {dollars(curator)}"
    yield f"  in prompts, cached       {dollars(cached)}  {cost.cached_tokens:,} tokens"
    yield f"  in prompts, in full      {dollars(fresh)}  {cost.fresh_tokens:,} tokens"
    if cost.unpriced:
        yield f"  of unknown price         {cost.unpriced:,} tokens"
    if row.used is not None:
        yield f"used in {row.used:,} conversation{'' if row.used == 1 else 's'}"
    yield from _experiments(row.measured)
    yield f"{WEAKER}\n{WEAKER_TOO}"
    if not comparison.differences:
        yield f"  too few: {comparison.pairs} matched pairs of conversations, {FEWEST} are needed"
        return
    yield f"  {comparison.pairs} matched pairs of conversations"
    yield from (f"  {describe_difference(each)}" for each in comparison.differences)


def _experiments(measured: Sequence[StudyResult]) -> Iterator[str]:
    if not measured:
        yield "No experiment has measured it. Record a task: hone experiment --help"
    for each in measured:
        other = "" if each.current else ", on an earlier version"
        yield f"Experiment {each.task}: {each.verdict}, {each.pairs} pairs, {one_line(each.model, 80)}{other}"
        yield from (f"  {describe_difference(one)}" for one in each.differences)


def describe_difference(each: FigureDifference) -> str:
    """Describe a difference with its interval."""
    low, mean, high = (_signed(value) for value in (each.low, each.mean, each.high))
    return f"{each.name} {mean} ({low} to {high})"


def _signed(value: float) -> str:
    text = f"{abs(value):,.0f}" if abs(value) >= 100 else f"{abs(value):.2f}"
    return f"{'+' if value > 0 else '−' if value < 0 else ''}{text}"


def bill_data(account: Account, rows: Sequence[LessonRow]) -> dict[str, Any]:
    """Return the bill for programs. Amounts are exact decimals of US dollars, as text."""
    bill = account.bill
    return {
        "since": account.since.isoformat(),
        "until": account.until.isoformat(),
        "calls": bill.calls,
        "unpriced_calls": bill.unpriced,
        "total": amount(bill.total),
        "conversations": amount(bill.conversations),
        "lessons": [row_data(row) for row in rows],
        "unassigned": [{"what": name, **cost_data(cost)} for name, cost in bill.unassigned.items()],
    }


def row_data(row: LessonRow) -> dict[str, Any]:
    lesson = row.lesson
    return {
        "change": lesson.latest,
        "first": lesson.change,
        "at": lesson.at.isoformat(),
        "by": lesson.actor,
        "target": lesson.target,
        "text": redact(lesson.text),
        "state": lesson.state,
        "owners": lesson.owners,
        "used": row.used,
        "verdict": row.verdict,
        **cost_data(row.cost),
    }


def cost_data(cost: Cost) -> dict[str, Any]:
    return {
        "review": amount(cost.review),
        "curator": amount(cost.curator),
        "prompt_cached": amount(cost.cached),
        "prompt_fresh": amount(cost.fresh),
        "total": amount(cost.total),
        "cached_tokens": cost.cached_tokens,
        "fresh_tokens": cost.fresh_tokens,
        "unpriced_tokens": cost.unpriced,
    }


def amount(pico: int) -> str:
    return f"{to_dollars(pico):f}"


def detail_data(row: LessonRow, comparison: Comparison) -> dict[str, Any]:
    """Return one lesson with what it saved. `before_and_after` is the weaker evidence."""
    return {
        **row_data(row),
        "experiments": [
            {
                "task": each.task,
                "model": each.model,
                "verdict": each.verdict,
                "pairs": each.pairs,
                "current": each.current,
                "differences": _differences(each.differences),
            }
            for each in row.measured
        ],
        "before_and_after": {
            "evidence": "weaker",
            "pairs": comparison.pairs,
            "needed": FEWEST,
            "differences": _differences(comparison.differences),
        },
    }


def _differences(each: Sequence[FigureDifference]) -> list[dict[str, Any]]:
    return [{"name": one.name, "mean": one.mean, "low": one.low, "high": one.high} for one in each]
