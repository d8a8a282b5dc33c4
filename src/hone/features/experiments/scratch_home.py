"""Build a temporary home for each run: what the owner's Hone knows, with or without one lesson."""

from collections.abc import Mapping
from pathlib import Path

from msgspec import Struct

from hone.app import Hone
from hone.core.ledger import SKILL, Target, project
from hone.core.skill import ARCHIVED, FAILED
from hone.core.value import replace
from hone.core.visible import path_to_text
from hone.features.experiments.values import Arm, Lesson, LessonKind
from hone.features.templates.part import TemplatesPart
from hone.features.templates.values import Template
from hone.knowledge import journal, places
from hone.knowledge.folding import Files
from hone.knowledge.keeper import OWNER
from hone.knowledge.skills import folder
from hone.knowledge.snapshots import journals
from hone.runtime.instructions import FoundInstructions, look


class HomeContents(Struct, frozen=True):
    """What is known: the texts of the journal by target, the skills by name."""

    texts: Mapping[Target, str]
    skills: Mapping[str, Files]
    template: Template | None = None


async def gather(hone: Hone, from_folder: Path, to: Path) -> HomeContents:
    """Return what the owner's Hone knows in a folder, as if it were in another one."""
    keeper = hone.keeper
    await hone.library.listed()  # this merges the owner's manual edits
    texts = {target: await keeper.text(target) for target in journals(from_folder)}
    own = texts.pop(project(path_to_text(from_folder)))
    held = await keeper.ledger.held_below(SKILL)
    skills = {places.name_of(target): await keeper.files(target) for target in held}
    return HomeContents({**texts, project(path_to_text(to)): own}, skills)


def alter(contents: HomeContents, lesson: Lesson, arm: Arm, entry: str = "") -> HomeContents:
    """Return the contents with the lesson in effect, or without it."""
    match lesson.kind, arm:
        case LessonKind.TEMPLATE, Arm.WITHOUT:
            return replace(contents, template=None)
        case LessonKind.SKILL, Arm.WITH:
            files = contents.skills[lesson.name]
            active = {path: data for path, data in files.items() if path not in (ARCHIVED, FAILED)}
            return replace(contents, skills={**contents.skills, lesson.name: active})
        case LessonKind.SKILL, Arm.WITHOUT:
            rest = {name: files for name, files in contents.skills.items() if name != lesson.name}
            return replace(contents, skills=rest)
        case LessonKind.ENTRY, Arm.WITHOUT:
            texts = {target: _less(text, entry) for target, text in contents.texts.items()}
            return replace(contents, texts=texts)
    return contents


def _less(text: str, entry: str) -> str:
    return journal.apply(text, [journal.Remove(entry)], None) if entry in journal.entries(text) else text


async def furnish(hone: Hone, home: Path, contents: HomeContents) -> None:
    """Fill an empty home. The journal is written as an owner would do by hand, so no limit applies."""
    for target, text in contents.texts.items():
        if text:
            place = home / places.folder_of(target) / places.path_of(target)
            place.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            place.write_text(text, "utf-8")
            await hone.keeper.text(target)
    for name, files in sorted(contents.skills.items()):
        await hone.keeper.edit_skill(name, folder.SetFiles(files), OWNER)
    if contents.template:
        await hone.part(TemplatesPart).store.add(replace(contents.template, uses=(), effect=None))


def copy_trust(owner: Hone, from_folder: Path, hone: Hone, to: Path) -> None:
    """Trust there exactly what the owner trusts here."""
    if not owner.folders.trusts(from_folder):
        return
    hone.folders.trust(to)
    known, found = owner.instructions.of(from_folder), look(to)
    if (
        isinstance(known, FoundInstructions)
        and isinstance(found, FoundInstructions)
        and known.digest == found.digest
    ):
        hone.instructions.trust(to, found)
