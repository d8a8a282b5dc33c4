"""Map targets to paths below the home, and paths back to targets."""

import hashlib
from collections.abc import Mapping

from hone.core.ledger import COPY, ITEM, MEMORY, PROJECT, SECTION, SKILL, USER, Held, Target
from hone.core.regex import regex
from hone.core.skill import ARCHIVED

JOURNAL = "MEMORY.md"
PROFILE = "USER.md"
SKILLS = "skills"
ARCHIVE = f"{SKILLS}/.archive"
SKILL_FILES = f"served/{SKILLS}"
"""Where scripts of skills are unpacked if the database is elsewhere."""
_UNFIT = regex(r"[^a-z0-9]+")


def is_journal(target: Target) -> bool:
    return not target.startswith(SKILL)


def is_item(target: Target) -> bool:
    """Tell whether a memory backend holds it. It has no file."""
    return target.startswith(ITEM)


def is_copy(target: Target) -> bool:
    """Tell whether it lies outside the home, where another agent reads it."""
    return target.startswith((COPY, SECTION))


def is_outside(target: Target) -> bool:
    """Tell whether no file of the home holds it."""
    return is_item(target) or is_copy(target)


def user_of(target: Target) -> str:
    """Return the user of an item."""
    return target.removeprefix(ITEM).partition("/")[0]


def path_of(target: Target) -> str:
    """Return the only path of a journal."""
    return PROFILE if target == USER else JOURNAL


def place_of(target: Target) -> str:
    """Return the place of a journal."""
    [place] = places(target, {path_of(target): ""})
    return place


def name_of(target: Target) -> str:
    """Return the skill's name, the item's key, or the usual name of the part of the journal."""
    if is_item(target):
        return target.partition("/")[2]
    if is_copy(target):
        return target.rpartition("#" if target.startswith(SECTION) else "/")[2]
    return target.removeprefix(SKILL) if target.startswith(SKILL) else target.partition(":")[0]


def folder_of(target: Target, *, archived: bool = False) -> str:
    """Return the folder below the home; empty for the home itself."""
    if target in (MEMORY, USER):
        return ""
    if is_copy(target):
        return target.removeprefix(COPY) if target.startswith(COPY) else target.removeprefix(SECTION)
    if is_item(target):
        return target
    if target.startswith(PROJECT):
        return f"projects/{_slug(target.removeprefix(PROJECT))}"
    return f"{ARCHIVE if archived else SKILLS}/{target.removeprefix(SKILL)}"


def home_of(target: Target, held: Held) -> str:
    return folder_of(target, archived=ARCHIVED in held)


def skill_folder(place: str) -> str:
    """Return the folder of the skill that a place below SKILLS belongs to, archived or not."""
    depth = 3 if place.startswith(f"{ARCHIVE}/") else 2
    return "/".join(place.split("/")[:depth])


def places(target: Target, held: Held) -> Mapping[str, str]:
    """Return the digest of each content that is published, by its place below the home."""
    folder = home_of(target, held)
    prefix = f"{folder}/" if folder else ""
    return {f"{prefix}{path}": name for path, name in held.items() if not path.startswith("@")}


def path_at(target: Target, place: str) -> str:
    """Return the path of a place, whichever of its two folders a skill is in."""
    for archived in (True, False):
        folder = folder_of(target, archived=archived)
        if folder and place.startswith(f"{folder}/"):
            return place.removeprefix(f"{folder}/")
    return place


def _slug(folder: str) -> str:
    word = _UNFIT.sub("-", folder.rpartition("/")[2].lower()).strip("-")[:32]
    return f"{word or 'folder'}-{hashlib.sha256(folder.encode()).hexdigest()[:8]}"
