"""Merge the files of a target three-way: the base, what is known now, and the files of the checkout."""

from collections.abc import Mapping

from msgspec import Struct

from hone.core.errors import HoneError, StoreError
from hone.core.ledger import Target
from hone.core.messages import digest
from hone.features.checkouts.values import BaseVersion
from hone.knowledge import journal, places
from hone.knowledge.file_sync import PROSE
from hone.knowledge.folding import Files
from hone.knowledge.merge import Merged, by_entry, merge
from hone.knowledge.skills.document import validate


class Sides(Struct, frozen=True):
    """The files of one target, by place."""

    target: Target
    base: Mapping[str, BaseVersion]
    now: Files
    saved: Files

    @property
    def edited(self) -> list[str]:
        """Return the places that were edited since the base."""
        return sorted(place for place, data in self.saved.items() if digest(data) != self._base_digest(place))

    @property
    def missing(self) -> list[str]:
        """Return the places that were removed since the base and are still known."""
        return sorted(place for place in self.base.keys() - self.saved.keys() if place in self.now)

    def _base_digest(self, place: str) -> str:
        return self.base[place].digest if place in self.base else ""


class MergedTarget(Struct, frozen=True):
    """The merged files; `notices` are plain sentences."""

    files: Files
    notices: tuple[str, ...] = ()


def merge_target(sides: Sides) -> MergedTarget:
    """Merge a target. A file that is missing in the checkout was not removed: it comes back. If both sides
    changed the same place, both are kept; in scripts, and where two versions of a line would break a skill,
    the checkout wins. Raises StoreError if nobody can merge it."""
    merged = _merge(sides, both=True)
    if places.is_journal(sides.target) or _is_valid(sides.target, merged.files):
        return merged
    return _merge(sides, both=False)


def _merge(sides: Sides, *, both: bool) -> MergedTarget:
    files: dict[str, bytes] = {}
    notices: list[str] = []
    for place in sorted({*sides.base, *sides.now, *sides.saved}):
        found = _merge_file(sides, place, notices, both=both)
        if found is not None:
            files[place] = found
    return MergedTarget(files, tuple(notices))


def _merge_file(sides: Sides, place: str, notices: list[str], *, both: bool) -> bytes | None:
    base, now, saved = sides.base.get(place), sides.now.get(place), sides.saved.get(place)
    if saved is None or saved == now or (base and digest(saved) == base.digest):
        return now
    if base and now is not None and digest(now) == base.digest:
        return saved
    if now is None:
        if base:
            notices.append(f"{place}: it was removed meanwhile; your version stays. Delete it if you agree.")
        return saved
    merged = _merge_texts(sides.target, place, base, (now, saved), both=both)
    if merged.clashes:
        notices.append(_describe_clash(sides.target, place, both=both))
    return merged.text.encode()


def _merge_texts(
    target: Target, place: str, base: BaseVersion | None, sides: tuple[bytes, bytes], *, both: bool
) -> Merged:
    is_journal = places.is_journal(target)
    if base is None and not is_journal:
        raise StoreError(
            f"{place} is new here, and the database has another one. Rename your folder, or move it away, "
            "then run: hone pull"
        )
    if base and base.data is None:
        raise StoreError(
            f"{place}: the version that you edited was erased. Move your file away, run hone pull, and bring "
            "over what you want to keep."
        )
    try:
        was, now, saved = ((base.data or b"") if base else b"").decode(), sides[0].decode(), sides[1].decode()
    except UnicodeDecodeError as error:
        raise StoreError(
            f"{place} was changed here and in the database, and is not UTF-8 text. Move yours away, then "
            "run: hone pull"
        ) from error
    both = both and (is_journal or place.endswith(PROSE))
    return merge(was, now, saved, by_entry if is_journal else journal.lines, both=both)


def _describe_clash(target: Target, place: str, *, both: bool) -> str:
    if both and (places.is_journal(target) or place.endswith(PROSE)):
        return f"{place}: your edit conflicts with a change made meanwhile; both were kept. Check the text."
    return f"{place}: your edit replaces a change made meanwhile; hone log has both."


def _is_valid(target: Target, files: Files) -> bool:
    try:
        validate(
            places.name_of(target), {places.path_at(target, place): each for place, each in files.items()}
        )
    except HoneError:
        return False
    return True
