"""Merge two edits of one text. A part that only one side changed is taken from that side."""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence

from msgspec import Struct

from hone.core import seldom
from hone.knowledge.journal import blocks, lines


class Clash(Struct, frozen=True):
    """A stretch that both sides changed, each differently."""

    base: tuple[str, ...]
    ours: tuple[str, ...]
    theirs: tuple[str, ...]


class Merged(Struct, frozen=True):
    """In a clash, `theirs` was taken or both were kept; `clashes` lists the conflicts."""

    text: str
    clashes: tuple[Clash, ...] = ()


Split = Callable[[str], list[str]]


OLDER = "an older version of the file"
"""The tool name for an owner's edit whose editor did not have the newest version."""


class Save(Struct, frozen=True):
    """What the owner saved at a place, and what is held there. `unread`: nobody had read the newest version
    before. `both`: if the save conflicts with a later change, both are kept."""

    place: str
    saved: str
    held: str
    split: Split
    unread: bool = False
    both: bool = True


class Saved(Struct, frozen=True):
    """The result of the owner's save of one file. `older`: the editor does not have all of it."""

    data: bytes
    older: bool = False
    notices: tuple[str, ...] = ()


def by_entry(text: str) -> list[str]:
    """Split a journal: an entry is one piece, however many lines it has."""
    return [block.raw for block in blocks(text)]


def merge(base: str, ours: str, theirs: str, split: Split = lines, *, both: bool = False) -> Merged:
    """Merge two edits. If both insert at the same place, both insertions stay, ours first. `both`: in a clash
    both stay as well, and what one side removed does not return because the other side moved it."""
    if ours in (base, theirs):
        return Merged(theirs)
    if base == theirs:
        return Merged(ours)
    sides = [_whole(split(text)) for text in (base, ours, theirs)]
    pieces, clashes = _merged(sides[0], sides[1], sides[2], _unite if both else _take_theirs)
    was, mine, yours = map(Counter, sides)
    for each in _revived(was, mine, yours, pieces):
        clashes.append(Clash((each,), (), (each,)))
        if both:
            pieces.remove(each)
    for each in _revived(was, yours, mine, pieces):
        clashes.append(Clash((each,), (each,), ()))
        pieces.remove(each)
    if both:
        _remove_doubles(pieces, mine | yours)
    text = "".join(pieces)
    ended = _is_ended(theirs) if _is_ended(ours) == _is_ended(base) else _is_ended(ours)
    return Merged(text if ended else text.removesuffix("\n"), tuple(clashes))


def _revived(was: Counter[str], gone: Counter[str], moved: Counter[str], pieces: list[str]) -> list[str]:
    """Return what one side removed and the other only moved: at its new place it has returned."""
    now = Counter(pieces)
    return [
        each
        for each in was
        if each.strip() and gone[each] < min(now[each], was[each]) and moved[each] == was[each]
    ]


def _is_ended(text: str) -> bool:
    return not text or text.endswith("\n")


def _whole(pieces: list[str]) -> list[str]:
    """End the last line like the others, so that another one can follow it."""
    return [piece if piece.endswith("\n") else f"{piece}\n" for piece in pieces]


class _Hunk(Struct, frozen=True):
    """Pieces of the base and their replacement."""

    start: int
    end: int
    new: tuple[str, ...]


def _hunks(base: Sequence[str], side: Sequence[str]) -> list[_Hunk]:
    matcher = seldom.difflib.SequenceMatcher(None, base, side, autojunk=False)
    return [
        _Hunk(start, end, tuple(side[first:last]))
        for tag, start, end, first, last in matcher.get_opcodes()
        if tag != "equal"
    ]


Resolve = Callable[[Sequence[str], Sequence[str], Sequence[str]], Sequence[str]]


def _take_theirs(_base: Sequence[str], _ours: Sequence[str], theirs: Sequence[str]) -> Sequence[str]:
    return theirs


def _unite(base: Sequence[str], ours: Sequence[str], theirs: Sequence[str]) -> Sequence[str]:
    """Return our side's insertions, and theirs without what our side removed."""
    was, mine = Counter(base), Counter(ours)
    gone, come = was - mine, mine - was - Counter(theirs)
    left, right = [], []
    for piece in ours:
        if come[piece]:
            come[piece] -= 1
            left.append(piece)
    for piece in theirs:
        if gone[piece] and piece.strip():
            gone[piece] -= 1
        else:
            right.append(piece)
    return (*left, *right)


def _remove_doubles(pieces: list[str], most: Counter[str]) -> None:
    """Remove duplicates: both sides may have moved a piece, each to another place."""
    for piece, count in (Counter(pieces) - most).items():
        for _ in range(count if piece.strip() else 0):
            pieces.remove(piece)


def _merged(
    base: Sequence[str], ours: Sequence[str], theirs: Sequence[str], resolve: Resolve
) -> tuple[list[str], list[Clash]]:
    pieces: list[str] = []
    clashes: list[Clash] = []
    done = 0
    for mine, yours in _groups(_hunks(base, ours), _hunks(base, theirs)):
        start = min(hunk.start for hunk in (*mine, *yours))
        end = max(hunk.end for hunk in (*mine, *yours))
        pieces += base[done:start]
        left, right = _applied(base, start, end, mine), _applied(base, start, end, yours)
        if not mine or not yours or left == right:
            pieces += right if yours else left
        elif start == end:
            pieces += _both(left, right)
        else:
            pieces += resolve(base[start:end], left, right)
            clashes.append(Clash(tuple(base[start:end]), left, right))
        done = end
    return [*pieces, *base[done:]], clashes


def _both(left: Sequence[str], right: Sequence[str]) -> Sequence[str]:
    """Combine two insertions at one place. If one contains the other in order, it was made on top of it."""
    if _has(left, right):
        return left
    return right if _has(right, left) else (*left, *right)


def _has(whole: Sequence[str], part: Sequence[str]) -> bool:
    rest = iter(whole)
    return all(piece in rest for piece in part)


def _applied(base: Sequence[str], start: int, end: int, hunks: Sequence[_Hunk]) -> tuple[str, ...]:
    pieces: list[str] = []
    at = start
    for hunk in hunks:
        pieces += (*base[at : hunk.start], *hunk.new)
        at = hunk.end
    return (*pieces, *base[at:end])


def _groups(ours: list[_Hunk], theirs: list[_Hunk]) -> Iterator[tuple[list[_Hunk], list[_Hunk]]]:
    """Group hunks that overlap with those of the other side."""
    left, right = list(ours), list(theirs)
    while left or right:
        mine: list[_Hunk] = []
        yours: list[_Hunk] = []
        first = left if not right or (left and _key(left[0]) <= _key(right[0])) else right
        (mine if first is left else yours).append(first.pop(0))
        grown = True
        while grown:
            grown = False
            for queue, group, others in ((left, mine, yours), (right, yours, mine)):
                while queue and any(_overlap(queue[0], other) for other in others):
                    group.append(queue.pop(0))
                    grown = True
        yield mine, yours


def _key(hunk: _Hunk) -> tuple[int, int]:
    return hunk.start, hunk.end


def _overlap(a: _Hunk, b: _Hunk) -> bool:
    """Tell whether hunks overlap. Adjacent ones do not; two insertions at one place do."""
    if a.start == a.end == b.start == b.end:
        return True
    return max(a.start, b.start) < min(a.end, b.end) or _inside(a, b) or _inside(b, a)


def _inside(a: _Hunk, b: _Hunk) -> bool:
    return a.start == a.end and b.start < a.start < b.end
