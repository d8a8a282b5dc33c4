"""Find the version of a file that an editor had open when it saved the file.

Nobody can see what an editor has loaded. It may have held an old version for hours, and then its save lacks a
lesson that was learned in the meantime. So a save counts as based on the newest version that has left a trace
in it: an entry that came with that version, word for word or in other words. Later entries are newer than the
edit, and their absence is no removal.

Without such a trace there are two explanations, and they cannot always be told apart. If the save equals an
old version, the owner has removed what came next, unless nobody has read the newest file. Otherwise newer
entries are kept, and the owner is told.
"""

from collections.abc import Collection, Sequence
from contextlib import suppress
from difflib import SequenceMatcher
from itertools import pairwise

from msgspec import Struct

from hone.core.errors import Corrupt, Missing
from hone.core.ledger import Actor, Change, ChangeId, ChangeKind, ChangeQuery, ChangeState, Ledger, Target
from hone.core.value import replace
from hone.core.visible import one_line
from hone.knowledge import places
from hone.knowledge.journal import MARK
from hone.knowledge.merge import OLDER, Merged, Save, Saved, Split, merge
from hone.knowledge.resemblance import contradicts, resembles

MOST = 200
"""The most changes of a target to check."""
_ALIKE, _SAME = 0.6, 0.85
"""The fewest letters that two pieces share if one may have become the other: with the same meaning, or with
any."""
_TELLING = 3
"""The fewest words of a line that two people hardly write alike by chance."""


class Version(Struct, frozen=True):
    """A version that an editor may have held. `change` brought it; `resaved`: the owner has saved an older
    buffer since, and the text includes what that save added."""

    text: str
    change: ChangeId | None = None
    resaved: bool = False


class _Made(Struct, frozen=True):
    change: Change
    id: ChangeId
    before: str | None
    after: str | None

    @property
    def names(self) -> tuple[str | None, str | None]:
        return self.before, self.after

    @property
    def by_hand(self) -> bool:
        return self.change.kind is ChangeKind.EDIT and self.change.author.actor is Actor.OWNER

    @property
    def is_resaved(self) -> bool:
        return self.by_hand and self.change.author.tool == OLDER

    @property
    def is_read(self) -> bool:
        """Tell whether an editor has shown by this change that it held the newest version."""
        return self.by_hand and not self.change.author.tool


async def load_versions(
    ledger: Ledger, target: Target, path: str, published: str, split: Split
) -> Sequence[Version]:
    """Return what an editor may have read, newest first. `published` is the digest of what was last written
    to disk; empty if nothing was, or if it was removed."""
    made = await _load_made(ledger, target, path)
    start = next((at for at, each in enumerate(made) if (each.after or "") == published), len(made))
    end = next((at + 1 for at, each in enumerate(made) if at >= start and each.is_read), len(made))
    known = made[start:end]
    texts = await _load_texts(ledger, {published, *(name or "" for each in known for name in each.names)})
    gone = next((at for at, each in enumerate(known) if (each.after or "") not in texts), len(known))
    known = known[:gone]
    if not known:
        return [Version(texts.get(published, ""))]
    found, first = [Version(texts[each.after or ""], each.id) for each in known], known[-1]
    # A journal may be started in an editor while the first lesson is learned; nobody starts a skill twice.
    if not first.is_read and (first.before or places.is_journal(target)) and (first.before or "") in texts:
        found.append(Version(texts[first.before or ""]))
    return _resave(found, [each.is_resaved for each in known], split)


async def _load_made(ledger: Ledger, target: Target, path: str) -> list[_Made]:
    """Return the changes of one file, the newest first."""
    return [
        _Made(entry.change, entry.id, delta.before, delta.after)
        for entry in await ledger.entries(ChangeQuery(target=target, limit=MOST))
        if entry.change.standing is ChangeState.ACTIVE
        for delta in entry.change.deltas
        if delta.path == path and delta.before != delta.after
    ]


async def _load_texts(ledger: Ledger, names: Collection[str]) -> dict[str, str]:
    """Return the texts that exist. An old one may be erased or damaged."""
    contents, wanted = {"": b""}, {name for name in names if name}
    try:
        contents |= await ledger.contents(wanted)
    except (Missing, Corrupt):
        for name in wanted:
            with suppress(Missing, Corrupt):
                contents |= await ledger.contents({name})
    return {name: data.decode(errors="replace") for name, data in contents.items()}


def _resave(found: Sequence[Version], resaved: Sequence[bool], split: Split) -> list[Version]:
    """Add to each version what later saves of older buffers have added, since the editor has that, too. A
    version before such a save is the one after it; any other change is reverted."""
    versions, after = [found[0]], found[0].text
    for at, (newer, version) in enumerate(pairwise(found)):
        if not resaved[at]:
            after = merge(newer.text, version.text, after, split, both=True).text
        if after == versions[-1].text:
            versions[-1] = replace(versions[-1], change=version.change)
        else:
            versions.append(Version(after, version.change, any(resaved[: at + 1])))
    return versions


def choose(versions: Sequence[Version], saved: str, split: Split, *, unread: bool) -> Version:
    """Return the version that a save was based on. `unread`: nobody has read the newest one before the save.
    An emptied file is empty on purpose. A save that equals an old version was made from the next one, by
    removing what came with it: nobody saves a file without a change."""
    newest, pieces = versions[0], _pieces(saved, split)
    if not pieces:
        return newest
    found = _find_traced(versions, saved, split)
    if unread or found.resaved or _pieces(found.text, split) != pieces:
        return found
    is_shorter = set(pieces) <= set(_pieces(newest.text, split))
    return versions[max(versions.index(found) - 1, 0)] if is_shorter else found


def _find_traced(versions: Sequence[Version], saved: str, split: Split) -> Version:
    pieces = [_pieces(each.text, split) for each in versions]
    there, known = set(_pieces(saved, split)), {piece for each in pieces for piece in each}
    written = [piece for piece in there if piece not in known]
    for at, (version, _) in enumerate(pairwise(versions)):
        older = {piece for each in pieces[at + 1 :] for piece in each}
        came = [piece for piece in pieces[at] if piece not in older]
        if any(piece in there for piece in _telling(came)):
            return version
        lost = [piece for piece in older if piece not in there]
        if any(_is_reworded(piece, written, lost) for piece in came):
            return version
    return versions[-1]


def _pieces(text: str, split: Split) -> list[str]:
    return [piece.strip() for piece in split(text) if piece.strip()]


def _telling(pieces: Sequence[str]) -> Sequence[str]:
    """Drop lines that say little, such as headings, if there are others."""
    telling = [each for each in pieces if each.startswith(MARK) or len(each.split()) >= _TELLING]
    return telling or pieces


def _is_reworded(piece: str, written: Sequence[str], lost: Sequence[str]) -> bool:
    """Tell whether the owner wrote this piece in other words, and it is not an older one."""
    return any(_is_like(piece, new) and not any(_is_like(old, new) for old in lost) for new in written)


def _is_like(one: str, other: str) -> bool:
    """Tell whether one may have become the other by editing."""
    if one in other or _is_start(other, one):
        return True
    ratio = SequenceMatcher(None, one, other).ratio()
    return ratio >= _SAME or (ratio >= _ALIKE and (resembles(one, other) or contradicts(one, other)))


def _is_start(short: str, piece: str) -> bool:
    """Tell whether somebody who cut a piece short left this, perhaps with a new full stop."""
    return len(short.split()) >= _TELLING and piece.startswith(short.rstrip(". "))


async def take_save(ledger: Ledger, target: Target, path: str, published: str, save: Save) -> Saved:
    """Return the result of a save. `published` is the digest of what was last written to disk; empty if
    nothing was, or if it was removed."""
    if not published and not places.is_journal(target):
        return take(save, [Version("")])
    return take(save, await load_versions(ledger, target, path, published, save.split))


def take(save: Save, versions: Sequence[Version]) -> Saved:
    """Merge what the owner saved with what is held, based on the version that it came from."""
    base = choose(versions, save.saved, save.split, unread=save.unread)
    merged = merge(base.text, save.held, save.saved, save.split, both=save.both)
    if sorted(_pieces(merged.text, save.split)) == sorted(_pieces(save.saved, save.split)):
        merged = replace(merged, text=save.saved)  # the order is the owner's
    is_met = any(set(each.ours) - set(each.base) or not save.both for each in merged.clashes)
    notices = [_describe_clash(save.place, both=save.both)] if is_met else []
    if base is not versions[0]:
        notices += _describe_newer(save, versions, merged)
    return Saved(merged.text.encode(), merged.text != save.saved, tuple(notices))


def _describe_newer(save: Save, versions: Sequence[Version], merged: Merged) -> list[str]:
    """Describe what was kept or stays removed although the save says otherwise, where it did not conflict
    with the edit."""
    place, split, notices = save.place, save.split, list[str]()
    there, now = _pieces(save.saved, split), _pieces(merged.text, split)
    met = {*there, *(piece.strip() for clash in merged.clashes for piece in clash.ours)}
    kept = [piece for piece in _pieces(versions[0].text, split) if piece in now and piece not in met]
    gone = [piece for piece in there if piece not in now]
    if kept:
        notices.append(_describe_kept(place, kept, _find_change(versions, kept[0], split)))
    if gone:
        others = f" and {len(gone) - 1} more lines" if gone[1:] else ""
        notices.append(
            f"{place}: {_quoted(gone[0])}{others} had been removed since the version that you edited, and "
            "stays removed. hone log has it."
        )
    return notices


def _describe_clash(place: str, *, both: bool) -> str:
    if both:
        return f"{place}: your edit conflicts with a change made meanwhile; both were kept."
    return f"{place}: your edit replaced a change made meanwhile; hone log has both."


def _describe_kept(place: str, kept: Sequence[str], change: ChangeId | None) -> str:
    if kept[1:]:
        return (
            f"{place}: {len(kept)} lines were kept that are newer than the version you edited, such as "
            f"{_quoted(kept[0])}. hone log lists them."
        )
    remedy = f" To remove it: hone undo {change}" if change else ""
    return f"{place}: {_quoted(kept[0])} was kept, because it is newer than the version you edited.{remedy}"


def _quoted(piece: str) -> str:
    return f'"{one_line(piece.removeprefix(MARK), 80)}"'


def _find_change(versions: Sequence[Version], piece: str, split: Split) -> ChangeId | None:
    """Return the change that added a piece."""
    found = None
    for version in versions:
        if piece not in _pieces(version.text, split):
            break
        found = version.change
    return found
