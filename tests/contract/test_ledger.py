"""What every ledger promises, line by line of the port; then all of them against the reference."""

import asyncio
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import event, given
from hypothesis import strategies as st

from hone.core.errors import Conflict, Corrupt, Missing, StoreError
from hone.core.ids import SessionId
from hone.core.ledger import (
    MEMORY,
    USER,
    Actor,
    Author,
    Change,
    ChangeId,
    ChangeKind,
    ChangeQuery,
    ChangeState,
    Delta,
    Entry,
    Evidence,
    Ledger,
    PublishedFile,
    Target,
    project,
    skill,
)
from hone.core.messages import digest
from hone.core.trust import Trust
from hone.core.value import replace
from hone.stores.home import Stores
from hone.stores.ledger import SqliteLedger
from tests.contract.kinds import KINDS, all_kinds, kept, sqlite
from tests.tier import fewer

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
OWNER = Author(Actor.OWNER)
FILE = "MEMORY.md"
A, B, C, D = (digest(body) for body in (b"a", b"b", b"c", b"d"))
BODIES = {A: b"a", B: b"b", C: b"c", D: b"d"}


@pytest.fixture(params=KINDS)
def ledger(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Ledger]:
    with kept(request.param, tmp_path) as stores:
        yield stores.ledger


def change(
    before: str | None, after: str | None, target: Target = MEMORY, path: str = FILE, **more: Any
) -> Change:
    more = {"author": OWNER, "kind": ChangeKind.EDIT, **more}
    return Change(target, deltas=(Delta(path, before, after),), **more)


def waits(before: str | None, after: str | None, **more: Any) -> Change:
    return change(before, after, standing=ChangeState.PENDING, cause="rests on foreign text", **more)


def verdict(about: Entry, *deltas: Delta, kind: ChangeKind = ChangeKind.REJECT, **more: Any) -> Change:
    return Change(about.change.target, kind, deltas, OWNER, about=about.id, **more)


async def put(ledger: Ledger, *changes: Change) -> Sequence[Entry]:
    """All contents come along with the first record."""
    contents = {} if await ledger.latest() else BODIES
    return await ledger.record(changes, contents, NOW)


async def view(ledger: Ledger) -> tuple[Any, ...]:
    return (
        await ledger.entries(),
        await ledger.pending(),
        await ledger.latest(),
        await ledger.held_below(""),
    )


@pytest.mark.parametrize(
    "wrong",
    [
        pytest.param([change(None, C)], id="something is there"),
        pytest.param([change(A, C)], id="it is older"),
        pytest.param([change(B, C, path="USER.md")], id="nothing is there"),
        pytest.param([change(B, C, target=USER)], id="another target"),
        pytest.param([change(B, None), change(B, C)], id="the same call has taken it"),
        pytest.param([change(B, C), waits(None, D), change(B, D)], id="the last of three"),
        pytest.param(
            [Change(MEMORY, ChangeKind.EDIT, (Delta(FILE, B, C), Delta(FILE, B, D)), OWNER)], id="twice"
        ),
    ],
)
async def test_what_does_not_begin_with_what_is_held_is_a_conflict_and_nothing_is_recorded(
    ledger: Ledger, wrong: Sequence[Change]
) -> None:
    await put(ledger, change(None, A), change(A, B))
    before = await view(ledger)
    with pytest.raises(Conflict):
        await ledger.record([change(None, D, target=USER, path="kept back"), *wrong], {}, NOW)
    assert await view(ledger) == before
    assert [each.id for each in await put(ledger, change(B, C))] == [3]


@pytest.mark.parametrize("about", [0, -1, 2, 99, 1 << 80, -(1 << 80)])
async def test_a_change_about_none_that_is_there_is_a_conflict(ledger: Ledger, about: int) -> None:
    await put(ledger, change(None, A))
    for standing in ChangeState:
        with pytest.raises(Conflict):
            await put(ledger, replace(change(A, B), about=ChangeId(about), standing=standing))
    assert (await ledger.latest(), await ledger.held(MEMORY)) == (1, {FILE: A})


async def test_what_waits_is_settled_once_and_who_comes_late_is_told(ledger: Ledger) -> None:
    waiting, other = await put(ledger, waits(None, A), waits(None, B))
    (approved,) = await put(ledger, verdict(waiting, Delta(FILE, None, A), kind=ChangeKind.APPROVE))
    for late in (verdict(waiting), verdict(waiting, Delta(FILE, A, None), kind=ChangeKind.UNDO)):
        with pytest.raises(Conflict, match=f"settled by change {approved.id}"):
            await put(ledger, late)
    with pytest.raises(Conflict):
        await put(ledger, verdict(other), verdict(other))
    assert await ledger.held(MEMORY) == {FILE: A}
    assert [(each.id, each.settled) for each in await ledger.entries()] == [(3, None), (2, None), (1, 3)]
    assert await ledger.pending() == (other,)


@pytest.mark.parametrize(
    "wrong",
    [
        change(A, "0" * 64),
        change("0" * 64, A),
        waits(None, "0" * 64),
        waits("0" * 64, None),
        waits(None, ""),
        waits(None, "\udcff"),
    ],
)
async def test_a_digest_of_no_content_is_missing_and_nothing_is_recorded(
    ledger: Ledger, wrong: Change
) -> None:
    await put(ledger, change(None, A))
    before = await view(ledger)
    with pytest.raises(Missing):
        await ledger.record([change(A, B), wrong], {digest(b"new"): b"new"}, NOW)
    assert await view(ledger) == before
    with pytest.raises(Missing):
        await ledger.contents([digest(b"new")])


async def test_a_content_that_is_not_what_its_digest_says_is_refused(ledger: Ledger) -> None:
    with pytest.raises(Corrupt):
        await ledger.record([change(None, A)], {A: b"not a"}, NOW)
    assert await view(ledger) == ((), (), 0, {})
    with pytest.raises(Missing):
        await ledger.contents([A])


@pytest.mark.parametrize("id", [0, -1, 2, 1 << 80])
async def test_a_change_that_is_not_there_is_missing(ledger: Ledger, id: int) -> None:
    await put(ledger, change(None, A))
    with pytest.raises(Missing):
        await ledger.entry(ChangeId(id))


@pytest.mark.parametrize("name", ["0" * 64, "", "\udcff", A[:-1], A.upper()])
async def test_a_content_that_is_not_there_is_missing(ledger: Ledger, name: str) -> None:
    await put(ledger, change(None, A))
    with pytest.raises(Missing):
        await ledger.contents([A, name])
    assert await ledger.contents([A, B, A]) == {A: b"a", B: b"b"}
    assert await ledger.contents([]) == {}


async def test_an_empty_ledger_answers_with_nothing(ledger: Ledger) -> None:
    assert await view(ledger) == ((), (), 0, {})
    assert (await ledger.record([], {}, NOW), await ledger.held(MEMORY)) == ((), {})
    assert (await ledger.published_files([MEMORY]), await ledger.latest()) == ({}, 0)


RICH = Change(
    skill("release-notes"),
    ChangeKind.PATCH,
    (
        Delta("SKILL.md", None, A),
        Delta("references/ä b\0.md", None, B),
        Delta("@pinned", None, C),
        Delta("gone", D, None),
    ),
    Author(
        Actor.REVIEW,
        SessionId("s2"),
        SessionId("s1"),
        "skill_manage",
        "call-1",
        "the user said so\n\0 👩‍👩‍👧",
        (
            Evidence(SessionId("s1"), 7, Trust.OWNER, A),
            Evidence(SessionId("s1"), 2, Trust.FOREIGN, "0" * 64),
            Evidence(SessionId("s1"), 7, Trust.OWNER, A),
        ),
        Trust.LOCAL,
        ("Never push to main.", "", "日本語"),
    ),
    ChangeState.ACTIVE,
    True,
    "cause",
    ChangeId(1),
    (ChangeId(1), ChangeId(9)),
    "one of several",
)


async def test_a_change_comes_back_as_it_was_recorded(ledger: Ledger) -> None:
    early = datetime(1969, 12, 31, 23, 59, 59, 999_999, timezone(timedelta(hours=9, minutes=30)))
    await put(ledger, change(None, D, target=RICH.target, path="gone"))
    (made,) = await ledger.record([RICH], {}, early)
    assert made == Entry(ChangeId(2), early, RICH)
    assert await ledger.entry(made.id) == made
    assert made.at.tzinfo is not None
    plain = replace(RICH, standing=ChangeState.PENDING, confirmed=False, about=None, sources=())
    (waiting,) = await put(ledger, plain)
    assert (await ledger.entry(waiting.id)).change == plain
    assert await ledger.entries(ChangeQuery(after=made.id)) == (waiting,)


async def test_broken_letters_are_replaced_and_found_again(ledger: Ledger) -> None:
    odd = Target("skill:\udcff")
    author = Author(Actor.AGENT, SessionId("\ud800"), reason="\udcff", quotes=("\udcff",))
    (made,) = await put(ledger, change(None, A, target=odd, path="\udcff", author=author))
    assert made.change.author.reason == "\ufffd" * 3
    assert await ledger.entry(made.id) == made
    assert await ledger.held(odd) == {"\ufffd" * 3: A}
    assert await ledger.entries(ChangeQuery(target=odd, session="\ud800")) == (made,)


async def test_active_changes_make_what_is_held_and_what_waits_does_not(ledger: Ledger) -> None:
    one, two, here = skill("one"), skill("two"), project("here")
    await put(
        ledger,
        change(None, A),
        change(None, A, target=one, path="SKILL.md"),
        change(None, B, target=one, path="references/x.md"),
        change(A, C, target=one, path="SKILL.md"),
        change(None, A, target=two, path="SKILL.md"),
        change(A, None, target=two, path="SKILL.md"),
        change(None, D, target=here),
        waits(A, D),
        waits(None, D, target=skill("three")),
    )
    assert await ledger.held(one) == {"SKILL.md": C, "references/x.md": B}
    assert (await ledger.held(two), await ledger.held(skill("three"))) == ({}, {})
    held = {one: {"SKILL.md": C, "references/x.md": B}, here: {FILE: D}, MEMORY: {FILE: A}}
    assert await ledger.held_below("") == held
    assert await ledger.held_below("skill:") == {one: held[one]}
    assert await ledger.held_below("mem") == {MEMORY: held[MEMORY]}
    assert await ledger.held_below("skill:one-and-a-half") == {}


async def test_a_beginning_means_itself_and_no_pattern(ledger: Ledger) -> None:
    names = [
        "a",
        "ab",
        "a%",
        "a_",
        "a\ud7ff",
        "a\ud7ffx",
        "a\ue000",
        "a\U0010ffff",
        "a\U0010ffffz",
        "b",
        "A",
        "\U0010ffff!",
    ]
    await put(ledger, *(change(None, A, target=Target(name)) for name in names))
    await ledger.mark_published({(Target(name), FILE): PublishedFile(A, 1, 1) for name in names})
    for text in [*names, "", "%", "a\U0010ffff\U0010ffff", "c", "\udcff"]:
        expected = {name for name in names if name.startswith(text)}
        assert set(await ledger.held_below(text)) == expected, ascii(text)
        assert {target for target, _ in await ledger.published_files([Target(text)])} == {text} & set(names)


async def test_entries_come_newest_first_by_target_actor_session_time_and_place(ledger: Ledger) -> None:
    def by(actor: Actor, session: str, *rests: str) -> Author:
        evidence = tuple(Evidence(SessionId(each), 1, Trust.OWNER, A) for each in rests)
        return Author(actor, SessionId(session), parent=SessionId("s9"), evidence=evidence)

    one, more = skill("one"), skill("one-more")
    await put(ledger, change(None, A, target=one, author=by(Actor.AGENT, "s1")))
    await ledger.record([change(None, A, target=more)], {}, NOW - timedelta(days=2))
    await ledger.record([change(None, A, author=by(Actor.REVIEW, "s2", "s1", "s1"))], {}, NOW)
    await ledger.record([waits(A, B, author=by(Actor.CURATOR, "s3", "s1"))], {}, NOW + timedelta(days=1))

    async def ids(**wanted: Any) -> list[int]:
        return [entry.id for entry in await ledger.entries(ChangeQuery(**wanted))]

    assert await ids() == [4, 3, 2, 1]
    assert (await ids(target="skill:"), await ids(target=one), await ids(target="skill")) == ([2, 1], [1], [])
    assert (await ids(target="memory"), await ids(target="mem"), await ids(target=":")) == ([4, 3], [], [])
    assert (await ids(actor=Actor.OWNER), await ids(actor=Actor.CURATOR)) == ([2], [4])
    assert (await ids(session="s1"), await ids(session="s2"), await ids(session="s9")) == ([4, 3, 1], [3], [])
    assert (await ids(since=NOW), await ids(since=NOW + timedelta(microseconds=1))) == ([4, 3, 1], [4])
    assert (await ids(after=ChangeId(2)), await ids(after=ChangeId(1 << 80))) == ([4, 3], [])
    assert (await ids(limit=2), await ids(limit=0), await ids(limit=9)) == ([4, 3], [], [4, 3, 2, 1])
    kinds = {each.id: each.change.kind for each in await ledger.entries()}
    assert await ids(kinds=(kinds[ChangeId(4)],)) == [id for id in kinds if kinds[id] is kinds[ChangeId(4)]]
    assert await ids(kinds=(ChangeKind.AGE, ChangeKind.WAKE)) == []
    await ledger.record([replace(waits(A, B), group=each) for each in ("g", "h", "g")], {}, NOW)
    assert (await ids(group="g"), await ids(group="h", limit=3), await ids(group="x")) == ([7, 5], [6], [])
    both = {"session": "s1", "target": "memory", "since": NOW, "after": ChangeId(1)}
    assert (await ids(**both), await ids(**both, limit=1), await ids(**both, actor=Actor.REVIEW)) == (
        [4, 3],
        [4],
        [3],
    )


async def test_the_latest_active_change_about_another_settles_it(ledger: Ledger) -> None:
    made, waiting = await put(ledger, change(None, A), waits(A, B))
    await put(ledger, replace(waits(A, None), about=made.id), replace(waits(B, A), about=waiting.id))
    assert [each.settled for each in await ledger.entries()] == [None] * 4, "what waits settles nothing"
    assert [each.id for each in await ledger.pending()] == [2, 3, 4]
    await put(ledger, verdict(made, Delta(FILE, A, None), kind=ChangeKind.UNDO), verdict(waiting))
    await put(ledger, verdict(made, Delta(FILE, None, A), kind=ChangeKind.UNDO))
    assert ((await ledger.entry(made.id)).settled, (await ledger.entry(waiting.id)).settled) == (7, 6)
    assert [each.id for each in await ledger.pending()] == [3, 4]
    assert await ledger.held(MEMORY) == {FILE: A}


async def test_what_waits_can_be_asked_for_by_its_target(ledger: Ledger) -> None:
    other = Target("skill:deploy")
    await put(ledger, change(None, A), waits(A, B), replace(waits(None, B), target=other), waits(A, C))
    assert [each.id for each in await ledger.pending(MEMORY)] == [2, 4]
    assert [each.id for each in await ledger.pending(other)] == [3]
    assert await ledger.pending(Target("skill:\ud800")) == ()


async def test_a_change_may_be_about_one_of_the_same_call(ledger: Ledger) -> None:
    made = await put(ledger, change(None, A), replace(change(A, None), about=ChangeId(1)))
    assert [(each.id, each.settled) for each in made] == [(1, 2), (2, None)]
    assert await ledger.entries() == tuple(reversed(made))


async def test_order_is_that_of_ids_although_clocks_go_back(ledger: Ledger) -> None:
    for days in (0, -5, 3, -9):
        await ledger.record([waits(None, A)], BODIES, NOW + timedelta(days=days))
    assert [each.id for each in await ledger.entries()] == [4, 3, 2, 1]
    assert [each.id for each in await ledger.pending()] == [1, 2, 3, 4]
    assert await ledger.latest() == 4


async def test_prints_are_noted_replaced_and_taken_away(ledger: Ledger) -> None:
    one = skill("one")
    large = PublishedFile(A, (1 << 64) - 1, 1 << 70)
    await ledger.mark_published(
        {(MEMORY, FILE): PublishedFile(A, 1, -5), (one, "SKILL.md"): large, (one, "@x"): large}
    )
    await ledger.mark_published(
        {(MEMORY, FILE): PublishedFile(B, 2, 6), (one, "@x"): None, (USER, "never there"): None}
    )
    assert await ledger.published_files([one, MEMORY, USER, one]) == {
        (MEMORY, FILE): PublishedFile(B, 2, 6),
        (one, "SKILL.md"): large,
    }
    assert await ledger.published_files([one]) == {(one, "SKILL.md"): large}
    assert (await ledger.published_files([]), await ledger.published_files([Target("skill:")])) == ({}, {})
    assert await ledger.held_below("") == {}


async def test_a_view_says_what_each_question_would(ledger: Ledger) -> None:
    await put(ledger, change(None, A), change(None, B, target=skill("one")), change(None, C, target=USER))
    await ledger.mark_published(
        {(MEMORY, FILE): PublishedFile(A, 1, 5), (USER, FILE): PublishedFile(C, 2, 6)}
    )
    asked = (MEMORY, skill("one"), skill("none"))
    seen = await ledger.view(asked)
    assert (seen.latest, seen.published) == (await ledger.latest(), await ledger.published_files(asked))
    assert seen.held == {each: await ledger.held(each) for each in asked}
    assert seen.contents == await ledger.contents({A, B})
    assert (await ledger.view(asked, {A})).contents == await ledger.contents({B})


async def test_a_view_tells_the_kinds_of_the_changes_since_another_one(ledger: Ledger) -> None:
    await put(ledger, change(None, A))
    since = await ledger.latest()
    assert (await ledger.view((MEMORY,))).kinds is None
    assert (await ledger.view((MEMORY,), since=since)).kinds == frozenset()
    await put(ledger, change(None, B, target=USER, kind=ChangeKind.SET), change(None, C, target=skill("one")))
    kinds = frozenset(each.change.kind for each in await ledger.entries(ChangeQuery(after=since)))
    assert (await ledger.view((MEMORY,), since=since)).kinds == kinds


async def test_of_many_records_at_once_one_wins_and_the_others_are_told(ledger: Ledger) -> None:
    await put(ledger, change(None, A))
    rivals = [ledger.record([change(A, name)], {}, NOW) for name in (B, C, D) * 7]
    results = await asyncio.gather(*rivals, return_exceptions=True)
    assert [type(each) for each in results].count(Conflict) == 20
    winner = next(each for each in results if not isinstance(each, BaseException))
    assert await ledger.held(MEMORY) == {FILE: winner[0].change.deltas[0].after}
    assert await ledger.latest() == 2


# The law: whatever is recorded in the reference and in another ledger, both answer alike.

TARGETS = (MEMORY, skill("one"), skill("two"))
PATHS = ("SKILL.md", "@pinned", "references/a.md")
STRANGER = digest(b"of no content")


@dataclass(frozen=True)
class Step:
    """One change of a batch, about the one that many before it. `wrong` makes it out of date, or gives it a
    digest of nothing."""

    target: Target
    paths: list[str]
    after: str | None
    standing: ChangeState
    about: int
    actor: Actor
    session: str
    wrong: str


STEPS = st.builds(
    Step,
    st.sampled_from(TARGETS),
    st.lists(st.sampled_from(PATHS), max_size=3),
    st.sampled_from([A, B, None]),
    st.sampled_from([ChangeState.ACTIVE, ChangeState.ACTIVE, ChangeState.PENDING]),
    st.sampled_from([0, 0, 0, 0, 1, 2, 4]),
    st.sampled_from(Actor),
    st.sampled_from(["s1", "s2"]),
    st.sampled_from([""] * 12 + ["before", "after", "about"]),
)
BATCHES = st.lists(st.lists(STEPS, max_size=4), min_size=1, max_size=12)


def drawn(steps: Sequence[Step], held: dict[Target, dict[str, str]], latest: int) -> list[Change]:
    """The changes of one call, each beginning with what those before have made, unless it is to be wrong."""
    changes = []
    for number, step in enumerate(steps, latest + 1):
        holding = held.setdefault(step.target, {})
        deltas = []
        for path in step.paths:
            before = C if step.wrong == "before" else holding.get(path)
            deltas.append(Delta(path, before, STRANGER if step.wrong == "after" else step.after))
            if step.standing is ChangeState.ACTIVE:
                holding.pop(path, None)
                if step.after is not None:
                    holding[path] = step.after
        about = number + 9 if step.wrong == "about" else max(0, number - step.about) if step.about else 0
        evidence = tuple(
            Evidence(SessionId(step.session), at, Trust.LOCAL, A) for at in range(step.about % 3)
        )
        author = Author(step.actor, SessionId("s0"), evidence=evidence)
        chosen = ChangeId(about) if about else None
        changes.append(
            Change(step.target, ChangeKind.EDIT, tuple(deltas), author, step.standing, about=chosen)
        )
    return changes


async def outcome(ledger: Ledger, changes: Sequence[Change]) -> Any:
    try:
        return await ledger.record(changes, {}, NOW)
    except StoreError as error:
        return type(error).__name__, str(error)


async def compare(kinds: Sequence[Stores], batches: Sequence[Sequence[Step]]) -> Any:
    """Record the same in all of them; return what there is to see in the end."""
    reference, *others = [stores.ledger for stores in kinds]
    for ledger in (reference, *others):
        await ledger.record([], BODIES, NOW)
    for batch in batches:
        held = {target: dict(each) for target, each in (await reference.held_below("")).items()}
        changes = drawn(batch, held, await reference.latest())
        expected = await outcome(reference, changes)
        event(f"{expected[0] if expected and isinstance(expected[0], str) else 'recorded'}")
        event(f"{sum(each.settled is not None for each in await reference.entries())} settled")
        for ledger in others:
            assert await outcome(ledger, changes) == expected
            assert await view(ledger) == await view(reference)
    for ledger in others:
        for session in ("s0", "s1", "s2"):
            assert await ledger.entries(ChangeQuery(session=session)) == await reference.entries(
                ChangeQuery(session=session)
            )
    return await view(reference)


async def agree(folder: Path, batches: Sequence[Sequence[Step]]) -> None:
    async with all_kinds(folder) as kinds:
        last = await compare(kinds, batches)
        for stores in kinds[1:]:
            assert isinstance(stores.ledger, SqliteLedger)
            assert await stores.ledger.unsound() == []
    again = sqlite("sqlite", folder)
    assert await view(again.ledger) == last
    await again.close()


@fewer(30)
@given(BATCHES)
def test_sqlite_and_the_reference_agree_over_any_history_and_after_reopening(
    batches: list[list[Step]],
) -> None:
    with TemporaryDirectory() as folder:
        asyncio.run(agree(Path(folder), batches))
