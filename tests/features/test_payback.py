"""K1: what each lesson cost and saved. The parts add up to the bill, and an unknown price is not nothing."""

import json
from collections.abc import Sequence
from datetime import timedelta
from decimal import Decimal
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from hone import Hone
from hone.core.clock import ManualClock
from hone.core.ids import SessionId
from hone.core.ledger import MEMORY, Actor, Author, Target, skill
from hone.core.messages import assistant, digest
from hone.core.model import Usage
from hone.core.overview import SpentCall
from hone.core.ports import Spending
from hone.core.skill import SkillOrigin, to_stems
from hone.core.turn import Origin
from hone.core.value import replace
from hone.features.experiments.store import Studies
from hone.features.experiments.values import Arm, Check, Lesson, LessonKind, Run, Study, Task
from hone.features.payback import report
from hone.features.payback.bill import (
    FAILED,
    NOTHING_SAVED,
    UNKNOWN,
    BillFacts,
    Cost,
    LessonKey,
    Prompt,
    ViewedSkill,
    make_bill,
)
from hone.features.payback.lessons import LessonState, key_of
from hone.features.payback.matching import FEWEST, PastTalk, TalkOutcome, compare, match, summarize
from hone.features.payback.money import PICO, divide, round_together, to_dollars, to_pico
from hone.features.payback.part import PaybackPart
from hone.features.payback.reading import read_account
from hone.features.payback.unused import MANY, REASON, find_unused, is_used, propose
from hone.files.documents import FileDocuments
from hone.knowledge.journal import Add
from hone.knowledge.keeper import OWNER
from hone.knowledge.skills.folder import Create
from hone.models.scripted import call, rounds
from hone.models.wrappers import Price
from tests.cli.driving import environment
from tests.cli.driving import hone as command
from tests.features.month import DAY, NOTES, PRICE, Billed, live, settings
from tests.given import NOON
from tests.tier import Figures, Tier
from tests.web.rig import running
from tests.web.test_api import chatted

KEYS: Sequence[LessonKey] = [(MEMORY, "- a"), (Target("user"), "- b"), (skill("c"), "")]
SESSIONS = [SessionId(name) for name in ("talk", "other", "review", "failed", "run")]
USAGES = st.builds(
    lambda input, cached, written, output, cost: Usage(
        input, min(cached, input), min(written, input - min(cached, input)), output, cost
    ),
    *(st.integers(0, 50_000) for _ in range(4)),
    st.none() | st.floats(0, 10).map(lambda each: round(each, 9)),
)
CALLS = st.builds(
    lambda session, minute, model, origin, usage, prefix: SpentCall(
        session, Spending(NOON + timedelta(minutes=minute), model, origin, usage), prefix
    ),
    st.sampled_from(SESSIONS),
    st.integers(0, 999),
    st.sampled_from(["known", "unknown"]),
    st.sampled_from(Origin),
    USAGES,
    st.sampled_from(["", "one", "two"]),
)
PROMPTS = st.builds(
    lambda held, more: Prompt(sum(held.values()) + more + 1, held),
    st.dictionaries(st.sampled_from([*KEYS, (MEMORY, "- forgotten")]), st.integers(1, 3_000)),
    st.integers(0, 20_000),
)
FACTS = st.builds(
    lambda calls, one, two, views: BillFacts(
        calls,
        {"one": one, "two": two},
        {"known": PRICE, "unknown": None},
        {SESSIONS[2]: KEYS[:2], SESSIONS[0]: ()},
        {SESSIONS[4]: KEYS[2:]},
        {SESSIONS[0]: views},
        frozenset(KEYS),
    ),
    st.lists(CALLS, max_size=30),
    PROMPTS,
    PROMPTS,
    st.lists(
        st.builds(
            ViewedSkill, st.just(KEYS[2]), st.integers(1, 9_000), st.just(NOON + timedelta(minutes=300))
        ),
        max_size=2,
    ),
)


@given(st.integers(0, 10**15), st.lists(st.integers(0, 10**6), min_size=1, max_size=9))
def test_an_amount_is_divided_without_loss(amount: int, weights: list[int]) -> None:
    parts = divide(amount, weights)
    assert sum(parts) == amount
    if any(weights):
        exact = [amount * each / sum(weights) for each in weights]
        assert all(abs(part - one) < 2 for part, one in zip(parts, exact, strict=True))
    shown = round_together(parts, 100)
    assert sum(shown) == (amount + 50) // 100
    assert all(part // 100 <= one <= part // 100 + 1 for part, one in zip(parts, shown, strict=True))
    assert to_pico(float(to_dollars(amount % 10**9))) == amount % 10**9


@given(FACTS)
def test_the_parts_of_a_bill_are_the_bill(facts: BillFacts) -> None:
    bill = make_bill(facts)
    known = [each.spending for each in facts.calls if each.spending.usage.cost is not None]
    total = sum(Decimal(repr(each.usage.cost)) for each in known)
    assert to_dollars(bill.total) == total
    assert bill.conversations >= 0
    assert bill.conversations + bill.learned.total + bill.rest.total == bill.total
    learning = sum(
        Decimal(repr(each.usage.cost)) for each in known if each.origin in (Origin.REVIEW, Origin.CURATOR)
    )
    both = bill.learned + bill.rest
    assert to_dollars(both.review + both.curator) == learning
    assert all(getattr(cost, name) >= 0 for cost in bill.lessons.values() for name in Cost.__struct_fields__)
    assert bill.unpriced == len(facts.calls) - len(known)
    shown = report.cells((), replace(bill, unassigned={**bill.unassigned, "x": bill.learned}))
    *rows, whole = [
        [Decimal(cell.split(" ")[0].strip("$").replace(",", "")) for cell in row[2:5]] for row in shown
    ]
    assert [sum(column) for column in zip(*rows, strict=True)] == whole


def test_a_lesson_costs_its_bytes_at_the_price_of_the_cache_and_in_full() -> None:
    """A prompt of 4,000 bytes is 1,000 tokens, a tenth of which is the lesson."""
    price = Price(2.0, 10.0, 0.2, 2.0)
    prompt = Prompt(4_000, {KEYS[0]: 400})

    def bill(usage: Usage, model: str = "m") -> Cost:
        spent = Spending(NOON, model, Origin.USER, usage)
        facts = BillFacts(
            [SpentCall(SESSIONS[0], spent, "p")], {"p": prompt}, {"m": price}, {}, {}, known=frozenset(KEYS)
        )
        return make_bill(facts).lessons[KEYS[0]]

    first, later = Usage(1_500, 0, 1_500, 100), Usage(1_700, 1_500, 200, 100)
    cost = bill(replace(first, cost=price.of(first)))
    assert (cost.fresh_tokens, cost.cached_tokens, to_dollars(cost.fresh)) == (100, 0, Decimal("0.0002"))
    cost = bill(replace(later, cost=price.of(later)))
    assert (cost.fresh_tokens, cost.cached_tokens, to_dollars(cost.cached)) == (0, 100, Decimal("0.00002"))
    # A provider that charged twice what is published charged it for the lesson, too.
    cost = bill(replace(later, cost=2 * price.of(later)))
    assert to_dollars(cost.cached) == Decimal("0.00004")
    for unknown in (bill(later), bill(replace(later, cost=1.0), "other")):
        assert (unknown.total, unknown.unpriced) == (0, 100)


async def test_a_month_of_use_adds_up_to_the_cent(
    home: Path, tmp_path: Path, tier: Tier, figures: Figures
) -> None:
    """Sum over lessons + what is unassigned = learning + lessons in prompts; with conversations, the bill."""
    off, tried = [], 0
    for draw in tier.draws(short=2, full=40):
        own, folder = tmp_path / f"h{draw.index}", tmp_path / f"w{draw.index}"
        own.mkdir()
        folder.mkdir()
        hone, _ = await live(own, folder, draw.random, 8 if not tier.long else 30)
        account = await read_account(hone, 60)
        every = await hone.sessions.total_spending(account.since, account.until, list(Origin))
        learning = await hone.sessions.total_spending(
            account.since, account.until, [Origin.REVIEW, Origin.CURATOR]
        )
        told = report.bill_data(account, await report.list_rows(hone, account))
        await hone.close(wait=False)
        parts = [*told["lessons"], *told["unassigned"]]
        spent = sum((Decimal(each["review"]) + Decimal(each["curator"]) for each in parts), Decimal(0))
        prompts = sum(
            (Decimal(each["prompt_cached"]) + Decimal(each["prompt_fresh"]) for each in parts), Decimal(0)
        )
        whole = Decimal(told["conversations"]) + sum((Decimal(each["total"]) for each in parts), Decimal(0))
        tried += account.bill.calls
        cent = Decimal("0.005")
        right = (
            abs(whole - Decimal(repr(every.cost))) < cent
            and abs(spent - Decimal(repr(learning.cost))) < cent
            and whole == Decimal(told["total"])
            and prompts > 0
            and account.bill.unpriced > 0
        )
        if not right:
            off.append(draw.index)
    figures.tally(tried, lost=len(off), note="model calls of scripted months, each month added up", at=off)
    assert not off


async def test_reviews_skills_and_gone_lessons_have_their_part(home: Path, tmp_path: Path) -> None:
    text = NOTES.format(name="harvest-notes")
    model = Billed(rounds(assistant(call("skill_view", name="harvest-notes")), "Read."))
    async with Hone(home=home, model=model, folder=tmp_path, settings=settings(), learning="off") as hone:
        await hone.keeper.note([(MEMORY, Add("The build needs the flag --fast."))], OWNER)
        await hone.keeper.edit_skill("harvest-notes", Create(text, SkillOrigin.USER), OWNER)
        session = await hone.session()
        await session.send("Write them.")
        [gone] = await hone.keeper.note([(MEMORY, Add("Soon undone."))], OWNER)
        await hone.keeper.undo(gone.id)
        account = await read_account(hone)
        lessons = {each.text: each for each in account.lessons.known.values()}
        note, written = lessons["The build needs the flag --fast."], lessons["harvest-notes"]
        assert (note.state, lessons["Soon undone."].state) == (LessonState.IN_USE, LessonState.GONE)
        costs = account.bill.lessons
        listed = len(f"- {key_of(MEMORY, note.text)[1]}")
        assert 0 < costs[note.key].fresh_tokens + costs[note.key].cached_tokens <= 2 * listed // 4
        # Two calls have its line in the list, the second one its text, too.
        assert costs[written.key].total > 2 * costs[note.key].total
        assert account.lessons.find("harvest-notes") == written
        assert account.lessons.find("--fast").key == note.key == account.lessons.find(str(note.change)).key
    ended = await command("payback", "--days", "30", "--json", env=environment(home), folder=tmp_path)
    told = json.loads(ended.out)
    assert (ended.code, told["total"]) == (0, report.amount(account.bill.total))
    ended = await command("payback", "--fast", env=environment(home), folder=tmp_path)
    assert ended.code == 2
    ended = await command("payback", "the flag", env=environment(home), folder=tmp_path)
    assert "too few: 0 matched pairs" in ended.out
    assert "of unknown price" in ended.out  # this process has no price for the model
    ended = await command("payback", "nowhere", env=environment(home), folder=tmp_path)
    assert (ended.code, "hone payback lists them" in ended.err) == (1, True)


def test_what_no_lesson_came_of_is_named() -> None:
    def spend(session: SessionId, prefix: str = "", origin: Origin = Origin.REVIEW) -> SpentCall:
        return SpentCall(session, Spending(NOON, "m", origin, Usage(4_000, 0, 0, 10, 1.0)), prefix)

    prompt = Prompt(4_000, {(MEMORY, "- erased"): 400})
    facts = BillFacts(
        [spend(SESSIONS[0]), spend(SESSIONS[3]), spend(SESSIONS[1], "p", Origin.USER)],
        {"p": prompt},
        {"m": Price(1.0, 1.0, 1.0, 1.0)},
        {SESSIONS[0]: ()},
        {},
    )
    bill = make_bill(facts)
    assert set(bill.unassigned) == {NOTHING_SAVED, FAILED, UNKNOWN}
    assert bill.unassigned[FAILED].review == PICO
    assert bill.lessons == {}


def test_conversations_are_matched_by_their_first_words_and_folder() -> None:
    def talk(name: str, words: str, day: int, folder: str = "/w") -> PastTalk:
        return PastTalk(SessionId(name), folder, NOON + timedelta(days=day), frozenset(words.split()))

    before = [talk("a", "write the release notes", 0), talk("b", "book a night train", 1)]
    after = [
        talk("c", "book the night train now", 5),
        talk("d", "write release notes", 6),
        talk("e", "write the release notes", 7, "/elsewhere"),
        talk("f", "something else entirely", 8),
    ]
    assert match(before, after) == [("a", "d"), ("b", "c")]


@given(st.lists(st.tuples(*[st.integers(0, 50)] * 8), max_size=12))
def test_too_few_pairs_say_nothing_and_an_interval_holds_its_mean(rows: list[tuple[int, ...]]) -> None:
    found = summarize([(TalkOutcome(*row[:4]), TalkOutcome(*row[4:])) for row in rows])
    assert found.pairs == len(rows)
    assert bool(found.differences) == (len(rows) >= FEWEST)
    for each, at in zip(found.differences, range(4), strict=False):
        assert each.low <= each.mean <= each.high
        assert abs(each.mean - sum(row[4 + at] - row[at] for row in rows) / len(rows)) < 1e-9


async def test_conversations_before_and_after_are_compared(home: Path, tmp_path: Path) -> None:
    """Without the entry the model fails first; with it, it does not."""
    clock = ManualClock(NOON)
    model = Billed(rounds("Done."))
    async with Hone(
        home=home, model=model, folder=tmp_path, settings=settings(), clock=clock, learning="off"
    ) as hone:
        for day in range(12):
            if day == 6:
                await hone.keeper.note([(MEMORY, Add("Build with --fast."))], OWNER)
            session = await hone.session()
            await session.send("Build the project and say done.")
            if day < 6:
                await session.send("No, that is wrong. Build it with --fast.")
            clock.advance(DAY)
        account = await read_account(hone, 60)
        found = await compare(hone, account, account.lessons.find("--fast"))
    assert found.pairs == 6
    named = {each.name: each for each in found.differences}
    assert (named["model calls"].mean, named["model calls"].low) == (-1, -1)
    assert named["corrections by you"].mean == -1
    assert named["tokens"].high < 0


async def test_what_experiments_found_and_the_page_have_it(home: Path, tmp_path: Path) -> None:
    async with running(home, tmp_path) as visit:
        hone = visit.state.hone
        await hone.keeper.note([(MEMORY, Add("Say done."))], OWNER)
        studies = Studies(FileDocuments(home), home)
        studies.add(Task("tidy", SessionId("s1"), NOON, "/work", "Tidy up", Check(text="done")))
        lesson = Lesson(LessonKind.ENTRY, MEMORY, digest(b"Say done."))
        study = studies.study(Study("tidy", lesson, "scripted/echo", NOON))
        run = Run(1, Arm.WITH, True, 3, 0, 0, 1, 0.5, 2, 900, 1.25)
        for pair in range(1, 21):
            study = studies.append(study, replace(run, pair=pair))
            study = studies.append(
                study, replace(run, pair=pair, arm=Arm.WITHOUT, success=pair % 4 == 0, tokens=1_900)
            )
        await chatted(visit, "hello")
        bill = await visit.get("/api/payback")
        [row] = bill["lessons"]
        assert (row["text"], row["verdict"], row["state"]) == ("Say done.", "helps", "in use")
        assert row["unpriced_tokens"] > 0 < bill["unpriced_calls"]
        one = await visit.get(f"/api/payback/{row['change']}")
        [measured] = one["experiments"]
        tokens = next(each for each in measured["differences"] if each["name"] == "tokens")
        assert tokens == {"name": "tokens", "mean": -1_000, "low": -1_000, "high": -1_000}
        assert one["before_and_after"]["differences"] == []
        assert (await visit.client.get("/api/payback/99")).status_code == 404


async def test_entries_that_nobody_needed_are_proposed_for_removal_once(home: Path, tmp_path: Path) -> None:
    clock = ManualClock(NOON)
    agent = Author(Actor.CLIENT, platform="mcp/other")
    async with Hone(
        home=home, model=Billed(rounds("The harvest report is done.")), folder=tmp_path, clock=clock
    ) as hone:
        for text in ("Telescope lenses need polishing.", "The harvest report has totals."):
            [waits] = await hone.keeper.note([(MEMORY, Add(text))], agent)
            await hone.keeper.approve(waits.id)
        await hone.keeper.note([(MEMORY, Add("Owls live in the greenhouse."))], OWNER)
        assert await propose(hone) == ()
        for _ in range(MANY):
            session = await hone.session()
            await session.send("Write the report.")
            clock.advance(2 * DAY)
        [found] = await find_unused(hone)
        assert (found.lesson.text, found.talks) == ("Telescope lenses need polishing.", MANY)
        await hone.part(PaybackPart).tend(lambda _: None)
        [waiting] = await hone.ledger.pending()
        assert (waiting.change.kind, waiting.change.author.reason) == ("remove", REASON)
        assert await propose(hone) == ()  # one waits
        await hone.keeper.reject(waiting.id)
        assert await propose(hone) == ()  # it was answered
        assert "Telescope" in await hone.keeper.text(MEMORY)


def test_an_entry_is_used_where_a_third_of_its_words_came_up() -> None:
    entry = "Telescope lenses need polishing every winter."
    for said, used in (("polishing a telescope", True), ("a winter coat", False), ("", False)):
        assert is_used(entry, frozenset(to_stems(said))) is used, said
    assert is_used("a b c", frozenset())
