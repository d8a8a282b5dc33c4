"""Turn what another agent had learned into pending changes. None is active until the owner approves it."""

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from msgspec import Struct

from hone.core.errors import Conflict, Refused
from hone.core.ledger import MEMORY, USER, Actor, Author, ChangeQuery, Entry, Target, skill
from hone.core.messages import digest
from hone.core.skill import DOCUMENT
from hone.core.trust import Trust
from hone.core.visible import one_line
from hone.features.imports.hermes import entries, plain_skill
from hone.features.imports.sources import opened
from hone.knowledge import journal, places
from hone.knowledge.keeper import Keeper
from hone.knowledge.skills.document import DESCRIPTION, write_document
from hone.knowledge.skills.folder import Install
from hone.knowledge.skills.install import plan_folder

TOOL = "import"
FILES: Mapping[str, Target] = {"MEMORY.md": MEMORY, "USER.md": USER}
LARGEST = 1_000_000
"""The most bytes of a memory file."""
DEEPEST = 4
"""The deepest nesting of skills below their folder: they are grouped by category."""
_MANIFEST = ".bundled_manifest"


class ImportProposal(Struct, frozen=True):
    """`mark` is the digest of the proposed content, so that nothing is proposed twice, and nothing that the
    owner has rejected returns."""

    target: Target
    edit: journal.Add | Install
    mark: str
    source: str


@dataclass(slots=True)
class Gathered:
    """`bundled` are skills of the other agent's package, which are not proposed; `problems` say what cannot
    be."""

    proposals: list[ImportProposal] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    bundled: int = 0


def gather(home: Path) -> Gathered:
    """Gather what a Hermes home contains."""
    found = Gathered()
    for name, target in FILES.items():
        path = next((each for each in (home / "memories" / name, home / name) if each.is_file()), None)
        for entry in _entries(path, found) if path else ():
            mark = digest(entry.encode("utf-8", "replace"))
            found.proposals.append(ImportProposal(target, journal.Add(entry), mark, f"Hermes' {name}"))
    top = home / "skills"
    bundled = _bundled(top / _MANIFEST)
    for folder in find_folders(top):
        try:
            proposal = read_skill(folder, "Hermes' skills")
        except (Refused, ValueError) as error:
            found.problems.append(f"{one_line(str(folder), 200)}: {one_line(str(error), 300)}")
            continue
        if {folder.name, places.name_of(proposal.target)} & bundled:
            found.bundled += 1
        else:
            found.proposals.append(proposal)
    return found


def _entries(path: Path, found: Gathered) -> list[str]:
    try:
        with opened(path) as file:
            return entries(file.read(LARGEST).decode())
    except OSError as error:
        found.problems.append(f"{one_line(str(path), 200)} cannot be read: {error.strerror}.")
    except UnicodeDecodeError:
        found.problems.append(f"{one_line(str(path), 200)} is not text in UTF-8.")
    return []


def _bundled(manifest: Path) -> set[str]:
    try:
        with opened(manifest) as file:
            lines = file.read(LARGEST).decode("utf-8", "replace").splitlines()
    except OSError:
        return set()
    return {line.partition(":")[0].strip() for line in lines if line.strip()}


def find_folders(top: Path) -> Iterator[Path]:
    for place, folders, files in os.walk(top):
        if DOCUMENT in files and Path(place) != top:
            folders.clear()
            yield Path(place)
        deep = len(Path(place).relative_to(top).parts) >= DEEPEST
        folders[:] = [] if deep else sorted(each for each in folders if not each.startswith("."))


def read_skill(folder: Path, source: str) -> ImportProposal:
    """Return a skill as a proposal. Raises Refused or ValueError if it is none."""
    plan = plan_folder(folder, adapt=_adapted)
    parts = sorted((path, digest(data)) for path, data in plan.files.items())
    edit = Install(plan.files, str(folder.resolve()))
    return ImportProposal(skill(plan.name), edit, digest(repr(parts).encode()), source)


def _adapted(text: str) -> str:
    """Adapt a skill whose front matter exceeds the open format: only name and description stay."""
    name, description, body = plain_skill(text)
    fit = re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")[:64].strip("-")
    return write_document(fit, description[:DESCRIPTION], body)


async def fresh(keeper: Keeper, proposals: Sequence[ImportProposal]) -> list[ImportProposal]:
    """Return those that were never proposed and are not known."""
    made: dict[Target, set[str]] = {}
    held: dict[Target, tuple[str, ...]] = {}
    for target in dict.fromkeys(each.target for each in proposals):
        past = await keeper.ledger.entries(ChangeQuery(target=target, actor=Actor.OWNER))
        made[target] = {each.change.author.call for each in past if each.change.author.tool == TOOL}
        held[target] = journal.entries(await keeper.text(target)) if places.is_journal(target) else ()
    return [
        each
        for each in proposals
        if each.mark not in made[each.target]
        and not (
            isinstance(each.edit, journal.Add) and journal.normalize(each.edit.text) in held[each.target]
        )
    ]


async def propose(keeper: Keeper, proposals: Sequence[ImportProposal]) -> tuple[list[Entry], list[str]]:
    """Propose changes. Return the pending ones, and why others could not be made."""
    entries: list[Entry] = []
    problems: list[str] = []
    for proposal in proposals:
        try:
            entries.append(await _made(keeper, proposal))
        except (Refused, Conflict) as error:
            first = str(error).partition("\n")[0]
            problems.append(f"{one_line(proposal.target, 80)}: {one_line(first, 300)}")
    return entries, problems


async def _made(keeper: Keeper, proposal: ImportProposal) -> Entry:
    """Propose one change. The owner provides it without having said it, so it is pending."""
    author = Author(
        Actor.OWNER,
        tool=TOOL,
        call=proposal.mark,
        reason=f"from {proposal.source}",
        trust_floor=Trust.FOREIGN,
    )
    if isinstance(proposal.edit, Install):
        return await keeper.edit_skill(places.name_of(proposal.target), proposal.edit, author)
    return (await keeper.note([(proposal.target, proposal.edit)], author))[0]
