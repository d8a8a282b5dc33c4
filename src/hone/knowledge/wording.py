"""Put changes into words: what each one says, and the lines that report it to the owner."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any

from hone.core import seldom
from hone.core.errors import HoneError
from hone.core.holding import ERASED
from hone.core.ledger import (
    PROJECT,
    SKILL,
    USER,
    ChangeId,
    ChangeKind,
    ChangeState,
    Entry,
    Ledger,
    LessonText,
    Target,
)
from hone.core.skill import DOCUMENT, FAILED
from hone.core.value import replace
from hone.core.visible import one_line
from hone.knowledge import journal, places
from hone.knowledge.folding import Step, load_steps
from hone.knowledge.items import readable
from hone.knowledge.skills.document import parse

SHELL, CHAT = "hone ", "/"
"""How to write a command in the place where the line is read."""
MOST = 3
"""The most lessons to report one by one."""
LONG, LEAST = 500, 20
"""The most characters of a lesson, without a line width and with little room left."""

SKILL_KINDS: Mapping[ChangeKind, str] = {
    ChangeKind.CREATE: "created",
    ChangeKind.REWRITE: "rewritten",
    ChangeKind.PATCH: "patched",
    ChangeKind.EDIT: "edited",
    ChangeKind.ARCHIVE: "archived",
    ChangeKind.AGE: "archived",
    ChangeKind.MERGE: "merged",
    ChangeKind.RESTORE: "restored",
    ChangeKind.WAKE: "restored",
    ChangeKind.DEMOTE: "switched off",
    ChangeKind.RECOVER: "switched on again",
    ChangeKind.PIN: "pinned",
    ChangeKind.UNPIN: "unpinned",
    ChangeKind.INSTALL: "installed",
    ChangeKind.UNINSTALL: "uninstalled",
    ChangeKind.REPAIR: "repaired",
}
ANSWERS: Mapping[ChangeKind, str] = {
    ChangeKind.UNDO: "undid",
    ChangeKind.APPROVE: "approved",
    ChangeKind.REJECT: "rejected",
    ChangeKind.CONFIRM: "confirmed",
}
"""Changes that are about another one."""
_NEW = (ChangeKind.CREATE, ChangeKind.INSTALL)
_FRONT = ("name:", "description:")


async def find_lessons(ledger: Ledger, entries: Iterable[Entry]) -> tuple[LessonText, ...]:
    """Return what changes say, in their own words."""
    found = list(entries)
    groups = {entry.id: entry.change.group for entry in found if entry.change.group}
    lessons = [each for entry in found for each in read_lessons(entry, await steps(ledger, entry))]
    return share_undo(lessons, groups)


async def steps(ledger: Ledger, entry: Entry) -> tuple[Step, ...]:
    """Return what a change did."""
    found = await load_steps(ledger, entry.change)
    return tuple(readable(step) for step in found if step.before != step.after)


def read_lessons(entry: Entry, steps: Sequence[Step]) -> tuple[LessonText, ...]:
    """Return what a change says: one lesson for each journal entry added or removed, one for a skill."""
    made = entry.change
    plain = LessonText(entry.id, entry.id, made.target, made.kind, made.standing)
    if places.is_copy(made.target):
        return (plain,)
    if made.target.startswith(SKILL):
        return (_read_skill(plain, entry, steps),)
    found = [lesson for step in steps for lesson in _read_journal(plain, step)]
    return tuple(found) or (replace(plain, text=_first_words(steps)),)


def share_undo(lessons: Sequence[LessonText], groups: Mapping[ChangeId, str]) -> tuple[LessonText, ...]:
    """Name the first change of a group as the one to undo. `groups` says which changes are in one."""
    first: dict[str, LessonText] = {}
    for lesson in lessons:
        first.setdefault(groups.get(lesson.change, ""), lesson)
    return tuple(
        replace(lesson, undo=first[groups[lesson.change]].change) if lesson.change in groups else lesson
        for lesson in lessons
    )


def _read_journal(plain: LessonText, step: Step) -> Iterator[LessonText]:
    before, after = (journal.entries(_decode(data)) for data in (step.before, step.after))
    came = list((Counter(after) - Counter(before)).elements())
    gone = list((Counter(before) - Counter(after)).elements())
    if len(came) == len(gone):
        yield from (replace(plain, text=new, replaced=old) for new, old in zip(came, gone, strict=True))
    else:
        yield from (replace(plain, text=new) for new in came)
        yield from (replace(plain, replaced=old) for old in gone)


def _read_skill(plain: LessonText, entry: Entry, steps: Sequence[Step]) -> LessonText:
    files = [step for step in steps if not step.path.startswith("@")]
    document = next((step for step in files if step.path == DOCUMENT), None)
    if document and (about := _describe(document.after)) != _describe(document.before):
        return replace(plain, text=about)
    file = files[0].path if files and not document else ""
    words = _first_words(files)
    return replace(plain, text=words or entry.change.author.reason, file=file)


def _describe(data: bytes | None) -> str:
    """Return a skill's description; empty if there is none."""
    with suppress(HoneError):
        return parse(_decode(data)).description
    return ""


def _first_words(steps: Sequence[Step]) -> str:
    """Return the first words added, or else removed; those of a skill's front matter come last."""
    found = [row for step in steps for row in rows(step, around=0)]
    for sign in "+-":
        texts = [row[1:].strip() for row in found if row[0] == sign]
        for text in sorted(texts, key=lambda each: each.startswith(_FRONT)):
            words = text.removeprefix("description:").lstrip("#*- ").strip()
            if any(letter.isalnum() for letter in words) and not text.startswith("name:"):
                return words
    return ""


def rows(step: Step, around: int) -> list[str]:
    """Return the lines of a diff without its header; none for binary data."""
    if (step.path.startswith("@") and step.path != FAILED) or not is_text(step):
        return []
    before, after = (journal.lines((data or b"").decode()) for data in (step.before, step.after))
    return list(seldom.difflib.unified_diff(before, after, n=around, lineterm=""))[2:]


def is_text(step: Step) -> bool:
    try:
        texts = [(data or b"").decode() for data in (step.before, step.after)]
    except UnicodeDecodeError:
        return False
    return not any("\0" in text for text in texts)


def _decode(data: bytes | None) -> str:
    return (data or b"").decode("utf-8", "backslashreplace")


def tell(
    lessons: Sequence[LessonText], way: str = SHELL, who: str = "", width: int | None = None
) -> list[str]:
    """Return the lines that tell the owner what was learned, each at most `width` wide. `who` is named unless
    it was a review."""
    active = [each for each in lessons if each.standing is ChangeState.ACTIVE]
    told = [_line(each, way, who, width) for each in active[:MOST]]
    if len(active) > MOST:
        told.append(f"  and {len(active) - MOST} more · {way}log")
    waiting = len({each.change for each in lessons if each.standing is ChangeState.PENDING})
    if waiting:
        told.append(f"✎ {'1 lesson waits' if waiting == 1 else f'{waiting} lessons wait'} ({way}pending)")
    return told


def _line(lesson: LessonText, way: str, who: str, width: int | None) -> str:
    head = f"✎ {who}: {_subject(lesson)}" if who else f"✎ {_learned(lesson)}"
    tail = f" · {way}undo {lesson.undo}"
    room = LONG if width is None else width - len(head) - len(tail)
    words = _words(lesson, room - 3)
    joint = " — " if lesson.target.startswith(SKILL) else ": "
    return f"{head}{joint if words else ''}{words}{tail}"


def _learned(lesson: LessonText) -> str:
    """Return how the line of a review begins."""
    target = lesson.target
    if target.startswith(SKILL):
        name = _name(target)
        if lesson.kind in _NEW:
            return f"learned how to handle {name.replace('-', ' ')}: skill {name}"
        return f"{SKILL_KINDS.get(lesson.kind, 'updated')} skill {name}{_file(lesson)}"
    if not lesson.text:
        return "forgot"
    return "learned" if not (part := _part(target)) else f"learned about {part}"


def phrase(lesson: LessonText, about: int | None = None) -> str:
    """Describe a change on a line of a list. `about` is the change that it undoes or answers."""
    if lesson.kind is ChangeKind.ERASE:
        return "erased for good"
    answer = f"{ANSWERS[lesson.kind]} {about}: " if about and lesson.kind in ANSWERS else ""
    if lesson.target.startswith(SKILL):
        words = _words(lesson, LONG)
        return f"{answer}{_subject(lesson)}{f' — {words}' if words else ''}"
    if places.is_copy(lesson.target):
        verb = (
            ""
            if answer
            else "taken back: "
            if lesson.kind is ChangeKind.UNINSTALL
            else "written for others: "
        )
        return f"{answer}{verb}{one_line(places.folder_of(lesson.target), LONG)}"
    part = _part(lesson.target)
    if answer or not (lesson.text or lesson.replaced):
        words = _quote(lesson.text or lesson.replaced, LONG) or ERASED
    else:
        words = _words(lesson, LONG) if lesson.text else f"forgot {_quote(lesson.replaced, LONG)}"
    return f"{answer}{f'{part}: ' if part else ''}{words}"


def _subject(lesson: LessonText) -> str:
    """Return its subject, and its fate if it is a skill."""
    if not lesson.target.startswith(SKILL):
        return _part(lesson.target) or "journal"
    kind = SKILL_KINDS.get(lesson.kind, "")
    return f"skill {_name(lesson.target)}{_file(lesson)} {kind}".rstrip()


def _name(target: Target) -> str:
    return one_line(places.name_of(target), 70)


def _file(lesson: LessonText) -> str:
    return f" ({one_line(lesson.file, 60)})" if lesson.file else ""


def _part(target: Target) -> str:
    """Return whom or what a part of the journal or a memory item is about; empty for everything else."""
    if target.startswith(PROJECT):
        return one_line(target.removeprefix(PROJECT).rpartition("/")[2] or "/", 40)
    if places.is_item(target):
        return _name(target)
    return "you" if target == USER else ""


def _words(lesson: LessonText, room: int) -> str:
    """Return the words added, and those removed if there is room."""
    text = _quote(lesson.text or lesson.replaced, room)
    left = room - len(text) - len(" instead of ")
    if not (lesson.text and lesson.replaced) or left < LEAST + 2:
        return text
    return f"{text} instead of {_quote(lesson.replaced, left)}"


def _quote(text: str, room: int) -> str:
    """Return a text in quotation marks, which count toward the width."""
    return f'"{one_line(text, max(LEAST, room - 2))}"' if text else ""


def lesson_data(lesson: LessonText) -> dict[str, Any]:
    """Return a lesson for programs, with its exact words."""
    return {
        "change": lesson.change,
        "undo": lesson.undo,
        "target": lesson.target,
        "deed": lesson.kind,
        "standing": lesson.standing,
        "text": lesson.text,
        "replaced": lesson.replaced,
        "file": lesson.file,
    }
