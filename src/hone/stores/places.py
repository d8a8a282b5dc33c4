"""Find where contents were said: the nodes of each, and the session that a node is shown in.

Branched, moved and shortened sessions are included.
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Sequence

from msgspec import Struct

from hone.core.ids import SessionId
from hone.core.messages import Message, decode
from hone.core.ports import Header
from hone.core.turn import Origin
from hone.stores.search_source import Candidate, PlaceSource, Spot
from hone.stores.tree import SYMPTOMS, moment
from hone.stores.window import Window

OCCURRENCES = 20
"""The most nodes of one content to check, latest first: some words are said every day."""


class Owner(Struct, frozen=True):
    """The session that a spot is shown in. `left`: it has continued without the spot. `line` are its nodes
    from about the spot on, if others have the same conversation."""

    session: SessionId
    tree: SessionId
    left: bool = False
    line: frozenset[int] | None = None


def spots(source: PlaceSource, contents: Sequence[int], only: Window, times: Window) -> dict[int, list[Spot]]:
    """Return where each was said within the bounds, latest first; at the requested times if possible."""
    found = _spots(source, contents, only & times)
    missing = [id for id in contents if id not in found] if times.spans else []
    return found | (_spots(source, missing, only) if missing else {})


def _spots(source: PlaceSource, contents: Sequence[int], window: Window) -> dict[int, list[Spot]]:
    found: dict[int, list[Spot]] = defaultdict(list)
    for spot in source.spots(contents, window, OCCURRENCES):
        found[spot.content].append(spot)
    return dict(found)


def messages(source: PlaceSource, contents: Collection[int]) -> dict[int, tuple[str, Message]]:
    """Return digest and message of each. A damaged one is left out: opening its session will report it."""
    found: dict[int, tuple[str, Message]] = {}
    for id, digest, body in source.bodies(contents):
        try:
            found[id] = digest, decode(body)
        except SYMPTOMS:
            continue
    return found


def headers(source: PlaceSource, sessions: Collection[str]) -> dict[str, tuple[Header, str]]:
    """Return the header of each, and the user's first words in it."""
    found: dict[str, tuple[Header, str]] = {}
    rows = source.headers(sessions)
    for id, created, title, origin, folder, parent, shared, opening in rows:
        try:
            header = Header(id, moment(created), title, Origin(origin), folder, parent, shared)
        except SYMPTOMS:
            continue
        found[id] = header, opening
    return found


def beside(
    source: PlaceSource, chosen: Sequence[tuple[Spot, Owner]]
) -> tuple[dict[int, Spot], dict[int, Spot]]:
    """Return what stands before and after each node. A fork may continue from there, too, but is not
    included."""
    before: dict[int, Spot] = {}
    after: dict[int, Spot] = {}
    known = {spot.id: (spot, owner) for spot, owner in chosen}
    for node, beside in source.beside(known):
        spot, owner = known[node]
        if beside.depth < spot.depth:
            before[node] = beside
        elif owner.line is None or beside.id in owner.line:
            after.setdefault(node, beside)
    return before, after


class Lineage:
    """Tells which session holds a node. It caches what it has walked during one search."""

    def __init__(self, source: PlaceSource, found: Collection[Spot]) -> None:
        self._source = source
        self._sessions: dict[int, list[Candidate]] = {}
        self._least: dict[int, int] = {}
        self._lines: dict[int, tuple[int, frozenset[int]]] = {}
        self._learn(found)

    def owners(self, found: Iterable[Spot]) -> list[tuple[Spot, Owner]]:
        """Return for each tree one spot with its owner: the first one said on a current line, if any."""
        trees: dict[str, tuple[Spot, Owner]] = {}
        for spot in found:
            owner = self.owner(spot)
            if owner is None:
                continue
            known = trees.get(owner.tree)
            if known is None or (owner.left, spot.id) < (known[1].left, known[0].id):
                trees[owner.tree] = spot, owner
        return list(trees.values())

    def owner(self, spot: Spot) -> Owner | None:
        """Return the owner; None only if a row is damaged, since every node belongs to a session."""
        visited: set[int] = set()
        place, left = spot, False
        while place.id not in visited:
            visited.add(place.id)
            held = self._holder(place, shared=False)
            later = None if held else self._source.later(place.id)
            if later is None:
                held = held or self._holder(place, shared=True)
                return self._owner(held, place, left=left) if held else None
            place, left = later, True
        return None

    def _owner(self, held: Candidate, place: Spot, *, left: bool) -> Owner:
        line = None if held.alone or left else self._line(held, place)
        return Owner(held.session, held.tree, left, line)

    def _holder(self, spot: Spot, *, shared: bool) -> Candidate | None:
        """Return the session that holds a node. A session still owns what shortening removed from it,
        even if only a fork holds that."""
        for each in self._candidates(spot):
            if each.only_shares(spot) is shared and (each.alone or spot.id in self._line(each, spot)):
                return each
        return None

    def _learn(self, found: Collection[Spot]) -> None:
        """Run one query for the sessions of all chains, and one for the lines of those that said it first."""
        for spot in found:
            self._least[spot.chain] = min(spot.depth, self._least.get(spot.chain, spot.depth))
        self._sessions |= {chain: [] for chain in self._least}
        for chain, candidate in self._source.sessions(self._least):
            self._sessions[chain].append(candidate)
        firsts = {spot.chain: self._candidates(spot)[:1] for spot in found}
        self._walk(
            {each.head: self._least[chain] for chain, of in firsts.items() for each in of if not each.alone}
        )

    def _candidates(self, spot: Spot) -> list[Candidate]:
        """Return the sessions that said it before those that share it."""
        if spot.chain not in self._sessions:
            self._learn([spot])
        able = [each for each in self._sessions[spot.chain] if each.alone or each.messages >= spot.depth]
        return sorted(able, key=lambda each: each.shared >= spot.depth)

    def _line(self, each: Candidate, spot: Spot) -> frozenset[int]:
        least, line = self._lines.get(each.head, (spot.depth + 1, frozenset()))
        if least > spot.depth:
            self._walk({each.head: min(spot.depth, self._least.get(spot.chain, spot.depth))})
            least, line = self._lines[each.head]
        return line

    def _walk(self, heads: dict[int, int]) -> None:
        """Walk from each head up to a depth."""
        self._lines |= {head: (least, frozenset()) for head, least in heads.items()}
        if heads:
            for head, ids in self._source.lines(heads):
                self._lines[head] = heads[head], frozenset(ids)
