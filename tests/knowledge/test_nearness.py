"""E5, C6: meaning adds candidates to what words find, and decides nothing. Vectors call opposites alike; the
lessons they stand for must not be."""

import json
import os
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from itertools import combinations
from pathlib import Path

import pytest

from hone.core.clock import ManualClock
from hone.core.embedding import Purpose
from hone.core.ledger import MEMORY, Entry
from hone.features.recall.local import open_local
from hone.knowledge.journal import Add
from hone.knowledge.keeper import Keeper
from hone.knowledge.nearness import LANGUAGE, UNRELATED, Nearness
from hone.knowledge.resemblance import is_opposite, is_same_subject
from hone.knowledge.verdicts import DEFAULTS
from hone.stores.database import Database
from hone.stores.ledger import SqliteLedger
from hone.stores.sqlite import SqliteSessions
from tests.conftest import Figures
from tests.doubles.meanings import Told
from tests.knowledge.lessons import Lessons, is_active, waits

SAME = (
    ("Keep it brief.", "Give short answers."),
    ("User is vegetarian.", "User doesn't eat meat."),
    ("Run the unit tests before committing.", "Always check that tests pass before you commit."),
    ("Deploys happen on Fridays.", "Releases go live at the end of the working week."),
    ("User lives in Berlin.", "Home is in the German capital."),
    ("Never force-push.", "Rewriting remote history is forbidden."),
    ("Use uv instead of pip.", "Install packages with uv."),
    ("The db password rotates monthly.", "Database credentials change every month."),
    ("User's manager is Priya.", "Priya is the user's boss."),
    ("User prefers tabs.", "Indent with the tab character."),
    ("Write commit messages in English.", "Commits should be worded in English."),
    ("Don't use emojis.", "No smileys in text."),
    ("The staging host is heron.", "Heron is where pre-production runs."),
    ("Call me Sam.", "User goes by Sam."),
    ("Backups run at night.", "Nightly copies of the data are made."),
)
"""Lessons in other words, written by hand."""
OPPOSITE = (
    ("User prefers tabs for indentation.", "User prefers spaces for indentation."),
    ("Answer the user in German.", "Answer the user in English."),
    ("We deploy on Fridays.", "We never deploy on Fridays."),
    ("Keep the answers short.", "Give the user detailed answers."),
)


class Silent:
    """An embedder that gives no vectors in time."""

    async def vectors(self, texts: Sequence[str], purpose: Purpose = "passage") -> Sequence[bytes]:
        return ()


@asynccontextmanager
async def lessons_with(home: Path, meanings: Told | Silent | None) -> AsyncIterator[Lessons]:
    database, clock = Database.open(home / "hone.db"), ManualClock()
    ledger, sessions = SqliteLedger(database), SqliteSessions(database)
    yield Lessons(Keeper(ledger, None, clock, lambda _: None, DEFAULTS, meanings), clock, ledger, sessions)
    await database.close()


async def test_an_entry_that_means_the_same_is_shown_before_a_second_one_is_added(home: Path) -> None:
    old, new = SAME[3]
    async with lessons_with(home, Told(SAME[3])) as it:
        it.say(f"{old} I like rain.")
        it.say(new)
        assert is_active(await it.note(Add(old), "#1"))
        made = await it.note(Add(new), "#2")
        assert isinstance(made, str)
        assert "these entries are alike" in made
        assert old in made
        assert is_active(await it.note(Add("Likes rain."), "#1")), "something else is not held up"
        assert is_active(await it.note(Add(new, anyway=True), "#2")), "the model has the last word"


async def test_a_withdrawn_lesson_in_other_words_waits_until_the_owner_says_it(home: Path) -> None:
    old, new = SAME[4]
    async with lessons_with(home, Told(SAME[4])) as it:
        it.say(old.replace("User lives", "I live"))
        it.say("My home office is in the German capital, by the way.")
        made = await it.note(Add(old), "#1", target=MEMORY)
        assert isinstance(made, Entry)
        await it.keeper.undo(made.id)
        second = await it.note(Add(new), "#2", target=MEMORY)
        assert waits(second)
        assert isinstance(second, Entry)
        assert f"close to a lesson that was taken back (change {made.id + 1})" in second.change.cause
        assert await it.active() == []
        it.begin("later")
        it.say(new)
        assert is_active(await it.note(Add(new), "#1", target=MEMORY))


@pytest.mark.parametrize(("old", "new"), OPPOSITE)
async def test_the_opposite_of_a_withdrawn_lesson_is_not_held_back(home: Path, old: str, new: str) -> None:
    async with lessons_with(home, Told((old, new))) as it:
        it.say(old)
        it.say(f"Hm. {new}")
        made = await it.note(Add(old), "#1", target=MEMORY)
        assert isinstance(made, Entry)
        await it.keeper.undo(made.id)
        assert is_active(await it.note(Add(new), "#2", target=MEMORY))
    assert is_opposite(old, new)


@pytest.mark.parametrize("meanings", [None, Silent()])
async def test_without_vectors_words_alone_decide(home: Path, meanings: Silent | None) -> None:
    old, new = SAME[3]
    async with lessons_with(home, meanings) as it:
        it.say(f"{old} {new}")
        assert is_active(await it.note(Add(old), "#1"))
        assert is_active(await it.note(Add(new), "#1"))


async def test_a_language_that_small_models_do_not_know_is_not_asked_about() -> None:
    told = Told()
    near = Nearness(told)
    assert (
        await near.find("Käyttäjä ei syö lihaa eikä kalaa.", ["Käyttäjällä on kaksi lasta ja koira."]) == []
    )
    assert await near.find("用户特别讨厌开长会。", ["例会每周三下午开。"]) == []
    assert told.asked == []


@pytest.mark.parametrize("name", ["minilm", "gte-small"])
async def test_real_weights_find_paraphrases_and_raise_no_false_alarm(name: str, figures: Figures) -> None:
    """TEST_MODELS is the models folder of a home that has them."""
    models = Path(os.environ.get("TEST_MODELS", "/nonexistent/models"))
    if not (models / name).is_dir():
        pytest.skip(f"TEST_MODELS names no folder with {name} in it")
    embedder = open_local(models.parent, name)

    class Real:
        async def vectors(self, texts: Sequence[str], purpose: Purpose = "passage") -> Sequence[bytes]:
            missing = [text for text in texts if text not in known]
            known.update(zip(missing, await embedder.embed(missing, purpose), strict=True))
            return [known[text] for text in texts]

    known: dict[str, bytes] = {}
    near = Nearness(Real())
    unlike = [(one, other) for one, other in SAME if not is_same_subject(one, other)]
    found = [pair for pair in unlike if await near.find(pair[0], [pair[1]])]
    lines = (Path(__file__).with_name("pairs") / "honest.jsonl").read_text("utf-8").splitlines()
    entries = [each["entry"] for each in map(json.loads, lines) if each["language"] == LANGUAGE]
    alarms = [
        (one, other)
        for at, one in enumerate(entries)
        for other in await near.find(one, entries[at + 1 :])
        if not is_same_subject(one, other)
    ]
    await embedder.close()
    pairs = len(list(combinations(entries, 2)))
    figures(
        f"{name}: {len(found)} of {len(unlike)} paraphrases without common words; {len(alarms)} of {pairs}"
    )
    assert len(found) >= 4
    assert len(alarms) <= pairs / 1_000


def test_the_lessons_that_set_the_zero_have_nothing_in_common() -> None:
    assert not any(is_same_subject(one, other) for one, other in combinations(UNRELATED, 2))
