"""C6: from when and until when an entry holds stands in the file as plain text, and is kept to."""

from datetime import date, timedelta
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hone import Hone
from hone.core.clock import ManualClock
from hone.core.ledger import MEMORY
from hone.core.value import replace
from hone.knowledge import journal, validity
from hone.knowledge.journal import Add, size
from hone.knowledge.keeper import OWNER
from hone.knowledge.sections import find_past
from hone.models.scripted import Scripted, rounds

TODAY = date(2026, 1, 1)
texts = st.text(st.characters(exclude_categories=["Cs", "Cc"]), min_size=1, max_size=60).map(
    journal.normalize
)


@given(texts.filter(bool), st.none() | st.dates(), st.dates(min_value=date(1000, 1, 1)))
def test_an_entry_and_its_dates_come_back_as_they_were_and_only_the_words_count(
    text: str, since: date | None, until: date
) -> None:
    bare = validity.read(text).wording
    start = f"from {since} " if since and since.year >= 1000 else ""
    entry = f"{bare} ({start}until {until})"
    assert validity.read(entry).wording == bare.rstrip()
    assert validity.read(entry).until == until
    assert size(journal.format_entry(entry)) == len(bare.rstrip())
    assert validity.limit(entry, TODAY) == entry
    known = validity.read(entry)
    assert known.holds(until) is ((known.since or until) <= until)
    if until < date.max:
        assert not known.holds(until + timedelta(days=1))


@given(texts.filter(bool), st.none() | st.dates(min_value=date(1000, 1, 1)))
def test_a_pin_comes_and_goes_and_changes_nothing_else(text: str, until: date | None) -> None:
    bare = validity.renew(validity.pin(text, on=False), until)
    pinned = validity.pin(bare)
    assert validity.read(pinned) == replace(validity.read(bare), pinned=True)
    assert validity.pin(pinned) == pinned
    assert validity.pin(pinned, on=False) == bare
    assert size(journal.format_entry(pinned)) == size(journal.format_entry(bare))


@pytest.mark.parametrize(
    "entry",
    [
        "(until 2026-01-01)",
        "x (until 2026-13-01)",
        "x (until soon)",
        "x ()",
        "x (from)",
        "x(until 2026-01-01)",
        "x (pinned until 2026-01-01)",
        "x (pinned, )",
        "x (pinneduntil 2026-01-01)",
        "(pinned)",
    ],
)
def test_what_is_no_date_is_part_of_the_words(entry: str) -> None:
    assert validity.read(entry) == validity.Validity(entry)


async def test_what_is_past_its_date_is_in_no_prompt_and_is_asked_about(home: Path) -> None:
    clock = ManualClock()
    async with Hone(home=home, clock=clock, model=Scripted(rounds("Yes."))) as hone:
        for text in ("Staging is down (until 2026-01-02)", "Tests move (from 2026-01-02)", "Likes tea."):
            await hone.keeper.note([(MEMORY, Add(text))], OWNER)
        seen = []
        for _ in range(3):
            seen.append((await hone.session()).agent.prefix.system)
            clock.advance(24 * 3_600)
        assert ["Staging is down" in each for each in seen] == [True, True, False]
        assert ["Tests move" in each for each in seen] == [False, True, True]
        assert all("Likes tea." in each for each in seen)
        assert await find_past(hone.keeper, hone.folder, hone.library.today) == [
            ("memory", "Staging is down (until 2026-01-02)")
        ]
        (home / "MEMORY.md").write_text("- Staging is down (until 2026-02-01)\n")
        assert await find_past(hone.keeper, hone.folder, hone.library.today) == []
        assert "Staging is down (until 2026-02-01)" in (await hone.session()).agent.prefix.system
