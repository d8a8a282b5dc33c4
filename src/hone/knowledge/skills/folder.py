"""Edits of a skill's folder as values, and the function that applies them. It does not access the disk."""

from collections.abc import Mapping
from typing import ClassVar

from msgspec import Struct

from hone.core.errors import Conflict, Refused
from hone.core.ledger import ChangeKind
from hone.core.messages import digest
from hone.core.skill import APPROVED, ARCHIVED, DOCUMENT, FAILED, ORIGIN, PINNED, PROJECT, SOURCE, SkillOrigin
from hone.core.visible import amend, find, one_line
from hone.knowledge.skills.document import decode, keep_fields, validate
from hone.knowledge.skills.facts import SET, digest_files, facts, is_copy, note_copy, split_facts
from hone.knowledge.skills.naming import check_class, check_name
from hone.knowledge.skills.paths import LONGEST_PATH, accept, check

Files = Mapping[str, bytes]


class Create(Struct, frozen=True):
    """A new skill with only a document. `project` is the folder it is for; empty: for all."""

    kind: ClassVar[ChangeKind] = ChangeKind.CREATE
    text: str
    origin: SkillOrigin
    project: str = ""


class Rewrite(Struct, frozen=True):
    """The whole document anew. `seen` here and below is the digest of what the editor saw; empty: any."""

    kind: ClassVar[ChangeKind] = ChangeKind.REWRITE
    text: str
    seen: str = ""


class EditDocument(Struct, frozen=True):
    """The document as the owner left it in an editor."""

    kind: ClassVar[ChangeKind] = ChangeKind.EDIT
    text: str
    seen: str = ""


class Patch(Struct, frozen=True):
    """Replaces the only occurrence of `find`, as it was shown."""

    kind: ClassVar[ChangeKind] = ChangeKind.PATCH
    find: str
    replace: str
    path: str = DOCUMENT
    seen: str = ""


class WriteFile(Struct, frozen=True):
    kind: ClassVar[ChangeKind] = ChangeKind.WRITE_FILE
    path: str
    content: bytes
    seen: str = ""


class RemoveFile(Struct, frozen=True):
    kind: ClassVar[ChangeKind] = ChangeKind.REMOVE_FILE
    path: str


class Archive(Struct, frozen=True):
    kind: ClassVar[ChangeKind] = ChangeKind.ARCHIVE


class Restore(Struct, frozen=True):
    kind: ClassVar[ChangeKind] = ChangeKind.RESTORE


class Pin(Struct, frozen=True):
    kind: ClassVar[ChangeKind] = ChangeKind.PIN


class Unpin(Struct, frozen=True):
    kind: ClassVar[ChangeKind] = ChangeKind.UNPIN


class Install(Struct, frozen=True):
    """Files from elsewhere, as the owner has seen them. They replace those installed before."""

    kind: ClassVar[ChangeKind] = ChangeKind.INSTALL
    files: Files
    source: str


class Uninstall(Struct, frozen=True):
    kind: ClassVar[ChangeKind] = ChangeKind.UNINSTALL


class ReplaceSkill(Struct, frozen=True):
    """The folder as somebody left it. Its facts stay; a new skill is the owner's."""

    kind: ClassVar[ChangeKind] = ChangeKind.REPLACE
    files: Files


class EditFolder(Struct, frozen=True):
    """The folder as the owner left it in a checkout. `seen` is the digest of all files that it was merged
    with."""

    kind: ClassVar[ChangeKind] = ChangeKind.EDIT
    files: Files
    seen: str


class SetFiles(Struct, frozen=True):
    """The complete contents, facts included, as set by undo or merge; nothing removes the skill."""

    kind: ClassVar[ChangeKind] = ChangeKind.SET
    files: Files


Edit = (
    Create
    | Rewrite
    | EditDocument
    | Patch
    | WriteFile
    | RemoveFile
    | Archive
    | Restore
    | Pin
    | Unpin
    | Install
    | Uninstall
    | ReplaceSkill
    | EditFolder
    | SetFiles
)


CORRECTIONS = frozenset({ChangeKind.REWRITE, ChangeKind.PATCH, ChangeKind.WRITE_FILE, ChangeKind.REMOVE_FILE})
"""The changes that copy a skill from elsewhere."""


def apply(name: str, files: Files, edit: Edit) -> dict[str, bytes]:
    """Return the skill after the edit; an empty mapping stands for no skill. Raises Refused with advice, or
    Conflict if it has changed since the editor read it."""
    check_name(name)
    match edit:
        case Create() | Install():
            after = _create(name, files, edit)
        case SetFiles():
            after = dict(edit.files)
        case ReplaceSkill():
            after = _replaced(name, files, edit)
        case EditFolder():
            if edit.seen != digest_files(files):
                raise Conflict(f"The skill {name} is no longer what you saw; nothing was changed.")
            after = _replaced(name, files, ReplaceSkill(edit.files))
        case _:
            after = _changed(name, _present(name, files), edit)
    if after:
        validate(name, after)
        facts(after)
    return after


def _create(name: str, files: Files, edit: Create | Install) -> dict[str, bytes]:
    if files and not (isinstance(edit, Install) and _is_installed(files)):
        raise Refused(_taken(name, files))
    if isinstance(edit, Install):
        if any(path.startswith("@") for path in edit.files):
            raise Refused(
                f"The folder to install as {name} holds a file whose name begins with @; remove it."
            )
        pinned = {PINNED: files[PINNED]} if PINNED in files else {}
        known = {ORIGIN: SkillOrigin.INSTALLED.encode(), SOURCE: _encoded(edit.source), **pinned}
        return {**edit.files, **known, APPROVED: digest_files(edit.files).encode()}
    if edit.origin not in (SkillOrigin.USER, SkillOrigin.AGENT):
        raise Refused(f"A skill is created by the user or the agent; {edit.origin} ones come from elsewhere.")
    # The user may choose any name; a skill that is the agent's own idea must be findable.
    if edit.origin is SkillOrigin.AGENT:
        check_class(name)
    project = {PROJECT: _encoded(edit.project)} if edit.project else {}
    return {DOCUMENT: _encoded(edit.text), ORIGIN: edit.origin.encode(), **project}


def _is_installed(files: Files) -> bool:
    known = facts(files)
    from_elsewhere = known.origin is SkillOrigin.INSTALLED or is_copy(known, SkillOrigin.INSTALLED)
    return from_elsewhere and (not known.archived or bool(known.failed))


def copied(name: str, files: Files, origin: SkillOrigin) -> Files:
    """Return a skill from elsewhere as a copy that replaces it, with a note of its origin."""
    known = facts(files)
    if known.origin not in (SkillOrigin.BUNDLED, SkillOrigin.INSTALLED):
        return files
    own, noted = split_facts(files)
    kept = {fact: data for fact, data in noted.items() if fact in (PINNED, ARCHIVED, FAILED, PROJECT)}
    source = note_copy(name, known.origin, known.source, files)
    return {**own, **kept, ORIGIN: origin.encode(), SOURCE: _encoded(source)}


def _taken(name: str, files: Files) -> str:
    known = facts(files)
    if known.archived:
        return f"There is an archived skill named {name}; restore it and change it, or choose another name."
    if known.origin is SkillOrigin.BUNDLED:
        return f"A skill named {name} comes with Hone; patch or edit it, or choose another name."
    return f"There is a skill named {name} already; patch or edit it, or choose another name."


def _present(name: str, files: Files) -> Files:
    if not files:
        raise Refused(
            f"There is no skill named {name}; create it, or look for the right one with skills_list."
        )
    if facts(files).origin is SkillOrigin.BUNDLED:
        raise Refused(f"The skill {name} comes with Hone and stays as it is; create one of another name.")
    return files


def _changed(name: str, files: Files, edit: Edit) -> dict[str, bytes]:
    match edit:
        case Archive() | Restore():
            return _shelved(name, files, on=isinstance(edit, Archive))
        case Pin() | Unpin():
            return _flagged(name, files, PINNED, "pinned", on=isinstance(edit, Pin))
        case Uninstall():
            return _uninstalled(name, files)
    if ARCHIVED in files and FAILED not in files:
        raise Refused(f"The skill {name} is archived; restore it before you change it.")
    match edit:
        case Rewrite():
            _unchanged(name, files, DOCUMENT, edit.seen)
            text = _encoded(edit.text).decode()
            return {**files, DOCUMENT: keep_fields(decode(DOCUMENT, files[DOCUMENT]), text).encode()}
        case EditDocument():
            _unchanged(name, files, DOCUMENT, edit.seen)
            return {**files, DOCUMENT: _encoded(edit.text)}
        case Patch():
            return {**files, edit.path: _patched(name, files, edit)}
        case WriteFile():
            _unchanged(name, files, check(edit.path), edit.seen)
            return {**files, edit.path: edit.content}
        case RemoveFile():
            _there(name, files, check(edit.path))
            return {path: data for path, data in files.items() if path != edit.path}
    raise TypeError(f"{type(edit).__name__} is no edit of a skill")


def _shelved(name: str, files: Files, *, on: bool) -> dict[str, bytes]:
    """Archive or restore it. What its checks have switched off stays off if somebody archives it."""
    rest = {path: data for path, data in files.items() if path != FAILED}
    return rest if on and FAILED in files else _flagged(name, rest, ARCHIVED, "archived", on=on)


def _flagged(name: str, files: Files, fact: str, word: str, *, on: bool) -> dict[str, bytes]:
    if (fact in files) is on:
        raise Refused(f"The skill {name} is {word} already." if on else f"The skill {name} is not {word}.")
    return {**files, fact: SET} if on else {path: data for path, data in files.items() if path != fact}


def _uninstalled(name: str, files: Files) -> dict[str, bytes]:
    known = facts(files)
    if known.origin is not SkillOrigin.INSTALLED and not any(is_copy(known, each) for each in SkillOrigin):
        raise Refused(f"The skill {name} was not installed; archive it instead.")
    return {}


def _replaced(name: str, files: Files, edit: ReplaceSkill) -> dict[str, bytes]:
    if any(path.startswith("@") for path in edit.files):
        raise Refused(f"The folder of the skill {name} holds a file whose name begins with @; remove it.")
    known = split_facts(_present(name, files))[1] if files else {ORIGIN: SkillOrigin.USER.encode()}
    return {**edit.files, **known}


def _patched(name: str, files: Files, edit: Patch) -> bytes:
    _there(name, files, edit.path if edit.path == DOCUMENT else accept(edit.path))
    _unchanged(name, files, edit.path, edit.seen)
    text = decode(edit.path, files[edit.path])
    places = find(text, edit.find)
    if len(places) != 1:
        count = f"{len(places)} times" if places else "nowhere"
        advice = "add a line before or after it" if places else "view the skill and copy the words exactly"
        raise Refused(f"The text to replace occurs {count} in {edit.path} of {name}; {advice}.")
    start, end = places[0]
    return _encoded(text[:start] + amend(text[start:end], edit.replace) + text[end:])


def _there(name: str, files: Files, path: str) -> None:
    if path not in files:
        others = ", ".join(sorted(split_facts(files)[0]))
        raise Refused(f"The skill {name} has no {one_line(path, LONGEST_PATH)}; it has {others}.")


def _unchanged(name: str, files: Files, path: str, seen: str) -> None:
    if seen and seen != (digest(files[path]) if path in files else None):
        raise Conflict(
            f"{path} of the skill {name} is no longer what you saw; view it again and repeat the change."
        )


def _encoded(text: str) -> bytes:
    try:
        return text.encode()
    except UnicodeEncodeError:
        raise Refused(
            "The text contains broken characters (lone surrogates), which no file can hold; write it again."
        ) from None
