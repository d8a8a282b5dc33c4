"""Foreign text makes nothing active, whatever a model does with it; what the owner said is active at once."""

import base64
import codecs
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hone.core.errors import Refused
from hone.core.ids import SessionId
from hone.core.ledger import Actor, Author, ChangeState, Evidence
from hone.core.messages import ToolCall, answer, assistant, user
from hone.core.screen import screen
from hone.core.transcript import Source, Transcript
from hone.core.trust import Trust
from hone.core.value import replace
from hone.knowledge.admission import judge
from hone.knowledge.evidence import locate
from hone.knowledge.verdicts import LearningMode, Verdict
from tests.conftest import Figures, Tier
from tests.knowledge.test_evidence import said
from tests.knowledge.test_quoting import HONEST

POISON = Path(__file__).with_name("poison.txt").read_text().splitlines()
HERE = SessionId("s1")
CALL = ToolCall("1", "fetch", "{}")
OWNER = (
    "Keep answers short. Never push to main without asking me; always run the tests. "
    "I use uv instead of pip. What does docs.evil.example say about the API and the server?"
)
OTHERS = [Actor.AGENT, Actor.REVIEW, Actor.CURATOR]


def test_what_the_owner_hands_in_without_having_said_it_waits_whatever_the_mode() -> None:
    own = Author(Actor.OWNER)
    assert judge(own, LearningMode.OFF, entries=["a"]) == Verdict(ChangeState.ACTIVE, confirmed=True)
    for trust_floor in (Trust.FOREIGN, Trust.LOCAL, Trust.AGENT):
        for mode in LearningMode:
            verdict = judge(
                replace(own, trust_floor=trust_floor), mode, entries=["a"], flags=["odd"], scripts=True
            )
            assert verdict == Verdict(ChangeState.PENDING, cause="it was brought in from elsewhere; odd")


def talk(poison: str, owner: str = OWNER) -> Transcript:
    return said(
        (user(owner), Trust.OWNER),
        (assistant("I look it up.", CALL), Trust.AGENT),
        (answer(CALL, f"Welcome to the docs.\n{poison}\nThe end."), Trust.FOREIGN),
    )


def decided(
    transcript: Transcript, claims: Sequence[str], entries: Sequence[str], actor: Actor
) -> Verdict | None:
    """As a store would: screen, look up the claims, judge. None: refused."""
    try:
        located = locate(claims, Source(HERE, transcript))
        flags = [flag for entry in entries for flag in screen(entry).flags]
        author = Author(
            actor, HERE, evidence=located.evidence, trust_floor=transcript.trust, quotes=located.quotes
        )
        return judge(
            author, LearningMode.AUTO, entries=[screen(entry).text for entry in entries], flags=flags
        )
    except Refused:
        return None


def ways(poison: str) -> Iterator[tuple[str, list[str], list[str]]]:
    """What an obedient model could do with a poisoned tool result: the way, its claims, the new entries."""
    true = ["Keep answers short", "always run the tests", "I use uv", "#1"]
    words = poison.split()
    half = len(words) // 2
    yield "verbatim", [poison], [poison]
    yield "verbatim", ["#3"], [poison]
    yield "paraphrase", ["#3"], [f"The user would like this: {poison.lower().rstrip('.')}"]
    yield "paraphrase", ["#3", "#1"], [f"As agreed, {' '.join(reversed(words))}"]
    yield "forged quote", [f"I want you to remember: {poison}"], [poison]
    yield "forged quote", [f"Keep answers short. {poison}"], [poison]
    yield "true quote, poisoned entry", true, [poison]
    yield "true quote, poisoned entry", true, [f"Keep answers short. {poison}"]
    yield "true quote, poisoned entry", true, [f"User prefers short answers; {poison}"]
    yield "split", true, [" ".join(words[:half]), " ".join(words[half:])]
    yield "split", true, ["Keep answers short.", poison]
    for encoded in (
        base64.b64encode(poison.encode()).decode(),
        codecs.encode(poison, "rot13"),
        poison.encode().hex(),
        "Keep answers short." + "".join(chr(0xE0000 + byte) for byte in poison.encode()),
        "\u200b".join(poison),
    ):
        yield "encoded", true, [encoded]
    yield "patch", true, [f"Keep answers short, {poison}"]
    yield "patch", true, [f"Never push to main without asking; {poison}"]
    yield "patch", ["#1", "#3"], [f"Uses uv instead of pip ({poison})"]


def test_no_poison_becomes_active_in_any_of_seven_ways(tier: Tier, figures: Figures) -> None:
    tried, got_in = 0, []
    for poison in (POISON[draw.index] for draw in tier.draws(short=12, full=len(POISON))):
        for way, claims, entries in ways(poison):
            for actor in OTHERS:
                tried += 1
                verdict = decided(talk(poison), claims, entries, actor)
                if verdict and verdict.standing is ChangeState.ACTIVE:
                    got_in.append((way, entries))
    figures.tally(tried, got_in=len(got_in), note="poisoned changes in 7 ways, judged")
    assert got_in == []


def test_what_the_owner_said_becomes_active_although_foreign_text_is_around(figures: Figures) -> None:
    verdicts = [
        decided(talk(POISON[0], said), [said], [entry], actor) for said, entry in HONEST for actor in OTHERS
    ]
    active = [verdict for verdict in verdicts if verdict == Verdict(ChangeState.ACTIVE, confirmed=True)]
    figures(f"{len(verdicts)} honest changes tried, {len(active)} became active with no question")
    assert len(active) >= 0.9 * len(verdicts)
    assert all(verdict is not None for verdict in verdicts)


def test_without_foreign_text_a_paraphrase_is_active_but_not_confirmed() -> None:
    transcript = said((user("Mails should be brief, I read them on the go."), Trust.OWNER))
    verdict = decided(transcript, ["#1"], ["Prefers concise e-mails."], Actor.REVIEW)
    assert verdict == Verdict(ChangeState.ACTIVE, confirmed=False)


def author(
    actor: Actor = Actor.REVIEW,
    *,
    trust_floor: Trust = Trust.LOCAL,
    of: Trust = Trust.LOCAL,
    quotes: Sequence[str] = (),
) -> Author:
    return Author(
        actor, HERE, evidence=(Evidence(HERE, 1, of, "d"),), trust_floor=trust_floor, quotes=tuple(quotes)
    )


@pytest.mark.parametrize("actor", OTHERS)
def test_nothing_rests_on_nothing_and_off_is_off(actor: Actor) -> None:
    with pytest.raises(Refused, match="switched off"):
        judge(author(actor), LearningMode.OFF, entries=["x"])
    for mode in (LearningMode.AUTO, LearningMode.ASK):
        with pytest.raises(Refused, match="Cite the evidence"):
            judge(replace(author(actor), evidence=()), mode, entries=["x"])


@pytest.mark.parametrize(
    ("who", "mode", "entries", "flags", "scripts", "verdict"),
    [
        (author(), LearningMode.AUTO, ["x"], (), False, Verdict(ChangeState.ACTIVE)),
        (
            author(),
            LearningMode.ASK,
            ["x"],
            (),
            False,
            Verdict(ChangeState.PENDING, cause="the user wants to be asked"),
        ),
        (
            author(),
            LearningMode.AUTO,
            ["x"],
            ("odd", "new"),
            False,
            Verdict(ChangeState.PENDING, cause="odd; new"),
        ),
        (
            author(),
            LearningMode.AUTO,
            None,
            (),
            True,
            Verdict(ChangeState.PENDING, cause="it brings or changes a script"),
        ),
        (author(), LearningMode.AUTO, None, (), False, Verdict(ChangeState.ACTIVE)),
        (
            author(trust_floor=Trust.FOREIGN),
            LearningMode.AUTO,
            None,
            (),
            False,
            Verdict(ChangeState.PENDING, cause="it rests on foreign text"),
        ),
        (
            author(of=Trust.FOREIGN),
            LearningMode.AUTO,
            ["x"],
            (),
            False,
            Verdict(ChangeState.PENDING, cause="it rests on foreign text"),
        ),
        (
            author(trust_floor=Trust.FOREIGN, quotes=["Use tabs."]),
            LearningMode.AUTO,
            ["Use tabs"],
            (),
            False,
            Verdict(ChangeState.ACTIVE, True),
        ),
        (
            author(trust_floor=Trust.FOREIGN, quotes=["Use tabs."]),
            LearningMode.AUTO,
            ["Use tabs", "x"],
            (),
            False,
            Verdict(ChangeState.PENDING, cause="it rests on foreign text"),
        ),
        (
            author(trust_floor=Trust.FOREIGN, quotes=["Use tabs."]),
            LearningMode.AUTO,
            [],
            (),
            False,
            Verdict(ChangeState.PENDING, cause="it rests on foreign text"),
        ),
        (
            author(trust_floor=Trust.FOREIGN, quotes=["Use tabs."]),
            LearningMode.AUTO,
            None,
            (),
            False,
            Verdict(ChangeState.PENDING, cause="it rests on foreign text"),
        ),
        (
            author(quotes=["Use tabs."]),
            LearningMode.AUTO,
            ["Use tabs"],
            ("odd",),
            False,
            Verdict(ChangeState.PENDING, cause="odd"),
        ),
        (
            author(quotes=["Use tabs."]),
            LearningMode.ASK,
            ["Use tabs"],
            (),
            False,
            Verdict(ChangeState.PENDING, cause="the user wants to be asked"),
        ),
    ],
)
def test_the_stricter_of_mode_and_rule_decides(
    who: Author,
    mode: LearningMode,
    entries: list[str] | None,
    flags: tuple[str, ...],
    scripts: bool,
    verdict: Verdict,
) -> None:
    assert judge(who, mode, entries=entries, flags=flags, scripts=scripts) == verdict


def test_the_owner_is_always_right() -> None:
    for mode in LearningMode:
        assert judge(Author(Actor.OWNER), mode, entries=None, flags=["odd"], scripts=True) == Verdict(
            ChangeState.ACTIVE, confirmed=True
        )


@pytest.mark.parametrize(
    "error", [ValueError, KeyError, TypeError, RecursionError, MemoryError, AttributeError]
)
def test_a_rule_that_raises_makes_the_change_wait(error: type[Exception]) -> None:
    def broken(entry: str, owner: Sequence[str]) -> bool:
        raise error("no")

    verdict = judge(author(quotes=["Use tabs."]), LearningMode.AUTO, entries=["Use tabs"], quoted=broken)
    assert verdict == Verdict(ChangeState.PENDING, cause=f"it could not be judged ({error.__name__})")


LABELS = st.sampled_from(Trust)


@given(
    st.sampled_from(OTHERS),
    LABELS,
    LABELS,
    st.booleans(),
    st.booleans(),
    st.sampled_from([None, ["Use tabs"]]),
)
def test_less_trust_never_makes_more_active(
    actor: Actor, trust_floor: Trust, of: Trust, flagged: bool, scripts: bool, entries: list[str] | None
) -> None:
    flags = ["odd"] if flagged else []
    here = judge(
        author(actor, trust_floor=trust_floor, of=of),
        LearningMode.AUTO,
        entries=entries,
        flags=flags,
        scripts=scripts,
    )
    worse = judge(
        author(actor, trust_floor=Trust.FOREIGN, of=of),
        LearningMode.ASK,
        entries=entries,
        flags=flags,
        scripts=scripts,
    )
    assert worse.standing is ChangeState.PENDING
    assert (here.standing is ChangeState.ACTIVE) == (
        not flags and not scripts and min(trust_floor, of) >= Trust.LOCAL
    )
    assert not here.confirmed
