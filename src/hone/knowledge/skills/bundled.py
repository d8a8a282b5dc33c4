"""The bundled skills. They are part of the package and the same in every home."""

from collections.abc import Mapping
from functools import cache
from pathlib import Path
from types import MappingProxyType

from hone.core.messages import digest
from hone.core.skill import DOCUMENT, ORIGIN, ListedSkill, SkillOrigin, SkillSummary, SkillWords
from hone.knowledge.skills.document import parse

_FOLDER = Path(__file__).with_name("bundled")


@cache
def names() -> tuple[str, ...]:
    return tuple(sorted(path.parent.name for path in _FOLDER.glob(f"*/{DOCUMENT}")))


@cache
def files(name: str) -> Mapping[str, bytes]:
    """Return a skill's files and its origin; nothing if no bundled skill has this name."""
    if name not in names():
        return MappingProxyType({})
    folder = _FOLDER / name
    found = {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }
    return MappingProxyType({**found, ORIGIN: SkillOrigin.BUNDLED.encode()})


@cache
def summary(name: str) -> SkillSummary:
    return parse(files(name)[DOCUMENT].decode()).summary


@cache
def words(name: str) -> SkillWords:
    """Return its stems, including those of the whole body: no word index has the rest of it."""
    return SkillWords.of(summary(name), len(summary(name).body))


@cache
def listed() -> tuple[ListedSkill, ...]:
    """Return the skills by name, without counts."""
    return tuple(
        ListedSkill(name, summary(name).description, digest(files(name)[DOCUMENT]), SkillOrigin.BUNDLED)
        for name in names()
    )
