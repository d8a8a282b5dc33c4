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
    opened, unclear = list[tuple[str, Attack]](), list[tuple[str, Attack]]()
    for attack in attacks(tier.random(), HOSTILE):
        text, failed, dialled = await outcome_of(attack)
        allowed = {PUBLIC} if attack.public else set[str]()
        opened += [(address, attack) for address, _ in dialled if address not in allowed]
        if not failed or not SENTENCES.fullmatch(text) or "SECRET" in text:
            unclear.append((text, attack))
    refused = HOSTILE - len(unclear)
    figures(f"hostile URLs: {HOSTILE} tried, {len(opened)} sockets opened, {refused} refused with a reason")
    assert opened == []
    assert unclear == []


async def test_a_harmless_url_is_fetched_from_the_address_of_its_name(tier: Tier, figures: Figures) -> None:
    random = tier.random()
    fetched = 0
    for _ in range(HARMLESS):
        case = visit(random)

        def pages(host: str, path: str, redirects: dict[str, str] = case.redirects) -> bytes:
            return moved(redirects[path]) if path in redirects else page(f"<p>This is {path}.</p>")

        async with internet(pages, case.names) as (net, fetch):
            outcome = await ask(fetch, url=case.url)
            assert not outcome.failed, (case, outcome.text)
            assert f"\n\nThis is {case.path}.\n\n" in outcome.text, (case, outcome.text)
            assert net.dialled == case.dialled, case
            fetched += 1
    figures(f"harmless URLs: {HARMLESS} tried, {fetched} fetched")
