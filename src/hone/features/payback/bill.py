"""Divide the cost of model calls among the lessons. Pure functions; `reading` provides the facts.

A lesson costs its part of the review that wrote it, its part of the curator's runs, and its bytes in every
later request. A request reads its first tokens from the provider's cache or pays for them in full; the cost
of the call is divided by these prices, so that the sum is right even if a price has changed since, or the
provider reported it.
"""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime

from msgspec import Struct

from hone.core.ids import SessionId
from hone.core.ledger import Target
from hone.core.model import Usage
from hone.core.overview import SpentCall
from hone.core.turn import Origin
from hone.features.payback.money import divide, to_pico
from hone.models.wrappers import Price

LessonKey = tuple[Target, str]
"""The target, and the entry as a prompt has it; a skill has no text."""
LEARNING = (Origin.REVIEW, Origin.CURATOR)
BYTES = 4
"""Bytes of a token, as everywhere in Hone."""
SCALE = 10**6
NOTHING_SAVED = "reviews that saved nothing"
ONLY_REMOVED = "reviews that only removed something"
FAILED = "tries of reviews that failed"
NOTHING_CURATED = "curator runs that changed nothing, and trials of the gate"
UNKNOWN = "entries in prompts that the log does not know"


class Cost(Struct, frozen=True):
    """In picodollars: the cost of learning, and of prompts, read from the cache (`cached`) or paid in full
    (`fresh`), with their tokens. `unpriced` are tokens whose price is unknown."""

    review: int = 0
    curator: int = 0
    cached: int = 0
    fresh: int = 0
    cached_tokens: int = 0
    fresh_tokens: int = 0
    unpriced: int = 0

    @property
    def prompt(self) -> int:
        return self.cached + self.fresh

    @property
    def total(self) -> int:
        return self.review + self.curator + self.prompt

    def __add__(self, other: "Cost") -> "Cost":
        return Cost(*(getattr(self, name) + getattr(other, name) for name in FIELDS))

    def divide(self, weights: Sequence[int]) -> list["Cost"]:
        """Return the parts. They add up to this, field by field."""
        parts = zip(*(divide(getattr(self, name), weights) for name in FIELDS), strict=True)
        return [Cost(*part) for part in parts]


FIELDS = Cost.__struct_fields__
FREE = Cost()


class Prompt(Struct, frozen=True):
    """The lessons in a prompt: the bytes of each, and of the whole prompt."""

    size: int
    held: Mapping[LessonKey, int]


class ViewedSkill(Struct, frozen=True):
    """The text of a skill in a conversation, in each call after a moment."""

    key: LessonKey
    size: int
    at: datetime


class BillFacts(Struct, frozen=True):
    """The basis of a bill. `reviews` and `runs` are the lessons from each session of a review or the curator;
    None for a review that only removed something. `views` are by session."""

    calls: Sequence[SpentCall]
    prompts: Mapping[str, Prompt]
    prices: Mapping[str, Price | None]
    reviews: Mapping[SessionId, Sequence[LessonKey] | None]
    runs: Mapping[SessionId, Sequence[LessonKey]]
    views: Mapping[SessionId, Sequence[ViewedSkill]] = {}
    known: frozenset[LessonKey] = frozenset()


class Bill(Struct, frozen=True):
    """`total` is the cost of all calls with a known price; `unpriced` counts the others. `total` is the sum
    of `conversations`, of all `lessons` and of all that is `unassigned`."""

    total: int
    conversations: int
    lessons: Mapping[LessonKey, Cost]
    unassigned: Mapping[str, Cost]
    calls: int = 0
    unpriced: int = 0

    @property
    def learned(self) -> Cost:
        return sum(self.lessons.values(), FREE)

    @property
    def rest(self) -> Cost:
        return sum(self.unassigned.values(), FREE)


def make_bill(facts: BillFacts) -> Bill:
    """Divide what the calls cost."""
    owed: dict[LessonKey | str, Cost] = {}

    def charge(cost: Cost, keys: Sequence[LessonKey | str], weights: Sequence[int] = ()) -> None:
        for key, part in zip(keys, cost.divide(weights or [1] * len(keys)), strict=True):
            owed[key] = owed.get(key, FREE) + part

    for session, cost in _learning(facts.calls).items():
        charge(cost, _bought(facts, session, curator=bool(cost.curator)))
    for prompt, cost in _prompted(facts).values():
        known = [key if key in facts.known else UNKNOWN for key in prompt.held]
        charge(cost, known, list(prompt.held.values()))
    for cost, views in _viewed(facts):
        charge(cost, [each.key for each in views], [each.size for each in views])
    total = sum(_paid(each.spending.usage) for each in facts.calls)
    parts = sum(cost.total for cost in owed.values())
    return Bill(
        total,
        total - parts,
        {key: cost for key, cost in owed.items() if not isinstance(key, str)},
        {key: cost for key, cost in owed.items() if isinstance(key, str)},
        len(facts.calls),
        sum(each.spending.usage.cost is None for each in facts.calls),
    )


def _paid(usage: Usage) -> int:
    return 0 if usage.cost is None else to_pico(usage.cost)


def _learning(calls: Iterable[SpentCall]) -> Mapping[SessionId, Cost]:
    """Return what each review and each run of the curator cost."""
    found: dict[SessionId, Cost] = {}
    for call in calls:
        usage, origin = call.spending.usage, call.spending.origin
        if origin in LEARNING:
            unknown = usage.input + usage.output if usage.cost is None else 0
            paid = _paid(usage)
            review, curator = (paid, 0) if origin is Origin.REVIEW else (0, paid)
            cost = Cost(review, curator, unpriced=unknown)
            found[call.session] = found.get(call.session, FREE) + cost
    return found


def _bought(facts: BillFacts, session: SessionId, *, curator: bool) -> Sequence[LessonKey | str]:
    if curator or session in facts.runs:
        return facts.runs.get(session) or (NOTHING_CURATED,)
    if session not in facts.reviews:
        return (FAILED,)
    keys = facts.reviews[session]
    return (ONLY_REMOVED,) if keys is None else keys or (NOTHING_SAVED,)


def _prompted(facts: BillFacts) -> Mapping[str, tuple[Prompt, Cost]]:
    """Return the cost of the lessons in each prompt, over all calls with it."""
    found: dict[str, tuple[Prompt, Cost]] = {}
    for call in facts.calls:
        prompt = facts.prompts.get(call.prefix)
        if prompt is None or not prompt.held or call.spending.origin in LEARNING:
            continue
        region, hit = _prefix_of(call, prompt)
        tokens = region * sum(prompt.held.values()) // prompt.size
        before = found.get(call.prefix, (prompt, FREE))[1]
        found[call.prefix] = prompt, before + _share(call, facts.prices, tokens, (region, hit))
    return found


def _viewed(facts: BillFacts) -> Iterable[tuple[Cost, Sequence[ViewedSkill]]]:
    """Yield the cost of skills' texts in each later call of their conversation."""
    for call in facts.calls:
        if call.session not in facts.views or call.spending.origin in LEARNING:
            continue
        views = [each for each in facts.views[call.session] if each.at <= call.spending.at]
        usage, prompt = call.spending.usage, facts.prompts.get(call.prefix)
        region, hit = _prefix_of(call, prompt) if prompt else (0, 0)
        rest = usage.input - region
        tokens = min(sum(each.size for each in views) // BYTES, rest)
        if views and tokens > 0:
            yield _share(call, facts.prices, tokens, (rest, usage.cached - hit)), views


def _prefix_of(call: SpentCall, prompt: Prompt) -> tuple[int, int]:
    """Return the tokens of the prompt in a call, and how many of them came from the cache, which keeps the
    beginning of a request."""
    usage = call.spending.usage
    region = min(prompt.size // BYTES, usage.input)
    return region, min(usage.cached, region)


def _share(call: SpentCall, prices: Mapping[str, Price | None], tokens: int, within: tuple[int, int]) -> Cost:
    """Return the cost of these tokens of a call that lie `within` the first ones, some of them cached."""
    region, hit = within
    usage, price = call.spending.usage, prices.get(call.spending.model)
    cached = tokens * hit // region if region else 0
    fresh = tokens - cached
    if usage.cost is None or price is None:
        return Cost(cached_tokens=cached, fresh_tokens=fresh, unpriced=tokens)
    input, output, read, write = (
        round(each * SCALE) for each in (price.input, price.output, price.cached, price.written)
    )
    new = usage.input - usage.cached
    full = usage.written * write + (new - usage.written) * input
    whole = full + usage.cached * read + usage.output * output
    paid = _paid(usage)
    if whole <= 0 or full < 0:
        return Cost(cached_tokens=cached, fresh_tokens=fresh)
    return Cost(
        cached=paid * cached * read // whole,
        fresh=paid * fresh * full // (new * whole) if new > 0 else 0,
        cached_tokens=cached,
        fresh_tokens=fresh,
    )
