"""Prepare what is shown before something is shared: its text, what it would reveal, its source."""

import getpass
from collections.abc import Mapping, Sequence
from contextlib import suppress

from hone.app import Hone
from hone.core.errors import Refused
from hone.core.ledger import MEMORY, PROJECT, USER, ChangeQuery, Entry, skill
from hone.core.screen import screen
from hone.core.skill import ARCHIVED, DOCUMENT, FAILED
from hone.core.trust import Trust, lowest
from hone.core.visible import one_line
from hone.features.team.exposures import find_exposures
from hone.features.team.people import find_people
from hone.features.team.values import ENTRY, ShareReport, place_exposures
from hone.knowledge.journal import entries
from hone.knowledge.keeper import Keeper
from hone.knowledge.sections import Section, sections
from hone.knowledge.validity import pin

ABOUT_YOU = "It stands in USER.md, the part of the journal that is about you."
FOREIGN = "It was learned from foreign text: a web page, another program or a folder that was not trusted."
UNCONFIRMED = "It is unconfirmed: an agent concluded it, and nobody said it in these words."
WITHDRAWN = "The team took this back before, or turned it down."
EMPTY_ACCOUNTS = ("root", "user", "local", "nobody")
SCRIPTS = ("scripts/", "checks/")
MEMBERS = 500
"""How many changes of the team to search for its members' names."""


def check_shareable(shown: ShareReport) -> None:
    """Raise Refused for what is never shared."""
    if shown.secrets:
        kinds = ", ".join(f"{each.text} at {each.place}" for each in shown.secrets)
        raise Refused(
            f"A secret is never shared ({kinds}); nothing was proposed. Write down where it is kept instead."
        )
    if not any(text.strip() for text in shown.texts.values()):
        raise Refused("There is nothing left to share.")


class Preparing:
    """`keeper` is the team's."""

    def __init__(self, hone: Hone, keeper: Keeper) -> None:
        self._hone = hone
        self._keeper = keeper

    async def prepare_entry(self, match: str) -> ShareReport:
        found = await find_entry(self._hone, match)
        if found.section.target.startswith(PROJECT):
            raise Refused(
                "This entry belongs to a project. Make it yours everywhere first: "
                f'hone memory promote "{one_line(found.text, 60)}"'
            )
        origin = found.origin
        remarks = [ABOUT_YOU] if found.section.target == USER else []
        if origin is None or not origin.change.confirmed:
            remarks.append(UNCONFIRMED)
        trust = await find_trust(self._hone.keeper, origin)
        return await self.show("", {ENTRY: pin(found.text, on=False)}, trust, tuple(remarks))

    async def prepare_skill(self, name: str) -> ShareReport:
        files = await self._hone.library.files(name)
        if ARCHIVED in files or FAILED in files:
            raise Refused(f"The skill {name} is not in use; the team gets only what you use yourself.")
        own = {path: data for path, data in files.items() if not path.startswith("@")}
        if scripts := [path for path in own if path.startswith(SCRIPTS)]:
            raise Refused(
                f"The skill {name} brings what can be run ({', '.join(sorted(scripts))}); "
                "a team shares text only."
            )
        try:
            texts = {path: data.decode() for path, data in sorted(own.items())}
        except UnicodeDecodeError as error:
            raise Refused(f"The skill {name} has a file that is no text; a team shares text only.") from error
        made = await self._hone.ledger.entries(ChangeQuery(target=skill(name)))
        trust = lowest([await find_trust(self._hone.keeper, each) for each in made if each.change.deltas])
        return await self.show(name, texts, trust)

    async def show(
        self, name: str, texts: Mapping[str, str], trust: Trust, remarks: Sequence[str] = ()
    ) -> ShareReport:
        """Return texts with what they would reveal. A label never improves here: to anybody else it is no
        owner's word."""
        people = await self._people()
        found = [
            each
            for file, text in texts.items()
            for each in place_exposures(file, text, find_exposures(text, people))
        ]
        odd = [f"Note that {flag}." for text in texts.values() for flag in screen(text).flags]
        label = [FOREIGN] if trust is Trust.FOREIGN else []
        again = [WITHDRAWN] if await self._is_withdrawn(name, texts) else []
        every = tuple(dict.fromkeys((*remarks, *label, *again, *odd)))
        return ShareReport(name, dict(texts), tuple(found), every, min(trust, Trust.LOCAL))

    async def _people(self) -> frozenset[str]:
        """Return the names to find in any case: those of this account, of the team's members, and of people
        in the part of the journal about the owner."""
        made = await self._keeper.ledger.entries(ChangeQuery(limit=MEMBERS))
        names = {each.change.author.platform for each in made} | {self._hone.stores.owner}
        about = await self._hone.keeper.text(USER)
        names |= {about[start:end] for start, end in find_people(about)}
        with suppress(OSError, KeyError):
            names.add(getpass.getuser())
        return frozenset(names.difference(("", *EMPTY_ACCOUNTS)))

    async def _is_withdrawn(self, name: str, texts: Mapping[str, str]) -> bool:
        target = skill(name) if name else MEMORY
        text = texts.get(DOCUMENT if name else ENTRY, "")
        gone = await self._keeper.withdrawals.all()
        return any(each.target == target and (bool(name) or each.has(text)) for each in gone)


class FoundEntry:
    """An entry of the person's own journal, and the change that added it."""

    def __init__(self, section: Section, text: str) -> None:
        self.section, self.text = section, text
        self.origin: Entry | None = section.brought.get(text)


async def find_entry(hone: Hone, match: str) -> FoundEntry:
    """Find an entry by the number of the change that added it, by its text, or by a unique part of it. Raises
    Refused."""
    every = [
        FoundEntry(each, text)
        for each in await sections(hone.keeper, hone.folder)
        for text in entries(each.text)
    ]
    wanted = match.strip()
    number = int(wanted) if wanted.isascii() and wanted.isdigit() else 0
    found = [each for each in every if each.origin and each.origin.id == number]
    found = found or [each for each in every if each.text == match]
    found = found or [each for each in every if wanted and wanted.casefold() in each.text.casefold()]
    if len(found) == 1:
        return found[0]
    if found:
        listed = "\n".join(f"- {one_line(each.text, 200)}" for each in found[:10])
        raise Refused(f"Several entries match; name one by more of its words.\n{listed}")
    raise Refused("No entry has this number or these words in it. hone memory show lists them.")


async def find_trust(keeper: Keeper, origin: Entry | None) -> Trust:
    """Return the lowest label of what a change rests on, including changes that it approves, restores or
    moves."""
    if origin is None:
        return Trust.FOREIGN
    change = origin.change
    labels = [each.trust for each in change.author.evidence]
    if not labels or not change.confirmed:
        labels.append(change.author.trust_floor)
    before = (*change.sources, change.about) if change.about else change.sources
    return lowest([*labels, *[await find_trust(keeper, await keeper.ledger.entry(id)) for id in before]])
