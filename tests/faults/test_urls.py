"""web_fetch in a made-up internet: hostile URLs open no socket where none may be, harmless ones are read."""

import re

from tests.conftest import Figures, Tier
from tests.faults.hostile import Attack, attacks, visit
from tests.models import loopback
from tests.tools.internet import PUBLIC, ask, internet, moved, page

quiet = loopback.quiet

HOSTILE, HARMLESS = 300, 60
SENTENCES = re.compile(r"Not fetched\. [A-Z].{10,}\.", re.DOTALL)


async def outcome_of(attack: Attack) -> tuple[str, bool, list[tuple[str, int]]]:
    def pages(host: str, path: str) -> bytes:
        target = attack.redirects.get(path)
        return moved(target, closing=True) if target is not None else page("SECRET")

    async with internet(pages, attack.names) as (net, fetch):
        net.only = PUBLIC
        outcome = await ask(fetch, url=attack.url)
        return outcome.text, outcome.failed, net.dialled


async def test_no_hostile_url_opens_a_socket_to_a_forbidden_address(tier: Tier, figures: Figures) -> None:
    opened, unclear, tried = list[tuple[str, Attack]](), list[tuple[str, Attack]](), 0
    every, at = list(attacks(tier.random(), HOSTILE)), set[int]()
    for draw in tier.draws(short=HOSTILE, full=HOSTILE):
        attack = every[draw.index]
        tried += 1
        text, failed, dialled = await outcome_of(attack)
        allowed = {PUBLIC} if attack.public else set[str]()
        reached = [(address, attack) for address, _ in dialled if address not in allowed]
        opened += reached
        at |= {draw.index} if reached else set()
        if not failed or not SENTENCES.fullmatch(text) or "SECRET" in text:
            unclear.append((text, attack))
            at.add(draw.index)
    figures.tally(
        tried, got_in=len(at), note=f"hostile URLs, {tried - len(unclear)} refused with a reason", at=at
    )
    assert opened == []
    assert unclear == []


async def test_a_harmless_url_is_fetched_from_the_address_of_its_name(tier: Tier, figures: Figures) -> None:
    fetched = 0
    for draw in tier.draws(short=HARMLESS, full=HARMLESS):
        case = visit(draw.random)

        def pages(host: str, path: str, redirects: dict[str, str] = case.redirects) -> bytes:
            return moved(redirects[path]) if path in redirects else page(f"<p>This is {path}.</p>")

        async with internet(pages, case.names) as (net, fetch):
            outcome = await ask(fetch, url=case.url)
            assert not outcome.failed, (case, outcome.text)
            assert f"\n\nThis is {case.path}.\n\n" in outcome.text, (case, outcome.text)
            assert net.dialled == case.dialled, case
            fetched += 1
    figures(f"harmless URLs: {HARMLESS} tried, {fetched} fetched")
