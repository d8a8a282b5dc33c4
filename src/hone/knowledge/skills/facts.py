"""The facts about a skill that are not in its files, and the changes that need approval because of them."""

from collections.abc import Mapping

from msgspec import Struct

from hone.core.errors import Refused
from hone.core.ledger import Actor
from hone.core.messages import canonical, digest
from hone.core.skill import (
    APPROVED,
    ARCHIVED,
    CHECKS,
    FAILED,
    ORIGIN,
    PINNED,
    PROJECT,
    SOURCE,
    ListedSkill,
    SkillOrigin,
)

SET = b"1"
NAMES = frozenset({ORIGIN, SOURCE, PINNED, ARCHIVED, PROJECT, APPROVED, FAILED})
_SHEBANG, _MARK = b"#!", b"\xef\xbb\xbf"
_SCRIPTS = ("scripts/", CHECKS)
_COPIED = "copied from"
_PROGRAMS = frozenset(
    (
        "bash",
        "bat",
        "cmd",
        "exe",
        "jar",
        "js",
        "lua",
        "mjs",
        "php",
        "pl",
        "ps1",
        "py",
        "rb",
        "sh",
        "so",
        "ts",
        "vbs",
    )
)


class Facts(Struct, frozen=True):
    origin: SkillOrigin
    pinned: bool = False
    archived: bool = False
    project: str = ""
    source: str = ""
    approved: str = ""
    failed: str = ""


def facts(files: Mapping[str, bytes]) -> Facts:
    """Return the facts. Raises Refused if one of them is invalid."""
    if unknown := sorted(path for path in files if path.startswith("@") and path not in NAMES):
        raise Refused(f"A skill has no fact named {', '.join(unknown)}.")
    try:
        texts = {name: files[name].decode() for name in NAMES if name in files}
        origin = SkillOrigin(texts.get(ORIGIN, ""))
    except ValueError:
        raise Refused(f"The fact {ORIGIN} must be one of {', '.join(SkillOrigin)}.") from None
    if any(files.get(name, SET) != SET for name in (PINNED, ARCHIVED)):
        raise Refused(f"The facts {PINNED} and {ARCHIVED} are {SET.decode()} or not there.")
    words = (texts.get(name, "") for name in (PROJECT, SOURCE, APPROVED, FAILED))
    return Facts(origin, PINNED in texts, ARCHIVED in texts, *words)


def digest_files(files: Mapping[str, bytes]) -> str:
    """Return one digest for a whole folder, ignoring the facts about it."""
    return digest(
        "".join(f"{digest(data)} {path}\n" for path, data in sorted(split_facts(files)[0].items())).encode()
    )


def content_digest(files: Mapping[str, bytes]) -> str:
    """Return the digest of a skill's files, ignoring who made it or whether it is pinned."""
    return digest(canonical({path: digest(data) for path, data in split_facts(files)[0].items()}).encode())


def split_facts(files: Mapping[str, bytes]) -> tuple[dict[str, bytes], dict[str, bytes]]:
    """Split contents into the files, and the facts as stored."""
    known = {path: data for path, data in files.items() if path.startswith("@")}
    return {path: data for path, data in files.items() if path not in known}, known


def find_protection(
    name: str,
    skill: Facts | ListedSkill | None,
    actor: Actor,
    *,
    asked: bool = False,
    corrects: bool = False,
) -> str:
    """Return why this actor's change of this skill must wait for the owner; empty if it need not. A new skill
    is unprotected. Proposals of an experiment or a client wait in any case. `asked`: the owner asks for this
    change. `corrects`: it makes a copy of a skill from elsewhere. Raises Refused if the actor may not even
    propose it."""
    if skill is None or actor in (Actor.OWNER, Actor.EXPERIMENT, Actor.CLIENT, Actor.MEMBER):
        return ""
    if skill.pinned and actor is Actor.AGENT:
        return "" if asked else f"the skill {name} is pinned, and the user has not asked for this change"
    if actor is Actor.AGENT:
        return ""
    is_brought = skill.origin in (SkillOrigin.BUNDLED, SkillOrigin.INSTALLED)
    if skill.pinned or (is_brought and not (corrects and actor is Actor.REVIEW)):
        kind = "pinned" if skill.pinned else str(skill.origin)
        raise Refused(
            f"The skill {name} is {kind} and protected; change another one that fits, or save nothing."
        )
    if is_brought or skill.origin is SkillOrigin.AGENT:
        return ""
    if actor is Actor.CURATOR:
        raise Refused(
            f"The skill {name} is the owner's and protected; the curator tends learned skills only."
        )
    return f"the skill {name} is the owner's own, so this is a proposal"


def is_copy(known: Facts, origin: SkillOrigin) -> bool:
    """Tell whether a skill replaces one of that origin."""
    return known.source.startswith(f"{_COPIED} {origin} ")


def note_copy(name: str, origin: SkillOrigin, source: str, files: Mapping[str, bytes]) -> str:
    """Return the fact that names the original of a copy."""
    return f"{_COPIED} {origin} {source or name} at {digest_files(files)[:12]}"


def touches_scripts(before: Mapping[str, bytes], after: Mapping[str, bytes]) -> tuple[str, ...]:
    """Return executable files that are new or changed."""
    return tuple(
        path
        for path, data in sorted(after.items())
        if not path.startswith("@") and before.get(path) != data and _can_run(path, data)
    )


def _can_run(path: str, data: bytes) -> bool:
    suffix = path.rpartition("/")[2].rpartition(".")[2].lower()
    if path.startswith(_SCRIPTS) or suffix in _PROGRAMS:
        return True
    return data.removeprefix(_MARK).lstrip().startswith(_SHEBANG)


def new_lines(before: Mapping[str, bytes], after: Mapping[str, bytes]) -> list[str]:
    """Return the lines added to a skill, without list marks."""
    found: list[str] = []
    for path, data in sorted(after.items()):
        known = set(before.get(path, b"").splitlines())
        if not path.startswith("@"):
            found += [row.decode("utf-8", "replace") for row in data.splitlines() if row not in known]
    return [text for row in found if (text := row.strip().removeprefix("- ").strip())]
