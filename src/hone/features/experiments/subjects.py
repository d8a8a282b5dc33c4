"""Find the lesson that a name or a change number refers to, with its current content."""

from pathlib import Path

from msgspec import Struct

from hone.app import Hone
from hone.core.errors import Missing, Refused
from hone.core.ledger import ChangeId, ChangeQuery, ChangeState, Target, skill
from hone.core.messages import digest
from hone.core.skill import SkillOrigin
from hone.core.visible import one_line, visible
from hone.features.experiments.values import Lesson, LessonKind
from hone.features.templates.part import TemplatesPart
from hone.features.templates.template_file import examples_digest
from hone.features.templates.values import Template
from hone.knowledge import places
from hone.knowledge.journal import entries, normalize
from hone.knowledge.keeper import Keeper
from hone.knowledge.sections import find_new_entries
from hone.knowledge.skills.facts import content_digest, facts
from hone.knowledge.snapshots import journals


class Subject(Struct, frozen=True):
    """A lesson in its current state. `entry` is its text in the journal."""

    lesson: Lesson
    entry: str = ""
    template: Template | None = None


async def find(hone: Hone, folder: Path, kind: LessonKind, name: str) -> Subject:
    """Find a lesson. Raises Missing or Refused. An entry is named by the change that added it, or by its
    words."""
    match kind:
        case LessonKind.SKILL:
            files = await hone.library.files(name)
            if facts(files).origin is SkillOrigin.BUNDLED:
                raise Refused(f"{name} comes with Hone: there is no Hone without it to compare with.")
            return Subject(Lesson(kind, name, content_digest(files)))
        case LessonKind.TEMPLATE:
            template = await hone.part(TemplatesPart).store.read(name)
            return Subject(Lesson(kind, name, examples_digest(template)), template=template)
        case LessonKind.ENTRY:
            target, entry = await _entry(hone.keeper, folder, name)
            return Subject(Lesson(kind, target, digest(entry.encode())), entry)


async def change_of(keeper: Keeper, subject: Subject) -> ChangeId | None:
    """Return the latest change that made the lesson what it is."""
    entry = subject.lesson.kind is LessonKind.ENTRY
    target = Target(subject.lesson.name) if entry else skill(subject.lesson.name)
    for each in await keeper.ledger.entries(ChangeQuery(target=target)):
        made = each.change.standing is ChangeState.ACTIVE and each.change.deltas
        if made and (not entry or subject.entry in await find_new_entries(keeper, each)):
            return each.id
    return None


async def _entry(keeper: Keeper, folder: Path, wanted: str) -> tuple[Target, str]:
    if wanted.isascii() and wanted.isdigit():
        return await _by_change(keeper, ChangeId(int(wanted)))
    words = normalize(wanted)
    known = [
        (target, each) for target in journals(folder) for each in entries(await keeper.text(target)) if words
    ]
    exact = [each for each in known if words in (each[1], visible(each[1]))]
    found = exact or [each for each in known if words in each[1] or words in visible(each[1])]
    if len(found) == 1:
        return found[0]
    if found:
        listed = "".join(f"\n- {one_line(entry, 100)}" for _, entry in found[:10])
        raise Refused(f"Several entries have {words!r} in them; name one with more words:{listed}")
    raise Missing(f"No entry has {one_line(words, 80)!r} in it. hone memory show lists them.")


async def _by_change(keeper: Keeper, id: ChangeId) -> tuple[Target, str]:
    change = await keeper.ledger.entry(id)
    target = change.change.target
    if not places.is_journal(target):
        raise Refused(f"Change {id} is about {target}, not about an entry of the journal.")
    there = entries(await keeper.text(target))
    came = [each for each in await find_new_entries(keeper, change) if each in there]
    if len(came) == 1:
        return target, came[0]
    if came:
        raise Refused(f"Change {id} brought {len(came)} entries; name the one you mean by its words.")
    raise Missing(f"No entry that came with change {id} is there any more. hone memory show lists them.")
