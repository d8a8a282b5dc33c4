"""Edit a copy of what is known in the user's editor, and merge what was saved.

The copy has a known base. What was learned while the editor was open is merged three-way; the copy is kept
whenever its words could not be saved.
"""

import shutil
import tempfile
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from msgspec import Struct

from hone.app import Hone
from hone.cli.context import find_editor, ledger_of, open_editor, with_home
from hone.cli.options import Options
from hone.core.errors import Conflict, HoneError, Refused
from hone.core.ledger import Actor, Author, ChangeKind, Entry, Target, skill
from hone.core.messages import digest
from hone.core.skill import DOCUMENT
from hone.core.visible import visible
from hone.files import atomic
from hone.knowledge import places
from hone.knowledge.journal import SetText, lines
from hone.knowledge.keeper import Keeper
from hone.knowledge.merge import Merged, Split, by_entry, merge
from hone.knowledge.skills.folder import EditDocument

MUST_WAIT = "An editor that returns at once needs an option to wait, such as code --wait."
TRIES = 5
"""How often an edit is merged again because others were faster."""


class Edited(Struct, frozen=True):
    """The result of an edit. `entry` is None if nothing has changed; `notices` are plain sentences."""

    entry: Entry | None = None
    notices: tuple[str, ...] = ()


UNCHANGED = Edited()
Record = Callable[[Keeper, str, str], Awaitable[Entry]]
"""Records a text in place of the one that was read. Raises Conflict if another one is there by now."""


def edit_journal(options: Options, target: Target, place: Path, base: str) -> Edited:
    """Let the user edit a part of the journal, which reads `base` now."""
    author = Author(Actor.OWNER, tool="hone memory edit")

    async def record(keeper: Keeper, now: str, text: str) -> Entry:
        edit = SetText(text, digest(now.encode()))
        return (await keeper.note([(target, edit)], author, ChangeKind.EDIT))[0]

    return _edit(options, target, place, base, record)


def edit_document(options: Options, name: str, place: Path, base: str) -> Edited:
    """Let the user edit the document of a skill, which reads `base` now."""
    author = Author(Actor.OWNER, tool="hone skills edit")

    async def record(keeper: Keeper, now: str, text: str) -> Entry:
        return await keeper.edit_skill(name, EditDocument(text, digest(now.encode())), author)

    return _edit(options, skill(name), place, base, record)


def _edit(options: Options, target: Target, place: Path, base: str, record: Record) -> Edited:
    find_editor(place)
    with _copied(place.name, base) as copy:
        open_editor(copy)
        saved = _read(copy, place)
        if saved == base:
            return UNCHANGED
        return with_home(options, lambda hone: _merge(hone, target, base, saved, record))


@contextmanager
def _copied(name: str, text: str) -> Iterator[Path]:
    """Yield a private copy, deleted at the end. If something fails, it stays, unless it is unchanged."""
    folder = Path(tempfile.mkdtemp(prefix="hone-edit-"))
    copy = folder / name
    atomic.write(copy, text.encode(), durable=False)
    try:
        yield copy
    except HoneError as error:
        if not copy.is_file() or copy.read_bytes() == text.encode():
            shutil.rmtree(folder, ignore_errors=True)
            raise
        raise Refused(f"{error}\nYour edit is not lost: {visible(str(copy))}") from error
    shutil.rmtree(folder, ignore_errors=True)


def _read(copy: Path, place: Path) -> str:
    try:
        return copy.read_bytes().decode()
    except OSError as error:
        raise Refused(f"The editor has removed the copy of {place.name}; nothing was changed.") from error
    except UnicodeDecodeError as error:
        raise Refused(
            f"{place.name} is not UTF-8 text (byte {error.start:,}); nothing was changed. Save it as UTF-8."
        ) from error


async def _merge(hone: Hone, target: Target, base: str, saved: str, record: Record) -> Edited:
    keeper, is_journal = ledger_of(hone), places.is_journal(target)
    split, path = (by_entry, places.path_of(target)) if is_journal else (lines, DOCUMENT)
    for _ in range(TRIES):
        now = (await keeper.files(target)).get(path, b"").decode()
        try:
            return await _record_merged(keeper, (base, now, saved), split, record)
        except Conflict:  # another writer was faster
            continue
    raise Conflict("Others keep changing it; nothing was changed. Try again.")


async def _record_merged(keeper: Keeper, texts: tuple[str, str, str], split: Split, record: Record) -> Edited:
    """Record a merge. If both sides changed the same place, keep both; if that is unusable, keep the
    user's."""
    base, now, saved = texts
    merged = merge(base, now, saved, split, both=True)
    if merged.text == now:
        return UNCHANGED
    try:
        return Edited(await record(keeper, now, merged.text), tuple(_notices(base, now, merged)))
    except Refused:
        if not merged.clashes or split is by_entry:
            raise
    entry = await record(keeper, now, merge(base, now, saved, split).text)
    return Edited(entry, ("Your edit replaced a change made meanwhile; hone log has both.",))


def _notices(base: str, now: str, merged: Merged) -> Iterator[str]:
    if merged.clashes:
        yield "Your edit conflicts with a change made meanwhile; both were kept. Check the text."
    elif base != now:
        yield "It was merged with changes made meanwhile."
