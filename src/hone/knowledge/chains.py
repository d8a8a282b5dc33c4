"""Trace replacements: the chain of an entry from its first wording to the current one."""

from collections.abc import Mapping, Sequence

from msgspec import Struct

from hone.core.ledger import ChangeId, ChangeQuery, ChangeState, Entry, Ledger, Target
from hone.knowledge import places
from hone.knowledge.folding import load_all_steps
from hone.knowledge.journal import compare
from hone.knowledge.resemblance import resembles


class Link(Struct, frozen=True):
    """A change that replaced `before` with `now`. With an empty `now` the entry was removed; without `before`
    it is the first wording."""

    entry: Entry
    before: tuple[str, ...] = ()
    now: str = ""


async def read_chain(ledger: Ledger, id: ChangeId) -> list[Link]:
    """Return the changes that led to what a change brought, and those that followed, oldest first. A change
    of anything but the journal stands alone. Raises Missing."""
    start = await ledger.entry(id)
    links = await _read_links(ledger, start.change.target) if places.is_journal(start.change.target) else {}
    own = links.get(id, [])
    if not own:
        return [Link(start)]
    chain = {(link.entry.id, link.now): link for link in own}
    earlier = [text for link in own for text in link.before]
    later = [link.now for link in own if link.now]
    every = [link for each in links.values() for link in each]
    _follow(chain, earlier, [link for link in every if link.entry.id < id], back=True)
    _follow(chain, later, [link for link in every if link.entry.id > id], back=False)
    return [chain[key] for key in sorted(chain)]


def _follow(
    chain: dict[tuple[ChangeId, str], Link], texts: Sequence[str], links: Sequence[Link], *, back: bool
) -> None:
    """Add what leads to these texts, or what follows them."""
    wanted = list(texts)
    seen = set(wanted)
    while wanted:
        text = wanted.pop()
        for link in links:
            # A removed entry can return in the same words.
            ends, goes = ((link.now,), link.before) if back else ((*link.before, link.now), (link.now,))
            if text in ends:
                chain[link.entry.id, link.now] = link
                wanted += [each for each in goes if each and each not in seen]
                seen.update(goes)


async def _read_links(ledger: Ledger, target: Target) -> Mapping[ChangeId, list[Link]]:
    made = [
        each
        for each in reversed(await ledger.entries(ChangeQuery(target=target)))
        if each.change.standing is ChangeState.ACTIVE and each.change.deltas
    ]
    steps = await load_all_steps(ledger, [each.change for each in made])
    found = {}
    for entry, own in zip(made, steps, strict=True):
        came, gone = [], []
        for step in own:
            new, old = compare(step.before or b"", step.after or b"")
            came += new
            gone += old
        found[entry.id] = pair(entry, came, gone)
    return found


def pair(entry: Entry, came: Sequence[str], gone: Sequence[str]) -> list[Link]:
    """Match new entries with the ones they replaced. A single new entry replaced all of them; of several,
    each replaced those it resembles."""
    if len(came) == 1:
        return [Link(entry, tuple(gone), came[0])]
    links = [Link(entry, tuple(old for old in gone if resembles(new, old)), new) for new in came]
    replaced = {old for link in links for old in link.before}
    return [*links, *(Link(entry, (old,)) for old in gone if old not in replaced)]
