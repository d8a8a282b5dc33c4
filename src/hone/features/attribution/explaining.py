"""Explain an answer: judge its items, and name the change behind each and the commands that correct it."""

from collections.abc import Mapping
from pathlib import Path

from hone.app import Hone
from hone.core.skill import ListedSkill
from hone.core.value import replace
from hone.core.visible import path_to_text, text_to_path, visible
from hone.features.attribution.judging import judge
from hone.features.attribution.values import AnsweredTurn, Explanation, ItemKind, JudgedItem
from hone.knowledge.sections import Section, sections
from hone.knowledge.validity import read
from hone.prompt.shared import PREFIX

TEAM = "hone team list"


async def explain(hone: Hone, answer: AnsweredTurn) -> Explanation:
    """Return which items shaped an answer. Nothing is stored, and no model is asked."""
    judged = await judge(answer, hone.meanings)
    folder = text_to_path(answer.header.folder) if answer.header.folder else hone.folder
    known = {each.name: each for each in await sections(hone.keeper, folder)}
    skills = await _listed(hone, folder)
    return Explanation(answer, tuple(_with_steps(each, known, skills) for each in judged))


async def _listed(hone: Hone, folder: Path) -> Mapping[str, ListedSkill]:
    return {each.name: each for each in (await hone.library.ranked(path_to_text(folder))).skills}


def _with_steps(
    judged: JudgedItem, known: Mapping[str, Section], skills: Mapping[str, ListedSkill]
) -> JudgedItem:
    item = judged.item
    match item.kind:
        case ItemKind.ENTRY:
            return _with_change(judged, known.get(item.name))
        case ItemKind.TEAM:
            return replace(judged, steps=(TEAM,))
        case ItemKind.SKILL if item.name.startswith(PREFIX):
            return replace(judged, steps=(TEAM,))
        case ItemKind.SKILL:
            pinned = skills[item.name].pinned if item.name in skills else None
            pin = "unpin" if pinned else "pin"
            steps = (f"hone skills edit {item.name}", f"hone skills {pin} {item.name}")
            return replace(judged, pinned=pinned, steps=(*steps, f"hone skills archive {item.name}"))
        case ItemKind.TEMPLATE:
            steps = (f"hone templates show {item.name}", f"hone templates delete {item.name}")
            return replace(judged, steps=steps)
        case _:
            return judged


def _with_change(judged: JudgedItem, section: Section | None) -> JudgedItem:
    """Add the change behind an entry. The entry may have been changed or removed since; a new date or a pin
    changes no word."""
    held = section.brought if section else {}
    known = {read(visible(text).strip()).wording: (read(text).pinned, held[text]) for text in held}
    if section is None or read(judged.item.text).wording not in known:
        return judged
    pinned, entry = known[read(judged.item.text).wording]
    steps = (
        f"hone memory edit {judged.item.name}",
        f"hone memory {'unpin' if pinned else 'pin'} {entry.id}",
        f"hone undo {entry.id}",
        f"hone show {entry.id}",
    )
    return replace(judged, brought=entry, target=section.target, pinned=pinned, steps=steps)
