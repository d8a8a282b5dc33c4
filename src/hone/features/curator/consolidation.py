"""Parse the curator model's merge plan strictly, and turn it into edits. A bad plan is rejected as a whole.

The model decides which skills to merge and writes the new text. It does not decide what is kept of the old
skills: each one is copied byte for byte below references/merged/ and linked, with its support files.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import msgspec

from hone.core.errors import Refused
from hone.core.ledger import ChangeId, ChangeKind
from hone.core.regex import regex
from hone.core.screen import screen
from hone.core.skill import ARCHIVED, DOCUMENT, ORIGIN, PROJECT, SkillOrigin
from hone.core.visible import one_line
from hone.knowledge.folding import Files, Move
from hone.knowledge.skills.document import FENCE, parse, validate, write_document
from hone.knowledge.skills.facts import SET, split_facts
from hone.knowledge.skills.naming import check_class, check_name

LONGEST = 300_000
"""The most characters of an answer."""
MOST, WIDEST = 20, 10
"""The most skills that one plan may touch, and the most that may become one."""
MERGED = "references/merged"

_HEADING = regex(r" {0,3}(#{1,6})[ \t](.*)")
_CODE = regex(r" {0,3}(`{3,}|~{3,})")
_LINK = regex(rf"{MERGED}/([^\s)\]>\"'`]*)")


class Merging(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    into: str
    sources: tuple[str, ...]
    description: str
    body: str
    reason: str


class Retiring(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    name: str
    reason: str


class MergeProposal(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    merge: tuple[Merging, ...] = ()
    archive: tuple[Retiring, ...] = ()


def read(answer: str) -> MergeProposal:
    """Parse the plan. Raises Refused unless the answer is exactly one JSON object of this form."""
    if len(answer) > LONGEST:
        raise Refused(f"The plan has {len(answer):,} characters, and at most {LONGEST:,} are allowed.")
    try:
        value = json.loads(_unfenced(answer.strip()), object_pairs_hook=_once)
        return msgspec.convert(value, MergeProposal)
    except (ValueError, RecursionError, msgspec.ValidationError) as error:
        raise Refused(f"The answer is no plan: {one_line(str(error), 300)}.") from error


def _unfenced(answer: str) -> str:
    first, _, rest = answer.partition("\n")
    if first.strip() in ("```", "```json") and rest.endswith("```"):
        return rest.removesuffix("```")
    return answer


def _once(pairs: Sequence[tuple[str, Any]]) -> dict[str, Any]:
    made = dict(pairs)
    if len(made) < len(pairs):
        raise ValueError("a key stands there twice")
    return made


def moves(
    proposal: MergeProposal,
    folders: Mapping[str, Files],
    others: Iterable[str],
    grounds: Mapping[str, tuple[ChangeId, ...]],
) -> tuple[Move, ...]:
    """Turn a plan into moves. `folders` are the skills that the curator may change, as they are; `others` are
    the names of all the rest. `grounds` are the changes that each skill is made of. Raises Refused with the
    first error."""
    taken: dict[str, str] = {}
    made: list[Move] = []
    for merging in proposal.merge:
        sources = _sources(merging, folders, frozenset(others))
        _claim(taken, (*sources, merging.into), f"the merge into {one_line(merging.into, 64)}")
        made += _merge(merging, {name: folders[name] for name in sources}, grounds)
    for retiring in proposal.archive:
        _known(retiring.name, folders)
        _claim(taken, (retiring.name,), "the archive")
        made.append(_put_away(retiring.name, folders[retiring.name], _reason(retiring.reason)))
    if len(taken) > MOST:
        raise Refused(f"The plan touches {len(taken)} skills, and at most {MOST} are allowed at once.")
    return tuple(made)


def _claim(taken: dict[str, str], names: Sequence[str], by: str) -> None:
    for name in dict.fromkeys(names):
        if name in taken:
            raise Refused(f"The plan has {name} twice: in {taken[name]} and in {by}.")
        taken[name] = by


def _sources(merging: Merging, folders: Mapping[str, Files], others: frozenset[str]) -> tuple[str, ...]:
    """Return the skills that become one, first the one they are merged into if it exists already."""
    into, named = merging.into, merging.sources
    if len(set(named)) < len(named):
        raise Refused(f"The merge into {one_line(into, 64)} names a skill twice.")
    if into in others:
        raise Refused(f"The skill {into} is protected or archived; nothing can be merged into it.")
    if into not in folders:
        check_class(into)
    sources = tuple(dict.fromkeys((*((into,) if into in folders else ()), *named)))
    for name in sources:
        _known(name, folders)
    if not 2 <= len(sources) <= WIDEST:
        raise Refused(f"The merge into {into} has {len(sources)} sources; 2 to {WIDEST} can become one.")
    if len({folders[name].get(PROJECT) for name in sources}) > 1:
        raise Refused(f"The sources of {into} belong to different projects, and stay apart.")
    return sources


def _known(name: str, folders: Mapping[str, Files]) -> None:
    if name not in folders:
        raise Refused(
            f"{one_line(name, 64)!r} is no skill that the curator may change: it is not there, archived, "
            "pinned, or somebody else's."
        )


def _reason(text: str) -> str:
    if not text.strip():
        raise Refused("Each step of a plan gives its reason.")
    return one_line(text, 500)


def _merge(
    merging: Merging, sources: Mapping[str, Files], grounds: Mapping[str, tuple[ChangeId, ...]]
) -> list[Move]:
    into, before = check_name(merging.into), sources.get(merging.into, {})
    after = dict(before) or _born(sources)
    links: dict[str, str] = {}
    for name, files in sources.items():
        links[name] = _keep(after, f"{MERGED}/{name}", ".md", files[DOCUMENT])
        for path, data in split_facts(files)[0].items():
            if path != DOCUMENT and name != into:
                _carry(after, name, path, data)
    body = screen(merging.body).text.strip()
    _faithful(into, body, sources, after)
    after[DOCUMENT] = _document(merging, body, links)
    validate(into, after)
    _whole(into, sources, after, links)
    reason = _reason(merging.reason)
    because = tuple(sorted(each for name in sources for each in grounds.get(name, ())))
    others = [name for name in sources if name != into]
    return [
        Move(into, ChangeKind.MERGE, before, after, f"{', '.join(others)} merged into it: {reason}", because),
        *(_put_away(name, sources[name], f"merged into {into}: {reason}") for name in others),
    ]


def _born(sources: Mapping[str, Files]) -> dict[str, bytes]:
    """Return the initial facts of a new skill."""
    project = next(iter(sources.values())).get(PROJECT)
    return {ORIGIN: SkillOrigin.AGENT.encode(), **({PROJECT: project} if project else {})}


def _keep(after: dict[str, bytes], stem: str, suffix: str, data: bytes) -> str:
    """Store a content at an unused path, and return it."""
    number, path = 1, f"{stem}{suffix}"
    while after.get(path, data) != data:
        number += 1
        path = f"{stem}-{number}{suffix}"
    after[path] = data
    return path


def _carry(after: dict[str, bytes], name: str, path: str, data: bytes) -> None:
    """Copy a support file. It keeps its path, so that references to it still work, unless another file has
    that path."""
    if after.get(path, data) == data:
        after[path] = data
        return
    folder, slash, rest = path.partition("/")
    if not slash:
        folder, rest = "references", path
    stem, dot, suffix = rest.rpartition(".")
    _keep(after, f"{folder}/{name}/{stem}" if dot else f"{folder}/{name}/{rest}", dot and f".{suffix}", data)


def _document(merging: Merging, body: str, links: Mapping[str, str]) -> bytes:
    unlinked = [f"- [{name}]({path})" for name, path in links.items() if path not in body]
    more = (
        "\n".join(("", "", "## Merged from", "", "Each of these is kept whole:", *unlinked))
        if unlinked
        else ""
    )
    description = screen(merging.description).text.strip()
    return write_document(merging.into, description, body + more).encode()


def _faithful(into: str, body: str, sources: Mapping[str, Files], after: Files) -> None:
    """Raise Refused if the new text drops a section, has an empty one, or links a file that is not kept."""
    if body.startswith(FENCE):
        raise Refused(f"The new text of {into} brings front matter of its own.")
    sections = _sections(body)
    if empty := next((heading for heading, filled in sections if not filled), None):
        raise Refused(f"The section {empty!r} of the new {into} has nothing in it.")
    kept = {heading.casefold() for heading, _ in sections}
    for name, files in sources.items():
        for heading, _ in _sections(parse(files[DOCUMENT].decode()).body):
            if heading.casefold() not in kept:
                raise Refused(f"The section {one_line(heading, 100)!r} of {name} is not in the new {into}.")
    for linked in _LINK.findall(body):
        if f"{MERGED}/{linked.rstrip('.,;:')}" not in after:
            raise Refused(f"The new {into} links {MERGED}/{one_line(linked, 64)}, which would not be there.")


def _sections(body: str) -> list[tuple[str, bool]]:
    """Return the headings, and whether text or a deeper heading follows each. Code contains no headings."""
    found: list[tuple[int, str, bool]] = []
    fence = ""
    for line in body.split("\n"):
        code, heading = _CODE.match(line), _HEADING.fullmatch(line)
        if code and (not fence or line.strip().startswith(fence)):
            fence = "" if fence else code[1]
        if heading and not fence and not code:
            if found and len(heading[1]) > found[-1][0]:
                found[-1] = (*found[-1][:2], True)
            found.append((len(heading[1]), heading[2].strip().rstrip("#").rstrip(), False))
        elif line.strip() and found:
            found[-1] = (*found[-1][:2], True)
    return [(heading, filled) for _, heading, filled in found]


def _whole(into: str, sources: Mapping[str, Files], after: Files, links: Mapping[str, str]) -> None:
    """Check a plan finally: every byte of every source is kept, and its text is linked."""
    document, there = after[DOCUMENT].decode(), set(after.values())
    for name, files in sources.items():
        lost = [path for path, data in split_facts(files)[0].items() if data not in there]
        if lost or after.get(links[name]) != files[DOCUMENT] or links[name] not in document:
            raise Refused(f"The new {into} would not keep all of {name}; nothing was done.")


def _put_away(name: str, files: Files, reason: str) -> Move:
    return Move(name, ChangeKind.ARCHIVE, files, {**files, ARCHIVED: SET}, reason)


def aged(name: str, files: Files, unused: int) -> Move:
    """Return the effect of aging on a skill."""
    return Move(
        name, ChangeKind.AGE, files, {**files, ARCHIVED: SET}, f"not used on {unused} days on which Hone was"
    )
