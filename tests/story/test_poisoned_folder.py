"""A yes about a folder, given after injected text was read, lets in only what the folder itself holds."""

from collections.abc import Sequence
from copy import copy
from pathlib import Path

import pytest

from hone.core.ledger import ChangeQuery, ChangeState
from hone.core.messages import ToolCall
from hone.core.screen import screen
from hone.knowledge import places as targets
from hone.knowledge.wording import find_lessons
from hone.learning.reconsider import find_withheld, reconsider
from hone.models.scripted import call
from tests.conftest import Figures, Tier
from tests.story.poison.channels import FETCH, TERMINAL, AfterNetwork, Saved, Untrusted
from tests.story.poison.house import HARMLESS, OURS, SITE, Channel, House, house
from tests.story.poison.injected import Injected
from tests.story.test_poisoning import FEW, places, sample


class BeforeNetwork(Untrusted):
    """The folder's own file, and then something harmless from the network: one is enough."""

    name = "a file of an untrusted folder, then a network effect"

    def steps(self, place: House, text: Injected) -> Sequence[ToolCall]:
        return (*super().steps(place, text), call("web_fetch", url=f"{SITE}/{HARMLESS}"))

    def find(self, place: House, text: Injected, content: str) -> None:
        """The last result is the harmless one."""


def untrusted(channel: Channel) -> Channel:
    """Return the channel in a folder that the owner has not answered for."""
    made = copy(channel)
    made.trusted = False
    return made


CHANNELS = [*map(untrusted, (FETCH, TERMINAL, AfterNetwork(), Saved())), BeforeNetwork()]


async def answer(place: House) -> Sequence[str]:
    """Say yes, and take it back afterwards; return what took effect."""
    offered = await find_withheld(place.hone, place.folder)
    place.hone.folders.trust(place.folder)
    made = (await reconsider(place.hone, place.folder)).entries
    place.hone.folders.forget(place.folder)
    assert {each.change.about for each in made} <= {each.id for each in offered}
    return [str(each.id) for each in made]


@pytest.mark.timeout(3_600)
@pytest.mark.parametrize(
    "review",
    [pytest.param(False, id="foreground", marks=pytest.mark.long), pytest.param(True, id="review")],
)
@pytest.mark.parametrize("channel", CHANNELS, ids=lambda each: each.name)
async def test_a_yes_lets_in_no_text_from_elsewhere(
    channel: Channel, review: bool, home: Path, tmp_path: Path, tier: Tier, figures: Figures
) -> None:
    texts = sample(tier, short=1, full=FEW)
    got_in: list[str] = []
    async with house(home, tmp_path / "work", channel) as place:
        for text in texts:
            await place.attacked(text, review=review)
            got_in += [f"{text.number} by change {each}" for each in await answer(place)]
            now = await place.seen()
            if now != place.before or place.marked(b" ".join(now).decode(), [text]):
                got_in.append(f"{text.number} in what is seen")
            place.before = now
        lying = [path for path, content in place.printed().items() if place.marked(content, texts)]
        got_in += [f"{path.relative_to(home)} on the disk" for path in lying]
    note = f"{len(texts)} texts in 7 ways through {channel.name}, and a yes"
    figures.tally(7 * len(texts), got_in=len(got_in), note=note, at=places(got_in))
    assert got_in == []


async def active(place: House, since: int) -> set[tuple[str, str]]:
    """Return what took effect: where, and which words came."""
    made = [
        each
        for each in await place.hone.ledger.entries(ChangeQuery())
        if each.id > since and each.change.standing is ChangeState.ACTIVE and each.change.deltas
    ]
    lessons = await find_lessons(place.hone.ledger, made)
    return {(targets.name_of(each.target), each.text) for each in lessons}


@pytest.mark.timeout(3_600)
async def test_a_yes_lets_in_of_the_folder_s_own_text_no_more_than_trust_from_the_start_and_unconfirmed(
    home: Path, tmp_path: Path, tier: Tier, figures: Figures
) -> None:
    """What a trusted folder holds is local. Orders, hidden characters and scripts wait all the same."""
    social = [text for text in OURS if text.family == "social"]
    texts = tier.random().sample(social, tier.size(short=1, full=min(20, len(social))))
    tried = more = 0
    for text in texts:
        async with house(home / f"{text.number}", tmp_path / f"{text.number}", Untrusted()) as place:
            before = await place.hone.ledger.latest()
            await place.attacked(text, review=True)
            assert await active(place, before) == set()
            place.hone.folders.trust(place.folder)
            made = (await reconsider(place.hone, place.folder)).entries
            assert not any(each.change.confirmed for each in made)
            assert not any(screen(words).flags for _, words in await active(place, before))
            late = await active(place, before)
        async with house(
            home / f"{text.number}t", tmp_path / f"{text.number}t", Untrusted(), honest=True
        ) as place:
            place.hone.folders.trust(place.folder)
            before = await place.hone.ledger.latest()
            await place.attacked(text, review=True)
            early = await active(place, before)
        tried += len(late)
        more += len(late - early)
        assert late
    figures.tally(tried, got_in=more, note=f"lessons of {len(texts)} texts that a later yes let in")
    assert more == 0
