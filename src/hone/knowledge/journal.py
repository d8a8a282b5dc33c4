"""Parse the journal into entries and the owner's prose, and edit one entry without changing anything else.

An entry is a `- ` item at the left margin; its further lines are indented by two. Everything else in the
file belongs to the owner and stays unchanged. No entry can imitate structure, because each line is marked.
"""

from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from typing import ClassVar

from msgspec import Struct

from hone.core.errors import AlreadyKnown, Conflict, Refused
from hone.core.ledger import ChangeKind
from hone.core.messages import digest
from hone.core.visible import visible
from hone.knowledge.validity import pin, read

MARK, INDENT = "- ", "  "
FENCES = ("```", "~~~")


class Block(Struct, frozen=True):
    """Lines of the file, to the byte. `entry` is their text; None for prose."""

    raw: str
    entry: str | None = None


class Add(Struct, frozen=True):
    """`anyway`: although there are entries like it."""

    kind: ClassVar[ChangeKind] = ChangeKind.ADD
    text: str
    anyway: bool = False


class ReplaceEntry(Struct, frozen=True):
    """`match` is the entry, or a part that no other entry has."""

    kind: ClassVar[ChangeKind] = ChangeKind.REPLACE
    match: str
    text: str


class Remove(Struct, frozen=True):
    kind: ClassVar[ChangeKind] = ChangeKind.REMOVE
    match: str


class PinEntry(Struct, frozen=True):
    """Only the owner pins. What an agent wants to change of a pinned entry waits for the owner."""

    kind: ClassVar[ChangeKind] = ChangeKind.PIN
    match: str


class UnpinEntry(Struct, frozen=True):
    kind: ClassVar[ChangeKind] = ChangeKind.UNPIN
    match: str


class SetText(Struct, frozen=True):
    """The whole text, as the owner, an undo or a merge makes it. `seen` is the digest of what the editor saw;
    empty: any."""

    kind: ClassVar[ChangeKind] = ChangeKind.SET
    text: str
    seen: str = ""


Edit = Add | ReplaceEntry | Remove | PinEntry | UnpinEntry | SetText


_RECENT = 16
"""How many texts keep their blocks: each change asks several times about old and new ones."""
_parsed: dict[str, tuple[Block, ...]] = {}


def blocks(text: str) -> list[Block]:
    """Split a text into blocks. Joined, they are the text again."""
    found = _parsed.get(text)
    return list(_keep(text, parse(text)) if found is None else found)


def parse(text: str) -> tuple[Block, ...]:
    """Split a text into blocks without the cache."""
    return tuple(_blocks(lines(text)))


def _keep(text: str, found: tuple[Block, ...]) -> tuple[Block, ...]:
    while len(_parsed) >= _RECENT:
        _parsed.pop(next(iter(_parsed)), None)
    _parsed[text] = found
    return found


@lru_cache(maxsize=_RECENT)
def entries(text: str) -> tuple[str, ...]:
    return tuple(block.entry for block in blocks(text) if block.entry is not None)


@lru_cache(maxsize=_RECENT)
def size(text: str) -> int:
    """Return the size that the limit applies to: the characters of the entries, without their dates."""
    return sum([len(read(entry).wording) for entry in entries(text)])


def format_entry(entry: str) -> str:
    first, *rest = entry.split("\n")
    return "".join((f"{MARK}{first}\n", *(f"{INDENT}{line}\n" if line else "\n" for line in rest)))


def normalize(text: str) -> str:
    """Return the form in which an entry survives a round trip through the file."""
    return "\n".join(line.rstrip() for line in text.replace("\r\n", "\n").split("\n")).strip()


def apply(text: str, edits: Sequence[Edit], limit: int | None) -> str:
    """Return the text after all edits. Only the result must keep within the limit, if there is one. Raises
    Refused, with entries that help to correct the request."""
    after = text
    for edit in edits:
        after = _edited(after, edit)
    # A text above the limit, edited by hand, may still shrink.
    if limit is not None and size(after) > max(limit, size(text)):
        raise Refused(_full(text, size(after), limit))
    return after


def _edited(text: str, edit: Edit) -> str:
    match edit:
        case Add():
            return _added(text, _worded(edit.text, text))
        case ReplaceEntry():
            return _with(text, _found(text, edit.match), format_entry(_worded(edit.text, text)))
        case Remove():
            return _with(text, _found(text, edit.match), "")
        case PinEntry() | UnpinEntry():
            return _pinned(text, _found(text, edit.match), on=isinstance(edit, PinEntry))
        case SetText():
            if edit.seen and edit.seen != digest(text.encode()):
                raise Conflict("The journal is no longer what you saw; read it again and repeat the change.")
            return edit.text


def lines(text: str) -> list[str]:
    """Return lines with their ends. Only a line feed ends a line, as in editors."""
    *lines, rest = text.split("\n")
    return [f"{line}\n" for line in lines] + ([rest] if rest else [])


def _blocks(rows: Sequence[str]) -> Iterator[Block]:
    at = 0
    while at < len(rows):
        if rows[at].startswith(MARK) and rows[at].strip() != "-":
            end = _end(rows, at)
            yield Block("".join(rows[at:end]), _said(rows[at:end]))
        else:
            end = _behind_fence(rows, at)
            yield from map(Block, rows[at:end])
        at = end


def _behind_fence(rows: Sequence[str], start: int) -> int:
    """Skip a code block. Code between two fences is prose; an unclosed fence is a line like any other."""
    fence = next((each for each in FENCES if rows[start].startswith(each)), "")
    closing = (at for at in range(start + 1, len(rows)) if rows[at].startswith(fence))
    return next(closing, start) + 1 if fence else start + 1


def _end(rows: Sequence[str], start: int) -> int:
    """Return the end of an entry: after its last line. Blank lines belong to it if an indented one
    follows."""
    end = start + 1
    for at in range(start + 1, len(rows)):
        if rows[at].startswith(INDENT) and rows[at].strip():
            end = at + 1
        elif rows[at].strip():
            break
    return end


def _said(rows: Sequence[str]) -> str:
    if len(rows) == 1:
        return rows[0][2:].strip()
    return normalize("".join(line[2:] if line.strip() else "\n" for line in rows))


def _worded(text: str, journal: str) -> str:
    entry = normalize(text)
    if not entry:
        raise Refused("An entry needs words; nothing was changed.")
    if entry in entries(journal):
        raise AlreadyKnown("This entry is already there, word for word; nothing was changed.")
    return entry


def _added(text: str, entry: str) -> str:
    """Add an entry after the last one, or at the end if there is none."""
    found, raw = blocks(text), format_entry(entry)
    places = (at for at in range(len(found) - 1, -1, -1) if found[at].entry is not None)
    last = next(places, len(found) - 1)
    above, below = found[: last + 1], found[last + 1 :]
    tail = "".join([block.raw for block in below])
    head = text[: len(text) - len(tail)]
    after = f"{_ended(head)}{raw}{tail}"
    new = parse(raw)
    if len(new) == 1 and _ended(head) == head:
        # Nothing below is indented, or it would belong to the entry above: the other blocks stay as they are.
        _keep(after, (*above, *new, *below))
    return after


def _ended(text: str) -> str:
    return text if not text or text.endswith("\n") else f"{text}\n"


def _with(text: str, at: int, raw: str) -> str:
    found = blocks(text)
    return "".join((*(each.raw for each in found[:at]), raw, *(each.raw for each in found[at + 1 :])))


def _pinned(text: str, at: int, *, on: bool) -> str:
    entry = blocks(text)[at].entry or ""
    if read(entry).pinned is on:
        raise Refused(f"This entry is {'already' if on else 'not'} pinned; nothing was changed.")
    return _with(text, at, format_entry(pin(entry, on=on)))


def find_entry(text: str, match: str) -> str:
    """Return the one matching entry. Raises Refused."""
    return blocks(text)[_found(text, match)].entry or ""


def _found(text: str, match: str) -> int:
    """Return the block of the one matching entry. Text that was shown escaped is found by its escapes."""
    wanted = normalize(match)
    candidates = [
        (at, block.entry) for at, block in enumerate(blocks(text)) if block.entry is not None and wanted
    ]
    exact = [at for at, entry in candidates if wanted in (entry, visible(entry))]
    if exact:
        return exact[0]
    partial = [(at, entry) for at, entry in candidates if wanted in entry or wanted in visible(entry)]
    if len(partial) == 1:
        return partial[0][0]
    if partial:
        raise Refused(_choice(f"Several entries have {wanted!r} in them", [entry for _, entry in partial]))
    raise Refused(_choice(f"No entry has {wanted!r} in it", entries(text)))


def _choice(what: str, those: Sequence[str]) -> str:
    listed = "".join(f"\n{format_entry(visible(entry))}".rstrip() for entry in those)
    return f"{what}; nothing was changed. {'These are there:' if those else 'There are none.'}{listed}"


def _full(text: str, wanted: int, limit: int) -> str:
    if not limit:
        return "This part of the journal is switched off in the settings; nothing was changed."
    return _choice(
        f"It is full: it would have {wanted:,} characters, and at most {limit:,} are allowed. "
        "Merge or remove entries, best in one batch with the new one",
        entries(text),
    )


def compare(before: bytes, after: bytes) -> tuple[list[str], list[str]]:
    """Return the entries added and those removed. Only the lines around the change are read, unless the text
    contains code."""
    if before == after:
        return [], []
    texts = [data.decode("utf-8", "replace") for data in (before, after)]
    if not any(fence in text for fence in FENCES for text in texts):
        texts = _around(*texts)
    old, new = (entries(text) for text in texts)
    return find_missing(new, old), find_missing(old, new)


def _around(one: str, other: str) -> list[str]:
    """Return the parts in which two journals differ, in whole entries."""
    a, b = one.split("\n"), other.split("\n")
    head = next((at for at, (x, y) in enumerate(zip(a, b, strict=False)) if x != y), min(len(a), len(b)))
    while head and not all(head < len(rows) and rows[head].startswith(MARK) for rows in (a, b)):
        head -= 1
    rest = min(len(a), len(b)) - head
    pairs = enumerate(zip(reversed(a), reversed(b), strict=False))
    tail = min(next((at for at, (x, y) in pairs if x != y), rest), rest)
    while tail and not a[len(a) - tail].startswith(MARK):
        tail -= 1
    return ["\n".join(rows[head : len(rows) - tail]) for rows in (a, b)]


@lru_cache(maxsize=256)
def entries_in(data: bytes | None) -> tuple[str, ...]:
    """Return the entries of a journal file. The cache helps because each pending change is compared with each
    new one."""
    return entries((data or b"").decode("utf-8", "replace"))


def lines_in(data: bytes | None) -> tuple[str, ...]:
    lines = (data or b"").decode("utf-8", "replace").split("\n")
    return tuple(line.strip() for line in lines if line.strip())


def find_missing(before: Sequence[str], after: Sequence[str]) -> list[str]:
    """Return entries that existed before and do not now."""
    there: Mapping[str, None] = dict.fromkeys(after)
    return [each for each in before if each not in there]


def describe_contradiction(entries: Sequence[str]) -> str:
    return (
        "Not saved: this contradicts what is known. If the user has changed their mind, replace the entry "
        f"and quote the user's words.\n{list_entries(entries)}"
    )


def list_entries(entries: Sequence[str]) -> str:
    return "".join(format_entry(visible(entry)) for entry in entries).rstrip()
